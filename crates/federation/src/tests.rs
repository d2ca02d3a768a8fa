//! A coordinator and parties in one process, on loopback, one of them with bad manners.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise_secure::protocol::{Protocol, Settings};
use tokio::net::TcpStream;

use crate::agreement::{Member, Terms};
use crate::certificates::{make_request, read_identity};
use crate::config::{Bound, Federation, Party, Policy, TlsFiles};
use crate::frame::{CONTROL, Frame, FromParty, Long, PIECE};
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
    let (features, records) = (10, 12);
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
                let options = party::Options {
                    insecure: true,
                    threads: 1,
                    trial_seed: None,
                    trial_death: None,
                    log,
                    mischief: place == 1,
                };
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
