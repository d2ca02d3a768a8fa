//! `partwise ranks`: compares numbers of components of a matrix.

use std::io::Write;

use anyhow::Result;
use partwise::cancel::Cancel;
use partwise::pipeline::{self, Facts, FileSource, Request, Resources, Source};
use partwise::run::{CheckedSettings, Machine, Settings};
use partwise::selection::{Survey, SurveyRequest, SurveyRow, Surveyed, check_shape, survey};
use partwise::{Precision, Real};
use partwise_report::{SurveyPage, survey_page};
use serde_json::json;

use crate::args::RanksArgs;
use crate::context::Context;
use crate::fits::{self, FitFolder};
use crate::progress::FitCount;
use crate::{input, interrupt, machine, output, report};

/// The columns of `ranks.csv`.
const HEADER: &str =
    "components,loss,loss_se,heldout_loss,heldout_se,stability,worst_stability,cophenetic,silhouette";

pub fn run(args: &RanksArgs, context: &Context) -> Result<()> {
    match args.precision {
        Precision::F32 => run_in::<f32>(args, context),
        Precision::F64 => run_in::<f64>(args, context),
    }
}

fn run_in<T: Real>(args: &RanksArgs, context: &Context) -> Result<()> {
    output::check_folder(&args.out, args.force)?;
    fits::check(&args.out, args.resume, args.force)?;
    let (console, kept) = (context.console, fits::path_beside(&args.out));
    interrupt::end_saying(
        context,
        format!("interrupted; finished fits are in {}, and --resume continues", kept.display()),
    )?;
    let largest = args.components.0.iter().copied().max().unwrap_or(1);
    let settings = settings(args, largest)?;
    let threads = args.threads.unwrap_or_else(machine::cores);
    let resources = Resources::new(Machine::new(1, threads));
    let file = FileSource {
        options: input::options(&args.read, None, 0),
        transpose: args.read.transpose,
        row_labels: args.labels.row_labels.clone(),
        col_labels: args.labels.col_labels.clone(),
        ..FileSource::new(&args.file)
    };
    let opened = pipeline::open::<T>(Source::File(file), Request::new(settings.clone(), resources)?)?;
    input::warn_assumptions(console, &args.file, &opened.facts().assumptions);
    let facts = opened.facts().clone();
    let Some(matrix) = opened.into_matrix(&Cancel::default()) else {
        unreachable!("no limit of memory was given")
    };
    check_shape(matrix.shape())?;
    let store = FitFolder::open(&args.out, args.resume, &made_from(args, &settings)?)?;
    if !args.quiet && !args.json {
        let Facts { name, rows, cols, format, .. } = &facts;
        console.tell(&format!("{name}: {rows} x {cols}, {format}"));
    }
    let request = SurveyRequest {
        settings,
        components: args.components.0.clone(),
        restarts: args.restarts,
        threads,
        cancel: Cancel::default(),
    };
    let mut count = FitCount::new(console, args.quiet);
    let surveyed = survey(matrix, &request, &store, &mut |progress| count.show(progress))?;
    write(args, context, &facts, &surveyed)?;
    store.remove();
    answer(args, context, &surveyed.survey)
}

fn settings(args: &RanksArgs, rank: usize) -> Result<CheckedSettings> {
    let settings = Settings {
        restarts: args.restarts,
        algorithm: args.algorithm,
        seed: args.seed,
        iterations: args.iterations,
        tolerance: args.tolerance,
        ..Settings::new(rank)
    };
    Ok(settings.checked()?)
}

/// The properties that fits must share to be comparable: the input, how it was read, and the settings.
/// Numbers of components and restarts may be added.
fn made_from(args: &RanksArgs, settings: &CheckedSettings) -> Result<serde_json::Value> {
    let settings = Settings { rank: 1, restarts: 1, ..(**settings).clone() };
    Ok(json!({
        "sha256": input::sha256(&args.file)?,
        "reading": format!(
            "{:?} {:?} {:?} {:?}", args.read.transpose, args.read.header, args.read.row_names, args.read.images
        ),
        "precision": args.precision,
        "settings": settings,
    }))
}

fn write<T: Real>(args: &RanksArgs, context: &Context, facts: &Facts, surveyed: &Surveyed<T>) -> Result<()> {
    let Surveyed { survey, factors } = surveyed;
    let name = args.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let factors: Vec<Vec<f32>> =
        factors.iter().map(|factor| factor.iter().map(|value| value.to_f64() as f32).collect()).collect();
    let page = survey_page(&SurveyPage {
        name: &name,
        size: (facts.rows, facts.cols),
        survey,
        factors: &factors,
        names: facts.col_labels.as_deref(),
        version: env!("CARGO_PKG_VERSION"),
    });
    let staging = context.outputs.folder(&args.out)?;
    staging.write("ranks.csv", |file| write_rows(file, &survey.rows))?;
    staging.write("ranks.json", |file| {
        serde_json::to_writer_pretty(&mut *file, survey)?;
        writeln!(file)
    })?;
    staging.write(report::NAME, |file| file.write_all(page.as_bytes()))?;
    staging.commit()
}

fn write_rows(file: &mut dyn Write, rows: &[SurveyRow]) -> std::io::Result<()> {
    writeln!(file, "{HEADER}")?;
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
    for row in rows {
        writeln!(
            file,
            "{},{:.9},{:.9},{:.9},{:.9},{},{},{},{}",
            row.components,
            row.loss,
            row.loss_se,
            row.heldout_loss,
            row.heldout_se,
            optional(row.stability),
            optional(row.worst_stability),
            optional(row.cophenetic),
            optional(row.silhouette)
        )?;
    }
    Ok(())
}

/// Prints the result on stdout.
fn answer(args: &RanksArgs, context: &Context, survey: &Survey) -> Result<()> {
    let console = context.console;
    if args.quiet {
        return Ok(());
    }
    if args.json {
        return console.answer(&serde_json::to_string(survey)?);
    }
    let mut lines = vec!["components    loss  held-out  ± error  stability".to_string()];
    for row in &survey.rows {
        let stability = row.stability.map_or("-".into(), |stability| format!("{stability:.3}"));
        lines.push(format!(
            "{:>10}  {:.4}    {:.4}   {:.4}  {stability:>9}",
            row.components, row.loss, row.heldout_loss, row.heldout_se
        ));
    }
    lines.push(match survey.suggestion.suggested {
        Some(components) => format!("suggested: {components} components, {}", survey.suggestion.reason),
        None => format!("no suggestion: {}", survey.suggestion.reason),
    });
    console.answer(&lines.join("\n"))?;
    console.tell(&report::where_it_is(&args.out));
    Ok(())
}
