//! `partwise plan`: estimates what a factorization needs on a cluster.

use std::fmt::Write;

use anyhow::Result;
use partwise::comm::Network;
use partwise::plan::{Constants, Estimate, Job, check};
use partwise::run::{Algorithm, Settings};
use serde_json::{Value, json};

use crate::args::PlanArgs;
use crate::constants::{self, Known};
use crate::context::Context;
use crate::input::size;

/// The network that is assumed if none is given.
const USUAL: &str = "10Gbit/s,20us";

const METHODS: [Algorithm; 3] = [Algorithm::Auto, Algorithm::Hals, Algorithm::Dsanls];

pub fn run(args: &PlanArgs, context: &Context) -> Result<()> {
    let settings =
        Settings { sketch_cols: args.sketch_cols, sketch_rows: args.sketch_rows, ..Settings::new(args.rank) };
    let (rows, cols, nonzeros, nodes) = (args.rows, args.cols, args.nonzeros, args.nodes);
    let (bytes, grid, precision) = (args.bytes, args.grid, args.precision);
    let job = Job { rows, cols, nonzeros, bytes, settings, nodes, grid, precision };
    check(&job, args.memory)?;
    let known = constants::known(args.constants.as_deref())?;
    let (network, assumed) = network(args, &known);
    let view = View { args, job, known: &known, network, assumed };
    if args.json {
        context.console.answer(&format!("{:#}", view.json()))
    } else {
        context.console.answer(&view.text()?)
    }
}

/// The given, measured or assumed network; in the latter cases with a note.
fn network(args: &PlanArgs, known: &Known) -> (Network, &'static str) {
    let combine = known.constants.combine;
    let usual = || USUAL.parse().unwrap_or_else(|_| unreachable!("a network"));
    let (network, assumed) = match (args.network, known.constants.network()) {
        (Some(network), _) => (network, ""),
        (None, Some(network)) => (network, " (as measured)"),
        (None, None) => (usual(), " (assumed; change it with --network)"),
    };
    (Network { combine, ..network }, assumed)
}

struct View<'a> {
    args: &'a PlanArgs,
    job: Job,
    known: &'a Known,
    network: Network,
    assumed: &'static str,
}

impl View<'_> {
    fn constants(&self) -> &Constants {
        &self.known.constants
    }

    fn estimates(&self, job: &Job) -> Vec<Estimate> {
        METHODS.iter().map(|&method| job.estimate(method, &self.network, self.constants())).collect()
    }

    /// The best method on this many processes; `None` if nothing fits.
    fn best(&self, nodes: usize) -> Option<Estimate> {
        let mut job = Job { nodes, ..self.job.clone() };
        if nodes != self.job.nodes {
            job.grid = None;
        }
        check(&job, self.args.memory).ok()?;
        let mut best = job.best(&self.network, self.constants());
        let fits =
            |estimate: &Estimate| self.args.memory.is_none_or(|memory| estimate.memory.most() <= memory);
        let estimates = self.estimates(&job);
        let of = |method| estimates.iter().find(|estimate| estimate.algorithm == method);
        if of(best).is_some_and(|estimate| !fits(estimate)) {
            best = estimates.iter().find(|estimate| fits(estimate))?.algorithm;
        }
        of(best).cloned()
    }

    /// Half and twice as many processes.
    fn others(&self) -> [(usize, Option<Estimate>); 2] {
        let nodes = self.job.nodes;
        [nodes / 2, nodes.saturating_mul(2)].map(|nodes| (nodes, self.best(nodes)))
    }

    fn json(&self) -> Value {
        let Job { rows, cols, nonzeros, ref settings, nodes, precision, .. } = self.job;
        let others = self.others().map(|(nodes, best)| {
            let mut value = best.as_ref().map_or(Value::Null, record);
            if !value.is_null() {
                value["nodes"] = json!(nodes);
            }
            value
        });
        json!({
            "rows": rows, "cols": cols, "nonzeros": nonzeros, "bytes": self.job.bytes, "rank": settings.rank, "nodes": nodes,
            "precision": precision,
            "network": self.network.to_string(),
            "constants": self.known.file.as_ref().map(|file| file.to_string_lossy()),
            "sketched_iterations": self.job.sketched_iterations(),
            "samples": self.job.nonzeros.is_none() && self.job.pays_samples(&self.network, self.constants()),
            "methods": self.estimates(&self.job).iter().map(record).collect::<Vec<_>>(),
            "best": self.best(nodes).as_ref().map(record),
            "half": others[0],
            "twice": others[1],
        })
    }

    fn text(&self) -> Result<String> {
        let mut text = String::new();
        self.request_text(&mut text)?;
        self.methods_text(&mut text)?;
        if let Some(best) = self.best(self.job.nodes) {
            self.best_text(&mut text, &best)?;
            self.others_text(&mut text, &best)?;
        }
        Ok(text)
    }

    /// Describes the requested job.
    fn request_text(&self, text: &mut String) -> Result<()> {
        let Job { rows, cols, nonzeros, ref settings, nodes, precision, .. } = self.job;
        let entries = match nonzeros {
            Some(count) => format!("{count} nonzeros"),
            None if self.job.bytes => "dense bytes".into(),
            None => "dense".into(),
        };
        let numbers = json!(precision);
        writeln!(
            text,
            "{rows} x {cols}, {entries}, rank {}, {}, on {nodes} node{}, {}{}",
            settings.rank,
            numbers.as_str().unwrap_or_default(),
            if nodes == 1 { "" } else { "s" },
            self.network,
            self.assumed
        )?;
        writeln!(text, "by {}", self.known.words())?;
        writeln!(text)?;
        Ok(())
    }

    /// A line for each method.
    fn methods_text(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "method  grid       memory/process      sent/iteration       seconds/iteration = product + solve + gram + \
             sketch + latency + transfer"
        )?;
        for estimate in self.estimates(&self.job) {
            let parts: Vec<String> = estimate.parts.named().map(|(_, seconds)| digits(seconds)).to_vec();
            writeln!(
                text,
                "{:<7} {:<10} {:>13} {:>19} {:>22} = {}",
                name(estimate.algorithm),
                grid(&estimate),
                size(estimate.memory.most()),
                size(estimate.bytes),
                digits(estimate.parts.seconds()),
                parts.join(" + ")
            )?;
        }
        writeln!(text)?;
        Ok(())
    }

    /// The best method, and what limits it.
    fn best_text(&self, text: &mut String, best: &Estimate) -> Result<()> {
        let grid =
            if best.algorithm == Algorithm::Dsanls { String::new() } else { format!(" on {}", best.grid) };
        writeln!(
            text,
            "best         {}{grid} (about {} iterations of dsanls equal one of auto)",
            name(best.algorithm),
            self.job.sketched_iterations()
        )?;
        writeln!(
            text,
            "memory       {} for the matrix, {} for iterating, {} for saving the factors",
            size(best.memory.matrix),
            size(best.memory.iterating),
            size(best.memory.saving)
        )?;
        writeln!(text, "bottleneck   {}", words(best.parts.bottleneck()))?;
        Ok(())
    }

    /// Describes the estimates for other numbers of processes.
    fn others_text(&self, text: &mut String, best: &Estimate) -> Result<()> {
        for (other, there) in self.others() {
            let what = match there {
                _ if other == 0 => continue,
                None => "does not fit".to_string(),
                Some(there) => format!(
                    "{}, {} s per iteration ({}x the speed), {} per process, {} sent, bottleneck {}",
                    name(there.algorithm),
                    digits(there.parts.seconds()),
                    digits(best.parts.seconds() / there.parts.seconds()),
                    size(there.memory.most()),
                    size(there.bytes),
                    there.parts.bottleneck()
                ),
            };
            writeln!(text, "{:<12} {what}", format!("{other} node{}", if other == 1 { "" } else { "s" }))?;
        }
        Ok(())
    }
}

fn name(algorithm: Algorithm) -> String {
    json!(algorithm).as_str().unwrap_or_default().to_string()
}

fn grid(estimate: &Estimate) -> String {
    if estimate.algorithm == Algorithm::Dsanls { "-".into() } else { estimate.grid.to_string() }
}

fn words(part: &str) -> &'static str {
    match part {
        "product" => "product: multiplying with the matrix; use more processes or threads",
        "solve" => "solve: updating the factors; use more processes or threads, or a smaller k",
        "gram" => "gram: k x k matrices; use a smaller k",
        "sketch" => "sketch: drawing and applying sketches; use smaller ones",
        "latency" => "latency: messages on the network; use fewer processes with more threads",
        _ => {
            "transfer: bytes on the network; use a faster network, fewer processes with more threads, or dsanls"
        }
    }
}

/// Three digits.
fn digits(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 0.001 => {
            let places = 2 - value.log10().floor() as i32;
            format!("{value:.*}", places.max(0) as usize)
        }
        value => format!("{value:.2e}"),
    }
}

fn record(estimate: &Estimate) -> Value {
    let Estimate { algorithm, parts, bytes, memory, .. } = estimate;
    let seconds: serde_json::Map<String, Value> =
        parts.named().iter().map(|(name, seconds)| (name.to_string(), json!(seconds))).collect();
    json!({
        "method": algorithm,
        "grid": (*algorithm != Algorithm::Dsanls).then(|| estimate.grid.to_string()),
        "seconds": parts.seconds(),
        "parts": seconds,
        "bottleneck": parts.bottleneck(),
        "bytes_sent": bytes,
        "memory": {
            "matrix": memory.matrix, "iterating": memory.iterating, "saving": memory.saving, "most": memory.most(),
        },
    })
}
