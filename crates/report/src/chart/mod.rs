//! Charts as SVG: shapes with classes, coloured by a style sheet, with a title on every element that has a value.

mod bars;
mod heat;
mod lines;
mod scale;

pub use bars::{Stack, area, ranking};
pub use heat::Heat;
pub use lines::{Axis, Lines, Series};

/// The style of a chart that stands alone in a file, in light colours on white.
pub const STANDALONE: &str = include_str!("standalone.css");
