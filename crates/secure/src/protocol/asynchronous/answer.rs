//! The server's answer: its U, whether this is the end, and the mean diagonal over all parties. Without masks it is what
//! the coordinator says, with U in the place of the matrix and the rest after the group's sums.

use partwise::Real;

use super::Local;
use crate::aggregation::Words;
use crate::error::Result;
use crate::session::Session;

/// The positions of the end flag and the mean diagonal in the wide words of an answer: after the two scalars.
const STOP: usize = 2;
const DIAGONAL: usize = 3;

/// An answer of the server.
pub(super) struct ServerAnswer {
    pub u: Vec<f32>,
    pub stop: bool,
    pub diagonal: f64,
}

impl ServerAnswer {
    pub fn read(words: &Words) -> Self {
        let u = words.narrow.iter().map(|&word| f32::from_bits(word)).collect();
        let word = |place: usize| words.wide.get(place).copied().unwrap_or(0);
        ServerAnswer { u, stop: word(STOP) == 1, diagonal: f64::from_bits(word(DIAGONAL)) }
    }

    /// Puts it into the sum that it answers.
    pub fn write(&self, sum: &mut Words) {
        sum.narrow = words_of(&self.u);
        sum.wide.insert(STOP, self.stop.into());
        sum.wide.insert(DIAGONAL, self.diagonal.to_bits());
    }

    /// The party takes the server's U.
    pub fn give<T: Real>(&self, local: &mut Local<T>, session: &Session<'_>) -> Result<()> {
        if self.u.len() != local.u.len() {
            return Err(session.dishonest("a U of another size"));
        }
        local.u = self.u.iter().map(|&value| T::from_f64(value.into())).collect();
        Ok(())
    }
}

/// U in the place of the matrix.
pub(super) fn words_of(u: &[f32]) -> Vec<u32> {
    u.iter().map(|value| value.to_bits()).collect()
}
