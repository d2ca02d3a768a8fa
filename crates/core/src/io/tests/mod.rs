//! Every reader on good, damaged and hostile files. Files that NumPy and SciPy wrote are tested in
//! `tests/oracle`.

mod assumptions;
mod binary;
mod damage;
mod h5ad;
mod images;
mod messages;
mod parts;
mod round_trip;
mod stream;
mod writers;

use std::io::Write;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const OPTIONS: ReadOptions = ReadOptions {
    memory: 1 << 24,
    header: Presence::Auto,
    row_names: Presence::Auto,
    images: ImageSide::Columns,
    missing_as_nan: false,
};

/// A folder whose files are overwritten by each attempt.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        write_new(&path, bytes.as_ref());
        path
    }

    fn read<T: Real>(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<Input<T>> {
        let path = self.write(name, bytes);
        let outcome = read(&path, &OPTIONS);
        stream::agrees(&path, &outcome);
        outcome
    }

    /// What follows the name in the message for a file that is refused.
    fn refusal(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.write(name, bytes);
        let message = read::<f32>(&path, &OPTIONS).unwrap_err().to_string();
        let rest = message.strip_prefix(&path.display().to_string());
        rest.and_then(|rest| rest.strip_prefix(", ").or(rest.strip_prefix(": ")))
            .unwrap_or_else(|| panic!("{message} does not name the file"))
            .to_string()
    }
}

/// As a new file: ext4 writes one that is emptied and filled again to the disk at once, and thousands of them are slow.
fn write_new(path: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A `.npy` file with any claims.
fn npy_file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn bytes_of<const N: usize, V: Copy>(values: &[V], encode: fn(V) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| encode(value)).collect()
}

fn f64s(values: &[f64]) -> Vec<u8> {
    bytes_of(values, f64::to_le_bytes)
}

fn vector_f64(values: &[f64]) -> Vec<u8> {
    npy_file("<f8", "False", &format!("({},)", values.len()), &f64s(values))
}

fn vector_i32(values: &[i32]) -> Vec<u8> {
    npy_file("<i4", "False", &format!("({},)", values.len()), &bytes_of(values, i32::to_le_bytes))
}

fn name_member(name: &str) -> Vec<u8> {
    npy_file(&format!("|S{}", name.len()), "False", "()", name.as_bytes())
}

type Members = Vec<(&'static str, Vec<u8>)>;

fn zip_file(members: &Members, method: zip::CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, content) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// [[1, 0, 2], [0, 0, 0], [4, 0, 0], [0, 8, 0]] with a row out of order and an entry given in two parts.
fn csr_members() -> Members {
    vec![
        ("format.npy", name_member("csr")),
        ("shape.npy", vector_i32(&[4, 3])),
        ("indptr.npy", vector_i32(&[0, 2, 2, 4, 5])),
        ("indices.npy", vector_i32(&[2, 0, 0, 0, 1])),
        ("data.npy", vector_f64(&[2.0, 1.0, 1.0, 3.0, 8.0])),
    ]
}

fn coo_members() -> Members {
    vec![
        ("format.npy", name_member("coo")),
        ("shape.npy", vector_i32(&[4, 3])),
        ("row.npy", vector_i32(&[3, 0, 2, 0, 2])),
        ("col.npy", vector_i32(&[1, 2, 0, 0, 0])),
        ("data.npy", vector_f64(&[8.0, 2.0, 1.0, 1.0, 3.0])),
    ]
}

/// The same matrix, transposed.
fn csc_members() -> Members {
    let mut members = csr_members();
    members[0].1 = name_member("csc");
    members[1].1 = vector_i32(&[3, 4]);
    members
}

/// The entries row by row.
fn entries<T: Real>(matrix: &Matrix<T>) -> Vec<f64> {
    let mut all = vec![0.0; matrix.rows() * matrix.cols()];
    matrix.for_each_stored(|row, col, value| all[row * matrix.cols() + col] = value);
    all
}

/// A small valid file of every format.
fn samples() -> Vec<(String, Vec<u8>)> {
    let dense: Vec<f64> = (1..=6).map(f64::from).collect();
    let mut written = Vec::new();
    npy::write(&mut written, 2, 3, &dense).unwrap();
    // Half of an f64 file would be a whole f32 file.
    let narrow = bytes_of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], f32::to_le_bytes);
    let plain = [
        ("m.npy", written),
        ("bytes.npy", npy_file("|u1", "True", "(2, 3)", &[1, 2, 3, 4, 5, 6])),
        (
            "m.mtx",
            b"%%MatrixMarket matrix coordinate real general\n% x\n4 3 3\n1 1 1.5\n4 2 2\n1 3 1e2\n".to_vec(),
        ),
        ("symmetric.mtx", b"%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n".to_vec()),
        ("m.csv", b",\"a\",b\nx,1,2\ny,3,4.5\n".to_vec()),
        ("m.tsv", b"1\t2\n3\t4\n".to_vec()),
        ("csr.npz", zip_file(&csr_members(), zip::CompressionMethod::Deflated)),
        ("csc.npz", zip_file(&csc_members(), zip::CompressionMethod::Stored)),
        ("dense.bin", binary::dense_file(2, 3, &narrow)),
        ("sparse.bin", binary::sparse_file([4, 3, 4], &[0, 2, 2, 3, 4], &[2, 0, 0, 1], &narrow[..16])),
        ("images.zip", zip_file(&images::members()[..4].to_vec(), zip::CompressionMethod::Deflated)),
        ("coo.npz", zip_file(&coo_members(), zip::CompressionMethod::Stored)),
    ];
    plain
        .into_iter()
        .flat_map(|(name, bytes)| {
            let packed = gzip(&bytes);
            [(name.to_string(), bytes), (format!("{name}.gz"), packed)]
        })
        .collect()
}
