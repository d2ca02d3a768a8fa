//! Small valid files of every format, most of them made by the writers.

use std::io::{Cursor, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use image::{ExtendedColorType, ImageEncoder};
use partwise::io::{self, Input};
use partwise::matrix::{Csr, Dense, Matrix, Order, Values};
use partwise::run::{self, Algorithm, Directive, Machine, Monitor, Progress, Settings, Snapshot};
use partwise::{Precision, Real};
use partwise_federation::frame::{Frame, FromParty, Payload, Piece, ToParty};
use partwise_secure::aggregation::{Commitment, Message, Opening, Revealed, SumId, Words};
use partwise_secure::session::addressed;

use crate::targets::MEMBERS;

/// Entries 1, 2, 3, ... by row.
pub fn dense<T: Real>(rows: usize, cols: usize) -> Dense<T> {
    let values = (1..=rows * cols).map(|value| T::from_f64(value as f64)).collect();
    Dense::new(rows, cols, Order::RowMajor, Values::Real(values))
}

fn input(matrix: Matrix<f64>, precision: Precision) -> Input<f64> {
    Input::unlabelled(matrix, String::new(), precision)
}

/// Dense, sparse, bytes and labelled.
fn matrices() -> Vec<Input<f64>> {
    let sparse = Csr::new(4, 3, vec![0, 2, 2, 3, 4], vec![0, 2, 0, 1], vec![1.0, 2.5, 4.0, 8.0]);
    let bytes = Dense::new(2, 3, Order::ColMajor, Values::Bytes(vec![0, 1, 2, 3, 4, 255].into()));
    let mut labelled = input(Matrix::Dense(dense(2, 2)), Precision::F64);
    labelled.row_labels = Some(vec!["a".into(), "b, \"c\"".into()]);
    labelled.col_labels = Some(vec!["x".into(), "y".into()]);
    vec![
        input(Matrix::Dense(dense(3, 4)), Precision::F64),
        input(Matrix::Sparse(sparse), Precision::F32),
        input(Matrix::Dense(bytes), Precision::F32),
        labelled,
    ]
}

fn written(name: &str) -> Vec<Vec<u8>> {
    let write = |input: &Input<f64>| {
        let mut file = Vec::new();
        io::write(&mut file, Path::new(name), input, io::WriteOptions::default()).expect("memory is there");
        file
    };
    matrices().iter().map(write).collect()
}

pub fn npy() -> Vec<Vec<u8>> {
    let mut files = written("m.npy");
    files.push(array("|b1", "(2, 2)", &[1, 0, 0, 1]));
    files.push(array(">i2", "(1, 2)", &[0, 1, 1, 0]));
    files.push(array("<u8", "(1, 1)", &[1, 0, 0, 0, 0, 0, 0, 0x80]));
    files
}

/// An array of any type.
fn array(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn integers(values: &[i32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    array("<i4", &format!("({},)", values.len()), &data)
}

/// A sparse matrix as SciPy's members, in each of the formats.
fn sparse_members() -> Vec<Vec<(&'static str, Vec<u8>)>> {
    let values: Vec<u8> = [1.0f32, 2.5, 4.0, 8.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let common = |format: &str, shape: [i32; 2]| {
        vec![
            ("format.npy", array("|S3", "()", format.as_bytes())),
            ("shape.npy", integers(&shape)),
            ("data.npy", array("<f4", "(4,)", &values)),
        ]
    };
    let compressed = [("indices.npy", integers(&[2, 0, 0, 1])), ("indptr.npy", integers(&[0, 2, 2, 3, 4]))];
    let coordinates = [("row.npy", integers(&[3, 0, 2, 0])), ("col.npy", integers(&[1, 2, 0, 2]))];
    vec![
        [common("csr", [4, 3]), compressed.to_vec()].concat(),
        [common("csc", [3, 4]), compressed.to_vec()].concat(),
        [common("coo", [4, 3]), coordinates.to_vec()].concat(),
        vec![("data.npy", npy().remove(0))],
    ]
}

fn archive(members: &[(&str, Vec<u8>)], method: zip::CompressionMethod) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, content) in members {
        zip.start_file(*name, options).expect("the name is new");
        zip.write_all(content).expect("memory is there");
    }
    zip.finish().expect("memory is there").into_inner()
}

pub fn npz() -> Vec<Vec<u8>> {
    let mut files = written("m.npz");
    files.extend(sparse_members().iter().map(|members| archive(members, zip::CompressionMethod::Stored)));
    files
}

pub fn npz_members() -> Vec<Vec<u8>> {
    let number = |name: &str| MEMBERS.iter().position(|member| *member == name).expect("a member's name");
    let framed = |(name, content): &(&str, Vec<u8>)| {
        let length = (content.len() as u16).to_le_bytes();
        [&[number(name) as u8], &length[..], content].concat()
    };
    sparse_members().iter().map(|members| members.iter().flat_map(framed).collect()).collect()
}

pub fn mtx() -> Vec<Vec<u8>> {
    let mut files = written("m.mtx");
    for text in [
        "%%MatrixMarket matrix coordinate pattern symmetric\n% note\n3 3 2\n2 1\n3 3\n",
        "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2e0\n3.5\n",
        "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 1e-300\n1 1 1e300\n2 3 0\n",
    ] {
        files.push(text.into());
    }
    files
}

pub fn csv() -> Vec<Vec<u8>> {
    let mut files = written("m.csv");
    files.push(b"\xef\xbb\xbf,\"a\",b\r\nx,1,2e-3\r\n\"y\"\"z\",3,4.5".to_vec());
    files
}

pub fn tsv() -> Vec<Vec<u8>> {
    let mut files = written("m.tsv");
    files.push(b"name\ta\tb\n\nx\t1\t+2\ny\t 3\t0.5 \n".to_vec());
    files
}

pub fn bin() -> Vec<Vec<u8>> {
    written("m.bin")
}

pub fn h5ad() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../crates/core/src/io/tests/data/dense.h5ad").to_vec(),
        include_bytes!("../../crates/core/src/io/tests/data/csr.h5ad").to_vec(),
        include_bytes!("../../crates/core/src/io/tests/data/csc.h5ad").to_vec(),
    ]
}

fn png(color: ExtendedColorType, pixels: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut file);
    encoder.write_image(pixels, 3, 2, color).expect("memory is there");
    file
}

fn jpeg(color: ExtendedColorType, pixels: &[u8]) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, 90);
    encoder.write_image(pixels, 3, 2, color).expect("memory is there");
    file.into_inner()
}

/// Of 3 x 2 pixels.
pub fn image() -> Vec<Vec<u8>> {
    let pixels: Vec<u8> = (0..48).map(|place| place * 5).collect();
    vec![
        png(ExtendedColorType::L8, &pixels[..6]),
        png(ExtendedColorType::La8, &pixels[..12]),
        png(ExtendedColorType::L16, &pixels[..12]),
        png(ExtendedColorType::Rgb8, &pixels[..18]),
        png(ExtendedColorType::Rgba16, &pixels),
        jpeg(ExtendedColorType::L8, &pixels[..6]),
        jpeg(ExtendedColorType::Rgb8, &pixels[..18]),
    ]
}

pub fn images() -> Vec<Vec<u8>> {
    let [grey, colour] = [0, 3].map(|number| image().swap_remove(number));
    vec![
        archive(&[("a.png", grey.clone()), ("b/c.png", grey)], zip::CompressionMethod::Stored),
        archive(&[("a.png", colour.clone()), ("note.txt", colour)], zip::CompressionMethod::Deflated),
        archive(&[("a.jpg", image().swap_remove(6))], zip::CompressionMethod::Deflated),
    ]
}

pub fn labels() -> Vec<Vec<u8>> {
    vec![b"a\nb\nc\n".to_vec(), "\u{feff}\u{e4}\r\n\r\nc".into(), b"one".to_vec()]
}

/// Keeps every snapshot as a file.
struct Keep(Vec<Vec<u8>>);

impl<T: Real> Monitor<T> for Keep {
    fn progress(&mut self, _progress: &Progress) -> Directive {
        Directive { save: true, ..Directive::default() }
    }

    fn snapshot(&mut self, snapshot: Snapshot<T>) -> partwise::Result<()> {
        let mut file = Vec::new();
        snapshot.write(&mut file, "a note").expect("memory is there");
        self.0.push(file);
        Ok(())
    }
}

pub fn checkpoint() -> Vec<Vec<u8>> {
    let mut kept = Keep(Vec::new());
    let machine = Machine::new(1, 1);
    for algorithm in [Algorithm::Dsanls, Algorithm::Hals] {
        let settings = Settings { iterations: 2, restarts: 2, algorithm, ..Settings::new(2) };
        let matrix = Matrix::Dense(dense::<f32>(4, 3));
        run::factorize(matrix, machine.clone(), &settings, None, &mut kept).expect("the settings are right");
        let matrix = Matrix::Dense(dense::<f64>(3, 2));
        run::factorize(matrix, machine.clone(), &settings, None, &mut kept).expect("the settings are right");
    }
    kept.0
}

fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).expect("memory is there");
    encoder.finish().expect("memory is there")
}

/// Compressed, not compressed, and in two parts.
pub fn gz() -> Vec<Vec<u8>> {
    let text = mtx().swap_remove(1);
    let (begin, end) = text.split_at(text.len() / 2);
    vec![
        gzip(&text, Compression::default()),
        gzip(&text, Compression::none()),
        [gzip(begin, Compression::none()), gzip(end, Compression::fast())].concat(),
        gzip(&npz().swap_remove(1), Compression::default()),
    ]
}

/// Messages of the sums.
fn messages() -> Vec<Message> {
    let place = SumId { epoch: 1, round: 2, attempt: 3 };
    let words = Words { narrow: vec![1, 2, 3], wide: vec![4, 5] };
    let shares = vec![(1, vec![1; 33]), (2, vec![2; 33])];
    let commitment = Commitment {
        party: 1,
        words: [3; 32],
        seed: [4; 32],
        shares: vec![(1, [1; 32]), (2, [2; 32])],
        pairs: vec![(2, [5; 32])],
        only_with: vec![1, 2],
        signature: [6; 64],
    };
    let revealed =
        Revealed { party: 2, shares: shares.clone(), seeds: vec![(3, [3; 32])], signature: [7; 64] };
    let opening = Opening {
        place,
        keys: [8; 32],
        commitments: vec![commitment.clone()],
        signatures: vec![(1, [1; 64])],
        revealed: vec![revealed.clone()],
        uploads: vec![(1, words.clone())],
        order: None,
    };
    let signed = Some(Box::new(commitment.clone()));
    vec![
        Message::NewEpoch { epoch: 9 },
        Message::Upload { place, words: words.clone(), commitment: signed, shares: shares.clone() },
        Message::Relay { place, party: 1, words: words.clone() },
        Message::Survivors { place, commitments: vec![commitment], shares },
        Message::Echo { place, signature: [8; 64] },
        Message::Unmask { place, revealed },
        Message::Opening(Box::new(opening)),
        Message::Reply { place, survivors: vec![2], words },
    ]
}

/// Frames, each after its length.
pub fn frame() -> Vec<Vec<u8>> {
    let enter = FromParty::Enter {
        federation: "demo".into(),
        name: "a".into(),
        version: "1".into(),
        check: false,
        run: None,
    };
    let with_length = |frame: Frame| {
        let bytes = frame.encode();
        [&(bytes.len() as u16).to_le_bytes()[..], &bytes].concat()
    };
    let mut seeds: Vec<Vec<u8>> = messages()
        .iter()
        .map(|message| {
            let bytes = addressed(0, message);
            let (first, second) = bytes.split_at(bytes.len() / 2);
            let piece = |bytes: &[u8], last| {
                with_length(Frame::Piece(Piece {
                    payload: Payload::Message,
                    last,
                    bytes: bytes.to_vec().into(),
                }))
            };
            [piece(first, false), piece(second, true)].concat()
        })
        .collect();
    seeds.push(with_length(Frame::control(&enter)));
    seeds.push(with_length(Frame::control(&FromParty::Error { round: 1, squared_error: 0.5 })));
    seeds.push(with_length(Frame::control(&ToParty::Waiting { parties: vec!["b".into()] })));
    seeds
}
