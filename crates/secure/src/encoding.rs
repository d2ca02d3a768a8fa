//! What parties hash and sign, as bytes: one encoding for each value, prefixed by a purpose and a version.
//!
//! All numbers are little endian.
//!
//! | part | bytes |
//! |---|---|
//! | what is hashed | the purpose as text, the version (4), fields |
//! | fields | their number (4), then each: its name as text, the length of its value (4), the value |
//! | text | its length (4), UTF-8 |
//! | value | a tag (1), then by tag: 0 absent; 1 flag (1); 2 number (8); 3 real (8, IEEE 754); 4 text; 5 bytes, their length (4) first; 6 list, its length (4), then each: the length of its value (4), the value; 7 fields |

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::protocol::Settings;
use crate::risk::Accepted;
use partwise::run::Amount;

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldValue {
    /// Nothing was given.
    Absent,
    /// Yes or no.
    Flag(bool),
    /// A count, or a seed.
    Number(u64),
    /// A real number.
    Real(f64),
    /// A name.
    Text(String),
    /// A key or a digest.
    #[serde(serialize_with = "write_hex", deserialize_with = "read_hex")]
    Bytes(Vec<u8>),
    /// Several values in their order.
    List(Vec<FieldValue>),
    /// Named values in their order.
    Record(Vec<Field>),
}

/// A value with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The name of the field in error messages.
    pub name: String,
    /// The value.
    pub value: FieldValue,
}

impl Field {
    /// A field of this name.
    pub fn new(name: &str, value: impl Into<FieldValue>) -> Self {
        Field { name: name.into(), value: value.into() }
    }
}

impl From<bool> for FieldValue {
    fn from(flag: bool) -> Self {
        FieldValue::Flag(flag)
    }
}

impl From<usize> for FieldValue {
    fn from(count: usize) -> Self {
        FieldValue::Number(count as u64)
    }
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        FieldValue::Number(number)
    }
}

impl From<f64> for FieldValue {
    fn from(real: f64) -> Self {
        FieldValue::Real(real)
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        FieldValue::Text(text.into())
    }
}

impl From<[u8; 32]> for FieldValue {
    fn from(bytes: [u8; 32]) -> Self {
        FieldValue::Bytes(bytes.into())
    }
}

impl<V: Into<FieldValue>> FromIterator<V> for FieldValue {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        FieldValue::List(values.into_iter().map(Into::into).collect())
    }
}

impl std::fmt::Display for FieldValue {
    /// Formats the value for comparison by people.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FieldValue::Absent => out.write_str("none"),
            FieldValue::Flag(flag) => flag.fmt(out),
            FieldValue::Number(number) => number.fmt(out),
            FieldValue::Real(real) => real.fmt(out),
            FieldValue::Text(text) => out.write_str(text),
            FieldValue::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
            FieldValue::List(values) => values.iter().enumerate().try_for_each(|(index, value)| {
                let separator = if index > 0 { ", " } else { "" };
                write!(out, "{separator}{value}")
            }),
            FieldValue::Record(fields) => fields.iter().enumerate().try_for_each(|(index, field)| {
                let separator = if index > 0 { " " } else { "" };
                write!(out, "{separator}{} {}", field.name, field.value)
            }),
        }
    }
}

fn write_hex<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&FieldValue::Bytes(bytes.into()))
}

fn read_hex<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(input)?;
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks();
    let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? * 16 + digit(low)?));
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| serde::de::Error::custom("must be hexadecimal digits"))
}

/// The bytes of these fields, for one purpose in one version.
pub fn encode(purpose: &str, version: u32, fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_sized(&mut bytes, purpose.as_bytes());
    bytes.extend_from_slice(&version.to_le_bytes());
    put_fields(&mut bytes, fields);
    bytes
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    // What is agreed on has far fewer than 2^32 bytes: longer control frames are not read.
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
}

fn put_sized(bytes: &mut Vec<u8>, value: &[u8]) {
    put_length(bytes, value.len());
    bytes.extend_from_slice(value);
}

fn put_fields(bytes: &mut Vec<u8>, fields: &[Field]) {
    put_length(bytes, fields.len());
    for field in fields {
        put_sized(bytes, field.name.as_bytes());
        put_sized(bytes, &value_bytes(&field.value));
    }
}

fn value_bytes(value: &FieldValue) -> Vec<u8> {
    let mut bytes = Vec::new();
    match value {
        FieldValue::Absent => bytes.push(0),
        FieldValue::Flag(flag) => bytes.extend_from_slice(&[1, u8::from(*flag)]),
        FieldValue::Number(number) => {
            bytes.push(2);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        FieldValue::Real(real) => {
            bytes.push(3);
            bytes.extend_from_slice(&real.to_le_bytes());
        }
        FieldValue::Text(text) => {
            bytes.push(4);
            put_sized(&mut bytes, text.as_bytes());
        }
        FieldValue::Bytes(value) => {
            bytes.push(5);
            put_sized(&mut bytes, value);
        }
        FieldValue::List(values) => {
            bytes.push(6);
            put_length(&mut bytes, values.len());
            values.iter().for_each(|value| put_sized(&mut bytes, &value_bytes(value)));
        }
        FieldValue::Record(fields) => {
            bytes.push(7);
            put_fields(&mut bytes, fields);
        }
    }
    bytes
}

/// The name of a variant, as configuration files and `run.json` have it.
fn name(variant: &impl Serialize) -> FieldValue {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => FieldValue::Text(name),
        _ => unreachable!("variants without data are written as their names"),
    }
}

fn amount(amount: &Option<Amount>) -> FieldValue {
    match amount {
        None => FieldValue::Absent,
        Some(Amount::Count(count)) => (*count).into(),
        Some(Amount::Share(share)) => (*share).into(),
    }
}

/// The settings of a run. A setting that is added must be added here, and makes a new version of what contains it.
pub fn settings(settings: &Settings) -> Vec<Field> {
    let Settings {
        protocol,
        rank,
        seed,
        rounds,
        inner,
        rho,
        sketch,
        sketch_records,
        sketch_features,
        solver,
        alpha,
        beta,
        step,
        tolerance,
        aggregation,
        colluders,
        accepted,
    } = settings;
    vec![
        Field::new("protocol", name(protocol)),
        Field::new("aggregation", name(aggregation)),
        Field::new("rank", *rank),
        Field::new("seed", *seed),
        Field::new("rounds", *rounds),
        Field::new("inner", *inner),
        Field::new("rho", *rho),
        Field::new("sketch", name(sketch)),
        Field::new("sketch_records", amount(sketch_records)),
        Field::new("sketch_features", amount(sketch_features)),
        Field::new("solver", name(solver)),
        Field::new("alpha", *alpha),
        Field::new("beta", *beta),
        Field::new("step", name(step)),
        Field::new("tolerance", *tolerance),
        Field::new("colluders", *colluders),
        Field::new("accepted", FieldValue::Record(accepted_risks(accepted))),
    ]
}

fn accepted_risks(accepted: &Accepted) -> Vec<Field> {
    let Accepted {
        two_parties_see_each_other,
        plain_shares_show_records,
        pooled_sums_show_records,
        going_on_shows_the_leaver,
        subsampling_opens_records,
        few_records_show_in_sums,
    } = accepted;
    vec![
        Field::new("two_parties_see_each_other", *two_parties_see_each_other),
        Field::new("plain_shares_show_records", *plain_shares_show_records),
        Field::new("pooled_sums_show_records", *pooled_sums_show_records),
        Field::new("going_on_shows_the_leaver", *going_on_shows_the_leaver),
        Field::new("subsampling_opens_records", *subsampling_opens_records),
        Field::new("few_records_show_in_sums", *few_records_show_in_sums),
    ]
}

#[cfg(test)]
mod tests {
    use partwise::run::{SketchedSolver, Step};
    use partwise::sketch::SketchKind;

    use super::*;
    use crate::protocol::{Aggregation, Protocol};

    fn hex(bytes: &[u8]) -> String {
        FieldValue::Bytes(bytes.into()).to_string()
    }

    /// The bytes of every kind of value, written out.
    #[test]
    fn encodings_are_pinned() {
        let record = FieldValue::Record(vec![Field::new("x", FieldValue::Absent)]);
        let values = [
            (FieldValue::Absent, "00"),
            (true.into(), "0101"),
            (258usize.into(), "020201000000000000"),
            (1.5.into(), "03000000000000f83f"),
            ("né".into(), "04030000006ec3a9"),
            ([7; 32].into(), &format!("0520000000{}", "07".repeat(32))),
            (
                [1usize, 2].into_iter().collect(),
                "06020000000900000002010000000000000009000000020200000000000000",
            ),
            (record, "070100000001000000780100000000"),
        ];
        for (value, expected) in values {
            assert_eq!(hex(&value_bytes(&value)), expected, "{value}");
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<FieldValue>(&text).unwrap(), value);
        }
        let whole = encode("p", 2, &[Field::new("a", false)]);
        assert_eq!(hex(&whole), "010000007002000000010000000100000061020000000100");
    }

    #[test]
    fn fields_cannot_run_into_each_other() {
        let encoded = |fields: &[(&str, &str)]| {
            let fields: Vec<Field> = fields.iter().map(|(name, value)| Field::new(name, *value)).collect();
            encode("p", 1, &fields)
        };
        let all = [
            encoded(&[("a", "bc")]),
            encoded(&[("ab", "c")]),
            encoded(&[("a", "b"), ("c", "")]),
            encoded(&[("a", ""), ("bc", "")]),
            encode("p", 2, &[Field::new("a", "bc")]),
            encode("pa", 1, &[Field::new("", "bc")]),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(all[..place].iter().all(|other| other != one));
        }
    }

    /// Names are part of what is hashed: renaming one requires a new version.
    #[test]
    fn names_of_variants_are_pinned() {
        let names =
            |names: Vec<FieldValue>| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(
            names(Protocol::ALL.iter().map(name).collect()),
            "pooled few-rounds syn-sd syn-ssd-u syn-ssd-v syn-ssd-uv asyn-sd asyn-ssd-v dsanls-limited"
        );
        assert_eq!(
            names([Aggregation::Secure, Aggregation::Plain].iter().map(name).collect()),
            "secure plain"
        );
        assert_eq!(names(SketchKind::ALL.iter().map(name).collect()), "subsample gaussian count srht");
        assert_eq!(names([SketchedSolver::Pcd, SketchedSolver::Pgd].iter().map(name).collect()), "pcd pgd");
        assert_eq!(names([Step::UnitFree, Step::Absolute].iter().map(name).collect()), "unit-free absolute");
    }

    #[test]
    fn every_setting_changes_the_encoding() {
        let base = Settings::new(Protocol::SynSsdUv, 3);
        let encoded = |settings_: &Settings| encode("run", 1, &settings(settings_));
        let changes: [&dyn Fn(&mut Settings); 8] = [
            &|settings| settings.rank = 4,
            &|settings| settings.rho = 1.0,
            &|settings| settings.sketch_records = Some(Amount::Count(1)),
            &|settings| settings.sketch_records = Some(Amount::Share(1.0)),
            &|settings| settings.aggregation = Aggregation::Plain,
            &|settings| settings.step = Step::Absolute,
            &|settings| settings.accepted.going_on_shows_the_leaver = true,
            &|settings| settings.colluders = 2,
        ];
        let mut all = vec![encoded(&base)];
        for change in changes {
            let mut changed = base.clone();
            change(&mut changed);
            all.push(encoded(&changed));
        }
        for (place, one) in all.iter().enumerate() {
            assert!(all[..place].iter().all(|other| other != one), "{place}");
        }
    }
}
