//! A party's view of a cohort that it is not in: it opens the sums of the others itself, from what they have signed.

use super::commitment::{Blame, check_list, survivors};
use super::keys::Context;
use super::opening::{NotOpened, Opening, check_signatures, check_uploads, open};
use super::transcript::TranscriptHash;
use super::{Cohort, Words};

/// What a party knows of a cohort that it is not in.
pub struct Observer {
    cohort: Cohort,
    transcript: TranscriptHash,
    round: u64,
}

/// A sum of another cohort.
pub struct ObservedSum {
    /// The digest of the list that fixed it.
    pub list: [u8; 32],
    /// Whose words are in it.
    pub parties: Vec<u16>,
    /// The sum.
    pub words: Words,
}

impl Observer {
    /// Of a cohort that has not summed anything yet.
    pub fn new(cohort: Cohort) -> Self {
        Observer { transcript: TranscriptHash::new(&cohort), cohort, round: 0 }
    }

    /// The cohort.
    pub fn cohort(&self) -> &Cohort {
        &self.cohort
    }

    /// How many sums it has seen.
    pub fn rounds(&self) -> u64 {
        self.round
    }

    /// The hash over all that the cohort was told.
    pub fn answers(&self) -> &[u8; 32] {
        self.transcript.answers()
    }

    /// Takes note of a sum from before a restart, after which the hash over all answers was this.
    pub fn restore_answers(&mut self, answers: [u8; 32]) {
        self.transcript = TranscriptHash::recalled(answers);
        self.round += 1;
    }

    /// Opens the cohort's next sum, with the same checks as its members.
    pub fn open(&mut self, opening: &Opening) -> Result<ObservedSum, Blame> {
        let Opening { place, keys, commitments, signatures, revealed, uploads, order } = opening;
        if place.round != self.round {
            return Err(Blame::new(0, "a sum of another group out of turn"));
        }
        let transcript = self.transcript.with_keys(*keys);
        let context = Context { cohort: &self.cohort, place: *place, transcript: &transcript };
        check_list(context, commitments)?;
        check_signatures(context, commitments, signatures)?;
        let needed = self.cohort.needed(false);
        if commitments.len() < needed {
            let problem = format!("a sum of {} parties, where {needed} must be there", commitments.len());
            return Err(Blame::new(0, problem));
        }
        let upload = |party: u16| uploads.iter().find(|(from, _)| *from == party).map(|(_, words)| words);
        check_uploads(commitments, upload)?;
        let words = open(context, commitments, revealed, upload).map_err(|problem| match problem {
            NotOpened::Blamed(blame) => blame,
            NotOpened::Lacking => Blame::new(0, "a sum of another group without all that opens it"),
        })?;
        let list = context.list_digest(commitments);
        self.transcript = self.transcript.ordered(*place, &list, order.as_ref());
        self.round += 1;
        Ok(ObservedSum { list, parties: survivors(commitments), words })
    }
}
