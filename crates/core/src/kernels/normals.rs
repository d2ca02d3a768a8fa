//! Standard normal numbers, many at a time.

use pulp::{Simd, WithSimd};
use rand::Rng;

use crate::Real;

/// Fills `target` with normal numbers of the given standard deviation, from two 32-bit words for two numbers
/// (Box and Muller): a fixed count, in SIMD lanes. 24 bits each, so that nothing lies beyond 5.8 deviations.
///
/// `words` is scratch memory.
pub fn normals<T: Real>(rng: &mut impl Rng, deviation: f32, words: &mut Vec<u8>, target: &mut [T]) {
    let pairs = target.len().div_ceil(2);
    words.resize(pairs * 8, 0);
    rng.fill_bytes(words);
    pulp::Arch::new().dispatch(BoxMuller { deviation, words, target });
}

struct BoxMuller<'a, T> {
    deviation: f32,
    words: &'a [u8],
    target: &'a mut [T],
}

/// Pairs computed together.
const WIDTH: usize = 32;

/// The position of a thread's stack must not make vectors cross cache lines, which would take 1.5 times as long.
#[repr(align(64))]
struct Aligned<T>([T; WIDTH]);

impl<T: Real> WithSimd for BoxMuller<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let (first, second) = self.words.split_at(self.words.len() / 2);
        let (radii, angles) = (first.as_chunks::<4>().0, second.as_chunks::<4>().0);
        let (cosines, sines) = self.target.split_at_mut(radii.len());
        for (part, (radii, angles)) in radii.chunks(WIDTH).zip(angles.chunks(WIDTH)).enumerate() {
            let (mut x, mut y) = (Aligned([0f32; WIDTH]), Aligned([0f32; WIDTH]));
            let mut words = [const { Aligned([0u32; WIDTH]) }; 2];
            for (words, bytes) in words.iter_mut().zip([radii, angles]) {
                words
                    .0
                    .iter_mut()
                    .zip(bytes)
                    .for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes) >> 8);
            }
            for lane in 0..WIDTH {
                // In (0, 1], so that the logarithm is finite.
                let uniform = (words[0].0[lane] + 1) as f32 * (1.0 / (1 << 24) as f32);
                let radius = self.deviation * (-2.0 * ln(uniform)).sqrt();
                let (sine, cosine) = sin_cos_turn(words[1].0[lane]);
                x.0[lane] = radius * cosine;
                y.0[lane] = radius * sine;
            }
            let begin = part * WIDTH;
            for (target, numbers) in [(&mut *cosines, &x.0), (&mut *sines, &y.0)] {
                let end = target.len().min(begin + radii.len());
                if begin < end {
                    let numbers = numbers.iter().map(|&number| T::from_f64(number as f64));
                    target[begin..end].iter_mut().zip(numbers).for_each(|(target, number)| *target = number);
                }
            }
        }
    }
}

/// ln x for x in (0, 1], to some 1e-7: the exponent, and a series in (m − 1)/(m + 1) for the mantissa m in [√½, √2).
#[inline(always)]
fn ln(x: f32) -> f32 {
    let bits = x.to_bits().wrapping_sub(0x3f35_04f3);
    let exponent = (bits as i32 >> 23) as f32;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) + 0x3f35_04f3);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let series = 2.0 + z * (0.666_666_6 + z * (0.4 + z * (0.285_714_3 + z * 0.230_769)));
    exponent * std::f32::consts::LN_2 + s * series
}

/// Sine and cosine of `word` / 2^24 of a full turn: the quarter from the two upper bits, the rest by polynomials on
/// [−1/8, 1/8] of a turn.
#[inline(always)]
fn sin_cos_turn(word: u32) -> (f32, f32) {
    let quarter = word.wrapping_add(1 << 21) >> 22;
    let rest = word.wrapping_sub(quarter << 22) as i32;
    let angle = rest as f32 * (std::f32::consts::TAU / (1 << 24) as f32);
    let z = angle * angle;
    let sine = angle * (1.0 + z * (-0.166_666_67 + z * (8.333_331e-3 + z * -1.984_09e-4)));
    let cosine = 1.0 + z * (-0.5 + z * (4.166_666_7e-2 + z * (-1.388_888_7e-3 + z * 2.477e-5)));
    let (a, b) = if quarter & 1 == 0 { (sine, cosine) } else { (cosine, sine) };
    let sine = if quarter & 2 == 0 { a } else { -a };
    let cosine = if (quarter + 1) & 2 == 0 { b } else { -b };
    (sine, cosine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    #[test]
    fn logarithm_sine_and_cosine_are_those_of_std() {
        for step in 0..20_000u32 {
            let word = step * 838;
            let x = (word + 1) as f32 / (1 << 24) as f32;
            let want = (x as f64).ln();
            assert!((ln(x) as f64 - want).abs() <= 3e-7 * want.abs().max(1.0), "ln {x}: {} {want}", ln(x));
            let turn = word as f64 / (1 << 24) as f64 * std::f64::consts::TAU;
            let (sine, cosine) = sin_cos_turn(word);
            assert!((sine as f64 - turn.sin()).abs() < 1e-6, "sin {turn}: {sine}");
            assert!((cosine as f64 - turn.cos()).abs() < 1e-6, "cos {turn}: {cosine}");
        }
    }

    /// The moments, and the distribution function at many points (Kolmogorov and Smirnov, at the 0.1% level).
    #[test]
    fn numbers_are_normal() {
        let count = 200_001;
        let mut numbers = vec![0f64; count];
        normals(&mut stream(1, Purpose::SketchU, 0, 0), 2.0, &mut Vec::new(), &mut numbers);
        let moment = |power: i32| numbers.iter().map(|x| (x / 2.0).powi(power)).sum::<f64>() / count as f64;
        for (power, want, spread) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let error = 5.0 * (spread / count as f64).sqrt();
            assert!((moment(power) - want).abs() < error, "moment {power}: {}", moment(power));
        }
        numbers.sort_by(f64::total_cmp);
        for (x, phi) in
            [(-3.0, 0.001349898), (-1.0, 0.158655254), (0.0, 0.5), (0.5, 0.691462461), (2.0, 0.977249868)]
        {
            let below = numbers.partition_point(|&number| number / 2.0 < x) as f64 / count as f64;
            assert!((below - phi).abs() < 1.95 / (count as f64).sqrt(), "{x}: {below} {phi}");
        }
    }

    #[test]
    fn any_count_is_filled_and_repeatable() {
        for count in 0..200 {
            let draw = || {
                let mut numbers = vec![0f32; count];
                normals(&mut stream(1, Purpose::SketchU, 0, 3), 1.0, &mut Vec::new(), &mut numbers);
                numbers
            };
            assert_eq!(draw(), draw());
            assert!(draw().iter().all(|number| number.is_finite() && *number != 0.0));
        }
    }
}
