//! Complete aggregations with fixed entropy, compared byte for byte with files: no message changes by accident.
//!
//! An intended change of the protocol needs a new version of its domain separators; `PARTWISE_WRITE_VECTORS=1 cargo
//! nextest run -p partwise-secure vectors` rewrites the files.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use chacha20::ChaCha20Rng;
use partwise_secure::aggregation::{Action, Cohort, Event, Hub, Identity, Message, Party, Words};
use partwise_secure::fixed::{self, Contribution, Part};
use partwise_secure::session::{addressed, parse};
use partwise_secure::sum::SumKind;
use rand::SeedableRng;
use serde::{Deserialize, Serialize};

/// A whole aggregation.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vector {
    about: String,
    /// The hash that names the run, in hexadecimal.
    run: String,
    colluders: usize,
    may_leave: bool,
    plain: bool,
    /// The secrets of the parties' identities, their public keys, and the seeds of their entropy, in hexadecimal.
    parties: Vec<Member>,
    /// All messages, in the order in which they are delivered.
    messages: Vec<Sent>,
    /// What the coordinator opens.
    opened: Vec<Opened>,
    /// The sums of numbers that follow.
    sums: Vec<Vec<f64>>,
    /// The hash over all that the coordinator has told, in hexadecimal.
    transcript: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Member {
    secret: String,
    key: String,
    entropy: String,
    numbers: Vec<Vec<f64>>,
}

/// A message as it goes over a link, with the number of its cohort.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Sent {
    from: u16,
    to: u16,
    kind: String,
    bytes: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Opened {
    parties: Vec<u16>,
    narrow: Vec<u32>,
    wide: Vec<u64>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// What varies between the files.
#[derive(Clone, Copy)]
struct Scenario {
    file: &'static str,
    about: &'static str,
    parties: u16,
    plain: bool,
    /// The party that is gone before its numbers arrive.
    leaver: Option<u16>,
}

const RUN: [u8; 32] = [0x52; 32];
const COHORT: u8 = 3;
const COLLUDERS: usize = 1;

const SCENARIOS: [Scenario; 3] = [
    Scenario {
        file: "three-parties",
        about: "three parties agree on ranges, then sum a matrix of 2 x 2 and a scalar",
        parties: 3,
        plain: false,
        leaver: None,
    },
    Scenario {
        file: "one-leaves",
        about: "four parties of which the last leaves before its numbers arrive, and may",
        parties: 4,
        plain: false,
        leaver: Some(4),
    },
    Scenario {
        file: "plain",
        about: "three parties sum the same numbers without masks",
        parties: 3,
        plain: true,
        leaver: None,
    },
];

/// The secret of a party's identity, and the seed of its entropy.
fn secret(party: u16) -> [u8; 32] {
    [0x10 + party as u8; 32]
}

fn entropy(party: u16) -> [u8; 32] {
    [0x80 + party as u8; 32]
}

fn numbers(party: u16) -> Vec<Part> {
    let scale = f64::from(party);
    vec![Part::matrix(vec![0.5 * scale, 100.0, 0.25, scale], 2), Part::scalars(&[1e6 + scale])]
}

/// Parties and a coordinator in one room, whose messages are delivered in the order in which they were sent.
struct Room {
    parties: BTreeMap<u16, Party>,
    hub: Hub,
    letters: VecDeque<(u16, u16, Message)>,
    sent: Vec<Sent>,
    opened: Vec<Opened>,
}

impl Room {
    fn new(scenario: Scenario) -> Room {
        let cohort = cohort(scenario);
        let mut room = Room {
            parties: BTreeMap::new(),
            hub: Hub::new(cohort.clone(), scenario.plain),
            letters: VecDeque::new(),
            sent: Vec::new(),
            opened: Vec::new(),
        };
        for party in 1..=scenario.parties {
            let rng = ChaCha20Rng::from_seed(entropy(party));
            let identity = Identity::from_secret(&secret(party));
            let machine = Party::with_entropy(cohort.clone(), party, identity, scenario.plain, rng);
            let mut machine = machine.unwrap();
            let actions = machine.begin();
            room.parties.insert(party, machine);
            room.act(party, actions);
        }
        room.deliver();
        room
    }

    fn act(&mut self, who: u16, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, message } => self.letters.push_back((who, to, message)),
                Action::Tell { to, message } => {
                    to.into_iter().for_each(|to| self.letters.push_back((who, to, message.clone())));
                }
                Action::Opened { words, cohort, .. } if who == 0 => {
                    let (narrow, wide) = (words.narrow.clone(), words.wide.clone());
                    self.opened.push(Opened { parties: cohort, narrow, wide });
                    let actions = self.hub.handle(Event::Answer { words, after: None }).unwrap();
                    self.act(0, actions);
                }
                Action::Opened { .. } | Action::Keep(_) => {}
                Action::Waiting { .. } | Action::CatchUp { .. } | Action::Blame(_) => {
                    panic!("nobody waits here: {action:?}")
                }
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, message)) = self.letters.pop_front() {
            let bytes = hex(&addressed(COHORT, &message));
            self.sent.push(Sent { from, to, kind: message.kind().into(), bytes });
            let event = Event::Message { from, message };
            let actions = match self.parties.get_mut(&to) {
                Some(party) => party.handle(event),
                None => self.hub.handle(event),
            };
            self.act(to, actions.unwrap());
        }
    }

    /// All submit words, but for one that leaves.
    fn sum(&mut self, words: Vec<Words>, leaver: Option<u16>) -> Words {
        for (party, words) in (1..).zip(words) {
            if leaver == Some(party) {
                self.parties.remove(&party);
                let actions = self.hub.handle(Event::Lost(party)).unwrap();
                self.act(0, actions);
                continue;
            }
            let actions = self.parties.get_mut(&party).unwrap().handle(Event::Submit(words)).unwrap();
            self.act(party, actions);
        }
        self.deliver();
        let Opened { narrow, wide, .. } = self.opened.last().unwrap();
        Words { narrow: narrow.clone(), wide: wide.clone() }
    }
}

fn cohort(scenario: Scenario) -> Cohort {
    let member = |party| (party, Identity::from_secret(&secret(party)).key());
    Cohort {
        run: RUN,
        number: COHORT,
        members: (1..=scenario.parties).map(member).collect(),
        colluders: COLLUDERS,
        least: 0,
        may_leave: scenario.leaver.is_some(),
    }
}

/// The numbers as they are.
fn plain_words(parts: &[Part]) -> Words {
    Words {
        narrow: parts[0].values.iter().map(|&value| (value as f32).to_bits()).collect(),
        wide: parts[1].values.iter().map(|value| value.to_bits()).collect(),
    }
}

fn run(scenario: Scenario) -> Vector {
    let parties = 1..=scenario.parties;
    let size = usize::from(scenario.parties);
    let mut room = Room::new(scenario);
    let shapes: Vec<_> = numbers(1).iter().map(Part::shape).collect();
    let sums = if scenario.plain {
        let total = room.sum(parties.clone().map(|party| plain_words(&numbers(party))).collect(), None);
        vec![
            total.narrow.iter().map(|&word| f32::from_bits(word).into()).collect(),
            total.wide.iter().map(|&word| f64::from_bits(word)).collect(),
        ]
    } else {
        let votes = parties.clone().map(|party| {
            // Another stream than that of its keys.
            let mut rng = ChaCha20Rng::from_seed(entropy(party).map(|byte| byte ^ 0x40));
            let contribution = Contribution { party, kind: SumKind::U };
            fixed::votes(&numbers(party), contribution, &mut rng).unwrap()
        });
        let exponents = fixed::agreed(&room.sum(votes.collect(), None));
        let encoded = parties.clone().map(|party| {
            let mut words = fixed::encode(&numbers(party), &exponents, size).unwrap();
            words.wide.push(0);
            words
        });
        let total = room.sum(encoded.collect(), scenario.leaver);
        let opened = fixed::decode(&total, &shapes, &exponents, size);
        opened.into_iter().map(|part| part.values).collect()
    };
    let member = |party| Member {
        secret: hex(&secret(party)),
        key: hex(Identity::from_secret(&secret(party)).key().bytes()),
        entropy: hex(&entropy(party)),
        numbers: numbers(party).into_iter().map(|part| part.values).collect(),
    };
    Vector {
        about: scenario.about.into(),
        run: hex(&RUN),
        colluders: COLLUDERS,
        may_leave: scenario.leaver.is_some(),
        plain: scenario.plain,
        parties: parties.map(member).collect(),
        messages: room.sent,
        opened: room.opened,
        sums,
        transcript: hex(room.hub.transcript()),
    }
}

fn path(scenario: Scenario) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    folder.join(format!("{}.json", scenario.file))
}

/// Every message from the first key to the opened sum.
#[test]
fn whole_aggregations_have_the_pinned_bytes() {
    for scenario in SCENARIOS {
        let vector = run(scenario);
        let path = path(scenario);
        if std::env::var_os("PARTWISE_WRITE_VECTORS").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&vector).unwrap() + "\n").unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let pinned: Vector = serde_json::from_str(&text).unwrap();
        for (place, (sent, pinned)) in vector.messages.iter().zip(&pinned.messages).enumerate() {
            assert_eq!(sent, pinned, "{}: message {place}", scenario.file);
        }
        assert_eq!(vector, pinned, "{}", scenario.file);
    }
}

/// The pinned messages are read and written again as they are, and the sums are those of the numbers.
#[test]
fn the_pinned_messages_are_messages() {
    for scenario in SCENARIOS {
        let pinned: Vector = serde_json::from_str(&std::fs::read_to_string(path(scenario)).unwrap()).unwrap();
        for Sent { from, to, kind, bytes } in &pinned.messages {
            let bytes = bytes_of(bytes);
            let (cohort, message) = parse(*to, *from, &bytes).unwrap();
            assert_eq!((cohort, message.kind()), (COHORT, &kind[..]));
            assert_eq!(addressed(cohort, &message), bytes);
        }
        let stayed = pinned.parties.iter().zip(1..).filter(|(_, party)| scenario.leaver != Some(*party));
        for (part, sums) in pinned.sums.iter().enumerate() {
            for (place, sum) in sums.iter().enumerate() {
                let naive: f64 = stayed.clone().map(|(member, _)| member.numbers[part][place]).sum();
                assert!((sum - naive).abs() <= 1e-6 * naive, "{}: {sum} {naive}", scenario.file);
            }
        }
    }
}
