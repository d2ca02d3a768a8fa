//! A run that is resumed from a snapshot ends with the same bits as an uninterrupted one.

use crate::common::{matrices, run, settings};
use partwise::run::{
    Algorithm, Directive, Factorization, Machine, Monitor, Progress, Settings, SketchedSolver, Snapshot,
    StartFrom, factorize,
};
use partwise::sketch::SketchKind;
use partwise::{Real, Result};

/// Keeps the snapshot of one iteration, passed through its file format.
struct Keeper<T> {
    at: (usize, usize),
    kept: Option<Snapshot<T>>,
}

impl<T: Real> Monitor<T> for Keeper<T> {
    fn progress(&mut self, progress: &Progress) -> Directive {
        Directive { save: (progress.restart, progress.iteration) == self.at, ..Directive::default() }
    }

    fn snapshot(&mut self, snapshot: Snapshot<T>) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        snapshot.write(std::fs::File::create(&path).unwrap(), "a note").unwrap();
        let (read, note) = Snapshot::<T>::read(&path)?;
        assert!(read == snapshot && note == "a note");
        self.kept = Some(read);
        Ok(())
    }
}

fn same<T: Real>(a: &Factorization<T>, b: &Factorization<T>) -> bool {
    let curve = |f: &Factorization<T>| -> Vec<(usize, f64)> {
        f.report.trace.iter().map(|line| (line.iteration, line.relative_error)).collect()
    };
    a.factors == b.factors
        && a.errors == b.errors
        && curve(a) == curve(b)
        && a.report.redrawn == b.report.redrawn
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let base = Settings { tolerance: 1e-4, trace_every: Some(3), ..settings(Algorithm::Hals, 4, 40) };
    let cases = [
        base.clone(),
        Settings { algorithm: Algorithm::Auto, restarts: 2, ..base.clone() },
        Settings { algorithm: Algorithm::Mu, restarts: 3, ..base.clone() },
        Settings { algorithm: Algorithm::Bpp, l1_u: 0.01, ..base.clone() },
        Settings { algorithm: Algorithm::Dsanls, restarts: 2, ..base.clone() },
        Settings {
            algorithm: Algorithm::Dsanls,
            sketch: SketchKind::Gaussian,
            solver: SketchedSolver::Pgd,
            ..base
        },
    ];
    for (name, matrix) in matrices::<f32>(67, 41) {
        for settings in &cases {
            for nodes in [1, 2] {
                let machine = Machine::new(nodes, 1);
                let straight = run(&matrix, nodes, 1, settings);
                let last = settings.restarts - 1;
                for at in [(0, 1), (0, 7), (last, 9), (last, straight.report.iterations.min(11))] {
                    let mut keeper = Keeper { at, kept: None };
                    let watched =
                        factorize(matrix.clone(), machine.clone(), settings, None, &mut keeper).unwrap();
                    assert!(same(&watched, &straight), "{name} {settings:?}: watching changes nothing");
                    let snapshot = keeper.kept.unwrap();
                    let from = Some(StartFrom::Snapshot(&snapshot));
                    let resumed =
                        factorize(matrix.clone(), machine.clone(), settings, from, &mut |_: &Progress| false)
                            .unwrap();
                    assert!(same(&resumed, &straight), "{name} {settings:?} at {at:?}, {nodes} ranks");
                }
            }
        }
    }
}

#[test]
fn another_number_of_ranks_may_resume() {
    let settings = settings(Algorithm::Dsanls, 4, 30);
    for (name, matrix) in matrices::<f64>(67, 41) {
        let straight = run(&matrix, 1, 1, &settings);
        let mut keeper = Keeper { at: (0, 13), kept: None };
        factorize(matrix.clone(), Machine::new(3, 1), &settings, None, &mut keeper).unwrap();
        let snapshot = keeper.kept.unwrap();
        let machine = Machine::new(5, 1);
        let from = Some(StartFrom::Snapshot(&snapshot));
        let resumed = factorize(matrix.clone(), machine, &settings, from, &mut |_: &Progress| false).unwrap();
        assert!(resumed.factors == straight.factors, "{name}");
    }
}

#[test]
fn a_snapshot_of_another_run_is_refused() {
    let (_, matrix) = matrices::<f64>(20, 12).remove(0);
    let settings = settings(Algorithm::Hals, 3, 20);
    let mut keeper = Keeper { at: (0, 5), kept: None };
    let machine = Machine::new(1, 1);
    factorize(matrix.clone(), machine, &settings, None, &mut keeper).unwrap();
    let snapshot = keeper.kept.unwrap();
    let refused = |settings: &Settings, (m, n)| snapshot.check(settings, m, n).unwrap_err().to_string();
    assert!(refused(&Settings { rank: 4, ..settings.clone() }, (20, 12)).contains("rank = 3, not 4"));
    assert!(refused(&Settings { seed: 9, ..settings.clone() }, (20, 12)).contains("seed = 3, not 9"));
    assert!(refused(&settings, (20, 13)).contains("20 x 12 matrix, not 20 x 13"));
    snapshot.check(&Settings { iterations: 99, tolerance: 0.5, ..settings }, 20, 12).unwrap();
}

#[test]
fn a_damaged_checkpoint_is_an_error_and_never_a_panic() {
    let (_, matrix) = matrices::<f32>(6, 5).remove(0);
    let mut bytes = Vec::new();
    struct Writer<'a>(&'a mut Vec<u8>);
    impl Monitor<f32> for Writer<'_> {
        fn progress(&mut self, progress: &Progress) -> Directive {
            Directive { save: progress.iteration == 2, ..Directive::default() }
        }
        fn snapshot(&mut self, snapshot: Snapshot<f32>) -> Result<()> {
            snapshot.write(&mut *self.0, "").unwrap();
            Ok(())
        }
    }
    let machine = Machine::new(1, 1);
    factorize(matrix, machine, &settings(Algorithm::Hals, 2, 3), None, &mut Writer(&mut bytes)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Snapshot::<f32>::read(&path)
    };
    assert!(read(&bytes).is_ok());
    for length in (0..bytes.len()).step_by(7) {
        assert!(read(&bytes[..length]).is_err(), "cut to {length}");
    }
    for place in (0..bytes.len()).step_by(5) {
        let mut changed = bytes.clone();
        changed[place] ^= 0x11;
        let _ = read(&changed);
    }
    assert!(Snapshot::<f64>::read(&path).is_err());
}
