//! Log lines of coordinators and parties, as text or JSON. They never contain a secret, a number of the data, or a
//! factor.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use partwise::wording::{Naming, Wording};
use serde_json::{Map, Value, json};

use crate::text::timestamp;

/// The format of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The level of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Normal operation.
    Info,
    /// Something that deserves attention.
    Warn,
}

/// The minimum time between two lines for the same reason.
const APART: Duration = Duration::from_secs(5);

/// The name under which the coordinator causes log lines at a party.
pub const COORDINATOR: &str = "the coordinator";

/// The number of lines that one participant can cause in a burst; afterwards their rate is limited.
const BURST: f64 = 40.0;

/// The remaining allowance of log lines for one participant.
struct Allowance {
    lines: f64,
    counted: Instant,
    unsaid: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance { lines: BURST, counted: Instant::now(), unsaid: 0 }
    }
}

impl Allowance {
    /// The number of suppressed lines since the last one, if another line is allowed.
    fn take(&mut self, now: Instant) -> Option<u64> {
        let earned = now.saturating_duration_since(self.counted).as_secs_f64() / APART.as_secs_f64();
        (self.lines, self.counted) = ((self.lines + earned).min(BURST), now);
        if self.lines < 1.0 {
            self.unsaid += 1;
            return None;
        }
        self.lines -= 1.0;
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[derive(Default)]
struct Rejected {
    count: u64,
    unsaid: u64,
    said: Option<Instant>,
}

/// Writes lines to stderr.
#[derive(Default)]
pub struct EventLog {
    format: Format,
    naming: Option<Naming>,
    rejected: Mutex<BTreeMap<&'static str, Rejected>>,
    /// Allowances by participant: a party of the roster, or the coordinator.
    caused: Mutex<BTreeMap<String, Allowance>>,
}

impl EventLog {
    /// A log with this format.
    pub fn new(format: Format) -> Self {
        EventLog { format, ..EventLog::default() }
    }

    /// The same log with a front end's names for fields.
    pub fn naming(self, naming: Naming) -> Self {
        EventLog { naming: Some(naming), ..self }
    }

    /// Writes a line; `facts` are for programs.
    pub fn say(&self, level: Level, text: &str, facts: Value) {
        // Text from others cannot imitate another line.
        let text = &text.replace(char::is_control, " ");
        let line = match self.format {
            Format::Text => match level {
                Level::Info => text.clone(),
                Level::Warn => format!("warning: {text}"),
            },
            Format::Json => {
                let mut line = Map::new();
                line.insert("time".into(), timestamp().into());
                line.insert("level".into(), if level == Level::Warn { "warn" } else { "info" }.into());
                line.insert("message".into(), text.as_str().into());
                if let Value::Object(facts) = facts {
                    line.extend(facts);
                }
                Value::Object(line).to_string()
            }
        };
        // A closed stderr is ignored.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }

    /// Logs normal operation.
    pub fn info(&self, text: &str, facts: Value) {
        self.say(Level::Info, text, facts);
    }

    /// Logs something that deserves attention.
    pub fn warn(&self, text: &str, facts: Value) {
        self.say(Level::Warn, text, facts);
    }

    /// Formats a message with this log's names for fields.
    pub fn in_words(&self, wording: &Wording) -> String {
        self.naming.map_or_else(|| wording.to_string(), |naming| wording.named(naming))
    }

    /// Logs an event that a participant causes. A participant may cause such events deliberately and
    /// endlessly, so their rate is limited. Returns whether the line was written.
    pub fn say_of(&self, whose: &str, level: Level, text: &str, facts: Value) -> bool {
        let mut caused = self.caused.lock().unwrap_or_else(PoisonError::into_inner);
        let unsaid = caused.entry(whose.into()).or_default().take(Instant::now());
        drop(caused);
        match unsaid {
            None => return false,
            Some(0) => self.say(level, text, facts),
            Some(unsaid) => {
                self.say(level, &format!("{text} ({unsaid} lines about {whose} were suppressed)"), facts)
            }
        }
        true
    }

    /// Logs a rejection, for one of a fixed set of reasons, at most once every few seconds.
    pub fn reject(&self, reason: &'static str, from: &str) {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = rejected.entry(reason).or_default();
        entry.count += 1;
        entry.unsaid += 1;
        if entry.said.is_some_and(|said| said.elapsed() < APART) {
            return;
        }
        let (count, unsaid) = (entry.count, std::mem::take(&mut entry.unsaid));
        entry.said = Some(Instant::now());
        drop(rejected);
        let more = if unsaid > 1 { format!(", {unsaid} times since the last report") } else { String::new() };
        self.warn(
            &format!("rejected {reason} from {from} ({count} so far{more})"),
            json!({ "event": "rejected", "reason": reason, "from": from, "count": count }),
        );
    }

    /// The number of rejections by reason.
    pub fn rejections(&self) -> BTreeMap<&'static str, u64> {
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        rejected.iter().map(|(reason, rejected)| (*reason, rejected.count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_log_lines_of_one_participant_are_limited() {
        let mut allowance = Allowance::default();
        let now = Instant::now();
        let said = (0..1000).filter(|_| allowance.take(now).is_some()).count();
        assert_eq!(said, BURST as usize);
        assert_eq!(allowance.take(now + APART), Some(960));
        assert_eq!(allowance.take(now + APART), None);
        assert_eq!(allowance.take(now + 3 * APART), Some(1));
    }
}
