//! A party's run from joining to leaving, for any protocol.

use partwise::Real;
use serde::{Deserialize, Serialize};

use super::{Curve, Finish, Gate, Local, PartyRun, Settings, TracePoint, party_seed};
use crate::error::{Error, Result};
use crate::features::leave_out_rare;
use crate::fixed::Part;
use crate::risk::{FewRecords, OpenedCounts};
use crate::session::{ALL, Announcement, Session};
use crate::sum::SumKind;

/// The largest count that fits the range of the first sum. Larger counts are summed too, after a vote.
const MOST_RECORDS: f64 = (1u64 << 40) as f64;

/// What the parties know together before the first step, from one opened sum.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Common {
    /// ‖M‖².
    pub norm: f64,
    /// Mean entry.
    pub mean: f64,
    /// The number of records of all parties.
    pub records: f64,
}

/// How a party's run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// What all parties know.
    pub common: Common,
    /// The error over rounds; empty for the asynchronous protocols, where the server has it.
    pub trace: Vec<TracePoint>,
    /// The number of rounds.
    pub rounds: usize,
    /// Why it ended.
    pub stopped_by: Stop,
    /// Σ ‖M_r − U V_rᵀ‖² over all parties, at the end.
    pub squared_error: f64,
    /// Σ ‖M_r‖² over the remaining parties.
    pub present_norm: f64,
    /// The party's own ‖M_r − U V_rᵀ‖², which it keeps to itself.
    pub own_squared_error: f64,
    /// The run's clock when the last round ended.
    pub seconds: f64,
    /// If the run was repeated, Σ ‖M_r − U V_rᵀ‖² of both attempts.
    pub attempts: Vec<f64>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The maximum number of rounds was reached.
    Rounds,
    /// The error has converged.
    Tolerance,
    /// Another round would reveal a record.
    LeakBudget,
}

/// A party from joining to leaving. If a party was missing from a sum, the others have continued from a U that it
/// may have influenced, and may have reached another minimum than without it. Those who are present then repeat the
/// run, and keep the better U.
pub fn run<T: Real>(
    settings: &Settings,
    local: &mut Local<T>,
    session: &mut Session<'_>,
    private_seed: u64,
    group: u8,
) -> Result<Ended> {
    let counted = count_records(settings, local, session)?;
    leave_out_rare(settings.colluders, local, session)?;
    let common = meet(local, session, counted)?;
    session.announce(Announcement::Norm(common.norm));
    let attempt = Attempt { settings, private_seed, group, common, before: None };
    let Attempted { ended: first, incomplete, .. } = attempt.run(local, session)?;
    if settings.attempts() == 1 || !incomplete {
        return Ok(first);
    }
    session.announce(Announcement::Retry);
    session.restart();
    let factors = (std::mem::take(&mut local.u), std::mem::take(&mut local.v));
    // With the previous V, the first sums of both attempts would differ by exactly the leaver's contribution.
    let private_seed = party_seed(private_seed, "partwise anew", session.me());
    let retry = Attempt { private_seed, before: Some(&first), ..attempt };
    let Attempted { mut ended, error_before, .. } = retry.run(local, session)?;
    ended.attempts = vec![error_before, ended.squared_error];
    let better = ended.squared_error < error_before || error_before.is_nan();
    if !better {
        (local.u, local.v) = factors;
        ended.squared_error = error_before;
        ended.own_squared_error = first.own_squared_error;
        ended.stopped_by = first.stopped_by;
    }
    ended.trace.splice(0..0, first.trace);
    Ok(ended)
}

/// From the start to a U, with the parties that are present.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    settings: &'a Settings,
    private_seed: u64,
    group: u8,
    common: Common,
    /// The previous attempt.
    before: Option<&'a Ended>,
}

/// The outcome of an attempt.
struct Attempted {
    ended: Ended,
    /// Whether a party was missing from a sum that any party saw.
    incomplete: bool,
    /// The error of the previous attempt over the parties that are present now.
    error_before: f64,
}

impl Attempt<'_> {
    fn run<T: Real>(&self, local: &mut Local<T>, session: &mut Session<'_>) -> Result<Attempted> {
        let &Attempt { settings, private_seed, group, common, before } = self;
        local.start(settings.seed, private_seed, common.mean);
        let mut curve = Curve::new(settings, &common, before);
        let gate = Gate::new(session, common.records);
        let mut party =
            PartyRun { settings, local, session, curve: &mut curve, group, norm: common.norm, gate };
        let Finish { rounds, stopped_by } = settings.protocol.run(&mut party)?;
        let PartyRun { local, session, .. } = party;
        let seconds = session.now();
        if settings.protocol.definition().fits_v_last() {
            local.fit_v();
        }
        let own_squared_error = local.squared_error()?;
        let own_before = before.map_or(0.0, |before| before.own_squared_error);
        // Whether a party was missing, and whether one may be missing in the second attempt.
        let flags = [session.incomplete, !session.may_miss()].map(|flag| if flag { 1.0 } else { 0.0 });
        let scalars = [own_squared_error, local.norm(), flags[0], flags[1], own_before];
        let total = session.sum(ALL, SumKind::Error, vec![Part::scalars(&scalars)])?;
        let &[squared_error, present_norm, missed, must_not, error_before] = &total.parts[0][..] else {
            return Err(session.dishonest("an answer of another size"));
        };
        // A party that is missing only from this last sum has influenced U all the same. If its group would wait
        // for it in vain, the present result is better than that.
        let incomplete = missed > 0.5 || session.incomplete && must_not < 0.5;
        let rounds = curve.before + rounds;
        let ended = Ended {
            common,
            trace: curve.trace,
            rounds,
            stopped_by,
            squared_error,
            present_norm,
            own_squared_error,
            seconds,
            attempts: Vec::new(),
        };
        Ok(Attempted { ended, incomplete, error_before })
    }
}

/// The first sums of every method. Before anything else is sent, they determine whether any party has fewer
/// records than its part of the required number, and then the total number of records; a run with too few
/// records is rejected.
fn count_records<T: Real>(
    settings: &Settings,
    local: &Local<T>,
    session: &mut Session<'_>,
) -> Result<RecordCount> {
    let (own, features) = (local.records(), local.features());
    let members = session.members(ALL);
    let guard = |parties| FewRecords::new(settings, parties, features);
    let mut is_small = match guard(members) {
        Some(few) => session.any(ALL, SumKind::FewRecords, few.is_small(own))?,
        None => false,
    };
    // A range that fits every count: a vote on it would reveal about how many the largest party has.
    session.expect(ALL, SumKind::Records, &[Part::scalars(&[MOST_RECORDS])]);
    let total = session.sum(ALL, SumKind::Records, vec![Part::scalars(&[own as f64])])?;
    let records = total.parts[0][0].round();
    let opened = OpenedCounts { parties: total.parties, records: records as usize };
    if let Some(few) = guard(total.parties) {
        // Each party's part of the required number is larger if a party is missing.
        if total.parties < members && !is_small {
            is_small = session.any(ALL, SumKind::FewRecords, few.is_small(own))?;
        }
        let refused = is_small
            && (few.is_certain(opened)
                || session.any(ALL, SumKind::ManyRecords, few.is_large(own, opened))?);
        if refused {
            return Err(Error::FewRecords { risk: Box::new(few.refused(opened)) });
        }
    }
    Ok(RecordCount { records, parties: total.parties })
}

/// The sums of entries and of their squares.
fn meet<T: Real>(local: &Local<T>, session: &mut Session<'_>, counted: RecordCount) -> Result<Common> {
    let scalars = [local.sum(), local.norm()];
    let total = session.sum(ALL, SumKind::Norms, vec![Part::scalars(&scalars)])?;
    let (sum, norm) = (total.parts[0][0], total.parts[0][1]);
    // A party that left in between is assumed to have as many records as the others: a second count would reveal
    // its number.
    let records = counted.records * total.parties as f64 / counted.parties as f64;
    Ok(Common { norm, mean: sum / (records * local.features() as f64), records })
}

/// The number of records of this many parties together.
struct RecordCount {
    records: f64,
    parties: usize,
}
