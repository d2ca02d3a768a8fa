//! DSANLS between parties, for as many iterations as show no record (Sec. 4.1): A = M S and B = SᵀV are opened as sums
//! over the parties, and everybody moves the whole of U; V_r is the party's own affair.

use partwise::Real;
use partwise::sketch::Distribution;

use super::leak::Budget;
use super::{Line, Local, Log, Settings, Stop, first_diagonal, limited_sketch, matrix};
use crate::error::{Error, Result};
use crate::fixed::Part;
use crate::session::{ALL, Session};

/// Rounds between two evaluations of the error.
const EVALUATE_EVERY: usize = 5;

/// The parties draw their sketches from seeds that all know, each a round ahead: whoever would show a record by the next
/// one says so with this one, and all stop.
pub fn run<T: Real>(
    settings: &Settings,
    local: &mut Local<T>,
    session: &mut Session<'_>,
    log: &mut Log,
) -> Result<(usize, Stop)> {
    let k = settings.rank;
    let records = local.records();
    let Distribution { seed, purpose, size, .. } = limited_sketch(settings, session.me(), records);
    let (diagonal, _) = first_diagonal(local, session)?;
    let mut u_side = local.side(settings, (purpose, seed), (records, size), diagonal);
    let mut v_side = local.features_side(settings);
    let mut budget = Budget::new(records);
    let checked = !settings.accepted.subsampling_opens_records;
    let distribution = u_side.distribution;
    let mut may_open = |local: &Local<T>, round: usize| {
        let operator = distribution.draw::<T>(round);
        !checked || budget.open(&local.sketch_matrix(&*operator, size), size)
    };
    let total = session.sum(ALL, "the first sketch", vec![Part::scalars(&[refusal(may_open(local, 0))])])?;
    if total.parts[0][0] > 0.5 {
        let problem = format!(
            "a sketch to {size} columns would show a record of a party that has few; lower it, or choose another protocol"
        );
        return Err(Error::parameter("--sketch-records", problem));
    }
    for round in 0..settings.rounds {
        let reached = (session.now(), session.bytes);
        let evaluated = round > 0 && round % EVALUATE_EVERY == 0;
        let own_error = if evaluated { local.squared_error()? } else { 0.0 };
        let operator = u_side.distribution.draw::<T>(round);
        let (a, b) = local.sketched_records(&*operator, size);
        session.work(local.take_work());
        let last = round + 1 == settings.rounds;
        let next = refusal(last || may_open(local, round + 1));
        let parts = vec![matrix(&a, size), matrix(&b, k), Part::scalars(&[own_error, next])];
        let total = session.sum(ALL, "M S", parts)?;
        let real = |values: &[f64]| -> Vec<T> { values.iter().map(|&value| T::from_f64(value)).collect() };
        local.sketched_u_of_all(&mut u_side, round, real(&total.parts[0]), &real(&total.parts[1]))?;
        let operator = v_side.distribution.draw::<T>(round);
        let b = local.project_u(&*operator);
        local.sketched_v(&mut v_side, round, &*operator, &b);
        session.work(local.take_work());
        if total.parts[2][1] > 0.5 {
            return Ok((round + 1, Stop::LeakBudget));
        }
        if evaluated {
            let (seconds, bytes) = reached;
            if log.note(Line { round, seconds, squared_error: total.parts[2][0], bytes }, session) {
                return Ok((round + 1, Stop::Tolerance));
            }
        }
    }
    Ok((settings.rounds, Stop::Rounds))
}

/// All stop at any sum above 0. It tells how many parties have reached their bound, and the round in which it does tells
/// about how many records the smallest of them has: `docs/secure.md` says so.
fn refusal(may_open: bool) -> f64 {
    if may_open { 0.0 } else { 1.0 }
}

/// d, the same at every party.
pub fn sketch_size(settings: &Settings) -> usize {
    match settings.sketch_records {
        Some(partwise::run::Amount::Count(count)) => count,
        // A share of what? The number of records is not to be known.
        _ => 2 * settings.rank,
    }
}
