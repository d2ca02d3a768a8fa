//! Writes to stdout and stderr. A closed pipe is not an error: `partwise top result | head` succeeds.

use std::io::{self, ErrorKind, Write};

use anyhow::{Result, anyhow};
use partwise_federation::text::timestamp;
use serde_json::json;

/// How this process prints messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Console {
    silent: bool,
    json: bool,
}

impl Console {
    /// A console that prints nothing, because process 0 prints for all processes.
    pub fn silent() -> Self {
        Console { silent: true, json: false }
    }

    /// A console that prints, for messages that only this process can give.
    pub fn speaking(self) -> Self {
        Console { silent: false, ..self }
    }

    /// Prints lines on stderr as JSON objects.
    pub fn in_json(self) -> Self {
        Console { json: true, ..self }
    }

    /// Writes an answer to stdout, in whole lines. A closed pipe is ignored; other failures, such as a full disk,
    /// are errors.
    pub fn answer(self, text: &str) -> Result<()> {
        match self.write(&mut io::stdout().lock(), text) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(anyhow!("cannot write to stdout: {error}; redirect it elsewhere"))
            }
            _ => Ok(()),
        }
    }

    /// Prints a progress line on stdout; the work continues if that fails.
    pub fn tell(self, line: &str) {
        let _ = self.write(&mut io::stdout().lock(), line);
    }

    /// Prints a line on stderr; the work continues if that fails.
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

/// The JSON object for a line, as in the logs of federations.
fn as_json(line: &str) -> String {
    let (level, message) = match line.split_once(": ") {
        Some(("error", message)) => ("error", message),
        Some(("warning", message)) => ("warn", message),
        _ => ("warn", line),
    };
    json!({ "time": timestamp(), "level": level, "message": message }).to_string()
}
