//! Asyn-SD and Asyn-SSD-V (Alg. `asyn_server`, `asyn_client_SD`). Clients are groups of parties, whose copies of U are
//! summed before the server sees them; with plain aggregation every party is a client of its own.

use std::collections::BTreeMap;

use partwise::Real;
use partwise::run::Damping;
use partwise::sketch::Distribution;

use super::{Line, Local, Settings, Stop, first_diagonal, matrix};
use crate::aggregation::Words;
use crate::error::Result;
use crate::fixed::{self, Part};
use crate::server::Answer;
use crate::session::{ALL, Session};

/// A party: T iterations, then its U goes out; while the group completes it computes on. Steps on U are proximal, as
/// in the synchronous methods, and with the same weight at all parties.
pub fn run<T: Real>(
    settings: &Settings,
    local: &mut Local<T>,
    session: &mut Session<'_>,
    group: u8,
) -> Result<(usize, Stop)> {
    let (sum, parties) = first_diagonal(local, session)?;
    let mut diagonal = sum / parties as f64;
    let mut steps = Steps {
        records: local.records_sketch(settings, session.me()),
        damping: settings.damping(diagonal),
        iteration: 0,
    };
    let mut rounds = 0;
    loop {
        let mut own_error = 0.0;
        for inner in 0..settings.inner {
            let cross = steps.take(local, session, diagonal);
            if inner == 0 {
                own_error = cross;
            }
        }
        session.start(group, "U", parts(local, settings.rank, [own_error, local.diagonal()]))?;
        // Not for ever: the longer a party computes by itself, the less its V fits the U that it will be sent.
        let mut total = session.poll()?;
        for _ in 0..settings.inner {
            if total.is_none() {
                steps.take(local, session, diagonal);
                total = session.poll()?;
            }
        }
        let total = match total {
            Some(total) => total,
            None => session.wait()?,
        };
        rounds += 1;
        let answer = Answered::read(&total.words);
        answer.give(local, session)?;
        diagonal = answer.diagonal;
        session.expect(group, "U", &parts(local, settings.rank, [total.parts[1][0], total.parts[1][1]]));
        if answer.stop {
            break;
        }
        if session.most_rounds.is_some_and(|most| rounds >= most) {
            return Err(session.dishonest("no end to the rounds, though all that were agreed on are done"));
        }
    }
    // All take the server's last U, which whoever is missing here and was not before has had its part in. (With a known range
    // there is nothing to agree on first.)
    let incomplete = session.incomplete;
    session.expect(ALL, "the end", &[Part::scalars(&[1.0])]);
    let total = session.sum(ALL, "the end", vec![Part::scalars(&[1.0])])?;
    session.incomplete = incomplete;
    Answered::read(&total.words).give(local, session)?;
    Ok((rounds, Stop::Rounds))
}

/// What a party sends: its U, the error that it had with the U that it was sent, and the diagonal of its V_rᵀV_r.
fn parts<T: Real>(local: &Local<T>, k: usize, scalars: [f64; 2]) -> Vec<Part> {
    vec![matrix(&local.u, k), Part::scalars(&scalars)]
}

struct Steps {
    records: Option<Distribution>,
    damping: Damping,
    iteration: usize,
}

impl Steps {
    /// V, then U; returns the error between the two.
    fn take<T: Real>(&mut self, local: &mut Local<T>, session: &mut Session<'_>, diagonal: f64) -> f64 {
        let cross = local.sweep_v();
        let error = local.error_from(cross);
        let solver = self.damping.next(self.iteration, diagonal, 0.0);
        match &self.records {
            Some(sketch) => local.sketched_u(solver, sketch, self.iteration),
            None => local.own_step_u(solver),
        }
        self.iteration += 1;
        session.work(local.take_work());
        error
    }
}

/// What the server answers: its U, as it is, in the place of the matrix, and behind the group's sums whether this is the
/// end and the mean diagonal over all parties.
struct Answered {
    u: Vec<f32>,
    stop: bool,
    diagonal: f64,
}

impl Answered {
    fn read(words: &Words) -> Self {
        let u = words.narrow.iter().map(|&word| f32::from_bits(word)).collect();
        let word = |place: usize| words.wide.get(place).copied().unwrap_or(0);
        Answered { u, stop: word(2) == 1, diagonal: f64::from_bits(word(3)) }
    }

    /// The party takes the server's U.
    fn give<T: Real>(&self, local: &mut Local<T>, session: &Session<'_>) -> Result<()> {
        if self.u.len() != local.u.len() {
            return Err(session.dishonest("a U of another size"));
        }
        local.u = self.u.iter().map(|&value| T::from_f64(value.into())).collect();
        Ok(())
    }
}

/// What the server knows of a group.
struct Group {
    size: usize,
    /// How many were in its last sum.
    present: usize,
    ranges: Option<Vec<i16>>,
    squared_error: Option<f64>,
    /// The sum of its members' diagonals.
    diagonal: f64,
    updates: usize,
    /// The server's t when it was last heard.
    heard: usize,
    /// Its sum will be answered later.
    held: bool,
    stopped: bool,
}

/// The server: U moves by ω_t = ρ / (ρ + t) towards each mean of a group that is opened.
pub struct Server {
    settings: Settings,
    groups: BTreeMap<u8, Group>,
    updates: usize,
    /// t of ω_t, the number of updates but for those that [`Server::returned`] takes back.
    t: usize,
    u: Vec<f64>,
    ended: bool,
    /// Rounds of the attempt before.
    before: usize,
    /// The error over updates, from what the groups last had.
    pub trace: Vec<Line>,
}

impl Server {
    /// The number and size of each group.
    pub fn new(settings: &Settings, groups: &[(u8, usize)]) -> Self {
        let group = |size| Group {
            size,
            present: size,
            ranges: None,
            squared_error: None,
            diagonal: 0.0,
            updates: 0,
            heard: 0,
            held: false,
            stopped: false,
        };
        Server {
            settings: settings.clone(),
            groups: groups.iter().map(|&(number, size)| (number, group(size))).collect(),
            updates: 0,
            t: 0,
            u: Vec::new(),
            ended: false,
            before: 0,
            trace: Vec::new(),
        }
    }

    fn begin_anew(&mut self) {
        let sizes: Vec<(u8, usize)> =
            self.groups.iter().map(|(&number, group)| (number, group.size)).collect();
        let (before, trace) = (self.before + self.rounds(), std::mem::take(&mut self.trace));
        *self = Server { before, trace, ..Server::new(&self.settings, &sizes) };
    }

    /// Exchanges of a group, on average.
    fn rounds(&self) -> usize {
        self.updates.div_ceil(self.groups.len())
    }

    /// The t at which the run ends, and after how many rounds a group does no more.
    fn limit(&self) -> usize {
        self.settings.most_rounds(self.groups.len())
    }

    /// Whether the others went on without a group: more than two rounds.
    fn is_away(&self, group: &Group) -> bool {
        !group.held && !group.stopped && self.t - group.heard > 2 * self.groups.len()
    }

    /// Whether a group is to be answered later: another is away, and this one would end the run, or would have fewer
    /// rounds left than it may need when that one is back.
    pub fn holds(&mut self, number: u8) -> bool {
        let Some(group) = self.groups.get(&number) else { return false };
        let last = self.t + 1 >= self.limit() || group.updates + self.settings.rounds >= self.limit();
        let held = last && self.groups.iter().any(|(&other, group)| other != number && self.is_away(group));
        if let Some(group) = self.groups.get_mut(&number) {
            group.held = held;
        }
        held
    }

    /// A group that was away is back. U has become that of the others meanwhile, so that t is again what it was when the
    /// group was last heard, and not more than half of what ends the run: they go on together for long enough.
    pub fn returned(&mut self, number: u8) {
        let half = self.limit() / 2;
        let away = self.groups.get(&number).filter(|group| self.is_away(group));
        let Some(heard) = away.map(|group| group.heard) else { return };
        self.t = heard.min(half);
        self.groups.values_mut().for_each(|group| group.heard = group.heard.min(self.t));
    }

    fn words_of_u(&self) -> Vec<u32> {
        self.u.iter().map(|&value| (value as f32).to_bits()).collect()
    }

    /// What the parties expect of the next sum, from U as they have it, in f32.
    fn expected(&self, scalars: [f64; 2]) -> Vec<Part> {
        let u = self.u.iter().map(|&value| (value as f32).into()).collect();
        vec![Part::matrix(u, self.settings.rank), Part::scalars(&scalars)]
    }

    /// The sums of a group's U, and of its errors and diagonals; nothing if these words are about ranges.
    fn numbers(&mut self, number: u8, sum: &Words) -> Option<(Vec<f64>, [f64; 2])> {
        let group = self.groups.get_mut(&number)?;
        if self.settings.aggregation == super::Aggregation::Plain {
            let u = sum.narrow.iter().map(|&word| f32::from_bits(word).into()).collect();
            let scalar = |place: usize| sum.wide.get(place).map(|&word| f64::from_bits(word));
            return Some((u, [scalar(0)?, scalar(1)?]));
        }
        if sum.narrow.is_empty() {
            group.ranges = Some(fixed::agreed(sum));
            return None;
        }
        let exponents = group.ranges.take().filter(|ranges| ranges.len() == self.settings.rank + 2)?;
        if sum.wide.last() != Some(&0) {
            return None;
        }
        let shapes =
            [Part::matrix(vec![0.0; sum.narrow.len()], self.settings.rank), Part::scalars(&[0.0; 2])];
        let mut parts = fixed::decode(sum, &shapes, &exponents, group.size);
        let scalars = parts.pop()?.values.try_into().ok()?;
        Some((parts.pop()?.values, scalars))
    }

    fn update(&mut self, number: u8, (u, scalars): (Vec<f64>, [f64; 2]), parties: usize, now: f64) {
        // Not before every group was heard.
        let unheard = self.groups.values().any(|group| group.squared_error.is_none());
        let limit = self.limit();
        if self.t < limit || unheard {
            let omega = self.settings.rho / (self.settings.rho + self.t as f64);
            self.u.resize(u.len(), 0.0);
            for (server, sum) in self.u.iter_mut().zip(&u) {
                *server = (1.0 - omega) * *server + omega * sum / parties as f64;
            }
            self.updates += 1;
            self.t += 1;
        }
        let ranges = fixed::follow(&self.expected(scalars));
        if let Some(group) = self.groups.get_mut(&number) {
            (group.squared_error, group.diagonal, group.ranges) =
                (Some(scalars[0]), scalars[1], Some(ranges));
            group.updates += 1;
            group.present = parties;
            group.heard = self.t;
        }
        let heard = self.groups.values().all(|group| group.squared_error.is_some());
        let stopped = self.t >= limit && heard;
        if let Some(group) = self.groups.get_mut(&number) {
            // However long others take, it does no more than the parties agreed on.
            group.stopped = stopped || group.updates >= limit;
        }
        let errors: Option<f64> = self.groups.values().map(|group| group.squared_error).sum();
        if let Some(squared_error) = errors {
            let round = self.before + self.rounds();
            let bytes = (round * self.u.len() * 8) as u64;
            self.trace.push(Line { round, seconds: now, squared_error, bytes });
        }
    }
}

impl Answer for Server {
    fn answer(&mut self, cohort: u8, mut sum: Words, parties: usize, now: f64) -> Words {
        if cohort == ALL {
            if !self.ended && self.groups.values().all(|group| group.stopped) {
                self.ended = true;
                sum.narrow = self.words_of_u();
            }
            return sum;
        }
        // A group sums again: somebody was missing, and the parties do it once more.
        if self.ended && self.settings.attempts() > 1 {
            self.begin_anew();
        }
        let Some(numbers) = self.numbers(cohort, &sum) else { return sum };
        self.update(cohort, numbers, parties, now);
        sum.narrow = self.words_of_u();
        let stopped = self.groups.get(&cohort).is_some_and(|group| group.stopped);
        // Of the groups that were heard.
        let heard = self.groups.values().filter(|group| group.squared_error.is_some());
        let (sums, count) =
            heard.fold((0.0, 0), |(sums, count), group| (sums + group.diagonal, count + group.present));
        sum.wide.insert(2, stopped.into());
        sum.wide.insert(3, (sums / count as f64).to_bits());
        sum
    }
}

#[cfg(test)]
mod tests {
    use partwise::matrix::{Dense, Matrix, Order, Values};
    use partwise::threads::Threads;

    use super::super::Protocol;
    use super::*;
    use crate::aggregation::{Hub, Identity, Party};
    use crate::entropy::entropy;
    use crate::net::{DEFAULT_WAN, network};
    use crate::server::serve;

    fn plain(rounds: usize) -> Settings {
        let aggregation = super::super::Aggregation::Plain;
        Settings { aggregation, rounds, ..Settings::new(Protocol::AsynSd, 1) }
    }

    /// What the server answers a group of one, whose U has the group's number everywhere.
    fn answer(server: &mut Server, group: u8) -> Answered {
        let sum = Words { narrow: vec![f32::from(group).to_bits(); 4], wide: vec![1f64.to_bits(); 2] };
        Answered::read(&server.answer(group, sum, 1, 0.0))
    }

    /// A group that others keep waiting does no more rounds than all together were to do.
    #[test]
    fn a_group_stops_though_another_was_never_heard() {
        let settings = plain(3);
        let mut server = Server::new(&settings, &[(1, 1), (2, 1)]);
        let stops: Vec<bool> = (0..6).map(|_| answer(&mut server, 1).stop).collect();
        assert_eq!(stops, [false, false, false, false, false, true]);
        assert!(answer(&mut server, 2).stop);
    }

    /// The others go on without a group, but not to the end of the run; when it is back, all go on together for half of it.
    #[test]
    fn a_group_that_was_away_is_made_up_for() {
        let settings = plain(20);
        let mut server = Server::new(&settings, &[(1, 1), (2, 1)]);
        let answer = |server: &mut Server, group: u8| {
            assert!(!server.holds(group));
            answer(server, group)
        };
        for _ in 0..5 {
            answer(&mut server, 1);
            answer(&mut server, 2);
        }
        let mut alone = 0;
        while !server.holds(1) {
            assert!(!answer(&mut server, 1).stop);
            alone += 1;
        }
        assert_eq!(alone, 15, "its own rounds are done");
        server.returned(2);
        let mut rounds = 0;
        let last = loop {
            let (first, second) = (answer(&mut server, 1), answer(&mut server, 2));
            rounds += 1;
            if first.stop || second.stop {
                break second;
            }
        };
        assert_eq!(rounds, 15, "as many as were left");
        assert!((1.4..1.6).contains(&last.u[0]), "U is of both groups alike: {}", last.u[0]);
        // Whoever was away for a moment only is not.
        server.returned(1);
        assert_eq!(server.t, 40);
    }

    /// Of two groups that are away, one returns: for the other all is held as before.
    #[test]
    fn who_returns_does_not_return_for_others() {
        let settings = plain(20);
        let mut server = Server::new(&settings, &[(1, 1), (2, 1), (3, 1)]);
        [1, 2, 3].iter().cycle().take(9).for_each(|&group| drop(answer(&mut server, group)));
        [1, 2].iter().cycle().take(20).for_each(|&group| drop(answer(&mut server, group)));
        while !server.holds(1) {
            answer(&mut server, 1);
        }
        server.returned(2);
        assert_eq!(server.t, 29);
        assert!(server.holds(1), "the third is still away");
        assert!(!server.holds(2), "it has rounds to do");
        server.returned(3);
        assert_eq!(server.t, 9);
        assert!(!server.holds(1));
    }

    /// A coordinator that never says that it is the end does not get more rounds than were agreed on.
    #[test]
    fn a_party_ends_when_the_coordinator_does_not() {
        let settings = &Settings { rounds: 50, ..Settings::new(Protocol::AsynSd, 2) };
        let mut rng = entropy().unwrap();
        let identities: Vec<Identity> = (0..3).map(|_| Identity::new(&mut rng)).collect();
        let keys: Vec<_> = identities.iter().map(Identity::key).collect();
        let cohorts = &crate::cohorts(settings, ([1; 32], 0), &keys, &[vec![1, 2, 3]]).unwrap();
        let mut links = network(3, DEFAULT_WAN).into_iter();
        let mut hub_link = links.next().unwrap();
        std::thread::scope(|scope| {
            let hubs =
                cohorts.iter().map(|cohort| (cohort.number, Hub::new(cohort.clone(), false))).collect();
            scope.spawn(move || {
                serve(&mut hub_link, hubs, 3, &mut Server::new(settings, &[(1, 3)])).map(drop)
            });
            for ((me, link), identity) in (1..).zip(links).zip(identities) {
                scope.spawn(move || {
                    let machines = cohorts.iter().map(|cohort| {
                        let machine = Party::new(cohort.clone(), me, identity.clone(), false).unwrap();
                        (cohort.number, machine, 3)
                    });
                    let mut session = Session::join(link, me, machines.collect(), false, 1.0, None).unwrap();
                    session.most_rounds = Some(4);
                    let values = (0..12).map(|entry| ((entry * 7 + me) % 5) as f32).collect();
                    let matrix = Dense::new(3, 4, Order::RowMajor, Values::Real(values));
                    let mut local =
                        Local::new(Matrix::Dense(matrix), settings, Threads::new(1).unwrap()).unwrap();
                    let error = super::super::run(settings, &mut local, &mut session, 1, 1).err().unwrap();
                    assert!(error.to_string().contains("no end to the rounds"), "{error}");
                    session.leave().unwrap();
                });
            }
        });
    }
}
