//! Text for whoever reads stdout and stderr, who may leave early: `partwise top result | head` is no failure.

use std::io::{self, ErrorKind, Write};

use anyhow::{Result, anyhow};
use partwise_federation::text::timestamp;
use serde_json::json;

/// How this process talks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Console {
    silent: bool,
    json: bool,
}

impl Console {
    /// A process that says nothing, because another one says it for all.
    pub fn silent() -> Self {
        Console { silent: true, json: false }
    }

    /// For what this process alone knows, also where another one speaks for all.
    pub fn speaking(self) -> Self {
        Console { silent: false, ..self }
    }

    /// Lines on stderr are JSON objects.
    pub fn in_json(self) -> Self {
        Console { json: true, ..self }
    }

    /// Writes an answer to stdout, whole lines at once. A reader who has left has read enough; an answer that is
    /// lost otherwise, on a full disk for instance, is an error.
    pub fn answer(self, text: &str) -> Result<()> {
        match self.write(&mut io::stdout().lock(), text) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(anyhow!("cannot write to stdout: {error}; redirect it elsewhere"))
            }
            _ => Ok(()),
        }
    }

    /// A line on stdout alongside the work, which goes on even if nobody can read it.
    pub fn tell(self, line: &str) {
        let _ = self.write(&mut io::stdout().lock(), line);
    }

    /// A line on stderr, likewise.
    pub fn warn(self, line: &str) {
        let _ = match self.json {
            true => self.write(&mut io::stderr().lock(), &as_json(line)),
            false => self.write(&mut io::stderr().lock(), line),
        };
    }

    fn write(self, stream: &mut dyn Write, text: &str) -> io::Result<()> {
        if self.silent {
            return Ok(());
        }
        stream.write_all(text.as_bytes())?;
        stream.write_all(if text.ends_with('\n') { b"" } else { b"\n" })?;
        stream.flush()
    }
}

/// As the logs of federations have it.
fn as_json(line: &str) -> String {
    let (level, message) = match line.split_once(": ") {
        Some(("error", message)) => ("error", message),
        Some(("warning", message)) => ("warn", message),
        _ => ("warn", line),
    };
    json!({ "time": timestamp(), "level": level, "message": message }).to_string()
}
