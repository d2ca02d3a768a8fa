//! Simulations of all parties in one process.

use partwise_core::Precision;
use partwise_core::machine;
use partwise_core::pipeline::SharedMatrix;
use partwise_secure::protocol::{Aggregation, Protocol, Settings, Stop};
use partwise_secure::split::{Split, parts_until};
use partwise_secure::{PartyOutcome, Plan};

use crate::error::{Error, Result};
use crate::matrix::{Float, Matrix, factor};
use crate::observe::CancelToken;

/// The settings on which the parties of a federation agree.
///
/// ```
/// use partwise::federated::{Federation, Protocol};
///
/// let federation = Federation::new(Protocol::SynSd, 8).parties(4).rounds(50);
/// federation.check()?;
/// assert_eq!(federation.clone().colluders(0).rounds(0).check().unwrap_err().parameter(), Some("rounds"));
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Federation {
    settings: Settings,
    parties: Parties,
    precision: Precision,
    threads: usize,
    cancel: CancelToken,
    given: Vec<&'static str>,
}

/// The assignment of records to parties.
#[derive(Clone, Debug)]
enum Parties {
    Even(usize),
    /// The party of each record, from 0.
    Of(Vec<usize>),
}

/// A risk that must be accepted explicitly; the guide's page on privacy explains each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Risk {
    /// With two parties, the sum minus one's own contribution is the other's contribution.
    TwoPartiesSeeEachOther,
    /// Without masks, the coordinator sees every party's contribution.
    PlainSharesShowRecords,
    /// Sums over many rounds span the records of a party that has few of them.
    PooledSumsShowRecords,
    /// The sum before a party left minus the one after is nearly that party's contribution.
    GoingOnShowsTheLeaver,
    /// A subsampled sketch of M consists of columns of M.
    SubsamplingOpensRecords,
    /// Sums over few records reveal who is among them.
    FewRecordsShowInSums,
}

impl Federation {
    /// A federation with this protocol and number of components, and the protocol's defaults.
    pub fn new(protocol: Protocol, components: usize) -> Self {
        Federation {
            settings: Settings::new(protocol, components),
            parties: Parties::Even(5),
            precision: Precision::F32,
            threads: 1,
            cancel: CancelToken::new(),
            given: Vec::new(),
        }
    }

    fn set(mut self, name: &'static str, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.given.push(name);
        self
    }

    /// Sets the number of parties. The records are distributed evenly, in their order.
    pub fn parties(mut self, parties: usize) -> Self {
        self.parties = Parties::Even(parties);
        self
    }

    /// Sets the party of each record, from 0.
    pub fn party_of_each_record(mut self, parties: Vec<usize>) -> Self {
        self.parties = Parties::Of(parties);
        self
    }

    /// Sets the public seed.
    pub fn seed(self, seed: u64) -> Self {
        self.set("seed", |settings| settings.seed = seed)
    }

    /// Sets the maximum number of exchanges.
    pub fn rounds(self, rounds: usize) -> Self {
        self.set("rounds", |settings| settings.rounds = rounds)
    }

    /// Sets the number of local iterations between two exchanges.
    pub fn inner(self, inner: usize) -> Self {
        self.set("inner", |settings| settings.inner = inner)
    }

    /// Stops when the relative change of the error per round is at most this, over ten rounds.
    pub fn tolerance(self, tolerance: f64) -> Self {
        self.set("tolerance", |settings| settings.tolerance = tolerance)
    }

    /// Sets the protection of contributions; by default they are masked.
    pub fn aggregation(self, aggregation: Aggregation) -> Self {
        self.set("aggregation", |settings| settings.aggregation = aggregation)
    }

    /// Sets the number of parties that are assumed to collude.
    pub fn colluders(self, colluders: usize) -> Self {
        self.set("colluders", |settings| settings.colluders = colluders)
    }

    /// Accepts a risk.
    pub fn accept(mut self, risk: Risk) -> Self {
        let accepted = &mut self.settings.accepted;
        *match risk {
            Risk::TwoPartiesSeeEachOther => &mut accepted.two_parties_see_each_other,
            Risk::PlainSharesShowRecords => &mut accepted.plain_shares_show_records,
            Risk::PooledSumsShowRecords => &mut accepted.pooled_sums_show_records,
            Risk::GoingOnShowsTheLeaver => &mut accepted.going_on_shows_the_leaver,
            Risk::SubsamplingOpensRecords => &mut accepted.subsampling_opens_records,
            Risk::FewRecordsShowInSums => &mut accepted.few_records_show_in_sums,
        } = true;
        self
    }

    /// Sets the floating-point type of the factors and the arithmetic.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Sets the number of threads of each party.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets a token with which another thread can end the simulation, without a result.
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Checks that all parameters are in range, consistent, and used by the protocol.
    pub fn check(&self) -> Result<()> {
        self.settings.check()?;
        Ok(self.settings.check_given(self.given.iter().copied())?)
    }

    /// The records of each party.
    fn deal(&self, records: usize) -> Result<Vec<Vec<usize>>> {
        match &self.parties {
            Parties::Even(parties) => Ok(Split::Uniform.deal(records, *parties)),
            Parties::Of(parties) if parties.len() == records => {
                let count = parties.iter().max().map_or(0, |last| last + 1);
                let of = |party| (0..records).filter(|&record| parties[record] == party).collect();
                Ok((0..count.min(records + 1)).map(of).collect())
            }
            Parties::Of(parties) => {
                let problem = format!("there are {} for {records} records; give one for each", parties.len());
                Err(Error::of_parameter("parties", problem))
            }
        }
    }
}

/// The result of a simulated federation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Simulated {
    /// The result of each party.
    pub parties: Vec<PartyFactors>,
    /// The relative error over all parties.
    pub relative_error: f64,
    /// The number of exchanges.
    pub rounds: usize,
    /// Why the run ended.
    pub stopped_by: Stop,
    /// Seconds on the simulated clock.
    pub seconds: f64,
    /// The mean number of bytes that a party sent and received.
    pub bytes_per_party: u64,
    /// The relative error over all parties after each round.
    pub errors: Vec<f64>,
}

/// The result of one party.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartyFactors {
    /// The party's rows of U, records x k, which in a real federation never leave it.
    pub u: Matrix<'static>,
    /// V, features x k, which is the same at every party.
    pub v: Matrix<'static>,
    /// ‖M_r − U_r Vᵀ‖ / ‖M_r‖ on the party's own records.
    pub relative_error: f64,
}

/// Simulates all parties of a federation in this process. The rows of the matrix are records.
///
/// ```
/// use partwise::federated::{Federation, Protocol};
/// use partwise::{Matrix, simulate};
///
/// let m = Matrix::from_vec(300, 4, (0..1200).map(|i| ((i * i) % 11) as f64).collect())?;
/// let ended = simulate(&m, &Federation::new(Protocol::SynSd, 2).parties(3).rounds(4))?;
/// assert_eq!((ended.parties.len(), ended.parties[0].u.rows()), (3, 100));
/// assert_eq!(ended.parties[0].v, ended.parties[2].v);
/// # Ok::<(), partwise::Error>(())
/// ```
pub fn simulate(matrix: &Matrix<'_>, federation: &Federation) -> Result<Simulated> {
    federation.check()?;
    match federation.precision {
        Precision::F32 => simulate_in::<f32>(matrix, federation),
        Precision::F64 => simulate_in::<f64>(matrix, federation),
    }
}

fn simulate_in<T: Float>(matrix: &Matrix<'_>, federation: &Federation) -> Result<Simulated> {
    let features = matrix.cols();
    let k = federation.settings.rank;
    if federation.threads == 0 || federation.threads > 64 * machine::cores() {
        return Err(Error::of_parameter("threads", format!("{} is out of range", federation.threads)));
    }
    let lent = matrix.lend::<T>();
    lent.check(matrix)?;
    let dealt = federation.deal(matrix.rows())?;
    let cancel = &federation.cancel.0;
    let outcome = cancel.scope(|| {
        let settings = federation.settings.clone();
        let plan = Plan { cancel: cancel.clone(), threads: federation.threads, ..Plan::new(settings) };
        let parts = parts_until(&lent.matrix(cancel), &dealt, cancel)?;
        partwise_secure::simulate(parts, &plan)
    })?;
    // No party disconnects unless a plan requests it.
    let parties = outcome.parties.iter().flatten().map(|party| factors_of(party, features, k)).collect();
    Ok(Simulated {
        parties,
        relative_error: outcome.relative_error,
        rounds: outcome.rounds,
        stopped_by: outcome.stopped_by,
        seconds: outcome.seconds,
        bytes_per_party: outcome.cost.bytes_per_party,
        errors: outcome.trace.iter().map(|line| line.relative_error).collect(),
    })
}

/// In the protocols, U belongs to the features; here it belongs to the rows, which are records.
fn factors_of<T: Float>(party: &PartyOutcome<T>, features: usize, k: usize) -> PartyFactors {
    PartyFactors {
        u: factor(party.records, k, party.v.clone()),
        v: factor(features, k, party.u.clone()),
        relative_error: party.relative_error,
    }
}
