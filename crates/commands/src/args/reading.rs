//! How to read a matrix and to look at it: arguments of several commands.

use std::path::PathBuf;

use clap::Args;
use partwise::io::{ImageSide, Presence};
use partwise::pipeline::MissingEntries;

use super::values::{Picture, choice};

/// How to read a matrix file.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Transpose the matrix
    #[arg(long)]
    pub transpose: bool,
    /// Whether the first line of a table has column names
    #[arg(long, value_parser = choice(&Presence::ALL), default_value = "auto", value_name = "WHEN")]
    pub header: Presence,
    /// Whether the first column of a table has row names
    #[arg(long, value_parser = choice(&Presence::ALL), default_value = "auto", value_name = "WHEN")]
    pub row_names: Presence,
    /// Whether an image becomes a row or a column [default: columns, or as in the run]
    #[arg(long, value_parser = choice(&ImageSide::ALL), value_name = "SIDE")]
    pub images: Option<ImageSide>,
}

/// Which entries of a matrix are missing, and the weights of the others.
#[derive(Debug, Args)]
pub struct KnownArgs {
    /// Missing entries: NaN, and in a text table NA and empty cells (nan); those that a sparse matrix does not
    /// store (unstored); all zeros (zero); or those that are not 0 in a file of the same size
    #[arg(long, value_parser = missing, value_name = "nan|unstored|zero|FILE", help_heading = "Loss")]
    pub missing: Option<MissingEntries>,
    /// Weights of the entries: a file of the same size, or with a number for each row (as a column) or column
    /// (as a row)
    #[arg(long, value_name = "FILE", help_heading = "Loss")]
    pub weights: Option<PathBuf>,
}

impl KnownArgs {
    /// Whether entries may be missing or weighted.
    pub fn given(&self) -> bool {
        self.missing.is_some() || self.weights.is_some()
    }
}

/// Parses `nan`, `unstored`, `zero` or a file name.
fn missing(text: &str) -> Result<MissingEntries, String> {
    if text.is_empty() { Err("give nan, unstored, zero or a file".into()) } else { Ok(text.into()) }
}

/// Text files with names for rows and columns.
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// Names of the file's rows, one per line
    #[arg(long, value_name = "FILE")]
    pub row_labels: Option<PathBuf>,
    /// Names of the file's columns, one per line
    #[arg(long, value_name = "FILE")]
    pub col_labels: Option<PathBuf>,
}

/// How to draw a component.
#[derive(Debug, Args)]
pub struct ShapeArgs {
    /// Size of samples that are images, such as 28x28, or 28x28x3 in colour
    #[arg(long, value_name = "WxH")]
    pub image_shape: Option<Picture>,
}
