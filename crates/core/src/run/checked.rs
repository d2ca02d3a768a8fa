//! Settings that were checked once, in types that can only hold valid values: a run accepts no others.
//!
//! [`Settings::checked`] gives [`CheckedSettings`], before anything is read; [`CheckedSettings::for_matrix`] gives
//! [`RunSettings`], as soon as the size of the matrix is known.

use std::ops::Deref;

use super::factorize::StartFrom;
use super::method::Algorithm;
use super::settings::{Init, Settings};
use super::streamed::Streamed;
use crate::Real;
use crate::error::{Error, Result};
use crate::matrix::Shape;
use crate::objective::Loss;
use crate::wording::Wording;

/// Settings that are valid and do not contradict each other.
#[derive(Clone, Debug)]
pub struct CheckedSettings(Settings);

/// Checked settings that fit an m x n matrix.
#[derive(Clone, Debug)]
pub struct RunSettings {
    settings: Settings,
    rows: usize,
    cols: usize,
}

impl Settings {
    /// These settings, if they are valid.
    pub fn checked(self) -> Result<CheckedSettings> {
        self.check_values()?;
        Ok(CheckedSettings(self))
    }
}

impl Deref for CheckedSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl CheckedSettings {
    /// These settings for an m x n matrix, if they fit it.
    pub fn for_matrix(&self, rows: usize, cols: usize) -> Result<RunSettings> {
        self.0.check_sizes(rows, cols)?;
        Ok(RunSettings { settings: self.0.clone(), rows, cols })
    }
}

impl Deref for RunSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl RunSettings {
    /// The size of the matrix that they fit.
    pub fn size(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// The size of the matrix, with names.
    pub fn shape(&self) -> Shape {
        Shape { rows: self.rows, cols: self.cols }
    }

    /// (d, d'): columns and rows of the matrix that a sketch keeps.
    pub fn sketch(&self) -> (usize, usize) {
        self.sketch_sizes(self.rows, self.cols)
    }

    /// Other settings for the same matrix, checked likewise.
    pub fn with(&self, change: impl FnOnce(&mut Settings)) -> Result<RunSettings> {
        let mut settings = self.settings.clone();
        change(&mut settings);
        settings.checked()?.for_matrix(self.rows, self.cols)
    }

    /// Whether a run can start this way.
    pub(crate) fn check_start<T: Real>(&self, from: Option<StartFrom<'_, T>>) -> Result<()> {
        // Sketches differ between runs, whatever the start.
        let same = self.restarts > 1 && !self.algorithm.spec().draws;
        let problem = match from {
            None if same && matches!(self.init, Init::Nndsvd | Init::Nndsvda) => {
                "all runs from the same singular vectors are identical; leave it out, or start at random"
            }
            None => return Ok(()),
            Some(StartFrom::Snapshot(snapshot)) => return snapshot.check(self, self.rows, self.cols),
            Some(StartFrom::Factors(factors)) => {
                factors.check(self.rows, self.cols, self.rank)?;
                if !same {
                    return Ok(());
                }
                "all runs from the same given start are identical; leave it out, or the given start"
            }
        };
        Err(Error::parameter("restarts", problem))
    }

    /// Whether a run can stream its matrix; `started` if it starts from given factors.
    pub(crate) fn check_streamed(&self, streamed: &Streamed, started: bool) -> Result<()> {
        if self.init != Init::Random && !started {
            let problem =
                Wording::new("singular vectors need the matrix in memory; start at random, or raise ")
                    .field("memory");
            return Err(Error::parameter("init", problem));
        }
        let why = match (self.loss, self.algorithm) {
            (Loss::Frobenius, _) | (Loss::Kl, Algorithm::Auto | Algorithm::Mu) => None,
            (Loss::Kl, _) => Some("by this method needs the matrix in memory; use auto or mu, or raise "),
            (Loss::Is, _) => Some("needs the matrix in memory; use frobenius or kl, or raise "),
        };
        if let Some(why) = why {
            let problem = Wording::new(format!("{} {why}", self.loss));
            return Err(Error::parameter("loss", problem.field("memory")));
        }
        match self.algorithm.uses("sketch") {
            true => streamed.check_sketch(self),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Amount;

    fn refused<R>(result: Result<R>) -> String {
        match result {
            Err(Error::Parameter { name, .. }) => name.to_string(),
            Err(error) => error.to_string(),
            Ok(_) => String::new(),
        }
    }

    #[test]
    fn values_are_checked_without_a_matrix_and_sizes_with_it() {
        let settings = Settings { sketch_cols: Some(Amount::Count(9)), ..Settings::new(3) };
        assert_eq!(refused(Settings { rank: 0, ..settings.clone() }.checked()), "rank");
        assert_eq!(refused(Settings { tolerance: f64::NAN, ..settings.clone() }.checked()), "tolerance");
        let checked = settings.checked().unwrap();
        assert_eq!(refused(checked.for_matrix(20, 8)), "sketch_cols");
        assert_eq!(checked.for_matrix(20, 9).unwrap().sketch().0, 9);
    }

    #[test]
    fn changed_settings_are_checked_again() {
        let settings = Settings { alpha: 0.0, beta: 0.0, ..Settings::new(3) };
        let settings = settings.checked().unwrap().for_matrix(20, 9).unwrap();
        assert_eq!(settings.with(|settings| settings.samples = false).unwrap().size(), (20, 9));
        assert_eq!(refused(settings.with(|settings| settings.algorithm = Algorithm::Dsanls)), "alpha");
        assert_eq!(refused(settings.with(|settings| settings.rank = 0)), "rank");
    }
}
