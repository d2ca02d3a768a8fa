//! The error curve, the time by phase and the bytes.

use partwise::comm::Meter;
use partwise::run::Phases;
use partwise::run::record::{RankRecord, Transport};

use crate::chart::{Axis, Lines, Series, Stack};
use crate::text::{bytes, count, details, escape, number, seconds, table};
use crate::{Point, Run, parties};

/// The maximum number of processes with a bar of their own.
const MOST_PROCESSES: usize = 32;

pub fn section(run: &Run) -> String {
    let mut html = String::new();
    if run.trace.len() > 1 {
        html.push_str(&curves(run));
    }
    html.push_str(&phases(run));
    html.push_str(&sent(run));
    html
}

/// The clock that a run's seconds refer to.
pub fn clock(run: &Run) -> &'static str {
    let Some(record) = &run.record else { return "computing time" };
    match record.transport() {
        Some(Transport::Grpc) => "wall clock",
        None if run.is_secure() => "simulated clock",
        _ if record.has_virtual_clock() => "virtual clock",
        _ => "computing time",
    }
}

/// The error curve as the excess over the best error, which shows the rate of convergence; unchanged if there is no
/// excess.
fn curves(run: &Run) -> String {
    let step = run.step_name();
    let best = run.trace.iter().map(|point| point.error).fold(f64::INFINITY, f64::min);
    let above: Vec<&Point> = run.trace.iter().filter(|point| point.error > best).collect();
    let excess = above.len() > 1;
    let (shown, title, label) = if excess {
        let title = format!("Relative error over time, as the excess over the best, {}", number(best));
        (above, title, "excess over the best")
    } else {
        (run.trace.iter().collect(), "Relative error over time".into(), "relative error")
    };
    let height = |point: &Point| if excess { point.error - best } else { point.error };
    let points = shown.iter().map(|point| (point.seconds, height(point))).collect();
    let tip = |point: &&Point| {
        let (number, error, time) = (number_of(point.step), point.error, seconds(point.seconds));
        format!("{step} {number}: relative error {error:.6} after {time}")
    };
    let tips = shown.iter().map(tip).collect();
    let series = [Series { name: String::new(), colour: 0, dashed: false, points, tips }];
    let x = Axis { zero: true, ..Axis::new(format!("seconds ({})", clock(run))) };
    let y = Axis { log: excess, ..Axis::new(label) };
    let svg = Lines { title: &title, x, y, series: &series, marks: false }.svg(None);
    let every = run.trace.len().div_ceil(200).max(1);
    let last = run.trace.len() - 1;
    let listed = run.trace.iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    let rows = listed
        .map(|(_, point)| vec![number_of(point.step), number(point.seconds), format!("{:.6}", point.error)]);
    format!(
        "<figure class=\"curve\">{svg}<figcaption>{}</figcaption></figure>{}",
        escape(&title),
        details("Error curve as a table", &table(&[step, "seconds", "relative error"], rows))
    )
}

fn number_of(step: f64) -> String {
    if step.fract() == 0.0 { count(step as u64) } else { number(step) }
}

fn phases(run: &Run) -> String {
    if run.is_secure() {
        return cost(run);
    }
    let Some(record) = run.factorization() else { return String::new() };
    let words = [
        "products with M",
        "updates of the factors",
        "sketches",
        "communication and waiting",
        "evaluation of the error",
        "reading blocks",
        "start",
    ];
    let sizes = |phases: &Phases| {
        let Phases { start, sketch, product, solve, reduce, evaluate, read } = *phases;
        vec![product, solve, sketch, reduce, evaluate, read, start]
    };
    let ranks = &record.summary.ranks[..];
    let wholes: Vec<(String, Vec<f64>)> = match ranks {
        [] | [_] => vec![("all".into(), sizes(&record.summary.phases))],
        ranks => {
            let numbered = ranks.iter().enumerate().take(MOST_PROCESSES);
            numbered.map(|(rank, of)| (process_name(run, rank), sizes(&of.report.phases))).collect()
        }
    };
    let title = "Seconds by phase";
    let chart = Stack { title, parts: &words, wholes: &wholes, words: seconds }.html();
    let left_out = match ranks.len().saturating_sub(MOST_PROCESSES) {
        0 => String::new(),
        left => format!("<p class=\"note\">run.json lists {left} more.</p>"),
    };
    let header: Vec<&str> = [""].into_iter().chain(words).collect();
    let rows = wholes.iter().map(|(name, sizes)| {
        [name.clone()].into_iter().chain(sizes.iter().map(|&size| seconds(size))).collect()
    });
    format!("<h3>{title}</h3>{chart}{left_out}{}", details("Phases as a table", &table(&header, rows)))
}

/// The name of one of several processes.
fn process_name(run: &Run, rank: usize) -> String {
    let mpi = run.factorization().is_some_and(|record| record.machine.transport == Some(Transport::Mpi));
    let kind = if mpi { "process" } else { "worker" };
    format!("{kind} {rank}")
}

/// The costs of a run between parties.
fn cost(run: &Run) -> String {
    let Some(cost) = run.simulation().map(|record| record.cost) else { return String::new() };
    let (wall, masking) = (cost.wall_seconds, cost.masking_seconds);
    let wholes = [("all".to_string(), vec![(wall - masking).max(0.0), masking])];
    let title = "Seconds on this machine";
    let chart =
        Stack { title, parts: &["computing and messages", "masking"], wholes: &wholes, words: seconds }
            .html();
    let sums = if cost.sums.is_nan() || cost.round_trips_per_sum.is_nan() {
        String::new()
    } else {
        let (sums, trips) = (number_of(cost.sums.round()), cost.round_trips_per_sum);
        format!("<p class=\"note\">{sums} sums with {trips:.1} round trips each.</p>")
    };
    format!("<h3>{title}</h3>{chart}{sums}")
}

fn sent(run: &Run) -> String {
    let (parts, wholes): (Vec<String>, Vec<(String, Vec<f64>)>) =
        if run.is_secure() { by_message(run) } else { by_collective(run) };
    if wholes.iter().all(|(_, sizes)| sizes.iter().sum::<f64>() == 0.0) {
        return String::new();
    }
    let title = "Bytes sent";
    let names: Vec<&str> = parts.iter().map(String::as_str).collect();
    let words = |size: f64| bytes(size as u64);
    let chart = Stack { title, parts: &names, wholes: &wholes, words }.html();
    let header: Vec<&str> = [""].into_iter().chain(names.iter().copied()).collect();
    let rows = wholes.iter().map(|(name, sizes)| {
        [name.clone()].into_iter().chain(sizes.iter().map(|&size| words(size))).collect()
    });
    format!("<h3>{title}</h3>{chart}{}", details("Bytes as a table", &table(&header, rows)))
}

/// Bytes that each process handed to collectives.
fn by_collective(run: &Run) -> (Vec<String>, Vec<(String, Vec<f64>)>) {
    let kinds = ["all-reduce", "all-gather", "reduce-scatter", "broadcast", "message"];
    let sizes = |rank: &RankRecord| {
        let Meter { all_reduce, all_gather, reduce_scatter, broadcast, message } = rank.report.method;
        let all = [all_reduce, all_gather, reduce_scatter, broadcast, message];
        all.map(|traffic| traffic.bytes as f64).to_vec()
    };
    let ranks = run.factorization().map_or(&[][..], |record| &record.summary.ranks);
    let numbered = ranks.iter().enumerate().take(MOST_PROCESSES);
    let wholes = numbered.map(|(rank, report)| (process_name(run, rank), sizes(report))).collect();
    (kinds.map(String::from).to_vec(), wholes)
}

/// Bytes that each party sent, by kind of message.
fn by_message(run: &Run) -> (Vec<String>, Vec<(String, Vec<f64>)>) {
    let parties = parties::of(run);
    let mut kinds: Vec<String> = Vec::new();
    for message in parties.iter().flat_map(|party| party.sent.iter().flatten()) {
        if message.bytes > 0 && !kinds.contains(&message.kind) {
            kinds.push(message.kind.clone());
        }
    }
    let wholes = parties.iter().take(MOST_PROCESSES).map(|party| {
        let size = |kind: &String| {
            let mut sent = party.sent.iter().flatten();
            sent.find(|message| message.kind == *kind).map_or(0.0, |message| message.bytes as f64)
        };
        (party.name.clone(), kinds.iter().map(size).collect())
    });
    let wholes = wholes.collect();
    (kinds, wholes)
}
