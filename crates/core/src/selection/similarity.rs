//! The similarity between the components of several runs.

use super::assignment::assign;
use crate::Real;

/// The k x k cosines between the columns of two factors with the same rows, each stored by row. The cosine of a zero
/// column with anything is 0.
pub fn cosines<T: Real>(a: &[T], b: &[T], k: usize) -> Vec<f64> {
    let (mut products, mut norms_a, mut norms_b) = (vec![0.0; k * k], vec![0.0; k], vec![0.0; k]);
    for (a, b) in a.chunks_exact(k).zip(b.chunks_exact(k)) {
        for (i, a) in a.iter().enumerate() {
            let a = a.to_f64();
            norms_a[i] += a * a;
            products[i * k..][..k].iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b.to_f64());
        }
        norms_b.iter_mut().zip(b).for_each(|(sum, b)| *sum += b.to_f64().powi(2));
    }
    normalize(&mut products, &norms_a, &norms_b);
    products
}

/// Divides the products of columns by their norms, whose squares are given.
pub(crate) fn normalize(products: &mut [f64], squares_a: &[f64], squares_b: &[f64]) {
    let k = squares_a.len();
    for (i, row) in products.chunks_exact_mut(k).enumerate() {
        for (product, square) in row.iter_mut().zip(squares_b) {
            let norms = (squares_a[i] * square).sqrt();
            *product = if norms > 0.0 { (*product / norms).min(1.0) } else { 0.0 };
        }
    }
}

/// The similarity of the components of several runs on the same data.
#[derive(Clone, Debug, PartialEq)]
pub struct Stability {
    /// The mean of the matched cosines over all pairs of runs.
    pub mean: f64,
    /// The lowest matched cosine.
    pub worst: f64,
    /// For each component of the reference run, the mean of its matched cosines with the other runs.
    pub of_components: Vec<f64>,
    /// The mean silhouette of the components of all runs, clustered by their match in the reference run, in cosine
    /// distance.
    pub silhouette: f64,
}

impl Stability {
    /// Compares the second factors of at least two runs, each n x k and stored by row. The numbering of
    /// components is that of the run `reference`.
    pub fn of<T: Real>(runs: &[Vec<T>], k: usize, reference: usize) -> Option<Self> {
        let count = runs.len();
        if count < 2 {
            return None;
        }
        let mut all = AllCosines { count, k, cosines: vec![0.0; (count * k).pow(2)] };
        let (mut sum, mut worst) = (0.0, f64::INFINITY);
        let mut labels: Vec<usize> = (0..count).flat_map(|_| 0..k).collect();
        let mut of_components = vec![0.0; k];
        for a in 0..count {
            all.insert(a, a, &cosines(&runs[a], &runs[a], k));
            for b in a + 1..count {
                let scores = cosines(&runs[a], &runs[b], k);
                let matched = assign(&scores, k);
                for (component, &other) in matched.iter().enumerate() {
                    let cosine = scores[component * k + other];
                    sum += cosine;
                    worst = worst.min(cosine);
                    // Maps components of the reference run to the matched run and component.
                    let (own, run, label) = match reference {
                        _ if reference == a => (component, b, other),
                        _ if reference == b => (other, a, component),
                        _ => continue,
                    };
                    of_components[own] += cosine / (count - 1) as f64;
                    labels[run * k + label] = own;
                }
                all.insert(a, b, &scores);
            }
        }
        let pairs = (count * (count - 1) / 2) as f64;
        let silhouette = all.silhouette(&labels);
        Some(Stability { mean: sum / (pairs * k as f64), worst, of_components, silhouette })
    }
}

/// The cosines between all components of all runs.
struct AllCosines {
    count: usize,
    k: usize,
    cosines: Vec<f64>,
}

impl AllCosines {
    /// Fills in the cosines between runs `a` and `b`, both ways.
    fn insert(&mut self, a: usize, b: usize, scores: &[f64]) {
        let size = self.count * self.k;
        for i in 0..self.k {
            for j in 0..self.k {
                self.cosines[(a * self.k + i) * size + b * self.k + j] = scores[i * self.k + j];
                self.cosines[(b * self.k + j) * size + a * self.k + i] = scores[i * self.k + j];
            }
        }
    }

    /// The mean silhouette (Rousseeuw 1987) of clusters of equal size; 1 if there is a single one.
    fn silhouette(&self, labels: &[usize]) -> f64 {
        if self.k == 1 {
            return 1.0;
        }
        let size = self.count * self.k;
        let mut sum = 0.0;
        for item in 0..size {
            let mut distances = vec![0.0; self.k];
            for (&cosine, &label) in self.cosines[item * size..][..size].iter().zip(labels) {
                distances[label] += 1.0 - cosine;
            }
            let own = (distances[labels[item]] - (1.0 - self.cosines[item * size + item]))
                / (self.count - 1) as f64;
            let others = distances.iter().enumerate().filter(|&(label, _)| label != labels[item]);
            let nearest =
                others.map(|(_, distance)| distance / self.count as f64).fold(f64::INFINITY, f64::min);
            let wider = own.max(nearest);
            sum += if wider > 0.0 { (nearest - own) / wider } else { 0.0 };
        }
        sum / size as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(columns: &[[f64; 3]]) -> Vec<f64> {
        (0..3).flat_map(|row| columns.iter().map(move |column| column[row])).collect()
    }

    #[test]
    fn permuted_and_rescaled_components_are_perfectly_stable() {
        let a = factor(&[[1.0, 0.0, 0.0], [0.0, 2.0, 1.0]]);
        let b = factor(&[[0.0, 6.0, 3.0], [5.0, 0.0, 0.0]]);
        let stability = Stability::of(&[a, b], 2, 0).unwrap();
        assert!((stability.mean - 1.0).abs() < 1e-12 && (stability.worst - 1.0).abs() < 1e-12);
        assert!((stability.silhouette - 1.0).abs() < 1e-12, "{stability:?}");
    }

    #[test]
    fn a_component_missing_from_one_run_is_the_unstable_one() {
        let a = factor(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
        let b = factor(&[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]);
        for reference in 0..2 {
            let runs = [a.clone(), b.clone()];
            let stability = Stability::of(&runs, 2, reference).unwrap();
            let expected = if reference == 0 { [1.0, 0.0] } else { [0.0, 1.0] };
            assert_eq!(stability.of_components, expected);
            assert_eq!((stability.mean, stability.worst), (0.5, 0.0));
        }
    }

    #[test]
    fn zero_columns_match_no_component() {
        let a = factor(&[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]);
        let stability = Stability::of(&[a.clone(), a], 2, 1).unwrap();
        assert_eq!(stability.of_components, [1.0, 0.0]);
    }

    #[test]
    fn the_silhouette_agrees_with_scikit_learn() {
        // sklearn.metrics.silhouette_score(1 - cosines, labels, metric="precomputed") of these six components.
        let runs = [
            factor(&[[3.0, 1.0, 0.0], [0.0, 1.0, 4.0]]),
            factor(&[[2.0, 2.0, 0.0], [0.0, 1.0, 1.0]]),
            factor(&[[1.0, 0.0, 2.0], [5.0, 1.0, 1.0]]),
        ];
        let silhouette = Stability::of(&runs, 2, 0).unwrap().silhouette;
        assert!((silhouette - SILHOUETTE).abs() < 1e-12, "{silhouette}");
    }

    const SILHOUETTE: f64 = 0.755_573_325_918_947_5;
}
