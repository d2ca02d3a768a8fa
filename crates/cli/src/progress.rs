//! What a long run shows while it works: a bar on a terminal, a line every few seconds elsewhere, JSON for
//! machines, nothing if asked for nothing.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use partwise::run::{Progress, Settings};
use serde_json::json;

/// Time between two lines where there is no terminal.
const PAUSE: Duration = Duration::from_secs(3);

/// One of the ways to show progress.
pub enum Display {
    Bar(ProgressBar),
    Lines { last: Instant },
    Json { last: Instant },
    Quiet,
}

impl Display {
    pub fn new(settings: &Settings, quiet: bool, json: bool) -> Self {
        let last = Instant::now();
        if quiet {
            Display::Quiet
        } else if json {
            Display::Json { last }
        } else if stderr().is_terminal() {
            let bar = ProgressBar::new(settings.iterations as u64);
            if let Ok(style) = ProgressStyle::with_template(
                "{bar:30} iteration {pos}/{len}  error {msg}  {eta} left at most",
            ) {
                bar.set_style(style);
            }
            Display::Bar(bar)
        } else {
            Display::Lines { last }
        }
    }

    pub fn show(&mut self, progress: &Progress, settings: &Settings) {
        let &Progress { restart, iteration, relative_error, seconds } = progress;
        match self {
            Display::Bar(bar) => {
                bar.set_position(iteration as u64);
                let run = if settings.restarts > 1 {
                    format!(" (run {} of {})", restart + 1, settings.restarts)
                } else {
                    String::new()
                };
                bar.set_message(format!("{relative_error:.6}{run}"));
            }
            Display::Lines { last } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                let left = seconds / iteration as f64 * (settings.iterations - iteration) as f64;
                let left = settings.time_limit.map_or(left, |limit| left.min(limit - seconds));
                eprintln!(
                    "iteration {iteration}/{}, error {relative_error:.6}, {seconds:.1} s, {left:.0} s left at most",
                    settings.iterations
                );
            }
            Display::Json { last } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                let line = json!({
                    "event": "progress", "restart": restart, "iteration": iteration,
                    "relative_error": relative_error, "seconds": seconds,
                });
                println!("{line}");
            }
            _ => {}
        }
    }

    pub fn finish(&self) {
        if let Display::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
