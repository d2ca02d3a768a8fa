//! From a matrix to factors, on one path for every way to run: in one process, on in-process workers, as processes of
//! an MPI job, block by block from a file, and from Python.
//!
//! ```text
//! Source -> open -> Opened -> plan -> Planned -> run -> Finished -> record -> FactorizationRecord
//! ```
//!
//! Differences between runs are values: the [`Source`], the [`Resources`] and the [`Finish`] of a [`Request`]. Each
//! step is checked before the next one begins, and only [`plan`] creates the input of [`run`]. The caller writes the files.

mod choice;
mod finish;
mod observe;
mod open;
mod part;
mod plan;
mod record;
mod request;
mod run;
mod source;

#[cfg(test)]
mod tests;

pub use choice::{Choice, Costs};
pub use finish::solve_rows;
pub use open::{Facts, Opened, open};
pub use part::{PlaceOf, RankBlocks, RankReader};
pub use plan::{Planned, RunPlan, Start, plan};
pub use record::record;
pub use request::{Finish, MemoryAdvice, Request, Resources};
pub use run::{Finished, run};
pub use source::{FileSource, MissingEntries, SharedMatrix, Source};

pub use observe::{observe, weights_for};
