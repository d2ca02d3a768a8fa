//! `partwise coordinator`: a federation's centre.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use partwise::run::Side;
use partwise::run::record::{
    CoordinatorRecord, FederationEnd, FederationRecord, LinkBytes, ProtocolSettings, RUN_FILE, RunKind,
    RunRecord, SharedFactor, Transport, name_of,
};
use partwise_federation::agreement::Terms;
use partwise_federation::certificates::{self, write_new};
use partwise_federation::config::FederationConfig;
use partwise_federation::coordinator::{self, CoordinatorOptions, FederationOutcome};
use partwise_federation::handover;
use partwise_federation::log::EventLog;
use partwise_federation::private;
use partwise_federation::text::check_name;
use serde_json::json;

use super::party;
use crate::args::{CoordinatorCommand, CoordinatorInitArgs, CoordinatorRunArgs, SignArgs};
use crate::context::Context;
use crate::{flags, output, report};

/// The name of the configuration in the folder that `init` makes.
pub const FILE: &str = "federation.toml";

pub fn run(command: &CoordinatorCommand, context: &Context) -> Result<()> {
    match command {
        CoordinatorCommand::Init(args) => init(args, context),
        CoordinatorCommand::Sign(args) => sign(args, context),
        CoordinatorCommand::AcceptKey(args) => {
            let read = || FederationConfig::read(&args.file, false);
            party::accept(args, context, |handover| handover::accept_at_coordinator(&read()?, handover))
        }
        CoordinatorCommand::Run(args) => serve(args, context),
    }
}

fn init(args: &CoordinatorInitArgs, context: &Context) -> Result<()> {
    make(&args.out, &args.federation, &args.host, args.days)?;
    write_new(&args.out.join(FILE), &skeleton(&args.federation), false)?;
    context.console.tell(&format!(
        "made {0}: complete {0}/{FILE}, give every party {0}/ca.crt, and sign their requests with `partwise coordinator sign \
         {0} REQUEST`; keep ca.key and coordinator.key to yourself",
        args.out.display()
    ));
    Ok(())
}

/// The folder with the authority and the coordinator's certificate.
pub fn make(folder: &Path, federation: &str, hosts: &[String], days: u32) -> Result<()> {
    check_name(federation).map_err(|problem| anyhow!("{problem}"))?;
    output::make_private_folder(folder)?;
    Ok(certificates::make_authority(folder, federation, hosts, days)?)
}

fn skeleton(federation: &str) -> String {
    format!(
        "# What the coordinator of this federation needs to know; docs/federation.md explains every line.
federation = \"{federation}\"
# Where to listen. Parties connect to here, and the coordinator connects to nobody.
address = \"0.0.0.0:7400\"
# Seconds after which a party is held to hang, and between two signs of life.
deadline = 300
heartbeat = 10
# How many parties must be in every sum; at least colluders + 2.
cohort = 3
# Fingerprints of certificates that are no good any more.
revoked = []

[method]
protocol = \"syn-sd\"
rank = 8
rounds = 100
seed = 0
aggregation = \"secure\"
colluders = 1

# `partwise coordinator sign` adds the parties here.
"
    )
}

fn sign(args: &SignArgs, context: &Context) -> Result<()> {
    let file = args.dir.join(FILE);
    let mut text = fs::read_to_string(&file).map_err(partwise_federation::Error::io(&file))?;
    let name = text.lines().find_map(|line| line.strip_prefix("federation = \"")?.split('"').next());
    let Some(federation) = name.map(str::to_string) else {
        bail!("{}: has no line federation = \"...\"; add it at its beginning", file.display());
    };
    let issued = args.dir.join("issued");
    private::make_folder(&issued).map_err(partwise_federation::Error::io(&issued))?;
    for request in &args.requests {
        let signed = certificates::sign(&args.dir, &federation, request, args.days)?;
        let entry = member(&signed.name, &signed.identity.to_string());
        let known = text.contains(&entry);
        if !known && text.contains(&format!("name = \"{}\"\n", signed.name)) {
            bail!(
                "{}: has {} with another identity; find out which is right, and correct the file",
                file.display(),
                signed.name
            );
        }
        let path = issued.join(format!("{}.crt", signed.name));
        let renewed = path.exists();
        if renewed {
            fs::remove_file(&path).map_err(partwise_federation::Error::io(&path))?;
        }
        write_new(&path, &signed.certificate, false)?;
        if !known {
            let appended = OpenOptions::new().append(true).open(&file);
            appended
                .and_then(|mut file| file.write_all(entry.as_bytes()))
                .map_err(partwise_federation::Error::io(&file))?;
            text.push_str(&entry);
        }
        context.console.tell(&format!(
            "{}: give {} to {}, and make sure by another way, a telephone for instance, that its identity is {}",
            if renewed { "renewed" } else { "signed" },
            path.display(),
            signed.name,
            signed.identity
        ));
    }
    Ok(())
}

/// A party in federation.toml.
pub fn member(name: &str, identity: &str) -> String {
    format!("\n[[party]]\nname = \"{name}\"\nidentity = \"{identity}\"\n")
}

fn serve(args: &CoordinatorRunArgs, context: &Context) -> Result<()> {
    let federation = FederationConfig::read(&args.file, args.continue_without)?;
    if args.line.check {
        for line in coordinator::check(&federation, args.line.insecure)? {
            context.console.tell(&line.named(flags::name));
        }
        return Ok(());
    }
    let Some(out) = &args.out else { bail!("--out is missing; give a folder for the result") };
    output::check_private_folder(out, args.force)?;
    let log = Arc::new(EventLog::new(args.line.log).naming(flags::name));
    if args.line.insecure {
        log.warn(
            "without certificates and encryption; for trials on one machine",
            json!({ "event": "insecure" }),
        );
    }
    let terms = federation.terms.clone();
    let options =
        CoordinatorOptions { insecure: args.line.insecure, status_address: args.status_address.0, log };
    let outcome = coordinator::run(federation, options)?;
    write(context, out, &outcome, &terms)?;
    outcome.forget()?;
    report::after_run(context, out, !args.no_report);
    let mut how = String::new();
    if !outcome.missing.is_empty() {
        how = format!("; without {}", outcome.missing.join(", "));
    }
    if !outcome.attempts.is_empty() {
        how += "; done twice, since somebody was missing in some sums, and the better result kept";
    }
    context.console.tell(&format!(
        "relative error {:.6} after {} rounds and {} sums{how}; {}",
        outcome.relative_error,
        outcome.rounds,
        outcome.sums,
        report::where_it_is(out)
    ));
    if !outcome.agreed {
        bail!(
            "the parties ended with different shared factors; ask them what their own records of the run say"
        );
    }
    Ok(())
}

fn write(context: &Context, out: &Path, outcome: &FederationOutcome, terms: &Terms) -> Result<()> {
    let settings = &terms.settings;
    // Each party's file has its records in rows or in columns; here they are taken to be rows, as is usual.
    let shared_factor = SharedFactor::of(Side::Rows);
    let shared = shared_factor.file();
    let end = CoordinatorRecord {
        finished: outcome.finished.clone(),
        missing: outcome.missing.clone(),
        agreed: outcome.agreed,
        sums: outcome.sums,
        epochs: outcome.epochs,
        bytes: outcome.bytes.iter().map(|&[received, sent]| LinkBytes { received, sent }).collect(),
        peak_memory: crate::machine::peak_memory(),
    };
    let record = FederationRecord {
        federation: terms.federation.clone(),
        transport: Transport::Grpc,
        run: outcome.run.clone(),
        parties: terms.roster.iter().map(|member| member.name.clone()).collect(),
        rounds: outcome.rounds,
        attempts: outcome.attempts.clone(),
        stopped_by: name_of(&outcome.stopped_by),
        features: outcome.features,
        shared_factor,
        settings: ProtocolSettings::new(settings)?,
        end: FederationEnd::Coordinator(end),
    };
    let record = RunRecord::new(outcome.relative_error, RunKind::Federation(Box::new(record)));
    let staging = context.outputs.private_folder(out)?;
    staging.write(shared, |file| file.write_all(&outcome.factor))?;
    // It came from a party.
    let read = partwise::io::npy::read_array::<f32>(
        &staging.path().join(shared),
        crate::machine::available_memory(),
    );
    match read {
        Ok((rows, cols, _)) if (rows, cols) == (outcome.features, settings.rank) => {}
        _ => bail!(
            "the shared factor that a party sent is not a matrix of {} x {}",
            outcome.features,
            settings.rank
        ),
    }
    staging.write("trace.csv", |file| {
        writeln!(file, "round,seconds,relative_error")?;
        for point in &outcome.trace {
            writeln!(file, "{},{:.6},{:.9}", point.round, point.seconds, point.relative_error)?;
        }
        Ok(())
    })?;
    staging.write(RUN_FILE, |file| record.write(file))?;
    staging.commit()
}
