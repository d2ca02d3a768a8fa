//! Custom sketches: the user's code draws the rows of S that are needed.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rand::Rng;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Distribution;
use crate::Real;
use crate::error::{Error, Result};
use crate::random::stream;
use crate::threads::Threads;

/// Draws random n x d matrices S with E[S Sᵀ] = I, row by row.
pub trait DrawRows: Send + Sync {
    /// The name of the sketch in `run.json` and in checkpoints.
    fn name(&self) -> String;

    /// Appends the nonzero entries of one row of S: column numbers below `size`, each with its value. All
    /// randomness must come from `random`, which returns 64 bits per call and repeats the same bits whenever
    /// the same row is requested.
    fn row(&self, size: SketchSize, random: &mut dyn FnMut() -> u64, entries: &mut Vec<(usize, f64)>);
}

/// The size of S.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchSize {
    /// n, the number of rows or columns of M.
    pub rows: usize,
    /// d, the number of rows or columns after sketching.
    pub cols: usize,
}

/// A custom sketch as part of settings. Files contain only its name.
#[derive(Clone)]
pub struct CustomSketch {
    name: String,
    draw: Option<Arc<dyn DrawRows>>,
}

impl CustomSketch {
    /// A sketch whose rows `draw` draws.
    pub fn new(draw: Arc<dyn DrawRows>) -> Self {
        CustomSketch { name: draw.name(), draw: Some(draw) }
    }

    /// The name of the sketch.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Draws S for an iteration, with the number of rows of `distribution`; equal on every rank.
    pub(crate) fn draw(&self, distribution: &Distribution, iteration: usize) -> Result<CustomOperator> {
        let &Distribution { length, size, seed, purpose, .. } = distribution;
        let Some(draw) = &self.draw else {
            let problem = format!(
                "{} is the name of a custom sketch that this program does not have; provide it",
                self.name
            );
            return Err(Error::parameter("sketch", problem));
        };
        let (mut offsets, mut entries, mut of_row) = (vec![0], Vec::new(), Vec::new());
        for row in 0..length {
            let mut rng = stream(seed, purpose, iteration, row);
            draw.row(SketchSize { rows: length, cols: size }, &mut || rng.next_u64(), &mut of_row);
            if let Some((col, value)) = of_row.iter().find(|(col, value)| *col >= size || !value.is_finite())
            {
                let problem = format!(
                    "{} drew the entry {value} in column {col} of {size}; columns count from 0, and entries \
                     must be finite",
                    self.name
                );
                return Err(Error::parameter("sketch", problem));
            }
            entries.append(&mut of_row);
            offsets.push(entries.len());
        }
        Ok(CustomOperator { size, offsets, entries })
    }
}

/// S stored by row.
pub(crate) struct CustomOperator {
    size: usize,
    offsets: Vec<usize>,
    entries: Vec<(usize, f64)>,
}

impl CustomOperator {
    /// Computes the result of [`Operator::project`](super::Operator::project).
    pub fn project<T: Real>(&self, rows: Range<usize>, factor: &[T], k: usize) -> Vec<T> {
        let mut projected = vec![T::ZERO; self.size * k];
        for (row, values) in rows.zip(factor.chunks_exact(k)) {
            for &(col, weight) in self.row(row) {
                let weight = T::from_f64(weight);
                let sums = projected[col * k..][..k].iter_mut();
                sums.zip(values).for_each(|(sum, &value)| *sum += weight * value);
            }
        }
        projected
    }

    /// S Bᵀ, a row for each column of M.
    pub fn lift<T: Real>(&self, threads: &Threads, b: &[T], k: usize) -> Vec<T> {
        const PIECE: usize = 1 << 10;
        let rows = self.offsets.len() - 1;
        let mut lifted = vec![T::ZERO; rows * k];
        threads.map(
            lifted.chunks_mut(PIECE * k).enumerate().collect(),
            || (),
            |(), (piece, lifted): (usize, &mut [T])| {
                for (row, target) in (piece * PIECE..).zip(lifted.chunks_exact_mut(k)) {
                    for &(col, weight) in self.row(row) {
                        let weight = T::from_f64(weight);
                        let values = &b[col * k..][..k];
                        target.iter_mut().zip(values).for_each(|(sum, &value)| *sum += weight * value);
                    }
                }
            },
        );
        lifted
    }

    fn row(&self, row: usize) -> &[(usize, f64)] {
        &self.entries[self.offsets[row]..self.offsets[row + 1]]
    }
}

/// Compares by name, which is all that files contain.
impl PartialEq for CustomSketch {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for CustomSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Serialize for CustomSketch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CustomSketch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(CustomSketch { name: String::deserialize(deserializer)?, draw: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use crate::sketch::SketchKind;

    /// The count sketch, drawn from the same random bits as the built-in one.
    struct Signs;

    impl DrawRows for Signs {
        fn name(&self) -> String {
            "signs".into()
        }

        fn row(&self, size: SketchSize, random: &mut dyn FnMut() -> u64, entries: &mut Vec<(usize, f64)>) {
            let word = random();
            entries.push(((word >> 1) as usize % size.cols, if word & 1 == 0 { 1.0 } else { -1.0 }));
        }
    }

    struct Outside;

    impl DrawRows for Outside {
        fn name(&self) -> String {
            "outside".into()
        }

        fn row(&self, size: SketchSize, _: &mut dyn FnMut() -> u64, entries: &mut Vec<(usize, f64)>) {
            entries.push((size.cols, 1.0));
        }
    }

    const DISTRIBUTION: Distribution =
        Distribution { kind: SketchKind::Count, length: 3000, size: 7, seed: 1, purpose: Purpose::SketchU };

    #[test]
    fn both_halves_are_products_with_the_same_matrix() {
        let operator = CustomSketch::new(Arc::new(Signs)).draw(&DISTRIBUTION, 2).unwrap();
        let k = 2;
        let factor: Vec<f64> = (0..DISTRIBUTION.length * k).map(|i| (i % 13) as f64).collect();
        let projected = operator.project(0..DISTRIBUTION.length, &factor, k);
        let halves = [0..1000, 1000..3000]
            .map(|rows| operator.project(rows.clone(), &factor[rows.start * k..rows.end * k], k));
        for (place, sum) in projected.iter().enumerate() {
            assert_eq!(*sum, halves[0][place] + halves[1][place]);
        }
        // <Sᵀ Y, B> = <Y, S B>
        let b: Vec<f64> = (0..7 * k).map(|i| i as f64 - 3.0).collect();
        let lifted = operator.lift(&Threads::new(2).unwrap(), &b, k);
        let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        assert_eq!(product(&projected, &b), product(&factor, &lifted));
    }

    #[test]
    fn out_of_range_entries_and_unavailable_sketches_are_refused() {
        let refused = |sketch: &CustomSketch| match sketch.draw(&DISTRIBUTION, 0) {
            Err(Error::Parameter { name, problem }) => format!("{name}: {problem}"),
            _ => String::new(),
        };
        assert!(refused(&CustomSketch::new(Arc::new(Outside))).contains("column 7 of 7"));
        let read: CustomSketch = serde_json::from_str("\"signs\"").unwrap();
        assert!(refused(&read).contains("does not have"));
        assert_eq!(read, CustomSketch::new(Arc::new(Signs)));
    }
}
