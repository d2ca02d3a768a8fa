//! Random matrices S with E[S Sᵀ] = I (Sec. 3.4), drawn from the seed and never sent.
//!
//! A [`Distribution`] says what is drawn; an [`Operator`] is one drawn S. One file a kind, and one line in
//! [`Distribution::draw`].

mod count;
mod gaussian;
mod srht;
mod subsample;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Real;
use crate::kernels::Columns;
use crate::random::Purpose;
use crate::threads::Threads;

/// The kinds of sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SketchKind {
    /// d columns of M, drawn without replacement.
    Subsample,
    /// Independent normal entries.
    Gaussian,
    /// Columns of M added up with random signs in d groups.
    Count,
    /// The subsampled randomized Hadamard transform.
    Srht,
}

impl SketchKind {
    /// All kinds.
    pub const ALL: [SketchKind; 4] =
        [SketchKind::Subsample, SketchKind::Gaussian, SketchKind::Count, SketchKind::Srht];
}

/// Where random matrices S of n x d are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// The kind.
    pub kind: SketchKind,
    /// n, the length that is sketched.
    pub length: usize,
    /// d, the length that is left. Equal to n, there is no sketch: S = I.
    pub size: usize,
    /// The run's seed.
    pub seed: u64,
    /// [`Purpose::SketchU`] or [`Purpose::SketchV`].
    pub purpose: Purpose,
}

impl Distribution {
    /// `size` of `0..length`, drawn without replacement, ascending.
    pub fn choose(&self, iteration: usize) -> Vec<usize> {
        subsample::choose(self, iteration)
    }

    /// The S of an iteration: the same on every rank.
    pub fn draw<T: Real>(&self, iteration: usize) -> Box<dyn Operator<T>> {
        T::draw(self, iteration)
    }
}

pub(crate) fn draw_here<T: Real>(distribution: &Distribution, iteration: usize) -> Box<dyn Operator<T>> {
    match distribution.kind {
        SketchKind::Subsample => Box::new(subsample::Subsample::draw(distribution, iteration)),
        SketchKind::Gaussian => Box::new(gaussian::Gaussian::draw(distribution, iteration)),
        SketchKind::Count => Box::new(count::Count::draw(distribution, iteration)),
        SketchKind::Srht => Box::new(srht::Srht::draw(distribution, iteration)),
    }
}

/// One S. The sketched step needs B = Vᵀ S and A Bᵀ = M (S Bᵀ) of it; A = M S itself is not formed, which costs
/// less whenever k < d and keeps a sparse M sparse.
pub trait Operator<T: Real> {
    /// (S_{rows:})ᵀ V_{rows:}, a rank's summand of Bᵀ: d rows of k.
    fn project(&self, threads: &Threads, rows: Range<usize>, factor: &[T], k: usize) -> Vec<T>;

    /// S Bᵀ where it is not zero: the columns of M that it meets and, for each of them or of the groups that they
    /// are added up in, a row of k weights.
    fn lift(&self, threads: &Threads, b: &[T], k: usize) -> (Columns<'_>, Vec<T>);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> Threads {
        Threads::new(1).unwrap()
    }

    const SIDES: [Purpose; 2] = [Purpose::SketchU, Purpose::SketchV];

    /// S Sᵀ, from the operator's own two halves applied to I.
    fn outer(distribution: Distribution, iteration: usize) -> Vec<f64> {
        let n = distribution.length;
        let operator = distribution.draw::<f64>(iteration);
        let identity: Vec<f64> = (0..n * n).map(|i| if i % n == i / n { 1.0 } else { 0.0 }).collect();
        let b = operator.project(&threads(), 0..n, &identity, n);
        let (columns, weights) = operator.lift(&threads(), &b, n);
        let row = |place: usize| weights[place * n..][..n].iter().copied();
        match columns {
            Columns::All => weights,
            Columns::Some(columns) => {
                let place = |column| columns.iter().position(|&picked| picked == column);
                (0..n)
                    .flat_map(|column| place(column).map_or(vec![0.0; n], |place| row(place).collect()))
                    .collect()
            }
            Columns::Hashed(places) => places
                .iter()
                .flat_map(|&place| {
                    row(place.unsigned_abs() as usize - 1).map(move |x| x * place.signum() as f64)
                })
                .collect(),
        }
    }

    /// Assumption 1, over many seeds: the mean is I and the variance of every entry stays below n / d.
    #[test]
    fn the_mean_of_s_s_transposed_is_the_identity_and_its_variance_bounded() {
        for kind in SketchKind::ALL {
            for (n, d) in [(12, 3), (7, 1), (10, 9), (5, 5)] {
                let draws = 20_000;
                let (mut sum, mut squares) = (vec![0.0; n * n], vec![0.0; n * n]);
                for seed in 0..draws {
                    let purpose = SIDES[seed as usize % 2];
                    let s =
                        outer(Distribution { kind, length: n, size: d, seed, purpose }, seed as usize % 3);
                    for (place, value) in s.iter().enumerate() {
                        sum[place] += value;
                        squares[place] += value * value;
                    }
                }
                for place in 0..n * n {
                    let mean = sum[place] / draws as f64;
                    let variance = squares[place] / draws as f64 - mean * mean;
                    let want = if place % n == place / n { 1.0 } else { 0.0 };
                    let bound = n as f64 / d as f64;
                    // Five standard errors.
                    assert!(
                        (mean - want).abs() <= 5.0 * (bound / draws as f64).sqrt() + 1e-12,
                        "{n} {d} {mean}"
                    );
                    assert!(variance <= 1.1 * bound.max(2.0 / d as f64), "{kind:?} {n} {d} {variance}");
                }
            }
        }
    }

    #[test]
    fn a_rank_projects_its_own_rows_and_the_summands_add_up() {
        let (n, k) = (11, 3);
        let factor: Vec<f64> = (0..n * k).map(|i| i as f64 + 1.0).collect();
        for kind in SketchKind::ALL {
            let distribution = Distribution { kind, length: n, size: 4, seed: 1, purpose: Purpose::SketchU };
            let whole = distribution.draw::<f64>(2).project(&threads(), 0..n, &factor, k);
            let mut sum = vec![0.0; whole.len()];
            for rows in [0..3, 3..3, 3..8, 8..11] {
                let part = distribution.draw::<f64>(2).project(
                    &threads(),
                    rows.clone(),
                    &factor[rows.start * k..rows.end * k],
                    k,
                );
                sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
            }
            for (sum, whole) in sum.iter().zip(&whole) {
                assert!((sum - whole).abs() <= 1e-12 * (1.0 + whole.abs()), "{kind:?}: {sum} {whole}");
            }
        }
    }

    #[test]
    fn sides_iterations_and_seeds_draw_different_sketches() {
        let mut seen: Vec<Vec<f64>> = Vec::new();
        for kind in SketchKind::ALL {
            for seed in 0..3 {
                for purpose in SIDES {
                    for iteration in 0..4 {
                        let s = outer(Distribution { kind, length: 40, size: 20, seed, purpose }, iteration);
                        assert!(
                            !seen.contains(&s),
                            "{kind:?}, seed {seed}, {purpose:?}, iteration {iteration}"
                        );
                        seen.push(s);
                    }
                }
            }
        }
    }
}
