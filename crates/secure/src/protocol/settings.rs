//! The settings that the parties of a run agree on.

use partwise::run::{Amount, Damping, SketchedSolver, Step};
use partwise::sketch::SketchKind;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Protocol;
use crate::encoding::{self, encode};
use crate::error::{Error, Result};
use crate::risk::Accepted;

/// The protection of contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregation {
    /// Masked: only sums can be read.
    Secure,
    /// Unprotected: the paper's exchange, in which the coordinator sees every contribution.
    Plain,
}

impl Aggregation {
    /// Both.
    pub const ALL: [Aggregation; 2] = [Aggregation::Secure, Aggregation::Plain];
}

/// Everything that the parties agree on before a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The method.
    pub protocol: Protocol,
    /// k.
    pub rank: usize,
    /// The public seed, of U's start and of sketches.
    pub seed: u64,
    /// T1: exchanges of U; of the asynchronous methods, exchanges of each group on average.
    pub rounds: usize,
    /// T2 (T of the asynchronous methods): local iterations between two of them.
    pub inner: usize,
    /// ρ of the relaxation weight ω_t = ρ / (ρ + t).
    pub rho: f64,
    /// The kind of sketch.
    pub sketch: SketchKind,
    /// d: what a party's records are sketched to; a tenth, but at least 4 k, if absent.
    pub sketch_records: Option<Amount>,
    /// d': what the features are sketched to, likewise.
    pub sketch_features: Option<Amount>,
    /// The solver of sketched subproblems.
    pub solver: SketchedSolver,
    /// α of its damping.
    pub alpha: f64,
    /// β of its damping.
    pub beta: f64,
    /// Units of the damping.
    pub step: Step,
    /// Stop when the relative change of the error per round is at most this, over 10 rounds.
    pub tolerance: f64,
    /// How shares travel.
    pub aggregation: Aggregation,
    /// c, the assumed number of colluding parties.
    pub colluders: usize,
    /// The accepted risks.
    pub accepted: Accepted,
}

impl Settings {
    /// The default maximum number of rounds.
    pub const ROUNDS: usize = 500;
    /// The default tolerance.
    pub const TOLERANCE: f64 = 1e-5;
    /// Default ρ.
    pub const RHO: f64 = 10.0;

    /// The defaults of a protocol.
    pub fn new(protocol: Protocol, rank: usize) -> Self {
        let definition = protocol.definition();
        let (alpha, beta) = SketchedSolver::Pcd.damping();
        Settings {
            protocol,
            rank,
            seed: 0,
            rounds: definition.rounds(),
            inner: definition.inner(),
            rho: Self::RHO,
            sketch: definition.sketch(),
            sketch_records: None,
            sketch_features: None,
            solver: SketchedSolver::Pcd,
            alpha,
            beta,
            step: Step::UnitFree,
            tolerance: Self::TOLERANCE,
            aggregation: Aggregation::Secure,
            colluders: 1,
            accepted: Accepted::default(),
        }
    }

    /// Checks the parameters against each other.
    pub fn check(&self) -> Result<()> {
        for (name, count) in [("rank", self.rank), ("rounds", self.rounds), ("inner", self.inner)] {
            if count == 0 {
                return Err(Error::parameter(name, "0 is too few; give 1 or more"));
            }
        }
        if !(self.rho > 0.0 && self.rho.is_finite()) {
            return Err(Error::parameter(
                "rho",
                format!("{} is out of range; give a number above 0", self.rho),
            ));
        }
        self.protocol.definition().check(self)?;
        // The rest is the same as of a sketched run.
        self.of_sketches().check(usize::MAX, usize::MAX)?;
        Ok(())
    }

    /// Refuses the first given parameter, by name, that the protocol does not use.
    pub fn check_given<'a>(&self, given: impl IntoIterator<Item = &'a str>) -> partwise::Result<()> {
        let method = self.protocol;
        // A tolerance of 0 asks for all rounds, which the asynchronous methods do anyway.
        let ignored = |parameter: &&str| {
            !(method.uses(parameter) || *parameter == "tolerance" && self.tolerance == 0.0)
        };
        let Some(unused) = given.into_iter().find(ignored) else { return Ok(()) };
        let users: Vec<Protocol> = Protocol::ALL.into_iter().filter(|method| method.uses(unused)).collect();
        Err(partwise::error::Error::unused(unused, method, &users))
    }

    /// Fills in the damping that was not given from the solver's defaults.
    pub fn default_damping(&mut self, given: impl Fn(&str) -> bool) {
        let (alpha, beta) = self.solver.damping();
        if !given("alpha") {
            self.alpha = alpha;
        }
        if !given("beta") {
            self.beta = beta;
        }
    }

    /// The number of attempts: two if parties may leave.
    pub fn attempts(&self) -> usize {
        if self.accepted.going_on_shows_the_leaver { 2 } else { 1 }
    }

    /// The maximum number of exchanges of U per attempt: in asynchronous protocols a fast group may do all of them.
    pub fn most_rounds(&self, groups: usize) -> usize {
        self.rounds.saturating_mul(groups.max(1))
    }

    /// The maximum over all attempts.
    pub fn all_rounds(&self, groups: usize) -> usize {
        self.most_rounds(groups).saturating_mul(self.attempts())
    }

    /// The maximum number of vectors with an entry per feature, or sketches of them, that all sums of a run
    /// open. The larger it is relative to the number of records, the more it tells about them.
    pub fn opened_vectors(&self, groups: usize) -> usize {
        self.all_rounds(groups).saturating_mul(self.protocol.definition().vectors_of_a_round(self))
    }

    /// d of sketches over this many features.
    pub(super) fn sketched_features(&self, features: usize) -> usize {
        self.of_sketches().sketch_sizes(features, features).1.min(features)
    }

    /// Converts the settings to those of the core library.
    pub(super) fn of_sketches(&self) -> partwise::run::Settings {
        partwise::run::Settings {
            algorithm: partwise::run::Algorithm::Dsanls,
            sketch: self.sketch,
            sketch_cols: self.sketch_records,
            sketch_rows: self.sketch_features,
            solver: self.solver,
            alpha: self.alpha,
            beta: self.beta,
            step: self.step,
            tolerance: self.tolerance,
            ..partwise::run::Settings::new(self.rank)
        }
    }

    /// The damping of U's steps, starting with a mean Gram diagonal of `start`.
    pub(super) fn damping(&self, start: f64) -> Damping {
        Damping::new(&self.of_sketches(), start)
    }

    /// The number of sums of a run without repeated rounds, votes on ranges or failed attempts.
    pub fn fewest_sums(&self, groups: usize) -> u64 {
        let of_round = 1 + if self.protocol.sketches_features() { self.inner } else { 0 };
        self.most_rounds(groups).saturating_mul(of_round) as u64
    }

    /// The default limit on the sums in which a party takes part, including votes and failed attempts. A sum
    /// whose numbers are out of range takes three, but this is rare, and the limit leaves as much room again
    /// for lost connections.
    pub fn most_sums(&self, groups: usize) -> u64 {
        let room = 6 * self.attempts() as u64;
        self.fewest_sums(groups).saturating_mul(room).saturating_add(100)
    }

    /// The digest of the settings, in which all parties must agree.
    pub fn run_hash(&self) -> [u8; 32] {
        // A run with other settings has other masks.
        Sha256::digest(encode("partwise run", 3, &encoding::settings(self))).into()
    }
}
