//! All parties and the coordinator in one process, each a thread with its own data, on a simulated network.

use std::time::Instant;

use partwise::Real;
use partwise::comm::Comm;
use partwise::matrix::Matrix;
use serde::Serialize;

use crate::aggregation::{Cohort, Hub, Identity, IdentityKey, Party};
use crate::entropy::entropy;
use crate::error::{Error, Result};
use crate::link::{CommLink, Link};
use crate::net::{Line, network};
use crate::protocol::{self, Aggregation, Ended, Local, Server, Settings, Stop, party_seed};
use crate::risk;
use crate::server::{Answer, Echo, serve};
use crate::session::{ALL, Session};

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the parties agree on.
    pub settings: Settings,
    /// How many times as long each party takes for the same work; 1 for those that are not named.
    pub slowness: Vec<f64>,
    /// The lines between them and the coordinator.
    pub line: Line,
    /// Threads of each party.
    pub threads: usize,
    /// A party that vanishes after so many sums.
    pub loses: Option<(u16, u64)>,
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
    let smallest = match settings.aggregation {
        Aggregation::Plain => 1,
        Aggregation::Secure => (settings.colluders + 2).max(3),
    };
    let mut order: Vec<u16> = (1..=parties as u16).collect();
    order.sort_by(|&a, &b| seconds[usize::from(a) - 1].total_cmp(&seconds[usize::from(b) - 1]));
    let count = (parties / smallest).max(1);
    (0..count)
        .map(|group| {
            let mut members = order[partwise::comm::owned(parties, group, count)].to_vec();
            members.sort_unstable();
            members
        })
        .collect()
}

/// What a party's thread returns.
type PartyEnd<T> = (Local<T>, Ended, Vec<(u8, [u8; 32], u64)>, PartyCost);

struct PartyCost {
    masking: f64,
    bytes: u64,
    sums: u64,
    round_trips: u64,
}

/// Runs a plan; each part has a row for each feature and a column for each of that party's records.
pub fn simulate<T: Real>(parts: Vec<Matrix<T>>, plan: &Plan) -> Result<Outcome<T>> {
    let settings = &plan.settings;
    settings.check()?;
    check_parts(&parts, plan)?;
    let records: Vec<usize> = parts.iter().map(Matrix::cols).collect();
    risk::check(settings, &records, parts[0].rows())?;
    let slowness = |party: usize| plan.slowness.get(party).copied().unwrap_or(1.0);
    let seconds: Vec<f64> =
        records.iter().enumerate().map(|(party, &count)| count as f64 * slowness(party)).collect();
    let groups = groups(settings, &seconds);

    let mut rng = entropy()?;
    let identities: Vec<Identity> = parts.iter().map(|_| Identity::new(&mut rng)).collect();
    let keys: Vec<IdentityKey> = identities.iter().map(Identity::key).collect();
    let cohorts = cohorts(settings, (settings.run_hash(), 0), &keys, &groups)?;

    let begin = Instant::now();
    let mut links = network(parts.len(), plan.line).into_iter();
    let hub_link = links.next();
    let group_sizes: Vec<(u8, usize)> = (1..).zip(groups.iter().map(Vec::len)).collect();
    let (hub, ends) = std::thread::scope(|scope| {
        let hub = hub_link.map(|mut link| {
            let (cohorts, group_sizes, parties) = (&cohorts, &group_sizes, parts.len());
            scope.spawn(move || coordinate(&mut link, cohorts, settings, group_sizes, parties))
        });
        let threads: Vec<_> = (1..)
            .zip(parts)
            .zip(links)
            .map(|((party, part), link)| {
                let machines: Vec<Cohort> =
                    cohorts.iter().filter(|cohort| member(cohort, party)).cloned().collect();
                let identity = identities[usize::from(party) - 1].clone();
                let slowness = slowness(usize::from(party) - 1);
                scope.spawn(move || take_part(part, party, identity, machines, link, slowness, plan))
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
    Ok(collect(plan, &cohorts, groups, hub, ends, wall))
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

/// One rank's part in a run over a group of ranks (MPI): rank 0 is the coordinator, the others are the parties, and
/// each brings its own part. Nobody may leave. Returns a party's U and V_r, its own relative error, and that of all.
///
/// The ranks' clocks are real, so that `plan`'s line and slowness mean nothing here; and since the coordinator can wait
/// for one rank at a time only, an asynchronous method's parties must form one group.
pub fn run_on_rank<T: Real>(
    comm: &dyn Comm,
    part: Option<Matrix<T>>,
    plan: &Plan,
) -> Result<Option<(PartyOutcome<T>, f64)>> {
    let settings = &plan.settings;
    settings.check()?;
    let (me, parties) = (comm.rank() as u16, comm.size().saturating_sub(1));
    let identity = Identity::new(&mut entropy()?);
    let keys = comm.all_gather(identity.key().bytes())?;
    let keys: Option<Vec<IdentityKey>> =
        keys[1..].iter().map(|bytes| IdentityKey::from_bytes(bytes)).collect();
    let Some(keys) = keys else { return Err(Error::parameter("ranks", "a rank has sent no key; run again")) };
    let groups = groups(settings, &vec![1.0; parties]);
    if groups.len() > 1 {
        let problem = "asynchronous methods with more than one group do not run over ranks; use fewer parties, or a synchronous one";
        return Err(Error::parameter("--protocol", problem));
    }
    let cohorts = cohorts(settings, (settings.run_hash(), 0), &keys, &groups)?;
    let mut link = CommLink::new(comm);
    let Some(part) = part else {
        let group_sizes: Vec<(u8, usize)> = (1..).zip(groups.iter().map(Vec::len)).collect();
        coordinate(&mut link, &cohorts, settings, &group_sizes, parties)?;
        return Ok(None);
    };
    let (local, ended, ..) = take_part(part, me, identity, cohorts, link, 1.0, plan)?;
    let error = (ended.squared_error.max(0.0) / ended.present_norm).sqrt();
    Ok(Some((outcome_of(local, &ended), error)))
}

fn outcome_of<T: Real>(local: Local<T>, ended: &Ended) -> PartyOutcome<T> {
    PartyOutcome {
        records: local.records(),
        relative_error: (ended.own_squared_error / local.norm()).sqrt(),
        u: local.u,
        v: local.v,
    }
}

fn member(cohort: &Cohort, party: u16) -> bool {
    cohort.members.iter().any(|(member, _)| *member == party)
}

fn joined<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn check_parts<T: Real>(parts: &[Matrix<T>], plan: &Plan) -> Result<()> {
    let parties = parts.len();
    if !(2..=255).contains(&parties) {
        return Err(Error::parameter("--parties", format!("{parties} is out of range; give 2 to 255")));
    }
    let features = parts[0].rows();
    for (party, part) in (1..).zip(parts) {
        if part.rows() != features {
            let problem = format!(
                "party {party} has {} features but party 1 has {features}; all must have the same",
                part.rows()
            );
            return Err(Error::parameter("FILE", problem));
        }
        if part.cols() == 0 {
            return Err(Error::parameter("FILE", format!("party {party} has no records; leave it out")));
        }
    }
    if plan.slowness.len() > parties {
        let problem = format!("{} speeds for {parties} parties; give at most one each", plan.slowness.len());
        return Err(Error::parameter("--speeds", problem));
    }
    if let Some(bad) = plan.slowness.iter().find(|slowness| !(**slowness > 0.0 && slowness.is_finite())) {
        return Err(Error::parameter("--speeds", format!("{bad} is out of range; give numbers above 0")));
    }
    if let Some((party, _)) = plan.loses.filter(|(party, _)| !(1..=parties).contains(&usize::from(*party))) {
        return Err(Error::parameter("--lose", format!("there is no party {party}; give 1 to {parties}")));
    }
    Ok(())
}

/// What the coordinator's thread returns.
struct HubEnd {
    transcripts: Vec<([u8; 32], u64)>,
    trace: Vec<protocol::Line>,
    bytes: u64,
}

fn coordinate(
    link: &mut dyn Link,
    cohorts: &[Cohort],
    settings: &Settings,
    groups: &[(u8, usize)],
    parties: usize,
) -> Result<HubEnd> {
    let plain = settings.aggregation == Aggregation::Plain;
    let hubs = cohorts.iter().map(|cohort| (cohort.number, Hub::new(cohort.clone(), plain))).collect();
    let mut server = Server::new(settings, groups);
    let answer: &mut dyn Answer = if settings.protocol.is_asynchronous() { &mut server } else { &mut Echo };
    let served = serve(link, hubs, parties, answer)?;
    let transcripts = served.hubs.values().map(|hub| (*hub.transcript(), hub.rounds())).collect();
    Ok(HubEnd { transcripts, trace: server.trace, bytes: served.bytes })
}

fn take_part<T: Real>(
    part: Matrix<T>,
    me: u16,
    identity: Identity,
    cohorts: Vec<Cohort>,
    link: impl Link,
    slowness: f64,
    plan: &Plan,
) -> Result<PartyEnd<T>> {
    let settings = &plan.settings;
    let plain = settings.aggregation == Aggregation::Plain;
    let group = cohorts.last().map_or(ALL, |cohort| cohort.number);
    let machines = cohorts.into_iter().map(|cohort| {
        let (number, size) = (cohort.number, cohort.members.len());
        Ok((number, Party::new(cohort, me, identity.clone(), plain)?, size))
    });
    let machines = machines.collect::<Result<Vec<_>>>()?;
    let mut session = Session::join(link, me, machines, plain, slowness, None)?;
    session.vanishes_after = plan.loses.filter(|(party, _)| *party == me).map(|(_, sums)| sums);
    let mut local = Local::new(part, settings, plan.threads)?;
    // In a simulation the same seed gives the same answer; in earnest V's start comes from the operating system.
    let private_seed = party_seed(settings.seed, "partwise private", me);
    let ended = protocol::run(settings, &mut local, &mut session, private_seed, group)?;
    let session = session.leave()?;
    let cost = PartyCost {
        masking: session.masking.as_secs_f64(),
        bytes: session.bytes,
        sums: session.rounds,
        round_trips: session.round_trips,
    };
    Ok((local, ended, session.transcripts(), cost))
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

fn collect<T: Real>(
    plan: &Plan,
    cohorts: &[Cohort],
    groups: Vec<Vec<u16>>,
    hub: HubEnd,
    ends: Vec<Option<PartyEnd<T>>>,
    wall: f64,
) -> Outcome<T> {
    let stayed: Vec<&PartyEnd<T>> = ends.iter().flatten().collect();
    let Some((_, first, ..)) = stayed.first() else { unreachable!("at most one party vanishes") };
    let (norm, first) = (first.common.norm, first.clone());
    let relative = |squared: f64| (squared.max(0.0) / norm).sqrt();
    let lines = if plan.settings.protocol.is_asynchronous() { hub.trace } else { first.trace };
    let mut trace: Vec<Traced> = lines
        .iter()
        .map(|line| Traced {
            round: line.round,
            seconds: line.seconds,
            relative_error: relative(line.squared_error),
            bytes: line.bytes,
        })
        .collect();
    let mean = |of: fn(&PartyCost) -> u64| {
        stayed.iter().map(|(.., cost)| of(cost)).sum::<u64>() as f64 / stayed.len() as f64
    };
    let (bytes, sums) = (mean(|cost| cost.bytes) as u64, mean(|cost| cost.sums));
    let relative_error = (first.squared_error.max(0.0) / first.present_norm).sqrt();
    let seconds = stayed.iter().map(|(_, ended, ..)| ended.seconds).fold(0.0, f64::max);
    // The last line is the result, after the last fit of V.
    trace.retain(|line| line.round < first.rounds);
    trace.push(Traced { round: first.rounds, seconds, relative_error, bytes });
    let transcripts = cohorts.iter().zip(&hub.transcripts).map(|(cohort, (hash, sums))| Transcript {
        parties: cohort.members.iter().map(|(party, _)| *party).collect(),
        sums: *sums,
        hash: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        agreed: stayed
            .iter()
            .flat_map(|(_, _, told, _)| told)
            .all(|(number, told, _)| *number != cohort.number || told == hash),
    });
    Outcome {
        transcripts: transcripts.collect(),
        trace,
        relative_error,
        rounds: first.rounds,
        stopped_by: first.stopped_by,
        seconds,
        groups,
        cost: Cost {
            wall_seconds: wall,
            wall_seconds_per_round: wall / first.rounds.max(1) as f64,
            masking_seconds: stayed.iter().map(|(.., cost)| cost.masking).sum(),
            bytes_per_party: bytes,
            bytes_of_coordinator: hub.bytes,
            sums,
            round_trips_per_sum: mean(|cost| cost.round_trips) / sums,
        },
        parties: ends
            .into_iter()
            .map(|end| end.map(|(local, ended, ..)| outcome_of(local, &ended)))
            .collect(),
    }
}
