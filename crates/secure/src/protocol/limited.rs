//! DSANLS between parties, for as many iterations as determine no record (Sec. 4.1): A = M S and B = SᵀV are opened
//! as sums over the parties, and every party updates the whole of U; V_r stays at its party.

use partwise::Real;
use partwise::run::Amount;
use partwise::sketch::{Distribution, SketchKind};

use super::leak::{Budget, OpenedSketches};
use super::{
    Definition, Finish, Local, PartyRun, Settings, Stop, TracePoint, first_diagonal, first_diagonal_sum,
    limited_sketch, matrix,
};
use crate::error::{Error, Result};
use crate::fixed::{Part, PartShape};
use crate::risk::Exposure;
use crate::session::{ALL, Session};
use crate::sum::{SumKind, SumShape};

/// Rounds between two evaluations of the error.
const EVALUATE_EVERY: usize = 5;

/// `dsanls-limited`.
pub(super) struct Limited;

impl Definition for Limited {
    fn sketches_records(&self) -> bool {
        true
    }

    fn inner(&self) -> usize {
        1
    }

    /// Subsampling would reveal records.
    fn sketch(&self) -> SketchKind {
        SketchKind::Gaussian
    }

    fn uses(&self, parameter: &str) -> bool {
        !["inner", "rho", "speed"].contains(&parameter)
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        if let Some(Amount::Share(_)) = settings.sketch_records {
            return Err(Error::parameter(
                "sketch_records",
                "dsanls-limited needs the same number at every party, but a share depends on the number of records; \
                 give a number",
            ));
        }
        Ok(())
    }

    fn sums(&self, settings: &Settings, features: usize) -> Vec<SumShape> {
        let size = sketch_size(settings);
        let parts = vec![
            PartShape::matrix(features, size),
            PartShape::matrix(size, settings.rank),
            PartShape::scalars(2),
        ];
        vec![
            first_diagonal_sum(),
            SumShape::scalars(SumKind::FirstSketch, 1),
            SumShape::new(SumKind::SketchedM, parts),
        ]
    }

    fn vectors_of_a_round(&self, settings: &Settings) -> usize {
        sketch_size(settings)
    }

    /// M_r S_r lies in the span of the records.
    fn enough_records(&self, settings: &Settings, features: usize) -> usize {
        features.max(settings.rank).saturating_mul(2)
    }

    fn risks(&self, exposure: &Exposure<'_>) -> Vec<Option<Error>> {
        vec![
            exposure.leaver(),
            exposure.plain_shares(),
            exposure.few_records(),
            exposure.subsampled_records(),
        ]
    }

    /// The parties draw their sketches from seeds that all know, each one round ahead: a party that the next one
    /// would expose says so with this one, and all stop.
    fn run<T: Real>(&self, run: &mut PartyRun<'_, '_, T>) -> Result<Finish> {
        let diagonal = first_diagonal(run)?.sum;
        let PartyRun { settings, local, session, curve, .. } = run;
        let distribution = limited_sketch(settings, session.me(), local.records());
        let mut u_side = local.side(settings, distribution, diagonal);
        let mut v_side = local.features_side(settings);
        let mut guard = Guard::new(settings, distribution, local, session.sketches_before());
        guard.check_first(local, session)?;
        for round in 0..settings.rounds {
            let (seconds, bytes) = (session.now(), session.meter().bytes);
            let evaluated = round > 0 && round % EVALUATE_EVERY == 0;
            let own_error = if evaluated { local.squared_error()? } else { 0.0 };
            let operator = u_side.distribution.draw::<T>(round);
            let (a, b) = local.sketched_records(&*operator, distribution.size);
            session.work(local.take_work());
            let last = round + 1 == settings.rounds;
            let next = refusal(last || guard.may_open(local, round + 1));
            let parts = vec![
                matrix(&a, distribution.size),
                matrix(&b, settings.rank),
                Part::scalars(&[own_error, next]),
            ];
            let total = session.sum(ALL, SumKind::SketchedM, parts)?;
            let real =
                |values: &[f64]| -> Vec<T> { values.iter().map(|&value| T::from_f64(value)).collect() };
            let (a, b) = (real(&total.parts[0]), real(&total.parts[1]));
            local.sketched_u_of_all(&mut u_side, round, a, &b)?;
            let operator = v_side.distribution.draw::<T>(round);
            let b = local.project_u(&*operator);
            local.sketched_v(&mut v_side, round, &*operator, &b);
            session.work(local.take_work());
            if total.parts[2][1] > 0.5 {
                return Ok(Finish { rounds: round + 1, stopped_by: Stop::LeakBudget });
            }
            let point = TracePoint { round, seconds, squared_error: total.parts[2][0], bytes };
            if evaluated && curve.note(point, session) {
                return Ok(Finish { rounds: round + 1, stopped_by: Stop::Tolerance });
            }
        }
        Ok(Finish { rounds: settings.rounds, stopped_by: Stop::Rounds })
    }
}

/// The sketches that were opened of a party so far.
struct Guard {
    distribution: Distribution,
    budget: Budget,
    /// Whether a sketch that determines a record is refused.
    checked: bool,
}

impl Guard {
    /// Starts from the sketches `before`, which earlier runs opened.
    fn new<T: Real>(
        settings: &Settings,
        distribution: Distribution,
        local: &Local<T>,
        before: &[OpenedSketches],
    ) -> Self {
        let checked = !settings.accepted.subsampling_opens_records;
        let mut budget = Budget::new(distribution.length);
        for opened in before.iter().filter(|_| checked) {
            let distribution = opened.distribution(local.records());
            for round in 0..opened.rounds {
                budget.open_before(&local.sketch_matrix(&distribution, round), opened.size);
            }
        }
        Guard { distribution, budget, checked }
    }

    /// Whether the sketch of a round, together with those before it, determines no record.
    fn may_open<T: Real>(&mut self, local: &Local<T>, round: usize) -> bool {
        let size = self.distribution.size;
        !self.checked || self.budget.open(&local.sketch_matrix(&self.distribution, round), size)
    }

    /// Whether the first sketches of all parties determine no record.
    fn check_first<T: Real>(&mut self, local: &Local<T>, session: &mut Session<'_>) -> Result<()> {
        let refused = refusal(self.may_open(local, 0));
        let total = session.sum(ALL, SumKind::FirstSketch, vec![Part::scalars(&[refused])])?;
        if total.parts[0][0] > 0.5 {
            let problem = format!(
                "a sketch with {} columns would reveal a record of a party with few records, or of one that has opened much of \
                 them in earlier runs; use a smaller one, or another protocol",
                self.distribution.size
            );
            return Err(Error::parameter("sketch_records", problem));
        }
        Ok(())
    }
}

/// All stop at any sum above 0. It reveals how many parties have reached their bound, and the round in which it
/// does reveals about how many records the smallest of them has, as `docs/secure.md` says.
fn refusal(may_open: bool) -> f64 {
    if may_open { 0.0 } else { 1.0 }
}

/// d, the same at every party.
pub fn sketch_size(settings: &Settings) -> usize {
    match settings.sketch_records {
        Some(Amount::Count(count)) => count,
        // A share would refer to the number of records, which must not be disclosed.
        _ => 2 * settings.rank,
    }
}
