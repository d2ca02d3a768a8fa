//! The strategy of a participant that deviates: it moves U of all parties so that the following sums show
//! columns of M Mᵀ.
//!
//! With a multiple of a unit vector for each component, U_j = s e_f, the fitted V has v_ij = x_if / s, and M
//! V_j is column f of M Mᵀ divided by s. If only one record has feature f, this is a multiple of that record.
//! `pooled` opens M V directly. For the methods that average U, an inflated "V V" damps all steps, so that
//! the opened sum is N U_j plus the same M V_j times a known factor.

use std::sync::Mutex;

use super::adversary::are_numbers;
use crate::aggregation::Words;
use crate::fixed::{self, Part, PartShape, VOTES};
use crate::link::{Asked, Passed, Recorder};
use crate::session::ALL;
use crate::simulate::Deviation;
use crate::sum::SumKind;

/// The factor by which "V V" is inflated, which reduces the parties' own steps to a thousandth of U or less.
const INFLATED: f64 = 1e5;

/// The exponents by which a coordinator widens the range of "V V", in votes of four each.
const WIDER: usize = 6;

/// The share of a range that wrong numbers fill.
const FILLED: f64 = 0.9;

/// Steers a run towards the features that are sought.
pub(super) struct Steering {
    /// The party that deviates; the coordinator, if none.
    pub party: Option<u16>,
    pub parties: usize,
    /// Squared norms of U's columns at the start, which every participant can compute.
    pub begun: Vec<f64>,
    /// The features that are sought, at most k per chunk.
    pub chunks: Vec<Vec<usize>>,
    /// The number of sums during which U stays where it was moved. The first chunk takes twice as many, so
    /// that the effect of the previous U on V fades.
    pub hold: usize,
    pub state: Mutex<State>,
}

/// What the attacker knows so far.
#[derive(Default)]
pub(super) struct State {
    asked: Option<AskedSum>,
    /// The number of informative sums so far.
    told: usize,
    /// U of all honest parties after the last sum.
    reference: Option<Vec<f64>>,
    /// The upload of the party that deviates.
    own: Vec<Vec<f64>>,
    /// How far the other parties together had moved from U before the last sum; for `pooled`, their M V.
    drift: Vec<f64>,
    /// The contribution of the other parties to the last sum.
    others: Option<Vec<Vec<f64>>>,
    /// By chunk, what was opened while U was in its place: features x k.
    pub seen: Vec<Vec<f64>>,
}

/// A sum in progress, as known to all parties.
struct AskedSum {
    kind: SumKind,
    voting: bool,
    exponents: Vec<i16>,
    shapes: Vec<PartShape>,
}

impl Steering {
    fn k(&self) -> usize {
        self.begun.len()
    }

    /// The desired U after sum `told`: s e_f for the features of its chunk; `None` after the last chunk.
    fn wanted(&self, told: usize, features: usize, scales: impl Fn(usize) -> f64) -> Option<Vec<f64>> {
        let chunk = self.chunks.get((told / self.hold).saturating_sub(1))?;
        let mut u = vec![0.0; features * self.k()];
        // Excess components seek the first feature again: at zero they would be inactive.
        for component in 0..self.k() {
            let feature = chunk.get(component).or(chunk.first())?;
            u[feature * self.k() + component] = scales(component);
        }
        Some(u)
    }

    /// Records an opened sum, and what the honest parties contributed to it.
    fn observe(&self, state: &mut State, kind: SumKind, total: &[Vec<f64>]) {
        let mut others = total.to_vec();
        if self.party.is_some() {
            others.iter_mut().zip(&state.own).for_each(|(total, own)| subtract(total, own));
        }
        let honest = (self.parties - usize::from(self.party.is_some())) as f64;
        state.drift = others[0].clone();
        if let Some(reference) = state.reference.as_ref().filter(|_| kind == SumKind::U) {
            state.drift.iter_mut().zip(reference).for_each(|(moved, u)| *moved -= honest * u);
        }
        if state.told > self.hold && state.told.is_multiple_of(self.hold) {
            state.seen.push(state.drift.clone());
        }
        state.others = Some(others);
        state.told += 1;
    }

    /// U of all honest parties after they received a sum: its mean, with columns rescaled by powers of two as
    /// they do.
    fn moved(&self, sum: &[f64]) -> Vec<f64> {
        let mut u: Vec<f64> = sum.iter().map(|value| value / self.parties as f64).collect();
        for (component, begun) in self.begun.iter().enumerate() {
            let column = || (component..sum.len()).step_by(self.k());
            let now: f64 = column().map(|place| u[place] * u[place]).sum();
            let exponent = ((begun / now).log2() / 2.0).round();
            if exponent.is_finite() {
                column().for_each(|place| u[place] *= exponent.exp2());
            }
        }
        u
    }

    /// The wrong sum that a coordinator sends to all parties, if it sends one.
    fn wrong_sum(&self, state: &mut State, sum: &Words) -> Option<Words> {
        // It becomes known again before the next sum.
        let AskedSum { kind, voting, exponents, shapes } = state.asked.take()?;
        if voting {
            return (kind == SumKind::FirstDiagonal).then(|| widened(sum));
        }
        if exponents.is_empty() || !are_numbers(sum) {
            return None;
        }
        let total = fixed::decode(sum, &shapes, &exponents, self.parties);
        let mut told = total.clone();
        // Words within the range of one party, so that they fit in any case.
        let range = |column: usize| FILLED * f64::from(exponents[column]).exp2();
        let parties = self.parties as f64;
        match kind {
            SumKind::FirstDiagonal => {
                told[0].values[0] = (INFLATED * told[0].values[0]).min(range(0));
            }
            SumKind::U => {
                self.observe(state, kind, &numbers(&total));
                let scale = |component: usize| self.begun[component].sqrt().min(range(component) / parties);
                let features = total[0].values.len() / self.k();
                if let Some(u) = self.wanted(state.told - 1, features, scale) {
                    told[0].values = u.iter().map(|value| parties * value).collect();
                }
            }
            SumKind::ProductV => {
                self.observe(state, kind, &numbers(&total));
                let features = total[0].values.len() / self.k();
                let largest = self.begun.iter().fold(0f64, |largest, square| largest.max(square.sqrt()));
                let weight =
                    (0..self.k()).map(|column| range(column) / largest).fold(range(self.k()), f64::min);
                let scale = |component: usize| weight * self.begun[component].sqrt();
                if let Some(product) = self.wanted(state.told - 1, features, scale) {
                    told[0].values = product;
                    told[1] = identity(weight, self.k());
                }
            }
            _ => return None,
        }
        let mut words = fixed::encode(&told, &exponents, self.parties)?;
        words.wide.extend(&sum.wide[words.wide.len()..]);
        if kind == SumKind::U {
            let told = fixed::decode(&words, &shapes, &exponents, self.parties);
            state.reference = Some(self.moved(&told[0].values));
        }
        Some(words)
    }

    /// Replaces a party's upload such that the sum becomes what the party wants.
    fn wrong_upload(&self, state: &mut State, kind: SumKind, parts: &mut [Part]) {
        let (parties, honest) = (self.parties as f64, self.parties as f64 - 1.0);
        let features = parts[0].values.len() / self.k();
        match kind {
            SumKind::FirstDiagonal => parts[0].values[0] *= INFLATED * parties,
            SumKind::U => {
                // The other parties are assumed to move as they did before, starting where they were told to
                // be; in the first round, where this party is.
                let mut theirs = state.reference.clone().unwrap_or_else(|| parts[0].values.clone());
                theirs.iter_mut().for_each(|value| *value *= honest);
                theirs
                    .iter_mut()
                    .zip(&state.drift)
                    .filter(|_| state.told > 1)
                    .for_each(|(sum, moved)| *sum += moved);
                if let Some(mut u) =
                    self.wanted(state.told, features, |component| self.begun[component].sqrt())
                {
                    u.iter_mut().for_each(|value| *value *= parties);
                    subtract(&mut u, &theirs);
                    parts[0].values = u;
                }
            }
            SumKind::ProductV => {
                let theirs = state.others.as_ref().map_or(&parts[0].values, |others| &others[0]);
                let largest = theirs.iter().chain(&parts[1].values).fold(0f64, |a, b| a.max(b.abs()));
                let weight = 1e3 * largest / self.begun[0].sqrt();
                let scale = |component: usize| weight * self.begun[component].sqrt();
                if let Some(mut product) = self.wanted(state.told, features, scale) {
                    let mut gram = identity(weight, self.k());
                    if let Some(others) = &state.others {
                        subtract(&mut product, &others[0]);
                        subtract(&mut gram.values, &others[1]);
                    }
                    parts[0].values = product;
                    parts[1] = gram;
                }
            }
            _ => {}
        }
        state.own = parts.iter().map(|part| part.values.clone()).collect();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn numbers(parts: &[Part]) -> Vec<Vec<f64>> {
    parts.iter().map(|part| part.values.clone()).collect()
}

fn subtract(total: &mut [f64], part: &[f64]) {
    total.iter_mut().zip(part).for_each(|(total, part)| *total -= part);
}

/// A Gram matrix with only a diagonal.
fn identity(weight: f64, k: usize) -> Part {
    let gram: Vec<f64> = (0..k * k).map(|place| if place % (k + 1) == 0 { weight } else { 0.0 }).collect();
    Part::gram(&gram, k)
}

/// Votes for a wider range.
fn widened(votes: &Words) -> Words {
    let mut votes = votes.clone();
    for column in votes.wide.chunks_exact_mut(VOTES) {
        let highest = column.iter().rposition(|&vote| vote != 0).unwrap_or(0);
        column[(highest + WIDER).min(VOTES - 1)] = 1;
    }
    votes
}

impl Deviation for Steering {
    fn party(&self) -> Option<u16> {
        self.party
    }

    fn answer(&self, cohort: u8, sum: Words) -> Words {
        if cohort != ALL || self.party.is_some() {
            return sum;
        }
        self.wrong_sum(&mut self.lock(), &sum).unwrap_or(sum)
    }

    fn upload(&self, kind: SumKind, parts: &mut Vec<Part>) {
        self.wrong_upload(&mut self.lock(), kind, parts);
    }
}

impl Recorder for Steering {
    fn passed(&self, _: &Passed<'_>) {}

    fn asked(&self, asked: &Asked<'_>) {
        if asked.cohort == ALL {
            self.lock().asked = Some(AskedSum {
                kind: asked.kind,
                voting: asked.voting,
                exponents: asked.exponents.to_vec(),
                shapes: asked.parts.iter().map(Part::shape).collect(),
            });
        }
    }

    /// What a party is told, which equals what was opened.
    fn opened(&self, cohort: u8, words: &Words) {
        let mut state = self.lock();
        let Some(AskedSum { kind, voting: false, exponents, shapes }) = &state.asked else { return };
        let tells = matches!(kind, SumKind::U | SumKind::ProductV) && are_numbers(words);
        if self.party.is_none() || cohort != ALL || !tells {
            return;
        }
        let (kind, total) = (*kind, fixed::decode(words, shapes, exponents, self.parties));
        self.observe(&mut state, kind, &numbers(&total));
        if kind == SumKind::U {
            state.reference = Some(self.moved(&total[0].values));
        }
    }
}
