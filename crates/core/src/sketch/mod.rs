//! Random matrices S with E[S Sᵀ] = I (Sec. 3.4), drawn from the seed and never sent.
//!
//! A [`Distribution`] says what is drawn; an [`Operator`] is one drawn S. A kind is one file, which implements `Sketch` and
//! [`Operator`], and one line in `sketches!`, from which all lists of kinds come.

mod count;
mod custom;
mod gaussian;
mod srht;
mod subsample;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Real;
use crate::kernels::Columns;
use crate::random::Purpose;
use crate::real::precompiled;
use crate::threads::Threads;

pub use custom::{CustomSketch, DrawRows, SketchSize};

/// Declares the kinds of sketch. A line has what `--help` says of the kind, the variant, which is also the name of the type
/// that implements [`Sketch`], and the file with that type. The file's name is what people choose the kind by.
macro_rules! sketches {
    ($(#[doc = $help:literal] $kind:ident in $file:ident;)*) => {
        /// The kinds of sketch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum SketchKind {
            $(#[doc = $help] $kind,)*
        }

        impl SketchKind {
            /// All kinds.
            pub const ALL: [SketchKind; [$(stringify!($kind)),*].len()] = [$(SketchKind::$kind),*];

            /// The name by which people choose it.
            pub fn name(self) -> &'static str {
                match self {
                    $(SketchKind::$kind => stringify!($file),)*
                }
            }

            /// A one-line description of the kind.
            pub fn help(self) -> &'static str {
                match self {
                    $(SketchKind::$kind => $help.trim_ascii(),)*
                }
            }

            /// Whether M S consists of columns of M, up to a factor.
            pub fn picks_columns(self) -> bool {
                match self {
                    $(SketchKind::$kind => <$file::$kind as Sketch>::PICKS_COLUMNS,)*
                }
            }
        }

        fn draw<T: Real>(distribution: &Distribution, iteration: usize) -> Box<dyn Operator<T>> {
            match distribution.kind {
                $(SketchKind::$kind => Box::new(<$file::$kind as Sketch>::draw(distribution, iteration)),)*
            }
        }

        fn work(distribution: &Distribution, stored: usize) -> f64 {
            match distribution.kind {
                $(SketchKind::$kind => <$file::$kind as Sketch>::work(distribution, stored),)*
            }
        }
    };
}

// The registry: one line a kind.
sketches! {
    /// d columns of M, drawn without replacement.
    Subsample in subsample;
    /// Independent normal entries.
    Gaussian in gaussian;
    /// Columns of M added up with random signs in d groups.
    Count in count;
    /// The subsampled randomized Hadamard transform.
    Srht in srht;
}

impl fmt::Display for SketchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SketchKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        SketchKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = SketchKind::ALL.map(SketchKind::name).join(", ");
            format!("{text:?} is not a kind of sketch; choose one of {names}")
        })
    }
}

/// The operations that the registry needs of a kind.
trait Sketch: Sized {
    /// See [`SketchKind::picks_columns`].
    const PICKS_COLUMNS: bool = false;

    /// The S of an iteration: the same on every rank.
    fn draw(distribution: &Distribution, iteration: usize) -> Self;

    /// Multiplications of M S Sᵀ V for each column of V, given the stored entries of M: all of M is read once.
    fn work(_distribution: &Distribution, stored: usize) -> f64 {
        stored as f64
    }
}

/// The distribution of random matrices S, n x d.
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
        draw_operator(self, iteration)
    }

    /// Multiplications of M S Sᵀ V for each column of V, given the number of stored entries of M.
    pub fn work(&self, stored: usize) -> f64 {
        work(self, stored)
    }
}

precompiled! {
    fn draw_operator<T>(distribution: &Distribution, iteration: usize) -> Box<dyn Operator<T>> = draw;
}

/// One S. The sketched step needs B = Vᵀ S and A Bᵀ = M (S Bᵀ) of it; A = M S itself is not formed, which costs
/// less whenever k < d and keeps a sparse M sparse.
pub trait Operator<T: Real> {
    /// (S_{rows:})ᵀ V_{rows:}, a rank's summand of Bᵀ: d rows of k.
    fn project(&self, threads: &Threads, rows: Range<usize>, factor: &[T], k: usize) -> Vec<T>;

    /// The nonzero part of S Bᵀ: the columns of M that it selects and a row of k weights for each of them, or for each
    /// group in which they are summed. Any S can return [`Columns::All`] with a row for each column of M.
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
        columns.spread(&weights, n, n)
    }

    #[test]
    fn names_are_those_in_files_and_are_parsed() {
        for kind in SketchKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!(kind.name().parse(), Ok(kind));
            assert!(!kind.help().is_empty());
        }
        assert!("hadamard".parse::<SketchKind>().unwrap_err().contains("subsample"));
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
