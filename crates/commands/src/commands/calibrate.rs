//! `partwise calibrate`: measures the machine, and under `mpirun` the network, and stores the constants.

use std::fmt::Write;

use anyhow::{Result, anyhow, bail};
use partwise::comm::{Comm, LocalComm, Network};
use partwise::plan::{Constants, Effort, calibrate};

use super::cluster::agree;
use crate::args::CalibrateArgs;
use crate::context::Context;
use crate::{constants, launch, machine};

pub fn run(args: &CalibrateArgs, context: &Context, comm: Option<&dyn Comm>) -> Result<()> {
    match comm {
        Some(comm) => run_on(args, context, comm),
        None => LocalComm::group(1).iter().try_for_each(|comm| run_on(args, context, comm)),
    }
}

fn run_on(args: &CalibrateArgs, context: &Context, comm: &dyn Comm) -> Result<()> {
    let out = agree(comm, place(args, comm.rank() == 0))?;
    let local = launch::launched().map_or(1, |launched| launched.local);
    let threads = args.threads.unwrap_or((machine::cores() / local).max(1));
    agree(comm, if threads == 0 { Err(anyhow!("--threads: 0 is too few; give 1 or more")) } else { Ok(()) })?;
    let effort = if args.quick { Effort { repeats: 1, divisor: 16 } } else { Effort::FULL };
    let measured = calibrate(comm, threads, effort)?;
    let written = if comm.rank() == 0 { write(args, context, &out, &measured) } else { Ok(()) };
    agree(comm, written)
}

/// The file to write; only process 0 checks it.
fn place(args: &CalibrateArgs, chief: bool) -> Result<std::path::PathBuf> {
    let no_home = || anyhow!("--out: there is no home folder for the constants; choose a file with --out");
    let out = args.out.clone().or_else(constants::usual).ok_or_else(no_home)?;
    if chief && out.exists() && !args.force {
        bail!("{} already exists; replace it with --force, or choose another file with --out", out.display());
    }
    Ok(out)
}

fn write(args: &CalibrateArgs, context: &Context, out: &std::path::Path, measured: &Constants) -> Result<()> {
    if !measured.is_plausible() {
        bail!("the measured times are implausible; try again when the machine is idle");
    }
    if let (None, Some(folder)) = (&args.out, out.parent()) {
        std::fs::create_dir_all(folder)
            .map_err(|error| anyhow!("{}: {error}; choose another file with --out", folder.display()))?;
    }
    let text = serde_json::to_string_pretty(measured)?;
    context.outputs.write_whole(out, "--out", |file| writeln!(file, "{text}"))?;
    if args.json {
        return context.console.answer(&text);
    }
    context.console.answer(&summary(measured, &format!("written to {}", out.display()))?)
}

/// The constants as rates.
fn summary(measured: &Constants, end: &str) -> Result<String> {
    let Constants { ranks, threads, ks, .. } = measured;
    let mut text = String::new();
    writeln!(text, "{ranks} rank{} of {threads} thread{}, f32", plural(*ranks), plural(*threads))?;
    let mut line = |name: &str, unit: &str, value: &dyn Fn(usize) -> f64| {
        let values: String = (0..ks.len()).map(|place| format!("{:>9.3}", value(place))).collect();
        writeln!(text, "{name:<34}{values}  {unit}")
    };
    line("k", "", &|place| ks[place])?;
    let rate = |work: f64, seconds: f64| work / seconds.max(1e-15) * 1e-9;
    for (name, table) in [
        ("dense product, many rows", &measured.dense_tall),
        ("dense product, many columns", &measured.dense_wide),
        ("dense product, sampled columns", &measured.dense_sampled),
    ] {
        line(name, "GFLOP/s", &|place| rate(2.0 * ks[place], table[place]))?;
    }
    for (name, table) in
        [("sparse product", &measured.gather), ("sparse product, sampled", &measured.scatter)]
    {
        let last = measured.footprints.len() - 1;
        line(&format!("{name}, in cache"), "GFLOP/s", &|place| rate(2.0 * ks[place], table[place][0]))?;
        line(&format!("{name}, in memory"), "GFLOP/s", &|place| rate(2.0 * ks[place], table[place][last]))?;
    }
    line("sweep", "GFLOP/s", &|place| rate(2.0 * ks[place] * ks[place], measured.sweep[place]))?;
    line("Gram matrix", "GFLOP/s", &|place| rate(ks[place] * ks[place], measured.gram[place]))?;
    writeln!(text, "memory, copied: {:.2} GB/s", 1e-9 / measured.copy)?;
    if let Some(network) = measured.network() {
        let Network { latency, bandwidth, .. } = network;
        writeln!(text, "network: {:.2} us, {:.3} GB/s", 1e6 * latency, 1e-9 * bandwidth)?;
    }
    writeln!(text, "{end}")?;
    Ok(text)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
