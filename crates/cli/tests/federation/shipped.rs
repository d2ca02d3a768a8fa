//! What the shipped program must not contain.

use std::fs;

use crate::disturbed::VARIABLE;
use crate::trial::*;

/// The program contains nothing by which tests disturb a party: no option, no variable, no code.
#[test]
fn the_program_contains_no_test_support() {
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let tests = fs::read(std::env::current_exe().unwrap()).unwrap();
    let shipped = fs::read(assert_cmd::cargo::cargo_bin!("partwise")).unwrap();
    for text in [VARIABLE, "trial: pauses"] {
        assert!(holds(&tests, text) && !holds(&shipped, text), "{text}");
    }
    for option in ["--death-of-trial", "--seed-of-trial"] {
        let arguments =
            ["party", "join", "party.toml", "--data", "x.csv", "--insecure", "--out", "x", option, "1"];
        let (code, text) = output(program().args(arguments));
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("unexpected argument") && text.contains(option), "{text}");
        assert!(!holds(&shipped, &option[2..]), "{option}");
    }
}
