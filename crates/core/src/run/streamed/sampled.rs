//! DSANLS with subsampling (Alg. `alg:disSANLS`), where a sample consists of whole chunks of the file: an iteration
//! reads only those, in file order.

use std::ops::Range;

use super::{PassOver, Streamed};
use crate::Real;
use crate::error::{Error, Result};
use crate::kernels::{DEPTH, Product, gram};
use crate::objective::{Constants, HalfStep};
use crate::random::{Purpose, stream};
use crate::run::evaluate::Evaluation;
use crate::run::method::dsanls::Damping;
use crate::run::method::exact::evaluation;
use crate::run::method::{Beginning, Method, MethodState, Rank};
use crate::run::report::Phases;
use crate::run::settings::{Amount, Settings};
use crate::run::start::FactorRows;
use crate::sketch::SketchKind;
use crate::solver::{CoordinateDescent, MovingRows, Penalty, Problem, update};
use crate::wording::Wording;

/// The maximum number of chunks of a file.
const STRETCHES: usize = 256;

/// X_b ← a step of coordinate descent on the lines of the drawn stretches, exact and undamped, since all of each line
/// is there; then Y ← a damped step from Mᵀ X and Xᵀ X over these lines, weighted so that E[S Sᵀ] = I.
///
/// What X_b moves to depends on Y and on its own lines alone, so that the mean of Y's problem over all samples is that
/// after a whole step of X; stretches that are not drawn move later, with a newer Y. At regular intervals all of
/// them are drawn, undamped, and the error follows from the available products.
pub struct Sampled<'a, T> {
    streamed: &'a Streamed,
    /// Of (X, Y).
    terms: (Penalty, Penalty),
    constants: Constants,
    damping: Damping,
    seed: u64,
    /// Iterations from one that takes all stretches to the next; the last of the run does too.
    every: usize,
    last: usize,
    /// Lines per chunk, and the number of drawn chunks.
    height: usize,
    drawn: usize,
    /// Mᵀ X over the sampled lines.
    sums: Vec<T>,
}

/// The share of lines in the settings is that of the sampled side; the other side's step has whole lines.
pub(super) fn adjusted(streamed: &Streamed, mut settings: Settings) -> Settings {
    let by_columns = streamed.stream.by_columns();
    let amount = if by_columns { &mut settings.sketch_rows } else { &mut settings.sketch_cols };
    amount.get_or_insert(Amount::Share(1.0));
    settings
}

/// Refuses sketches that a pass over chunks cannot implement.
pub(super) fn check(streamed: &Streamed, settings: &Settings) -> Result<()> {
    if settings.sketch != SketchKind::Subsample || settings.custom_sketch.is_some() {
        let problem = Wording::new("a streamed matrix can only be subsampled; use ")
            .choice("sketch", "subsample")
            .text(", or raise ")
            .field("memory");
        return Err(Error::parameter("sketch", problem));
    }
    let (rows, cols) = (streamed.stream.rows(), streamed.stream.cols());
    let (of_cols, of_rows) = settings.sketch_sizes(rows, cols);
    let (name, whole) = match streamed.stream.by_columns() {
        true => ("sketch_rows", of_rows == rows),
        false => ("sketch_cols", of_cols == cols),
    };
    if !whole {
        let problem =
            Wording::new("a streamed matrix is read in whole lines; leave it out, or raise ").field("memory");
        return Err(Error::parameter(name, problem));
    }
    Ok(())
}

impl<'a, T: Real> Sampled<'a, T> {
    /// Creates a run from `state`.
    pub fn new(streamed: &'a Streamed, beginning: &Beginning<'a, '_, T>) -> Self {
        let &Beginning { settings, seed, every, terms, constants, state, .. } = beginning;
        let (rows, cols) = (streamed.stream.rows(), streamed.stream.cols());
        let (of_cols, of_rows) = settings.sketch_sizes(rows, cols);
        let sampled = if streamed.stream.by_columns() { of_cols } else { of_rows };
        let lines = streamed.stream.lines();
        let height = lines.div_ceil(STRETCHES).next_multiple_of(DEPTH);
        let stretches = lines.div_ceil(height);
        let drawn = (stretches as f64 * sampled as f64 / lines as f64).round() as usize;
        let (x, _) = streamed.sides(state.u.host(), state.v.host());
        let squares: f64 = x.iter().map(|value| value.to_f64().powi(2)).sum();
        Sampled {
            streamed,
            terms: streamed.sides(terms.0, terms.1),
            constants,
            damping: Damping::new(settings, squares / settings.rank as f64),
            seed,
            every,
            last: settings.iterations,
            height,
            drawn: drawn.clamp(1, stretches),
            sums: vec![T::ZERO; streamed.stream.line_length() * settings.rank],
        }
    }

    /// The chunks of an iteration, ascending.
    fn draw(&self, iteration: usize, all: bool) -> Vec<Range<usize>> {
        let lines = self.streamed.stream.lines();
        let stretches = lines.div_ceil(self.height);
        let mut places: Vec<usize> = if all {
            (0..stretches).collect()
        } else {
            let mut rng = stream(self.seed, Purpose::SketchV, iteration, 0);
            rand::seq::index::sample(&mut rng, stretches, self.drawn).into_vec()
        };
        places.sort_unstable();
        places.into_iter().map(|place| place * self.height..lines.min((place + 1) * self.height)).collect()
    }
}

impl<T: Real> Method<T> for Sampled<'_, T> {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let (threads, k) = (rank.threads, rank.k);
        let all = (iteration + 1).is_multiple_of(self.every) || iteration + 1 == self.last;
        let stretches = self.draw(iteration, all);
        let weight = self.streamed.stream.lines().div_ceil(self.height) as f64 / stretches.len() as f64;
        state.pull(rank.device)?;
        let (x, y) = self.streamed.sides(state.u.host_mut(), state.v.host_mut());
        let gram_y = phases.product(|| gram(threads, y, k));
        let exact = CoordinateDescent::HALS;
        let half_step = HalfStep {
            solver: &exact,
            summary: &gram_y,
            terms: self.terms.0,
            scales: None,
            wants_error: true,
            k,
        };
        let blocks: Vec<_> = stretches.iter().flat_map(|lines| self.streamed.blocks_of(lines)).collect();
        let pass = PassOver { objective: rank.objective, x, y, sums: &mut self.sums, scales: None, k };
        self.streamed.step(threads, &blocks, Some(&half_step), pass, phases)?;
        // By chunk, so that the sum does not depend on the blocks.
        let mut gram_x = vec![0.0; k * k];
        for lines in &stretches {
            let part = phases.product(|| gram(threads, &x[lines.start * k..lines.end * k], k));
            gram_x.iter_mut().zip(part).for_each(|(sum, term)| *sum += weight * term);
        }
        if !all {
            let weight = T::from_f64(weight);
            self.sums.iter_mut().for_each(|sum| *sum *= weight);
        }
        let diagonal = gram_x.iter().step_by(k + 1).sum::<f64>() / k as f64;
        let damped = self.damping.next::<T>(iteration, diagonal, self.terms.1.l2);
        let solver = if all { &exact } else { &*damped };
        let problem = Problem { solver, gram: &gram_x, terms: self.terms.1 };
        let updated = update(threads, &problem, &Product::ready(&self.sums[..], k), MovingRows::plain(y), k);
        phases.add(&updated);
        if !all {
            return Ok(None);
        }
        let gram_y = phases.product(|| gram(threads, y, k));
        let (gram_u, gram_v) = self.streamed.sides(&gram_x, &gram_y);
        Ok(evaluation(rank.objective, self.constants, updated.cross, (gram_u, gram_v), k))
    }

    fn plan(&self) -> String {
        let stream = &self.streamed.stream;
        let lines = if stream.by_columns() { "columns" } else { "rows" };
        let stretches = stream.lines().div_ceil(self.height);
        format!(
            "dsanls, sampled to {} of {stretches} stretches of {} {lines} per iteration (streamed)",
            self.drawn,
            self.height.min(stream.lines())
        )
    }

    fn save_state(&self) -> MethodState {
        MethodState::StreamedDsanls { damping: self.damping.clone() }
    }

    fn restore(&mut self, state: &MethodState, _: Option<FactorRows<T>>) -> bool {
        let MethodState::StreamedDsanls { damping } = state else { return false };
        self.damping = damping.clone();
        true
    }
}
