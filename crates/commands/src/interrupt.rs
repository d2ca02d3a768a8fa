//! What Ctrl-C and SIGTERM do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow};
use partwise::run::Stop;

use crate::context::Context;
use crate::output::Outputs;

/// Exit code of an interrupted command, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// A run was interrupted after it had begun. What there is has been saved, and that has been said.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// The end of a run whose result is written.
pub fn ended(by: Stop) -> Result<()> {
    if by == Stop::Interrupted { Err(Interrupted.into()) } else { Ok(()) }
}

/// The first Ctrl-C ends the run after its iteration, and what there is is saved; the second ends the program.
pub fn stop_after_iteration(context: &Context, quiet: bool) -> Result<Arc<AtomicUsize>> {
    let asked = Arc::new(AtomicUsize::new(0));
    let (flag, Context { console, outputs, .. }) = (asked.clone(), context.clone());
    listen(move || {
        if flag.fetch_add(1, Ordering::Relaxed) > 0 {
            outputs.abandon(INTERRUPTED.into());
        }
        if !quiet {
            console.warn("stopping after this iteration, then saving; once more ends without saving");
        }
    })?;
    Ok(asked)
}

/// Ctrl-C ends the program at once and leaves nothing unfinished behind.
pub fn end_at_once(outputs: &Outputs) -> Result<()> {
    let outputs = outputs.clone();
    listen(move || outputs.abandon(INTERRUPTED.into()))
}

fn listen(handler: impl FnMut() + Send + 'static) -> Result<()> {
    ctrlc::set_handler(handler).map_err(|error| anyhow!("cannot listen for Ctrl-C: {error}; try again"))
}
