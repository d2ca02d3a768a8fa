//! Plans against what runs do.

use crate::common::{matrices, run, settings};
use partwise::Precision;
use partwise::comm::Network;
use partwise::matrix::Matrix;
use partwise::plan::{Constants, Effort, Job, calibrate, check};
use partwise::run::{Algorithm, Amount, Settings};

const FREE: Network = Network { latency: 0.0, bandwidth: f64::INFINITY, combine: 0.0 };

fn job(rows: usize, cols: usize, nonzeros: Option<usize>, rank: usize, nodes: usize) -> Job {
    let (settings, precision) = (Settings::new(rank), Precision::F32);
    Job { rows, cols, nonzeros, bytes: false, settings, nodes, grid: None, precision }
}

/// What a plan says is sent is what the meters count.
#[test]
fn bytes_are_those_of_the_meters() {
    const ITERATIONS: usize = 6;
    let (m, n, k) = (96, 48, 5);
    for (_, matrix) in matrices::<f32>(m, n).into_iter().skip(1).step_by(2) {
        let nonzeros = matches!(matrix, Matrix::Sparse(_)).then(|| matrix.stored());
        for algorithm in [Algorithm::Auto, Algorithm::Hals, Algorithm::Dsanls] {
            for nodes in [1, 2, 4, 8, 12] {
                let settings = settings(algorithm, k, ITERATIONS);
                let report = run(&matrix, nodes, 1, &settings).report;
                let job = Job { settings, ..job(m, n, nonzeros, k, nodes) };
                let planned = job.estimate(algorithm, &FREE, &Constants::built_in()).bytes as f64;
                for rank in &report.ranks {
                    let sent = rank.method.bytes() as f64 / ITERATIONS as f64;
                    // HALS makes one Gram matrix more, before the first iteration.
                    let once = if algorithm == Algorithm::Hals && nodes > 1 {
                        (k * k * 8) as f64 / ITERATIONS as f64
                    } else {
                        0.0
                    };
                    assert!(
                        (planned + once - sent).abs() < 1.0,
                        "{algorithm:?} on {nodes}: {planned}, {sent}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_slower_network_takes_longer_and_latency_is_separate_from_transfer() {
    // Collectives that take nothing on the machine itself.
    let known = Constants::built_in();
    let nothing = vec![0.0; known.footprints.len()];
    let (gathered, scattered, reduced) = (nothing.clone(), nothing.clone(), nothing);
    let constants = Constants { gathered, scattered, reduced, ..known };
    let job = job(100_000, 50_000, Some(5_000_000), 50, 16);
    for algorithm in [Algorithm::Auto, Algorithm::Hals, Algorithm::Dsanls] {
        let parts = |latency, bandwidth| {
            job.estimate(algorithm, &Network { latency, bandwidth, combine: 0.0 }, &constants).parts
        };
        let free = parts(0.0, f64::INFINITY);
        // A table's zero is 1e-14 seconds a byte.
        assert!(free.latency == 0.0 && free.transfer < 1e-6, "{free:?}");
        assert!(free.product > 0.0 && free.solve > 0.0 && free.gram > 0.0);
        let late = parts(1e-3, f64::INFINITY);
        assert!(late.latency > 0.0 && late.transfer < 1e-6);
        assert_eq!(parts(1.0, f64::INFINITY).bottleneck(), "latency");
        assert_eq!(parts(0.0, 1e3).bottleneck(), "transfer");
        assert!(parts(1e-3, 1e8).seconds() > late.seconds() && late.seconds() > free.seconds());
    }
    let alone =
        Job { nodes: 1, ..job }.estimate(Algorithm::Hals, &Network { latency: 1.0, ..FREE }, &constants);
    assert_eq!((alone.bytes, alone.parts.latency), (0, 0.0));
}

#[test]
fn bytes_take_less_memory() {
    let reals = job(70_000, 784, None, 20, 2);
    let bytes = Job { bytes: true, ..reals.clone() };
    let matrix = |job: &Job| job.estimate(Algorithm::Dsanls, &FREE, &Constants::built_in()).memory.matrix;
    assert_eq!((matrix(&reals), matrix(&bytes)), (70_000 * 784 * 4, 70_000 * 784));
}

#[test]
fn the_choice_follows_the_network() {
    let constants = Constants::built_in();
    let slow = Network { latency: 1e-4, bandwidth: 1e4, combine: 0.0 };
    let mut large = job(1_000_000, 1_000_000, Some(20_000_000), 20, 16);
    assert_eq!(large.best(&FREE, &constants), Algorithm::Auto);
    assert_eq!(large.best(&slow, &constants), Algorithm::Auto);
    // Only a sketch that is small enough makes up for its iterations.
    let tenth_of_a_percent = Some(Amount::Share(1e-3));
    (large.settings.sketch_cols, large.settings.sketch_rows) = (tenth_of_a_percent, tenth_of_a_percent);
    assert_eq!(large.best(&FREE, &constants), Algorithm::Auto);
    assert_eq!(large.best(&slow, &constants), Algorithm::Dsanls);
}

#[test]
fn memory_shrinks_with_nodes_and_impossible_plans_give_advice() {
    let refused = |job: &Job, memory: Option<u64>| check(job, memory).unwrap_err().to_string();
    let large = job(1_000_000, 1_000_000, Some(10_000_000_000), 10, 4);
    let gib = 1u64 << 30;
    let said = refused(&large, Some(8 * gib));
    assert!(said.starts_with("memory: a node needs") && said.contains("processes, which need"), "{said}");
    let nodes: usize = said.split("; ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(check(&Job { nodes, ..large.clone() }, Some(8 * gib)).is_ok(), "{said}");
    assert!(check(&Job { nodes: nodes / 2, ..large.clone() }, Some(8 * gib)).is_err(), "{said}");
    assert!(check(&large, None).is_ok());

    // Factors alone that no node can hold.
    let wide = job(1_000_000_000, 10_000_000, Some(1_000_000_000_000), 100, 1024);
    let said = refused(&wide, Some(256 * gib));
    for words in [
        "more processes do not help",
        "each holds both factors",
        "TiB would do",
        "or fewer than 22 components",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(check(&Job { settings: Settings::new(21), ..wide.clone() }, Some(256 * gib)).is_ok());

    for (job, words) in [
        (job(3, 4, None, 2, 13), "13 processes are more than the 12 entries of the matrix; give at most 12"),
        (job(3, 4, Some(7), 2, 8), "give at most 7"),
        (job(3, 4, Some(13), 2, 1), "13 is more than the 12 entries"),
        (job(3, 4, Some(0), 2, 1), "nonzeros: 0 is too few"),
        (job(0, 4, None, 2, 1), "rows: 0 is too few"),
        (job(3, 0, None, 2, 1), "cols: 0 is too few"),
        (job(3, 4, None, 0, 1), "rank: 0 is too few"),
        (job(3, 4, None, 2, 0), "nodes: 0 is too few"),
    ] {
        let said = refused(&job, None);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn calibration_gives_constants() {
    let comms = partwise::comm::LocalComm::group(1);
    let constants = calibrate(&comms[0], 1, Effort { repeats: 1, divisor: 64 }).unwrap();
    assert!(constants.is_plausible(), "{constants:?}");
    assert_eq!((constants.ranks, constants.threads, constants.network()), (1, 1, None));
    let two = partwise::comm::run_ranks(vec![(); 2], |comm, ()| {
        calibrate(comm, 2, Effort { repeats: 1, divisor: 64 })
    })
    .unwrap();
    assert_eq!(two[0], two[1]);
    assert!(two[0].is_plausible() && two[0].network().is_some_and(|network| network.bandwidth > 0.0));
    let text = serde_json::to_string(&two[0]).unwrap();
    assert_eq!(serde_json::from_str::<Constants>(&text).unwrap(), two[0]);
}
