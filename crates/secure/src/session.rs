//! A party at work: its links and machines, and sums of numbers on top of sums of words.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use chacha20::ChaCha20Rng;
use rand::Rng;

use crate::aggregation::{Action, Event, Message, Party, Words};
use crate::entropy::entropy;
use crate::error::{Error, Peer, Result};
use crate::fixed::{self, Part};
use crate::link::{Asked, Incoming, Link};

/// The cohort of all parties.
pub const ALL: u8 = 0;

/// What an opened sum is.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// The sums of the parts.
    pub parts: Vec<Vec<f64>>,
    /// How many parties are in them.
    pub parties: usize,
    /// What the coordinator answered, as it came.
    pub words: Words,
}

/// What is kept so that a party can take up its run again.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// An answer.
    Answer(Answered),
    /// For whom masks are about to be revealed in this round of a cohort, where that may be some of its parties. Whoever
    /// forgot it could be asked for a second sum over others, and the difference would be somebody's words.
    Promise {
        /// The cohort.
        cohort: u8,
        /// The parties.
        survivors: Vec<u16>,
    },
}

/// An answer: what a party computes follows from its data, its seeds and these.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The cohort.
    pub cohort: u8,
    /// How many were in the sum.
    pub parties: usize,
    /// How often [`Session::poll`] had found nothing before.
    pub polls: u32,
    /// The hash over all answers of the cohort, this one included.
    pub answers: [u8; 32],
    /// What was answered.
    pub words: Words,
}

/// Where that is kept.
pub trait Journal: Send {
    /// The next from before.
    fn next(&mut self) -> Result<Option<Kept>>;

    /// Keeps this.
    fn keep(&mut self, kept: &Kept) -> Result<()>;
}

/// Something that all parties know, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// ‖M‖².
    Norm(f64),
    /// Σ ‖M_r − U V_rᵀ‖² after a round.
    Error {
        /// The round.
        round: usize,
        /// Over all parties.
        squared_error: f64,
    },
    /// Somebody was missing in sums, and the run is done once more by those who are there.
    Retry,
}

/// A sum under way.
struct Pending {
    cohort: u8,
    what: &'static str,
    parts: Vec<Part>,
    /// Whether this round only agrees on ranges.
    voting: bool,
    /// Whether that is all that is asked: which columns somebody has something else than 0 in.
    flags: bool,
}

/// Seconds of the simulated clock for a multiplication, and for a byte of a mask: a core of these days.
const SECONDS_PER_MULTIPLICATION: f64 = 2e-10;
const SECONDS_PER_MASK_BYTE: f64 = 1e-9;

/// A party's connection to its cohorts.
pub struct Session<'a> {
    link: Box<dyn Link + 'a>,
    me: u16,
    machines: BTreeMap<u8, (Party, usize)>,
    plain: bool,
    entropy: ChaCha20Rng,
    ranges: BTreeMap<(u8, &'static str), Vec<i16>>,
    pending: Option<Pending>,
    answered: Option<(u8, Words, usize)>,
    slowness: f64,
    journal: Option<Box<dyn Journal + 'a>>,
    /// The answer that the journal has next. While there is one, nothing is sent.
    kept: Option<Answered>,
    /// Whether the machines have joined.
    live: bool,
    polls: u32,
    /// Messages of cohorts that this party is behind with and not at.
    stash: BTreeMap<u8, VecDeque<Message>>,
    /// Told what all know.
    pub watch: Option<Box<dyn FnMut(Seen) + Send + 'a>>,
    /// Where the coordinator says when it is the end: rounds after which it must have.
    pub most_rounds: Option<usize>,
    /// Whether somebody was missing in a sum of this attempt that this party saw.
    pub incomplete: bool,
    /// How often the run was begun anew.
    attempt: u8,
    /// For trials: vanishes after so many sums.
    pub vanishes_after: Option<u64>,
    /// Real time in the machines: masks, shares, signatures, fixed point.
    pub masking: Duration,
    /// Real time in waiting for others.
    pub waiting: Duration,
    /// Sums that were answered, and exchanges with the coordinator.
    pub rounds: u64,
    /// Messages to the coordinator that it had to answer.
    pub round_trips: u64,
    /// Bytes sent and received, as the methods count them: without key exchange and evaluation.
    pub bytes: u64,
}

impl<'a> Session<'a> {
    /// Joins the cohorts, each with its number and size.
    pub fn join(
        link: impl Link + 'a,
        me: u16,
        machines: Vec<(u8, Party, usize)>,
        plain: bool,
        slowness: f64,
        journal: Option<Box<dyn Journal + 'a>>,
    ) -> Result<Self> {
        let machines = machines.into_iter().map(|(number, party, size)| (number, (party, size))).collect();
        let mut session = Session {
            link: Box::new(link),
            me,
            machines,
            plain,
            entropy: entropy()?,
            ranges: BTreeMap::new(),
            pending: None,
            answered: None,
            slowness,
            journal,
            kept: None,
            live: false,
            polls: 0,
            stash: BTreeMap::new(),
            watch: None,
            most_rounds: None,
            incomplete: false,
            attempt: 0,
            vanishes_after: None,
            masking: Duration::ZERO,
            waiting: Duration::ZERO,
            rounds: 0,
            round_trips: 0,
            bytes: 0,
        };
        session.look_up()?;
        if session.kept.is_none() {
            session.begin()?;
        }
        Ok(session)
    }

    /// The machines join.
    fn begin(&mut self) -> Result<()> {
        self.live = true;
        let numbers: Vec<u8> = self.machines.keys().copied().collect();
        for number in numbers {
            let actions = self.machines.get_mut(&number).map(|(party, _)| party.begin()).unwrap_or_default();
            self.act(number, actions)?;
        }
        Ok(())
    }

    /// Tells whoever watches.
    pub fn see(&mut self, seen: Seen) {
        if let Some(watch) = &mut self.watch {
            watch(seen);
        }
    }

    /// This party's number.
    pub fn me(&self) -> u16 {
        self.me
    }

    /// This party's clock.
    pub fn now(&self) -> f64 {
        self.link.now()
    }

    /// So many multiplications were done.
    pub fn work(&mut self, multiplications: f64) {
        self.link.spend(multiplications * SECONDS_PER_MULTIPLICATION * self.slowness);
    }

    /// The hash over all that this party was told, by cohort.
    pub fn transcripts(&self) -> Vec<(u8, [u8; 32], u64)> {
        let of =
            |(number, (party, _)): (&u8, &(Party, usize))| (*number, *party.transcript(), party.rounds());
        self.machines.iter().map(of).collect()
    }

    /// The sum over a cohort of what each of it calls `what`.
    pub fn sum(&mut self, cohort: u8, what: &'static str, parts: Vec<Part>) -> Result<Total> {
        self.start(cohort, what, parts)?;
        self.wait()
    }

    /// The sum that was begun.
    pub fn wait(&mut self) -> Result<Total> {
        loop {
            if let Some(total) = self.next(None)? {
                return Ok(total);
            }
        }
    }

    /// Whether any party of a cohort raises a flag; not whose it is, nor how many do.
    pub fn any(&mut self, cohort: u8, what: &'static str, flag: bool) -> Result<bool> {
        self.ask(cohort, what, vec![Part::scalars(&[if flag { 1.0 } else { 0.0 }])], true)?;
        Ok(self.wait()?.parts.concat().iter().any(|&raised| raised != 0.0))
    }

    /// Begins a sum that [`Session::poll`] will have the result of.
    pub fn start(&mut self, cohort: u8, what: &'static str, parts: Vec<Part>) -> Result<()> {
        self.ask(cohort, what, parts, false)
    }

    fn ask(&mut self, cohort: u8, what: &'static str, parts: Vec<Part>, flags: bool) -> Result<()> {
        if self.pending.is_some() {
            return Err(self.out_of_turn());
        }
        if self.vanishes_after.is_some_and(|sums| self.rounds >= sums) {
            return Err(Error::Vanished { party: self.me });
        }
        self.pending = Some(Pending { cohort, what, parts, voting: false, flags });
        self.submit()
    }

    /// The sum that was begun, if it is there by now.
    pub fn poll(&mut self) -> Result<Option<Total>> {
        let now = self.link.now();
        self.next(Some(now))
    }

    /// This party needs nothing more.
    pub fn leave(mut self) -> Result<Self> {
        self.link.send(0, Vec::new())?;
        Ok(self)
    }

    /// The coordinator did what it must not.
    pub(crate) fn dishonest(&self, problem: &str) -> Error {
        Error::Dishonest { who: Peer(self.me), from: Peer(0), problem: problem.into() }
    }

    fn out_of_turn(&self) -> Error {
        let problem = "a sum before the last was answered".into();
        Error::Dishonest { who: Peer(self.me), from: Peer(self.me), problem }
    }

    /// Masks and sends: the votes on ranges where none are known, else the numbers.
    fn submit(&mut self) -> Result<()> {
        let begin = Instant::now();
        let Some(pending) = &mut self.pending else { return Err(self.out_of_turn()) };
        let size = self.machines.get(&pending.cohort).map_or(1, |(_, size)| *size);
        let ranges = self.ranges.get(&(pending.cohort, pending.what));
        if self.kept.is_some() {
            pending.voting = !self.plain && ranges.is_none();
            return Ok(());
        }
        let words = match ranges {
            _ if self.plain => plain_words(&pending.parts),
            None => {
                pending.voting = true;
                fixed::votes(&pending.parts, (self.me, pending.what), &mut self.entropy)?
            }
            Some(exponents) => {
                pending.voting = false;
                // Last a word that is not 0 if somebody's numbers are outside. The others' sum must not be opened then:
                // with the one that follows, in which this party's numbers are, it would show these. So noise goes out.
                match fixed::encode(&pending.parts, exponents, size) {
                    Some(mut words) => {
                        words.wide.push(0);
                        words
                    }
                    None => {
                        let mut words = noise(&pending.parts, &mut self.entropy);
                        words.wide.push(fixed::raised(&mut self.entropy));
                        words
                    }
                }
            }
        };
        let cohort = pending.cohort;
        self.masking += begin.elapsed();
        self.link.asks(&Asked {
            party: self.me,
            cohort,
            size,
            what: pending.what,
            attempt: self.attempt,
            voting: pending.voting,
            parts: &pending.parts,
            exponents: ranges.map_or(&[], Vec::as_slice),
            words: &words,
        });
        if !self.plain {
            self.link.spend(words.bytes() as f64 * (size + 1) as f64 * SECONDS_PER_MASK_BYTE * self.slowness);
        }
        if !self.live {
            self.begin()?;
        }
        self.handle(cohort, Event::Submit(words))
    }

    fn handle(&mut self, number: u8, event: Event) -> Result<()> {
        let begin = Instant::now();
        let Some((party, _)) = self.machines.get_mut(&number) else { return Err(self.out_of_turn()) };
        let actions = party.handle(event)?;
        self.masking += begin.elapsed();
        self.act(number, actions)
    }

    fn act(&mut self, number: u8, actions: Vec<Action>) -> Result<()> {
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    if let Message::Unmask { .. } = &message {
                        self.keep_promise(number)?;
                    }
                    let bytes = addressed(number, &message);
                    self.round_trips += 1;
                    self.bytes += bytes.len() as u64;
                    self.link.send(to, bytes)?;
                }
                Action::Opened { words, cohort } => self.answered = Some((number, words, cohort.len())),
                // The coordinator's.
                Action::Waiting { .. } | Action::Tell { .. } | Action::CatchUp { .. } => {}
            }
        }
        Ok(())
    }

    /// Handles what comes until the sum is there, or until the deadline.
    fn next(&mut self, deadline: Option<f64>) -> Result<Option<Total>> {
        loop {
            if let Some(answered) = self.answered.take() {
                self.keep(&answered)?;
                match self.finish(answered)? {
                    Some(total) => return Ok(Some(total)),
                    None => continue,
                }
            }
            if let Some(kept) = &mut self.kept {
                if deadline.is_some() && kept.polls > 0 {
                    kept.polls -= 1;
                    return Ok(None);
                }
                match self.recall()? {
                    Some(total) => return Ok(Some(total)),
                    None => continue,
                }
            }
            if let Some((cohort, message)) = self.stashed() {
                self.handle(cohort, Event::Message { from: 0, message })?;
                continue;
            }
            let begin = Instant::now();
            let incoming = self.link.receive(deadline)?;
            self.waiting += begin.elapsed();
            match incoming {
                Incoming::Message { from, bytes } => {
                    self.bytes += bytes.len() as u64;
                    let begin = Instant::now();
                    let (number, message) = parse(self.me, from, &bytes)?;
                    self.masking += begin.elapsed();
                    if !self.machines.contains_key(&number) {
                        return Err(self.dishonest("a message of a cohort that this party is not in"));
                    }
                    let early = matches!(message, Message::Reply { .. })
                        && self.pending.as_ref().is_none_or(|pending| pending.cohort != number);
                    // Whoever was away may have missed all answers of a run, which may be done twice; a round has a few.
                    let most = self.most_rounds.map_or(usize::MAX, |rounds| rounds.saturating_mul(32));
                    match self.stash.get_mut(&number).filter(|stash| !stash.is_empty()) {
                        Some(stash) if stash.len() > most => {
                            return Err(self.dishonest("more answers than a run has"));
                        }
                        Some(stash) => stash.push_back(message),
                        None if early => self.stash.entry(number).or_default().push_back(message),
                        None => self.handle(number, Event::Message { from, message })?,
                    }
                }
                Incoming::Lost(peer) => {
                    return Err(Error::LinkLost { who: Peer(self.me), peer: Peer(peer) });
                }
                Incoming::Joined(_) => {}
                Incoming::Deadline => {
                    self.polls += 1;
                    return Ok(None);
                }
            }
        }
    }

    /// What came early for the sum that is under way now.
    fn stashed(&mut self) -> Option<(u8, Message)> {
        let cohort = self.pending.as_ref()?.cohort;
        Some((cohort, self.stash.get_mut(&cohort)?.pop_front()?))
    }

    /// Notes an answer in the journal.
    fn keep(&mut self, (cohort, words, parties): &(u8, Words, usize)) -> Result<()> {
        let (Some(journal), Some((party, _))) = (&mut self.journal, self.machines.get(cohort)) else {
            return Ok(());
        };
        let (polls, answers) = (std::mem::take(&mut self.polls), *party.answers());
        let answered = Answered { cohort: *cohort, parties: *parties, polls, answers, words: words.clone() };
        journal.keep(&Kept::Answer(answered))
    }

    /// Notes for whom masks are about to be revealed.
    fn keep_promise(&mut self, cohort: u8) -> Result<()> {
        let promised = self.machines.get(&cohort).and_then(|(party, _)| party.promised());
        match (&mut self.journal, promised) {
            (Some(journal), Some(list)) => journal.keep(&Kept::Promise { cohort, survivors: list.into() }),
            _ => Ok(()),
        }
    }

    /// Reads the journal up to its next answer.
    fn look_up(&mut self) -> Result<()> {
        loop {
            match self.journal.as_mut().map_or(Ok(None), |journal| journal.next())? {
                Some(Kept::Promise { cohort, survivors }) => {
                    if let Some((party, _)) = self.machines.get_mut(&cohort) {
                        party.promise(survivors);
                    }
                }
                Some(Kept::Answer(answered)) => {
                    self.kept = Some(answered);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    /// Takes the next answer from the journal.
    fn recall(&mut self) -> Result<Option<Total>> {
        let Some(kept) = self.kept.take() else { return Ok(None) };
        if let Some((party, _)) = self.machines.get_mut(&kept.cohort) {
            party.restore_answers(kept.answers);
        }
        self.look_up()?;
        self.finish((kept.cohort, kept.words, kept.parties))
    }

    /// The numbers of an answer; nothing if it was about ranges, or showed that they are too narrow.
    fn finish(&mut self, (cohort, words, parties): (u8, Words, usize)) -> Result<Option<Total>> {
        let begin = Instant::now();
        self.rounds += 1;
        let Some(pending) = &self.pending else { return Err(self.out_of_turn()) };
        let key = (cohort, pending.what);
        let size = self.machines.get(&cohort).map_or(1, |(_, size)| *size);
        self.incomplete |= parties < size;
        // A server of the methods may have put its own words among them.
        let (narrow, wide) = answer_size(pending, self.plain);
        if words.narrow.len() < narrow || words.wide.len() < wide {
            return Err(self.dishonest("an answer that is shorter than what was asked"));
        }
        if self.plain {
            let parts = plain_numbers(&words, &pending.parts);
            self.pending = None;
            return Ok(Some(Total { parts, parties, words }));
        }
        if pending.flags {
            let raised = fixed::anything(&words).into_iter().map(f64::from).collect();
            self.pending = None;
            return Ok(Some(Total { parts: vec![raised], parties, words }));
        }
        let outside = !pending.voting && words.wide.last() != Some(&0);
        if pending.voting {
            self.ranges.insert(key, fixed::agreed(&words));
        } else if outside {
            self.ranges.remove(&key);
        }
        if pending.voting || outside {
            self.submit()?;
            return Ok(None);
        }
        let exponents = self.ranges.get(&key).cloned().unwrap_or_default();
        let opened = fixed::decode(&words, &pending.parts, &exponents, size);
        self.ranges.insert(key, fixed::follow(&opened));
        let parts = opened.into_iter().map(|part| part.values).collect();
        self.pending = None;
        self.masking += begin.elapsed();
        Ok(Some(Total { parts, parties, words }))
    }

    /// Whether every sum of this party's cohorts is opened though somebody is missing.
    pub fn may_miss(&self) -> bool {
        self.machines.values().all(|(party, _)| party.may_miss())
    }

    /// From here on all is as at the beginning, but who is there.
    pub fn begin_anew(&mut self) {
        self.ranges.clear();
        self.incomplete = false;
        self.attempt += 1;
    }

    /// Sets the ranges of the next sum of this kind from numbers that the whole cohort knows.
    pub fn expect(&mut self, cohort: u8, what: &'static str, like: &[Part]) {
        self.ranges.insert((cohort, what), fixed::follow(like));
    }
}

/// A message with the number of the cohort that it belongs to.
pub fn addressed(cohort: u8, message: &Message) -> Vec<u8> {
    let mut bytes = message.encode();
    bytes.push(cohort);
    bytes
}

/// The other way round.
pub fn parse(me: u16, from: u16, bytes: &[u8]) -> Result<(u8, Message)> {
    let message = bytes.split_last().and_then(|(cohort, rest)| Some((*cohort, Message::decode(rest)?)));
    message.ok_or_else(|| Error::Dishonest {
        who: Peer(me),
        from: Peer(from),
        problem: "bytes that are no message".into(),
    })
}

/// Words of 32 and of 64 bits that a sum is answered with at least.
fn answer_size(pending: &Pending, plain: bool) -> (usize, usize) {
    if pending.voting && !plain {
        return (0, pending.parts.iter().map(|part| part.columns).sum::<usize>() * fixed::VOTES);
    }
    let count = |width: fixed::Width| -> usize {
        pending.parts.iter().filter(|part| part.width == width).map(|part| part.values.len()).sum()
    };
    // Behind masked numbers is a word for whether all are within their range.
    (count(fixed::Width::Narrow), count(fixed::Width::Wide) + usize::from(!plain))
}

/// Numbers as they are: f32 for matrices, f64 for the rest.
fn plain_words(parts: &[Part]) -> Words {
    let mut words = Words::default();
    for part in parts {
        match part.width {
            fixed::Width::Narrow => {
                words.narrow.extend(part.values.iter().map(|&value| (value as f32).to_bits()))
            }
            fixed::Width::Wide => words.wide.extend(part.values.iter().map(|value| value.to_bits())),
        }
    }
    words
}

fn plain_numbers(words: &Words, shapes: &[Part]) -> Vec<Vec<f64>> {
    let (mut narrow, mut wide) = (words.narrow.iter(), words.wide.iter());
    let numbers = |shape: &Part| match shape.width {
        fixed::Width::Narrow => {
            narrow.by_ref().take(shape.values.len()).map(|&word| f32::from_bits(word).into()).collect()
        }
        fixed::Width::Wide => {
            wide.by_ref().take(shape.values.len()).map(|&word| f64::from_bits(word)).collect()
        }
    };
    shapes.iter().map(numbers).collect()
}

/// Random words, as many as the parts have numbers.
fn noise(parts: &[Part], rng: &mut impl Rng) -> Words {
    let mut words = Words::default();
    for part in parts {
        match part.width {
            fixed::Width::Narrow => words.narrow.extend(part.values.iter().map(|_| rng.next_u32())),
            fixed::Width::Wide => words.wide.extend(part.values.iter().map(|_| rng.next_u64())),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::aggregation::{Cohort, Hub, Identity};
    use crate::link::{Passed, Recorded, Recorder};
    use crate::net::{DEFAULT_WAN, network};
    use crate::server::{Answer, serve};

    /// Keeps what the coordinator opens.
    struct Curious<'a>(&'a Mutex<Vec<Words>>);

    impl Answer for Curious<'_> {
        fn answer(&mut self, _: u8, sum: Words, _: usize, _: f64) -> Words {
            self.0.lock().unwrap().push(sum.clone());
            sum
        }
    }

    /// What party 1 keeps and sends, in order.
    #[derive(Default)]
    struct Diary(Mutex<Vec<String>>);

    impl Recorder for Diary {
        fn passed(&self, message: &Passed<'_>) {
            if message.from == 1 {
                self.0.lock().unwrap().push(Message::kind_of(message.bytes).into());
            }
        }
    }

    impl Journal for &Diary {
        fn next(&mut self) -> Result<Option<Kept>> {
            Ok(None)
        }

        fn keep(&mut self, kept: &Kept) -> Result<()> {
            self.0.lock().unwrap().push(match kept {
                Kept::Answer(_) => "keeps an answer".into(),
                Kept::Promise { survivors, .. } => format!("keeps {survivors:?}"),
            });
            Ok(())
        }
    }

    /// Each party sums these numbers, one after the other; returns what it got, and what the coordinator opened.
    fn sums(numbers: &[[f64; 2]], may_leave: bool, diary: &Diary) -> (Vec<Vec<f64>>, Vec<Words>) {
        let mut rng = entropy().unwrap();
        let identities: Vec<Identity> = numbers.iter().map(|_| Identity::new(&mut rng)).collect();
        let members = (1..).zip(&identities).map(|(party, identity)| (party, identity.key())).collect();
        let cohort = &Cohort { run: [1; 32], number: ALL, members, colluders: 1, least: 0, may_leave };
        let opened = Mutex::new(Vec::new());
        let mut links = network(numbers.len(), DEFAULT_WAN).into_iter();
        let mut hub_link = links.next().unwrap();
        let totals = std::thread::scope(|scope| {
            let hubs = vec![(ALL, Hub::new(cohort.clone(), false))];
            let opened = &opened;
            scope.spawn(move || serve(&mut hub_link, hubs, numbers.len(), &mut Curious(opened)).map(drop));
            let parties: Vec<_> = (1..)
                .zip(links)
                .zip(identities)
                .zip(numbers)
                .map(|(((me, link), identity), own)| {
                    scope.spawn(move || {
                        let machine = Party::new(cohort.clone(), me, identity, false).unwrap();
                        let machines = vec![(ALL, machine, cohort.members.len())];
                        let link = Recorded::new(link, me, diary);
                        let journal: Option<Box<dyn Journal>> = (me == 1).then(|| Box::new(diary) as _);
                        let mut session = Session::join(link, me, machines, false, 1.0, journal).unwrap();
                        let mut sum = |number: f64| {
                            let parts = vec![Part::matrix(vec![number; 64], 1)];
                            session.sum(ALL, "x", parts).unwrap().parts[0][0]
                        };
                        let totals: Vec<f64> = own.iter().map(|&number| sum(number)).collect();
                        session.leave().unwrap();
                        totals
                    })
                })
                .collect();
            parties.into_iter().map(|party| party.join().unwrap()).collect()
        });
        (totals, opened.into_inner().unwrap())
    }

    /// Where one party's numbers are outside the range, the sum of the others' is not opened: beside the sum of all it
    /// would show that party's.
    #[test]
    fn a_range_that_is_too_narrow_opens_noise() {
        let numbers = [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1000.0]];
        let (totals, opened) = sums(&numbers, false, &Diary::default());
        for totals in totals {
            assert!((totals[0] - 4.0).abs() < 1e-6 && (totals[1] - 1003.0).abs() < 1e-3, "{totals:?}");
        }
        // Votes, the first sum, noise, votes, the second.
        let narrow: Vec<&Vec<u32>> = opened.iter().map(|words| &words.narrow).collect();
        assert_eq!(narrow.iter().map(|words| words.len()).collect::<Vec<_>>(), [0, 64, 64, 0, 64]);
        let different = |words: &[u32]| words.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!((different(narrow[1]), different(narrow[4])), (0, 0));
        assert!(different(narrow[2]) >= 62, "{:?}", narrow[2]);
        assert_ne!(opened[2].wide.last(), Some(&0));
    }

    /// The sum of the flags of two parties is even as often as it is odd.
    #[test]
    fn the_flag_of_an_opened_range_does_not_tell_how_many_raised_it() {
        let numbers = [[1.0, 1.0], [1.0, 1.0], [1.0, 1000.0], [1.0, 1000.0]];
        let flag = |_| sums(&numbers, false, &Diary::default()).1[2].wide.last().copied().unwrap();
        let odd = (0..40).map(flag).filter(|flag| flag % 2 == 1).count();
        assert!((1..40).contains(&odd), "{odd} of 40");
    }

    /// A coordinator that says the same again and again.
    struct Insistent(Vec<u8>);

    impl Link for Insistent {
        fn send(&mut self, _: u16, _: Vec<u8>) -> Result<()> {
            Ok(())
        }

        fn receive(&mut self, _: Option<f64>) -> Result<Incoming> {
            Ok(Incoming::Message { from: 0, bytes: self.0.clone() })
        }

        fn now(&self) -> f64 {
            0.0
        }
    }

    /// Answers of a cohort that a party is not in end it, and so do more of another cohort than a run has: they would be
    /// kept until its turn comes.
    #[test]
    fn what_a_coordinator_can_make_a_party_keep_is_bounded() {
        let mut rng = entropy().unwrap();
        let identities: Vec<Identity> = (0..3).map(|_| Identity::new(&mut rng)).collect();
        let members: Vec<_> =
            (1..).zip(&identities).map(|(party, identity)| (party, identity.key())).collect();
        let machine = |number| {
            let (run, members) = ([1; 32], members.clone());
            let cohort = Cohort { run, number, members, colluders: 1, least: 0, may_leave: false };
            (number, Party::new(cohort, 1, identities[0].clone(), true).unwrap(), 3)
        };
        let place = crate::aggregation::SumId { epoch: 0, round: 0, attempt: 0 };
        let words = Words { narrow: Vec::new(), wide: vec![0] };
        let reply = Message::Reply { place, survivors: vec![1, 2, 3], words };
        for (cohort, rounds, expected) in
            [(7, 5, "a cohort that this party is not in"), (1, 5, "more answers than a run has")]
        {
            let link = Insistent(addressed(cohort, &reply));
            let machines = vec![machine(ALL), machine(1)];
            let mut session = Session::join(link, 1, machines, true, 1.0, None).unwrap();
            session.most_rounds = Some(rounds);
            let error = session.sum(ALL, "x", vec![Part::scalars(&[1.0])]).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            let kept = session.stash.values().map(VecDeque::len).sum::<usize>();
            assert_eq!(kept, if cohort == 1 { 32 * rounds + 1 } else { 0 });
        }
    }

    /// Answers with less than was asked.
    struct Short;

    impl Answer for Short {
        fn answer(&mut self, _: u8, mut sum: Words, _: usize, _: f64) -> Words {
            sum.wide.pop();
            sum
        }
    }

    /// An answer that is too short ends a party with a word, and not by surprise.
    #[test]
    fn a_short_answer_is_refused() {
        let mut rng = entropy().unwrap();
        let identities: Vec<Identity> = (0..3).map(|_| Identity::new(&mut rng)).collect();
        let members: Vec<_> =
            (1..).zip(&identities).map(|(party, identity)| (party, identity.key())).collect();
        for plain in [false, true] {
            let cohort = &Cohort {
                run: [1; 32],
                number: ALL,
                members: members.clone(),
                colluders: 1,
                least: 0,
                may_leave: false,
            };
            let mut links = network(3, DEFAULT_WAN).into_iter();
            let mut hub_link = links.next().unwrap();
            std::thread::scope(|scope| {
                let hubs = vec![(ALL, Hub::new(cohort.clone(), plain))];
                scope.spawn(move || serve(&mut hub_link, hubs, 3, &mut Short).map(drop));
                for ((me, link), identity) in (1..).zip(links).zip(identities.clone()) {
                    scope.spawn(move || {
                        let machine = Party::new(cohort.clone(), me, identity, plain).unwrap();
                        let mut session =
                            Session::join(link, me, vec![(ALL, machine, 3)], plain, 1.0, None).unwrap();
                        let error = session.sum(ALL, "x", vec![Part::scalars(&[1.0])]).err().unwrap();
                        assert!(error.to_string().contains("shorter than what was asked"), "{error}");
                        session.leave().unwrap();
                    });
                }
            });
        }
    }

    /// Before masks are revealed the list is kept, where there could be another one.
    #[test]
    fn a_promise_is_kept_before_masks_are_revealed() {
        for may_leave in [true, false] {
            let diary = Diary::default();
            sums(&[[1.0, 2.0]; 4], may_leave, &diary);
            let diary = diary.0.into_inner().unwrap();
            let revealed: Vec<usize> =
                (0..diary.len()).filter(|&place| diary[place] == "shares of masks").collect();
            assert!(revealed.len() >= 3);
            for place in revealed {
                assert_eq!(diary[place - 1] == "keeps [1, 2, 3, 4]", may_leave, "{diary:?}");
            }
        }
    }
}
