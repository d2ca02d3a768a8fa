//! The protocols. Each sees its own part of M and "the sum of this over the cohort", and nothing of how the sum is
//! computed.
//!
//! A protocol is one file with a `Definition` (what it sums, what it risks, what a party does) and one line in the
//! list below; all parties of a run do the same. M_r has a row for each feature and a column for each of the
//! party's records: M_r ≈ U V_rᵀ.

#[macro_use]
mod registry;

mod asynchronous;
#[cfg(test)]
mod attacks;
mod curve;
mod few_rounds;
mod gate;
pub mod leak;
mod limited;
mod local;
mod pooled;
mod run;
mod settings;
mod sketches;
mod synchronous;
#[cfg(test)]
mod tests;

use partwise::Real;
use partwise::sketch::SketchKind;

pub use asynchronous::Server;
pub use curve::TracePoint;
pub use local::Local;
pub(crate) use local::{HALS, start_u};
pub use run::{Common, Ended, Stop, run};
pub use settings::{Aggregation, Settings};
pub use sketches::party_seed;
pub(crate) use sketches::{dense_sketch, features_sketch, limited_sketch};

use crate::error::{Error, Result};
use crate::fixed::Part;
use crate::risk::Exposure;
use crate::session::{ALL, Session};
pub use crate::sum::upload_sizes;
use crate::sum::{SumKind, SumShape};
use asynchronous::Asynchronous;
use curve::Curve;
use few_rounds::FewRounds;
use gate::{Gate, OpenedDiagonal};
use limited::Limited;
use pooled::Pooled;
use synchronous::Synchronous;

protocols! {
    /// HALS on the pooled matrix, U from the sums of M_r V_r and V_rᵀ V_r.
    Pooled, "pooled", Pooled;
    /// U is solved for from few sums of M_r V_r and V_rᵀ V_r, with momentum.
    FewRounds, "few-rounds", FewRounds;
    /// Alg. `Syn_SD`: local NMF, U averaged.
    SynSd, "syn-sd", Synchronous { sketches_features: false, sketches_records: false };
    /// Alg. `Syn_SSD` with U sketched where it is exchanged.
    SynSsdU, "syn-ssd-u", Synchronous { sketches_features: true, sketches_records: false };
    /// Alg. `Syn_SSD` with V sketched in the U-subproblem.
    SynSsdV, "syn-ssd-v", Synchronous { sketches_features: false, sketches_records: true };
    /// Alg. `Syn_SSD` with both.
    SynSsdUv, "syn-ssd-uv", Synchronous { sketches_features: true, sketches_records: true };
    /// Alg. `asyn_server` and `asyn_client_SD`.
    AsynSd, "asyn-sd", Asynchronous { sketches_records: false };
    /// `syn-sd` with V sketched in the U-subproblem.
    AsynSsdV, "asyn-ssd-v", Asynchronous { sketches_records: true };
    /// DSANLS on the sums of M_r S_r, for as many iterations as show no record (Sec. 4.1).
    DsanlsLimited, "dsanls-limited", Limited;
}

/// A protocol.
pub(crate) trait Definition: Sync {
    /// Whether parties do not wait for each other.
    fn is_asynchronous(&self) -> bool {
        false
    }

    /// Whether the U-subproblem is sketched over the party's records.
    fn sketches_records(&self) -> bool {
        false
    }

    /// Whether the V-subproblem is sketched over features.
    fn sketches_features(&self) -> bool {
        false
    }

    /// Local iterations between two exchanges of U, unless asked otherwise: T2, and T of the asynchronous methods.
    fn inner(&self) -> usize {
        2
    }

    /// The default maximum number of exchanges of U.
    fn rounds(&self) -> usize {
        Settings::ROUNDS
    }

    /// The kind of sketch, unless asked otherwise.
    fn sketch(&self) -> SketchKind {
        SketchKind::Subsample
    }

    /// Whether V_r is fitted again to the final U.
    fn fits_v_last(&self) -> bool {
        true
    }

    /// Whether a parameter of [`Settings`] is used. Every parameter that some method ignores is listed here.
    fn uses(&self, parameter: &str) -> bool {
        match parameter {
            "rho" | "speed" => self.is_asynchronous(),
            "tolerance" => !self.is_asynchronous(),
            "sketch" => self.sketches_records() || self.sketches_features(),
            "sketch_records" => self.sketches_records(),
            "sketch_features" => self.sketches_features(),
            _ => true,
        }
    }

    /// Refuses settings that only this method cannot have.
    fn check(&self, _settings: &Settings) -> Result<()> {
        Ok(())
    }

    /// The sums of this protocol in addition to those of all protocols.
    fn sums(&self, settings: &Settings, features: usize) -> Vec<SumShape>;

    /// The number of vectors of U's length, or sketches of them, that a round opens.
    fn vectors_of_a_round(&self, settings: &Settings) -> usize {
        settings.rank
    }

    /// The number of records from which an unmasked share of a party reveals none of them.
    fn enough_records(&self, settings: &Settings, features: usize) -> usize {
        settings.rank.saturating_mul(2).max(features)
    }

    /// Whether few records show in its sums if they are few at all parties together. Otherwise each party's own count
    /// matters, which is a risk of its own.
    fn hides_in_the_crowd(&self) -> bool {
        true
    }

    /// What others could learn, in the order in which risks are refused.
    fn risks(&self, exposure: &Exposure<'_>) -> Vec<Option<Error>> {
        vec![exposure.plain_shares(), exposure.few_records()]
    }

    /// What lowers what the audit has found, if more than fewer rounds and more records does.
    fn membership_cure(&self) -> Option<&'static str> {
        None
    }

    /// Runs the protocol at a party, from the starts of U and V_r to the final U.
    fn run<T: Real>(&self, run: &mut PartyRun<'_, '_, T>) -> Result<Finish>
    where
        Self: Sized;
}

/// The data and resources of a party while it runs a protocol.
pub(crate) struct PartyRun<'r, 's, T> {
    pub settings: &'r Settings,
    pub local: &'r mut Local<T>,
    pub session: &'r mut Session<'s>,
    pub curve: &'r mut Curve,
    /// The cohort of the party's group in an asynchronous method.
    pub group: u8,
    /// ‖M‖² of all parties.
    pub norm: f64,
    pub gate: Gate,
}

/// How a protocol ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish {
    /// The number of rounds.
    pub rounds: usize,
    /// Why it ended.
    pub stopped_by: Stop,
}

/// The first sum of methods that damp the steps of U.
fn first_diagonal_sum() -> SumShape {
    SumShape::scalars(SumKind::FirstDiagonal, 1)
}

/// The diagonals of V_rᵀV_r, summed over the parties.
struct Diagonals {
    sum: f64,
    parties: usize,
}

/// Sums the diagonals of V_rᵀV_r, with V_r fitted once to the start of U: the scale that the weight of U's steps begins with.
/// That of the start itself can be far off where a few records are much larger than the others.
fn first_diagonal<T: Real>(run: &mut PartyRun<'_, '_, T>) -> Result<Diagonals> {
    let PartyRun { local, session, gate, norm, .. } = run;
    local.sweep_v();
    session.work(local.take_work());
    let parts = vec![Part::scalars(&[local.diagonal()])];
    let total = session.sum(ALL, SumKind::FirstDiagonal, parts)?;
    let sum = total.parts[0][0];
    gate.check_diagonal(local, OpenedDiagonal { sum, norm: *norm }, session)?;
    Ok(Diagonals { sum, parties: total.parties })
}

/// The numbers of a factor, for a sum.
fn matrix<T: Real>(factor: &[T], columns: usize) -> Part {
    Part::matrix(factor.iter().map(|value| value.to_f64()).collect(), columns)
}

/// The mean of a summed factor.
fn mean<T: Real>(sum: &[f64], parties: usize) -> Vec<T> {
    sum.iter().map(|value| T::from_f64(value / parties as f64)).collect()
}
