//! The coordinator's part in a run: the hubs of all cohorts, what they open, and what a restart needs of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use partwise_secure::aggregation::{Action, Cohort, Event, Hub, IdentityKey, Message, Words};
use partwise_secure::protocol::{Aggregation, Line, Server, Stop, upload_sizes};
use partwise_secure::server::Answer;
use partwise_secure::session::{ALL, addressed, parse};
use serde_json::json;

use super::connection::Item;
use super::driver::Present;
use super::gathering::Agreed;
use super::{Outcome, Shared, journal_path};
use crate::error::{Error, Result};
use crate::frame::{FromParty, ToParty};
use crate::journal::{Answers, CoordinatorHead, Noted, Records};
use crate::party::ANEW;
use crate::status::Point;
use crate::text::{Fingerprint, Hex};

/// What a party said at its end.
#[derive(PartialEq)]
struct Finished {
    factor: [u8; 32],
    relative_error: f64,
    rounds: usize,
    attempts: Vec<f64>,
    stopped_by: Stop,
}

/// A run.
pub struct Running {
    shared: Arc<Shared>,
    head: CoordinatorHead,
    hubs: BTreeMap<u8, Hub>,
    server: Option<Server>,
    records: Records,
    answers: Answers,
    sums: u64,
    norm: Option<f64>,
    begin: Instant,
    /// Sums of groups that are answered when another is back, and over how many parties they are.
    held: Vec<(u8, Words, usize)>,
    /// When something last happened in a cohort, and whether it was said that nothing does.
    moved: BTreeMap<u8, (Instant, bool)>,
    finished: BTreeMap<u16, Finished>,
    first_finished: Option<Instant>,
    /// Who was asked for U.
    asked: Option<u16>,
    factor: Option<Vec<u8>>,
    /// Whether it was said that the run is done once more.
    anew: bool,
}

impl Running {
    /// A new run.
    pub fn begin(shared: &Arc<Shared>, agreed: Agreed) -> Result<Self> {
        let head = CoordinatorHead {
            run: Hex(agreed.run),
            terms: shared.federation.terms.clone(),
            keys: agreed.keys,
            features: agreed.features,
        };
        let records = Records::create(&journal_path(&shared.federation), &head)?;
        Running::new(shared, head, records)
    }

    /// One that was under way, if there is one.
    pub fn resume(shared: &Arc<Shared>) -> Result<Option<Self>> {
        let path = journal_path(&shared.federation);
        let Some((records, head)) = Records::open::<CoordinatorHead>(&path)? else { return Ok(None) };
        if head.terms != shared.federation.terms {
            let problem = format!(
                "has a run that was begun with other settings than {} has now; change them back, or remove it to begin anew",
                shared.federation.path.display()
            );
            return Err(Error::file(path, problem));
        }
        let mut running = Running::new(shared, head, records)?;
        running.recall()?;
        let mut state = shared.status.lock();
        (state.phase, state.sums) = ("running", running.sums);
        drop(state);
        Ok(Some(running))
    }

    fn new(shared: &Arc<Shared>, head: CoordinatorHead, records: Records) -> Result<Self> {
        let keys: Option<Vec<IdentityKey>> =
            head.keys.iter().map(|key| IdentityKey::from_bytes(&key.0)).collect();
        let keys =
            keys.ok_or(Error::State { problem: "an identity key that is none; make it anew".into() })?;
        let settings = &head.terms.settings;
        let plain = settings.aggregation == Aggregation::Plain;
        let cohorts = head.terms.cohorts(head.run.0, &keys)?;
        let groups: Vec<(u8, usize)> = (1..).zip(head.terms.groups.iter().map(Vec::len)).collect();
        let server = settings.protocol.is_asynchronous().then(|| Server::new(settings, &groups));
        let now = Instant::now();
        let sizes = upload_sizes(settings, head.features);
        shared.set_longest(head.terms.longest_message(head.features));
        let hub = |cohort: Cohort| {
            let (number, mut hub) = (cohort.number, Hub::new(cohort, plain));
            hub.expect(sizes.clone());
            (number, hub)
        };
        Ok(Running {
            shared: shared.clone(),
            moved: cohorts.iter().map(|cohort| (cohort.number, (now, false))).collect(),
            hubs: cohorts.into_iter().map(hub).collect(),
            server,
            answers: Answers::new(&journal_path(&shared.federation)),
            records,
            sums: 0,
            norm: None,
            begin: now,
            held: Vec::new(),
            finished: BTreeMap::new(),
            first_finished: None,
            asked: None,
            factor: None,
            anew: false,
            head,
        })
    }

    /// Reads the journal: all is as it was, but that nobody is there.
    fn recall(&mut self) -> Result<()> {
        let mut epochs: BTreeMap<u8, u32> = BTreeMap::new();
        let mut seconds = 0f64;
        while let Some(record) = self.records.next()? {
            let place = self.records.place_of(&record);
            match Noted::decode(&record) {
                Some(Noted::Epoch { cohort, epoch }) => {
                    epochs.insert(cohort, epoch);
                    self.returned(cohort);
                }
                Some(Noted::Norm { norm }) => self.norm = Some(norm),
                Some(Noted::Error(point)) => {
                    seconds = seconds.max(point.seconds);
                    self.shared.status.lock().point(point);
                }
                Some(Noted::Promise { cohort, survivors }) => {
                    if let Some(hub) = self.hubs.get_mut(&cohort) {
                        hub.promise(survivors);
                    }
                }
                Some(Noted::Answer { cohort, now, reply, sum }) => {
                    self.answers.record_answer(cohort, place, reply.encode().len());
                    self.sums += 1;
                    seconds = now.max(seconds);
                    if let Some(hub) = self.hubs.get_mut(&cohort) {
                        hub.record_answer(&reply);
                    }
                    if let (Some(server), Some(sum), Message::Reply { survivors, .. }) =
                        (&mut self.server, sum, &reply)
                    {
                        server.answer(cohort, sum, survivors.len(), now);
                    }
                }
                None => break,
            }
        }
        for (cohort, hub) in &mut self.hubs {
            hub.restart(epochs.get(cohort).copied().unwrap_or(0));
        }
        // Its clock goes on from where it was.
        let before = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.begin = self.begin.checked_sub(before).unwrap_or(self.begin);
        Ok(())
    }

    /// The run's digest.
    pub fn digest(&self) -> [u8; 32] {
        self.head.run.0
    }

    /// Whether the parties have summed how many records they have, and nothing else as far as they have said.
    pub fn has_only_counts(&self) -> bool {
        self.sums > 0 && self.norm.is_none()
    }

    /// Sums that were opened.
    pub fn sums(&self) -> u64 {
        self.sums
    }

    /// Whether a party has its result.
    pub fn is_finished(&self, place: u16) -> bool {
        self.finished.contains_key(&place)
    }

    fn may_leave(&self) -> bool {
        self.head.terms.settings.accepted.going_on_shows_the_leaver
    }

    /// A party is there again.
    pub fn joined(&mut self, present: &Present, place: u16) -> Result<()> {
        let name = present.name(place).to_string();
        self.shared.status.lock().waiting.retain(|waiting| *waiting != name);
        self.all_hubs(present, |_| Event::Joined(place))
    }

    /// A party is gone.
    pub fn lost(&mut self, present: &Present, place: u16) -> Result<()> {
        if self.asked == Some(place) && self.factor.is_none() {
            self.asked = None;
            self.ask(present);
        }
        self.all_hubs(present, |_| Event::Lost(place))
    }

    fn all_hubs(&mut self, present: &Present, event: impl Fn(u8) -> Event) -> Result<()> {
        let numbers: Vec<u8> = self.hubs.keys().copied().collect();
        numbers.into_iter().try_for_each(|number| self.handle(present, number, 0, event(number)))
    }

    /// A message of the methods.
    pub fn message(&mut self, present: &Present, place: u16, bytes: Vec<u8>) -> Result<()> {
        let name = present.name(place);
        let Ok((number, message)) = parse(0, place, &bytes) else {
            self.shared.log.reject("a malformed message", name);
            return Ok(());
        };
        drop(bytes);
        self.handle(present, number, place, Event::Message { from: place, message })
    }

    /// Lets a hub deal with an event; what it rejects is said and changes nothing.
    fn handle(&mut self, present: &Present, number: u8, place: u16, event: Event) -> Result<()> {
        let Some(hub) = self.hubs.get_mut(&number) else {
            self.shared.log.reject("a message for a cohort that does not exist", present.name(place));
            return Ok(());
        };
        let handled = hub.handle(event);
        for (from, reason) in hub.ignored.drain(..) {
            self.shared.log.reject(reason, present.name(from));
        }
        match handled {
            Ok(actions) => {
                if !actions.is_empty() {
                    self.moved.insert(number, (Instant::now(), false));
                }
                self.act(present, number, actions)
            }
            Err(partwise_secure::Error::Dishonest { problem, .. }) => {
                let from = format!("{} ({problem})", present.name(place));
                self.shared.log.reject("a message that breaks the protocol", &from);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn act(&mut self, present: &Present, number: u8, actions: Vec<Action>) -> Result<()> {
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    present.send(to, Item::Message(addressed(number, &message).into()))
                }
                Action::Tell { to, message } => {
                    self.note(number, &message, None)?;
                    let bytes: Bytes = addressed(number, &message).into();
                    to.into_iter().for_each(|place| present.send(place, Item::Message(bytes.clone())));
                }
                Action::CatchUp { to, round } => {
                    let (path, places) = (self.answers.path().into(), self.answers.since(number, round));
                    let text = format!("{} missed {} answers, and gets them", present.name(to), places.len());
                    self.shared.log.info(&text, json!({ "event": "catch-up", "party": present.name(to) }));
                    present.send(to, Item::Answers { path, cohort: number, places });
                }
                Action::Opened { words, cohort } => self.opened(present, number, words, cohort.len())?,
                Action::Waiting { party, round } => self.wait(present, party, round),
            }
        }
        // At once: a group that is back may do all its rounds in the time of a tick.
        for (number, sum, parties) in std::mem::take(&mut self.held) {
            self.opened(present, number, sum, parties)?;
        }
        Ok(())
    }

    /// Keys are exchanged anew in a group: somebody is back.
    fn returned(&mut self, cohort: u8) {
        if let Some(server) = &mut self.server {
            server.returned(cohort);
        }
    }

    fn holds(&mut self, number: u8) -> bool {
        self.server.as_mut().is_some_and(|server| server.holds(number))
    }

    /// A sum was opened: it is answered, and noted before anybody hears of it.
    fn opened(&mut self, present: &Present, number: u8, sum: Words, parties: usize) -> Result<()> {
        if self.holds(number) {
            self.held.push((number, sum, parties));
            return Ok(());
        }
        self.moved.insert(number, (Instant::now(), false));
        let now = self.begin.elapsed().as_secs_f64();
        let (answer, sum) = match &mut self.server {
            Some(server) => (server.answer(number, sum.clone(), parties, now), Some(sum)),
            None => (sum, None),
        };
        let Some(hub) = self.hubs.get_mut(&number) else { return Ok(()) };
        for action in hub.handle(Event::Answer(answer))? {
            if let Action::Tell { to, message } = action {
                self.note(number, &message, sum.clone())?;
                let bytes: Bytes = addressed(number, &message).into();
                to.into_iter().for_each(|place| present.send(place, Item::Message(bytes.clone())));
            }
        }
        self.show_curve()
    }

    /// Notes what a restart needs.
    fn note(&mut self, cohort: u8, message: &Message, sum: Option<Words>) -> Result<()> {
        match message {
            Message::NewEpoch { epoch } => {
                self.records.append(&Noted::Epoch { cohort, epoch: *epoch }.encode())?;
                self.shared.status.lock().epochs += 1;
                self.returned(cohort);
            }
            Message::Echoes { .. } if self.may_leave() => {
                let promised = self.hubs.get(&cohort).and_then(Hub::promised).map(<[u16]>::to_vec);
                let survivors = promised.unwrap_or_default();
                self.records.append(&Noted::Promise { cohort, survivors }.encode())?;
            }
            Message::Reply { .. } => {
                let now = self.begin.elapsed().as_secs_f64();
                let length = message.encode().len();
                let record = Noted::Answer { cohort, now, reply: message.clone(), sum }.encode();
                let place = self.records.append(&record)?;
                self.answers.record_answer(cohort, place, length);
                self.sums += 1;
                self.shared.status.lock().sums = self.sums;
            }
            _ => {}
        }
        Ok(())
    }

    /// The error of an asynchronous run, which the server knows.
    fn show_curve(&mut self) -> Result<()> {
        match self.server.as_ref().and_then(|server| server.trace.last()) {
            Some(&Line { round, squared_error, .. }) => self.point(round, squared_error),
            None => Ok(()),
        }
    }

    /// The error after a round: shown, and noted.
    fn point(&mut self, round: usize, squared_error: f64) -> Result<()> {
        let Some(norm) = self.norm else { return Ok(()) };
        let relative_error = (squared_error.max(0.0) / norm).sqrt();
        let point = Point { round, seconds: self.begin.elapsed().as_secs_f64(), relative_error };
        if self.shared.status.lock().point(point) {
            self.records.append(&Noted::Error(point).encode())?;
        }
        Ok(())
    }

    fn wait(&mut self, present: &Present, party: u16, round: u64) {
        let name = present.name(party).to_string();
        let mut state = self.shared.status.lock();
        if self.finished.len() == self.head.terms.roster.len() || state.waiting.contains(&name) {
            return;
        }
        state.waiting.push(name.clone());
        let parties = state.waiting.clone();
        drop(state);
        let text = format!(
            "waits for {name} in sum {round}; start it again, and it goes on from its own state (--continue-without goes on \
             without it, if all parties allow that)"
        );
        self.shared.log.warn(&text, json!({ "event": "waiting", "party": name, "sum": round }));
        present.say(&ToParty::Waiting { parties });
    }

    /// Whether the group of a party, if there are groups, has long had no sum under way: a sum of all waits for it then.
    fn is_free(&self, place: u16, deadline: Duration) -> bool {
        let groups = self.hubs.iter().filter(|(number, hub)| {
            **number != ALL && hub.cohort().members.iter().any(|(member, _)| *member == place)
        });
        let quiet = |number: &u8| self.moved.get(number).is_some_and(|(moved, _)| moved.elapsed() > deadline);
        groups.into_iter().all(|(number, hub)| hub.is_idle() && quiet(number))
    }

    /// Looks at deadlines.
    pub fn tick(&mut self, present: &Present) -> Result<()> {
        let deadline = Duration::from_secs_f64(self.head.terms.deadline);
        let late = |(moved, said): &(Instant, bool)| moved.elapsed() > deadline && !said;
        let cohorts: Vec<u8> =
            self.moved.iter().filter(|(_, moved)| late(moved)).map(|(number, _)| *number).collect();
        let mut hanging: BTreeSet<u16> = BTreeSet::new();
        for number in cohorts.into_iter().filter(|_| self.finished.is_empty()) {
            let awaited = self.hubs.get(&number).map(Hub::awaited).unwrap_or_default();
            let awaited: Vec<u16> =
                awaited.into_iter().filter(|place| number != ALL || self.is_free(*place, deadline)).collect();
            if let (false, Some((_, said))) = (awaited.is_empty(), self.moved.get_mut(&number)) {
                *said = true;
                hanging.extend(awaited);
            }
        }
        for place in hanging.into_iter().filter(|place| present.has(*place)) {
            let name = present.name(place);
            let text =
                format!("{name} is connected but has said nothing for {:.0} s", deadline.as_secs_f64());
            self.shared.log.warn(&text, json!({ "event": "hangs", "party": name }));
            self.shared.status.lock().warn(text);
            if self.may_leave() {
                present.send(place, Item::Close);
            }
        }
        Ok(())
    }

    /// Words of control.
    pub fn said(&mut self, present: &Present, place: u16, words: FromParty) -> Result<()> {
        match words {
            FromParty::Norm { norm } => {
                if norm > 0.0 && self.norm.is_none() {
                    self.norm = Some(norm);
                    self.records.append(&Noted::Norm { norm }.encode())?;
                }
            }
            FromParty::Error { round, squared_error } if round <= self.head.terms.settings.all_rounds(1) => {
                self.point(round, squared_error)?
            }
            FromParty::Retry if self.may_leave() => {
                if !std::mem::replace(&mut self.anew, true) {
                    self.shared.log.warn(ANEW, json!({ "event": "anew" }));
                    self.shared.status.lock().warn(ANEW.into());
                }
            }
            FromParty::Finished { factor, relative_error, rounds, attempts, stopped_by, .. } => {
                let finished = Finished { factor: factor.0, relative_error, rounds, attempts, stopped_by };
                let before = self.finished.get(&place);
                if before.is_some_and(|before| *before != finished) {
                    self.shared.log.reject("a second result", present.name(place));
                    return Ok(());
                }
                let is_new = before.is_none();
                self.finished.insert(place, finished);
                self.first_finished.get_or_insert_with(Instant::now);
                present.finished(place);
                let name = present.name(place);
                if is_new {
                    let text = format!("{name} has its result");
                    self.shared.log.info(&text, json!({ "event": "finished", "party": name }));
                }
                self.ask(present);
            }
            _ => self.shared.log.reject("words out of turn", present.name(place)),
        }
        Ok(())
    }

    /// Asks somebody who has it for U.
    fn ask(&mut self, present: &Present) {
        if self.asked.is_none()
            && let Some(&place) = self.finished.keys().find(|place| present.has(**place))
        {
            self.asked = Some(place);
            present.send(place, Item::Say(ToParty::GiveFactor));
        }
    }

    /// U has come.
    pub fn factor(&mut self, present: &Present, place: u16, bytes: Vec<u8>) {
        let told = self.finished.get(&place).map(|finished| finished.factor);
        if self.asked != Some(place) || told != Some(Fingerprint::of(&bytes).0) {
            self.shared.log.reject("a factor that was not asked for", present.name(place));
            return;
        }
        self.factor = Some(bytes);
    }

    /// The end, if it has come: all have their results, or those who can be waited for.
    pub fn outcome(&mut self, present: &Present) -> Option<Outcome> {
        self.factor.as_ref()?;
        let roster = &self.head.terms.roster;
        let missing: Vec<u16> =
            (1..=roster.len() as u16).filter(|place| !self.finished.contains_key(place)).collect();
        let patience = Duration::from_secs_f64(self.head.terms.deadline);
        let waited = self.first_finished.is_some_and(|first| first.elapsed() > patience);
        let gone = missing.iter().all(|place| !present.has(*place));
        let over = missing.is_empty() || waited || gone && self.may_leave();
        if !over {
            return None;
        }
        let (_, first) = self.finished.first_key_value()?;
        let mut state = self.shared.status.lock();
        state.phase = "done";
        let seconds = self.begin.elapsed().as_secs_f64();
        state.point(Point { round: first.rounds, seconds, relative_error: first.relative_error });
        let name = |place: &u16| self.head.terms.name(*place).to_string();
        Some(Outcome {
            factor: self.factor.take()?,
            relative_error: first.relative_error,
            rounds: first.rounds,
            attempts: first.attempts.clone(),
            stopped_by: first.stopped_by,
            trace: state.curve.clone(),
            run: self.head.run.to_string(),
            finished: self.finished.keys().map(name).collect(),
            agreed: self.finished.values().all(|other| other.factor == first.factor),
            missing: missing.iter().map(name).collect(),
            bytes: state.bytes(),
            sums: self.sums,
            epochs: state.epochs + 1,
            features: self.head.features,
            journal: journal_path(&self.shared.federation),
        })
    }
}
