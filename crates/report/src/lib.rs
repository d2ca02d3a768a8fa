//! The report page of a run: a single file that makes no network requests, created from the run's folder.

pub mod chart;
pub mod picture;
pub mod text;

mod components;
mod frames;
mod page;
mod parties;
mod progress;
mod ranks;
mod samples;
mod secure;
mod settings;

use partwise::run::record::{FactorizationRecord, ProtocolSettings, RunKind, RunRecord, SimulationRecord};
use serde_json::Value;

pub use page::{GENERATOR, page};
use picture::Shape;
pub use ranks::{SurveyPage, survey_page};

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

    /// The weights of a component.
    fn column(&self, component: usize) -> impl Iterator<Item = f32> + '_ {
        self.values.iter().skip(component).step_by(self.k).copied()
    }

    /// Counts the rows that each component leads in.
    fn count_leads(&self, leads: &mut [usize]) {
        let leaders = self.values.chunks_exact(self.k).filter_map(leading);
        leaders.for_each(|component| leads[component] += 1);
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

/// Samples and their weights in each component.
pub struct Samples {
    /// The party that they belong to, if there are parties.
    pub party: Option<String>,
    /// One row per sample, as in the file.
    pub weights: Factor,
    /// Their names.
    pub labels: Option<Vec<String>>,
}

/// Which factor holds the samples; the other one holds the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFactor {
    /// Samples are rows of M.
    U,
    /// Samples are columns of M.
    V,
}

impl SampleFactor {
    fn name(self) -> &'static str {
        match self {
            SampleFactor::U => "U",
            SampleFactor::V => "V",
        }
    }
}

/// Some original samples.
pub struct Frames {
    /// Their numbers, from 0.
    pub numbers: Vec<usize>,
    /// One after the other.
    pub values: Vec<f32>,
}

/// Everything that a page shows.
pub struct Run {
    /// `run.json`, if there is one.
    pub record: Option<RunRecord>,
    /// The content of `audit.json`, if it exists.
    pub audit: Option<Value>,
    /// The content of `individuals.json`, if it exists: results about a party's own records, for the party
    /// only.
    pub individuals: Option<Value>,
    /// The error curve.
    pub trace: Vec<Point>,
    /// What components are made of: one row per feature.
    pub features: Factor,
    /// The names of the features.
    pub feature_labels: Option<Vec<String>>,
    /// The samples of each party, or of the only one.
    pub samples: Vec<Samples>,
    /// The factor with the samples' weights.
    pub sample_factor: SampleFactor,
    /// The image size of the features, if they are pixels.
    pub shape: Option<Shape>,
    /// Original images.
    pub frames: Option<Frames>,
}

impl Run {
    /// Whether the run was between parties.
    fn is_secure(&self) -> bool {
        self.protocol().is_some()
    }

    /// The settings that the parties agreed on, if there are parties.
    fn protocol(&self) -> Option<&ProtocolSettings> {
        self.record.as_ref()?.protocol()
    }

    /// The record of a factorization.
    fn factorization(&self) -> Option<&FactorizationRecord> {
        match &self.record.as_ref()?.kind {
            RunKind::Factorization(run) => Some(run),
            RunKind::Simulation(_) | RunKind::Federation(_) => None,
        }
    }

    /// The record of a simulation.
    fn simulation(&self) -> Option<&SimulationRecord> {
        match &self.record.as_ref()?.kind {
            RunKind::Simulation(run) => Some(run),
            RunKind::Factorization(_) | RunKind::Federation(_) => None,
        }
    }

    /// What an iteration is called.
    fn step_name(&self) -> &'static str {
        if self.is_secure() { "round" } else { "iteration" }
    }

    fn sample_count(&self) -> usize {
        self.samples.iter().map(|samples| samples.weights.rows).sum()
    }

    /// A sample's name, or its number within its party.
    fn sample_name(&self, samples: &Samples, number: usize) -> String {
        let name = samples.labels.as_ref().map(|labels| text::shortened(&labels[number], 60));
        let name = name.unwrap_or_else(|| format!("sample {}", number + 1));
        match &samples.party {
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

/// Statistics of the components, over features and all samples.
struct Components {
    /// Shares of the energy: ‖U_j‖ ‖V_j‖ over its sum.
    shares: Vec<f64>,
    /// The strongest components, as many as have a card, in file order.
    shown: Vec<usize>,
    /// How many samples each leads in.
    leads: Vec<usize>,
    /// How many features each leads in.
    feature_leads: Vec<usize>,
}

impl Components {
    /// Components that have a card, at most.
    const MOST: usize = 60;

    fn of(run: &Run) -> Self {
        let norms = run.features.norms();
        let mut squares = vec![0.0; norms.len()];
        for samples in &run.samples {
            for (sum, norm) in squares.iter_mut().zip(samples.weights.norms()) {
                *sum += norm * norm;
            }
        }
        if run.samples.is_empty() {
            // The coordinator of a federation has no samples.
            squares.fill(1.0);
        }
        let energies: Vec<f64> =
            norms.iter().zip(&squares).map(|(norm, square)| norm * square.sqrt()).collect();
        let total = energies.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let shares: Vec<f64> = energies.iter().map(|energy| energy / total).collect();
        let mut shown: Vec<usize> = (0..shares.len()).collect();
        shown.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
        shown.truncate(Self::MOST);
        shown.sort_unstable();
        let mut leads = vec![0; run.features.k];
        run.samples.iter().for_each(|samples| samples.weights.count_leads(&mut leads));
        let mut feature_leads = vec![0; run.features.k];
        run.features.count_leads(&mut feature_leads);
        Components { shares, shown, leads, feature_leads }
    }
}

/// The component with the largest of these weights, as NumPy's `argmax`; `None` if all are zero.
fn leading(weights: &[f32]) -> Option<usize> {
    let mut best = None;
    for (component, &weight) in weights.iter().enumerate() {
        if weight > best.map_or(0.0, |best: usize| weights[best]) {
            best = Some(component);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_largest_weights_leads() {
        assert_eq!(leading(&[0.5, 2.0, 2.0]), Some(1));
        assert_eq!(leading(&[0.0, 0.0]), None);
    }
}
