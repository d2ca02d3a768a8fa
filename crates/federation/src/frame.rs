//! What travels in one gRPC message: a few words of control, or a piece of something long.
//!
//! The first byte is the kind. Control is JSON; messages of the secure methods ([`partwise_secure::aggregation::wire`]) and
//! the result travel in pieces, so that nobody holds more of them than it wants to.

use bytes::Bytes;
use partwise_secure::protocol::Stop;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agreement::{Accord, Agree, Offer, Terms};
use crate::text::Hex;

/// The longest piece.
pub const MAX_PIECE: usize = 64 << 10;

/// The longest control text: the offers of 255 parties.
pub const MAX_CONTROL: usize = 256 << 10;

/// The longest gRPC message.
pub const MAX_FRAME: usize = MAX_CONTROL + 1;

/// What travels in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A message of the secure methods.
    Message,
    /// U, as the bytes of an .npy file.
    Factor,
}

/// A piece of something long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Of what.
    pub payload: Payload,
    /// Whether it is the last one.
    pub last: bool,
    /// The bytes.
    pub bytes: Bytes,
}

/// A gRPC message, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// JSON.
    Control(Bytes),
    /// A piece.
    Piece(Piece),
}

impl Frame {
    /// As bytes.
    pub fn encode(&self) -> Bytes {
        let (kind, bytes) = match self {
            Frame::Control(bytes) => (0, bytes),
            Frame::Piece(Piece { payload: Payload::Message, last, bytes }) => (1 + u8::from(*last), bytes),
            Frame::Piece(Piece { payload: Payload::Factor, last, bytes }) => (3 + u8::from(*last), bytes),
        };
        let mut frame = Vec::with_capacity(bytes.len() + 1);
        frame.push(kind);
        frame.extend_from_slice(bytes);
        frame.into()
    }

    /// From bytes, or what is wrong with them.
    pub fn decode(mut bytes: Bytes) -> Result<Frame, &'static str> {
        let kind = *bytes.first().ok_or("an empty frame")?;
        let bytes = bytes.split_off(1);
        let payload = match kind {
            0 if bytes.len() > MAX_CONTROL => return Err("an oversized control frame"),
            0 => return Ok(Frame::Control(bytes)),
            1 | 2 => Payload::Message,
            3 | 4 => Payload::Factor,
            _ => return Err("a frame of an unknown kind"),
        };
        if bytes.len() > MAX_PIECE {
            return Err("an oversized piece");
        }
        Ok(Frame::Piece(Piece { payload, last: kind % 2 == 0, bytes }))
    }

    /// A control frame.
    pub fn control(text: &impl Serialize) -> Frame {
        Frame::Control(Frame::words(text))
    }

    /// What is in a control frame.
    pub fn words(text: &impl Serialize) -> Bytes {
        // All that is sent are structures with text keys, which always can be written.
        serde_json::to_vec(text).unwrap_or_default().into()
    }

    /// Something long, in pieces.
    pub fn pieces(payload: Payload, bytes: Bytes) -> impl Iterator<Item = Frame> {
        let count = bytes.len().div_ceil(MAX_PIECE).max(1);
        (0..count).map(move |piece| {
            let range = piece * MAX_PIECE..bytes.len().min((piece + 1) * MAX_PIECE);
            Frame::Piece(Piece { payload, last: piece + 1 == count, bytes: bytes.slice(range) })
        })
    }
}

/// The words of a control frame.
pub fn read_control<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, &'static str> {
    serde_json::from_slice(bytes).map_err(|_| "a malformed control message")
}

/// Puts pieces together, up to a limit.
#[derive(Default)]
pub struct Assembly {
    bytes: Vec<u8>,
    begun: Option<Payload>,
}

impl Assembly {
    /// Whether something is begun.
    pub fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Takes a piece; returns the whole when it was the last. After an error it is empty.
    pub fn take(&mut self, piece: Piece, limit: usize) -> Result<Option<Vec<u8>>, &'static str> {
        let mixed = self.begun.is_some_and(|begun| begun != piece.payload);
        if mixed || self.bytes.len() + piece.bytes.len() > limit {
            *self = Assembly::default();
            return Err(if mixed { "pieces of two things at once" } else { "something oversized" });
        }
        self.begun = Some(piece.payload);
        self.bytes.extend_from_slice(&piece.bytes);
        Ok(piece.last.then(|| std::mem::take(self).bytes))
    }
}

/// What a party says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FromParty {
    /// First of all.
    Enter {
        /// The federation that it means.
        federation: String,
        /// What it calls itself. What counts is its certificate, where there is one.
        name: String,
        /// Of its program.
        version: String,
        /// Whether it only looks whether all is well.
        check: bool,
        /// The run that it has begun before.
        run: Option<Hex<32>>,
    },
    /// Its part of the agreement's beginning.
    Offer {
        /// Which attempt.
        attempt: u32,
        /// The offer.
        offer: Offer,
    },
    /// What it understood, signed.
    Agree {
        /// Which attempt.
        attempt: u32,
        /// Its words.
        agree: Agree,
    },
    /// It agrees with all others.
    Ready {
        /// Which attempt.
        attempt: u32,
    },
    /// ‖M‖² of all, which was opened.
    Norm {
        /// It.
        norm: f64,
    },
    /// The squared error of all after a round, which was opened.
    Error {
        /// The round.
        round: usize,
        /// Over all parties.
        squared_error: f64,
    },
    /// Somebody was missing in sums, and the run is done once more.
    Retry,
    /// It has its result.
    Finished {
        /// The SHA-256 of its U, as an .npy file.
        factor: Hex<32>,
        /// Over all parties.
        relative_error: f64,
        /// Rounds done.
        rounds: usize,
        /// If the run was done once more, the error of the first time and of the second.
        attempts: Vec<f64>,
        /// Why it ended.
        stopped_by: Stop,
        /// Parties in the last sum.
        parties: usize,
    },
    /// It cannot go on.
    Stopping {
        /// Why, in one of a few words.
        reason: Reason,
    },
}

/// Why a party stops: no details, which may not be for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// What is proposed is not what it allows.
    Policy,
    /// The parties do not agree.
    Disagreement,
    /// Its state is that of another run, or it has none of a run that is under way.
    State,
    /// The parties have too few records together.
    FewRecords,
    /// Something else.
    Trouble,
}

/// What the coordinator says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ToParty {
    /// First of all.
    Welcome {
        /// What is proposed.
        terms: Box<Terms>,
        /// The coordinator's clock, in seconds since 1970.
        time: f64,
        /// The run that is under way.
        run: Option<Hex<32>>,
    },
    /// All are there: make an offer.
    Propose {
        /// Which attempt.
        attempt: u32,
    },
    /// All offers.
    Offers {
        /// Which attempt.
        attempt: u32,
        /// In the order of the roster.
        offers: Vec<Offer>,
    },
    /// What all understood.
    Accords {
        /// Which attempt.
        attempt: u32,
        /// In the order of the roster, as far as this party may read it.
        accords: Vec<Accord>,
    },
    /// The methods begin, or go on.
    Begin,
    /// For whom all wait.
    Waiting {
        /// Their names.
        parties: Vec<String>,
    },
    /// Send U.
    GiveFactor,
    /// All is done, or refused by all.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_things_come_back_from_their_pieces() {
        for length in [0, 1, MAX_PIECE - 1, MAX_PIECE, MAX_PIECE + 1, 3 * MAX_PIECE, 3 * MAX_PIECE + 7] {
            let whole: Bytes = (0..length).map(|place| place as u8).collect::<Vec<u8>>().into();
            let mut assembly = Assembly::default();
            let mut back = None;
            for frame in Frame::pieces(Payload::Message, whole.clone()) {
                assert!(back.is_none());
                let Ok(Frame::Piece(piece)) = Frame::decode(frame.encode()) else { panic!() };
                back = assembly.take(piece, length).unwrap();
            }
            assert_eq!(back.unwrap(), whole);
            assert!(!assembly.is_begun());
        }
    }

    #[test]
    fn too_much_and_mixed_pieces_are_refused() {
        let mut assembly = Assembly::default();
        let piece = |payload, last, length| Piece { payload, last, bytes: Bytes::from(vec![0; length]) };
        assert_eq!(assembly.take(piece(Payload::Message, false, 10), 15), Ok(None));
        assert!(assembly.take(piece(Payload::Message, false, 10), 15).is_err());
        assert!(!assembly.is_begun());
        assert_eq!(assembly.take(piece(Payload::Message, false, 10), 15), Ok(None));
        assert!(assembly.take(piece(Payload::Factor, true, 1), 15).is_err());
        assert!(Frame::decode(Bytes::from(vec![1; MAX_PIECE + 2])).is_err());
        assert!(Frame::decode(Bytes::new()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(frame) = Frame::decode(bytes.clone().into()) {
                prop_assert_eq!(frame.encode(), bytes.clone());
                if let Frame::Control(words) = frame {
                    let _ = read_control::<FromParty>(&words);
                    let _ = read_control::<ToParty>(&words);
                }
            }
        }
    }
}
