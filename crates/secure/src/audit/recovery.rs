//! Linear recovery (Theorem `theorem:nosecure`): S is public, so every opened M S is a set of equations for M.
//!
//! With A = M S over all iterations so far, M is sought by least squares, the solution of least norm if there are too
//! few equations, and by nonnegative least squares, which needs far fewer.

use faer::{MatMut, MatRef};
use partwise::Real;
use partwise::kernels::{Product, add_product, eigen};
use partwise::solver::{CoordinateDescent, MovingRows, Penalty, Problem, update};
use partwise::threads::Threads;

use super::adversary::Adversary;
use super::{Case, Found, Recovery};
use crate::error::Result;
use crate::protocol::{dense_sketch, limited_sketch};
use crate::split::rows;
use crate::sum::SumKind;

/// An entry counts as recovered within this share of its value.
pub const WITHIN: f64 = 0.1;

const SWEEPS: usize = 100;

/// The attack by one adversary, after 1, 2, 4, ... iterations.
pub fn run<T: Real>(case: &Case<'_, T>, adversary: Adversary) -> Result<Found> {
    let sums = case.settings.protocol.definition().sums(case.settings, case.features);
    if sums.iter().all(|sum| sum.kind != SumKind::SketchedM) {
        return Ok(Found::default());
    }
    // The coordinator has no data, so it seeks all parties' records as one unknown matrix.
    let targets = if adversary == Adversary::Coordinator { 1 } else { case.limits.recovered };
    let mut recoveries: Vec<Recovery> = Vec::new();
    for target in case.targets.iter().take(targets) {
        let Some(equations) = equations(case, adversary, target.party) else { continue };
        for more in equations.solve(&case.threads, adversary) {
            match recoveries.iter_mut().find(|known| known.same_case(&more)) {
                Some(known) => known.pool(&more),
                None => recoveries.push(more),
            }
        }
    }
    Ok(Found { recoveries, ..Found::default() })
}

/// Y = X S for some features, and the X that is sought.
pub struct Equations {
    /// Columns of S in each iteration.
    pub size: usize,
    /// By iteration: S, unknown records x `size`, by row.
    pub sketches: Vec<Vec<f64>>,
    /// By iteration: features x `size`, by row.
    pub seen: Vec<Vec<f64>>,
    /// Features x unknown records, by row.
    pub truth: Vec<f64>,
    /// How many records are unknown.
    pub unknowns: usize,
}

fn equations<T: Real>(case: &Case<'_, T>, adversary: Adversary, victim: u16) -> Option<Equations> {
    let view = case.view(adversary, victim);
    let known = view.attackers();
    let unknown: Vec<u16> = (1..=case.dealt.len() as u16).filter(|party| !known.contains(party)).collect();
    let of = |party: u16| &case.dealt[usize::from(party) - 1];
    let records: Vec<usize> = unknown.iter().flat_map(|&party| of(party)).copied().collect();
    let unknowns = records.len();
    if unknowns > case.limits.unknowns {
        return None;
    }
    let affordable = case.limits.multiplications / (unknowns * unknowns * SWEEPS).max(1) as f64;
    let picked = case.limits.pick(case.features, (affordable as usize).max(10));
    let (mut sketches, mut seen, mut size) = (Vec::new(), Vec::new(), 0);
    for place in (0..view.len()).filter(|&place| view.kind(place) == SumKind::SketchedM) {
        let sum = view.sum(place)?;
        size = sum.columns;
        seen.push(picked.iter().flat_map(|&feature| sum.values[feature * size..][..size].to_vec()).collect());
        let sketch = |&party: &u16| {
            if !view.has(place, party) {
                return vec![0.0; of(party).len() * size];
            }
            let distribution = limited_sketch(case.settings, party, of(party).len());
            dense_sketch::<T>(&case.threads, &distribution, sum.iteration)
        };
        sketches.push(unknown.iter().flat_map(sketch).collect());
    }
    let mut truth = vec![0.0; picked.len() * unknowns];
    let mut row_of = vec![None; case.features];
    picked.iter().enumerate().for_each(|(row, &feature)| row_of[feature] = Some(row));
    rows(case.matrix, &records).for_each_stored(|record, feature, value| {
        if let Some(row) = row_of[feature] {
            truth[row * unknowns + record] = value;
        }
    });
    (!seen.is_empty()).then_some(Equations { size, sketches, seen, truth, unknowns })
}

impl Equations {
    fn solve(&self, threads: &Threads, adversary: Adversary) -> Vec<Recovery> {
        let all = self.seen.len();
        let mut iterations: Vec<usize> =
            std::iter::successors(Some(1), |t| Some(t * 2)).take_while(|t| *t < all).collect();
        iterations.push(all);
        let mut recoveries = Vec::new();
        for iterations in iterations {
            for (method, solution) in [
                ("least squares", self.least_squares(iterations)),
                ("nonnegative least squares", self.nonnegative(threads, iterations)),
            ] {
                let (equations, unknowns) = (iterations * self.size, self.unknowns);
                let recovery =
                    Recovery { adversary, method, iterations, equations, unknowns, ..self.judge(&solution) };
                recoveries.push(recovery);
            }
        }
        recoveries
    }

    fn judge(&self, solution: &[f64]) -> Recovery {
        let mut recovery = Recovery::default();
        for (found, truth) in solution.iter().zip(&self.truth) {
            recovery.squared_error += (found - truth).powi(2);
            recovery.squared_norm += truth * truth;
            if *truth != 0.0 {
                recovery.entries += 1;
                recovery.entries_recovered += usize::from((found - truth).abs() <= WITHIN * truth);
            }
        }
        recovery.finish()
    }

    /// S Sᵀ (unknowns x unknowns) and Y Sᵀ (features x unknowns), by row.
    fn normal(&self, iterations: usize) -> (Vec<f64>, Vec<f64>) {
        let (n, d) = (self.unknowns, self.size);
        let features = self.truth.len() / n.max(1);
        let (mut gram, mut product) = (vec![0.0; n * n], vec![0.0; features * n]);
        for (sketch, seen) in self.sketches.iter().zip(&self.seen).take(iterations) {
            let s = MatRef::from_row_major_slice(sketch, n, d);
            let y = MatRef::from_row_major_slice(seen, features, d);
            let target = MatMut::from_row_major_slice_mut(&mut gram, n, n);
            add_product(target, 1.0, s, s.transpose());
            let target = MatMut::from_row_major_slice_mut(&mut product, features, n);
            add_product(target, 1.0, y, s.transpose());
        }
        (gram, product)
    }

    /// X = Y Sᵀ (S Sᵀ)⁺, the least squares solution of least norm.
    pub fn least_squares(&self, iterations: usize) -> Vec<f64> {
        let n = self.unknowns;
        let (gram, product) = self.normal(iterations);
        let features = product.len() / n.max(1);
        let (values, vectors) = eigen(&gram, n);
        let largest = values.first().copied().unwrap_or(0.0);
        let product = MatRef::from_row_major_slice(&product, features, n);
        let (mut turned, mut solution) = (vec![0.0; features * n], vec![0.0; features * n]);
        add_product(
            MatMut::from_column_major_slice_mut(&mut turned, features, n),
            1.0,
            product,
            vectors.as_ref(),
        );
        for (column, value) in turned.chunks_exact_mut(features.max(1)).zip(&values) {
            let inverse = if *value > 1e-10 * largest { 1.0 / value } else { 0.0 };
            column.iter_mut().for_each(|entry| *entry *= inverse);
        }
        let turned = MatRef::from_column_major_slice(&turned, features, n);
        let target = MatMut::from_row_major_slice_mut(&mut solution, features, n);
        add_product(target, 1.0, turned, vectors.transpose());
        solution
    }

    /// Solves the same least-squares problem with X ≥ 0, by coordinate descent from 0.
    pub fn nonnegative(&self, threads: &Threads, iterations: usize) -> Vec<f64> {
        let n = self.unknowns;
        let (gram, product) = self.normal(iterations);
        let mut solution = vec![0.0; product.len()];
        let solver = CoordinateDescent { mu: 0.0, sweeps: SWEEPS };
        let problem = Problem { solver: &solver, gram: &gram, terms: Penalty::NONE };
        update(threads, &problem, &Product::ready(product, n), MovingRows::plain(&mut solution), n);
        solution
    }
}
