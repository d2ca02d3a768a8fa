//! The tables of `docs/privacy.md`: every protocol, plain and secure, by every adversary.
//!
//! `privacy FIGURES.csv [PREFIX]` measures, case by case, and appends what it finds; cases that are in the file already
//! are left out, so that it can be stopped and called again. With a prefix (`mimic,pooled`) only cases that begin so.
//! `privacy --individuals` prints `docs/privacy/individuals.csv`: how closely people resemble the components
//! of U, in runs with and without them.
//! `privacy --table FIGURES.csv` prints `docs/privacy/table.csv`, one line per case, `--summary` prints their
//! summary. `PARTWISE_DATA` is the folder with the matrices.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use partwise::cancel::Cancel;
use partwise::io::{self, Presence, ReadOptions};
use partwise::matrix::Matrix;
use partwise_secure::audit::{Adversary, Audit, Evidence, Limits, Recording, audit};
use partwise_secure::protocol::{Aggregation, Protocol, Settings};
use partwise_secure::risk::Accepted;
use partwise_secure::split::{Split, hold_out, parts};
use partwise_secure::{Plan, simulate_recorded};

type Failure = Box<dyn std::error::Error>;

/// A matrix: its file, whether records are its columns, how many rounds it is given, and how many members, over seeds.
const DATA: [(&str, &str, bool, usize, usize); 4] = [
    ("pcawg", "pcawg.npy.gz", true, 40, 300),
    ("mimic", "mimic.npz", false, 40, 150),
    ("face", "face.npy.gz", false, 40, 300),
    ("newsgroups", "newsgroups.npz", false, 6, 100),
];

/// Seeds at most.
const SEEDS: usize = 10;

const LIMITS: Limits = Limits {
    sums: 40,
    records: 1000,
    directions: 300,
    unknowns: 400,
    recovered: 2,
    reruns: 0,
    reconstructed: 20,
    reconstructed_features: 1000,
    multiplications: 3e8,
    threads: 1,
};

const HEADER: &str = "data,protocol,aggregation,parties,records,rank,seat,attack,on,auc,standard_error,members,others,\
                      mean_of_members,mean_of_others,highest,dimensions,rounds,seeds";

#[derive(Clone, Copy)]
struct Case {
    data: &'static str,
    protocol: Protocol,
    aggregation: Aggregation,
    parties: usize,
    /// All that there are, if absent.
    records: Option<usize>,
    rank: usize,
}

/// By its name in files.
fn name(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(String::from)).unwrap_or_default()
}

impl Case {
    fn key(&self) -> String {
        let records = self.records.map_or("all".into(), |records| records.to_string());
        let &Case { data, protocol, aggregation, parties, rank, .. } = self;
        format!("{data},{},{},{parties},{records},{rank}", name(protocol), name(aggregation))
    }
}

/// The most telling first.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (parties, rank) in [(5, 10), (5, 20), (3, 10), (10, 10), (3, 20), (10, 20)] {
        for (data, ..) in DATA {
            for records in [Some(60), None, Some(10)] {
                for protocol in Protocol::ALL {
                    for aggregation in [Aggregation::Secure, Aggregation::Plain] {
                        cases.push(Case { data, protocol, aggregation, parties, records, rank });
                    }
                }
            }
        }
    }
    cases
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [option, figures] if option == "--table" => table(&std::fs::read_to_string(figures)?),
        [option, figures] if option == "--summary" => summary(&std::fs::read_to_string(figures)?),
        [option] if option == "--individuals" => individuals(),
        [figures] => measure(figures, ""),
        [figures, prefix] => measure(figures, prefix),
        _ => {
            Err("privacy FIGURES.csv [PREFIX], privacy --table FIGURES.csv, or privacy --summary FIGURES.csv"
                .into())
        }
    }
}

/// All records of every table except newsgroups, with 5 parties, 100 rounds, two protocols and two k.
fn individuals() -> Result<(), Failure> {
    println!(
        "data,protocol,rank,seed,people,reproduced,highest_cosine,highest_at_party,cosine,leverage,cosine_without"
    );
    let folder = std::env::var("PARTWISE_DATA").unwrap_or_else(|_| "../shared/data".into());
    for data in ["pcawg", "mimic", "face"] {
        let matrix = read(&folder, data)?;
        for (protocol, rank, seed) in [
            (Protocol::Pooled, 20, 0),
            (Protocol::Pooled, 20, 1),
            (Protocol::Pooled, 10, 0),
            (Protocol::SynSd, 20, 0),
        ] {
            let aggregation = Aggregation::Secure;
            let case = Case { data, protocol, aggregation, parties: 5, records: None, rank };
            let limits = Limits { sums: 2, records: 500, reruns: 3, reconstructed: 0, ..LIMITS };
            let (audit, _) = audited(&case, &matrix, matrix.rows() * 4 / 5, seed, (100, &limits))?;
            let found = &audit.individuals;
            for person in &found.left_out {
                println!(
                    "{data},{},{rank},{seed},{},{},{:.4},{:.4},{:.4},{:.4},{:.4}",
                    name(protocol),
                    found.people,
                    found.reproduced,
                    found.highest_cosine,
                    found.highest_at_party,
                    person.cosine,
                    person.leverage,
                    person.cosine_without
                );
            }
        }
    }
    Ok(())
}

fn measure(figures: &str, prefix: &str) -> Result<(), Failure> {
    let before = std::fs::read_to_string(figures).unwrap_or_default();
    let key = |line: &str| line.split(',').take(6).collect::<Vec<_>>().join(",");
    let done: BTreeSet<String> = before.lines().map(key).collect();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(figures)?;
    if before.is_empty() {
        writeln!(file, "{HEADER}")?;
    }
    let folder = std::env::var("PARTWISE_DATA").unwrap_or_else(|_| "../shared/data".into());
    let mut matrices: BTreeMap<&str, Matrix<f32>> = BTreeMap::new();
    for case in cases().iter().filter(|case| case.key().starts_with(prefix) && !done.contains(&case.key())) {
        if !matrices.contains_key(case.data) {
            matrices.insert(case.data, read(&folder, case.data)?);
        }
        let begin = std::time::Instant::now();
        let lines = lines(case, &matrices[case.data]);
        // Appended in one write, so that a case is complete or absent.
        file.write_all(lines.as_bytes())?;
        eprintln!("{} {:.1} s", case.key(), begin.elapsed().as_secs_f64());
    }
    Ok(())
}

fn read(folder: &str, data: &str) -> Result<Matrix<f32>, Failure> {
    let (_, file, columns, ..) = DATA.iter().find(|(name, ..)| *name == data).ok_or("no such matrix")?;
    let options = ReadOptions {
        memory: 1 << 34,
        header: Presence::Auto,
        row_names: Presence::Auto,
        images: Default::default(),
        missing_as_nan: false,
    };
    let matrix = io::read::<f32>(&Path::new(folder).join(file), &options)?.matrix;
    Ok(if *columns { matrix.into_transpose() } else { matrix })
}

/// The lines of a case: its results, or the reason why it was not measured.
fn lines(case: &Case, matrix: &Matrix<f32>) -> String {
    let key = case.key();
    let enough = matrix.rows() * 4 / 5;
    if case.records.is_some_and(|records| records * case.parties > enough) {
        return format!("{key},,too few records,,,,,,,,,,,,\n");
    }
    let members = case.records.map_or(enough, |records| records * case.parties);
    let wanted = DATA.iter().find(|(name, ..)| *name == case.data).map_or(0, |(.., wanted)| *wanted);
    let seeds = wanted.div_ceil(members).clamp(1, SEEDS);
    let mut pooled: Option<Audit> = None;
    let mut rounds = 0;
    for seed in 0..seeds as u64 {
        match one(case, matrix, members, seed) {
            Ok((audit, done)) => {
                rounds = rounds.max(done);
                match &mut pooled {
                    Some(pooled) => pooled.pool(&audit),
                    None => pooled = Some(audit),
                }
            }
            // A run that stops itself says so.
            Err(error) => {
                return format!("{key},,{},,,,,,,,,,,,\n", error.to_string().replace([',', '\n'], ";"));
            }
        }
    }
    let Some(audit) = pooled else { return String::new() };
    written(&key, &audit, &format!("{rounds},{seeds}"))
}

/// A line for the words, and one for each finding and recovery, each with `effort`: rounds and seeds.
fn written(key: &str, audit: &Audit, effort: &str) -> String {
    let mut lines = String::new();
    let chi = audit.words;
    lines.push_str(&format!("{key},,words,chi-square,{:.4},,{},,,,,,{effort}\n", chi.p, chi.words));
    for finding in &audit.findings {
        let auc = finding.auc;
        lines.push_str(&format!(
            "{key},{},{},{},{:.4},{:.4},{},{},{:.4},{:.4},{:.4},{},{effort}\n",
            adversary(finding.adversary),
            finding.attack,
            finding.on,
            auc.value,
            auc.standard_error,
            auc.members,
            auc.others,
            finding.mean_of_members,
            finding.mean_of_others,
            finding.highest,
            finding.dimensions.map_or(String::new(), |rank| rank.to_string())
        ));
    }
    for recovery in &audit.recoveries {
        lines.push_str(&format!(
            "{key},{},recovery,{},{:.4},,{},{},{:.4},,,{},{effort}\n",
            adversary(recovery.adversary),
            recovery.method,
            recovery.recovered,
            recovery.unknowns,
            recovery.equations,
            recovery.relative_error,
            recovery.iterations
        ));
    }
    lines
}

fn adversary(adversary: Adversary) -> &'static str {
    match adversary {
        Adversary::Everybody => "everybody",
        Adversary::Coordinator => "coordinator",
        Adversary::Party => "party",
        Adversary::Colluding(_) => "colluding",
        Adversary::AllOthers => "all others",
    }
}

/// One run and its audit, on newly drawn records.
fn one(case: &Case, matrix: &Matrix<f32>, members: usize, seed: u64) -> Result<(Audit, usize), Failure> {
    let (.., rounds, _) = DATA.iter().find(|(name, ..)| *name == case.data).ok_or("no such matrix")?;
    audited(case, matrix, members, seed, (*rounds, &LIMITS))
}

/// The audit of one run, and its rounds.
fn audited(
    case: &Case,
    matrix: &Matrix<f32>,
    members: usize,
    seed: u64,
    (rounds, limits): (usize, &Limits),
) -> Result<(Audit, usize), Failure> {
    // As many non-members as members, if there are enough.
    let records = matrix.rows();
    let (rest, kept) = hold_out(records, members, seed);
    let others = rest.len().min(members);
    let held: Vec<usize> =
        hold_out(rest.len(), others, seed + 1).1.into_iter().map(|place| rest[place]).collect();
    // By chance, like the members.
    let others = |party| held.iter().skip(party).step_by(case.parties).copied().collect();
    let held: Vec<Vec<usize>> = (0..case.parties).map(others).collect();
    let dealt: Vec<Vec<usize>> = Split::Uniform.deal(kept.len(), case.parties);
    // In an order that carries no information.
    let shuffled = shuffle(&kept, seed);
    let dealt: Vec<Vec<usize>> =
        dealt.iter().map(|places| places.iter().map(|&place| shuffled[place]).collect()).collect();
    let settings = Settings {
        seed,
        rounds,
        tolerance: 0.0,
        aggregation: case.aggregation,
        colluders: if case.parties > 3 { 2 } else { 1 },
        accepted: Accepted {
            two_parties_see_each_other: true,
            plain_shares_show_records: true,
            pooled_sums_show_records: true,
            going_on_shows_the_leaver: false,
            subsampling_opens_records: false,
            few_records_show_in_sums: true,
        },
        ..Settings::new(case.protocol, case.rank)
    };
    let plan = Plan::new(settings);
    let recording = Recording::default();
    let outcome = simulate_recorded(parts(matrix, &dealt)?, &plan, &recording)?;
    let transcript = recording.finish();
    let u = outcome.parties.iter().flatten().next().map(|party| &party.u[..]).unwrap_or_default();
    let evidence = Evidence {
        transcript: &transcript,
        settings: &plan.settings,
        matrix,
        dealt: &dealt,
        held_out: &held,
        people: None,
        plan: (limits.reruns > 0).then_some(&plan),
        u,
    };
    Ok((audit(&evidence, limits, &Cancel::default())?, outcome.rounds))
}

/// In another order, by the seed.
fn shuffle(records: &[usize], seed: u64) -> Vec<usize> {
    use partwise::random::{Purpose, stream, uniform};
    let mut rng = stream(seed, Purpose::Sample, 1, 0);
    let mut keyed: Vec<(f64, usize)> = records.iter().map(|&record| (uniform(&mut rng), record)).collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    keyed.into_iter().map(|(_, record)| record).collect()
}

/// The lines of a case, one per adversary: the highest AUC of matching and of the span, each with its
/// standard error. "everybody" holds the AUC of the final U, "words" holds p, followed by the largest share
/// that was recovered.
#[derive(Default)]
struct Figures {
    problem: String,
    highest: BTreeMap<(String, &'static str), (f64, f64)>,
    recovered: BTreeMap<String, f64>,
}

fn figures(text: &str) -> BTreeMap<Vec<String>, Figures> {
    let mut cases: BTreeMap<Vec<String>, Figures> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with("data,")) {
        let fields: Vec<&str> = line.split(',').collect();
        let [.., adversary, attack, on, auc, error] = fields[..11] else { continue };
        let key = fields[..6].iter().map(|field| field.to_string()).collect();
        let case = cases.entry(key).or_default();
        let number = |text: &str| -> f64 { text.parse().unwrap_or(0.0) };
        let (auc, error) = (number(auc), number(error));
        // Masked words are looked at apart: they are noise, of which the highest would be taken.
        let masked = fields[2] == "secure" && on == "messages";
        let kind = match attack {
            "words" => continue,
            "matching" if masked => "words",
            "matching" | "final U" => "matching",
            "span" => "span",
            "recovery" => {
                let most = case.recovered.entry(adversary.into()).or_default();
                *most = auc.max(*most);
                continue;
            }
            problem => {
                case.problem = problem.into();
                continue;
            }
        };
        let highest = case.highest.entry((adversary.into(), kind)).or_default();
        if auc > highest.0 {
            *highest = (auc, error);
        }
    }
    cases
}

impl Figures {
    fn of(&self, adversary: &str, kind: &'static str) -> Option<(f64, f64)> {
        self.highest.get(&(adversary.into(), kind)).copied()
    }

    /// An AUC and its standard error, as two fields of the table; empty where nothing of the kind was measured.
    fn fields(&self, adversary: &str, kind: &'static str) -> String {
        self.of(adversary, kind).map_or(",".into(), |(auc, error)| format!("{auc:.2},{error:.2}"))
    }

    /// The share of the entries that an adversary recovered, in percent.
    fn recovered_by(&self, adversary: &str) -> String {
        self.recovered.get(adversary).map_or(String::new(), |share| format!("{:.0}", 100.0 * share))
    }

    /// The highest of all attacks by an adversary.
    fn worst(&self, adversary: &str) -> Option<f64> {
        let of = ["matching", "span"].iter().filter_map(|kind| self.of(adversary, kind));
        of.map(|(auc, _)| auc).max_by(f64::total_cmp)
    }
}

const ADVERSARIES: [&str; 4] = ["coordinator", "party", "colluding", "all others"];

/// The columns of the table, without the line's end. `se` is the standard error of the AUC before it.
fn columns() -> String {
    let names = ADVERSARIES.map(|adversary| adversary.replace(' ', "_"));
    let attacks =
        names.clone().map(|name| format!("{name}_matching,{name}_matching_se,{name}_span,{name}_span_se"));
    let recovered = names.map(|name| format!("{name}_recovered"));
    format!(
        "data,protocol,aggregation,parties,records,k,{},final_u,final_u_se,masked_words,masked_words_se,{},note",
        attacks.join(","),
        recovered.join(",")
    )
}

/// A line per case.
fn table(text: &str) -> Result<(), Failure> {
    let cases = figures(text);
    let columns = columns();
    println!("{columns}");
    for case in DATA.iter().flat_map(|(data, ..)| cases_in_order(data)) {
        let key: Vec<String> = case.key().split(',').map(String::from).collect();
        let Some(figures) = cases.get(&key) else { continue };
        let head = key.join(",");
        if !figures.problem.is_empty() {
            let empty = ",".repeat(columns.matches(',').count() - key.len());
            println!("{head},{empty}{}", short(&figures.problem));
            continue;
        }
        let attacks = ADVERSARIES.map(|adversary| {
            format!("{},{}", figures.fields(adversary, "matching"), figures.fields(adversary, "span"))
        });
        println!(
            "{head},{},{},{},{},",
            attacks.join(","),
            figures.fields("everybody", "matching"),
            figures.fields("coordinator", "words"),
            ADVERSARIES.map(|adversary| figures.recovered_by(adversary)).join(",")
        );
    }
    Ok(())
}

fn cases_in_order(data: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = cases().into_iter().filter(|case| case.data == data).collect();
    cases.sort_by_key(|case| {
        let protocol = Protocol::ALL.iter().position(|protocol| *protocol == case.protocol);
        (
            protocol,
            case.aggregation == Aggregation::Plain,
            case.parties,
            case.records.unwrap_or(usize::MAX),
            case.rank,
        )
    });
    cases
}

fn short(problem: &str) -> &str {
    if problem.contains("would show a record") {
        "refuses: the first sketch would show a record"
    } else {
        problem
    }
}

/// By adversary: the lowest and the highest over parties and k, by protocol, matrix and records.
fn summary(text: &str) -> Result<(), Failure> {
    let cases = figures(text);
    let records = ["10", "60", "all"];
    for (aggregation, adversary) in [
        ("secure", "coordinator"),
        ("secure", "colluding"),
        ("secure", "all others"),
        ("plain", "coordinator"),
    ] {
        println!("\n{aggregation}, {adversary}\n");
        let heads: Vec<String> = DATA
            .iter()
            .flat_map(|(data, ..)| records.map(|records| format!("`{data}`, {records}")))
            .collect();
        println!("| | {} |", heads.join(" | "));
        println!("|---|{}", "---|".repeat(heads.len()));
        for protocol in Protocol::ALL.map(name) {
            let cell = |data: &str, records: &str| {
                let of = cases.iter().filter(|(key, _)| {
                    (&*key[0], &*key[1], &*key[2], &*key[4]) == (data, &*protocol, aggregation, records)
                });
                range(of.filter_map(|(_, figures)| figures.worst(adversary)))
            };
            let cells: Vec<String> =
                DATA.iter().flat_map(|(data, ..)| records.map(|records| cell(data, records))).collect();
            println!("| `{protocol}` | {} |", cells.join(" | "));
        }
        let floor = |data: &str, records: &str| {
            let of = cases.iter().filter(|(key, _)| (&*key[0], &*key[4]) == (data, records));
            range(of.filter_map(|(_, figures)| figures.worst("everybody")))
        };
        let cells: Vec<String> =
            DATA.iter().flat_map(|(data, ..)| records.map(|records| floor(data, records))).collect();
        println!("| the final U alone | {} |", cells.join(" | "));
    }
    let words: Vec<(f64, f64)> =
        cases.values().filter_map(|figures| figures.of("coordinator", "words")).collect();
    let mean = words.iter().map(|(auc, _)| auc).sum::<f64>() / words.len().max(1) as f64;
    let outside = words.iter().filter(|(auc, error)| (auc - 0.5).abs() > 2.0 * error).count();
    println!(
        "\nmasked words: {} cases, mean AUC {mean:.4}, {outside} farther than two standard errors from 0.5",
        words.len()
    );
    let done = cases.values().filter(|figures| figures.problem.is_empty()).count();
    println!("{done} cases measured, {} refused or without enough records", cases.len() - done);
    Ok(())
}

fn range(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    match values.len() {
        0 => "-".into(),
        _ if format!("{low:.2}") == format!("{high:.2}") => format!("{high:.2}"),
        _ => format!("{low:.2} to {high:.2}"),
    }
}
