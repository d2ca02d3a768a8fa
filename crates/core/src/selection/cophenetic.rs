//! Measures how well a hierarchy describes which rows are clustered together in several runs (Brunet et al.
//! 2004).

/// The cophenetic correlation of average linkage on the consensus of several clusterings of the same rows,
/// where the distance between two rows is the share of clusterings that separate them. `None` if all
/// distances are equal.
///
/// Ties are resolved as SciPy's `linkage(method="average")` does, whose chain of nearest neighbours this is.
pub fn cophenetic_correlation(clusterings: &[Vec<u16>]) -> Option<f64> {
    let rows = clusterings.first()?.len();
    let distances = consensus_distances(clusterings, rows);
    let mut correlation = Correlation::default();
    let mut linkage = Linkage::new(distances.clone(), rows);
    for _ in 1..rows {
        let Merge { a, b, height } = linkage.merge();
        for &i in &a {
            for &j in &b {
                correlation.add(distances[i * rows + j], height);
            }
        }
    }
    correlation.coefficient()
}

/// The share of clusterings that separate each pair of rows.
fn consensus_distances(clusterings: &[Vec<u16>], rows: usize) -> Vec<f64> {
    let mut distances = vec![0.0; rows * rows];
    for i in 0..rows {
        for j in i + 1..rows {
            let apart = clusterings.iter().filter(|labels| labels[i] != labels[j]).count();
            let distance = apart as f64 / clusterings.len() as f64;
            (distances[i * rows + j], distances[j * rows + i]) = (distance, distance);
        }
    }
    distances
}

/// Average linkage: merges in the order in which they are found, not by height.
struct Linkage {
    size: usize,
    distances: Vec<f64>,
    /// The rows of each cluster; a cluster that was merged into another has none.
    members: Vec<Vec<usize>>,
    /// A chain of clusters, each the nearest neighbour of the previous one.
    chain: Vec<usize>,
}

/// Two clusters that are merged.
struct Merge {
    a: Vec<usize>,
    b: Vec<usize>,
    height: f64,
}

impl Linkage {
    fn new(distances: Vec<f64>, size: usize) -> Self {
        Linkage { size, distances, members: (0..size).map(|row| vec![row]).collect(), chain: Vec::new() }
    }

    /// Follows nearest neighbours until two clusters are each other's, and merges them.
    fn merge(&mut self) -> Merge {
        if self.chain.is_empty() {
            self.chain.extend(self.members.iter().position(|rows| !rows.is_empty()));
        }
        loop {
            let x = self.chain[self.chain.len() - 1];
            // On a tie, the previous cluster is preferred, so that the chain cannot run in circles.
            let before = self.chain.len().checked_sub(2).map(|place| self.chain[place]);
            let mut nearest = before.unwrap_or(x);
            let mut height = before.map_or(f64::INFINITY, |y| self.distances[x * self.size + y]);
            for other in (0..self.size).filter(|&other| other != x && !self.members[other].is_empty()) {
                let distance = self.distances[x * self.size + other];
                if distance < height {
                    (nearest, height) = (other, distance);
                }
            }
            if Some(nearest) == before {
                self.chain.truncate(self.chain.len() - 2);
                return self.join(x.min(nearest), x.max(nearest), height);
            }
            self.chain.push(nearest);
        }
    }

    /// Merges cluster `from` into cluster `into`.
    fn join(&mut self, from: usize, into: usize, height: f64) -> Merge {
        let a = std::mem::take(&mut self.members[from]);
        let b = self.members[into].clone();
        let (size_a, size_b) = (a.len() as f64, b.len() as f64);
        for other in (0..self.size).filter(|&other| other != into && !self.members[other].is_empty()) {
            let far = self.distances[other * self.size + from];
            let near = self.distances[other * self.size + into];
            let distance = (size_a * far + size_b * near) / (size_a + size_b);
            self.distances[other * self.size + into] = distance;
            self.distances[into * self.size + other] = distance;
        }
        self.members[into].extend(&a);
        Merge { a, b, height }
    }
}

/// Sums for Pearson's correlation.
#[derive(Default)]
struct Correlation {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Correlation {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.yy += y * y;
        self.xy += x * y;
    }

    fn coefficient(&self) -> Option<f64> {
        let Correlation { count, x, y, xx, yy, xy } = *self;
        let (spread_x, spread_y) = (xx - x * x / count, yy - y * y / count);
        // Shares that are all equal differ only by rounding.
        let varies = |spread: f64, squares: f64| spread > 1e-12 * squares;
        if !varies(spread_x, xx) || !varies(spread_y, yy) {
            return None;
        }
        Some((xy - x * y / count) / (spread_x * spread_y).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_scipy() {
        // g = default_rng(1); runs = g.integers(0, 3, (7, 12)); d = pdist(runs.T, "hamming");
        // cophenet(linkage(d, "average"), d)[0]
        let runs: [[u16; 12]; 7] = RUNS;
        let runs: Vec<Vec<u16>> = runs.iter().map(|run| run.to_vec()).collect();
        let correlation = cophenetic_correlation(&runs).unwrap();
        assert!((correlation - SCIPY).abs() < 1e-12, "{correlation}");
    }

    #[test]
    fn equal_clusterings_correlate_perfectly() {
        let runs = vec![vec![0, 0, 1, 1, 2], vec![2, 2, 0, 0, 1]];
        assert!((cophenetic_correlation(&runs).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_single_cluster_has_no_correlation() {
        assert_eq!(cophenetic_correlation(&[vec![0; 5], vec![0; 5]]), None);
        assert_eq!(cophenetic_correlation(&[]), None);
    }

    const RUNS: [[u16; 12]; 7] = [
        [1, 1, 2, 2, 0, 0, 2, 2, 0, 0, 2, 1],
        [0, 2, 0, 1, 1, 1, 0, 0, 2, 2, 2, 1],
        [2, 0, 1, 2, 0, 0, 0, 1, 2, 0, 1, 1],
        [2, 0, 1, 0, 0, 2, 0, 0, 1, 1, 0, 2],
        [2, 2, 0, 2, 0, 1, 2, 0, 2, 0, 0, 2],
        [1, 1, 0, 0, 1, 1, 1, 2, 1, 1, 2, 2],
        [1, 0, 2, 1, 2, 1, 1, 0, 1, 1, 2, 2],
    ];

    const SCIPY: f64 = 0.7575472906256924;
}
