//! A federation on this machine, with the coordinator and each party in a process of its own.

use std::collections::VecDeque;
use std::fs;
use std::hash::BuildHasher;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Long enough for a busy machine; it only limits how long a failing test takes.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Trial {
    pub folder: TempDir,
    pub parties: usize,
    pub port: u16,
    /// Arguments of all processes.
    pub line: Vec<&'static str>,
    /// The `--max-record-cosine` of the parties: most trials have few records, so results would be withheld.
    pub record_cosine: &'static str,
}

pub fn program() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("partwise"));
    // Trials must not touch the user's ledgers: each configuration names a folder.
    for name in ["HOME", "USERPROFILE", "XDG_STATE_HOME"] {
        command.env_remove(name);
    }
    command
}

/// A port that was free a moment ago, outside the range that the system assigns to connections, so that no other
/// process can take it before it is used.
pub fn free_port() -> u16 {
    let ports = 10_000..32_000u16;
    loop {
        // The keys are random.
        let drawn = std::hash::RandomState::new().hash_one(());
        let port = ports.start + (drawn % ports.len() as u64) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A connection with timeouts.
pub fn connect(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address.parse().unwrap(), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Records of a few kinds of patients, the same for every call: `count` rows starting at `first`.
pub fn records(first: usize, count: usize, features: usize) -> String {
    let names: Vec<String> = (0..features).map(|feature| format!("code{feature}")).collect();
    let mut text = names.join(",") + "\n";
    for record in first..first + count {
        let kind = record % 4;
        let row: Vec<String> = (0..features)
            .map(|feature| {
                let noise = ((record * 7919 + feature * 104_729) % 1000) as f64 / 2000.0;
                let typical = if feature % 4 == kind { 3.0 + (record % 5) as f64 } else { 0.2 };
                format!("{:.4}", typical + noise)
            })
            .collect();
        text += &(row.join(",") + "\n");
    }
    text
}

/// Mixtures of three kinds of patients. Two components have one best fit to them, whatever the start.
pub fn mixed_records(first: usize, count: usize, features: usize) -> String {
    let drawn = |seed: usize| {
        let mut state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            state = (state ^ (state >> 30)).wrapping_mul(factor);
        }
        let uniform = ((state ^ (state >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        -(1.0 - uniform).ln()
    };
    let names: Vec<String> = (0..features).map(|feature| format!("code{feature}")).collect();
    let mut text = names.join(",") + "\n";
    for record in first..first + count {
        let value = |feature: usize| -> f64 {
            (0..3).map(|kind| drawn(record * 3 + kind) * drawn(1_000_000 + feature * 3 + kind)).sum()
        };
        let row: Vec<String> = (0..features).map(|feature| format!("{:.4}", value(feature))).collect();
        text += &(row.join(",") + "\n");
    }
    text
}

/// Splits the rows of a file of PARTWISE_DATA between the parties, in place of their records. Returns the file.
pub fn deal(trial: &Trial, name: &str) -> PathBuf {
    let file = Path::new(&std::env::var("PARTWISE_DATA").unwrap_or_default()).join(name);
    assert!(file.exists(), "PARTWISE_DATA must be a folder with {name}");
    let options = partwise::io::ReadOptions { memory: 8 << 30, ..Default::default() };
    let matrix = partwise::io::read::<f32>(&file, &options).unwrap().matrix;
    let dealt = partwise_secure::split::Split::Uniform.deal(matrix.rows(), trial.parties);
    let parts = partwise_secure::split::parts(&matrix, &dealt).unwrap();
    for (party, part) in (1..).zip(parts) {
        // The matrix has one column per record.
        let path = trial.path(&format!("data-{party}.npy"));
        let precision = partwise::Precision::F32;
        let input = partwise::io::Input::unlabelled(part.into_transpose(), String::new(), precision);
        let mut out = fs::File::create(&path).unwrap();
        partwise::io::write(&mut out, &path, &input, Default::default()).unwrap();
    }
    file
}

pub const FEATURES: usize = 24;
pub const RECORDS: usize = 40;

impl Trial {
    /// Provisions parties, each with its records in `data-N.csv`.
    pub fn new(parties: usize, extra: &[&str]) -> Trial {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let rank = if extra.contains(&"--rank") { &[][..] } else { &["--rank", "4"] };
        let mut provision = program();
        provision.args(["provision", "--demo", "--parties", &parties.to_string()]).args(rank);
        provision.args(["--address", &format!("127.0.0.1:{port}"), "--heartbeat", "1", "--out"]);
        let (code, text) = output(provision.arg(folder.path().join("trial")).args(extra));
        assert_eq!(code, Some(0), "{text}");
        for party in 0..parties {
            let text = records(party * RECORDS, RECORDS, FEATURES);
            fs::write(folder.path().join(format!("data-{}.csv", party + 1)), text).unwrap();
        }
        Trial { folder, parties, port, line: Vec::new(), record_cosine: "1" }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn party_folder(&self, party: usize) -> PathBuf {
        self.path("trial").join(format!("party-{party}"))
    }

    pub fn coordinator_command(&self, extra: &[&str]) -> Command {
        let mut command = program();
        command.args(["coordinator", "run"]).arg(self.path("trial/coordinator/federation.toml"));
        command.arg("--out").arg(self.path("result"));
        if !extra.contains(&"--status-address") {
            command.args(["--status-address", "none"]);
        }
        command.args(&self.line).args(extra);
        command
    }

    pub fn coordinator(&self, extra: &[&str]) -> Process {
        let process = Process::start(&mut self.coordinator_command(extra));
        process.wait_for("listening on");
        process
    }

    pub fn party_command(&self, party: usize) -> Command {
        let mut command = program();
        command.args(["party", "join"]).arg(self.party_folder(party).join("party.toml"));
        let dealt = self.path(&format!("data-{party}.npy"));
        let data = if exists(&dealt) { dealt } else { self.path(&format!("data-{party}.csv")) };
        command.arg("--data").arg(data);
        command.arg("--out").arg(self.path(&format!("result-{party}"))).args(["--threads", "1"]);
        command.args(["--max-record-cosine", self.record_cosine]);
        command.args(&self.line);
        command
    }

    pub fn party(&self, party: usize) -> Process {
        Process::start(&mut self.party_command(party))
    }

    pub fn all_parties(&self) -> Vec<Process> {
        (1..=self.parties).map(|party| self.party(party)).collect()
    }

    pub fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn record(&self, folder: &str) -> serde_json::Value {
        serde_json::from_slice(&self.file(&format!("{folder}/run.json"))).unwrap()
    }

    pub fn error(&self, folder: &str) -> f64 {
        self.record(folder)["relative_error"].as_f64().unwrap()
    }

    /// Replaces text in a file.
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let path = self.path(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has no {from}: {text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }
}

/// A process whose output lines are kept.
pub struct Process {
    child: Child,
    lines: Arc<(Mutex<VecDeque<String>>, Condvar)>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

impl Process {
    pub fn start(command: &mut Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines: Arc<(Mutex<VecDeque<String>>, Condvar)> = Arc::default();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        let readers = streams.map(|stream| {
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    lines.0.lock().unwrap().push_back(line);
                    lines.1.notify_all();
                }
            })
        });
        Process { child, lines, readers: readers.into() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn text(&self) -> String {
        // Also if a test failed while it read them.
        let lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    pub fn count(&self, words: &str) -> usize {
        self.lines.0.lock().unwrap().iter().filter(|line| line.contains(words)).count()
    }

    /// Waits for a line with these words, and returns it.
    pub fn wait_for(&self, words: &str) -> String {
        self.wait_for_times(words, 1)
    }

    pub fn wait_for_times(&self, words: &str, times: usize) -> String {
        let until = Instant::now() + PATIENCE;
        let mut lines = self.lines.0.lock().unwrap();
        loop {
            if let Some(line) = lines.iter().filter(|line| line.contains(words)).nth(times - 1) {
                return line.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            let ended = self.readers.iter().all(|reader| reader.is_finished());
            assert!(!left.is_zero() && !ended, "nobody said {words:?}:\n{lines:?}");
            lines = self.lines.1.wait_timeout(lines, left.min(Duration::from_millis(200))).unwrap().0;
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn wait_for_and_kill(mut self, words: &str) {
        self.wait_for(words);
        self.kill();
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            // Its output is complete once no process holds it open any more, including its own children.
            if let Some(status) = self.child.try_wait().unwrap()
                && self.readers.iter().all(|reader| reader.is_finished())
            {
                return status;
            }
            assert!(Instant::now() < until, "does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a successful end.
    pub fn succeed(&mut self) {
        let status = self.end();
        assert!(status.success(), "{status}:\n{}", self.text());
    }

    /// Waits for an end with one sentence and the exit code of bad input.
    pub fn fail(&mut self, words: &str) -> String {
        let status = self.end();
        let text = self.text();
        assert_eq!(status.code(), Some(2), "{text}");
        let error = text.lines().find(|line| line.starts_with("error: ")).expect(&text).to_string();
        assert!(error.contains(words), "{error}");
        error
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("-- a process said:\n{}", self.text());
        }
        if self.is_running() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs a command to the end and returns its exit code and output.
pub fn output(command: &mut Command) -> (Option<i32>, String) {
    let mut process = Process::start(command.stdin(Stdio::null()));
    let code = process.end().code();
    (code, process.text())
}

pub fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
