//! What a method is: how iterations are arranged, and what of it a checkpoint keeps.
//!
//! A method is one file, and one line in [`Algorithm`].

pub mod auto;
mod bpp;
pub mod dsanls;
pub mod exact;
mod hals;
mod mu;

use serde::{Deserialize, Serialize};

use crate::Real;
use crate::device::{Device, Loaded};
use crate::error::{Error, Result};
use crate::grid::Factor;
use crate::objective::{Constants, Loss, Objective};
use crate::partition::{Access, Shard};
use crate::registry::registry;
use crate::run::evaluate::Evaluation;
use crate::run::links::Links;
use crate::run::report::Phases;
use crate::run::settings::Settings;
use crate::run::start::FactorRows;
use crate::run::streamed::Streamed;
use crate::solver::{Penalty, Solver};
use crate::threads::Threads;

macro_rules! methods {
    ($($variant:ident = $label:literal, $module:ident, $help:literal;)+) => {
        registry! {
            /// The methods.
            pub enum Algorithm of "method" {
                $($variant = $label, $help;)+
            }
        }

        impl Algorithm {
            /// What is true of the method whatever the run.
            pub(super) fn spec(self) -> &'static MethodSpec {
                match self {
                    $(Algorithm::$variant => &$module::SPEC,)+
                }
            }

            /// The method of a run about to begin.
            pub(super) fn start<'a, T: Real>(
                self,
                beginning: &Beginning<'a, '_, T>,
            ) -> Result<Box<dyn Method<T> + 'a>> {
                match self {
                    $(Algorithm::$variant => $module::start(beginning),)+
                }
            }
        }
    };
}

methods! {
    Auto = "auto", auto, "The fastest way to a given error that we know, chosen by counts";
    Hals = "hals", hals, "Exact coordinate descent, column by column";
    Mu = "mu", mu, "Multiplicative updates";
    Bpp = "bpp", bpp, "Alternating nonnegative least squares, each solved exactly by block principal pivoting";
    Dsanls = "dsanls", dsanls, "Distributed sketched ANLS (Alg. `alg:disSANLS`); with one process, SANLS";
}

impl Algorithm {
    /// Whether the method uses a parameter of [`Settings`], or of the machine. A parameter that no method names is used by
    /// all of them.
    pub fn uses(self, parameter: &str) -> bool {
        let named = |method: &Algorithm| method.spec().uses.contains(&parameter);
        named(&self) || !Algorithm::ALL.iter().any(named)
    }

    /// How the method reads M.
    pub fn access(self) -> Access {
        self.spec().access
    }
}

/// What is true of a method whatever the run.
pub struct MethodSpec {
    /// Parameters that some other methods ignore.
    pub uses: &'static [&'static str],
    /// How it reads M.
    pub access: Access,
    /// Whether it keeps components balanced where their scale is free.
    pub balances: bool,
    /// Whether runs from the same start differ by what is drawn on the way.
    pub draws: bool,
    /// Whether it can fill a column of U that a redraw of a dead component empties.
    pub fills_zeros: bool,
    /// Iterations between two evaluations by default.
    pub evaluate_every: fn(&Settings, &Sizes) -> usize,
}

impl MethodSpec {
    /// What the exact methods have in common: their error comes for nothing.
    pub const EXACT: MethodSpec = MethodSpec {
        uses: &["grid"],
        access: Access::Whole,
        balances: true,
        draws: false,
        fills_zeros: true,
        evaluate_every: |_, _| 1,
    };
}

/// Rows, columns and stored entries of the whole of M.
pub struct Sizes {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Stored entries.
    pub stored: usize,
}

/// What a method begins from.
pub struct Beginning<'a, 'b, T> {
    /// The part of M.
    pub shard: &'a Shard<T>,
    /// Where M is, if not in the shard.
    pub streamed: Option<&'a Streamed>,
    /// Whom the process talks to.
    pub links: Links<'b>,
    /// The parameters.
    pub settings: &'b Settings,
    /// The seed of this run.
    pub seed: u64,
    /// Iterations between two evaluations.
    pub every: usize,
    /// Penalties and bound of (U, V).
    pub terms: (Penalty, Penalty),
    /// Numbers of M.
    pub constants: Constants,
    /// The start.
    pub state: &'b FactorRows<T>,
}

impl<T: Real> Beginning<'_, '_, T> {
    /// Refuses a loss that cannot be lowered this way.
    pub fn require(&self, solver: &dyn Solver<T>) -> Result<()> {
        let Settings { loss, algorithm, .. } = self.settings;
        let objective = loss.objective::<T>();
        let problem = if !objective.supports(solver) {
            format!("{loss} cannot be minimized by {} ({algorithm}); choose another method", solver.name())
        } else if self.streamed.is_some() && *loss != Loss::Frobenius {
            format!("{loss} needs the matrix in memory; raise the memory limit, or use {}", Loss::Frobenius)
        } else {
            return Ok(());
        };
        Err(Error::parameter("loss", problem))
    }
}

/// What a method sees of its process.
pub struct Rank<'a, T> {
    /// The part of M.
    pub shard: &'a Shard<T>,
    /// The same, where the device can work on it.
    pub blocks: &'a Blocks<'a, T>,
    /// Whom the process talks to.
    pub links: Links<'a>,
    /// The host's threads.
    pub threads: &'a Threads,
    /// Where half steps run.
    pub device: &'a dyn Device<T>,
    /// What is minimised.
    pub objective: &'a dyn Objective<T>,
    /// Number of components.
    pub k: usize,
}

/// A process's blocks of M, where its device can work on them.
pub struct Blocks<'a, T> {
    /// The block that moves U.
    pub by_rows: Loaded<'a, T>,
    /// The block that moves V.
    pub by_cols: Loaded<'a, T>,
}

impl<'a, T: Real> Blocks<'a, T> {
    /// Loads a process's part of M.
    pub fn load(device: &dyn Device<T>, shard: &'a Shard<T>) -> Result<Self> {
        Ok(Blocks { by_rows: device.load(&shard.by_rows)?, by_cols: device.load(&shard.by_cols)? })
    }

    /// The block that moves a factor.
    pub fn of(&self, factor: Factor) -> &Loaded<'a, T> {
        match factor {
            Factor::U => &self.by_rows,
            Factor::V => &self.by_cols,
        }
    }
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
    fn auxiliary_factors(&mut self) -> Option<&mut FactorRows<T>> {
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
