//! `partwise convert`: writes a matrix in another format.

use anyhow::Result;
use partwise::io::{self, WriteOptions};
use partwise::{Precision, Real};

use crate::args::ConvertArgs;
use crate::context::Context;
use crate::{flags, input, machine, output};

pub fn run(args: &ConvertArgs, context: &Context) -> Result<()> {
    io::FileFormat::to_write(&args.out)?;
    output::check_file(&args.out, "OUT", args.force)?;
    match args.precision {
        Some(Precision::F32) => convert::<f32>(args, context, Some(Precision::F32)),
        // f64 represents every entry of every format, except for integers beyond 2^53.
        precision => convert::<f64>(args, context, precision),
    }
}

fn convert<T: Real>(args: &ConvertArgs, context: &Context, precision: Option<Precision>) -> Result<()> {
    let input = input::read::<T>(&args.file, &args.read, Some(&args.labels))?;
    input::warn_assumptions(context.console, &args.file, &input.assumptions);
    for note in io::check_write(&args.out, &input, machine::available_memory())? {
        context.console.warn(&format!("note: {}: {}", args.out.display(), note.named(flags::name)));
    }
    let options = WriteOptions { precision, uncompressed: args.uncompressed };
    context.outputs.write_whole(&args.out, "OUT", |file| io::write(file, &args.out, &input, options))?;
    let (rows, cols) = (input.matrix.rows(), input.matrix.cols());
    context.console.answer(&format!("{rows} x {cols}, {}, written to {}", input.format, args.out.display()))
}
