//! The fourth step: the content of `run.json`, as far as the run knows it. The caller adds how the file was read,
//! its hash and the warnings.

use super::run::Finished;
use crate::Real;
use crate::partition::Access;
use crate::run::record::{
    Clock, FactorizationRecord, InputRecord, MachineRecord, MethodRecord, ReadingRecord, RunSummary,
};

/// The record of a run.
pub fn record<T: Real>(finished: &Finished<T>) -> FactorizationRecord {
    let Finished { facts, plan, result, streamed, .. } = finished;
    let (settings, machine, report) = (&plan.settings, &plan.machine, &result.report);
    let networks: Vec<String> = machine.networks.iter().map(ToString::to_string).collect();
    let clock = if networks.is_empty() { Clock::Real } else { Clock::Virtual };
    let arranged = settings.access() == Access::Whole;
    FactorizationRecord {
        summary: RunSummary::new(report, &result.errors, plan.describe(&report.plan), clock),
        method: MethodRecord::new(plan.asked, settings, facts.rows, facts.cols, report),
        reading: ReadingRecord::default(),
        machine: MachineRecord {
            precision: T::PRECISION,
            nodes: machine.nodes,
            threads: machine.threads,
            memory: plan.memory_limit,
            network: Some(networks).filter(|networks| !networks.is_empty()),
            grid: arranged.then(|| plan.grid.to_string()),
            transport: None,
            reduction: None,
        },
        records: None,
        tsv: false,
        input: InputRecord {
            format: facts.format.clone(),
            rows: facts.rows,
            cols: facts.cols,
            stored: facts.stored,
            ..InputRecord::default()
        },
        streamed: streamed.clone(),
        image: None,
        frames: Vec::new(),
    }
}
