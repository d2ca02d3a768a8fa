//! Networks as text: `1Gbit/s,100us`.

use std::fmt;
use std::str::FromStr;

use super::Network;

const UNITS: [(&str, f64); 4] = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];

/// Units per second, which are exact, unlike their reciprocals.
const TIMES: [(&str, f64); 5] = [("ns", 1e9), ("us", 1e6), ("µs", 1e6), ("ms", 1e3), ("s", 1.0)];

/// Bytes per second.
fn rate(text: &str) -> Option<f64> {
    if text == "unlimited" {
        return Some(f64::INFINITY);
    }
    let (number, per_byte) = match text.strip_suffix("bit/s") {
        Some(number) => (number, 8.0),
        None => (text.strip_suffix("B/s")?, 1.0),
    };
    let scaled = UNITS.iter().find_map(|(unit, scale)| Some((number.strip_suffix(unit)?, *scale)));
    let (number, scale) = scaled.unwrap_or((number, 1.0));
    number.trim().parse::<f64>().ok().map(|number| number * scale / per_byte)
}

fn time(text: &str) -> Option<f64> {
    let (number, unit) = TIMES.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))?;
    number.trim().parse::<f64>().ok().map(|number| number / unit)
}

impl FromStr for Network {
    type Err = String;

    /// `1Gbit/s,100us`: bandwidth and latency. `unlimited` has no limit, and alone no latency either.
    fn from_str(text: &str) -> Result<Self, String> {
        let (bandwidth, latency) = text.split_once(',').unwrap_or((text, ""));
        let bandwidth = rate(bandwidth.trim()).filter(|rate| *rate > 0.0);
        let latency = match (bandwidth, latency.trim()) {
            (Some(f64::INFINITY), "") => Some(0.0),
            (_, latency) => time(latency).filter(|time| (0.0..f64::INFINITY).contains(time)),
        };
        match (bandwidth, latency) {
            (Some(bandwidth), Some(latency)) => Ok(Network { latency, bandwidth, combine: Self::COMBINE }),
            _ => Err("give bandwidth and latency, such as 1Gbit/s,100us or 10GB/s,2us, or unlimited".into()),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No network is known to more than seven digits.
        let number = |value: f64| format!("{value:.6e}").parse::<f64>().unwrap_or(value);
        if self.bandwidth.is_infinite() {
            write!(f, "unlimited")?;
            if self.latency == 0.0 {
                return Ok(());
            }
        } else {
            let bits = 8.0 * self.bandwidth;
            let (unit, scale) = UNITS.iter().rfind(|(_, scale)| bits >= *scale).unwrap_or(&("", 1.0));
            write!(f, "{}{unit}bit/s", number(bits / scale))?;
        }
        let (unit, per_second) = [TIMES[4], TIMES[3], TIMES[1]]
            .into_iter()
            .find(|(_, per_second)| self.latency * per_second >= 1.0)
            .unwrap_or(TIMES[0]);
        write!(f, ",{}{unit}", number(self.latency * per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_written() {
        let read = |text: &str| text.parse::<Network>().map(|net| (net.bandwidth, net.latency));
        assert_eq!(read("1Gbit/s,100us"), Ok((1.25e8, 1e-4)));
        assert_eq!(read("100Mbit/s, 1ms"), Ok((1.25e7, 1e-3)));
        assert_eq!(read("12.5GB/s,1.5µs"), Ok((1.25e10, 1.5e-6)));
        assert_eq!(read("unlimited"), Ok((f64::INFINITY, 0.0)));
        assert_eq!(read("unlimited,5us"), Ok((f64::INFINITY, 5e-6)));
        for text in
            ["1Gbit/s,100us", "100Gbit/s,5us", "unlimited", "unlimited,50us", "1.5Mbit/s,2ms", "64bit/s,0ns"]
        {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "fast",
            "1Gbit/s",
            "1Gbit/s,",
            "1Gbit/s,100",
            "0Gbit/s,1us",
            "-1Gbit/s,1us",
            "1Gbit/s,-1us",
            "nanbit/s,1us",
            "1Gb/s,1us",
            "1Gbit/s,infs",
            "1Gbit/s,1us,1us",
            ",1us",
        ] {
            let message = bad.parse::<Network>().unwrap_err();
            assert!(message.contains("such as 1Gbit/s,100us"), "{bad}");
        }
    }
}
