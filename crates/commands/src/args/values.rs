//! Values of arguments: choices from registries, counts, sizes, times.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use serde_json::Value;

use super::ranks::ComponentNumbers;

/// One of the variants in a registry, by the name that it has in `run.json`.
pub fn choice<T>(variants: &'static [T]) -> impl TypedValueParser<Value = T>
where
    T: Serialize + Copy + Send + Sync + 'static,
{
    let names: Vec<String> = variants.iter().map(name).collect();
    let by_name: Vec<(String, T)> = names.iter().cloned().zip(variants.iter().copied()).collect();
    PossibleValuesParser::new(names).try_map(move |given| {
        let found = by_name.iter().find(|(name, _)| *name == given);
        found.map(|(_, variant)| *variant).ok_or("not in the list of choices")
    })
}

/// The name of a variant, as `run.json` has it.
fn name<T: Serialize>(variant: &T) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(name)) => name,
        _ => unreachable!("variants of registries are written as their names"),
    }
}

/// Width, height and channels of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub channels: u8,
}

impl std::str::FromStr for Picture {
    type Err = &'static str;

    /// `28x28`, or `320x240x3`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Option<Vec<u32>> =
            text.split(['x', 'X', '×']).map(|part| part.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[width, height]) if width > 0 && height > 0 => Ok(Picture { width, height, channels: 1 }),
            Some(&[width, height, channels @ (1 | 3)]) if width > 0 && height > 0 => {
                Ok(Picture { width, height, channels: channels as u8 })
            }
            _ => Err("give width and height such as 28x28, or with colours 320x240x3"),
        }
    }
}

/// Time or iterations between two checkpoints.
#[derive(Clone, Copy, Debug)]
pub enum Interval {
    Iterations(usize),
    Seconds(f64),
}

/// `50` iterations, or `30s`, `10m`, `2h`.
pub fn interval(text: &str) -> Result<Interval, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("0 is too few; give 1 or more".into()),
        Ok(count) => Ok(Interval::Iterations(count)),
        Err(_) => seconds(text)
            .map(Interval::Seconds)
            .map_err(|_| "give a number of iterations, or a time such as 30s, 10m or 2h".into()),
    }
}

/// `90`, `90s`, `1.5m` or `2h` in seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) => (number, 1.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(time) if time.is_finite() && time >= 0.0 => Ok(time * unit),
        _ => Err("give seconds, or a time such as 90s, 10m or 2h".into()),
    }
}

/// `2GiB`, `1.5G`, `256MiB` or `1000000` in bytes; all units are powers of 1024.
pub fn size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let exponent = match unit {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(1),
        "m" | "mb" | "mib" => Some(2),
        "g" | "gb" | "gib" => Some(3),
        "t" | "tb" | "tib" => Some(4),
        _ => None,
    };
    match (number.trim().parse::<f64>(), exponent) {
        (Ok(number), Some(exponent)) if number.is_finite() && number > 0.0 => {
            Ok((number * 1024f64.powi(exponent)) as u64)
        }
        _ => Err("give bytes, or a size such as 256MiB or 2GiB".into()),
    }
}

/// Parses a count. Whether 0 is too few is checked where the meaning of the count is known.
pub fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "give a whole number of 1 or more".into())
}

/// Numbers of components: a range with both ends (`2..20`) or a list (`5,8,13`), in ascending order.
pub fn components(text: &str) -> Result<ComponentNumbers, String> {
    let wrong = || format!("{text} is not a range such as 2..20 or a list such as 5,8,13");
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&number| number > 0);
    let mut numbers = match text.split_once("..") {
        Some((first, last)) => {
            let (first, last) = (number(first), number(last.trim_start_matches('=')));
            let (first, last) = first.zip(last).ok_or_else(wrong)?;
            (first..=last).collect::<Vec<_>>()
        }
        None => text.split(',').map(number).collect::<Option<Vec<_>>>().ok_or_else(wrong)?,
    };
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() { Err(wrong()) } else { Ok(ComponentNumbers(numbers)) }
}

/// How many, of what there can be much: also `1e9`.
pub fn large(text: &str) -> Result<usize, String> {
    // Below 2^53 a number with an exponent is exact.
    let exponent =
        || text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
    let number = text.parse().ok().or_else(|| exponent().map(|number| number as usize));
    number.ok_or_else(|| "give a whole number of 1 or more, such as 1000000 or 1e6".into())
}

/// `3@20`: party 3, after 20 sums.
pub fn vanishing(text: &str) -> Result<(u16, u64), String> {
    let parsed =
        text.split_once('@').and_then(|(party, sums)| Some((party.parse().ok()?, sums.parse().ok()?)));
    parsed.ok_or_else(|| "give a party and a number of sums, such as 3@20".into())
}

/// Parses an area under a ROC curve that can serve as a limit.
pub fn area(text: &str) -> Result<f64, String> {
    let area = text.parse::<f64>().ok().filter(|area| (0.5..=1.0).contains(area));
    area.ok_or_else(|| "give a number from 0.5 (guessing) to 1 (certainty)".into())
}

/// Parses a cosine that can serve as a limit.
pub fn cosine(text: &str) -> Result<f64, String> {
    let cosine = text.parse::<f64>().ok().filter(|cosine| (0.0..=1.0).contains(cosine));
    cosine.ok_or_else(|| "give a number from 0 to 1 (the same record)".into())
}

/// A whole number, such as a seed.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("give a whole number from 0 to {}", u64::MAX))
}

/// A number.
pub fn real(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "give a number such as 0.01 or 1e-5".into())
}

/// A share between 0 and 1, such as 0.1 or 10%.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    let share =
        number.parse::<f64>().ok().map(|number| number / unit).filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "give a share above 0 and below 1, such as 0.1 or 10%".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_components_are_ranges_or_lists() {
        let numbers = |text: &str| components(text).map(|numbers| numbers.0);
        assert_eq!(numbers("2..5"), Ok(vec![2, 3, 4, 5]));
        assert_eq!(numbers("2..=3"), Ok(vec![2, 3]));
        assert_eq!(numbers("8, 5,8"), Ok(vec![5, 8]));
        assert_eq!(numbers("7"), Ok(vec![7]));
        for wrong in ["", "0..3", "5..2", "a", "3,", "-1..2", "1..."] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }
}
