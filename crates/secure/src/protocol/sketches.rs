//! Where sketches are drawn from: by seeds that all parties know, or that belong to one.

use partwise::Real;
use partwise::kernels::Columns;
use partwise::random::Purpose;
use partwise::sketch::{Distribution, Operator};
use partwise::threads::Threads;
use sha2::{Digest, Sha256};

use super::Settings;
use super::limited::sketch_size;

/// The source of `dsanls-limited`'s sketches of a party's records: anyone who knows their number knows the
/// sketches.
pub(crate) fn limited_sketch(settings: &Settings, party: u16, records: usize) -> Distribution {
    Distribution {
        kind: settings.sketch,
        length: records,
        size: sketch_size(settings),
        seed: party_seed(settings.seed, "partwise records", party),
        purpose: Purpose::SketchU,
    }
}

/// A party's seed, from the run's: for its sketches, which may be public, and in a simulation for its V, which in a
/// federation comes from the operating system.
pub fn party_seed(seed: u64, purpose: &str, party: u16) -> u64 {
    let hash = Sha256::digest([purpose.as_bytes(), &seed.to_le_bytes(), &party.to_le_bytes()].concat());
    u64::from_le_bytes(std::array::from_fn(|i| hash[i]))
}

/// S as columns to be taken and weights for them.
pub(super) struct SketchRows<'o, T> {
    pub columns: Columns<'o>,
    pub weights: Vec<T>,
}

/// S itself: S times the identity.
pub(super) fn sketch_rows<'o, T: Real>(
    threads: &Threads,
    operator: &'o dyn Operator<T>,
    size: usize,
) -> SketchRows<'o, T> {
    let mut identity = vec![T::ZERO; size * size];
    identity.iter_mut().step_by(size + 1).for_each(|diagonal| *diagonal = T::ONE);
    let (columns, weights) = operator.lift(threads, &identity, size);
    SketchRows { columns, weights }
}

/// S of an iteration as a dense matrix with one row per sketched index.
pub(crate) fn dense_sketch<T: Real>(
    threads: &Threads,
    distribution: &Distribution,
    iteration: usize,
) -> Vec<f64> {
    let &Distribution { length, size, .. } = distribution;
    let operator = distribution.draw::<T>(iteration);
    let SketchRows { columns, weights } = sketch_rows(threads, &*operator, size);
    columns.spread(&weights, length, size).iter().map(|value| value.to_f64()).collect()
}

/// Where sketches of the features are drawn from, the same at every party.
pub(crate) fn features_sketch(settings: &Settings, features: usize) -> Distribution {
    let size = settings.sketched_features(features);
    let (kind, seed, purpose) = (settings.sketch, settings.seed, Purpose::SketchV);
    Distribution { kind, length: features, size, seed, purpose }
}
