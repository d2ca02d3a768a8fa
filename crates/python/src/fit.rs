//! The two things that Python asks for: factors of a matrix, and new rows in terms of them.

use partwise::cancel::Cancel;
use partwise::error::Error;
use partwise::matrix::{Matrix, range_problem};
use partwise::run::{
    Factors, Machine, Report, Settings, Side, StartFrom, factorize, memory_needed, residual_of,
};
use partwise::solver::Penalty;
use partwise::threads::Threads;
use partwise::{Real, machine};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::arrays::{Lent, copied, fill};
use crate::errors::python;
use crate::watch::{Watch, interruptible};

/// Factorizes X into W and H, whose transpose `v` is, and solves W exactly at the end; fills these two arrays, of
/// the type that is computed in, and returns the report as JSON. `settings` is a JSON object with those of
/// Partwise's settings that differ from their defaults. With `given`, the arrays hold the start.
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
    let fitted = interruptible(x.py(), callback.as_ref(), |cancel, watch| {
        fit_matrix(&lent, settings, start, threads, watch, cancel)
    })?;
    let Fitted { factors, report, norm } = fitted.map_err(python)?;
    fill(w, &factors.u)?;
    fill(v, &factors.v)?;
    let mut report = json!(report);
    report["norm"] = json!(norm);
    Ok(report.to_string())
}

struct Fitted<T> {
    factors: Factors<T>,
    report: Report,
    /// ‖X‖_F.
    norm: f64,
}

fn fit_matrix<T: Real + Element>(
    lent: &Lent<T>,
    settings: &Settings,
    start: Option<Factors<T>>,
    threads: usize,
    watch: &mut Watch,
    cancel: &Cancel,
) -> partwise::Result<Fitted<T>> {
    let (stored, transposed) = lent.stored();
    if let Some(problem) = range_problem::<T>(stored.largest()) {
        return Err(Error::parameter("X", problem));
    }
    check_memory(&stored, settings)?;
    let from = start.as_ref().map(StartFrom::Factors);
    let machine = Machine { cancel: cancel.clone(), ..Machine::new(1, threads) };
    let result = factorize(lent.whole(cancel), machine, settings, from, watch)?;
    let threads = &Threads::new(threads)?.with_cancel(cancel);
    let (mut factors, mut report) = (result.factors, result.report);
    // Components of a given start keep their places.
    if start.is_none() {
        factors.order_by_energy();
    }
    let (terms, _) = settings.terms(factors.rows, factors.cols, f64::INFINITY);
    factors.u = solve_rows(&factors, (stored, transposed), terms, Some(&factors.u), threads)?;
    if settings.l1_v + settings.l2_v > 0.0 {
        drop_unused(&mut factors);
    }
    factors.normalize(settings.normalization(), threads)?;
    let residual = residual_of(lent.whole(cancel), &factors, threads)?;
    report.relative_error = residual.relative_error;
    Ok(Fitted { factors, report, norm: residual.norm })
}

/// Empties the components of V that U does not use: with a penalty on V that is what lowers the objective.
fn drop_unused<T: Real>(factors: &mut Factors<T>) {
    let Factors { k, u, v, .. } = factors;
    for component in 0..*k {
        if u.iter().skip(component).step_by(*k).all(|&value| value == T::ZERO) {
            v.iter_mut().skip(component).step_by(*k).for_each(|value| *value = T::ZERO);
        }
    }
}

/// Fills W for new rows X, exactly, with `v`, the transpose of H, fixed; `l1` and `l2` are the penalties' whole
/// weights.
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
        solve_rows(&factors, lent.stored(), terms, None, &threads)
    })?;
    fill(w, &fitted.map_err(python)?)
}

fn solve_rows<T: Real>(
    factors: &Factors<T>,
    (stored, transposed): (Matrix<T>, bool),
    terms: Penalty,
    start: Option<&[T]>,
    threads: &Threads,
) -> partwise::Result<Vec<T>> {
    if !transposed {
        return factors.transform(stored, Side::Rows, terms, start, threads);
    }
    // The rows of M are the columns of what is stored.
    let turned =
        Factors { rows: factors.cols, cols: factors.rows, k: factors.k, u: factors.v.clone(), v: Vec::new() };
    turned.transform(stored, Side::Columns, terms, start, threads)
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

/// The defaults, changed by what is given.
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

fn check_memory<T: Real>(matrix: &Matrix<T>, settings: &Settings) -> partwise::Result<()> {
    let needed = memory_needed(matrix, settings.algorithm, settings.rank, 1, T::PRECISION);
    let (needed, available) = (needed.saturating_sub(matrix.bytes()), machine::available_memory());
    if needed <= available {
        return Ok(());
    }
    let cure = "lower n_components, give float32, or take a machine with more memory";
    Err(Error::Memory { what: "the factorization".into(), needed, available, cure })
}
