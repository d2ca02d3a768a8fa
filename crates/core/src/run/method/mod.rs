//! The methods: how iterations are arranged, and what a checkpoint keeps of them.
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
            /// The properties of the method.
            pub(super) fn spec(self) -> &'static MethodSpec {
                match self {
                    $(Algorithm::$variant => &$module::SPEC,)+
                }
            }

            /// Creates the method for a run.
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
    /// Whether the method uses a parameter of [`Settings`] or of the machine. All methods use a parameter that none
    /// of them names.
    pub fn uses(self, parameter: &str) -> bool {
        let named = |method: &Algorithm| method.spec().uses.contains(&parameter);
        named(&self) || !Algorithm::ALL.iter().any(named)
    }

    /// How the method reads M.
    pub fn access(self) -> Access {
        self.spec().access
    }
}

/// The properties of a method.
pub struct MethodSpec {
    /// The parameters that it uses and some other methods ignore.
    pub uses: &'static [&'static str],
    /// How it reads M.
    pub access: Access,
    /// Whether the method keeps components balanced if their scale is free.
    pub balances: bool,
    /// Whether runs from the same start differ, because of random draws.
    pub draws: bool,
    /// Whether it can fill a column of U that a redraw of a dead component empties.
    pub fills_zeros: bool,
    /// Iterations between two evaluations by default.
    pub evaluate_every: fn(&Settings, &Sizes) -> usize,
}

impl MethodSpec {
    /// The properties that the exact methods share: their error comes for free.
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

/// What a method starts from.
pub struct Beginning<'a, 'b, T> {
    /// The part of M.
    pub shard: &'a Shard<T>,
    /// The file of M, if it is streamed.
    pub streamed: Option<&'a Streamed>,
    /// The communicators of the process.
    pub links: Links<'b>,
    /// The parameters.
    pub settings: &'b Settings,
    /// The seed of this run.
    pub seed: u64,
    /// Iterations between two evaluations.
    pub every: usize,
    /// Penalties and bound of (U, V).
    pub terms: (Penalty, Penalty),
    /// Statistics of M.
    pub constants: Constants,
    /// The objective.
    pub objective: &'b dyn Objective<T>,
    /// The start.
    pub state: &'b FactorRows<T>,
}

impl<T: Real> Beginning<'_, '_, T> {
    /// Rejects a loss that this method cannot minimize.
    pub fn require(&self, solver: &dyn Solver<T>) -> Result<()> {
        let Settings { loss, algorithm, .. } = self.settings;
        if self.objective.supports(solver) {
            return Ok(());
        }
        if self.settings.is_incomplete() && *loss == Loss::Frobenius {
            let problem = format!(
                "{algorithm} needs every entry, each with the same weight; use auto, hals, mu or bpp"
            );
            return Err(Error::parameter("algorithm", problem));
        }
        let solver = solver.name();
        let problem = format!("{loss} cannot be minimized by {solver} ({algorithm}); choose another method");
        Err(Error::parameter("loss", problem))
    }
}

/// The resources of a process as a method sees them.
pub struct Rank<'a, T> {
    /// The part of M.
    pub shard: &'a Shard<T>,
    /// Its blocks, as the device needs them.
    pub blocks: &'a Blocks<'a, T>,
    /// The communicators of the process.
    pub links: Links<'a>,
    /// The host's threads.
    pub threads: &'a Threads,
    /// The device on which half steps run.
    pub device: &'a dyn Device<T>,
    /// The objective.
    pub objective: &'a dyn Objective<T>,
    /// Number of components.
    pub k: usize,
}

/// A process's blocks of M, ready for the device.
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

/// A method.
pub trait Method<T> {
    /// One iteration, U then V; returns the error if the method has it for free.
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>>;

    /// Called if something else changed the factors, so that nothing kept from the last iteration is valid.
    fn factors_changed(&mut self) {}

    /// A description of what the method does.
    fn plan(&self) -> String;

    /// The state of the method that cannot be recomputed from the factors.
    fn save_state(&self) -> MethodState {
        MethodState::Stateless
    }

    /// The own rows of the auxiliary factors, if it has any.
    fn auxiliary_factors(&mut self) -> Option<&mut FactorRows<T>> {
        None
    }

    /// Restores what [`Method::save_state`] and [`Method::auxiliary_factors`] returned; false if that was another
    /// method's.
    fn restore(&mut self, state: &MethodState, _auxiliary: Option<FactorRows<T>>) -> bool {
        *state == MethodState::Stateless
    }
}

/// The state that a method needs from a checkpoint, in addition to the factors, to continue as if it had never
/// stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodState {
    /// HALS, MU and ANLS/BPP, and `auto` on a streamed matrix.
    Stateless,
    /// `auto` in memory.
    Auto(auto::Momentum),
    /// DSANLS in memory: the damping of both sides.
    Dsanls { u: dsanls::Damping, v: dsanls::Damping },
    /// DSANLS on a streamed matrix: only one side is sampled.
    StreamedDsanls { damping: dsanls::Damping },
}

impl MethodState {
    /// Whether a run of this method can have this state.
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
