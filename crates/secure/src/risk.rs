//! What is refused unless somebody accepts it in as many words: see "what others can learn" in `docs/secure.md`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocol::{Aggregation, Protocol, Settings};

/// Risks that were accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// With two parties, the sum less the own share is the other's share.
    pub two_parties_see_each_other: bool,
    /// Without masks the coordinator sees every party's share, and with few records a share is records.
    pub plain_shares_show_records: bool,
    /// Sums of M_r V_r over many rounds span the records of a party that has fewer of them than there are features.
    pub pooled_sums_show_records: bool,
    /// The sum before somebody left minus the one after is nearly that party's share.
    pub going_on_shows_the_leaver: bool,
    /// A subsampled sketch of M is columns of M.
    pub subsampling_opens_records: bool,
}

/// Refuses what has not been accepted, given how many records each party has.
pub fn check(settings: &Settings, records: &[usize], features: usize) -> Result<()> {
    let accepted = settings.accepted;
    let refuse = |problem: String, cure: &str, flag| Err(Error::Risk { problem, cure: cure.into(), flag });
    let (fewest, party) = records.iter().copied().zip(1..).min().unwrap_or((0, 0));
    if records.len() == 2 && !accepted.two_parties_see_each_other {
        return refuse(
            "with two parties each sees the other's share, since it is the sum less its own".into(),
            "find a third",
            "--accept-that-two-parties-see-each-other",
        );
    }
    let few = settings.rank.saturating_mul(2);
    if settings.aggregation == Aggregation::Plain && fewest < few && !accepted.plain_shares_show_records {
        return refuse(
            format!(
                "without masks the coordinator sees every share, and party {party} has {fewest} records, fewer than 2 k = \
                 {few}, of which a share shows some nearly as they are"
            ),
            "use --aggregation secure",
            "--accept-that-plain-shares-show-records",
        );
    }
    if settings.protocol == Protocol::Pooled && fewest <= features && !accepted.pooled_sums_show_records {
        return refuse(
            format!(
                "party {party} has {fewest} records and there are {features} features: the sums that pooled opens span its \
                 records, so that whether somebody is among them can be told"
            ),
            "choose another protocol",
            "--accept-that-pooled-sums-show-records",
        );
    }
    if settings.protocol == Protocol::DsanlsLimited
        && settings.sketch == partwise::sketch::Kind::Subsample
        && !accepted.subsampling_opens_records
    {
        return refuse(
            "a subsampled sketch of M is columns of M, and opens records at once".into(),
            "choose another --sketch",
            "--accept-that-subsampling-opens-records",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(settings: &Settings, records: &[usize]) -> Option<&'static str> {
        match check(settings, records, 100) {
            Ok(()) => None,
            Err(Error::Risk { flag, .. }) => Some(flag),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn risks_are_refused_until_they_are_accepted() {
        let mut settings = Settings::new(Protocol::SynSd, 10);
        assert_eq!(flag(&settings, &[5, 5, 5]), None);
        assert_eq!(flag(&settings, &[500, 500]), Some("--accept-that-two-parties-see-each-other"));
        settings.accepted.two_parties_see_each_other = true;
        assert_eq!(flag(&settings, &[500, 500]), None);
        settings.aggregation = Aggregation::Plain;
        assert_eq!(flag(&settings, &[20, 20, 20]), None);
        assert_eq!(flag(&settings, &[20, 19, 20]), Some("--accept-that-plain-shares-show-records"));
        settings.accepted.plain_shares_show_records = true;
        assert_eq!(flag(&settings, &[20, 19, 20]), None);
        settings.protocol = Protocol::Pooled;
        assert_eq!(flag(&settings, &[101, 100, 101]), Some("--accept-that-pooled-sums-show-records"));
        assert_eq!(flag(&settings, &[101, 101, 101]), None);
        settings.accepted.pooled_sums_show_records = true;
        assert_eq!(flag(&settings, &[101, 100, 101]), None);
        settings.protocol = Protocol::DsanlsLimited;
        settings.sketch = partwise::sketch::Kind::Subsample;
        assert_eq!(flag(&settings, &[101, 101, 101]), Some("--accept-that-subsampling-opens-records"));
        settings.sketch = partwise::sketch::Kind::Gaussian;
        assert_eq!(flag(&settings, &[101, 101, 101]), None);
    }
}
