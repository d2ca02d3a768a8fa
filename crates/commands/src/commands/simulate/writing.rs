//! The results of a simulation: factors, records, audit and report.

use anyhow::Result;
use partwise::Real;
use partwise::io;
use partwise::run::record::{
    CostRecord, PartyResult, ProtocolSettings, RUN_FILE, RunKind, RunRecord, SentRecord, SharedFactor,
    SimulatedEnd, SimulatedParty, SimulationRecord, TranscriptRecord, Transport, name_of,
};
use partwise_secure::audit::{Audit, Transcript};
use partwise_secure::factors;
use partwise_secure::protocol::Stop;
use partwise_secure::{PartyOutcome, SimulationOutcome};

use super::super::audit;
use super::dealing::Dealt;
use crate::args::SimulateArgs;
use crate::console::Console;
use crate::{input, output, report};

pub(super) fn record<T: Real>(
    args: &SimulateArgs,
    dealt: &Dealt<()>,
    outcome: &SimulationOutcome<T>,
    transport: Option<Transport>,
) -> Result<RunRecord> {
    let Dealt { plan, names, source, image, warnings, .. } = dealt;
    let parties = outcome.parties.iter().zip(1..).map(|(outcome, party)| {
        let end = outcome.as_ref().map_or(SimulatedEnd::Left { left: true }, stayed);
        SimulatedParty { party, name: names.get(party - 1).cloned(), end }
    });
    let transcripts = outcome.transcripts.iter().map(|transcript| TranscriptRecord {
        parties: transcript.parties.clone(),
        sums: transcript.sums,
        hash: transcript.hash.clone(),
        agreed: transcript.agreed,
    });
    let cost = outcome.cost;
    let record = SimulationRecord {
        rounds: outcome.rounds,
        max_rounds: plan.settings.rounds,
        attempts: outcome.attempts.clone(),
        stopped_by: name_of(&outcome.stopped_by),
        seconds: outcome.seconds,
        parties: parties.collect(),
        groups: outcome.groups.clone(),
        cost: CostRecord {
            wall_seconds: cost.wall_seconds,
            wall_seconds_per_round: cost.wall_seconds_per_round,
            masking_seconds: cost.masking_seconds,
            bytes_per_party: cost.bytes_per_party,
            bytes_of_coordinator: cost.bytes_of_coordinator,
            sums: cost.sums,
            round_trips_per_sum: cost.round_trips_per_sum,
        },
        transcripts: transcripts.collect(),
        records: args.records,
        shared_factor: SharedFactor::of(args.records),
        split: args.split.clone(),
        speeds: args.speeds.clone(),
        lose: args.lose,
        holdout: dealt.held_out.iter().map(Vec::len).sum(),
        network: plan.line.to_string(),
        transpose: args.read.transpose,
        precision: T::PRECISION,
        transport,
        input: source.clone(),
        image: *image,
        warnings: warnings.clone(),
        recorded: args
            .record
            .then(|| audit::recorded(args, (&dealt.records, &dealt.held_out), dealt.people.as_deref()))
            .flatten(),
        settings: ProtocolSettings::new(&plan.settings)?.without_rounds(),
    };
    Ok(RunRecord::new(outcome.relative_error, RunKind::Simulation(Box::new(record))))
}

/// The record of a party that stayed to the end.
pub(super) fn stayed<T>(party: &PartyOutcome<T>) -> SimulatedEnd {
    let sent = party.sent.iter().map(|sent| SentRecord {
        kind: sent.kind.clone(),
        count: sent.count,
        bytes: sent.bytes,
    });
    let (records, relative_error) = (party.records, party.relative_error);
    SimulatedEnd::Stayed(PartyResult { records, relative_error, sent: sent.collect() })
}

/// The files that a party would have.
pub(super) fn write_party<T: Real>(
    staging: &output::Staging,
    args: &SimulateArgs,
    number: usize,
    party: &PartyOutcome<T>,
    dealt: &Dealt<()>,
) -> Result<()> {
    let folder = format!("{}{number}", output::PARTY);
    let (u, v) = factors::by_side(args.records, (party.records, &party.v), (dealt.features, &party.u));
    for (name, (rows, factor)) in [("U.npy", u), ("V.npy", v)] {
        staging.write(&format!("{folder}/{name}"), |file| io::npy::write(file, rows, args.rank, factor))?;
    }
    // The names of a party's records are only in its own folder.
    let own = dealt.record_labels.as_ref().map(|labels| -> Vec<String> {
        dealt.records[number - 1].iter().map(|&record| labels[record].clone()).collect()
    });
    let (rows, cols) = factors::by_side(args.records, own.as_deref(), dealt.labels.as_deref());
    for (name, labels) in [("rows.txt", rows), ("columns.txt", cols)] {
        if let Some(labels) = labels {
            staging.write(&format!("{folder}/{name}"), |file| io::labels::write(file, labels))?;
        }
    }
    Ok(())
}

pub(super) fn write_run<T>(
    staging: &output::Staging,
    dealt: &Dealt<()>,
    outcome: &SimulationOutcome<T>,
    record: &RunRecord,
) -> Result<()> {
    if let Some(labels) = &dealt.labels {
        staging.write("features.txt", |file| io::labels::write(file, labels))?;
    }
    staging.write("trace.csv", |file| {
        writeln!(file, "round,seconds,relative_error,bytes")?;
        for line in &outcome.trace {
            writeln!(file, "{},{:.6},{:.9},{}", line.round, line.seconds, line.relative_error, line.bytes)?;
        }
        Ok(())
    })?;
    staging.write(RUN_FILE, |file| record.write(file))
}

pub(super) fn write_audit<T>(
    staging: &output::Staging,
    outcome: &SimulationOutcome<T>,
    transcript: Option<&Transcript>,
    audit: Option<&Audit>,
) -> Result<()> {
    if let Some(transcript) = transcript {
        staging.write(output::TRANSCRIPT, |file| transcript.write(file))?;
    }
    let Some(audit) = audit else { return Ok(()) };
    staging.write(output::AUDIT, |file| audit::write(file, audit))?;
    for ((own, party), stayed) in audit.owners.iter().zip(1..).zip(&outcome.parties) {
        if stayed.is_some() {
            let name = format!("{}{party}/{}", output::PARTY, output::INDIVIDUALS);
            staging.write(&name, |file| audit::write(file, own))?;
        }
    }
    Ok(())
}

pub(super) fn conclude<T>(
    args: &SimulateArgs,
    console: Console,
    outcome: &SimulationOutcome<T>,
    record: &RunRecord,
) -> Result<()> {
    if args.json {
        return console.answer(&serde_json::to_string(record)?);
    }
    if args.quiet {
        return Ok(());
    }
    let why = match outcome.stopped_by {
        Stop::Rounds => "maximum number of rounds",
        Stop::Tolerance => "converged",
        Stop::LeakBudget => "another round would reveal a record",
    };
    let clock = if record.transport().is_none() { " on the simulated clock" } else { "" };
    for (party, number) in outcome.parties.iter().zip(1..) {
        if party.is_none() {
            console.tell(&format!("party {number} left; the others continued"));
        }
    }
    if let &[first, second] = &outcome.attempts[..] {
        console.tell(&format!(
            "repeated without it: relative error {first:.6} in the first attempt, {second:.6} in the second; the \
             better one is kept"
        ));
    }
    console.tell(&format!(
        "relative error {:.6} after {} rounds and {:.2} s{clock} ({why})",
        outcome.relative_error, outcome.rounds, outcome.seconds
    ));
    let cost = outcome.cost;
    console.tell(&format!(
        "{} sent and received per party, in {:.0} sums of {:.1} round trips; {:.2} s on this machine, of which \
         masking {:.2} s",
        input::size(cost.bytes_per_party),
        cost.sums,
        cost.round_trips_per_sum,
        cost.wall_seconds,
        cost.masking_seconds
    ));
    console.tell(&report::where_it_is(&args.out));
    Ok(())
}
