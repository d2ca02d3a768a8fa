//! Nonnegative least squares, solved exactly: block principal pivoting (Kim and Park 2011) on the normal equations.

use faer::Mat;
use faer::linalg::solvers::Solve;

/// Exchanges of all infeasible variables that may fail to lower their number before the backup rule, which
/// exchanges one variable at a time and is sure to end, takes over.
const FULL_EXCHANGES: usize = 3;

/// The x ≥ 0 that minimises ‖B x − a‖², from G = BᵀB (k x k) and p = Bᵀa.
///
/// It satisfies x ≥ 0, y = G x − p ≥ 0 and xᵀy = 0 up to rounding. Where G is singular there are many solutions; a
/// vanishing ridge then picks one.
pub fn nnls(gram: &[f64], product: &[f64]) -> Vec<f64> {
    let k = product.len();
    let trace: f64 = (0..k).map(|j| gram[j * k + j]).sum();
    if trace <= 0.0 {
        return vec![0.0; k];
    }
    // In proportion to G, well below what f64 resolves of a well-posed problem.
    let ridge = 1e-14 * trace / k as f64;
    let size = product.iter().fold(0f64, |max, value| max.max(value.abs()));
    let slack = 1e-12 * size.max(f64::MIN_POSITIVE);
    let mut passive = vec![false; k];
    let mut x = vec![0.0; k];
    let mut y: Vec<f64> = product.iter().map(|value| -value).collect();
    let (mut fewest, mut tries) = (k + 1, FULL_EXCHANGES);
    // The backup rule ends by itself; the limit guards against rounding that makes two sets alternate.
    for _ in 0..(20 * k + 100) {
        let infeasible: Vec<usize> =
            (0..k).filter(|&j| if passive[j] { x[j] < 0.0 } else { y[j] < -slack }).collect();
        let Some(&last) = infeasible.last() else { break };
        let exchange = if infeasible.len() < fewest {
            (fewest, tries) = (infeasible.len(), FULL_EXCHANGES);
            &infeasible[..]
        } else if tries > 0 {
            tries -= 1;
            &infeasible[..]
        } else {
            &[last]
        };
        for &j in exchange {
            passive[j] = !passive[j];
        }
        solve_passive(gram, product, ridge, &passive, &mut x);
        for (j, y) in y.iter_mut().enumerate() {
            let predicted: f64 = gram[j * k..][..k].iter().zip(&x).map(|(g, x)| g * x).sum();
            *y = predicted - product[j];
        }
    }
    x.iter().map(|&value| value.max(0.0)).collect()
}

/// x_F = G_FF⁻¹ p_F on the passive set F, 0 elsewhere.
fn solve_passive(gram: &[f64], product: &[f64], ridge: f64, passive: &[bool], x: &mut [f64]) {
    let k = product.len();
    let set: Vec<usize> = (0..k).filter(|&j| passive[j]).collect();
    x.fill(0.0);
    let part = |ridge: f64| {
        Mat::<f64>::from_fn(set.len(), set.len(), |row, col| {
            gram[set[row] * k + set[col]] + if row == col { ridge } else { 0.0 }
        })
    };
    let right = Mat::<f64>::from_fn(set.len(), 1, |row, _| product[set[row]]);
    let mut weight = 0.0;
    // A rank-deficient G needs a ridge; each try is 100 times the last.
    for attempt in 0..8 {
        if let Ok(factor) = part(weight).llt(faer::Side::Lower) {
            let solution = factor.solve(&right);
            for (row, &j) in set.iter().enumerate() {
                x[j] = solution[(row, 0)];
            }
            return;
        }
        weight = ridge * 100f64.powi(attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn satisfies_the_optimality_conditions(
            k in 1usize..12, d in 1usize..20,
            numbers in prop::collection::vec(-1f64..1.0, 12 * 20 + 20), nonnegative: bool,
        ) {
            let entry = |value: f64| if nonnegative { value.abs() } else { value };
            let b: Vec<f64> = numbers[..k * d].iter().copied().map(entry).collect();
            let a = &numbers[240..240 + d];
            let gram: Vec<f64> = (0..k * k)
                .map(|i| (0..d).map(|c| b[i / k * d + c] * b[i % k * d + c]).sum()).collect();
            let product: Vec<f64> = (0..k).map(|j| (0..d).map(|c| b[j * d + c] * a[c]).sum()).collect();
            let x = nnls(&gram, &product);
            for j in 0..k {
                let y: f64 = (0..k).map(|l| gram[j * k + l] * x[l]).sum::<f64>() - product[j];
                prop_assert!(x[j] >= 0.0);
                prop_assert!(y >= -1e-8, "gradient {y}");
                prop_assert!((x[j] * y).abs() <= 1e-7, "complementarity {} {y}", x[j]);
            }
        }
    }

    #[test]
    fn a_zero_problem_has_the_zero_solution() {
        assert_eq!(nnls(&[0.0; 4], &[0.0; 2]), [0.0; 2]);
        assert_eq!(nnls(&[1.0], &[-3.0]), [0.0]);
        assert!((nnls(&[2.0], &[3.0])[0] - 1.5).abs() < 1e-15);
    }
}
