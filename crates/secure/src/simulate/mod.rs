//! All parties and the coordinator in one process, each a thread with its own data, on a simulated network.

mod cohorts;
mod deviation;
mod outcome;
mod plan;
mod room;

use partwise::Real;
use partwise::matrix::Matrix;

use crate::aggregation::{Identity, IdentityKey};
use crate::entropy::entropy;
use crate::error::{Error, Result};
use crate::link::{Recorded, Recorder};
use crate::net::network;
use crate::session::{Clock, SystemClock};
pub(crate) use cohorts::group_count;
pub use cohorts::{RunParties, cohorts, groups};
pub(crate) use deviation::Deviation;
pub use outcome::{CohortSummary, Cost, PartyOutcome, SimulationOutcome, Traced};
pub use plan::{Plan, Vanishing};
pub(crate) use room::{PartyEnd, PartyReport, Room, outcome_of};

/// Runs a plan; each part has a row for each feature and a column for each of that party's records.
pub fn simulate<T: Real>(parts: Vec<Matrix<T>>, plan: &Plan) -> Result<SimulationOutcome<T>> {
    simulate_recorded(parts, plan, &())
}

/// The same, where `recorder` sees every message that leaves or reaches a party, in no particular order between
/// parties, what each of them sums, and what the coordinator opens.
pub fn simulate_recorded<T: Real>(
    parts: Vec<Matrix<T>>,
    plan: &Plan,
    recorder: &dyn Recorder,
) -> Result<SimulationOutcome<T>> {
    simulate_with(parts, plan, recorder, None)
}

/// Runs a simulation in which a participant deviates from the protocol.
pub(crate) fn simulate_with<T: Real>(
    parts: Vec<Matrix<T>>,
    plan: &Plan,
    recorder: &dyn Recorder,
    deviation: Option<&dyn Deviation>,
) -> Result<SimulationOutcome<T>> {
    let features = parts.first().map_or(0, Matrix::rows);
    for (party, part) in (1..).zip(&parts) {
        if part.rows() != features {
            let problem = format!(
                "party {party} has {} features but party 1 has {features}; all parties need the same features",
                part.rows()
            );
            return Err(Error::parameter("file", problem));
        }
    }
    let records: Vec<usize> = parts.iter().map(Matrix::cols).collect();
    plan.check(&records, features)?;
    let mut rng = entropy()?;
    let identities: Vec<Identity> = parts.iter().map(|_| Identity::new(&mut rng)).collect();
    let keys: Vec<IdentityKey> = identities.iter().map(Identity::key).collect();
    let mut room = Room::new(plan, &records, &keys)?;
    room.deviation = deviation;
    let room = &room;

    let clock = SystemClock::start();
    let mut links = network(parts.len(), plan.line).into_iter();
    let hub_link = links.next();
    let (hub, ends) = std::thread::scope(|scope| {
        let hub = hub_link.map(|mut link| scope.spawn(move || room.coordinate(&mut link, recorder)));
        let parties = (1..).zip(parts).zip(identities).zip(links);
        let threads: Vec<_> = parties
            .map(|(((party, part), identity), link)| {
                let link = Recorded::new(link, party, recorder);
                scope.spawn(move || room.take_part(part, party, identity, link))
            })
            .collect();
        let ends: Vec<Result<PartyEnd<T>>> = threads.into_iter().map(joined).collect();
        (hub.map(joined), ends)
    });
    let wall = clock.now().as_secs_f64();
    let ends = without_consequences(ends, plan.loses);
    let (hub, ends) = match (hub, ends) {
        (Some(Err(error)), Err(other)) => return Err(more_telling(error, other)),
        (Some(hub), ends) => (hub?, ends?),
        (None, _) => unreachable!("a network has a coordinator"),
    };
    Ok(room.collect(hub, ends, wall))
}

fn joined<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The parties' outcomes without the one that was requested to disconnect, or the error that caused the others.
fn without_consequences<T>(
    ends: Vec<Result<PartyEnd<T>>>,
    loses: Option<Vanishing>,
) -> Result<Vec<Option<PartyEnd<T>>>> {
    let mut kept = Vec::new();
    let mut cause: Option<Error> = None;
    for (party, end) in (1..).zip(ends) {
        match end {
            Ok(end) => kept.push(Some(end)),
            Err(Error::Vanished { .. }) if loses.is_some_and(|vanishing| vanishing.party == party) => {
                kept.push(None)
            }
            Err(error) => {
                cause = Some(match cause.take() {
                    Some(before) => more_telling(before, error),
                    None => error,
                });
            }
        }
    }
    cause.map_or(Ok(kept), Err)
}

/// The error of the two that caused the other: a lost link is a consequence.
fn more_telling(one: Error, other: Error) -> Error {
    let rank = |error: &Error| match error {
        Error::LinkLost { .. } => 0,
        // Only the party whose gate it was knows the reason, so its error is preferred.
        Error::Left { .. } | Error::Withheld { reason: None, .. } => 1,
        _ => 2,
    };
    if rank(&other) > rank(&one) { other } else { one }
}
