//! Finds the constants of this machine: those that `calibrate` wrote, or the built-in ones.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use partwise::plan::Constants;

/// Constants and the file that they come from.
pub struct Known {
    pub constants: Constants,
    /// `None` for the built-in constants.
    pub file: Option<PathBuf>,
}

impl Known {
    /// The origin of the constants, in words.
    pub fn words(&self) -> String {
        match &self.file {
            Some(file) => format!("constants of {}", file.display()),
            None => "built-in constants (`partwise calibrate` measures this machine)".into(),
        }
    }
}

/// The constants file of this user, in `XDG_CONFIG_HOME` or `~/.config`.
pub fn usual() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("partwise").join("calibration.json"))
}

/// The constants of the given file, of the user's file, or the built-in ones.
pub fn known(asked: Option<&Path>) -> Result<Known> {
    let file = asked.map(Path::to_path_buf).or_else(|| usual().filter(|file| file.exists()));
    let Some(file) = file else { return Ok(Known { constants: Constants::built_in(), file: None }) };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => bail!("{}: {error}; create it with `partwise calibrate`", file.display()),
    };
    match serde_json::from_str::<Constants>(&text) {
        Ok(constants) if constants.is_plausible() => Ok(Known { constants, file: Some(file) }),
        _ => bail!(
            "{}: this file does not contain measured constants; create it with `partwise calibrate`",
            file.display()
        ),
    }
}
