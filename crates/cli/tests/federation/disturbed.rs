//! Parties that can be reproduced and disturbed: the program's own code with hooks. Such a party is a process of
//! this test executable, since the program itself has no hooks.

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use partwise_federation::party::Hooks;
use partwise_secure::protocol::party_seed;
use serde::{Deserialize, Serialize};

use crate::trial::Trial;

/// The instructions for a process of this executable that runs as a party, as JSON.
pub const VARIABLE: &str = "PARTWISE_DISTURBED_PARTY";

/// What happens to a party.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// It is killed before it sends a message, or has read it.
    Before,
    /// It is killed when a first piece is sent.
    During,
    /// It is killed when it is sent.
    After,
    /// It is stopped.
    Hang,
    /// It sleeps for some seconds.
    Pause,
}

/// At which message it happens.
#[derive(Serialize, Deserialize)]
struct Fault {
    kind: String,
    /// How many of this kind are left until then.
    count: AtomicUsize,
    way: Way,
    struck: AtomicBool,
}

impl Fault {
    /// From `upload,3,before`.
    fn parse(text: &str) -> Fault {
        let [kind, count, way] = text.split(',').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let way = serde_json::from_value(way.into()).unwrap();
        Fault { kind: kind.into(), count: count.parse::<usize>().unwrap().into(), way, struck: false.into() }
    }

    fn strike(&self, kind: &str) {
        if self.kind != kind || self.count.fetch_sub(1, Ordering::Relaxed) != 1 {
            return;
        }
        self.struck.store(true, Ordering::Relaxed);
        match self.way {
            Way::Before => signal("-KILL"),
            Way::Hang => signal("-STOP"),
            Way::Pause => {
                eprintln!("trial: pauses");
                std::thread::sleep(Duration::from_secs(4));
            }
            Way::During | Way::After => {}
        }
    }

    /// Kills the party once the sent bytes have left it.
    fn strike_later(&self, way: Way) {
        if self.way == way && self.struck.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_secs(1));
            signal("-KILL");
        }
    }
}

/// Sends a signal to this process.
fn signal(signal: &str) {
    let id = std::process::id().to_string();
    let _ = Command::new("kill").args([signal, &id]).status();
    // Waits until the signal arrives.
    std::thread::sleep(Duration::from_millis(200));
}

#[derive(Serialize, Deserialize)]
struct Disturbed {
    arguments: Vec<OsString>,
    /// The private start is that of the simulation with this seed, and the public seed the one of the terms.
    seed: Option<u64>,
    fault: Option<Fault>,
}

impl Hooks for Disturbed {
    fn private_seed(&self, place: u16) -> partwise_federation::Result<u64> {
        Ok(party_seed(self.seed.unwrap_or_else(|| std::process::id().into()), "partwise private", place))
    }

    fn public_seed(&self, drawn: u64, proposed: u64) -> u64 {
        if self.seed.is_some() { proposed } else { drawn }
    }

    fn sending(&self, kind: &'static str) {
        self.received(kind);
    }

    fn piece_sent(&self, _: &'static str) {
        self.fault.iter().for_each(|fault| fault.strike_later(Way::During));
    }

    fn sent(&self, _: &'static str) {
        self.fault.iter().for_each(|fault| fault.strike_later(Way::After));
    }

    fn received(&self, kind: &'static str) {
        self.fault.iter().for_each(|fault| fault.strike(kind));
    }
}

/// A party that is disturbed, as in `upload,3,before`, and whose private start is the simulation's.
pub fn command(trial: &Trial, party: usize, seed: Option<u64>, fault: Option<&str>) -> Command {
    let plain = trial.party_command(party);
    let arguments = [plain.get_program()].into_iter().chain(plain.get_args()).map(OsString::from).collect();
    let told = Disturbed { arguments, seed, fault: fault.map(Fault::parse) };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["disturbed::this_process_runs_as_a_party_on_request", "--exact", "--nocapture"]);
    command.env(VARIABLE, serde_json::to_string(&told).unwrap());
    command
}

#[test]
fn this_process_runs_as_a_party_on_request() {
    let Ok(told) = std::env::var(VARIABLE) else { return };
    let disturbed: Arc<Disturbed> = Arc::new(serde_json::from_str(&told).unwrap());
    let hooks: Arc<dyn Hooks> = disturbed.clone();
    let code = partwise_commands::run_with(disturbed.arguments.clone(), None, &hooks);
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 2 });
}
