//! The exposure of single people, in cases where the average over all suggests that nobody can be identified.

use partwise::matrix::{Csr, Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};
use partwise_secure::audit::{Adversary, Audit, Limits, Reconstruction};
use partwise_secure::protocol::{Aggregation, Protocol, Settings};
use partwise_secure::split::{hold_out_people, parts};
use partwise_secure::{Plan, simulate};

use super::audit::{Run, settings};

/// Records with a dozen common features each; each of the remaining features belongs to one record.
fn with_rare_features(records: usize, features: usize, rare: usize, seed: u64) -> Matrix<f32> {
    let mut rng = stream(seed, Purpose::Fill, 0, 0);
    let common = features - rare;
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for record in 0..records {
        let mut own: Vec<u32> = (0..12)
            .map(|_| ((common as f64 * uniform(&mut rng).powi(2)) as u32).min(common as u32 - 1))
            .collect();
        let share = records / rare;
        if record % share == share / 2 && record / share < rare {
            own.push((common + record / share) as u32);
        }
        own.sort_unstable();
        own.dedup();
        values.extend(own.iter().map(|_| (1.0 + 3.0 * uniform(&mut rng)).floor() as f32));
        indices.extend(own);
        offsets.push(indices.len());
    }
    Matrix::Sparse(Csr::new(records, features, offsets, indices, values))
}

fn found(audit: &Audit, adversary: Adversary, attack: &str) -> Reconstruction {
    let same = |found: &&Reconstruction| found.adversary == adversary && found.attack == attack;
    audit.reconstructions.iter().find(same).unwrap_or_else(|| panic!("no {attack} from {adversary}")).clone()
}

/// Five parties with 800 records each and 250 features, of which nine belong to one record each: on average
/// nobody is identified, yet most of the nine records are reconstructed from the sums alone.
#[test]
fn rare_features_reveal_whole_records_in_pooled_sums() {
    let settings = settings(Protocol::Pooled, Aggregation::Secure, 10, 300);
    let parting = (0..4809).partition(|record| *record < 4000);
    let run = Run::parted(with_rare_features(4809, 250, 9, 1), parting, 5, settings);
    let limits = Limits { sums: 20, ..Limits::default() };
    let audit = run.audit_with(&limits, None);
    let passive = found(&audit, Adversary::Coordinator, "trajectory of a rare feature");
    assert!(passive.exact >= 5 && passive.median_cosine > 0.999, "{passive:?}");
    assert!(audit.highest_auc < 0.6 && audit.exposed, "{}", audit.highest_auc);
    let first = audit.verdict[..2].iter().map(|sentence| sentence.to_string()).collect::<Vec<_>>().join(" ");
    assert!(first.contains("exposed") && first.contains("exactly"), "{first}");
    // Each party learns only about its own records.
    let own: usize = audit.owners.iter().map(|own| own.reconstructed.len()).sum();
    assert_eq!(own, passive.tried);
    let text = serde_json::to_string(&audit).unwrap();
    assert!(!text.contains("owners") && !text.contains("\"record\""), "{text}");
}

/// Neither a coordinator with wrong sums, which no party uses, nor a party with wrong uploads, which are noticed, obtains
/// records.
#[test]
fn dishonest_participants_are_detected() {
    for protocol in [Protocol::SynSd, Protocol::Pooled] {
        let settings = settings(protocol, Aggregation::Secure, 5, 40);
        let parting = (0..1209).partition(|record| *record < 1000);
        let run = Run::parted(with_rare_features(1209, 120, 9, 2), parting, 5, settings);
        let plan = Plan::new(run.settings.clone());
        let limits = Limits { reruns: 0, sums: 5, ..Limits::default() };
        let audit = run.audit_with(&limits, Some(&plan));
        // Parties open the sums themselves.
        let coordinator = found(&audit, Adversary::Coordinator, "wrong sums sent to all parties");
        assert!(coordinator.exact == 0 && coordinator.highest_cosine < 0.5, "{protocol:?} {coordinator:?}");
        let party = found(&audit, Adversary::Party, "wrong numbers uploaded");
        assert!(party.exact == 0 && party.highest_cosine < 0.1, "{protocol:?} {party:?}");
        let noticed = party.noticed.clone().unwrap_or_default();
        assert!(noticed.contains("implausible sum"), "{protocol:?} {party:?}");
        // The same seed gives the same result.
        let again = run.audit_with(&limits, Some(&plan));
        assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&audit).unwrap());
    }
}

/// Many similar records, and one that is unlike all others.
fn with_a_loner(records: usize, features: usize) -> Matrix<f32> {
    let mut rng = stream(5, Purpose::Fill, 0, 0);
    let mut values = vec![0f32; records * features];
    for (record, row) in values.chunks_exact_mut(features).enumerate() {
        let kind = record % 3;
        for (feature, value) in row.iter_mut().enumerate() {
            let common = if feature % 3 == kind && feature < features / 2 { 5.0 } else { 0.2 };
            *value = (common * uniform(&mut rng)) as f32;
        }
    }
    values[7 * features + features - 6..8 * features].fill(60.0);
    Matrix::Dense(Dense::new(records, features, Order::RowMajor, Values::Real(values.into())))
}

#[test]
fn a_component_of_one_person_is_found_and_disappears_without_that_person() {
    for protocol in [Protocol::Pooled, Protocol::SynSd] {
        let settings = settings(protocol, Aggregation::Secure, 4, 60);
        let parting = (0..480).partition(|record| *record < 400);
        let run = Run::parted(with_a_loner(480, 40), parting, 4, settings);
        let plan = Plan::new(run.settings.clone());
        let audit = run.audit_with(&Limits { reruns: 2, ..Limits::default() }, Some(&plan));
        let people = &audit.individuals;
        assert_eq!((people.people, people.reproduced, people.left_out.len()), (400, 1, 2), "{people:?}");
        let worst = people.left_out[0];
        assert!(worst.cosine > 0.95 && worst.leverage > 0.9 && worst.cosine_without < 0.6, "{worst:?}");
        assert!(people.highest_at_party >= worst.cosine && audit.exposed);
        // Only the person's own party learns who it is.
        let shown = audit.owners[0].components[0];
        assert_eq!((shown.record, shown.cosine_without), (7, Some(worst.cosine_without)));
        // Compared with a run without the record, as a user would check it.
        let mut dealt = run.dealt.clone();
        dealt[0].retain(|&record| record != 7);
        let outcome = simulate(parts(&run.matrix, &dealt).unwrap(), &plan).unwrap();
        let u = &outcome.parties[0].as_ref().unwrap().u;
        let mut record = vec![0.0; 40];
        run.matrix.for_each_stored(|row, feature, value| {
            if row == 7 {
                record[feature] = value;
            }
        });
        let cosine = |component: usize| {
            let column: Vec<f64> =
                u.iter().skip(component).step_by(4).map(|&value| f64::from(value)).collect();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            dot(&column, &record) / (dot(&column, &column) * dot(&record, &record)).sqrt()
        };
        let naive = (0..4).map(cosine).fold(0.0, f64::max);
        assert!((naive - worst.cosine_without).abs() < 1e-6, "{naive} {worst:?}");
    }
}

/// People with several similar records are identified better if whole people are held out and scored.
#[test]
fn people_with_several_records_are_identified_as_people() {
    let (people, each, features) = (60, 10, 100);
    let mut rng = stream(9, Purpose::Fill, 0, 0);
    let own: Vec<f64> = (0..people * features).map(|_| uniform(&mut rng).powi(4)).collect();
    let numbers: Vec<usize> = (0..people * each).map(|record| record / each).collect();
    let value = |place: usize| {
        let (record, feature) = (place / features, place % features);
        (own[numbers[record] * features + feature] + 0.3 * uniform(&mut rng).powi(4)) as f32
    };
    let values: Vec<f32> = (0..people * each * features).map(value).collect();
    let matrix =
        Matrix::Dense(Dense::new(people * each, features, Order::RowMajor, Values::Real(values.into())));
    let settings = Settings { seed: 1, ..settings(Protocol::SynSd, Aggregation::Secure, 10, 30) };
    let by_record = Run::new(matrix.clone(), 4, settings.clone()).audit();
    let parting = hold_out_people(&numbers, people * each / 2, settings.seed);
    let mut run = Run::parted(matrix, parting, 4, settings);
    let by_person = {
        run.people = Some(numbers);
        run.audit()
    };
    let of = |audit: &Audit| {
        let mut span = audit.findings.iter().filter(|finding| finding.on == "sums beyond U");
        span.find(|finding| finding.adversary == Adversary::Coordinator).unwrap().auc
    };
    let (record, person) = (of(&by_record), of(&by_person));
    assert_eq!((record.members, record.others), (300, 300));
    // A person with records at two parties counts as one person at each.
    assert!((30..40).contains(&person.members) && (30..40).contains(&person.others), "{person:?}");
    assert!(person.value > record.value, "{record:?} {person:?}");
}
