//! A temporary folder in which tests run the program, and files for it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use partwise::io::npy;
use serde_json::Value;

/// A temporary folder for a test. The program runs in it, so that messages have the file names of the test.
pub struct Desk(tempfile::TempDir);

/// A factor as written: rows, columns, entries by row.
pub type Factor = (usize, usize, Vec<f64>);

impl Desk {
    pub fn new() -> Self {
        Desk(tempfile::tempdir().unwrap())
    }

    /// A desk with `digits.npy` on it.
    pub fn with_digits() -> Self {
        let desk = Desk::new();
        std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/digits.npy"), desk.path("digits.npy"))
            .unwrap();
        desk
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub fn factor(&self, name: &str) -> Factor {
        npy::read_array(&self.path(name), u64::MAX).unwrap()
    }

    pub fn write_factor(&self, name: &str, (rows, cols, values): &Factor) {
        npy::write(std::fs::File::create(self.path(name)).unwrap(), *rows, *cols, values).unwrap();
    }

    /// The program with these words as arguments, in this folder.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("partwise"));
        command.args(words.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("COLUMNS", "100").env_remove("RUST_BACKTRACE");
        command
    }

    pub fn output(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a command that must succeed, and returns its stdout.
    pub fn run(&self, words: &str) -> String {
        let output = self.output(words);
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must be refused: exit code 2, one sentence on stderr, nothing on stdout, no file created
    /// or changed. Returns the sentence without `error: `.
    pub fn refused(&self, words: &str) -> String {
        self.refused_command(self.command(words), words)
    }

    pub fn refused_command(&self, mut command: Command, words: &str) -> String {
        let before = self.snapshot();
        let output = command.output().unwrap();
        assert!(output.stdout.is_empty(), "{words}: {output:?}");
        let sentence = refusal(&output, words);
        assert_eq!(before.keys().collect::<Vec<_>>(), self.snapshot().keys().collect::<Vec<_>>(), "{words}");
        assert!(before == self.snapshot(), "{words} changed a file");
        sentence
    }

    /// Every path in the folder, with its bytes if it is a file.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.0.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                    found.insert(path, None);
                } else {
                    let bytes = std::fs::read(&path).ok();
                    found.insert(path, bytes);
                }
            }
        }
        found
    }
}

/// The sentence of a refusal, without `error: `.
pub fn refusal(output: &Output, words: &str) -> String {
    assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    let sentence = stderr.strip_suffix('\n').and_then(|line| line.strip_prefix("error: "));
    let sentence = sentence.unwrap_or_else(|| panic!("{words}: {stderr:?}"));
    assert!(!sentence.contains('\n') && !sentence.contains("panicked"), "{words}: {stderr}");
    sentence.to_string()
}

/// Checks that a refusal names the object, the problem and the remedy.
#[track_caller]
pub fn assert_says(sentence: &str, expected: &[&str]) {
    for words in expected {
        assert!(sentence.contains(words), "{sentence:?} does not say {words:?}");
    }
}

/// A `.npy` file with this header.
pub fn npy_bytes(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

pub fn f64_bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn i64_bytes(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A SciPy sparse `.npz` of row-major entries without the zeros.
pub fn npz_bytes(rows: usize, cols: usize, values: &[f64]) -> Vec<u8> {
    let (mut offsets, mut indices, mut data) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks(cols) {
        for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            indices.push(col as i64);
            data.push(value);
        }
        offsets.push(data.len() as i64);
    }
    let count = |len: usize| format!("({len},)");
    let members = [
        ("format.npy", npy_bytes("|S3", "()", b"csr")),
        ("shape.npy", npy_bytes("<i8", "(2,)", &i64_bytes(&[rows as i64, cols as i64]))),
        ("indptr.npy", npy_bytes("<i8", &count(offsets.len()), &i64_bytes(&offsets))),
        ("indices.npy", npy_bytes("<i8", &count(indices.len()), &i64_bytes(&indices))),
        ("data.npy", npy_bytes("<f8", &count(data.len()), &f64_bytes(&data))),
    ];
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(&bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub fn mtx_bytes(rows: usize, cols: usize, values: &[f64]) -> Vec<u8> {
    let mut text = format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} {}\n", values.len());
    for (place, value) in values.iter().enumerate() {
        text.push_str(&format!("{} {} {value}\n", place / cols + 1, place % cols + 1));
    }
    text.into_bytes()
}

pub fn table_bytes(cols: usize, values: &[f64], delimiter: &str) -> Vec<u8> {
    let line = |row: &[f64]| row.iter().map(f64::to_string).collect::<Vec<_>>().join(delimiter) + "\n";
    values.chunks(cols).map(line).collect::<String>().into_bytes()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// U Vᵀ, by row.
pub fn product((_, k, u): &Factor, (_, _, v): &Factor) -> Vec<f64> {
    let dot = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(u, v)| u * v).sum();
    u.chunks(*k).flat_map(|u| v.chunks(*k).map(move |v| dot(u, v))).collect()
}

/// The norm of each column.
pub fn norms((_, k, values): &Factor) -> Vec<f64> {
    let norm = |j| values.iter().skip(j).step_by(*k).map(|value| value * value).sum::<f64>().sqrt();
    (0..*k).map(norm).collect()
}

/// ‖U_j‖ ‖V_j‖ of each component.
pub fn energies(u: &Factor, v: &Factor) -> Vec<f64> {
    norms(u).iter().zip(norms(v)).map(|(u, v)| u * v).collect()
}
