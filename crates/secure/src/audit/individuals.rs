//! Records next to the columns of the final U: whether a component is one person.
//!
//! The cosine says how alike a record and a component are. Where many records are alike that says little, and so does the
//! cosine in a run without the record, since such runs differ by chance as well. How much of the component's weight is the
//! person's, its leverage Σ v_ij² / V_jᵀV_j, tells the two apart, and needs no other run.

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

/// The highest cosine between a record and a component that it makes up, unless asked otherwise.
pub const MAX_RECORD_COSINE: f64 = 0.9;

/// A component with a larger share of its weight from one person is more this person than all others together.
pub const HALF: f64 = 0.5;

/// How many records a party is shown.
pub const WORST: usize = 10;

/// A person's record, and the column of U that is most like it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Likeness {
    /// The record: its row in its party's factor, from 0.
    pub record: usize,
    /// The column of U, from 1.
    pub component: usize,
    /// How alike they are; 1 is the same but for scale.
    pub cosine: f64,
    /// The share of the component's weight that is this person's.
    pub leverage: f64,
    /// The highest cosine with a column of U of a run without this person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cosine_without: Option<f64>,
}

impl Likeness {
    /// Whether the component is this record: more alike than allowed, and more by this person than by all others together.
    pub fn is_reproduced(&self, most: f64) -> bool {
        self.cosine > most && self.leverage > HALF
    }

    /// How much of the component it is, as alike as they are.
    fn exposure(&self) -> f64 {
        self.cosine * self.leverage
    }
}

/// What all may know of the people in the data, next to the columns of U.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Individuals {
    /// How many people there are.
    pub people: usize,
    /// How many of them a component reproduces: cosine above `most`, leverage above a half.
    pub reproduced: usize,
    /// The cosine above which a record counts as reproduced.
    pub most: f64,
    /// The highest cosine of a record with a component.
    pub highest_cosine: f64,
    /// The highest cosine of a record with a component of which it is more than half, of its own party's part: what parties
    /// withhold their files by.
    pub highest_at_party: f64,
    /// The people with the highest leverage, each left out once; without saying who they are.
    pub left_out: Vec<LeftOut>,
}

/// A person with and without being in the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The highest cosine of a record of this person with a component.
    pub cosine: f64,
    /// The share of the component's weight that is this person's.
    pub leverage: f64,
    /// The highest cosine in the run without this person.
    pub cosine_without: f64,
}

impl Individuals {
    /// Adds those of another run.
    pub(super) fn pool(&mut self, more: &Individuals) {
        self.people += more.people;
        self.reproduced += more.reproduced;
        self.highest_cosine = self.highest_cosine.max(more.highest_cosine);
        self.highest_at_party = self.highest_at_party.max(more.highest_at_party);
        self.left_out.extend(&more.left_out);
    }
}

/// A party's records in terms of U.
struct Fitted {
    people: Vec<Vec<usize>>,
    /// By record: its component and their cosine.
    nearest: Vec<(usize, f64)>,
    /// v², a row for each record.
    squares: Vec<f64>,
    k: usize,
}

impl Fitted {
    /// `people` has for each person the places of its records.
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

    /// Of each person the record that is most of its component, given V_jᵀV_j of all parties.
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

/// The most exposed first.
fn worst(mut likenesses: Vec<Likeness>) -> Vec<Likeness> {
    likenesses.sort_by(|a, b| by_exposure(b, a));
    likenesses.truncate(WORST);
    likenesses
}

/// A party's own records next to the columns of U (features x k, by row): of each person the most exposed record, the worst
/// people first. `records` has a row for each record, `people` their numbers.
///
/// The other parties' weights are not known here. Leverages are therefore upper bounds: shares of what is the party's own of
/// a component.
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

/// The highest cosine with a component of which a person is more than half.
pub fn highest_reproduced(likenesses: &[Likeness]) -> f64 {
    let reproduced = likenesses.iter().filter(|likeness| likeness.leverage > HALF);
    reproduced.map(|likeness| likeness.cosine).fold(0.0, f64::max)
}

/// What is found of the people of each party, which only it should see, and of all.
pub(super) struct People {
    /// By party, the worst first.
    pub worst: Vec<Vec<Likeness>>,
    pub all: Individuals,
}

/// All people of all parties; those with the highest leverages are left out of runs of their own, if it can be run again.
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

/// The number of people in the data of all parties. One who is in the data of two counts once.
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

/// U of a run without the person whose record is in this row of the matrix; nothing if a party would have no records.
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
        // One record less can be too few.
        Err(Error::Risk { .. } | Error::FewRecords { .. }) => return Ok(None),
        outcome => outcome?,
    };
    let u = outcome.parties.into_iter().flatten().next().map(|party| party.u).unwrap_or_default();
    Ok(Some(u.iter().map(|value| value.to_f64()).collect()))
}

/// The highest cosine of a record with a column of a U.
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
