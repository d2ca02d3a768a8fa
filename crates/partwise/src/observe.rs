//! Observing a run, and ending it.

use std::ops::ControlFlow;

use partwise_core::cancel::Cancel;

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Number of the current restart, from 0.
    pub restart: usize,
    /// Total number of restarts.
    pub restarts: usize,
    /// Number of iterations so far.
    pub iteration: usize,
    /// Maximum number of iterations.
    pub max_iterations: usize,
    /// The last evaluated relative error, ‖M − U Vᵀ‖ / ‖M‖.
    pub relative_error: f64,
    /// Seconds of computing so far in this run.
    pub seconds: f64,
}

/// Observes a run, and may end it early; see [`Nmf::fit_with`](crate::Nmf::fit_with).
///
/// Implemented by closures from [`Progress`] to [`ControlFlow`] and, with the feature `indicatif`, by
/// `indicatif::ProgressBar`.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use partwise::{Matrix, Nmf, Observer, Progress};
///
/// /// Ends a run at the first iteration that lowers the error by less than a hundredth.
/// struct Patience(f64);
///
/// impl Observer for Patience {
///     fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
///         let before = std::mem::replace(&mut self.0, progress.relative_error);
///         if progress.relative_error > 0.99 * before { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
///     }
/// }
///
/// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 5.0]])?;
/// let model = Nmf::new(2).tolerance(0.0).fit_with(&m, &mut Patience(f64::INFINITY))?;
/// assert!(model.iterations() < 500);
/// # Ok::<(), partwise::Error>(())
/// ```
pub trait Observer: Send {
    /// Called once, with a description of the method.
    fn started(&mut self, _plan: &str) {}

    /// Called after every iteration. [`ControlFlow::Break`] ends the run; its factors are kept.
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()>;
}

impl<F: FnMut(&Progress) -> ControlFlow<()> + Send> Observer for F {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self(progress)
    }
}

/// An observer that does nothing.
pub(crate) struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _progress: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Shows iterations and the relative error, and never ends a run.
///
/// ```
/// use indicatif::ProgressBar;
/// use partwise::{Matrix, Nmf};
///
/// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0]])?;
/// let mut bar = ProgressBar::hidden();
/// let model = Nmf::new(1).fit_with(&m, &mut bar)?;
/// assert_eq!(bar.position(), model.iterations() as u64);
/// # Ok::<(), partwise::Error>(())
/// ```
#[cfg(feature = "indicatif")]
impl Observer for indicatif::ProgressBar {
    fn started(&mut self, plan: &str) {
        self.println(plan);
    }

    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.set_length(progress.max_iterations as u64);
        self.set_position(progress.iteration as u64);
        let run = match progress.restarts {
            1 => String::new(),
            all => format!("run {}/{all}, ", progress.restart + 1),
        };
        self.set_message(format!("{run}relative error {:.6}", progress.relative_error));
        ControlFlow::Continue(())
    }
}

/// Cancels a computation from another thread, at any point and without a result.
///
/// Clones belong to the same computation. Cancellation unwinds inside the library, and therefore needs `panic
/// = "unwind"`, Rust's default.
///
/// ```
/// use partwise::{CancelToken, ErrorKind, Matrix, Nmf};
///
/// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0]])?;
/// let token = CancelToken::new();
/// token.cancel(); // from a signal's handler or another thread
/// let error = Nmf::new(2).cancel_token(&token).fit(&m).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Cancelled);
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(pub(crate) Cancel);

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        CancelToken::default()
    }

    /// Cancels the computation permanently.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}
