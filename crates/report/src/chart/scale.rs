//! From values to places, and the ticks of an axis.

/// A range of values laid out on a range of places.
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// A scale for these values; with `zero` it begins at 0. Logarithmic only if all values are positive.
    pub fn new(
        values: impl Iterator<Item = f64> + Clone,
        log: bool,
        zero: bool,
        (from, to): (f64, f64),
    ) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let low = finite.clone().fold(f64::INFINITY, f64::min);
        let high = finite.fold(f64::NEG_INFINITY, f64::max);
        let (mut low, mut high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let log = log && low > 0.0;
        if zero && !log {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if low == high {
            (low, high) =
                if low == 0.0 { (0.0, 1.0) } else { (low - low.abs() / 10.0, high + high.abs() / 10.0) };
        }
        Scale { low, high, from, to, log }
    }

    /// The same with room for what stands at the ends.
    pub fn padded(mut self) -> Self {
        if self.log {
            let room = (self.high / self.low).powf(0.04);
            (self.low, self.high) = (self.low / room, self.high * room);
        } else {
            let room = (self.high - self.low) * 0.04;
            self.high += room;
            if self.low != 0.0 {
                self.low -= room;
            }
        }
        self
    }

    pub fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// Round values within the range, about `wanted` of them.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.log && self.high / self.low > 8.0 {
            let steps: &[f64] = if self.high / self.low > 1000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            let thin = (powers.clone().count() / (2 * wanted)).max(1) as i32;
            let powers = powers.filter(|power| power % thin == 0);
            let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
            return all.filter(|tick| (self.low..=self.high).contains(tick)).collect();
        }
        let rough = (self.high - self.low) / wanted as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|&step| step >= 0.6 * rough);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// A tick's value in as few digits as tell it.
pub fn label(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !(1e-4..1e6).contains(&size) {
        format!("{value:e}").replace("e-0", "e-")
    } else {
        let text = format!("{value:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        let linear = Scale::new([0.13, 0.97].into_iter(), false, false, (0.0, 100.0));
        assert_eq!(
            linear.ticks(4).iter().map(|&tick| label(tick)).collect::<Vec<_>>(),
            ["0.2", "0.4", "0.6", "0.8"]
        );
        assert_eq!((linear.place(0.13), linear.place(0.97)), (0.0, 100.0));
        let log = Scale::new([0.01, 100.0].into_iter(), true, false, (100.0, 0.0));
        assert_eq!(log.ticks(4), [0.01, 0.1, 1.0, 10.0, 100.0]);
        assert!((log.place(1.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn odd_values_have_a_scale_too() {
        for values in [vec![], vec![0.0], vec![3.0, 3.0], vec![f64::NAN, 1.0], vec![-1.0, 2.0]] {
            let scale = Scale::new(values.iter().copied(), true, true, (0.0, 10.0)).padded();
            assert!(
                scale.ticks(4).iter().all(|&tick| (-0.1..=10.1).contains(&scale.place(tick))),
                "{values:?}"
            );
        }
    }
}
