//! Text for whoever reads stdout and stderr, who may leave early: `partwise top result | head` is no failure.

use std::io::{self, ErrorKind, Write};

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};
use partwise_federation::text::timestamp;
use serde_json::json;

/// Whether this process says nothing, because another rank says it for all.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Whether lines on stderr are JSON objects.
static JSON: AtomicBool = AtomicBool::new(false);

/// Makes them so.
pub fn in_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// Leaves all words to rank 0.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Takes it back, for what this rank alone knows.
pub fn speak() {
    SILENT.store(false, Ordering::Relaxed);
}

/// Writes an answer to stdout, whole lines at once. A reader who has left has read enough; an answer that is
/// lost otherwise, on a full disk for instance, is an error.
pub fn answer(text: &str) -> Result<()> {
    match write(&mut io::stdout().lock(), text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow!("cannot write to stdout: {error}; send it elsewhere"))
        }
        _ => Ok(()),
    }
}

/// A line on stdout beside the work, which goes on even if nobody can read it.
pub fn tell(line: &str) {
    let _ = write(&mut io::stdout().lock(), line);
}

/// A line on stderr, likewise.
pub fn warn(line: &str) {
    let _ = match JSON.load(Ordering::Relaxed) {
        true => write(&mut io::stderr().lock(), &as_json(line)),
        false => write(&mut io::stderr().lock(), line),
    };
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

fn write(stream: &mut dyn Write, text: &str) -> io::Result<()> {
    if SILENT.load(Ordering::Relaxed) {
        return Ok(());
    }
    stream.write_all(text.as_bytes())?;
    stream.write_all(if text.ends_with('\n') { b"" } else { b"\n" })?;
    stream.flush()
}
