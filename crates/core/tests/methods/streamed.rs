//! A matrix that stays in its file gives the factors that it gives in memory.

use std::path::Path;

use crate::common::{matrices, run, settings};
use partwise::Real;
use partwise::io::stream::Stream;
use partwise::io::{ImageSide, Input, Presence, ReadOptions, WriteOptions, read, write};
use partwise::matrix::{Dense, Dominants, Matrix, Order, Values};
use partwise::objective::Loss;
use partwise::run::{
    Algorithm, Amount, Demand, Directive, Factorization, Init, Monitor, Progress, Settings, Snapshot,
    StartFrom, Streamed, factorize_streamed,
};
use partwise::sketch::SketchKind;

const MEMORY: u64 = 1 << 30;

fn save<T: Real>(matrix: &Matrix<T>, path: &Path) {
    let input = Input::unlabelled(matrix.clone(), String::new(), T::PRECISION);
    let options = WriteOptions { uncompressed: true, ..WriteOptions::default() };
    write(std::fs::File::create(path).unwrap(), path, &input, options).unwrap();
}

fn load<T: Real>(path: &Path, transpose: bool) -> Matrix<T> {
    let (header, row_names) = (Presence::Auto, Presence::Auto);
    let options =
        ReadOptions { memory: MEMORY, header, row_names, images: ImageSide::Columns, missing_as_nan: false };
    let input = read::<T>(path, &options).unwrap();
    if transpose { input.into_transpose().matrix } else { input.matrix }
}

/// The file in blocks of so many bytes.
fn streamed<T: Real>(path: &Path, transpose: bool, block: u64, rank: usize) -> Streamed {
    let stream = Stream::open(path, transpose, MEMORY).unwrap().expect("a file that can be streamed");
    Streamed::new::<T>(stream, &Demand { largest_block: block, ..Demand::new(MEMORY, rank, 2) }).unwrap()
}

fn factors<T: Real>(streamed: &Streamed, threads: usize, settings: &Settings) -> Factorization<T> {
    factorize_streamed(streamed, threads, settings, None, &mut |_: &Progress| false).unwrap()
}

fn same_curve<T: Real>(a: &Factorization<T>, b: &Factorization<T>, place: &str) {
    let curve = |f: &Factorization<T>| -> Vec<(usize, f64)> {
        f.report.trace.iter().map(|line| (line.iteration, line.relative_error)).collect()
    };
    let (a, b) = (curve(a), curve(b));
    assert_eq!(a.len(), b.len(), "{place}");
    for ((iteration, a), (other, b)) in a.into_iter().zip(b) {
        assert_eq!(iteration, other, "{place}");
        assert!((a - b).abs() <= 1e-5 * b, "{place}: {a} {b} at {iteration}");
    }
}

/// Files of one matrix in every format that can be streamed.
fn files<T: Real>(folder: &Path, rows: usize, cols: usize) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for (name, matrix) in matrices::<T>(rows, cols) {
        let name = name.replace(' ', "-");
        let endings: &[&str] = match matrix {
            Matrix::Dense(_) => &["npy", "bin"],
            Matrix::Sparse(_) => &["npz", "bin"],
        };
        for ending in endings {
            let path = folder.join(format!("{name}.{ending}"));
            save(&matrix, &path);
            files.push(path);
        }
    }
    files
}

#[test]
fn a_row_or_column_that_dominates_is_found_in_the_first_pass() {
    let folder = tempfile::tempdir().unwrap();
    let values = (0..300 * 20).map(|place| if place % 20 == 13 { 90.0 } else { 1.0 }).collect::<Vec<f64>>();
    let matrix = Matrix::Dense(Dense::new(300, 20, Order::RowMajor, Values::Real(values.into())));
    let path = folder.path().join("m.npy");
    save(&matrix, &path);
    let found = |transpose| {
        let Dominants { row, col } = streamed::<f64>(&path, transpose, 1 << 12, 2).dominant();
        (row.map(|row| row.index), col.map(|col| col.index))
    };
    assert_eq!((found(false), found(true)), ((None, Some(13)), (Some(13), None)));
}

/// Blocks of a multiple of 64 lines have the bits of a product in memory, and so has all that follows.
fn same_bits<T: Real>(rows: usize, cols: usize, restarts: usize) {
    let folder = tempfile::tempdir().unwrap();
    for path in files::<T>(folder.path(), rows, cols) {
        for transpose in [false, true] {
            let matrix = load::<T>(&path, transpose);
            // 512 lines, and less than 64 that are left out; of sparse ones as they come.
            let stream = Stream::open(&path, transpose, MEMORY).unwrap().unwrap();
            let block = if stream.is_sparse() { 50_000 } else { 530 * stream.bytes_of::<T>(0..1) };
            for algorithm in [Algorithm::Hals, Algorithm::Mu, Algorithm::Bpp] {
                let settings = Settings { l1_u: 1e-3, l2_v: 1e-3, restarts, ..settings(algorithm, 4, 6) };
                let place = format!("{} {transpose} {algorithm:?}", path.display());
                let whole = run(&matrix, 1, 1, &settings);
                for threads in [1, 2] {
                    let streamed = streamed::<T>(&path, transpose, block, 4);
                    assert!(streamed.blocks() > 1 || streamed.stream().lines() == cols, "{place}");
                    let got = factors::<T>(&streamed, threads, &settings);
                    assert!(got.factors == whole.factors, "{place} {threads}");
                    same_curve(&got, &whole, &place);
                }
            }
        }
    }
}

#[test]
fn the_bits_are_those_of_the_matrix_in_memory_in_f32() {
    same_bits::<f32>(1100, 41, 1);
}

#[test]
fn the_bits_are_those_of_the_matrix_in_memory_in_f64() {
    same_bits::<f64>(1100, 41, 2);
}

/// Multiplicative steps sum over lines, whatever the blocks; `auto` moves the factor of the lines by coordinate descent.
#[test]
fn the_kullback_leibler_divergence_falls_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    for path in files::<f64>(folder.path(), 67, 41) {
        for transpose in [false, true] {
            let matrix = load::<f64>(&path, transpose);
            let of = |algorithm, iterations| Settings {
                loss: Loss::Kl,
                trace_every: Some(1),
                l1_u: 1e-4,
                ..settings(algorithm, 4, iterations)
            };
            let whole = run(&matrix, 1, 1, &of(Algorithm::Mu, 20));
            for (block, threads) in [(1, 1), (3000, 2), (1 << 20, 1)] {
                let file = streamed::<f64>(&path, transpose, block, 4);
                let got = factors::<f64>(&file, threads, &of(Algorithm::Mu, 20));
                let place = format!("{} {transpose} {block}", path.display());
                same_curve(&got, &whole, &place);
                let largest = whole.factors.u.iter().copied().fold(0.0, f64::max);
                for (a, b) in got.factors.u.iter().zip(&whole.factors.u) {
                    assert!((a - b).abs() <= 1e-9 * largest, "{place}: {a} {b}");
                }
                let auto = factors::<f64>(&file, threads, &of(Algorithm::Auto, 20));
                let trace = &auto.report.trace;
                assert!(trace.windows(2).all(|pair| pair[1].loss <= pair[0].loss * (1.0 + 1e-6)), "{place}");
                let (error, of_mu) = (auto.report.relative_error, whole.report.relative_error);
                assert!(error < 1.02 * of_mu, "{place}: {error} {of_mu}");
            }
        }
    }
}

#[test]
fn a_line_at_a_time_gives_the_same_error() {
    let folder = tempfile::tempdir().unwrap();
    for path in files::<f64>(folder.path(), 67, 41) {
        for transpose in [false, true] {
            let settings = settings(Algorithm::Hals, 4, 30);
            let whole = run(&load::<f64>(&path, transpose), 1, 1, &settings);
            let streamed = streamed::<f64>(&path, transpose, 1, 4);
            assert!(streamed.blocks() > 10, "{}", path.display());
            let place = path.display().to_string();
            let got = factors::<f64>(&streamed, 2, &settings);
            same_curve(&got, &whole, &place);
            let largest = whole.factors.u.iter().copied().fold(0.0, f64::max);
            for (a, b) in got.factors.u.iter().zip(&whole.factors.u) {
                assert!((a - b).abs() <= 1e-9 * largest, "{place}");
            }
        }
    }
}

/// The start takes a pass to look the file through and one to evaluate it, every iteration one; columns one more.
#[test]
fn an_iteration_is_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    for path in files::<f32>(folder.path(), 67, 41) {
        for transpose in [false, true] {
            let streamed = streamed::<f32>(&path, transpose, 1000, 3);
            let bytes = streamed.stream().bytes_read();
            factors::<f32>(&streamed, 1, &settings(Algorithm::Hals, 3, 7));
            let passes = 1 + 1 + 7 + u64::from(streamed.stream().by_columns());
            assert_eq!(streamed.passes(), passes, "{}", path.display());
            assert_eq!(streamed.stream().bytes_read(), passes * bytes, "{}", path.display());
        }
    }
}

/// An error below 1e-2 is evaluated from the residual.
#[test]
fn an_exact_fit_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    for path in files::<f64>(folder.path(), 30, 4) {
        let settings = settings(Algorithm::Bpp, 4, 60);
        let whole = run(&load::<f64>(&path, false), 1, 1, &settings);
        let got = factors::<f64>(&streamed::<f64>(&path, false, 200, 4), 1, &settings);
        let (want, got) = (whole.report.relative_error, got.report.relative_error);
        assert!(want < 1e-2 && (got - want).abs() <= 1e-6 + 1e-3 * want, "{}: {got} {want}", path.display());
    }
}

#[test]
fn given_factors_and_dead_components_are_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    for path in files::<f32>(folder.path(), 67, 41) {
        for transpose in [false, true] {
            let matrix = load::<f32>(&path, transpose);
            let settings = settings(Algorithm::Hals, 5, 12);
            let mut start = run(&matrix, 1, 1, &settings).factors;
            for factor in [&mut start.u, &mut start.v] {
                factor.iter_mut().skip(2).step_by(5).for_each(|value| *value = 0.0);
            }
            let from = Some(StartFrom::Factors(&start));
            let machine = partwise::run::Machine::new(1, 1);
            let quiet = &mut |_: &Progress| false;
            let whole = partwise::run::factorize(matrix, machine, &settings, from, quiet).unwrap();
            let streamed = streamed::<f32>(&path, transpose, 1 << 20, 5);
            let got = factorize_streamed(&streamed, 2, &settings, from, quiet).unwrap();
            assert_eq!(got.report.redrawn, whole.report.redrawn);
            assert!(!got.report.redrawn.is_empty());
            assert!(got.factors == whole.factors, "{} {transpose}", path.display());
        }
    }
}

/// Where penalties forbid balancing components, Gram matrices and sums would be zero or infinite in `f32`.
#[test]
fn penalized_exact_steps_at_extreme_scales_are_those_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    for path in files::<f32>(folder.path(), 67, 41) {
        for transpose in [false, true] {
            let matrix = load::<f32>(&path, transpose);
            let bpp = settings(Algorithm::Bpp, 4, 2);
            let given = run(&matrix, 1, 1, &settings(Algorithm::Hals, 4, 40)).factors;
            let small = Settings { l1_v: 0.01, l2_v: 0.01, ..bpp.clone() };
            let large = Settings { l1_u: 0.01, l2_u: 0.01, ..bpp };
            for (settings, scale) in [(small, 1e-25), (large, 1e20)] {
                let mut start = given.clone();
                start.v.iter_mut().for_each(|value| *value *= scale);
                let (from, quiet) = (Some(StartFrom::Factors(&start)), &mut |_: &Progress| false);
                let machine = partwise::run::Machine::new(1, 1);
                let whole =
                    partwise::run::factorize(matrix.clone(), machine, &settings, from, quiet).unwrap();
                let streamed = streamed::<f32>(&path, transpose, 1 << 12, 4);
                let got = factorize_streamed(&streamed, 2, &settings, from, quiet).unwrap();
                let error = got.report.relative_error;
                assert!(error < 0.9, "{} {transpose} {scale}: {error}", path.display());
                let difference = (error - whole.report.relative_error).abs();
                assert!(difference <= 1e-4 * error, "{} {transpose} {scale}: {difference}", path.display());
            }
        }
    }
}

/// Samples of whole stretches: fewer bytes than passes, for any number of threads and any blocks the same bits, and an
/// error near that of HALS.
#[test]
fn dsanls_samples_stretches_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for path in files::<f32>(folder.path(), 5200, 30) {
        for transpose in [false, true] {
            let given = Settings {
                sketch_rows: (!transpose).then_some(Amount::Share(0.25)),
                sketch_cols: transpose.then_some(Amount::Share(0.25)),
                trace_every: Some(10),
                ..settings(Algorithm::Dsanls, 4, 60)
            };
            let place = format!("{} {transpose}", path.display());
            let file = streamed::<f32>(&path, transpose, 600 * 30 * 4, 4);
            if file.stream().lines() == 30 {
                continue;
            }
            let (settings, first) = (file.adjusted(given), file.stream().bytes_read());
            let one = factors::<f32>(&file, 1, &settings);
            // 54 samples of a quarter, and six whole passes in addition to the first two.
            let passes = (file.stream().bytes_read() as f64 / first as f64).round();
            assert!((18.0..=24.0).contains(&passes), "{place}: {passes}");
            let other = streamed::<f32>(&path, transpose, 1 << 20, 4);
            assert!(other.blocks() != file.blocks(), "{place}");
            let two = factors::<f32>(&other, 2, &settings);
            assert!(two.factors == one.factors, "{place}");
            let hals = Settings { algorithm: Algorithm::Hals, trace_every: None, ..settings };
            let hals = factors::<f32>(&file, 1, &hals).report.relative_error;
            let error = one.report.relative_error;
            assert!(error < 1.02 * hals, "{place}: {error} {hals}");
        }
    }
}

#[test]
fn matrices_that_cannot_be_streamed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("M.npy");
    save(&matrices::<f32>(67, 41).remove(1).1, &path);
    let file = streamed::<f32>(&path, false, 1000, 4);
    let refused = |settings: Settings| {
        let quiet = &mut |_: &Progress| false;
        factorize_streamed::<f32>(&file, 1, &settings, None, quiet).unwrap_err().to_string()
    };
    let dsanls = settings(Algorithm::Dsanls, 4, 5);
    assert!(
        refused(Settings { sketch: SketchKind::Gaussian, ..dsanls.clone() }).contains("sketch subsample")
    );
    let few = Settings { sketch_cols: Some(Amount::Count(9)), ..dsanls };
    assert!(refused(few).starts_with("sketch_cols: "));
    for (algorithm, loss) in [(Algorithm::Hals, Loss::Kl), (Algorithm::Mu, Loss::Is)] {
        assert!(refused(Settings { loss, ..settings(algorithm, 4, 5) }).starts_with("loss: "));
    }
    let vectors = Settings { init: Init::Nndsvd, ..settings(Algorithm::Hals, 4, 5) };
    assert!(refused(vectors).starts_with("init: "));
    let stream = Stream::open(&path, false, MEMORY).unwrap().unwrap();
    let error = Streamed::new::<f32>(stream, &Demand::new(1 << 20, 4, 1)).unwrap_err().to_string();
    assert!(error.contains("streaming it") && error.contains("raise memory"), "{error}");
}

/// `auto` has momentum in memory and none on a file: neither can continue the other.
#[test]
fn a_checkpoint_of_a_run_in_memory_is_refused() {
    struct Keeper(Option<Snapshot<f32>>);
    impl Monitor<f32> for Keeper {
        fn progress(&mut self, progress: &Progress) -> Directive {
            Directive { save: progress.iteration == 2, ..Directive::default() }
        }
        fn snapshot(&mut self, snapshot: Snapshot<f32>) -> partwise::Result<()> {
            self.0 = Some(snapshot);
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("M.npy");
    let (_, matrix) = matrices::<f32>(67, 41).remove(1);
    save(&matrix, &path);
    for algorithm in [Algorithm::Auto, Algorithm::Dsanls] {
        let file = streamed::<f32>(&path, false, 1000, 4);
        let settings = file.adjusted(settings(algorithm, 4, 5));
        let mut keeper = Keeper(None);
        let machine = partwise::run::Machine::new(1, 1);
        partwise::run::factorize(matrix.clone(), machine, &settings, None, &mut keeper).unwrap();
        let snapshot = keeper.0.unwrap();
        let quiet = &mut |_: &Progress| false;
        let refused = factorize_streamed(&file, 1, &settings, Some(StartFrom::Snapshot(&snapshot)), quiet);
        assert!(matches!(refused, Err(partwise::Error::Parameter { name, .. }) if name == "resume"));
    }
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    struct Keeper(usize, Option<Snapshot<f32>>);
    impl Monitor<f32> for Keeper {
        fn progress(&mut self, progress: &Progress) -> Directive {
            Directive { save: progress.iteration == self.0, ..Directive::default() }
        }
        fn snapshot(&mut self, snapshot: Snapshot<f32>) -> partwise::Result<()> {
            let file = tempfile::NamedTempFile::new().unwrap();
            snapshot.write(&file, "").unwrap();
            self.1 = Some(Snapshot::read(file.path())?.0);
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    for path in files::<f32>(folder.path(), 700, 41) {
        for transpose in [false, true] {
            for (algorithm, loss) in [
                (Algorithm::Auto, Loss::Frobenius),
                (Algorithm::Hals, Loss::Frobenius),
                (Algorithm::Mu, Loss::Frobenius),
                (Algorithm::Bpp, Loss::Frobenius),
                (Algorithm::Dsanls, Loss::Frobenius),
                (Algorithm::Auto, Loss::Kl),
                (Algorithm::Mu, Loss::Kl),
            ] {
                let file = streamed::<f32>(&path, transpose, 1000, 4);
                let settings = Settings { loss, trace_every: Some(5), ..settings(algorithm, 4, 17) };
                let settings = file.adjusted(settings);
                let straight = factors::<f32>(&file, 1, &settings);
                let mut keeper = Keeper(7, None);
                factorize_streamed(&file, 1, &settings, None, &mut keeper).unwrap();
                let snapshot = keeper.1.unwrap();
                let from = Some(StartFrom::Snapshot(&snapshot));
                let resumed =
                    factorize_streamed(&file, 2, &settings, from, &mut |_: &Progress| false).unwrap();
                assert!(resumed.factors == straight.factors, "{} {algorithm:?} {loss}", path.display());
                same_curve(&resumed, &straight, "resumed");
            }
        }
    }
}
