//! `partwise audit` and `partwise simulate --audit` from their command lines.

use crate::common::*;

const RECORDED: &str = "simulate digits.npy --rank 4 --rounds 4 --parties 4 --protocol syn-sd --holdout 300 --record --quiet --out r";

#[test]
fn an_audit_prints_tables_and_a_verdict_and_writes_json() {
    let desk = Desk::with_digits();
    let said = desk.run(
        "simulate digits.npy --rank 4 --rounds 5 --parties 4 --protocol syn-sd --audit --holdout 25% --colluders 2 --out r",
    );
    for expected in [
        "4 parties with 337 to 337 records",
        "what left the parties",
        "masked     all others together",
        "2 parties and the coordinator  matching",
        "look like random words",
        "The coordinator ",
        "Anyone who has the final U",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
    let audit = desk.json("r/audit.json");
    assert_eq!(audit["run"]["held_out"], 449);
    let findings = audit["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| {
        finding["standard_error"].as_f64().unwrap() > 0.0
            && finding["members"] == 1348
            && finding["others"] == 449
    }));
    let masked = findings.iter().find(|finding| finding["on"] == "messages").unwrap();
    assert!((masked["auc"].as_f64().unwrap() - 0.5).abs() < 0.08, "{masked}");
    assert!(findings.iter().any(|finding| finding["seat"]["colluding"] == 2), "{audit}");
    let left = audit["left"].as_array().unwrap();
    let shares = left.iter().find(|left| left["party"] == 3 && left["kind"] == "U").unwrap();
    assert_eq!((shares["cover"].as_str(), shares["count"].as_u64() >= Some(5)), (Some("masked"), true));
    // The transcript has everything that was sent.
    for party in desk.json("r/run.json")["parties"].as_array().unwrap() {
        let total = |parts: &[serde_json::Value], key: &str| -> u64 {
            parts.iter().map(|part| part[key].as_u64().unwrap()).sum()
        };
        let own: Vec<_> = left.iter().filter(|left| left["party"] == party["party"]).cloned().collect();
        let sent = party["sent"].as_array().unwrap();
        assert_eq!(total(&own, "bytes"), total(sent, "bytes"));
        assert_eq!(total(&own, "count"), total(sent, "count"));
    }
    // Nothing that was not requested is kept.
    assert!(!desk.path("r/transcript.bin").exists());
    assert!(desk.json("r/run.json")["recorded"].is_null());
}

#[test]
fn a_recorded_run_can_be_audited_later_with_the_same_result() {
    let desk = Desk::with_digits();
    desk.run(&format!("{RECORDED} --audit"));
    let first = desk.read("r/audit.json");
    std::fs::remove_file(desk.path("r/audit.json")).unwrap();
    desk.run("report r");
    assert!(desk.read("r/report.html").contains("was not audited"));
    let said = desk.run("audit r");
    // The existing page shows it.
    assert!(desk.read("r/report.html").contains("Anyone who has the final U"));
    assert!(
        said.contains("attacks: can an adversary tell") && said.contains("Anyone who has the final U"),
        "{said}"
    );
    assert_eq!(desk.read("r/audit.json"), first);
    assert_says(&desk.refused("audit r"), &["r/audit.json", "already exists", "--force"]);
    let printed: serde_json::Value =
        serde_json::from_str(&desk.run("audit r --force --json --colluders 2")).unwrap();
    assert_eq!(printed["run"]["colluders"], 2);
    // The same bytes at another path are accepted; others are not.
    std::fs::rename(desk.path("digits.npy"), desk.path("moved.npy")).unwrap();
    assert_says(&desk.refused("audit r --force"), &["digits.npy", "does not exist", "--data"]);
    desk.run("audit r --force --quiet --data moved.npy");
    desk.write_factor("other.npy", &(5, 2, vec![1.0; 10]));
    assert_says(
        &desk.refused("audit r --force --data other.npy"),
        &["other.npy", "not the matrix of this run", "--data"],
    );
    // A new run in the same folder removes the transcript of the old one.
    desk.run("simulate moved.npy --rank 4 --rounds 2 --parties 4 --protocol syn-sd --force --quiet --out r");
    assert!(!desk.path("r/transcript.bin").exists() && !desk.path("r/audit.json").exists());
}

#[test]
fn a_limit_that_is_passed_is_exit_code_3() {
    let desk = Desk::with_digits();
    let plain = "--aggregation plain --accept-that-plain-shares-show-records";
    let simulate = format!(
        "simulate digits.npy --rank 20 --rounds 5 --parties 5 --protocol syn-sd --holdout 1747 {plain} --audit --quiet"
    );
    let output = desk.output(&format!("{simulate} --max-auc 0.6 --record --out r"));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("limit exceeded: the AUC ") && said.contains("--max-auc 0.6"), "{said}");
    // The result is written nevertheless.
    assert!(desk.json("r/audit.json")["highest_auc"].as_f64().unwrap() > 0.9);
    assert_eq!(desk.output("audit r --force --quiet --max-auc 0.9").status.code(), Some(3));
    assert_eq!(desk.output("audit r --force --quiet --max-auc 1").status.code(), Some(0));
    assert_eq!(desk.output(&format!("{simulate} --max-auc 1 --out s")).status.code(), Some(0));
}

/// Whole people are held out, and results about single people are only in their own party's folder.
#[test]
fn people_are_audited_and_shown_to_their_own_party() {
    let desk = Desk::with_digits();
    let people: String = (0..1797).map(|record| format!("person {}\n", record / 3)).collect();
    desk.write("people.txt", &people);
    desk.run(&format!("{RECORDED} --person people.txt --audit"));
    let audit = desk.json("r/audit.json");
    assert_eq!((&audit["run"]["held_out"], &audit["individuals"]["people"]), (&300.into(), &499.into()));
    assert!(audit["findings"].as_array().unwrap().iter().all(|finding| finding["others"] == 100));
    assert_eq!(audit["individuals"]["left_out"].as_array().unwrap().len(), 3);
    assert!(audit["owners"].is_null() && !desk.read("r/audit.json").contains("\"record\""));
    let own = |party: usize| desk.json(&format!("r/party-{party}/individuals.json"));
    for party in 1..=4 {
        assert_eq!(own(party)["components"].as_array().unwrap().len(), 10);
        assert_eq!(own(party)["members"].as_array().unwrap().len(), 10);
    }
    // The audit of the recorded run gives the same result.
    let before = (desk.read("r/audit.json"), own(2));
    desk.run("audit r --force --quiet");
    assert!((desk.read("r/audit.json"), own(2)) == before);
    assert_says(
        &desk.refused(
            "simulate digits.npy --rank 4 --parties 4 --protocol syn-sd --person r/run.json --out x",
        ),
        &["r/run.json", "labels"],
    );
    desk.write("blank.txt", people.replacen("person 1\n", "\n", 1));
    assert_says(
        &desk
            .refused("simulate digits.npy --rank 4 --parties 4 --protocol syn-sd --person blank.txt --out x"),
        &["--person", "blank.txt", "line 4"],
    );
}

#[test]
fn a_component_that_is_a_record_is_exit_code_3() {
    let desk = Desk::new();
    let value = |place: usize| match (place / 12, place % 12) {
        (7, feature) => {
            if feature > 8 {
                50.0
            } else {
                0.0
            }
        }
        (record, feature) => {
            if feature % 3 == record % 3 && feature < 9 {
                3.0
            } else {
                0.1 + (place % 7) as f64 / 70.0
            }
        }
    };
    desk.write_factor("loner.npy", &(200, 12, (0..200 * 12).map(value).collect()));
    let simulate = "simulate loner.npy --rank 4 --rounds 60 --parties 4 --protocol syn-sd --seed 2 --holdout 20 --audit --quiet";
    let output = desk.output(&format!("{simulate} --max-record-cosine 0.9 --record --out r"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.starts_with("limit exceeded: a component is a single record") && said.contains("seen U"),
        "{said}"
    );
    let audit = desk.json("r/audit.json");
    assert!(audit["exposed"] == true && audit["verdict"][0].as_str().unwrap().contains("exposed"), "{audit}");
    assert!(desk.read("r/report.html").contains("Is a component a single person?"));
    assert_eq!(desk.output("audit r --force --quiet --max-record-cosine 1").status.code(), Some(0));
    assert_eq!(desk.output("audit r --force --quiet --max-record-cosine 0.9").status.code(), Some(3));
    assert_says(
        &desk.refused(&format!("{simulate} --max-record-cosine 2 --out s")),
        &["--max-record-cosine", "from 0 to 1"],
    );
}

#[test]
fn runs_that_cannot_be_audited_are_refused() {
    let desk = Desk::with_digits();
    assert_says(&desk.refused("audit none"), &["none", "not a folder", "simulate --record"]);
    std::fs::create_dir(desk.path("empty")).unwrap();
    assert_says(&desk.refused("audit empty"), &["run.json", "simulate --record"]);
    desk.run("simulate digits.npy --rank 4 --rounds 2 --parties 4 --protocol syn-sd --quiet --out r");
    assert_says(&desk.refused("audit r"), &["r has no transcript", "--record"]);
    let simulate = "simulate digits.npy --rank 4 --rounds 2 --parties 4 --protocol syn-sd --out x";
    assert_says(
        &desk.refused(&format!("{simulate} --holdout 1797 --audit")),
        &["--holdout", "1797 of 1797", "fewer"],
    );
    assert_says(&desk.refused(&format!("{simulate} --holdout 0 --audit")), &["--holdout", "0 is too few"]);
    assert_says(&desk.refused(&format!("{simulate} --audit --max-auc 0.4")), &["--max-auc", "from 0.5"]);
    assert_says(&desk.refused(&format!("{simulate} --max-auc 0.6")), &["--audit"]);
    assert_says(
        &desk.refused(&simulate.replace("--rounds 2", "--audit --rounds 999999999")),
        &["--rounds", "fewer rounds"],
    );

    desk.run(RECORDED.replace("--out r", "--force --out r").as_str());
    let whole = desk.bytes("r/transcript.bin");
    desk.write("r/transcript.bin", &whole[..whole.len() / 2]);
    assert_says(&desk.refused("audit r"), &["r/transcript.bin", "truncated", "--record"]);
    desk.write("r/transcript.bin", b"something else that is longer than its beginning");
    assert_says(&desk.refused("audit r"), &["r/transcript.bin", "not a transcript", "--record"]);
    desk.write("r/transcript.bin", &whole);
    let mut record = desk.json("r/run.json");
    record["recorded"]["held_out"][1][0] = 99999.into();
    desk.write("r/run.json", record.to_string());
    assert_says(&desk.refused("audit r"), &["run.json", "records that do not exist"]);
    record["recorded"]["dealt"] = serde_json::json!([]);
    desk.write("r/run.json", record.to_string());
    assert_says(&desk.refused("audit r"), &["run.json", "records of 0 parties"]);
    desk.write("r/run.json", "{");
    assert_says(&desk.refused("audit r"), &["run.json", "not the record of a run"]);
}
