//! Messages as bytes. Little endian; a list is its length, then its items.

use super::commitment::{Commitment, Revealed, survivors};
use super::keys::SIGNATURE_BYTES;
use super::opening::Opening;
use super::{OrderTip, PartyShares, SumId, Words};

/// A party's part of a key exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The party that joins.
    pub party: u16,
    /// The sum that it waits for or will send next.
    pub round: u64,
    /// The party's X25519 key in this epoch.
    pub key: [u8; 32],
    /// Signed by its identity.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// A message between a party and the coordinator.
#[derive(Clone, PartialEq, Eq)]
pub enum Message {
    /// Hub to parties: make new keys.
    NewEpoch {
        /// The number of the epoch.
        epoch: u32,
    },
    /// Party to hub: a new key.
    Hello {
        /// The number of the epoch.
        epoch: u32,
        /// The key.
        hello: Hello,
    },
    /// Hub to parties: all keys.
    Roster {
        /// The epoch, and the attempt that comes next.
        place: SumId,
        /// The parties' messages, by party.
        hellos: Vec<Hello>,
    },
    /// Party to hub: masked words, and shares of the self-mask's seed, sealed for each other party.
    Upload {
        /// Which attempt.
        place: SumId,
        /// The words.
        words: Words,
        /// The commitment to the words; `None` if they are not masked.
        commitment: Option<Box<Commitment>>,
        /// The sealed shares by receiver.
        shares: PartyShares,
    },
    /// Hub to parties: another party's masked words, which each party adds up itself.
    Relay {
        /// The attempt at the sum.
        place: SumId,
        /// The party whose words these are.
        party: u16,
        /// The words.
        words: Words,
    },
    /// Hub to a party: the commitments of the parties whose words arrived, and their shares for this party.
    Survivors {
        /// Which attempt.
        place: SumId,
        /// The commitments, by party in ascending order.
        commitments: Vec<Commitment>,
        /// The sealed shares by sender.
        shares: PartyShares,
    },
    /// Party to hub: its signature on the list of survivors.
    Echo {
        /// Which attempt.
        place: SumId,
        /// The signature.
        signature: [u8; SIGNATURE_BYTES],
    },
    /// Hub to parties: the signatures of all parties.
    Echoes {
        /// Which attempt.
        place: SumId,
        /// The signatures, by party.
        signatures: Vec<(u16, [u8; SIGNATURE_BYTES])>,
    },
    /// Party to hub: what takes off the masks.
    Unmask {
        /// Which attempt.
        place: SumId,
        /// The secrets that the party reveals.
        revealed: Revealed,
    },
    /// Hub to parties: what opens a sum.
    Opening(Box<Opening>),
    /// Hub to parties: the answer to a sum of unmasked words, which no party can verify.
    Reply {
        /// Which attempt.
        place: SumId,
        /// The parties whose words are in the sum.
        survivors: Vec<u16>,
        /// The sum, or what the server made of it.
        words: Words,
    },
}

/// The kinds of messages, by the byte that they begin with.
const KINDS: [&str; 11] = [
    "new epoch",
    "key",
    "keys",
    "upload",
    "survivors",
    "signature",
    "signatures",
    "shares of masks",
    "answer",
    "opening",
    "passed on",
];

/// Writes bytes.
#[derive(Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn length(&mut self, length: usize) -> &mut Self {
        self.raw(&(length as u32).to_le_bytes())
    }

    fn place(&mut self, place: &SumId) -> &mut Self {
        self.raw(&place.bytes())
    }

    fn parties(&mut self, parties: &[u16]) -> &mut Self {
        self.length(parties.len());
        parties.iter().for_each(|party| self.0.extend_from_slice(&party.to_le_bytes()));
        self
    }

    fn words(&mut self, words: &Words) -> &mut Self {
        self.length(words.narrow.len()).length(words.wide.len());
        self.0.reserve(words.bytes());
        words.narrow.iter().for_each(|word| self.0.extend_from_slice(&word.to_le_bytes()));
        words.wide.iter().for_each(|word| self.0.extend_from_slice(&word.to_le_bytes()));
        self
    }

    pub fn by_party<B: AsRef<[u8]>>(&mut self, items: &[(u16, B)]) -> &mut Self {
        self.length(items.len());
        for (party, bytes) in items {
            self.raw(&party.to_le_bytes()).length(bytes.as_ref().len()).raw(bytes.as_ref());
        }
        self
    }

    fn commitments(&mut self, list: &[Commitment]) -> &mut Self {
        self.length(list.len());
        for commitment in list {
            self.raw(&commitment_body(commitment)).raw(&commitment.signature);
        }
        self
    }

    fn revealed(&mut self, revealed: &Revealed) -> &mut Self {
        self.raw(&revealed.party.to_le_bytes()).by_party(&revealed.shares).by_party(&revealed.seeds);
        self.raw(&revealed.signature)
    }

    fn opening(&mut self, opening: &Opening) -> &mut Self {
        let Opening { place, keys, commitments, signatures, revealed, uploads, order } = opening;
        self.place(place).raw(keys).commitments(commitments).by_party(signatures).length(revealed.len());
        revealed.iter().for_each(|part| {
            self.revealed(part);
        });
        self.length(uploads.len());
        uploads.iter().for_each(|(party, words)| {
            self.raw(&party.to_le_bytes()).words(words);
        });
        self.length(order.iter().len());
        order.iter().for_each(|tip| {
            self.raw(&tip.bytes());
        });
        self
    }

    fn hello(&mut self, hello: &Hello) -> &mut Self {
        self.raw(&hello.party.to_le_bytes()).raw(&hello.round.to_le_bytes());
        self.raw(&hello.key).raw(&hello.signature)
    }
}

/// Reads bytes; `None` if there are too few.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn raw(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.raw(N)?.try_into().ok()
    }

    fn party(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn length(&mut self) -> Option<usize> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn epoch(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn place(&mut self) -> Option<SumId> {
        let epoch = self.epoch()?;
        let round = u64::from_le_bytes(self.array()?);
        Some(SumId { epoch, round, attempt: self.epoch()? })
    }

    /// A list whose items read themselves; each takes at least a byte, so that no length can ask for more than came.
    fn list<I>(&mut self, mut item: impl FnMut(&mut Self) -> Option<I>) -> Option<Vec<I>> {
        let count = self.length()?;
        if count > self.0.len() {
            return None;
        }
        (0..count).map(|_| item(self)).collect()
    }

    fn words(&mut self) -> Option<Words> {
        let (narrow, wide) = (self.length()?, self.length()?);
        let narrow = self.raw(narrow.checked_mul(4)?)?;
        let wide = self.raw(wide.checked_mul(8)?)?;
        Some(Words {
            narrow: narrow.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
            wide: wide.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
        })
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.raw(length)
    }

    fn shares(&mut self) -> Option<PartyShares> {
        self.list(|reader| Some((reader.party()?, reader.bytes()?.to_vec())))
    }

    fn fixed<const N: usize>(&mut self) -> Option<Vec<(u16, [u8; N])>> {
        self.list(|reader| Some((reader.party()?, reader.bytes()?.try_into().ok()?)))
    }

    fn commitment(&mut self) -> Option<Commitment> {
        Some(Commitment {
            party: self.party()?,
            words: self.array()?,
            seed: self.array()?,
            shares: self.fixed()?,
            pairs: self.fixed()?,
            only_with: self.list(Reader::party)?,
            signature: self.array()?,
        })
    }

    fn revealed(&mut self) -> Option<Revealed> {
        let (party, shares, seeds) = (self.party()?, self.shares()?, self.fixed()?);
        Some(Revealed { party, shares, seeds, signature: self.array()? })
    }

    /// Encodes an optional value as a list.
    fn optional<I>(&mut self, item: impl FnMut(&mut Self) -> Option<I>) -> Option<Option<I>> {
        let mut list = self.list(item)?;
        (list.len() < 2).then(|| list.pop())
    }

    fn opening(&mut self) -> Option<Opening> {
        Some(Opening {
            place: self.place()?,
            keys: self.array()?,
            commitments: self.list(Reader::commitment)?,
            signatures: self.fixed()?,
            revealed: self.list(Reader::revealed)?,
            uploads: self.list(|reader| Some((reader.party()?, reader.words()?)))?,
            order: self.optional(|reader| Some(OrderTip::from_bytes(&reader.array()?)))?,
        })
    }

    fn hello(&mut self) -> Option<Hello> {
        let (party, round) = (self.party()?, u64::from_le_bytes(self.array()?));
        Some(Hello { party, round, key: self.array()?, signature: self.array()? })
    }
}

/// The bytes of a commitment that are signed.
pub(super) fn commitment_body(commitment: &Commitment) -> Vec<u8> {
    let Commitment { party, words, seed, shares, pairs, only_with, signature: _ } = commitment;
    let mut writer = Writer::default();
    writer.raw(&party.to_le_bytes()).raw(words).raw(seed).by_party(shares).by_party(pairs).parties(only_with);
    writer.0
}

/// The bytes of words, as they are hashed.
pub fn word_bytes(words: &Words) -> Vec<u8> {
    let mut writer = Writer(Vec::with_capacity(words.bytes() + 8));
    writer.words(words);
    writer.0
}

/// The other way round, with what follows them.
pub fn words_of(bytes: &[u8]) -> Option<(Words, &[u8])> {
    let mut reader = Reader(bytes);
    let words = reader.words()?;
    Some((words, reader.0))
}

/// The sum that a message belongs to, from its bytes alone; `None` if it belongs to none.
pub fn round_of(bytes: &[u8]) -> Option<u64> {
    let mut reader = Reader(bytes);
    match reader.array()? {
        [2..=10] => Some(reader.place()?.round),
        _ => None,
    }
}

/// The bytes of a roster, as they are hashed.
pub fn roster_bytes(hellos: &[Hello]) -> Vec<u8> {
    let mut writer = Writer::default();
    hellos.iter().for_each(|hello| {
        writer.hello(hello);
    });
    writer.0
}

impl std::fmt::Debug for Message {
    /// Prints only the kind, because secrets must not be logged.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.kind())
    }
}

impl Message {
    /// The name of the message's kind in summaries.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::NewEpoch { .. } => KINDS[0],
            Message::Hello { .. } => KINDS[1],
            Message::Roster { .. } => KINDS[2],
            Message::Upload { .. } => KINDS[3],
            Message::Survivors { .. } => KINDS[4],
            Message::Echo { .. } => KINDS[5],
            Message::Echoes { .. } => KINDS[6],
            Message::Unmask { .. } => KINDS[7],
            Message::Reply { .. } => KINDS[8],
            Message::Opening(_) => KINDS[9],
            Message::Relay { .. } => KINDS[10],
        }
    }

    /// The parties whose words are in the answered sum, if the message is an answer.
    pub fn parties(&self) -> Option<Vec<u16>> {
        match self {
            Message::Reply { survivors, .. } => Some(survivors.clone()),
            Message::Opening(opening) => Some(survivors(&opening.commitments)),
            _ => None,
        }
    }

    /// The epoch of the sum that it answers, if it answers one.
    pub fn epoch(&self) -> Option<u32> {
        match self {
            Message::Reply { place, .. } => Some(place.epoch),
            Message::Opening(opening) => Some(opening.place.epoch),
            _ => None,
        }
    }

    /// The kind of a message, from its bytes alone.
    pub fn kind_of(bytes: &[u8]) -> &'static str {
        bytes.first().and_then(|&number| KINDS.get(usize::from(number)).copied()).unwrap_or("leave")
    }

    /// Encodes the message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Message::NewEpoch { epoch } => writer.raw(&[0]).raw(&epoch.to_le_bytes()),
            Message::Hello { epoch, hello } => writer.raw(&[1]).raw(&epoch.to_le_bytes()).hello(hello),
            Message::Roster { place, hellos } => {
                writer.raw(&[2]).place(place).length(hellos.len()).raw(&roster_bytes(hellos))
            }
            Message::Upload { place, words, commitment, shares } => {
                writer.0.reserve(words.bytes() + 256 * shares.len() + 512);
                let commitment = commitment.as_deref().map(std::slice::from_ref).unwrap_or_default();
                writer.raw(&[3]).place(place).words(words).commitments(commitment).by_party(shares)
            }
            Message::Survivors { place, commitments, shares } => {
                writer.raw(&[4]).place(place).commitments(commitments).by_party(shares)
            }
            Message::Echo { place, signature } => writer.raw(&[5]).place(place).raw(signature),
            Message::Echoes { place, signatures } => writer.raw(&[6]).place(place).by_party(signatures),
            Message::Unmask { place, revealed } => writer.raw(&[7]).place(place).revealed(revealed),
            Message::Reply { place, survivors, words } => {
                writer.0.reserve(words.bytes() + 64);
                writer.raw(&[8]).place(place).parties(survivors).words(words)
            }
            Message::Opening(opening) => writer.raw(&[9]).opening(opening),
            Message::Relay { place, party, words } => {
                writer.0.reserve(words.bytes() + 64);
                writer.raw(&[10]).place(place).raw(&party.to_le_bytes()).words(words)
            }
        };
        writer.0
    }

    /// Decodes a message; `None` if it is malformed or has trailing bytes.
    pub fn decode(bytes: &[u8]) -> Option<Message> {
        let mut reader = Reader(bytes);
        let message = match reader.array()? {
            [0] => Message::NewEpoch { epoch: reader.epoch()? },
            [1] => Message::Hello { epoch: reader.epoch()?, hello: reader.hello()? },
            [2] => Message::Roster { place: reader.place()?, hellos: reader.list(Reader::hello)? },
            [3] => Message::Upload {
                place: reader.place()?,
                words: reader.words()?,
                commitment: reader.optional(Reader::commitment)?.map(Box::new),
                shares: reader.shares()?,
            },
            [4] => Message::Survivors {
                place: reader.place()?,
                commitments: reader.list(Reader::commitment)?,
                shares: reader.shares()?,
            },
            [5] => Message::Echo { place: reader.place()?, signature: reader.array()? },
            [6] => Message::Echoes { place: reader.place()?, signatures: reader.fixed()? },
            [7] => Message::Unmask { place: reader.place()?, revealed: reader.revealed()? },
            [8] => Message::Reply {
                place: reader.place()?,
                survivors: reader.list(Reader::party)?,
                words: reader.words()?,
            },
            [9] => Message::Opening(Box::new(reader.opening()?)),
            [10] => Message::Relay { place: reader.place()?, party: reader.party()?, words: reader.words()? },
            _ => return None,
        };
        reader.0.is_empty().then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples() -> Vec<Message> {
        let place = SumId { epoch: 1, round: 2, attempt: 3 };
        let hello = Hello { party: 4, round: 5, key: [6; 32], signature: [7; 64] };
        let shares = vec![(1, vec![1, 2, 3]), (2, Vec::new())];
        let words = Words { narrow: vec![1, u32::MAX], wide: vec![u64::MAX, 0, 5] };
        let digests = vec![(1, [1; 32]), (2, [2; 32])];
        let commitment = Commitment {
            party: 1,
            words: [3; 32],
            seed: [4; 32],
            shares: digests.clone(),
            pairs: digests[1..].to_vec(),
            only_with: vec![1, 2],
            signature: [5; 64],
        };
        let revealed = Revealed { party: 1, shares: shares.clone(), seeds: digests, signature: [6; 64] };
        let signatures = vec![(1, [1; 64]), (2, [2; 64])];
        let opening = |uploads, order| {
            Message::Opening(Box::new(Opening {
                place,
                keys: [9; 32],
                commitments: vec![commitment.clone()],
                signatures: signatures.clone(),
                revealed: vec![revealed.clone()],
                uploads,
                order,
            }))
        };
        let upload =
            |commitment| Message::Upload { place, words: words.clone(), commitment, shares: shares.clone() };
        vec![
            Message::NewEpoch { epoch: 9 },
            Message::Hello { epoch: 1, hello: hello.clone() },
            Message::Roster { place, hellos: vec![hello.clone(), hello] },
            upload(None),
            upload(Some(Box::new(commitment.clone()))),
            Message::Relay { place, party: 3, words: words.clone() },
            Message::Survivors { place, commitments: vec![commitment.clone()], shares: shares.clone() },
            Message::Echo { place, signature: [8; 64] },
            Message::Echoes { place, signatures: signatures.clone() },
            Message::Unmask { place, revealed: revealed.clone() },
            opening(Vec::new(), None),
            opening(vec![(1, words.clone())], Some(OrderTip { count: 3, head: [2; 32] })),
            Message::Reply { place, survivors: vec![2], words: words.clone() },
        ]
    }

    #[test]
    fn messages_come_back_and_cut_or_longer_ones_do_not() {
        for message in samples() {
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes).as_ref(), Some(&message));
            assert_eq!(Message::kind_of(&bytes), message.kind());
            for cut in 0..bytes.len() {
                assert_eq!(Message::decode(&bytes[..cut]), None, "{message:?} cut at {cut}");
            }
            assert_eq!(Message::decode(&[&bytes[..], &[0]].concat()), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(message) = Message::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
        }

        #[test]
        fn damaged_messages_do_not_panic(which in 0usize..13, place: prop::sample::Index, byte: u8) {
            let mut bytes = samples()[which].encode();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let _ = Message::decode(&bytes);
        }
    }
}
