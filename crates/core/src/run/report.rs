//! The report of a run: its phases, its error curve, the work of each rank, and why it ended.

use std::io::{self, Write};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::comm::Meter;
use crate::solver::Updated;

/// Seconds by phase. Gram matrices count as products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Before the first iteration: distributing M, its sums, the start values.
    #[serde(default)]
    pub start: f64,
    /// Drawing and applying sketches to factors.
    pub sketch: f64,
    /// Products with M, and Gram matrices.
    pub product: f64,
    /// Updating the factors.
    pub solve: f64,
    /// Collectives, waiting for slower ranks included.
    pub reduce: f64,
    /// Evaluating the error, its communication included.
    pub evaluate: f64,
    /// Waiting for blocks of a streamed matrix.
    #[serde(default)]
    pub read: f64,
}

impl Phases {
    pub(super) fn sketch<R>(&mut self, work: impl FnOnce() -> R) -> R {
        timed(&mut self.sketch, work)
    }

    pub(super) fn product<R>(&mut self, work: impl FnOnce() -> R) -> R {
        timed(&mut self.product, work)
    }

    pub(super) fn add(&mut self, updated: &Updated) {
        self.product += updated.product.as_secs_f64();
        self.solve += updated.solve.as_secs_f64();
    }
}

pub(super) fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let begin = Instant::now();
    let result = work();
    *seconds += begin.elapsed().as_secs_f64();
    result
}

/// One line of the error-over-time curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceLine {
    /// Iterations done.
    pub iteration: usize,
    /// Seconds of computing so far, without error evaluation.
    pub seconds: f64,
    /// Seconds on the second modelled network, the third, and so on.
    #[serde(default)]
    pub elsewhere: Vec<f64>,
    /// ‖M − U Vᵀ‖_F / ‖M‖_F, or the divergence over that of the best constant model.
    pub relative_error: f64,
    /// The loss without penalties.
    #[serde(default)]
    pub loss: f64,
    /// The error on held-out entries, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutError>,
    /// Bytes that each rank has handed to collectives so far, without error evaluation.
    pub bytes_sent: u64,
}

/// Writes `trace.csv`, the error curve, with a column of seconds for each network that was modelled.
pub fn write_trace(file: &mut dyn Write, trace: &[TraceLine], clock: &str) -> io::Result<()> {
    let others = trace.first().map_or(0, |line| line.elsewhere.len());
    let others: String = (2..others + 2).map(|network| format!(",{clock}_{network}")).collect();
    let held =
        if trace.iter().any(|line| line.held_out.is_some()) { ",heldout_loss,heldout_rmse" } else { "" };
    writeln!(file, "iteration,{clock},relative_error,bytes_sent,loss{held}{others}")?;
    for line in trace {
        let TraceLine { iteration, seconds, relative_error, loss, held_out, bytes_sent, elsewhere } = line;
        let held = held_out.map_or(String::new(), |held| format!(",{:e},{:e}", held.loss, held.rmse));
        let others: String = elsewhere.iter().map(|seconds| format!(",{seconds:.6}")).collect();
        writeln!(file, "{iteration},{seconds:.6},{relative_error:.9},{bytes_sent},{loss:e}{held}{others}")?;
    }
    Ok(())
}

/// The mean error on entries that were held out of the run, each weighted by the inverse of the probability
/// with which it was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOutError {
    /// The mean loss.
    #[serde(rename = "heldout_loss")]
    pub loss: f64,
    /// The root mean squared error.
    #[serde(rename = "heldout_rmse")]
    pub rmse: f64,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Stop {
    /// The maximum number of iterations was reached.
    Iterations,
    /// The relative change of the error was below the tolerance.
    Tolerance,
    /// The target error was reached.
    TargetError,
    /// The time limit was reached.
    TimeLimit,
    /// It was interrupted.
    Interrupted,
}

impl Stop {
    pub(super) const ALL: [Stop; 5] =
        [Stop::Iterations, Stop::Tolerance, Stop::TargetError, Stop::TimeLimit, Stop::Interrupted];
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What the method did: a short description, then a semicolon and details if there are any.
    #[serde(default)]
    pub plan: String,
    /// The seed of this run: with restarts, not always the first.
    pub seed: u64,
    /// Iterations done.
    pub iterations: usize,
    /// The final error.
    pub relative_error: f64,
    /// The final loss.
    #[serde(default)]
    pub loss: Option<f64>,
    /// The final error on held-out entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutError>,
    /// Seconds of computing, without error evaluation.
    pub seconds: f64,
    /// Why it ended.
    pub stopped_by: Stop,
    /// Iterations between two lines of the trace.
    pub trace_every: usize,
    /// Components of V that died and were redrawn, and when.
    pub redrawn: Vec<Redrawn>,
    /// Seconds by phase.
    pub phases: Phases,
    /// Bytes that each rank handed to collectives.
    pub bytes_sent: u64,
    /// Bytes handed to collectives for error evaluation, stopping and the start.
    pub bytes_evaluate: u64,
    /// The reports of all ranks; of a resumed run, since it was resumed.
    #[serde(default)]
    pub ranks: Vec<RankReport>,
    /// The curve.
    pub trace: Vec<TraceLine>,
}

/// The short description of a method: its description in [`Report::plan`] without the details after the first semicolon.
pub fn headline(plan: &str) -> &str {
    plan.split_once(';').map_or(plan, |(headline, _)| headline)
}

/// One rank's work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// Seconds of computing, without error evaluation.
    pub seconds: f64,
    /// Seconds by phase.
    pub phases: Phases,
    /// What the method handed to each collective.
    pub method: Meter,
    /// Collectives for error evaluation, stopping and the start.
    #[serde(rename = "aside")]
    pub overhead: Meter,
}

/// A component that was redrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redrawn {
    /// After this iteration.
    pub iteration: usize,
    /// Which component, before the final ordering.
    pub component: usize,
}
