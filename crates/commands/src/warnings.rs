//! The warnings of a run: printed at once, kept in `run.json`, and shown in the report.

use std::path::Path;

use partwise::Real;
use partwise::io::Assumption;
use partwise::matrix::{Dominant, Matrix};
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

    /// Warns about more components than an m x n matrix supports.
    pub fn rank(&mut self, settings: &Settings, (m, n): (usize, usize)) {
        if settings.rank > m.min(n) {
            self.add(format!(
                "{} components are more than the smaller side of the matrix ({}), so some are redundant",
                settings.rank,
                m.min(n)
            ));
        }
    }

    /// Warns about assumptions made for an ambiguous table.
    pub fn assumptions(&mut self, file: &Path, assumptions: &[Assumption]) {
        input::assumed(file, assumptions).for_each(|sentence| self.add(sentence));
    }

    /// Warns about a row and a column that dominate the matrix.
    pub fn dominant(
        &mut self,
        (row, col): (Option<Dominant>, Option<Dominant>),
        (row_labels, col_labels): Names<'_>,
    ) {
        for (what, found, labels) in [("row", row, row_labels), ("column", col, col_labels)] {
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
pub fn dominant_of<T: Real>(matrix: &Matrix<T>) -> (Option<Dominant>, Option<Dominant>) {
    let (rows, cols) = matrix.squared_norms();
    (Dominant::among(&rows), Dominant::among(&cols))
}
