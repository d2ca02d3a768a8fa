//! The choices that [`Nmf`](crate::Nmf) and [`Reader`](crate::Reader) offer.

use partwise_core::pipeline::MissingEntries;

pub use partwise_core::Precision;
pub use partwise_core::comm::Network;
pub use partwise_core::grid::Grid;
pub use partwise_core::io::{ImageShape, ImageSide, Presence};
pub use partwise_core::objective::Loss;
pub use partwise_core::run::{
    Algorithm as Method, Amount, Init, Normalize, Side, SketchedSolver, Step, Stop,
};
pub use partwise_core::sketch::SketchKind;

/// Which entries of a matrix are unknown, rather than what they seem to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Those that are NaN; in a text table also `NA` and empty cells.
    Nan,
    /// Those that a sparse matrix does not store.
    Unstored,
    /// Those that are 0, stored or not.
    Zero,
}

impl Missing {
    /// The name in run records.
    pub(crate) fn entries(self) -> MissingEntries {
        match self {
            Missing::Nan => MissingEntries::Nan,
            Missing::Unstored => MissingEntries::Unstored,
            Missing::Zero => MissingEntries::Zero,
        }
    }

    /// The choice of a run record, unless it is a file.
    pub(crate) fn of(entries: &MissingEntries) -> Option<Self> {
        match entries {
            MissingEntries::Nan => Some(Missing::Nan),
            MissingEntries::Unstored => Some(Missing::Unstored),
            MissingEntries::Zero => Some(Missing::Zero),
            MissingEntries::Mask(_) => None,
        }
    }
}

/// When to save a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Every {
    /// After this many iterations.
    Iterations(usize),
    /// After this many seconds.
    Seconds(f64),
}

/// The sketch of sketched steps: a built-in kind, or a custom [`Sketch`](crate::Sketch).
#[derive(Clone, Debug)]
pub enum SketchChoice {
    /// A built-in kind.
    Kind(SketchKind),
    /// A custom sketch.
    Custom(crate::Sketch),
}

impl From<SketchKind> for SketchChoice {
    fn from(kind: SketchKind) -> Self {
        SketchChoice::Kind(kind)
    }
}

impl From<crate::Sketch> for SketchChoice {
    fn from(sketch: crate::Sketch) -> Self {
        SketchChoice::Custom(sketch)
    }
}

/// A number (`usize`) or a share (`f64`) of rows or columns.
pub trait IntoAmount {
    /// Converts to an amount.
    fn into_amount(self) -> Amount;
}

impl IntoAmount for usize {
    fn into_amount(self) -> Amount {
        Amount::Count(self)
    }
}

impl IntoAmount for f64 {
    fn into_amount(self) -> Amount {
        Amount::Share(self)
    }
}

impl IntoAmount for Amount {
    fn into_amount(self) -> Amount {
        self
    }
}
