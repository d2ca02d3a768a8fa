//! The adversaries, and what each of them sees: what it received, and its own contributions.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::transcript::{RecordedSum, Transcript};
use crate::aggregation::Words;
use crate::fixed;
use crate::protocol::Settings;
use crate::sum::SumKind;

/// An adversary, by its position relative to the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adversary {
    /// Anyone with the result, U.
    Everybody,
    /// The coordinator by itself.
    Coordinator,
    /// Another party by itself.
    Party,
    /// This number of other parties, colluding with each other and the coordinator.
    Colluding(usize),
    /// All other parties, colluding with the coordinator.
    AllOthers,
}

impl fmt::Display for Adversary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Adversary::Everybody => out.write_str("everybody"),
            Adversary::Coordinator => out.write_str("the coordinator"),
            Adversary::Party => out.write_str("a curious party"),
            Adversary::Colluding(1) => out.write_str("a party and the coordinator"),
            Adversary::Colluding(parties) => write!(out, "{parties} parties and the coordinator"),
            Adversary::AllOthers => out.write_str("all others together"),
        }
    }
}

impl Adversary {
    /// The adversaries of a run, from the one that sees least to the one that sees most.
    pub fn of(parties: usize, colluders: usize) -> Vec<Adversary> {
        let mut adversaries = vec![Adversary::Coordinator, Adversary::Party];
        if (1..parties - 1).contains(&colluders) {
            adversaries.push(Adversary::Colluding(colluders));
        }
        adversaries.push(Adversary::AllOthers);
        adversaries
    }

    /// Whether the coordinator sits there.
    pub fn has_coordinator(self) -> bool {
        !matches!(self, Adversary::Everybody | Adversary::Party)
    }

    /// Whether the run was designed to be secure against this adversary: all except more colluders than assumed.
    pub fn is_assumed(self) -> bool {
        self != Adversary::AllOthers
    }

    /// The parties of a cohort that attack one of its members: those that follow it, cyclically.
    fn attackers(self, victim: u16, members: &[u16]) -> Vec<u16> {
        let others = members.len() - 1;
        let count = match self {
            Adversary::Everybody | Adversary::Coordinator => 0,
            Adversary::Party => 1,
            Adversary::Colluding(parties) => parties,
            Adversary::AllOthers => others,
        };
        let place = members.iter().position(|&member| member == victim).unwrap_or(0);
        (1..=count.min(others)).map(|step| members[(place + step) % members.len()]).collect()
    }
}

/// A matrix that was seen, by row.
pub struct SeenMatrix {
    /// The kind of matrix: U, M V, M S, or S U.
    pub kind: SumKind,
    /// Which of these, from 0.
    pub iteration: usize,
    /// How many columns it has.
    pub columns: usize,
    /// The entries of the matrix.
    pub values: Vec<f64>,
}

/// A sum in which features or sketches of them can be seen.
struct TellingSum<'a> {
    kind: SumKind,
    /// The index of the sum among those of its kind and attempt.
    iteration: usize,
    sum: &'a RecordedSum,
}

/// A cohort whose sums are informative, and its members.
struct TellingCohort<'a> {
    sums: &'a [RecordedSum],
    members: Vec<u16>,
}

/// An adversary, and the party that is looked at.
pub struct View<'a> {
    transcript: &'a Transcript,
    settings: &'a Settings,
    adversary: Adversary,
    victim: u16,
    attackers: Vec<u16>,
    /// The informative sums of the victim's cohort.
    sums: Vec<TellingSum<'a>>,
}

impl<'a> View<'a> {
    /// The view that the adversary has of `victim`.
    pub fn new(
        transcript: &'a Transcript,
        settings: &'a Settings,
        adversary: Adversary,
        victim: u16,
    ) -> Self {
        let cohorts: Vec<TellingCohort<'a>> =
            transcript.sums().values().filter_map(|sums| TellingCohort::of(sums)).collect();
        let of = |party: u16| cohorts.iter().position(|cohort| cohort.members.contains(&party)).unwrap_or(0);
        let mut place = of(victim);
        let mut attackers =
            cohorts.get(place).map_or_else(Vec::new, |cohort| adversary.attackers(victim, &cohort.members));
        // Without masks a client of the asynchronous protocols is alone in its cohort, and others see the answers.
        if adversary == Adversary::Party && attackers.is_empty() && cohorts.len() > 1 {
            place = (place + 1) % cohorts.len();
            attackers = cohorts[place].members[..1].to_vec();
        }
        let sums = cohorts.get(place).map_or_else(Vec::new, |cohort| cohort.telling_sums(transcript));
        View { transcript, settings, adversary, victim, attackers, sums }
    }

    /// The parties that collude with the coordinator.
    pub fn attackers(&self) -> &[u16] {
        &self.attackers
    }

    /// How many sums there are.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Whether a party has contributed to the sum at this place.
    pub fn has(&self, place: usize, party: u16) -> bool {
        self.sums[place].sum.parties().any(|present| present == party)
    }

    /// The kind of the sum at this place.
    pub fn kind(&self, place: usize) -> SumKind {
        self.sums[place].kind
    }

    /// What the victim sent for it, as it came, masked or not: for the coordinator to see.
    pub fn message(&self, place: usize) -> Option<SeenMatrix> {
        let telling = &self.sums[place];
        let sum = telling.sum;
        let words = self.adversary.has_coordinator().then(|| self.transcript.upload(sum, self.victim))??;
        Some(telling.seen(numbers(sum, &words)))
    }

    /// The numbers of all parts of a sum, as opened by the coordinator or as told to a party.
    pub fn whole_sum(&self, place: usize) -> Option<Vec<Vec<f64>>> {
        let sum = self.sums[place].sum;
        Some(self.transcript.parts(sum, &self.transcript.opened(sum)?))
    }

    /// The number of times that the run was restarted before this sum.
    pub fn attempt(&self, place: usize) -> u8 {
        self.sums[place].sum.attempt
    }

    /// The sum minus the adversaries' own contributions. In asynchronous protocols every party opens the sums of all groups;
    /// without masks it only receives the server's U.
    pub fn sum(&self, place: usize) -> Option<SeenMatrix> {
        let telling = &self.sums[place];
        let sum = telling.sum;
        let values = match self.attackers.first() {
            Some(&party)
                if !self.adversary.has_coordinator()
                    && self.settings.protocol.is_asynchronous()
                    && sum.is_plain() =>
            {
                floats(&self.transcript.reply(sum, party)?)
            }
            _ => self.less_own(sum, self.transcript.opened(sum)?),
        };
        Some(telling.seen(values))
    }

    fn less_own(&self, sum: &RecordedSum, mut words: Words) -> Vec<f64> {
        let shares = self.attackers.iter().filter_map(|&party| self.transcript.share(sum, party));
        if sum.is_plain() {
            let mut values = numbers(sum, &words);
            for share in shares {
                values.iter_mut().zip(numbers(sum, &share)).for_each(|(sum, own)| *sum -= own);
            }
            return values;
        }
        for share in shares {
            words.narrow.iter_mut().zip(&share.narrow).for_each(|(sum, own)| *sum = sum.wrapping_sub(*own));
        }
        numbers(sum, &words)
    }
}

impl TellingSum<'_> {
    /// The visible part of a matrix.
    fn seen(&self, values: Vec<f64>) -> SeenMatrix {
        let &TellingSum { kind, iteration, sum } = self;
        SeenMatrix { kind, iteration, columns: sum.shapes[0].columns, values }
    }
}

impl<'a> TellingCohort<'a> {
    /// `None` if none of its sums is informative.
    fn of(sums: &'a [RecordedSum]) -> Option<Self> {
        let telling = sums.iter().filter(|sum| sum.kind.is_some_and(SumKind::shows_features));
        let mut members: Vec<u16> = telling.flat_map(RecordedSum::parties).collect();
        members.sort_unstable();
        members.dedup();
        (!members.is_empty()).then_some(TellingCohort { sums, members })
    }

    /// The adversary's sums whose numbers were opened.
    fn telling_sums(&self, transcript: &Transcript) -> Vec<TellingSum<'a>> {
        let mut counts: BTreeMap<(bool, SumKind), usize> = BTreeMap::new();
        let mut telling = Vec::new();
        for sum in self.sums {
            let Some(kind) = sum.kind.filter(|kind| kind.shows_features()) else { continue };
            if sum.voting || !opened_numbers(transcript, sum) {
                continue;
            }
            let count = counts.entry((sum.attempt > 0, kind)).or_default();
            telling.push(TellingSum { kind, iteration: *count, sum });
            *count += 1;
        }
        telling
    }
}

/// Whether a sum holds numbers. If a party's numbers were out of range or withheld, it is noise.
fn opened_numbers(transcript: &Transcript, sum: &RecordedSum) -> bool {
    transcript.opened(sum).is_some_and(|words| sum.is_plain() || are_numbers(&words))
}

/// Whether opened words are numbers, according to the flags at their end.
pub(super) fn are_numbers(words: &Words) -> bool {
    words.wide.last_chunk() == Some(&[0; fixed::FLAGS])
}

/// The numbers of the first part.
fn numbers(sum: &RecordedSum, words: &Words) -> Vec<f64> {
    if sum.is_plain() {
        let count = sum.shapes[0].count;
        return floats(words).into_iter().take(count).collect();
    }
    fixed::decode(words, &sum.shapes[..1], &sum.exponents, sum.size).remove(0).values
}

fn floats(words: &Words) -> Vec<f64> {
    words.narrow.iter().map(|&word| f32::from_bits(word).into()).collect()
}
