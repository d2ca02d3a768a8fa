//! Records that version 0.1 wrote, before layouts were numbered, and those of later programs.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::*;
use crate::run::{Algorithm, Stop};

/// `run.json` as version 0.1 wrote it for each kind of run.
const SAMPLES: [(&str, &str); 8] = [
    ("factorize", include_str!("data/factorize-0.1.json")),
    ("factorize dsanls", include_str!("data/factorize-dsanls-0.1.json")),
    ("factorize under MPI", include_str!("data/factorize-mpi-0.1.json")),
    ("factorize streamed", include_str!("data/factorize-streamed-0.1.json")),
    ("simulate", include_str!("data/simulate-0.1.json")),
    ("simulate recorded", include_str!("data/simulate-recorded-0.1.json")),
    ("party", include_str!("data/party-0.1.json")),
    ("coordinator", include_str!("data/coordinator-0.1.json")),
];

fn parse(text: &str) -> Result<RunRecord> {
    RunRecord::parse(Path::new("r/run.json"), text.as_bytes())
}

fn sample(name: &str) -> (RunRecord, Map<String, Value>) {
    let (_, text) = SAMPLES.iter().find(|(of, _)| *of == name).unwrap();
    (parse(text).unwrap(), serde_json::from_str(text).unwrap())
}

fn factorization(record: &RunRecord) -> &FactorizationRecord {
    match &record.kind {
        RunKind::Factorization(run) => run,
        other => panic!("{other:?}"),
    }
}

/// All keys and values of the file are there when the record is written again, and nothing but the layout's number is new.
#[test]
fn records_of_0_1_keep_every_key_and_value() {
    for (name, text) in SAMPLES {
        let record = parse(text).unwrap();
        assert_eq!((record.format_version, &*record.version), (0, "0.1.0"), "{name}");
        let mut written = record.to_map();
        assert_eq!(written.remove("format_version"), Some(json!(0)), "{name}");
        let mut expected: Map<String, Value> = serde_json::from_str(text).unwrap();
        if name == "factorize under MPI" {
            // Which 0.1 left out.
            expected.insert("streamed".into(), Value::Null);
        }
        assert_eq!(Value::Object(written), Value::Object(expected), "{name}");
        let mut file = Vec::new();
        record.write(&mut file).unwrap();
        assert_eq!(parse(std::str::from_utf8(&file).unwrap()).unwrap(), record, "{name}");
    }
}

#[test]
fn records_of_0_1_are_known_by_their_kind() {
    for (name, text) in SAMPLES {
        let record = parse(text).unwrap();
        let expected = match (name.split(' ').next().unwrap(), &record.kind) {
            ("factorize", RunKind::Factorization(_)) | ("simulate", RunKind::Simulation(_)) => true,
            ("party", RunKind::Federation(run)) => run.party().is_some(),
            ("coordinator", RunKind::Federation(run)) => run.party().is_none(),
            _ => false,
        };
        assert!(expected, "{name}");
        assert_eq!(record.protocol().is_some(), !name.starts_with("factorize"), "{name}");
        assert!(record.relative_error > 0.0 && record.steps() > 0, "{name}");
    }
}

#[test]
fn a_record_of_0_1_has_the_outcome() {
    let (record, _) = sample("factorize dsanls");
    let run = factorization(&record);
    assert_eq!((run.method.algorithm, run.method.rank), (Algorithm::Dsanls, 4));
    assert_eq!((run.method.sketch_cols, run.summary.seed, run.method.first_seed), (Some(20), 8, 7));
    assert_eq!((run.summary.stopped_by, run.summary.clock), (Stop::Iterations, Clock::Virtual));
    assert_eq!(run.summary.ranks.len(), 2);
    assert_eq!(record.image().map(|shape| (shape.width, shape.height, shape.channels)), Some((8, 8, 1)));
    let (record, _) = sample("factorize streamed");
    assert_eq!(factorization(&record).streamed.as_ref().unwrap().blocks, 36);
    let (record, _) = sample("factorize");
    assert_eq!((record.samples(), record.transpose()), (Side::Columns, true));
    let (record, _) = sample("factorize under MPI");
    let run = factorization(&record);
    assert_eq!(run.machine.transport, Some(Transport::Mpi));
    assert_eq!(run.machine.reduction, Some(SumOrder::Native));
    assert_eq!(run.summary.ranks[1].peak_memory, Some(15_499_265));
}

#[test]
fn a_record_of_0_1_has_the_parties() {
    let (record, _) = sample("simulate");
    let RunKind::Simulation(run) = &record.kind else { panic!("{record:?}") };
    assert_eq!((run.parties.len(), run.max_rounds, run.lose), (5, 3, Some((5, 4))));
    assert_eq!(run.parties[4].end, SimulatedEnd::Left { left: true });
    assert_eq!((record.samples(), run.shared_factor.file()), (Side::Columns, "U.npy"));
    assert_eq!(record.protocol().unwrap().protocol, "asyn-ssd-v");
    assert_eq!(run.settings::<Map<String, Value>>().unwrap()["rounds"], run.rounds);
    let (record, _) = sample("simulate recorded");
    let RunKind::Simulation(run) = &record.kind else { panic!("{record:?}") };
    assert_eq!(run.recorded.as_ref().unwrap().dealt.len(), 4);
    let (record, _) = sample("coordinator");
    let RunKind::Federation(run) = &record.kind else { panic!("{record:?}") };
    let FederationEnd::Coordinator(end) = &run.end else { panic!("{record:?}") };
    assert_eq!((end.bytes.len(), end.agreed, run.settings.colluders), (3, true, 1));
}

/// Before there was a choice the shared factor was U whatever the data were.
#[test]
fn a_simulation_without_shared_factor_has_its_records_in_columns() {
    let (_, mut fields) = sample("simulate recorded");
    assert_eq!(fields.remove("shared_factor"), Some("V".into()));
    let record = parse(&Value::Object(fields).to_string()).unwrap();
    assert_eq!(record.samples(), Side::Columns);
}

#[test]
fn a_newer_format_is_refused_in_one_sentence() {
    let newer = json!({ "format_version": FORMAT_VERSION + 1, "version": "7.0.0", "algorithm": 3 });
    let error = parse(&newer.to_string()).unwrap_err();
    assert!(matches!(&error, Error::NewerRecord { format, .. } if *format == FORMAT_VERSION + 1), "{error}");
    let said = error.to_string();
    assert!(said.starts_with("r/run.json: ") && said.contains("7.0.0") && said.ends_with("update Partwise"));
}

#[test]
fn unknown_keys_of_the_same_format_are_ignored() {
    for (name, text) in SAMPLES {
        let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap();
        fields.insert("format_version".into(), FORMAT_VERSION.into());
        fields.insert("colour".into(), json!({ "of": "the page" }));
        let record = parse(&Value::Object(fields).to_string()).unwrap();
        let known = parse(text).unwrap();
        assert_eq!((record.samples(), record.steps()), (known.samples(), known.steps()), "{name}");
    }
}

#[test]
fn an_invalid_record_counts_as_damaged() {
    for text in ["{", "[]", "3", "{}", r#"{"algorithm": "hals"}"#, r#"{"format_version": "one"}"#] {
        assert!(matches!(parse(text), Err(Error::DamagedRecord { .. })), "{text}");
    }
}

/// JSON has no NaN.
#[test]
fn an_error_that_is_no_number_is_null() {
    let (mut record, _) = sample("factorize");
    record.relative_error = f64::NAN;
    let written = record.to_map();
    assert_eq!(written["relative_error"], Value::Null);
    assert!(parse(&Value::Object(written).to_string()).unwrap().relative_error.is_nan());
}
