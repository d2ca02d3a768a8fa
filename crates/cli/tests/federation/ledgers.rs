//! The ledger of a data set over the runs of real processes.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::disturbed;
use crate::trial::*;

/// The path of a party's only ledger.
fn file(trial: &Trial, party: usize) -> PathBuf {
    let mut files = fs::read_dir(trial.party_folder(party).join("ledgers")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    file
}

/// The output of `party ledger` for this party's ledger.
fn account(trial: &Trial, party: usize) -> Value {
    let mut command = program();
    command.args(["party", "ledger", "--json"]).arg(trial.party_folder(party).join("party.toml"));
    let (code, text) = output(&mut command);
    assert_eq!(code, Some(0), "{text}");
    serde_json::from_str::<Value>(&text).unwrap()["ledgers"][0].clone()
}

/// Runs a federation until all have ended.
fn run(trial: &Trial) {
    let mut coordinator = Process::start(trial.coordinator_command(&[]).arg("--force"));
    coordinator.wait_for("listening on");
    let join = |party| Process::start(trial.party_command(party).arg("--force"));
    let mut parties: Vec<Process> = (1..=trial.parties).map(join).collect();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
}

/// Expects the party to end with these words before anything is shared.
fn refused(trial: &Trial, party: usize, words: &str) {
    let mut coordinator = Process::start(trial.coordinator_command(&[]).arg("--force"));
    coordinator.wait_for("listening on");
    let others: Vec<Process> = (1..=trial.parties)
        .filter(|other| *other != party)
        .map(|other| Process::start(trial.party_command(other).arg("--force")))
        .collect();
    Process::start(trial.party_command(party).arg("--force")).fail(words);
    drop(others);
    coordinator.kill();
}

#[test]
fn runs_add_up_and_an_old_copy_is_detected() {
    let trial = Trial::new(3, &["--rounds", "4"]);
    run(&trial);
    let (path, first) = (file(&trial, 1), account(&trial, 1));
    let sums = first["sums"].as_u64().unwrap();
    assert!(sums > 4 && first["runs"][0]["end"] == "finished", "{first}");
    assert_eq!((first["records"].as_u64(), first["features"].as_u64()), (Some(40), Some(24)));
    let copy = fs::read(&path).unwrap();
    run(&trial);
    let second = account(&trial, 1);
    assert_eq!(second["sums"].as_u64(), Some(2 * sums), "{second}");
    assert_eq!(second["runs"][1]["parties"], serde_json::json!(["party-1", "party-2", "party-3"]));

    // The party itself remembers a longer ledger than the old copy, and so do the others if it has forgotten.
    let newest = fs::read(&path).unwrap();
    fs::write(&path, copy).unwrap();
    refused(&trial, 1, "is not the newest ledger of these data");
    let heads = trial.party_folder(1).join("state/heads.json");
    let remembered = fs::read(&heads).unwrap();
    fs::remove_file(&heads).unwrap();
    refused(&trial, 2, "party-1 and this party disagree on its ledger");
    fs::write(&heads, remembered).unwrap();
    fs::remove_file(&path).unwrap();
    refused(&trial, 1, "is not the newest ledger of these data");
    fs::write(&path, &newest).unwrap();
    run(&trial);

    // A line was changed.
    let changed = String::from_utf8(newest).unwrap().replacen("\"sums\":", "\"sums\": ", 1);
    fs::write(&path, changed).unwrap();
    refused(&trial, 1, "the ledger was changed after it was written");
}

#[test]
fn one_process_at_a_time_uses_a_ledger() {
    let trial = Trial::new(3, &["--rounds", "4"]);
    let mut coordinator = trial.coordinator(&[]);
    let mut first = trial.party(1);
    first.wait_for("waiting for all parties");
    // The same user runs in another folder, with the same data in another format.
    let (copy, text) = (trial.path("trial/twin"), fs::read_to_string(trial.path("data-1.csv")).unwrap());
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(trial.party_folder(1)).unwrap().map(Result::unwrap) {
        if entry.path().is_file() {
            fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
    }
    trial.edit("trial/twin/party.toml", "ledgers = \"ledgers\"", "ledgers = \"../party-1/ledgers\"");
    fs::write(trial.path("twin.tsv"), text.replace(',', "\t")).unwrap();
    let mut twin = program();
    twin.args(["party", "join"]).arg(copy.join("party.toml")).arg("--data").arg(trial.path("twin.tsv"));
    Process::start(twin.arg("--out").arg(trial.path("result-twin")))
        .fail("another process is using the same data");
    let mut others = [trial.party(2), trial.party(3)];
    first.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
}

/// A party that is killed at bad moments has every run and every sum in its ledger exactly once.
#[test]
fn a_killed_party_keeps_its_ledger() {
    let trial = Trial::new(3, &["--rounds", "4"]);
    let mut coordinator = trial.coordinator(&[]);
    let mut others = [trial.party(1), trial.party(3)];
    for fault in ["upload,1,before", "upload,1,after", "upload,5,during"] {
        let mut killed = Process::start(&mut disturbed::command(&trial, 2, None, Some(fault)));
        assert!(!killed.end().success());
        let account = account(&trial, 2);
        assert_eq!(account["runs"].as_array().unwrap().len(), 1, "{account}");
        assert!(
            account["sums"].as_u64().unwrap() >= 1 && account["runs"][0]["end"] == "not ended",
            "{account}"
        );
    }
    let mut last = trial.party(2);
    last.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    let [own, other] = [2, 1].map(|party| account(&trial, party));
    assert_eq!(own["sums"], other["sums"]);
    assert_eq!(own["runs"][0]["end"], "finished");
}

/// A roster that leaves out a peer, or differs from that of an earlier run with the same data, needs consent.
#[test]
fn another_roster_needs_consent() {
    let mut trial = Trial::new(4, &["--rounds", "3"]);
    run(&trial);
    let file = trial.path("trial/coordinator/federation.toml");
    let text = fs::read_to_string(&file).unwrap();
    let (without, _) = text.split_at(text.rfind("\n[[party]]").unwrap());
    fs::write(&file, without).unwrap();
    trial.parties = 3;
    refused(&trial, 1, "allows one without party-4 only if it is listed in rosters");
    for party in 1..=3 {
        let path = trial.party_folder(party).join("party.toml");
        let text = fs::read_to_string(&path).unwrap();
        let kept = text.lines().filter(|line| !line.starts_with("party-4 = "));
        fs::write(&path, kept.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
    refused(&trial, 1, "a roster other than that of the run of");
    for (party, others) in [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])] {
        let rosters = format!("[policy]\nrosters = [[\"party-{}\", \"party-{}\"]]", others[0], others[1]);
        trial.edit(&format!("trial/party-{party}/party.toml"), "[policy]", &rosters);
    }
    run(&trial);
}
