//! Parties as ranks of a communicator ([`Comm`]), which is how they run under MPI: rank 0 is the coordinator, rank
//! r is party r. Clocks are real, and no party can leave: an error of one rank ends the run on all.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use partwise::Real;
use partwise::comm::{Comm, Tag};
use partwise::matrix::Matrix;

use crate::aggregation::{Identity, IdentityKey};
use crate::entropy::entropy;
use crate::error::{Error, Peer, Result};
use crate::link::{Incoming, Link, Recorded, Recorder};
use crate::simulate::{self, PartyEnd, PartyOutcome, PartyReport, Plan, SimulationOutcome};

/// The result of a rank.
pub enum OnRank<T> {
    /// Rank 0: how it went. The parties' factors are not in it.
    Coordinator(SimulationOutcome<T>),
    /// The others: a party's own factors and error.
    Party(PartyOutcome<T>),
}

/// The sizes of the data, known to all ranks.
#[derive(Clone, Copy, Debug)]
pub struct DataSizes<'a> {
    /// The number of records of each party.
    pub records: &'a [usize],
    /// The number of features.
    pub features: usize,
}

/// The kind of a message between two ranks, which is its first byte.
const MESSAGE: u8 = 0;
const FAILURE: u8 = 1;
const REPORT: u8 = 2;

/// The interval at which a waiting rank polls: short compared with a round, long compared with a poll.
const PAUSE: Duration = Duration::from_micros(50);

/// This rank's end of a link over ranks.
struct CommLink<'a> {
    comm: &'a dyn Comm,
    begin: Instant,
    /// The ranks that can send to this one, the next to be looked at first.
    peers: Vec<usize>,
    /// The reports of parties that are done while others are not.
    reports: BTreeMap<usize, Vec<u8>>,
}

impl<'a> CommLink<'a> {
    fn new(comm: &'a dyn Comm) -> Self {
        let peers = if comm.rank() == 0 { (1..comm.size()).collect() } else { vec![0] };
        CommLink { comm, begin: Instant::now(), peers, reports: BTreeMap::new() }
    }

    fn send_as(&self, kind: u8, to: usize, mut bytes: Vec<u8>) -> Result<()> {
        bytes.push(kind);
        Ok(self.comm.send(to, Tag::Gather, bytes)?)
    }

    /// Tells the others why this rank failed: the coordinator tells all, a party the coordinator.
    fn fail(&self, error: &Error) {
        let words = serde_json::to_vec(&error.wording()).unwrap_or_default();
        for &peer in &self.peers {
            // Ranks that cannot be reached have ended already.
            let _ = self.send_as(FAILURE, peer, words.clone());
        }
    }

    /// The reason that an unreachable rank gave, if it did.
    fn reason(&mut self, peer: usize) -> Option<Error> {
        while let Ok(Some(bytes)) = self.comm.try_receive(peer, Tag::Gather) {
            if let Err(error @ Error::Elsewhere { .. }) = self.incoming(peer, bytes) {
                return Some(error);
            }
        }
        None
    }

    fn look(&mut self) -> Result<Option<Incoming>> {
        for _ in 0..self.peers.len() {
            let peer = self.peers[0];
            self.peers.rotate_left(1);
            // A rank sends nothing after its report.
            if self.reports.contains_key(&peer) {
                continue;
            }
            if let Some(bytes) = self.comm.try_receive(peer, Tag::Gather)?
                && let Some(incoming) = self.incoming(peer, bytes)?
            {
                return Ok(Some(incoming));
            }
        }
        Ok(None)
    }

    /// Decodes a rank's message; `None` if it is its report, which is kept.
    fn incoming(&mut self, from: usize, mut bytes: Vec<u8>) -> Result<Option<Incoming>> {
        match bytes.pop() {
            Some(MESSAGE) => Ok(Some(Incoming::Message { from: from as u16, bytes })),
            Some(REPORT) => {
                self.reports.insert(from, bytes);
                Ok(None)
            }
            Some(FAILURE) => {
                let problem = serde_json::from_slice(&bytes)
                    .unwrap_or_else(|_| "another process failed without giving a reason".into());
                Err(Error::Elsewhere { problem })
            }
            _ => {
                let problem = "a malformed message".into();
                Err(Error::Dishonest { who: Peer(self.comm.rank() as u16), from: Peer(from as u16), problem })
            }
        }
    }

    /// A rank's report at its end: a party's to the coordinator, and the coordinator's that all have reported.
    fn report_of(&mut self, from: usize) -> Result<Vec<u8>> {
        loop {
            if let Some(report) = self.reports.remove(&from) {
                return Ok(report);
            }
            let bytes = self.comm.receive(from, Tag::Gather)?;
            self.incoming(from, bytes)?;
        }
    }
}

impl Link for CommLink<'_> {
    fn send(&mut self, to: u16, bytes: Vec<u8>) -> Result<()> {
        self.send_as(MESSAGE, to.into(), bytes).map_err(|error| self.reason(to.into()).unwrap_or(error))
    }

    fn receive(&mut self, deadline: Option<f64>) -> Result<Incoming> {
        loop {
            if let Some(incoming) = self.look()? {
                return Ok(incoming);
            }
            if deadline.is_some_and(|deadline| self.now() >= deadline) {
                return Ok(Incoming::Deadline);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}

/// One rank's part in a run: the coordinator's without a matrix, a party's with its own part. All know how many records
/// each party has, as in every simulation.
///
/// # Errors
///
/// [`Error::Elsewhere`] where another rank failed: then every rank knows why, and no rank waits for another.
pub fn run_on_rank<T: Real>(
    comm: &dyn Comm,
    part: Option<Matrix<T>>,
    sizes: &DataSizes<'_>,
    plan: &Plan,
) -> Result<OnRank<T>> {
    run_on_rank_recorded(comm, part, sizes, plan, &())
}

/// The same, where `recorder` sees what passes at this rank's end: a party's messages and sums, or what the coordinator opens.
pub fn run_on_rank_recorded<T: Real>(
    comm: &dyn Comm,
    part: Option<Matrix<T>>,
    sizes: &DataSizes<'_>,
    plan: &Plan,
    recorder: &dyn Recorder,
) -> Result<OnRank<T>> {
    let &DataSizes { records, features } = sizes;
    plan.check(records, features)?;
    if comm.size() != records.len() + 1 {
        let (parties, ranks) = (records.len(), comm.size());
        let problem = format!(
            "{parties} parties and the coordinator need {} processes, but there are {ranks}; start as many",
            parties + 1
        );
        return Err(Error::parameter("parties", problem));
    }
    if !plan.slowness.is_empty() || plan.loses.is_some() {
        let name = if plan.slowness.is_empty() { "lose" } else { "speeds" };
        return Err(Error::parameter(name, "under MPI clocks are real and no party can leave; leave it out"));
    }
    let identity = Identity::new(&mut entropy()?);
    let keys = comm.all_gather(identity.key().bytes())?;
    let keys: Option<Vec<IdentityKey>> = keys[1..].iter().map(|key| IdentityKey::from_bytes(key)).collect();
    let Some(keys) = keys else {
        return Err(Error::parameter("ranks", "a process has sent no key; run again"));
    };
    let mut link = CommLink::new(comm);
    let room = simulate::Room::new(plan, records, &keys);
    let result = room.and_then(|room| match part {
        None => coordinate(&mut link, &room, recorder),
        Some(part) => take_part(&mut link, &room, OwnPart { part, identity }, recorder),
    });
    if let Err(error) = &result
        && (comm.rank() == 0 || !matches!(error, Error::Elsewhere { .. }))
    {
        link.fail(error);
    }
    result
}

fn coordinate<T: Real>(
    link: &mut CommLink<'_>,
    room: &simulate::Room<'_>,
    recorder: &dyn Recorder,
) -> Result<OnRank<T>> {
    let begin = Instant::now();
    let hub = room.coordinate(link, recorder)?;
    let mut ends = Vec::new();
    let parties = link.comm.size() - 1;
    for party in 1..=parties {
        let report: PartyReport =
            serde_json::from_slice(&link.report_of(party)?).map_err(|error| Error::Dishonest {
                who: Peer(0),
                from: Peer(party as u16),
                problem: format!("an unreadable report ({error})"),
            })?;
        ends.push(Some(PartyEnd { report, u: Vec::new(), v: Vec::new() }));
    }
    // Until then a party may still have to learn of a failure.
    for party in 1..=parties {
        link.send_as(REPORT, party, Vec::new())?;
    }
    Ok(OnRank::Coordinator(room.collect(hub, ends, begin.elapsed().as_secs_f64())))
}

/// The part of the data that only a party's rank has.
struct OwnPart<T> {
    part: Matrix<T>,
    identity: Identity,
}

fn take_part<T: Real>(
    link: &mut CommLink<'_>,
    room: &simulate::Room<'_>,
    own: OwnPart<T>,
    recorder: &dyn Recorder,
) -> Result<OnRank<T>> {
    let me = link.comm.rank() as u16;
    let end = room.take_part(own.part, me, own.identity, Recorded::new(&mut *link, me, recorder))?;
    let bytes = serde_json::to_vec(&end.report).unwrap_or_default();
    link.send_as(REPORT, 0, bytes)?;
    link.report_of(0)?;
    Ok(OnRank::Party(simulate::outcome_of(end)))
}
