//! Folders and zip archives of images.

use std::io::Cursor;

use image::{ExtendedColorType, ImageEncoder};

use super::*;
use crate::matrix::{Order, Values};

fn png(width: u32, height: u32, color: ExtendedColorType, pixels: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    image::codecs::png::PngEncoder::new(&mut file).write_image(pixels, width, height, color).unwrap();
    file
}

fn jpeg(width: u32, height: u32, color: ExtendedColorType, pixels: &[u8]) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, 100)
        .write_image(pixels, width, height, color)
        .unwrap();
    file.into_inner()
}

const RGB: [u8; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18];

/// Three RGB images of 3 x 2 pixels among other things.
pub fn members() -> Members {
    vec![
        ("b/second.PNG", png(3, 2, ExtendedColorType::Rgb8, &RGB)),
        ("__MACOSX/._a.png", b"no image".to_vec()),
        ("readme.txt", b"not an image".to_vec()),
        (".hidden.png", b"no image".to_vec()),
        ("a.jpg", jpeg(3, 2, ExtendedColorType::Rgb8, &[100; 18])),
        ("c.png", png(3, 2, ExtendedColorType::Rgb8, &RGB.map(|byte| 2 * byte))),
    ]
}

fn bytes(input: &Input<f32>) -> (Order, &[u8]) {
    let Matrix::Dense(dense) = &input.matrix else { panic!("images are dense") };
    let Values::Bytes(bytes) = dense.values() else { panic!("pixels are bytes") };
    (dense.order(), bytes)
}

/// The same images as a folder, subfolders flattened away.
fn folder_of(members: &Members) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in members {
        std::fs::write(folder.path().join(name.rsplit_once('/').map_or(*name, |(_, name)| name)), content)
            .unwrap();
    }
    folder
}

#[test]
fn an_image_a_column_or_a_row() {
    let folder = Folder::new();
    let path = folder.write("images.zip", zip_file(&members(), zip::CompressionMethod::Stored));
    let columns = read::<f32>(&path, &OPTIONS).unwrap();
    assert_eq!((columns.matrix.rows(), columns.matrix.cols()), (18, 3));
    assert_eq!(columns.col_labels.as_ref().unwrap(), &["a.jpg", "b/second.PNG", "c.png"]);
    let (order, pixels) = bytes(&columns);
    assert_eq!(order, Order::ColMajor);
    assert!(pixels[..18].iter().all(|&pixel| pixel.abs_diff(100) <= 1), "{pixels:?}");
    assert_eq!((&pixels[18..36], &pixels[36..]), (&RGB[..], &RGB.map(|byte| 2 * byte)[..]));
    let shape = ImageShape { width: 3, height: 2, channels: 3, images: ImageSide::Columns };
    assert_eq!(columns.image, Some(shape));
    assert_eq!(columns.format, "3 x 2 RGB images in a zip archive");

    let rows = read::<f32>(&path, &ReadOptions { images: ImageSide::Rows, ..OPTIONS }).unwrap();
    assert_eq!((rows.matrix.rows(), rows.matrix.cols()), (3, 18));
    assert_eq!(
        (rows.row_labels.as_ref(), bytes(&rows)),
        (columns.col_labels.as_ref(), (Order::RowMajor, pixels))
    );
    let turned = rows.into_transpose();
    assert_eq!((&turned.matrix, turned.image), (&columns.matrix, columns.image));

    let plain = folder_of(&members());
    let input = read::<f32>(plain.path(), &OPTIONS).unwrap();
    // Without its folder the second comes last.
    let (order, moved) = bytes(&input);
    assert_eq!((order, &moved[..18], &moved[18..36]), (Order::ColMajor, &pixels[..18], &pixels[36..]));
    assert_eq!(&moved[36..], &pixels[18..36]);
    assert_eq!(input.col_labels.unwrap(), ["a.jpg", "c.png", "second.PNG"].map(String::from));
    assert_eq!(input.format, "3 x 2 RGB images in a folder");
}

#[test]
fn other_kinds_become_grey_or_rgb() {
    let folder = Folder::new();
    let wide: Vec<u8> = [0u16, 128, 129, 65535].iter().flat_map(|value| value.to_ne_bytes()).collect();
    for (color, pixels, expected, words) in [
        (ExtendedColorType::L8, vec![1, 2, 3, 4], vec![1, 2, 3, 4], "2 x 2 grey images"),
        (ExtendedColorType::La8, vec![1, 9, 2, 9, 3, 9, 4, 9], vec![1, 2, 3, 4], "transparency dropped"),
        (ExtendedColorType::L16, wide, vec![0, 0, 1, 255], "16 bits rounded to 8"),
        (ExtendedColorType::Rgba8, [5, 6, 7, 0].repeat(4), [5, 6, 7].repeat(4), "transparency dropped"),
    ] {
        let archive = zip_file(&vec![("a.png", png(2, 2, color, &pixels))], zip::CompressionMethod::Stored);
        let input = folder.read::<f32>("m.zip", archive).unwrap();
        assert_eq!(bytes(&input).1, expected);
        assert!(input.format.contains(words), "{}", input.format);
    }
}

#[test]
fn refusals() {
    let folder = Folder::new();
    let refusal =
        |members: Members| folder.refusal("m.zip", zip_file(&members, zip::CompressionMethod::Deflated));
    let first = ("a.png", png(3, 2, ExtendedColorType::Rgb8, &RGB));
    assert_eq!(
        refusal(vec![first.clone(), ("b.png", png(2, 3, ExtendedColorType::Rgb8, &RGB))]),
        "image b.png: 2 x 3 pixels, RGB, where a.png is 3 x 2 pixels, RGB; \
         give images of one size and kind, or convert them"
    );
    assert!(
        refusal(vec![first.clone(), ("b.png", png(3, 2, ExtendedColorType::L8, &RGB[..6]))])
            .contains("image b.png: 3 x 2 pixels, grey, where a.png is 3 x 2 pixels, RGB;")
    );
    assert_eq!(
        refusal(vec![first.clone(), ("c.gif", b"GIF89a".to_vec())]),
        "image c.gif: images of this kind are not read; convert it to PNG, or remove it"
    );
    assert_eq!(
        refusal(vec![("a.txt", vec![1]), ("__MACOSX/a.png", vec![1])]),
        "content: no JPEG or PNG image in a zip archive; put some into it, or rename it to end in .npz if NumPy or \
         SciPy made it"
    );
    assert_eq!(
        refusal(vec![("a.jpg", b"plain text".to_vec())]),
        "image a.jpg: this is neither a JPEG nor a PNG image; convert it, or remove it"
    );
    assert_eq!(
        refusal(vec![("a.png", first.1[..first.1.len() - 3].to_vec())]),
        "image a.png: the file is truncated; create or download it again"
    );
    let black = vec![("a.png", png(1, 1, ExtendedColorType::L8, &[0]))];
    assert!(refusal(black).starts_with("entries: every entry is 0"));
}

/// Reads an image file from a folder of its own.
fn read_alone(folder: &TempDir, name: &str, content: &[u8]) -> Result<Input<f32>> {
    write_new(&folder.path().join(name), content);
    read::<f32>(folder.path(), &ReadOptions { memory: 1 << 20, ..OPTIONS })
}

#[test]
fn damaged_images() {
    let pixels: Vec<u8> = (0..16 * 16 * 3).map(|place| (place * 37 % 251) as u8).collect();
    for (name, file) in [
        ("a.png", png(16, 16, ExtendedColorType::Rgb8, &pixels)),
        ("a.jpg", jpeg(16, 16, ExtendedColorType::Rgb8, &pixels)),
        ("a.jpg", jpeg(9, 7, ExtendedColorType::L8, &pixels[..63])),
    ] {
        let folder = tempfile::tempdir().unwrap();
        read_alone(&folder, name, &file).unwrap();
        for length in 0..file.len() {
            assert!(
                read_alone(&folder, name, &file[..length]).is_err(),
                "{name} cut to {length} bytes was read"
            );
        }
        for place in 0..file.len() {
            for change in [1, 0x80, 0xff, file[place]] {
                let mut changed = file.clone();
                changed[place] ^= change;
                if let Ok(input) = read_alone(&folder, name, &changed) {
                    assert_eq!(bytes(&input).1.len(), input.matrix.stored());
                }
            }
        }
    }
}

#[test]
fn small_files_cannot_claim_large_images() {
    // A width of 60,000 and a height of 60,000 in the header, with its checksum made right.
    let mut file = png(1, 1, ExtendedColorType::Rgb8, &[1, 2, 3]);
    file[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
    let mut checksum = flate2::Crc::new();
    checksum.update(&file[12..29]);
    file[29..33].copy_from_slice(&checksum.sum().to_be_bytes());
    let folder = tempfile::tempdir().unwrap();
    let message = read_alone(&folder, "a.png", &file).unwrap_err().to_string();
    assert!(message.contains("image a.png: the file cannot hold 60000 x 60000 pixels, RGB"), "{message}");

    // Zeros that deflate packs a thousandfold, once in the archive and once within the image.
    let tight = ReadOptions { memory: 1 << 16, ..OPTIONS };
    let bomb = zip_file(&vec![("a.png", vec![0; 1 << 20])], zip::CompressionMethod::Deflated);
    let message = read::<f32>(&Folder::new().write("m.zip", bomb), &tight).unwrap_err().to_string();
    assert!(message.contains("the image a.png needs 1.0 MiB of memory"), "{message}");
    let bomb = vec![("a.png", png(1 << 10, 1 << 10, ExtendedColorType::L8, &[7; 1 << 20]))];
    let bomb = zip_file(&bomb, zip::CompressionMethod::Stored);
    let error = read::<f32>(&Folder::new().write("m.zip", bomb), &tight).unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
}
