//! The sizes that the sums of a method have: all that a coordinator, which cannot read them, can tell of an upload.

use super::{Aggregation, Protocol, Settings, sketch_size};
use crate::fixed::VOTES;

/// A part of a sum: its numbers of 32 and of 64 bits, and its columns, each of which has a range.
type Part = (usize, usize, usize);

/// How many words of 32 and of 64 bits the uploads of a run may have, given how many features there are.
pub fn upload_sizes(settings: &Settings, features: usize) -> Vec<(usize, usize)> {
    let k = settings.rank;
    let matrix = |rows: usize, columns: usize| -> Part { (rows.saturating_mul(columns), 0, columns) };
    let scalars = |count: usize| -> Part { (0, count, count) };
    let gram: Part = (0, k.saturating_mul(k.saturating_add(1)) / 2, 1);
    // Norms; records and flags, the first diagonal, the first sketch, the end; the error.
    let mut sums: Vec<Vec<Part>> = vec![vec![scalars(2)], vec![scalars(1)], vec![scalars(5)]];
    match settings.protocol {
        Protocol::Pooled => sums.push(vec![matrix(features, k), gram, scalars(1)]),
        Protocol::DsanlsLimited => {
            let size = sketch_size(settings);
            sums.push(vec![matrix(features, size), matrix(size, k), scalars(2)]);
        }
        _ => sums.push(vec![matrix(features, k), scalars(2)]),
    }
    if settings.protocol.sketches_features() {
        sums.push(vec![matrix(settings.sketched_features(features), k)]);
    }
    let sizes = sums.iter().flat_map(|parts| {
        let add = |sum: Part, part: &Part| {
            (sum.0.saturating_add(part.0), sum.1.saturating_add(part.1), sum.2.saturating_add(part.2))
        };
        let (narrow, wide, columns) = parts.iter().fold((0, 0, 0), add);
        match settings.aggregation {
            Aggregation::Plain => vec![(narrow, wide)],
            // Behind the numbers is a word for whether all are within their range.
            Aggregation::Secure => vec![(narrow, wide.saturating_add(1)), (0, columns.saturating_mul(VOTES))],
        }
    });
    sizes.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use partwise::matrix::{Dense, Matrix, Order, Values};

    use super::*;
    use crate::aggregation::Message;
    use crate::link::{Passed, Recorder};
    use crate::session::parse;
    use crate::{Plan, simulate_recorded};

    /// The sizes of all uploads.
    #[derive(Default)]
    struct Sizes(Mutex<BTreeSet<(usize, usize)>>);

    impl Recorder for Sizes {
        fn passed(&self, message: &Passed<'_>) {
            if let Ok((_, Message::Upload { words, .. })) = parse(0, message.from, message.bytes) {
                self.0.lock().unwrap().insert((words.narrow.len(), words.wide.len()));
            }
        }
    }

    /// Every upload of every method has a size that is expected, and that of U or M V or M S is among them.
    #[test]
    fn uploads_have_the_sizes_that_are_expected() {
        use Protocol::*;
        let (features, records) = (13, 29);
        for protocol in [Pooled, SynSd, SynSsdU, SynSsdV, SynSsdUv, AsynSd, AsynSsdV, DsanlsLimited] {
            for aggregation in [Aggregation::Secure, Aggregation::Plain] {
                let settings = Settings { aggregation, rounds: 6, ..Settings::new(protocol, 3) };
                let part = |party: usize| {
                    let values = (0..features * records).map(|entry| ((entry * 31 + party * 7) % 17) as f32);
                    let values = Values::Real(values.collect());
                    Matrix::Dense(Dense::new(features, records, Order::RowMajor, values))
                };
                let expected = upload_sizes(&settings, features);
                let plan = Plan::new(settings);
                let sizes = Sizes::default();
                simulate_recorded((0..3).map(part).collect(), &plan, &sizes).unwrap();
                let sizes = sizes.0.into_inner().unwrap();
                let all = expected.iter().copied().collect();
                assert!(sizes.is_subset(&all), "{protocol:?} {aggregation:?}: {sizes:?} of {all:?}");
                assert!(sizes.len() > 2, "{protocol:?} {aggregation:?}: {sizes:?}");
            }
        }
    }
}
