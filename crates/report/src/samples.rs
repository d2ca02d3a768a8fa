//! How strongly each sample uses each component, sorted.

use crate::chart::Heat;
use crate::text::{count, details, number, percent, table};
use crate::{Components, Run, components, leading};

/// The maximum number of columns of the map.
const COLUMNS: usize = 360;
/// Samples listed per component.
const NAMED: usize = 5;

/// The shares of the components in a sample: its weights over their sum; zeros for a sample without weights.
fn shares(weights: &[f32]) -> impl Iterator<Item = f64> {
    let total: f64 = weights.iter().copied().map(f64::from).sum();
    let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
    weights.iter().map(move |&weight| f64::from(weight) * scale)
}

/// A sample in the order of the map.
struct Sorted {
    party: usize,
    /// Its leading component; last for a sample without weights.
    leader: usize,
    share: f64,
    number: usize,
}

pub fn section(run: &Run, all: &Components) -> String {
    let mut sorted: Vec<Sorted> = Vec::with_capacity(run.sample_count());
    for (party, samples) in run.samples.iter().enumerate() {
        sorted.extend((0..samples.weights.rows).map(|number| {
            let weights = samples.weights.row(number);
            let leader = leading(weights).unwrap_or(usize::MAX);
            Sorted { party, leader, share: shares(weights).nth(leader).unwrap_or(0.0), number }
        }));
    }
    if sorted.is_empty() {
        return String::new();
    }
    sorted.sort_by(|a, b| (a.party, a.leader).cmp(&(b.party, b.leader)).then(b.share.total_cmp(&a.share)));
    let wide = sorted.len().div_ceil(COLUMNS);
    let bins: Vec<&[Sorted]> = sorted.chunks(wide).collect();
    let means: Vec<Vec<f64>> = bins.iter().map(|bin| mean_shares(run, bin)).collect();
    let shown = &all.shown;
    let values: Vec<f64> =
        shown.iter().flat_map(|&component| means.iter().map(move |shares| shares[component])).collect();
    let columns: Vec<String> = bins.iter().map(|bin| bin_name(run, bin)).collect();
    let lines: Vec<String> = shown.iter().map(|component| (component + 1).to_string()).collect();
    let title = "Share of each component in each sample; samples sorted by their leading component";
    let marks = marks(run, &bins);
    let heat = Heat {
        title,
        prefix: "component ",
        lines: &lines,
        columns: &columns,
        values: &values,
        marks: &marks,
    };
    let binning = if wide > 1 {
        format!(" Each column is the mean of {} samples.", count(wide as u64))
    } else {
        String::new()
    };
    format!(
        "<p>How strongly each of the {} samples uses each component: rows are components, columns are samples, and the colour \
         is the component's share of the sample, its weight in {}.npy divided by the sum of the sample's weights.{binning}</p>\
         <figure class=\"wide\">{}<figcaption>{title}</figcaption></figure>{}{}",
        count(sorted.len() as u64),
        run.sample_factor.name(),
        heat.html(),
        parties(run, &sorted, shown),
        strongest(run, shown)
    )
}

/// Mean shares of the components over some samples.
fn mean_shares(run: &Run, samples: &[Sorted]) -> Vec<f64> {
    let mut means = vec![0.0; run.features.k];
    for sample in samples {
        let weights = run.samples[sample.party].weights.row(sample.number);
        means.iter_mut().zip(shares(weights)).for_each(|(mean, share)| *mean += share / samples.len() as f64);
    }
    means
}

fn bin_name(run: &Run, bin: &[Sorted]) -> String {
    let name = |sample: &Sorted| run.sample_name(&run.samples[sample.party], sample.number);
    match bin {
        [one] => name(one),
        bin => format!("{} samples such as {}", bin.len(), bin.first().map(name).unwrap_or_default()),
    }
}

/// The first column of each party.
fn marks(run: &Run, bins: &[&[Sorted]]) -> Vec<(usize, String)> {
    let mut marks: Vec<(usize, String)> = Vec::new();
    for (column, bin) in bins.iter().enumerate() {
        let party = bin.first().and_then(|sample| run.samples[sample.party].party.clone());
        if let Some(party) = party.filter(|party| marks.last().is_none_or(|(_, last)| last != party)) {
            marks.push((column, party));
        }
    }
    marks
}

/// The mean shares of each party's samples.
fn parties(run: &Run, sorted: &[Sorted], shown: &[usize]) -> String {
    if run.samples.len() < 2 {
        return String::new();
    }
    let mut lines = Vec::new();
    let mut values = Vec::new();
    for (party, samples) in run.samples.iter().enumerate() {
        let from = sorted.partition_point(|sample| sample.party < party);
        let to = sorted.partition_point(|sample| sample.party <= party);
        let shares = mean_shares(run, &sorted[from..to]);
        lines.push(samples.party.clone().unwrap_or_default());
        values.extend(shown.iter().map(|&component| shares[component]));
    }
    let columns: Vec<String> = shown.iter().map(|component| format!("component {}", component + 1)).collect();
    let title = "Mean share of each component in each party's samples";
    let marks: Vec<(usize, String)> =
        shown.iter().enumerate().map(|(column, component)| (column, (component + 1).to_string())).collect();
    let heat = Heat { title, prefix: "", lines: &lines, columns: &columns, values: &values, marks: &marks };
    let rows = lines.iter().zip(values.chunks(shown.len().max(1))).map(|(party, shares)| {
        [party.clone()].into_iter().chain(shares.iter().map(|&share| percent(share))).collect()
    });
    let header: Vec<&str> = ["party"].into_iter().chain(columns.iter().map(String::as_str)).collect();
    format!(
        "<figure class=\"wide\">{}<figcaption>{title}</figcaption></figure>{}",
        heat.html(),
        details("Parties as a table", &table(&header, rows))
    )
}

/// The samples with the largest weights in each component, as text.
fn strongest(run: &Run, shown: &[usize]) -> String {
    let rows = shown.iter().map(|&component| {
        let mut entries = Vec::new();
        for samples in &run.samples {
            for (sample, weight) in components::strongest(samples.weights.column(component), NAMED) {
                entries.push((weight, run.sample_name(samples, sample)));
            }
        }
        entries.sort_by(|a, b| b.0.total_cmp(&a.0));
        let entries = entries.into_iter().take(NAMED);
        let words: Vec<String> =
            entries.map(|(weight, name)| format!("{name} ({})", number(f64::from(weight)))).collect();
        vec![(component + 1).to_string(), words.join(", ")]
    });
    let header = ["component", "samples with the largest weights (weight)"];
    details("Strongest samples as a table", &table(&header, rows))
}
