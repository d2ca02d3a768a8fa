//! The help texts, whole: a change of them is a change that users see.

use crate::common::*;

#[test]
fn every_command_explains_itself() {
    let desk = Desk::new();
    let commands = [
        "",
        "factorize",
        "split",
        "inspect",
        "evaluate",
        "transform",
        "simulate",
        "coordinator",
        "party",
        "provision",
        "audit",
        "top",
        "experiment",
        "report",
        "plan",
        "calibrate",
    ];
    for command in commands {
        let text = desk.run(&format!("{command} --help"));
        assert!(text.contains("Example"), "{text}");
        assert!(text.contains(&format!("partwise {command}").trim_end().to_string()), "{text}");
        let name = if command.is_empty() { "partwise" } else { command };
        insta::assert_snapshot!(format!("help_{name}"), text);
        if !command.is_empty() {
            assert_eq!(desk.run(&format!("help {command}")), text);
        }
    }
}

#[test]
fn the_default_tolerance_is_stated() {
    let text = Desk::new().run("factorize --help");
    let tolerance = text.split("--tolerance <X>").nth(1).unwrap().split("\n      --").next().unwrap();
    assert!(tolerance.contains("[default: 0.00001]"), "{tolerance}");
}

#[test]
fn no_arguments_are_a_question() {
    let output = Desk::new().output("");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8(output.stderr).unwrap().contains("Usage: partwise <COMMAND>"));
    assert_eq!(Desk::new().run("--version"), format!("partwise {}\n", env!("CARGO_PKG_VERSION")));
}
