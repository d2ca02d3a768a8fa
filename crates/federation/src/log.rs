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
    /// For people.
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
}

impl EventLog {
    /// A log with this format.
    pub fn new(format: Format) -> Self {
        EventLog { format, ..EventLog::default() }
    }

    /// The same log, with these names for fields.
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

    /// Logs an error or warning, with the front end's names for fields.
    pub fn warn_of(&self, wording: &Wording, facts: Value) {
        let text = self.naming.map_or_else(|| wording.to_string(), |naming| wording.named(naming));
        self.warn(&text, facts);
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
