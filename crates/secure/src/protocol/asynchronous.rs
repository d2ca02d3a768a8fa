//! Asyn-SD and Asyn-SSD-V (Alg. `asyn_server`, `asyn_client_SD`). Clients are groups of parties, whose copies of U are
//! summed before the server sees them; with plain aggregation every party is a client of its own.

use std::collections::BTreeMap;

use partwise::Real;
use partwise::run::SketchedSide;

use super::{Line, Local, Settings, Stop, matrix};
use crate::aggregation::Words;
use crate::error::Result;
use crate::fixed::{self, Part};
use crate::server::Answer;
use crate::session::{ALL, Session};

/// A party: T iterations, then its U goes out; while the group completes it computes on.
pub fn run<T: Real>(
    settings: &Settings,
    local: &mut Local<T>,
    session: &mut Session<'_>,
    group: u8,
) -> Result<(usize, Stop)> {
    let mut records =
        settings.protocol.sketches_records().then(|| local.records_side(settings, session.me()));
    let (mut iteration, mut rounds) = (0, 0);
    loop {
        let mut own_error = 0.0;
        for inner in 0..settings.inner {
            let cross = step(local, records.as_mut(), &mut iteration, inner == 0);
            session.work(local.take_work());
            if let Some(error) = cross {
                own_error = error;
            }
        }
        session.start(group, "U", parts(local, settings.rank, own_error))?;
        // Not for ever: the longer a party computes by itself, the less its V fits the U that it will be sent.
        let mut total = session.poll()?;
        for _ in 0..settings.inner {
            if total.is_none() {
                step(local, records.as_mut(), &mut iteration, false);
                session.work(local.take_work());
                total = session.poll()?;
            }
        }
        let total = match total {
            Some(total) => total,
            None => session.wait()?,
        };
        rounds += 1;
        let answer = Answered::read(&total.words);
        local.u = answer.u.iter().map(|&value| T::from_f64(value.into())).collect();
        session.expect(group, "U", &parts(local, settings.rank, total.parts[1][0]));
        if answer.stop {
            break;
        }
    }
    // All take the server's last U. (With a known range there is nothing to agree on first.)
    session.expect(ALL, "the end", &[Part::scalars(&[1.0])]);
    let total = session.sum(ALL, "the end", vec![Part::scalars(&[1.0])])?;
    local.u = Answered::read(&total.words).u.iter().map(|&value| T::from_f64(value.into())).collect();
    Ok((rounds, Stop::Rounds))
}

fn parts<T: Real>(local: &Local<T>, k: usize, own_error: f64) -> Vec<Part> {
    vec![matrix(&local.u, k), Part::scalars(&[own_error])]
}

/// V, then U; with the error between the two, if asked for.
fn step<T: Real>(
    local: &mut Local<T>,
    records: Option<&mut SketchedSide>,
    iteration: &mut usize,
    evaluate: bool,
) -> Option<f64> {
    let cross = local.sweep_v();
    let error = evaluate.then(|| local.error_from(cross));
    match records {
        Some(side) => local.sketched_u(side, *iteration),
        None => {
            let (product, gram) = (local.product_v(), local.gram_v());
            local.sweep_u(product, &gram);
        }
    }
    *iteration += 1;
    error
}

/// What the server answers: its U, as it is, in the place of the matrix, and behind the error whether this is the end.
struct Answered {
    u: Vec<f32>,
    stop: bool,
}

impl Answered {
    fn read(words: &Words) -> Self {
        let u = words.narrow.iter().map(|&word| f32::from_bits(word)).collect();
        Answered { u, stop: words.wide.get(1) == Some(&1) }
    }
}

/// What the server knows of a group.
struct Group {
    size: usize,
    ranges: Option<Vec<i16>>,
    squared_error: Option<f64>,
    stopped: bool,
}

/// The server: U moves by ω_t = ρ / (ρ + t) towards each mean of a group that is opened.
pub struct Server {
    settings: Settings,
    groups: BTreeMap<u8, Group>,
    updates: usize,
    u: Vec<f64>,
    ended: bool,
    /// The error over updates, from what the groups last had.
    pub trace: Vec<Line>,
}

impl Server {
    /// The number and size of each group.
    pub fn new(settings: &Settings, groups: &[(u8, usize)]) -> Self {
        let group = |size| Group { size, ranges: None, squared_error: None, stopped: false };
        Server {
            settings: settings.clone(),
            groups: groups.iter().map(|&(number, size)| (number, group(size))).collect(),
            updates: 0,
            u: Vec::new(),
            ended: false,
            trace: Vec::new(),
        }
    }

    fn words_of_u(&self) -> Vec<u32> {
        self.u.iter().map(|&value| (value as f32).to_bits()).collect()
    }

    fn shapes(&self, squared_error: f64) -> Vec<Part> {
        // As the parties have it, in f32.
        let u = self.u.iter().map(|&value| (value as f32).into()).collect();
        vec![Part::matrix(u, self.settings.rank), Part::scalars(&[squared_error])]
    }

    /// The sum of a group's U and of its errors; nothing if these words are about ranges.
    fn numbers(&mut self, number: u8, sum: &Words) -> Option<(Vec<f64>, f64)> {
        let group = self.groups.get_mut(&number)?;
        if self.settings.aggregation == super::Aggregation::Plain {
            let u = sum.narrow.iter().map(|&word| f32::from_bits(word).into()).collect();
            return Some((u, f64::from_bits(*sum.wide.first()?)));
        }
        if sum.narrow.is_empty() {
            group.ranges = Some(fixed::agreed(sum));
            return None;
        }
        let exponents = group.ranges.take()?;
        if sum.wide.last() != Some(&0) {
            return None;
        }
        let shapes =
            vec![Part::matrix(vec![0.0; sum.narrow.len()], self.settings.rank), Part::scalars(&[0.0])];
        let mut parts = fixed::decode(sum, &shapes, &exponents, group.size);
        let error = *parts.pop()?.values.first()?;
        Some((parts.pop()?.values, error))
    }

    fn update(&mut self, number: u8, (u, error): (Vec<f64>, f64), parties: usize, now: f64) {
        // Not before every group was heard.
        let unheard = self.groups.values().any(|group| group.squared_error.is_none());
        let limit = self.settings.rounds * self.groups.len();
        if self.updates < limit || unheard {
            let omega = self.settings.rho / (self.settings.rho + self.updates as f64);
            self.u.resize(u.len(), 0.0);
            for (server, sum) in self.u.iter_mut().zip(&u) {
                *server = (1.0 - omega) * *server + omega * sum / parties as f64;
            }
            self.updates += 1;
        }
        let ranges = fixed::follow(&self.shapes(error));
        if let Some(group) = self.groups.get_mut(&number) {
            (group.squared_error, group.ranges) = (Some(error), Some(ranges));
        }
        let heard = self.groups.values().all(|group| group.squared_error.is_some());
        let stopped = self.updates >= limit && heard;
        if let Some(group) = self.groups.get_mut(&number) {
            group.stopped = stopped;
        }
        let errors: Option<f64> = self.groups.values().map(|group| group.squared_error).sum();
        if let Some(squared_error) = errors {
            let round = self.updates.div_ceil(self.groups.len());
            let bytes = (round * self.u.len() * 8) as u64;
            self.trace.push(Line { round, seconds: now, squared_error, bytes });
        }
    }
}

impl Answer for Server {
    fn answer(&mut self, cohort: u8, mut sum: Words, parties: usize, now: f64) -> Words {
        if cohort == ALL {
            if !self.ended && self.groups.values().all(|group| group.stopped) {
                self.ended = true;
                sum.narrow = self.words_of_u();
            }
            return sum;
        }
        let Some(numbers) = self.numbers(cohort, &sum) else { return sum };
        self.update(cohort, numbers, parties, now);
        sum.narrow = self.words_of_u();
        let stopped = self.groups.get(&cohort).is_some_and(|group| group.stopped);
        sum.wide.insert(1, stopped.into());
        sum
    }
}
