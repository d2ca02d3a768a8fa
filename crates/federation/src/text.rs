//! Bytes for people: hexadecimal, fingerprints, names and times.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Parses hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hex<const N: usize>(pub [u8; N]);

impl<const N: usize> std::fmt::Display for Hex<N> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl<const N: usize> std::str::FromStr for Hex<N> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("must be {} hexadecimal digits", 2 * N);
        if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; N];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Hex(bytes))
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The SHA-256 of a key or a certificate, written `sha256:…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

const PREFIX: &str = "sha256:";

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Fingerprint(Sha256::digest(bytes).into())
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{PREFIX}{}", Hex(self.0))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let digits = text.strip_prefix(PREFIX).ok_or("must begin with sha256:".to_string());
        let hex = digits.and_then(str::parse::<Hex<32>>).map_err(serde::de::Error::custom)?;
        Ok(Fingerprint(hex.0))
    }
}

/// Whether a name is valid for a federation or a party: it must be a label of host names.
pub fn check_name(name: &str) -> Result<(), String> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = name.starts_with('-') || name.ends_with('-');
    if name.is_empty() || name.len() > 40 || ends || !name.bytes().all(good) {
        return Err(format!(
            "{name:?} is not a valid name; use 1 to 40 of a-z, 0-9 and -, without - at either end"
        ));
    }
    Ok(())
}

/// Seconds since 1970.
pub fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// The current time in RFC 3339 format.
pub fn timestamp() -> String {
    let now = OffsetDateTime::now_utc();
    now.replace_nanosecond(now.nanosecond() / 1_000_000 * 1_000_000)
        .unwrap_or(now)
        .format(&Rfc3339)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_come_back_and_others_do_not() {
        let fingerprint = Fingerprint::of(b"key");
        let text = serde_json::to_string(&fingerprint).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).unwrap(), fingerprint);
        let digits = "0".repeat(63);
        for bad in ["", "sha256:", "sha256:12", &format!("sha256:{digits}x"), &format!("md5:{digits}0")] {
            let bad = serde_json::to_string(bad).unwrap();
            assert!(serde_json::from_str::<Fingerprint>(&bad).is_err(), "{bad}");
        }
        assert!(check_name("hospital-1").is_ok());
        for bad in ["", "-a", "a-", "A", "a.b", "a b", "../x"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
