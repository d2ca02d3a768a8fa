//! Whole runs: parties, coordinator and network, against the library's own drivers.

use partwise::comm::{Network, run_ranks};
use partwise::matrix::{Csr, Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};
use partwise::run::{self, Amount, Factors, Machine, Normalize, factorize};
use partwise::threads::Threads;
use partwise_secure::net::DEFAULT_WAN;
use partwise_secure::protocol::{Aggregation, Local, Protocol, Settings, Stop, party_seed};
use partwise_secure::split::{Split, parts};
use partwise_secure::{
    DataSizes, Error, OnRank, Plan, SimulationOutcome, Vanishing, groups, run_on_rank, simulate,
};

/// records x features, of `k` components and some noise, by row.
fn records(records: usize, features: usize, k: usize) -> Matrix<f64> {
    let mut rng = stream(5, Purpose::Fill, 0, 0);
    let mut draw = |count: usize| -> Vec<f64> { (0..count).map(|_| uniform(&mut rng)).collect() };
    // Sharp components, so that they can be told apart.
    let u: Vec<f64> = draw(features * k).into_iter().map(|x| x.powi(6)).collect();
    let v: Vec<f64> = draw(records * k).into_iter().map(|x| x.powi(6)).collect();
    let noise = draw(records * features);
    let entry = |place: usize| {
        let (record, feature) = (place / features, place % features);
        (0..k).map(|j| u[feature * k + j] * v[record * k + j]).sum::<f64>() + 0.02 * noise[place]
    };
    let values: Vec<f64> = (0..records * features).map(entry).collect();
    Matrix::Dense(Dense::new(records, features, Order::RowMajor, Values::Real(values.into())))
}

fn sparse(matrix: &Matrix<f64>) -> Matrix<f64> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut last = 0;
    matrix.for_each_stored(|row, col, value| {
        if row != last {
            offsets.push(values.len());
            last = row;
        }
        if value > 0.1 {
            indices.push(col as u32);
            values.push(value);
        }
    });
    offsets.push(values.len());
    Matrix::Sparse(Csr::new(matrix.rows(), matrix.cols(), offsets, indices, values))
}

fn settings(protocol: Protocol, k: usize, rounds: usize) -> Settings {
    Settings { rounds, tolerance: 0.0, seed: 3, ..Settings::new(protocol, k) }
}

fn one_thread() -> Threads {
    Threads::new(1).unwrap()
}

fn run_split(
    matrix: &Matrix<f64>,
    split: &Split,
    parties: usize,
    plan: &Plan,
) -> Result<SimulationOutcome<f64>, Error> {
    simulate(parts(matrix, &split.deal(matrix.rows(), parties)).unwrap(), plan)
}

/// HALS of the library on all records in one place, from the start that the parties have.
fn pooled_hals(matrix: &Matrix<f64>, dealt: &[Vec<usize>], settings: &Settings) -> (Factors<f64>, f64) {
    let (features, records, k) = (matrix.cols(), matrix.rows(), settings.rank);
    let mut sum = 0.0;
    matrix.for_each_stored(|_, _, value| sum += value);
    let mean = sum / (features * records) as f64;
    let mut v = Vec::new();
    let mut u = Vec::new();
    for (party, part) in (1..).zip(parts(matrix, dealt).unwrap()) {
        let mut local = Local::new(part, settings, one_thread()).unwrap();
        local.start(settings.seed, party_seed(settings.seed, "partwise private", party), mean);
        v.extend(local.v);
        u = local.u;
    }
    let start = Factors { rows: features, cols: records, k, u, v };
    let of_hals = run::Settings {
        iterations: settings.rounds,
        tolerance: 0.0,
        algorithm: run::Algorithm::Hals,
        ..run::Settings::new(k)
    };
    let machine = Machine::new(1, 1);
    let from = Some(run::StartFrom::Factors(&start));
    let result =
        factorize(matrix.clone().into_transpose(), machine, &of_hals, from, &mut |_: &run::Progress| false)
            .unwrap();
    (result.factors, result.report.relative_error)
}

/// The same iterates as HALS on the pooled matrix, and therefore the same error: fixed point costs less than 1e-6
/// of it.
#[test]
fn pooled_equals_hals_on_the_pooled_matrix() {
    let dense = records(90, 12, 4);
    for matrix in [sparse(&dense), dense] {
        for (split, parties) in [(Split::Uniform, 5), (Split::First(0.5), 3)] {
            let mut settings = settings(Protocol::Pooled, 4, 60);
            settings.accepted.pooled_sums_show_records = true;
            let dealt = split.deal(90, parties);
            let (factors, error) = pooled_hals(&matrix, &dealt, &settings);
            let outcome = run_split(&matrix, &split, parties, &Plan::new(settings)).unwrap();
            let relative = (outcome.relative_error - error).abs() / error;
            assert!(relative < 1e-6, "{} {error}", outcome.relative_error);
            assert_eq!(outcome.rounds, 60);
            let first = outcome.parties[0].as_ref().unwrap();
            let v: Vec<f64> = outcome.parties.iter().flatten().flat_map(|party| party.v.clone()).collect();
            // The library's result is balanced, that of a protocol has the scale that it ended with.
            let mut ours = Factors { u: first.u.clone(), v, ..factors.clone() };
            ours.normalize(Normalize::Balanced, &one_thread()).unwrap();
            for (ours, theirs) in ours.u.iter().chain(&ours.v).zip(factors.u.iter().chain(&factors.v)) {
                assert!((ours - theirs).abs() < 1e-4 * (1.0 + theirs), "{ours} {theirs}");
            }
            assert!(outcome.parties.iter().flatten().all(|party| party.u == first.u));
            // The trace has the same errors as were evaluated from masked sums.
            let last = outcome.trace[outcome.trace.len() - 2];
            assert!((last.relative_error - error).abs() < 0.05 * error, "{last:?}");
        }
    }
}

/// Every protocol ends near HALS on the pooled matrix, with and without masks, and all parties have the same U.
#[test]
fn every_method_finds_the_components() {
    let matrix = records(150, 20, 3);
    let dealt = Split::Uniform.deal(150, 6);
    let reference = pooled_hals(&matrix, &dealt, &settings(Protocol::Pooled, 3, 300)).1;
    for protocol in Protocol::ALL {
        let mut errors = Vec::new();
        for aggregation in [Aggregation::Secure, Aggregation::Plain] {
            let mut settings = settings(protocol, 3, 150);
            settings.aggregation = aggregation;
            settings.accepted.pooled_sums_show_records = true;
            settings.accepted.plain_shares_show_records = true;
            if protocol == Protocol::DsanlsLimited {
                settings.sketch_records = Some(Amount::Count(3));
            }
            let outcome = run_split(&matrix, &Split::Uniform, 6, &Plan::new(settings)).unwrap();
            let first = outcome.parties[0].as_ref().unwrap();
            assert!(outcome.parties.iter().flatten().all(|party| party.u == first.u), "{protocol:?}");
            assert!(outcome.transcripts.iter().all(|transcript| transcript.agreed && transcript.sums > 0));
            // The reported error is that of the factors.
            let v = outcome.parties.iter().flatten().flat_map(|party| party.v.clone()).collect();
            let factors = Factors { rows: 20, cols: 150, k: 3, u: first.u.clone(), v };
            let error = run::error_of(matrix.clone().into_transpose(), &factors, &one_thread()).unwrap();
            assert!((error - outcome.relative_error).abs() < 1e-9, "{protocol:?} {error} {outcome:?}");
            errors.push(error);
        }
        // The leak budget of 25 records a party ends dsanls-limited after eight rounds: see the next test.
        if protocol != Protocol::DsanlsLimited {
            assert!(
                errors.iter().all(|&error| error < 1.5 * reference),
                "{protocol:?} {errors:?} {reference}"
            );
        }
        // Fixed point costs less than 1e-6; what an asynchronous party computes while it waits depends on the clock.
        if !protocol.is_asynchronous() {
            // Momentum depends on whether the error fell, even by a tiny amount.
            let tolerance = if protocol == Protocol::FewRounds { 1e-3 } else { 1e-6 };
            assert!((errors[0] - errors[1]).abs() < tolerance * errors[1], "{protocol:?} {errors:?}");
        }
    }
}

/// Records whose sizes differ a thousandfold: scales of U's columns must not drift apart, or the damping of the largest
/// holds all others where they are.
#[test]
fn a_few_large_records_do_not_stop_the_others() {
    let mut rng = stream(6, Purpose::Fill, 1, 0);
    let sizes: Vec<f64> = (0..400).map(|_| 10f64.powf(3.0 * uniform(&mut rng))).collect();
    let mut values = Vec::new();
    records(400, 40, 8).for_each_stored(|record, _, value| values.push(sizes[record] * value));
    let matrix = Matrix::Dense(Dense::new(400, 40, Order::RowMajor, Values::Real(values.into())));
    for seed in 0..4 {
        let error = |protocol| {
            let mut settings = Settings { seed, ..settings(protocol, 8, 200) };
            settings.accepted.pooled_sums_show_records = true;
            run_split(&matrix, &Split::Uniform, 4, &Plan::new(settings)).unwrap().relative_error
        };
        let (pooled, averaged) = (error(Protocol::Pooled), error(Protocol::SynSd));
        assert!(averaged < 1.05 * pooled, "seed {seed}: pooled {pooled}, averaged {averaged}");
    }
}

/// DSANLS of the library on all records in one place, sketched as the parties sketch theirs.
fn pooled_dsanls(matrix: &Matrix<f64>, size: usize, rounds: usize, seed: u64) -> f64 {
    let dsanls = run::Settings {
        iterations: rounds,
        tolerance: 0.0,
        algorithm: run::Algorithm::Dsanls,
        sketch: partwise::sketch::SketchKind::Gaussian,
        sketch_cols: Some(Amount::Count(size)),
        seed,
        ..run::Settings::new(3)
    };
    let machine = Machine::new(1, 1);
    let matrix = matrix.clone().into_transpose();
    factorize(matrix, machine, &dsanls, None, &mut |_: &run::Progress| false).unwrap().report.relative_error
}

/// With as many records as its rounds need, dsanls-limited finds the components as DSANLS on the pooled matrix does. With
/// 25 records a party its budget ends it after eight rounds of three columns, which are few for DSANLS too.
#[test]
fn dsanls_limited_is_dsanls_for_as_long_as_it_may() {
    for (count, parties, size, rounds) in [(1500, 3, 6, 80), (150, 6, 3, 8)] {
        let matrix = records(count, 20, 3);
        let mut errors = Vec::new();
        let mut references = Vec::new();
        for seed in 0..9 {
            let mut settings = settings(Protocol::DsanlsLimited, 3, rounds);
            (settings.sketch_records, settings.seed) = (Some(Amount::Count(size)), seed);
            let outcome = run_split(&matrix, &Split::Uniform, parties, &Plan::new(settings)).unwrap();
            errors.push(outcome.relative_error);
            references.push(pooled_dsanls(&matrix, size, rounds, seed));
        }
        errors.sort_by(f64::total_cmp);
        references.sort_by(f64::total_cmp);
        assert!(errors[4] < 1.2 * references[4], "{errors:?} {references:?}");
    }
}

/// What each rank came to: the coordinator, then the parties.
type Ranks = Vec<Result<OnRank<f64>, Error>>;

fn run_as_ranks(matrix: &Matrix<f64>, parties: usize, plan: &Plan) -> Ranks {
    let dealt = parts(matrix, &Split::Uniform.deal(matrix.rows(), parties)).unwrap();
    let records: Vec<usize> = dealt.iter().map(Matrix::cols).collect();
    let sizes = DataSizes { records: &records, features: matrix.cols() };
    let ranks = std::iter::once(None).chain(dealt.into_iter().map(Some)).collect();
    run_ranks(ranks, |comm, part| Ok(run_on_rank(comm, part, &sizes, plan))).unwrap()
}

/// The same parties as ranks of a communicator, which is how they run under MPI: the same result, or for an
/// asynchronous protocol one U for all and the reported error. Seven parties form two groups there.
#[test]
fn parties_may_be_ranks() {
    let matrix = records(80, 10, 3);
    for (protocol, parties) in
        Protocol::ALL.map(|protocol| (protocol, if protocol.is_asynchronous() { 7 } else { 4 }))
    {
        for aggregation in [Aggregation::Secure, Aggregation::Plain] {
            let mut settings = settings(protocol, 3, 6);
            settings.accepted.pooled_sums_show_records = true;
            settings.aggregation = aggregation;
            let plan = Plan::new(settings);
            let alone = run_split(&matrix, &Split::Uniform, parties, &plan).unwrap();
            let mut ranks = run_as_ranks(&matrix, parties, &plan).into_iter().map(Result::unwrap);
            let Some(OnRank::Coordinator(outcome)) = ranks.next() else { panic!("{protocol:?}") };
            assert!(outcome.transcripts.iter().all(|transcript| transcript.agreed && transcript.sums > 0));
            assert_eq!(outcome.groups, alone.groups);
            let (mut copies, mut v) = (Vec::new(), Vec::new());
            for (rank, party) in ranks.zip(alone.parties.iter().flatten()) {
                let OnRank::Party(rank) = rank else { panic!("{protocol:?}") };
                if !protocol.is_asynchronous() {
                    assert!(rank.u == party.u && rank.v == party.v, "{protocol:?}");
                    assert_eq!(rank.sent, party.sent);
                }
                copies.push(rank.u);
                v.extend(rank.v);
            }
            assert!(copies.windows(2).all(|pair| pair[0] == pair[1]), "{protocol:?}");
            let factors = Factors { rows: 10, cols: 80, k: 3, u: copies.remove(0), v };
            let error = run::error_of(matrix.clone().into_transpose(), &factors, &one_thread()).unwrap();
            assert!((error - outcome.relative_error).abs() < 1e-9, "{protocol:?} {error} {outcome:?}");
            // Ranks have real clocks: how often the server hears a group, and how far a party computes while it waits, is
            // another matter each time, and so is how far an asynchronous method gets in a few rounds.
            if !protocol.is_asynchronous() {
                assert_eq!(outcome.relative_error, alone.relative_error);
                assert_eq!(outcome.trace.len(), alone.trace.len());
            }
        }
    }
}

/// An error of one rank reaches all, and no rank waits forever.
#[test]
fn ranks_fail_together() {
    let matrix = records(60, 10, 3);
    let mut settings = settings(Protocol::DsanlsLimited, 3, 6);
    settings.sketch_records = Some(Amount::Count(30));
    for rank in run_as_ranks(&matrix, 3, &Plan::new(settings)) {
        let error = rank.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("sketch_records"), "{error}");
    }
    // A value that one party alone has.
    let values: Vec<f64> = (0..60 * 10).map(|place| if place == 599 { 1e200 } else { 1.0 }).collect();
    let matrix = Matrix::Dense(Dense::new(60, 10, Order::RowMajor, Values::Real(values.into())));
    for rank in run_as_ranks(&matrix, 3, &Plan::new(self::settings(Protocol::SynSd, 3, 6))) {
        let error = rank.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("party 3 has a value of") && error.contains("rescale the matrix"), "{error}");
    }
    let mut slowed = Plan::new(self::settings(Protocol::SynSd, 3, 6));
    slowed.slowness = vec![2.0];
    for rank in run_as_ranks(&matrix, 3, &slowed) {
        let error = rank.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("speeds"), "{error}");
    }
}

/// Sizes that make little sense are computed nevertheless: fewer records than components, one record, many parties.
#[test]
fn small_and_many_parties() {
    let matrix = records(60, 8, 3);
    for protocol in Protocol::ALL.into_iter().filter(|&protocol| protocol != Protocol::DsanlsLimited) {
        for (parties, split) in [(3, Split::First(0.96)), (50, Split::Uniform)] {
            let mut settings = settings(protocol, 5, 2);
            settings.accepted.pooled_sums_show_records = true;
            settings.accepted.few_records_show_in_sums = true;
            let outcome = run_split(&matrix, &split, parties, &Plan::new(settings)).unwrap();
            assert!(
                outcome.relative_error.is_finite() && outcome.relative_error < 1.0,
                "{protocol:?} {parties}"
            );
            let sizes: Vec<usize> = outcome.parties.iter().flatten().map(|party| party.v.len() / 5).collect();
            assert_eq!(sizes.iter().sum::<usize>(), 60);
            assert!(outcome.parties.iter().flatten().all(|party| party.u.len() == 8 * 5));
        }
    }
}

/// Under the simulated schedule the same seed gives the same bits, also if no party waits for another.
#[test]
fn the_same_seed_gives_the_same_answer() {
    let matrix = records(80, 10, 3);
    for protocol in [Protocol::AsynSd, Protocol::AsynSsdV, Protocol::SynSsdUv] {
        let mut plan = Plan::new(settings(protocol, 3, 12));
        plan.slowness = vec![1.0, 5.0, 1.0, 2.0, 1.0, 7.0, 1.5];
        let run = |plan: &Plan| run_split(&matrix, &Split::Uniform, 7, plan).unwrap();
        let (one, two) = (run(&plan), run(&plan));
        assert_eq!(one.trace, two.trace, "{protocol:?}");
        for (one, two) in one.parties.iter().flatten().zip(two.parties.iter().flatten()) {
            assert!(one.u == two.u && one.v == two.v, "{protocol:?}");
        }
        plan.settings.seed += 1;
        assert!(run(&plan).trace != one.trace);
    }
}

/// A slow party holds up a synchronous run, and an asynchronous one only within its group.
#[test]
fn slow_parties_on_the_simulated_clock() {
    let matrix = records(600, 40, 3);
    let run = |protocol, slowness: &[f64]| {
        let mut plan = Plan::new(settings(protocol, 3, 10));
        plan.slowness = slowness.to_vec();
        // Only the computation counts.
        plan.line = Network { latency: 1e-9, bandwidth: 1e12, ..DEFAULT_WAN };
        run_split(&matrix, &Split::Uniform, 6, &plan).unwrap()
    };
    let slow = [1.0, 1.0, 1.0, 8.0, 8.0, 8.0];
    let (even, uneven) = (run(Protocol::SynSd, &[]), run(Protocol::SynSd, &slow));
    assert!(uneven.seconds > 3.0 * even.seconds, "{} {}", uneven.seconds, even.seconds);
    // The trace of the same computation, at other times.
    assert!(even.trace.iter().zip(&uneven.trace).all(|(a, b)| a.relative_error == b.relative_error));
    let asynchronous = run(Protocol::AsynSd, &slow);
    assert_eq!(asynchronous.groups, [[1, 2, 3], [4, 5, 6]]);
    // As many updates as two groups would make in ten rounds, most of them by the fast one.
    assert!(asynchronous.seconds < 0.5 * uneven.seconds, "{} {}", asynchronous.seconds, uneven.seconds);
}

#[test]
fn groups_are_of_three_or_more_and_of_like_speed() {
    let groups = |parties: usize, colluders: usize, aggregation| {
        let mut settings = Settings::new(Protocol::AsynSd, 3);
        (settings.colluders, settings.aggregation) = (colluders, aggregation);
        let seconds: Vec<f64> = (0..parties).map(|party| ((party * 7) % parties) as f64).collect();
        let groups = groups(&settings, &seconds);
        let mut members = groups.concat();
        members.sort_unstable();
        assert_eq!(members, (1..=parties as u16).collect::<Vec<_>>());
        let slowest =
            |group: &Vec<u16>| group.iter().map(|&party| seconds[usize::from(party) - 1] as u64).max();
        assert!(groups.windows(2).all(|pair| slowest(&pair[0]) < slowest(&pair[1])));
        groups.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(groups(5, 1, Aggregation::Secure), [5]);
    assert_eq!(groups(6, 1, Aggregation::Secure), [3, 3]);
    assert_eq!(groups(8, 1, Aggregation::Secure), [4, 4]);
    assert_eq!(groups(10, 2, Aggregation::Secure), [5, 5]);
    assert_eq!(groups(3, 1, Aggregation::Plain), [1, 1, 1]);
    let synchronous = Settings::new(Protocol::SynSd, 3);
    assert!(partwise_secure::groups(&synchronous, &[1.0; 9]).is_empty());
}

#[test]
fn a_party_that_leaves_is_waited_for_unless_that_is_accepted() {
    let matrix = records(60, 8, 3);
    for protocol in [Protocol::SynSd, Protocol::AsynSd] {
        let mut plan = Plan::new(settings(protocol, 3, 12));
        plan.loses = Some(Vanishing { party: 2, sums: 8 });
        let error = run_split(&matrix, &Split::Uniform, 6, &plan).unwrap_err();
        assert!(matches!(error, Error::Left { party: 2, .. }), "{error}");
        assert!(error.to_string().contains("accepted.going_on_shows_the_leaver"), "{error}");
    }
    let mut plan = Plan::new(settings(Protocol::SynSd, 3, 12));
    plan.loses = Some(Vanishing { party: 2, sums: 8 });
    plan.settings.accepted.going_on_shows_the_leaver = true;
    let outcome = run_split(&matrix, &Split::Uniform, 6, &plan).unwrap();
    assert_eq!(
        outcome.parties.iter().map(Option::is_some).collect::<Vec<_>>(),
        [true, false, true, true, true, true]
    );
    assert!(outcome.relative_error < 0.5 && outcome.transcripts[0].agreed);
    // They have done it twice, and kept the better.
    assert_eq!((outcome.rounds, outcome.attempts.len()), (24, 2));
    assert_eq!(outcome.relative_error, outcome.attempts[0].min(outcome.attempts[1]));
    // The same holds for a group, while the other one continues undisturbed.
    let mut eight = Plan::new(settings(Protocol::AsynSd, 3, 12));
    (eight.loses, eight.settings.accepted.going_on_shows_the_leaver) =
        (Some(Vanishing { party: 2, sums: 8 }), true);
    let outcome = run_split(&matrix, &Split::Uniform, 8, &eight).unwrap();
    assert_eq!(outcome.parties.iter().filter(|party| party.is_some()).count(), 7);
    assert_eq!(outcome.relative_error, outcome.attempts[0].min(outcome.attempts[1]));
    assert!(outcome.trace.is_sorted_by_key(|line| line.round));
    assert!(outcome.relative_error < 0.5 && outcome.transcripts.iter().all(|transcript| transcript.agreed));
    // So do both where it is missing in the last sum only.
    let mut lose = |sum: u64| {
        eight.loses = Some(Vanishing { party: 2, sums: sum });
        run_split(&matrix, &Split::Uniform, 8, &eight).unwrap()
    };
    let last = (15..30).rev().map(&mut lose).find(|outcome| outcome.parties[1].is_none()).unwrap();
    assert!(last.attempts.len() == 2 && last.relative_error <= last.attempts[0]);
    // Three parties cannot continue as two.
    let error = run_split(&matrix, &Split::Uniform, 3, &plan).unwrap_err();
    assert!(error.to_string().contains("tolerate no dropout"), "{error}");
}

#[test]
fn dsanls_stops_before_it_shows_a_record() {
    let matrix = records(120, 10, 3);
    let mut settings = settings(Protocol::DsanlsLimited, 3, 500);
    // Of 20 records, 19 columns in general position show none.
    settings.sketch_records = Some(Amount::Count(4));
    let outcome = run_split(&matrix, &Split::Uniform, 6, &Plan::new(settings.clone())).unwrap();
    assert_eq!((outcome.stopped_by, outcome.rounds), (Stop::LeakBudget, 4));
    settings.sketch_records = Some(Amount::Count(20));
    let error = run_split(&matrix, &Split::Uniform, 6, &Plan::new(settings)).unwrap_err();
    assert!(error.to_string().contains("sketch_records"), "{error}");
}

#[test]
fn masked_runs_cost_what_they_report() {
    let matrix = records(900, 100, 4);
    let run = |aggregation| {
        let mut settings = settings(Protocol::Pooled, 4, 30);
        settings.aggregation = aggregation;
        settings.accepted.plain_shares_show_records = true;
        run_split(&matrix, &Split::Uniform, 5, &Plan::new(settings)).unwrap().cost
    };
    let (secure, plain) = (run(Aggregation::Secure), run(Aggregation::Plain));
    assert_eq!(plain.round_trips_per_sum, 1.0);
    assert!((3.0..3.2).contains(&secure.round_trips_per_sum), "{secure:?}");
    // 31 sums of 100 x 4 words of 4 bytes and a few of 8, there and back.
    assert!(plain.bytes_per_party > 31 * 2 * 1600 && plain.bytes_per_party < 31 * 2 * 1900, "{plain:?}");
    assert!(secure.bytes_per_party > plain.bytes_per_party);
}

#[test]
fn what_is_out_of_range_is_refused() {
    let matrix = records(40, 6, 2);
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = Plan::new(settings(Protocol::SynSd, 2, 3));
        change(&mut plan);
        run_split(&matrix, &Split::Uniform, 4, &plan).unwrap_err().to_string()
    };
    assert!(refused(&|plan| plan.settings.rank = 0).contains("rank"));
    assert!(refused(&|plan| plan.settings.rho = 0.0).contains("rho"));
    assert!(refused(&|plan| plan.settings.colluders = 3).contains("colluders"));
    assert!(refused(&|plan| plan.slowness = vec![1.0, -2.0]).contains("speeds"));
    assert!(refused(&|plan| plan.slowness = vec![1.0; 5]).contains("speeds"));
    assert!(refused(&|plan| plan.loses = Some(Vanishing { party: 9, sums: 1 })).contains("lose"));
    let mut uneven = parts(&matrix, &Split::Uniform.deal(40, 3)).unwrap();
    uneven.push(records(7, 5, 2).into_transpose());
    let error = simulate(uneven, &Plan::new(settings(Protocol::SynSd, 2, 3))).unwrap_err().to_string();
    assert!(error.contains("party 4 has 5 features"), "{error}");
}
