//! The methods. Each sees its own part of M and "the sum of this over the cohort", and nothing of how that is had.
//!
//! One file a kind; what a party does is `run`, and the parties of a run all do the same. M_r has a row for each feature
//! and a column for each of the party's records: M_r ≈ U V_rᵀ.

mod asynchronous;
pub mod leak;
mod limited;
mod local;
mod pooled;
mod sizes;
mod synchronous;

pub use asynchronous::Server;
pub use limited::sketch_size;
pub use local::Local;
pub(crate) use local::{dense_sketch, features_sketch};
pub use sizes::upload_sizes;

use partwise::run::{Amount, Damping, SketchedSolver, Step};
use partwise::{Real, sketch};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::fixed::Part;
use crate::risk::{Accepted, FewRecords};
use crate::session::{ALL, Seen, Session};

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HALS on the pooled matrix, U from the sums of M_r V_r and V_rᵀ V_r.
    Pooled,
    /// Alg. `Syn_SD`: local NMF, U averaged.
    SynSd,
    /// Alg. `Syn_SSD` with U sketched where it is exchanged.
    SynSsdU,
    /// Alg. `Syn_SSD` with V sketched in the U-subproblem.
    SynSsdV,
    /// Alg. `Syn_SSD` with both.
    SynSsdUv,
    /// Alg. `asyn_server` and `asyn_client_SD`.
    AsynSd,
    /// The same with V sketched in the U-subproblem.
    AsynSsdV,
    /// DSANLS on the sums of M_r S_r, for as many iterations as show no record (Sec. 4.1).
    DsanlsLimited,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 8] = [
        Protocol::Pooled,
        Protocol::SynSd,
        Protocol::SynSsdU,
        Protocol::SynSsdV,
        Protocol::SynSsdUv,
        Protocol::AsynSd,
        Protocol::AsynSsdV,
        Protocol::DsanlsLimited,
    ];

    /// Whether parties do not wait for each other.
    pub fn is_asynchronous(self) -> bool {
        matches!(self, Protocol::AsynSd | Protocol::AsynSsdV)
    }

    /// Whether the U-subproblem is sketched over the party's records.
    pub fn sketches_records(self) -> bool {
        use Protocol::*;
        matches!(self, SynSsdV | SynSsdUv | AsynSsdV | DsanlsLimited)
    }

    /// Whether the V-subproblem is sketched over features.
    pub fn sketches_features(self) -> bool {
        matches!(self, Protocol::SynSsdU | Protocol::SynSsdUv)
    }

    /// Whether the method uses a parameter of [`Settings`]. Every parameter that some method ignores is listed here.
    pub fn uses(self, parameter: &str) -> bool {
        match parameter {
            "inner" => !matches!(self, Protocol::Pooled | Protocol::DsanlsLimited),
            "rho" | "speed" => self.is_asynchronous(),
            "tolerance" => !self.is_asynchronous(),
            "sketch" => self.sketches_records() || self.sketches_features(),
            "sketch_records" => self.sketches_records(),
            "sketch_features" => self.sketches_features() || self == Protocol::DsanlsLimited,
            "solver" | "alpha" | "beta" | "step" => self != Protocol::Pooled,
            _ => true,
        }
    }

    /// Local iterations between two exchanges of U, unless asked otherwise: T2, and T of the asynchronous methods.
    pub fn inner(self) -> usize {
        match self {
            Protocol::Pooled | Protocol::DsanlsLimited => 1,
            _ => 2,
        }
    }
}

/// How shares travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregation {
    /// Masked: only sums are seen.
    Secure,
    /// As they are: the paper's exchange, in which the coordinator sees every share.
    Plain,
}

/// All that the parties agree on before a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The method.
    pub protocol: Protocol,
    /// k.
    pub rank: usize,
    /// The public seed, of U's start and of sketches.
    pub seed: u64,
    /// T1: exchanges of U; of the asynchronous methods, exchanges of each group on average.
    pub rounds: usize,
    /// T2 (T of the asynchronous methods): local iterations between two of them.
    pub inner: usize,
    /// ρ of the relaxation weight ω_t = ρ / (ρ + t).
    pub rho: f64,
    /// The kind of sketch.
    pub sketch: sketch::SketchKind,
    /// d: what a party's records are sketched to; a tenth, but at least 4 k, if absent.
    pub sketch_records: Option<Amount>,
    /// d': what the features are sketched to, likewise.
    pub sketch_features: Option<Amount>,
    /// The solver of sketched subproblems.
    pub solver: SketchedSolver,
    /// α of its damping.
    pub alpha: f64,
    /// β of its damping.
    pub beta: f64,
    /// Units of the damping.
    pub step: Step,
    /// Stop when the error moved by no more than this share of itself a round, over 10 rounds.
    pub tolerance: f64,
    /// How shares travel.
    pub aggregation: Aggregation,
    /// c, how many parties are assumed to collude.
    pub colluders: usize,
    /// The risks that were accepted.
    pub accepted: Accepted,
}

impl Settings {
    /// Default rounds at most.
    pub const ROUNDS: usize = 500;
    /// Default relative change of the error at which to stop.
    pub const TOLERANCE: f64 = 1e-5;
    /// Default ρ.
    pub const RHO: f64 = 10.0;

    /// The defaults of a method.
    pub fn new(protocol: Protocol, rank: usize) -> Self {
        let sketch = match protocol {
            // Subsampling would open records.
            Protocol::DsanlsLimited => sketch::SketchKind::Gaussian,
            _ => sketch::SketchKind::Subsample,
        };
        let (alpha, beta) = SketchedSolver::Pcd.damping();
        Settings {
            protocol,
            rank,
            seed: 0,
            rounds: Self::ROUNDS,
            inner: protocol.inner(),
            rho: Self::RHO,
            sketch,
            sketch_records: None,
            sketch_features: None,
            solver: SketchedSolver::Pcd,
            alpha,
            beta,
            step: Step::UnitFree,
            tolerance: Self::TOLERANCE,
            aggregation: Aggregation::Secure,
            colluders: 1,
            accepted: Accepted::default(),
        }
    }

    /// Checks the parameters against each other.
    pub fn check(&self) -> Result<()> {
        for (name, count) in [("--rank", self.rank), ("--rounds", self.rounds), ("--inner", self.inner)] {
            if count == 0 {
                return Err(Error::parameter(name, "0 is too few; give 1 or more"));
            }
        }
        if !(self.rho > 0.0 && self.rho.is_finite()) {
            return Err(Error::parameter(
                "--rho",
                format!("{} is out of range; give a number above 0", self.rho),
            ));
        }
        if let (Protocol::DsanlsLimited, Some(Amount::Share(_))) = (self.protocol, self.sketch_records) {
            return Err(Error::parameter(
                "--sketch-records",
                "dsanls-limited sketches to the same number at every party, and a share depends on how many records it has; \
                 give a number",
            ));
        }
        // The rest is the same as of a sketched run.
        self.of_sketches().check(usize::MAX, usize::MAX)?;
        Ok(())
    }

    /// Refuses the first of the parameters that were given, by name, although the method does not use it.
    pub fn check_given<'a>(&self, given: impl IntoIterator<Item = &'a str>) -> partwise::Result<()> {
        let method = self.protocol;
        // A tolerance of 0 asks for all rounds, which the asynchronous methods do anyway.
        let ignored = |parameter: &&str| {
            !(method.uses(parameter) || *parameter == "tolerance" && self.tolerance == 0.0)
        };
        let Some(unused) = given.into_iter().find(ignored) else { return Ok(()) };
        let users: Vec<Protocol> = Protocol::ALL.into_iter().filter(|method| method.uses(unused)).collect();
        Err(partwise::error::Error::unused(unused, method, &users))
    }

    /// Takes from the solver what was not given of its damping.
    pub fn default_damping(&mut self, given: impl Fn(&str) -> bool) {
        let (alpha, beta) = self.solver.damping();
        if !given("alpha") {
            self.alpha = alpha;
        }
        if !given("beta") {
            self.beta = beta;
        }
    }

    /// How often a run may be done: once more where somebody may leave.
    pub fn attempts(&self) -> usize {
        if self.accepted.going_on_shows_the_leaver { 2 } else { 1 }
    }

    /// The most exchanges of U that a party takes part in at an attempt: of the asynchronous methods a fast group may do all of them.
    pub fn most_rounds(&self, groups: usize) -> usize {
        self.rounds.saturating_mul(groups.max(1))
    }

    /// The same of all attempts.
    pub fn all_rounds(&self, groups: usize) -> usize {
        self.most_rounds(groups).saturating_mul(self.attempts())
    }

    /// d of sketches over so many features.
    fn sketched_features(&self, features: usize) -> usize {
        self.of_sketches().sketch_sizes(features, features).1.min(features)
    }

    /// As the library's drivers have them.
    fn of_sketches(&self) -> partwise::run::Settings {
        partwise::run::Settings {
            algorithm: partwise::run::Algorithm::Dsanls,
            sketch: self.sketch,
            sketch_cols: self.sketch_records,
            sketch_rows: self.sketch_features,
            solver: self.solver,
            alpha: self.alpha,
            beta: self.beta,
            step: self.step,
            tolerance: self.tolerance,
            ..partwise::run::Settings::new(self.rank)
        }
    }

    /// The damping of U's steps, beginning with a mean Gram diagonal of `start`.
    fn damping(&self, start: f64) -> Damping {
        Damping::new(&self.of_sketches(), start)
    }

    /// The run's name, in which all parties must agree.
    pub fn run_hash(&self) -> [u8; 32] {
        // A run with other settings has other masks.
        Sha256::digest(format!("partwise run 1 {self:?}")).into()
    }
}

/// Where `dsanls-limited` draws the sketches of a party's records from: everybody knows it who knows how many there are.
pub(crate) fn limited_sketch(settings: &Settings, party: u16, records: usize) -> sketch::Distribution {
    sketch::Distribution {
        kind: settings.sketch,
        length: records,
        size: limited::sketch_size(settings),
        seed: party_seed(settings.seed, "partwise records", party),
        purpose: partwise::random::Purpose::SketchU,
    }
}

/// A seed of one party, from the run's: for its sketches, which may be known, and in a simulation for its V, which in
/// earnest comes from the operating system.
pub fn party_seed(seed: u64, purpose: &str, party: u16) -> u64 {
    let hash = Sha256::digest([purpose.as_bytes(), &seed.to_le_bytes(), &party.to_le_bytes()].concat());
    u64::from_le_bytes(std::array::from_fn(|i| hash[i]))
}

/// Records of a party at most, as far as the first sum's range goes. Larger counts are summed too, after a vote.
const MOST_RECORDS: f64 = (1u64 << 40) as f64;

/// One line of the error-over-time curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Exchanges of U so far.
    pub round: usize,
    /// Seconds on the run's clock, without error evaluation.
    pub seconds: f64,
    /// Σ ‖M_r − U V_rᵀ‖² over all parties.
    pub squared_error: f64,
    /// Bytes that a party has sent and received so far.
    pub bytes: u64,
}

/// What the parties know together before the first step, from one opened sum.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Common {
    /// ‖M‖².
    pub norm: f64,
    /// Mean entry.
    pub mean: f64,
    /// Records of all.
    pub records: f64,
}

/// How a party's run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// What all know.
    pub common: Common,
    /// The error over rounds; empty for the asynchronous methods, of which the server has it.
    pub trace: Vec<Line>,
    /// Rounds done.
    pub rounds: usize,
    /// Why it ended.
    pub stopped_by: Stop,
    /// Σ ‖M_r − U V_rᵀ‖² over all parties, at the end.
    pub squared_error: f64,
    /// Σ ‖M_r‖² over the parties that are still there.
    pub present_norm: f64,
    /// The party's own ‖M_r − U V_rᵀ‖², which it keeps to itself.
    pub own_squared_error: f64,
    /// The run's clock when the last round ended.
    pub seconds: f64,
    /// If the run was done once more, Σ ‖M_r − U V_rᵀ‖² of the first time and of the second.
    pub attempts: Vec<f64>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// All rounds done.
    Rounds,
    /// The error hardly fell any more.
    Tolerance,
    /// One round more would show a record.
    LeakBudget,
}

/// Notes errors, and says when they hardly fall any more. All parties see the same errors and stop together.
struct Log {
    tolerance: f64,
    /// Rounds of the attempt before.
    before: usize,
    /// Errors of a second attempt may be of fewer parties; this makes them relative to the norm of all.
    scale: f64,
    trace: Vec<Line>,
}

impl Log {
    /// Rounds over which the tolerance is judged.
    const WINDOW: usize = 10;

    fn new(settings: &Settings, common: &Common, before: Option<&Ended>) -> Self {
        Log {
            tolerance: settings.tolerance,
            before: before.map_or(0, |before| before.rounds),
            scale: before.map_or(1.0, |before| common.norm / before.present_norm),
            trace: Vec::new(),
        }
    }

    /// Whether to stop.
    fn note(&mut self, mut line: Line, session: &mut Session<'_>) -> bool {
        line.round += self.before;
        line.squared_error *= self.scale;
        session.see(Seen::Error { round: line.round, squared_error: line.squared_error });
        self.trace.push(line);
        self.is_over()
    }

    fn is_over(&self) -> bool {
        let Some(last) = self.trace.last() else { return false };
        let Some(first) = self.trace.iter().rposition(|past| past.round + Self::WINDOW <= last.round) else {
            return false;
        };
        // The largest and the least of the window: an error that rose and falls again may be where it was before.
        let errors = || self.trace[first..].iter().map(|line| line.squared_error.max(0.0).sqrt());
        let change = errors().fold(0.0, f64::max) - errors().fold(f64::INFINITY, f64::min);
        let rounds = last.round - self.trace[first].round;
        let error = last.squared_error.max(0.0).sqrt();
        self.tolerance > 0.0 && change <= self.tolerance * rounds as f64 * error
    }
}

/// What a party does from joining to leaving. Where somebody was missing in a sum the others have gone on from a U that it
/// had a part in, or not, and may have come to another minimum than without that. Those who are there then do it once
/// more, and keep the better U.
pub fn run<T: Real>(
    settings: &Settings,
    local: &mut Local<T>,
    session: &mut Session<'_>,
    private_seed: u64,
    group: u8,
) -> Result<Ended> {
    let counted = count_records(settings, local, session)?;
    let common = meet(local, session, counted)?;
    session.see(Seen::Norm(common.norm));
    let (first, incomplete, _) = attempt(settings, local, session, private_seed, group, (common, None))?;
    if settings.attempts() == 1 || !incomplete {
        return Ok(first);
    }
    session.see(Seen::Retry);
    session.begin_anew();
    let factors = (std::mem::take(&mut local.u), std::mem::take(&mut local.v));
    // With the V of before, the first sums of both would differ by exactly what whoever left had in them.
    let private_seed = party_seed(private_seed, "partwise anew", session.me());
    let before = (common, Some(&first));
    let (mut ended, _, first_error) = attempt(settings, local, session, private_seed, group, before)?;
    ended.attempts = vec![first_error, ended.squared_error];
    let better = ended.squared_error < first_error || first_error.is_nan();
    if !better {
        (local.u, local.v) = factors;
        ended.squared_error = first_error;
        ended.own_squared_error = first.own_squared_error;
        ended.stopped_by = first.stopped_by;
    }
    ended.trace.splice(0..0, first.trace);
    Ok(ended)
}

/// From the start to a U, by whoever is there. Returns also whether somebody was missing in a sum that anybody saw, and the
/// error of the attempt before over the parties that are there now.
fn attempt<T: Real>(
    settings: &Settings,
    local: &mut Local<T>,
    session: &mut Session<'_>,
    private_seed: u64,
    group: u8,
    (common, before): (Common, Option<&Ended>),
) -> Result<(Ended, bool, f64)> {
    local.start(settings.seed, private_seed, common.mean);
    let mut log = Log::new(settings, &common, before);
    let (rounds, stopped_by) = match settings.protocol {
        Protocol::Pooled => pooled::run(settings, local, session, &mut log)?,
        Protocol::SynSd | Protocol::SynSsdU | Protocol::SynSsdV | Protocol::SynSsdUv => {
            synchronous::run(settings, local, session, &mut log)?
        }
        Protocol::AsynSd | Protocol::AsynSsdV => asynchronous::run(settings, local, session, group)?,
        Protocol::DsanlsLimited => limited::run(settings, local, session, &mut log)?,
    };
    let seconds = session.now();
    if settings.protocol != Protocol::Pooled {
        local.fit_v();
    }
    let own_squared_error = local.squared_error()?;
    let own_before = before.map_or(0.0, |before| before.own_squared_error);
    // Whether somebody was missing, and whether somebody may be missing where it is done once more.
    let flags = [session.incomplete, !session.may_miss()].map(|flag| if flag { 1.0 } else { 0.0 });
    let scalars = [own_squared_error, local.norm(), flags[0], flags[1], own_before];
    let total = session.sum(ALL, "error", vec![Part::scalars(&scalars)])?;
    let &[squared_error, present_norm, missed, must_not, before_error] = &total.parts[0][..] else {
        return Err(session.dishonest("an answer of another size"));
    };
    // Whoever is missing in this last sum only has had its part in U all the same. Where its group would wait for it in vain,
    // what is at hand is better than that.
    let incomplete = missed > 0.5 || session.incomplete && must_not < 0.5;
    let ended = Ended {
        common,
        trace: log.trace,
        rounds: log.before + rounds,
        stopped_by,
        squared_error,
        present_norm,
        own_squared_error,
        seconds,
        attempts: Vec::new(),
    };
    Ok((ended, incomplete, before_error))
}

/// The first sum of every method, of records, and the refusal of too few: nothing else has been sent by then.
fn count_records<T: Real>(
    settings: &Settings,
    local: &Local<T>,
    session: &mut Session<'_>,
) -> Result<Counted> {
    let own = local.records();
    // A range that holds every count: a vote on it would tell about how many the largest party has.
    session.expect(ALL, "records", &[Part::scalars(&[MOST_RECORDS])]);
    let total = session.sum(ALL, "records", vec![Part::scalars(&[own as f64])])?;
    let records = total.parts[0][0].round();
    if let Some(few) = FewRecords::new(settings, (total.parties, records as usize), local.features()) {
        let refused = few.is_certain()
            || session.any(ALL, "flag of few records", few.is_small(own))?
                && session.any(ALL, "flag of many records", few.is_large(own))?;
        if refused {
            return Err(Error::FewRecords { risk: Box::new(few.refused()) });
        }
    }
    Ok(Counted { records, parties: total.parties })
}

/// What follows: the sums of entries and of their squares.
fn meet<T: Real>(local: &Local<T>, session: &mut Session<'_>, counted: Counted) -> Result<Common> {
    let scalars = [local.sum(), local.norm()];
    let total = session.sum(ALL, "norms", vec![Part::scalars(&scalars)])?;
    let (sum, norm) = (total.parts[0][0], total.parts[0][1]);
    // Whoever left in between is taken to have as many records as the others: counted again, they would tell its number.
    let records = counted.records * total.parties as f64 / counted.parties as f64;
    Ok(Common { norm, mean: sum / (records * local.features() as f64), records })
}

/// The records of so many parties together.
struct Counted {
    records: f64,
    parties: usize,
}

/// The sum of the diagonals of V_rᵀV_r over all parties, and how many these are, with V_r fitted once to the start of U: the scale that the weight of
/// U's steps begins with. That of the start itself can be far off where a few records are much larger than the others.
fn first_diagonal<T: Real>(local: &mut Local<T>, session: &mut Session<'_>) -> Result<(f64, usize)> {
    local.sweep_v();
    session.work(local.take_work());
    let total = session.sum(ALL, "V V", vec![Part::scalars(&[local.diagonal()])])?;
    Ok((total.parts[0][0], total.parties))
}

/// The numbers of a factor, for a sum.
fn matrix<T: Real>(factor: &[T], columns: usize) -> Part {
    Part::matrix(factor.iter().map(|value| value.to_f64()).collect(), columns)
}

/// The mean of a summed factor.
fn mean<T: Real>(sum: &[f64], parties: usize) -> Vec<T> {
    sum.iter().map(|value| T::from_f64(value / parties as f64)).collect()
}

#[cfg(test)]
mod tests {
    use partwise::matrix::{Dense, Matrix, Order, Values};
    use partwise::threads::Threads;

    use super::*;
    use crate::aggregation::{Hub, Identity, Party};
    use crate::entropy::entropy;
    use crate::server::{Echo, serve};
    use crate::simulate::cohorts;

    /// What a synchronous run of these parties comes to; nothing of one that vanishes.
    fn run_all(
        settings: &Settings,
        parts: Vec<Matrix<f32>>,
        seed_of: impl Fn(u16) -> u64 + Copy + Send,
        vanishes: Option<(u16, u64)>,
    ) -> Vec<Option<(Ended, Local<f32>)>> {
        let plain = settings.aggregation == Aggregation::Plain;
        let mut rng = entropy().unwrap();
        let identities: Vec<Identity> = parts.iter().map(|_| Identity::new(&mut rng)).collect();
        let keys: Vec<_> = identities.iter().map(Identity::key).collect();
        let cohort = &cohorts(settings, ([1; 32], 0), &keys, &[]).unwrap()[0];
        let count = parts.len();
        let mut links = crate::net::network(count, crate::net::DEFAULT_WAN).into_iter();
        let mut hub_link = links.next().unwrap();
        std::thread::scope(|scope| {
            let hubs = vec![(ALL, Hub::new(cohort.clone(), plain))];
            scope.spawn(move || serve(&mut hub_link, hubs, count, &mut Echo).map(drop));
            let parties =
                (1..).zip(parts).zip(links).zip(identities).map(|(((me, part), link), identity)| {
                    scope.spawn(move || {
                        let machine = Party::new(cohort.clone(), me, identity, plain).unwrap();
                        let machines = vec![(ALL, machine, count)];
                        let mut session = Session::join(link, me, machines, plain, 1.0, None).unwrap();
                        session.vanishes_after =
                            vanishes.filter(|(party, _)| *party == me).map(|(_, sums)| sums);
                        let mut local = Local::new(part, settings, Threads::new(1).unwrap()).unwrap();
                        let ended = run(settings, &mut local, &mut session, seed_of(me), ALL).ok()?;
                        session.leave().unwrap();
                        Some((ended, local))
                    })
                });
            let parties: Vec<_> = parties.collect();
            parties.into_iter().map(|party| party.join().unwrap()).collect()
        })
    }

    /// After somebody has left, the second attempt is the run that the others would have had without it, to the bit; and the
    /// better of both is what they end with.
    #[test]
    fn the_second_attempt_is_an_undisturbed_run_of_those_who_are_there() {
        let part = |party: usize| {
            // The same numbers in another order: the mean that all begin with is the same without any of them.
            let values = (0..600).map(|entry| ((entry * [7, 11, 13, 17, 19][party]) % 600 % 17) as f32);
            Matrix::Dense(Dense::new(20, 30, Order::RowMajor, Values::Real(values.collect())))
        };
        let parts = |count: usize| (0..count).map(part).collect::<Vec<_>>();
        for protocol in [Protocol::Pooled, Protocol::SynSd, Protocol::SynSsdUv, Protocol::DsanlsLimited] {
            let mut settings = Settings { rounds: 12, tolerance: 0.0, ..Settings::new(protocol, 3) };
            settings.accepted.going_on_shows_the_leaver = true;
            // In fixed point the sums of four and of five are rounded differently.
            settings.aggregation = Aggregation::Plain;
            let first_seed = |party: u16| 100 + u64::from(party);
            let anew = |party: u16| party_seed(first_seed(party), "partwise anew", party);
            for sums in [0, 1, 2, 7] {
                let disturbed = run_all(&settings, parts(5), first_seed, Some((5, sums)));
                let undisturbed = run_all(&settings, parts(4), anew, None);
                assert!(disturbed[4].is_none());
                for (end, expected) in disturbed[..4].iter().zip(&undisturbed) {
                    let ((ended, local), expected) = (end.as_ref().unwrap(), expected.as_ref().unwrap());
                    let &[first, second] = &ended.attempts[..] else {
                        panic!("{protocol:?} {sums}: no second")
                    };
                    assert_eq!(second, expected.0.squared_error, "{protocol:?} {sums}");
                    assert_eq!(ended.squared_error, first.min(second), "{protocol:?} {sums}");
                    let same = (local.u == expected.1.u, local.v == expected.1.v);
                    assert_eq!(same, (second < first, second < first), "{protocol:?} {sums}");
                    assert_eq!(local.squared_error().unwrap(), ended.own_squared_error);
                    assert!(ended.trace.last().is_none_or(|line| line.round <= ended.rounds));
                    assert!(ended.trace.is_sorted_by_key(|line| line.round));
                    assert!(ended.rounds > expected.0.rounds, "{protocol:?} {sums}");
                }
            }
            // Nobody was missing.
            assert!(
                run_all(&settings, parts(5), first_seed, None)[0].as_ref().unwrap().0.attempts.is_empty()
            );
        }
    }

    /// Errors that fall are not over, nor are those that rose and come back to where they were; those that stay are.
    #[test]
    fn a_run_is_over_when_the_error_stays() {
        let is_over = |errors: &dyn Fn(usize) -> f64| {
            let line = |round| Line { round, seconds: 0.0, squared_error: errors(round).powi(2), bytes: 0 };
            Log { tolerance: 1e-5, before: 0, scale: 1.0, trace: (1..=11).map(line).collect() }.is_over()
        };
        assert!(is_over(&|_| 0.14));
        assert!(is_over(&|round| 0.14 - 1e-6 * round as f64));
        assert!(!is_over(&|round| 0.14 - 3e-6 * round as f64));
        assert!(!is_over(&|round| if round == 4 { 0.1401 } else { 0.14 }));
    }
}
