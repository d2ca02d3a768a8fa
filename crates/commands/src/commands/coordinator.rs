//! `partwise coordinator`: sets up and runs the coordinator of a federation.

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

/// The name of the configuration file in the folder that `init` creates.
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
        "created {0}: complete {0}/{FILE}, give {0}/ca.crt to every party, and sign their requests with `partwise \
         coordinator sign {0} REQUEST`; keep ca.key and coordinator.key secret",
        args.out.display()
    ));
    Ok(())
}

/// Creates the folder with the authority and the coordinator's certificate.
pub fn make(folder: &Path, federation: &str, hosts: &[String], days: u32) -> Result<()> {
    check_name(federation).map_err(|problem| anyhow!("{problem}"))?;
    output::make_private_folder(folder)?;
    Ok(certificates::make_authority(folder, federation, hosts, days)?)
}

fn skeleton(federation: &str) -> String {
    format!(
        "# Configuration of the coordinator; docs/federation.md explains every line.
federation = \"{federation}\"
# Address to listen on. Parties connect to it; the coordinator opens no connections.
address = \"0.0.0.0:7400\"
# Seconds after which a silent party is considered unresponsive, and between heartbeats.
deadline = 300
heartbeat = 10
# Smallest number of parties in a sum; at least colluders + 2.
cohort = 3
# Fingerprints of revoked certificates.
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
        bail!("{}: the line federation = \"...\" is missing; add it at the beginning", file.display());
    };
    let issued = args.dir.join("issued");
    private::make_folder(&issued).map_err(partwise_federation::Error::io(&issued))?;
    for request in &args.requests {
        let signed = certificates::sign(&args.dir, &federation, request, args.days)?;
        let entry = member(&signed.name, &signed.identity.to_string());
        let known = text.contains(&entry);
        if !known && text.contains(&format!("name = \"{}\"\n", signed.name)) {
            bail!(
                "{}: {} is listed with another identity; find out which one is right, and correct the file",
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
            "{}: give {} to {}, and verify over another channel, such as telephone, that its identity is {}",
            if renewed { "renewed" } else { "signed" },
            path.display(),
            signed.name,
            signed.identity
        ));
    }
    Ok(())
}

/// The lines of a party in federation.toml.
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
            "running without certificates and encryption, which is for trials on one machine",
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
        how += "; run twice because a party was missing from some sums, better result kept";
    }
    context.console.tell(&format!(
        "relative error {:.6} after {} rounds and {} sums{how}; {}",
        outcome.relative_error,
        outcome.rounds,
        outcome.sums,
        report::where_it_is(out)
    ));
    if !outcome.agreed {
        bail!("the parties ended with different shared factors; compare their run.json files");
    }
    Ok(())
}

fn write(context: &Context, out: &Path, outcome: &FederationOutcome, terms: &Terms) -> Result<()> {
    let settings = &terms.settings;
    // Each party chooses the side of its records; here they are assumed to be rows, which is the default.
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
    // The factor comes from a party, so its shape is checked.
    let read = partwise::io::npy::read_array::<f32>(
        &staging.path().join(shared),
        crate::machine::available_memory(),
    );
    match read {
        Ok((rows, cols, _)) if (rows, cols) == (outcome.features, settings.rank) => {}
        _ => bail!("a party sent a shared factor that is not {} x {}", outcome.features, settings.rank),
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
