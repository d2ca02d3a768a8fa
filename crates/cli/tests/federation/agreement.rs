//! What parties agree on before anything is summed, and what their policies forbid.

use std::fs;

use crate::trial::*;

/// One party with changed data: all report what differs, no message contains a name, and nothing is uploaded.
fn disagree(change: impl Fn(&Trial), words: &str) {
    let trial = Trial::new(3, &["--rounds", "4"]);
    change(&trial);
    let _coordinator = trial.coordinator(&[]);
    let mut parties = trial.all_parties();
    for party in &mut parties {
        let error = party.fail(words);
        assert!(!party.text().contains("secretcode") && !party.text().contains("code7"), "{error}");
    }
    for party in 1..=3 {
        let ledger = fs::read_to_string(trial.party_folder(party).join("state/ledger.jsonl")).unwrap();
        assert!(ledger.contains("control") && !ledger.contains("upload"), "{ledger}");
        assert!(!exists(&trial.path(&format!("result-{party}"))));
    }
}

#[test]
fn names_of_features_must_agree_and_are_not_told() {
    disagree(
        |trial| trial.edit("data-2.csv", "code7,", "secretcode,"),
        "disagree on the names of the features (both have 24 of them)",
    );
    disagree(
        |trial| trial.edit("data-2.csv", "code7,code8,", "code8,code7,"),
        "the same names, in another order",
    );
}

#[test]
fn the_number_of_features_must_agree() {
    disagree(
        |trial| fs::write(trial.path("data-2.csv"), records(0, RECORDS, FEATURES + 1)).unwrap(),
        "disagree on the number of features",
    );
}

/// A party refuses what its own file does not allow, whatever the coordinator proposes.
#[test]
fn the_coordinator_cannot_widen_a_policy() {
    let edits = [
        ("protocols = [\"syn-sd\"]", "protocols = [\"pooled\"]", "the protocol \"syn-sd\""),
        ("aggregation = [\"secure\"]", "aggregation = [\"plain\"]", "the aggregation \"secure\""),
        ("minimum_cohort = 3", "minimum_cohort = 4", "sums over 3 parties"),
        ("minimum_colluders = 1", "minimum_colluders = 2", "colluders = 1"),
        ("maximum_rounds = 500", "maximum_rounds = 7", "8 rounds, those of a second attempt among them"),
        ("continue_without = true", "continue_without = false", "to continue without a party that left"),
        ("party-2 = \"sha256:", "party-9 = \"sha256:", "party-2 as another party"),
    ];
    let trial = Trial::new(3, &["--rounds", "4", "--continue-without"]);
    let coordinator = trial.coordinator(&["--continue-without"]);
    for (count, (from, to, words)) in edits.into_iter().enumerate() {
        trial.edit("trial/party-1/party.toml", from, to);
        let error = trial.party(1).fail(words);
        assert!(error.contains("nothing was shared"), "{error}");
        trial.edit("trial/party-1/party.toml", to, from);
        coordinator.wait_for_times("party-1 stops: \"policy\"", count + 1);
    }
    // An identity other than the pinned one.
    let file = trial.party_folder(1).join("party.toml");
    let text = fs::read_to_string(&file).unwrap();
    let pinned = text.split("party-2 = \"sha256:").nth(1).unwrap()[..64].to_string();
    trial.edit("trial/party-1/party.toml", &pinned, &"0".repeat(64));
    trial.party(1).fail("party-2 with the identity");
}

#[test]
fn errors_in_files_name_the_place() {
    let trial = Trial::new(3, &[]);
    let file = trial.path("trial/coordinator/federation.toml");
    let good = fs::read_to_string(&file).unwrap();
    for (from, to, words) in [
        ("rank = 4", "rnk = 4", "rank is missing"),
        ("rank = 4", "rank = 4\nrnk = 4", "rnk is unknown"),
        ("rank = 4", "rank = 0", "[method]: rank: 0"),
        ("rank = 4", "rank =", "line 10"),
        ("heartbeat = 1.0", "heartbeat = 0.0", "heartbeat: 0"),
        ("heartbeat = 1.0", "heartbeat = 1.0\ncohort = 7", "cohort: 7 is out of range"),
        ("accept = []", "accept = [\"x\"]", "the risk \"x\" is unknown"),
        ("protocol = \"syn-sd\"", "protocol = \"x\"", "[method]"),
        ("name = \"party-2\"", "name = \"party-1\"", "is listed twice"),
    ] {
        assert!(good.contains(from), "{good}");
        fs::write(&file, good.replace(from, to)).unwrap();
        let (code, text) = output(program().args(["coordinator", "run", "--check"]).arg(&file));
        assert_eq!(code, Some(2), "{to}: {text}");
        assert!(text.contains("federation.toml") && text.contains(words), "{to}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// A pooled run reveals a small party's records: that party refuses it, unless all accept the risk.
#[test]
fn risks_are_refused_by_the_party_that_has_them() {
    let trial = Trial::new(3, &["--protocol", "pooled"]);
    fs::write(trial.path("data-1.csv"), records(0, 20, FEATURES)).unwrap();
    let _coordinator = trial.coordinator(&[]);
    let error = trial.party(1).fail("party 1 has 20 records for 24 features");
    assert!(error.contains("accept = [\"pooled-sums-show-records\"]"), "{error}");
}

#[test]
fn provision_refuses_a_line_that_the_method_ignores() {
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("demo");
    let mut provision = program();
    provision
        .args(["provision", "--demo", "--protocol", "pooled", "--method", "inner=3", "--out"])
        .arg(&demo);
    let (code, text) = output(&mut provision);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("[method]: inner: pooled does not use it; leave it out"), "{text}");
    assert!(!demo.exists());
}
