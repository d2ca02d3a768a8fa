//! Syn-SD and Syn-SSD (Alg. `Syn_SD` and `Syn_SSD`): every party factorizes by itself with its own copy of U, and all
//! copies are averaged every T2 iterations; sketched, the V-step uses the average of S U in each of them.

use partwise::Real;
use partwise::run::{Damping, SketchedSide};
use partwise::sketch::Distribution;

use super::{
    Definition, Diagonals, Finish, Local, OpenedDiagonal, PartyRun, Settings, Stop, TracePoint,
    first_diagonal, first_diagonal_sum, matrix, mean,
};
use crate::error::Result;
use crate::fixed::{Part, PartShape};
use crate::session::{ALL, Session};
use crate::sum::{SumKind, SumShape};

/// Iterations between two evaluations where the error costs a product more: about a tenth of the time.
const EVALUATE_EVERY: usize = 10;
/// The number of parts into which evaluations divide even a short run.
const EVALUATED_PARTS: usize = 4;

/// `syn-sd`, `syn-ssd-u`, `syn-ssd-v` and `syn-ssd-uv`.
pub(super) struct Synchronous {
    pub sketches_features: bool,
    pub sketches_records: bool,
}

impl Definition for Synchronous {
    fn sketches_records(&self) -> bool {
        self.sketches_records
    }

    fn sketches_features(&self) -> bool {
        self.sketches_features
    }

    fn sums(&self, settings: &Settings, features: usize) -> Vec<SumShape> {
        let parts = vec![PartShape::matrix(features, settings.rank), PartShape::scalars(2)];
        let mut sums = vec![first_diagonal_sum(), SumShape::new(SumKind::U, parts)];
        if self.sketches_features {
            let rows = settings.sketched_features(features);
            sums.push(SumShape::new(SumKind::SketchedU, vec![PartShape::matrix(rows, settings.rank)]));
        }
        sums
    }

    /// Sketched, S U is opened in every iteration.
    fn vectors_of_a_round(&self, settings: &Settings) -> usize {
        let sketched = if self.sketches_features { settings.inner } else { 0 };
        settings.rank.saturating_mul(1 + sketched)
    }

    /// T1 rounds of T2 iterations. U's steps are proximal, with the same weight at all parties. A party that barely uses
    /// a component then barely moves it, whereas the minimum of its own problem could lie anywhere. As the weight grows,
    /// the mean of all steps approaches a step of the pooled problem.
    fn run<T: Real>(&self, run: &mut PartyRun<'_, '_, T>) -> Result<Finish> {
        let Diagonals { sum, parties } = first_diagonal(run)?;
        let PartyRun { settings, local, session, curve, gate, norm, .. } = run;
        let records = local.records_sketch(settings, session.me());
        let features = self.sketches_features.then(|| local.features_side(settings));
        let diagonal = sum / parties as f64;
        let mut steps = Steps { records, features, damping: settings.damping(diagonal), diagonal };
        // Only if every step is exact; sketched steps gain nothing by it, as measured.
        let begun = steps.are_exact().then(|| local.squares_u());
        let every = steps.evaluation_interval(settings);
        for round in 0..settings.rounds {
            // The state at the beginning of this round, evaluated from the product that its first step needs
            // anyway.
            let (seconds, bytes) = (session.now(), session.meter().bytes);
            let evaluated = round > 0 && round % every == 0;
            let mut own_error = 0.0;
            gate.begin_steps(local);
            for inner in 0..settings.inner {
                let iteration = round * settings.inner + inner;
                let error = steps.step_u(local, iteration, evaluated && inner == 0);
                own_error = error.unwrap_or(own_error);
                steps.step_v(local, session, iteration)?;
                session.work(local.take_work());
            }
            gate.end_steps(local);
            gate.before_upload(local, session);
            let parts = vec![matrix(&local.u, settings.rank), Part::scalars(&[own_error, local.diagonal()])];
            let total = session.sum(ALL, SumKind::U, parts)?;
            local.u = mean(&total.parts[0], total.parties);
            gate.check_u(local, SumKind::U, session)?;
            gate.check_diagonal(local, OpenedDiagonal { sum: total.parts[1][1], norm: *norm }, session)?;
            if let Some(begun) = &begun {
                local.rescale(begun);
            }
            steps.diagonal = total.parts[1][1] / total.parties as f64;
            let point = TracePoint { round, seconds, squared_error: total.parts[1][0], bytes };
            if evaluated && curve.note(point, session) {
                return Ok(Finish { rounds: round + 1, stopped_by: Stop::Tolerance });
            }
        }
        Ok(Finish { rounds: settings.rounds, stopped_by: Stop::Rounds })
    }
}

/// A party's steps between two exchanges.
struct Steps {
    /// The sketch of the party's records, if they are sketched.
    records: Option<Distribution>,
    /// V's side, if features are sketched.
    features: Option<SketchedSide>,
    damping: Damping,
    /// The mean diagonal of V_rᵀV_r over the parties.
    diagonal: f64,
}

impl Steps {
    fn are_exact(&self) -> bool {
        self.records.is_none() && self.features.is_none()
    }

    /// Rounds between two evaluations.
    fn evaluation_interval(&self, settings: &Settings) -> usize {
        match self.records {
            Some(_) => EVALUATE_EVERY.div_ceil(settings.inner).min(settings.rounds.div_ceil(EVALUATED_PARTS)),
            None => 1,
        }
    }

    /// A step on U; the party's error before it, if it is to be evaluated.
    fn step_u<T: Real>(&mut self, local: &mut Local<T>, iteration: usize, evaluated: bool) -> Option<f64> {
        let solver = self.damping.next::<T>(iteration, self.diagonal, 0.0);
        let product = (self.records.is_none() || evaluated).then(|| local.product_v());
        let error = match &product {
            Some(product) if evaluated => Some(local.error_from(dot(product, &local.u))),
            _ => None,
        };
        match (&self.records, product) {
            (Some(sketch), _) => {
                // Evaluation counts as no work.
                local.take_work();
                local.sketched_u(&*solver, sketch, iteration);
            }
            (None, Some(product)) => {
                let gram = local.gram_v();
                local.step_u(&*solver, product, &gram);
            }
            (None, None) => {}
        }
        error
    }

    /// A step on V_r; sketched, with the average of all parties' S U.
    fn step_v<T: Real>(
        &mut self,
        local: &mut Local<T>,
        session: &mut Session<'_>,
        iteration: usize,
    ) -> Result<()> {
        let Some(side) = &mut self.features else {
            local.sweep_v();
            return Ok(());
        };
        let operator = side.distribution.draw::<T>(iteration);
        let summand = local.project_u(&*operator);
        session.work(local.take_work());
        let total = session.sum(ALL, SumKind::SketchedU, vec![matrix(&summand, local.rank())])?;
        let b: Vec<T> = mean(&total.parts[0], total.parties);
        local.sketched_v(side, iteration, &*operator, &b);
        Ok(())
    }
}

/// ⟨A, B⟩ in f64.
fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
}
