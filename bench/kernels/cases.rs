//! What is measured.

use std::hint::black_box;
use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use partwise::kernels::{Columns, TILE, Tile, gram, multiply, normals, sweep};
use partwise::matrix::{Csr, Values};
use partwise::partition::{Block, DenseBlock};
use partwise::random::{Purpose, stream, uniform};
use partwise::threads::Threads;

use super::Case;

/// Makes the cases; small ones if they are only to be tried.
type Build = fn(small: bool) -> Vec<Case>;

/// All of them.
pub const ALL: &[Build] = &[sweeps, dense_products, sampled_products, sparse_products, grams, gaussians];

fn numbers(count: usize) -> Vec<f32> {
    let mut rng = stream(1, Purpose::StartU, 0, 0);
    (0..count).map(|_| uniform(&mut rng) as f32).collect()
}

fn one_thread() -> Threads {
    Threads::new(1).unwrap_or_else(|error| panic!("{error}"))
}

/// (rows x depth)(depth x k) by faer in its best shape: 64 rows by column at a time, the thin matrix by row.
fn faer_product(rows: usize, depth: usize, k: usize) -> Box<dyn FnMut()> {
    let (a, b) = (numbers(rows.next_multiple_of(TILE) * depth), numbers(depth * k));
    let mut c = vec![0f32; TILE * k];
    Box::new(move || {
        for tile in a.chunks_exact(TILE * depth) {
            for (first, part) in tile.chunks(TILE * 512).enumerate() {
                let width = part.len() / TILE;
                let accumulate = if first == 0 { Accum::Replace } else { Accum::Add };
                let weights = MatRef::from_row_major_slice(&b[first * 512 * k..][..width * k], width, k);
                let part = MatRef::from_column_major_slice(part, TILE, width);
                matmul(
                    MatMut::from_column_major_slice_mut(&mut c, TILE, k),
                    accumulate,
                    part,
                    weights,
                    1.0,
                    Par::Seq,
                );
            }
            black_box(&mut c);
        }
    })
}

/// Reads and writes as many bytes as a copy of them does.
fn copy(bytes: usize) -> Box<dyn FnMut()> {
    let from = vec![1u8; bytes];
    let mut to = vec![0u8; bytes];
    Box::new(move || black_box(&mut to).copy_from_slice(black_box(&from)))
}

const FAER: &str = "faer's product of the same flops";

fn sweeps(small: bool) -> Vec<Case> {
    let rows = if small { 640 } else { 70_000 };
    let case = |k: usize| {
        let tiles = rows / TILE;
        let products = numbers(tiles * TILE * k);
        let mut factor = numbers(tiles * TILE * k);
        let mut system = gram(&one_thread(), &factor[..1000 * k.min(5)], k);
        system.iter_mut().step_by(k + 1).for_each(|diagonal| *diagonal *= 2.0);
        let system: Vec<f32> = system.iter().map(|&value| value as f32).collect();
        let (mut tile, mut product) = (Tile::new(k), Tile::new(k));
        Case {
            name: format!("sweep m={rows} k={k}"),
            floor_name: FAER,
            work: 1.0,
            kernel: Box::new(move || {
                for (rows, products) in factor.chunks_exact_mut(TILE * k).zip(products.chunks_exact(TILE * k))
                {
                    product.load(products, k);
                    tile.load(rows, k);
                    sweep(k, &system, 0.0, f32::INFINITY, &product.values, &mut tile.values);
                    tile.store(rows, k);
                }
            }),
            floor: faer_product(rows, k, k),
        }
    };
    [20, 50, 100].map(case).into()
}

fn dense_products(small: bool) -> Vec<Case> {
    let (rows, cols) = if small { (640, 100) } else { (14_000, 784) };
    let mut cases = Vec::new();
    for k in [20, 100] {
        for (bytes, by_row) in [(false, true), (false, false), (true, true), (true, false)] {
            let values = if bytes {
                Values::Bytes(numbers(rows * cols).iter().map(|value| (value * 255.0) as u8).collect())
            } else {
                Values::Real(numbers(rows * cols).into())
            };
            let (row_stride, col_stride) = if by_row { (cols, 1) } else { (1, rows) };
            let block =
                Block::Dense(DenseBlock { rows, cols, row_stride, col_stride, values: Arc::new(values) });
            let weights = numbers(cols * k);
            let threads = one_thread();
            let kind = if bytes { "bytes" } else { "f32" };
            let order = if by_row { "row" } else { "column" };
            cases.push(Case {
                name: format!("product {kind} by {order} {rows}x{cols} k={k}"),
                floor_name: FAER,
                work: 1.0,
                kernel: Box::new(move || {
                    black_box(multiply(&threads, &block, Columns::All, &weights, k));
                }),
                floor: faer_product(rows, cols, k),
            });
        }
    }
    cases
}

fn sampled_products(small: bool) -> Vec<Case> {
    let (rows, cols) = if small { (640, 100) } else { (14_000, 784) };
    let case = |k: usize| {
        let sample: Vec<usize> = (0..cols).step_by(10).collect();
        let values = Arc::new(Values::Real(numbers(rows * cols).into()));
        let block = Block::Dense(DenseBlock { rows, cols, row_stride: 1, col_stride: rows, values });
        let weights = numbers(sample.len() * k);
        let threads = one_thread();
        Case {
            name: format!("sampled product f32 {rows}x({} of {cols}) k={k}", sample.len()),
            floor_name: FAER,
            work: 1.0,
            floor: faer_product(rows, sample.len(), k),
            kernel: Box::new(move || {
                black_box(multiply(&threads, &block, Columns::Some(&sample), &weights, k));
            }),
        }
    };
    [20, 100].map(case).into()
}

/// A random matrix with `per_row` entries a row.
fn sparse(rows: usize, cols: usize, per_row: usize) -> Csr<f32> {
    let mut rng = stream(2, Purpose::StartU, 0, 0);
    let mut indices = Vec::new();
    for _ in 0..rows {
        // Squared: some columns are far more frequent than others, as words are.
        let draw = |_| (uniform(&mut rng).powi(3) * cols as f64) as u32;
        let mut row: Vec<u32> = (0..per_row).map(draw).map(|col| col.min(cols as u32 - 1)).collect();
        row.sort_unstable();
        row.dedup();
        while row.len() < per_row {
            let missing = (0..cols as u32).find(|col| row.binary_search(col).is_err()).unwrap_or_default();
            row.push(missing);
            row.sort_unstable();
        }
        indices.extend(row);
    }
    let offsets = (0..=rows).map(|row| row * per_row).collect();
    Csr::new(rows, cols, offsets, indices, numbers(rows * per_row))
}

fn sparse_products(small: bool) -> Vec<Case> {
    let (rows, cols, per_row) = if small { (640, 100, 5) } else { (20_000, 40_000, 70) };
    let csr = Arc::new(sparse(rows, cols, per_row));
    let mut cases = Vec::new();
    for k in [20, 100] {
        for by_row in [true, false] {
            let block = if by_row { Block::ByRow(csr.clone()) } else { Block::ByColumn(csr.clone()) };
            let weights = numbers(block.cols() * k);
            let threads = one_thread();
            let order = if by_row { "" } else { "transposed " };
            cases.push(Case {
                name: format!("sparse {order}{rows}x{cols}, {} stored, k={k}", rows * per_row),
                floor_name: "copy of the k numbers read for each entry",
                work: 0.5,
                kernel: Box::new(move || {
                    black_box(multiply(&threads, &block, Columns::All, &weights, k));
                }),
                floor: copy(rows * per_row * (k + 2) * 4),
            });
        }
    }
    cases
}

fn grams(small: bool) -> Vec<Case> {
    let rows = if small { 640 } else { 70_000 };
    let case = |k: usize| {
        let factor = numbers(rows * k);
        let threads = one_thread();
        Case {
            name: format!("gram m={rows} k={k}"),
            floor_name: "half of faer's product: it is symmetric",
            work: 0.5,
            kernel: Box::new(move || {
                black_box(gram(&threads, &factor, k));
            }),
            floor: faer_product(rows, k, k),
        }
    };
    [20, 100].map(case).into()
}

/// S (n x d) for a rank that has 500 rows of a dense M: the paper's product M S is what it feeds.
fn gaussians(small: bool) -> Vec<Case> {
    let (n, d) = if small { (100, 10) } else { (8000, 80) };
    let mut target = vec![0f32; d];
    let mut words = Vec::new();
    vec![Case {
        name: format!("gaussian sketch {n}x{d}"),
        floor_name: "faer's product of 500 rows of M with it",
        work: 1.0,
        kernel: Box::new(move || {
            for row in 0..n {
                let mut rng = stream(3, Purpose::SketchU, 0, row);
                normals(&mut rng, 1.0, &mut words, &mut target);
                black_box(&mut target);
            }
        }),
        floor: faer_product(500, n, d),
    }]
}
