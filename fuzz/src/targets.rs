//! One function a reader: bytes in, a panic if they break it.

use std::io::{Cursor, Write};
use std::path::Path;

use partwise::Real;
use partwise::io::{self, ImageSide, Presence, ReadOptions};
use partwise::matrix::Matrix;
use partwise::run::{self, Factors, Machine, Progress, Snapshot};
use partwise_federation::frame::{Assembly, Frame, FromParty, ToParty, read_control};
use partwise_secure::session;

use crate::Scratch;
use crate::valid;

const OPTIONS: ReadOptions = ReadOptions {
    memory: 64 << 20,
    header: Presence::Auto,
    row_names: Presence::Auto,
    images: ImageSide::Columns,
    missing_as_nan: false,
};

fn matrix(suffix: &str, bytes: &[u8]) {
    both(&Scratch::file(suffix, bytes).0, OPTIONS);
}

/// Reads in both precisions, which must agree where both succeed.
fn both(path: &Path, options: ReadOptions) {
    let narrow = io::read::<f32>(path, &options);
    let wide = io::read::<f64>(path, &options);
    if let Ok(input) = &narrow {
        valid::input(input);
    }
    if let Ok(input) = &wide {
        valid::input(input);
    }
    if let (Ok(narrow), Ok(wide)) = (narrow, wide) {
        valid::same_but_for_rounding(&narrow, &wide);
    }
}

pub fn npy(bytes: &[u8]) {
    matrix(".npy", bytes);
    let file = Scratch::file(".npy", bytes);
    if let Ok((rows, cols, values)) = io::npy::read_array::<f64>(&file.0, OPTIONS.memory) {
        assert_eq!(Some(values.len()), rows.checked_mul(cols));
        valid::numbers(&values);
    }
}

pub fn npz(bytes: &[u8]) {
    matrix(".npz", bytes);
}

/// Members that [`npz_members`] can make.
pub const MEMBERS: [&str; 7] =
    ["format.npy", "shape.npy", "data.npy", "indices.npy", "indptr.npy", "row.npy", "col.npy"];

/// An archive with right checksums, which random bytes hardly ever have: each member is the number of its name,
/// two bytes of length and its content.
pub fn npz_members(bytes: &[u8]) {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut seen = [false; MEMBERS.len()];
    let mut rest = bytes;
    while let Some((&[name, low, high], after)) = rest.split_first_chunk() {
        let number = usize::from(name) % MEMBERS.len();
        let (content, after) = after.split_at(after.len().min(u16::from_le_bytes([low, high]).into()));
        rest = after;
        if !std::mem::replace(&mut seen[number], true) {
            zip.start_file(MEMBERS[number], options).expect("the name is new");
            zip.write_all(content).expect("memory is there");
        }
    }
    matrix(".npz", zip.finish().expect("memory is there").get_ref());
}

pub fn mtx(bytes: &[u8]) {
    matrix(".mtx", bytes);
}

pub fn csv(bytes: &[u8]) {
    table(".csv", bytes);
}

pub fn tsv(bytes: &[u8]) {
    table(".tsv", bytes);
}

/// With what the file looks like, and with what it may be said to be.
fn table(suffix: &str, bytes: &[u8]) {
    const SAID: [Presence; 3] = [Presence::Auto, Presence::Yes, Presence::No];
    let file = Scratch::file(suffix, bytes);
    both(&file.0, OPTIONS);
    let options =
        ReadOptions { header: SAID[bytes.len() % 3], row_names: SAID[bytes.len() / 3 % 3], ..OPTIONS };
    both(&file.0, options);
}

pub fn bin(bytes: &[u8]) {
    matrix(".bin", bytes);
}

pub fn h5ad(bytes: &[u8]) {
    matrix(".h5ad", bytes);
}

pub fn images(bytes: &[u8]) {
    matrix(".zip", bytes);
}

/// A JPEG or PNG file alone, in a folder.
pub fn image(bytes: &[u8]) {
    let folder = Scratch::folder("a.png", bytes);
    both(&folder.0, ReadOptions { images: ImageSide::Rows, ..OPTIONS });
}

pub fn labels(bytes: &[u8]) {
    let file = Scratch::file(".txt", bytes);
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    for expected in [3, lines, lines + 1, usize::MAX] {
        if let Ok(labels) = io::labels::read(&file.0, expected) {
            assert_eq!(labels.len(), expected);
        }
    }
}

pub fn checkpoint(bytes: &[u8]) {
    snapshot::<f32>(bytes);
    snapshot::<f64>(bytes);
}

/// A checkpoint that is read can be written and read again, and a run resumes from it or refuses.
fn snapshot<T: Real>(bytes: &[u8]) {
    let file = Scratch::file(".ckpt", bytes);
    let Ok((snapshot, note)) = Snapshot::<T>::read(&file.0) else { return };
    let Factors { rows, cols, k, .. } = snapshot.factors;
    valid::factors(&snapshot.factors);
    if let Some((factors, _)) = &snapshot.best {
        valid::factors(factors);
        assert_eq!((factors.rows, factors.cols, factors.k), (rows, cols, k));
    }
    let mut again = Vec::new();
    snapshot.write(&mut again, &note).expect("memory is there");
    let file = Scratch::file(".ckpt", &again);
    let (same, same_note) = Snapshot::<T>::read(&file.0).expect("what was written can be read");
    assert!(same == snapshot && same_note == note, "written and read again, it is another");
    if rows.max(cols).max(k) <= 16 {
        let matrix = Matrix::Dense(crate::seeds::dense(rows, cols));
        let machine = Machine::new(1, 1);
        let from = Some(run::StartFrom::Snapshot(&snapshot));
        let _ = run::factorize(matrix, machine, &snapshot.settings, from, &mut |_: &Progress| true);
    }
}

/// Compressed text, read as it comes, and a compressed archive, expanded into memory.
pub fn gz(bytes: &[u8]) {
    matrix(".mtx.gz", bytes);
    matrix(".npz.gz", bytes);
}

/// What a party or a coordinator is sent: frames, each after two bytes of length; their words of control, and the messages
/// that their pieces make.
pub fn frame(bytes: &[u8]) {
    let mut assembly = Assembly::default();
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first_chunk() {
        let (content, after) = after.split_at(after.len().min(u16::from_le_bytes(*length).into()));
        rest = after;
        let Ok(frame) = Frame::decode(content.to_vec().into()) else { continue };
        assert_eq!(frame.encode(), content, "what is decoded is encoded to the same");
        match frame {
            Frame::Control(words) => {
                let _ = read_control::<FromParty>(&words);
                let _ = read_control::<ToParty>(&words);
            }
            Frame::Piece(piece) => {
                if let Ok(Some(whole)) = assembly.take(piece, 1 << 16)
                    && let Ok((cohort, message)) = session::parse(0, 1, &whole)
                {
                    assert_eq!(session::addressed(cohort, &message), whole, "and so are messages");
                }
            }
        }
    }
}
