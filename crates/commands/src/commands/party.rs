//! `partwise party`: sets up and runs a party of a federation.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use partwise::cancel::Cancel;
use partwise::io::{self, Input};
use partwise::matrix::Matrix;
use partwise::run::Side;
use partwise::run::record::{
    FederationEnd, FederationRecord, PartyRecord, ProtocolSettings, RUN_FILE, RunKind, RunRecord,
    SharedFactor, Transport, name_of,
};
use partwise::threads::Threads;
use partwise::{Precision, Real};
use partwise_federation::certificates::{self, write_new};
use partwise_federation::config::PartyConfig;
use partwise_federation::handover::{self, Accepted, Rotated};
use partwise_federation::log::{EventLog, Format};
use partwise_federation::party::{self, Hooks, Joined, PartyData, PartyOptions};
use partwise_federation::text::{Fingerprint, check_name};
use partwise_secure::audit::{Likeness, Own, WORST, highest_reproduced, own_likenesses};
use partwise_secure::factors;
use partwise_secure::protocol::Stop;
use serde_json::json;

use super::audit::{self, OverLimit};
use super::data_ledger;
use crate::args::{AcceptKeyArgs, JoinArgs, PartyCommand, PartyInitArgs, RotateKeyArgs};
use crate::context::Context;
use crate::{flags, input, machine, output, report};

/// The name of the configuration file in the folder that `init` creates.
pub const FILE: &str = "party.toml";

pub fn run(command: &PartyCommand, context: &Context, hooks: &Arc<dyn Hooks>) -> Result<()> {
    match command {
        PartyCommand::Init(args) => init(args, context),
        PartyCommand::Join(args) => match args.precision {
            Precision::F32 => join::<f32>(args, context, hooks),
            Precision::F64 => join::<f64>(args, context, hooks),
        },
        PartyCommand::Ledger(args) => data_ledger::run(args, context),
        PartyCommand::RotateKey(args) => rotate(args, context),
        PartyCommand::AcceptKey(args) => {
            let read = || PartyConfig::read(&args.file);
            accept(args, context, |handover| handover::accept_at_party(&read()?, handover))
        }
    }
}

fn init(args: &PartyInitArgs, context: &Context) -> Result<()> {
    let identity = make(&args.out, &args.federation, &args.name)?;
    let text = skeleton(&args.name, &args.federation, &args.coordinator, "", "");
    write_new(&args.out.join(FILE), &text, false)?;
    context.console.tell(&format!(
        "created {0}: send {0}/{1}.request to the coordinator, put its answer {1}.crt and its ca.crt into {0}, and \
         complete {0}/{FILE}; keep {1}.key and identity.key secret",
        args.out.display(),
        args.name
    ));
    context.console.tell(&format!("identity of this party, which the other parties pin: {identity}"));
    Ok(())
}

fn rotate(args: &RotateKeyArgs, context: &Context) -> Result<()> {
    let Rotated { handover, identity } = handover::rotate(&PartyConfig::read(&args.file)?)?;
    context.console.tell(&format!(
        "this party's new identity is {identity}; send {} to the coordinator and to every other party, who \
         accept it with `partwise coordinator accept-key` and `partwise party accept-key`",
        handover.display()
    ));
    Ok(())
}

/// Accepts hand-overs one after another; each is applied to the file that the previous one has changed.
pub fn accept(
    args: &AcceptKeyArgs,
    context: &Context,
    accept: impl Fn(&Path) -> partwise_federation::Result<Accepted>,
) -> Result<()> {
    for handover in &args.handovers {
        let Accepted { party, identity } = accept(handover)?;
        context.console.tell(&format!("{}: {party} now has the identity {identity}", args.file.display()));
    }
    Ok(())
}

/// Creates the folder with a party's keys and request.
pub fn make(folder: &Path, federation: &str, name: &str) -> Result<Fingerprint> {
    for name in [federation, name] {
        check_name(name).map_err(|problem| anyhow!("{problem}"))?;
    }
    output::make_private_folder(folder)?;
    Ok(certificates::make_request(folder, federation, name)?)
}

/// The content of party.toml; `ledgers` and `policy` are additional lines.
pub fn skeleton(name: &str, federation: &str, coordinator: &str, ledgers: &str, policy: &str) -> String {
    let protocols = match policy.contains("protocols") {
        true => "",
        false => {
            "protocols = [\"syn-sd\", \"syn-ssd-u\", \"syn-ssd-v\", \"syn-ssd-uv\", \"asyn-sd\", \"asyn-ssd-v\"]\n"
        }
    };
    format!(
        "# Configuration of this party; docs/federation.md explains every line.
name = \"{name}\"
federation = \"{federation}\"
coordinator = \"{coordinator}\"
{ledgers}
# What this party allows; the coordinator cannot override it.
[policy]
aggregation = [\"secure\"]
minimum_cohort = 3
minimum_colluders = 1
maximum_rounds = 500
{protocols}{policy}
# Identities of all other parties, which they told you over another channel than the coordinator, one per line:
# their-name = \"sha256:0123456789abcdef...\"
[peers]
"
    )
}

/// The records of a party.
struct Records<T> {
    /// What it joins with: features by records.
    given: PartyData<T>,
    /// The same, records by features.
    own: Matrix<T>,
    /// The number of each record's person, if people have several.
    people: Option<Vec<usize>>,
    row_labels: Option<Vec<String>>,
    col_labels: Option<Vec<String>>,
}

/// Reads a party's records.
fn read<T: Real>(args: &JoinArgs, context: &Context) -> Result<Records<T>> {
    let read = input::read::<T>(&args.data, &args.read, Some(&args.labels))
        .and_then(|input| input::check_range(&args.data, &input.matrix).map(|()| input));
    let Input { matrix, row_labels, col_labels, assumptions, .. } =
        read.map_err(|error| match args.line.log {
            // The message may quote an entry, and such logs may be collected elsewhere.
            Format::Json => anyhow!(
                "{}: cannot be used as records; --check --log text shows the place and the reason",
                args.data.display()
            ),
            Format::Text => error.into(),
        })?;
    // A log may be collected elsewhere, and the full message shows entries.
    if args.line.log == Format::Text {
        input::warn_assumptions(context.console, &args.data, &assumptions);
    }
    // Features by records, regardless of the file; and records by features, to compare them with the
    // components.
    let (matrix, own, names) = match args.records {
        Side::Rows => (matrix.clone().into_transpose(), matrix, &col_labels),
        Side::Columns => (matrix.clone(), matrix.into_transpose(), &row_labels),
    };
    input::check_memory("the run", matrix.bytes().saturating_mul(4))?;
    let people = args.person.as_ref().map(|path| input::people(path, own.rows())).transpose()?;
    let reading = format!("{:?} {:?} {:?}", args.read, args.records, T::PRECISION);
    let digest = format!("{} {reading}", input::sha256(&args.data)?);
    let given = PartyData { matrix, names: names.clone(), digest };
    Ok(Records { given, own, people, row_labels, col_labels })
}

fn join<T: Real>(args: &JoinArgs, context: &Context, hooks: &Arc<dyn Hooks>) -> Result<()> {
    let party = PartyConfig::read(&args.file)?;
    if !args.line.check {
        let Some(out) = &args.out else { bail!("--out is missing; give a folder for the result") };
        output::check_private_folder(out, args.force)?;
    }
    let Records { given, own, people, row_labels, col_labels } = read::<T>(args, context)?;
    let log = Arc::new(EventLog::new(args.line.log).naming(flags::name));
    let threads = args.threads.unwrap_or_else(machine::cores);
    let options = PartyOptions {
        insecure: args.line.insecure,
        threads,
        hooks: hooks.clone(),
        cancel: Cancel::default(),
        log: log.clone(),
    };
    if args.line.check {
        for line in party::check(&party, &given, &options)? {
            context.console.tell(&line.named(flags::name));
        }
        return Ok(());
    }
    if args.line.insecure {
        log.warn(
            "running without certificates and encryption, which is for trials on one machine",
            json!({ "event": "insecure" }),
        );
    }
    let joined = party::join(&party, given, &options)?;
    let exposed = own_likenesses(&Threads::new(threads)?, &own, &joined.u, people.as_deref());
    let found = highest_reproduced(&exposed);
    let withheld = found > args.max_record_cosine;
    let out = match &args.out {
        Some(_) if withheld => Some(party.state.join(format!("withheld-{}", joined.run))),
        out => out.clone(),
    };
    if let Some(out) = &out {
        write(args, context, (&party.name, out), &joined, [row_labels, col_labels], exposed)?;
    }
    if !withheld {
        conclude(args, context, &joined);
    }
    let mut factor = Vec::new();
    io::npy::write(&mut factor, joined.features, joined.terms.settings.rank, &joined.u)?;
    let parties = joined.terms.roster.len();
    joined.finish(factor, parties)?;
    match out {
        Some(out) if withheld => {
            let (limit, kept) = (args.max_record_cosine, out.display().to_string());
            Err(OverLimit::Withheld { found, limit, kept }.into())
        }
        _ => Ok(()),
    }
}

fn write<T: Real>(
    args: &JoinArgs,
    context: &Context,
    (party, out): (&str, &Path),
    joined: &Joined<T>,
    [row_labels, col_labels]: [Option<Vec<String>>; 2],
    mut exposed: Vec<Likeness>,
) -> Result<()> {
    let rank = joined.terms.settings.rank;
    let terms = &joined.terms;
    let end = PartyRecord {
        party: party.to_string(),
        own_relative_error: joined.own_relative_error,
        records: joined.records,
        // As `evaluate` and `transform` expect the file.
        transpose: args.read.transpose,
        precision: T::PRECISION,
    };
    let record = FederationRecord {
        federation: terms.federation.clone(),
        transport: Transport::Grpc,
        run: joined.run.clone(),
        parties: terms.roster.iter().map(|member| member.name.clone()).collect(),
        rounds: joined.ended.rounds,
        attempts: joined.attempts.clone(),
        stopped_by: name_of(&joined.ended.stopped_by),
        features: joined.features,
        shared_factor: SharedFactor::of(args.records),
        settings: ProtocolSettings::new(&terms.settings)?,
        end: FederationEnd::Party(end),
    };
    let record = RunRecord::new(joined.relative_error, RunKind::Federation(Box::new(record)));
    let staging = context.outputs.private_folder(out)?;
    let (u, v) = factors::by_side(args.records, (joined.records, &joined.v), (joined.features, &joined.u));
    for (name, (rows, factor)) in [("U.npy", u), ("V.npy", v)] {
        staging.write(name, |file| io::npy::write(file, rows, rank, factor))?;
    }
    for (name, labels) in [("rows.txt", row_labels), ("columns.txt", col_labels)] {
        if let Some(labels) = labels {
            staging.write(name, |file| labels.iter().try_for_each(|label| writeln!(file, "{label}")))?;
        }
    }
    let norm = joined.ended.common.norm;
    staging.write("trace.csv", |file| {
        writeln!(file, "round,seconds,relative_error,bytes")?;
        for line in &joined.ended.trace {
            let error = (line.squared_error.max(0.0) / norm).sqrt();
            writeln!(file, "{},{:.6},{error:.9},{}", line.round, line.seconds, line.bytes)?;
        }
        Ok(())
    })?;
    staging.write(RUN_FILE, |file| record.write(file))?;
    exposed.truncate(WORST);
    let own = Own { components: exposed, ..Own::default() };
    staging.write(output::INDIVIDUALS, |file| audit::write(file, &own))?;
    staging.commit()?;
    report::after_run(context, out, !args.no_report);
    Ok(())
}

fn conclude<T>(args: &JoinArgs, context: &Context, joined: &Joined<T>) {
    let why = match joined.ended.stopped_by {
        Stop::Rounds => "maximum number of rounds",
        Stop::Tolerance => "converged",
        Stop::LeakBudget => "another round would reveal a record",
    };
    let out = args.out.as_ref().map_or(String::new(), |out| format!("; {}", report::where_it_is(out)));
    context.console.tell(&format!(
        "relative error {:.6} over all parties, {:.6} for this party, after {} rounds ({why}){out}",
        joined.relative_error, joined.own_relative_error, joined.ended.rounds
    ));
}
