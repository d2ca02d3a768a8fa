//! Test vectors: complete messages of the agreement, frames, messages of the sums and records of journals, byte for
//! byte, in `tests/vectors`. An intended change needs a new format version; the environment variable
//! `PARTWISE_UPDATE_VECTORS` rewrites the files.

use std::convert::Infallible;
use std::path::Path;

use partwise_secure::aggregation::wire::Hello;
use partwise_secure::aggregation::{
    Commitment, Identity, Message, Opening, OrderTip, Revealed, SumId, Words,
};
use partwise_secure::coordinator::{CohortSum, CoordinatorRecord};
use partwise_secure::protocol::{Protocol, Settings, Stop};
use partwise_secure::session::{Answered, Kept, OtherSum, addressed, parse};
use rand::{TryCryptoRng, TryRng};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::agreement::{Accord, Agree, Features, Ledgers, Member, Negotiation, Negotiator, Offer, Terms};
use crate::data_ledger::{LedgerHead, LedgerHistory, Seen};
use crate::frame::{Frame, FromParty, Payload, Piece, Reason, ToParty, read_control};
use crate::journal::{CoordinatorEntry, CoordinatorHead, JournalFile, PartyHead, decode_kept, encode_kept};
use crate::status::CurvePoint;
use crate::text::{Fingerprint, Hex};

/// Deterministic bytes from a seed, in place of what a party draws at random.
struct Drawn {
    seed: u8,
    count: u64,
}

impl Drawn {
    fn new(seed: u8) -> Self {
        Drawn { seed, count: 0 }
    }
}

impl TryRng for Drawn {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.try_next_u64()? as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(32) {
            let block = Sha256::digest([&[self.seed][..], &self.count.to_le_bytes()].concat());
            chunk.copy_from_slice(&block[..chunk.len()]);
            self.count += 1;
        }
        Ok(())
    }
}

impl TryCryptoRng for Drawn {}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares with a file, or writes it.
fn check(name: &str, vectors: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let text = format!("{vectors:#}\n");
    if std::env::var_os("PARTWISE_UPDATE_VECTORS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let pinned = std::fs::read_to_string(&path).unwrap();
    let line = pinned.lines().zip(text.lines()).position(|(pinned, now)| pinned != now);
    assert!(
        pinned == text,
        "{} has other bytes, from line {:?} on",
        path.display(),
        line.map(|line| line + 1)
    );
}

/// A control message, after a round trip through its bytes.
fn from_party(words: &FromParty) -> Value {
    let bytes = Frame::control(words).encode();
    let Ok(Frame::Control(text)) = Frame::decode(bytes.clone()) else { panic!("no control frame") };
    assert_eq!(&read_control::<FromParty>(&text).unwrap(), words);
    assert_eq!(bytes[0], 0);
    json!(std::str::from_utf8(&text).unwrap())
}

/// A control message, after a round trip through its bytes.
fn to_party(words: &ToParty) -> Value {
    let bytes = Frame::control(words).encode();
    let Ok(Frame::Control(text)) = Frame::decode(bytes.clone()) else { panic!("no control frame") };
    assert_eq!(&read_control::<ToParty>(&text).unwrap(), words);
    assert_eq!(bytes[0], 0);
    json!(std::str::from_utf8(&text).unwrap())
}

/// An identity for a vector, and its seed.
fn identity(party: u8) -> ([u8; 32], Identity) {
    let secret = Sha256::digest([b'i', party]).into();
    (secret, Identity::from_secret(&secret))
}

fn terms(settings: Settings, groups: Vec<Vec<u16>>) -> Terms {
    let member = |(party, name): (u8, &str)| Member {
        name: name.into(),
        identity: Fingerprint::of(identity(party).1.key().bytes()),
    };
    Terms {
        federation: "demo".into(),
        settings,
        roster: (1..).zip(["a", "b", "c"]).map(member).collect(),
        cohort: 3,
        groups,
        deadline: 300.0,
        heartbeat: 10.0,
    }
}

/// A party's ledger. The others remember its first entry if it is party b's.
struct LedgerOf(u8);

impl Ledgers for LedgerOf {
    fn history(&self) -> LedgerHistory {
        let hashes = vec![Fingerprint([1; 32]), Fingerprint([10 + self.0; 32])];
        LedgerHistory { ledger: Hex([self.0; 32]), hashes }
    }

    fn seen(&self, name: &str, _: Hex<32>) -> Option<Seen> {
        (name == "b").then_some(Seen { entries: 1, hash: Hex([1; 32]) })
    }

    fn start(&self, run: [u8; 32], _: &Terms, _: u16) -> crate::Result<LedgerHead> {
        Ok(LedgerHead { ledger: Hex([self.0; 32]), entries: 3, hash: Hex(run) })
    }
}

/// An agreement of three parties, with all of its messages.
fn agreement(terms: &Terms, names: Option<&[String]>) -> Value {
    let identities: Vec<([u8; 32], Identity)> = (1..=3).map(identity).collect();
    let begin = |(place, (_, identity)): (u16, &'_ ([u8; 32], Identity))| (place, identity.clone());
    let parties: Vec<(u16, Identity)> = (1..).zip(&identities).map(begin).collect();
    let ledgers = [1, 2, 3].map(LedgerOf);
    let mut negotiations: Vec<Negotiation<'_>> = parties
        .iter()
        .map(|(place, identity)| {
            let features = Features { count: 3, names };
            let ledgers = &ledgers[usize::from(*place) - 1];
            let party = Negotiator { terms, place: *place, identity, features, ledgers, version: "0.0.0" };
            Negotiation::new(party, 7, &mut Drawn::new(*place as u8))
        })
        .collect();
    let offers: Vec<Offer> = negotiations.iter().map(Negotiation::offer).collect();
    let agrees: Vec<Agree> = negotiations.iter_mut().map(|party| party.agree(&offers).unwrap()).collect();
    let accords = |place: usize| -> Vec<Accord> {
        let accord = |agree: &Agree| Accord {
            agreement: None,
            ledger: agree.ledger,
            seed: agree.seed,
            signature: agree.signature,
            tags: agree.tags[place],
        };
        agrees.iter().map(accord).collect()
    };
    let said = negotiations.iter().enumerate().map(|(place, negotiation)| {
        let accords = accords(place);
        let concluded = negotiation.conclude(&accords).unwrap();
        assert_eq!(concluded.run, agrees[0].agreement.digest());
        json!({
            "identity": hex(&identities[place].0),
            "offer": from_party(&FromParty::Offer { attempt: 7, offer: Box::new(offers[place].clone()) }),
            "agree": from_party(&FromParty::Agree { attempt: 7, agree: Box::new(agrees[place].clone()) }),
            "accords": to_party(&ToParty::Accords { attempt: 7, accords }),
            "ready": from_party(&FromParty::Ready { attempt: 7 }),
        })
    });
    json!({
        "welcome": to_party(&ToParty::Welcome { terms: Box::new(terms.clone()), time: 1.5, run: None }),
        "propose": to_party(&ToParty::Propose { attempt: 7 }),
        "offers": to_party(&ToParty::Offers { attempt: 7, offers: offers.clone() }),
        "parties": said.collect::<Vec<_>>(),
        "begin": to_party(&ToParty::Begin),
        "agreement": hex(&agrees[0].agreement.encode()),
        "run": hex(&agrees[0].agreement.digest()),
    })
}

#[test]
fn agreements_are_pinned() {
    let names = ["asthma", "broken leg", "cough"].map(String::from);
    let mut accepting = Settings { seed: 9, colluders: 1, ..Settings::new(Protocol::AsynSsdV, 4) };
    accepting.accepted.going_on_shows_the_leaver = true;
    accepting.sketch_records = Some(partwise::run::Amount::Share(0.5));
    let vectors = json!({
        "synchronous, named features": agreement(&terms(Settings::new(Protocol::SynSsdU, 4), Vec::new()), Some(&names)),
        "asynchronous, features without names": agreement(&terms(accepting, vec![vec![1, 2, 3]]), None),
    });
    check("agreement.json", &vectors);
}

#[test]
fn frames_are_pinned() {
    let run = Some(Hex([9; 32]));
    let enter = FromParty::Enter {
        federation: "demo".into(),
        name: "a".into(),
        version: "0.0.0".into(),
        check: false,
        run,
    };
    let finished = FromParty::Finished {
        factor: Hex([1; 32]),
        relative_error: 0.25,
        rounds: 12,
        attempts: vec![0.5, 0.25],
        stopped_by: Stop::Tolerance,
        parties: 3,
    };
    let reasons = [Reason::Policy, Reason::Disagreement, Reason::State, Reason::FewRecords, Reason::Trouble];
    let stopping = reasons.map(|reason| from_party(&FromParty::Stopping { reason }));
    let of_party = [
        from_party(&enter),
        from_party(&FromParty::Norm { norm: 2.5 }),
        from_party(&FromParty::Error { round: 3, squared_error: 1e-3 }),
        from_party(&FromParty::Retry),
        from_party(&finished),
    ];
    let of_coordinator = [
        to_party(&ToParty::Begin),
        to_party(&ToParty::Waiting { parties: vec!["a".into(), "b".into()] }),
        to_party(&ToParty::GiveFactor),
        to_party(&ToParty::End),
    ];
    let pieces = [Payload::Message, Payload::Factor].into_iter().flat_map(|payload| {
        [false, true].map(|last| {
            let piece = Frame::Piece(Piece { payload, last, bytes: vec![1, 2, 3].into() });
            assert_eq!(Frame::decode(piece.encode()).unwrap(), piece);
            hex(&piece.encode())
        })
    });
    check(
        "frames.json",
        &json!({
            "party": of_party,
            "party that stops": stopping,
            "coordinator": of_coordinator,
            "pieces": pieces.collect::<Vec<_>>(),
        }),
    );
}

fn reply() -> Message {
    let place = SumId { epoch: 1, round: 2, attempt: 3 };
    Message::Reply { place, survivors: vec![1, 300], words: words() }
}

fn commitment() -> Commitment {
    Commitment {
        party: 1,
        words: [3; 32],
        seed: [4; 32],
        shares: vec![(1, [1; 32]), (2, [2; 32])],
        pairs: vec![(2, [5; 32])],
        only_with: vec![1, 300],
        signature: [6; 64],
    }
}

fn revealed() -> Revealed {
    let (shares, seeds) = (vec![(1, vec![1, 2, 3]), (2, Vec::new())], vec![(3, [3; 32])]);
    Revealed { party: 2, shares, seeds, signature: [7; 64] }
}

const TIP: OrderTip = OrderTip { count: 3, head: [4; 32] };

fn opening(uploads: Vec<(u16, Words)>, order: Option<OrderTip>) -> Message {
    Message::Opening(Box::new(Opening {
        place: SumId { epoch: 1, round: 2, attempt: 3 },
        keys: [8; 32],
        commitments: vec![commitment()],
        signatures: vec![(1, [1; 64]), (2, [2; 64])],
        revealed: vec![revealed()],
        uploads,
        order,
    }))
}

fn words() -> Words {
    Words { narrow: vec![1, u32::MAX], wide: vec![u64::MAX, 0, 5] }
}

#[test]
fn messages_of_the_sums_are_pinned() {
    let place = SumId { epoch: 1, round: 2, attempt: 3 };
    let hello = Hello { party: 4, round: 5, key: [6; 32], signature: [7; 64] };
    let shares = vec![(1, vec![1, 2, 3]), (2, Vec::new())];
    let messages = [
        Message::NewEpoch { epoch: 9 },
        Message::Hello { epoch: 1, hello: hello.clone() },
        Message::Roster { place, hellos: vec![hello.clone(), hello] },
        Message::Upload { place, words: words(), commitment: None, shares: shares.clone() },
        Message::Upload {
            place,
            words: words(),
            commitment: Some(Box::new(commitment())),
            shares: shares.clone(),
        },
        Message::Relay { place, party: 3, words: words() },
        Message::Survivors { place, commitments: vec![commitment(), commitment()], shares },
        Message::Echo { place, signature: [8; 64] },
        Message::Echoes { place, signatures: vec![(1, [1; 64]), (2, [2; 64])] },
        Message::Unmask { place, revealed: revealed() },
        opening(Vec::new(), None),
        opening(vec![(1, words())], Some(TIP)),
        reply(),
    ];
    let vector = |message: &Message| {
        let bytes = addressed(2, message);
        assert_eq!(parse(1, 0, &bytes).unwrap(), (2, message.clone()));
        json!({ "kind": message.kind(), "bytes": hex(&bytes) })
    };
    check("messages.json", &messages.iter().map(vector).collect());
}

#[test]
fn journals_are_pinned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let terms = terms(Settings::new(Protocol::Pooled, 4), Vec::new());
    let keys: Vec<Hex<32>> = (1..=3).map(|party| Hex(*identity(party).1.key().bytes())).collect();
    let run = Hex([9; 32]);
    let head = CoordinatorHead { run, terms: terms.clone(), keys: keys.clone(), features: 24 };
    let mut journal = JournalFile::create(&path, &head).unwrap();
    let coordinator = [
        CoordinatorEntry::Sums(CoordinatorRecord::Epoch { cohort: 1, epoch: 2 }),
        CoordinatorEntry::Sums(CoordinatorRecord::Promise { cohort: 1, survivors: vec![1, 300] }),
        CoordinatorEntry::Sums(CoordinatorRecord::Answer { cohort: 1, now: 1.5, reply: reply(), sum: None }),
        CoordinatorEntry::Sums(CoordinatorRecord::Answer {
            cohort: 1,
            now: 1.5,
            reply: reply(),
            sum: Some(words()),
        }),
        CoordinatorEntry::Sums(CoordinatorRecord::Answer {
            cohort: 1,
            now: 1.5,
            reply: opening(vec![(1, words())], None),
            sum: None,
        }),
        CoordinatorEntry::Norm(2.5),
        CoordinatorEntry::Error(CurvePoint { round: 7, seconds: 1.5, relative_error: 0.25 }),
    ];
    for entry in coordinator {
        journal.append(&entry.encode()).unwrap();
    }
    let of_coordinator = std::fs::read(&path).unwrap();
    let data = "sha256".into();
    let head = PartyHead { run, terms, keys, place: 2, public_seed: 7, private_seed: u64::MAX, data };
    let mut journal = JournalFile::create(&path, &head).unwrap();
    let answered = |order| {
        let (parties, words) = (vec![1, 300], words());
        Kept::Answer(Answered { cohort: 2, parties, polls: 5, answers: [6; 32], words, epoch: 4, order })
    };
    let sum = CohortSum { cohort: 3, epoch: 1, parties: 4, words: words() };
    let promise = Kept::Promise { cohort: 3, survivors: vec![1, 2, 300] };
    let other = Kept::Other(OtherSum { sum, answers: [8; 32], order: TIP });
    for kept in [answered(None), answered(Some(TIP)), promise, other] {
        let record = encode_kept(&kept);
        assert_eq!(decode_kept(&record).unwrap(), kept);
        journal.append(&record).unwrap();
    }
    let of_party = std::fs::read(&path).unwrap();
    check("journals.json", &json!({ "coordinator": hex(&of_coordinator), "party": hex(&of_party) }));
}

/// The longest control messages, with the maximum number of parties, fit in a frame.
#[test]
fn words_of_the_largest_federation_fit_a_frame() {
    let mut terms = terms(Settings::new(Protocol::Pooled, 4), Vec::new());
    let member = |place: u8| Member { name: format!("{place:040}"), identity: Fingerprint([place; 32]) };
    terms.roster = (1..=255).map(member).collect();
    let ledger = LedgerHead { ledger: Hex([255; 32]), entries: u64::MAX, hash: Hex([255; 32]) };
    let party = |_| {
        let signature = Hex([255; 64]);
        Offer {
            identity: Hex([255; 32]),
            nonce: Hex([255; 32]),
            key: Hex([255; 32]),
            seed: Hex([255; 32]),
            features: 1 << 40,
            ledger,
            signature,
        }
    };
    let offers: Vec<Offer> = (0..255).map(party).collect();
    let agreement = crate::agreement::Agreement::new(&terms, &offers, "100.100.100");
    let seen = Some(Seen { entries: u64::MAX, hash: Hex([255; 32]) });
    let digest = Hex([255; 32]);
    let tags = crate::agreement::Tags { names: digest, sorted: digest, seen, ledger: digest };
    let signature = Hex([255; 64]);
    let seed = Hex([255; 32]);
    let accord = |agreement| Accord { agreement, ledger, seed, signature, tags };
    let mut accords = vec![accord(Some(agreement.clone()))];
    accords.resize(255, accord(None));
    let agree = Agree { agreement, ledger, seed, signature, tags: vec![tags; 255] };
    let frames = [
        Frame::control(&FromParty::Agree { attempt: u32::MAX, agree: Box::new(agree) }),
        Frame::control(&ToParty::Offers { attempt: u32::MAX, offers }),
        Frame::control(&ToParty::Accords { attempt: u32::MAX, accords }),
    ];
    for frame in frames {
        let length = frame.encode().len();
        assert!(Frame::decode(frame.encode()).is_ok(), "{length}");
    }
}
