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
    let rest = counted(settings, counts.len());
    counts[..rest].iter().fold(0, |sum: usize, count| sum.saturating_add(*count))
}

/// How many of so many parties are left in the smallest sum when c of them subtract their shares.
fn counted(settings: &Settings, parties: usize) -> usize {
    let summed = match settings.protocol.is_asynchronous() {
        true => parties / group_count(settings, parties),
        false => parties,
    };
    summed.saturating_sub(settings.colluders)
}

/// Whether few records are refused: without masks, and by `pooled`, it is each party's own count that matters.
fn guards_few(settings: &Settings) -> bool {
    settings.aggregation != Aggregation::Plain
        && settings.protocol != Protocol::Pooled
        && !settings.accepted.few_records_show_in_sums
}

/// The refusal of few records between parties of which each knows its own count and the sum of all counts, and nothing
/// else. What [`hidden`] counts, the records of the smallest `rest` parties, is at least `rest` times the smallest count,
/// and at least the sum less the largest count times the number of the other parties. Where neither is enough the run is
/// refused: never less than by [`check`], with c = 1 just as by it, and with more colluders in some cases more.
pub(crate) struct FewRecords {
    needed: usize,
    rest: usize,
    parties: usize,
    total: usize,
    features: usize,
    colluders: usize,
}

impl FewRecords {
    /// The refusal after the sum of so many parties' counts was opened, where there is one.
    pub fn new(settings: &Settings, (parties, total): (usize, usize), features: usize) -> Option<Self> {
        let (needed, rest, colluders) = (few(features), counted(settings, parties), settings.colluders);
        guards_few(settings).then_some(FewRecords { needed, rest, parties, total, features, colluders })
    }

    /// Whether the sum alone says that there are too few, however they are shared out.
    pub fn is_certain(&self) -> bool {
        self.total.saturating_mul(self.rest) < self.needed.saturating_mul(self.parties)
    }

    /// Whether a party with so many records is too small for all others to be of its size.
    pub fn is_small(&self, own: usize) -> bool {
        own.saturating_mul(self.rest) < self.needed
    }

    /// Whether a party with so many records is too large for the others, as many as collude, to be of its size.
    pub fn is_large(&self, own: usize) -> bool {
        let others = own.saturating_mul(self.parties - self.rest);
        self.total < others.saturating_add(self.needed)
    }

    /// The refusal.
    pub fn refused(&self) -> Error {
        few_records(
            format!("{} parties have {} records together", self.parties, self.total),
            (self.colluders, self.features),
        )
    }
}

fn few_records(who: String, (colluders, features): (usize, usize)) -> Error {
    Error::Risk {
        problem: format!(
            "{who}, and there are {features} features: where a sum is over fewer records than half the features, without \
             those of the parties that may collude ({colluders}), whether somebody is among them can be told from the sums \
             of any protocol"
        ),
        cure: "find more records, or merge or leave out rare features".into(),
        flag: "--accept-that-few-records-show-in-sums",
    }
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
    if guards_few(settings) && hidden < few(features) {
        let who = format!("sums are over {hidden} records that colluding parties cannot subtract");
        return Err(few_records(who, (settings.colluders, features)));
    }
    if settings.protocol == Protocol::DsanlsLimited
        && settings.sketch == partwise::sketch::SketchKind::Subsample
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
    use partwise::random::{Purpose, stream, uniform};

    fn flag(settings: &Settings, records: &[usize]) -> Option<&'static str> {
        match check(settings, records, 100) {
            Ok(()) => None,
            Err(Error::Risk { flag, .. }) => Some(flag),
            Err(error) => panic!("{error}"),
        }
    }

    /// What parties refuse that know the sum of the counts and their own: all that is refused where all counts are known,
    /// and with one colluder nothing else.
    #[test]
    fn few_records_are_refused_by_the_sum_of_counts_as_by_the_counts() {
        let mut rng = stream(7, Purpose::Fill, 0, 0);
        let mut seen = [[0; 2]; 2];
        for case in 0..4000 {
            let parties = 3 + case % 7;
            let protocol = [Protocol::SynSd, Protocol::AsynSd][case % 2];
            let colluders = (1 + case % 3).min(parties - 2);
            let settings = Settings { colluders, ..Settings::new(protocol, 10) };
            let spread = 1.0 + 4.0 * uniform(&mut rng);
            let count = |_| (60.0 * uniform(&mut rng).powf(spread)) as usize + 1;
            let records: Vec<usize> = (0..parties).map(count).collect();
            let total: usize = records.iter().sum();
            let few = FewRecords::new(&settings, (parties, total), 100).unwrap();
            let any = |is: fn(&FewRecords, usize) -> bool| records.iter().any(|&own| is(&few, own));
            let refused = few.is_certain() || any(FewRecords::is_small) && any(FewRecords::is_large);
            let expected = flag(&settings, &records).is_some();
            assert!(refused || !expected, "{settings:?} {records:?}");
            if colluders == 1 && protocol == Protocol::SynSd {
                assert_eq!(refused, expected, "{records:?}");
            }
            seen[usize::from(refused)][usize::from(expected)] += 1;
        }
        // Both happen, and what is refused beyond need is rare.
        assert!(seen[0][0] > 500 && seen[1][1] > 500 && seen[1][0] < 1000, "{seen:?}");
        let mut accepted = Settings::new(Protocol::SynSd, 10);
        accepted.accepted.few_records_show_in_sums = true;
        assert!(FewRecords::new(&accepted, (3, 15), 100).is_none());
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
        settings.sketch = partwise::sketch::SketchKind::Subsample;
        assert_eq!(flag(&settings, &[101, 101, 101]), Some("--accept-that-subsampling-opens-records"));
        settings.sketch = partwise::sketch::SketchKind::Gaussian;
        assert_eq!(flag(&settings, &[101, 101, 101]), None);
        let mut leaving = Settings::new(Protocol::DsanlsLimited, 10);
        assert_eq!(flag(&leaving, &[199; 5]), None);
        leaving.accepted.going_on_shows_the_leaver = true;
        assert_eq!(flag(&leaving, &[199; 5]), Some("--accept-that-plain-shares-show-records"));
        assert_eq!(flag(&leaving, &[200; 5]), None);
    }
}
