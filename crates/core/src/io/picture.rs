//! Rows or columns of a matrix as pictures.

use serde::{Deserialize, Serialize};

/// Whether images are the columns or the rows of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageSide {
    /// An image a column.
    #[default]
    Columns,
    /// An image a row.
    Rows,
}

impl ImageSide {
    /// Both.
    pub const ALL: [ImageSide; 2] = [ImageSide::Columns, ImageSide::Rows];

    /// The side of the transpose.
    pub(crate) fn other(self) -> Self {
        match self {
            ImageSide::Columns => ImageSide::Rows,
            ImageSide::Rows => ImageSide::Columns,
        }
    }
}

/// How to see a column, or a row, as a picture again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageShape {
    /// Pixels in a line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Bytes of a pixel: 1 for grey, 3 for RGB.
    pub channels: u8,
    /// Which side of the matrix the images are.
    pub images: ImageSide,
}
