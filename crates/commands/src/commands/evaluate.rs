//! `partwise evaluate`: the relative error of a result on a matrix.

use anyhow::Result;
use partwise::run::error_of;
use partwise::threads::Threads;
use partwise::{Precision, Real};
use serde_json::json;

use crate::args::EvaluateArgs;
use crate::context::Context;
use crate::folder::{self, Names};
use crate::{input, machine};

pub fn run(args: &EvaluateArgs, context: &Context) -> Result<()> {
    let record = folder::record(&args.dir)?;
    let error = match record.precision {
        Precision::F32 => error::<f32>(args, context, &record)?,
        Precision::F64 => error::<f64>(args, context, &record)?,
    };
    context.console.answer(&if args.json {
        json!({ "relative_error": error }).to_string()
    } else {
        format!("relative error {error:.9}")
    })
}

fn error<T: Real>(args: &EvaluateArgs, context: &Context, record: &folder::Record) -> Result<f64> {
    let mut folder = folder::read::<T>(&args.dir)?;
    let input = input::read_turned::<T>(&args.file, &args.read, record.turned(&args.read), None)?;
    input::warn_assumptions(context.console, &args.file, &input.assumptions);
    let names = Names { rows: input.row_labels.as_deref(), cols: input.col_labels.as_deref() };
    folder.match_names(&args.dir, &args.file, names)?;
    folder.check(&args.dir, &args.file, input.matrix.shape(), None)?;
    Ok(error_of(input.matrix, &folder.factors, &Threads::new(machine::cores())?)?)
}
