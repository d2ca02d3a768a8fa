//! An observer with early stopping: the run ends once the error has stopped improving for a few iterations.

use std::ops::ControlFlow;

use partwise::{Matrix, Nmf, Observer, Progress};

/// Ends a run if the error has not decreased by the share `least` within `patience` iterations, and keeps the
/// curve.
struct EarlyStopping {
    least: f64,
    patience: usize,
    best: f64,
    since: usize,
    curve: Vec<f64>,
}

impl Observer for EarlyStopping {
    fn started(&mut self, plan: &str) {
        println!("{plan}");
    }

    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.curve.push(progress.relative_error);
        if progress.relative_error < (1.0 - self.least) * self.best {
            (self.best, self.since) = (progress.relative_error, progress.iteration);
        }
        match progress.iteration - self.since >= self.patience {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

pub(crate) fn main() -> partwise::Result<()> {
    let m = partwise::read("data/digits.npy")?;
    let mut observer =
        EarlyStopping { least: 1e-3, patience: 5, best: f64::INFINITY, since: 0, curve: Vec::new() };
    let model = Nmf::new(16).tolerance(0.0).fit_with(&m, &mut observer)?;
    println!(
        "ended after {} of 500 iterations at {:.4}, from {:.4} after the first",
        model.iterations(),
        model.relative_error(),
        observer.curve[0]
    );

    // The factors are kept, and a longer run can start from them.
    let longer = Nmf::new(16).iterations(50).start(model.u(), model.v()).fit(&m)?;
    println!("{:.4} after 50 iterations more", longer.relative_error());
    let one = Matrix::from_vec(1, 64, m.to_vec::<f32>()[..64].to_vec())?;
    println!("a row of U has {} numbers", longer.transform(&one)?.cols());
    Ok(())
}
