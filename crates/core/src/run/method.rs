//! What a method is: how iterations are arranged, and what of it a checkpoint keeps.

use serde::{Deserialize, Serialize};

use super::evaluate::Evaluation;
use super::links::Links;
use super::report::Phases;
use super::settings::Algorithm;
use super::start::FactorRows;
use super::{auto, dsanls};
use crate::error::Result;
use crate::partition::Shard;
use crate::threads::Threads;

/// What a method sees of its rank.
pub struct Rank<'a, T> {
    pub shard: &'a Shard<T>,
    pub links: Links<'a>,
    pub threads: &'a Threads,
    pub k: usize,
}

/// One way to take a step.
pub trait Method<T> {
    /// One iteration, U then V; returns the error where the method has it for nothing.
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>>;

    /// Something else changed the factors: nothing kept from the last iteration holds.
    fn factors_changed(&mut self) {}

    /// What the method does, in words.
    fn plan(&self) -> String;

    /// What the method knows in addition to the factors and cannot recompute from them.
    fn save_state(&self) -> MethodState {
        MethodState::Stateless
    }

    /// Its own rows of two further factors, if it has them.
    fn auxiliary_factors(&self) -> Option<&FactorRows<T>> {
        None
    }

    /// Takes back what [`Method::save_state`] and [`Method::auxiliary_factors`] gave; false if that was another
    /// method's.
    fn restore(&mut self, state: &MethodState, _auxiliary: Option<FactorRows<T>>) -> bool {
        *state == MethodState::Stateless
    }
}

/// What a method needs from a checkpoint in addition to the factors to continue as if it had never stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodState {
    /// HALS, MU and ANLS/BPP, and `auto` on a matrix that stays in its file.
    Stateless,
    /// `auto` in memory.
    Auto(auto::Momentum),
    /// DSANLS in memory: the damping of both sides.
    Dsanls { u: dsanls::Damping, v: dsanls::Damping },
    /// DSANLS on a matrix that stays in its file: only one side is sampled.
    StreamedDsanls { damping: dsanls::Damping },
}

impl MethodState {
    /// Whether a run of this method can have had it.
    pub fn is_plausible(&self, algorithm: Algorithm) -> bool {
        match (self, algorithm) {
            (MethodState::Stateless, algorithm) => algorithm != Algorithm::Dsanls,
            (MethodState::Auto(momentum), Algorithm::Auto) => momentum.is_plausible(),
            (MethodState::Dsanls { u, v }, Algorithm::Dsanls) => u.is_plausible() && v.is_plausible(),
            (MethodState::StreamedDsanls { damping }, Algorithm::Dsanls) => damping.is_plausible(),
            _ => false,
        }
    }
}
