//! Maps values to positions, and places the ticks of an axis.

/// A tick: its position on the axis, and its label.
pub type Tick = (f64, String);

/// The start and end of an axis.
pub struct Places {
    pub from: f64,
    pub to: f64,
}

/// The least range of an axis, relative to its largest value: labels of ticks have four digits.
const LEAST_RANGE: f64 = 5e-3;

/// A range of values mapped to a range of positions.
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// A scale for these values; with `zero` it starts at 0. Logarithmic only if all values are positive.
    pub fn new(values: impl Iterator<Item = f64> + Clone, log: bool, zero: bool, places: Places) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let low = finite.clone().fold(f64::INFINITY, f64::min);
        let high = finite.fold(f64::NEG_INFINITY, f64::max);
        let (mut low, mut high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let log = log && low > 0.0;
        if zero && !log {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        let least = LEAST_RANGE * low.abs().max(high.abs());
        if high - low < least {
            let middle = (low + high) / 2.0;
            (low, high) = (middle - least / 2.0, middle + least / 2.0);
        } else if low == high {
            high = 1.0;
        }
        Scale { low, high, from: places.from, to: places.to, log }
    }

    /// The same scale with a margin for what is drawn at the ends.
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

    /// Ticks at round values, as many as fit: positions and labels, each of which takes `room`.
    pub fn ticks(&self, room: impl Fn(&str) -> f64) -> Vec<Tick> {
        let mut ticks = Vec::new();
        for wanted in (1..=5).rev() {
            ticks = self.round(wanted).into_iter().map(|value| (self.place(value), label(value))).collect();
            let fits =
                |pair: &[Tick]| (pair[1].0 - pair[0].0).abs() >= (room(&pair[0].1) + room(&pair[1].1)) / 2.0;
            if ticks.windows(2).all(fits) {
                break;
            }
        }
        ticks
    }

    /// Round values within the range, about `wanted` of them.
    fn round(&self, wanted: usize) -> Vec<f64> {
        let ratio = self.high / self.low;
        if self.log && ratio > 8.0 {
            let steps: &[f64] = if ratio > 1000.0 || wanted < 5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
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

/// A tick's value in as few digits as possible, with at most four significant ones.
fn label(value: f64) -> String {
    let trimmed = |digits: &str| digits.trim_end_matches('0').trim_end_matches('.').to_string();
    if value == 0.0 {
        "0".into()
    } else if (1e-3..1e6).contains(&value.abs()) {
        trimmed(&format!("{value:.6}"))
    } else {
        let text = format!("{value:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{}e{exponent}", trimmed(digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks(|_| 10.0).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_within() {
        let linear = Scale::new([0.13, 0.97].into_iter(), false, false, Places { from: 0.0, to: 100.0 });
        assert_eq!(labels(&linear), ["0.2", "0.4", "0.6", "0.8"]);
        assert_eq!((linear.place(0.13), linear.place(0.97)), (0.0, 100.0));
        let log = Scale::new([0.01, 100.0].into_iter(), true, false, Places { from: 100.0, to: 0.0 });
        assert_eq!(labels(&log), ["0.01", "0.1", "1", "10", "100"]);
        assert!((log.place(1.0) - 50.0).abs() < 1e-9);
    }

    /// Rounds sums of steps such as 6.000000000000001e-5.
    #[test]
    fn labels_of_ticks_are_short_and_differ() {
        for exponent in -9..9 {
            for (low, high) in [(0.0, 1.0), (0.0, 7.3), (1.0, 1.004), (9.96, 9.99), (2.2, 4.9), (3.0, 3.0)] {
                let scale = 10f64.powi(exponent);
                for log in [false, true] {
                    let values = [low * scale, high * scale];
                    let labels = labels(
                        &Scale::new(values.into_iter(), log, false, Places { from: 0.0, to: 300.0 }).padded(),
                    );
                    assert!(labels.iter().all(|label| label.len() <= 8), "{values:?}: {labels:?}");
                    assert!(labels.windows(2).all(|pair| pair[0] != pair[1]), "{values:?}: {labels:?}");
                    assert!(labels.len() >= 2, "{values:?}: {labels:?}");
                }
            }
        }
    }

    #[test]
    fn ticks_leave_room_for_their_labels() {
        let scale = Scale::new([0.0, 0.0073].into_iter(), false, false, Places { from: 0.0, to: 384.0 });
        for wide in [5.0, 10.0, 20.0, 40.0] {
            let ticks = scale.ticks(|label| wide * label.len() as f64);
            for pair in ticks.windows(2) {
                let room = wide * (pair[0].1.len() + pair[1].1.len()) as f64 / 2.0;
                assert!(pair[1].0 - pair[0].0 >= room, "{wide}: {ticks:?}");
            }
            assert!(!ticks.is_empty());
        }
    }

    #[test]
    fn odd_values_have_a_scale_too() {
        for values in [vec![], vec![0.0], vec![3.0, 3.0], vec![f64::NAN, 1.0], vec![-1.0, 2.0]] {
            let scale =
                Scale::new(values.iter().copied(), true, true, Places { from: 0.0, to: 10.0 }).padded();
            assert!(scale.ticks(|_| 1.0).iter().all(|tick| (-0.1..=10.1).contains(&tick.0)), "{values:?}");
        }
    }
}
