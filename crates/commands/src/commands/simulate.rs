//! `partwise simulate`: runs a federation on one machine, in one process or as processes of an MPI job.

use std::path::Path;

use anyhow::{Result, bail};
use partwise::comm::{Comm, Tag};
use partwise::error::Error as CoreError;
use partwise::io::{self, ImageShape, ImageSide, Input};
use partwise::matrix::Matrix;
use partwise::run::record::{
    CostRecord, InputRecord, PartyResult, ProtocolSettings, RUN_FILE, RunKind, RunRecord, SentRecord,
    SharedFactor, SimulatedEnd, SimulatedParty, SimulationRecord, TranscriptRecord, Transport, name_of,
};
use partwise::run::{Amount, Side};
use partwise::{Precision, Real};
use partwise_secure::audit::{Audit, Evidence, Recording, Transcript};
use partwise_secure::link::Recorder;
use partwise_secure::net::DEFAULT_WAN;
use partwise_secure::protocol::{Aggregation, Stop};
use partwise_secure::split::{self, Split};
use partwise_secure::{
    DataSizes, Error, OnRank, PartyOutcome, Plan, Safeguards, SimulationOutcome, Vanishing,
    run_on_rank_recorded, simulate, simulate_recorded,
};
use partwise_secure::{factors, risk};

use super::audit::{self, Allowed};
use super::cluster::{Agreed, agree, local, same_file};
use crate::args::SimulateArgs;
use crate::console::Console;
use crate::context::Context;
use crate::folder::Names;
use crate::warnings::{self, Warnings};
use crate::{flags, input, output, report};

pub fn run(args: &SimulateArgs, context: &Context, comm: Option<&dyn Comm>) -> Result<()> {
    match (args.precision, comm) {
        (Precision::F32, None) => alone::<f32>(args, context),
        (Precision::F64, None) => alone::<f64>(args, context),
        (Precision::F32, Some(comm)) => on_ranks::<f32>(args, context, comm),
        (Precision::F64, Some(comm)) => on_ranks::<f64>(args, context, comm),
    }
}

/// The input and its division between the parties.
struct Dealt<M> {
    matrix: M,
    features: usize,
    /// The names of the parties, if a file gives them.
    names: Vec<String>,
    records: Vec<Vec<usize>>,
    /// Held-out records, by the party that would have had them.
    held_out: Vec<Vec<usize>>,
    /// The number of each record's person, if people have several.
    people: Option<Vec<usize>>,
    plan: Plan,
    /// The input as the record describes it.
    source: InputRecord,
    /// The names of the features, and the image size of a record.
    labels: Option<Vec<String>>,
    /// The names of the records, which each party keeps to itself.
    record_labels: Option<Vec<String>>,
    image: Option<ImageShape>,
    warnings: Vec<String>,
}

impl<M> Dealt<M> {
    fn counts(&self) -> Vec<usize> {
        self.records.iter().map(Vec::len).collect()
    }

    /// The recorder of messages, if they are kept.
    fn recording(&self, args: &SimulateArgs) -> Result<Option<Recording>> {
        if !args.audit && !args.record {
            return Ok(None);
        }
        audit::check_memory(&self.plan.settings, self.records.len(), self.features)?;
        Ok(Some(Recording::default()))
    }

    /// The audit, if there are held-out records to compare with.
    fn audit<T: Real>(
        &self,
        matrix: Option<&Matrix<T>>,
        transcript: Option<&Transcript>,
        u: &[T],
    ) -> Result<Option<Audit>> {
        let (Some(matrix), Some(transcript)) = (matrix, transcript) else { return Ok(None) };
        let (settings, dealt, held_out) = (&self.plan.settings, &self.records[..], &self.held_out[..]);
        let people = self.people.as_deref();
        // In the additional runs no party disconnects.
        let plan = Plan { loses: None, ..self.plan.clone() };
        let plan = Some(&plan);
        audit::of(&Evidence { transcript, settings, matrix, dealt, held_out, people, plan, u }).map(Some)
    }

    /// The matrix and what belongs to it.
    fn apart(self) -> (M, Dealt<()>) {
        let Dealt {
            matrix,
            features,
            names,
            records,
            held_out,
            people,
            plan,
            source,
            labels,
            record_labels,
            image,
            warnings,
        } = self;
        let rest = Dealt {
            matrix: (),
            features,
            names,
            records,
            held_out,
            people,
            plan,
            source,
            labels,
            record_labels,
            image,
            warnings,
        };
        (matrix, rest)
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

fn read<T: Real>(args: &SimulateArgs, context: &Context) -> Result<Dealt<Matrix<T>>> {
    let settings = args.settings();
    // Errors that do not depend on the matrix are reported before it is read.
    settings.check()?;
    let read = input::read::<T>(&args.file, &args.read, Some(&args.labels))?;
    let Input { matrix, row_labels, col_labels, format, image, assumptions, .. } = read;
    input::check_range(&args.file, &matrix)?;
    let image = input::picture(&args.shape, matrix.shape(), image, args.read.images, Some(args.records))?;
    // Said only once nothing is refused any more.
    let mut warnings = Warnings::new(context.console, true);
    warnings.assumptions(&args.file, &assumptions);
    let of_lines = Names { rows: row_labels.as_deref(), cols: col_labels.as_deref() };
    warnings.dominant(warnings::dominant_of(&matrix), of_lines);
    let warnings = warnings.into_sentences();
    let (record_labels, labels) = factors::by_side(args.records, row_labels, col_labels);
    let side = match args.records {
        Side::Rows => ImageSide::Rows,
        Side::Columns => ImageSide::Columns,
    };
    let image = image.filter(|shape| shape.images == side);
    let source = InputRecord {
        name: args.file.file_name().map(|name| name.to_string_lossy().into_owned()),
        bytes: input::bytes(&args.file),
        sha256: input::sha256(&args.file)?,
        format,
        rows: matrix.rows(),
        cols: matrix.cols(),
        stored: matrix.stored(),
    };
    let matrix = match args.records {
        Side::Rows => matrix,
        Side::Columns => matrix.into_transpose(),
    };
    let people = args.person.as_ref().map(|path| input::people(path, matrix.rows())).transpose()?;
    let (kept, held_out) = hold_out(args, matrix.rows(), people.as_deref())?;
    let (names, records, held_out) = deal(args, matrix.rows(), &kept, &held_out)?;
    let line = args.network.unwrap_or(DEFAULT_WAN);
    let loses = args.lose.map(|(party, sums)| Vanishing { party, sums });
    let safeguards = if args.safeguards { Safeguards::default() } else { Safeguards::of_sums() };
    let plan = Plan { slowness: args.speeds.clone(), line, loses, safeguards, ..Plan::new(settings) };
    let features = matrix.cols();
    Ok(Dealt {
        features,
        matrix,
        names,
        records,
        held_out,
        people,
        plan,
        source,
        labels,
        record_labels,
        image,
        warnings,
    })
}

/// Prints what users should know before the run starts.
fn introduce<M>(args: &SimulateArgs, console: Console, dealt: &Dealt<M>) {
    if !args.quiet {
        dealt.warnings.iter().for_each(|sentence| console.warn(&format!("warning: {sentence}")));
        warn(console, &dealt.plan, &dealt.counts(), dealt.features);
    }
    if !args.quiet && !args.json {
        let counts = dealt.counts();
        let InputRecord { rows, cols, format, .. } = &dealt.source;
        console.tell(&format!("{}: {rows} x {cols}, {format}", args.file.display()));
        console.tell(&format!(
            "{} parties with {} to {} records and {} features",
            counts.len(),
            counts.iter().min().unwrap_or(&0),
            counts.iter().max().unwrap_or(&0),
            dealt.features
        ));
        let settings = &dealt.plan.settings;
        let opened = settings.opened_vectors(1);
        console.tell(&format!(
            "sums open at most {opened} vectors of {} numbers, {:.1} per record",
            dealt.features,
            opened as f64 / counts.iter().sum::<usize>().max(1) as f64
        ));
    }
}

/// The records of the parties, and the held-out ones.
fn hold_out(
    args: &SimulateArgs,
    records: usize,
    people: Option<&[usize]>,
) -> Result<(Vec<usize>, Vec<usize>)> {
    let asked = args.holdout.or((args.audit || args.record).then_some(audit::HOLDOUT));
    let count = match asked {
        None => 0,
        Some(Amount::Count(count)) => count,
        Some(Amount::Share(share)) => ((share * records as f64).round() as usize).max(1),
    };
    if count >= records && count > 0 {
        bail!("--holdout: holding out {count} of {records} records leaves none for the parties; give fewer");
    }
    let Some(people) = people else { return Ok(split::hold_out(records, count, args.seed)) };
    let (kept, held) = split::hold_out_people(people, count, args.seed);
    if kept.is_empty() {
        bail!(
            "--holdout: holding out whole people until {count} records are held out leaves none for the \
         parties; give fewer"
        );
    }
    Ok((kept, held))
}

/// The parties' names, if a file gives them, the records that each keeps, and the held-out records of its kind.
type Hands = (Vec<String>, Vec<Vec<usize>>, Vec<Vec<usize>>);

fn deal(args: &SimulateArgs, records: usize, kept: &[usize], held_out: &[usize]) -> Result<Hands> {
    let mut by_name = None;
    let (names, dealt) = match (args.split.parse::<Split>(), args.parties) {
        (Ok(_), None) => {
            bail!("--parties: the number of parties is missing; give it, or a file with --split")
        }
        (Ok(split), Some(parties)) => {
            if !(2..=255).contains(&parties) {
                bail!("--parties: {parties} is out of range; give 2 to 255");
            }
            (Vec::new(), split.deal(kept.len(), parties))
        }
        (Err(problem), _) if !Path::new(&args.split).exists() => {
            bail!("--split: {problem}; check {}", args.split)
        }
        (Err(_), _) => {
            let all = io::labels::read(Path::new(&args.split), records)?;
            let names: Vec<String> = kept.iter().map(|&record| all[record].clone()).collect();
            let (names, dealt) = split::by_name(&names);
            let of = |name: &String| -> Vec<usize> {
                held_out.iter().copied().filter(|&record| all[record] == *name).collect()
            };
            by_name = Some(names.iter().map(of).collect());
            (names, dealt)
        }
    };
    let dealt: Vec<Vec<usize>> =
        dealt.into_iter().map(|places| places.into_iter().map(|place| kept[place]).collect()).collect();
    if let Some(parties) = args.parties.filter(|&parties| parties != dealt.len()) {
        bail!(
            "--parties: {parties} was given, but {} names {}; leave one of them out",
            args.split,
            dealt.len()
        );
    }
    let held_out = by_name.unwrap_or_else(|| split::by_nearest_party(&dealt, held_out));
    Ok((names, dealt, held_out))
}

/// Prints what users should know before the run starts.
fn warn(console: Console, plan: &Plan, records: &[usize], features: usize) {
    let (settings, parties) = (&plan.settings, records.len());
    let hidden = risk::hidden(settings, records);
    // Below half the number of features the run is refused or was accepted.
    if settings.aggregation == Aggregation::Secure && (risk::few(features)..2 * features).contains(&hidden) {
        console.warn(&format!(
            "note: sums cover {hidden} records without those of {} colluding, for {features} features; below two \
             records per feature they can reveal membership, which --audit measures",
            settings.colluders
        ));
    }
    if settings.aggregation == Aggregation::Plain {
        console.warn(
            "warning: without masks the coordinator sees what every party contributes, which reveals much about its \
             records; without --aggregation plain it sees only sums",
        );
    } else if parties == 3 {
        console.warn("note: three parties tolerate no dropout, because a sum of two is not opened");
    }
    let one_group = parties < 2 * (settings.colluders + 2).max(3);
    if settings.protocol.is_asynchronous() && settings.aggregation == Aggregation::Secure && one_group {
        console
            .warn("note: with fewer than six parties there is one group, whose members wait for the slowest");
    }
}

fn record<T: Real>(
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
fn stayed<T>(party: &PartyOutcome<T>) -> SimulatedEnd {
    let sent = party.sent.iter().map(|sent| SentRecord {
        kind: sent.kind.clone(),
        count: sent.count,
        bytes: sent.bytes,
    });
    let (records, relative_error) = (party.records, party.relative_error);
    SimulatedEnd::Stayed(PartyResult { records, relative_error, sent: sent.collect() })
}

/// The files that a party would have.
fn write_party<T: Real>(
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

fn write_run<T>(
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

fn write_audit<T>(
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

fn conclude<T>(
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
