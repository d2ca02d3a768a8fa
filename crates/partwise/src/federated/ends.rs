//! The two ends of a federation over the network.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use partwise_core::io::npy;
use partwise_core::{Error as CoreError, Precision, machine};
use partwise_federation::certificates;
use partwise_federation::config::{FederationConfig, PartyConfig};
use partwise_federation::coordinator::{self, CoordinatorOptions};
use partwise_federation::log::EventLog;
use partwise_federation::party::{self, NoHooks, PartyData, PartyOptions};
use partwise_federation::private::make_folder;
use partwise_secure::protocol::Stop;

use crate::error::{Error, Result};
use crate::fit::replace;
use crate::matrix::{Float, Matrix, factor};
use crate::observe::CancelToken;

/// The coordinator, which connects the parties and adds up their masked contributions. It sees sums, but no
/// party's data.
///
/// ```no_run
/// use partwise::Coordinator;
///
/// let outcome = Coordinator::from_file("centre/federation.toml")?.run()?;
/// println!("{:.4} after {} rounds", outcome.relative_error, outcome.rounds);
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Coordinator {
    config: FederationConfig,
    insecure: bool,
    status: Option<SocketAddr>,
}

impl Coordinator {
    /// Creates the coordinator of the federation described by a `federation.toml`.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let config = FederationConfig::read(path.as_ref(), false)?;
        Ok(Coordinator { config, insecure: false, status: None })
    }

    /// Whether to run without certificates and encryption, for trials on one machine. Refused for other
    /// addresses.
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Serves a status page at this address.
    pub fn status_address(mut self, address: SocketAddr) -> Self {
        self.status = Some(address);
        self
    }

    /// Runs until every party has its result.
    pub fn run(self) -> Result<FederationOutcome> {
        let Coordinator { config, insecure, status: status_address } = self;
        let (k, state) = (config.terms.settings.rank, config.state.clone());
        let options = CoordinatorOptions { insecure, status_address, log: Arc::new(EventLog::default()) };
        let outcome = coordinator::run(config, options)?;
        let v = shared_factor(&outcome.factor, &state, [outcome.features, k])?;
        outcome.forget()?;
        let coordinator::FederationOutcome {
            relative_error,
            rounds,
            stopped_by,
            finished,
            missing,
            agreed,
            ..
        } = outcome;
        Ok(FederationOutcome { v, relative_error, rounds, stopped_by, finished, missing, agreed })
    }
}

/// The coordinator's result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FederationOutcome {
    /// V, features x k, which is the same at all parties.
    pub v: Matrix<'static>,
    /// The relative error over all parties.
    pub relative_error: f64,
    /// The number of exchanges.
    pub rounds: usize,
    /// Why the run ended.
    pub stopped_by: Stop,
    /// The names of the parties that have their results.
    pub finished: Vec<String>,
    /// The names of the parties without a result.
    pub missing: Vec<String>,
    /// Whether all parties have the same V.
    pub agreed: bool,
}

/// Reads V from the bytes of an `.npy` file. They come from a party, so they are written to a file in the
/// coordinator's private folder and read like any untrusted file.
fn shared_factor(bytes: &[u8], state: &Path, [features, k]: [usize; 2]) -> Result<Matrix<'static>> {
    let path = state.join("V.npy");
    replace(&path, |file| file.write_all(bytes))?;
    let read = npy::read_array::<f64>(&path, machine::available_memory());
    let _ = std::fs::remove_file(&path);
    let (rows, cols, entries) = read?;
    if (rows, cols) != (features, k) {
        return Err(Error::data(format!(
            "the shared factor that a party sent is not a matrix of {features} x {k}"
        )));
    }
    Ok(factor(rows, cols, entries))
}

/// A party of a federation, with its records.
///
/// ```no_run
/// use partwise::Party;
///
/// let records = partwise::read("records.csv")?; // a row for each record
/// let joined = Party::from_file("hospital/party.toml")?.join(&records, "export of 1 May")?;
/// println!("U: {:?}, V: {:?}", joined.u, joined.v);
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone)]
pub struct Party {
    config: PartyConfig,
    insecure: bool,
    threads: usize,
    precision: Precision,
    cancel: CancelToken,
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {} of {}", self.config.name, self.config.federation)
    }
}

impl Party {
    /// Creates the party described by a `party.toml`.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let config = PartyConfig::read(path.as_ref())?;
        let (threads, cancel) = (machine::cores(), CancelToken::new());
        Ok(Party { config, insecure: false, threads, precision: Precision::F32, cancel })
    }

    /// Creates a folder with a party's keys and its certificate request. Returns the fingerprint of its
    /// identity, which the others pin.
    pub fn make_identity(folder: impl Into<PathBuf>, federation: &str, name: &str) -> Result<String> {
        let folder = folder.into();
        make_folder(&folder).map_err(CoreError::io(&folder))?;
        Ok(certificates::make_request(&folder, federation, name)?.to_string())
    }

    /// Whether to run without certificates and encryption, for trials on one machine. Refused for other
    /// addresses.
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// The number of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The floating-point type of the factors and the arithmetic.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// A token with which another thread can end the run. The party can join again later and resumes.
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Takes part in the run, with the rows of this matrix as records. If its columns have names, they are
    /// compared with those of the other parties without revealing them. `digest` identifies the data, for
    /// example by a hash or a version, so that an interrupted run is not resumed with other data.
    pub fn join(&self, records: &Matrix<'_>, digest: &str) -> Result<Joined> {
        match self.precision {
            Precision::F32 => self.join_in::<f32>(records, digest),
            Precision::F64 => self.join_in::<f64>(records, digest),
        }
    }

    fn join_in<T: Float>(&self, records: &Matrix<'_>, digest: &str) -> Result<Joined> {
        let lent = records.lend::<T>();
        lent.check(records)?;
        let cancel = &self.cancel.0;
        let names = records.col_labels().map(<[String]>::to_vec);
        let joined = cancel.scope(|| {
            let given = PartyData { matrix: lent.turned(cancel), names, digest: digest.into() };
            let options = PartyOptions {
                insecure: self.insecure,
                threads: self.threads,
                hooks: Arc::new(NoHooks),
                log: Arc::new(EventLog::default()),
                cancel: cancel.clone(),
            };
            party::join(&self.config, given, &options)
        })?;
        let k = joined.terms.settings.rank;
        let result = Joined {
            u: factor(joined.records, k, joined.v.clone()),
            v: factor(joined.features, k, joined.u.clone()),
            relative_error: joined.relative_error,
            own_relative_error: joined.own_relative_error,
            rounds: joined.ended.rounds,
            stopped_by: joined.ended.stopped_by,
            parties: joined.terms.roster.iter().map(|member| member.name.clone()).collect(),
        };
        let mut file = Vec::new();
        npy::write(&mut file, joined.features, k, &joined.u).map_err(CoreError::io("the shared factor"))?;
        let parties = joined.terms.roster.len();
        joined.finish(file, parties)?;
        Ok(result)
    }
}

/// A party's result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Joined {
    /// The party's rows of U, records x k, which never leave it.
    pub u: Matrix<'static>,
    /// V, features x k, which is the same at every party.
    pub v: Matrix<'static>,
    /// The relative error over all parties.
    pub relative_error: f64,
    /// The relative error on the party's own records.
    pub own_relative_error: f64,
    /// The number of exchanges.
    pub rounds: usize,
    /// Why the run ended.
    pub stopped_by: Stop,
    /// The names of all parties.
    pub parties: Vec<String>,
}
