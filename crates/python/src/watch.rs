//! What Python sees of a run: a call after every iteration, and Ctrl-C.

use std::time::{Duration, Instant};

use partwise::run::{Monitor, Progress, Wish};
use pyo3::prelude::*;

/// Signals are looked for at most this often: taking the interpreter's lock may mean to wait for another thread.
const PAUSE: Duration = Duration::from_millis(20);

/// Calls back.
pub struct Watch {
    callback: Option<Py<PyAny>>,
    looked: Instant,
    /// What the callback or a signal raised: the run is then to stop.
    pub raised: Option<PyErr>,
}

impl Watch {
    /// `callback(restart, iteration, relative_error, seconds)`, if there is one, ends the run by returning true.
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Watch { callback, looked: Instant::now(), raised: None }
    }

    fn ask(&self, progress: &Progress) -> PyResult<bool> {
        let &Progress { restart, iteration, relative_error, seconds } = progress;
        Python::attach(|py| {
            py.check_signals()?;
            let Some(callback) = &self.callback else { return Ok(false) };
            callback.call1(py, (restart, iteration, relative_error, seconds))?.is_truthy(py)
        })
    }
}

impl<T> Monitor<T> for Watch {
    fn progress(&mut self, progress: &Progress) -> Wish {
        let mut wish = Wish::default();
        if self.raised.is_none() && (self.callback.is_some() || self.looked.elapsed() >= PAUSE) {
            match self.ask(progress) {
                Ok(stop) => wish.stop = stop,
                Err(error) => self.raised = Some(error),
            }
            self.looked = Instant::now();
        }
        wish.stop |= self.raised.is_some();
        wish
    }
}
