//! Shows the progress of a long run: a bar on a terminal, a line every few seconds elsewhere, JSON for programs,
//! nothing with `--quiet`.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use partwise::run::{Progress, Settings};
use serde_json::json;

use crate::console::Console;

/// Time between two lines without a terminal.
const PAUSE: Duration = Duration::from_secs(3);

/// Shows the progress of a run.
pub struct Display {
    console: Console,
    style: Style,
}

/// The ways to show progress.
enum Style {
    Bar(ProgressBar),
    Lines { last: Instant },
    Json { last: Instant },
    Quiet,
}

impl Display {
    pub fn new(console: Console, settings: &Settings, quiet: bool, json: bool) -> Self {
        let last = Instant::now();
        let style = if quiet {
            Style::Quiet
        } else if json {
            Style::Json { last }
        } else if stderr().is_terminal() {
            let bar = ProgressBar::new(settings.iterations as u64);
            if let Ok(style) = ProgressStyle::with_template("iteration {pos}/{len}  error {msg}  {wide_bar}")
            {
                bar.set_style(style);
            }
            Style::Bar(bar)
        } else {
            Style::Lines { last }
        };
        Display { console, style }
    }

    pub fn show(&mut self, progress: &Progress, settings: &Settings) {
        let &Progress { restart, iteration, relative_error, seconds } = progress;
        let left = time_left(progress, settings);
        let run = if settings.restarts > 1 {
            format!(" (run {} of {})", restart + 1, settings.restarts)
        } else {
            String::new()
        };
        match &mut self.style {
            Style::Bar(bar) => {
                bar.set_position(iteration as u64);
                bar.set_message(format!("{relative_error:.6}{run}  at most {left} left"));
            }
            Style::Lines { last } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                self.console.warn(&format!(
                    "iteration {iteration}/{}{run}, error {relative_error:.6}, {seconds:.1} s, at most {left} left",
                    settings.iterations
                ));
            }
            Style::Json { last } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                let line = json!({
                    "event": "progress", "restart": restart, "iteration": iteration,
                    "relative_error": relative_error, "seconds": seconds,
                });
                self.console.tell(&line.to_string());
            }
            _ => {}
        }
    }

    pub fn finish(&self) {
        if let Style::Bar(bar) = &self.style {
            bar.finish_and_clear();
        }
    }
}

/// The remaining time at the pace so far, if only the number of iterations or the time limit ends the run.
fn time_left(progress: &Progress, settings: &Settings) -> String {
    let each = progress.seconds / progress.iteration.max(1) as f64;
    let left = each * settings.iterations.saturating_sub(progress.iteration) as f64;
    let limit = settings.time_limit.map_or(f64::INFINITY, |limit| limit - progress.seconds);
    match left.min(limit).max(0.0).round() as u64 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}
