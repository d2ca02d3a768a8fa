//! The input of a simulation, and its division between the parties.

use std::path::Path;

use anyhow::{Result, bail};
use partwise::Real;
use partwise::io::{self, ImageShape, ImageSide, Input};
use partwise::matrix::Matrix;
use partwise::run::record::InputRecord;
use partwise::run::{Amount, Side};
use partwise_secure::audit::{Audit, Evidence, Recording, Transcript};
use partwise_secure::net::DEFAULT_WAN;
use partwise_secure::protocol::Aggregation;
use partwise_secure::split::{self, Split};
use partwise_secure::{Plan, Safeguards, Vanishing};
use partwise_secure::{factors, risk};

use super::super::audit;
use crate::args::SimulateArgs;
use crate::console::Console;
use crate::context::Context;
use crate::folder::Names;
use crate::input;
use crate::warnings::{self, Warnings};

/// The input and its division between the parties.
pub(super) struct Dealt<M> {
    pub matrix: M,
    pub features: usize,
    /// The names of the parties, if a file gives them.
    pub names: Vec<String>,
    pub records: Vec<Vec<usize>>,
    /// Held-out records, by the party that would have had them.
    pub held_out: Vec<Vec<usize>>,
    /// The number of each record's person, if people have several.
    pub people: Option<Vec<usize>>,
    pub plan: Plan,
    /// The input as the record describes it.
    pub source: InputRecord,
    /// The names of the features, and the image size of a record.
    pub labels: Option<Vec<String>>,
    /// The names of the records, which each party keeps to itself.
    pub record_labels: Option<Vec<String>>,
    pub image: Option<ImageShape>,
    pub warnings: Vec<String>,
}

impl<M> Dealt<M> {
    pub fn counts(&self) -> Vec<usize> {
        self.records.iter().map(Vec::len).collect()
    }

    /// The recorder of messages, if they are kept.
    pub fn recording(&self, args: &SimulateArgs) -> Result<Option<Recording>> {
        if !args.audit && !args.record {
            return Ok(None);
        }
        audit::check_memory(&self.plan.settings, self.records.len(), self.features)?;
        Ok(Some(Recording::default()))
    }

    /// The audit, if there are held-out records to compare with.
    pub fn audit<T: Real>(
        &self,
        matrix: Option<&Matrix<T>>,
        transcript: Option<&Transcript>,
        u: &[T],
    ) -> Result<Option<Audit>> {
        let (Some(matrix), Some(transcript)) = (matrix, transcript) else { return Ok(None) };
        let (settings, dealt, held_out) = (&self.plan.settings, &self.records[..], &self.held_out[..]);
        let people = self.people.as_deref();
        // In the additional runs no party disconnects.
        let plan = Plan { loses: None, ..self.plan.clone() };
        let plan = Some(&plan);
        audit::of(&Evidence { transcript, settings, matrix, dealt, held_out, people, plan, u }).map(Some)
    }

    /// The matrix and what belongs to it.
    pub fn apart(self) -> (M, Dealt<()>) {
        let Dealt {
            matrix,
            features,
            names,
            records,
            held_out,
            people,
            plan,
            source,
            labels,
            record_labels,
            image,
            warnings,
        } = self;
        let rest = Dealt {
            matrix: (),
            features,
            names,
            records,
            held_out,
            people,
            plan,
            source,
            labels,
            record_labels,
            image,
            warnings,
        };
        (matrix, rest)
    }
}
pub(super) fn read<T: Real>(args: &SimulateArgs, context: &Context) -> Result<Dealt<Matrix<T>>> {
    let settings = args.settings();
    // Errors that do not depend on the matrix are reported before it is read.
    settings.check()?;
    let read = input::read::<T>(&args.file, &args.read, Some(&args.labels))?;
    let Input { matrix, row_labels, col_labels, format, image, assumptions, .. } = read;
    input::check_range(&args.file, &matrix)?;
    let image = input::picture(&args.shape, matrix.shape(), image, args.read.images, Some(args.records))?;
    // Said only once nothing is refused any more.
    let mut warnings = Warnings::new(context.console, true);
    warnings.assumptions(&args.file, &assumptions);
    let of_lines = Names { rows: row_labels.as_deref(), cols: col_labels.as_deref() };
    warnings.dominant(warnings::dominant_of(&matrix), of_lines);
    let warnings = warnings.into_sentences();
    let (record_labels, labels) = factors::by_side(args.records, row_labels, col_labels);
    let side = match args.records {
        Side::Rows => ImageSide::Rows,
        Side::Columns => ImageSide::Columns,
    };
    let image = image.filter(|shape| shape.images == side);
    let source = InputRecord {
        name: args.file.file_name().map(|name| name.to_string_lossy().into_owned()),
        bytes: input::bytes(&args.file),
        sha256: input::sha256(&args.file)?,
        format,
        rows: matrix.rows(),
        cols: matrix.cols(),
        stored: matrix.stored(),
    };
    let matrix = match args.records {
        Side::Rows => matrix,
        Side::Columns => matrix.into_transpose(),
    };
    let people = args.person.as_ref().map(|path| input::people(path, matrix.rows())).transpose()?;
    let (kept, held_out) = hold_out(args, matrix.rows(), people.as_deref())?;
    let (names, records, held_out) = deal(args, matrix.rows(), &kept, &held_out)?;
    let line = args.network.unwrap_or(DEFAULT_WAN);
    let loses = args.lose.map(|(party, sums)| Vanishing { party, sums });
    let safeguards = if args.safeguards { Safeguards::default() } else { Safeguards::of_sums() };
    let plan = Plan { slowness: args.speeds.clone(), line, loses, safeguards, ..Plan::new(settings) };
    let features = matrix.cols();
    Ok(Dealt {
        features,
        matrix,
        names,
        records,
        held_out,
        people,
        plan,
        source,
        labels,
        record_labels,
        image,
        warnings,
    })
}

/// Prints what users should know before the run starts.
pub(super) fn introduce<M>(args: &SimulateArgs, console: Console, dealt: &Dealt<M>) {
    if !args.quiet {
        dealt.warnings.iter().for_each(|sentence| console.warn(&format!("warning: {sentence}")));
        warn(console, &dealt.plan, &dealt.counts(), dealt.features);
    }
    if !args.quiet && !args.json {
        let counts = dealt.counts();
        let InputRecord { rows, cols, format, .. } = &dealt.source;
        console.tell(&format!("{}: {rows} x {cols}, {format}", args.file.display()));
        console.tell(&format!(
            "{} parties with {} to {} records and {} features",
            counts.len(),
            counts.iter().min().unwrap_or(&0),
            counts.iter().max().unwrap_or(&0),
            dealt.features
        ));
        let settings = &dealt.plan.settings;
        let opened = settings.opened_vectors(1);
        console.tell(&format!(
            "sums open at most {opened} vectors of {} numbers, {:.1} per record",
            dealt.features,
            opened as f64 / counts.iter().sum::<usize>().max(1) as f64
        ));
    }
}

/// The records of the parties, and the held-out ones.
pub(super) fn hold_out(
    args: &SimulateArgs,
    records: usize,
    people: Option<&[usize]>,
) -> Result<(Vec<usize>, Vec<usize>)> {
    let asked = args.holdout.or((args.audit || args.record).then_some(audit::HOLDOUT));
    let count = match asked {
        None => 0,
        Some(Amount::Count(count)) => count,
        Some(Amount::Share(share)) => ((share * records as f64).round() as usize).max(1),
    };
    if count >= records && count > 0 {
        bail!("--holdout: holding out {count} of {records} records leaves none for the parties; give fewer");
    }
    let Some(people) = people else { return Ok(split::hold_out(records, count, args.seed)) };
    let (kept, held) = split::hold_out_people(people, count, args.seed);
    if kept.is_empty() {
        bail!(
            "--holdout: holding out whole people until {count} records are held out leaves none for the \
         parties; give fewer"
        );
    }
    Ok((kept, held))
}

/// The parties' names, if a file gives them, the records that each keeps, and the held-out records of its kind.
pub(super) type Hands = (Vec<String>, Vec<Vec<usize>>, Vec<Vec<usize>>);

pub(super) fn deal(args: &SimulateArgs, records: usize, kept: &[usize], held_out: &[usize]) -> Result<Hands> {
    let mut by_name = None;
    let (names, dealt) = match (args.split.parse::<Split>(), args.parties) {
        (Ok(_), None) => {
            bail!("--parties: the number of parties is missing; give it, or a file with --split")
        }
        (Ok(split), Some(parties)) => {
            if !(2..=255).contains(&parties) {
                bail!("--parties: {parties} is out of range; give 2 to 255");
            }
            (Vec::new(), split.deal(kept.len(), parties))
        }
        (Err(problem), _) if !Path::new(&args.split).exists() => {
            bail!("--split: {problem}; check {}", args.split)
        }
        (Err(_), _) => {
            let all = io::labels::read(Path::new(&args.split), records)?;
            let names: Vec<String> = kept.iter().map(|&record| all[record].clone()).collect();
            let (names, dealt) = split::by_name(&names);
            let of = |name: &String| -> Vec<usize> {
                held_out.iter().copied().filter(|&record| all[record] == *name).collect()
            };
            by_name = Some(names.iter().map(of).collect());
            (names, dealt)
        }
    };
    let dealt: Vec<Vec<usize>> =
        dealt.into_iter().map(|places| places.into_iter().map(|place| kept[place]).collect()).collect();
    if let Some(parties) = args.parties.filter(|&parties| parties != dealt.len()) {
        bail!(
            "--parties: {parties} was given, but {} names {}; leave one of them out",
            args.split,
            dealt.len()
        );
    }
    let held_out = by_name.unwrap_or_else(|| split::by_nearest_party(&dealt, held_out));
    Ok((names, dealt, held_out))
}

/// Prints what users should know before the run starts.
pub(super) fn warn(console: Console, plan: &Plan, records: &[usize], features: usize) {
    let (settings, parties) = (&plan.settings, records.len());
    let hidden = risk::hidden(settings, records);
    // Below half the number of features the run is refused or was accepted.
    if settings.aggregation == Aggregation::Secure && (risk::few(features)..2 * features).contains(&hidden) {
        console.warn(&format!(
            "note: sums cover {hidden} records without those of {} colluding, for {features} features; below two \
             records per feature they can reveal membership, which --audit measures",
            settings.colluders
        ));
    }
    if settings.aggregation == Aggregation::Plain {
        console.warn(
            "warning: without masks the coordinator sees what every party contributes, which reveals much about its \
             records; without --aggregation plain it sees only sums",
        );
    } else if parties == 3 {
        console.warn("note: three parties tolerate no dropout, because a sum of two is not opened");
    }
    let one_group = parties < 2 * (settings.colluders + 2).max(3);
    if settings.protocol.is_asynchronous() && settings.aggregation == Aggregation::Secure && one_group {
        console
            .warn("note: with fewer than six parties there is one group, whose members wait for the slowest");
    }
}
