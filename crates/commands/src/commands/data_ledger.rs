//! `partwise party ledger`: what all runs with each data set of a party have opened.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use partwise_federation::Error;
use partwise_federation::config::PartyConfig;
use partwise_federation::data_ledger::{self, Account, RunAccount};
use serde_json::{Value, json};

use crate::args::PartyLedgerArgs;
use crate::context::Context;

pub fn run(args: &PartyLedgerArgs, context: &Context) -> Result<()> {
    let party = PartyConfig::read(&args.file)?;
    let accounts = ledgers(&party.ledgers)?
        .into_iter()
        .map(|path| Ok((data_ledger::read(&path)?.account, path)))
        .collect::<Result<Vec<(Account, PathBuf)>>>()?;
    if args.json {
        let all: Vec<Value> = accounts.iter().map(|(account, path)| facts(account, path)).collect();
        return context.console.answer(&json!({ "ledgers": all }).to_string());
    }
    if accounts.is_empty() {
        return context.console.answer(&format!("{}: no ledgers yet", party.ledgers.display()));
    }
    let texts: Vec<String> = accounts.iter().map(|(account, path)| text(account, path)).collect();
    context.console.answer(&texts.join("\n"))
}

/// The ledgers in a folder; none if the folder does not exist.
fn ledgers(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::io(folder))?,
    };
    let paths = entries.map(|entry| Ok(entry.map_err(Error::io(folder))?.path()));
    let mut paths = paths.collect::<Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    paths.sort();
    Ok(paths)
}

fn end(run: &RunAccount) -> String {
    run.end.map_or_else(|| "not ended".into(), |end| partwise::run::record::name_of(&end))
}

fn names(run: &RunAccount) -> Vec<&str> {
    run.started.roster.iter().map(|member| &member.name[..]).collect()
}

fn facts(account: &Account, path: &Path) -> Value {
    let runs = account.runs.iter().map(|run| {
        json!({
            "time": run.time,
            "run": run.started.run,
            "federation": run.started.federation,
            "party": run.started.party,
            "parties": names(run),
            "protocol": run.started.protocol,
            "aggregation": run.started.aggregation,
            "rank": run.started.rank,
            "sums": run.sums,
            "rounds": run.rounds,
            "equations": run.equations(),
            "gate_stops": run.gate_stops,
            "end": end(run),
        })
    });
    json!({
        "file": path.display().to_string(),
        "data": account.data,
        "records": account.records,
        "features": account.features,
        "sums": account.sums(),
        "equations": account.equations(),
        "gate_stops": account.gate_stops(),
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn text(account: &Account, path: &Path) -> String {
    let mut text = format!(
        "{}: chain and signatures valid\n{} records of {} features; over all runs {} sums opened, {} of at \
         most {} equations of dsanls-limited, {} stops by checks\n",
        path.display(),
        account.records,
        account.features,
        account.sums(),
        account.equations(),
        account.records.saturating_sub(1),
        account.gate_stops()
    );
    text.push_str(&format!(
        "{:24} {:16} {:14} {:>6} {:>9} {:10} parties\n",
        "started", "federation", "protocol", "sums", "equations", "end"
    ));
    for run in &account.runs {
        text.push_str(&format!(
            "{:24} {:16} {:14} {:>6} {:>9} {:10} {}\n",
            run.time,
            run.started.federation,
            run.started.protocol,
            run.sums,
            run.equations(),
            end(run),
            names(run).join(", ")
        ));
    }
    text
}
