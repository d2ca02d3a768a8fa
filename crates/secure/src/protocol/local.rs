//! The local computations of a party, with the steps of the core library.

use partwise::Real;
use partwise::error::Result as CoreResult;
use partwise::grid::Grid;
use partwise::kernels::{Columns, Product, gram, multiply};
use partwise::matrix::Matrix;
use partwise::objective::Loss;
use partwise::partition::{Access, Block, RowSums, Shard, shards, shards_until};
use partwise::random::Purpose;
use partwise::run::{Damping, Factors, Phases, SketchedFactor, SketchedSide, draw, residual_on};
use partwise::sketch::{Distribution, Operator};
use partwise::solver::{CoordinateDescent, MovingRows, Penalty, Problem, Solver, update};
use partwise::threads::Threads;

use super::Settings;
use super::gate::{Dominant, RecordShare};
use super::sketches::{dense_sketch, features_sketch, party_seed, sketch_rows};
use crate::error::Result;
use crate::plausible::cholesky;

/// One sweep of exact coordinate descent.
pub const HALS: CoordinateDescent = CoordinateDescent::HALS;

/// The number of sweeps that fit V_r to the final U.
const LAST_SWEEPS: usize = 20;

/// A party's M_r, its copy of U, its V_r, and intermediate results.
pub struct Local<T> {
    shard: Shard<T>,
    threads: Threads,
    k: usize,
    /// Sums and sums of squares of each record.
    sizes: RowSums,
    /// The number of records that have each feature.
    feature_counts: Vec<usize>,
    /// Features that no party has, for which U is zero.
    left_out: Vec<bool>,
    /// The shared factor, or this party's copy of it, by row.
    pub u: Vec<T>,
    /// The party's own factor, by row.
    pub v: Vec<T>,
    /// Multiplications since the last query.
    work: f64,
}

impl<T: Real> Local<T> {
    /// `matrix` has a row for each feature and a column for each record.
    pub fn new(matrix: Matrix<T>, settings: &Settings, threads: Threads) -> Result<Self> {
        let protocol = settings.protocol;
        let sampled = protocol.sketches_features() || protocol.sketches_records();
        let access = if sampled { Access::Sampled } else { Access::Whole };
        let mut feature_counts = vec![0; matrix.rows()];
        matrix.for_each_stored(|feature, _, value| feature_counts[feature] += usize::from(value != 0.0));
        let shard = shards_until(matrix, Grid::ONE, access, threads.cancel()).remove(0);
        let sizes = shard.by_cols.row_sums(&threads);
        Ok(Local {
            threads,
            k: settings.rank,
            sizes,
            left_out: vec![false; feature_counts.len()],
            feature_counts,
            u: Vec::new(),
            v: Vec::new(),
            work: 0.0,
            shard,
        })
    }

    /// m.
    pub fn features(&self) -> usize {
        self.shard.rows
    }

    /// n_r.
    pub fn records(&self) -> usize {
        self.shard.cols
    }

    /// k.
    pub fn rank(&self) -> usize {
        self.k
    }

    /// Σ M_r.
    pub fn sum(&self) -> f64 {
        self.sizes.sums.iter().sum()
    }

    /// ‖M_r‖².
    pub fn norm(&self) -> f64 {
        self.sizes.squares.iter().sum()
    }

    /// The number of records that have each feature.
    pub fn feature_counts(&self) -> &[usize] {
        &self.feature_counts
    }

    /// Removes features from all records; for those that are left out at all parties, U is set to zero as
    /// well.
    pub fn zero_features(&mut self, zeroed: &[bool], left_out: &[bool]) {
        left_out.clone_into(&mut self.left_out);
        if zeroed.contains(&true) {
            self.shard.zero_rows(zeroed);
            self.sizes = self.shard.by_cols.row_sums(&self.threads);
        }
    }

    /// Multiplications since the last call.
    pub fn take_work(&mut self) -> f64 {
        std::mem::take(&mut self.work)
    }

    /// U from the public seed and V_r from the private one, such that U Vᵀ has the mean of M.
    pub fn start(&mut self, seed: u64, private_seed: u64, mean: f64) {
        self.u = start_u(seed, self.shard.rows, self.k, mean);
        let rows = self.u.chunks_exact_mut(self.k).zip(&self.left_out);
        rows.filter(|(_, left_out)| **left_out).for_each(|(row, _)| row.fill(T::ZERO));
        self.v = draw(private_seed, Purpose::StartV, self.shard.cols, self.k, start_scale(self.k, mean));
    }

    fn count_product(&mut self, rows: usize) {
        self.work += (self.shard.stored * self.k + 2 * rows * self.k * self.k) as f64;
    }

    /// V_rᵀ V_r.
    pub fn gram_v(&self) -> Vec<f64> {
        gram(&self.threads, &self.v, self.k)
    }

    /// The mean diagonal of V_rᵀV_r.
    pub fn diagonal(&self) -> f64 {
        self.v.iter().map(|value| value.to_f64().powi(2)).sum::<f64>() / self.k as f64
    }

    /// The squared norms of U's columns.
    pub fn squares_u(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.k];
        for row in self.u.chunks_exact(self.k) {
            squares.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.to_f64().powi(2));
        }
        squares
    }

    /// Brings the norms of U's columns close to their initial values, and V's the other way, by powers of two: U Vᵀ
    /// does not change. Otherwise scales drift apart until the largest entry of the Gram matrix damps all columns
    /// but its own.
    pub fn rescale(&mut self, begun: &[f64]) {
        let exponent = |(now, begun): (&f64, &f64)| ((begun / now).log2() / 2.0).round();
        let exponents = self.squares_u().iter().zip(begun).map(exponent).collect::<Vec<_>>();
        let scale = |factor: &mut [T], sign: f64| {
            // A column of zeros has no scale.
            let power = |exponent: &f64| if exponent.is_finite() { (sign * exponent).exp2() } else { 1.0 };
            let scales: Vec<T> = exponents.iter().map(power).map(T::from_f64).collect();
            let rows = factor.chunks_exact_mut(scales.len());
            rows.flat_map(|row| row.iter_mut().zip(&scales)).for_each(|(value, scale)| *value *= *scale);
        };
        if exponents.iter().any(|&exponent| exponent != 0.0) {
            scale(&mut self.u, 1.0);
            scale(&mut self.v, -1.0);
        }
    }

    /// UᵀU.
    pub fn gram_u(&self) -> Vec<f64> {
        gram(&self.threads, &self.u, self.k)
    }

    /// The record with the largest share, in squares, of any combination of the columns of M_r V_r: its
    /// leverage w_i (WᵀW)⁻¹ w_iᵀ, where w_i is its row of V_r times its norm.
    pub fn largest_share(&self) -> RecordShare {
        let k = self.k;
        let rows = || {
            let rows = self.v.chunks_exact(k).zip(&self.sizes.squares);
            rows.map(|(row, square)| row.iter().map(|v| v.to_f64() * square.sqrt()).collect::<Vec<f64>>())
        };
        let mut gram = vec![0.0; k * k];
        for row in rows() {
            for (i, a) in row.iter().enumerate() {
                gram[i * k..][..=i].iter_mut().zip(&row).for_each(|(sum, b)| *sum += a * b);
            }
        }
        let trace: f64 = (0..k).map(|j| gram[j * k + j]).sum();
        // Components that nearly are combinations of others add nothing but rounding errors.
        let Some(lower) = cholesky(&gram, k, 1e-9 * trace) else { return RecordShare::default() };
        let leverage = |mut row: Vec<f64>| {
            for i in 0..k {
                let known: f64 = (0..i).map(|t| lower[i * k + t] * row[t]).sum();
                row[i] = (row[i] - known) / lower[i * k + i];
            }
            row.iter().map(|value| value * value).sum::<f64>()
        };
        let shares = rows().enumerate().map(|(record, row)| RecordShare { record, share: leverage(row) });
        shares.max_by(|a, b| a.share.total_cmp(&b.share)).unwrap_or_default()
    }

    /// The record that supplies most of each column of M_r V_r; it is compared with the column of U if its
    /// share is at least `compared`.
    pub fn dominant_records(&self, compared: f64) -> Vec<Dominant> {
        let k = self.k;
        let (mut dominant, mut sums) = (vec![Dominant::default(); k], vec![0.0; k]);
        for (record, (row, size)) in self.v.chunks_exact(k).zip(&self.sizes.sums).enumerate() {
            for ((Dominant { of, .. }, sum), value) in dominant.iter_mut().zip(&mut sums).zip(row) {
                let supplied = value.to_f64() * size;
                *sum += supplied;
                if supplied > of.share {
                    *of = RecordShare { record, share: supplied };
                }
            }
        }
        let totals = dominant.iter_mut().zip(&sums);
        totals.for_each(|(dominant, sum)| dominant.of.share /= sum.max(f64::MIN_POSITIVE));
        let chosen: Vec<usize> = (0..k).filter(|&j| dominant[j].of.share >= compared).collect();
        let records: Vec<usize> = chosen.iter().map(|&j| dominant[j].of.record).collect();
        let mut products = vec![0.0; chosen.len()];
        self.shard.by_cols.visit_rows(&records, |position, feature, value| {
            products[position] += value * self.u[feature * k + chosen[position]].to_f64();
        });
        let squares = self.squares_u();
        for (&component, product) in chosen.iter().zip(products) {
            let Dominant { of, cosine } = &mut dominant[component];
            let lengths = squares[component] * self.sizes.squares[of.record];
            *cosine = if lengths > 0.0 { product / lengths.sqrt() } else { 0.0 };
        }
        dominant
    }

    /// M_r V_r.
    pub fn product_v(&mut self) -> Vec<T> {
        self.count_product(self.shard.cols);
        multiply(&self.threads, &self.shard.by_rows, Columns::All, &self.v, self.k)
    }

    /// One step on U, given P = M V and VᵀV of any set of parties.
    pub fn step_u(&mut self, solver: &dyn Solver<T>, product: Vec<T>, gram: &[f64]) {
        self.work += (self.shard.rows * self.k * self.k) as f64;
        let problem = Problem { solver, gram, terms: Penalty::NONE };
        update(
            &self.threads,
            &problem,
            &Product::ready(product, self.k),
            MovingRows::plain(&mut self.u),
            self.k,
        );
    }

    /// One step on U with the party's own records.
    pub fn own_step_u(&mut self, solver: &dyn Solver<T>) {
        let (product, gram) = (self.product_v(), self.gram_v());
        self.step_u(solver, product, &gram);
    }

    /// One sweep over V_r with U fixed; returns ⟨M_rᵀ U, V_r⟩ of the new V_r.
    pub fn sweep_v(&mut self) -> f64 {
        self.count_product(self.shard.cols);
        let gram = self.gram_u();
        let problem = Problem { solver: &HALS, gram: &gram, terms: Penalty::NONE };
        let product = Product::new(&self.threads, &self.shard.by_cols, Columns::All, &self.u, self.k);
        update(&self.threads, &problem, &product, MovingRows::plain(&mut self.v), self.k).cross
    }

    /// Fits V_r to a fixed U: several sweeps with one product.
    pub fn fit_v(&mut self) {
        let gram = self.gram_u();
        let product = multiply(&self.threads, &self.shard.by_cols, Columns::All, &self.u, self.k);
        let product = Product::ready(product, self.k);
        let solver = CoordinateDescent { mu: 0.0, sweeps: LAST_SWEEPS };
        let problem = Problem { solver: &solver, gram: &gram, terms: Penalty::NONE };
        update(&self.threads, &problem, &product, MovingRows::plain(&mut self.v), self.k);
    }

    /// ‖M_r‖² − 2 cross + ⟨UᵀU, V_rᵀV_r⟩, where `cross` = ⟨M_r V_r, U⟩ is available.
    pub fn error_from(&self, cross: f64) -> f64 {
        let model: f64 = self.gram_u().iter().zip(self.gram_v()).map(|(u, v)| u * v).sum();
        self.norm() - 2.0 * cross + model
    }

    /// ‖M_r − U V_rᵀ‖², computed from scratch. It is for reports, and does not count as work.
    pub fn squared_error(&self) -> CoreResult<f64> {
        let (rows, cols, k) = (self.shard.rows, self.shard.cols, self.k);
        let factors = Factors { rows, cols, k, u: self.u.clone(), v: self.v.clone() };
        let residual = residual_on(&self.shard, &factors, Loss::Frobenius, &self.threads)?;
        Ok((residual.relative_error * residual.norm).powi(2))
    }

    /// The step on U with the records sketched (Alg. `Syn_SSD`, lines 5 and 6).
    pub fn sketched_u(&mut self, solver: &dyn Solver<T>, distribution: &Distribution, iteration: usize) {
        let (threads, k) = (&self.threads, self.k);
        self.work += sketch_work(self.shard.stored, self.shard.rows, k, distribution);
        let operator = distribution.draw::<T>(iteration);
        let b = operator.project(threads, 0..distribution.length, &self.v, k);
        let (columns, weights) = operator.lift(threads, &b, k);
        let problem = Problem { solver, gram: &gram(threads, &b, k), terms: Penalty::NONE };
        let product = Product::new(threads, &self.shard.by_rows, columns, &weights, k);
        update(threads, &problem, &product, MovingRows::plain(&mut self.u), k);
    }

    /// Sᵀ U of this party's U.
    pub fn project_u(&self, operator: &dyn Operator<T>) -> Vec<T> {
        operator.project(&self.threads, 0..self.shard.rows, &self.u, self.k)
    }

    /// A step on V_r with the features sketched, given B (line 9).
    pub fn sketched_v(
        &mut self,
        side: &mut SketchedSide,
        iteration: usize,
        operator: &dyn Operator<T>,
        b: &[T],
    ) {
        let (threads, k) = (&self.threads, self.k);
        self.work += sketch_work(self.shard.stored, self.shard.cols, k, &side.distribution);
        let (columns, weights) = operator.lift(threads, b, k);
        let fixed = SketchedFactor { b, columns, weights: &weights, k };
        let phases = &mut Phases::default();
        side.solve(threads, iteration, &self.shard.by_cols, &mut self.v, fixed, phases);
    }

    /// (M_r S, Sᵀ V_r) of a sketch of the records.
    pub fn sketched_records(&mut self, operator: &dyn Operator<T>, size: usize) -> (Vec<T>, Vec<T>) {
        let whole = sketch_rows(&self.threads, operator, size);
        self.work += (self.shard.stored * size) as f64;
        let a = multiply(&self.threads, &self.shard.by_rows, whole.columns, &whole.weights, size);
        (a, operator.project(&self.threads, 0..self.shard.cols, &self.v, self.k))
    }

    /// S of an iteration as a dense matrix with one row per record.
    pub fn sketch_matrix(&self, distribution: &Distribution, iteration: usize) -> Vec<f64> {
        dense_sketch::<T>(&self.threads, distribution, iteration)
    }

    /// A step on U given A = M S (features x d) and B = SᵀV of all parties.
    pub fn sketched_u_of_all(
        &mut self,
        side: &mut SketchedSide,
        iteration: usize,
        a: Vec<T>,
        b: &[T],
    ) -> Result<()> {
        let size = side.distribution.size;
        self.work += (self.shard.rows * self.k * (size + self.k)) as f64;
        let block: Block<T> = dense_block(a, self.shard.rows, size);
        let (threads, k, u) = (&self.threads, self.k, &mut self.u);
        let fixed = SketchedFactor { b, columns: Columns::All, weights: b, k };
        side.solve(threads, iteration, &block, u, fixed, &mut Phases::default());
        Ok(())
    }

    /// The source of sketches of the party's records, keyed by party and local record; `None` if the sketch would
    /// keep all of them.
    pub fn records_sketch(&self, settings: &Settings, party: u16) -> Option<Distribution> {
        let length = self.shard.cols;
        let size = settings.of_sketches().sketch_sizes(length, length).0.min(length);
        let seed = party_seed(settings.seed, "partwise records", party);
        let sketch = Distribution { kind: settings.sketch, length, size, seed, purpose: Purpose::SketchU };
        (settings.protocol.sketches_records() && size < length).then_some(sketch)
    }

    /// The V-side, with the same S at every party.
    pub fn features_side(&self, settings: &Settings) -> SketchedSide {
        let squares: f64 = self.u.iter().map(|value| value.to_f64().powi(2)).sum();
        self.side(settings, features_sketch(settings, self.shard.rows), squares / self.k as f64)
    }

    /// A sketched side, whose damping starts with a mean Gram diagonal.
    pub fn side(&self, settings: &Settings, distribution: Distribution, diagonal: f64) -> SketchedSide {
        SketchedSide {
            distribution,
            damping: Damping::new(&settings.of_sketches(), diagonal),
            terms: Penalty::NONE,
        }
    }
}

/// The start of U, which every party can draw.
pub(crate) fn start_u<T: Real>(seed: u64, features: usize, k: usize, mean: f64) -> Vec<T> {
    draw(seed, Purpose::StartU, features, k, start_scale(k, mean))
}

/// E[u v] = scale² / 4 for uniform draws, and k such products make up the mean.
fn start_scale(k: usize, mean: f64) -> f64 {
    2.0 * (mean / k as f64).sqrt()
}

/// Multiplications of a sketched step: the products, and the solver's.
fn sketch_work(stored: usize, rows: usize, k: usize, distribution: &Distribution) -> f64 {
    distribution.work(stored) * k as f64 + ((rows + distribution.size) * k * k) as f64
}

/// A dense matrix by row as the library's drivers hold one.
fn dense_block<T: Real>(values: Vec<T>, rows: usize, cols: usize) -> Block<T> {
    use partwise::matrix::{Dense, Order, Values};
    let dense = Dense::new(rows, cols, Order::RowMajor, Values::Real(values.into()));
    shards(Matrix::Dense(dense), Grid::ONE, Access::Whole).remove(0).by_rows
}
