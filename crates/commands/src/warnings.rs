//! The warnings of a run: printed at once, kept in `run.json`, and shown in the report.

use std::path::Path;

use partwise::Real;
use partwise::io::Assumption;
use partwise::matrix::{Dominant, Dominants, Matrix, Shape};
use partwise::run::{Factors, Settings};

use crate::console::Console;
use crate::folder::Names;
use crate::input;

/// The warnings of a run so far.
pub struct Warnings {
    console: Console,
    quiet: bool,
    all: Vec<String>,
}

impl Warnings {
    pub fn new(console: Console, quiet: bool) -> Self {
        Warnings { console, quiet, all: Vec::new() }
    }

    fn add(&mut self, sentence: String) {
        if !self.quiet {
            self.console.warn(&format!("warning: {sentence}"));
        }
        self.all.push(sentence);
    }

    /// All warnings, without the word "warning".
    pub fn into_sentences(self) -> Vec<String> {
        self.all
    }

    /// More components than a matrix can have.
    pub fn rank(&mut self, settings: &Settings, shape: Shape) {
        let smaller = shape.rows.min(shape.cols);
        if settings.rank > smaller {
            self.add(format!(
                "{} components are more than the smaller side of the matrix ({}), so some are redundant",
                settings.rank, smaller
            ));
        }
    }

    /// Warns about assumptions made for an ambiguous table.
    pub fn assumptions(&mut self, file: &Path, assumptions: &[Assumption]) {
        input::assumed(file, assumptions).for_each(|sentence| self.add(sentence));
    }

    /// Warns about a row or a column that dominates the matrix.
    pub fn dominant(&mut self, dominants: Dominants, names: Names<'_>) {
        let Dominants { row, col } = dominants;
        for (what, found, labels) in [("row", row, names.rows), ("column", col, names.cols)] {
            let Some(Dominant { index, share }) = found else { continue };
            let name = labels.map_or(String::new(), |labels| format!(" ({})", labels[index]));
            self.add(format!(
                "{what} {}{name} accounts for {:.1}% of the squared norm of the matrix, so the other {what}s hardly \
                 count; rescale the {what}s, or remove this one",
                index + 1,
                100.0 * share
            ));
        }
    }

    /// Warns about rows and columns without a known entry.
    pub fn unknown(&mut self, unknown: Option<(usize, usize)>) {
        let Some((rows, cols)) = unknown else { return };
        for (count, what, factor) in [(rows, "row", 'U'), (cols, "column", 'V')] {
            if count > 0 {
                let so = match count {
                    1 => format!("{what} has no known entry, and its row of {factor} is 0"),
                    _ => format!("{what}s have no known entry, and their rows of {factor} are 0"),
                };
                self.add(format!("{count} {so}; check what marks a missing value"));
            }
        }
    }

    /// Warns about components that are 0.
    pub fn zero<T: Real>(&mut self, factors: &Factors<T>, settings: &Settings) {
        let zero = factors.energies().iter().filter(|&&energy| energy == 0.0).count();
        if zero == 0 {
            return;
        }
        let Settings { l1_u, l1_v, l2_u, l2_v, .. } = settings;
        let penalties = [("--l1-u", l1_u), ("--l1-v", l1_v), ("--l2-u", l2_u), ("--l2-v", l2_v)];
        let given: Vec<String> = penalties
            .iter()
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(name, weight)| format!("{name} {weight}"))
            .collect();
        let cure =
            if given.is_empty() { "try another start".into() } else { format!("lower {}", given.join(", ")) };
        self.add(match (zero == factors.k, zero) {
            (true, _) => format!("every component is 0, so the result is meaningless; {cure}"),
            (false, 1) => format!("1 of {} components is 0; {cure}, or a smaller --rank", factors.k),
            (false, _) => format!("{zero} of {} components are 0; {cure}, or a smaller --rank", factors.k),
        });
    }
}

/// The row and the column that dominate a matrix.
pub fn dominant_of<T: Real>(matrix: &Matrix<T>) -> Dominants {
    let (rows, cols) = matrix.squared_norms();
    Dominants::among(&rows, &cols)
}
