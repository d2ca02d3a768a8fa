//! Compares numbers of components.

use partwise::Real;
use partwise::machine;
use partwise::pipeline::SharedMatrix;
use partwise::run::Settings;
use partwise::selection::{NoStore, SurveyRequest, survey};
use pyo3::buffer::Element;
use pyo3::prelude::*;

use crate::arrays::Lent;
use crate::errors::python;
use crate::fit::settings_from;
use crate::watch::interruptible;

/// Fits X with every number of components, and returns the content of `ranks.json`. `settings` is a JSON object with
/// the settings of the fits that differ from their defaults.
#[pyfunction]
#[pyo3(signature = (x, *, single, components, restarts, settings, threads))]
pub fn select_rank(
    x: &Bound<'_, PyAny>,
    single: bool,
    components: Vec<usize>,
    restarts: usize,
    settings: &str,
    threads: Option<usize>,
) -> PyResult<String> {
    let settings = settings_from(settings)?;
    let threads = threads.unwrap_or_else(machine::cores);
    match single {
        true => select_in::<f32>(x, components, restarts, settings, threads),
        false => select_in::<f64>(x, components, restarts, settings, threads),
    }
}

fn select_in<T: Real + Element>(
    x: &Bound<'_, PyAny>,
    components: Vec<usize>,
    restarts: usize,
    settings: Settings,
    threads: usize,
) -> PyResult<String> {
    let lent = Lent::<T>::new(x)?;
    let surveyed = interruptible(x.py(), None, |cancel, _| {
        let settings = Settings { restarts, rank: 1, ..settings }.checked()?;
        let request = SurveyRequest { settings, components, restarts, threads, cancel: cancel.clone() };
        survey(lent.matrix(cancel), &request, &NoStore, &mut |_| {})
    })?;
    Ok(serde_json::json!(surveyed.map_err(python)?.survey).to_string())
}
