//! Transposes thin matrices between by-row and by-column order, in registers where AVX is available.

use std::ops::Range;

use bytemuck::Pod;

/// The layout of one side of a transposition: `numbers[i * stride + j]`.
pub struct Lines<N> {
    /// All numbers.
    pub numbers: N,
    /// Distance between two lines.
    pub stride: usize,
}

/// to[j][i] = from[i][j] for `rows` lines of `cols` numbers each.
pub fn transpose<T: Pod>(from: Lines<&[T]>, to: Lines<&mut [T]>, rows: usize, cols: usize) {
    if rows == 0 || cols == 0 {
        return;
    }
    assert!(from.numbers.len() >= (rows - 1) * from.stride + cols);
    assert!(to.numbers.len() >= (cols - 1) * to.stride + rows);
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        match size_of::<T>() {
            4 if rows >= 8 && cols >= 8 => {
                let from = Lines { numbers: bytemuck::cast_slice(from.numbers), stride: from.stride };
                let to = Lines { numbers: bytemuck::cast_slice_mut(to.numbers), stride: to.stride };
                return simd.vectorize(x86::Singles { simd, from, to, rows, cols });
            }
            8 if rows >= 4 && cols >= 4 => {
                let from = Lines { numbers: bytemuck::cast_slice(from.numbers), stride: from.stride };
                let to = Lines { numbers: bytemuck::cast_slice_mut(to.numbers), stride: to.stride };
                return simd.vectorize(x86::Doubles { simd, from, to, rows, cols });
            }
            _ => {}
        }
    }
    one_by_one(from, to, rows, cols);
}

fn one_by_one<T: Copy>(from: Lines<&[T]>, to: Lines<&mut [T]>, rows: usize, cols: usize) {
    for row in 0..rows {
        for (col, &number) in from.numbers[row * from.stride..][..cols].iter().enumerate() {
            to.numbers[col * to.stride + row] = number;
        }
    }
}

/// Where blocks of `block` begin that cover `range`; the last overlaps the one before.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[inline(always)]
fn blocks(range: Range<usize>, block: usize) -> impl Iterator<Item = usize> {
    let last = range.end - block;
    range.step_by(block).map(move |begin| begin.min(last))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256, __m256d};

    use pulp::NullaryFnOnce;
    use pulp::x86::V3;

    use super::{Lines, blocks};

    pub struct Singles<'a> {
        pub simd: V3,
        pub from: Lines<&'a [f32]>,
        pub to: Lines<&'a mut [f32]>,
        pub rows: usize,
        pub cols: usize,
    }

    impl NullaryFnOnce for Singles<'_> {
        type Output = ();

        /// Blocks of 8 x 8: pairs, fours and halves change places.
        #[inline(always)]
        fn call(self) {
            let Singles { simd, from, to, rows, cols } = self;
            let avx = simd.avx;
            for col in blocks(0..cols, 8) {
                for row in blocks(0..rows, 8) {
                    let mut lines: [__m256; 8] = [pulp::cast([0f32; 8]); 8];
                    for (i, line) in lines.iter_mut().enumerate() {
                        *line = pulp::cast(first::<8, f32>(&from.numbers[(row + i) * from.stride + col..]));
                    }
                    let mut fours = lines;
                    for half in [0, 4] {
                        let [a, b, c, d] = [lines[half], lines[half + 1], lines[half + 2], lines[half + 3]];
                        let (low, high) = (avx._mm256_unpacklo_ps(a, b), avx._mm256_unpackhi_ps(a, b));
                        let (below, above) = (avx._mm256_unpacklo_ps(c, d), avx._mm256_unpackhi_ps(c, d));
                        fours[half] = avx._mm256_shuffle_ps::<0x44>(low, below);
                        fours[half + 1] = avx._mm256_shuffle_ps::<0xEE>(low, below);
                        fours[half + 2] = avx._mm256_shuffle_ps::<0x44>(high, above);
                        fours[half + 3] = avx._mm256_shuffle_ps::<0xEE>(high, above);
                    }
                    for i in 0..4 {
                        let left = avx._mm256_permute2f128_ps::<0x20>(fours[i], fours[i + 4]);
                        let right = avx._mm256_permute2f128_ps::<0x31>(fours[i], fours[i + 4]);
                        let (left, right): ([f32; 8], [f32; 8]) = (pulp::cast(left), pulp::cast(right));
                        to.numbers[(col + i) * to.stride + row..][..8].copy_from_slice(&left);
                        to.numbers[(col + i + 4) * to.stride + row..][..8].copy_from_slice(&right);
                    }
                }
            }
        }
    }

    /// The first numbers of a slice that has them.
    #[inline(always)]
    fn first<const N: usize, T: Copy + Default>(numbers: &[T]) -> [T; N] {
        let mut first = [T::default(); N];
        first.copy_from_slice(&numbers[..N]);
        first
    }

    pub struct Doubles<'a> {
        pub simd: V3,
        pub from: Lines<&'a [f64]>,
        pub to: Lines<&'a mut [f64]>,
        pub rows: usize,
        pub cols: usize,
    }

    impl NullaryFnOnce for Doubles<'_> {
        type Output = ();

        /// Blocks of 4 x 4.
        #[inline(always)]
        fn call(self) {
            let Doubles { simd, from, to, rows, cols } = self;
            let avx = simd.avx;
            for col in blocks(0..cols, 4) {
                for row in blocks(0..rows, 4) {
                    let mut lines: [__m256d; 4] = [pulp::cast([0f64; 4]); 4];
                    for (i, line) in lines.iter_mut().enumerate() {
                        *line = pulp::cast(first::<4, f64>(&from.numbers[(row + i) * from.stride + col..]));
                    }
                    let mut pairs = lines;
                    for half in [0, 2] {
                        pairs[half] = avx._mm256_unpacklo_pd(lines[half], lines[half + 1]);
                        pairs[half + 1] = avx._mm256_unpackhi_pd(lines[half], lines[half + 1]);
                    }
                    for i in 0..2 {
                        let left = avx._mm256_permute2f128_pd::<0x20>(pairs[i], pairs[i + 2]);
                        let right = avx._mm256_permute2f128_pd::<0x31>(pairs[i], pairs[i + 2]);
                        let (left, right): ([f64; 4], [f64; 4]) = (pulp::cast(left), pulp::cast(right));
                        to.numbers[(col + i) * to.stride + row..][..4].copy_from_slice(&left);
                        to.numbers[(col + i + 2) * to.stride + row..][..4].copy_from_slice(&right);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn turns_every_entry(rows in 0usize..40, cols in 0usize..40, slack in 0usize..3, single: bool) {
            let (from_stride, to_stride) = (cols + slack, rows + 2 * slack);
            let numbers: Vec<f64> = (0..rows * from_stride).map(|i| i as f64).collect();
            let mut turned = vec![-1.0f64; cols * to_stride];
            if single {
                let singles: Vec<f32> = numbers.iter().map(|&number| number as f32).collect();
                let mut target = vec![-1.0f32; cols * to_stride];
                let (from, to) = (
                    Lines { numbers: &singles[..], stride: from_stride },
                    Lines { numbers: &mut target[..], stride: to_stride },
                );
                transpose(from, to, rows, cols);
                turned = target.iter().map(|&number| number as f64).collect();
            } else {
                let (from, to) = (
                    Lines { numbers: &numbers[..], stride: from_stride },
                    Lines { numbers: &mut turned[..], stride: to_stride },
                );
                transpose(from, to, rows, cols);
            }
            for col in 0..cols {
                for row in 0..to_stride {
                    let want = if row < rows { (row * from_stride + col) as f64 } else { -1.0 };
                    prop_assert_eq!(turned[col * to_stride + row], want);
                }
            }
        }
    }
}
