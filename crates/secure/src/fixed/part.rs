//! The parts of a sum: numbers by row, in columns of which each has a range.

use serde::{Deserialize, Serialize};

/// How wide the words of a part are. In files: whether they have 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Width {
    /// 32 bits: matrices.
    Narrow,
    /// 64 bits: Gram matrices and scalars.
    Wide,
}

impl From<bool> for Width {
    fn from(wide: bool) -> Self {
        if wide { Width::Wide } else { Width::Narrow }
    }
}

impl From<Width> for bool {
    fn from(width: Width) -> Self {
        width == Width::Wide
    }
}

/// The shape of a part of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartShape {
    /// How many numbers there are.
    pub count: usize,
    /// The number of columns, each with its own range.
    pub columns: usize,
    /// How wide its words are.
    #[serde(rename = "wide")]
    pub width: Width,
}

impl PartShape {
    /// A matrix with a range per column.
    pub fn matrix(rows: usize, columns: usize) -> Self {
        PartShape { count: rows.saturating_mul(columns), columns, width: Width::Narrow }
    }

    /// The lower triangle of a Gram matrix of k components, with one range.
    pub fn gram(k: usize) -> Self {
        let count = k.saturating_mul(k.saturating_add(1)) / 2;
        PartShape { count, columns: 1, width: Width::Wide }
    }

    /// Scalars, each with a range of its own.
    pub fn scalars(count: usize) -> Self {
        PartShape { count, columns: count, width: Width::Wide }
    }

    /// The number of 32-bit words.
    pub fn narrow(&self) -> usize {
        if self.width == Width::Narrow { self.count } else { 0 }
    }

    /// The number of 64-bit words.
    pub fn wide(&self) -> usize {
        if self.width == Width::Wide { self.count } else { 0 }
    }
}

/// A part of a sum, stored by row.
#[derive(Clone, PartialEq)]
pub struct Part {
    /// The numbers.
    pub values: Vec<f64>,
    /// How many columns there are, each with a range of its own.
    pub columns: usize,
    /// How wide its words are.
    pub width: Width,
}

impl Part {
    /// A matrix with a range per column.
    pub fn matrix(values: Vec<f64>, columns: usize) -> Part {
        Part { values, columns, width: Width::Narrow }
    }

    /// A Gram matrix: the lower triangle of a symmetric one, with one range.
    pub fn gram(gram: &[f64], k: usize) -> Part {
        let values = (0..k).flat_map(|row| gram[row * k..][..=row].iter().copied()).collect();
        Part { values, columns: 1, width: Width::Wide }
    }

    /// Scalars, each with a range of its own.
    pub fn scalars(values: &[f64]) -> Part {
        Part { values: values.to_vec(), columns: values.len(), width: Width::Wide }
    }

    /// An empty part of this shape.
    pub fn zeros(&self) -> Part {
        Part { values: vec![0.0; self.values.len()], ..*self }
    }

    /// The shape of this part.
    pub fn shape(&self) -> PartShape {
        PartShape { count: self.values.len(), columns: self.columns, width: self.width }
    }

    /// The largest absolute value of each column.
    pub(super) fn largest(&self) -> Vec<f64> {
        let mut largest = vec![0f64; self.columns];
        for row in self.values.chunks_exact(self.columns.max(1)) {
            // NaN must not be lost: it is refused later.
            largest.iter_mut().zip(row).for_each(|(largest, value)| {
                if value.abs() > *largest || value.is_nan() {
                    *largest = value.abs();
                }
            });
        }
        largest
    }
}

/// A whole symmetric matrix from its lower triangle.
pub fn whole_gram(triangle: &[f64], k: usize) -> Vec<f64> {
    let at = |row: usize, col: usize| triangle[row.max(col) * (row.max(col) + 1) / 2 + row.min(col)];
    (0..k * k).map(|place| at(place / k, place % k)).collect()
}
