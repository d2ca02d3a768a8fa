//! `partwise top`: lists the strongest features and samples of each component.

use std::fmt::Write;

use anyhow::{Result, bail};
use partwise::run::Side;
use serde_json::{Value, json};

use crate::args::TopArgs;
use crate::context::Context;
use crate::folder;

pub fn run(args: &TopArgs, context: &Context) -> Result<()> {
    if args.count == 0 {
        bail!("--count: 0 is too few; give 1 or more");
    }
    let folder = folder::read::<f64>(&args.dir)?;
    let factors = &folder.factors;
    let energies = factors.energies();
    let total: f64 = energies.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let names = match folder::record(&args.dir)?.samples {
        Side::Rows => ["samples ", "features"],
        Side::Columns => ["features", "samples "],
    };
    let mut listing = Vec::new();
    let mut text = String::from("energy: the component's share of the sum of ‖U_j‖ ‖V_j‖\n");
    for (component, energy) in energies.iter().enumerate() {
        let rows = strongest(&factors.u, component, factors.k, args.count);
        let cols = strongest(&factors.v, component, factors.k, args.count);
        if args.json {
            let list = |entries: &[(usize, f64)], labels: &Option<Vec<String>>| -> Vec<Value> {
                entries
                    .iter()
                    .map(|&(index, weight)| {
                        let label = labels.as_ref().map(|labels| &labels[index]);
                        json!({ "index": index, "label": label, "weight": weight })
                    })
                    .collect()
            };
            listing.push(json!({
                "component": component + 1,
                "share": energy / total,
                "rows": list(&rows, &folder.row_labels),
                "columns": list(&cols, &folder.col_labels),
            }));
        } else {
            let list = |entries: &[(usize, f64)], labels: &Option<Vec<String>>, what: &str| -> String {
                let named: Vec<String> = entries
                    .iter()
                    .map(|&(index, weight)| format!("{} {weight:.4}", label(labels, index, what)))
                    .collect();
                if named.is_empty() { "none".into() } else { named.join(", ") }
            };
            writeln!(text, "component {} ({:.1}% of the energy)", component + 1, 100.0 * energy / total)?;
            writeln!(text, "  {}  {}", names[0], list(&rows, &folder.row_labels, "row"))?;
            writeln!(text, "  {}  {}", names[1], list(&cols, &folder.col_labels, "column"))?;
        }
    }
    context.console.answer(&if args.json { format!("{:#}", Value::from(listing)) } else { text })
}

/// Names count from 1, as in error messages.
fn label(labels: &Option<Vec<String>>, index: usize, what: &str) -> String {
    match labels {
        Some(labels) => labels[index].clone(),
        None => format!("{what} {}", index + 1),
    }
}

/// The rows with the largest positive weights in a component, largest first.
fn strongest(factor: &[f64], component: usize, k: usize, count: usize) -> Vec<(usize, f64)> {
    let mut entries: Vec<(usize, f64)> = factor
        .iter()
        .skip(component)
        .step_by(k)
        .copied()
        .enumerate()
        .filter(|(_, weight)| *weight > 0.0)
        .collect();
    entries.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    entries.truncate(count);
    entries
}
