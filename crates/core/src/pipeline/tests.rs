//! The pipeline gives the same bits as the functions that it calls, and refuses impossible runs before they start.

use super::*;
use crate::comm::{Network, run_ranks};
use crate::error::{Error, Result};
use crate::grid::{Factor, Placement};
use crate::io::{Input, Presence, ReadOptions, WriteOptions};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::objective::Loss;
use crate::plan::Constants;
use crate::run::{
    Algorithm, Amount, Factorization, Init, Machine, Progress, Settings, factorize, residual_of,
};
use crate::threads::Threads;
use crate::{Precision, Real, io};

fn matrix<T: Real>(rows: usize, cols: usize) -> Matrix<T> {
    let value = |place: usize| T::from_f64((place * 7919 % 997) as f64 / 997.0 + 0.01);
    let values: Vec<T> = (0..rows * cols).map(value).collect();
    Matrix::Dense(Dense::new(rows, cols, Order::RowMajor, Values::Real(values.into())))
}

fn settings(algorithm: Algorithm) -> Settings {
    Settings { algorithm, iterations: 12, tolerance: 0.0, ..Settings::new(3) }
}

fn request(settings: &Settings, machine: Machine) -> Request {
    Request::new(settings.clone().checked().unwrap(), Resources::new(machine)).unwrap()
}

fn through<T: Real>(source: Source<'_, T>, request: Request, start: Start<T>) -> Result<Finished<T>> {
    run(plan(open(source, request)?, start)?, &mut |_: &Progress| false)
}

/// Factors of the library's plain function, in the pipeline's order.
fn plain<T: Real>(matrix: Matrix<T>, machine: Machine, settings: &Settings) -> Factorization<T> {
    let mut result = factorize(matrix, machine, settings, None, &mut |_: &Progress| false).unwrap();
    result.factors.order_by_energy();
    result
}

fn save<T: Real>(matrix: &Matrix<T>) -> tempfile::TempPath {
    let file = tempfile::Builder::new().suffix(".npy").tempfile().unwrap();
    let path = file.into_temp_path();
    let input = Input::unlabelled(matrix.clone(), String::new(), Precision::F32);
    let mut bytes = std::fs::File::create(&path).unwrap();
    io::write(&mut bytes, &path, &input, WriteOptions::default()).unwrap();
    path
}

fn file(path: &std::path::Path) -> FileSource {
    let options = ReadOptions::default();
    FileSource { options, ..FileSource::new(path) }
}

#[test]
fn every_source_gives_the_same_factors() {
    let matrix = matrix::<f32>(40, 17);
    let path = save(&matrix);
    for algorithm in [Algorithm::Auto, Algorithm::Hals, Algorithm::Dsanls] {
        for nodes in [1, 3] {
            let settings = settings(algorithm);
            let expected = plain(matrix.clone(), Machine::new(nodes, 2), &settings);
            let sources =
                [Source::Matrix(matrix.clone()), Source::Shared(&matrix, "X"), Source::File(file(&path))];
            for source in sources {
                let request = request(&settings, Machine::new(nodes, 2));
                let finished = through(source, request, Start::default()).unwrap();
                assert!(finished.result.factors == expected.factors, "{algorithm:?} {nodes}");
                assert_eq!(finished.plan.settings.size(), (40, 17));
                assert_eq!(finished.plan.grid.size(), nodes);
                let record = record(&finished);
                assert_eq!((record.machine.nodes, record.input.stored), (nodes, 680));
                assert_eq!(record.machine.grid.is_none(), algorithm == Algorithm::Dsanls);
            }
        }
    }
}

/// A rank's reader that cuts its blocks out of a matrix.
struct Cut<'a>(&'a Matrix<f32>);

impl RankReader<f32> for Cut<'_> {
    fn read(&self, place: PlaceOf<'_>) -> Result<RankBlocks<f32>> {
        let place: Placement = place(self.0.rows(), self.0.cols())?;
        let mut factors = vec![Factor::U];
        if place.access.has_lines() && place.grid.size() > 1 {
            factors.push(Factor::V);
        }
        let block = |factor| {
            let (rows, cols) = place.block(factor);
            self.0.part(rows, cols)
        };
        Ok(RankBlocks { blocks: factors.into_iter().map(block).collect(), format: "cut".into() })
    }
}

#[test]
fn ranks_that_read_their_parts_give_the_factors_of_workers() {
    let matrix = matrix::<f32>(40, 17);
    for (algorithm, loss) in [
        (Algorithm::Hals, Loss::Frobenius),
        (Algorithm::Dsanls, Loss::Frobenius),
        (Algorithm::Auto, Loss::Kl),
        (Algorithm::Mu, Loss::Is),
    ] {
        let settings = Settings { loss, ..settings(algorithm) };
        let expected = plain(matrix.clone(), Machine::new(3, 1), &settings);
        let reader = Cut(&matrix);
        let all = run_ranks(vec![(); 3], |comm, ()| {
            let request = request(&settings, Machine::new(3, 1));
            let source = Source::Part { comm, reader: &reader, file: file("cut.npy".as_ref()) };
            through(source, request, Start::default())
        });
        for finished in all.unwrap() {
            assert!(finished.result.factors == expected.factors, "{algorithm:?} {loss}");
            assert_eq!(finished.facts.stored, 680);
        }
    }
}

#[test]
fn all_ranks_learn_what_is_wrong_with_the_part_of_one() {
    struct Missing;
    impl RankReader<f32> for Missing {
        fn read(&self, place: PlaceOf<'_>) -> Result<RankBlocks<f32>> {
            match place(40, 17)?.rank {
                1 => Err(Error::parameter("part", "it is missing")),
                _ => Cut(&matrix(40, 17)).read(place),
            }
        }
    }
    let all = run_ranks(vec![(); 3], |comm, ()| {
        let source = Source::Part { comm, reader: &Missing, file: file("cut.npy".as_ref()) };
        let request = request(&settings(Algorithm::Hals), Machine::new(3, 1));
        Ok(through(source, request, Start::default()).map(drop))
    });
    for result in all.unwrap() {
        assert!(
            matches!(result, Err(Error::Agreed { problem }) if problem.to_string() == "part: it is missing")
        );
    }
}

/// If products with the whole matrix are slow, the sketched method wins, for which ranks need other parts of the
/// matrix.
#[test]
fn auto_chooses_alike_on_workers_and_on_ranks() {
    let matrix = matrix::<f32>(60, 60);
    let settings = settings(Algorithm::Auto);
    let request = |slower: f64| {
        let mut constants = Constants::built_in();
        constants.dense_tall.iter_mut().chain(&mut constants.dense_wide).for_each(|time| *time *= slower);
        let network: Network = "unlimited".parse().unwrap();
        let costs = Costs { network, constants, origin: "constants".into() };
        request(&settings, Machine::new(4, 1)).with_costs(Some(costs))
    };
    let reader = Cut(&matrix);
    for (slower, expected) in [(1e6, Algorithm::Dsanls), (1.0, Algorithm::Auto)] {
        let opened = open(Source::Matrix(matrix.clone()), request(slower)).unwrap();
        let planned = plan(opened, Start::default()).unwrap();
        let choice = planned.plan().choice.clone().unwrap();
        assert_eq!((choice.algorithm, planned.plan().settings.algorithm), (expected, expected));
        assert!(planned.plan().describe("method").contains(&choice.why));
        let all = run_ranks(vec![(); 4], |comm, ()| {
            let source = Source::Part { comm, reader: &reader, file: file("cut.npy".as_ref()) };
            let planned = plan(open(source, request(slower))?, Start::default())?;
            let chosen = planned.plan().choice.clone();
            run(planned, &mut |_: &Progress| false)?;
            Ok(chosen)
        });
        assert!(all.unwrap().into_iter().all(|chosen| chosen.as_ref() == Some(&choice)), "{expected:?}");
    }
}

#[test]
fn impossible_runs_are_refused_before_they_start() {
    let refused = |settings: Settings, start: Start<f64>, samples: Presence| {
        let request = request(&settings, Machine::new(1, 1)).with_samples(samples);
        match through(Source::Matrix(matrix(20, 9)), request, start) {
            Err(Error::Parameter { name, .. }) => name.to_string(),
            Err(error) => error.to_string(),
            Ok(_) => String::new(),
        }
    };
    let hals = settings(Algorithm::Hals);
    let own = |settings| refused(settings, Start::default(), Presence::Auto);
    assert_eq!(own(Settings { sketch_cols: Some(Amount::Count(10)), ..hals.clone() }), "sketch_cols");
    assert_eq!(own(Settings { init: Init::Nndsvd, rank: 10, ..hals.clone() }), "init");
    assert_eq!(own(Settings { init: Init::Nndsvd, restarts: 2, ..hals.clone() }), "restarts");
    assert_eq!(refused(hals.clone(), Start::default(), Presence::Yes), "samples");
    let given = || {
        let factors = plain(matrix(20, 9), Machine::new(1, 1), &hals).factors;
        Start { factors: Some(factors), snapshot: None }
    };
    assert_eq!(refused(Settings { restarts: 2, ..hals.clone() }, given(), Presence::Auto), "restarts");
    assert_eq!(refused(Settings { rank: 4, ..hals.clone() }, given(), Presence::Auto), "factors");
    assert_eq!(refused(hals.clone(), given(), Presence::Auto), "");
    let none = Request::new(hals.checked().unwrap(), Resources::new(Machine::new(0, 1)));
    assert!(matches!(none, Err(Error::Parameter { name, .. }) if name == "nodes"));
}

#[test]
fn a_matrix_beyond_the_memory_is_streamed_or_refused() {
    let matrix = matrix::<f32>(5200, 800);
    let path = save(&matrix);
    let settings = settings(Algorithm::Hals);
    let limited = |memory: u64| {
        let resources = Resources { memory: Some(memory), ..Resources::new(Machine::new(1, 1)) };
        Request::new(settings.clone().checked().unwrap(), resources).unwrap()
    };
    let finished = through::<f32>(Source::File(file(&path)), limited(16 << 20), Start::default()).unwrap();
    let how = finished.streamed.clone().expect("a streamed matrix");
    assert!(how.blocks > 1 && finished.plan.memory.most() <= 16 << 20, "{how:?}");
    assert_eq!(record(&finished).machine.memory, Some(16 << 20));
    let refused = through(Source::Matrix(matrix), limited(16 << 20), Start::default());
    assert!(matches!(refused, Err(Error::Memory { .. })));
}

#[test]
fn exact_rows_are_those_that_fit_best() {
    let (matrix, settings) = (matrix::<f64>(30, 12), settings(Algorithm::Hals));
    let request = || request(&settings, Machine::new(1, 1));
    let source = || Source::Shared(&matrix, "X");
    let iterated = through(source(), request(), Start::default()).unwrap();
    let exact = through(source(), request().with_finish(Finish::ExactRows), Start::default()).unwrap();
    let error = |finished: &Finished<f64>| finished.result.report.relative_error;
    assert!(error(&exact) < error(&iterated));
    let threads = Threads::new(1).unwrap();
    let residual = residual_of(matrix.clone(), &exact.result.factors, Loss::Frobenius, &threads).unwrap();
    assert_eq!(residual.relative_error, error(&exact));
}
