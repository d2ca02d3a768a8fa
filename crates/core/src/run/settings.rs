//! The settings of a run, checked before anything is computed.

use serde::{Deserialize, Serialize};

use super::method::Algorithm;
use super::scale::Normalize;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::matrix::Shape;
use crate::objective::{Loss, Needs};
use crate::partition::Access;
use crate::sketch;
use crate::solver::{Penalty, SketchedSolver};
use crate::wording::Wording;

/// A number of rows or columns, or a share of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    /// This many.
    Count(usize),
    /// This share of all.
    Share(f64),
}

impl std::str::FromStr for Amount {
    type Err = String;

    /// `0.1` and `10%` are shares, `500` is a number; `1.0` is all, `1` is one.
    fn from_str(text: &str) -> Result<Self, String> {
        let share = |number: &str, unit: f64| match number.parse::<f64>() {
            Ok(share) if share > 0.0 && share / unit <= 1.0 => Ok(Amount::Share(share / unit)),
            _ => Err(format!("{text} is not a share above 0 and at most 1.0")),
        };
        if let Some(percent) = text.strip_suffix('%') {
            share(percent, 100.0)
        } else if let Ok(count) = text.parse::<usize>() {
            if count == 0 {
                Err("0 is too few; give a number above 0".into())
            } else {
                Ok(Amount::Count(count))
            }
        } else {
            share(text, 1.0)
        }
    }
}

/// The starting values of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// Uniform random numbers at M's scale.
    Random,
    /// The singular vectors of M (Boutsidis and Gallopoulos 2008), with zeros kept.
    Nndsvd,
    /// Singular vectors, with zeros filled with the mean of M.
    Nndsvda,
    /// Singular vectors, with zeros filled with small random numbers.
    Nndsvdar,
}

impl Init {
    /// All of them.
    pub const ALL: [Init; 4] = [Init::Random, Init::Nndsvd, Init::Nndsvda, Init::Nndsvdar];
}

/// The damping of the sketched step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// μ_t = (α + β t) g_t, with g_t the mean diagonal of the Gram matrix over earlier iterations; for the gradient
    /// step η_t = 1 / ((α + β t) k g_t).
    UnitFree,
    /// The paper's μ_t = α + β t and η_t = 1 / (α + β t), in the units of the data.
    Absolute,
}

impl Step {
    /// Both.
    pub const ALL: [Step; 2] = [Step::UnitFree, Step::Absolute];
}

/// All parameters of a run except the data and the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The method.
    pub algorithm: Algorithm,
    /// The loss to minimize.
    #[serde(default, skip_serializing_if = "is_default_loss")]
    pub loss: Loss,
    /// Whether entries of M are missing or weighted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub incomplete: bool,
    /// The share of the entries that are held out of the run, to evaluate its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<f64>,
    /// k, the number of components.
    pub rank: usize,
    /// The kind of sketch.
    pub sketch: sketch::SketchKind,
    /// A custom sketch to use instead of the built-in kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_sketch: Option<sketch::CustomSketch>,
    /// d: columns of M that the U-subproblem is sketched to; by size if absent.
    pub sketch_cols: Option<Amount>,
    /// d': rows of M that the V-subproblem is sketched to; by size if absent.
    pub sketch_rows: Option<Amount>,
    /// The solver of sketched subproblems.
    pub solver: SketchedSolver,
    /// α of the step.
    pub alpha: f64,
    /// β of the step.
    pub beta: f64,
    /// Units of the step.
    pub step: Step,
    /// Whether entries are kept at most √(2‖M‖_F) (Lemma `lemma:exisit_optimal`).
    pub bound: bool,
    /// Weights of n‖U‖₁, m‖V‖₁, ½n‖U‖² and ½m‖V‖² in addition to ½‖M − U Vᵀ‖²: scaled by the length of the other
    /// side, they mean the same at any size of M, as scikit-learn's `alpha_W` and `alpha_H` do.
    pub l1_u: f64,
    /// See [`Settings::l1_u`].
    pub l1_v: f64,
    /// See [`Settings::l1_u`].
    pub l2_u: f64,
    /// See [`Settings::l1_u`].
    pub l2_v: f64,
    /// The start, unless one is given.
    pub init: Init,
    /// The seed of everything random.
    pub seed: u64,
    /// The maximum number of iterations.
    pub iterations: usize,
    /// Stop when the error decreases by less than this share of itself per iteration.
    pub tolerance: f64,
    /// Stop at this relative error.
    pub target_error: Option<f64>,
    /// Stop after this many seconds of computing.
    pub time_limit: Option<f64>,
    /// The number of runs, of which the best is kept.
    pub restarts: usize,
    /// Iterations between two lines of the trace; by cost if absent.
    pub trace_every: Option<usize>,
    /// The scale of the result's components; [`Settings::normalization`] gives the default.
    #[serde(default)]
    pub normalize: Option<Normalize>,
    /// Whether `auto` may start on samples.
    #[serde(default = "default_samples")]
    pub samples: bool,
}

fn is_default_loss(loss: &Loss) -> bool {
    *loss == Loss::default()
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The default for records without this setting.
fn default_samples() -> bool {
    true
}

impl Settings {
    /// The default maximum number of iterations.
    pub const ITERATIONS: usize = 500;
    /// The default tolerance.
    pub const TOLERANCE: f64 = 1e-5;

    /// The defaults for a number of components.
    pub fn new(rank: usize) -> Self {
        Settings {
            algorithm: Algorithm::Auto,
            loss: Loss::Frobenius,
            incomplete: false,
            holdout: None,
            rank,
            sketch: sketch::SketchKind::Subsample,
            custom_sketch: None,
            sketch_cols: None,
            sketch_rows: None,
            solver: SketchedSolver::Pcd,
            alpha: SketchedSolver::Pcd.damping().0,
            beta: SketchedSolver::Pcd.damping().1,
            step: Step::UnitFree,
            bound: false,
            l1_u: 0.0,
            l1_v: 0.0,
            l2_u: 0.0,
            l2_v: 0.0,
            init: Init::Random,
            seed: 0,
            iterations: Self::ITERATIONS,
            tolerance: Self::TOLERANCE,
            target_error: None,
            time_limit: None,
            restarts: 1,
            trace_every: None,
            normalize: None,
            samples: true,
        }
    }

    /// Whether these settings are right for an m x n matrix, for callers that do not run them; a run takes
    /// [`CheckedSettings`](super::CheckedSettings).
    pub fn check(&self, m: usize, n: usize) -> Result<()> {
        self.check_values()?;
        self.check_sizes(m, n)
    }

    /// Checks the loss, and which entries it is of, against the method.
    fn check_loss(&self) -> Result<()> {
        let lowers = match self.loss {
            Loss::Frobenius => true,
            Loss::Kl => !matches!(self.algorithm, Algorithm::Bpp | Algorithm::Dsanls),
            Loss::Is => matches!(self.algorithm, Algorithm::Auto | Algorithm::Mu),
        };
        if !lowers {
            let problem =
                format!("{} cannot be minimized by {}; choose another method", self.loss, self.algorithm);
            return Err(Error::parameter("loss", problem));
        }
        if self.algorithm == Algorithm::Dsanls && self.is_incomplete() {
            let problem = "dsanls needs every entry, each with the same weight; use auto, hals, mu or bpp";
            return Err(Error::parameter("algorithm", problem));
        }
        if let Some(share) = self.holdout.filter(|share| !(*share > 0.0 && *share < 1.0)) {
            let problem = format!("{share} is not a share of the entries; give a number above 0 and below 1");
            return Err(Error::parameter("holdout", problem));
        }
        Ok(())
    }

    /// Checks each parameter, and parameters against each other.
    pub(super) fn check_values(&self) -> Result<()> {
        let positive = |name: &str, value: usize| match value {
            0 => Err(Error::parameter(name, "0 is too few; give 1 or more")),
            _ => Ok(()),
        };
        positive("rank", self.rank)?;
        positive("iterations", self.iterations)?;
        positive("restarts", self.restarts)?;
        positive("trace_every", self.trace_every.unwrap_or(1))?;
        let not_negative = |name: &str, value: f64| match value {
            value if value >= 0.0 && value.is_finite() => Ok(()),
            value => {
                Err(Error::parameter(name, format!("{value} is out of range; give a number of 0 or more")))
            }
        };
        not_negative("alpha", self.alpha)?;
        not_negative("beta", self.beta)?;
        not_negative("l1_u", self.l1_u)?;
        not_negative("l1_v", self.l1_v)?;
        not_negative("l2_u", self.l2_u)?;
        not_negative("l2_v", self.l2_v)?;
        not_negative("tolerance", self.tolerance)?;
        self.check_loss()?;
        if self.bound {
            self.check_given(["bound"])?;
        }
        if self.custom_sketch.is_some() {
            self.check_given(["sketch"])?;
        }
        if !self.scale_is_free() && self.normalize.is_some_and(|how| how != Normalize::None) {
            let problem =
                "penalties and bounds determine the scale of the components; leave it out, or use none";
            return Err(Error::parameter("normalize", problem));
        }
        not_negative("target_error", self.target_error.unwrap_or(0.0))?;
        not_negative("time_limit", self.time_limit.unwrap_or(0.0))?;
        if self.algorithm.uses("alpha") && self.alpha + self.beta == 0.0 {
            return Err(Error::parameter(
                "alpha",
                Wording::default()
                    .field("alpha")
                    .text(" and ")
                    .field("beta")
                    .text(" cannot both be 0, which turns the damping off; give one of them"),
            ));
        }
        if self.algorithm.uses("alpha") && self.solver == SketchedSolver::Pgd && self.alpha == 0.0 {
            return Err(Error::parameter(
                "alpha",
                "0 makes the first gradient step infinite; give a number above 0",
            ));
        }
        Ok(())
    }

    /// Checks the parameters against an m x n matrix.
    pub(super) fn check_sizes(&self, m: usize, n: usize) -> Result<()> {
        if self.init != Init::Random && self.rank > m.min(n) {
            let most = m.min(n);
            let problem =
                Wording::new(format!("there are at most {most} singular vectors to start from; lower "))
                    .field("rank")
                    .text(", or start at random");
            return Err(Error::parameter("init", problem));
        }
        for (name, amount, length, of) in
            [("sketch_cols", self.sketch_cols, n, "columns"), ("sketch_rows", self.sketch_rows, m, "rows")]
        {
            match amount {
                Some(Amount::Count(count)) if count == 0 || count > length => {
                    return Err(Error::parameter(
                        name,
                        format!(
                            "{count} is out of range, the matrix has {length} {of}; give 1 to {length}, or 1.0 for all"
                        ),
                    ));
                }
                Some(Amount::Share(share)) if !(share > 0.0 && share <= 1.0) => {
                    return Err(Error::parameter(
                        name,
                        format!("{share} is not a share above 0 and at most 1.0"),
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses the first given parameter, by name, that the method does not use.
    pub fn check_given<'a>(&self, given: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let method = self.algorithm;
        let Some(unused) = given.into_iter().find(|parameter| !method.uses(parameter)) else { return Ok(()) };
        let users: Vec<Algorithm> =
            Algorithm::ALL.iter().copied().filter(|method| method.uses(unused)).collect();
        Err(Error::unused(unused, method, &users))
    }

    /// Whether the scale of components is free, so that it can be chosen: penalties and bounds decide it.
    fn scale_is_free(&self) -> bool {
        !self.bound && [self.l1_u, self.l1_v, self.l2_u, self.l2_v] == [0.0; 4]
    }

    /// The scale of the result's components: as requested, otherwise balanced if the scale is free.
    pub fn normalization(&self) -> Normalize {
        let default = if self.scale_is_free() { Normalize::Balanced } else { Normalize::None };
        self.normalize.unwrap_or(default)
    }

    /// How the run reads M: a loss that needs complete rows has no use for a grid's blocks.
    pub fn access(&self) -> Access {
        let lines = self.is_incomplete() || self.loss.needs() == Needs::CompleteRows;
        match self.algorithm.access() {
            Access::Whole if lines => Access::Lines,
            access => access,
        }
    }

    /// Whether entries are missing, held out or weighted.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete || self.holdout.is_some()
    }

    /// Whether a dead component can be redrawn: only if the step can refill the column of U that redrawing
    /// empties.
    pub(super) fn fills_zeros(&self) -> bool {
        // Only multiplicative updates lower the Itakura-Saito divergence.
        self.algorithm.spec().fills_zeros && self.loss != Loss::Is
    }

    /// How `size` ranks are arranged on a matrix: in a single column for sketched methods, which do not communicate
    /// by blocks of M.
    pub fn grid(&self, asked: Option<Grid>, shape: Shape, size: usize) -> Result<Grid> {
        if asked.is_some() {
            self.check_given(["grid"])?;
        }
        match self.access() {
            Access::Whole => Grid::of(asked, shape.rows, shape.cols, size),
            Access::Sampled | Access::Lines => Ok(Grid::tall(size)),
        }
    }

    /// Penalty and bound of (U, V), for an m x n matrix of norm ‖M‖_F² = `norm`.
    pub fn terms(&self, m: usize, n: usize, norm: f64) -> (Penalty, Penalty) {
        // 2‖M‖_F from the squared norm.
        let upper = if self.bound { (2.0 * norm.sqrt()).sqrt() } else { f64::INFINITY };
        let terms = |l1: f64, l2: f64, length: usize| Penalty {
            l1: l1 * length as f64,
            l2: l2 * length as f64,
            upper,
        };
        (terms(self.l1_u, self.l2_u, n), terms(self.l1_v, self.l2_v, m))
    }

    /// (d, d'): columns and rows of an m x n matrix that a sketch keeps; n and m where that side is exact.
    ///
    /// By default it follows the footnote of Sec. 3.2: a tenth, for large matrices a hundredth, but never so few
    /// that they no longer represent the problem (4 k); and if one side is ten times the other, the subproblem with
    /// the short sum is not sketched.
    pub fn sketch_sizes(&self, m: usize, n: usize) -> (usize, usize) {
        let by_size = |length: usize, other: usize| {
            if other / 10 >= length {
                return length;
            }
            let share = if length >= LARGE { length / 100 } else { length / 10 };
            share.max(self.rank.saturating_mul(4)).min(length)
        };
        let size = |amount: Option<Amount>, length: usize, other: usize| match amount {
            None => by_size(length, other),
            Some(Amount::Count(count)) => count,
            Some(Amount::Share(share)) => ((share * length as f64).round() as usize).clamp(1, length),
        };
        (size(self.sketch_cols, n, m), size(self.sketch_rows, m, n))
    }
}

/// Sides of at least this length count as large.
const LARGE: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        assert_eq!("0.1".parse(), Ok(Amount::Share(0.1)));
        assert_eq!("10%".parse(), Ok(Amount::Share(0.1)));
        assert_eq!("1.0".parse(), Ok(Amount::Share(1.0)));
        assert_eq!("1".parse(), Ok(Amount::Count(1)));
        for bad in ["0", "0.0", "1.5", "-1", "120%", "x", "", "nan", "inf"] {
            assert!(bad.parse::<Amount>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sketch_sizes_follow_the_footnote() {
        let settings = Settings::new(20);
        assert_eq!(settings.sketch_sizes(27_613, 47_236), (4723, 2761));
        assert_eq!(settings.sketch_sizes(326_186, 326_186), (3261, 3261));
        // Tall: the U-subproblem, whose sums run over the few columns, is exact.
        assert_eq!(settings.sketch_sizes(70_000, 784), (784, 7000));
        assert_eq!(settings.sketch_sizes(96, 2780), (278, 96));
        // Never below 4 k, never above all.
        assert_eq!(settings.sketch_sizes(300, 300), (80, 80));
        assert_eq!(settings.sketch_sizes(30, 30), (30, 30));
        let exact = Settings {
            sketch_cols: Some(Amount::Share(1.0)),
            sketch_rows: Some(Amount::Count(5)),
            ..settings
        };
        assert_eq!(exact.sketch_sizes(300, 200), (200, 5));
    }
}
