//! Checks before a party joins: its files, and whether its data may be used under the terms.

use partwise::Real;
use partwise::wording::Wording;
use partwise_secure::{Error as SecureError, risk};

use super::books::Books;
use super::connection::{Connection, ConnectionEvent};
use super::{PartyData, PartyOptions};
use crate::agreement::Terms;
use crate::certificates::read_identity;
use crate::config::PartyConfig;
use crate::error::{Error, Result};
use crate::text::{Fingerprint, unix_seconds};

/// A larger difference between clocks is reported, because certificates depend on them.
const MAX_CLOCK_DIFFERENCE: f64 = 60.0;

/// The message for clocks that differ by this many seconds, if it is too much.
pub(super) fn clock_problem(apart: f64) -> Option<String> {
    (apart.abs() > MAX_CLOCK_DIFFERENCE).then(|| format!("the clocks differ by {apart:.0} s"))
}

/// Checks the configuration, the certificates, the clock, the connection and the data, and shares nothing.
pub fn check<T: Real>(
    party: &PartyConfig,
    given: &PartyData<T>,
    options: &PartyOptions,
) -> Result<Vec<Wording>> {
    let mut said = Vec::new();
    let identity = read_identity(&party.identity)?;
    let own = Fingerprint::of(identity.key().bytes());
    said.push(format!("configuration: {} of {}, identity {own}", party.name, party.federation).into());
    let connection = Connection::new(party, options, None)?;
    said.push(match options.insecure {
        true => Wording::new("certificates: none (").field("insecure").text(")"),
        false => "certificates: valid, as far as this party can check".into(),
    });
    let terms = loop {
        match connection.next(None) {
            Some(ConnectionEvent::Welcome { terms, time, .. }) => {
                said.push(format!("connection: {} answers", party.coordinator).into());
                if let Some(problem) = clock_problem(unix_seconds() - time) {
                    let problem = format!("{problem}; correct them");
                    return Err(Error::Network { what: party.coordinator.clone(), problem });
                }
                said.push(format!("clock: within {MAX_CLOCK_DIFFERENCE:.0} s of the coordinator's").into());
                break terms;
            }
            Some(ConnectionEvent::Failed(error)) => return Err(error),
            _ => {}
        }
    };
    party.accept(&terms, &own)?;
    said.push("policy: the proposed settings are allowed".into());
    check_data(party, &terms, given, &own)?;
    Books::check(party, &given.matrix, &terms)?;
    said.push(format!("data: {} records of {} features", given.matrix.cols(), given.matrix.rows()).into());
    Ok(said)
}

/// Checks the data against the terms.
pub(super) fn check_data<T: Real>(
    party: &PartyConfig,
    terms: &Terms,
    given: &PartyData<T>,
    own: &Fingerprint,
) -> Result<()> {
    let place = party.accept(terms, own)?;
    let (features, records) = (given.matrix.rows(), given.matrix.cols());
    if let Some(names) = given.names.as_ref().filter(|names| names.len() != features) {
        let problem = format!("{} names for {features} features; give one per feature", names.len());
        return Err(Error::State { problem });
    }
    // Lengths in journals have 32 bits, and allocations must be limited.
    let rank = terms.settings.rank;
    if rank.saturating_mul(rank).saturating_mul(8).max(terms.longest_answer(features)) > u32::MAX as usize {
        let problem =
            format!("{rank} components of {features} features are more than 4 GiB; choose a smaller rank");
        return Err(Error::State { problem });
    }
    // The other parties' counts are unknown here: this party's own must be enough, and the total is checked as the
    // first sum of the run.
    let mut counts = vec![usize::MAX; terms.roster.len()];
    counts[usize::from(place) - 1] = records;
    risk::check(&terms.settings, &counts, features).map_err(refusal)
}

/// The error for a risk that was not accepted, with the way to accept it in federations.
pub(super) fn refusal(error: SecureError) -> Error {
    match error {
        SecureError::Risk { problem, cure, accept } => {
            Error::Risk { problem, cure, accept: accept.replace('_', "-") }
        }
        SecureError::FewRecords { risk } => refusal(*risk),
        error => error.into(),
    }
}
