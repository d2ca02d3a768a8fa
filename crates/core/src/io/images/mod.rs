//! Images, one a column or a row: the JPEG and PNG files of a folder or a zip archive, in the byte order of their
//! names. Pixels stay bytes, row by row with the channels of a pixel side by side.

mod album;
mod decode;

use super::format::{Format, FormatInfo, Opened, Writes};
use super::memory::Budget;
use super::npz::ZIP;
use super::{ImageShape, ImageSide, Input, ReadOptions};
use crate::error::{Error, Result};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::{Precision, Real};
use crate::wording::Wording;
use album::{Album, Folder, Zip};
use decode::{Converted, Picture};

pub use album::files;

/// Images in a zip archive; those in a folder have no file to be opened.
pub(super) struct Images;

impl Format for Images {
    const INFO: FormatInfo = FormatInfo {
        name: "a zip archive of images",
        endings: &["zip"],
        signature: Some(ZIP),
        in_parts: false,
        writes: Writes::Nothing,
    };

    /// Reads the images of the archive, in folders within it too.
    fn read<T: Real>(file: Opened<'_>, options: &ReadOptions) -> Result<Input<T>> {
        read(Zip::open(file.budget)?, file.budget, options.images, "a zip archive")
    }
}

/// Reads the images of a folder; folders within it are not searched.
pub(super) fn read_folder<T: Real>(budget: Budget, side: ImageSide) -> Result<Input<T>> {
    read(Folder::open(budget)?, budget, side, "a folder")
}

fn read<T: Real>(mut album: impl Album, budget: Budget, side: ImageSide, place: &str) -> Result<Input<T>> {
    let names = album.names();
    let mut first: Option<Picture> = None;
    let mut pixels = Vec::new();
    let mut converted = Converted::default();
    for (index, name) in names.iter().enumerate() {
        let file = album.load(index)?;
        let damaged = |problem: String| error(budget, name, problem);
        let (picture, decoder) = decode::open(&file, budget.available).map_err(damaged)?;
        match first {
            None => {
                check_memory(budget, picture, names.len(), file.len())?;
                pixels = budget.vec("the images", names.len().saturating_mul(picture.bytes()))?;
                first = Some(picture);
            }
            Some(first) if first != picture => {
                let problem = format!(
                    "{picture}, but {} is {first}; use images of one size and kind, or convert them",
                    names[0]
                );
                return Err(error(budget, name, problem));
            }
            Some(_) => {}
        }
        let begin = pixels.len();
        pixels.resize(begin + picture.bytes(), 0);
        converted.add(decode::pixels(decoder, &file, &mut pixels[begin..]).map_err(damaged)?);
    }
    let Some(Picture { width, height, channels }) = first else {
        let problem = format!("no JPEG or PNG images in {place}; {}", album.cure());
        return Err(Error::format(budget.path, "content", problem));
    };
    let length = pixels.len() / names.len();
    let kind = if channels == 1 { "grey" } else { "RGB" };
    let (rows, cols, order) = match side {
        ImageSide::Columns => (length, names.len(), Order::ColMajor),
        ImageSide::Rows => (names.len(), length, Order::RowMajor),
    };
    let (row_labels, col_labels) = match side {
        ImageSide::Columns => (None, Some(names)),
        ImageSide::Rows => (Some(names), None),
    };
    Ok(Input {
        matrix: Matrix::Dense(Dense::new(rows, cols, order, Values::Bytes(pixels.into()))),
        row_labels,
        col_labels,
        format: format!("{width} x {height} {kind} images in {place}{converted}"),
        precision: Precision::F32,
        image: Some(ImageShape { width, height, channels, images: side }),
        assumptions: Vec::new(),
    })
}

/// Refuses images that do not fit, including the memory for decoding one of them.
fn check_memory(budget: Budget, picture: Picture, count: usize, file: usize) -> Result<()> {
    // Progressive JPEG holds 16-bit coefficients and wide samples; 16-bit PNG two bytes a sample.
    const WORK: u64 = 8;
    let one = picture.bytes() as u64;
    let needed = one.saturating_mul(count as u64).saturating_add(one.saturating_mul(WORK));
    let Picture { width, height, .. } = picture;
    let what = format!("the matrix of {count} images of {width} x {height} pixels");
    budget.check(&what, needed.saturating_add(file as u64))
}

fn error(budget: Budget, name: &str, problem: impl Into<Wording>) -> Error {
    Error::format(budget.path, format!("image {name}"), problem)
}
