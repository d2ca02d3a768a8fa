//! How to read a matrix and to look at it: arguments of several commands.

use std::path::PathBuf;

use clap::Args;
use partwise::io::{ImageSide, Presence};

use super::values::{Picture, choice};

/// How to read a matrix file.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Work on the transposed matrix (`evaluate` and `transform` do as the run did; there it means the opposite)
    #[arg(long)]
    pub transpose: bool,
    /// In a text table: whether the first line holds column names
    #[arg(long, value_parser = choice(&Presence::ALL), default_value = "auto", value_name = "WHEN")]
    pub header: Presence,
    /// In a text table: whether the first column holds row names
    #[arg(long, value_parser = choice(&Presence::ALL), default_value = "auto", value_name = "WHEN")]
    pub row_names: Presence,
    /// Of a folder or .zip of images: whether an image becomes a column or a row [default: columns; where there was
    /// a run, as there]
    #[arg(long, value_parser = choice(&ImageSide::ALL), value_name = "SIDE")]
    pub images: Option<ImageSide>,
}

/// Text files with names for rows and columns.
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// A text file with a name a line for the file's rows (before --transpose)
    #[arg(long, value_name = "FILE")]
    pub row_labels: Option<PathBuf>,
    /// A text file with a name a line for the file's columns (before --transpose)
    #[arg(long, value_name = "FILE")]
    pub col_labels: Option<PathBuf>,
}

/// How to see what a component is made of.
#[derive(Debug, Args)]
pub struct ShapeArgs {
    /// Where a row or column of a table is a picture: its width and height (28x28), with x3 behind them for colours
    #[arg(long, value_name = "WxH")]
    pub image_shape: Option<Picture>,
}
