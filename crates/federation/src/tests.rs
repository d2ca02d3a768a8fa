//! A coordinator and parties in one process, on loopback, one of them with bad manners.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use partwise::cancel::Cancel;
use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise_secure::protocol::{Protocol, Settings};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::agreement::{Member, Terms};
use crate::certificates::{make_authority, make_request, read_identity, sign};
use crate::config::{Bound, Federation, Party, Policy, TlsFiles};
use crate::frame::{CONTROL, Frame, FromParty, Long, PIECE, ToParty};
use crate::log::Log;
use crate::text::Fingerprint;
use crate::{coordinator, party, rpc};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn setting(folder: &Path) -> (Federation, Vec<Party>) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let files = || TlsFiles { certificate: "".into(), key: "".into(), authority: "".into() };
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
    let parties = NAMES.iter().map(|name| Party {
        path: "party.toml".into(),
        name: name.to_string(),
        federation: "demo".into(),
        coordinator: address.clone(),
        server_name: "demo.partwise".into(),
        tls: files(),
        identity: folder.join(name).join("identity.key"),
        state: folder.join(name).join("state"),
        policy: Policy::default(),
        peers: roster.iter().map(|member| (member.name.clone(), member.identity)).collect(),
    });
    let federation = Federation {
        path: "federation.toml".into(),
        terms,
        address: address.clone(),
        state: folder.join("state"),
        tls: files(),
        bound: NAMES.map(|name| Bound { dns: name.into(), certificate: None }).into(),
        revoked: Default::default(),
    };
    (federation, parties.collect())
}

fn given(place: usize) -> party::Given<f32> {
    given_of(place, (10, 12))
}

fn given_of(place: usize, (features, records): (usize, usize)) -> party::Given<f32> {
    let values = (0..features * records).map(|entry| ((entry * 37 + place * 11) % 17) as f32).collect();
    let matrix = Dense::new(features, records, Order::RowMajor, Values::Real(values));
    party::Given { matrix: Matrix::Dense(matrix), names: None, digest: place.to_string() }
}

/// What somebody sends who is let in as party b, before b itself comes.
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
    let part =
        |last, length| Frame::Piece { long: Long::Message, last, bytes: vec![3; length].into() }.encode();
    vec![
        vec![],
        vec![Bytes::new()],
        vec![frame(9, 5)],
        vec![enter("nobody")],
        vec![Frame::Control(Bytes::from_static(b"{\"say\":\"enter\"")).encode()],
        vec![Frame::control(&FromParty::Ready { attempt: 1 }).encode()],
        // In, and then what is none.
        vec![enter("b"), Bytes::new(), frame(9, 5), frame(0, 40), frame(1, PIECE + 9), enter("b")],
        // More bad frames than are borne.
        std::iter::once(enter("b")).chain((0..20).map(|_| frame(77, 3))).collect(),
        // Messages before there is a run, and longer than any.
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
        vec![enter("b"), frame(0, CONTROL + 100)],
    ]
}

async fn send_all(address: &str, frames: Vec<Bytes>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let Ok((mut ingoing, outgoing)) = rpc::open(stream, Duration::from_secs(5), "localhost").await else {
        return;
    };
    for frame in frames {
        if outgoing.send(frame).await.is_err() {
            break;
        }
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(outgoing);
    while let Ok(Some(_)) = ingoing.message().await {}
}

#[test]
fn hostile_frames_are_counted_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let address = federation.address.clone();
    let log = Arc::new(Log::default());
    let options = coordinator::Options { insecure: true, status_address: None, log: log.clone() };
    let centre = std::thread::spawn(move || coordinator::run(federation, options));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    while runtime.block_on(TcpStream::connect(&address)).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
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
                let log = Arc::new(Log::default());
                // Party b replays, reorders and damages all that it sends, beside what it should.
                let options = party::Options { log, mischief: place == 1, ..polite() };
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
    assert_eq!(outcome.epochs, 1, "nobody had to begin anew");
    let rejected = log.rejections();
    // An offer, an agreement and its confirmation said twice, and errors of rounds that there are not.
    assert!(rejected["words out of turn"] >= 4, "{rejected:?}");
    assert!(outcome.trace.iter().all(|point| point.round <= 6));
    for reason in [
        "a first frame that is none",
        "a first frame that does not enter",
        "a party that is not of the roster",
        "a frame of an unknown kind",
        "an empty frame",
        "control words that are none",
        "an oversized piece",
        "a second beginning",
        "something oversized",
        "words out of turn",
        "an oversized frame",
        "a malformed message",
        "a message for a cohort that does not exist",
        "a message that breaks the protocol",
        "a message of an attempt that is over",
    ] {
        assert!(rejected.get(reason).is_some_and(|count| *count > 0), "{reason}: {rejected:?}");
    }
}

/// Records of each party, and how many uploads it sent; every party and the coordinator end with the refusal.
fn refused(records: [usize; 3], features: usize) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let options = coordinator::Options { insecure: true, status_address: None, log: Arc::default() };
    let journal = federation.state.join("coordinator.journal");
    let centre = std::thread::spawn(move || coordinator::run(federation, options));
    let states: Vec<_> = parties.iter().map(|party| party.state.clone()).collect();
    let join = |(place, party): (usize, Party)| {
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
    // Nothing keeps the next run from beginning.
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

/// Fewer records together than half of the features: all refuse after the masked sum of counts, and send nothing else.
#[test]
fn few_records_are_refused_before_anything_else_is_sent() {
    assert_eq!(refused([5, 5, 5], 100), [1; 3]);
}

/// The sum of counts is enough, but not without the largest party: that takes two flags more, and nothing else.
#[test]
fn a_large_party_does_not_make_up_for_few_records() {
    assert_eq!(refused([500, 20, 29], 100), [3; 3]);
}

/// A coordinator that proposes what would make a party's sums smaller than they look, or the party stumble.
#[test]
fn terms_that_are_none_are_refused_by_the_party() {
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
        // The party, and the coordinator under its name: its sums would be of itself alone.
        (roster(vec![a.clone(), member("a", forged), member("a", Fingerprint([7; 32]))]), "is there twice"),
        // One party that is in league with the coordinator, in two places.
        (roster(vec![a.clone(), b.clone(), b.clone()]), "is there twice"),
        (roster(vec![a.clone(), b.clone(), member("c", b.identity)]), "is there twice"),
        (roster(vec![a.clone(), b.clone(), member("d", c.identity)]), "d as another party"),
        (roster(vec![a.clone(), b.clone(), member("c\nrejected", c.identity)]), "is no name"),
        (roster(vec![member("a", forged), b.clone(), c.clone()]), "for this party"),
        (roster(vec![a.clone()]), "1 parties"),
        (groups(&[&[1, 1, 1], &[2, 2, 2]]), "share out"),
        (groups(&[&[1, 2, 3], &[1, 2, 3]]), "share out"),
        (groups(&[&[0, 1, 2]]), "share out"),
        (groups(&[&[1, 2, 4]]), "share out"),
        (groups(&[]), "share out"),
        (Terms { groups: vec![vec![1, 2, 3]], ..good.clone() }, "share out"),
        (groups(&[&[1], &[2, 3]]), "sums over 1 parties"),
        (method(&|settings| settings.colluders = 0), "colluders = 0"),
        (method(&|settings| settings.rounds = 501), "501 rounds"),
        (method(&|settings| settings.rho = -1.0), "--rho"),
        (Terms { cohort: 9, ..good.clone() }, "cohort: 9"),
        (Terms { deadline: -1.0, ..good.clone() }, "deadline: -1"),
        (Terms { deadline: 1e300, ..good.clone() }, "deadline: 1"),
    ] {
        let error = party.accept(&terms, &own).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    // Of an asynchronous run a fast group may do the rounds of all.
    let mut six = groups(&[&[1, 2, 3]]);
    six.settings.rounds = 400;
    assert!(party.accept(&six, &own).is_ok());
    for (place, name) in ["d", "e", "f"].into_iter().enumerate() {
        six.roster.push(member(name, Fingerprint([place as u8; 32])));
    }
    six.groups.push(vec![4, 5, 6]);
    assert!(party.accept(&six, &own).unwrap_err().to_string().contains("800 rounds"));
}

/// Somebody in the coordinator's place, whose clock is so many seconds behind, and who sends without end.
fn impostor(runtime: &tokio::runtime::Runtime, address: &str, terms: Terms, behind: f64) -> JoinHandle<()> {
    let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).unwrap();
    runtime.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let join = move |ingoing: rpc::Ingoing, outgoing: rpc::Outgoing| {
            let (terms, time) = (Box::new(terms.clone()), crate::text::unix_seconds() - behind);
            tokio::spawn(async move {
                let welcome = ToParty::Welcome { terms, time, run: None };
                let _ = outgoing.send(Ok(Frame::control(&welcome).encode())).await;
                let piece = Frame::Piece { long: Long::Message, last: false, bytes: vec![0; PIECE].into() };
                while outgoing.send(Ok(piece.encode())).await.is_ok() {}
                drop(ingoing);
            });
        };
        let _ = rpc::serve(stream, Duration::from_secs(5), join).await;
    })
}

fn polite() -> party::Options {
    party::Options {
        insecure: true,
        threads: 1,
        trial_seed: None,
        trial_death: None,
        cancel: Cancel::default(),
        log: Arc::new(Log::default()),
        mischief: false,
    }
}

/// A coordinator that sends a party something endless, and more components than memory could hold.
#[test]
fn what_a_coordinator_sends_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut large = federation.terms.clone();
    large.settings.rank = 1 << 40;
    for (terms, words) in [(federation.terms.clone(), "something oversized"), (large, "more than 4 GiB")] {
        let served = impostor(&runtime, &federation.address, terms, 0.0);
        let error = party::join(&parties[0], given(0), &polite()).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
        served.abort();
        let _ = runtime.block_on(served);
    }
}

#[test]
fn a_check_compares_clocks() {
    let folder = tempfile::tempdir().unwrap();
    let (federation, parties) = setting(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let served = impostor(&runtime, &federation.address, federation.terms.clone(), 3600.0);
    let error = party::check(&parties[0], &given(0), &polite()).err().unwrap().to_string();
    assert!(error.contains("clocks differ by 3600 s; set them right"), "{error}");
    served.abort();
}

/// Whoever has a certificate, a good one or a revoked one, can take no room from the others.
#[test]
fn connections_of_one_certificate_are_few() {
    let folder = tempfile::tempdir().unwrap();
    let (mut federation, mut parties) = setting(folder.path());
    make_authority(folder.path(), "demo", &[], 9).unwrap();
    let files = |folder: &Path, name: &str, authority: &Path| TlsFiles {
        certificate: folder.join(format!("{name}.crt")),
        key: folder.join(format!("{name}.key")),
        authority: authority.join("ca.crt"),
    };
    federation.tls = files(folder.path(), "coordinator", folder.path());
    for (party, bound) in parties.iter_mut().zip(&mut federation.bound) {
        let own = folder.path().join(&party.name);
        let signed = sign(folder.path(), "demo", &own.join(format!("{}.request", party.name)), 9).unwrap();
        std::fs::write(own.join(format!("{}.crt", party.name)), signed.certificate).unwrap();
        party.tls = files(&own, &party.name, folder.path());
        bound.dns = crate::config::party_dns("demo", &party.name);
    }
    // Party c's certificate is revoked; b's is good, and b greedy.
    federation.bound.pop();
    federation.terms.roster.pop();
    federation.terms.cohort = 2;
    let address = federation.address.clone();
    let log = Arc::new(Log::default());
    let options = coordinator::Options { insecure: false, status_address: None, log: log.clone() };
    std::thread::spawn(move || coordinator::run(federation, options));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    while runtime.block_on(TcpStream::connect(&address)).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let connect = |party: &Party| {
        let connector = tokio_rustls::TlsConnector::from(crate::tls::client(&party.tls).unwrap());
        let name = crate::tls::server_name("demo.partwise").unwrap();
        let address = address.clone();
        async move {
            let stream = TcpStream::connect(&address).await.unwrap();
            let stream = connector.connect(name, stream).await.ok()?;
            Some(rpc::open(stream, Duration::from_secs(5), "demo.partwise").await)
        }
    };
    runtime.block_on(async {
        let mut kept = Vec::new();
        for party in [&parties[1], &parties[2]] {
            for _ in 0..80 {
                kept.push(connect(party).await);
            }
        }
        let outgoing = loop {
            // Those who have no place leave soon.
            match connect(&parties[0]).await {
                Some(Ok((_, outgoing))) => break outgoing,
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        let enter = FromParty::Enter {
            federation: "demo".into(),
            name: "a".into(),
            version: "?".into(),
            check: true,
            run: None,
        };
        outgoing.send(Frame::control(&enter).encode()).await.unwrap();
    });
    let rejected = log.rejections();
    assert!(rejected["a connection too many of one party"] >= 70, "{rejected:?}");
    assert!(rejected["a certificate that is for no party of this federation"] >= 10, "{rejected:?}");
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
