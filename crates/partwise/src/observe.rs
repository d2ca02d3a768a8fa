//! Watching a run, and ending it.

use std::ops::ControlFlow;

use partwise_core::cancel::Cancel;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Which of the restarts, from 0.
    pub restart: usize,
    /// How many restarts there are to be.
    pub restarts: usize,
    /// Iterations done.
    pub iteration: usize,
    /// Iterations at most.
    pub max_iterations: usize,
    /// The last relative error that was evaluated, ‖M − U Vᵀ‖ / ‖M‖.
    pub relative_error: f64,
    /// Seconds of computing so far in this run.
    pub seconds: f64,
}

/// Watches a run, and may end it early: [`Nmf::fit_with`](crate::Nmf::fit_with).
///
/// A closure from [`Progress`] to [`ControlFlow`] is one, and so is, with the feature `indicatif`, an
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
    /// Called once, when it is settled what the method does, in words.
    fn started(&mut self, _plan: &str) {}

    /// Called after every iteration. [`ControlFlow::Break`] ends the run; its factors are kept.
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()>;
}

impl<F: FnMut(&Progress) -> ControlFlow<()> + Send> Observer for F {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self(progress)
    }
}

/// Watches nothing.
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

/// Ends a computation from another thread, wherever it is and without a result.
///
/// Clones belong to the same computation. A cancelled computation unwinds inside the library, and so needs
/// `panic = "unwind"`, Rust's default.
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
    /// A token that is not cancelled.
    pub fn new() -> Self {
        CancelToken::default()
    }

    /// Ends the computation, for good.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}
