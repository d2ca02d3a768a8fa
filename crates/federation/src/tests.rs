//! A coordinator and parties in one process, on loopback, one of which violates the protocol.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use partwise::cancel::Cancel;
use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise_secure::aggregation::Message;
use partwise_secure::protocol::{Protocol, Settings};
use partwise_secure::session::{addressed, parse};
use rand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::agreement::{Member, Terms};
use crate::certificates::{make_authority, make_request, read_identity, sign};
use crate::config::{CertificateBinding, FederationConfig, PartyConfig, Policy, TlsFiles};
use crate::deadline::{CONNECT, ENTER, HANDSHAKE, OPEN, PARTY_HEARTBEAT, SEND, WELCOME};
use crate::frame::{Frame, FromParty, MAX_CONTROL, MAX_PIECE, Payload, Piece, ToParty};
use crate::log::EventLog;
use crate::text::Fingerprint;
use crate::{coordinator, party, rpc};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A port that was free a moment ago, outside the range that the system assigns to connections, so that no other
/// test can take it before it is used.
fn free_port() -> u16 {
    let ports = 10_000..32_000u16;
    let mut drawn = partwise_secure::entropy().unwrap();
    loop {
        let port = ports.start + (drawn.next_u64() % ports.len() as u64) as u16;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The deadline of waits in tests on a busy machine; it only limits how long a failing test takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs something on a separate thread, and fails if it takes too long.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waiting) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || done.send(work()));
    match waiting.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("this takes too long"),
        Err(_) => std::panic::resume_unwind(thread.join().unwrap_err()),
    }
}

/// A coordinator that listens.
fn start(
    federation: FederationConfig,
    insecure: bool,
    log: &Arc<EventLog>,
) -> std::thread::JoinHandle<CoordinatorEnd> {
    let options =
        coordinator::CoordinatorOptions { insecure, status_address: None, log: log.clone(), tamper: None };
    start_with(federation, options)
}

fn start_with(
    federation: FederationConfig,
    options: coordinator::CoordinatorOptions,
) -> std::thread::JoinHandle<CoordinatorEnd> {
    let address = federation.address.clone();
    let thread = std::thread::spawn(move || coordinator::run(federation, options));
    while std::net::TcpStream::connect(&address).is_err() {
        assert!(!thread.is_finished(), "{}", thread.join().unwrap().err().unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }
    thread
}

type CoordinatorEnd = crate::Result<coordinator::FederationOutcome>;

async fn connect(address: &str) -> TcpStream {
    CONNECT.limit(TcpStream::connect(address)).await.unwrap().unwrap()
}

fn setting(folder: &Path) -> (FederationConfig, Vec<PartyConfig>) {
    let port = free_port();
    let files =
        || TlsFiles { certificate: "".into(), key: "".into(), authority: "".into(), revocations: None };
    let roster: Vec<Member> = NAMES
        .iter()
        .map(|name| {
            let own = folder.join(name);
            std::fs::create_dir(&own).unwrap();
            Member { name: name.to_string(), identity: make_request(&own, "demo", name).unwrap() }
        })
        .collect();
    let settings = Settings { rounds: 6, ..Settings::new(Protocol::SynSd, 3) };
    let terms = Terms {
        federation: "demo".into(),
        settings,
        roster: roster.clone(),
        cohort: 3,
        groups: Vec::new(),
        deadline: 20.0,
        heartbeat: 5.0,
    };
    let address = format!("127.0.0.1:{port}");
    let parties = NAMES.iter().map(|name| PartyConfig {
        path: "party.toml".into(),
        name: name.to_string(),
        federation: "demo".into(),
        coordinator: address.clone(),
        server_name: "demo.partwise".into(),
        tls: files(),
        identity: folder.join(name).join("identity.key"),
        state: folder.join(name).join("state"),
        ledgers: folder.join(name).join("ledgers"),
        policy: Policy { safeguards: partwise_secure::Safeguards::of_sums(), ..Policy::default() },
        peers: roster.iter().map(|member| (member.name.clone(), member.identity)).collect(),
    });
    let federation = FederationConfig {
        path: "federation.toml".into(),
        terms,
        address: address.clone(),
        state: folder.join("state"),
        tls: files(),
        bindings: NAMES.map(|name| CertificateBinding { dns: name.into(), certificate: None }).into(),
        revoked: Default::default(),
    };
    (federation, parties.collect())
}

fn given(place: usize) -> party::PartyData<f32> {
    given_of(place, (10, 12))
}

fn given_of(place: usize, (features, records): (usize, usize)) -> party::PartyData<f32> {
    let values = (0..features * records).map(|entry| ((entry * 37 + place * 11) % 17) as f32).collect();
    let matrix = Dense::new(features, records, Order::RowMajor, Values::Real(values));
    party::PartyData { matrix: Matrix::Dense(matrix), names: None, digest: place.to_string() }
}

/// Messages of a client that is admitted as party b, before the real party b.
fn hostile_streams() -> Vec<Vec<Bytes>> {
    let enter = |name: &str| {
        Frame::control(&FromParty::Enter {
            federation: "demo".into(),
            name: name.into(),
            version: "?".into(),
            check: false,
            run: None,
        })
        .encode()
    };
    let frame = |kind: u8, length: usize| Bytes::from([vec![kind], vec![7; length]].concat());
    let part = |last, length| {
        Frame::Piece(Piece { payload: Payload::Message, last, bytes: vec![3; length].into() }).encode()
    };
    vec![
        vec![],
        vec![Bytes::new()],
        vec![frame(9, 5)],
        vec![enter("nobody")],
        vec![Frame::Control(Bytes::from_static(b"{\"say\":\"enter\"")).encode()],
        vec![Frame::control(&FromParty::Ready { attempt: 1 }).encode()],
        // Admitted, then malformed.
        vec![enter("b"), Bytes::new(), frame(9, 5), frame(0, 40), frame(1, MAX_PIECE + 9), enter("b")],
        // More bad frames than are tolerated.
        std::iter::once(enter("b")).chain((0..20).map(|_| frame(77, 3))).collect(),
        // Messages before a run, and oversized ones.
        vec![enter("b"), part(true, 50), part(false, 5000), part(true, 10)],
        vec![
            enter("b"),
            Frame::control(&FromParty::Finished {
                factor: crate::text::Hex([1; 32]),
                relative_error: f64::MAX,
                rounds: usize::MAX,
                attempts: vec![f64::MAX; 9],
                stopped_by: partwise_secure::protocol::Stop::Rounds,
                parties: 0,
            })
            .encode(),
        ],
        // A gRPC message beyond what any frame may be.
        vec![enter("b"), frame(0, MAX_CONTROL + 100)],
    ]
}

async fn send_all(address: &str, frames: Vec<Bytes>) {
    let Ok(rpc::OpenedStream { mut ingoing, outgoing, .. }) =
        rpc::open(connect(address).await, "localhost").await
    else {
        return;
    };
    for frame in frames {
        if SEND.limit(outgoing.send(frame)).await.unwrap().is_err() {
            break;
        }
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(outgoing);
    let rest = async { while let Ok(Some(_)) = ingoing.message().await {} };
    tokio::time::timeout(PATIENCE, rest).await.expect("the coordinator ends the stream");
}

#[test]
fn hostile_frames_are_counted_and_the_run_continues() {
    in_time(send_hostile_frames);
}

fn send_hostile_frames() {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let address = federation.address.clone();
    let log = Arc::new(EventLog::default());
    let centre = start(federation, true, &log);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for frames in hostile_streams() {
            send_all(&address, frames).await;
        }
    });
    let threads: Vec<_> = parties
        .into_iter()
        .enumerate()
        .map(|(place, party)| {
            std::thread::spawn(move || {
                let log = Arc::new(EventLog::default());
                // Party b replays, reorders and damages its messages, in addition to sending the right ones.
                let options = party::PartyOptions { log, mischief: place == 1, ..polite() };
                let joined = party::join(&party, given(place), &options)?;
                let factor: Vec<u8> = joined.u.iter().flat_map(|value| value.to_le_bytes()).collect();
                let (error, parties) = (joined.relative_error, joined.terms.roster.len());
                joined.finish(factor, parties).map(|()| error)
            })
        })
        .collect();
    let errors: Vec<f64> = threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
    let outcome = centre.join().unwrap().unwrap();
    assert!(errors.iter().all(|error| *error == outcome.relative_error));
    assert!(outcome.agreed && outcome.missing.is_empty());
    assert_eq!(outcome.epochs, 1, "no party had to start over");
    let rejected = log.rejections();
    // An offer, an agreement and its confirmation sent twice, and errors of rounds that do not exist.
    assert!(rejected["a message out of turn"] >= 4, "{rejected:?}");
    assert!(outcome.trace.iter().all(|point| point.round <= 6));
    for reason in [
        "a malformed first frame",
        "an unexpected first frame",
        "a party that is not in the roster",
        "a frame of an unknown kind",
        "an empty frame",
        "a malformed control message",
        "an oversized piece",
        "a second first message",
        "something oversized",
        "a message out of turn",
        "an oversized frame",
        "a malformed message",
        "a message for a cohort that does not exist",
        "a message that breaks the protocol",
        "a message of an attempt that is over",
    ] {
        assert!(rejected.get(reason).is_some_and(|count| *count > 0), "{reason}: {rejected:?}");
    }
}

/// A dishonest coordinator over TLS: every party that receives different messages than the others stops and
/// says what is wrong.
#[test]
fn a_dishonest_coordinator_is_detected() {
    in_time(|| {
        std::thread::scope(|scope| {
            type Tamper = fn(Message) -> Option<Message>;
            let cases: [(Tamper, &str); 3] = [
                (other_words, "an upload of party 2 that differs from the one it signed"),
                (other_digest, "an upload of party 2 that it did not sign"),
                (other_order, "a place in the order of sums for one that has none"),
            ];
            for (tamper, words) in cases {
                scope.spawn(move || {
                    for error in told_otherwise(tamper) {
                        assert!(
                            error.contains("from the coordinator") && error.contains(words),
                            "{words}: {error}"
                        );
                    }
                });
            }
        });
    });
}

fn other_words(message: Message) -> Option<Message> {
    let Message::Relay { place, party: 2, mut words } = message else { return None };
    words.wide[0] ^= 1;
    Some(Message::Relay { place, party: 2, words })
}

fn other_digest(message: Message) -> Option<Message> {
    let Message::Survivors { place, mut commitments, shares } = message else { return None };
    commitments[1].words[0] ^= 1;
    Some(Message::Survivors { place, commitments, shares })
}

fn other_order(message: Message) -> Option<Message> {
    let Message::Opening(mut opening) = message else { return None };
    opening.order = Some(partwise_secure::aggregation::OrderTip::default());
    Some(Message::Opening(opening))
}

/// The errors of parties 1 and 3 if the coordinator sends them different messages than party 2.
fn told_otherwise(tamper: fn(Message) -> Option<Message>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let (mut federation, mut parties) = setting(folder.path());
    certify(folder.path(), &mut federation, &mut parties);
    let tamper = move |place: u16, bytes: &[u8]| {
        let (cohort, message) = parse(place, 0, bytes).unwrap();
        let other = (place != 2).then(|| tamper(message)).flatten()?;
        Some(addressed(cohort, &other))
    };
    let log = Arc::default();
    let tamper: Option<coordinator::Tamper> = Some(Arc::new(tamper));
    let options = coordinator::CoordinatorOptions { insecure: false, status_address: None, log, tamper };
    start_with(federation, options);
    let join = |(place, party): (usize, PartyConfig)| {
        let options = party::PartyOptions { insecure: false, ..polite() };
        let join = move || party::join(&party, given(place), &options).err().map(|error| error.to_string());
        std::thread::spawn(join)
    };
    let threads: Vec<_> = parties.into_iter().enumerate().map(join).collect();
    // Party 2 waits for the others.
    let stopped = threads.into_iter().enumerate().filter(|(place, _)| *place != 1);
    stopped.map(|(_, thread)| thread.join().unwrap().expect("an error")).collect()
}

/// Records of each party, and how many uploads it sent; every party and the coordinator end with the refusal.
fn refused(records: [usize; 3], features: usize) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let journal = federation.state.join("coordinator.journal");
    let centre = start(federation, true, &Arc::default());
    let states: Vec<_> = parties.iter().map(|party| party.state.clone()).collect();
    let join = |(place, party): (usize, PartyConfig)| {
        let given = given_of(place, (features, records[place]));
        std::thread::spawn(move || party::join(&party, given, &polite()).err())
    };
    let threads: Vec<_> = parties.into_iter().enumerate().map(join).collect();
    for thread in threads {
        let error = thread.join().unwrap().expect("a refusal").to_string();
        assert!(error.contains("accept = [\"few-records-show-in-sums\"]"), "{error}");
    }
    let error = centre.join().unwrap().err().expect("a refusal");
    assert!(matches!(error, crate::Error::State { .. }), "{error}");
    // Nothing prevents the next run.
    assert!(!journal.exists());
    let uploads = |state: &std::path::PathBuf| {
        assert!(!state.join("party.journal").exists());
        let ledger = crate::ledger::read(&state.join(crate::ledger::NAME)).unwrap();
        let sent = crate::ledger::summary(&ledger.entries);
        let of = |cover| sent.get(&("upload".to_string(), cover)).map_or(0, |(count, _)| *count);
        assert_eq!(of(crate::ledger::Cover::Plain), 0);
        of(crate::ledger::Cover::Masked)
    };
    states.iter().map(uploads).collect()
}

/// Fewer records together than half of the features: all refuse after a masked flag and the sum of counts.
#[test]
fn few_records_are_refused_before_anything_else_is_sent() {
    assert_eq!(in_time(|| refused([5, 5, 5], 100)), [2; 3]);
}

/// The sum of counts is enough, but not without the largest party: that takes one more flag.
#[test]
fn a_large_party_does_not_make_up_for_few_records() {
    assert_eq!(in_time(|| refused([500, 20, 29], 100)), [3; 3]);
}

/// Before the counts are opened, a party cannot know that they are too few: one party's claim does not end the run.
#[test]
fn a_refusal_before_the_counts_changes_nothing() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let (federation, parties) = setting(folder.path());
        let journal = federation.state.join("coordinator.journal");
        let key =
            |party: &PartyConfig| crate::text::Hex(*read_identity(&party.identity).unwrap().key().bytes());
        let head = crate::journal::CoordinatorHead {
            run: crate::text::Hex([7; 32]),
            terms: federation.terms.clone(),
            keys: parties.iter().map(key).collect(),
            features: 10,
        };
        std::fs::create_dir(&federation.state).unwrap();
        crate::journal::JournalFile::create(&journal, &head).unwrap();
        let address = federation.address.clone();
        let centre = start(federation, true, &Arc::default());
        let enter = Frame::control(&FromParty::Enter {
            federation: "demo".into(),
            name: "b".into(),
            version: "?".into(),
            check: false,
            run: Some(head.run),
        });
        let stopping = Frame::control(&FromParty::Stopping { reason: crate::frame::Reason::FewRecords });
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            send_all(&address, vec![enter.encode(), stopping.encode()]).await;
            // The party is admitted again, which a coordinator that has ended the run would not do.
            let opened = rpc::open(connect(&address).await, "localhost").await;
            let Ok(rpc::OpenedStream { mut ingoing, outgoing, .. }) = opened else {
                panic!("no coordinator")
            };
            outgoing.send(enter.encode()).await.unwrap();
            let begin = Frame::control(&ToParty::Begin).encode();
            while ingoing.message().await.unwrap().expect("the run resumes") != begin {}
        });
        assert!(journal.exists() && !centre.is_finished());
    });
}

/// A coordinator whose proposals would make a party's sums smaller than they appear, or crash the party.
#[test]
fn invalid_terms_are_refused_by_the_party() {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let (party, good) = (&parties[0], federation.terms);
    let own = good.roster[0].identity;
    assert_eq!(party.accept(&good, &own).unwrap(), 1);
    let forged = Fingerprint::of(b"the coordinator's own");
    let member = |name: &str, identity: Fingerprint| Member { name: name.into(), identity };
    let [a, b, c] = [0, 1, 2].map(|place| good.roster[place].clone());
    let asynchronous = Settings { rounds: 6, ..Settings::new(Protocol::AsynSd, 3) };
    let roster = |roster: Vec<Member>| Terms { roster, ..good.clone() };
    let groups = |groups: &[&[u16]]| Terms {
        settings: asynchronous.clone(),
        groups: groups.iter().map(|group| group.to_vec()).collect(),
        ..good.clone()
    };
    let method = |change: &dyn Fn(&mut Settings)| {
        let mut terms = good.clone();
        change(&mut terms.settings);
        terms
    };
    for (terms, words) in [
        // The party, and the coordinator under the party's name: its sums would cover itself only.
        (roster(vec![a.clone(), member("a", forged), member("a", Fingerprint([7; 32]))]), "is listed twice"),
        // One party that colludes with the coordinator, in two places.
        (roster(vec![a.clone(), b.clone(), b.clone()]), "is listed twice"),
        (roster(vec![a.clone(), b.clone(), member("c", b.identity)]), "is listed twice"),
        (roster(vec![a.clone(), b.clone(), member("d", c.identity)]), "d as another party"),
        (roster(vec![a.clone(), b.clone(), member("c\nrejected", c.identity)]), "is not a valid name"),
        (roster(vec![member("a", forged), b.clone(), c.clone()]), "for this party"),
        (roster(vec![a.clone()]), "1 parties"),
        (groups(&[&[1, 1, 1], &[2, 2, 2]]), "partition the parties"),
        (groups(&[&[1, 2, 3], &[1, 2, 3]]), "partition the parties"),
        (groups(&[&[0, 1, 2]]), "partition the parties"),
        (groups(&[&[1, 2, 4]]), "partition the parties"),
        (groups(&[]), "partition the parties"),
        (Terms { groups: vec![vec![1, 2, 3]], ..good.clone() }, "partition the parties"),
        (groups(&[&[1], &[2, 3]]), "sums over 1 parties"),
        (method(&|settings| settings.colluders = 0), "colluders = 0"),
        (method(&|settings| settings.rounds = 501), "501 rounds"),
        (method(&|settings| settings.rho = -1.0), "[method]: rho: -1"),
        (Terms { cohort: 9, ..good.clone() }, "cohort: 9"),
        (Terms { deadline: -1.0, ..good.clone() }, "deadline: -1"),
        (Terms { deadline: 1e300, ..good.clone() }, "deadline: 1"),
    ] {
        let error = party.accept(&terms, &own).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    // In an asynchronous run a fast group may do the rounds of all groups.
    let mut six = groups(&[&[1, 2, 3]]);
    six.settings.rounds = 400;
    assert!(party.accept(&six, &own).is_ok());
    for (place, name) in ["d", "e", "f"].into_iter().enumerate() {
        six.roster.push(member(name, Fingerprint([place as u8; 32])));
    }
    six.groups.push(vec![4, 5, 6]);
    assert!(party.accept(&six, &own).unwrap_err().to_string().contains("800 rounds"));
}

/// An attacker in the coordinator's place, whose clock is some seconds behind, and who sends without end.
fn impostor(runtime: &tokio::runtime::Runtime, address: &str, terms: Terms, behind: f64) -> JoinHandle<()> {
    let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).unwrap();
    runtime.spawn(async move {
        let (stream, _) = CONNECT.limit(listener.accept()).await.unwrap().unwrap();
        let join = move |ingoing: rpc::Ingoing, outgoing: rpc::Outgoing| {
            let (terms, time) = (Box::new(terms.clone()), crate::text::unix_seconds() - behind);
            tokio::spawn(async move {
                let welcome = ToParty::Welcome { terms, time, run: None };
                let piece = Frame::Piece(Piece {
                    payload: Payload::Message,
                    last: false,
                    bytes: vec![0; MAX_PIECE].into(),
                });
                let mut frame = Frame::control(&welcome).encode();
                while SEND.limit(outgoing.send(Ok(frame))).await.is_ok_and(|sent| sent.is_ok()) {
                    frame = piece.encode();
                }
                drop(ingoing);
            });
        };
        let _ = rpc::serve(stream, PARTY_HEARTBEAT, join).await;
    })
}

fn polite() -> party::PartyOptions {
    party::PartyOptions {
        insecure: true,
        threads: 1,
        hooks: Arc::new(party::NoHooks),
        cancel: Cancel::default(),
        log: Arc::new(EventLog::default()),
        mischief: false,
    }
}

/// A coordinator that sends an endless message, and more components than fit in memory.
#[test]
fn messages_of_a_coordinator_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut large = federation.terms.clone();
    large.settings.rank = 1 << 40;
    for (terms, words) in [(federation.terms.clone(), "something oversized"), (large, "are more than 4 GiB")]
    {
        let served = impostor(&runtime, &federation.address, terms, 0.0);
        let mut party = parties[0].clone();
        // Without limits in its policy, a party is limited only by its memory.
        party.policy.maximum_rank = usize::MAX;
        let error = in_time(move || party::join(&party, given(0), &polite()).err().unwrap().to_string());
        assert!(error.contains(words), "{error}");
        served.abort();
        let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, served).await }).unwrap();
    }
}

#[test]
fn a_check_compares_clocks() {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let served = impostor(&runtime, &federation.address, federation.terms.clone(), 3600.0);
    let party = parties[0].clone();
    let error = in_time(move || party::check(&party, &given(0), &polite()).err().unwrap().to_string());
    assert!(error.contains("the clocks differ by 3600 s; correct them"), "{error}");
    served.abort();
}

/// Creates an authority, and gives the coordinator and all parties its certificates.
fn certify(folder: &Path, federation: &mut FederationConfig, parties: &mut [PartyConfig]) {
    make_authority(folder, "demo", &[], 9).unwrap();
    let files = |own: &Path, name: &str| TlsFiles {
        certificate: own.join(format!("{name}.crt")),
        key: own.join(format!("{name}.key")),
        authority: folder.join("ca.crt"),
        revocations: None,
    };
    federation.tls = files(folder, "coordinator");
    for (party, binding) in parties.iter_mut().zip(&mut federation.bindings) {
        let own = folder.join(&party.name);
        let signed = sign(folder, "demo", &own.join(format!("{}.request", party.name)), 9).unwrap();
        std::fs::write(own.join(format!("{}.crt", party.name)), signed.certificate).unwrap();
        party.tls = files(&own, &party.name);
        binding.dns = crate::config::party_dns("demo", &party.name);
    }
}

/// A stream of this party, unless it is refused.
async fn opened(party: &PartyConfig) -> Option<rpc::OpenedStream> {
    let connector = tokio_rustls::TlsConnector::from(crate::tls::client(&party.tls).unwrap());
    let name = crate::tls::server_name("demo.partwise").unwrap();
    let stream = connector.connect(name, connect(&party.coordinator).await);
    let stream = HANDSHAKE.limit(stream).await.unwrap().ok()?;
    rpc::open(stream, "demo.partwise").await.ok()
}

/// Clients with a certificate, valid or revoked, cannot take places from others.
#[test]
fn connections_of_one_certificate_are_few() {
    in_time(connect_often);
}

fn connect_often() {
    let folder = tempfile::tempdir().unwrap();
    let (mut federation, mut parties) = setting(folder.path());
    certify(folder.path(), &mut federation, &mut parties);
    // Party c's certificate is revoked; b's is valid, and b opens too many connections.
    federation.bindings.pop();
    federation.terms.roster.pop();
    federation.terms.cohort = 2;
    let log = Arc::new(EventLog::default());
    start(federation, false, &log);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut kept = Vec::new();
        for party in [&parties[1], &parties[2]] {
            for _ in 0..80 {
                let begin = std::time::Instant::now();
                kept.push(opened(party).await);
                // Refused clients are told the reason before their deadline.
                assert!(begin.elapsed() < OPEN.limit, "{:?}", begin.elapsed());
            }
        }
        let outgoing = loop {
            // Clients without a place are disconnected soon.
            match opened(&parties[0]).await {
                Some(opened) => break opened.outgoing,
                None => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        let enter = FromParty::Enter {
            federation: "demo".into(),
            name: "a".into(),
            version: "?".into(),
            check: true,
            run: None,
        };
        SEND.limit(outgoing.send(Frame::control(&enter).encode())).await.unwrap().unwrap();
    });
    let rejected = log.rejections();
    assert!(rejected["too many connections of one party"] >= 70, "{rejected:?}");
    assert!(rejected["a certificate for no party of this federation"] >= 10, "{rejected:?}");
}

/// The point at which a coordinator stops sending.
#[derive(Clone, Copy, Debug)]
enum Silent {
    /// After the connection.
    Connected,
    /// After the stream.
    Opened,
}

/// A coordinator that stops sending at some point: a party that checks ends with a sentence that names the point.
#[test]
fn a_silent_coordinator_is_reported_in_time() {
    let cases = [
        (Silent::Connected, true, OPEN),
        (Silent::Connected, false, HANDSHAKE),
        (Silent::Opened, true, WELCOME),
    ];
    let threads = cases.map(|(silent, insecure, deadline)| {
        std::thread::spawn(move || in_time(move || check_silent(silent, insecure, deadline)))
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn check_silent(silent: Silent, insecure: bool, deadline: crate::deadline::Deadline) {
    let folder = tempfile::tempdir().unwrap();
    let (mut federation, mut parties) = setting(folder.path());
    certify(folder.path(), &mut federation, &mut parties);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind(&federation.address)).unwrap();
    runtime.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        if let Silent::Opened = silent {
            let join = |ingoing: rpc::Ingoing, outgoing: rpc::Outgoing| {
                tokio::spawn(async move {
                    tokio::time::sleep(PATIENCE).await;
                    drop((ingoing, outgoing));
                });
            };
            let _ = rpc::serve(stream, PARTY_HEARTBEAT, join).await;
        } else {
            tokio::time::sleep(PATIENCE).await;
            drop(stream);
        }
    });
    let options = party::PartyOptions { insecure, ..polite() };
    let begin = std::time::Instant::now();
    let error = party::check(&parties[0], &given(0), &options).err().unwrap();
    let said = matches!(&error, crate::Error::Network { problem, .. } if problem.contains(&deadline.late().to_string()));
    assert!(said, "{silent:?}: {error}");
    assert!(begin.elapsed() >= deadline.limit);
}

/// Clients that connect and send nothing, or open no stream, are disconnected and leave room for others.
#[test]
fn a_coordinator_hangs_up_on_the_silent() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let (federation, _) = setting(folder.path());
        let address = federation.address.clone();
        let log = Arc::new(EventLog::default());
        start(federation, true, &log);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut silent = connect(&address).await;
            // An HTTP/2 preface with empty settings and their acknowledgement; then nothing.
            let mut idle = connect(&address).await;
            idle.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
            idle.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0]).await.unwrap();
            let entering = rpc::open(connect(&address).await, "localhost").await.unwrap();
            let mut ingoing = entering.ingoing;
            let code = ENTER.limit(async { ingoing.message().await.unwrap_err().code() });
            let mut bytes = Vec::new();
            assert!(silent.read_to_end(&mut bytes).await.is_ok_and(|count| count < 1000));
            assert!(idle.read_to_end(&mut bytes).await.is_ok_and(|count| count < 1000));
            assert_eq!(code.await.unwrap(), tonic::Code::DeadlineExceeded);
        });
        let rejected = log.rejections();
        assert_eq!(rejected["a connection that opens no stream"], 2, "{rejected:?}");
        assert_eq!(rejected["a silent party"], 1, "{rejected:?}");
    });
}

#[test]
fn an_identity_comes_back_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let fingerprint = make_request(folder.path(), "demo", "a").unwrap();
    let identity = read_identity(&folder.path().join("identity.key")).unwrap();
    assert_eq!(Fingerprint::of(identity.key().bytes()), fingerprint);
    std::fs::write(folder.path().join("bad"), "12").unwrap();
    assert!(read_identity(&folder.path().join("bad")).is_err());
    // Nothing is overwritten.
    assert!(make_request(folder.path(), "demo", "a").is_err());
}

/// A party that reconnects endlessly causes only a few log lines, and the run is otherwise unaffected.
#[test]
fn an_insider_cannot_fill_the_log() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let (federation, parties) = setting(folder.path());
        let address = federation.address.clone();
        let log = Arc::new(EventLog::default());
        let centre = start(federation, true, &log);
        let enter = Frame::control(&FromParty::Enter {
            federation: "demo".into(),
            name: "b".into(),
            version: "?".into(),
            check: false,
            run: None,
        });
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            for _ in 0..60 {
                let Ok(opened) = rpc::open(connect(&address).await, "localhost").await else { continue };
                let _ = SEND.limit(opened.outgoing.send(enter.encode())).await.unwrap();
                let mut ingoing = opened.ingoing;
                let _ = ENTER.limit(ingoing.message()).await.unwrap();
            }
        });
        assert!(!log.say_of("b", crate::log::Level::Info, "said too often", serde_json::Value::Null));
        assert!(log.say_of("a", crate::log::Level::Info, "said for the first time", serde_json::Value::Null));
        let run = Run { parties, data: given };
        assert!(run.end().into_iter().all(|ended| ended.is_ok()));
        assert!(centre.join().unwrap().unwrap().agreed);
    });
}

/// Runs parties with their data.
struct Run {
    parties: Vec<PartyConfig>,
    data: fn(usize) -> party::PartyData<f32>,
}

impl Run {
    /// The number of rounds of each party, or the error that ended its run.
    fn end(self) -> Vec<crate::Result<usize>> {
        let join = |(place, party): (usize, PartyConfig)| {
            let given = (self.data)(place);
            std::thread::spawn(move || {
                let joined = party::join(&party, given, &polite())?;
                let factor: Vec<u8> = joined.u.iter().flat_map(|value| value.to_le_bytes()).collect();
                let (rounds, parties) = (joined.ended.rounds, joined.terms.roster.len());
                joined.finish(factor, parties).map(|()| rounds)
            })
        };
        let threads: Vec<_> = self.parties.into_iter().enumerate().map(join).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

/// `dsanls-limited` with 32 records per party and sketches to 4 columns allows 7 rounds over all runs
/// together.
#[test]
fn the_sketch_budget_covers_all_runs() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let (federation, mut parties) = setting(folder.path());
        for party in &mut parties {
            party.policy.protocols.push(Protocol::DsanlsLimited);
        }
        let run = |seed: u64, rounds: usize| {
            let mut federation = federation.clone();
            federation.terms.settings =
                Settings { rounds, seed, ..Settings::new(Protocol::DsanlsLimited, 2) };
            let centre = start(federation, true, &Arc::default());
            let ended = Run { parties: parties.clone(), data: |place| given_of(place, (10, 32)) }.end();
            (ended, centre)
        };
        let rounds = |seed: u64, rounds: usize| {
            let (ended, centre) = run(seed, rounds);
            centre.join().unwrap().unwrap().forget().unwrap();
            ended.into_iter().map(Result::unwrap).collect::<Vec<usize>>()
        };
        assert_eq!(rounds(1, 5), [5; 3]);
        assert_eq!(rounds(2, 100), [2; 3]);
        let equations = |party: &PartyConfig| {
            let data = crate::data_ledger::DataSet::new(&given_of(0, (10, 32)).matrix);
            let path = crate::data_ledger::DataLedger::path_in(&party.ledgers, &data.digest);
            crate::data_ledger::read(&path).unwrap().account.equations()
        };
        assert_eq!(equations(&parties[0]), 28);
        // A third run opens nothing.
        let (ended, _waiting) = run(3, 100);
        for ended in ended {
            let error = ended.unwrap_err().to_string();
            assert!(error.contains("has opened much of them in earlier runs"), "{error}");
        }
        assert_eq!(equations(&parties[0]), 28);
    });
}
