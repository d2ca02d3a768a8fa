//! What is refused unless somebody accepts it in as many words. The bounds follow the measurements in `docs/privacy.md`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocol::{Aggregation, Protocol, Settings};
use crate::simulate::group_count;

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
    /// Sums over few records show who is among them, whatever the protocol.
    #[serde(default)]
    pub few_records_show_in_sums: bool,
}

/// The records that a sum still hides from c parties that subtract theirs: those of all but the c largest. Of an
/// asynchronous method sums are over groups, which are by speed: at worst the smallest parties are one.
pub fn hidden(settings: &Settings, records: &[usize]) -> usize {
    let mut counts = records.to_vec();
    counts.sort_unstable();
    let summed = match settings.protocol.is_asynchronous() {
        true => counts.len() / group_count(settings, counts.len()),
        false => counts.len(),
    };
    let rest = summed.saturating_sub(settings.colluders);
    counts[..rest].iter().fold(0, |sum: usize, count| sum.saturating_add(*count))
}

/// Fewer records than this show in sums of every protocol.
pub fn few(features: usize) -> usize {
    features.div_ceil(2)
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
    let plain = settings.aggregation == Aggregation::Plain;
    let enough = match settings.protocol {
        // M_r S_r and M_r V_r, as they are, are of the records' span.
        Protocol::DsanlsLimited | Protocol::Pooled => features.max(settings.rank).saturating_mul(2),
        _ => settings.rank.saturating_mul(2).max(features),
    };
    // Done once more without it, the sums of the same sketches differ by exactly what a leaver had in them.
    let leavers = settings.protocol == Protocol::DsanlsLimited && accepted.going_on_shows_the_leaver;
    if leavers && !plain && fewest < enough && !accepted.plain_shares_show_records {
        return refuse(
            format!(
                "whoever leaves is shown as without masks, and party {party} has {fewest} records, fewer than {enough}, of \
                 which that shows some nearly as they are or who is among them"
            ),
            "let the others wait",
            "--accept-that-plain-shares-show-records",
        );
    }
    if plain && fewest < enough && !accepted.plain_shares_show_records {
        return refuse(
            format!(
                "without masks the coordinator sees every share, and party {party} has {fewest} records, fewer than \
                 {enough}, of which a share shows some nearly as they are or who is among them"
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
    let hidden = hidden(settings, records);
    if !plain
        && settings.protocol != Protocol::Pooled
        && hidden < few(features)
        && !accepted.few_records_show_in_sums
    {
        return refuse(
            format!(
                "sums are over {hidden} records, less those of {} colluding, and there are {features} features: with fewer \
                 than half as many, whether somebody is among them can be told from the sums of any protocol",
                settings.colluders
            ),
            "find more records, or merge or leave out rare features",
            "--accept-that-few-records-show-in-sums",
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
        // 100 features; one of the three may collude.
        assert_eq!(flag(&settings, &[24, 26, 25]), Some("--accept-that-few-records-show-in-sums"));
        assert_eq!(flag(&settings, &[24, 500, 25]), Some("--accept-that-few-records-show-in-sums"));
        assert_eq!(flag(&settings, &[25, 26, 25]), None);
        assert_eq!(flag(&settings, &[usize::MAX, 5, usize::MAX]), None);
        // Six parties are two groups of three, of which one may collude; five are one group.
        let groups = Settings::new(Protocol::AsynSd, 10);
        assert_eq!(flag(&groups, &[24; 6]), Some("--accept-that-few-records-show-in-sums"));
        assert_eq!(flag(&settings, &[24; 6]), None);
        assert_eq!(flag(&groups, &[24; 5]), None);
        assert_eq!(flag(&groups, &[25; 6]), None);
        assert_eq!(
            flag(&groups, &[500, 24, 500, 24, 500, 500]),
            Some("--accept-that-few-records-show-in-sums")
        );
        settings.accepted.few_records_show_in_sums = true;
        assert_eq!(flag(&settings, &[5, 5, 5]), None);
        assert_eq!(flag(&settings, &[500, 500]), Some("--accept-that-two-parties-see-each-other"));
        settings.accepted.two_parties_see_each_other = true;
        assert_eq!(flag(&settings, &[500, 500]), None);
        settings.aggregation = Aggregation::Plain;
        assert_eq!(flag(&settings, &[100, 100, 100]), None);
        assert_eq!(flag(&settings, &[100, 99, 100]), Some("--accept-that-plain-shares-show-records"));
        settings.rank = 60;
        assert_eq!(flag(&settings, &[119, 120, 120]), Some("--accept-that-plain-shares-show-records"));
        assert_eq!(flag(&settings, &[120, 120, 120]), None);
        for protocol in [Protocol::DsanlsLimited, Protocol::Pooled] {
            let opens = Settings { aggregation: Aggregation::Plain, ..Settings::new(protocol, 10) };
            assert_eq!(flag(&opens, &[200, 199, 200]), Some("--accept-that-plain-shares-show-records"));
            assert_eq!(flag(&opens, &[200, 200, 200]), None);
        }
        settings.rank = 10;
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
        let mut leaving = Settings::new(Protocol::DsanlsLimited, 10);
        assert_eq!(flag(&leaving, &[199; 5]), None);
        leaving.accepted.going_on_shows_the_leaver = true;
        assert_eq!(flag(&leaving, &[199; 5]), Some("--accept-that-plain-shares-show-records"));
        assert_eq!(flag(&leaving, &[200; 5]), None);
    }
}
