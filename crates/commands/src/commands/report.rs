//! `partwise report`: regenerates the page of a run.

use std::process::{Command, Stdio};

use anyhow::{Result, anyhow, bail};

use crate::args::ReportArgs;
use crate::context::Context;
use crate::report;

pub fn run(args: &ReportArgs, context: &Context) -> Result<()> {
    let page = args.dir.join(report::NAME);
    if page.exists() && !args.force && !report::is_ours(&page) {
        bail!("{} was not written by Partwise; move it, or replace it with --force", page.display());
    }
    report::write(
        context,
        &args.dir,
        &report::View { shape: args.shape.image_shape, records: args.records },
    )?;
    context.console.tell(&format!("written to {}", page.display()));
    if args.open { open(&page) } else { Ok(()) }
}

/// Opens the page in the system's browser.
fn open(page: &std::path::Path) -> Result<()> {
    let (program, first): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let opened =
        Command::new(program).args(first).arg(page).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match opened {
        Ok(status) if status.success() => Ok(()),
        _ => Err(anyhow!("--open: `{program}` found no browser; open {} yourself", page.display())),
    }
}
