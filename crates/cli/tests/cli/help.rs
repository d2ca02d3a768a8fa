//! Snapshots of the help texts.

use std::process::Command;

use crate::common::*;

/// Every command, as users type it.
const COMMANDS: [&str; 29] = [
    "",
    "factorize",
    "report",
    "top",
    "evaluate",
    "transform",
    "inspect",
    "convert",
    "plan",
    "split",
    "calibrate",
    "ranks",
    "simulate",
    "audit",
    "coordinator",
    "coordinator init",
    "coordinator sign",
    "coordinator accept-key",
    "coordinator run",
    "party",
    "party init",
    "party join",
    "party ledger",
    "party rotate-key",
    "party accept-key",
    "provision",
    "experiment",
    "completions",
    "man",
];

#[test]
fn every_command_has_a_help_text_with_two_examples() {
    let desk = Desk::new();
    for command in COMMANDS {
        let text = desk.run(&format!("{command} --help"));
        let examples = text.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("{text}"));
        let examples: Vec<&str> = examples.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(examples.len(), 2, "wrapped or not two: {text}");
        assert!(examples.iter().any(|line| line.contains(&format!("partwise {command}"))), "{text}");
        let name = if command.is_empty() { "partwise".into() } else { command.replace(' ', "_") };
        insta::assert_snapshot!(format!("help_{name}"), text);
        if !command.is_empty() {
            assert_eq!(desk.run(&format!("help {command}")), text);
        }
    }
}

#[test]
fn the_short_help_shows_the_common_options_only() {
    let desk = Desk::new();
    for command in ["factorize", "simulate", "plan", "party join", "provision"] {
        let text = desk.run(&format!("{command} -h"));
        assert!(text.contains("Use --help to see all options."), "{text}");
        assert!(text.len() < desk.run(&format!("{command} --help")).len(), "{text}");
        insta::assert_snapshot!(format!("short_help_{}", command.replace(' ', "_")), text);
    }
    assert_eq!(desk.run("top -h"), desk.run("top --help"));
}

#[test]
fn groups_of_options_come_in_the_order_of_the_pipeline() {
    let text = Desk::new().run("factorize --help");
    let groups = ["Input:", "Components:", "Method:", "Stopping:", "Resources:", "Output:", "DSANLS:"];
    let places: Vec<usize> = groups.iter().map(|group| text.find(&format!("\n{group}\n")).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn the_default_tolerance_is_stated() {
    let text = Desk::new().run("factorize --help");
    let tolerance = text.split("--tolerance <X>").nth(1).unwrap().split("\n      --").next().unwrap();
    assert!(tolerance.contains("[default: 0.00001]"), "{tolerance}");
}

#[test]
fn components_is_an_alias_of_rank() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --components 2 --iterations 1 --quiet --no-report --out r");
    assert_eq!(desk.json("r/run.json")["rank"], 2);
}

#[test]
fn completions_and_man_pages_cover_every_command() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = desk.run(&format!("completions {shell}"));
        assert!(script.contains("factorize") && script.contains("restarts"), "{shell}");
        desk.write(format!("completions.{shell}"), script);
    }
    if let Ok(checked) = Command::new("bash").arg("-n").arg(desk.path("completions.bash")).status() {
        assert!(checked.success());
    }
    assert_says(&desk.refused("completions tcsh"), &["tcsh", "bash, zsh, fish, powershell"]);
    desk.run("man pages");
    for command in COMMANDS {
        let page = format!("partwise {command}").trim_end().replace(' ', "-");
        assert!(desk.read(&format!("pages/{page}.1")).contains(".SH"), "{page}");
    }
    assert!(desk.read("pages/partwise-factorize.1").contains("checkpoint\\-every"));
}

#[test]
fn without_arguments_the_usage_is_an_error() {
    let output = Desk::new().output("");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8(output.stderr).unwrap().contains("Usage: partwise <COMMAND>"));
    assert_eq!(Desk::new().run("--version"), format!("partwise {}\n", env!("CARGO_PKG_VERSION")));
}
