//! Rows or columns of a matrix as pictures.

use serde::{Deserialize, Serialize};

/// Whether images are the columns or the rows of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageSide {
    /// One image per column.
    #[default]
    Columns,
    /// One image per row.
    Rows,
}

impl ImageSide {
    /// Both sides.
    pub const ALL: [ImageSide; 2] = [ImageSide::Columns, ImageSide::Rows];

    /// The side of the transpose.
    pub(crate) fn other(self) -> Self {
        match self {
            ImageSide::Columns => ImageSide::Rows,
            ImageSide::Rows => ImageSide::Columns,
        }
    }
}

/// How to show a column or a row as a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageShape {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Bytes per pixel: 1 for grey, 3 for RGB.
    pub channels: u8,
    /// The side of the matrix that consists of images.
    pub images: ImageSide,
}
