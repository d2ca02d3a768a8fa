//! `partwise evaluate`: the relative error of a result on a matrix.

use anyhow::Result;
use partwise::objective::Loss;
use partwise::run::{Residual, residual_of, residual_of_observed};
use partwise::threads::Threads;
use partwise::{Precision, Real};
use serde_json::json;

use crate::args::EvaluateArgs;
use crate::context::Context;
use crate::folder::{self, Names};
use crate::input::KnownInput;
use crate::{input, machine};

pub fn run(args: &EvaluateArgs, context: &Context) -> Result<()> {
    let record = folder::record(&args.dir)?;
    let Residual { relative_error, loss, .. } = match record.precision {
        Precision::F32 => error::<f32>(args, context, &record)?,
        Precision::F64 => error::<f64>(args, context, &record)?,
    };
    context.console.answer(&if args.json {
        json!({ "relative_error": relative_error, "loss_name": record.loss, "loss": loss }).to_string()
    } else {
        let loss = match record.loss {
            Loss::Frobenius => String::new(),
            name => format!(", {name} {loss:.9e}"),
        };
        format!("relative error {relative_error:.9}{loss}")
    })
}

fn error<T: Real>(args: &EvaluateArgs, context: &Context, record: &folder::Record) -> Result<Residual> {
    let mut folder = folder::read::<T>(&args.dir)?;
    let KnownInput { input, observed } = input::read_for::<T>(&args.file, &args.read, &args.known, record)?;
    input::warn_assumptions(context.console, &args.file, &input.assumptions);
    let names = Names { rows: input.row_labels.as_deref(), cols: input.col_labels.as_deref() };
    folder.match_names(&args.dir, &args.file, names)?;
    folder.check(&args.dir, &args.file, input.matrix.shape(), None)?;
    let threads = &Threads::new(machine::cores())?;
    Ok(match observed {
        Some(observed) => residual_of_observed(&observed, &folder.factors, record.loss, threads)?,
        None => residual_of(input.matrix, &folder.factors, record.loss, threads)?,
    })
}
