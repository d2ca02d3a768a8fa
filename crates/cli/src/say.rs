//! Text for whoever reads stdout and stderr, who may leave early: `partwise top result | head` is no failure.

use std::io::{self, ErrorKind, Write};

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};

/// Whether this process says nothing, because another rank says it for all.
static SILENT: AtomicBool = AtomicBool::new(false);

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
    let _ = write(&mut io::stderr().lock(), line);
}

fn write(stream: &mut dyn Write, text: &str) -> io::Result<()> {
    if SILENT.load(Ordering::Relaxed) {
        return Ok(());
    }
    stream.write_all(text.as_bytes())?;
    stream.write_all(if text.ends_with('\n') { b"" } else { b"\n" })?;
    stream.flush()
}
