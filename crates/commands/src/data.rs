//! Where the matrix of a factorization is: in memory, or in its file where `--memory` leaves no room for it.

use anyhow::{Result, bail};
use partwise::Real;
use partwise::error::Error;
use partwise::io::stream::Stream;
use partwise::io::{Assumption, ImageShape, Input};
use partwise::matrix::Matrix;
use partwise::run::{Demand, Settings, Streamed, memory_needed, memory_needed_whole};
use serde_json::{Value, json};

use crate::args::FactorizeArgs;
use crate::{input, machine};

/// The matrix.
pub enum Data<T> {
    Whole(Matrix<T>),
    Streamed(Box<Streamed>),
}

/// The matrix and what is known of it beside its entries.
pub struct Given<T> {
    pub data: Data<T>,
    pub rows: usize,
    pub cols: usize,
    pub stored: usize,
    pub row_labels: Option<Vec<String>>,
    pub col_labels: Option<Vec<String>>,
    pub format: String,
    pub image: Option<ImageShape>,
    pub assumptions: Vec<Assumption>,
}

/// What to do about a matrix that `--memory` does not hold and that cannot be streamed.
const CONVERT: &str = "this file can only be read whole: convert it first, with `partwise convert IN OUT.npy` (or \
                       OUT.npz --uncompressed), or raise --memory";

/// Reads the matrix, or looks through the file that it stays in.
pub fn open<T: Real>(args: &FactorizeArgs, settings: &Settings, threads: usize) -> Result<Given<T>> {
    let limit = args.memory.map(|memory| memory.min(machine::available_memory()));
    let stream =
        limit.map(|limit| Stream::open(&args.file, args.read.transpose, limit)).transpose()?.flatten();
    if let (Some(limit), Some(stream)) = (limit, stream)
        && memory_needed_whole(&stream, settings.algorithm, settings.rank, args.nodes, T::PRECISION) > limit
    {
        settings.check(stream.rows(), stream.cols())?;
        return streamed::<T>(args, stream, settings, (limit, threads));
    }
    let memory = limit.unwrap_or_else(machine::available_memory);
    let turned = (args.read.transpose, None);
    let read = input::read_within::<T>(&args.file, &args.read, turned, Some(&args.labels), memory);
    let Input { matrix, row_labels, col_labels, format, image, assumptions, .. } =
        read.map_err(|error| match error {
            Error::Memory { what, needed, available, .. } if limit.is_some() => {
                Error::Memory { what, needed, available, cure: CONVERT }
            }
            error => error,
        })?;
    let (rows, cols, stored) = (matrix.rows(), matrix.cols(), matrix.stored());
    settings.check(rows, cols)?;
    input::check_range(&args.file, &matrix)?;
    let needed = memory_needed(&matrix, settings.algorithm, settings.rank, args.nodes, T::PRECISION);
    if let Some(available) = limit.filter(|&limit| needed > limit) {
        let what = format!("{}: the factorization", args.file.display());
        return Err(Error::Memory { what, needed, available, cure: CONVERT }.into());
    }
    input::check_memory("the factorization", needed.saturating_sub(matrix.bytes()))?;
    let data = Data::Whole(matrix);
    Ok(Given { data, rows, cols, stored, row_labels, col_labels, format, image, assumptions })
}

fn streamed<T: Real>(
    args: &FactorizeArgs,
    stream: Stream,
    settings: &Settings,
    (memory, threads): (u64, usize),
) -> Result<Given<T>> {
    if args.nodes > 1 {
        bail!(
            "--nodes: a matrix that stays in its file is factorized on one node; leave it out, or raise --memory"
        );
    }
    if !args.network.is_empty() {
        bail!(
            "--network: a matrix that stays in its file is factorized on one node; leave it out, or raise --memory"
        );
    }
    let (rows, cols, stored) = (stream.rows(), stream.cols(), stream.stored());
    let (row_labels, col_labels) = input::labels(&args.read, &args.labels, (rows, cols))?;
    let labels = row_labels.iter().chain(&col_labels).flatten();
    let demand = Demand {
        copies: copies(args, settings),
        kept: labels.map(|label| (size_of::<String>() + label.capacity() + 16) as u64).sum(),
        ..Demand::new(memory, settings.rank, threads)
    };
    let streamed = Streamed::new::<T>(stream, &demand)?;
    input::check_largest::<T>(&args.file, streamed.largest())?;
    let format = streamed.stream().format().to_string();
    let data = Data::Streamed(Box::new(streamed));
    let (image, assumptions) = (None, Vec::new());
    Ok(Given { data, rows, cols, stored, row_labels, col_labels, format, image, assumptions })
}

/// How often U and V are in memory at once: the current ones, those that were given or read from a checkpoint, the best
/// restart so far and its copy for checkpoints, and what a checkpoint is written from. A run that can be resumed counts
/// what resuming needs, so that a resumed run has the same blocks and with them the same bits.
fn copies(args: &FactorizeArgs, settings: &Settings) -> u64 {
    let resumable = args.checkpoint_every.is_some() || args.resume;
    let given = args.init_from.is_some() || resumable;
    let restarts = settings.restarts > 1;
    1 + u64::from(given) + 2 * u64::from(restarts) + u64::from(resumable) * (1 + u64::from(restarts))
}

impl<T: Real> Data<T> {
    /// Where the matrix is, in words.
    pub fn words(&self) -> String {
        match self {
            Data::Whole(matrix) => format!("{} in memory", input::size(matrix.bytes())),
            Data::Streamed(streamed) => format!(
                "streamed by {}, {} blocks of up to {}",
                if streamed.stream().by_columns() { "columns" } else { "rows" },
                streamed.blocks(),
                input::size(streamed.block_bytes())
            ),
        }
    }
}

/// What `run.json` says of a matrix that stayed in its file.
pub fn record(streamed: &Streamed) -> Value {
    let stream = streamed.stream();
    json!({
        "lines": if stream.by_columns() { "columns" } else { "rows" },
        "blocks": streamed.blocks(),
        "block_bytes": streamed.block_bytes(),
        "passes": streamed.passes(),
        "bytes_read": stream.bytes_read(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: FactorizeArgs,
    }

    /// Sums over blocks depend on where these end.
    #[test]
    fn a_resumed_run_has_the_blocks_of_the_run_that_was_interrupted() {
        let copies_of = |words: &str| {
            let words = format!("factorize M.npy --rank 4 --out r {words}");
            let Line { args } = Line::try_parse_from(words.split_whitespace()).unwrap();
            copies(&args, &args.settings())
        };
        for words in ["", "--restarts 3", "--init-from s"] {
            let first = copies_of(&format!("{words} --checkpoint-every 5"));
            assert_eq!(first, copies_of(&format!("{words} --checkpoint-every 5 --resume")), "{words}");
            assert_eq!(first, copies_of(&format!("{words} --resume")), "{words}");
        }
    }
}
