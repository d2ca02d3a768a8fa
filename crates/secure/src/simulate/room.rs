//! The coordinator's run and a party's, whatever the links between them, and what all of them come to.

use partwise::Real;
use partwise::matrix::Matrix;
use partwise::threads::Threads;
use serde::{Deserialize, Serialize};

use super::deviation::{Deviating, Deviation};
use super::outcome::{CohortSummary, Cost, PartyOutcome, SimulationOutcome, Traced};
use super::{Plan, RunParties, Vanishing, cohorts, groups};
use crate::aggregation::{Cohort, Hub, Identity, IdentityKey, Party};
use crate::entropy::entropy;
use crate::error::Result;
use crate::link::{Link, Recorded, Recorder, Sent, Summary};
use crate::protocol::{self, Aggregation, Ended, Local, Server, TracePoint, party_seed};
use crate::server::{Answer, Echo, Noted, serve};
use crate::session::{ALL, CohortDigest, Session, SessionOptions, SystemClock};

/// The outcome of a party's run, without its factors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartyReport {
    pub records: usize,
    /// ‖M_r − U V_rᵀ‖ / ‖M_r‖.
    pub relative_error: f64,
    ended: Ended,
    /// Digests of what each of the party's cohorts was told.
    digests: Vec<CohortDigest>,
    sent: Vec<Sent>,
    masking_seconds: f64,
    bytes: u64,
    sums: u64,
    round_trips: u64,
}

/// The outcome with U and V_r.
pub(crate) struct PartyEnd<T> {
    pub report: PartyReport,
    pub u: Vec<T>,
    pub v: Vec<T>,
}

/// The outcome of the coordinator's run.
pub(crate) struct HubEnd {
    /// Digests by cohort, in the form that the parties have.
    digests: Vec<CohortDigest>,
    trace: Vec<TracePoint>,
    bytes: u64,
}

/// Who sums with whom, and what each of them does, whatever the links between them.
pub(crate) struct Room<'a> {
    plan: &'a Plan,
    /// A participant that deviates from the protocol.
    pub deviation: Option<&'a dyn Deviation>,
    groups: Vec<Vec<u16>>,
    /// The cohort of all, and those of the groups.
    cohorts: Vec<Cohort>,
}

impl<'a> Room<'a> {
    pub fn new(plan: &'a Plan, records: &[usize], keys: &[IdentityKey]) -> Result<Self> {
        let settings = &plan.settings;
        let seconds: Vec<f64> =
            (1..).zip(records).map(|(party, &count)| count as f64 * plan.slowness_of(party)).collect();
        let groups = groups(settings, &seconds);
        let cohorts = cohorts(settings, &RunParties { run: settings.run_hash(), least: 0, keys }, &groups)?;
        Ok(Room { plan, deviation: None, groups, cohorts })
    }

    /// The coordinator's run.
    pub fn coordinate(&self, link: &mut dyn Link, recorder: &dyn Recorder) -> Result<HubEnd> {
        let settings = &self.plan.settings;
        let plain = settings.aggregation == Aggregation::Plain;
        let hub = |cohort: &Cohort| (cohort.number, Hub::new(cohort.clone(), plain));
        let group_sizes: Vec<(u8, usize)> = (1..).zip(self.groups.iter().map(Vec::len)).collect();
        let mut server = Server::new(settings, &group_sizes);
        let answer: &mut dyn Answer =
            if settings.protocol.is_asynchronous() { &mut server } else { &mut Echo };
        let parties = self.cohorts[0].members.len();
        let mut deviating = Deviating { answer, deviation: self.deviation };
        let answer = &mut Noted { answer: &mut deviating, recorder };
        let served = serve(link, self.cohorts.iter().map(hub).collect(), parties, answer)?;
        let digest = |(&cohort, hub): (&u8, &Hub)| CohortDigest {
            cohort,
            hash: *hub.transcript(),
            sums: hub.rounds(),
        };
        let digests = served.hubs.iter().map(digest).collect();
        Ok(HubEnd { digests, trace: server.trace, bytes: served.bytes })
    }

    /// A party's run.
    pub fn take_part<T: Real>(
        &self,
        part: Matrix<T>,
        me: u16,
        identity: Identity,
        link: impl Link,
    ) -> Result<PartyEnd<T>> {
        let settings = &self.plan.settings;
        let plain = settings.aggregation == Aggregation::Plain;
        let cohorts = || self.cohorts.iter().filter(|cohort| cohort.place_of(me).is_some());
        let group = cohorts().next_back().map_or(ALL, |cohort| cohort.number);
        let machine = |cohort: &Cohort| Party::new(cohort.clone(), me, identity.clone(), plain);
        let machines = cohorts().map(machine).collect::<Result<Vec<_>>>()?;
        let summary = Summary::new(me);
        let link = Recorded::new(link, me, &summary);
        let mut options = SessionOptions::new(entropy()?, SystemClock::start());
        options.safeguards = self.plan.safeguards;
        options.other_groups =
            self.cohorts.iter().filter(|cohort| cohort.place_of(me).is_none()).cloned().collect();
        options.slowness = self.plan.slowness_of(me);
        options.most_sums = Some(settings.most_sums(self.groups.len()));
        options.before_sum = self.plan.loses.filter(|vanishing| vanishing.party == me).map(Vanishing::hook);
        if let Some(deviation) = self.deviation.filter(|deviation| deviation.party() == Some(me)) {
            options.before_sum = Some(Box::new(|next| {
                deviation.upload(next.kind, next.parts);
                Ok(())
            }));
        }
        let mut session = Session::join(link, machines, options)?;
        let threads = Threads::new(self.plan.threads)?.with_cancel(&self.plan.cancel);
        let mut local = Local::new(part, settings, threads)?;
        // In a simulation the same seed gives the same result; in a federation V's start comes from the operating
        // system.
        let private_seed = party_seed(settings.seed, "partwise private", me);
        let ended = protocol::run(settings, &mut local, &mut session, private_seed, group)?;
        let session = session.leave()?;
        let report = PartyReport {
            records: local.records(),
            relative_error: (ended.own_squared_error / local.norm()).sqrt(),
            ended,
            digests: session.digests(),
            sent: summary.sent(),
            masking_seconds: session.meter().masking.as_secs_f64(),
            bytes: session.meter().bytes,
            sums: session.meter().sums,
            round_trips: session.meter().round_trips,
        };
        Ok(PartyEnd { report, u: local.u, v: local.v })
    }

    /// The outcome of all parties; `None` for one that disconnected.
    pub fn collect<T>(&self, hub: HubEnd, ends: Vec<Option<PartyEnd<T>>>, wall: f64) -> SimulationOutcome<T> {
        let stayed: Vec<&PartyReport> = ends.iter().flatten().map(|end| &end.report).collect();
        let Some(first) = stayed.first().map(|report| report.ended.clone()) else {
            unreachable!("at most one party vanishes")
        };
        let relative = |squared: f64| (squared.max(0.0) / first.common.norm).sqrt();
        let lines = if self.plan.settings.protocol.is_asynchronous() { &hub.trace } else { &first.trace };
        let mut trace: Vec<Traced> = lines
            .iter()
            .map(|line| Traced {
                round: line.round,
                seconds: line.seconds,
                relative_error: relative(line.squared_error),
                bytes: line.bytes,
            })
            .collect();
        let mean = |of: fn(&PartyReport) -> u64| {
            stayed.iter().map(|report| of(report)).sum::<u64>() as f64 / stayed.len() as f64
        };
        let (bytes, sums) = (mean(|report| report.bytes) as u64, mean(|report| report.sums));
        let present = |squared: f64| (squared.max(0.0) / first.present_norm).sqrt();
        let relative_error = present(first.squared_error);
        let seconds = stayed.iter().map(|report| report.ended.seconds).fold(0.0, f64::max);
        // The last line is the result, after the last fit of V.
        trace.retain(|line| line.round < first.rounds);
        trace.push(Traced { round: first.rounds, seconds, relative_error, bytes });
        let transcripts = self.cohorts.iter().zip(&hub.digests).map(|(cohort, told)| CohortSummary {
            parties: cohort.members.iter().map(|(party, _)| *party).collect(),
            sums: told.sums,
            hash: told.hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            agreed: stayed
                .iter()
                .flat_map(|report| &report.digests)
                .all(|digest| digest.cohort != told.cohort || digest.hash == told.hash),
        });
        let cost = Cost {
            wall_seconds: wall,
            wall_seconds_per_round: wall / first.rounds.max(1) as f64,
            masking_seconds: stayed.iter().map(|report| report.masking_seconds).sum(),
            bytes_per_party: bytes,
            bytes_of_coordinator: hub.bytes,
            sums,
            round_trips_per_sum: mean(|report| report.round_trips) / sums,
        };
        SimulationOutcome {
            transcripts: transcripts.collect(),
            trace,
            relative_error,
            rounds: first.rounds,
            attempts: first.attempts.iter().copied().map(present).collect(),
            stopped_by: first.stopped_by,
            seconds,
            groups: self.groups.clone(),
            cost,
            parties: ends.into_iter().map(|end| end.map(outcome_of)).collect(),
        }
    }
}

pub(crate) fn outcome_of<T>(end: PartyEnd<T>) -> PartyOutcome<T> {
    let PartyEnd { report, u, v } = end;
    PartyOutcome { records: report.records, relative_error: report.relative_error, sent: report.sent, u, v }
}
