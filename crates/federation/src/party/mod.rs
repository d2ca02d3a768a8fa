//! A party: it agrees with the others, takes part, and keeps what it needs to go on after whatever happens.

mod connection;
mod hooks;
mod link;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use partwise::Real;
use partwise::cancel::Cancel;
use partwise::matrix::Matrix;
use partwise::threads::Threads;
use partwise_secure::aggregation::{Identity, IdentityKey, Party as Machine};
use partwise_secure::protocol::{self, Aggregation, Ended, Local};
use partwise_secure::session::{ALL, Seen, Session};
use partwise_secure::{Error as SecureError, risk};
use serde_json::json;

use crate::agreement::{Negotiation, Terms};
use crate::certificates::read_identity;
use crate::config::Party;
use crate::deadline::LEAVE;
use crate::error::{Error, Result};
use crate::frame::{FromParty, Reason, ToParty};
use crate::journal::{PartyHead, PartyJournal, Records};
use crate::ledger::{self, Ledger};
use crate::log::Log;
use crate::private;
use crate::text::{Fingerprint, Hex, unix_seconds};
use connection::{Connection, Event};
pub use hooks::{Hooks, NoHooks};
use link::PartyLink;

/// How to take part.
pub struct Options {
    /// Without TLS, on loopback only.
    pub insecure: bool,
    /// Threads to compute with.
    pub threads: usize,
    /// What it takes from the program around it.
    pub hooks: Arc<dyn Hooks>,
    /// Where it says what.
    pub log: Arc<Log>,
    /// Stops it wherever it is; it can join again later, and goes on from there.
    pub cancel: Cancel,
    /// Sends bad messages beside the good ones.
    #[cfg(test)]
    pub mischief: bool,
}

/// What a party brings.
pub struct Given<T> {
    /// A row for each feature, a column for each record.
    pub matrix: Matrix<T>,
    /// The names of the features.
    pub names: Option<Vec<String>>,
    /// A digest of the data, so that a run is not taken up with others.
    pub digest: String,
}

/// What a party has at the end. [`Joined::finish`] tells the coordinator, when it is safe.
pub struct Joined<T> {
    /// U, features x k, by row.
    pub u: Vec<T>,
    /// V_r, records x k, by row.
    pub v: Vec<T>,
    /// Features.
    pub features: usize,
    /// Records.
    pub records: usize,
    /// Of this party, which it keeps to itself.
    pub own_relative_error: f64,
    /// Over all parties.
    pub relative_error: f64,
    /// If the run was done once more, the same of the first time and of the second, of which the better counts.
    pub attempts: Vec<f64>,
    /// How it went.
    pub ended: Ended,
    /// What was agreed on.
    pub terms: Terms,
    /// The run's digest.
    pub run: String,
    link: PartyLink,
    state: State,
}

/// A party's folder, which one process at a time uses.
struct State {
    folder: PathBuf,
    _lock: File,
}

impl State {
    fn open(folder: &Path) -> Result<Self> {
        private::make_folder(folder).map_err(Error::io(folder))?;
        let path = folder.join("lock");
        let lock = private::open(OpenOptions::new().write(true).create(true).truncate(false), &path);
        let lock = lock.map_err(Error::io(&path))?;
        #[cfg(unix)]
        {
            use rustix::fs::{FlockOperation, flock};
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(Error::file(
                    path,
                    "another process takes part with this state; wait for it, or stop it",
                ));
            }
        }
        Ok(State { folder: folder.into(), _lock: lock })
    }

    fn journal(&self) -> PathBuf {
        self.folder.join("party.journal")
    }
}

/// Clocks that differ by more than this are worth a word: certificates depend on them.
const CLOCKS: f64 = 60.0;

/// What is wrong with clocks that are so many seconds apart.
fn clocks(apart: f64) -> Option<String> {
    (apart.abs() > CLOCKS).then(|| format!("clocks differ by {apart:.0} s"))
}

/// Checks the configuration, the certificates, the clock, the connection and the data, and shares nothing.
pub fn check<T: Real>(party: &Party, given: &Given<T>, options: &Options) -> Result<Vec<String>> {
    let mut said = Vec::new();
    let identity = read_identity(&party.identity)?;
    let own = Fingerprint::of(identity.key().bytes());
    said.push(format!("configuration: {} of {}, identity {own}", party.name, party.federation));
    let connection = Connection::new(party, options, None)?;
    said.push(match options.insecure {
        true => "certificates: none (--insecure)".into(),
        false => "certificates: good, as far as can be told from here".into(),
    });
    let terms = loop {
        match connection.next(None) {
            Some(Event::Welcome { terms, time, .. }) => {
                said.push(format!("connection: {} answers", party.coordinator));
                if let Some(problem) = clocks(unix_seconds() - time) {
                    let problem = format!("{problem}; set them right");
                    return Err(Error::Network { what: party.coordinator.clone(), problem });
                }
                said.push(format!("clock: within {CLOCKS:.0} s of the coordinator's"));
                break terms;
            }
            Some(Event::Failed(error)) => return Err(error),
            _ => {}
        }
    };
    party.accept(&terms, &own)?;
    said.push("policy: what is proposed is allowed".into());
    check_data(party, &terms, given, &own)?;
    said.push(format!("data: {} records of {} features", given.matrix.cols(), given.matrix.rows()));
    Ok(said)
}

/// What the data must be for these terms.
fn check_data<T: Real>(party: &Party, terms: &Terms, given: &Given<T>, own: &Fingerprint) -> Result<()> {
    let place = party.accept(terms, own)?;
    let (features, records) = (given.matrix.rows(), given.matrix.cols());
    if let Some(names) = given.names.as_ref().filter(|names| names.len() != features) {
        let problem = format!("{} names for {features} features; give one each", names.len());
        return Err(Error::State { problem });
    }
    // Lengths in journals have 32 bits, and what is allocated must be within reason.
    let rank = terms.settings.rank;
    if rank.saturating_mul(rank).saturating_mul(8).max(terms.longest_message(features)) > u32::MAX as usize {
        let problem =
            format!("{rank} components of {features} features are more than 4 GiB; choose a smaller rank");
        return Err(Error::State { problem });
    }
    // What others have is not known here: what this party has must be enough, and what all have together is checked
    // as the run's first sum.
    let mut counts = vec![usize::MAX; terms.roster.len()];
    counts[usize::from(place) - 1] = records;
    risk::check(&terms.settings, &counts, features).map_err(refusal)
}

/// A risk that nobody has accepted, with how federations accept it.
fn refusal(error: SecureError) -> Error {
    match error {
        SecureError::Risk { problem, cure, flag } => {
            let name = flag.trim_start_matches("--accept-that-");
            let problem = format!("{problem}; {cure}, or accept it with accept = [\"{name}\"] in every file");
            Error::State { problem }
        }
        SecureError::FewRecords { risk } => refusal(*risk),
        error => error.into(),
    }
}

/// Ends a run that was refused by what all parties know after its first sums: there is nothing to go on with. The coordinator
/// should have heard of it by then, or it would wait for parties that have forgotten the run.
fn end_refused(connection: &Connection, state: &State, own: [u8; 32]) -> Result<()> {
    let stopping = FromParty::Stopping { reason: Reason::FewRecords };
    connection.say(stopping.clone());
    let begin = Instant::now();
    loop {
        match connection.next(Some(LEAVE.limit.saturating_sub(begin.elapsed()))) {
            // What was said on the connection before may be lost.
            Some(Event::Welcome { run, .. }) if run == Some(own) => connection.say(stopping.clone()),
            // It is at another run, or at none.
            Some(Event::Welcome { .. }) => break,
            Some(Event::Said(ToParty::End) | Event::Failed(_)) | None => break,
            Some(_) => {}
        }
    }
    let journal = state.journal();
    std::fs::remove_file(&journal).map_err(Error::io(&journal))
}

/// Takes part in a run, or goes on with one that was begun.
pub fn join<T: Real>(party: &Party, given: Given<T>, options: &Options) -> Result<Joined<T>> {
    let identity = read_identity(&party.identity)?;
    let state = State::open(&party.state)?;
    let ledger = Ledger::open(&party.state.join(ledger::NAME))?;
    let connection = Connection::new(party, options, Some(ledger))?;
    let joining = Joining {
        party,
        identity: &identity,
        given: &given,
        options,
        connection: &connection,
        state: &state,
    };
    let begun = match Records::open::<PartyHead>(&state.journal())? {
        Some((mut records, head)) => {
            check_head(&head, &given, &state)?;
            connection.expect(&head.terms, given.matrix.rows());
            // Nothing was summed yet: the coordinator may not even know of the run.
            let proposed = match records.next()? {
                None => joining.other_than(&head)?,
                Some(_) => None,
            };
            match proposed {
                None => Begun { head, records: joining.reopened()? },
                Some(terms) => joining.agree(Some(terms))?,
            }
        }
        None => joining.agree(None)?,
    };
    take_part(party, identity, given, options, connection, state, begun)
}

/// A run that this party has agreed to.
struct Begun {
    head: PartyHead,
    records: Records,
}

fn check_head<T: Real>(head: &PartyHead, given: &Given<T>, state: &State) -> Result<()> {
    if head.data == given.digest {
        return Ok(());
    }
    let problem = "has a run that was begun with other data; give those, or remove it to begin anew";
    Err(Error::file(state.journal(), problem))
}

/// A party before the run.
struct Joining<'a, T> {
    party: &'a Party,
    identity: &'a Identity,
    given: &'a Given<T>,
    options: &'a Options,
    connection: &'a Connection,
    state: &'a State,
}

impl<T: Real> Joining<'_, T> {
    fn reopened(&self) -> Result<Records> {
        match Records::open::<PartyHead>(&self.state.journal())? {
            Some((records, _)) => Ok(records),
            None => Err(Error::file(self.state.journal(), "vanished; start again")),
        }
    }

    /// What the coordinator proposes instead of a run that nothing was summed in yet, if it does not know of that.
    fn other_than(&self, head: &PartyHead) -> Result<Option<Box<Terms>>> {
        self.connection.set_run(Some(head.run.0));
        loop {
            match self.connection.next(None) {
                Some(Event::Welcome { run: None, terms, .. }) => {
                    self.connection.set_run(None);
                    return Ok(Some(terms));
                }
                Some(Event::Welcome { run: Some(run), .. }) if run == head.run.0 => return Ok(None),
                Some(Event::Welcome { .. }) => return Err(self.no_state()),
                Some(Event::Failed(error)) => return Err(error),
                _ => {}
            }
        }
    }

    fn no_state(&self) -> Error {
        self.connection.say(FromParty::Stopping { reason: Reason::State });
        Error::State {
            problem: format!(
                "a run is under way that this party has no state of in {}; restore it, or let the coordinator begin anew",
                self.state.folder.display()
            ),
        }
    }

    /// Until all parties have agreed with each other; begins with what is proposed, if that is known.
    fn agree(&self, proposed: Option<Box<Terms>>) -> Result<Begun> {
        let agreed = self.negotiate(proposed);
        if let Err(error) = &agreed {
            let reason = match error {
                Error::Policy { .. } => Reason::Policy,
                Error::Disagreement { .. } | Error::Dishonest { .. } => Reason::Disagreement,
                _ => Reason::Trouble,
            };
            self.connection.say(FromParty::Stopping { reason });
            // What was said should arrive.
            std::thread::sleep(Duration::from_millis(100));
        }
        agreed
    }

    fn negotiate(&self, mut proposed: Option<Box<Terms>>) -> Result<Begun> {
        let own = Fingerprint::of(self.identity.key().bytes());
        loop {
            let terms = match proposed.take() {
                Some(terms) => terms,
                None => self.proposal()?,
            };
            check_data(self.party, &terms, self.given, &own)?;
            self.connection.expect(&terms, self.given.matrix.rows());
            let log = &self.options.log;
            log.info("connected; waits until all parties are there", json!({ "event": "connected" }));
            match self.negotiate_on(*terms, &own)? {
                Progress::Begun(begun) => return Ok(*begun),
                Progress::Again(terms) => proposed = terms,
            }
        }
    }

    /// What the coordinator proposes.
    fn proposal(&self) -> Result<Box<Terms>> {
        loop {
            match self.connection.next(None) {
                Some(Event::Welcome { run: Some(_), .. }) => return Err(self.no_state()),
                Some(Event::Welcome { terms, time, .. }) => {
                    if let Some(problem) = clocks(unix_seconds() - time) {
                        self.options.log.warn(&problem, json!({ "event": "clock" }));
                    }
                    return Ok(terms);
                }
                Some(Event::Failed(error)) => return Err(error),
                _ => {}
            }
        }
    }

    /// Agrees on these terms, or begins again where the connection was lost meanwhile.
    fn negotiate_on(&self, terms: Terms, own: &Fingerprint) -> Result<Progress> {
        let say = |words: FromParty| {
            #[cfg(test)]
            if self.options.mischief {
                self.connection.say(words.clone());
            }
            self.connection.say(words);
        };
        let place = self.party.accept(&terms, own)?;
        let features = (self.given.matrix.rows(), self.given.names.as_deref());
        let mut talk: Option<(u32, Negotiation)> = None;
        let mut begun: Option<PartyHead> = None;
        loop {
            let words = match self.connection.next(None) {
                Some(Event::Said(words)) => words,
                Some(Event::Failed(error)) => return Err(error),
                // The same connection does not welcome twice.
                Some(Event::Lost) => match begun.take() {
                    None => return Ok(Progress::Again(None)),
                    Some(head) => match self.other_than(&head)? {
                        None => return self.begin(head),
                        terms => return Ok(Progress::Again(terms)),
                    },
                },
                _ => continue,
            };
            match (words, &mut talk) {
                (ToParty::Propose { attempt }, _) => {
                    begun = None;
                    let negotiation =
                        Negotiation::new(&terms, (place, attempt), self.identity, features, crate::VERSION)?;
                    say(FromParty::Offer { attempt, offer: negotiation.offer() });
                    talk = Some((attempt, negotiation));
                }
                (ToParty::Offers { attempt, offers }, Some((current, negotiation)))
                    if attempt == *current =>
                {
                    let agree = negotiation.agree(&offers)?;
                    say(FromParty::Agree { attempt, agree });
                }
                (ToParty::Accords { attempt, accords }, Some((current, negotiation)))
                    if attempt == *current =>
                {
                    let (run, keys) = negotiation.conclude(&accords)?;
                    let head = self.head(&terms, place, run, &keys)?;
                    Records::create(&self.state.journal(), &head)?;
                    self.connection.set_run(Some(run));
                    begun = Some(head);
                    say(FromParty::Ready { attempt });
                }
                (ToParty::Begin, _) => match begun.take() {
                    Some(head) => return self.begin(head),
                    None => {
                        return Err(Error::Dishonest { problem: "a beginning without an agreement".into() });
                    }
                },
                _ => {}
            }
        }
    }

    fn head(&self, terms: &Terms, place: u16, run: [u8; 32], keys: &[IdentityKey]) -> Result<PartyHead> {
        Ok(PartyHead {
            run: Hex(run),
            terms: terms.clone(),
            keys: keys.iter().map(|key| Hex(*key.bytes())).collect(),
            place,
            private_seed: self.options.hooks.private_seed(place)?,
            data: self.given.digest.clone(),
        })
    }

    fn begin(&self, head: PartyHead) -> Result<Progress> {
        let text = format!("all {} parties agree; the run begins", head.terms.roster.len());
        self.options.log.info(&text, json!({ "event": "begin", "run": head.run }));
        Ok(Progress::Begun(Box::new(Begun { head, records: self.reopened()? })))
    }
}

/// How an agreement went.
enum Progress {
    /// All agree.
    Begun(Box<Begun>),
    /// Once more, with what is proposed if that is known.
    Again(Option<Box<Terms>>),
}

/// What is said when a run is done once more.
pub(crate) const ANEW: &str = "somebody was missing in some sums; those who are there do the run once more, and keep the \
                               better result";

fn take_part<T: Real>(
    party: &Party,
    identity: Identity,
    given: Given<T>,
    options: &Options,
    connection: Connection,
    state: State,
    begun: Begun,
) -> Result<Joined<T>> {
    let Begun { head, records } = begun;
    // What was agreed on before must still be allowed.
    party.accept(&head.terms, &Fingerprint::of(identity.key().bytes()))?;
    connection.set_run(Some(head.run.0));
    let keys: Option<Vec<IdentityKey>> =
        head.keys.iter().map(|key| IdentityKey::from_bytes(&key.0)).collect();
    let keys =
        keys.ok_or_else(|| Error::file(state.journal(), "has a key that is none; remove it to begin anew"))?;
    let settings = &head.terms.settings;
    let plain = settings.aggregation == Aggregation::Plain;
    let cohorts = head.terms.cohorts(head.run.0, &keys)?;
    let own =
        cohorts.into_iter().filter(|cohort| cohort.members.iter().any(|(member, _)| *member == head.place));
    let machines = own.map(|cohort| {
        let (number, size) = (cohort.number, cohort.members.len());
        Ok((number, Machine::new(cohort, head.place, identity.clone(), plain)?, size))
    });
    let machines = machines.collect::<Result<Vec<_>>>()?;
    let group = machines.last().map_or(ALL, |(number, ..)| *number);
    let link = || PartyLink {
        connection: connection.clone(),
        begin: Instant::now(),
        plain,
        terms: head.terms.clone(),
        run: head.run.0,
        log: options.log.clone(),
        hooks: options.hooks.clone(),
        #[cfg(test)]
        mischief: options.mischief,
    };
    let threads = Threads::new(options.threads)?.with_cancel(&options.cancel);
    let mut local = Local::new(given.matrix, settings, threads)?;
    let journal = Box::new(PartyJournal(records));
    let mut session = Session::join(link(), head.place, machines, plain, 1.0, Some(journal))?;
    session.most_rounds = Some(settings.most_rounds(head.terms.groups.len()));
    let told = connection.clone();
    #[cfg(test)]
    if options.mischief {
        for round in [1_000_000, usize::MAX] {
            told.say(FromParty::Error { round, squared_error: 1.0 });
        }
    }
    let log = options.log.clone();
    session.watch = Some(Box::new(move |seen| {
        told.say(match seen {
            Seen::Retry => {
                log.warn(ANEW, json!({ "event": "anew" }));
                FromParty::Retry
            }
            Seen::Norm(norm) => FromParty::Norm { norm },
            Seen::Error { round, squared_error } => FromParty::Error { round, squared_error },
        });
    }));
    let ended = protocol::run(settings, &mut local, &mut session, head.private_seed, group);
    drop(session);
    if let Err(SecureError::FewRecords { .. }) = ended {
        end_refused(&connection, &state, head.run.0)?;
    }
    let ended = ended.map_err(refusal)?;
    let relative = |squared: f64| (squared.max(0.0) / ended.present_norm).sqrt();
    Ok(Joined {
        features: local.features(),
        records: local.records(),
        own_relative_error: (ended.own_squared_error / local.norm()).sqrt(),
        relative_error: relative(ended.squared_error),
        attempts: ended.attempts.iter().copied().map(relative).collect(),
        u: local.u,
        v: local.v,
        ended,
        run: head.run.to_string(),
        link: link(),
        terms: head.terms,
        state,
    })
}

impl<T> Joined<T> {
    /// Tells the coordinator, and gives it U (as an .npy file) if asked; then forgets what only a restart would need. The
    /// results must be safe by now.
    pub fn finish(self, factor: Vec<u8>, parties: usize) -> Result<()> {
        let finished = FromParty::Finished {
            factor: Hex(Fingerprint::of(&factor).0),
            relative_error: self.relative_error,
            rounds: self.ended.rounds,
            attempts: self.attempts.clone(),
            stopped_by: self.ended.stopped_by,
            parties,
        };
        let connection = &self.link.connection;
        connection.say(finished.clone());
        let log = &self.link.log;
        let patience = Duration::from_secs_f64(self.terms.deadline);
        let mut lost: Option<Instant> = Some(Instant::now());
        loop {
            if lost.is_some_and(|lost| lost.elapsed() > patience) {
                log.warn(
                    "the coordinator does not answer; the result is here",
                    json!({ "event": "unheard" }),
                );
                break;
            }
            match connection.next(Some(Duration::from_secs(1))) {
                None => {}
                Some(Event::Said(ToParty::End)) => break,
                Some(Event::Said(ToParty::GiveFactor)) => {
                    lost = None;
                    connection.factor(factor.clone());
                }
                Some(Event::Said(ToParty::Begin)) => {
                    lost = None;
                    connection.say(finished.clone());
                }
                Some(Event::Lost) => lost = Some(Instant::now()),
                // Answers to others.
                Some(Event::Message(_)) => lost = None,
                Some(event) => {
                    if let Err(error) = self.link.understand(event) {
                        log.warn(&format!("{error}; the result is here"), json!({ "event": "unheard" }));
                        break;
                    }
                }
            }
        }
        let journal = self.state.journal();
        std::fs::remove_file(&journal).map_err(Error::io(&journal))
    }
}
