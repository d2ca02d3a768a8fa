//! `partwise provision --demo`: creates all keys and files of a federation at once, for trials.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use partwise_federation::agreement::Terms;
use partwise_federation::certificates::{DAYS, sign, write_new};
use partwise_federation::config::{FederationConfig, check_method};
use partwise_federation::text::Fingerprint;

use super::{coordinator, party};
use crate::args::ProvisionArgs;
use crate::context::Context;
use crate::output;

/// A demonstration has few records, which belong to no person, so the checks that would stop on them are off.
const DEMO_SAFEGUARDS: &str = "
# For trials with small data: omit this table in production.
[policy.safeguards]
feature_records = 0
record_share = 1.0
record_cosine = 1.0
feature_share = 1.0
step = inf
";

pub fn run(args: &ProvisionArgs, context: &Context) -> Result<()> {
    check_method(&method(args), &args.accept)?;
    output::make_private_folder(&args.out)?;
    let made = make(args);
    if made.is_err() {
        // Nothing incomplete remains.
        let _ = fs::remove_dir_all(&args.out);
    }
    made?;
    context.console.tell(&format!(
        "created {} for trials only: the owner of all keys can read everything; in production every party runs \
         `partwise party init` itself",
        args.out.display()
    ));
    Ok(())
}

/// The lines of `[method]`.
fn method(args: &ProvisionArgs) -> String {
    let lines = format!("protocol = \"{}\"\nrank = {}\nrounds = {}\n", args.protocol, args.rank, args.rounds);
    args.method.iter().fold(lines, |lines, line| lines + line + "\n")
}

fn make(args: &ProvisionArgs) -> Result<()> {
    let centre = args.out.join("coordinator");
    coordinator::make(&centre, &args.federation, &["localhost".into()], DAYS)?;
    let quoted = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
        items.join(", ")
    };
    let mut federation = format!(
        "# For trials only: all keys were created in one place.\nfederation = \"{}\"\naddress = \"{}\"\ndeadline = \
         {:?}\nheartbeat = \
         {:?}\naccept = [{}]\n\n[method]\n{}",
        args.federation,
        args.address,
        args.deadline,
        args.heartbeat,
        quoted(&args.accept),
        method(args)
    );
    let mut identities: Vec<(String, Fingerprint)> = Vec::new();
    for number in 1..=args.parties {
        let name = format!("party-{number}");
        let folder = args.out.join(&name);
        let identity = party::make(&folder, &args.federation, &name)?;
        let signed = sign(&centre, &args.federation, &folder.join(format!("{name}.request")), DAYS)?;
        write_new(&folder.join(format!("{name}.crt")), &signed.certificate, false)?;
        fs::copy(centre.join("ca.crt"), folder.join("ca.crt"))
            .map_err(partwise_federation::Error::io(&folder))?;
        federation.push_str(&coordinator::member(&name, &identity.to_string()));
        identities.push((name, identity));
    }
    let path = centre.join(coordinator::FILE);
    write_new(&path, &federation, false)?;
    // The options may not describe a valid federation.
    let Terms { settings, groups, .. } = FederationConfig::read(&path, args.continue_without)?.terms;
    let policy = format!(
        "protocols = [\"{}\"]\naccept = [{}]\ncontinue_without = {}\n{DEMO_SAFEGUARDS}",
        args.protocol,
        quoted(&args.accept),
        args.continue_without
    );
    for (name, _) in &identities {
        // A trial's runs must not count towards the ledgers of real data, so it has its own.
        let ledgers = "ledgers = \"ledgers\"\n";
        let text = party::skeleton(name, &args.federation, &args.address, ledgers, &policy);
        let text = text
            .replace("minimum_cohort = 3", &format!("minimum_cohort = {}", args.parties.min(3)))
            .replace("minimum_colluders = 1", &format!("minimum_colluders = {}", settings.colluders.min(1)))
            .replace(
                "maximum_rounds = 500",
                &format!("maximum_rounds = {}", settings.all_rounds(groups.len()).max(500)),
            );
        let path = args.out.join(name).join(party::FILE);
        write_new(&path, &text, false)?;
        add_peers(&path, &identities, name)?;
    }
    Ok(())
}

fn add_peers(path: &Path, identities: &[(String, Fingerprint)], own: &str) -> Result<()> {
    let others = identities.iter().filter(|(name, _)| name != own);
    let lines: String = others.map(|(name, identity)| format!("{name} = \"{identity}\"\n")).collect();
    let file = OpenOptions::new().append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
    Ok(written.map_err(partwise_federation::Error::io(path))?)
}
