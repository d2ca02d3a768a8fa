//! The compiled part of the Python package `partwise`: arrays in, factors out. The public part is in
//! `python/partwise`.

mod arrays;
mod choices;
mod errors;
mod federation;
mod fit;
mod program;
mod ranks;
mod watch;

use pyo3::prelude::*;

/// The compiled part of the package: use `partwise.NMF`.
#[pymodule]
mod _partwise {
    #[pymodule_export]
    use super::choices::choices;

    #[pymodule_export]
    use super::federation::{audit, join, simulate};

    #[pymodule_export]
    use super::fit::{fit, transform};

    #[pymodule_export]
    use super::program::program;

    #[pymodule_export]
    use super::ranks::select_rank;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python packages give it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
