//! The third step: executes a plan.

use super::finish::{Again, finish};
use super::open::{Data, Facts};
use super::plan::{Planned, RunPlan};
use super::request::Finish;
use crate::Real;
use crate::error::Result;
use crate::run::record::StreamedRecord;
use crate::run::{self, Factorization, Monitor, Task};

/// A finished run: its input, its plan and its result.
#[derive(Clone, Debug)]
pub struct Finished<T> {
    /// What was known about the matrix.
    pub facts: Facts,
    /// The plan.
    pub plan: RunPlan,
    /// Factors, report, and the errors of all restarts.
    pub result: Factorization<T>,
    /// Whether the run began from given factors, whose components keep their places.
    pub given: bool,
    /// How the matrix was read, if it was streamed.
    pub streamed: Option<StreamedRecord>,
}

/// Runs a plan. Only the monitor of rank 0 is called; every rank returns the whole result.
pub fn run<T: Real>(planned: Planned<'_, T>, monitor: &mut dyn Monitor<T>) -> Result<Finished<T>> {
    let Planned { facts, plan, data, start } = planned;
    let given = start.factors.is_some();
    // The finish may need the matrix after the run has taken it.
    let again = match (plan.finish, &data) {
        (Finish::AsIterated, _) => None,
        (Finish::ExactRows, Data::Whole(matrix)) => Some(Again::Shared(Box::new(matrix.clone()))),
        (Finish::ExactRows, Data::Shared(shared)) => Some(Again::Shared(Box::new(*shared))),
        (Finish::ExactRows, Data::Observed(observed)) => Some(Again::Observed(Box::new(observed.clone()))),
        (Finish::ExactRows, _) => None,
    };
    let task = Task { settings: &plan.settings, from: start.from(), monitor };
    let mut streamed = None;
    let mut result = match data {
        Data::Observed(observed) => run::on_observed(&observed, &plan.machine, task)?,
        Data::Whole(matrix) => run::on_workers(matrix, plan.grid, &plan.machine, task)?,
        Data::Shared(shared) => {
            run::on_workers(shared.matrix(&plan.machine.cancel), plan.grid, &plan.machine, task)?
        }
        Data::Streamed(file) => {
            let result = run::on_stream(&file, &plan.machine, task)?;
            streamed = Some(StreamedRecord::from(&*file));
            result
        }
        Data::Part(part) => run::on_comm(part.comm, &part.shard, &plan.machine, task)?,
    };
    // Components of given factors keep their places, so that they can be compared.
    if !given {
        result.factors.order_by_energy();
    }
    if let Some(matrix) = again {
        finish(&matrix, &plan, &mut result)?;
    }
    Ok(Finished { facts, plan, result, given, streamed })
}
