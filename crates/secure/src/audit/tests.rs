//! What an adversary sees, against what the parties really had.

use partwise::cancel::Cancel;
use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};

use super::adversary::{Adversary, View};
use super::matching::in_scale_of;
use super::verdict::membership;
use super::{Auc, Evidence, Finding, Limits, Recording, Transcript, audit, standard_error};
use crate::protocol::{Aggregation, Protocol, Settings};
use crate::session::ALL;
use crate::split::{Split, parts};
use crate::sum::SumKind;
use crate::{Plan, Vanishing, simulate_recorded};

fn random(records: usize, features: usize) -> Matrix<f64> {
    let mut rng = stream(1, Purpose::Fill, 0, 0);
    let values: Vec<f64> = (0..records * features).map(|_| uniform(&mut rng).powi(4)).collect();
    Matrix::Dense(Dense::new(records, features, Order::RowMajor, Values::Real(values.into())))
}

fn settings(protocol: Protocol) -> Settings {
    let mut settings = Settings { rounds: 6, tolerance: 0.0, ..Settings::new(protocol, 3) };
    settings.accepted.pooled_sums_show_records = true;
    settings.accepted.plain_shares_show_records = true;
    settings.accepted.few_records_show_in_sums = true;
    settings
}

fn transcript(settings: &Settings, parties: usize, loses: Option<Vanishing>) -> Transcript {
    let matrix = random(parties * 8, 20);
    let dealt = Split::Uniform.deal(matrix.rows(), parties);
    let plan = Plan { loses, ..Plan::new(settings.clone()) };
    let recording = Recording::default();
    simulate_recorded(parts(&matrix, &dealt).unwrap(), &plan, &recording).unwrap();
    recording.finish()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    squares(&mut a.iter().zip(b).map(|(a, b)| a - b)) / squares(&mut b.iter().copied())
}

const SYNCHRONOUS: [(Protocol, SumKind); 4] = [
    (Protocol::Pooled, SumKind::ProductV),
    (Protocol::SynSd, SumKind::U),
    (Protocol::SynSsdUv, SumKind::SketchedU),
    (Protocol::DsanlsLimited, SumKind::SketchedM),
];

/// All others together have the victim's share, which is what the paper's exchange shows the coordinator; the coordinator
/// by itself has words that are no numbers.
#[test]
fn all_others_have_the_share_and_the_coordinator_has_noise() {
    for (protocol, kind) in SYNCHRONOUS {
        let secure = settings(protocol);
        let plain = Settings { aggregation: Aggregation::Plain, ..secure.clone() };
        let masked = transcript(&secure, 5, None);
        let open = transcript(&plain, 5, None);
        for victim in [1, 4] {
            let others = View::new(&masked, &secure, Adversary::AllOthers, victim);
            let coordinator = View::new(&open, &plain, Adversary::Coordinator, victim);
            assert_eq!(others.len(), coordinator.len());
            assert_eq!(others.attackers().len(), 4);
            // Later the two runs differ by rounding, which grows.
            let share = coordinator.message(0).unwrap();
            let seen = others.sum(0).unwrap();
            assert!((0..others.len()).any(|place| others.kind(place) == kind), "{protocol:?}");
            assert!(distance(&seen.values, &share.values) < 1e-4, "{protocol:?}");
            let noise = View::new(&masked, &secure, Adversary::Coordinator, victim).message(0).unwrap();
            assert!(distance(&noise.values, &share.values) > 0.5, "{protocol:?}");
            // By itself a party sees what is left of the sum without its own share, and no messages.
            let party = View::new(&masked, &secure, Adversary::Party, victim);
            assert!(party.message(0).is_none() && party.attackers().len() == 1);
            assert!(distance(&party.sum(0).unwrap().values, &share.values) > 0.05, "{protocol:?}");
        }
    }
}

/// From the server's answers a party of the only group computes the sums, but for the rounding of f32.
#[test]
fn the_server_of_one_group_hides_no_sums() {
    let settings = settings(Protocol::AsynSd);
    let transcript = transcript(&settings, 5, None);
    let party = View::new(&transcript, &settings, Adversary::Party, 2);
    let colluding = View::new(&transcript, &settings, Adversary::Colluding(1), 2);
    assert_eq!(party.attackers(), colluding.attackers());
    for place in 0..party.len() {
        let (computed, opened) = (party.sum(place).unwrap().values, colluding.sum(place).unwrap().values);
        assert!(distance(&computed, &opened) < 1e-4, "{place}");
    }
}

#[test]
fn groups_and_single_clients_are_distinguished() {
    let secure = settings(Protocol::AsynSd);
    let grouped = transcript(&secure, 6, None);
    let others = View::new(&grouped, &secure, Adversary::AllOthers, 5);
    assert_eq!(others.attackers().len(), 2, "the two of its group");
    // A party of another group opens the same sums as the coordinator.
    for sum in grouped.sums().iter().filter(|(cohort, _)| **cohort != ALL).flat_map(|(_, sums)| sums) {
        let opened = grouped.opened(sum);
        assert!(opened.is_some() && (1..=6).all(|party| grouped.reply(sum, party) == opened));
    }
    let plain = Settings { aggregation: Aggregation::Plain, ..secure };
    let single = transcript(&plain, 4, None);
    let coordinator = View::new(&single, &plain, Adversary::Coordinator, 3);
    assert_eq!(coordinator.message(0).unwrap().values, coordinator.sum(0).unwrap().values);
    let party = View::new(&single, &plain, Adversary::Party, 3);
    assert_eq!(party.attackers().len(), 1);
    assert_ne!(party.sum(0).unwrap().values, coordinator.sum(0).unwrap().values);
}

/// The sum before a party left, minus the one after, is that party's share except for what the others changed
/// meanwhile, which is little late in a run. It reveals more of the share than the sum did, and which party it was.
#[test]
fn the_difference_shows_who_left() {
    let mut settings = Settings { rounds: 210, ..settings(Protocol::SynSd) };
    settings.accepted.going_on_shows_the_leaver = true;
    for leaver in 1..=6 {
        let transcript = transcript(&settings, 6, Some(Vanishing { party: leaver, sums: 200 }));
        let view = View::new(&transcript, &settings, Adversary::Coordinator, leaver);
        let left = (1..view.len()).find(|&place| view.message(place).is_none()).expect("it left");
        let share = |party| {
            View::new(&transcript, &settings, Adversary::AllOthers, party).sum(left - 1).unwrap().values
        };
        let (before, after) = (view.sum(left - 1).unwrap(), view.sum(left).unwrap().values);
        let after = in_scale_of(&before.values, &after, before.columns);
        let before = before.values;
        let difference: Vec<f64> = before.iter().zip(&after).map(|(a, b)| a - b).collect();
        let far = |party| distance(&difference, &share(party));
        for other in (1..=6).filter(|&party| party != leaver) {
            assert!(far(leaver) < far(other), "{leaver} {other}: {} {}", far(leaver), far(other));
        }
        // The best that could be said before: a sixth of the sum.
        let average: Vec<f64> = before.iter().map(|sum| sum / 6.0).collect();
        let guess = distance(&average, &share(leaver));
        assert!(far(leaver) < guess, "{leaver}: {} {guess}", far(leaver));
    }
}

/// If the others repeat the run without it, the sums of a round before and after do not differ by its share alone:
/// a sixth of the sum is a better guess.
#[test]
fn beginning_anew_does_not_show_the_leaver() {
    let mut settings = Settings { rounds: 210, ..settings(Protocol::SynSd) };
    settings.accepted.going_on_shows_the_leaver = true;
    for leaver in 1..=6 {
        let transcript = transcript(&settings, 6, Some(Vanishing { party: leaver, sums: 200 }));
        let view = View::new(&transcript, &settings, Adversary::Coordinator, leaver);
        let anew = (1..view.len()).find(|&place| view.sum(place).unwrap().iteration == 0).expect("once more");
        assert_eq!((anew, view.len()), (settings.rounds, 2 * settings.rounds));
        let left = (1..anew).find(|&place| view.message(place).is_none()).expect("it left");
        for round in 0..left {
            let (first, second) = (view.sum(round).unwrap(), view.sum(anew + round).unwrap());
            let second = in_scale_of(&first.values, &second.values, first.columns);
            let share =
                View::new(&transcript, &settings, Adversary::AllOthers, leaver).sum(round).unwrap().values;
            let difference: Vec<f64> = first.values.iter().zip(&second).map(|(a, b)| a - b).collect();
            let average: Vec<f64> = first.values.iter().map(|sum| sum / 6.0).collect();
            let (far, guess) = (distance(&difference, &share), distance(&average, &share));
            assert!(far > guess, "{leaver} {round}: {far} {guess}");
        }
    }
}

/// An AUC of 0.6 from twenty records means nothing; from two thousand it is significant.
#[test]
fn few_records_are_no_proof() {
    let settings = settings(Protocol::SynSd);
    let transcript = transcript(&settings, 4, None);
    let (matrix, dealt) = (random(32, 20), Split::Uniform.deal(32, 4));
    let held_out = vec![vec![0]; 4];
    let (settings, matrix, u) = (&settings, &matrix, &vec![0.5; 60][..]);
    let evidence = Evidence {
        transcript: &transcript,
        settings,
        matrix,
        dealt: &dealt,
        held_out: &held_out,
        people: None,
        plan: None,
        u,
    };
    let audit = audit(&evidence, &Limits::default(), &Cancel::default()).unwrap();
    let sentence = |value: f64, count: usize| {
        let mut finding = Finding::new("span", Adversary::Party, "sums");
        let standard_error = standard_error(value, count, count);
        finding.auc = Auc { value, standard_error, members: count, others: count };
        membership(&audit, &finding, 0.5).to_string()
    };
    assert!(sentence(0.6, 20).contains("uncertain") && sentence(0.6, 20).contains("20 members"));
    assert!(sentence(0.6, 2000).starts_with("A curious party can tell with AUC 0.60"));
    assert!(sentence(0.52, 100).contains("could not tell better than by guessing"));
    assert!(sentence(0.54, 9000).contains("only slightly better than by guessing"));
}
