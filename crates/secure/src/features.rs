//! Features that occur in few records: a party counts a feature only if enough of its records have it, and a
//! feature stays only if enough parties count it. The number of such parties is opened for each feature, but
//! never the number of records.

use partwise::Real;

use crate::error::{Error, Result};
use crate::fixed::Part;
use crate::protocol::Local;
use crate::session::{ALL, Announcement, Session};
use crate::sum::SumKind;

/// The features that stay, for all parties and for this one.
#[derive(Debug, PartialEq)]
struct Kept {
    /// Features that too few parties have in enough records.
    left_out: Vec<bool>,
    /// Features that this party has in some of its records, but in too few.
    zeroed: Vec<usize>,
}

/// Removes the features that too few parties have in enough records, and at this party those that too few of
/// its own records have. This precedes every computation with values.
pub(crate) fn leave_out_rare<T: Real>(
    colluders: usize,
    local: &mut Local<T>,
    session: &mut Session<'_>,
) -> Result<()> {
    let least = session.safeguards().feature_records;
    let counts = local.feature_counts();
    let qualifies: Vec<bool> = counts.iter().map(|&count| count >= least).collect();
    let bits = qualifies.iter().map(|&qualifies| f64::from(u8::from(qualifies))).collect();
    // A range that holds every bit, so that no vote is needed.
    session.expect(ALL, SumKind::Features, &[Part::matrix(vec![1.0], 1)]);
    let total = session.sum(ALL, SumKind::Features, vec![Part::matrix(bits, 1)])?;
    let needed = needed_parties(colluders, session.members(ALL));
    let kept = kept(&qualifies, counts, &total.parts[0], needed);
    let left_out = kept.left_out.iter().filter(|left_out| **left_out).count();
    if left_out == kept.left_out.len() {
        return Err(Error::parameter(
            "feature_records",
            format!(
                "no feature occurs in at least {least} records at {needed} parties or more; merge features, \
                 find more records, or lower it"
            ),
        ));
    }
    let zeroed: Vec<bool> =
        kept.left_out.iter().zip(&qualifies).map(|(left_out, qualifies)| *left_out || !qualifies).collect();
    local.zero_features(&zeroed, &kept.left_out);
    session.leave_out(kept.left_out);
    if left_out > 0 || !kept.zeroed.is_empty() {
        session.announce(Announcement::Features { left_out, zeroed: kept.zeroed });
    }
    Ok(())
}

/// How many parties must qualify: two more than may collude, so that colluding parties cannot identify a
/// single other party by subtracting themselves. If there are fewer parties, which is an accepted risk, all
/// of them.
fn needed_parties(colluders: usize, parties: usize) -> usize {
    colluders.saturating_add(2).min(parties)
}

fn kept(qualifies: &[bool], counts: &[usize], parties: &[f64], needed: usize) -> Kept {
    let left_out: Vec<bool> = parties.iter().map(|&parties| parties.round() < needed as f64).collect();
    let own = qualifies.iter().zip(counts).zip(&left_out).enumerate();
    let zeroed = own.filter(|(_, ((qualifies, count), left_out))| !**qualifies && **count > 0 && !**left_out);
    let zeroed = zeroed.map(|(feature, _)| feature).collect();
    Kept { left_out, zeroed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_stay_if_two_more_parties_than_collude_have_them() {
        let qualifies = [true, false, false, true, false];
        let kept = kept(&qualifies, &[12, 9, 0, 10, 3], &[3.0, 3.0, 4.0, 2.0, 2.0], 3);
        assert_eq!(kept.left_out, [false, false, false, true, true]);
        // A feature that this party does not have, or that no party keeps, is not reported.
        assert_eq!(kept.zeroed, [1]);
        assert_eq!((needed_parties(1, 5), needed_parties(1, 2), needed_parties(0, 2)), (3, 2, 2));
    }
}
