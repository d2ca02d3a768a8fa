//! Whole runs.

use std::fs;

use crate::disturbed;
use crate::trial::*;

/// All records of a federation in one file, and the party of each.
fn pooled_file(trial: &Trial) {
    fs::write(trial.path("all.csv"), records(0, RECORDS * trial.parties, FEATURES)).unwrap();
    let names: String =
        (0..RECORDS * trial.parties).map(|record| format!("p{:03}\n", record / RECORDS)).collect();
    fs::write(trial.path("split.txt"), names).unwrap();
}

/// The same bits as the simulation of the same federation, given the same starts of V.
#[test]
fn a_federation_gives_the_same_bits_as_the_simulation() {
    for protocol in ["syn-sd", "pooled", "syn-ssd-uv", "dsanls-limited"] {
        let accept = if protocol == "pooled" { &["--accept", "pooled-sums-show-records"][..] } else { &[] };
        let options = ["--protocol", protocol, "--rounds", "12"];
        let mut trial = Trial::new(3, &[&options[..], accept].concat());
        trial.line = vec!["--insecure"];
        let mut coordinator = trial.coordinator(&[]);
        let mut parties: Vec<Process> = (1..=3)
            .map(|party| Process::start(&mut disturbed::command(&trial, party, Some(0), None)))
            .collect();
        parties.iter_mut().for_each(Process::succeed);
        coordinator.succeed();

        pooled_file(&trial);
        let mut simulation = program();
        simulation.arg("simulate").arg(trial.path("all.csv")).args(["--rank", "4", "--quiet"]).args(options);
        simulation.arg("--split").arg(trial.path("split.txt")).arg("--out").arg(trial.path("simulated"));
        if protocol == "pooled" {
            simulation.arg("--accept-that-pooled-sums-show-records");
        }
        let (code, text) = output(&mut simulation);
        assert_eq!(code, Some(0), "{text}");
        for party in 1..=3 {
            for factor in ["U.npy", "V.npy"] {
                let simulated = trial.file(&format!("simulated/party-{party}/{factor}"));
                assert!(trial.file(&format!("result-{party}/{factor}")) == simulated, "{protocol}: {factor}");
            }
        }
        assert_eq!(trial.file("result/V.npy"), trial.file("result-1/V.npy"));
        assert_eq!(trial.error("result"), trial.error("simulated"));
        assert_eq!(trial.error("result-2"), trial.error("simulated"));
        // Nothing remains that only a restart would need.
        assert!(!exists(&trial.party_folder(1).join("state/party.journal")));
        assert!(!exists(&trial.path("trial/coordinator/state/coordinator.journal")));
    }
}

/// A party withholds its results if a component reproduces a record of it; the others have U nevertheless.
#[test]
fn results_that_are_a_single_record_are_withheld() {
    let mut trial = Trial::new(3, &["--protocol", "syn-sd", "--rounds", "60"]);
    trial.line = vec!["--insecure"];
    trial.record_cosine = "0.9";
    let text = records(0, RECORDS - 1, FEATURES);
    let loner: Vec<&str> = (0..FEATURES).map(|feature| if feature == 3 { "900" } else { "0" }).collect();
    fs::write(trial.path("data-1.csv"), format!("{text}{}\n", loner.join(","))).unwrap();
    let mut coordinator = trial.coordinator(&[]);
    let mut parties = trial.all_parties();
    parties[1..].iter_mut().for_each(Process::succeed);
    assert_eq!(parties[0].end().code(), Some(3), "{}", parties[0].text());
    coordinator.succeed();
    let said = parties[0].text();
    assert!(
        said.contains("withheld: a component is a single record") && said.contains("already seen U"),
        "{said}"
    );
    assert!(!exists(&trial.path("result-1")) && exists(&trial.path("result-2/V.npy")));
    let state = trial.party_folder(1).join("state");
    let kept = fs::read_dir(state).unwrap().map(|entry| entry.unwrap().path());
    let kept = { kept }.find(|path| path.display().to_string().contains("withheld-")).unwrap();
    assert!(exists(&kept.join("V.npy")));
    let own: serde_json::Value =
        serde_json::from_slice(&fs::read(kept.join("individuals.json")).unwrap()).unwrap();
    assert_eq!(own["components"][0]["record"], RECORDS - 1);
}

/// With certificates; six parties in two groups; `evaluate` confirms the error.
#[test]
fn an_asynchronous_federation_with_certificates() {
    let trial = Trial::new(6, &["--protocol", "asyn-sd", "--rounds", "300"]);
    // A fast group may do all rounds, which the policies of the parties allow.
    let policy = fs::read_to_string(trial.party_folder(1).join("party.toml")).unwrap();
    assert!(policy.contains("maximum_rounds = 600"), "{policy}");
    trial.edit("trial/coordinator/federation.toml", "rounds = 300", "rounds = 15");
    let mut coordinator = trial.coordinator(&[]);
    let mut parties = trial.all_parties();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    let error = trial.error("result");
    assert!((0.0..0.2).contains(&error), "{error}");
    for party in 1..=6 {
        assert_eq!(trial.file("result/V.npy"), trial.file(&format!("result-{party}/V.npy")));
        assert_eq!(trial.error(&format!("result-{party}")), error);
    }
    let (code, text) = output(
        program().args(["evaluate", "--json"]).arg(trial.path("result-3")).arg(trial.path("data-3.csv")),
    );
    assert_eq!(code, Some(0), "{text}");
    let evaluated: serde_json::Value = serde_json::from_str(&text).unwrap();
    let own = trial.record("result-3")["own_relative_error"].as_f64().unwrap();
    assert!((evaluated["relative_error"].as_f64().unwrap() - own).abs() < 1e-4, "{text}");
    // The coordinator's error curve decreases.
    let trace = String::from_utf8(trial.file("result/trace.csv")).unwrap();
    assert!(trace.lines().count() > 5, "{trace}");
}

/// Each party has a page with its own records, the coordinator one without records and names.
#[test]
fn every_run_has_its_page() {
    let mut trial = Trial::new(3, &["--rounds", "4"]);
    trial.line = vec!["--insecure"];
    let mut coordinator = trial.coordinator(&[]);
    let mut parties = [trial.party(1), trial.party(3)];
    let mut without = Process::start(trial.party_command(2).arg("--no-report"));
    without.succeed();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    assert!(parties[0].text().contains("report.html shows it"), "{}", parties[0].text());
    assert!(!exists(&trial.path("result-2/report.html")));
    let page = |folder: &str| String::from_utf8(trial.file(&format!("{folder}/report.html"))).unwrap();
    let own = page("result-1");
    for words in ["demo, party-1", "40 × 24", "syn-sd between 3 parties", "code3", "party-3", "sample 7"] {
        assert!(own.contains(words), "{words}");
    }
    let common = page("result");
    for words in
        ["demo, the coordinator", "syn-sd between 3 parties", "samples stay with the parties", "party-3"]
    {
        assert!(common.contains(words), "{words}");
    }
    assert!(common.contains("wall clock") && own.contains("wall clock"));
    for words in ["code3", "sample 7", "NaN", "% of samples"] {
        assert!(!common.contains(words), "{words}");
    }
    // The command regenerates the page afterwards.
    for folder in ["result", "result-1", "result-2"] {
        let (code, text) = output(program().arg("report").arg(trial.path(folder)));
        assert_eq!(code, Some(0), "{text}");
    }
    assert_eq!(page("result-1"), own);
    assert!(page("result-2").contains("demo, party-2"));
}

/// A party's U belongs to the rows of its file and its V to the columns, whichever side has the records; other
/// parties may have the other side.
#[test]
fn each_party_s_factors_are_those_of_its_own_file() {
    let mut trial = Trial::new(3, &["--rounds", "4"]);
    trial.line = vec!["--insecure"];
    let text = fs::read_to_string(trial.path("data-2.csv")).unwrap();
    let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let turned = |feature: usize| cells.iter().map(|row| row[feature]).collect::<Vec<_>>().join(",") + "\n";
    fs::write(trial.path("data-2.csv"), (0..FEATURES).map(turned).collect::<String>()).unwrap();
    let mut coordinator = trial.coordinator(&[]);
    let mut parties = [trial.party(1), trial.party(3)];
    let turned = ["--records", "columns", "--row-names", "yes", "--header", "no"];
    Process::start(trial.party_command(2).args(turned)).succeed();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    assert_eq!(trial.file("result-2/U.npy"), trial.file("result-1/V.npy"));
    assert_eq!(trial.file("result/V.npy"), trial.file("result-1/V.npy"));
    for (party, names, shared) in [(1, "columns.txt", "V"), (2, "rows.txt", "U")] {
        let folder = format!("result-{party}");
        assert!(
            String::from_utf8(trial.file(&format!("{folder}/{names}")))
                .unwrap()
                .starts_with("code0\ncode1\n")
        );
        assert_eq!(trial.record(&folder)["shared_factor"], shared);
        let mut evaluate = program();
        evaluate.args(["evaluate", "--json"]).arg(trial.path(&folder));
        let (code, text) = output(evaluate.arg(trial.path(&format!("data-{party}.csv"))));
        assert_eq!(code, Some(0), "{text}");
        let evaluated: serde_json::Value = serde_json::from_str(&text).unwrap();
        let own = trial.record(&folder)["own_relative_error"].as_f64().unwrap();
        assert!((evaluated["relative_error"].as_f64().unwrap() - own).abs() < 1e-4, "{text}");
    }
}

#[test]
fn the_paper_s_plain_exchange_runs_where_all_accept_it() {
    let trial = Trial::new(3, &["--rounds", "6", "--method", "aggregation=\"plain\""]);
    crate::faults::allow_plain(&trial);
    let mut coordinator = trial.coordinator(&[]);
    trial.all_parties().iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    let (code, text) = output(program().arg("audit").arg(trial.party_folder(2).join("state")));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("the coordinator"), "{text}");
}

/// The example of the documentation, unchanged.
#[test]
fn the_example_of_three_hospitals() {
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hospitals/run.sh");
    let mut command = std::process::Command::new(script);
    command.arg(folder.path()).env("PORT", free_port().to_string());
    command.env("PARTWISE", assert_cmd::cargo::cargo_bin!("partwise"));
    let (code, text) = output(&mut command);
    assert_eq!(code, Some(0), "{text}");
    let hospitals: Vec<&str> = text.lines().filter(|line| line.starts_with("hospital ")).collect();
    assert_eq!(hospitals.len(), 3, "{text}");
    // Records that come later are fitted better by the common components, except at the largest hospital.
    for line in &hospitals[1..] {
        let numbers: Vec<f64> =
            line.split_whitespace().skip(3).map(|number| number.parse().unwrap()).collect();
        assert!(numbers[3] < numbers[2] && numbers[5] > numbers[4], "{line}");
    }
    assert!(text.contains("chain unbroken"), "{text}");
}
