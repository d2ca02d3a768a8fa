//! Runs work for Python: without the interpreter's lock, with callbacks on the calling thread, until Ctrl-C.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use partwise::Error;
use partwise::cancel::{Cancel, PAUSE};
use partwise::run::{Directive, Monitor, Progress};
use pyo3::prelude::*;

/// Asks the calling thread after every iteration whether to stop, if there is a callback.
pub struct Watch {
    called: bool,
    tell: Sender<Progress>,
    answers: Receiver<bool>,
}

impl<T> Monitor<T> for Watch {
    fn progress(&mut self, progress: &Progress) -> Directive {
        let asked = self.called && self.tell.send(*progress).is_ok();
        Directive { stop: asked && self.answers.recv().unwrap_or(true), ..Directive::default() }
    }
}

/// Runs the work on a separate thread. `callback(restart, iteration, relative_error, seconds)`, if there is one,
/// ends a run by returning true. An exception of the callback or of a signal handler cancels the work and is
/// returned.
pub fn interruptible<R: Send, E: From<Error> + Send>(
    py: Python<'_>,
    callback: Option<&Py<PyAny>>,
    work: impl FnOnce(&Cancel, &mut Watch) -> Result<R, E> + Send,
) -> PyResult<Result<R, E>> {
    let cancel = &Cancel::default();
    py.detach(|| {
        let (tell, told) = channel();
        let (answer, answers) = channel();
        std::thread::scope(|scope| {
            let mut watch = Watch { called: callback.is_some(), tell, answers };
            // Dropping its end of the channel ends the loop.
            let worker = scope.spawn(move || cancel.scope(|| work(cancel, &mut watch)));
            let mut raised = None;
            let mut fail = |error: PyErr| {
                raised.get_or_insert(error);
                cancel.cancel();
                true
            };
            loop {
                match told.recv_timeout(PAUSE) {
                    // The worker waits for the answer.
                    Ok(progress) => drop(answer.send(ask(callback, &progress).unwrap_or_else(&mut fail))),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(error) = Python::attach(|py| py.check_signals()) {
                            fail(error);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            raised.map_or(Ok(result), Err)
        })
    })
}

fn ask(callback: Option<&Py<PyAny>>, progress: &Progress) -> PyResult<bool> {
    let &Progress { restart, iteration, relative_error, seconds } = progress;
    Python::attach(|py| {
        let Some(callback) = callback else { return Ok(false) };
        callback.call1(py, (restart, iteration, relative_error, seconds))?.is_truthy(py)
    })
}
