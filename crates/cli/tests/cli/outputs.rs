//! Output folders: refused places, replaced results, full disks.

use crate::common::*;

#[test]
fn places_that_cannot_be_written_to() {
    let desk = Desk::with_digits();
    desk.write("file", "mine");
    std::fs::create_dir(desk.path("folder")).unwrap();
    desk.write("folder/notes.txt", "mine");
    std::fs::create_dir_all(desk.path("odd/U.npy")).unwrap();
    let factorize = |options: &str| desk.refused(&format!("factorize digits.npy --rank 2 --out {options}"));
    assert_says(&factorize("folder"), &["folder already exists", "another --out", "--force"]);
    assert_says(&factorize("file"), &["file already exists", "--force"]);
    assert_says(&factorize("file --force"), &["file is a file, not a folder", "another --out"]);
    assert_says(&factorize("file/r"), &["folder file: Not a directory", "another --out"]);
    assert_says(&factorize("none/deep/r"), &["folder none/deep: No such file", "create this folder first"]);
    assert_says(&factorize("odd --force"), &["odd/U.npy is a folder", "another --out"]);
    assert_says(&factorize(".. --quiet"), &["..", "--force"]);
    if cfg!(target_os = "linux") {
        assert_says(&factorize("/proc/r"), &["cannot write to the folder /proc", "choose another --out"]);
    }
    desk.run("factorize digits.npy --rank 2 --out r");
    let transform = |options: &str| desk.refused(&format!("transform r digits.npy --out {options}"));
    assert_says(&transform("digits.npy"), &["digits.npy already exists", "--force"]);
    assert_says(&transform("W.txt"), &["W.txt ends in neither .npy nor .tsv", "--out"]);
    assert_says(&transform("none/W.npy"), &["folder none: No such file", "create this folder first"]);
    assert_says(&transform("odd/U.npy --force"), &["is a folder, not a file"]);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_into_nowhere() {
    let desk = Desk::with_digits();
    std::os::unix::fs::symlink("nowhere", desk.path("link")).unwrap();
    assert_says(&desk.refused("factorize digits.npy --rank 2 --out link"), &["link already exists"]);
    assert_says(&desk.refused("factorize digits.npy --rank 2 --out link --force"), &["not a folder"]);
    std::fs::create_dir(desk.path("nowhere")).unwrap();
    desk.run("factorize digits.npy --rank 2 --out link --force");
    assert!(desk.path("nowhere/U.npy").exists());
}

#[test]
fn an_empty_folder_is_accepted() {
    let desk = Desk::with_digits();
    for (words, made) in [
        ("factorize digits.npy --rank 2", "U.npy"),
        ("simulate digits.npy --rank 2 --parties 4 --rounds 1 --protocol syn-sd", "party-1"),
        ("split digits.npy --nodes 2", "split.json"),
        ("coordinator init heart", "federation.toml"),
        ("party init a --federation heart --coordinator localhost:7400", "party.toml"),
        ("provision --demo", "coordinator"),
    ] {
        let folder = desk.path("empty");
        std::fs::create_dir(&folder).unwrap();
        desk.run(&format!("{words} --out empty"));
        assert!(folder.join(made).exists(), "{words}");
        let hidden = |name: std::ffi::OsString| name.to_string_lossy().starts_with('.');
        assert!(
            std::fs::read_dir(&folder).unwrap().all(|entry| !hidden(entry.unwrap().file_name())),
            "{words}"
        );
        assert_says(&desk.refused(&format!("{words} --out empty")), &["empty already exists"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
    // All parts exist.
    std::fs::create_dir(desk.path("parts")).unwrap();
    desk.run("split digits.npy --nodes 2 --out parts");
    assert_eq!(std::fs::read_dir(desk.path("parts")).unwrap().count(), 5);
}

#[test]
fn force_replaces_results_and_nothing_else() {
    let desk = Desk::with_digits();
    desk.write("m.csv", "name,a,b\nx,1,2\ny,3,4\n");
    desk.run("factorize m.csv --rank 1 --tsv --out r");
    desk.write("r/notes.txt", "mine");
    std::fs::create_dir(desk.path("r/mine")).unwrap();
    assert_says(&desk.refused("factorize digits.npy --rank 2 --out r"), &["r already exists"]);
    desk.run("factorize digits.npy --rank 2 --out r --force");
    let mut names: Vec<_> = std::fs::read_dir(desk.path("r"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // Labels and tables of the old results are removed, because they do not belong to the new ones.
    assert_eq!(names, ["U.npy", "V.npy", "mine", "notes.txt", "report.html", "run.json", "trace.csv"]);
    assert_eq!(desk.read("r/notes.txt"), "mine");
    assert_eq!(desk.factor("r/U.npy").0, 1797);
    // A run that fails leaves the old results.
    desk.write("bad.csv", "1,-2\n");
    desk.refused("factorize bad.csv --rank 1 --out r --force");
    // Starts from its own results and replaces them.
    desk.run("factorize digits.npy --rank 2 --init-from r --out r --force");
    desk.run("transform r digits.npy --out W.npy");
    desk.run("transform r digits.npy --out W.npy --force");
}

#[test]
fn a_name_with_a_slash_or_a_dot() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 2 --out r/");
    desk.run("factorize digits.npy --rank 2 --out ./s");
    assert!(desk.path("r/U.npy").exists() && desk.path("s/U.npy").exists());
    desk.run("factorize digits.npy --rank 2 --out . --force");
    assert!(desk.path("U.npy").exists());
}

/// A small file system, where the test may mount one.
#[cfg(target_os = "linux")]
struct SmallDisk(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl SmallDisk {
    fn mount(path: std::path::PathBuf) -> Option<Self> {
        std::fs::create_dir(&path).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=80k", "tmpfs"]).arg(&path);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(SmallDisk(path))
    }

    fn make_read_only(&self) {
        let mut mount = std::process::Command::new("mount");
        assert!(mount.args(["-o", "remount,ro"]).arg(&self.0).status().unwrap().success());
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_and_read_only_disks() {
    let desk = Desk::with_digits();
    let Some(disk) = SmallDisk::mount(desk.path("disk")) else {
        eprintln!("skipped: no file system can be mounted here");
        return;
    };
    let values: Vec<f64> = (0..400 * 20).map(|place| (place % 7 + 1) as f64).collect();
    desk.write("m.csv", table_bytes(20, &values, ","));
    // Too large for the disk, which is detected before computing.
    let said = desk.refused("factorize digits.npy --rank 32 --out disk/new");
    assert_says(&said, &["disk/new", "the results need 232.6 KiB", "but only 80.0 KiB is free", "make room"]);
    desk.run("factorize m.csv --rank 1 --iterations 3 --no-report --out disk/r");
    desk.run("factorize m.csv --rank 1 --iterations 3 --no-report --out disk --force");
    // No space for the page: the results exist, and no message claims that there is a page.
    desk.write("disk/ballast", vec![0; 24 << 10]);
    let output = desk.output("factorize m.csv --rank 1 --iterations 3 --out disk/page");
    assert!(output.status.success(), "{output:?}");
    assert_says(&String::from_utf8_lossy(&output.stderr), &["the results are written, but not report.html"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("shows it"), "{output:?}");
    assert!(desk.path("disk/page/U.npy").exists() && !desk.path("disk/page/report.html").exists());
    std::fs::remove_dir_all(desk.path("disk/page")).unwrap();
    std::fs::remove_file(desk.path("disk/ballast")).unwrap();
    // The disk is full while results are written: the earlier results remain complete.
    let before = desk.snapshot();
    for out in ["disk/r", "disk", "disk/new"] {
        let words = format!("factorize m.csv --rank 20 --iterations 3 --tsv --no-report --out {out} --force");
        let said = refusal(&desk.output(&words), &words);
        assert_says(&said, &["cannot write", out, "No space left", "make room there"]);
        assert!(before == desk.snapshot(), "{out}");
    }
    let words = "transform disk/r m.csv --out disk/W.tsv";
    desk.write("disk/ballast", vec![0; 40 << 10]);
    let long: Vec<f64> = (0..20 * 1500).map(|place| (place % 5 + 1) as f64).collect();
    desk.write("long.csv", table_bytes(20, &long, ","));
    let before = desk.snapshot();
    let said = refusal(&desk.output(&words.replace("m.csv", "long.csv")), words);
    assert_says(&said, &["cannot write disk/W.tsv", "No space left", "make room there"]);
    assert!(before == desk.snapshot());
    disk.make_read_only();
    for out in ["disk/new", "disk/r --force"] {
        let said = desk.refused(&format!("factorize m.csv --rank 1 --out {out}"));
        assert_says(&said, &["cannot write to the folder disk", "Read-only", "choose another --out"]);
    }
    let said = desk.refused("report disk/r");
    assert_says(
        &said,
        &["cannot write disk/r/report.html", "Read-only", "; copy the folder to where you can write"],
    );
}
