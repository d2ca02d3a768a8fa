//! `auto`: HALS with several sweeps for each product, and momentum with restarts (Ang and Gillis 2019).
//!
//! U is solved for at V_y = max{V + β (V − V'), 0}, V' the V before; V at U_y likewise. What counts as the factors is
//! (U_y, V), whose error comes for nothing. Where it rises, V_y falls back to V and β shrinks.

use serde::{Deserialize, Serialize};

use super::driver::penalty;
use super::evaluate::{CANCELS_BELOW, Evaluation, relative_error};
use super::exact::{gram_of_all, half_step};
use super::start::{Constants, State};
use super::{Method, Phases, Rank};
use crate::Real;
use crate::comm::{Numbers, Reduction};
use crate::error::Result;
use crate::grid::Factor;
use crate::partition::Shard;
use crate::solver::{Moving, Problem, Solver, Terms};

/// How fast the momentum may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// β.
    weight: f64,
    /// What β may grow to for now.
    ceiling: f64,
    /// The squared relative error, penalties included, after the last iteration.
    last: f64,
}

impl Pace {
    const BEGIN: Pace = Pace { weight: 0.5, ceiling: 1.0, last: f64::INFINITY };

    /// After an iteration that led to `objective`; says whether it was too fast.
    fn judge(&mut self, objective: f64) -> bool {
        let rose = objective > self.last;
        if rose {
            self.ceiling = self.weight;
            self.weight /= 1.5;
        } else {
            self.weight = (1.05 * self.weight).min(self.ceiling);
            self.ceiling = (1.01 * self.ceiling).min(1.0);
        }
        self.last = objective;
        rose
    }
}

/// The state beside the factors.
pub struct Auto<T> {
    terms: (Terms, Terms),
    constants: Constants,
    sweeps: (usize, usize),
    pace: Pace,
    /// The last U that was solved for, and V_y.
    beside: Option<State<T>>,
}

impl<T: Real> Auto<T> {
    /// A run about to begin.
    pub fn new(shard: &Shard<T>, k: usize, terms: (Terms, Terms), constants: Constants) -> Self {
        let sweeps = (sweeps(shard.stored, shard.rows, k), sweeps(shard.stored, shard.cols, k));
        Auto { terms, constants, sweeps, pace: Pace::BEGIN, beside: None }
    }
}

/// Sweeps for each product, by what they cost.
pub fn sweeps(stored: usize, rows: usize, k: usize) -> usize {
    let set = std::env::var("PW_SWEEPS").ok().and_then(|s| s.parse().ok());
    if let Some(set) = set {
        return set;
    }
    let product = stored as f64 / rows as f64;
    ((1.0 + 0.5 * product / k as f64) as usize).clamp(1, 3)
}

impl<T: Real> Method<T> for Auto<T> {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        _iteration: usize,
        state: &mut State<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let beside = self.beside.get_or_insert_with(|| state.clone());
        let beta = self.pace.weight;
        let solver = |sweeps| Solver::CoordinateDescent { mu: 0.0, sweeps };

        let gram = gram_of_all(rank, &beside.v, phases)?;
        let problem = Problem { solver: solver(self.sweeps.0), gram: &gram, terms: self.terms.0 };
        let u = Moving { factor: &mut state.u, momentum: Some((beta, &mut beside.u)) };
        half_step(rank, Factor::U, &problem, u, &beside.v, phases)?;

        let gram_u = gram_of_all(rank, &state.u, phases)?;
        let problem = Problem { solver: solver(self.sweeps.1), gram: &gram_u, terms: self.terms.1 };
        let v = Moving { factor: &mut beside.v, momentum: Some((beta, &mut state.v)) };
        let updated = half_step(rank, Factor::V, &problem, v, &state.u, phases)?;

        let gram_v = gram_of_all(rank, &state.v, phases)?;
        let mut cross = [updated.cross];
        rank.links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut cross))?;
        let model = gram_u.iter().zip(&gram_v).map(|(u, v)| u * v).sum();
        let error = relative_error(self.constants.norm, cross[0], model);
        let penalty = penalty(rank.links.all, state, self.terms, rank.k)?;
        if self.pace.judge(error * error + 2.0 * penalty / self.constants.norm) {
            beside.v.copy_from_slice(&state.v);
        }
        let dead = (0..rank.k).filter(|j| gram_v[j * (rank.k + 1)] == 0.0).collect();
        // NaN passes on, to be reported.
        Ok(if error < CANCELS_BELOW { None } else { Some(Evaluation { error, dead }) })
    }

    fn factors_changed(&mut self) {
        self.beside = None;
    }
}
