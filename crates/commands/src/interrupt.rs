//! Handles Ctrl-C and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow};
use partwise::run::Stop;

use crate::context::Context;
use crate::output::Outputs;

/// The usual exit code of an interrupted command.
pub const INTERRUPTED: u8 = 130;

/// The run was interrupted after it had started; its result so far is saved and reported.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Whether a run whose results are written was interrupted.
pub fn ended(by: Stop) -> Result<()> {
    if by == Stop::Interrupted { Err(Interrupted.into()) } else { Ok(()) }
}

/// The first Ctrl-C ends the run after the current iteration and saves the result; the second one quits.
pub fn stop_after_iteration(context: &Context, quiet: bool) -> Result<Arc<AtomicUsize>> {
    let asked = Arc::new(AtomicUsize::new(0));
    let (flag, Context { console, outputs, .. }) = (asked.clone(), context.clone());
    listen(move || {
        if flag.fetch_add(1, Ordering::Relaxed) > 0 {
            outputs.abandon(INTERRUPTED.into());
        }
        if !quiet {
            console
                .warn("stopping after this iteration and saving; press Ctrl-C again to quit without saving");
        }
    })?;
    Ok(asked)
}

/// Makes Ctrl-C end the program at once, without leaving partial results.
pub fn end_at_once(outputs: &Outputs) -> Result<()> {
    let outputs = outputs.clone();
    listen(move || outputs.abandon(INTERRUPTED.into()))
}

/// Makes Ctrl-C end the program at once, after a sentence about what was saved.
pub fn end_saying(context: &Context, sentence: String) -> Result<()> {
    let Context { console, outputs, .. } = context.clone();
    listen(move || {
        console.warn(&sentence);
        outputs.abandon(INTERRUPTED.into());
    })
}

fn listen(handler: impl FnMut() + Send + 'static) -> Result<()> {
    ctrlc::set_handler(handler).map_err(|error| anyhow!("cannot listen for Ctrl-C: {error}; try again"))
}
