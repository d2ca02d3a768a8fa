use partwise::random::{Purpose, stream, uniform};

use super::*;
use crate::fixed::{PartShape, precision};

const PARTIES: usize = 4;

/// A sum over four parties as seen by the first one, with ranges of 2^10.
struct Case {
    kind: SumKind,
    own: Vec<Part>,
    total: Vec<Vec<f64>>,
}

impl Case {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        let shapes: Vec<PartShape> = self.own.iter().map(Part::shape).collect();
        let columns = shapes.iter().map(|shape| shape.columns).sum();
        let precision = precision(&shapes, Some(&vec![10; columns]), PARTIES);
        let sum = OpenedSum {
            kind: self.kind,
            own: Some(&self.own),
            total: &self.total,
            precision: &precision,
            parties: PARTIES,
            is_answered: false,
        };
        known.check(&sum)
    }
}

/// M_r V_r and V_rᵀV_r of each party, 6 features and 3 components, with ‖M_r‖².
struct Party {
    parts: Vec<Part>,
    norm: f64,
}

fn party(seed: u64) -> Party {
    let mut rng = stream(seed, Purpose::Fill, 0, 0);
    let mut draw = |count: usize| (0..count).map(|_| uniform(&mut rng)).collect::<Vec<f64>>();
    let (features, records, k) = (6, 5, 3);
    let (m, v) = (draw(features * records), draw(records * k));
    let product =
        |feature: usize, j: usize| (0..records).map(|i| m[feature * records + i] * v[i * k + j]).sum();
    let gram = |a: usize, b: usize| (0..records).map(|i| v[i * k + a] * v[i * k + b]).sum();
    let products = (0..features * k).map(|place| product(place / k, place % k)).collect();
    let grams: Vec<f64> = (0..k * k).map(|place| gram(place / k, place % k)).collect();
    let parts = vec![Part::matrix(products, k), Part::gram(&grams, k), Part::scalars(&[-1.0])];
    Party { parts, norm: m.iter().map(|value| value * value).sum() }
}

fn scalars(kind: SumKind, own: &[f64], total: &[f64]) -> Case {
    Case { kind, own: vec![Part::scalars(own)], total: vec![total.to_vec()] }
}

/// An honest sum of M V among parties that have opened their norms.
fn product() -> (Known, Case) {
    let parties: Vec<Party> = (0..PARTIES as u64).map(party).collect();
    let total = (0..3).map(|part| {
        let mut sum = vec![0.0; parties[0].parts[part].values.len()];
        for party in &parties {
            sum.iter_mut().zip(&party.parts[part].values).for_each(|(sum, value)| *sum += value);
        }
        sum
    });
    let case = Case { kind: SumKind::ProductV, total: total.collect(), own: parties[0].parts.clone() };
    let mut known = Known::default();
    let norm: f64 = parties.iter().map(|party| party.norm).sum();
    let norms = scalars(SumKind::Norms, &[1.0, parties[0].norm], &[4.0, norm]);
    norms.check(&mut known).unwrap();
    (known, case)
}

#[test]
fn honest_sums_pass() {
    let (mut known, case) = product();
    case.check(&mut known).unwrap();
    scalars(SumKind::Records, &[5.0], &[20.0]).check(&mut known).unwrap();
    // A party may have no records with a feature, and rounding may make a residual negative.
    scalars(SumKind::Norms, &[0.0, 0.0], &[3.0, 3.0]).check(&mut known).unwrap();
    let u = Case {
        kind: SumKind::U,
        own: vec![Part::matrix(vec![1.0, 0.0], 1), Part::scalars(&[0.0, 2.0])],
        total: vec![vec![4.0, 0.0], vec![-1e-9, 8.0]],
    };
    u.check(&mut known).unwrap();
}

/// Each way of forging a sum is detected and named.
#[test]
fn impossible_sums_are_refused() {
    let refused = |change: &dyn Fn(&mut Case)| {
        let (mut known, mut case) = product();
        change(&mut case);
        case.check(&mut known).unwrap_err()
    };
    // Without this party's own share, which is nonnegative by itself.
    let below = refused(&|case| case.total[0][0] = case.own[0].values[0] * 0.9);
    assert!(below.contains("negative"), "{below}");
    let beyond = refused(&|case| case.total[0][0] = 3.0 * 1024.0 + 100.0);
    assert!(beyond.contains("range"), "{beyond}");
    assert!(refused(&|case| case.total[0][0] = f64::NAN).contains("range"));
    // An off-diagonal entry larger than the diagonal allows.
    let indefinite = refused(&|case| case.total[1][1] = 500.0);
    assert!(indefinite.contains("semidefinite"), "{indefinite}");
    // A column of M V that records with these norms cannot have.
    let long = refused(&|case| case.total[0].iter_mut().step_by(3).for_each(|value| *value += 20.0));
    assert!(long.contains("component 1"), "{long}");
    // The same check detects a Gram matrix that was scaled down.
    let (own, others) = (party(0).parts[1].values.clone(), 0.01);
    let small = refused(&|case| {
        case.total[1].iter_mut().zip(&own).for_each(|(total, own)| *total = own + others * (*total - own));
    });
    assert!(small.contains("component"), "{small}");
}

#[test]
fn totals_that_contradict_each_other_are_refused() {
    let mut known = Known::default();
    assert!(scalars(SumKind::Records, &[5.0], &[7.0]).check(&mut known).is_err(), "a party without records");
    assert!(scalars(SumKind::Records, &[5.0], &[20.5]).check(&mut known).is_err());
    scalars(SumKind::Records, &[5.0], &[20.0]).check(&mut known).unwrap();
    known.leave_out(vec![false, true]);
    // 15 records of two features whose squares sum to 4: the sum of entries is at most 11.
    assert!(scalars(SumKind::Norms, &[1.0, 1.0], &[13.0, 5.0]).check(&mut known).is_err());
    scalars(SumKind::Norms, &[1.0, 1.0], &[11.0, 5.0]).check(&mut known).unwrap();
    let end = |norm| scalars(SumKind::Error, &[0.5, 1.0, 0.0, 0.0, 0.0], &[2.0, norm, 0.0, 0.0, 0.0]);
    assert!(end(6.0).check(&mut known).is_err());
    end(5.0).check(&mut known).unwrap();
    let bits = |total| Case {
        kind: SumKind::Features,
        own: vec![Part::matrix(vec![1.0], 1)],
        total: vec![vec![total]],
    };
    assert!(bits(2.5).check(&mut known).is_err() && bits(0.0).check(&mut known).is_err());
    bits(4.0).check(&mut known).unwrap();
    // A feature that was left out has no nonzero row in U.
    let u = |value| Case {
        kind: SumKind::U,
        own: vec![Part::matrix(vec![1.0, 0.0], 1), Part::scalars(&[0.0, 2.0])],
        total: vec![vec![4.0, value], vec![0.0, 8.0]],
    };
    assert!(u(1.0).check(&mut known).unwrap_err().contains("left out"));
    u(0.0).check(&mut known).unwrap();
}

#[test]
fn the_cholesky_factor_gives_the_matrix_back() {
    let gram = [4.0, 2.0, 0.4, 2.0, 5.0, 1.0, 0.4, 1.0, 3.0];
    let lower = cholesky(&gram, 3, 0.0).unwrap();
    for row in 0..3 {
        for col in 0..=row {
            let value: f64 = (0..3).map(|t| lower[row * 3 + t] * lower[col * 3 + t]).sum();
            assert!((value - gram[row * 3 + col]).abs() < 1e-12);
        }
    }
    assert!(cholesky(&[1.0, 2.0, 2.0, 1.0], 2, 1e-9).is_none());
}
