//! All parties and the coordinator in one process, each a thread with its own data, on a simulated network.

use std::time::Instant;

use partwise::Real;
use partwise::cancel::Cancel;
use partwise::comm::Network;
use partwise::matrix::Matrix;
use partwise::threads::Threads;
use serde::{Deserialize, Serialize};

use crate::aggregation::{Cohort, Hub, Identity, IdentityKey, Party};
use crate::entropy::entropy;
use crate::error::{Error, Result};
use crate::link::{Link, Recorded, Recorder, Sent, Summary};
use crate::net::{DEFAULT_WAN, network};
use crate::protocol::{self, Aggregation, Ended, Local, Server, Settings, Stop, party_seed};
use crate::risk;
use crate::server::{Answer, Echo, Noted, serve};
use crate::session::{ALL, Session};

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the parties agree on.
    pub settings: Settings,
    /// How many times as long each party takes for the same work; 1 for those that are not named.
    pub slowness: Vec<f64>,
    /// The lines between them and the coordinator.
    pub line: Network,
    /// Threads of each party.
    pub threads: usize,
    /// A party that vanishes after so many sums.
    pub loses: Option<(u16, u64)>,
    /// Stops the simulation wherever it is.
    pub cancel: Cancel,
}

/// What a party has at the end.
#[derive(Clone, Debug)]
pub struct PartyOutcome<T> {
    /// U, features x k, by row.
    pub u: Vec<T>,
    /// V_r, records x k, by row.
    pub v: Vec<T>,
    /// Its records.
    pub records: usize,
    /// ‖M_r − U V_rᵀ‖ / ‖M_r‖, which it would keep to itself.
    pub relative_error: f64,
    /// What left it, by kind of message.
    pub sent: Vec<Sent>,
}

/// A line of `trace.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Traced {
    /// Exchanges of U so far.
    pub round: usize,
    /// Seconds on the simulated clock.
    pub seconds: f64,
    /// Over all parties.
    pub relative_error: f64,
    /// Bytes that a party has sent and received so far.
    pub bytes: u64,
}

/// What the exchange cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds on this machine, all parties together on its cores.
    pub wall_seconds: f64,
    /// The same a round.
    pub wall_seconds_per_round: f64,
    /// Seconds that the parties spent on masks, shares, signatures and fixed point, added up.
    pub masking_seconds: f64,
    /// Bytes that a party sent and received, on average.
    pub bytes_per_party: u64,
    /// Bytes that the coordinator sent.
    pub bytes_of_coordinator: u64,
    /// Sums that a party took part in, on average.
    pub sums: f64,
    /// Messages of a party that the coordinator had to answer, a sum.
    pub round_trips_per_sum: f64,
}

/// What a cohort was told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transcript {
    /// Its parties.
    pub parties: Vec<u16>,
    /// Sums that were opened.
    pub sums: u64,
    /// The hash over all that the coordinator told, in hexadecimal.
    pub hash: String,
    /// Whether every party that stayed to the end has the same.
    pub agreed: bool,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// By party; nothing of one that vanished.
    pub parties: Vec<Option<PartyOutcome<T>>>,
    /// The error over rounds.
    pub trace: Vec<Traced>,
    /// Over all parties, at the end.
    pub relative_error: f64,
    /// Rounds done.
    pub rounds: usize,
    /// If the run was done once more, the error of the first time and of the second, of which the better counts.
    pub attempts: Vec<f64>,
    /// Why it ended.
    pub stopped_by: Stop,
    /// Seconds on the simulated clock.
    pub seconds: f64,
    /// The groups of an asynchronous method.
    pub groups: Vec<Vec<u16>>,
    /// What it cost.
    pub cost: Cost,
    /// What the cohorts were told.
    pub transcripts: Vec<Transcript>,
}

/// Fixed disjoint groups, parties of like speed together: as many as there can be of at least three, and of what c
/// colluders leave a sum of two of. Without masks every party is by itself.
pub fn groups(settings: &Settings, seconds: &[f64]) -> Vec<Vec<u16>> {
    let parties = seconds.len();
    if !settings.protocol.is_asynchronous() {
        return Vec::new();
    }
    let mut order: Vec<u16> = (1..=parties as u16).collect();
    order.sort_by(|&a, &b| seconds[usize::from(a) - 1].total_cmp(&seconds[usize::from(b) - 1]));
    let count = group_count(settings, parties);
    (0..count)
        .map(|group| {
            let mut members = order[partwise::comm::owned(parties, group, count)].to_vec();
            members.sort_unstable();
            members
        })
        .collect()
}

/// How many groups an asynchronous method has.
pub(crate) fn group_count(settings: &Settings, parties: usize) -> usize {
    let smallest = match settings.aggregation {
        Aggregation::Plain => 1,
        Aggregation::Secure => settings.colluders.saturating_add(2).max(3),
    };
    (parties / smallest).max(1)
}

/// What a party's run comes to, without its factors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartyReport {
    pub records: usize,
    /// ‖M_r − U V_rᵀ‖ / ‖M_r‖.
    pub relative_error: f64,
    ended: Ended,
    /// By cohort: its number, the hash over what it was told, and how many sums it has seen.
    transcripts: Vec<(u8, [u8; 32], u64)>,
    sent: Vec<Sent>,
    masking_seconds: f64,
    bytes: u64,
    sums: u64,
    round_trips: u64,
}

/// The same with U and V_r.
pub(crate) type PartyEnd<T> = (PartyReport, Vec<T>, Vec<T>);

/// What the coordinator's run comes to.
pub(crate) struct HubEnd {
    transcripts: Vec<([u8; 32], u64)>,
    trace: Vec<protocol::Line>,
    bytes: u64,
}

/// Runs a plan; each part has a row for each feature and a column for each of that party's records.
pub fn simulate<T: Real>(parts: Vec<Matrix<T>>, plan: &Plan) -> Result<Outcome<T>> {
    simulate_recorded(parts, plan, &())
}

/// The same, where `recorder` sees every message that leaves or reaches a party, in no particular order between
/// parties, what each of them sums, and what the coordinator opens.
pub fn simulate_recorded<T: Real>(
    parts: Vec<Matrix<T>>,
    plan: &Plan,
    recorder: &dyn Recorder,
) -> Result<Outcome<T>> {
    let features = parts.first().map_or(0, Matrix::rows);
    for (party, part) in (1..).zip(&parts) {
        if part.rows() != features {
            let problem = format!(
                "party {party} has {} features but party 1 has {features}; all must have the same",
                part.rows()
            );
            return Err(Error::parameter("FILE", problem));
        }
    }
    let records: Vec<usize> = parts.iter().map(Matrix::cols).collect();
    plan.check(&records, features)?;
    let mut rng = entropy()?;
    let identities: Vec<Identity> = parts.iter().map(|_| Identity::new(&mut rng)).collect();
    let keys: Vec<IdentityKey> = identities.iter().map(Identity::key).collect();
    let room = &Room::new(plan, &records, &keys)?;

    let begin = Instant::now();
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
    let wall = begin.elapsed().as_secs_f64();
    let ends = without_consequences(ends, plan.loses);
    let (hub, ends) = match (hub, ends) {
        (Some(Err(error)), Err(other)) => return Err(more_telling(error, other)),
        (Some(hub), ends) => (hub?, ends?),
        (None, _) => unreachable!("a network has a coordinator"),
    };
    Ok(room.collect(hub, ends, wall))
}

impl Plan {
    /// Parties of one thread each and of the same speed, on usual lines.
    pub fn new(settings: Settings) -> Self {
        let (slowness, cancel) = (Vec::new(), Cancel::default());
        Plan { settings, slowness, line: DEFAULT_WAN, threads: 1, loses: None, cancel }
    }

    /// Refuses what is out of range, and what nobody has accepted, given how many records each party has.
    pub fn check(&self, records: &[usize], features: usize) -> Result<()> {
        self.settings.check()?;
        let parties = records.len();
        if !(2..=255).contains(&parties) {
            return Err(Error::parameter("--parties", format!("{parties} is out of range; give 2 to 255")));
        }
        if let Some(party) = records.iter().position(|count| *count == 0) {
            return Err(Error::parameter(
                "FILE",
                format!("party {} has no records; leave it out", party + 1),
            ));
        }
        if self.slowness.len() > parties {
            let problem =
                format!("{} speeds for {parties} parties; give at most one each", self.slowness.len());
            return Err(Error::parameter("--speeds", problem));
        }
        if let Some(bad) = self.slowness.iter().find(|slowness| !(**slowness > 0.0 && slowness.is_finite())) {
            return Err(Error::parameter("--speeds", format!("{bad} is out of range; give numbers above 0")));
        }
        if let Some((party, _)) =
            self.loses.filter(|(party, _)| !(1..=parties).contains(&usize::from(*party)))
        {
            return Err(Error::parameter(
                "--lose",
                format!("there is no party {party}; give 1 to {parties}"),
            ));
        }
        risk::check(&self.settings, records, features)
    }

    fn slowness_of(&self, party: u16) -> f64 {
        self.slowness.get(usize::from(party) - 1).copied().unwrap_or(1.0)
    }
}

/// The cohort of all, and those of the groups, of a run of this name; at least so many are in every sum.
pub fn cohorts(
    settings: &Settings,
    (run, least): ([u8; 32], usize),
    keys: &[IdentityKey],
    groups: &[Vec<u16>],
) -> Result<Vec<Cohort>> {
    let everybody: Vec<u16> = (1..=keys.len() as u16).collect();
    let cohort = |(number, parties): (u8, &Vec<u16>)| Cohort {
        run,
        number,
        members: parties.iter().map(|&party| (party, keys[usize::from(party) - 1])).collect(),
        // Two parties hide nothing from each other.
        colluders: if keys.len() == 2 { 0 } else { settings.colluders },
        least,
        may_leave: settings.accepted.going_on_shows_the_leaver,
    };
    let cohorts: Vec<Cohort> =
        std::iter::once((ALL, &everybody)).chain((1..).zip(groups)).map(cohort).collect();
    if settings.aggregation == Aggregation::Secure {
        cohorts.iter().try_for_each(Cohort::check)?;
    }
    Ok(cohorts)
}

/// Who sums with whom, and what each of them does, whatever the links between them.
pub(crate) struct Room<'a> {
    plan: &'a Plan,
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
        let cohorts = cohorts(settings, (settings.run_hash(), 0), keys, &groups)?;
        Ok(Room { plan, groups, cohorts })
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
        let answer = &mut Noted { answer, recorder };
        let served = serve(link, self.cohorts.iter().map(hub).collect(), parties, answer)?;
        let transcripts = served.hubs.values().map(|hub| (*hub.transcript(), hub.rounds())).collect();
        Ok(HubEnd { transcripts, trace: server.trace, bytes: served.bytes })
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
        let machines = cohorts().map(|cohort| {
            let party = Party::new(cohort.clone(), me, identity.clone(), plain)?;
            Ok((cohort.number, party, cohort.members.len()))
        });
        let machines = machines.collect::<Result<Vec<_>>>()?;
        let summary = Summary::new(me);
        let link = Recorded::new(link, me, &summary);
        let mut session = Session::join(link, me, machines, plain, self.plan.slowness_of(me), None)?;
        session.vanishes_after = self.plan.loses.filter(|(party, _)| *party == me).map(|(_, sums)| sums);
        let threads = Threads::new(self.plan.threads)?.with_cancel(&self.plan.cancel);
        let mut local = Local::new(part, settings, threads)?;
        // In a simulation the same seed gives the same answer; in earnest V's start comes from the operating system.
        let private_seed = party_seed(settings.seed, "partwise private", me);
        let ended = protocol::run(settings, &mut local, &mut session, private_seed, group)?;
        let session = session.leave()?;
        let report = PartyReport {
            records: local.records(),
            relative_error: (ended.own_squared_error / local.norm()).sqrt(),
            ended,
            transcripts: session.transcripts(),
            sent: summary.sent(),
            masking_seconds: session.masking.as_secs_f64(),
            bytes: session.bytes,
            sums: session.rounds,
            round_trips: session.round_trips,
        };
        Ok((report, local.u, local.v))
    }

    /// What all of them come to; nothing of a party that vanished.
    pub fn collect<T>(&self, hub: HubEnd, ends: Vec<Option<PartyEnd<T>>>, wall: f64) -> Outcome<T> {
        let stayed: Vec<&PartyReport> = ends.iter().flatten().map(|(report, ..)| report).collect();
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
        let transcripts =
            self.cohorts.iter().zip(&hub.transcripts).map(|(cohort, (hash, sums))| Transcript {
                parties: cohort.members.iter().map(|(party, _)| *party).collect(),
                sums: *sums,
                hash: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
                agreed: stayed
                    .iter()
                    .flat_map(|report| &report.transcripts)
                    .all(|(number, told, _)| *number != cohort.number || told == hash),
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
        Outcome {
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

pub(crate) fn outcome_of<T>((report, u, v): PartyEnd<T>) -> PartyOutcome<T> {
    PartyOutcome { records: report.records, relative_error: report.relative_error, sent: report.sent, u, v }
}

fn joined<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The parties' ends, but for one that was to vanish, or the error that caused the others.
fn without_consequences<T>(
    ends: Vec<Result<PartyEnd<T>>>,
    loses: Option<(u16, u64)>,
) -> Result<Vec<Option<PartyEnd<T>>>> {
    let mut kept = Vec::new();
    let mut cause: Option<Error> = None;
    for (party, end) in (1..).zip(ends) {
        match end {
            Ok(end) => kept.push(Some(end)),
            Err(Error::Vanished { .. }) if loses.is_some_and(|(lost, _)| lost == party) => kept.push(None),
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

/// Of two errors the one that caused the other: a link that is lost is a consequence.
fn more_telling(one: Error, other: Error) -> Error {
    let rank = |error: &Error| match error {
        Error::LinkLost { .. } => 0,
        Error::Left { .. } => 1,
        _ => 2,
    };
    if rank(&other) > rank(&one) { other } else { one }
}
