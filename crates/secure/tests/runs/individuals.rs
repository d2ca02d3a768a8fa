//! What single records are exposed to, where the average over all says that nobody can be told.

use partwise::matrix::{Csr, Matrix};
use partwise::random::{Purpose, stream, uniform};
use partwise_secure::audit::Adversary;
use partwise_secure::protocol::{Aggregation, Protocol};

use super::audit::{Run, settings};

/// Records of a dozen common features each; the features behind these belong to one record each.
fn with_rare_features(records: usize, features: usize, rare: usize, seed: u64) -> Matrix<f32> {
    let mut rng = stream(seed, Purpose::Fill, 0, 0);
    let common = features - rare;
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for record in 0..records {
        let mut own: Vec<u32> = (0..12)
            .map(|_| ((common as f64 * uniform(&mut rng).powi(2)) as u32).min(common as u32 - 1))
            .collect();
        let share = records / rare;
        if record % share == share / 2 && record / share < rare {
            own.push((common + record / share) as u32);
        }
        own.sort_unstable();
        own.dedup();
        values.extend(own.iter().map(|_| (1.0 + 3.0 * uniform(&mut rng)).floor() as f32));
        indices.extend(own);
        offsets.push(indices.len());
    }
    Matrix::Sparse(Csr::new(records, features, offsets, indices, values))
}

/// Five parties with 800 records each of 250 features, of which nine belong to one record each: nobody is told on average,
/// and yet most of the nine are reconstructed from the sums.
#[test]
fn rare_features_show_whole_records_in_pooled_sums() {
    let settings = settings(Protocol::Pooled, Aggregation::Secure, 8, 100);
    let matrix = with_rare_features(4800, 250, 9, 1);
    let parting = (0..4800).partition(|record| record % 6 != 0);
    let run = Run::parted(matrix, parting, 5, settings);
    let audit = run.audit();
    eprintln!("{:?} {:?} {:?}", audit.reconstructions, audit.highest_auc, audit.individuals);
    assert!(audit.reconstructions.iter().any(|found| found.adversary == Adversary::Coordinator && found.exact >= 5));
}
