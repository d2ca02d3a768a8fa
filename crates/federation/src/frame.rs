//! The content of gRPC messages: control messages, or pieces of something long.
//!
//! The first byte is the kind. Control messages are JSON. Messages of the secure protocols
//! ([`partwise_secure::aggregation::wire`]) and the result travel in pieces, so that each end can limit how much of
//! them it holds.

use bytes::Bytes;
use partwise_secure::protocol::Stop;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agreement::{Accord, Agree, Offer, Terms};
use crate::text::Hex;

/// The maximum size of a piece.
pub const MAX_PIECE: usize = 64 << 10;

/// The maximum size of a control message: the offers of 255 parties.
pub const MAX_CONTROL: usize = 256 << 10;

/// The maximum size of a gRPC message.
pub const MAX_FRAME: usize = MAX_CONTROL + 1;

/// The kinds of long messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A message of the secure protocols.
    Message,
    /// U, as the bytes of an .npy file.
    Factor,
}

/// A piece of a long message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The kind of the message.
    pub payload: Payload,
    /// Whether it is the last one.
    pub last: bool,
    /// The bytes.
    pub bytes: Bytes,
}

/// A decoded gRPC message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// JSON.
    Control(Bytes),
    /// A piece.
    Piece(Piece),
}

impl Frame {
    /// Encodes the message as bytes.
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

    /// Decodes a message; the error describes what is wrong with it.
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

    /// Encodes a control message.
    pub fn control(text: &impl Serialize) -> Frame {
        Frame::Control(Frame::words(text))
    }

    /// Decodes a control message.
    pub fn words(text: &impl Serialize) -> Bytes {
        // All messages are structures with text keys, which can always be serialized.
        serde_json::to_vec(text).unwrap_or_default().into()
    }

    /// Splits a long message into pieces.
    pub fn pieces(payload: Payload, bytes: Bytes) -> impl Iterator<Item = Frame> {
        let count = bytes.len().div_ceil(MAX_PIECE).max(1);
        (0..count).map(move |piece| {
            let range = piece * MAX_PIECE..bytes.len().min((piece + 1) * MAX_PIECE);
            Frame::Piece(Piece { payload, last: piece + 1 == count, bytes: bytes.slice(range) })
        })
    }
}

/// The bytes of a control message as JSON.
pub fn read_control<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, &'static str> {
    serde_json::from_slice(bytes).map_err(|_| "a malformed control message")
}

/// Assembles pieces, up to a limit.
#[derive(Default)]
pub struct Assembly {
    bytes: Vec<u8>,
    begun: Option<Payload>,
}

impl Assembly {
    /// Whether a message is incomplete.
    pub fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Adds a piece; returns the whole message after the last one. After an error it is empty.
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

/// The control messages of a party.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FromParty {
    /// The first message.
    Enter {
        /// The federation that it means.
        federation: String,
        /// The party's name; its certificate takes precedence, if there is one.
        name: String,
        /// The version of its program.
        version: String,
        /// Whether it only checks the connection.
        check: bool,
        /// The run that it has started before.
        run: Option<Hex<32>>,
    },
    /// The party's offer for the agreement.
    Offer {
        /// Which attempt.
        attempt: u32,
        /// The offer.
        offer: Box<Offer>,
    },
    /// The party's signed view of the agreement.
    Agree {
        /// Which attempt.
        attempt: u32,
        /// The view.
        agree: Box<Agree>,
    },
    /// The party agrees with all others.
    Ready {
        /// Which attempt.
        attempt: u32,
    },
    /// ‖M‖² of all parties, which was opened.
    Norm {
        /// ‖M‖² of all parties.
        norm: f64,
    },
    /// The squared error of all parties after a round, which was opened.
    Error {
        /// The round.
        round: usize,
        /// The squared error over all parties.
        squared_error: f64,
    },
    /// A party was missing from sums, and the run is repeated.
    Retry,
    /// The party has its result.
    Finished {
        /// The SHA-256 of its U, as an .npy file.
        factor: Hex<32>,
        /// The relative error over all parties.
        relative_error: f64,
        /// Number of rounds.
        rounds: usize,
        /// The errors of both attempts, if the run was repeated.
        attempts: Vec<f64>,
        /// Why it ended.
        stopped_by: Stop,
        /// Number of parties in the last sum.
        parties: usize,
    },
    /// The party cannot continue.
    Stopping {
        /// The reason, from a fixed list.
        reason: Reason,
    },
}

/// Why a party stops, without details, which may be confidential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The proposed settings violate its policy.
    Policy,
    /// The parties disagree.
    Disagreement,
    /// Its state belongs to another run, or it has no state of a run in progress.
    State,
    /// The parties have too few records in total.
    FewRecords,
    /// Something else.
    Trouble,
}

/// The control messages of the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ToParty {
    /// The first message.
    Welcome {
        /// The proposed terms.
        terms: Box<Terms>,
        /// The coordinator's clock, in seconds since 1970.
        time: f64,
        /// The run in progress.
        run: Option<Hex<32>>,
    },
    /// All parties are connected: make an offer.
    Propose {
        /// Which attempt.
        attempt: u32,
    },
    /// The offers of all parties.
    Offers {
        /// Which attempt.
        attempt: u32,
        /// The offers, in the order of the roster.
        offers: Vec<Offer>,
    },
    /// The views of all parties.
    Accords {
        /// Which attempt.
        attempt: u32,
        /// In the order of the roster, as far as this party may read them.
        accords: Vec<Accord>,
    },
    /// The protocol starts or resumes.
    Begin,
    /// The parties that all wait for.
    Waiting {
        /// The names of these parties.
        parties: Vec<String>,
    },
    /// Send U.
    GiveFactor,
    /// The run is finished, or all refused it.
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
