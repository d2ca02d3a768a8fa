//! Few rounds: every sum of M_r V_r and V_rᵀV_r is used as fully as possible. V_r is fitted to U until
//! convergence instead of being moved by one step, U is solved for, and momentum (extrapolation that is
//! withdrawn whenever the error has grown; Ang and Gillis, 2019) replaces many sums of plain alternation.
//! Each party starts with local iterations.

use partwise::Real;
use partwise::solver::CoordinateDescent;

use super::local::HALS;
use super::{Definition, Finish, Local, PartyRun, Settings, Stop, TracePoint, matrix};
use crate::error::{Error, Result};
use crate::fixed::{Part, PartShape, whole_gram};
use crate::risk::Exposure;
use crate::session::ALL;
use crate::sum::{SumKind, SumShape};

/// The number of sweeps that solve for U, given a sum.
const SOLVE: CoordinateDescent = CoordinateDescent { mu: 0.0, sweeps: 20 };
/// The initial momentum, its factors after a round in which the error fell or grew, and its maximum.
const MOMENTUM: f64 = 1.0;
const GROWTH: f64 = 1.3;
const DECAY: f64 = 0.5;
const MOST_MOMENTUM: f64 = 4.0;

/// The protocol `few-rounds`.
pub(super) struct FewRounds;

impl Definition for FewRounds {
    /// The number of local iterations of each party before the first sum.
    fn inner(&self) -> usize {
        50
    }

    fn rounds(&self) -> usize {
        10
    }

    fn uses(&self, parameter: &str) -> bool {
        const UNUSED: [&str; 9] = [
            "rho",
            "speed",
            "sketch",
            "sketch_records",
            "sketch_features",
            "solver",
            "alpha",
            "beta",
            "step",
        ];
        !UNUSED.contains(&parameter)
    }

    fn sums(&self, settings: &Settings, features: usize) -> Vec<SumShape> {
        let k = settings.rank;
        let parts = vec![PartShape::matrix(features, k), PartShape::gram(k), PartShape::scalars(1)];
        vec![SumShape::new(SumKind::ProductV, parts)]
    }

    /// M_r V_r lies in the span of the records.
    fn enough_records(&self, settings: &Settings, features: usize) -> usize {
        features.max(settings.rank).saturating_mul(2)
    }

    fn hides_in_the_crowd(&self) -> bool {
        false
    }

    fn risks(&self, exposure: &Exposure<'_>) -> Vec<Option<Error>> {
        vec![exposure.plain_shares(), exposure.pooled_span()]
    }

    fn membership_cure(&self) -> Option<&'static str> {
        Some("syn-sd, or more records per party than there are features, lowers this")
    }

    /// One sum per round. V_r was fitted to an extrapolated U; the result keeps the solution.
    fn run<T: Real>(&self, run: &mut PartyRun<'_, '_, T>) -> Result<Finish> {
        let PartyRun { settings, local, session, curve, gate, .. } = run;
        let k = settings.rank;
        start_alone(local, settings.inner);
        let mut momentum = Momentum { weight: MOMENTUM, last: None };
        for round in 1..=settings.rounds {
            let (seconds, bytes) = (session.now(), session.meter().bytes);
            let gram = Part::gram(&local.gram_v(), k);
            let parts = vec![matrix(&local.product_v(), k), gram, Part::scalars(&[local.norm()])];
            session.work(local.take_work());
            gate.before_upload(local, session);
            let total = session.sum(ALL, SumKind::ProductV, parts)?;
            let gram_v = whole_gram(&total.parts[1], k);
            let product: Vec<T> = total.parts[0].iter().map(|&value| T::from_f64(value)).collect();
            local.step_u(&SOLVE, product, &gram_v);
            gate.check_u(local, SumKind::ProductV, session)?;
            let cross: f64 = total.parts[0].iter().zip(&local.u).map(|(p, u)| p * u.to_f64()).sum();
            let model: f64 = local.gram_u().iter().zip(&gram_v).map(|(u, v)| u * v).sum();
            let squared_error = total.parts[2][0] - 2.0 * cross + model;
            let point = TracePoint { round: round - 1, seconds, squared_error, bytes };
            if curve.note(point, session) {
                return Ok(Finish { rounds: round, stopped_by: Stop::Tolerance });
            }
            if round < settings.rounds {
                local.u = momentum.carry(local.u.clone(), squared_error);
                local.fit_v();
            }
        }
        Ok(Finish { rounds: settings.rounds, stopped_by: Stop::Rounds })
    }
}

/// A party's local iterations from the common U. Only V_r is kept, so that U stays equal at all parties.
fn start_alone<T: Real>(local: &mut Local<T>, iterations: usize) {
    let common = local.u.clone();
    for _ in 0..iterations {
        local.sweep_v();
        local.own_step_u(&HALS);
    }
    local.fit_v();
    local.u = common;
}

/// A solution for U, and its error.
struct Solution<T> {
    u: Vec<T>,
    squared_error: f64,
}

/// How far U is extrapolated along the direction between consecutive solutions.
struct Momentum<T> {
    weight: f64,
    last: Option<Solution<T>>,
}

impl<T: Real> Momentum<T> {
    /// The U to which V is fitted next: extrapolated, or the solution itself if the error has grown.
    fn carry(&mut self, u: Vec<T>, squared_error: f64) -> Vec<T> {
        let last = self.last.replace(Solution { u: u.clone(), squared_error });
        let Some(last) = last else { return u };
        if squared_error > last.squared_error {
            self.weight *= DECAY;
            return u;
        }
        let weight = self.weight;
        self.weight = (weight * GROWTH).min(MOST_MOMENTUM);
        let carry = |(u, last): (&T, &T)| {
            let (u, last) = (u.to_f64(), last.to_f64());
            T::from_f64((u + weight * (u - last)).max(0.0))
        };
        u.iter().zip(&last.u).map(carry).collect()
    }
}
