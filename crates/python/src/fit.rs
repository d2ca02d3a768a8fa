//! Fits the factors of a matrix, and fits new rows to given components.

use partwise::pipeline::{
    self, Finish, Finished, MemoryAdvice, Request, Resources, Source, Start, solve_rows,
};
use partwise::run::{Factors, Machine, Settings};
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

/// Factorizes X into W and H (whose transpose is `v`), solves W exactly at the end, fills these two arrays, and
/// returns the report as JSON. `settings` is a JSON object with the settings that differ from their defaults. With
/// `given`, the arrays contain the start.
#[pyfunction]
#[pyo3(signature = (x, w, v, *, settings, given, threads, callback))]
pub fn fit(
    x: &Bound<'_, PyAny>,
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    settings: &str,
    given: bool,
    threads: Option<usize>,
    callback: Option<Py<PyAny>>,
) -> PyResult<String> {
    let settings = settings_from(settings)?;
    let threads = threads.unwrap_or_else(machine::cores);
    match PyBuffer::<f32>::get(w) {
        Ok(_) => fit_in::<f32>(x, w, v, &settings, given, threads, callback),
        Err(_) => fit_in::<f64>(x, w, v, &settings, given, threads, callback),
    }
}

fn fit_in<T: Real + Element>(
    x: &Bound<'_, PyAny>,
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    settings: &Settings,
    given: bool,
    threads: usize,
    callback: Option<Py<PyAny>>,
) -> PyResult<String> {
    let lent = Lent::<T>::new(x)?;
    let start = if given { Some(factors_from(w, v, settings.rank)?) } else { None };
    let start = Start { factors: start, snapshot: None };
    let fitted = interruptible(x.py(), callback.as_ref(), |cancel, watch| {
        let machine = Machine { cancel: cancel.clone(), ..Machine::new(1, threads) };
        let resources = Resources { advice: ADVICE, ..Resources::new(machine) };
        let request = Request::new(settings.clone().checked()?, resources)?.with_finish(Finish::ExactRows);
        let opened = pipeline::open(Source::Shared(&lent, "X"), request)?;
        pipeline::run(pipeline::plan(opened, start)?, watch)
    })?;
    let Finished { result, norm, .. } = fitted.map_err(python)?;
    fill(w, &result.factors.u)?;
    fill(v, &result.factors.v)?;
    let mut report = json!(result.report);
    report["norm"] = json!(norm);
    Ok(report.to_string())
}

/// The advice for too little memory.
const ADVICE: MemoryAdvice = MemoryAdvice {
    too_large: "use fewer n_components, float32 or a machine with more memory",
    ..MemoryAdvice::GENERAL
};

/// Fills W for new rows X, exactly, with `v`, the transpose of H, fixed; `l1` and `l2` are the total weights of the
/// penalties.
#[pyfunction]
#[pyo3(signature = (x, w, v, *, l1, l2, threads))]
pub fn transform(
    x: &Bound<'_, PyAny>,
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    l1: f64,
    l2: f64,
    threads: Option<usize>,
) -> PyResult<()> {
    let terms = Penalty { l1, l2, upper: f64::INFINITY };
    let threads = threads.unwrap_or_else(machine::cores);
    match PyBuffer::<f32>::get(w) {
        Ok(_) => transform_in::<f32>(x, w, v, terms, threads),
        Err(_) => transform_in::<f64>(x, w, v, terms, threads),
    }
}

fn transform_in<T: Real + Element>(
    x: &Bound<'_, PyAny>,
    w: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    terms: Penalty,
    threads: usize,
) -> PyResult<()> {
    let lent = Lent::<T>::new(x)?;
    let k = PyBuffer::<T>::get(v)?.shape().last().copied().unwrap_or(0);
    let factors = factors_from(w, v, k)?;
    let fitted = interruptible(x.py(), None, |cancel, _| {
        let threads = Threads::new(threads)?.with_cancel(cancel);
        solve_rows(&lent, &factors, terms, None, &threads)
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
fn settings_from(given: &str) -> PyResult<Settings> {
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
