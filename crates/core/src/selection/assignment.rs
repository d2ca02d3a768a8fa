//! Optimal assignment: which component of one run corresponds to which of another.

/// For every row of a square matrix of scores, its column, so that the sum of the scores is as large as possible.
///
/// The shortest augmenting paths of Kuhn and Munkres with potentials, O(k³).
pub fn assign(scores: &[f64], k: usize) -> Vec<usize> {
    assert_eq!(scores.len(), k * k, "a square matrix of scores");
    // Row and column 0 are sentinels; costs are negated scores.
    let mut row_of = vec![0usize; k + 1];
    let mut potentials = Potentials { rows: vec![0.0; k + 1], cols: vec![0.0; k + 1] };
    for row in 1..=k {
        row_of[0] = row;
        let mut search = Search { least: vec![f64::INFINITY; k + 1], previous: vec![0; k + 1] };
        let mut visited = vec![false; k + 1];
        let mut col = 0;
        while row_of[col] != 0 {
            visited[col] = true;
            col = search.step(scores, &mut potentials, &row_of, &visited, col);
        }
        // Along the path, every column takes the row of the one before.
        while col != 0 {
            let before = search.previous[col];
            row_of[col] = row_of[before];
            col = before;
        }
    }
    let mut assigned = vec![0; k];
    for col in 1..=k {
        assigned[row_of[col] - 1] = col - 1;
    }
    assigned
}

struct Potentials {
    rows: Vec<f64>,
    cols: Vec<f64>,
}

/// The search for one augmenting path.
struct Search {
    /// The least reduced cost at which each column was reached.
    least: Vec<f64>,
    /// The column that it was reached from.
    previous: Vec<usize>,
}

impl Search {
    /// Visits the row of `col`, updates the potentials, and returns the nearest column not yet visited.
    fn step(
        &mut self,
        scores: &[f64],
        potentials: &mut Potentials,
        row_of: &[usize],
        visited: &[bool],
        col: usize,
    ) -> usize {
        let k = row_of.len() - 1;
        let row = row_of[col];
        let (mut nearest, mut delta) = (0, f64::INFINITY);
        for other in (1..=k).filter(|&other| !visited[other]) {
            let cost = -scores[(row - 1) * k + other - 1] - potentials.rows[row] - potentials.cols[other];
            if cost < self.least[other] {
                (self.least[other], self.previous[other]) = (cost, col);
            }
            if self.least[other] < delta {
                (nearest, delta) = (other, self.least[other]);
            }
        }
        for other in 0..=k {
            if visited[other] {
                potentials.rows[row_of[other]] += delta;
                potentials.cols[other] -= delta;
            } else {
                self.least[other] -= delta;
            }
        }
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(scores: &[f64], k: usize, columns: &[usize]) -> f64 {
        columns.iter().enumerate().map(|(row, &col)| scores[row * k + col]).sum()
    }

    /// The largest total over all permutations.
    fn exhaustive(scores: &[f64], k: usize, row: usize, free: &mut Vec<bool>) -> f64 {
        if row == k {
            return 0.0;
        }
        let mut best = f64::NEG_INFINITY;
        for col in 0..k {
            if std::mem::take(&mut free[col]) {
                best = best.max(scores[row * k + col] + exhaustive(scores, k, row + 1, free));
                free[col] = true;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn no_permutation_scores_more((k, scores) in (1usize..7).prop_flat_map(|k| {
            (Just(k), prop::collection::vec(prop_oneof![-2.0..2.0f64, Just(0.0), Just(1.0)], k * k))
        })) {
            let assigned = assign(&scores, k);
            let mut seen = assigned.clone();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..k).collect::<Vec<_>>());
            let best = exhaustive(&scores, k, 0, &mut vec![true; k]);
            prop_assert!((total(&scores, k, &assigned) - best).abs() < 1e-9);
        }
    }

    #[test]
    fn agrees_with_scipy() {
        // scipy.optimize.linear_sum_assignment(default_rng(0).integers(0, 100, (6, 6)), maximize=True)
        let scores = [
            85, 63, 51, 26, 30, 4, 7, 1, 17, 81, 64, 91, 50, 60, 97, 72, 63, 54, 55, 93, 27, 81, 67, 0, 39,
            85, 55, 3, 76, 72, 84, 17, 8, 86, 2, 54,
        ];
        let scores: Vec<f64> = scores.into_iter().map(f64::from).collect();
        let assigned = assign(&scores, 6);
        assert_eq!(assigned, [0, 5, 2, 1, 4, 3]);
    }
}
