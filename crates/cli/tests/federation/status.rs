//! The status page, logs and ledgers.

use std::fs;
use std::io::{Read, Write};
use std::process::Command;
use std::time::Instant;

use crate::disturbed;
use crate::trial::*;

fn get(address: &str, request: &str) -> (String, String) {
    get_as(address, address, request)
}

fn get_as(host: &str, address: &str, request: &str) -> (String, String) {
    let mut stream = connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_string(), body.to_string())
}

fn with_status(trial: &Trial, extra: &[&str]) -> (Process, String) {
    let coordinator = trial.coordinator(&[&["--status-address", "127.0.0.1:0"][..], extra].concat());
    let line = coordinator.wait_for("status page on http://");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_string();
    (coordinator, address)
}

/// Parties come and go; the page, the metrics and the health check show it, and nothing can be changed there.
#[test]
fn the_status_tells_how_it_stands() {
    let mut trial = Trial::new(3, &["--rounds", "8", "--method", "tolerance=0"]);
    trial.line = vec!["--insecure"];
    let (mut coordinator, address) = with_status(&trial, &[]);
    let status =
        || -> serde_json::Value { serde_json::from_str(&get(&address, "GET /status.json").1).unwrap() };
    assert_eq!(get(&address, "GET /healthz").1, "ok\n");
    assert_eq!(status()["parties"][0]["state"], "absent");
    let mut others = [trial.party(1), trial.party(3)];
    let mut victim = Process::start(&mut disturbed::command(&trial, 2, None, Some("upload,6,before")));
    victim.end();
    coordinator.wait_for("waiting for party-2");
    let now = status();
    assert_eq!(now["parties"][1]["state"], "absent");
    assert_eq!(now["parties"][1]["dropouts"], 1);
    assert_eq!(now["parties"][0]["state"], "connected");
    assert!(now["parties"][0]["bytes_received"].as_u64().unwrap() > 1000);
    assert_eq!(now["waiting_for"][0], "party-2");
    assert!(now["sums"].as_u64().unwrap() > 2);
    let (head, metrics) = get(&address, "GET /metrics");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    for line in [
        "# TYPE partwise_sums_total counter",
        "partwise_party_connected{party=\"party-2\"} 0",
        "partwise_party_connected{party=\"party-1\"} 1",
        "partwise_party_dropouts_total{party=\"party-2\"} 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    // Requests for another site's name that resolves to this machine are refused.
    for path in ["GET /", "GET /status.json", "GET /metrics"] {
        let (head, body) = get_as("other.example:7401", &address, path);
        assert!(head.contains("421") && !body.contains("party-1"), "{head}");
    }
    assert!(get_as("localhost:9000", &address, "GET /status.json").0.contains("200"));
    assert!(get(&address, "POST /status.json").0.contains("405"));
    assert!(get(&address, "GET /../etc/passwd").0.contains("404"));
    let (head, page) = get(&address, "GET /");
    assert!(head.contains("content-security-policy") && page.contains("Error over rounds"), "{head}");
    trial.party(2).succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
}

fn chromium() -> Option<&'static str> {
    let there = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there)
}

/// The page as a browser shows it after its script ran.
fn rendered(browser: &str, address: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--virtual-time-budget=2500",
        ])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .arg("--dump-dom")
        .arg(format!("http://{address}/"));
    output(&mut command).1
}

#[test]
fn the_page_in_a_browser() {
    let browser = chromium().expect("this needs Chromium: tools/chromium.sh installs it");
    let mut trial = Trial::new(3, &["--rounds", "60", "--method", "tolerance=0"]);
    trial.line = vec!["--insecure"];
    let (mut coordinator, address) = with_status(&trial, &[]);
    let first = trial.party(1);
    first.wait_for("waiting for all parties");
    let page = rendered(browser, &address);
    assert!(page.contains("Federation demo") && page.contains("waiting for all parties"), "{page}");
    assert!(page.contains("<td class=\"connected\">connected</td>"), "{page}");
    assert_eq!(page.matches("<td class=\"absent\">absent</td>").count(), 2, "{page}");
    // A party leaves, the run waits, and the error curve is drawn.
    let mut others = [first, trial.party(3)];
    Process::start(&mut disturbed::command(&trial, 2, None, Some("upload,30,before"))).end();
    coordinator.wait_for("waiting for party-2");
    let page = rendered(browser, &address);
    assert!(page.contains("Waiting for party-2."), "{page}");
    assert_eq!(page.matches("<td class=\"absent\">absent</td>").count(), 1, "{page}");
    assert!(page.contains("polyline") && page.contains("relative error 0."), "{page}");
    // The party returns.
    let mut again = Process::start(&mut disturbed::command(&trial, 2, None, Some("upload,5,hang")));
    coordinator.wait_for_times("has disconnected", 2);
    again.signal("-CONT");
    again.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
}

/// A proxy that lets `change` happen before the second request for the status.
fn watched(address: &str, change: impl FnOnce() + Send + 'static) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, address) = (listener.local_addr().unwrap().to_string(), address.to_string());
    std::thread::spawn(move || {
        let (mut looks, mut change) = (0, Some(change));
        for mut browser in listener.incoming().map_while(Result::ok) {
            browser.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut head = [0; 4096];
            let length = browser.read(&mut head).unwrap_or(0);
            let text = String::from_utf8_lossy(&head[..length]).into_owned();
            let Some(path) = text.split_whitespace().nth(1) else { continue };
            looks += usize::from(path == "/status.json");
            if looks == 2
                && let Some(change) = change.take()
            {
                change();
            }
            let (head, body) = get(&address, &format!("GET {path}"));
            let _ = write!(browser, "{head}\r\nconnection: close\r\n\r\n{body}");
        }
    });
    own
}

/// A page that stays open shows the latest state.
#[test]
fn the_page_updates_itself() {
    let browser = chromium().expect("this needs Chromium: tools/chromium.sh installs it");
    let mut trial = Trial::new(3, &["--rounds", "4"]);
    trial.line = vec!["--insecure"];
    let (_coordinator, address) = with_status(&trial, &[]);
    let mut command = trial.party_command(1);
    let (started, joined) = std::sync::mpsc::channel();
    let page = watched(&address, move || {
        let party = Process::start(&mut command);
        party.wait_for("waiting for all parties");
        started.send(party).unwrap();
    });
    let page = rendered(browser, &page);
    let _party = joined.try_recv().expect("the page looked once");
    assert_eq!(page.matches("<td class=\"connected\">connected</td>").count(), 1, "{page}");
}

/// Planted values, names and keys are in no log, status, ledger or result of the coordinator.
#[test]
fn nothing_secret_is_logged() {
    let mut trial = Trial::new(3, &["--rounds", "4"]);
    for party in 1..=3 {
        let name = format!("data-{party}.csv");
        trial.edit(&name, "code7,", "plantedname,");
        let text = fs::read_to_string(trial.path(&name)).unwrap();
        let (head, first) = text.split_once('\n').unwrap();
        let (_, rest) = first.split_once(',').unwrap();
        fs::write(trial.path(&name), format!("{head}\n7654.3125,{rest}")).unwrap();
    }
    trial.line = vec!["--log", "json"];
    let (mut coordinator, address) = with_status(&trial, &[]);
    let mut others = [trial.party(1), trial.party(3)];
    Process::start(&mut disturbed::command(&trial, 2, None, Some("upload,4,before"))).end();
    coordinator.wait_for("waiting for party-2");
    let mut said = vec![get(&address, "GET /status.json").1, get(&address, "GET /metrics").1];
    let mut again = trial.party(2);
    again.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    for process in others.iter().chain([&again, &coordinator]) {
        let text = process.text();
        let lines = text.lines().filter(|line| !line.starts_with("relative error"));
        for line in lines {
            let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            assert!(line["time"].is_string() && line["level"].is_string() && line["message"].is_string());
        }
        said.push(text);
    }
    // Unreadable records are not quoted either, and the last line is an object like all others.
    fs::write(trial.path("data-3.csv"), "plantedname,code3\n1,7654.3125x\n2,3\n").unwrap();
    fs::remove_dir_all(trial.path("result-3")).unwrap();
    let mut broken = trial.party(3);
    assert_eq!(broken.end().code(), Some(2));
    let last: serde_json::Value = serde_json::from_str(&broken.text()).unwrap();
    assert_eq!(last["level"], "error");
    assert!(last["message"].as_str().unwrap().contains("data-3.csv: cannot be used"), "{last}");
    said.push(broken.text());
    for party in 1..=3 {
        let state = trial.party_folder(party).join("state");
        said.push(fs::read_to_string(state.join("ledger.jsonl")).unwrap());
    }
    said.push(String::from_utf8_lossy(&trial.file("result/run.json")).into_owned());
    let mut planted = vec!["7654.3".to_string(), "plantedname".into(), "code3".into()];
    for party in 1..=3 {
        let secret = fs::read_to_string(trial.party_folder(party).join("identity.key")).unwrap();
        planted.push(secret.trim().into());
    }
    for text in &said {
        for value in &planted {
            assert!(!text.contains(value), "{value} is in {text}");
        }
    }
}

/// The ledger lists every message, and a changed ledger is detected.
#[test]
fn the_ledger_is_read_by_audit() {
    let mut trial = Trial::new(3, &["--rounds", "4"]);
    trial.line = vec!["--insecure"];
    let mut coordinator = trial.coordinator(&[]);
    trial.all_parties().iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    let state = trial.party_folder(1).join("state");
    let (code, text) = output(program().args(["audit", "--json"]).arg(&state));
    assert_eq!(code, Some(0), "{text}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let sent = report["sent"].as_array().unwrap();
    let of = |kind: &str| {
        sent.iter().find(|line| line["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {text}"))
    };
    // It joins, offers, agrees and is ready; then the norm, the errors, and the message that it has its result.
    let errors = String::from_utf8(trial.file("result-1/trace.csv")).unwrap().lines().count() as u64 - 1;
    assert_eq!(of("control")["count"].as_u64(), Some(4 + 1 + errors + 1));
    let sums = trial.record("result")["sums"].as_u64().unwrap();
    assert_eq!(
        (of("upload")["cover"].as_str(), of("upload")["count"].as_u64()),
        (Some("masked"), Some(sums))
    );
    assert_eq!(of("signature")["count"].as_u64(), Some(sums));
    // One party is asked for U.
    let gave = |party: usize| {
        let ledger = fs::read_to_string(trial.party_folder(party).join("state/ledger.jsonl")).unwrap();
        ledger.matches("\"kind\":\"U\",\"cover\":\"public\"").count()
    };
    assert_eq!((1..=3).map(gave).sum::<usize>(), 1);
    let ledger = state.join("ledger.jsonl");
    let changed =
        fs::read_to_string(&ledger).unwrap().replacen("\"cover\":\"masked\"", "\"cover\":\"public\"", 1);
    fs::write(&ledger, changed).unwrap();
    let (code, text) = output(program().arg("audit").arg(&state));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("was changed after it was written"), "{text}");
    // A party refuses to continue with such a ledger.
    fs::remove_dir_all(trial.path("result-1")).unwrap();
    trial.party(1).fail("was changed after it was written");
}

/// Fifty processes on `mnist`: memory of the coordinator, and bytes against what the protocol needs.
#[test]
#[ignore = "some minutes, and needs PARTWISE_DATA"]
fn fifty_parties() {
    let rounds = "10";
    let trial = Trial::new(50, &["--rounds", rounds, "--method", "tolerance=0", "--rank", "20"]);
    let file = deal(&trial, "mnist.npy.gz");
    let begin = Instant::now();
    let mut coordinator = trial.coordinator(&[]);
    let mut parties = trial.all_parties();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    let record = trial.record("result");
    let peak = record["peak_memory"].as_u64().unwrap();
    assert!(peak < 300 << 20, "{peak} bytes");

    let (code, text) = output(
        program()
            .arg("simulate")
            .arg(&file)
            .args(["--parties", "50", "--protocol", "syn-sd", "--rank", "20", "--rounds", rounds])
            .args(["--tolerance", "0", "--json", "--out"])
            .arg(trial.path("simulated")),
    );
    assert_eq!(code, Some(0), "{text}");
    let simulated: serde_json::Value = serde_json::from_str(&text).unwrap();
    let needed = simulated["cost"]["bytes_per_party"].as_f64().unwrap();
    let sent = record["bytes"].as_array().unwrap().iter();
    let sent: Vec<f64> =
        sent.map(|bytes| bytes["received"].as_f64().unwrap() + bytes["sent"].as_f64().unwrap()).collect();
    let mean = sent.iter().sum::<f64>() / 50.0;
    eprintln!(
        "50 parties: coordinator {} MiB, {mean:.0} bytes a party, {needed:.0} needed, {:.1} s",
        peak >> 20,
        begin.elapsed().as_secs_f64()
    );
    assert!((0.95..1.05).contains(&(mean / needed)), "{mean} of {needed}");
}
