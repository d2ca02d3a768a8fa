//! The libraries name fields, and the program names the options for them.

use std::path::{Path, PathBuf};

use crate::common::*;

/// All sources in a folder except those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.file_stem().is_some_and(|name| name == "tests") {
            true => {}
            false if path.is_dir() => found.extend(sources(&path)),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
    found
}

/// The words of a source that start like options, outside of comments and tests.
fn options(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words =
        lines.flat_map(|line| line.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')));
    words
        .filter(|word| word.strip_prefix("--").is_some_and(|name| name.starts_with(char::is_alphabetic)))
        .collect()
}

#[test]
fn libraries_name_no_options() {
    assert_eq!(options("// --rank\n\"lower --rank, or x\"\n#[cfg(test)]\nmod tests {\n--seed"), ["--rank"]);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["core", "secure", "federation"] {
        let sources = sources(&crates.join(name).join("src"));
        assert!(sources.len() > 10, "{name}");
        for path in sources {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(options(&text), [""; 0], "{} is of a library, which names fields", path.display());
            let named = text
                .split("Error::parameter(")
                .skip(1)
                .filter_map(|rest| rest.trim_start().strip_prefix('"'));
            for name in named.filter_map(|rest| rest.split('"').next()) {
                let letters =
                    |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
                assert!(name.chars().all(letters), "{}: {name} is no field", path.display());
            }
        }
    }
}

#[test]
fn the_program_names_options() {
    let desk = Desk::new();
    for (arguments, expected) in [
        ("factorize m.npy --rank 0 --out x", "--rank: 0 is too few; give 1 or more"),
        (
            "factorize m.npy --rank 2 --out x --algorithm dsanls --alpha 0 --beta 0",
            "--alpha: --alpha and --beta cannot both be 0, which turns the damping off; give one of them",
        ),
        (
            "factorize m.npy --rank 2 --out x --sketch gaussian",
            "--sketch: auto does not use it; leave it out, or choose dsanls",
        ),
    ] {
        assert_eq!(desk.refused(arguments), expected);
    }
}
