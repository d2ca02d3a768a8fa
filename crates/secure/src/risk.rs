//! Settings that are refused unless their risk is accepted. The bounds follow the measurements in
//! `docs/privacy.md`.

use partwise::wording::Wording;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocol::{Aggregation, Settings};
use crate::simulate::group_count;

/// Risks that were accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// With two parties, the sum minus the own share is the other party's share.
    pub two_parties_see_each_other: bool,
    /// Without masks the coordinator sees every party's share, and with few records a share is records.
    pub plain_shares_show_records: bool,
    /// Sums of M_r V_r over many rounds span the records of a party that has fewer of them than there are features.
    pub pooled_sums_show_records: bool,
    /// The sum before a party left minus the one after is nearly that party's share.
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

/// The number of parties that remain in the smallest sum after c colluding parties subtract their contributions.
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
        && settings.protocol.definition().hides_in_the_crowd()
        && !settings.accepted.few_records_show_in_sums
}

/// Refuses few records between parties of which each knows only its own count and the sum of all counts. What
/// [`hidden`] counts, the records of the smallest `rest` parties, is at least `rest` times the smallest count, and
/// at least the sum minus the largest count times the number of the other parties. If neither is enough, the run is
/// refused: never less than by [`check`], with c = 1 exactly as by it, and with more colluders in some cases more.
pub(crate) struct FewRecords {
    needed: usize,
    rest: usize,
    features: usize,
    colluders: usize,
}

/// The counts of records that were opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedCounts {
    /// The number of parties in the sum.
    pub parties: usize,
    /// The records of these parties together.
    pub records: usize,
}

impl FewRecords {
    /// The criterion for this many parties; `None` if few records are accepted.
    pub fn new(settings: &Settings, parties: usize, features: usize) -> Option<Self> {
        let (needed, rest, colluders) = (few(features), counted(settings, parties), settings.colluders);
        guards_few(settings).then_some(FewRecords { needed, rest, features, colluders })
    }

    /// Whether there would be too few records if all other parties were as small as this one. If this holds for no
    /// party, nothing is refused.
    pub fn is_small(&self, own: usize) -> bool {
        own.saturating_mul(self.rest) < self.needed
    }

    /// Whether the total alone shows that there are too few records, for any distribution over the parties.
    pub fn is_certain(&self, opened: OpenedCounts) -> bool {
        opened.records.saturating_mul(self.rest) < self.needed.saturating_mul(opened.parties)
    }

    /// Whether there may be too few records because all parties outside of the smallest ones could be as large as this.
    pub fn is_large(&self, own: usize, opened: OpenedCounts) -> bool {
        let others = own.saturating_mul(opened.parties.saturating_sub(self.rest));
        opened.records < others.saturating_add(self.needed)
    }

    /// The error for too few records.
    pub fn refused(&self, opened: OpenedCounts) -> Error {
        let who = format!("{} parties have {} records together", opened.parties, opened.records);
        few_records(&who, self.colluders, self.features)
    }
}

fn few_records(who: &str, colluders: usize, features: usize) -> Error {
    Error::Risk {
        problem: format!(
            "{who} for {features} features: without the records of the parties that may collude ({colluders}), a sum \
             covers fewer records than half the number of features, so membership can be inferred from the sums of \
             any protocol"
        ),
        cure: "find more records, or merge or remove rare features".into(),
        accept: "few_records_show_in_sums",
    }
}

/// The number of records below which sums of every protocol reveal some of them.
pub fn few(features: usize) -> usize {
    features.div_ceil(2)
}

/// Refuses risks that were not accepted, given the number of records of each party.
pub fn check(settings: &Settings, records: &[usize], features: usize) -> Result<()> {
    let exposure = Exposure { settings, records, features };
    let of_protocol = settings.protocol.definition().risks(&exposure);
    let mut risks = std::iter::once(exposure.two_parties()).chain(of_protocol).flatten();
    risks.next().map_or(Ok(()), Err)
}

/// What a run discloses, and about how many records. Each risk is an [`Error::Risk`], unless it is accepted or does
/// not apply.
pub(crate) struct Exposure<'a> {
    pub settings: &'a Settings,
    /// The number of records of each party.
    pub records: &'a [usize],
    pub features: usize,
}

/// The party with the fewest records.
struct Smallest {
    party: usize,
    records: usize,
}

impl Exposure<'_> {
    fn accepted(&self) -> &Accepted {
        &self.settings.accepted
    }

    fn is_plain(&self) -> bool {
        self.settings.aggregation == Aggregation::Plain
    }

    fn smallest(&self) -> Smallest {
        let fewest = self.records.iter().copied().zip(1..).min();
        fewest.map_or(Smallest { party: 0, records: 0 }, |(records, party)| Smallest { party, records })
    }

    /// The number of records from which a contribution reveals none of them.
    fn enough(&self) -> usize {
        self.settings.protocol.definition().enough_records(self.settings, self.features)
    }

    /// With two parties, the sum minus the own share is the other party's share.
    fn two_parties(&self) -> Option<Error> {
        (self.records.len() == 2 && !self.accepted().two_parties_see_each_other).then(|| Error::Risk {
            problem: "with two parties each can compute the other's contribution by subtracting its own from the sum".into(),
            cure: "find a third".into(),
            accept: "two_parties_see_each_other",
        })
    }

    /// If the run is repeated without a leaver, the sums of the same sketches differ by exactly its share.
    pub fn leaver(&self) -> Option<Error> {
        let (Smallest { party, records }, enough) = (self.smallest(), self.enough());
        let shown = self.accepted().going_on_shows_the_leaver && !self.is_plain() && records < enough;
        (shown && !self.accepted().plain_shares_show_records).then(|| Error::Risk {
            problem: format!(
                "a party that leaves loses its masks, and party {party} has {records} records, fewer than {enough}, \
                 so its contribution reveals some of them or who is among them"
            ),
            cure: "let the others wait".into(),
            accept: "plain_shares_show_records",
        })
    }

    /// Without masks the coordinator sees every party's share, and with few records a share is records.
    pub fn plain_shares(&self) -> Option<Error> {
        let (Smallest { party, records }, enough) = (self.smallest(), self.enough());
        let shown = self.is_plain() && records < enough;
        (shown && !self.accepted().plain_shares_show_records).then(|| Error::Risk {
            problem: format!(
                "without masks the coordinator sees every contribution, and party {party} has {records} records, \
                 fewer than {enough}, so its contribution reveals some of them or who is among them"
            ),
            cure: Wording::new("use ").choice("aggregation", "secure"),
            accept: "plain_shares_show_records",
        })
    }

    /// Sums of M_r V_r over many rounds span the records of a party that has fewer of them than there are features.
    pub fn pooled_span(&self) -> Option<Error> {
        let (Smallest { party, records }, features) = (self.smallest(), self.features);
        (records <= features && !self.accepted().pooled_sums_show_records).then(|| Error::Risk {
            problem: format!(
                "party {party} has {records} records for {features} features: the sums that {} opens span its records, so \
                 membership can be inferred",
                self.settings.protocol.name()
            ),
            cure: "choose another protocol".into(),
            accept: "pooled_sums_show_records",
        })
    }

    /// Sums over few records show who is among them, whatever the protocol.
    pub fn few_records(&self) -> Option<Error> {
        let hidden = hidden(self.settings, self.records);
        (guards_few(self.settings) && hidden < few(self.features)).then(|| {
            let who = format!("sums are over {hidden} records that colluding parties cannot subtract");
            few_records(&who, self.settings.colluders, self.features)
        })
    }

    /// A subsampled sketch of M is columns of M.
    pub fn subsampled_records(&self) -> Option<Error> {
        let subsampled = self.settings.sketch.picks_columns();
        (subsampled && !self.accepted().subsampling_opens_records).then(|| Error::Risk {
            problem: "a subsampled sketch of M consists of columns of M and reveals records directly".into(),
            cure: Wording::new("choose another ").field("sketch"),
            accept: "subsampling_opens_records",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;
    use partwise::random::{Purpose, stream, uniform};

    fn accepted_by(settings: &Settings, records: &[usize]) -> Option<&'static str> {
        match check(settings, records, 100) {
            Ok(()) => None,
            Err(Error::Risk { accept, .. }) => Some(accept),
            Err(error) => panic!("{error}"),
        }
    }

    /// Parties that know only the sum of the counts and their own refuse everything that is refused if all counts
    /// are known, and with one colluder nothing else.
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
            let few = FewRecords::new(&settings, parties, 100).unwrap();
            let opened = OpenedCounts { parties, records: total };
            let any = |is: &dyn Fn(usize) -> bool| records.iter().any(|&own| is(own));
            let is_small = any(&|own| few.is_small(own));
            assert!(is_small || !few.is_certain(opened));
            let refused = is_small && (few.is_certain(opened) || any(&|own| few.is_large(own, opened)));
            let expected = accepted_by(&settings, &records).is_some();
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
        assert!(FewRecords::new(&accepted, 3, 100).is_none());
    }

    #[test]
    fn risks_are_refused_until_they_are_accepted() {
        let mut settings = Settings::new(Protocol::SynSd, 10);
        // 100 features; one of the three may collude.
        assert_eq!(accepted_by(&settings, &[24, 26, 25]), Some("few_records_show_in_sums"));
        assert_eq!(accepted_by(&settings, &[24, 500, 25]), Some("few_records_show_in_sums"));
        assert_eq!(accepted_by(&settings, &[25, 26, 25]), None);
        assert_eq!(accepted_by(&settings, &[usize::MAX, 5, usize::MAX]), None);
        // Six parties are two groups of three, of which one may collude; five are one group.
        let groups = Settings::new(Protocol::AsynSd, 10);
        assert_eq!(accepted_by(&groups, &[24; 6]), Some("few_records_show_in_sums"));
        assert_eq!(accepted_by(&settings, &[24; 6]), None);
        assert_eq!(accepted_by(&groups, &[24; 5]), None);
        assert_eq!(accepted_by(&groups, &[25; 6]), None);
        assert_eq!(accepted_by(&groups, &[500, 24, 500, 24, 500, 500]), Some("few_records_show_in_sums"));
        settings.accepted.few_records_show_in_sums = true;
        assert_eq!(accepted_by(&settings, &[5, 5, 5]), None);
        assert_eq!(accepted_by(&settings, &[500, 500]), Some("two_parties_see_each_other"));
        settings.accepted.two_parties_see_each_other = true;
        assert_eq!(accepted_by(&settings, &[500, 500]), None);
        settings.aggregation = Aggregation::Plain;
        assert_eq!(accepted_by(&settings, &[100, 100, 100]), None);
        assert_eq!(accepted_by(&settings, &[100, 99, 100]), Some("plain_shares_show_records"));
        settings.rank = 60;
        assert_eq!(accepted_by(&settings, &[119, 120, 120]), Some("plain_shares_show_records"));
        assert_eq!(accepted_by(&settings, &[120, 120, 120]), None);
        for protocol in [Protocol::DsanlsLimited, Protocol::Pooled] {
            let opens = Settings { aggregation: Aggregation::Plain, ..Settings::new(protocol, 10) };
            assert_eq!(accepted_by(&opens, &[200, 199, 200]), Some("plain_shares_show_records"));
            assert_eq!(accepted_by(&opens, &[200, 200, 200]), None);
        }
        settings.rank = 10;
        settings.accepted.plain_shares_show_records = true;
        assert_eq!(accepted_by(&settings, &[20, 19, 20]), None);
        settings.protocol = Protocol::Pooled;
        assert_eq!(accepted_by(&settings, &[101, 100, 101]), Some("pooled_sums_show_records"));
        assert_eq!(accepted_by(&settings, &[101, 101, 101]), None);
        settings.accepted.pooled_sums_show_records = true;
        assert_eq!(accepted_by(&settings, &[101, 100, 101]), None);
        settings.protocol = Protocol::DsanlsLimited;
        settings.sketch = partwise::sketch::SketchKind::Subsample;
        assert_eq!(accepted_by(&settings, &[101, 101, 101]), Some("subsampling_opens_records"));
        settings.sketch = partwise::sketch::SketchKind::Gaussian;
        assert_eq!(accepted_by(&settings, &[101, 101, 101]), None);
        let mut leaving = Settings::new(Protocol::DsanlsLimited, 10);
        assert_eq!(accepted_by(&leaving, &[199; 5]), None);
        leaving.accepted.going_on_shows_the_leaver = true;
        assert_eq!(accepted_by(&leaving, &[199; 5]), Some("plain_shares_show_records"));
        assert_eq!(accepted_by(&leaving, &[200; 5]), None);
    }
}
