//! How strongly each record uses each component, sorted.

use crate::chart::Heat;
use crate::text::{count, details, percent, table};
use crate::{Components, Run, components};

/// Columns of the map, at most.
const COLUMNS: usize = 360;

/// A record's strongest component and that component's share of the record; none for a record of zeros.
pub fn leading(row: &[f32], norms: &[f64]) -> Option<(usize, f64)> {
    let weight = |component: usize| f64::from(row[component]) * norms[component];
    let total: f64 = (0..row.len()).map(weight).sum();
    let strongest = (0..row.len()).max_by(|&a, &b| weight(a).total_cmp(&weight(b)))?;
    (total > 0.0).then(|| (strongest, weight(strongest) / total))
}

/// A record in the order of the map.
struct Sorted {
    party: usize,
    /// The place of the component that leads, after all for a record of zeros.
    place: usize,
    share: f64,
    number: usize,
}

pub fn section(run: &Run, all: &Components) -> String {
    let shown = &all.order[..all.order.len().min(components::MOST)];
    let mut places = vec![usize::MAX; run.features.k];
    all.order.iter().enumerate().for_each(|(place, &component)| places[component] = place);
    let mut sorted: Vec<Sorted> = Vec::with_capacity(run.record_count());
    for (party, records) in run.records.iter().enumerate() {
        sorted.extend((0..records.weights.rows).map(|number| {
            let led = leading(records.weights.row(number), &all.norms);
            let (place, share) =
                led.map_or((usize::MAX, 0.0), |(component, share)| (places[component], share));
            Sorted { party, place, share, number }
        }));
    }
    if sorted.is_empty() {
        return String::new();
    }
    sorted.sort_by(|a, b| (a.party, a.place).cmp(&(b.party, b.place)).then(b.share.total_cmp(&a.share)));
    let wide = sorted.len().div_ceil(COLUMNS);
    let bins: Vec<&[Sorted]> = sorted.chunks(wide).collect();
    let means: Vec<Vec<f64>> = bins.iter().map(|bin| mean_shares(run, all, bin)).collect();
    let values: Vec<f64> =
        shown.iter().flat_map(|&component| means.iter().map(move |shares| shares[component])).collect();
    let columns: Vec<String> = bins.iter().map(|bin| bin_name(run, bin)).collect();
    let lines: Vec<String> = shown.iter().map(|component| (component + 1).to_string()).collect();
    let title = "Each record's shares of the components, records sorted by the component that leads";
    let marks = marks(run, &bins);
    let heat = Heat { title, lines: &lines, columns: &columns, values: &values, marks: &marks };
    let binning = if wide > 1 {
        format!(" A column is the mean of {} of them.", count(wide as u64))
    } else {
        String::new()
    };
    format!(
        "<p>How strongly each of the {} records uses each component: a line is a component, a column a record, and a colour \
         its share of the record.{binning}</p><figure class=\"wide\">{}<figcaption>{title}</figcaption></figure>{}{}",
        count(sorted.len() as u64),
        heat.html(),
        parties(run, all, &sorted, shown),
        strongest(run, all, shown)
    )
}

/// Mean shares of the components over some records.
fn mean_shares(run: &Run, all: &Components, records: &[Sorted]) -> Vec<f64> {
    let mut means = vec![0.0; run.features.k];
    for record in records {
        let row = run.records[record.party].weights.row(record.number);
        let total: f64 = row.iter().zip(&all.norms).map(|(&weight, norm)| f64::from(weight) * norm).sum();
        if total > 0.0 {
            for ((mean, &weight), norm) in means.iter_mut().zip(row).zip(&all.norms) {
                *mean += f64::from(weight) * norm / total / records.len() as f64;
            }
        }
    }
    means
}

fn bin_name(run: &Run, bin: &[Sorted]) -> String {
    let name = |record: &Sorted| run.record_name(&run.records[record.party], record.number);
    match bin {
        [one] => name(one),
        bin => format!("{} records such as {}", bin.len(), bin.first().map(name).unwrap_or_default()),
    }
}

/// Where each party's columns begin.
fn marks(run: &Run, bins: &[&[Sorted]]) -> Vec<(usize, String)> {
    let mut marks: Vec<(usize, String)> = Vec::new();
    for (column, bin) in bins.iter().enumerate() {
        let party = bin.first().and_then(|record| run.records[record.party].party.clone());
        if let Some(party) = party.filter(|party| marks.last().is_none_or(|(_, last)| last != party)) {
            marks.push((column, party));
        }
    }
    marks
}

/// What each party's records are made of on average.
fn parties(run: &Run, all: &Components, sorted: &[Sorted], shown: &[usize]) -> String {
    if run.records.len() < 2 {
        return String::new();
    }
    let mut lines = Vec::new();
    let mut values = Vec::new();
    for (party, records) in run.records.iter().enumerate() {
        let from = sorted.partition_point(|record| record.party < party);
        let to = sorted.partition_point(|record| record.party <= party);
        let shares = mean_shares(run, all, &sorted[from..to]);
        lines.push(records.party.clone().unwrap_or_default());
        values.extend(shown.iter().map(|&component| shares[component]));
    }
    let columns: Vec<String> = shown.iter().map(|component| format!("component {}", component + 1)).collect();
    let title = "What each party's records are made of, on average";
    let names =
        shown.iter().take(24).enumerate().map(|(column, component)| (column, (component + 1).to_string()));
    let marks: Vec<(usize, String)> = if shown.len() > 24 { Vec::new() } else { names.collect() };
    let heat = Heat { title, lines: &lines, columns: &columns, values: &values, marks: &marks };
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

/// The records that use each component most, as text.
fn strongest(run: &Run, all: &Components, shown: &[usize]) -> String {
    let rows = shown.iter().map(|&component| {
        let mut names = Vec::new();
        for records in &run.records {
            let column = records.weights.values.iter().skip(component).step_by(records.weights.k).copied();
            for (number, weight) in components::strongest(column, 5) {
                let row = records.weights.row(number);
                let total: f64 =
                    row.iter().zip(&all.norms).map(|(&weight, norm)| f64::from(weight) * norm).sum();
                let share = f64::from(weight) * all.norms[component] / total;
                names.push((weight, format!("{} ({})", run.record_name(records, number), percent(share))));
            }
        }
        names.sort_by(|a, b| b.0.total_cmp(&a.0));
        let names: Vec<String> = names.into_iter().take(5).map(|(_, name)| name).collect();
        vec![(component + 1).to_string(), names.join(", ")]
    });
    let header = ["component", "records that have most of it (its share of them)"];
    details("Strongest records as a table", &table(&header, rows))
}
