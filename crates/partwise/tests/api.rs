//! Guards the public interface: the `pub` declarations in this crate's sources must match `api.txt`.
//!
//! A change of that file is visible to users. `PARTWISE_UPDATE_API=1 cargo test -p partwise --test api`
//! writes it.

use std::fs;
use std::path::{Path, PathBuf};

const LISTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api.txt");

/// The source files, sorted by name.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let of = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.into_iter().flat_map(of).collect()
}

/// The declarations on lines that begin with `pub`, fields and the headers of implementations, one line each.
fn declarations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let begin = line.trim_start();
        if begin == "#[cfg(test)]" {
            break;
        }
        if !(begin.starts_with("pub ") || begin.starts_with("impl")) {
            continue;
        }
        let mut declared = begin.to_string();
        while !declared.ends_with(['{', '}', ';', ','])
            || declared.matches('(').count() > declared.matches(')').count()
        {
            let Some(more) = lines.next() else { break };
            declared += &format!(" {}", more.trim());
        }
        let declared = declared.split(" {").next().unwrap_or_default().replace("( ", "(").replace(", )", ")");
        found.push(declared.trim_end_matches(['{', ';', ',', ' ']).to_string());
    }
    found
}

#[test]
fn the_public_interface_is_as_listed() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut listed = String::new();
    for source in sources(folder).iter().filter(|source| source.extension().is_some_and(|end| end == "rs")) {
        let name = source.strip_prefix(folder).unwrap().display().to_string().replace('\\', "/");
        let found = declarations(&fs::read_to_string(source).unwrap());
        listed += &found.iter().map(|line| format!("{name}: {line}\n")).collect::<String>();
    }
    if std::env::var_os("PARTWISE_UPDATE_API").is_some() {
        fs::write(LISTED, &listed).unwrap();
    }
    let expected = fs::read_to_string(LISTED).unwrap().replace("\r\n", "\n");
    for (line, before) in listed.lines().zip(expected.lines()) {
        assert_eq!(line, before, "the interface has changed; api.txt has the previous one");
    }
    assert_eq!(listed.lines().count(), expected.lines().count(), "the interface has changed");
}

/// Choices come from registries of the core; their names are part of the interface.
#[test]
fn choices_are_as_listed() {
    use partwise::options::{Init, Loss, Method, Normalize, SketchKind, SketchedSolver};
    assert_eq!(format!("{:?}", Method::ALL), "[Auto, Hals, Mu, Bpp, Dsanls]");
    assert!(format!("{:?}", Loss::ALL).starts_with("[Frobenius"));
    assert!(format!("{:?}", SketchKind::ALL).starts_with("[Subsample, Gaussian, Count, Srht"));
    assert_eq!(format!("{:?}", SketchedSolver::ALL), "[Pcd, Pgd]");
    assert_eq!(format!("{:?}", Init::ALL), "[Random, Nndsvd, Nndsvda, Nndsvdar]");
    assert!(format!("{:?}", Normalize::ALL).starts_with("[Balanced"));
}
