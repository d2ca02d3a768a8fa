//! Faults of parties and coordinators: killed, stopped, cut off, or with a full disk.

use std::fs;
use std::process::Command;

use crate::disturbed;
use crate::trial::*;

/// Enough features for an upload in two pieces.
const MANY: usize = 6000;

/// With this many features, few records are refused unless all accept the risk.
const FEW: &[&str] = &["--accept", "few-records-show-in-sums"];

fn large(trial: &Trial) {
    for party in 0..trial.parties {
        fs::write(trial.path(&format!("data-{}.csv", party + 1)), records(party * 8, 8, MANY)).unwrap();
    }
}

fn party(trial: &Trial, party: usize, death: Option<&str>) -> Process {
    Process::start(&mut disturbed::command(trial, party, Some(0), death))
}

fn insecure(parties: usize, extra: &[&str]) -> Trial {
    let mut trial = Trial::new(parties, extra);
    trial.line = vec!["--insecure"];
    trial
}

fn clear(trial: &Trial) {
    for name in (1..=trial.parties).map(|party| format!("result-{party}")).chain(["result".into()]) {
        fs::remove_dir_all(trial.path(&name)).unwrap();
    }
}

/// U and all V of a finished run.
fn results(trial: &Trial) -> Vec<Vec<u8>> {
    let of = |party: usize| ["U.npy", "V.npy"].map(|name| trial.file(&format!("result-{party}/{name}")));
    (1..=trial.parties).flat_map(of).collect()
}

fn undisturbed(trial: &Trial) -> Vec<Vec<u8>> {
    let mut coordinator = trial.coordinator(&[]);
    let mut parties: Vec<Process> = (1..=trial.parties).map(|number| party(trial, number, None)).collect();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    let results = results(trial);
    clear(trial);
    results
}

/// A party that is killed and restarted gives the same bits as without the fault.
fn killed(deaths: &[&str], extra: &[&str]) {
    let trial = insecure(3, &[&["--rounds", "6"], FEW, extra].concat());
    large(&trial);
    if extra.contains(&"aggregation=\"plain\"") {
        allow_plain(&trial);
    }
    let expected = undisturbed(&trial);
    for death in deaths {
        let mut coordinator = trial.coordinator(&[]);
        let mut others = [party(&trial, 1, None), party(&trial, 3, None)];
        let mut victim = party(&trial, 2, Some(death));
        assert!(!victim.end().success(), "{death}");
        coordinator.wait_for("party-2 has disconnected");
        // By default all parties wait and report it.
        coordinator.wait_for("waiting for party-2");
        others[0].wait_for("waiting for party-2");
        party(&trial, 2, None).succeed();
        others.iter_mut().for_each(Process::succeed);
        coordinator.succeed();
        assert!(results(&trial) == expected, "{death}");
        clear(&trial);
    }
}

/// Before, while and after it sends each kind of message, and before it reads each kind.
#[test]
fn a_party_killed_at_every_step() {
    let deaths = [
        "key,1,before",
        "key,1,after",
        "keys,1,before",
        "upload,1,before",
        "upload,4,before",
        "upload,4,during",
        "upload,4,after",
        "survivors,4,before",
        "signature,3,before",
        "signature,3,after",
        "signatures,4,before",
        "shares of masks,5,before",
        "shares of masks,5,after",
        "passed on,5,before",
        "opening,5,before",
        "opening,1,before",
    ];
    killed(&deaths, &[]);
}

#[test]
fn a_party_killed_in_a_plain_exchange() {
    let options = ["--method", "aggregation=\"plain\"", "--accept", "plain-shares-show-records"];
    killed(&["upload,4,before", "upload,4,after", "answer,5,before"], &options);
}

pub fn allow_plain(trial: &Trial) {
    for party in 1..=trial.parties {
        let name = format!("trial/party-{party}/party.toml");
        trial.edit(&name, "aggregation = [\"secure\"]", "aggregation = [\"plain\"]");
    }
}

/// Five parties open a sum although one of them has left after its upload; three of them would not.
#[test]
fn within_the_threshold_the_round_completes() {
    let trial = insecure(5, &["--rounds", "5"]);
    let expected = undisturbed(&trial);
    for death in [
        "upload,4,after",
        "survivors,4,before",
        "signature,3,before",
        "signatures,3,before",
        "shares of masks,4,before",
        "shares of masks,4,after",
    ] {
        let mut coordinator = trial.coordinator(&[]);
        let mut others: Vec<Process> = [1, 3, 4, 5].map(|number| party(&trial, number, None)).into();
        party(&trial, 2, Some(death)).end();
        // The sum is opened without its help; all wait for it in the next one.
        let waits = coordinator.wait_for("waiting for party-2");
        party(&trial, 2, None).succeed();
        coordinator.wait_for("party-2 missed 1 answers");
        others.iter_mut().for_each(Process::succeed);
        coordinator.succeed();
        assert!(results(&trial) == expected, "{death}: {waits}");
        clear(&trial);
    }
}

/// A run that continues ends as well as one that the leaver was never part of; a party that returns ends with the
/// others.
#[test]
fn the_others_continue_if_all_allow_it() {
    let options = ["--rank", "2", "--rounds", "60", "--continue-without", "--method", "tolerance=0"];
    let trial = insecure(5, &options);
    for party in 0..5 {
        let text = mixed_records(party * RECORDS, RECORDS, FEATURES);
        fs::write(trial.path(&format!("data-{}.csv", party + 1)), text).unwrap();
    }
    let expected = undisturbed_error(&trial, &["--continue-without"]);
    clear(&trial);
    let mut coordinator = trial.coordinator(&["--continue-without"]);
    let mut others: Vec<Process> = [1, 3, 4, 5].map(|number| party(&trial, number, None)).into();
    party(&trial, 2, Some("upload,8,before")).end();
    others.iter_mut().for_each(Process::succeed);
    coordinator.wait_for("a party was missing from some sums");
    coordinator.wait_for("without party-2; run twice");
    coordinator.succeed();
    assert_twice(&trial, 1, 120);
    assert_eq!(trial.record("result")["missing"][0], "party-2");
    let four = insecure(4, &options);
    for (number, from) in [1, 3, 4, 5].into_iter().enumerate() {
        fs::copy(trial.path(&format!("data-{from}.csv")), four.path(&format!("data-{}.csv", number + 1)))
            .unwrap();
    }
    assert_close(trial.error("result"), undisturbed_error(&four, &["--continue-without"]));

    fs::remove_dir_all(trial.path("result")).unwrap();
    [1, 3, 4, 5]
        .into_iter()
        .for_each(|number| fs::remove_dir_all(trial.path(&format!("result-{number}"))).unwrap());
    fs::remove_dir_all(trial.party_folder(2).join("state")).unwrap();
    let mut coordinator = trial.coordinator(&["--continue-without"]);
    // One of the others pauses, so that the run is still in progress when the party returns.
    let mut others: Vec<Process> = vec![party(&trial, 1, None)];
    others.push(party(&trial, 3, Some("upload,40,pause")));
    // Another party is away when the second attempt starts, and has to catch up with the end of one attempt and the
    // start of the other.
    others.push(party(&trial, 5, Some("upload,110,pause")));
    let mut second = party(&trial, 4, Some("upload,60,before"));
    party(&trial, 2, Some("upload,8,before")).end();
    others[1].wait_for("trial: pauses");
    let mut first = party(&trial, 2, None);
    coordinator.wait_for("party-2 missed");
    second.end();
    others[2].wait_for("trial: pauses");
    party(&trial, 4, None).succeed();
    coordinator.wait_for("party-4 missed");
    first.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    for number in 1..=5 {
        assert_eq!(trial.file("result/V.npy"), trial.file(&format!("result-{number}/V.npy")));
        assert_twice(&trial, number, 120);
    }
    assert_close(trial.error("result"), expected);
}

/// A group continues without one of its parties, and then both groups repeat the run, across a restart of the
/// coordinator.
#[test]
fn an_asynchronous_run_is_repeated_too() {
    let options = ["--rank", "2", "--rounds", "150", "--continue-without", "--protocol", "asyn-sd"];
    let trial = insecure(8, &options);
    let mut coordinator = trial.coordinator(&["--continue-without"]);
    let mut others = [1, 3, 4, 5, 6, 7, 8].map(|number| party(&trial, number, None));
    party(&trial, 2, Some("upload,8,before")).end();
    coordinator.wait_for("a party was missing from some sums");
    coordinator.signal("-KILL");
    coordinator.end();
    let mut coordinator = trial.coordinator(&["--continue-without"]);
    others.iter_mut().for_each(Process::succeed);
    coordinator.wait_for("without party-2; run twice");
    coordinator.succeed();
    let attempts = &trial.record("result")["attempts"];
    assert_eq!(attempts.as_array().unwrap().len(), 2);
    for number in [1, 3, 4, 5, 6, 7, 8] {
        assert_eq!(trial.file("result/V.npy"), trial.file(&format!("result-{number}/V.npy")));
        assert_eq!(&trial.record(&format!("result-{number}"))["attempts"], attempts);
    }
}

/// Asserts that the run was done twice with this many rounds in total, and that the better result was kept.
fn assert_twice(trial: &Trial, number: usize, rounds: u64) {
    let record = trial.record(&format!("result-{number}"));
    let attempts: Vec<f64> = serde_json::from_value(record["attempts"].clone()).unwrap();
    assert_eq!((attempts.len(), &record["rounds"]), (2, &rounds.into()));
    assert_eq!(record["relative_error"], attempts[0].min(attempts[1]));
}

/// A party that is lost after its last round is no reason to repeat the run if its group cannot do without it.
#[test]
fn a_party_lost_at_the_end_is_not_waited_for_in_vain() {
    let trial = insecure(6, &["--rank", "2", "--rounds", "1", "--continue-without", "--protocol", "asyn-sd"]);
    let mut coordinator = trial.coordinator(&["--continue-without"]);
    let mut others = [1, 3, 4, 5, 6].map(|number| party(&trial, number, None));
    // Sums: a flag, records and features, votes and sums of norms, of diagonals and of U, and the end. Each
    // takes one or two rounds, and the twelfth is that of the error.
    party(&trial, 2, Some("upload,12,before")).end();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    let record = trial.record("result");
    assert_eq!((&record["missing"][0], &record["attempts"]), (&"party-2".into(), &serde_json::json!([])));
}

fn undisturbed_error(trial: &Trial, arguments: &[&str]) -> f64 {
    let mut coordinator = trial.coordinator(arguments);
    let mut parties: Vec<Process> = (1..=trial.parties).map(|number| party(trial, number, None)).collect();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    trial.error("result")
}

fn assert_close(error: f64, expected: f64) {
    assert!((error / expected - 1.0).abs() < 0.01, "{error} against {expected}");
}

/// The same on faces, where there are many minima: one of five parties leaves early, in the middle, or late.
#[test]
#[ignore = "some minutes, and needs PARTWISE_DATA"]
fn going_on_costs_little_on_real_data() {
    let options = ["--rank", "10", "--rounds", "300", "--continue-without"];
    let (five, four) = (insecure(5, &options), insecure(4, &options));
    deal(&five, "face.npy.gz");
    for number in 1..=4 {
        let name = format!("data-{number}.npy");
        fs::copy(five.path(&name), four.path(&name)).unwrap();
    }
    let expected = undisturbed_error(&four, &["--continue-without"]);
    for uploads in [3, 30, 150] {
        let mut coordinator = five.coordinator(&["--continue-without"]);
        let mut others: Vec<Process> = (1..=4).map(|number| party(&five, number, None)).collect();
        party(&five, 5, Some(&format!("upload,{uploads},before"))).end();
        others.iter_mut().for_each(Process::succeed);
        coordinator.succeed();
        assert_eq!(five.record("result")["missing"][0], "party-5");
        let error = five.error("result");
        let attempts = &five.record("result-1")["attempts"];
        eprintln!(
            "left before upload {uploads}: {error:.6} of {attempts}, without it from the beginning {expected:.6}"
        );
        assert_close(error, expected);
        for name in ["result", "result-1", "result-2", "result-3", "result-4"] {
            fs::remove_dir_all(five.path(name)).unwrap();
        }
        fs::remove_dir_all(five.party_folder(5).join("state")).unwrap();
    }
}

/// A stopped process is detected by its silence; when it continues, so does the run.
#[test]
fn a_party_that_hangs_is_waited_for() {
    let trial = insecure(3, &["--rounds", "5"]);
    let expected = undisturbed(&trial);
    let mut coordinator = trial.coordinator(&[]);
    let mut others = [party(&trial, 1, None), party(&trial, 3, None)];
    let mut victim = party(&trial, 2, Some("upload,4,hang"));
    coordinator.wait_for("party-2 has disconnected");
    coordinator.wait_for("waiting for party-2");
    victim.signal("-CONT");
    victim.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    assert!(results(&trial) == expected);
}

/// A stopped coordinator is detected by its silence; when it continues, so does the run.
#[test]
fn a_coordinator_that_hangs_is_noticed_and_found_again() {
    let trial = insecure(3, &["--rounds", "5"]);
    let expected = undisturbed(&trial);
    let mut coordinator = trial.coordinator(&[]);
    let mut parties = [1, 2].map(|number| party(&trial, number, None));
    parties[0].wait_for("waiting for all parties");
    coordinator.signal("-STOP");
    parties[0].wait_for("lost the connection to the coordinator");
    coordinator.signal("-CONT");
    party(&trial, 3, None).succeed();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    assert!(results(&trial) == expected);
}

/// A party that computes for too long is only reported; it is still connected.
#[test]
fn a_silent_party_is_reported() {
    let trial = insecure(3, &["--rounds", "3", "--deadline", "1"]);
    let mut coordinator = trial.coordinator(&[]);
    let mut others = [party(&trial, 1, None), party(&trial, 3, None)];
    let mut victim = party(&trial, 2, Some("upload,3,pause"));
    coordinator.wait_for("party-2 is connected but unresponsive");
    victim.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
}

/// The coordinator is killed in the middle of a sum, and while all wait; the parties reconnect.
#[test]
fn a_coordinator_may_be_killed_and_started_again() {
    for protocol in ["syn-sd", "asyn-sd"] {
        let trial = insecure(3, &["--rounds", "6", "--protocol", protocol]);
        let mut coordinator = trial.coordinator(&[]);
        let mut others = [party(&trial, 1, None), party(&trial, 3, None)];
        party(&trial, 2, Some("upload,4,after")).end();
        coordinator.wait_for("waiting for party-2");
        coordinator.kill();
        let mut coordinator = trial.coordinator(&[]);
        coordinator.wait_for("resuming the run after");
        let mut victim = party(&trial, 2, Some("upload,2,pause"));
        victim.wait_for("trial: pauses");
        coordinator.kill();
        let mut coordinator = trial.coordinator(&[]);
        victim.succeed();
        others.iter_mut().for_each(Process::succeed);
        coordinator.succeed();
        if protocol == "syn-sd" {
            let disturbed = results(&trial);
            clear(&trial);
            assert!(undisturbed(&trial) == disturbed);
        }
    }
}

/// The other group of an asynchronous run continues while one waits, until its own rounds are done. However long
/// and whenever that is, the result is as good as without the fault.
#[test]
fn other_groups_never_stop() {
    let trial = insecure(6, &["--rank", "2", "--rounds", "40", "--protocol", "asyn-sd"]);
    for party in 0..6 {
        let text = mixed_records(party * RECORDS, RECORDS, FEATURES);
        fs::write(trial.path(&format!("data-{}.csv", party + 1)), text).unwrap();
    }
    let expected = undisturbed_error(&trial, &[]);
    for (uploads, pause, others_do) in [(8, 8, 20), (38, 30, 1)] {
        clear(&trial);
        let mut coordinator = trial.coordinator(&["--log", "json"]);
        let mut others: Vec<Process> = [1, 3, 4, 6].map(|number| party(&trial, number, None)).into();
        // The other group has rounds left when the first one waits, however fast each of them is.
        others.push(party(&trial, 5, Some(&format!("upload,{pause},pause"))));
        party(&trial, 2, Some(&format!("upload,{uploads},before"))).end();
        coordinator.wait_for("waiting for party-2");
        let (before, patience) = (journal_length(&trial), std::time::Instant::now() + PATIENCE);
        // Waits until it stops making progress.
        let (mut length, mut since) = (before, std::time::Instant::now());
        while since.elapsed() < std::time::Duration::from_secs(2) || length < before + others_do * 300 {
            assert!(
                std::time::Instant::now() < patience,
                "the other group stands still: {before} to {length} bytes"
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
            if journal_length(&trial) > length {
                (length, since) = (journal_length(&trial), std::time::Instant::now());
            }
        }
        party(&trial, 2, None).succeed();
        others.iter_mut().for_each(Process::succeed);
        coordinator.succeed();
        assert_close(trial.error("result"), expected);
    }
}

fn journal_length(trial: &Trial) -> u64 {
    fs::metadata(trial.path("trial/coordinator/state/coordinator.journal")).map_or(0, |file| file.len())
}

fn mount(arguments: &[&str], folder: &std::path::Path) -> bool {
    Command::new("mount").args(arguments).arg(folder).output().is_ok_and(|output| output.status.success())
}

/// A full disk is reported, nothing is lost, and with free space the party resumes.
#[test]
fn a_full_disk_at_a_party_ends_it_with_its_state_whole() {
    let trial = insecure(3, &[&["--rounds", "6"], FEW].concat());
    large(&trial);
    let expected = undisturbed(&trial);
    let state = trial.party_folder(2).join("state");
    let _ = fs::create_dir(&state);
    if !mount(&["-t", "tmpfs", "-o", "size=300k", "tmpfs"], &state) {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    struct Mounted(std::path::PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
        }
    }
    let _mounted = Mounted(state.clone());
    let mut coordinator = trial.coordinator(&[]);
    let mut others = [party(&trial, 1, None), party(&trial, 3, None)];
    party(&trial, 2, None).fail("free space there and start again");
    assert!(mount(&["-o", "remount,size=20m"], &state));
    party(&trial, 2, None).succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    assert!(results(&trial) == expected);
}

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
}

/// A connection that carries nothing in one direction, then nothing in the other, then nothing at all: heartbeats
/// detect it, and the party reconnects.
#[test]
#[ignore = "a minute, and changes the machine's network for that time"]
fn a_cut_line_in_each_direction() {
    let id = std::process::id() % 10_000;
    let space = format!("pw{id}");
    let network = format!("10.{}.{}", 100 + id / 256 % 100, id % 256);
    let made = ip(&format!("netns add {space}"))
        && ip(&format!("link add pwa{id} type veth peer name pwb{id} netns {space}"))
        && ip(&format!("addr add {network}.1/24 dev pwa{id}"))
        && ip(&format!("link set pwa{id} up"))
        && ip(&format!("-n {space} addr add {network}.2/24 dev pwb{id}"))
        && ip(&format!("-n {space} link set pwb{id} up"));
    if !made {
        ip(&format!("netns del {space}"));
        return eprintln!("skipped: no network can be made here");
    }
    struct Space(String);
    impl Drop for Space {
        fn drop(&mut self) {
            ip(&format!("netns del {}", self.0));
        }
    }
    let _space = Space(space.clone());
    let cuts: [(&str, String, String); 3] = [
        (
            "from the party",
            format!("-n {space} route add blackhole {network}.1/32"),
            format!("-n {space} route del blackhole {network}.1/32"),
        ),
        (
            "to the party",
            format!("route add blackhole {network}.2/32"),
            format!("route del blackhole {network}.2/32"),
        ),
        ("both", format!("-n {space} link set pwb{id} down"), format!("-n {space} link set pwb{id} up")),
    ];
    for (what, cut, mend) in cuts {
        let trial = Trial::new(3, &["--rounds", "5"]);
        trial.edit("trial/coordinator/federation.toml", "127.0.0.1:", "0.0.0.0:");
        trial.edit("trial/party-2/party.toml", "127.0.0.1:", &format!("{network}.1:"));
        let mut coordinator = trial.coordinator(&[]);
        let mut others = [trial.party(1), trial.party(3)];
        let inside = disturbed::command(&trial, 2, None, Some("upload,4,pause"));
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &space]).arg(inside.get_program()).args(inside.get_args());
        command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut victim = Process::start(&mut command);
        victim.wait_for("trial: pauses");
        assert!(ip(&cut), "{what}");
        coordinator.wait_for("party-2 has disconnected");
        victim.wait_for("lost the connection to the coordinator");
        assert!(ip(&mend), "{what}");
        victim.succeed();
        others.iter_mut().for_each(Process::succeed);
        coordinator.succeed();
        assert_eq!(trial.record("result")["missing"].as_array().unwrap().len(), 0, "{what}");
    }
}
