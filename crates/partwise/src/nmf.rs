//! The builder: every parameter of a factorization.

use std::collections::BTreeSet;
use std::path::PathBuf;

use partwise_core::io::{ImageShape, Presence};
use partwise_core::machine;
use partwise_core::pipeline::{Costs, Finish, MemoryAdvice, Request, Resources};
use partwise_core::plan::Constants;
use partwise_core::run::{Machine, Settings, Side};

use crate::error::{Error, Result};
use crate::fit::{self, Source};
use crate::matrix::Matrix;
use crate::model::Model;
use crate::observe::{CancelToken, Observer, Silent};
use crate::options::{
    Every, Grid, Init, IntoAmount, Loss, Method, Network, Normalize, Precision, SketchChoice, SketchedSolver,
    Step,
};

/// A nonnegative matrix factorization to be computed: M ≈ U Vᵀ with k components and no negative entry.
///
/// Every method sets one parameter and returns the builder. [`Nmf::check`] and [`Nmf::fit`] check the values:
/// parameters that are out of range, contradict each other, or would be ignored by the chosen method are
/// rejected by name. A builder can be cloned and reused.
///
/// ```
/// use partwise::options::{Init, Method};
/// use partwise::{Matrix, Nmf};
///
/// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 5.0]])?;
/// let nmf = Nmf::new(2).seed(7).restarts(3).tolerance(1e-6);
/// let random = nmf.fit(&m)?;
/// let exact = nmf.clone().restarts(1).method(Method::Bpp).init(Init::Nndsvda).fit(&m)?;
/// assert!((random.relative_error() - exact.relative_error()).abs() < 0.1);
///
/// let error = nmf.clone().sketch_cols(0.1).check().unwrap_err();
/// assert_eq!(error.parameter(), Some("sketch_cols"));
/// assert!(error.to_string().contains("auto does not use it"));
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Nmf {
    pub(crate) settings: Settings,
    /// Given parameters that only some methods use.
    given: BTreeSet<&'static str>,
    pub(crate) precision: Precision,
    threads: Option<usize>,
    workers: usize,
    grid: Option<Grid>,
    networks: Vec<Network>,
    memory: Option<u64>,
    samples: Presence,
    finish: Finish,
    pub(crate) records: Option<Side>,
    pub(crate) image_shape: Option<ImageShape>,
    pub(crate) start: Option<Start>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) resume: bool,
    pub(crate) cancel: CancelToken,
}

/// The starting U and V.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub u: Matrix<'static>,
    pub v: Matrix<'static>,
}

/// The file of checkpoints, and their interval.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub path: PathBuf,
    pub every: Every,
}

impl Nmf {
    /// Creates a factorization with this many components.
    pub fn new(components: usize) -> Self {
        Nmf {
            settings: Settings::new(components),
            given: BTreeSet::new(),
            precision: Precision::F32,
            threads: None,
            workers: 1,
            grid: None,
            networks: Vec::new(),
            memory: None,
            samples: Presence::Auto,
            finish: Finish::AsIterated,
            records: None,
            image_shape: None,
            start: None,
            checkpoint: None,
            resume: false,
            cancel: CancelToken::new(),
        }
    }

    fn set(mut self, name: &'static str, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.given.insert(name);
        self
    }

    /// Sets the method. The default chooses the fastest known one by the size of M.
    pub fn method(self, method: Method) -> Self {
        self.set("algorithm", |settings| settings.algorithm = method)
    }

    /// Sets the loss. The default is least squares.
    pub fn loss(self, loss: Loss) -> Self {
        self.set("loss", |settings| settings.loss = loss)
    }

    /// Hides this share of the entries from the run and measures the error on them: [`Model::held_out`]. Which ones follows from
    /// the seed. Where entries that a sparse matrix does not store are 0, it is this share of the stored entries, and as many of
    /// the others.
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).ok();
    /// use partwise::Nmf;
    ///
    /// let digits = partwise::read("data/digits.npy")?;
    /// let held_out_rmse = |components| -> partwise::Result<f64> {
    ///     let model = Nmf::new(components).iterations(30).holdout(0.1).fit(&digits)?;
    ///     Ok(model.held_out().map_or(f64::NAN, |held_out| held_out.rmse))
    /// };
    /// assert!(held_out_rmse(10)? < held_out_rmse(2)?);
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn holdout(mut self, share: f64) -> Self {
        self.settings.holdout = Some(share);
        self
    }

    /// Sets the sketch of `dsanls`. The default draws columns of M without replacement.
    pub fn sketch(self, sketch: impl Into<SketchChoice>) -> Self {
        let sketch = sketch.into();
        self.set("sketch", |settings| match sketch {
            SketchChoice::Kind(kind) => (settings.sketch, settings.custom_sketch) = (kind, None),
            SketchChoice::Custom(sketch) => settings.custom_sketch = Some(sketch.0),
        })
    }

    /// Sets the number of columns of M to which `dsanls` sketches, as a number or a share. The default
    /// depends on the size of M.
    pub fn sketch_cols(self, amount: impl IntoAmount) -> Self {
        self.set("sketch_cols", |settings| settings.sketch_cols = Some(amount.into_amount()))
    }

    /// Sets the number of rows of M to which `dsanls` sketches, as a number or a share. The default depends
    /// on the size of M.
    pub fn sketch_rows(self, amount: impl IntoAmount) -> Self {
        self.set("sketch_rows", |settings| settings.sketch_rows = Some(amount.into_amount()))
    }

    /// Sets the solver of `dsanls` for sketched subproblems. The default is proximal coordinate descent.
    pub fn sketch_solver(self, solver: SketchedSolver) -> Self {
        self.set("solver", |settings| settings.solver = solver)
    }

    /// Sets α of the damping (α + β t) of sketched steps.
    pub fn alpha(self, alpha: f64) -> Self {
        self.set("alpha", |settings| settings.alpha = alpha)
    }

    /// Sets β of the damping (α + β t) of sketched steps.
    pub fn beta(self, beta: f64) -> Self {
        self.set("beta", |settings| settings.beta = beta)
    }

    /// Sets the units of the damping: unit-free, or as in the paper.
    pub fn step(self, step: Step) -> Self {
        self.set("step", |settings| settings.step = step)
    }

    /// Sets whether to keep entries of U and V at most √(2‖M‖), as the convergence proof requires.
    pub fn bound(mut self, bound: bool) -> Self {
        self.settings.bound = bound;
        self
    }

    /// Sets the weight of n ‖U‖₁. Penalties are added to ½‖M − U Vᵀ‖² and scaled by the length of the other
    /// side, so that a weight means the same at any size.
    pub fn l1_u(mut self, weight: f64) -> Self {
        self.settings.l1_u = weight;
        self
    }

    /// Sets the weight of m ‖V‖₁.
    pub fn l1_v(mut self, weight: f64) -> Self {
        self.settings.l1_v = weight;
        self
    }

    /// Sets the weight of ½ n ‖U‖².
    pub fn l2_u(mut self, weight: f64) -> Self {
        self.settings.l2_u = weight;
        self
    }

    /// Sets the weight of ½ m ‖V‖².
    pub fn l2_v(mut self, weight: f64) -> Self {
        self.settings.l2_v = weight;
        self
    }

    /// Sets how to start: at random, or from singular vectors of M.
    pub fn init(mut self, init: Init) -> Self {
        self.settings.init = init;
        self
    }

    /// Starts from these factors, m x k and n x k, for example those of a [`Model`]. Their components keep
    /// their positions.
    ///
    /// ```
    /// use partwise::{Matrix, Nmf};
    ///
    /// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0]])?;
    /// let nmf = Nmf::new(2).iterations(3).tolerance(0.0);
    /// let some = nmf.fit(&m)?;
    /// let more = nmf.clone().start(some.u(), some.v()).fit(&m)?;
    /// assert!(more.relative_error() <= some.relative_error());
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn start(mut self, u: &Matrix<'_>, v: &Matrix<'_>) -> Self {
        self.start = Some(Start { u: u.clone().into_owned(), v: v.clone().into_owned() });
        self
    }

    /// Sets the random seed. The default is 0. The same seed gives the same result for any number of threads.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Sets the number of runs from different random starts, of which the best is kept.
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.settings.restarts = restarts;
        self
    }

    /// Sets the maximum number of iterations. The default is 500.
    pub fn iterations(mut self, iterations: usize) -> Self {
        self.settings.iterations = iterations;
        self
    }

    /// Stops when the relative change of the error per iteration is below this, over ten iterations; 0 turns
    /// this off. The default is 1e-5.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.settings.tolerance = tolerance;
        self
    }

    /// Stops at this relative error.
    pub fn target_error(mut self, error: f64) -> Self {
        self.settings.target_error = Some(error);
        self
    }

    /// Stops after this many seconds of computing.
    pub fn time_limit(mut self, seconds: f64) -> Self {
        self.settings.time_limit = Some(seconds);
        self
    }

    /// Sets the number of iterations between two points of the trace. The default depends on their cost.
    pub fn trace_every(mut self, iterations: usize) -> Self {
        self.settings.trace_every = Some(iterations);
        self
    }

    /// Sets the scale of the components. The default is balanced, or the method's own scale with penalties or
    /// a bound.
    pub fn normalize(mut self, how: Normalize) -> Self {
        self.settings.normalize = Some(how);
        self
    }

    /// Sets whether `auto` may, must or must not start on samples of a dense matrix.
    pub fn samples(mut self, samples: Presence) -> Self {
        self.samples = samples;
        self.settings.samples = samples != Presence::No;
        self
    }

    /// Sets the floating-point type of the factors and the arithmetic. The default is `f32`, regardless of
    /// the matrix.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Sets the number of threads per worker. The default is all cores. The result does not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the number of in-process workers, each with its part of the matrix like a process on a cluster.
    /// The default is 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the process grid of the exact methods. The default sends the least.
    pub fn grid(mut self, grid: Grid) -> Self {
        self.grid = Some(grid);
        self
    }

    /// Models a network between the workers, with a virtual clock, and lets `auto` choose the method by it.
    /// Several networks may be given; seconds are those of the first.
    pub fn network(mut self, network: Network) -> Self {
        self.networks.push(network);
        self
    }

    /// Sets the memory limit in bytes for a matrix in a file. If it does not fit, it is read block by block
    /// in every iteration.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets whether to solve for U exactly at the end, so that [`Model::transform`] of the same matrix
    /// reproduces it.
    pub fn exact_rows(mut self, exact: bool) -> Self {
        self.finish = if exact { Finish::ExactRows } else { Finish::AsIterated };
        self
    }

    /// Whether samples are the rows or the columns of M. The run does not depend on it; [`Model::write`] says it to the program's
    /// commands, of which `partwise report` shows samples.
    pub fn records(mut self, side: Side) -> Self {
        self.records = Some(side);
        self
    }

    /// The size of rows or columns that are images, for [`Model::write`]; images from files bring it with them.
    pub fn image_shape(mut self, shape: ImageShape) -> Self {
        self.image_shape = Some(shape);
        self
    }

    /// Saves checkpoints of the run to this file, and a final one if the run ends early.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>, every: Every) -> Self {
        self.checkpoint = Some(Checkpoint { path: path.into(), every });
        self
    }

    /// Resumes from the checkpoint, if it exists, with the same bits as an uninterrupted run.
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Sets a token with which another thread can end the run, without a result.
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Checks that all parameters are in range and consistent, as far as possible without a matrix.
    pub fn check(&self) -> Result<()> {
        self.request(false).map(drop)
    }

    /// Factorizes a matrix, or what is in a file: `&Matrix`, `&Reader`, or the `&Observed` of a matrix some of whose entries are
    /// unknown ([`Matrix::observed`]).
    pub fn fit<'a>(&self, source: impl Into<Source<'a>>) -> Result<Model> {
        self.fit_with(source, &mut Silent)
    }

    /// Factorizes while an observer is called after every iteration; it may end the run.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use partwise::options::Stop;
    /// use partwise::{Matrix, Nmf, Progress};
    ///
    /// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0]])?;
    /// let mut ten = |progress: &Progress| match progress.iteration {
    ///     10 => ControlFlow::Break(()),
    ///     _ => ControlFlow::Continue(()),
    /// };
    /// let model = Nmf::new(2).tolerance(0.0).fit_with(&m, &mut ten)?;
    /// assert_eq!((model.iterations(), model.stopped_by()), (10, Stop::Interrupted));
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn fit_with<'a>(&self, source: impl Into<Source<'a>>, observer: &mut dyn Observer) -> Result<Model> {
        match self.precision {
            Precision::F32 => fit::fit::<f32>(self, source.into(), observer),
            Precision::F64 => fit::fit::<f64>(self, source.into(), observer),
        }
    }

    /// What the pipeline is asked for, for a matrix that may be `incomplete`: entries may be unknown, or count more than others.
    pub(crate) fn request(&self, incomplete: bool) -> Result<Request> {
        let mut settings = Settings { incomplete, ..self.settings.clone() };
        let (alpha, beta) = settings.solver.damping();
        if !self.given.contains("alpha") {
            settings.alpha = alpha;
        }
        if !self.given.contains("beta") {
            settings.beta = beta;
        }
        settings.check_given(self.given.iter().copied())?;
        if self.samples == Presence::Yes {
            settings.check_given(["samples"])?;
        }
        let cores = if self.networks.is_empty() { machine::cores() } else { 1 };
        let threads = self.threads.unwrap_or((cores / self.workers.max(1)).max(1));
        for (name, count, most) in
            [("workers", self.workers, MOST_WORKERS), ("threads", threads, MOST_THREADS)]
        {
            if !(1..=most).contains(&count) {
                return Err(Error::of_parameter(name, format!("{count} is out of range; give 1 to {most}")));
            }
        }
        self.check_files()?;
        let machine = Machine {
            grid: self.grid,
            networks: self.networks.clone(),
            cancel: self.cancel.0.clone(),
            ..Machine::new(self.workers, threads)
        };
        let resumable = self.checkpoint.is_some();
        let copies = Resources::copies(self.start.is_some(), resumable, settings.restarts);
        let resources = Resources { memory: self.memory, copies, advice: ADVICE, ..Resources::new(machine) };
        let request = Request::new(settings.checked()?, resources)?;
        let costs = self.networks.first().filter(|_| request.is_open()).map(|&network| Costs {
            network,
            constants: Constants::built_in(),
            origin: "built-in constants".into(),
        });
        Ok(request.with_costs(costs).with_samples(self.samples).with_finish(self.finish))
    }

    fn check_files(&self) -> Result<()> {
        match &self.checkpoint {
            None if self.resume => {
                Err(Error::of_parameter("resume", "there is no checkpoint to resume from; give one"))
            }
            Some(Checkpoint { every: Every::Iterations(0), .. }) => {
                Err(Error::of_parameter("checkpoint", "it cannot be every 0 iterations; give 1 or more"))
            }
            Some(Checkpoint { every: Every::Seconds(seconds), .. }) if seconds.is_nan() || *seconds < 0.0 => {
                Err(Error::of_parameter(
                    "checkpoint",
                    format!(
                        "{seconds} is not a number of seconds; give 0 or \
                 more"
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}

/// The maximum number of in-process workers; each has a channel to every other.
const MOST_WORKERS: usize = 1024;

/// The maximum number of threads, well below the limits of operating systems.
const MOST_THREADS: usize = 4096;

/// The advice for too little memory.
const ADVICE: MemoryAdvice = MemoryAdvice {
    too_large: "use fewer components, f32 or a machine with more memory",
    ..MemoryAdvice::GENERAL
};
