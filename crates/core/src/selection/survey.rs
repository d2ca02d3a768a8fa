//! Fits every number of components: restarts on all data, and folds with held-out data.

use std::collections::BTreeMap;

use rand::seq::index;
use serde::{Deserialize, Serialize};

use super::blocks::{FOLDS, HeldOut, check_shape};
use super::cophenetic::cophenetic_correlation;
use super::parallel::for_each_job;
use super::similarity::Stability;
use super::suggestion::{Suggestion, mean_and_error, suggest};
use crate::Real;
use crate::cancel::Cancel;
use crate::comm::Alone;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::matrix::Matrix;
use crate::partition::{Shard, shards_until};
use crate::random::{Purpose, stream};
use crate::run::{CheckedSettings, Machine, Progress, RunSettings, Task, on_comm};

/// The maximum number of rows whose co-membership gives the cophenetic correlation.
const CONSENSUS_ROWS: usize = 2_000;

/// The parameters of a survey.
#[derive(Clone, Debug)]
pub struct SurveyRequest {
    /// The settings of every fit except for rank, seed and restarts.
    pub settings: CheckedSettings,
    /// The numbers of components to try.
    pub components: Vec<usize>,
    /// The number of random starts on all data for each number of components.
    pub restarts: usize,
    /// The number of threads; each fit uses one.
    pub threads: usize,
    /// Stops the survey; finished fits stay in the store.
    pub cancel: Cancel,
}

/// The stored result of a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct RestartFit<T> {
    /// The loss divided by that of the zero model.
    pub loss: f64,
    /// V, n x k by row.
    pub v: Vec<T>,
    /// The strongest component of each sampled row; k for a row without one.
    pub labels: Vec<u16>,
}

/// A store for finished fits, so that an interrupted survey can continue.
pub trait FitStore<T> {
    /// Loads a saved restart.
    fn restart(&self, components: usize, restart: usize) -> Result<Option<RestartFit<T>>>;

    /// Loads the saved held-out loss of a fold.
    fn fold(&self, components: usize, fold: usize) -> Result<Option<HeldOutLoss>>;

    /// Saves a restart.
    fn save_restart(&self, components: usize, restart: usize, fit: &RestartFit<T>) -> Result<()>;

    /// Saves the held-out loss of a fold.
    fn save_fold(&self, components: usize, fold: usize, loss: HeldOutLoss) -> Result<()>;
}

/// The held-out loss of one fold; `None` if the block is zero.
pub type HeldOutLoss = Option<f64>;

/// A store that keeps nothing.
pub struct NoStore;

impl<T> FitStore<T> for NoStore {
    fn restart(&self, _: usize, _: usize) -> Result<Option<RestartFit<T>>> {
        Ok(None)
    }

    fn fold(&self, _: usize, _: usize) -> Result<Option<HeldOutLoss>> {
        Ok(None)
    }

    fn save_restart(&self, _: usize, _: usize, _: &RestartFit<T>) -> Result<()> {
        Ok(())
    }

    fn save_fold(&self, _: usize, _: usize, _: HeldOutLoss) -> Result<()> {
        Ok(())
    }
}

/// The progress of a survey.
#[derive(Clone, Copy, Debug)]
pub struct SurveyProgress {
    /// The number of fits that have ended or were in the store.
    pub done: usize,
    /// The total number of fits.
    pub total: usize,
    /// The number of fits that were in the store.
    pub stored: usize,
}

/// The results for one number of components.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SurveyRow {
    /// The number of components.
    pub components: usize,
    /// The mean loss of the restarts, divided by that of the zero model.
    pub loss: f64,
    /// The standard error of the mean loss of the restarts.
    pub loss_se: f64,
    /// The loss of each restart.
    pub losses: Vec<f64>,
    /// The mean loss of held-out blocks, divided by that of the zero model.
    pub heldout_loss: f64,
    /// The standard error of the mean held-out loss.
    pub heldout_se: f64,
    /// The loss of each held-out block.
    pub heldout_of_folds: Vec<f64>,
    /// The mean matched cosine of components between restarts.
    pub stability: Option<f64>,
    /// The lowest matched cosine.
    pub worst_stability: Option<f64>,
    /// The cophenetic correlation of the consensus of all restarts.
    pub cophenetic: Option<f64>,
    /// The silhouette of the components of all restarts.
    pub silhouette: Option<f64>,
    /// The stability of each component of the best restart.
    pub component_stability: Vec<f64>,
}

/// The results of a survey, and the components themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Surveyed<T> {
    /// The results without the components.
    pub survey: Survey,
    /// For each of its rows, V of the restart with the lowest loss, n x k by row.
    pub factors: Vec<Vec<T>>,
}

/// The results of a survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The suggested number of components.
    #[serde(flatten)]
    pub suggestion: Suggestion,
    /// One row for each number of components, in ascending order.
    pub rows: Vec<SurveyRow>,
}

/// Fits a matrix with every number of components and compares them.
pub fn survey<T: Real>(
    matrix: Matrix<T>,
    request: &SurveyRequest,
    store: &dyn FitStore<T>,
    observe: &mut dyn FnMut(SurveyProgress),
) -> Result<Surveyed<T>> {
    let mut components = request.components.clone();
    components.sort_unstable();
    components.dedup();
    if components.is_empty() {
        return Err(Error::parameter(
            "components",
            "there are no numbers of components to try; give a range",
        ));
    }
    if request.restarts == 0 {
        return Err(Error::parameter("restarts", "0 is too few; give 1 or more"));
    }
    check_shape(matrix.shape())?;
    request.cancel.scope(|| {
        let total = components.len() * (FOLDS + request.restarts);
        let progress = SurveyProgress { done: 0, total, stored: 0 };
        let mut surveyor = Surveyor { request, components, store, observe, progress };
        let mut heldout = surveyor.folds(&matrix)?;
        let found = surveyor.restarts(matrix)?;
        let (mut rows, factors): (Vec<SurveyRow>, Vec<Vec<T>>) = found.into_values().unzip();
        for row in &mut rows {
            let losses = heldout.remove(&row.components).unwrap_or_default();
            (row.heldout_loss, row.heldout_se) = mean_and_error(&losses);
            row.heldout_of_folds = losses;
        }
        Ok(Surveyed { survey: Survey { suggestion: suggest(&rows), rows }, factors })
    })
}

struct Surveyor<'a, 's, T> {
    request: &'a SurveyRequest,
    /// The numbers of components in ascending order. The largest are fitted first, because they take longest.
    components: Vec<usize>,
    store: &'a dyn FitStore<T>,
    observe: &'a mut (dyn FnMut(SurveyProgress) + 's),
    progress: SurveyProgress,
}

impl<T: Real> Surveyor<'_, '_, T> {
    fn settings(&self, components: usize, seed: u64, matrix: (usize, usize)) -> Result<RunSettings> {
        let mut settings = (*self.request.settings).clone();
        (settings.rank, settings.seed, settings.restarts) = (components, seed, 1);
        settings.checked()?.for_matrix(matrix.0, matrix.1)
    }

    fn done(&mut self, stored: bool) {
        self.progress.done += 1;
        self.progress.stored += usize::from(stored);
        (self.observe)(self.progress);
    }

    /// The held-out losses for each number of components.
    fn folds(&mut self, matrix: &Matrix<T>) -> Result<BTreeMap<usize, Vec<f64>>> {
        let (seed, cancel) = (self.request.settings.seed, &self.request.cancel);
        let size = (matrix.rows(), matrix.cols());
        let mut losses: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for fold in 0..FOLDS {
            let mut jobs = Vec::new();
            for index in (0..self.components.len()).rev() {
                let components = self.components[index];
                match self.store.fold(components, fold)? {
                    Some(loss) => {
                        losses.entry(components).or_default().extend(loss);
                        self.done(true);
                    }
                    None => jobs.push(self.settings(components, seed, size)?),
                }
            }
            let Some(settings) = jobs.first() else { continue };
            let held_out = HeldOut::new(matrix, fold, seed, settings, cancel);
            let work = |settings: &RunSettings| cancel.scope(|| held_out.loss(settings, cancel));
            let store = self.store;
            for_each_job(self.request.threads, &jobs, work, |settings, loss| {
                store.save_fold(settings.rank, fold, loss)?;
                losses.entry(settings.rank).or_default().extend(loss);
                self.done(false);
                Ok(())
            })?;
        }
        match self.components.iter().find(|&components| losses.get(components).is_none_or(Vec::is_empty)) {
            None => Ok(losses),
            Some(_) => Err(Error::parameter(
                "matrix",
                "every held-out block is zero, so that nothing can be predicted; remove empty rows and columns",
            )),
        }
    }

    /// The losses and stabilities of restarts on all data, and the best V.
    fn restarts(&mut self, matrix: Matrix<T>) -> Result<Found<T>> {
        let (seed, restarts) = (self.request.settings.seed, self.request.restarts);
        let size = (matrix.rows(), matrix.cols());
        let sample = sampled_rows(matrix.rows(), seed);
        let mut jobs = Vec::new();
        let mut collected = Collected { restarts, fits: BTreeMap::new(), found: Found::new() };
        for index in (0..self.components.len()).rev() {
            let components = self.components[index];
            for restart in 0..restarts {
                match self.store.restart(components, restart)? {
                    Some(fit) => {
                        collected.add(components, restart, fit);
                        self.done(true);
                    }
                    None => {
                        let seed = seed.wrapping_add(restart as u64);
                        jobs.push((restart, self.settings(components, seed, size)?));
                    }
                }
            }
        }
        if let Some((_, settings)) = jobs.first() {
            let cancel = &self.request.cancel;
            let shard = shards_until(matrix, Grid::ONE, settings.access(), cancel).remove(0);
            let work = |(_, settings): &(usize, RunSettings)| {
                cancel.scope(|| fit(&shard, settings, &sample, cancel))
            };
            let store = self.store;
            for_each_job(self.request.threads, &jobs, work, |(restart, settings), fit| {
                store.save_restart(settings.rank, *restart, &fit)?;
                collected.add(settings.rank, *restart, fit);
                self.done(false);
                Ok(())
            })?;
        }
        Ok(collected.found)
    }
}

/// The rows whose co-membership is compared, in ascending order.
fn sampled_rows(rows: usize, seed: u64) -> Vec<usize> {
    let mut rng = stream(seed, Purpose::Folds, 2, 0);
    let mut sample = index::sample(&mut rng, rows, rows.min(CONSENSUS_ROWS)).into_vec();
    sample.sort_unstable();
    sample
}

fn fit<T: Real>(
    shard: &Shard<T>,
    settings: &RunSettings,
    sample: &[usize],
    cancel: &Cancel,
) -> Result<RestartFit<T>> {
    let machine = Machine { cancel: cancel.clone(), ..Machine::new(1, 1) };
    let task = Task { settings, from: None, monitor: &mut |_: &Progress| false };
    let result = on_comm(&Alone, shard, &machine, task)?;
    let k = settings.rank;
    let labels = sample.iter().map(|&row| strongest(&result.factors.u[row * k..][..k])).collect();
    Ok(RestartFit {
        loss: settings.loss.share_of_baseline(result.report.relative_error),
        v: result.factors.v,
        labels,
    })
}

/// The component with the largest weight, or k if all are zero.
fn strongest<T: Real>(weights: &[T]) -> u16 {
    let mut best = (weights.len(), 0.0);
    for (component, weight) in weights.iter().enumerate() {
        if weight.to_f64() > best.1 {
            best = (component, weight.to_f64());
        }
    }
    best.0 as u16
}

/// Collects fits until all restarts with a number of components have ended, and the rows completed so far.
struct Collected<T> {
    restarts: usize,
    fits: BTreeMap<usize, BTreeMap<usize, RestartFit<T>>>,
    found: Found<T>,
}

/// The comparison of the restarts for each number of components, and V of the best one.
type Found<T> = BTreeMap<usize, (SurveyRow, Vec<T>)>;

impl<T: Real> Collected<T> {
    fn add(&mut self, components: usize, restart: usize, fit: RestartFit<T>) {
        let fits = self.fits.entry(components).or_default();
        fits.insert(restart, fit);
        if fits.len() == self.restarts {
            let fits = self.fits.remove(&components).unwrap_or_default();
            self.found.insert(components, summarize(components, fits.into_values().collect()));
        }
    }
}

fn summarize<T: Real>(components: usize, fits: Vec<RestartFit<T>>) -> (SurveyRow, Vec<T>) {
    let (mut losses, mut factors, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for fit in fits {
        losses.push(fit.loss);
        factors.push(fit.v);
        labels.push(fit.labels);
    }
    let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
    let stability = Stability::of(&factors, components, best);
    let cophenetic = if losses.len() > 1 { cophenetic_correlation(&labels) } else { None };
    let (loss, loss_se) = mean_and_error(&losses);
    let row = SurveyRow {
        components,
        loss,
        loss_se,
        losses,
        heldout_loss: f64::NAN,
        heldout_se: f64::NAN,
        heldout_of_folds: Vec::new(),
        stability: stability.as_ref().map(|stability| stability.mean),
        worst_stability: stability.as_ref().map(|stability| stability.worst),
        cophenetic,
        silhouette: stability.as_ref().map(|stability| stability.silhouette),
        component_stability: stability.map_or(Vec::new(), |stability| stability.of_components),
    };
    (row, factors.swap_remove(best))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use rand::Rng;

    use super::*;
    use crate::matrix::{Dense, Order, Values};
    use crate::random::uniform;
    use crate::run::Settings;

    /// A matrix with `rank` sparse components and noise, relative to the mean.
    fn planted(rows: usize, cols: usize, rank: usize, noise: f64, seed: u64) -> Matrix<f64> {
        let mut rng = stream(seed, Purpose::Fill, 0, 0);
        let mut factor = |count: usize| -> Vec<f64> {
            (0..count * rank)
                .map(|_| if rng.next_u64().is_multiple_of(3) { -uniform(&mut rng).ln() } else { 0.0 })
                .collect()
        };
        let (u, v) = (factor(rows), factor(cols));
        let mut entries = Vec::new();
        for u in u.chunks_exact(rank) {
            for v in v.chunks_exact(rank) {
                entries.push(u.iter().zip(v).map(|(u, v)| u * v).sum::<f64>());
            }
        }
        let scale = noise * entries.iter().sum::<f64>() / entries.len() as f64;
        // An approximately normal number, as the sum of twelve uniform ones.
        let mut normal = || (0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0;
        entries.iter_mut().for_each(|entry| *entry = f64::max(0.0, *entry + scale * normal()));
        Matrix::Dense(Dense::new(rows, cols, Order::RowMajor, Values::Real(entries.into())))
    }

    fn request(components: Vec<usize>, restarts: usize, threads: usize) -> SurveyRequest {
        let settings = Settings { seed: 5, ..Settings::new(1) }.checked().unwrap();
        SurveyRequest { settings, components, restarts, threads, cancel: Cancel::default() }
    }

    #[test]
    fn a_planted_number_of_components_is_found_with_any_number_of_threads() {
        let matrix = planted(120, 60, 4, 0.1, 1);
        let run = |threads| {
            survey(matrix.clone(), &request((2..=7).collect(), 4, threads), &NoStore, &mut |_| {}).unwrap()
        };
        let one = run(1);
        let Survey { suggestion, rows } = &one.survey;
        assert_eq!(suggestion.suggested, Some(4), "{}", suggestion.reason);
        assert_eq!(one, run(3));
        let row = &rows[2];
        assert!(row.stability.unwrap() > 0.99 && row.silhouette.unwrap() > 0.9, "{row:?}");
        assert!(row.cophenetic.unwrap() > 0.9);
    }

    #[derive(Default)]
    struct MemoryStore {
        restarts: Mutex<HashMap<(usize, usize), RestartFit<f64>>>,
        folds: Mutex<HashMap<(usize, usize), HeldOutLoss>>,
    }

    impl FitStore<f64> for MemoryStore {
        fn restart(&self, components: usize, restart: usize) -> Result<Option<RestartFit<f64>>> {
            Ok(self.restarts.lock().unwrap().get(&(components, restart)).cloned())
        }

        fn fold(&self, components: usize, fold: usize) -> Result<Option<HeldOutLoss>> {
            Ok(self.folds.lock().unwrap().get(&(components, fold)).copied())
        }

        fn save_restart(&self, components: usize, restart: usize, fit: &RestartFit<f64>) -> Result<()> {
            self.restarts.lock().unwrap().insert((components, restart), fit.clone());
            Ok(())
        }

        fn save_fold(&self, components: usize, fold: usize, loss: HeldOutLoss) -> Result<()> {
            self.folds.lock().unwrap().insert((components, fold), loss);
            Ok(())
        }
    }

    #[test]
    fn an_interrupted_survey_continues_to_the_same_result() {
        let matrix = planted(40, 30, 3, 0.1, 2);
        let whole = survey(matrix.clone(), &request(vec![2, 3, 4], 3, 1), &NoStore, &mut |_| {}).unwrap();
        for stop_after in [2, 17] {
            let store = MemoryStore::default();
            let first = request(vec![2, 3, 4], 3, 2);
            let stopped = survey(matrix.clone(), &first, &store, &mut |progress| {
                if progress.done == stop_after {
                    first.cancel.cancel();
                }
            });
            assert!(matches!(stopped, Err(Error::Interrupted)));
            let mut stored = 0;
            let again = request(vec![2, 3, 4], 3, 2);
            let result = survey(matrix.clone(), &again, &store, &mut |progress| stored = progress.stored);
            assert_eq!(result.unwrap(), whole);
            assert!(stored >= stop_after);
        }
    }

    #[test]
    fn a_matrix_that_is_too_small_or_zero_is_refused() {
        let run = |matrix| survey(matrix, &request(vec![1, 2], 1, 1), &NoStore, &mut |_| {}).unwrap_err();
        assert!(run(planted(4, 30, 2, 0.1, 3)).to_string().contains("at least 5"));
        let zero = Dense::new(20, 20, Order::RowMajor, Values::Real(vec![0.0; 400].into()));
        let refusal = run(Matrix::Dense(zero)).to_string();
        assert!(refusal.contains("every entry is 0"), "{refusal}");
    }
}
