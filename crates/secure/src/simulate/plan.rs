//! The parameters of a simulation, and their validation.

use partwise::cancel::Cancel;
use partwise::comm::Network;

use crate::error::{Error, Result};
use crate::net::DEFAULT_WAN;
use crate::protocol::Settings;
use crate::risk;
use crate::safeguards::Safeguards;
use crate::session::NextSum;

/// The parameters of a simulation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The settings on which the parties agree.
    pub settings: Settings,
    /// How many times as long each party takes for the same work; 1 for those that are not named.
    pub slowness: Vec<f64>,
    /// The lines between them and the coordinator.
    pub line: Network,
    /// Threads of each party.
    pub threads: usize,
    /// A party that vanishes.
    pub loses: Option<Vanishing>,
    /// The limits that each party checks by itself.
    pub safeguards: Safeguards,
    /// Stops the simulation at any point.
    pub cancel: Cancel,
}

/// A party that vanishes, to try what the others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vanishing {
    /// Which party.
    pub party: u16,
    /// The number of sums after which the party disconnects.
    pub sums: u64,
}

impl Vanishing {
    /// What a session calls before a sum: the party vanishes when it is time.
    pub(crate) fn hook(self) -> Box<dyn FnMut(NextSum<'_>) -> Result<()> + Send> {
        Box::new(move |next| match next.answered >= self.sums {
            true => Err(Error::Vanished { party: self.party }),
            false => Ok(()),
        })
    }
}

impl Plan {
    /// A plan for parties with one thread each, equal speed and default lines, which check sums but not their
    /// own records.
    pub fn new(settings: Settings) -> Self {
        let (slowness, cancel) = (Vec::new(), Cancel::default());
        let safeguards = Safeguards::of_sums();
        Plan { settings, slowness, line: DEFAULT_WAN, threads: 1, loses: None, safeguards, cancel }
    }

    /// Refuses values out of range and risks that were not accepted, given the number of records of each party.
    pub fn check(&self, records: &[usize], features: usize) -> Result<()> {
        self.settings.check()?;
        let parties = records.len();
        if !(2..=255).contains(&parties) {
            return Err(Error::parameter("parties", format!("{parties} is out of range; give 2 to 255")));
        }
        if let Some(party) = records.iter().position(|count| *count == 0) {
            return Err(Error::parameter(
                "file",
                format!("party {} has no records; leave it out", party + 1),
            ));
        }
        if self.slowness.len() > parties {
            let problem =
                format!("{} speeds for {parties} parties; give at most one per party", self.slowness.len());
            return Err(Error::parameter("speeds", problem));
        }
        if let Some(bad) = self.slowness.iter().find(|slowness| !(**slowness > 0.0 && slowness.is_finite())) {
            return Err(Error::parameter("speeds", format!("{bad} is out of range; give numbers above 0")));
        }
        if let Some(Vanishing { party, .. }) =
            self.loses.filter(|lost| !(1..=parties).contains(&usize::from(lost.party)))
        {
            return Err(Error::parameter("lose", format!("there is no party {party}; give 1 to {parties}")));
        }
        risk::check(&self.settings, records, features)
    }

    pub(super) fn slowness_of(&self, party: u16) -> f64 {
        self.slowness.get(usize::from(party) - 1).copied().unwrap_or(1.0)
    }
}
