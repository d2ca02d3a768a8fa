//! Compares records with the columns of the final U: is a component a single person?
//!
//! The cosine measures how similar a record and a component are. It says little if many records are similar
//! to each other, and neither does the cosine in a run without the record, because such runs also differ by
//! chance. The leverage, the person's share Σ v_ij² / V_jᵀV_j of the component's weight, distinguishes the
//! two cases and needs no other run.

use std::collections::BTreeSet;

use partwise::Real;
use partwise::matrix::Matrix;
use partwise::threads::Threads;
use serde::{Deserialize, Serialize};

use super::candidates::{Candidates, Weights, norms_of_columns};
use super::{Case, Evidence};
use crate::error::{Error, Result};
use crate::split::{by_person, parts};
use crate::{Plan, simulate};

/// The default for the highest cosine between a record and a component that it makes up.
pub const MAX_RECORD_COSINE: f64 = 0.9;

/// If one person has a larger share of a component's weight, the component represents this person more than
/// all others.
pub const HALF: f64 = 0.5;

/// The number of records that a party is shown.
pub const WORST: usize = 10;

/// A person's record, and the column of U that is most similar to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Likeness {
    /// The record: its row in its party's factor, from 0.
    pub record: usize,
    /// The column of U, from 1.
    pub component: usize,
    /// The cosine between the record and the column; 1 if they are equal up to scale.
    pub cosine: f64,
    /// The person's share of the component's weight.
    pub leverage: f64,
    /// The highest cosine with a column of U in a run without this person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cosine_without: Option<f64>,
}

impl Likeness {
    /// Whether the component reproduces this record: the cosine exceeds `most`, and the leverage exceeds a
    /// half.
    pub fn is_reproduced(&self, most: f64) -> bool {
        self.cosine > most && self.leverage > HALF
    }

    /// The exposure of the record, which combines its cosine and its leverage.
    fn exposure(&self) -> f64 {
        self.cosine * self.leverage
    }
}

/// Results about the people in the data that all parties may know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Individuals {
    /// The number of people.
    pub people: usize,
    /// The number of people who are reproduced by a component: cosine above `most`, leverage above a half.
    pub reproduced: usize,
    /// The cosine above which a record counts as reproduced.
    pub most: f64,
    /// The highest cosine of a record with a component.
    pub highest_cosine: f64,
    /// The highest cosine of a record with a component in which its person has more than half of the weight
    /// of its own party. Parties use it to decide whether to withhold their files.
    pub highest_at_party: f64,
    /// The people with the highest leverage, each left out of one run, without their identity.
    pub left_out: Vec<LeftOut>,
}

/// The similarity of a person to the components of runs with and without this person.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The highest cosine of a record of this person with a component.
    pub cosine: f64,
    /// The person's share of the component's weight.
    pub leverage: f64,
    /// The highest cosine in the run without this person.
    pub cosine_without: f64,
}

impl Individuals {
    /// Adds the results of another run.
    pub(super) fn pool(&mut self, more: &Individuals) {
        self.people += more.people;
        self.reproduced += more.reproduced;
        self.highest_cosine = self.highest_cosine.max(more.highest_cosine);
        self.highest_at_party = self.highest_at_party.max(more.highest_at_party);
        self.left_out.extend(&more.left_out);
    }
}

/// A party's records expressed in terms of U.
struct Fitted {
    people: Vec<Vec<usize>>,
    /// The most similar component of each record, and their cosine.
    nearest: Vec<(usize, f64)>,
    /// v², one row per record.
    squares: Vec<f64>,
    k: usize,
}

impl Fitted {
    /// Fits the records of a party. `people` lists the positions of each person's records.
    fn new(threads: &Threads, records: &Candidates, u: &[f64], k: usize, people: Vec<Vec<usize>>) -> Self {
        let Weights { products, v, .. } = records.weights(threads, u, k);
        let columns = norms_of_columns(u, k);
        let nearest = |(products, norm): (&[f64], &f64)| {
            let cosines = products.iter().zip(&columns).map(|(product, column)| product / (norm * column));
            let finite = cosines.map(|cosine| if cosine.is_finite() { cosine } else { 0.0 });
            finite.enumerate().fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best })
        };
        Fitted {
            people,
            nearest: products.chunks_exact(k).zip(records.norms()).map(nearest).collect(),
            squares: v.iter().map(|value| value * value).collect(),
            k,
        }
    }

    /// V_jᵀV_j over the party's records.
    fn diagonal(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.k];
        for row in self.squares.chunks_exact(self.k) {
            sums.iter_mut().zip(row).for_each(|(sum, square)| *sum += square);
        }
        sums
    }

    /// The record of each person that has the largest part of its component, given V_jᵀV_j of all parties.
    fn likenesses(&self, diagonal: &[f64]) -> Vec<Likeness> {
        let of_person = |records: &Vec<usize>| {
            let likeness = |&record: &usize| {
                let (component, cosine) = self.nearest[record];
                let own: f64 = records.iter().map(|&record| self.squares[record * self.k + component]).sum();
                let leverage = if diagonal[component] > 0.0 { own / diagonal[component] } else { 0.0 };
                Likeness { record, component: component + 1, cosine, leverage, cosine_without: None }
            };
            records.iter().map(likeness).max_by(by_exposure)
        };
        self.people.iter().filter_map(of_person).collect()
    }
}

fn by_exposure(a: &Likeness, b: &Likeness) -> std::cmp::Ordering {
    a.exposure().total_cmp(&b.exposure())
}

/// Sorts by exposure, the most exposed first.
fn worst(mut likenesses: Vec<Likeness>) -> Vec<Likeness> {
    likenesses.sort_by(|a, b| by_exposure(b, a));
    likenesses.truncate(WORST);
    likenesses
}

/// Compares a party's own records with the columns of U (features x k, by row): the most exposed record of
/// each person, the most exposed people first. `records` has one row per record, `people` the number of each
/// record's person.
///
/// The other parties' weights are unknown here, so leverages are upper bounds: shares of the party's own part
/// of a component.
pub fn own_likenesses<T: Real>(
    threads: &Threads,
    records: &Matrix<T>,
    u: &[T],
    people: Option<&[usize]>,
) -> Vec<Likeness> {
    let k = u.len() / records.cols().max(1);
    let all: Vec<usize> = (0..records.rows()).collect();
    let u: Vec<f64> = u.iter().map(|value| value.to_f64()).collect();
    let candidates = Candidates::new(records, std::slice::from_ref(&all), &[]);
    let fitted = Fitted::new(threads, &candidates, &u, k, by_person(&all, people));
    let mut likenesses = fitted.likenesses(&fitted.diagonal());
    likenesses.sort_by(|a, b| by_exposure(b, a));
    likenesses
}

/// The highest cosine with a component in which a person has more than half of the weight.
pub fn highest_reproduced(likenesses: &[Likeness]) -> f64 {
    let reproduced = likenesses.iter().filter(|likeness| likeness.leverage > HALF);
    reproduced.map(|likeness| likeness.cosine).fold(0.0, f64::max)
}

/// Results about the people of each party, which only that party should see, and about all people.
pub(super) struct People {
    /// The people of each party, the most exposed first.
    pub worst: Vec<Vec<Likeness>>,
    pub all: Individuals,
}

/// Compares all people of all parties with U. If the run can be repeated, those with the highest leverage are
/// left out of additional runs.
pub(super) fn people<T: Real>(case: &Case<'_, T>, evidence: &Evidence<'_, T>) -> Result<People> {
    let k = case.settings.rank;
    let fitted: Vec<Fitted> = case.dealt.iter().map(|records| fit(case, evidence, records)).collect();
    let mut diagonal = vec![0.0; k];
    for fitted in &fitted {
        diagonal.iter_mut().zip(fitted.diagonal()).for_each(|(sum, own)| *sum += own);
    }
    let likenesses: Vec<Vec<Likeness>> = fitted.iter().map(|fitted| fitted.likenesses(&diagonal)).collect();
    let all = || likenesses.iter().flatten();
    let mut found = Individuals {
        people: count_people(case.dealt, evidence.people),
        reproduced: all().filter(|likeness| likeness.is_reproduced(MAX_RECORD_COSINE)).count(),
        most: MAX_RECORD_COSINE,
        highest_cosine: all().map(|likeness| likeness.cosine).fold(0.0, f64::max),
        highest_at_party: fitted
            .iter()
            .map(|fitted| highest_reproduced(&fitted.likenesses(&fitted.diagonal())))
            .fold(0.0, f64::max),
        left_out: Vec::new(),
    };
    let mut worst: Vec<Vec<Likeness>> = likenesses.into_iter().map(worst).collect();
    if let Some(plan) = evidence.plan {
        let mut order: Vec<(usize, usize)> = (0..worst.len())
            .flat_map(|party| (0..worst[party].len()).map(move |place| (party, place)))
            .collect();
        order.sort_by(|a, b| by_exposure(&worst[b.0][b.1], &worst[a.0][a.1]));
        for (party, place) in order.into_iter().take(case.limits.reruns) {
            let likeness = &mut worst[party][place];
            let row = case.dealt[party][likeness.record];
            let Some(u) = u_without(evidence, plan, row)? else { continue };
            let without = highest_cosine(case, row, &u);
            likeness.cosine_without = Some(without);
            let &mut Likeness { cosine, leverage, .. } = likeness;
            found.left_out.push(LeftOut { cosine, leverage, cosine_without: without });
        }
    }
    Ok(People { worst, all: found })
}

/// The number of people in the data of all parties. A person in the data of two parties counts once.
fn count_people(dealt: &[Vec<usize>], people: Option<&[usize]>) -> usize {
    let person = |&record: &usize| people.map_or(record, |people| people[record]);
    dealt.iter().flatten().map(person).collect::<BTreeSet<usize>>().len()
}

fn fit<T: Real>(case: &Case<'_, T>, evidence: &Evidence<'_, T>, records: &[usize]) -> Fitted {
    let candidates = Candidates::new(case.matrix, &[records.to_vec()], &[]);
    let places: Vec<usize> = (0..records.len()).collect();
    let numbers =
        evidence.people.map(|people| records.iter().map(|&record| people[record]).collect::<Vec<_>>());
    Fitted::new(
        &case.threads,
        &candidates,
        &case.u,
        case.settings.rank,
        by_person(&places, numbers.as_deref()),
    )
}

/// U of a run without the person whose record is in this row of the matrix; `None` if a party would have no
/// records left.
pub(super) fn u_without<T: Real>(
    evidence: &Evidence<'_, T>,
    plan: &Plan,
    row: usize,
) -> Result<Option<Vec<f64>>> {
    let is_same = |other: usize| evidence.people.map_or(other == row, |people| people[other] == people[row]);
    let without = |records: &Vec<usize>| -> Vec<usize> {
        records.iter().copied().filter(|&record| !is_same(record)).collect()
    };
    let dealt: Vec<Vec<usize>> = evidence.dealt.iter().map(without).collect();
    if dealt.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    let outcome = match simulate(parts(evidence.matrix, &dealt)?, plan) {
        // With one record fewer there may be too few.
        Err(Error::Risk { .. } | Error::FewRecords { .. }) => return Ok(None),
        outcome => outcome?,
    };
    let u = outcome.parties.into_iter().flatten().next().map(|party| party.u).unwrap_or_default();
    Ok(Some(u.iter().map(|value| value.to_f64()).collect()))
}

/// The highest cosine of a record with any column of U.
fn highest_cosine<T: Real>(case: &Case<'_, T>, row: usize, u: &[f64]) -> f64 {
    let mut best = [0.0];
    Candidates::new(case.matrix, &[vec![row]], &[]).match_columns(
        &case.threads,
        u,
        case.settings.rank,
        &mut best,
    );
    best[0]
}
