//! Reconstruction from rare features, by an adversary that sees the sums of `pooled` and follows the
//! protocol.
//!
//! If only record x has feature f, row f of the opened M V is x_f v, in every round: the trajectory of the
//! record's weights. Every participant can compute U, and a sweep of HALS moves each weight that stays
//! positive to the solution of its equation,
//!
//!   u_jᵀ x = Σ_{l ≤ j} u_jᵀu_l v_l(new) + Σ_{l > j} u_jᵀu_l v_l(old),
//!
//! which is linear in x. After multiplication by x_f, the right-hand side is known, and nonnegative least
//! squares gives x_f x.

use faer::{MatMut, MatRef};
use partwise::Real;
use partwise::kernels::{Product, add_product, gram};
use partwise::solver::{MovingRows, Penalty, Pivoting, Problem, update};
use partwise::threads::Threads;
use partwise::wording::Wording;

use super::adversary::{Adversary, View};
use super::finding::Reconstructed;
use super::{Case, Found, Reconstruction};
use crate::error::{Error, Result};
use crate::fixed::whole_gram;
use crate::protocol::{HALS, start_u};
use crate::split::rows;
use crate::sum::SumKind;

/// The name of the attack.
pub const ATTACK: &str = "trajectory of a rare feature";

/// A weight below this share of the largest one counts as 0, and its equation is not used.
const ZERO: f64 = 1e-6;

/// Runs the attack for one adversary.
pub fn run<T: Real>(case: &Case<'_, T>, adversary: Adversary) -> Result<Found> {
    let sums = case.settings.protocol.definition().sums(case.settings, case.features);
    let opens = sums.iter().any(|sum| sum.kind == SumKind::ProductV);
    if !opens || case.features > case.limits.reconstructed_features {
        return Ok(Found::default());
    }
    let mut records = Vec::new();
    for target in &case.targets {
        let view = case.view(adversary, target.party);
        let holders = rare_features(case, target.party, view.attackers());
        if holders.is_empty() {
            continue;
        }
        let course = Course::of(case, &view).ok_or_else(other_run)?;
        let each = case.limits.reconstructions(case.features).div_ceil(case.targets.len());
        for place in case.limits.pick(holders.len(), each) {
            let Holder { feature, row } = holders[place];
            let found = course.solve(&case.threads, feature);
            let mut record = vec![0.0; case.features];
            rows(case.matrix, &[row]).for_each_stored(|_, feature, value| record[feature] = value);
            records.push(Reconstructed::new(row, &record, &found));
        }
    }
    let tried = (!records.is_empty()).then(|| Reconstruction::new(adversary, ATTACK, records));
    Ok(Found { reconstructions: tried.into_iter().collect(), ..Found::default() })
}

/// A feature of a single record, among all records that cannot be subtracted from the sum.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    pub feature: usize,
    /// The record's row in the matrix.
    pub row: usize,
}

/// The features that a single record of the victim has, and no other record except the attackers' own.
pub(super) fn rare_features<T: Real>(case: &Case<'_, T>, victim: u16, attackers: &[u16]) -> Vec<Holder> {
    let mut holders: Vec<(usize, Option<usize>)> = vec![(0, None); case.features];
    for (party, records) in (1..).zip(case.dealt).filter(|(party, _)| !attackers.contains(party)) {
        rows(case.matrix, records).for_each_stored(|record, feature, value| {
            if value != 0.0 {
                holders[feature].0 += 1;
                holders[feature].1 = (party == victim).then(|| records[record]);
            }
        });
    }
    let rare = |(feature, (count, row)): (usize, (usize, Option<usize>))| {
        row.filter(|_| count == 1).map(|row| Holder { feature, row })
    };
    holders.into_iter().enumerate().filter_map(rare).collect()
}

/// How U moved, which every participant can compute, and the sums by which it moved.
struct Course {
    features: usize,
    k: usize,
    /// M V without the attackers' own contributions, from the start on, features x k each.
    products: Vec<Vec<f64>>,
    /// The U with which V was computed after each of these sums except the first.
    factors: Vec<Vec<f64>>,
}

impl Course {
    /// Derives the path from the sums; `None` if a sum is missing or if the sums do not lead to the U of this
    /// run.
    fn of<T: Real>(case: &Case<'_, T>, view: &View<'_>) -> Option<Course> {
        let (features, k, settings) = (case.features, case.settings.rank, case.settings);
        let mean = opened_mean(case)?;
        let mut u: Vec<T> = start_u(settings.seed, features, k, mean);
        let mut course = Course { features, k, products: Vec::new(), factors: Vec::new() };
        for place in (0..view.len()).filter(|&place| view.attempt(place) == 0) {
            if place > 0 {
                course.factors.push(u.iter().map(|value| value.to_f64()).collect());
            }
            course.products.push(view.sum(place)?.values);
            let whole = view.whole_sum(place)?;
            let product: Vec<T> = whole[0].iter().map(|&value| T::from_f64(value)).collect();
            let problem = Problem { solver: &HALS, gram: &whole_gram(&whole[1], k), terms: Penalty::NONE };
            let product = Product::ready(product, k);
            update(&case.threads, &problem, &product, MovingRows::plain(&mut u), k);
        }
        // The last sum contributes only to the error. The better of two attempts counts, which need not be
        // the first.
        let last = course.factors.last()?;
        let once = (0..view.len()).all(|place| view.attempt(place) == 0);
        (!once || is_near(last, &case.u)).then_some(course)
    }

    /// The only record that has a feature, up to scale.
    fn solve(&self, threads: &Threads, feature: usize) -> Vec<f64> {
        let (m, k) = (self.features, self.k);
        let row = |round: usize| &self.products[round][feature * k..][..k];
        let all = (0..self.products.len()).flat_map(row);
        let zero = ZERO * all.fold(0f64, |largest, value| largest.max(value.abs()));
        let (mut equations, mut seen) = (Vec::new(), Vec::new());
        for (round, u) in (1..).zip(&self.factors) {
            let (old, new) = (row(round - 1), row(round));
            let gram = gram(threads, u, k);
            for j in (0..k).filter(|&j| new[j] > zero && gram[j * k + j] > 0.0) {
                let weights = new[..=j].iter().chain(&old[j + 1..]);
                let right: f64 =
                    gram[j * k..][..k].iter().zip(weights).map(|(gram, weight)| gram * weight).sum();
                // Each equation is scaled to its own units.
                let scale = 1.0 / gram[j * k + j].sqrt();
                equations.extend(u.iter().skip(j).step_by(k).map(|value| value * scale));
                seen.push(right * scale);
            }
        }
        let (mut square, mut product) = (vec![0.0; m * m], vec![0.0; m]);
        let a = MatRef::from_row_major_slice(&equations, seen.len(), m);
        add_product(MatMut::from_row_major_slice_mut(&mut square, m, m), 1.0, a.transpose(), a);
        let b = MatRef::from_column_major_slice(&seen, seen.len(), 1);
        add_product(MatMut::from_column_major_slice_mut(&mut product, m, 1), 1.0, a.transpose(), b);
        let mut found = vec![0.0; m];
        let problem = Problem { solver: &Pivoting, gram: &square, terms: Penalty::NONE };
        update(threads, &problem, &Product::ready(product, m), MovingRows::plain(&mut found), m);
        found
    }
}

/// Whether two factors are equal up to rounding.
fn is_near(a: &[f64], b: &[f64]) -> bool {
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    squares(&mut a.iter().zip(b).map(|(a, b)| a - b)) <= 1e-6 * squares(&mut b.iter().copied())
}

/// The error for a transcript and a U of different runs.
fn other_run() -> Error {
    let problem =
        "U does not follow from the recorded sums and may belong to another run; simulate again with ";
    Error::Folder { problem: Wording::new(problem).field("record") }
}

/// The mean entry, according to the first opened sums.
fn opened_mean<T: Real>(case: &Case<'_, T>) -> Option<f64> {
    let sums = || case.transcript.sums().values().flatten();
    let first = |kind: SumKind| {
        let sum = sums().find(|sum| sum.kind == Some(kind) && !sum.voting)?;
        Some(case.transcript.parts(sum, &case.transcript.opened(sum)?).concat())
    };
    let (norms, records) = (first(SumKind::Norms)?, first(SumKind::Records)?);
    Some(norms[0] / (records[0].round() * case.features as f64))
}
