//! Nonnegative matrix factorization: M ≈ U Vᵀ with no entry below 0.
//!
//! ```text
//!        n                k
//!   ┌─────────┐        ┌─────┐          n
//!   │         │        │     │     ┌─────────┐
//! m │    M    │  ≈   m │  U  │  ·  │   Vᵀ    │ k        all entries ≥ 0
//!   │         │        │     │     └─────────┘
//!   └─────────┘        └─────┘
//!   samples x          how much     what each
//!   features           of each      component
//!                      component    looks like
//! ```
//!
//! Since nothing can cancel, the k components are parts that add up: strokes of digits, topics of texts, gene
//! programmes.
//!
#![doc = include_str!("digits.html")]
//!
//! *The first eight of sixteen components of 1797 handwritten digits, 8 x 8 pixels each.*
//!
//! # Begin
//!
//! ```toml
//! [dependencies]
//! partwise = "0.1"
//! ```
//!
//! ```
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).ok();
//! let m = partwise::read("data/digits.npy")?; // or Matrix::from_rows, from_csr, ndarray, faer, sprs
//! let model = partwise::Nmf::new(16).seed(0).fit(&m)?;
//! println!("{:.4}", model.relative_error());
//!
//! let new_rows = partwise::Matrix::from_vec(2, 64, vec![1.0_f32; 128])?;
//! let w = model.transform(&new_rows)?;
//! assert_eq!((w.rows(), w.cols()), (2, 16));
//! # assert!((model.relative_error() - 0.257).abs() < 1e-3);
//! # Ok::<(), partwise::Error>(())
//! ```
//!
//! # Matrices
//!
//! A [`Matrix`] is dense or sparse, with entries of type `f32`, `f64` or `u8` that is known at run time. Its
//! entries are not copied, whether they are moved in or borrowed:
//!
//! | from | by | feature |
//! |---|---|---|
//! | a file | [`read`], [`Reader`] | `io`, `images`, `h5ad` for some formats |
//! | `Vec` | [`Matrix::from_vec`], [`from_csr`](Matrix::from_csr), [`from_csc`](Matrix::from_csc), [`from_triplets`](Matrix::from_triplets) | |
//! | slices | [`Matrix::from_slice`], [`from_csr_slices`](Matrix::from_csr_slices) | |
//! | `ndarray` | `Matrix::from(array)`, `Matrix::from(view)` | `ndarray` |
//! | `faer` | `Matrix::from(mat.as_ref())` | `faer` |
//! | `sprs` | `Matrix::try_from(csmat.view())` | `sprs` |
//!
//! To convert back, use [`as_slice`](Matrix::as_slice), [`to_vec`](Matrix::to_vec),
//! [`into_vec`](Matrix::into_vec), [`as_csr`](Matrix::as_csr) or, with the corresponding feature,
//! `as_ndarray`, `to_ndarray`, `as_faer`, `to_faer` and `to_sprs`.
//!
//! ```
//! use partwise::Matrix;
//! use partwise::types::ElementType;
//!
//! let counts = Matrix::from_triplets(3, 1000, [(0, 7, 2.0_f32), (1, 7, 1.0), (2, 999, 4.0)])?;
//! assert!(counts.is_sparse());
//! assert_eq!((counts.element(), counts.stored()), (ElementType::F32, 3));
//! # Ok::<(), partwise::Error>(())
//! ```
//!
//! Entries may be unknown or count more than others: [`Matrix::observed`] and [`Reader::missing`] say so, and
//! [`Nmf::holdout`] hides some to measure the error on them.
//!
//! # Parameters
//!
//! [`Nmf`] is a builder with every parameter: method, loss, sketch, penalties, start, restarts, when to stop, threads, workers, memory.
//! The choices are in [`options`]. Values are checked when the builder is used, and an [`Error`] names the parameter:
//!
//! ```
//! use partwise::Nmf;
//! use partwise::options::{Method, SketchKind};
//!
//! let sketched = Nmf::new(20).method(Method::Dsanls).sketch(SketchKind::Count).sketch_cols(0.1);
//! assert!(sketched.check().is_ok());
//!
//! let error = Nmf::new(20).l1_u(-1.0).check().unwrap_err();
//! assert_eq!(error.parameter(), Some("l1_u"));
//! ```
//!
//! The arithmetic is in `f32` unless [`Nmf::precision`] selects `f64`, regardless of the type of the matrix;
//! errors and norms are summed in `f64`. The same seed gives the same bits for any number of threads.
//!
//! # Observing, cancelling and resuming a run
//!
//! [`Nmf::fit_with`] calls an [`Observer`] after every iteration, which can end the run and keep its factors.
//! A [`CancelToken`] ends the run from another thread, without a result. [`Nmf::checkpoint`] saves the run
//! periodically, and [`Nmf::resume`] continues it, with bit-identical results.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use partwise::{Matrix, Nmf, Progress};
//!
//! let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 5.0]])?;
//! let mut curve = Vec::new();
//! let model = Nmf::new(2).fit_with(&m, &mut |progress: &Progress| {
//!     curve.push(progress.relative_error);
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(curve.len(), model.iterations());
//! # Ok::<(), partwise::Error>(())
//! ```
//!
//! # Files larger than memory
//!
//! Pass a [`Reader`] and a memory limit to [`Nmf::fit`]. A matrix that does not fit stays in its file, which
//! is read block by block:
//!
//! ```
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).ok();
//! use partwise::{Nmf, Reader};
//!
//! let model = Nmf::new(4).memory(1 << 20).iterations(10).fit(&Reader::new("data/digits.npy"))?;
//! # assert_eq!(model.u().rows(), 1797);
//! # Ok::<(), partwise::Error>(())
//! ```
//!
//! # Federated factorization
//!
//! With the feature `simulate`, `federated::simulate` measures the results and costs of a secure protocol.
//! With `federation`, `federated::Coordinator` and `federated::Party` are the two ends of a federation over
//! the network.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `io` (default) | `.npz`, `.csv`, `.tsv`, gzip |
//! | `images`, `h5ad` | JPEG and PNG; AnnData |
//! | `ndarray`, `faer`, `sprs` | matrices from and to these crates |
//! | `indicatif` | `indicatif::ProgressBar` as an observer |
//! | `simulate`, `federation` | federated factorization in one process; over the network |
#![deny(missing_docs)]

mod error;
#[cfg(feature = "simulate")]
pub mod federated;
mod fit;
mod matrix;
mod model;
mod nmf;
mod observe;
pub mod options;
mod read;
mod sketch;

pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "simulate")]
pub use federated::simulate;
#[cfg(feature = "federation")]
pub use federated::{Coordinator, Party};
pub use matrix::Matrix;
pub use model::Model;
pub use nmf::Nmf;
pub use observe::{CancelToken, Observer, Progress};
pub use read::{Reader, read};
pub use sketch::Sketch;

/// Types that occur in signatures but are rarely needed by name.
pub mod types {
    pub use crate::fit::Source;
    pub use crate::matrix::{Element, ElementType, Float, Observed};
    pub use crate::model::{HeldOutError, TracePoint};
    pub use crate::sketch::SketchSize;
}
