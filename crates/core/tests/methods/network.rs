//! Ranks on networks that are modelled.

use crate::common::{matrices, settings};
use partwise::comm::{Clocked, Comm, Network, Numbers, Reduction, Tag, TurnLock, conformance, run_ranks};
use partwise::matrix::Matrix;
use partwise::run::{Algorithm, Factorization, Machine, Progress, Settings, factorize};
use partwise::threads::{Threads, thread_time};
use std::sync::Arc;

const SLOW: Network = Network { latency: 100.0, bandwidth: 1.0, combine: 0.0 };

/// Runs `work` on ranks with clocks, and returns what they return.
fn on_ranks<R: Send>(
    size: usize,
    networks: &[Network],
    work: impl Fn(&dyn Comm) -> partwise::Result<R> + Sync,
) -> Vec<R> {
    let baton = Arc::new(TurnLock::default());
    run_ranks(vec![(); size], |comm, ()| {
        let (_, time) = Threads::new(1)?.timed();
        work(&Clocked::new(comm, networks, baton.clone(), time))
    })
    .unwrap()
}

fn factorized(
    matrix: &Matrix<f64>,
    nodes: usize,
    networks: &[Network],
    settings: &Settings,
) -> Factorization<f64> {
    let machine = Machine { networks: networks.to_vec(), ..Machine::new(nodes, 1) };
    factorize(matrix.clone(), machine, settings, None, &mut |_: &Progress| false).unwrap()
}

/// Processor time of this thread.
fn work_for(seconds: f64) {
    let begin = thread_time();
    while thread_time() - begin < seconds {}
}

#[test]
fn clocks_are_a_transport_too() {
    for size in 1..=4 {
        on_ranks(size, &[SLOW], |comm| conformance::check(comm, true));
    }
}

#[test]
fn clocks_meet_in_a_collective_and_move_by_its_cost() {
    let networks = [SLOW, "unlimited".parse().unwrap()];
    let times = on_ranks(3, &networks, |comm| {
        work_for(0.01 * (comm.rank() + 1) as f64);
        let mut numbers = [1.0f64; 4];
        comm.all_reduce(Reduction::Sum, Numbers::F64(&mut numbers))?;
        assert_eq!(numbers, [3.0; 4]);
        Ok(comm.clock())
    });
    let cost = SLOW.all_reduce(3, 32);
    for time in &times {
        // The last rank to arrive worked for 0.03 s; its clock and the others' advance by the time of reading them.
        assert!((cost + 0.03..cost + 1.0).contains(&time[0]), "{times:?}");
        assert!((0.03..1.0).contains(&time[1]), "{times:?}");
    }
}

#[test]
fn a_broadcast_does_not_wait_and_messages_arrive_on_time() {
    let times = on_ranks(2, &[SLOW], |comm| {
        if comm.rank() == 1 {
            work_for(0.02);
        }
        comm.broadcast(vec![0; 10])?;
        let broadcast = comm.clock()[0];
        if comm.rank() == 0 {
            comm.send(1, Tag::Gather, vec![7; 50])?;
        } else {
            assert_eq!(comm.receive(0, Tag::Gather)?, [7; 50]);
        }
        Ok((broadcast, comm.clock()[0]))
    });
    assert!((110.0..110.02).contains(&times[0].0), "{times:?}");
    assert!((110.02..111.0).contains(&times[1].0), "{times:?}");
    assert!((110.0..111.0).contains(&times[0].1), "{times:?}");
    assert!((260.0..261.0).contains(&times[1].1), "{times:?}");
}

#[test]
fn groups_keep_the_clocks_of_their_ranks() {
    let times = on_ranks(4, &[SLOW], |comm| {
        let group = comm.split(comm.rank() / 2)?;
        if comm.rank() >= 2 {
            group.all_gather(&[1, 2, 3])?;
        }
        Ok(comm.clock()[0])
    });
    assert!(times[0] < 1.0 && times[1] < 1.0, "{times:?}");
    assert!(times[2..].iter().all(|time| (103.0..104.0).contains(time)), "{times:?}");
}

#[test]
fn a_failing_rank_leaves_no_rank_waiting() {
    let baton = Arc::new(TurnLock::default());
    let result = run_ranks(vec![(); 3], |comm, ()| {
        let (_, time) = Threads::new(1)?.timed();
        let comm = Clocked::new(comm, &[SLOW], baton.clone(), time);
        if comm.rank() == 1 {
            return Err(partwise::Error::parameter("rank", "no"));
        }
        comm.all_gather(&[1])
    });
    assert!(result.unwrap_err().to_string().contains("rank"));
}

/// The virtual time of an iteration is that of its collectives, by the sizes that the meter counts, plus some
/// computing.
#[test]
fn an_iteration_takes_the_time_of_its_collectives() {
    const ITERATIONS: usize = 5;
    let (m, n, k) = (48, 36, 4);
    let (_, matrix) = matrices::<f64>(m, n).remove(1);
    let computing = 0.0..1.0;
    let settings = settings(Algorithm::Hals, k, ITERATIONS);
    let report = factorized(&matrix, 4, &[SLOW], &settings).report;
    // A grid of 2 x 2: rows of V within columns and of U within rows, products within rows and columns, Gram matrices.
    let gathered =
        SLOW.all_gather(2, n / 2 * k * 8, n / 4 * k * 8) + SLOW.all_gather(2, m / 2 * k * 8, m / 4 * k * 8);
    let scattered = SLOW.reduce_scatter(2, m / 2 * k * 8, m / 4 * k * 8)
        + SLOW.reduce_scatter(2, n / 2 * k * 8, n / 4 * k * 8);
    let reduced = 2.0 * SLOW.all_reduce(4, k * k * 8) + SLOW.all_reduce(4, 8);
    let expected = ITERATIONS as f64 * (gathered + scattered + reduced) + SLOW.all_reduce(4, k * k * 8);
    assert!(computing.contains(&(report.seconds - expected)), "{} {expected}", report.seconds);
    for rank in &report.ranks {
        let seconds = rank.method.all_gather.seconds
            + rank.method.reduce_scatter.seconds
            + rank.method.all_reduce.seconds;
        assert!(computing.contains(&(seconds - expected)), "{seconds} {expected}");
    }

    let settings =
        Settings { trace_every: Some(2), ..crate::common::settings(Algorithm::Dsanls, k, ITERATIONS) };
    let report = factorized(&matrix, 4, &[SLOW], &settings).report;
    let (cols, rows) = settings.sketch_sizes(m, n);
    let expected = ITERATIONS as f64 * (SLOW.all_reduce(4, cols * k * 8) + SLOW.all_reduce(4, rows * k * 8));
    assert!(computing.contains(&(report.seconds - expected)), "{} {expected}", report.seconds);
}

#[test]
fn a_network_changes_no_result_and_slower_ones_take_longer() {
    let networks: Vec<Network> =
        ["1Mbit/s,1ms", "1Gbit/s,1ms", "unlimited"].iter().map(|text| text.parse().unwrap()).collect();
    for (name, matrix) in matrices::<f64>(67, 41) {
        for algorithm in [Algorithm::Auto, Algorithm::Dsanls, Algorithm::Hals, Algorithm::Bpp] {
            let settings = settings(algorithm, 4, 12);
            let real = factorized(&matrix, 3, &[], &settings);
            let modelled = factorized(&matrix, 3, &networks, &settings);
            assert!(real.factors == modelled.factors, "{name} {algorithm:?}");
            let trace = &modelled.report.trace;
            assert_eq!(trace[0].elsewhere, [0.0, 0.0]);
            for pair in trace.windows(2) {
                let times =
                    |line: usize| [pair[line].seconds, pair[line].elsewhere[0], pair[line].elsewhere[1]];
                let (before, after) = (times(0), times(1));
                assert!(before.iter().zip(after).all(|(before, after)| *before < after), "{pair:?}");
                assert!(after[0] > after[1] && after[1] > after[2], "{pair:?}");
            }
        }
    }
}

/// Whatever else the machine does, the clocks see the ranks' own work: other threads burn the cores meanwhile, and ranks
/// are more than there are cores.
#[test]
fn other_work_on_the_machine_does_not_count() {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 * partwise::machine::cores() {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let begin = std::time::Instant::now();
        let times = on_ranks(8, &["unlimited".parse().unwrap()], |comm| {
            work_for(0.02);
            comm.broadcast(vec![1])?;
            work_for(0.02);
            let time = comm.clock()[0];
            comm.all_gather(&[1])?;
            Ok(time)
        });
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        // One at a time, on cores shared with others.
        assert!(begin.elapsed().as_secs_f64() > 8.0 * 0.04);
        assert!(times.iter().all(|time| (0.04..0.3).contains(time)), "{times:?}");
    });
}

#[test]
fn threads_of_a_rank_work_at_the_same_time() {
    let (threads, time) = Threads::new(4).unwrap().timed();
    threads.map(vec![(); 8], || (), |(), ()| work_for(0.01));
    assert!((0.02..0.07).contains(&time.seconds()), "{}", time.seconds());
    threads.map(vec![0.03, 0.001], || (), |(), seconds| work_for(seconds));
    assert!((0.05..0.15).contains(&time.seconds()), "{}", time.seconds());
}
