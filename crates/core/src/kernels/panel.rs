//! The inner loop of sweeps and dense products: columns of a tile times coefficients, summed in registers.

use pulp::Simd;

use super::TILE;
use crate::Real;

/// The maximum number of columns of sums held at once: each loaded number of a column is used for all of them. With
/// 4 registers of rows they take 24 of AVX-512's 32, with 2 registers 12 of AVX2's 16.
const WIDEST: usize = 6;

/// A part of a tile: `R` registers of rows, `P` columns.
#[derive(Clone, Copy)]
pub struct Panel {
    /// Registers of a column of the tile.
    pub registers: usize,
    /// The first register of the part.
    pub strip: usize,
    /// The first column of the part.
    pub first: usize,
}

/// The operation that is applied to a tile part by part.
pub trait Panels {
    /// Applies it to `R` registers of rows and `P` columns.
    fn panel<S: Simd, const R: usize, const P: usize>(&mut self, simd: S, panel: Panel);
}

/// All parts of a tile of `k` columns, columns in ascending order.
#[inline(always)]
pub fn each_panel<T: Real, S: Simd>(simd: S, k: usize, work: &mut impl Panels) {
    let registers = size_of::<[T; TILE]>() / size_of::<T::Vector<S>>();
    if S::F32_LANES >= 16 {
        strips::<S, 4>(simd, k, registers, work)
    } else {
        strips::<S, 2>(simd, k, registers, work)
    }
}

#[inline(always)]
fn strips<S: Simd, const R: usize>(simd: S, k: usize, registers: usize, work: &mut impl Panels) {
    let count = k.div_ceil(WIDEST);
    for strip in (0..registers).step_by(R) {
        for index in 0..count {
            let (first, end) = (index * k / count, (index + 1) * k / count);
            let panel = Panel { registers, strip, first };
            match end - first {
                1 => work.panel::<S, R, 1>(simd, panel),
                2 => work.panel::<S, R, 2>(simd, panel),
                3 => work.panel::<S, R, 3>(simd, panel),
                4 => work.panel::<S, R, 4>(simd, panel),
                5 => work.panel::<S, R, 5>(simd, panel),
                _ => work.panel::<S, R, 6>(simd, panel),
            }
        }
    }
}

/// Σ_l c_l[p] a_l for every p, from pairs of coefficients c_l (at least P) and columns a_l (R registers): one rounding
/// for each term, in their order, whatever the machine's registers.
#[inline(always)]
pub fn combine<'a, T: Real, S: Simd, const R: usize, const P: usize>(
    simd: S,
    terms: impl Iterator<Item = (&'a [T], &'a [T::Vector<S>])>,
) -> [[T::Vector<S>; R]; P] {
    let mut sums = [[T::splat(simd, T::ZERO); R]; P];
    for (coefficients, column) in terms {
        let (coefficients, column) = (&coefficients[..P], &column[..R]);
        for col in 0..P {
            let coefficient = T::splat(simd, coefficients[col]);
            for part in 0..R {
                sums[col][part] = T::add_product(simd, coefficient, column[part], sums[col][part]);
            }
        }
    }
    sums
}
