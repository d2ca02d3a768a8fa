//! Nonnegative least squares, solved exactly: block principal pivoting (Kim and Park 2011) on the normal equations,
//! rows with the same passive set together.

use std::collections::BTreeMap;

use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, MatRef};

use super::{Quadratic, Solver, Step};
use crate::Real;
use crate::cancel::Cancel;
use crate::kernels::Tile;

/// The exact solution of every row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pivoting;

impl<T: Real> Solver<T> for Pivoting {
    fn name(&self) -> &'static str {
        "block principal pivoting"
    }

    fn step(&self) -> Step {
        Step::Exact
    }

    fn move_tile(
        &self,
        problem: &Quadratic<T>,
        product: &mut Tile<T>,
        factor: &mut Tile<T>,
        rows: usize,
        cancel: &Cancel,
    ) {
        let k = problem.k;
        let exact = |tile: &Tile<T>| {
            let mut used = vec![T::ZERO; rows * k];
            tile.store(&mut used, k);
            used.iter().map(|value| value.to_f64()).collect::<Vec<f64>>()
        };
        let solution = nnls(&problem.exact_gram, &exact(product), Some(&exact(factor)), k, cancel);
        let rows: Vec<T> = solution.into_iter().map(T::from_f64).collect();
        factor.load(&rows, k);
    }
}

/// How often exchanging all infeasible variables may fail to lower their number before the backup rule takes over,
/// which exchanges one variable at a time and always terminates.
const FULL_EXCHANGES: usize = 3;

/// Sets up to this size are solved in place: most belong to one row, and do not justify larger machinery.
const SMALL: usize = 48;

/// One row's problem while it is being solved.
struct Row {
    passive: Vec<bool>,
    fewest: usize,
    tries: usize,
}

/// For each row p of `products` (k numbers each) the x ≥ 0 that minimises ½ xᵀG x − pᵀx: with G = BᵀB and p = Bᵀa,
/// the one that minimises ‖B x − a‖². `start` says which entries are expected to be positive.
///
/// The solution satisfies x ≥ 0, y = G x − p ≥ 0 and xᵀy = 0 up to rounding, however the columns of B are scaled; a
/// column of zeros has weight 0. Where G is singular there are many solutions, of which a vanishing ridge picks one.
pub fn nnls(gram: &[f64], products: &[f64], start: Option<&[f64]>, k: usize, cancel: &Cancel) -> Vec<f64> {
    let scales: Vec<f64> = (0..k).map(|j| unit_scale(gram[j * (k + 1)])).collect();
    let scaled = |numbers: &[f64]| -> Vec<f64> {
        numbers.iter().zip(scales.iter().cycle()).map(|(number, scale)| number * scale).collect()
    };
    let mut unit = scaled(gram);
    for (row, scale) in unit.chunks_exact_mut(k).zip(&scales) {
        row.iter_mut().for_each(|value| *value *= scale);
    }
    // A column of zeros is excluded, and its weight is 0.
    (0..k).filter(|&j| scales[j] == 0.0).for_each(|j| unit[j * (k + 1)] = 1.0);
    scaled(&solve_scaled(&unit, &scaled(products), start, k, cancel))
}

/// The power of two s that brings s² G_jj into [1/2, 2]; 0 if G_jj is 0, and NaN, to be noticed, if it is not
/// finite.
fn unit_scale(diagonal: f64) -> f64 {
    if diagonal == 0.0 { 0.0 } else { (-0.5 * diagonal.log2()).round().exp2() + 0.0 * diagonal }
}

/// Solves the problem of [`nnls`] with a diagonal of G near 1.
fn solve_scaled(
    gram: &[f64],
    products: &[f64],
    start: Option<&[f64]>,
    k: usize,
    cancel: &Cancel,
) -> Vec<f64> {
    let rows = products.len() / k;
    let mut x = vec![0.0; rows * k];
    let gram = &well_posed(gram, k);
    let mut state: Vec<Row> = (0..rows)
        .map(|row| {
            let passive = match start {
                Some(start) => start[row * k..][..k].iter().map(|&value| value > 0.0).collect(),
                None => vec![false; k],
            };
            Row { passive, fewest: k + 1, tries: FULL_EXCHANGES }
        })
        .collect();
    let mut open: Vec<usize> = (0..rows).collect();
    // About ten rounds are usual. The backup rule terminates, but it may take long, and rounding may make two sets
    // alternate.
    for _ in 0..(k + 50) {
        solve_groups(gram, products, &state, &open, &mut x, k, cancel);
        open.retain(|&row| {
            let x = &x[row * k..][..k];
            x.iter().any(|value| !value.is_finite())
                || exchange(gram, &products[row * k..][..k], x, &mut state[row])
        });
        if open.is_empty() {
            break;
        }
    }
    // If exchanges did not terminate, or met a set that rounding makes singular, solve one variable at a time.
    for &row in &open {
        let solution = active_set(gram, &products[row * k..][..k], cancel);
        x[row * k..][..k].copy_from_slice(&solution);
    }
    // Values that are not finite stay visible.
    x.iter_mut().filter(|value| **value < 0.0).for_each(|value| *value = 0.0);
    x
}

/// Solves the problem for one row by Lawson and Hanson's active set method (1974): slower, but x never leaves the
/// feasible set and the objective decreases with every exchange.
fn active_set(gram: &[f64], product: &[f64], cancel: &Cancel) -> Vec<f64> {
    let k = product.len();
    let slack = 1e-12 * product.iter().fold(f64::MIN_POSITIVE, |max, value| max.max(value.abs()));
    let descent =
        |x: &[f64], j: usize| product[j] - gram[j * k..][..k].iter().zip(x).map(|(g, x)| g * x).sum::<f64>();
    let (mut x, mut set) = (vec![0.0; k], Vec::new());
    let mut barred = vec![false; k];
    for _ in 0..10 * k {
        let candidates = (0..k).filter(|j| !set.contains(j) && !barred[*j]);
        let best = candidates.map(|j| (descent(&x, j), j)).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, entering)) = best.filter(|(size, _)| *size > slack) else { break };
        set.push(entering);
        loop {
            cancel.check();
            let right = Mat::<f64>::from_fn(set.len(), 1, |place, _| product[set[place]]);
            let solution = solve(gram, &set, right, k);
            // The result of a singular set counts as blocked.
            let at =
                |place: usize| Some(solution[(place, 0)]).filter(|value| value.is_finite()).unwrap_or(0.0);
            if at(set.len() - 1) <= 0.0 && set[set.len() - 1] == entering && x[entering] == 0.0 {
                // The variable only looked promising because of rounding.
                barred[entering] = true;
                set.pop();
                break;
            }
            let blocked = (0..set.len()).filter(|&place| at(place) <= 0.0);
            let step = blocked.map(|place| x[set[place]] / (x[set[place]] - at(place))).fold(1.0, f64::min);
            for (place, &j) in set.iter().enumerate() {
                x[j] += step * (at(place) - x[j]);
            }
            if step >= 1.0 {
                barred.fill(false);
                break;
            }
            set.retain(|&j| x[j] > 1e-300);
            (0..k).filter(|j| !set.contains(j)).for_each(|j| x[j] = 0.0);
            if set.is_empty() {
                break;
            }
        }
    }
    x
}

/// Moves infeasible variables to the other set; false if there are none.
fn exchange(gram: &[f64], product: &[f64], x: &[f64], row: &mut Row) -> bool {
    let k = product.len();
    let size = product.iter().fold(0f64, |max, value| max.max(value.abs()));
    let slack = 1e-12 * size.max(f64::MIN_POSITIVE);
    let infeasible: Vec<usize> = (0..k)
        .filter(|&j| {
            if row.passive[j] {
                x[j] < 0.0
            } else {
                let predicted: f64 = gram[j * k..][..k].iter().zip(x).map(|(g, x)| g * x).sum();
                predicted - product[j] < -slack
            }
        })
        .collect();
    let Some(&last) = infeasible.last() else { return false };
    let exchanged = if infeasible.len() < row.fewest {
        (row.fewest, row.tries) = (infeasible.len(), FULL_EXCHANGES);
        &infeasible[..]
    } else if row.tries > 0 {
        row.tries -= 1;
        &infeasible[..]
    } else {
        &[last]
    };
    for &j in exchanged {
        row.passive[j] = !row.passive[j];
    }
    true
}

/// x_F = G_FF⁻¹ p_F on each open row's passive set F, 0 elsewhere: one factorization for all rows with the same F.
fn solve_groups(
    gram: &[f64],
    products: &[f64],
    state: &[Row],
    open: &[usize],
    x: &mut [f64],
    k: usize,
    cancel: &Cancel,
) {
    let mut groups: BTreeMap<&[bool], Vec<usize>> = BTreeMap::new();
    for &row in open {
        groups.entry(&state[row].passive).or_default().push(row);
    }
    let (mut factor, mut solution) = (Vec::new(), Vec::new());
    for (passive, rows) in groups {
        // With hundreds of components a tile takes seconds, so cancellation is checked.
        cancel.check();
        let set: Vec<usize> = (0..k).filter(|&j| passive[j]).collect();
        if set.len() <= SMALL {
            let sound = factorize(gram, &set, k, &mut factor);
            for row in rows {
                let x = &mut x[row * k..][..k];
                x.fill(0.0);
                solution.clear();
                solution.extend(set.iter().map(|&j| if sound { products[row * k + j] } else { f64::NAN }));
                substitute(&factor, &mut solution);
                set.iter().zip(&solution).for_each(|(&j, &value)| x[j] = value);
            }
            continue;
        }
        let right = Mat::<f64>::from_fn(set.len(), rows.len(), |j, row| products[rows[row] * k + set[j]]);
        let solution = solve(gram, &set, right, k);
        for (col, &row) in rows.iter().enumerate() {
            x[row * k..][..k].fill(0.0);
            for (place, &j) in set.iter().enumerate() {
                x[row * k + j] = solution[(place, col)];
            }
        }
    }
}

/// The Cholesky factor of G_FF, by row; false where rounding makes it singular.
fn factorize(gram: &[f64], set: &[usize], k: usize, factor: &mut Vec<f64>) -> bool {
    let size = set.len();
    factor.clear();
    factor.resize(size * size, 0.0);
    for row in 0..size {
        let (above, below) = factor.split_at_mut(row * size);
        for col in 0..row {
            let rest = gram[set[row] * k + set[col]] - dot(&below[..col], &above[col * size..][..col]);
            below[col] = rest / above[col * (size + 1)];
        }
        let pivot = gram[set[row] * (k + 1)] - dot(&below[..row], &below[..row]);
        // NaN is invalid too.
        if pivot.is_nan() || pivot <= 0.0 {
            return false;
        }
        below[row] = pivot.sqrt();
    }
    true
}

/// The solution of L Lᵀ x = p, in place of p.
fn substitute(factor: &[f64], x: &mut [f64]) {
    let size = x.len();
    for row in 0..size {
        let known = dot(&factor[row * size..][..row], &x[..row]);
        x[row] = (x[row] - known) / factor[row * (size + 1)];
    }
    for row in (0..size).rev() {
        x[row] /= factor[row * (size + 1)];
        let value = x[row];
        x[..row].iter_mut().zip(&factor[row * size..]).for_each(|(x, l)| *x -= l * value);
    }
}

/// ⟨a, b⟩ in four sums, for SIMD.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut sums = [0.0; 4];
    for (a, b) in a.iter().zip(b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

fn solve(gram: &[f64], set: &[usize], right: Mat<f64>, k: usize) -> Mat<f64> {
    let part = Mat::<f64>::from_fn(set.len(), set.len(), |row, col| gram[set[row] * k + set[col]]);
    match part.llt(faer::Side::Lower) {
        Ok(factor) => factor.solve(&right),
        // Parts of a well-posed G are well posed, up to rounding, which the caller notices.
        Err(_) => Mat::full(right.nrows(), right.ncols(), f64::NAN),
    }
}

/// G, whose diagonal is near 1, if its Cholesky factor shows that it is well conditioned; otherwise G with a ridge,
/// which makes the problem strictly convex: only then do exchanges terminate, at one of the many solutions.
fn well_posed(gram: &[f64], k: usize) -> Vec<f64> {
    const SMALLEST: f64 = 1e-10;
    // The ridge is raised until it outweighs the rounding errors in G, which in single precision are larger.
    for ridge in [0.0, SMALLEST, 1e-8, 1e-6, 1e-4] {
        let mut ridged = gram.to_vec();
        ridged.iter_mut().step_by(k + 1).for_each(|diagonal| *diagonal += ridge);
        let whole = MatRef::from_column_major_slice(&ridged, k, k);
        let smallest = ridge.max(SMALLEST) * 0.1;
        let sound = |factor: Llt<f64>| (0..k).all(|j| factor.L()[(j, j)].powi(2) > smallest);
        if whole.llt(faer::Side::Lower).is_ok_and(sound) {
            return ridged;
        }
    }
    gram.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn satisfies_the_optimality_conditions(
            k in 1usize..12, d in 1usize..20, rows in 1usize..6, warm: bool,
            numbers in prop::collection::vec(-1f64..1.0, 12 * 20 + 20 * 6 + 12 * 6), nonnegative: bool,
        ) {
            let entry = |value: f64| if nonnegative { value.abs() } else { value };
            let b: Vec<f64> = numbers[..k * d].iter().copied().map(entry).collect();
            let a = &numbers[240..240 + d * rows];
            let gram: Vec<f64> = (0..k * k)
                .map(|i| (0..d).map(|c| b[i / k * d + c] * b[i % k * d + c]).sum()).collect();
            let products: Vec<f64> = (0..rows * k)
                .map(|i| (0..d).map(|c| b[i % k * d + c] * a[i / k * d + c]).sum()).collect();
            let start = warm.then(|| &numbers[360..360 + rows * k]);
            let x = nnls(&gram, &products, start, k, &Cancel::default());
            for row in 0..rows {
                let x = &x[row * k..][..k];
                // The ridge of a singular G moves the gradient by 1e-10 of x.
                let slack = 1e-9 * (1.0 + x.iter().copied().fold(0.0, f64::max));
                for j in 0..k {
                    let y: f64 = (0..k).map(|l| gram[j * k + l] * x[l]).sum::<f64>() - products[row * k + j];
                    prop_assert!(x[j] >= 0.0);
                    prop_assert!(y >= -slack, "gradient {y} at {}", x[j]);
                    prop_assert!(x[j] == 0.0 || y <= slack, "gradient {y} at {}", x[j]);
                }
            }
        }
    }

    /// A case in which exchanges do not terminate: thirty columns that differ by 1e-4.
    #[test]
    fn nearly_equal_columns_are_fitted_as_well_as_can_be() {
        let (k, d) = (30, 40);
        let mut rng = crate::random::stream(1, crate::random::Purpose::StartU, 0, 0);
        let mut draw =
            |count: usize| -> Vec<f64> { (0..count).map(|_| crate::random::uniform(&mut rng)).collect() };
        let (base, noise, a) = (draw(d), draw(k * d), draw(d * 20));
        let b: Vec<f64> = (0..k * d).map(|i| base[i % d] + 1e-4 * noise[i]).collect();
        let gram: Vec<f64> =
            (0..k * k).map(|i| (0..d).map(|c| b[i / k * d + c] * b[i % k * d + c]).sum()).collect();
        let products: Vec<f64> =
            (0..20 * k).map(|i| (0..d).map(|c| b[i % k * d + c] * a[i / k * d + c]).sum()).collect();
        for (x, product) in
            nnls(&gram, &products, None, k, &Cancel::default()).chunks(k).zip(products.chunks(k))
        {
            let objective = |x: &[f64]| -> f64 {
                let image = |j: usize| (0..k).map(|l| gram[j * k + l] * x[l]).sum::<f64>();
                (0..k).map(|j| x[j] * (0.5 * image(j) - product[j])).sum()
            };
            let one_by_one = active_set(&gram, product, &Cancel::default());
            assert!(x.iter().all(|&value| value >= 0.0 && value.is_finite()));
            // Objectives are negative: equally low, up to a millionth.
            assert!(
                objective(x) <= objective(&one_by_one) * (1.0 - 1e-6),
                "{} {}",
                objective(x),
                objective(&one_by_one)
            );
        }
    }

    #[test]
    fn a_zero_problem_has_the_zero_solution() {
        let nnls =
            |gram: &[f64], products: &[f64], start, k| nnls(gram, products, start, k, &Cancel::default());
        assert_eq!(nnls(&[0.0; 4], &[0.0; 2], None, 2), [0.0; 2]);
        assert_eq!(nnls(&[0.0; 4], &[0.0; 2], Some(&[1.0; 2]), 2), [0.0; 2]);
        assert_eq!(nnls(&[1.0], &[-3.0], None, 1), [0.0]);
        assert!((nnls(&[2.0], &[3.0], None, 1)[0] - 1.5).abs() < 1e-15);
    }
}
