//! `ranks`: comparing numbers of components.

use crate::common::*;

/// 60 x 24 with 3 planted components and a little multiplicative noise.
fn planted(desk: &Desk) {
    let mut text = String::from("name");
    (0..24).for_each(|col| text.push_str(&format!(",gene{col}")));
    let mut state: u64 = 1;
    for row in 0..60 {
        text.push_str(&format!("\nsample{row}"));
        for col in 0..24 {
            let weight = |component: usize| {
                f64::from(u8::from(row % 3 == component)) * (1.0 + (row * 7 % 5) as f64)
                    + f64::from(u8::from(row % 5 == component))
            };
            let part = |component: usize| if col % 3 == component { 1.0 + (col * 5 % 7) as f64 } else { 0.0 };
            let value: f64 = (0..3).map(|component| weight(component) * part(component)).sum();
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = 1.0 + 0.1 * ((state >> 33) as f64 / (1u64 << 31) as f64 - 0.5);
            text.push_str(&format!(",{:.4}", value * noise));
        }
    }
    desk.write("m.csv", text);
}

#[test]
fn ranks_suggests_the_planted_number_and_writes_its_files() {
    let desk = Desk::new();
    planted(&desk);
    let text = desk.run("ranks m.csv --components 1..6 --restarts 3 --out ranks --precision f64");
    assert!(text.contains("suggested: 3 components"), "{text}");
    let csv = desk.read("ranks/ranks.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "components,loss,loss_se,heldout_loss,heldout_se,stability,worst_stability,cophenetic,silhouette"
    );
    assert_eq!(lines.len(), 7);
    assert!(lines[1].starts_with("1,") && lines.iter().all(|line| line.split(',').count() == 9), "{csv}");
    let json = desk.json("ranks/ranks.json");
    assert_eq!(json["suggested"], 3);
    assert!(json["reason"].as_str().unwrap().contains("standard error"));
    let page = desk.read("ranks/report.html");
    assert!(page.contains("3 components (suggested)") && page.contains("gene2"));
    assert!(!desk.path("ranks.fits").exists());
}

#[test]
fn fits_of_another_run_are_not_continued() {
    let desk = Desk::new();
    planted(&desk);
    std::fs::create_dir(desk.path("new.fits")).unwrap();
    desk.write("new.fits/survey.json", "{}");
    assert_says(
        &desk.refused("ranks m.csv -k 2,3 --restarts 2 --out new"),
        &["new.fits", "--resume", "--force"],
    );
    let refused = desk.refused("ranks m.csv -k 2,3 --restarts 2 --out new --resume --quiet");
    assert_says(&refused, &["new.fits", "other settings"]);
    desk.run("ranks m.csv -k 2,3 --restarts 2 --out new --force");
    assert!(desk.path("new/ranks.csv").exists() && !desk.path("new.fits").exists());
}

#[test]
fn ranks_refuses_incomparable_input() {
    let desk = Desk::new();
    planted(&desk);
    desk.write("small.csv", "1,2,3\n4,5,6\n7,8,9\n");
    for (words, expected) in [
        ("ranks m.csv -k 5..2 --out r", "not a range"),
        ("ranks m.csv -k 2..4 --restarts 0 --out r", "restarts"),
        ("ranks small.csv -k 1..3 --out r", "at least 5"),
    ] {
        let refused = desk.refused(words);
        assert!(refused.contains(expected), "{words}: {refused}");
        assert!(!desk.path("r").exists() && !desk.path("r.fits").exists(), "{words}");
    }
}
