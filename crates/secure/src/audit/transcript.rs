//! All that was said in a run, as it was sent, with what an auditor needs to read it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::aggregation::wire::{round_of, word_bytes, words_of};
use crate::aggregation::{Message, Words};
use crate::fixed::{self, Part, PartShape};
use crate::link::{Asked, Passed, Recorder};
use crate::session::{parse, plain_numbers};
use crate::sum::SumKind;

/// A message: its sender, its receiver, its time, and the position of its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Said {
    /// The sender; 0 is the coordinator.
    pub from: u16,
    /// The receiver.
    pub to: u16,
    /// The clock of the party that sent or received it.
    pub seconds: f64,
    bytes: usize,
}

/// One sum over a cohort: what it was of, and where what each saw of it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RecordedSum {
    /// How many parties the cohort has.
    pub size: usize,
    /// What was summed; `None` if no party stated it.
    #[serde(rename = "what", with = "label_or_empty")]
    pub kind: Option<SumKind>,
    /// The number of earlier attempts.
    #[serde(default)]
    pub attempt: u8,
    /// Whether it only agreed on ranges.
    pub voting: bool,
    /// The shapes of its parts.
    pub shapes: Vec<PartShape>,
    /// The ranges of their columns; none where words are floating-point numbers.
    pub exponents: Vec<i16>,
    /// The contribution of each party below its masks, known only to itself.
    shares: BTreeMap<u16, usize>,
    /// The upload of each party.
    uploads: BTreeMap<u16, usize>,
    /// The answer that each party received.
    replies: BTreeMap<u16, usize>,
    /// The sum that the server told the parties, if it differs from the one that was opened.
    opened: Option<usize>,
}

impl RecordedSum {
    /// The parties that have contributed to it.
    pub fn parties(&self) -> impl Iterator<Item = u16> + '_ {
        self.uploads.keys().copied()
    }

    /// Whether parties sent numbers as they are.
    pub fn is_plain(&self) -> bool {
        self.exponents.is_empty() && !self.voting
    }

    /// The label of what was summed.
    pub fn label(&self) -> &'static str {
        self.kind.map_or("", SumKind::label)
    }
}

/// A kind of sum by its label, and an empty one for none.
mod label_or_empty {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::sum::SumKind;

    pub fn serialize<S: Serializer>(kind: &Option<SumKind>, serializer: S) -> Result<S::Ok, S::Error> {
        kind.map_or("", SumKind::label).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SumKind>, D::Error> {
        let label = String::deserialize(deserializer)?;
        if label.is_empty() {
            return Ok(None);
        }
        SumKind::from_label(&label)
            .map(Some)
            .ok_or_else(|| serde::de::Error::custom(format_args!("there is no sum of {label:?}")))
    }
}

/// All recorded messages.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    payloads: Vec<Vec<u8>>,
    index: Index,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Index {
    said: Vec<Said>,
    /// The sums of each cohort, in their order.
    sums: BTreeMap<u8, Vec<RecordedSum>>,
}

/// The first bytes of the file.
const MAGIC: &[u8; 24] = b"partwise transcript 001\n";

impl Transcript {
    /// The messages, those of each party in their order.
    pub fn said(&self) -> impl Iterator<Item = (&Said, &[u8])> {
        self.index.said.iter().map(|said| (said, &self.payloads[said.bytes][..]))
    }

    /// The sums of each cohort, in their order.
    pub fn sums(&self) -> &BTreeMap<u8, Vec<RecordedSum>> {
        &self.index.sums
    }

    /// The sum to which an upload belongs; `None` if the message is not an upload.
    pub fn sum_of(&self, bytes: &[u8]) -> Option<&RecordedSum> {
        self.index.sums.get(bytes.last()?)?.get(usize::try_from(round_of(bytes)?).ok()?)
    }

    /// The upload of a party for a sum.
    pub fn upload(&self, sum: &RecordedSum, party: u16) -> Option<Words> {
        match parse(0, party, &self.payloads[*sum.uploads.get(&party)?]).ok()?.1 {
            Message::Upload { words, .. } => Some(words),
            _ => None,
        }
    }

    /// The contribution of a party to a sum, known only to itself.
    pub fn share(&self, sum: &RecordedSum, party: u16) -> Option<Words> {
        match sum.shares.get(&party) {
            Some(&share) => words_of(&self.payloads[share]).map(|(words, _)| words),
            None if sum.is_plain() => self.upload(sum, party),
            None => None,
        }
    }

    /// What a party was told of a sum: what the server made of it without masks, else the sum, which it has opened itself.
    pub fn reply(&self, sum: &RecordedSum, party: u16) -> Option<Words> {
        let told = self.told(*sum.replies.get(&party)?);
        told.or_else(|| words_of(&self.payloads[sum.opened?]).map(|(words, _)| words))
    }

    /// The words of an answer, if it contains any.
    fn told(&self, place: usize) -> Option<Words> {
        match parse(1, 0, &self.payloads[place]).ok()?.1 {
            Message::Reply { words, .. } => Some(words),
            _ => None,
        }
    }

    /// The words that the coordinator opened.
    pub fn opened(&self, sum: &RecordedSum) -> Option<Words> {
        match sum.opened {
            Some(opened) => words_of(&self.payloads[opened]).map(|(words, _)| words),
            None => self.told(*sum.replies.values().next()?),
        }
    }

    /// The numbers of all parts of a sum, given its words.
    pub fn parts(&self, sum: &RecordedSum, words: &Words) -> Vec<Vec<f64>> {
        if sum.is_plain() {
            return plain_numbers(words, &sum.shapes);
        }
        let parts = fixed::decode(words, &sum.shapes, &sum.exponents, sum.size);
        parts.into_iter().map(|part| part.values).collect()
    }

    /// Joins what the ranks of a job have recorded, each its own end.
    pub fn join(&mut self, other: Transcript) {
        let shift = self.payloads.len();
        self.payloads.extend(other.payloads);
        let moved = |said: Said| Said { bytes: said.bytes + shift, ..said };
        self.index.said.extend(other.index.said.into_iter().map(moved));
        for (cohort, sums) in other.index.sums {
            for (round, theirs) in sums.into_iter().enumerate() {
                let own = sum_at(self.index.sums.entry(cohort).or_default(), round);
                let moved = |places: BTreeMap<u16, usize>| {
                    places.into_iter().map(move |(party, place)| (party, place + shift))
                };
                if own.kind.is_none() {
                    (own.size, own.kind, own.voting) = (theirs.size, theirs.kind, theirs.voting);
                    (own.shapes, own.exponents, own.attempt) =
                        (theirs.shapes, theirs.exponents, theirs.attempt);
                }
                own.shares.extend(moved(theirs.shares));
                own.uploads.extend(moved(theirs.uploads));
                own.replies.extend(moved(theirs.replies));
                own.opened = own.opened.or(theirs.opened.map(|place| place + shift));
            }
        }
        self.forget_echoes();
    }

    /// Writes it: payloads, each with its length, then the index as JSON.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(MAGIC)?;
        out.write_all(&(self.payloads.len() as u64).to_le_bytes())?;
        for payload in &self.payloads {
            out.write_all(&(payload.len() as u64).to_le_bytes())?;
            out.write_all(payload)?;
        }
        out.write_all(&serde_json::to_vec(&self.index)?)
    }

    /// Reads what [`Transcript::write`] wrote; what is wrong with it otherwise.
    pub fn read(input: &mut dyn Read) -> Result<Transcript, String> {
        let cut = |error: io::Error| format!("it is truncated or unreadable ({error})");
        let mut number = || -> io::Result<u64> {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes)?;
            Ok(u64::from_le_bytes(bytes))
        };
        let mut magic = Vec::new();
        for _ in 0..3 {
            magic.extend(number().map_err(cut)?.to_le_bytes());
        }
        if magic != MAGIC {
            return Err("it is not a transcript of this version".into());
        }
        let count = number().map_err(cut)?;
        let mut payloads = Vec::new();
        for _ in 0..count {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes).map_err(cut)?;
            let length = u64::from_le_bytes(bytes);
            let mut payload = Vec::new();
            // No more is allocated than there is.
            input.take(length).read_to_end(&mut payload).map_err(cut)?;
            if payload.len() as u64 != length {
                return Err("it is truncated".into());
            }
            payloads.push(payload);
        }
        let index: Index =
            serde_json::from_reader(input).map_err(|error| format!("its index is damaged ({error})"))?;
        let places = index.sums.values().flatten().flat_map(|sum| {
            let maps = [&sum.shares, &sum.uploads, &sum.replies];
            maps.into_iter().flat_map(BTreeMap::values).chain(&sum.opened)
        });
        if places.chain(index.said.iter().map(|said| &said.bytes)).any(|&place| place >= payloads.len()) {
            return Err("its index refers to missing messages".into());
        }
        Ok(Transcript { payloads, index })
    }

    fn keep(&mut self, bytes: Vec<u8>) -> usize {
        self.payloads.push(bytes);
        self.payloads.len() - 1
    }

    fn pass(&mut self, message: &Passed<'_>) {
        let &Passed { from, to, seconds, bytes } = message;
        let kind = Message::kind_of(bytes);
        let is_answer = matches!(kind, "answer" | "opening");
        // Words that are passed on are stored with their upload.
        if kind == "passed on" {
            return;
        }
        let place = match (bytes.last(), round_of(bytes)) {
            (Some(&cohort), Some(round)) if kind == "upload" || is_answer => {
                let sums = self.index.sums.entry(cohort).or_default();
                // Parties receive the same answer, or that with all uploads, each of which is stored once.
                let mut known = sum_at(sums, round as usize).replies.values().copied();
                let known = known.find(|&known| is_answer && self.payloads[known] == bytes);
                let place = known.unwrap_or_else(|| self.keep(bytes.to_vec()));
                let sum = sum_at(self.index.sums.entry(cohort).or_default(), round as usize);
                if kind == "upload" {
                    sum.uploads.insert(from, place);
                } else {
                    sum.replies.insert(to, place);
                }
                place
            }
            _ => self.keep(bytes.to_vec()),
        };
        self.index.said.push(Said { from, to, seconds, bytes: place });
    }
}

/// The sum of a round, created if necessary.
fn sum_at(sums: &mut Vec<RecordedSum>, round: usize) -> &mut RecordedSum {
    if sums.len() <= round {
        sums.resize_with(round + 1, RecordedSum::default);
    }
    &mut sums[round]
}

/// Records a transcript.
#[derive(Default)]
pub struct Recording(Mutex<RecordingState>);

#[derive(Default)]
struct RecordingState {
    transcript: Transcript,
    /// Sums that each party took part in, and that the coordinator opened (as party 0), by cohort.
    rounds: BTreeMap<(u16, u8), usize>,
}

impl Recording {
    /// Returns the recorded transcript.
    pub fn finish(self) -> Transcript {
        let mut transcript = self.0.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).transcript;
        transcript.forget_echoes();
        transcript
    }

    fn change(&self, change: impl FnOnce(&mut RecordingState)) {
        change(&mut self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }
}

impl Transcript {
    /// Drops answers that equal the opened sum, which is stored once.
    fn forget_echoes(&mut self) {
        let mut sums = std::mem::take(&mut self.index.sums);
        for sum in sums.values_mut().flatten() {
            let reply = sum.replies.values().next().and_then(|&place| self.told(place));
            if let (Some(opened), Some(reply)) = (sum.opened, reply)
                && word_bytes(&reply) == self.payloads[opened]
            {
                self.payloads[opened] = Vec::new();
                sum.opened = None;
            }
        }
        self.index.sums = sums;
    }
}

impl RecordingState {
    /// The number of the next sum of an end.
    fn next(&mut self, end: u16, cohort: u8) -> usize {
        let next = self.rounds.entry((end, cohort)).or_default();
        *next += 1;
        *next - 1
    }
}

impl Recorder for Recording {
    fn passed(&self, message: &Passed<'_>) {
        self.change(|state| state.transcript.pass(message));
    }

    fn asked(&self, asked: &Asked<'_>) {
        self.change(|state| {
            let round = state.next(asked.party, asked.cohort);
            // Floating-point numbers are in the upload.
            let fixed = !asked.exponents.is_empty() && !asked.voting;
            let share = fixed.then(|| state.transcript.keep(word_bytes(asked.words)));
            let sum = sum_at(state.transcript.index.sums.entry(asked.cohort).or_default(), round);
            if sum.kind.is_none() {
                (sum.size, sum.kind, sum.voting) = (asked.size, Some(asked.kind), asked.voting);
                sum.attempt = asked.attempt;
                sum.shapes = asked.parts.iter().map(Part::shape).collect();
                sum.exponents = if asked.voting { Vec::new() } else { asked.exponents.to_vec() };
            }
            sum.shares.extend(share.map(|share| (asked.party, share)));
        });
    }

    fn opened(&self, cohort: u8, words: &Words) {
        self.change(|state| {
            let round = state.next(0, cohort);
            let place = state.transcript.keep(word_bytes(words));
            sum_at(state.transcript.index.sums.entry(cohort).or_default(), round).opened = Some(place);
        });
    }
}
