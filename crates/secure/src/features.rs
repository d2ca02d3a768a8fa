//! Features that few records have: a party lets a feature count only if enough of its records have it, and a feature stays
//! only if enough parties do. What is opened is how many parties qualify for each feature, never how many records.

use partwise::Real;

use crate::error::{Error, Result};
use crate::fixed::Part;
use crate::protocol::Local;
use crate::session::{ALL, Announcement, Session};
use crate::sum::SumKind;

/// Whether each feature stays, for all parties and for this one.
#[derive(Debug, PartialEq)]
struct Kept {
    /// Too few parties have the feature in enough records.
    left_out: Vec<bool>,
    /// This party has it in some records, but in too few.
    zeroed: Vec<usize>,
}

/// Leaves out the features that too few parties have in enough records, and at this party those that it has in too few
/// itself. It comes before anything that is computed from values.
pub(crate) fn leave_out_rare<T: Real>(
    colluders: usize,
    local: &mut Local<T>,
    session: &mut Session<'_>,
) -> Result<()> {
    let least = session.safeguards().feature_records;
    let counts = local.feature_counts();
    let qualifies: Vec<bool> = counts.iter().map(|&count| count >= least).collect();
    let bits = qualifies.iter().map(|&qualifies| f64::from(u8::from(qualifies))).collect();
    // A range that holds every bit: there is nothing to vote on.
    session.expect(ALL, SumKind::Features, &[Part::matrix(vec![1.0], 1)]);
    let total = session.sum(ALL, SumKind::Features, vec![Part::matrix(bits, 1)])?;
    let needed = needed_parties(colluders, session.members(ALL));
    let kept = kept(&qualifies, counts, &total.parts[0], needed);
    let left_out = kept.left_out.iter().filter(|left_out| **left_out).count();
    if left_out == kept.left_out.len() {
        return Err(Error::parameter(
            "feature_records",
            format!(
                "no feature is in {least} records of {needed} parties or more; merge features, find more records, or lower it"
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

/// How many parties must qualify: two more than may collude, so that these cannot tell a single one by subtracting
/// themselves. Where there are fewer parties, which is a risk that was accepted, all of them.
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
    fn features_stay_where_two_parties_more_than_collude_have_them() {
        let qualifies = [true, false, false, true, false];
        let kept = kept(&qualifies, &[12, 9, 0, 10, 3], &[3.0, 3.0, 4.0, 2.0, 2.0], 3);
        assert_eq!(kept.left_out, [false, false, false, true, true]);
        // A feature that this party does not have at all, or that nobody has any more, is not reported.
        assert_eq!(kept.zeroed, [1]);
        assert_eq!((needed_parties(1, 5), needed_parties(1, 2), needed_parties(0, 2)), (3, 2, 2));
    }
}
