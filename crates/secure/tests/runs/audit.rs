//! The attacks where they must work, and where they must not: AUCs over at least 1,100 members and as many others.

use partwise::cancel::Cancel;
use partwise::comm::run_ranks;
use partwise::matrix::{Csr, Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};
use partwise_secure::audit::{
    Adversary, Audit, Cover, Evidence, Finding, Limits, Recording, Transcript, audit,
};
use partwise_secure::protocol::{Aggregation, Protocol, Settings};
use partwise_secure::split::{Split, by_nearest_party, hold_out, parts};
use partwise_secure::{DataSizes, Plan, run_on_rank_recorded, simulate_recorded};
use proptest::prelude::*;

/// Admissions and codes: each record has about a dozen of them, some of which are common. 0 and 1.
pub fn codes(records: usize, features: usize, seed: u64) -> Matrix<f32> {
    let mut rng = stream(seed, Purpose::Fill, 0, 0);
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for _ in 0..records {
        let mut own: Vec<u32> = (0..12)
            .map(|_| ((features as f64 * uniform(&mut rng).powi(2)) as u32).min(features as u32 - 1))
            .collect();
        own.sort_unstable();
        own.dedup();
        indices.extend(own);
        offsets.push(indices.len());
    }
    let values = vec![1.0; indices.len()];
    Matrix::Sparse(Csr::new(records, features, offsets, indices, values))
}

pub fn settings(protocol: Protocol, aggregation: Aggregation, rank: usize, rounds: usize) -> Settings {
    let mut settings = Settings { rounds, tolerance: 0.0, aggregation, ..Settings::new(protocol, rank) };
    settings.accepted.plain_shares_show_records = true;
    settings.accepted.pooled_sums_show_records = true;
    settings.accepted.few_records_show_in_sums = true;
    settings
}

pub struct Run {
    pub matrix: Matrix<f32>,
    pub dealt: Vec<Vec<usize>>,
    pub held: Vec<Vec<usize>>,
    pub people: Option<Vec<usize>>,
    pub settings: Settings,
    pub transcript: Transcript,
    pub u: Vec<f32>,
}

impl Run {
    /// Half of the records are members.
    pub fn new(matrix: Matrix<f32>, parties: usize, settings: Settings) -> Run {
        let parting = hold_out(matrix.rows(), matrix.rows() / 2, settings.seed);
        Run::parted(matrix, parting, parties, settings)
    }

    /// A simulated run with held-out records.
    pub fn parted(
        matrix: Matrix<f32>,
        (kept, held): (Vec<usize>, Vec<usize>),
        parties: usize,
        settings: Settings,
    ) -> Run {
        let places = Split::Uniform.deal(kept.len(), parties);
        let dealt: Vec<Vec<usize>> =
            places.iter().map(|places| places.iter().map(|&place| kept[place]).collect()).collect();
        let held = by_nearest_party(&dealt, &held);
        let plan = Plan::new(settings);
        let recording = Recording::default();
        let outcome = simulate_recorded(parts(&matrix, &dealt).unwrap(), &plan, &recording).unwrap();
        let u = outcome.parties[0].as_ref().unwrap().u.clone();
        let (settings, transcript) = (plan.settings, recording.finish());
        Run { matrix, dealt, held, people: None, settings, transcript, u }
    }

    pub fn audit(&self) -> Audit {
        self.audit_with(&Limits::default(), None)
    }

    pub fn audit_with(&self, limits: &Limits, plan: Option<&Plan>) -> Audit {
        let Run { matrix, dealt, held, people, settings, transcript, u } = self;
        let people = people.as_deref();
        let evidence = Evidence { transcript, settings, matrix, dealt, held_out: held, people, plan, u };
        audit(&evidence, limits, &Cancel::default()).unwrap()
    }
}

/// Runs over seeds until 1,100 members and as many others are pooled.
fn pooled(members: usize, mut run: impl FnMut(u64) -> Run) -> Audit {
    let mut audit = run(0).audit();
    for seed in 1..1100usize.div_ceil(members) as u64 {
        audit.pool(&run(seed).audit());
    }
    let counted = |finding: &Finding| finding.auc.members >= 1100 && finding.auc.others >= 1100;
    assert!(audit.findings.iter().all(counted));
    audit
}

fn of<'a>(audit: &'a Audit, attack: &str, adversary: Adversary, on: &str) -> &'a Finding {
    let mut of = audit.findings.iter();
    let same =
        |finding: &&Finding| (&*finding.attack, finding.adversary, &*finding.on) == (attack, adversary, on);
    of.find(same).unwrap_or_else(|| panic!("no {attack} on {on} from {adversary}"))
}

/// Five parties of ten records, k = 20, as in the figures of `docs/privacy.md`.
fn few_records(aggregation: Aggregation) -> Audit {
    pooled(50, |seed| {
        let settings = Settings { seed, ..settings(Protocol::SynSd, aggregation, 20, 15) };
        Run::new(codes(100, 150, seed), 5, settings)
    })
}

#[test]
fn plain_shares_of_few_records_are_the_records() {
    let audit = few_records(Aggregation::Plain);
    let messages = of(&audit, "matching", Adversary::Coordinator, "messages");
    assert!(messages.mean_of_members > 0.97, "{messages:?}");
    assert!(messages.mean_of_others < 0.7, "{messages:?}");
    assert!(messages.auc.value > 0.99 && messages.auc.standard_error < 0.01, "{messages:?}");
    assert!(audit.words.p < 1e-12, "{:?}", audit.words);
    assert!(audit.highest_auc > 0.99);
    let says = |words: &str| audit.verdict.iter().any(|sentence| sentence.to_string().contains(words));
    assert!(says("nothing was masked"), "{:?}", audit.verdict);
    assert!(
        audit
            .left
            .iter()
            .any(|left| left.cover == Cover::Plain && left.readers.contains(&Adversary::Coordinator))
    );
}

#[test]
fn masked_words_tell_nothing_and_sums_tell_less() {
    let audit = few_records(Aggregation::Secure);
    let masked = of(&audit, "matching", Adversary::Coordinator, "messages");
    assert!((0.45..=0.55).contains(&masked.auc.value), "{masked:?}");
    assert!(audit.words.p > 1e-5, "{:?}", audit.words);
    let sums = of(&audit, "matching", Adversary::Coordinator, "sums");
    let all = of(&audit, "matching", Adversary::AllOthers, "sums");
    // Without protection, the same attack works.
    assert!(all.auc.value > 0.99 && all.mean_of_members > 0.97, "{all:?}");
    assert!(sums.mean_of_members < all.mean_of_members - 0.1, "{sums:?}");
    let party = of(&audit, "matching", Adversary::Party, "sums");
    assert!(sums.auc.value <= party.auc.value + 0.02 && party.auc.value <= all.auc.value + 0.02);
    // Masked messages are unreadable on their own.
    for left in audit.left.iter().filter(|left| left.cover == Cover::Masked) {
        assert_eq!(left.readers, [Adversary::AllOthers], "{left:?}");
    }
    assert!(audit.left.iter().all(|left| left.cover != Cover::Plain));
}

/// Sums of M V span the records of a party that has fewer than there are features, and do not if there are many
/// more.
#[test]
fn the_span_of_pooled_sums_is_that_of_the_records() {
    let few = pooled(60, |seed| {
        let settings = Settings { seed, ..settings(Protocol::Pooled, Aggregation::Secure, 6, 25) };
        Run::new(codes(120, 200, seed), 4, settings)
    });
    for adversary in [Adversary::Coordinator, Adversary::Party, Adversary::AllOthers] {
        let span = of(&few, "span", adversary, "sums");
        assert!(span.auc.value > 0.999, "{span:?}");
    }
    let many = pooled(1200, |seed| {
        let settings = Settings { seed, ..settings(Protocol::Pooled, Aggregation::Secure, 4, 25) };
        Run::new(codes(2400, 40, seed), 4, settings)
    });
    let span = of(&many, "span", Adversary::Coordinator, "sums");
    assert!((0.45..0.58).contains(&span.auc.value), "{span:?}");
}

/// Many records, few components: for the adversaries within the assumptions the attacks are no better than guessing.
#[test]
fn attacks_fail_where_there_is_nothing_to_find() {
    let audit = pooled(1100, |seed| {
        let settings = Settings { seed, ..settings(Protocol::SynSd, Aggregation::Secure, 3, 8) };
        Run::new(codes(2200, 60, seed), 4, settings)
    });
    for finding in audit.findings.iter().filter(|finding| finding.adversary.is_assumed()) {
        assert!((0.45..0.56).contains(&finding.auc.value), "{finding:?}");
        assert!(finding.auc.standard_error < 0.02, "{finding:?}");
    }
    assert!(audit.highest_auc < 0.56);
    assert!(audit.verdict.iter().any(|sentence| sentence.to_string().contains("better than by guessing")));
}

/// Hospitals differ. Held-out records of another one's kind would be told from a party's by that.
#[test]
fn parties_that_differ_are_not_taken_for_membership() {
    let (features, parties) = (60, 4);
    // The codes of each quarter of the file begin elsewhere.
    let shifted = |by: usize| {
        let mut entries = vec![Vec::new(); 2200];
        codes(2200, features, 0).for_each_stored(|record, feature, _| {
            entries[record].push(((feature + record / 550 * by) % features) as u32);
        });
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for mut own in entries {
            own.sort_unstable();
            indices.extend(own);
            offsets.push(indices.len());
        }
        let values = vec![1.0; indices.len()];
        Matrix::Sparse(Csr::new(2200, features, offsets, indices, values))
    };
    let settings = settings(Protocol::SynSd, Aggregation::Secure, 3, 8);
    let alike = Run::new(shifted(0), parties, settings.clone());
    let mut run = Run::new(shifted(15), parties, settings);
    let matched = |run: &Run| {
        let audit = run.audit();
        let found = of(&audit, "matching", Adversary::AllOthers, "sums");
        assert!(found.auc.members >= 1100 && found.auc.others >= 1095, "{found:?}");
        (audit.highest_auc, found.auc)
    };
    let (highest, same_kind) = matched(&run);
    assert!(highest < 0.56, "{highest}");
    // All others together can infer something, but no more than if the parties do not differ.
    let alike = matched(&alike).1;
    let error = alike.standard_error.hypot(same_kind.standard_error);
    assert!((same_kind.value - alike.value).abs() < 4.0 * error, "{same_kind:?} {alike:?}");
    run.held.rotate_left(1);
    let other_kind = matched(&run).1;
    assert!(other_kind.value > same_kind.value + 10.0 * error, "{other_kind:?} {same_kind:?}");
}

/// Where records differ in how ordinary they are, what the sums explain beyond U tells more than what they explain.
#[test]
fn what_sums_explain_beyond_the_result_tells_more() {
    let (records, features, kinds) = (120, 150, 5);
    let audit = pooled(60, |seed| {
        let mut rng = stream(seed, Purpose::Fill, 1, 0);
        let mut draw = |count: usize, power: i32| -> Vec<f64> {
            (0..count).map(|_| uniform(&mut rng).powi(power)).collect()
        };
        let (weights, parts) = (draw(records * kinds, 2), draw(kinds * features, 2));
        // From nearly none to half of the record is its own.
        let (own, scale) = (draw(records * features, 4), draw(records, 2));
        let value = |place: usize| {
            let (record, feature) = (place / features, place % features);
            let common: f64 =
                (0..kinds).map(|k| weights[record * kinds + k] * parts[k * features + feature]).sum();
            (common + scale[record] * own[place]) as f32
        };
        let values: Vec<f32> = (0..records * features).map(value).collect();
        let matrix =
            Matrix::Dense(Dense::new(records, features, Order::RowMajor, Values::Real(values.into())));
        Run::new(matrix, 4, Settings { seed, ..settings(Protocol::SynSd, Aggregation::Secure, kinds, 30) })
    });
    for adversary in [Adversary::Coordinator, Adversary::Party, Adversary::AllOthers] {
        let (near, beyond) =
            (of(&audit, "span", adversary, "sums").auc, of(&audit, "span", adversary, "sums beyond U").auc);
        assert!(beyond.value > near.value + 3.0 * near.standard_error, "{adversary}: {near:?} {beyond:?}");
    }
}

fn limited(sketch: partwise::sketch::SketchKind, rounds: usize) -> Audit {
    let mut settings = settings(Protocol::DsanlsLimited, Aggregation::Secure, 3, rounds);
    settings.sketch = sketch;
    settings.accepted.subsampling_opens_records = true;
    Run::new(codes(96, 80, 1), 4, settings).audit()
}

/// A subsampled M S is columns of M: all others together have them as they are.
#[test]
fn subsampled_sketches_are_records() {
    let audit = limited(partwise::sketch::SketchKind::Subsample, 40);
    let all = |iterations: usize| {
        let mut of = audit.recoveries.iter().filter(|recovery| recovery.adversary == Adversary::AllOthers);
        of.find(|recovery| recovery.iterations == iterations && recovery.method == "least squares").unwrap()
    };
    // 6 of 12 records in the first iteration.
    assert!((all(1).recovered - 0.5).abs() < 0.15, "{:?}", all(1));
    assert!(all(40).recovered > 0.999 && all(40).relative_error < 1e-4, "{:?}", all(40));
}

/// Theorem `theorem:nosecure`, and that nonnegativity gives records away before it says so.
#[test]
fn gaussian_sketches_are_equations_for_the_records() {
    let audit = limited(partwise::sketch::SketchKind::Gaussian, 4);
    let of = |adversary: Adversary, method: &str, iterations: usize| {
        let mut of = audit.recoveries.iter().filter(|recovery| recovery.adversary == adversary);
        of.find(|recovery| recovery.iterations == iterations && recovery.method == method).unwrap()
    };
    let least = |iterations| of(Adversary::AllOthers, "least squares", iterations);
    // 6, 12, 24 equations for 12 records.
    assert!(least(1).relative_error > 0.5 && least(1).recovered < 0.2, "{:?}", least(1));
    assert!(least(4).relative_error < 1e-3 && least(4).recovered > 0.999, "{:?}", least(4));
    let nonnegative = of(Adversary::AllOthers, "nonnegative least squares", 1);
    assert!(nonnegative.recovered > least(1).recovered + 0.2, "{nonnegative:?}");
    // 24 equations for 48 records.
    assert!(of(Adversary::Coordinator, "least squares", 4).relative_error > 0.5);
    assert!(audit.verdict.iter().any(|sentence| sentence.to_string().contains("nonzero entries")));
    let other = Run::new(codes(60, 40, 1), 3, settings(Protocol::SynSd, Aggregation::Secure, 3, 3)).audit();
    assert!(other.recoveries.is_empty());
}

/// Dense matrices, sketched features and groups of parties are audited too.
#[test]
fn every_protocol_can_be_audited() {
    let mut rng = stream(3, Purpose::Fill, 0, 0);
    let values: Vec<f32> = (0..96 * 50).map(|_| uniform(&mut rng).powi(3) as f32).collect();
    let matrix = Matrix::Dense(Dense::new(96, 50, Order::RowMajor, Values::Real(values.into())));
    for protocol in Protocol::ALL {
        let [masked, plain] = [Aggregation::Secure, Aggregation::Plain].map(|aggregation| {
            let audit = Run::new(matrix.clone(), 6, settings(protocol, aggregation, 2, 3)).audit();
            for adversary in
                [Adversary::Coordinator, Adversary::Party, Adversary::Colluding(1), Adversary::AllOthers]
            {
                let finding = of(&audit, "matching", adversary, "sums");
                assert_eq!((finding.auc.members, finding.auc.others), (48, 48), "{protocol:?}");
            }
            assert_eq!(
                audit.words.p < 1e-9,
                aggregation == Aggregation::Plain,
                "{protocol:?} {:?}",
                audit.words
            );
            assert!((1..=6).all(|party| audit.left.iter().any(|left| left.party == party)), "{protocol:?}");
            of(&audit, "matching", Adversary::Coordinator, "messages").mean_of_members
        });
        // In the few dimensions of a sketch noise is never far.
        assert!(masked < plain - 0.1, "{protocol:?} {masked} {plain}");
    }
}

/// All that a party ever sends, of `docs/threat-model.md`.
#[test]
fn nothing_leaves_a_party_that_is_not_listed() {
    const TOTALS: [&str; 8] = [
        "records",
        "flag of few records",
        "flag of many records",
        "norms",
        "error",
        "V V",
        "the first sketch",
        "the end",
    ];
    const CONTROL: [&str; 4] = ["key", "leave", "shares of masks", "signature"];
    let dense = |rows: usize| {
        let mut rng = stream(4, Purpose::Fill, 0, 0);
        let values: Vec<f32> = (0..rows * 30).map(|_| uniform(&mut rng) as f32).collect();
        Matrix::Dense(Dense::new(rows, 30, Order::RowMajor, Values::Real(values.into())))
    };
    for protocol in Protocol::ALL {
        let shared: &[&str] = match protocol {
            Protocol::Pooled | Protocol::FewRounds => &["M V"],
            Protocol::SynSsdU | Protocol::SynSsdUv => &["U", "S U"],
            Protocol::DsanlsLimited => &["M S"],
            _ => &["U"],
        };
        for aggregation in [Aggregation::Secure, Aggregation::Plain] {
            let run = Run::new(dense(192), 6, settings(protocol, aggregation, 2, 3));
            for left in run.audit().left {
                let kind = left.kind.strip_prefix("range of ").unwrap_or(&left.kind);
                let listed = match left.cover {
                    Cover::Control => CONTROL.contains(&kind),
                    _ => TOTALS.contains(&kind) || kind == "features" || shared.contains(&kind),
                };
                assert!(listed, "{protocol:?} {left:?}");
                // A total consists of a few numbers, digests, and a share for each of six parties.
                let signed = if left.cover == Cover::Masked { 6 * 150 } else { 0 };
                assert!(!TOTALS.contains(&&*left.kind) || left.bytes / left.count < 500 + signed, "{left:?}");
            }
        }
    }
}

/// Every test named in the documentation exists.
#[test]
fn the_threat_model_names_tests_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut sources, mut folders) = (String::new(), vec![root.join("crates"), root.join("tests")]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("rs" | "py") => sources.push_str(&std::fs::read_to_string(path).unwrap()),
                _ => {}
            }
        }
    }
    for document in ["threat-model.md", "privacy.md"] {
        let text = std::fs::read_to_string(root.join("docs").join(document)).unwrap();
        let is_name =
            |part: &&str| part.contains('_') && part.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        let named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_name).collect();
        assert!(!named.is_empty(), "{document}");
        for name in named {
            let there = ["fn", "def"].iter().any(|word| sources.contains(&format!("{word} {name}(")));
            assert!(there, "{document} names {name}");
        }
    }
}

/// Of `syn-ssd-uv` most messages are of sketched features, which do not count against the others.
#[test]
fn sketches_of_features_do_not_crowd_out_sums() {
    let run = Run::new(codes(160, 150, 1), 4, settings(Protocol::SynSsdUv, Aggregation::Secure, 4, 12));
    let span = |sums: usize| {
        let audit = run.audit_with(&Limits { sums, ..Limits::default() }, None);
        let found = of(&audit, "span", Adversary::AllOthers, "sums");
        (found.dimensions.unwrap(), found.auc.value)
    };
    // The start, and one a round.
    assert_eq!(span(13), span(1000));
    assert!(span(6).0 < span(13).0);
}

#[test]
fn nothing_held_out_is_refused() {
    let mut run = Run::new(codes(60, 40, 1), 3, settings(Protocol::SynSd, Aggregation::Secure, 3, 2));
    run.held.clear();
    let Run { matrix, dealt, held, settings, transcript, u, .. } = &run;
    let evidence =
        Evidence { transcript, settings, matrix, dealt, held_out: held, people: None, plan: None, u };
    let error = audit(&evidence, &Limits::default(), &Cancel::default()).unwrap_err().to_string();
    assert!(error.contains("holdout"), "{error}");
}

/// Ranks of a job record each its own end, which joined is what a simulation records.
#[test]
fn the_transcripts_of_ranks_join() {
    for (protocol, aggregation) in [
        (Protocol::SynSd, Aggregation::Secure),
        (Protocol::SynSd, Aggregation::Plain),
        (Protocol::DsanlsLimited, Aggregation::Secure),
    ] {
        let mut run = Run::new(codes(160, 20, 1), 4, settings(protocol, aggregation, 2, 4));
        let alone = run.audit();
        let plan = Plan::new(run.settings.clone());
        let records: Vec<usize> = run.dealt.iter().map(Vec::len).collect();
        let dealt = parts(&run.matrix, &run.dealt).unwrap();
        let ranks = std::iter::once(None).chain(dealt.into_iter().map(Some)).collect();
        let ends = run_ranks(ranks, |comm, part| {
            let recording = Recording::default();
            let sizes = DataSizes { records: &records, features: 20 };
            run_on_rank_recorded(comm, part, &sizes, &plan, &recording).unwrap();
            Ok(recording.finish())
        });
        let mut ends = ends.unwrap().into_iter();
        let mut joined = ends.next().unwrap();
        ends.for_each(|end| joined.join(end));
        run.transcript = joined;
        let ranks = run.audit();
        assert_eq!(ranks.left, alone.left, "{protocol:?}");
        assert_eq!(ranks.findings.len(), alone.findings.len());
        // Masks are other ones.
        for (ranks, alone) in
            ranks.findings.iter().zip(&alone.findings).filter(|(one, _)| one.on != "messages")
        {
            assert!((ranks.auc.value - alone.auc.value).abs() < 1e-9, "{ranks:?} {alone:?}");
        }
    }
}

fn small_file() -> (Run, Vec<u8>) {
    let run = Run::new(codes(60, 30, 1), 3, settings(Protocol::SynSd, Aggregation::Secure, 2, 2));
    let mut bytes = Vec::new();
    run.transcript.write(&mut bytes).unwrap();
    (run, bytes)
}

#[test]
fn a_transcript_that_was_written_gives_the_same_audit() {
    let (mut run, bytes) = small_file();
    let before = serde_json::to_string(&run.audit()).unwrap();
    run.transcript = Transcript::read(&mut &bytes[..]).unwrap();
    assert_eq!(serde_json::to_string(&run.audit()).unwrap(), before);
    for cut in [0, 10, 24, 40, bytes.len() / 2, bytes.len() - 1] {
        assert!(Transcript::read(&mut &bytes[..cut]).is_err(), "{cut}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_damaged_transcript_is_refused_or_read_without_panic(place: prop::sample::Index, byte: u8) {
        thread_local!(static FILE: Vec<u8> = small_file().1);
        let mut bytes = FILE.with(Clone::clone);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let _ = Transcript::read(&mut &bytes[..]);
    }
}
