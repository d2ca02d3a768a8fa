//! The page that shows a run: one file without any request to the network, drawn from what the run's folder holds.

pub mod chart;
pub mod picture;
pub mod text;

mod components;
mod frames;
mod page;
mod progress;
mod records;
mod secure;
mod settings;

use serde_json::Value;

pub use page::{GENERATOR, page};
use picture::Shape;

/// A factor, row by row.
pub struct Factor {
    /// Number of rows.
    pub rows: usize,
    /// Number of components.
    pub k: usize,
    /// Row by row.
    pub values: Vec<f32>,
}

impl Factor {
    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.k..(row + 1) * self.k]
    }

    /// The Euclidean norms of the columns.
    fn norms(&self) -> Vec<f64> {
        let mut squares = vec![0.0f64; self.k];
        for row in self.values.chunks_exact(self.k) {
            squares.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value) * f64::from(value));
        }
        squares.into_iter().map(f64::sqrt).collect()
    }
}

/// A line of the error curve.
pub struct Point {
    /// Iterations, or rounds.
    pub step: f64,
    /// Seconds.
    pub seconds: f64,
    /// The relative error.
    pub error: f64,
}

/// Records and how much of each component they have.
pub struct Records {
    /// Whose they are, where there are parties.
    pub party: Option<String>,
    /// A row a record.
    pub weights: Factor,
    /// Their names.
    pub labels: Option<Vec<String>>,
}

/// Some records as they were before they were factorized.
pub struct Frames {
    /// Their numbers, from 0.
    pub numbers: Vec<usize>,
    /// One after the other.
    pub values: Vec<f32>,
}

/// Everything that a page shows.
pub struct Run {
    /// `run.json`.
    pub record: Value,
    /// `audit.json`, where there is one.
    pub audit: Option<Value>,
    /// The error curve.
    pub trace: Vec<Point>,
    /// What components are made of: a row a feature.
    pub features: Factor,
    /// The features' names.
    pub feature_labels: Option<Vec<String>>,
    /// The records of every party, or of the only one.
    pub records: Vec<Records>,
    /// How the features are a picture.
    pub shape: Option<Shape>,
    /// Pictures as they were.
    pub frames: Option<Frames>,
}

impl Run {
    /// Whether it ran between parties.
    fn is_secure(&self) -> bool {
        self.record["protocol"].is_string()
    }

    /// What an iteration is called.
    fn step_name(&self) -> &'static str {
        if self.is_secure() { "round" } else { "iteration" }
    }

    fn record_count(&self) -> usize {
        self.records.iter().map(|records| records.weights.rows).sum()
    }

    /// A record's name, counted over all parties.
    fn record_name(&self, records: &Records, number: usize) -> String {
        let name = records.labels.as_ref().map(|labels| text::shortened(&labels[number], 60));
        let name = name.unwrap_or_else(|| format!("record {}", number + 1));
        match &records.party {
            Some(party) => format!("{party}, {name}"),
            None => name,
        }
    }

    fn feature_name(&self, number: usize) -> String {
        match &self.feature_labels {
            Some(labels) => text::shortened(&labels[number], 60),
            None => format!("feature {}", number + 1),
        }
    }
}

/// What components amount to, over features and all records.
struct Components {
    /// Norms of the features' columns.
    norms: Vec<f64>,
    /// Shares of the energy, ‖U_j‖ ‖V_j‖.
    shares: Vec<f64>,
    /// The components, the strongest first.
    order: Vec<usize>,
}

impl Components {
    fn of(run: &Run) -> Self {
        let norms = run.features.norms();
        let mut squares = vec![0.0; norms.len()];
        for records in &run.records {
            for (sum, norm) in squares.iter_mut().zip(records.weights.norms()) {
                *sum += norm * norm;
            }
        }
        if run.records.is_empty() {
            // Of nobody's records anything is known here.
            squares.fill(1.0);
        }
        let energies: Vec<f64> =
            norms.iter().zip(&squares).map(|(norm, square)| norm * square.sqrt()).collect();
        let total = energies.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let shares: Vec<f64> = energies.iter().map(|energy| energy / total).collect();
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
        Components { norms, shares, order }
    }
}
