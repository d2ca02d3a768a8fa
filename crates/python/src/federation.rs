//! Joins a federation, simulates one on this machine, and reads a ledger.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use partwise::pipeline::SharedMatrix;
use partwise::run::Side;
use partwise::{Real, io, machine};
use partwise_federation::config::PartyConfig;
use partwise_federation::log::EventLog;
use partwise_federation::party::{self, Joined, NoHooks, PartyData, PartyOptions};
use partwise_federation::{Error, ledger};
use partwise_secure::audit::Limits;
use partwise_secure::audit::folder::{Request, audit_folder};
use partwise_secure::protocol::Settings;
use partwise_secure::{Plan, factors, split};
use pyo3::buffer::Element;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value, json};

use crate::arrays::Lent;
use crate::errors::{of_federation, of_secure, setting};
use crate::watch::interruptible;

/// U (records) and V (features) as bytes, and a report as JSON.
type Taken = (Py<PyBytes>, Py<PyBytes>, String);

/// U (records) and V (features) of each party, and a report as JSON.
type Simulated = (Vec<(Py<PyBytes>, Py<PyBytes>)>, String);

fn bytes<T: Real>(py: Python<'_>, numbers: &[T]) -> PyResult<Py<PyBytes>> {
    // The numbers are at the end of an .npy file, in little endian.
    let mut file = Vec::new();
    io::npy::write(&mut file, 1, numbers.len(), numbers)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let length = std::mem::size_of_val(numbers);
    Ok(PyBytes::new(py, &file[file.len() - length..]).unbind())
}

/// Joins a federation with the rows of X as records; `digest` identifies the data.
#[pyfunction]
#[pyo3(signature = (file, x, *, single, names, digest, insecure, threads))]
pub fn join(
    file: &str,
    x: &Bound<'_, PyAny>,
    single: bool,
    names: Option<Vec<String>>,
    digest: String,
    insecure: bool,
    threads: Option<usize>,
) -> PyResult<Taken> {
    match single {
        true => join_in::<f32>(x, file, names, digest, insecure, threads),
        false => join_in::<f64>(x, file, names, digest, insecure, threads),
    }
}

fn join_in<T: Real + Element>(
    x: &Bound<'_, PyAny>,
    file: &str,
    names: Option<Vec<String>>,
    digest: String,
    insecure: bool,
    threads: Option<usize>,
) -> PyResult<Taken> {
    let py = x.py();
    let lent = Lent::<T>::new(x)?;
    let joined = interruptible(py, None, |cancel, _| {
        let party = PartyConfig::read(Path::new(file))?;
        let given = PartyData { matrix: lent.turned(cancel), names, digest };
        let options = PartyOptions {
            insecure,
            threads: threads.unwrap_or_else(machine::cores),
            hooks: Arc::new(NoHooks),
            log: Arc::new(EventLog::default()),
            cancel: cancel.clone(),
        };
        finish(party::join(&party, given, &options)?)
    })?;
    let (u, v, report) = joined.map_err(of_federation)?;
    Ok((bytes(py, &u)?, bytes(py, &v)?, report))
}

/// U, V and the report, after the coordinator was notified.
fn finish<T: Real>(mut joined: Joined<T>) -> partwise_federation::Result<(Vec<T>, Vec<T>, String)> {
    let k = joined.terms.settings.rank;
    let report = json!({
        "relative_error": joined.relative_error,
        "own_relative_error": joined.own_relative_error,
        "rounds": joined.ended.rounds,
        "attempts": joined.attempts,
        "stopped_by": joined.ended.stopped_by,
        "n_components": k,
        "parties": joined.terms.roster.iter().map(|member| &member.name).collect::<Vec<_>>(),
        "run": joined.run,
    });
    let mut factor = Vec::new();
    io::npy::write(&mut factor, joined.features, k, &joined.u).map_err(Error::io("the shared factor"))?;
    let parties = joined.terms.roster.len();
    let (u, v) = (std::mem::take(&mut joined.u), std::mem::take(&mut joined.v));
    let (u, v) = factors::by_side(Side::Rows, v, u);
    joined.finish(factor, parties)?;
    Ok((u, v, report.to_string()))
}

/// Simulates all parties: U and V of each, and the report as JSON. `parties` has a party's number for each row.
#[pyfunction]
#[pyo3(signature = (x, *, single, parties, protocol, rank, settings))]
pub fn simulate(
    x: &Bound<'_, PyAny>,
    single: bool,
    parties: Vec<usize>,
    protocol: &str,
    rank: usize,
    settings: &str,
) -> PyResult<Simulated> {
    let settings = settings_of(protocol, rank, settings)?;
    match single {
        true => simulate_in::<f32>(x, &parties, settings),
        false => simulate_in::<f64>(x, &parties, settings),
    }
}

fn simulate_in<T: Real + Element>(
    x: &Bound<'_, PyAny>,
    parties: &[usize],
    settings: Settings,
) -> PyResult<Simulated> {
    let py = x.py();
    let lent = Lent::<T>::new(x)?;
    let count = parties.iter().max().map_or(0, |last| last + 1);
    let records = |party: usize| (0..parties.len()).filter(|&record| parties[record] == party).collect();
    let dealt: Vec<Vec<usize>> = (0..count).map(records).collect();
    let outcome = interruptible(py, None, |cancel, _| {
        let plan = Plan { cancel: cancel.clone(), ..Plan::new(settings) };
        let parts = split::parts_until(&lent.matrix(cancel), &dealt, cancel)?;
        partwise_secure::simulate(parts, &plan)
    })?;
    let outcome = outcome.map_err(of_secure)?;
    let of = |party: &Option<partwise_secure::PartyOutcome<T>>| match party {
        Some(party) => {
            let (u, v) = factors::by_side(Side::Rows, &party.v, &party.u);
            Ok((bytes(py, u)?, bytes(py, v)?))
        }
        None => Err(PyRuntimeError::new_err("a party has left")),
    };
    let factors = outcome.parties.iter().map(of).collect::<PyResult<Vec<_>>>()?;
    let own = outcome.parties.iter().flatten().map(|party| party.relative_error);
    let report = json!({
        "relative_error": outcome.relative_error,
        "own_relative_errors": own.collect::<Vec<_>>(),
        "rounds": outcome.rounds,
        "attempts": outcome.attempts,
        "stopped_by": outcome.stopped_by,
        "seconds": outcome.seconds,
        "trace": outcome.trace,
        "cost": outcome.cost,
    });
    Ok((factors, report.to_string()))
}

/// The defaults of the protocol with the given changes.
fn settings_of(protocol: &str, rank: usize, given: &str) -> PyResult<Settings> {
    let wrong = |name: &str, value: &Value, error: serde_json::Error| {
        PyValueError::new_err(format!("{name} is {value}; {error}"))
    };
    let protocol = json!(protocol);
    let parsed =
        serde_json::from_value(protocol.clone()).map_err(|error| wrong("protocol", &protocol, error));
    let mut settings = Settings::new(parsed?, rank);
    let given: Map<String, Value> =
        serde_json::from_str(given).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let names: Vec<String> = given.keys().cloned().collect();
    for (name, value) in given {
        // Applied one by one, so that the error names the invalid one.
        let mut changed = json!(settings);
        let place = match &name[..] {
            "rank" | "protocol" | "accepted" => None,
            name if changed.get(name).is_some() => changed.get_mut(name),
            name => changed["accepted"].get_mut(name),
        };
        let Some(place) = place else {
            return Err(PyValueError::new_err(format!("{name} is not a setting")));
        };
        *place = value.clone();
        settings = serde_json::from_value(changed).map_err(|error| wrong(&name, &value, error))?;
    }
    settings.default_damping(|name| names.iter().any(|given| given == name));
    settings.check_given(names.iter().map(String::as_str)).map_err(|error| of_secure(error.into()))?;
    Ok(settings)
}

/// Returns, as JSON, the summary of a ledger with a verified chain, or the audit of a recorded simulation.
#[pyfunction]
#[pyo3(signature = (path, *, data, colluders, threads))]
pub fn audit(
    py: Python<'_>,
    path: &str,
    data: Option<PathBuf>,
    colluders: Option<usize>,
    threads: Option<usize>,
) -> PyResult<String> {
    let dir = Path::new(path);
    let path = if dir.is_dir() { dir.join(ledger::NAME) } else { dir.into() };
    if !path.is_file() {
        let limits = Limits { threads: threads.unwrap_or_else(machine::cores), ..Limits::default() };
        let audit = interruptible(py, None, |cancel, _| {
            audit_folder(&Request { dir, data: data.as_deref(), colluders, limits, cancel })
        })?;
        let audit = audit.map_err(of_secure)?.named(setting);
        return serde_json::to_string(&audit).map_err(|error| PyRuntimeError::new_err(error.to_string()));
    }
    let read = py.detach(|| ledger::read(&path)).map_err(of_federation)?;
    let kinds = ledger::summary(&read.entries);
    let kinds = kinds.iter().map(|((kind, cover), (count, bytes))| {
        json!({ "kind": kind, "cover": cover, "count": count, "bytes": bytes })
    });
    Ok(json!({ "lines": read.entries.len(), "last": read.last, "sent": kinds.collect::<Vec<_>>() })
        .to_string())
}
