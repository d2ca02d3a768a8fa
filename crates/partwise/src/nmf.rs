//! The builder: every parameter of a factorization.

use std::collections::BTreeSet;
use std::path::PathBuf;

use partwise_core::io::Presence;
use partwise_core::machine;
use partwise_core::pipeline::{Costs, Finish, MemoryAdvice, Request, Resources};
use partwise_core::plan::Constants;
use partwise_core::run::{Machine, Settings};

use crate::error::{Error, Result};
use crate::fit::{self, Source};
use crate::matrix::Matrix;
use crate::model::Model;
use crate::observe::{CancelToken, Observer, Silent};
use crate::options::{
    Every, Grid, Init, IntoAmount, Loss, Method, Network, Normalize, Precision, SketchChoice, SketchedSolver,
    Step,
};

/// A nonnegative matrix factorization to be done: M ≈ U Vᵀ with k components and no entry below 0.
///
/// Every method sets one parameter and returns the builder. Values are checked when it is used, by [`Nmf::check`] or
/// [`Nmf::fit`]: what is out of range, contradicts something else, or would be ignored by the method that was chosen, is
/// refused by name. A builder can be cloned and used again.
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
    /// Parameters that only some methods use, as far as they were given.
    given: BTreeSet<&'static str>,
    pub(crate) precision: Precision,
    threads: Option<usize>,
    workers: usize,
    grid: Option<Grid>,
    networks: Vec<Network>,
    memory: Option<u64>,
    samples: Presence,
    finish: Finish,
    pub(crate) start: Option<Start>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) resume: bool,
    pub(crate) cancel: CancelToken,
}

/// U and V to begin with.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub u: Matrix<'static>,
    pub v: Matrix<'static>,
}

/// Where a run saves itself, and when.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub path: PathBuf,
    pub every: Every,
}

impl Nmf {
    /// A factorization with so many components.
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

    /// How iterations are done; the fastest way that we know, by the size of M, unless it is chosen.
    pub fn method(self, method: Method) -> Self {
        self.set("algorithm", |settings| settings.algorithm = method)
    }

    /// What is minimized; least squares unless it is chosen.
    pub fn loss(self, loss: Loss) -> Self {
        self.set("loss", |settings| settings.loss = loss)
    }

    /// What `dsanls` sketches by; columns of M drawn without replacement unless it is chosen.
    pub fn sketch(self, sketch: impl Into<SketchChoice>) -> Self {
        let sketch = sketch.into();
        self.set("sketch", |settings| match sketch {
            SketchChoice::Kind(kind) => (settings.sketch, settings.custom_sketch) = (kind, None),
            SketchChoice::Custom(sketch) => settings.custom_sketch = Some(sketch.0),
        })
    }

    /// How many columns of M `dsanls` sketches to, as a number or a share; by the size of M unless it is chosen.
    pub fn sketch_cols(self, amount: impl IntoAmount) -> Self {
        self.set("sketch_cols", |settings| settings.sketch_cols = Some(amount.into_amount()))
    }

    /// How many rows of M `dsanls` sketches to, likewise.
    pub fn sketch_rows(self, amount: impl IntoAmount) -> Self {
        self.set("sketch_rows", |settings| settings.sketch_rows = Some(amount.into_amount()))
    }

    /// How `dsanls` moves on a sketched subproblem; by proximal coordinate descent unless it is chosen.
    pub fn sketch_solver(self, solver: SketchedSolver) -> Self {
        self.set("solver", |settings| settings.solver = solver)
    }

    /// α of the damping (α + β t) of sketched steps.
    pub fn alpha(self, alpha: f64) -> Self {
        self.set("alpha", |settings| settings.alpha = alpha)
    }

    /// β of the damping (α + β t) of sketched steps.
    pub fn beta(self, beta: f64) -> Self {
        self.set("beta", |settings| settings.beta = beta)
    }

    /// Units of the damping: free of units, or the paper's.
    pub fn step(self, step: Step) -> Self {
        self.set("step", |settings| settings.step = step)
    }

    /// Whether entries of U and V stay at most √(2‖M‖), as the convergence proof asks.
    pub fn bound(mut self, bound: bool) -> Self {
        self.settings.bound = bound;
        self
    }

    /// The weight of n ‖U‖₁. Penalties are added to ½‖M − U Vᵀ‖² and scaled by the length of the other side, so that a weight
    /// means the same at any size.
    pub fn l1_u(mut self, weight: f64) -> Self {
        self.settings.l1_u = weight;
        self
    }

    /// The weight of m ‖V‖₁.
    pub fn l1_v(mut self, weight: f64) -> Self {
        self.settings.l1_v = weight;
        self
    }

    /// The weight of ½ n ‖U‖².
    pub fn l2_u(mut self, weight: f64) -> Self {
        self.settings.l2_u = weight;
        self
    }

    /// The weight of ½ m ‖V‖².
    pub fn l2_v(mut self, weight: f64) -> Self {
        self.settings.l2_v = weight;
        self
    }

    /// Where the run begins: at random, or from singular vectors of M.
    pub fn init(mut self, init: Init) -> Self {
        self.settings.init = init;
        self
    }

    /// Begins at these factors, m x k and n x k, whose components keep their places. They may be those of a [`Model`].
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

    /// The seed of everything random, 0 unless it is chosen. The same seed gives the same result with any number of threads.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Runs, from different random starts, of which the best is kept.
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.settings.restarts = restarts;
        self
    }

    /// Iterations at most; 500 unless it is chosen.
    pub fn iterations(mut self, iterations: usize) -> Self {
        self.settings.iterations = iterations;
        self
    }

    /// Stop when the error falls by less than this share of itself per iteration, over ten of them; 0 for never. 1e-5 unless it
    /// is chosen.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.settings.tolerance = tolerance;
        self
    }

    /// Stop at this relative error.
    pub fn target_error(mut self, error: f64) -> Self {
        self.settings.target_error = Some(error);
        self
    }

    /// Stop after these seconds of computing.
    pub fn time_limit(mut self, seconds: f64) -> Self {
        self.settings.time_limit = Some(seconds);
        self
    }

    /// Iterations between two lines of the trace; by cost unless it is chosen.
    pub fn trace_every(mut self, iterations: usize) -> Self {
        self.settings.trace_every = Some(iterations);
        self
    }

    /// The scale of the components: balanced unless it is chosen, or the method's own with penalties or a bound.
    pub fn normalize(mut self, how: Normalize) -> Self {
        self.settings.normalize = Some(how);
        self
    }

    /// Whether `auto` begins on samples of a dense matrix: it may, it must, or it must not.
    pub fn samples(mut self, samples: Presence) -> Self {
        self.samples = samples;
        self.settings.samples = samples != Presence::No;
        self
    }

    /// The type that factors have and are computed in: `f32` unless it is chosen, whatever the type of the matrix.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Threads of each worker; all cores unless it is chosen. The result does not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// In-process workers, each with its part of the matrix, as processes on a cluster would have it. One unless it is chosen.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How the workers of an exact method are arranged; those that send the least unless it is chosen.
    pub fn grid(mut self, grid: Grid) -> Self {
        self.grid = Some(grid);
        self
    }

    /// Keeps a virtual clock, as if the workers were machines on this network, by which `auto` chooses. More than one network may
    /// be given; seconds are those of the first.
    pub fn network(mut self, network: Network) -> Self {
        self.networks.push(network);
        self
    }

    /// Bytes at most, for a matrix in a file: if it does not fit, it is read block by block in every iteration.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Whether U is solved for exactly in the end, so that [`Model::transform`] of the same matrix gives it again.
    pub fn exact_rows(mut self, exact: bool) -> Self {
        self.finish = if exact { Finish::ExactRows } else { Finish::AsIterated };
        self
    }

    /// Saves the run to this file while it works, and once more if it ends before all iterations are done.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>, every: Every) -> Self {
        self.checkpoint = Some(Checkpoint { path: path.into(), every });
        self
    }

    /// Goes on from the checkpoint, if there is one, to the same bits as if the run had never been interrupted.
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// A token by which another thread can end the run, without a result.
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Whether all parameters are in range and agree, as far as that is known without a matrix.
    pub fn check(&self) -> Result<()> {
        self.request().map(drop)
    }

    /// Factorizes a matrix, or what is in a file: `&Matrix` or `&Reader`.
    pub fn fit<'a>(&self, source: impl Into<Source<'a>>) -> Result<Model> {
        self.fit_with(source, &mut Silent)
    }

    /// Factorizes while an observer is told of every iteration and may end the run.
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

    /// What the pipeline is asked for.
    pub(crate) fn request(&self) -> Result<Request> {
        let mut settings = self.settings.clone();
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
                Err(Error::of_parameter("resume", "there is no checkpoint to go on from; give one"))
            }
            Some(Checkpoint { every: Every::Iterations(0), .. }) => {
                Err(Error::of_parameter("checkpoint", "it cannot be every 0 iterations; give 1 or more"))
            }
            Some(Checkpoint { every: Every::Seconds(seconds), .. }) if seconds.is_nan() || *seconds < 0.0 => {
                Err(Error::of_parameter("checkpoint", format!("{seconds} seconds are none; give 0 or more")))
            }
            _ => Ok(()),
        }
    }
}

/// In-process workers at most: each has a channel to every other.
const MOST_WORKERS: usize = 1024;

/// Threads at most, well below what systems allow a process.
const MOST_THREADS: usize = 4096;

/// What users can do about too little memory.
const ADVICE: MemoryAdvice = MemoryAdvice {
    too_large: "give fewer components, compute in f32, or take a machine with more memory",
    ..MemoryAdvice::GENERAL
};
