//! The Kullback-Leibler divergence Σ m ln(m / x) − m + x and the Itakura-Saito divergence Σ m / x − ln(m / x)
//! − 1. Both are lowered by multiplicative updates (Lee and Seung 2001; Févotte and Idier 2011), the former
//! also by coordinate descent.
//!
//! In the former, zero entries of M contribute Σ x, which follows from column sums of the fixed factor, so
//! they are never visited. The latter is undefined for them. In steps and losses, the model is clamped to at
//! least [`FLOOR`].

use std::ops::Range;
use std::sync::OnceLock;

use pulp::{Simd, WithSimd};

use super::newton::Descent;
use super::ratios::ratios;
use super::{Baseline, Constants, HalfStep, Objective, TileOf, TileStep};
use crate::Real;
use crate::kernels::{Columns, EntryPanel, EntryRow, Product, RowEntries, TILE, clamp};
use crate::matrix::{Matrix, Unlisted};
use crate::partition::Block;
use crate::solver::{Solver, Step};
use crate::threads::Threads;

/// The lower bound of the model if the mean of M is 1 or more; otherwise it is multiplied by the mean. The
/// value is that of scikit-learn.
const FLOOR: f64 = f32::EPSILON as f64;

/// A denominator of 0 in multiplicative updates is replaced by this, and results below the next constant by
/// 0, as in scikit-learn.
const DENOMINATOR: f64 = f32::EPSILON as f64;
const VANISHED: f64 = f64::EPSILON;

/// The loss of the best constant model is at least this share of the sum of M, or of the number of entries,
/// so that relative errors are finite for a constant M.
const LEAST_BASELINE: f64 = 1e-12;

/// The kind of divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    KullbackLeibler,
    ItakuraSaito,
}

/// A divergence.
#[derive(Clone, Copy, Debug)]
pub struct Divergence {
    kind: Kind,
    floor: f64,
    /// Whether unlisted entries are 0 rather than unknown.
    zeros: bool,
}

impl Divergence {
    /// The Kullback-Leibler divergence for a matrix with this mean.
    pub fn kullback_leibler(mean: f64, unlisted: Option<Unlisted>) -> Self {
        let zeros = unlisted != Some(Unlisted::Unknown);
        Divergence { kind: Kind::KullbackLeibler, floor: FLOOR * mean.min(1.0), zeros }
    }

    /// The Itakura-Saito divergence for a matrix with this mean.
    pub fn itakura_saito(mean: f64, unlisted: Option<Unlisted>) -> Self {
        Divergence { kind: Kind::ItakuraSaito, ..Divergence::kullback_leibler(mean, unlisted) }
    }

    /// Whether the loss contains Σ x over all columns.
    fn has_column_sums(&self) -> bool {
        self.kind == Kind::KullbackLeibler && self.zeros
    }

    /// The part of the loss that depends on the entry, given the model x.
    fn entry_loss(&self, m: f64, x: f64) -> f64 {
        let ratio = m / x.max(self.floor);
        match self.kind {
            Kind::KullbackLeibler if m > 0.0 => m * (ratio.ln() - 1.0),
            Kind::KullbackLeibler => 0.0,
            Kind::ItakuraSaito => ratio - ratio.ln() - 1.0,
        }
    }
}

fn dot<T: Real>(x: &[f64], y: &[T]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y.to_f64()).sum()
}

impl<T: Real> Objective<T> for Divergence {
    fn supports(&self, solver: &dyn Solver<T>) -> bool {
        match solver.step() {
            Step::Multiplicative => true,
            Step::Descent { .. } => self.kind == Kind::KullbackLeibler,
            Step::Exact | Step::Other => false,
        }
    }

    fn summarize(&self, threads: &Threads, fixed: &[T], k: usize) -> Vec<f64> {
        let sum = |(): &mut (), rows: &[T]| {
            let mut sums = vec![0.0; k];
            for row in rows.chunks_exact(k) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.to_f64());
            }
            sums
        };
        // Pieces depend on the size alone, so that the sum does not depend on the number of threads.
        let pieces = threads.map(fixed.chunks(4096 * k).collect(), || (), sum);
        let mut sums = vec![0.0; k];
        pieces.iter().for_each(|piece| sums.iter_mut().zip(piece).for_each(|(sum, term)| *sum += term));
        sums
    }

    fn squared_sizes(&self, summary: &[f64], _k: usize) -> Option<Vec<f64>> {
        Some(summary.iter().map(|sum| sum * sum).collect())
    }

    fn prepare<'a>(&self, step: &'a HalfStep<'a, T>) -> Box<dyn TileStep<T> + 'a> {
        let l1 = step.terms.l1;
        Box::new(Update {
            divergence: *self,
            step,
            sums: step.summary.iter().map(|sum| T::from_f64(sum + l1)).collect(),
            all: OnceLock::new(),
        })
    }

    fn entry_losses(&self, threads: &Threads, block: &Block<T>, x: &[T], fixed: &[T], k: usize) -> Vec<f64> {
        let product = Product::new(threads, block, Columns::All, fixed, k);
        let of_row = |row: usize| {
            let x: Vec<f64> = x[row * k..][..k].iter().map(|value| value.to_f64()).collect();
            let mut loss = 0.0;
            let entries = product.entries(row).expect("a block by row");
            let plain = entries.is_plain();
            entries.for_each_weighted(|m, weight, y| {
                // A zero contributes nothing, except for the model at its position.
                if plain && m == T::ZERO {
                    return;
                }
                let (weight, model) = (weight.to_f64(), dot(&x, y));
                if m > T::ZERO {
                    loss += weight * self.entry_loss(m.to_f64(), model);
                }
                if !plain && self.kind == Kind::KullbackLeibler {
                    loss += (weight - if self.zeros { 1.0 } else { 0.0 }) * model;
                }
            });
            loss
        };
        let tiles: Vec<usize> = (0..block.rows()).step_by(TILE).collect();
        let of_tile = |(): &mut (), first: usize| -> Vec<f64> {
            (first..block.rows().min(first + TILE)).map(of_row).collect()
        };
        threads.map(tiles, || (), of_tile).concat()
    }

    fn model_losses(&self, _threads: &Threads, x: &[T], summary: &[f64], k: usize) -> Vec<f64> {
        if !self.has_column_sums() {
            return Vec::new();
        }
        x.chunks_exact(k).map(|x| dot(summary, x)).collect()
    }

    fn relative_error(&self, constants: Constants, entries: f64, model: f64) -> f64 {
        Objective::<T>::relative(self, entries + model, constants.baseline)
    }

    fn relative(&self, loss: f64, baseline: f64) -> f64 {
        // Rounding may make a loss of 0 negative.
        if loss < 0.0 { 0.0 } else { loss / baseline }
    }

    fn loss(&self, error: f64, baseline: f64) -> f64 {
        error * baseline
    }

    fn whole_loss(&self, m: f64, x: f64) -> f64 {
        self.entry_loss(m, x) + if self.kind == Kind::KullbackLeibler { x } else { 0.0 }
    }

    fn merit(&self, error: f64, penalty: f64, baseline: f64) -> f64 {
        error + penalty / baseline
    }

    fn baseline(&self) -> Baseline {
        Baseline::BestConstant
    }

    fn least_baseline(&self, sum: f64, count: f64) -> f64 {
        LEAST_BASELINE
            * match self.kind {
                Kind::KullbackLeibler => sum,
                Kind::ItakuraSaito => count,
            }
    }

    fn summand(&self, threads: &Threads, block: &Block<T>, x: &[T], y: &[T], k: usize) -> Option<Matrix<T>> {
        Some(ratios(threads, block, (x, y), T::from_f64(self.floor), k))
    }

    fn needs_positive_entries(&self) -> bool {
        self.kind == Kind::ItakuraSaito
    }

    fn error_at_hand(&self, constants: Constants, cross: f64, _of_u: &[f64], _of_v: &[f64]) -> Option<f64> {
        cross.is_finite().then(|| Objective::<T>::relative(self, cross, constants.baseline))
    }
}

/// A half step.
struct Update<'a, T> {
    divergence: Divergence,
    step: &'a HalfStep<'a, T>,
    /// Σ v of each component, plus the l1 penalty.
    sums: Vec<T>,
    /// The panel of all columns, for dense rows.
    all: OnceLock<EntryPanel<T>>,
}

impl<T: Real> TileStep<T> for Update<'_, T> {
    /// The loss of the rows; NaN if the step does not compute it.
    fn move_tile(&self, rows: Range<usize>, tile: TileOf<'_, T>) -> f64 {
        if tile.product.is_ready() {
            return self.move_by_sums(rows, tile);
        }
        let TileOf { product, values, scratch, cancel, .. } = tile;
        let mut x = vec![T::ZERO; self.step.k];
        let mut own = OwnSums::default();
        let mut loss = 0.0;
        for (place, row) in rows.enumerate() {
            cancel.check();
            let column = |l: usize| l * TILE + place;
            x.iter_mut().enumerate().for_each(|(l, x)| *x = values.values[column(l)]);
            let entries = product.entries(row).expect("a block by row");
            let panel = if self.takes_all(&entries) {
                entries.values_into(&mut scratch.row.entries);
                self.all.get_or_init(|| EntryPanel::of_all(product.weights(), self.step.k))
            } else {
                entries.gather_positive(&mut scratch.panel, &mut scratch.row.entries);
                &scratch.panel
            };
            let sums = if entries.is_plain() {
                Sums { exact: self.step.summary, with_l1: &self.sums, of_weights: 0.0 }
            } else {
                self.sum_own(&entries, &mut own)
            };
            loss += self.move_row(panel, &mut scratch.row, sums, &mut x);
            x.iter().enumerate().for_each(|(l, &x)| values.values[column(l)] = x);
        }
        loss
    }
}

impl<T: Real> Update<'_, T> {
    /// The multiplicative step of the Kullback-Leibler divergence by Σ m v / x, which the product is.
    fn move_by_sums(&self, rows: Range<usize>, tile: TileOf<'_, T>) -> f64 {
        let TileOf { product, values, products, scratch, .. } = tile;
        let HalfStep { terms, k, .. } = *self.step;
        let (l2, upper) = (T::from_f64(terms.l2), T::from_f64(terms.upper));
        product.tile(rows.clone(), scratch, products);
        for l in 0..k {
            for (x, &up) in values.values[l * TILE..][..rows.len()].iter_mut().zip(products.column(l)) {
                *x = clamp(*x * quotient(up, self.sums[l], l2, *x), upper);
            }
        }
        f64::NAN
    }

    /// Whether a row is processed with all columns, because few of them lack an entry.
    fn takes_all(&self, entries: &RowEntries<'_, T>) -> bool {
        entries.is_dense() && 2 * entries.count_positive() >= entries.count()
    }

    /// The sums of a row with missing or weighted entries.
    fn sum_own<'s>(&self, entries: &RowEntries<'_, T>, own: &'s mut OwnSums<T>) -> Sums<'s, T> {
        let OwnSums { exact, with_l1 } = own;
        exact.clear();
        let once = if self.divergence.zeros {
            exact.extend_from_slice(self.step.summary);
            1.0
        } else {
            exact.resize(self.step.k, 0.0);
            0.0
        };
        let mut of_weights = 0.0;
        entries.for_each_weighted(|m, weight, y| {
            if m > T::ZERO && weight != T::ONE && weight > T::ZERO {
                of_weights += weight.to_f64() * m.to_f64() * weight.to_f64().ln();
            }
            let weight = weight.to_f64() - once;
            if weight != 0.0 {
                exact.iter_mut().zip(y).for_each(|(sum, y)| *sum += weight * y.to_f64());
            }
        });
        with_l1.clear();
        with_l1.extend(exact.iter().map(|sum| T::from_f64(sum.max(0.0) + self.step.terms.l1)));
        Sums { exact, with_l1, of_weights }
    }

    fn move_row(&self, panel: &EntryPanel<T>, row: &mut EntryRow<T>, sums: Sums<'_, T>, x: &mut [T]) -> f64 {
        let HalfStep { terms, wants_error, .. } = *self.step;
        let (l2, upper, floor) = (T::from_f64(terms.l2), T::from_f64(terms.upper), self.floor());
        let (arch, Sums { exact, with_l1: sums, of_weights }) = (pulp::Arch::new(), sums);
        let Step::Descent { sweeps } = self.step.solver.step() else {
            let squared = self.divergence.kind == Kind::ItakuraSaito;
            arch.dispatch(Multiply { panel, row, x, sums, l2, l1: T::from_f64(terms.l1), floor, squared });
            return f64::NAN;
        };
        arch.dispatch(Descent { panel, row: &mut *row, x: &mut *x, sums, l2, upper, floor, sweeps });
        if !wants_error {
            return 0.0;
        }
        arch.dispatch(Loss { row }) + dot(exact, x) - of_weights
    }

    fn floor(&self) -> T {
        T::from_f64(self.divergence.floor)
    }
}

/// Σ w v for each component v, in `f64`, and with the l1 penalty added.
#[derive(Clone, Copy)]
struct Sums<'a, T> {
    exact: &'a [f64],
    with_l1: &'a [T],
    /// Σ w m ln w, which is subtracted from the loss of the entries w m.
    of_weights: f64,
}

/// Buffers for the sums of a row.
#[derive(Default)]
struct OwnSums<T> {
    exact: Vec<f64>,
    with_l1: Vec<T>,
}

/// The loss of a row after a descent, without Σ x.
struct Loss<'a, T> {
    row: &'a EntryRow<T>,
}

impl<T: Real> WithSimd for Loss<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> f64 {
        self.row.kullback_leibler()
    }
}

/// What an entry is multiplied by, with an l2 penalty.
#[inline(always)]
fn quotient<T: Real>(up: T, down: T, l2: T, x: T) -> T {
    let down = l2.mul_add(x, down);
    up / if down == T::ZERO { T::from_f64(DENOMINATOR) } else { down }
}

/// The multiplicative update of one row.
struct Multiply<'a, T> {
    panel: &'a EntryPanel<T>,
    row: &'a mut EntryRow<T>,
    x: &'a mut [T],
    sums: &'a [T],
    l1: T,
    l2: T,
    floor: T,
    /// Whether to square the model in the numerator and to include it in the denominator, as for
    /// Itakura-Saito.
    squared: bool,
}

impl<T: Real> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Multiply { panel, row, x, sums, l1, l2, floor, squared } = self;
        row.predict(panel, x, floor);
        for (l, (x, &sum)) in x.iter_mut().zip(sums).enumerate() {
            let v = panel.component(l);
            let (up, down) = match squared {
                false => (row.weighted(v, |m, inverse| m * inverse), sum),
                true => (
                    row.weighted(v, |m, inverse| m * inverse * inverse),
                    row.weighted(v, |_, inverse| inverse) + l1,
                ),
            };
            let ratio = quotient(up, down, l2, *x);
            let new = *x * if squared { T::from_f64(ratio.to_f64().sqrt()) } else { ratio };
            *x = if new < T::from_f64(VANISHED) { T::ZERO } else { new };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, Dense, Order, Values};
    use crate::objective::Loss;
    use crate::run::{
        Algorithm, Factorization, Factors, Machine, Progress, Settings, Side, StartFrom, factorize,
    };
    use crate::solver::Penalty;

    const ROWS: usize = 37;
    const COLS: usize = 23;
    const K: usize = 3;

    fn counts() -> Vec<f64> {
        (0..ROWS * COLS).map(|place| ((place * 7919) % 13).saturating_sub(6) as f64).collect()
    }

    fn dense(m: &[f64]) -> Matrix<f64> {
        Matrix::Dense(Dense::new(ROWS, COLS, Order::RowMajor, Values::Real(m.to_vec().into())))
    }

    fn sparse_counts(m: &[f64]) -> Csr<f64> {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in m.chunks_exact(COLS) {
            for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                columns.push(col as u32);
                values.push(value);
            }
            offsets.push(values.len());
        }
        Csr::new(ROWS, COLS, offsets, columns, values)
    }

    fn start() -> Factors<f64> {
        let numbers = |length: usize, by: usize| {
            (0..length * K).map(|place| 0.2 + ((place * by) % 11) as f64 / 7.0).collect()
        };
        Factors { rows: ROWS, cols: COLS, k: K, u: numbers(ROWS, 3), v: numbers(COLS, 5) }
    }

    fn loss(m: &[f64], model: impl Fn(usize, usize) -> f64) -> f64 {
        let term = |place: usize| {
            let (m, x) = (m[place], model(place / COLS, place % COLS));
            if m > 0.0 { m * (m / x.max(FLOOR)).ln() - m + x } else { x }
        };
        (0..ROWS * COLS).map(term).sum()
    }

    /// The definition, one number at a time.
    fn naive(m: &[f64], iterations: usize) -> (Factors<f64>, f64) {
        let mut f = start();
        for _ in 0..iterations {
            let old = f.clone();
            for (i, l) in (0..ROWS).flat_map(|i| (0..K).map(move |l| (i, l))) {
                let up: f64 = (0..COLS).map(|j| m[i * COLS + j] / model(&old, i, j) * old.v[j * K + l]).sum();
                f.u[i * K + l] *= up / (0..COLS).map(|j| old.v[j * K + l]).sum::<f64>();
            }
            let old = f.clone();
            for (j, l) in (0..COLS).flat_map(|j| (0..K).map(move |l| (j, l))) {
                let up: f64 = (0..ROWS).map(|i| m[i * COLS + j] / model(&old, i, j) * old.u[i * K + l]).sum();
                f.v[j * K + l] *= up / (0..ROWS).map(|i| old.u[i * K + l]).sum::<f64>();
            }
        }
        let mean = m.iter().sum::<f64>() / m.len() as f64;
        let relative = loss(m, |i, j| model(&f, i, j)) / loss(m, |_, _| mean);
        (f, relative)
    }

    fn run(m: &[f64], sparse: bool, workers: usize, settings: &Settings) -> Factorization<f64> {
        let matrix = if sparse { Matrix::Sparse(sparse_counts(m)) } else { dense(m) };
        let (start, machine) = (start(), Machine::new(workers, 1));
        let from = Some(StartFrom::Factors(&start));
        factorize(matrix, machine, settings, from, &mut |_: &Progress| false).unwrap()
    }

    fn settings(algorithm: Algorithm, loss: Loss, iterations: usize) -> Settings {
        Settings { algorithm, loss, iterations, tolerance: 0.0, ..Settings::new(K) }
    }

    fn model(f: &Factors<f64>, i: usize, j: usize) -> f64 {
        dot(&f.u[i * K..][..K], &f.v[j * K..][..K])
    }

    fn assert_same_model(got: &Factors<f64>, want: &Factors<f64>, share: f64, what: &str) {
        for (i, j) in (0..ROWS).flat_map(|i| (0..COLS).map(move |j| (i, j))) {
            let (got, want) = (model(got, i, j), model(want, i, j));
            assert!((got - want).abs() <= share * want, "{what}: {got} {want}");
        }
    }

    #[test]
    fn multiplicative_updates_match_the_definition() {
        let m = counts();
        let (expected, error) = naive(&m, 6);
        for (sparse, workers) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
            let done = run(&m, sparse, workers, &settings(Algorithm::Mu, Loss::Kl, 6));
            assert!((done.report.relative_error - error).abs() < 1e-12, "{sparse} {workers}");
            assert_same_model(&done.factors, &expected, 1e-10, "kl");
        }
    }

    #[test]
    fn itakura_saito_updates_match_the_definition() {
        let m: Vec<f64> = counts().iter().map(|m| m + 0.3).collect();
        let mut f = start();
        for _ in 0..5 {
            let old = f.clone();
            for (i, l) in (0..ROWS).flat_map(|i| (0..K).map(move |l| (i, l))) {
                let sum = |f: &dyn Fn(usize) -> f64| (0..COLS).map(|j| f(j) * old.v[j * K + l]).sum::<f64>();
                let up = sum(&|j| m[i * COLS + j] / model(&old, i, j).powi(2));
                f.u[i * K + l] *= (up / sum(&|j| model(&old, i, j).recip())).sqrt();
            }
            let old = f.clone();
            for (j, l) in (0..COLS).flat_map(|j| (0..K).map(move |l| (j, l))) {
                let sum = |f: &dyn Fn(usize) -> f64| (0..ROWS).map(|i| f(i) * old.u[i * K + l]).sum::<f64>();
                let up = sum(&|i| m[i * COLS + j] / model(&old, i, j).powi(2));
                f.v[j * K + l] *= (up / sum(&|i| model(&old, i, j).recip())).sqrt();
            }
        }
        let loss = |x: &dyn Fn(usize, usize) -> f64| -> f64 {
            let ratio = |place: usize| m[place] / x(place / COLS, place % COLS);
            (0..ROWS * COLS).map(|place| ratio(place) - ratio(place).ln() - 1.0).sum()
        };
        let mean = m.iter().sum::<f64>() / m.len() as f64;
        for (algorithm, workers) in [(Algorithm::Mu, 1), (Algorithm::Mu, 3), (Algorithm::Auto, 1)] {
            let done = run(&m, false, workers, &settings(algorithm, Loss::Is, 5));
            assert_same_model(&done.factors, &f, 1e-10, "is");
            let want = loss(&|i, j| model(&f, i, j));
            assert!((done.report.loss.unwrap() - want).abs() < 1e-10 * want);
            assert!((done.report.relative_error - want / loss(&|_, _| mean)).abs() < 1e-12);
        }
    }

    #[test]
    fn coordinate_descent_never_raises_the_divergence() {
        let m = counts();
        let mu = run(&m, false, 1, &settings(Algorithm::Mu, Loss::Kl, 40)).report.relative_error;
        for (sparse, workers) in [(false, 1), (true, 1), (true, 3)] {
            let done = run(&m, sparse, workers, &settings(Algorithm::Hals, Loss::Kl, 40));
            for pair in done.report.trace.windows(2) {
                assert!(pair[1].loss <= pair[0].loss * (1.0 + 1e-12), "{pair:?}");
            }
            // The error that the last step reported agrees with the definition.
            let want = loss(&m, |i, j| model(&done.factors, i, j));
            assert!((done.report.loss.unwrap() - want).abs() < 1e-9 * want, "{:?} {want}", done.report.loss);
            assert!(done.report.relative_error < 1.02 * mu, "{} {mu}", done.report.relative_error);
        }
    }

    /// At a minimum, Σ_j (1 − m / x) v_jl is 0, or at least 0 where u_il is 0; so row sums of the model equal
    /// those of M.
    #[test]
    fn auto_ends_where_the_gradient_is_zero() {
        let m = counts();
        for sparse in [false, true] {
            let done = run(&m, sparse, 1, &settings(Algorithm::Auto, Loss::Kl, 1500));
            let f = &done.factors;
            for i in 0..ROWS {
                let sum: f64 = m[i * COLS..][..COLS].iter().sum();
                let of_model: f64 = (0..COLS).map(|j| model(f, i, j)).sum();
                assert!((sum - of_model).abs() <= 1e-4 * sum, "{sparse} row {i}: {sum} {of_model}");
                for l in 0..K {
                    let ratio = |j: usize| m[i * COLS + j] / model(f, i, j).max(FLOOR);
                    let slope: f64 = (0..COLS).map(|j| (1.0 - ratio(j)) * f.v[j * K + l]).sum();
                    let scale: f64 = (0..COLS).map(|j| f.v[j * K + l]).sum();
                    let u = f.u[i * K + l];
                    assert!(
                        slope >= -1e-3 * scale && u * slope <= 1e-3 * scale * sum,
                        "{i} {l}: {slope} {u}"
                    );
                }
            }
        }
    }

    #[test]
    fn penalties_hold_at_the_end() {
        let m = counts();
        let settings = Settings { l1_u: 0.01, l2_v: 0.003, ..settings(Algorithm::Hals, Loss::Kl, 400) };
        let f = run(&m, true, 1, &settings).factors;
        for i in 0..ROWS {
            for l in 0..K {
                let ratio = |j: usize| m[i * COLS + j] / model(&f, i, j).max(FLOOR);
                let slope: f64 = (0..COLS).map(|j| (1.0 - ratio(j)) * f.v[j * K + l]).sum();
                let slope = slope + 0.01 * COLS as f64;
                assert!(slope > -1e-2 && (f.u[i * K + l] == 0.0 || slope.abs() < 2e-2), "{i} {l}: {slope}");
            }
        }
    }

    #[test]
    fn extreme_counts_stay_finite() {
        let mut m = counts();
        m[..COLS].fill(0.0);
        m[5 * COLS + 2] = 1e9;
        let values = m.iter().map(|&m| m as f32).collect();
        let matrix = Matrix::Dense(Dense::new(ROWS, COLS, Order::RowMajor, Values::Real(values)));
        for algorithm in [Algorithm::Auto, Algorithm::Mu] {
            let settings = settings(algorithm, Loss::Kl, 60);
            let monitor = &mut |_: &Progress| false;
            let done = factorize(matrix.clone(), Machine::new(1, 1), &settings, None, monitor).unwrap();
            assert!(done.report.relative_error < 1e-4, "{algorithm}: {}", done.report.relative_error);
            assert!(done.factors.u[..K].iter().all(|&u| u == 0.0), "a row without counts");
        }
        let constant =
            Matrix::Dense(Dense::new(3, 4, Order::RowMajor, Values::Real(vec![2.0f64; 12].into())));
        let settings = Settings { loss: Loss::Kl, ..Settings::new(1) };
        let done =
            factorize(constant, Machine::new(1, 1), &settings, None, &mut |_: &Progress| false).unwrap();
        assert!(done.report.loss.unwrap() < 1e-9);
    }

    #[test]
    fn unsupported_solvers_are_refused_by_name() {
        let refused = |algorithm: Algorithm, loss: Loss| {
            let settings = Settings { algorithm, loss, ..Settings::new(K) };
            let monitor = &mut |_: &Progress| false;
            let counts = dense(&counts());
            factorize(counts, Machine::new(1, 1), &settings, None, monitor).unwrap_err().to_string()
        };
        for (algorithm, loss) in [
            (Algorithm::Bpp, Loss::Kl),
            (Algorithm::Dsanls, Loss::Kl),
            (Algorithm::Hals, Loss::Is),
            (Algorithm::Auto, Loss::Is),
        ] {
            let message = refused(algorithm, loss);
            assert!(message.starts_with("loss"), "{message}");
        }
        assert!(refused(Algorithm::Mu, Loss::Is).contains("row 1 "), "the first count is 0");
    }

    /// Fitting the rows that were factorized reproduces their factor.
    #[test]
    fn new_rows_are_fitted_with_the_same_loss() {
        let m = counts();
        let threads = &Threads::new(1).unwrap();
        let f = run(&m, true, 1, &settings(Algorithm::Auto, Loss::Kl, 1500)).factors;
        for (sparse, side) in [(false, Side::Rows), (true, Side::Rows), (true, Side::Columns)] {
            let matrix = if sparse { Matrix::Sparse(sparse_counts(&m)) } else { dense(&m) };
            let w = f.transform_by(Loss::Kl, matrix, side, Penalty::NONE, None, threads).unwrap();
            let (w, want, other) = match side {
                Side::Rows => (w, &f.u, &f.v),
                Side::Columns => (w, &f.v, &f.u),
            };
            for (w, want) in w.chunks(K).zip(want.chunks(K)) {
                let total = |x: &[f64]| other.chunks(K).map(|y| dot(x, y)).sum::<f64>();
                assert!((total(w) - total(want)).abs() <= 1e-3 * total(want), "{sparse} {side:?}");
            }
        }
    }
}
