//! Images as input, from the command line.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use image::{GrayImage, RgbImage};
use serde_json::Value;
use tempfile::TempDir;

fn partwise(folder: &TempDir, arguments: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("partwise").unwrap().current_dir(folder).args(arguments).assert()
}

/// A folder `frames` with six PNG images of 4 x 3 pixels and one other file.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames");
    fs::create_dir(&frames).unwrap();
    for frame in 0..6u8 {
        let picture = RgbImage::from_fn(4, 3, |x, y| image::Rgb([10 * frame + x as u8, 7 * y as u8, 100]));
        picture.save(frames.join(format!("{frame}.png"))).unwrap();
    }
    fs::write(frames.join("notes.txt"), "six frames").unwrap();
    folder
}

fn record(folder: &TempDir, out: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.path().join(out).join("run.json")).unwrap()).unwrap()
}

#[test]
fn the_size_of_the_pictures_is_remembered() {
    let folder = folder();
    partwise(&folder, &["factorize", "frames", "--rank", "2", "--out", "columns", "--quiet"]).success();
    let columns = record(&folder, "columns");
    let expected = serde_json::json!({ "width": 4, "height": 3, "channels": 3, "images": "columns" });
    assert_eq!(columns["image"], expected);
    assert_eq!((&columns["input"]["rows"], &columns["input"]["cols"]), (&36.into(), &6.into()));
    assert_eq!(columns["input"]["sha256"].as_str().unwrap().len(), 64);
    let labels = fs::read_to_string(folder.path().join("columns/columns.txt")).unwrap();
    assert_eq!(labels, "0.png\n1.png\n2.png\n3.png\n4.png\n5.png\n");
    for (arguments, out) in [(&["--images", "rows"][..], "rows"), (&["--transpose"], "turned")] {
        let all = [&["factorize", "frames", "--rank", "2", "--quiet", "--out", out], arguments].concat();
        partwise(&folder, &all).success();
        let rows = record(&folder, out);
        assert_eq!((&rows["image"]["images"], &rows["input"]["rows"]), (&"rows".into(), &6.into()));
        assert!(folder.path().join(out).join("rows.txt").exists());
    }
    partwise(&folder, &["convert", "frames", "M.npy"]).success();
    partwise(&folder, &["factorize", "M.npy", "--rank", "2", "--out", "plain", "--quiet"]).success();
    assert_eq!(record(&folder, "plain")["image"], Value::Null);
    for name in ["U.npy", "V.npy"] {
        let read = |out: &str| fs::read(folder.path().join(out).join(name)).unwrap();
        assert_eq!(read("plain"), read("columns"), "{name}");
    }
}

/// Expects exit code 2, one line with `words`, and no result.
fn refused(folder: &TempDir, file: &str, words: &str) {
    let outcome = partwise(folder, &["factorize", file, "--rank", "2", "--out", "result"]).code(2);
    let said = String::from_utf8(outcome.get_output().stderr.clone()).unwrap();
    assert!(said.starts_with("error: ") && said.matches('\n').count() == 1, "{said}");
    assert!(said.contains(words), "{said} does not say {words:?}");
    assert!(!folder.path().join("result").exists());
}

#[test]
fn refusals() {
    let save = |path: &Path| GrayImage::from_pixel(2, 2, image::Luma([9])).save(path).unwrap();
    let folder = folder();
    let frames = folder.path().join("frames");
    save(&frames.join("6.png"));
    refused(&folder, "frames", "image 6.png: 2 x 2 pixels, grey, but 0.png is 4 x 3 pixels, RGB");
    let whole = fs::read(frames.join("5.png")).unwrap();
    fs::write(frames.join("6.png"), &whole[..whole.len() / 2]).unwrap();
    refused(&folder, "frames", "image 6.png: the file ends too early");
    fs::remove_file(frames.join("6.png")).unwrap();
    fs::write(frames.join("6.gif"), "GIF89a").unwrap();
    refused(&folder, "frames", "image 6.gif: images of this kind are not read");
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("empty/notes.txt"), "nothing here").unwrap();
    refused(&folder, "empty", "no JPEG or PNG image in a folder");
    fs::write(folder.path().join("cut.zip"), b"PK\x03\x04 and no more").unwrap();
    refused(&folder, "cut.zip", "archive: truncated or damaged");
}
