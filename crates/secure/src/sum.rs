//! What parties sum: every kind of sum, and the sizes of its parts.
//!
//! The size of an upload identifies its sum even if its content is masked; so the sizes are defined here and with
//! the protocols, and used by the coordinator, which rejects uploads of other sizes, and by the audit.

use crate::aggregation::WordCount;
use crate::fixed::{FLAGS, PartShape, VOTES};
use crate::protocol::{Aggregation, Settings};

/// The kinds of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SumKind {
    /// The number of records of each party.
    Records,
    /// Whether a party has few records.
    FewRecords,
    /// Whether a party has many records.
    ManyRecords,
    /// Whether a party has enough records with each feature.
    Features,
    /// Entries and their squares.
    Norms,
    /// The mean diagonal of V_rᵀ V_r after the first fit.
    FirstDiagonal,
    /// ‖M_r − U V_rᵀ‖² at the end.
    Error,
    /// A party's copy of U.
    U,
    /// M_r V_r.
    ProductV,
    /// M_r S_r, records sketched.
    SketchedM,
    /// S U, features sketched.
    SketchedU,
    /// Whether a party's first sketch would show a record.
    FirstSketch,
    /// The end of an asynchronous run.
    End,
}

impl SumKind {
    /// All kinds.
    pub const ALL: [SumKind; 13] = [
        SumKind::Records,
        SumKind::FewRecords,
        SumKind::ManyRecords,
        SumKind::Features,
        SumKind::Norms,
        SumKind::FirstDiagonal,
        SumKind::Error,
        SumKind::U,
        SumKind::ProductV,
        SumKind::SketchedM,
        SumKind::SketchedU,
        SumKind::FirstSketch,
        SumKind::End,
    ];

    /// What it is called in transcripts, in `audit.json` and in messages.
    pub const fn label(self) -> &'static str {
        match self {
            SumKind::Records => "records",
            SumKind::FewRecords => "flag of few records",
            SumKind::ManyRecords => "flag of many records",
            SumKind::Features => "features",
            SumKind::Norms => "norms",
            SumKind::FirstDiagonal => "V V",
            SumKind::Error => "error",
            SumKind::U => "U",
            SumKind::ProductV => "M V",
            SumKind::SketchedM => "M S",
            SumKind::SketchedU => "S U",
            SumKind::FirstSketch => "the first sketch",
            SumKind::End => "the end",
        }
    }

    /// The kind with this label.
    pub fn from_label(label: &str) -> Option<SumKind> {
        SumKind::ALL.into_iter().find(|kind| kind.label() == label)
    }

    /// Whether only "any" or "none" is opened, and no number.
    pub const fn is_flag(self) -> bool {
        matches!(self, SumKind::FewRecords | SumKind::ManyRecords)
    }

    /// Whether the numbers of a part's columns are nonnegative at any party. Residuals may be negative due to
    /// rounding.
    pub const fn is_nonnegative(self, part: usize, column: usize) -> bool {
        match self {
            SumKind::SketchedU => false,
            SumKind::SketchedM => part == 2,
            SumKind::ProductV => part < 2,
            SumKind::U => part == 0 || column == 1,
            _ => true,
        }
    }

    /// Whether features, or sketches of them, can be seen in the first part.
    pub const fn shows_features(self) -> bool {
        matches!(self, SumKind::U | SumKind::ProductV | SumKind::SketchedM | SumKind::SketchedU)
    }
}

impl std::fmt::Display for SumKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.label())
    }
}

/// A sum that a run has: its kind, and the shapes of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct SumShape {
    /// The kind of the sum.
    pub kind: SumKind,
    /// The shapes of the parts, in order.
    pub parts: Vec<PartShape>,
}

impl SumShape {
    /// A sum of these parts.
    pub fn new(kind: SumKind, parts: Vec<PartShape>) -> Self {
        SumShape { kind, parts }
    }

    /// A sum of so many scalars.
    pub fn scalars(kind: SumKind, count: usize) -> Self {
        SumShape::new(kind, vec![PartShape::scalars(count)])
    }

    /// The sizes that its uploads may have.
    pub fn upload_sizes(&self, aggregation: Aggregation) -> Vec<WordCount> {
        let total = |of: fn(&PartShape) -> usize| {
            self.parts.iter().map(of).fold(0usize, |total, count| total.saturating_add(count))
        };
        let (narrow, wide) = (total(PartShape::narrow), total(PartShape::wide));
        match aggregation {
            Aggregation::Plain => vec![WordCount { narrow, wide }],
            Aggregation::Secure => vec![
                // The flags follow the numbers.
                WordCount { narrow, wide: wide.saturating_add(FLAGS) },
                // The votes on ranges.
                WordCount { narrow: 0, wide: total(|part| part.columns).saturating_mul(VOTES) },
            ],
        }
    }
}

/// All sums of a run, given how many features there are.
pub fn sums(settings: &Settings, features: usize) -> Vec<SumShape> {
    let mut sums = vec![
        SumShape::scalars(SumKind::Records, 1),
        SumShape::scalars(SumKind::FewRecords, 1),
        SumShape::scalars(SumKind::ManyRecords, 1),
        SumShape::new(SumKind::Features, vec![PartShape::matrix(features, 1)]),
        SumShape::scalars(SumKind::Norms, 2),
        SumShape::scalars(SumKind::Error, 5),
    ];
    sums.extend(settings.protocol.definition().sums(settings, features));
    sums
}

/// How many words the uploads of a run may have, given how many features there are.
pub fn upload_sizes(settings: &Settings, features: usize) -> Vec<WordCount> {
    sums(settings, features).iter().flat_map(|sum| sum.upload_sizes(settings.aggregation)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use partwise::matrix::{Dense, Matrix, Order, Values};

    use super::*;
    use crate::aggregation::Message;
    use crate::link::{Asked, Passed, Recorder};
    use crate::protocol::Protocol;
    use crate::session::parse;
    use crate::{Plan, simulate_recorded};

    #[test]
    fn labels_name_one_kind_each() {
        for kind in SumKind::ALL {
            assert_eq!(SumKind::from_label(kind.label()), Some(kind));
        }
        assert_eq!(SumKind::from_label("U V"), None);
    }

    /// The sizes of all uploads, and the shapes of all sums.
    #[derive(Default)]
    struct Observed {
        sizes: Mutex<BTreeSet<WordCount>>,
        sums: Mutex<Vec<SumShape>>,
    }

    impl Recorder for Observed {
        fn passed(&self, message: &Passed<'_>) {
            if let Ok((_, Message::Upload { words, .. })) = parse(0, message.from, message.bytes) {
                self.sizes.lock().unwrap().insert(words.count());
            }
        }

        fn asked(&self, asked: &Asked<'_>) {
            let sum = SumShape::new(asked.kind, asked.parts.iter().map(|part| part.shape()).collect());
            let mut sums = self.sums.lock().unwrap();
            if !sums.contains(&sum) {
                sums.push(sum);
            }
        }
    }

    /// Every sum of every method has the shape that is declared, every upload has a size that follows from it, and that of
    /// U or M V or M S is among them.
    #[test]
    fn uploads_have_the_sizes_that_are_expected() {
        let (features, records) = (13, 29);
        for protocol in Protocol::ALL {
            for aggregation in [Aggregation::Secure, Aggregation::Plain] {
                let settings = Settings { aggregation, rounds: 6, ..Settings::new(protocol, 3) };
                let part = |party: usize| {
                    let values = (0..features * records).map(|entry| ((entry * 31 + party * 7) % 17) as f32);
                    let values = Values::Real(values.collect());
                    Matrix::Dense(Dense::new(features, records, Order::RowMajor, values))
                };
                let (declared, expected) = (sums(&settings, features), upload_sizes(&settings, features));
                let observed = Observed::default();
                simulate_recorded((0..3).map(part).collect(), &Plan::new(settings), &observed).unwrap();
                let sizes = observed.sizes.into_inner().unwrap();
                let all = expected.iter().copied().collect();
                assert!(sizes.is_subset(&all), "{protocol:?} {aggregation:?}: {sizes:?} of {all:?}");
                assert!(sizes.len() > 2, "{protocol:?} {aggregation:?}: {sizes:?}");
                for sum in observed.sums.into_inner().unwrap() {
                    assert!(declared.contains(&sum), "{protocol:?} {aggregation:?}: {sum:?}");
                }
            }
        }
    }
}
