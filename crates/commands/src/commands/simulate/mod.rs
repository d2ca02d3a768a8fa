//! `partwise simulate`: runs a federation on one machine, in one process or as processes of an MPI job.

mod dealing;
mod writing;

use std::path::Path;

use anyhow::Result;
use partwise::comm::{Comm, Tag};
use partwise::error::Error as CoreError;
use partwise::run::record::Transport;
use partwise::{Precision, Real};
use partwise_secure::audit::{Recording, Transcript};
use partwise_secure::link::Recorder;
use partwise_secure::split;
use partwise_secure::{DataSizes, Error, OnRank, run_on_rank_recorded, simulate, simulate_recorded};

use dealing::{introduce, read};
use writing::{conclude, record, write_audit, write_party, write_run};

use super::audit::{self, Allowed};
use super::cluster::{Agreed, agree, local, same_file};
use crate::args::SimulateArgs;
use crate::context::Context;
use crate::{flags, input, output, report};

pub fn run(args: &SimulateArgs, context: &Context, comm: Option<&dyn Comm>) -> Result<()> {
    match (args.precision, comm) {
        (Precision::F32, None) => alone::<f32>(args, context),
        (Precision::F64, None) => alone::<f64>(args, context),
        (Precision::F32, Some(comm)) => on_ranks::<f32>(args, context, comm),
        (Precision::F64, Some(comm)) => on_ranks::<f64>(args, context, comm),
    }
}

/// Runs all parties in this process.
fn alone<T: Real>(args: &SimulateArgs, context: &Context) -> Result<()> {
    output::check_private_folder(&args.out, args.force)?;
    let (matrix, dealt) = read::<T>(args, context)?.apart();
    // The parts, each by row and by column.
    input::check_memory("the simulation", matrix.bytes().saturating_mul(4))?;
    let parts = split::parts(&matrix, &dealt.records)?;
    let recording = dealt.recording(args)?;
    // An audit needs the records.
    let matrix = args.audit.then_some(matrix);
    introduce(args, context.console, &dealt);
    let outcome = match &recording {
        Some(recording) => simulate_recorded(parts, &dealt.plan, recording)?,
        None => simulate(parts, &dealt.plan)?,
    };
    let record = record(args, &dealt, &outcome, None)?;
    let transcript = recording.map(Recording::finish);
    let u = outcome.parties.iter().flatten().next().map(|party| &party.u[..]).unwrap_or_default();
    let audit = dealt.audit(matrix.as_ref(), transcript.as_ref(), u)?;
    let staging = context.outputs.private_folder(&args.out)?;
    for (party, number) in outcome.parties.iter().zip(1..) {
        if let Some(party) = party {
            write_party(&staging, args, number, party, &dealt)?;
        }
    }
    write_run(&staging, &dealt, &outcome, &record)?;
    write_audit(&staging, &outcome, transcript.filter(|_| args.record).as_ref(), audit.as_ref())?;
    staging.commit()?;
    report::after_run(context, &args.out, !args.no_report);
    conclude(args, context.console, &outcome, &record)?;
    let allowed = Allowed { auc: args.max_auc, record_cosine: args.max_record_cosine };
    audit.map_or(Ok(()), |audit| audit::conclude(context, &audit, allowed, args.quiet || args.json))
}

/// Runs the coordinator or one party as a process of an MPI job: each reads the file and keeps its own records,
/// each party writes its own factors, and process 0 writes the rest.
fn on_ranks<T: Real>(args: &SimulateArgs, context: &Context, comm: &dyn Comm) -> Result<()> {
    let chief = comm.rank() == 0;
    if args.network.is_some() {
        return Err(Agreed("--network: under MPI clocks are real; leave it out".into()).into());
    }
    agree(comm, if chief { output::check_private_folder(&args.out, args.force) } else { Ok(()) })?;
    let (matrix, dealt) = agree(comm, read::<T>(args, context))?.apart();
    agree(comm, same_file(comm, &serde_json::to_vec(&dealt.source)?, &args.file))?;
    let counts = dealt.counts();
    agree(comm, dealt.plan.check(&counts, dealt.features).map_err(Into::into))?;
    let own = comm.rank().checked_sub(1).and_then(|party| dealt.records.get(party..=party));
    let part = own.map(|own| split::parts(&matrix, own)).transpose();
    let part = agree(comm, part.map_err(Into::into))?.and_then(|mut parts| parts.pop());
    let recording = agree(comm, dealt.recording(args))?;
    let matrix = (chief && args.audit).then_some(matrix);
    introduce(args, context.console, &dealt);
    let recorder: &dyn Recorder = match &recording {
        Some(recording) => recording,
        None => &(),
    };
    let sizes = DataSizes { records: &counts, features: dealt.features };
    let ran = run_on_rank_recorded(comm, part, &sizes, &dealt.plan, recorder);
    let ran = ran.map_err(|error| match error {
        Error::Core(error @ (CoreError::Transport { .. } | CoreError::RankLost { .. })) => local(comm, error),
        // Every process has the same error.
        error => Agreed(error.wording().named(flags::name)).into(),
    })?;

    let recorded = recording.map(Recording::finish);
    let recorded =
        recorded.map(|own| gather(comm, own, &ran)).transpose().map_err(|error| local(comm, error))?;
    let (transcript, u) = recorded.unzip();
    let audit = dealt.audit(matrix.as_ref(), transcript.as_ref(), &u.unwrap_or_default());
    let audit = agree(comm, audit)?;

    let staging =
        agree(comm, if chief { context.outputs.private_folder(&args.out).map(Some) } else { Ok(None) })?;
    let path =
        staging.as_ref().map(|staging| staging.path().to_string_lossy().into_owned()).unwrap_or_default();
    let path = String::from_utf8_lossy(&comm.broadcast(path.into_bytes())?).into_owned();
    let staging = staging.unwrap_or_else(|| context.outputs.folder_of_another(path.into(), &args.out));
    let written = match ran {
        OnRank::Party(party) => write_party(&staging, args, comm.rank(), &party, &dealt).map(|()| None),
        OnRank::Coordinator(outcome) => {
            record(args, &dealt, &outcome, Some(Transport::Mpi)).and_then(|record| {
                write_run(&staging, &dealt, &outcome, &record)?;
                write_audit(&staging, &outcome, transcript.as_ref().filter(|_| args.record), audit.as_ref())?;
                Ok(Some((outcome, record)))
            })
        }
    };
    let written = agree(comm, written)?;
    agree(comm, if chief { staging.commit() } else { Ok(()) })?;
    written.map_or(Ok(()), |(outcome, record)| {
        report::after_run(context, &args.out, !args.no_report);
        conclude(args, context.console, &outcome, &record)
    })?;
    let allowed = Allowed { auc: args.max_auc, record_cosine: args.max_record_cosine };
    audit.map_or(Ok(()), |audit| audit::conclude(context, &audit, allowed, args.quiet || args.json))
}

/// Gathers the recorded messages and the final U on process 0; the other processes keep their own.
fn gather<T: Real>(
    comm: &dyn Comm,
    mut own: Transcript,
    ran: &OnRank<T>,
) -> Result<(Transcript, Vec<T>), CoreError> {
    if let OnRank::Party(party) = ran {
        let mut bytes = Vec::new();
        own.write(&mut bytes).map_err(CoreError::io(Path::new(output::TRANSCRIPT)))?;
        comm.send(0, Tag::Gather, bytes)?;
        if comm.rank() == 1 {
            let u = party.u.iter().flat_map(|value| value.to_f64().to_le_bytes()).collect();
            comm.send(0, Tag::Gather, u)?;
        }
        return Ok((own, Vec::new()));
    }
    let mut u = Vec::new();
    for party in 1..comm.size() {
        let bytes = comm.receive(party, Tag::Gather)?;
        let theirs = Transcript::read(&mut &bytes[..]).map_err(|problem| {
            CoreError::parameter("ranks", format!("rank {party}: {problem}; run again"))
        })?;
        own.join(theirs);
        if party == 1 {
            let bytes = comm.receive(party, Tag::Gather)?;
            let (numbers, _) = bytes.as_chunks();
            u = numbers.iter().map(|number| T::from_f64(f64::from_le_bytes(*number))).collect();
        }
    }
    Ok((own, u))
}
