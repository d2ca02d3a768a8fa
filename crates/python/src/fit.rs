//! Fits the factors of a matrix, and fits new rows to given components.

use partwise::cancel::Cancel;
use partwise::matrix::{Missing, Observed, Weights};
use partwise::objective::Loss;
use partwise::pipeline::{
    self, Finish, Finished, MemoryAdvice, Request, Resources, SharedMatrix, Source, Start, solve_rows,
};
use partwise::run::record::{RunKind, RunRecord};
use partwise::run::{Factors, Machine, Settings, Side};
use partwise::solver::Penalty;
use partwise::threads::Threads;
use partwise::{Real, machine};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::arrays::{Lent, copied, fill};
use crate::errors::python;
use crate::watch::interruptible;

/// Factorizes X into W and H (whose transpose is `v`), solves W exactly at the end, fills these two arrays,
/// and returns the run record and the trace as JSON. `settings` is a JSON object with the settings that differ from their
/// defaults. With `given`, the arrays contain the start. `missing` is `nan`, `zero` or `unstored`; `weights`
/// is a matrix like X, or an array with a weight for each row.
#[pyfunction]
#[pyo3(signature = (x, w, v, *, settings, given, missing, weights, threads, callback))]
#[allow(clippy::too_many_arguments)]
pub fn fit(
    x: &Bound<'_, PyAny>,
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    settings: &str,
    given: bool,
    missing: Option<&str>,
    weights: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
    callback: Option<Py<PyAny>>,
) -> PyResult<String> {
    let settings = settings_from(settings)?;
    let threads = threads.unwrap_or_else(machine::cores);
    let known = Known { missing, weights };
    match PyBuffer::<f32>::get(w) {
        Ok(_) => fit_in::<f32>(x, w, v, known, settings, given, threads, callback),
        Err(_) => fit_in::<f64>(x, w, v, known, settings, given, threads, callback),
    }
}

/// The options for missing entries and weights.
#[derive(Clone, Copy)]
struct Known<'a, 'py> {
    missing: Option<&'a str>,
    weights: Option<&'a Bound<'py, PyAny>>,
}

impl Known<'_, '_> {
    /// The known entries of X with their weights; `None` if every entry is known with weight 1.
    fn observe<T: Real + Element>(self, x: &Lent<T>) -> PyResult<Option<Observed<T>>> {
        if self.missing.is_none() && self.weights.is_none() {
            return Ok(None);
        }
        let missing = match self.missing {
            None => None,
            Some("nan") => Some(Missing::Nan),
            Some("zero") => Some(Missing::Zero),
            Some("unstored") => Some(Missing::Unstored),
            Some(other) => return Err(PyValueError::new_err(format!("missing is {other}"))),
        };
        let cancel = Cancel::default();
        let weights = match self.weights {
            None => None,
            Some(weights) => Some(match PyBuffer::<T>::get(weights) {
                Ok(numbers) if numbers.dimensions() == 1 => Weights::Rows(numbers.to_vec(weights.py())?),
                _ => Weights::Entries(Lent::<T>::new(weights)?.matrix(&cancel)),
            }),
        };
        Observed::new(&x.matrix(&cancel), missing.as_ref(), weights.as_ref(), &cancel).map_err(python)
    }
}

#[allow(clippy::too_many_arguments)]
fn fit_in<T: Real + Element>(
    x: &Bound<'_, PyAny>,
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    known: Known<'_, '_>,
    settings: Settings,
    given: bool,
    threads: usize,
    callback: Option<Py<PyAny>>,
) -> PyResult<String> {
    let lent = Lent::<T>::new(x)?;
    let start = if given { Some(factors_from(w, v, settings.rank)?) } else { None };
    let start = Start { factors: start, snapshot: None };
    let observed = known.observe(&lent)?;
    let settings = Settings { incomplete: observed.is_some(), ..settings };
    let fitted = interruptible(x.py(), callback.as_ref(), |cancel, watch| {
        let machine = Machine { cancel: cancel.clone(), ..Machine::new(1, threads) };
        let resources = Resources { advice: ADVICE, ..Resources::new(machine) };
        let request = Request::new(settings.clone().checked()?, resources)?.with_finish(Finish::ExactRows);
        let source = match observed {
            Some(observed) => Source::Observed(observed),
            None => Source::Shared(&lent, "X"),
        };
        let opened = pipeline::open(source, request)?;
        pipeline::run(pipeline::plan(opened, start)?, watch)
    })?;
    let finished = fitted.map_err(python)?;
    let record = pipeline::record(&finished);
    let Finished { result, .. } = finished;
    fill(w, &result.factors.u)?;
    fill(v, &result.factors.v)?;
    let record = RunRecord::new(result.report.relative_error, RunKind::Factorization(Box::new(record)));
    let mut answer = json!(record);
    answer["trace"] = json!(result.report.trace);
    Ok(answer.to_string())
}

/// The advice for too little memory.
const ADVICE: MemoryAdvice = MemoryAdvice {
    too_large: "use fewer n_components, float32 or a machine with more memory",
    ..MemoryAdvice::GENERAL
};

/// Fills W for new rows X with the values that minimize the loss with `v`, the transpose of H, fixed; `l1` and `l2` are
/// the total weights of the penalties.
#[pyfunction]
#[pyo3(signature = (x, w, v, *, loss, missing, l1, l2, threads))]
#[allow(clippy::too_many_arguments)]
pub fn transform(
    x: &Bound<'_, PyAny>,
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    loss: &str,
    missing: Option<&str>,
    l1: f64,
    l2: f64,
    threads: Option<usize>,
) -> PyResult<()> {
    let terms = Penalty { l1, l2, upper: f64::INFINITY };
    let loss = loss.parse().map_err(PyValueError::new_err)?;
    let known = Known { missing, weights: None };
    let threads = threads.unwrap_or_else(machine::cores);
    match PyBuffer::<f32>::get(w) {
        Ok(_) => transform_in::<f32>(x, w, v, known, loss, terms, threads),
        Err(_) => transform_in::<f64>(x, w, v, known, loss, terms, threads),
    }
}

fn transform_in<T: Real + Element>(
    x: &Bound<'_, PyAny>,
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    known: Known<'_, '_>,
    loss: Loss,
    terms: Penalty,
    threads: usize,
) -> PyResult<()> {
    let lent = Lent::<T>::new(x)?;
    let k = PyBuffer::<T>::get(v)?.shape().last().copied().unwrap_or(0);
    let factors = factors_from(w, v, k)?;
    let observed = known.observe(&lent)?;
    let fitted = interruptible(x.py(), None, |cancel, _| {
        let threads = Threads::new(threads)?.with_cancel(cancel);
        match &observed {
            Some(observed) => factors.transform_observed(loss, observed, Side::Rows, terms, &threads),
            None => solve_rows(&lent, &factors, loss, terms, None, &threads),
        }
    })?;
    fill(w, &fitted.map_err(python)?)
}

fn factors_from<T: Real + Element>(
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    k: usize,
) -> PyResult<Factors<T>> {
    let (u, v) = (copied::<T>(w)?, copied::<T>(v)?);
    let rows = |factor: &[T]| factor.len() / k.max(1);
    Ok(Factors { rows: rows(&u), cols: rows(&v), k, u, v })
}

/// The defaults with the given changes.
pub fn settings_from(given: &str) -> PyResult<Settings> {
    let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let given: Map<String, Value> = serde_json::from_str(given).map_err(wrong)?;
    let damped = given.contains_key("alpha") || given.contains_key("beta");
    let names: Vec<String> = given.keys().cloned().collect();
    let mut settings = json!(Settings::new(1));
    if let Value::Object(settings) = &mut settings {
        settings.extend(given);
    }
    let mut settings: Settings = serde_json::from_value(settings).map_err(wrong)?;
    if !damped {
        (settings.alpha, settings.beta) = settings.solver.damping();
    }
    settings.check_given(names.iter().map(String::as_str)).map_err(python)?;
    Ok(settings)
}
