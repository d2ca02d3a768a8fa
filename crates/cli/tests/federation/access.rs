//! Who can read the files of parties and coordinators, whatever the umask.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::trial::*;

/// The same command with a umask that allows everything.
fn generous(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    shell
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Everything in a folder, itself included.
fn all(folder: &Path) -> Vec<PathBuf> {
    let inner = fs::read_dir(folder).unwrap().flat_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { all(&path) } else { vec![path] }
    });
    inner.chain([folder.to_path_buf()]).collect()
}

/// Files that are meant for others are still in a private folder.
fn is_public(path: &Path) -> bool {
    let ends = ["crt", "request", "toml"];
    path.extension().is_some_and(|end| ends.iter().any(|public| *public == end))
}

fn assert_private(folder: &Path) {
    for path in all(folder).iter().filter(|path| !is_public(path)) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(path), expected, "{}", path.display());
    }
}

fn good(command: Command) {
    let (code, text) = output(&mut generous(&command));
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn files_of_parties_are_private() {
    let trial = Trial::new(3, &["--rounds", "4"]);
    let demo = trial.path("demo");
    let mut provision = program();
    provision.args(["provision", "--demo", "--out"]).arg(&demo);
    good(provision);
    assert_private(&demo);

    // An existing folder with a result and state that are readable by all.
    let (out, state) = (trial.path("result-1"), trial.party_folder(1).join("state"));
    for (folder, file) in [(&out, "V.npy"), (&state, "ledger.jsonl")] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join(file), "").unwrap();
        fs::set_permissions(folder.join(file), fs::Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let start = |command: &Command| Process::start(&mut generous(command));
    let mut coordinator = start(&trial.coordinator_command(&[]));
    coordinator.wait_for("listening on");
    let mut replacing = trial.party_command(1);
    replacing.arg("--force");
    let mut parties = vec![start(&replacing)];
    parties.extend([2, 3].map(|party| start(&trial.party_command(party))));
    // Also while it runs, because the journal is removed at the end.
    parties[0].wait_for("starting the run");
    (1..=3).for_each(|party| assert_private(&trial.party_folder(party).join("state")));
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    for party in 1..=3 {
        assert!(exists(&trial.path(&format!("result-{party}/report.html"))));
        assert_private(&trial.path(&format!("result-{party}")));
        assert_private(&trial.party_folder(party).join("state"));
        assert_private(&trial.party_folder(party).join("ledgers"));
    }
    assert_private(&trial.path("result"));
    assert_private(&trial.path("trial/coordinator"));

    // A page that is created later is as private as its result.
    fs::remove_file(trial.path("result-2/report.html")).unwrap();
    let mut report = program();
    report.arg("report").arg(trial.path("result-2"));
    good(report);
    assert_private(&trial.path("result-2"));
}

#[test]
fn files_of_a_simulation_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("all.csv"), folder.path().join("out"));
    fs::write(&data, records(0, 3 * RECORDS, FEATURES)).unwrap();
    let mut simulate = program();
    simulate.arg("simulate").arg(&data).args(["--parties", "3", "--protocol", "syn-sd", "--rank", "4"]);
    simulate.args(["--rounds", "4", "--record", "--quiet", "--out"]).arg(&out);
    good(simulate);
    assert!(exists(&out.join("party-1/V.npy")) && exists(&out.join("report.html")));
    assert_private(&out);
    let mut audit = program();
    audit.arg("audit").arg(&out);
    good(audit);
    assert!(exists(&out.join("audit.json")));
    assert_private(&out);

    // Weights in a separate file are as private as the result that they were computed from.
    for file in ["W.npy", "W.tsv"] {
        let (weights, part) = (folder.path().join(file), folder.path().join("one.csv"));
        fs::write(&part, records(0, 5, FEATURES)).unwrap();
        let mut transform = program();
        transform.arg("transform").arg(out.join("party-1")).arg(&part).arg("--out").arg(&weights);
        good(transform);
        assert_eq!(mode(&weights), 0o600);
    }
    let (start, more) = (out.join("party-1"), folder.path().join("more"));
    let mut factorize = program();
    factorize.arg("factorize").arg(folder.path().join("own.csv")).arg("--init-from").arg(start);
    factorize.args(["--rank", "4", "--iterations", "3", "--quiet", "--out"]).arg(&more);
    let run: serde_json::Value = serde_json::from_slice(&fs::read(out.join("run.json")).unwrap()).unwrap();
    let count = run["parties"][0]["records"].as_u64().unwrap() as usize;
    fs::write(folder.path().join("own.csv"), records(0, count, FEATURES)).unwrap();
    good(factorize);
    assert_private(&more);

    // Files that only concern the user follow the umask.
    let plain = folder.path().join("plain");
    let mut factorize = program();
    factorize
        .arg("factorize")
        .arg(&data)
        .args(["--rank", "2", "--iterations", "3", "--quiet", "--out"])
        .arg(&plain);
    good(factorize);
    assert_eq!(mode(&plain.join("V.npy")), 0o666);
    let mut transform = program();
    transform.arg("transform").arg(&plain).arg(&data).arg("--out").arg(folder.path().join("plain.npy"));
    good(transform);
    assert_eq!(mode(&folder.path().join("plain.npy")), 0o666);
}

#[test]
fn issued_certificates_can_only_be_replaced_by_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let (coordinator, party) = (folder.path().join("coordinator"), folder.path().join("north"));
    let of_party = ["party", "init", "north", "--federation", "demo", "--coordinator", "localhost:7400"];
    for (words, out) in [(&["coordinator", "init", "demo"][..], &coordinator), (&of_party[..], &party)] {
        let mut init = program();
        init.args(words).arg("--out").arg(out);
        good(init);
    }
    let mut sign = program();
    sign.args(["coordinator", "sign"]).arg(&coordinator).arg(party.join("north.request"));
    good(sign);
    assert!(exists(&coordinator.join("issued/north.crt")));
    assert_private(&coordinator);
    assert_private(&party);
}
