//! x
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod fit;
mod matrix;
mod model;
mod nmf;
mod observe;
pub mod options;
mod read;
mod sketch;

pub use error::{Error, ErrorKind, Result};
pub use fit::Source;
pub use matrix::{Element, ElementType, Float, Matrix};
pub use model::{Model, TracePoint};
pub use nmf::{IntoAmount, Nmf};
pub use observe::{CancelToken, Observer, Progress};
pub use read::{Reader, read};
pub use sketch::{Sketch, SketchSize};
