//! What an audit starts from: the run, its data, and how much is computed.

use partwise::Real;
use partwise::cancel::Cancel;
use partwise::matrix::Matrix;
use partwise::threads::Threads;
use serde::{Deserialize, Serialize};

use super::adversary::{Adversary, View};
use super::candidates::Candidates;
use super::transcript::Transcript;
use crate::Plan;
use crate::error::Result;
use crate::protocol::Settings;
use crate::split;
use crate::sum::SumKind;

/// The data of a run that an audit needs.
pub struct Evidence<'a, T> {
    /// The recorded messages.
    pub transcript: &'a Transcript,
    /// The settings on which the parties agreed.
    pub settings: &'a Settings,
    /// All records, one per row, including held-out ones.
    pub matrix: &'a Matrix<T>,
    /// The records of each party.
    pub dealt: &'a [Vec<usize>],
    /// Held-out records, by the party of their kind.
    pub held_out: &'a [Vec<usize>],
    /// The number of the person of each record, if people have several records; otherwise each record is a
    /// person.
    pub people: Option<&'a [usize]>,
    /// How to repeat the run for attacks that need other runs: those that leave people out, and adversaries
    /// that deviate. Without it these are skipped.
    pub plan: Option<&'a Plan>,
    /// The final U, features x k, by row.
    pub u: &'a [T],
}

/// How much an audit computes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Sums that are looked at, evenly spread over the run; and as many of sketched features.
    pub sums: usize,
    /// Members that are scored, evenly spread over parties and their records; and as many others.
    pub records: usize,
    /// Dimensions of the span at most.
    pub directions: usize,
    /// The maximum number of records sought by linear recovery.
    pub unknowns: usize,
    /// The number of parties whose records are sought by linear recovery.
    pub recovered: usize,
    /// The number of people that are left out, each in a separate run.
    pub reruns: usize,
    /// The maximum number of records that each adversary reconstructs from rare features.
    pub reconstructed: usize,
    /// The maximum number of features for which reconstruction is tried.
    pub reconstructed_features: usize,
    /// Multiplications of one of these: it decides for how many features they are sought.
    pub multiplications: f64,
    /// Threads.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sums: 200,
            records: 2000,
            directions: 1000,
            unknowns: 800,
            recovered: 3,
            reruns: 3,
            reconstructed: 40,
            reconstructed_features: 2000,
            multiplications: 2e9,
            threads: 1,
        }
    }
}

impl Limits {
    /// The number of reconstructions per adversary. Their cost grows with the cube of the number of features.
    pub(super) fn reconstructions(&self, features: usize) -> usize {
        let affordable = 3.0 * self.multiplications / (features as f64).powi(3);
        self.reconstructed.min((affordable as usize).max(1))
    }

    /// At most `most` of the numbers `0..count`, evenly spaced, including the first and the last.
    pub(super) fn pick(&self, count: usize, most: usize) -> Vec<usize> {
        match most {
            _ if count <= most => (0..count).collect(),
            0 => Vec::new(),
            1 => vec![count - 1],
            _ => (0..most).map(|place| place * (count - 1) / (most - 1)).collect(),
        }
    }

    /// At most `sums` places of sums with sketched features, or of the others; otherwise the many sums that an attack
    /// cannot use would crowd out those that it can.
    pub(super) fn places(&self, view: &View<'_>, sketched: bool) -> Vec<usize> {
        let of: Vec<usize> =
            (0..view.len()).filter(|&place| (view.kind(place) == SumKind::SketchedU) == sketched).collect();
        self.pick(of.len(), self.sums).into_iter().map(|place| of[place]).collect()
    }
}

/// A party, and the records that are asked about.
pub(super) struct Target {
    pub(super) party: u16,
    /// The people among the members, with their rows of the matrix.
    pub(super) members: Vec<Vec<usize>>,
    pub(super) candidates: Candidates,
}

/// The input of the attacks.
pub struct Case<'a, T> {
    pub(super) transcript: &'a Transcript,
    pub(super) settings: &'a Settings,
    pub(super) matrix: &'a Matrix<T>,
    pub(super) dealt: &'a [Vec<usize>],
    pub(super) features: usize,
    pub(super) targets: Vec<Target>,
    pub(super) u: Vec<f64>,
    pub(super) threads: Threads,
    pub(super) limits: Limits,
}

impl<'a, T: Real> Case<'a, T> {
    pub(super) fn new(evidence: &Evidence<'a, T>, limits: &Limits, cancel: &Cancel) -> Result<Self> {
        let &Evidence { transcript, settings, matrix, dealt, held_out, people, u, .. } = evidence;
        let (features, parties) = (matrix.cols(), dealt.len());
        // Sketched features need records as dense columns.
        let dense = if settings.protocol.sketches_features() { 10_000_000 / features } else { usize::MAX };
        let most = limits.records.min(dense);
        let each = most.div_ceil(parties);
        let by_person = |parties: &[Vec<usize>]| -> Vec<Vec<Vec<usize>>> {
            parties.iter().map(|records| split::by_person(records, people)).collect()
        };
        let (own, others) = (by_person(dealt), by_person(held_out));
        // Of each party as large a share of the others as of its members, or the parties' differences would be told.
        let share = |own: &Vec<Vec<usize>>| each.min(own.len()) as f64 / own.len().max(1) as f64;
        let largest = own.iter().map(share).fold(f64::MIN_POSITIVE, f64::max);
        let wanted: Vec<f64> =
            own.iter().zip(&others).map(|(own, others)| others.len() as f64 * share(own) / largest).collect();
        let affordable = (most as f64 / wanted.iter().sum::<f64>().max(1.0)).min(1.0);
        let some = |people: &[Vec<usize>], most: usize| -> Vec<Vec<usize>> {
            limits.pick(people.len(), most).into_iter().map(|place| people[place].clone()).collect()
        };
        let target = |(party, own): (u16, &Vec<Vec<usize>>)| {
            let place = usize::from(party) - 1;
            let others = others.get(place).map_or(&[][..], |others| others);
            let wanted = wanted.get(place).map_or(0.0, |wanted| wanted * affordable);
            let (members, others) = (some(own, each), some(others, wanted.round() as usize));
            let mut candidates = Candidates::new(matrix, &members, &others);
            if settings.protocol.sketches_features() {
                candidates.turn();
            }
            Target { party, members, candidates }
        };
        Ok(Case {
            targets: (1..).zip(&own).map(target).collect(),
            u: u.iter().map(|value| value.to_f64()).collect(),
            threads: Threads::new(limits.threads)?.with_cancel(cancel),
            limits: *limits,
            transcript,
            settings,
            matrix,
            dealt,
            features,
        })
    }

    pub(super) fn view(&self, adversary: Adversary, party: u16) -> View<'a> {
        View::new(self.transcript, self.settings, adversary, party)
    }

    /// Whether all sums are over all parties.
    pub(super) fn one_cohort(&self) -> bool {
        self.transcript.sums().len() == 1
    }
}
