//! Shell completions and man pages of the program, as packages install them.
//!
//! `generate COMPLETIONS-FOLDER MAN-FOLDER`

use std::path::Path;

use clap_complete::{Shell, generate_to};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [completions, man] = arguments.as_slice() else {
        eprintln!("usage: generate COMPLETIONS-FOLDER MAN-FOLDER");
        std::process::exit(2);
    };
    std::fs::create_dir_all(completions)?;
    std::fs::create_dir_all(man)?;
    let mut command = partwise_commands::command();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
        generate_to(shell, &mut command, "partwise", completions)?;
    }
    clap_mangen::generate_to(command, Path::new(man))
}
