//! Starts from singular vectors: NNDSVD (Boutsidis and Gallopoulos 2008), on a randomized SVD (Halko, Martinsson and
//! Tropp 2011) over all ranks.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::links::Links;
use super::settings::Init;
use super::start::FactorRows;
use crate::Real;
use crate::comm::{Numbers, Reduction};
use crate::error::Result;
use crate::grid::Factor;
use crate::kernels::{eigen, gram, normals};
use crate::objective::Constants;
use crate::partition::Shard;
use crate::random::{Purpose, stream};
use crate::threads::Threads;

/// Additional columns of the sketch.
const OVERSAMPLING: usize = 10;

/// Passes back and forth; each squares the gap between wanted and unwanted singular values.
const POWER_ITERATIONS: usize = 8;

/// Rows that are multiplied at once.
const STRIP: usize = 1024;

/// What all steps share.
struct Job<'a, T> {
    links: Links<'a>,
    threads: &'a Threads,
    shard: &'a Shard<T>,
}

/// Singular values, largest first, with a rank's rows of the vectors, by row.
pub struct Svd<T> {
    /// σ.
    pub values: Vec<f64>,
    /// Left vectors, of the own rows of M.
    pub left: Vec<T>,
    /// Right vectors, of the own columns.
    pub right: Vec<T>,
}

impl<T: Real> Job<'_, T> {
    /// XᵀX over all ranks.
    fn gram(&self, x: &[T], width: usize) -> Result<Vec<f64>> {
        let mut gram = gram(self.threads, x, width);
        self.links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut gram))?;
        Ok(gram)
    }

    /// An orthonormal basis of X's columns, at most as many: X Q Λ^-½ from XᵀX = Q Λ Qᵀ, twice, since once leaves
    /// the rounding errors of the squared condition.
    fn orthonormal(&self, mut x: Vec<T>, mut width: usize) -> Result<(Vec<T>, usize)> {
        for _ in 0..2 {
            // Numbers that are not finite are detected with the first error.
            let (values, vectors) = eigen(&self.gram(&x, width)?, width);
            let largest = values.first().copied().unwrap_or(0.0);
            let kept = values.iter().take_while(|&&value| value > 1e-14 * largest).count();
            let turn = Mat::<T>::from_fn(width, kept, |row, col| {
                T::from_f64(vectors[(row, col)] / values[col].sqrt())
            });
            x = self.times(&x, width, turn.as_ref());
            width = kept;
        }
        Ok((x, width))
    }

    /// The own rows of M Y (for V, Mᵀ Y), where this rank has some rows of Y.
    fn product(&self, factor: Factor, own: &[T], width: usize) -> Result<Vec<T>> {
        self.links.product(self.threads, self.shard, factor, own, width)
    }

    /// X · turn, for X by row.
    fn times(&self, x: &[T], width: usize, turn: MatRef<'_, T>) -> Vec<T> {
        let some = |(): &mut (), x: &[T]| {
            let rows = x.len() / width;
            let mut result = vec![T::ZERO; rows * turn.ncols()];
            let target = MatMut::from_row_major_slice_mut(&mut result, rows, turn.ncols());
            let x = MatRef::from_row_major_slice(x, rows, width);
            matmul(target, Accum::Replace, x, turn, T::ONE, Par::Seq);
            result
        };
        self.threads.map(x.chunks((STRIP * width).max(1)).collect(), || (), some).concat()
    }

    fn svd(&self, k: usize, seed: u64) -> Result<Svd<T>> {
        let Shard { rows, cols, .. } = self.shard;
        let mut width = (k + OVERSAMPLING).min(*rows).min(*cols);
        let (mut words, mut sketch) = (Vec::new(), vec![T::ZERO; self.shard.own_cols.len() * width]);
        for (col, row) in self.shard.own_cols.clone().zip(sketch.chunks_exact_mut(width)) {
            normals(&mut stream(seed, Purpose::Svd, 0, col), 1.0, &mut words, row);
        }
        let mut left;
        (left, width) = self.orthonormal(self.product(Factor::U, &sketch, width)?, width)?;
        for _ in 0..POWER_ITERATIONS {
            let right;
            (right, width) = self.orthonormal(self.product(Factor::V, &left, width)?, width)?;
            (left, width) = self.orthonormal(self.product(Factor::U, &right, width)?, width)?;
        }
        // Mᵀ Y for the basis Y: its right singular vectors turn Y into the left ones of M.
        let image = self.product(Factor::V, &left, width)?;
        let (squares, vectors) = eigen(&self.gram(&image, width)?, width);
        let count = k.min(width);
        let values: Vec<f64> = squares[..count].iter().map(|square| square.max(0.0).sqrt()).collect();
        let turn = |scale: &dyn Fn(usize) -> f64| {
            Mat::<T>::from_fn(width, count, |row, col| T::from_f64(vectors[(row, col)] * scale(col)))
        };
        let inverse = |col: usize| if values[col] > 0.0 { 1.0 / values[col] } else { 0.0 };
        Ok(Svd {
            left: self.times(&left, width, turn(&|_| 1.0).as_ref()),
            right: self.times(&image, width, turn(&inverse).as_ref()),
            values,
        })
    }
}

/// The k largest singular values of M and their vectors.
pub fn svd<T: Real>(
    links: Links<'_>,
    threads: &Threads,
    shard: &Shard<T>,
    k: usize,
    seed: u64,
) -> Result<Svd<T>> {
    Job { links, threads, shard }.svd(k, seed)
}

/// Entries below this are zero, as in scikit-learn.
const SMALLEST: f64 = 1e-6;

/// U and V from the positive or the negative parts of the singular vectors, whichever carry more.
pub fn nndsvd<T: Real>(
    links: Links<'_>,
    threads: &Threads,
    shard: &Shard<T>,
    constants: Constants,
    init: Init,
    seed: u64,
    k: usize,
) -> Result<FactorRows<T>> {
    let Svd { values, left, right } = svd(links, threads, shard, k, seed)?;
    let count = values.len();
    // Squared norms of the positive and the negative parts of every vector: left ones, then right ones.
    let mut squares = vec![0.0; 4 * count];
    for (vectors, squares) in [&left, &right].into_iter().zip(squares.chunks_exact_mut(2 * count.max(1))) {
        for (place, value) in vectors.iter().enumerate() {
            let sign = usize::from(*value < T::ZERO);
            squares[2 * (place % count) + sign] += value.to_f64().powi(2);
        }
    }
    links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut squares))?;
    let norm = |right: usize, component: usize, negative: usize| {
        squares[2 * count * right + 2 * component + negative].sqrt()
    };
    let mut factors = [(left, &shard.own_rows), (right, &shard.own_cols)]
        .map(|(vectors, own)| (vectors, vec![T::ZERO; own.len() * k]));
    for component in 0..count {
        let sizes = [0, 1].map(|sign| norm(0, component, sign) * norm(1, component, sign));
        let negative = component > 0 && sizes[1] >= sizes[0];
        for (right, (vectors, factor)) in factors.iter_mut().enumerate() {
            // The first pair has one sign throughout, up to rounding.
            let (scale, whole) = if component == 0 {
                (values[0].sqrt(), true)
            } else {
                let size = sizes[usize::from(negative)];
                ((values[component] * size).sqrt() / norm(right, component, usize::from(negative)), false)
            };
            for (row, target) in vectors.chunks_exact(count).zip(factor.chunks_exact_mut(k)) {
                let value = row[component].to_f64();
                let part = if whole || (value < 0.0) == negative { value.abs() } else { 0.0 };
                let entry = part * scale;
                target[component] = if entry >= SMALLEST { T::from_f64(entry) } else { T::ZERO };
            }
        }
    }
    let [(_, mut u), (_, mut v)] = factors;
    for (factor, own, side) in [(&mut u, &shard.own_rows, 0), (&mut v, &shard.own_cols, 1)] {
        fill(factor, own.start, init, constants.mean, seed, side, k);
    }
    Ok(FactorRows::new(u, v))
}

/// Replaces zeros, which multiplicative updates could not leave, as the variant says.
fn fill<T: Real>(factor: &mut [T], first: usize, init: Init, mean: f64, seed: u64, side: usize, k: usize) {
    let mut words = Vec::new();
    let mut draws = vec![0f64; k];
    for (row, values) in factor.chunks_exact_mut(k).enumerate() {
        if init == Init::Nndsvdar {
            normals(&mut stream(seed, Purpose::Fill, side, first + row), 0.01, &mut words, &mut draws);
        }
        for (value, draw) in values.iter_mut().zip(&draws).filter(|(value, _)| **value == T::ZERO) {
            *value = match init {
                Init::Random | Init::Nndsvd => T::ZERO,
                Init::Nndsvda => T::from_f64(mean),
                Init::Nndsvdar => T::from_f64((mean * draw).abs()),
            };
        }
    }
}
