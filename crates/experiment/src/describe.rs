//! The description of an experiment, read from a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::{Error, Result, file_error};

/// An experiment: one figure, with a panel for each matrix or parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The figure's caption.
    pub title: String,
    /// The figure of the paper.
    pub figure: String,
    /// A note for readers.
    #[serde(default)]
    pub note: String,
    /// What is drawn.
    pub draws: Draws,
    /// The kind of runs.
    pub command: Command,
    /// k, for panels without one of their own.
    pub rank: usize,
    /// Numbers of nodes, or of parties.
    pub nodes: Vec<usize>,
    /// The network of the virtual clock; without one the clock is real, unless there are more nodes than cores.
    pub network: Option<String>,
    /// Runs of each method, with consecutive seeds.
    #[serde(default = "one")]
    pub repeats: u64,
    /// The first seed.
    #[serde(default)]
    pub seed: u64,
    /// Arguments of every run.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The limits of runs, for panels without their own.
    #[serde(default)]
    pub limits: Limits,
    /// The methods, in order.
    #[serde(rename = "method")]
    pub methods: Vec<Method>,
    /// The panels, in order.
    #[serde(rename = "panel")]
    pub panels: Vec<Panel>,
}

/// What the charts show.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Draws {
    /// The relative error over seconds.
    ErrorOverTime,
    /// The relative error over iterations.
    ErrorOverIterations,
    /// Iterations per second over nodes: the reciprocal of the time per iteration.
    SpeedOverNodes,
}

/// What kind of runs an experiment has.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// General NMF, on nodes.
    Factorize,
    /// Secure NMF, between parties.
    Simulate,
}

/// The limits of a run; the first one reached ends it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Seconds on the run's own clock.
    pub time: Option<f64>,
    /// Seconds of all nodes together.
    pub work: Option<f64>,
    /// Iterations or rounds.
    pub steps: Option<usize>,
}

/// A method, which is a line in every panel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// Its name in the paper.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Whether it has a damping, alpha and beta.
    #[serde(default)]
    pub damped: bool,
}

/// A panel: a matrix and its deviations from the experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Its name in the paper.
    pub name: String,
    /// The matrix, in the data folder.
    pub data: String,
    /// What the matrix is, if it is not the paper's.
    #[serde(default)]
    pub stand_in: String,
    /// k.
    pub rank: Option<usize>,
    /// Numbers of nodes.
    pub nodes: Option<Vec<usize>>,
    /// Additional arguments of its runs.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Methods that it skips.
    #[serde(default)]
    pub without: Vec<String>,
    /// Alpha and beta, as found by search: of every damped method ("all"), or of the named one.
    #[serde(default)]
    pub damping: BTreeMap<String, [f64; 2]>,
    /// The limits of its runs.
    pub limits: Option<Limits>,
    /// Whether it takes too long for a quick experiment.
    #[serde(default)]
    pub long: bool,
}

fn one() -> u64 {
    1
}

impl Experiment {
    /// Reads a description and checks it.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(file_error(path))?;
        let wrong = |problem: String| Error::Description { path: path.into(), problem };
        let experiment: Experiment = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            wrong(format!("line {line}: {}; correct it", error.message()))
        })?;
        experiment.check().map_err(wrong)?;
        Ok(experiment)
    }

    fn check(&self) -> std::result::Result<(), String> {
        if self.methods.is_empty() || self.panels.is_empty() {
            return Err("[[method]] or [[panel]] is missing; add one".into());
        }
        let lists = self.panels.iter().filter_map(|panel| panel.nodes.as_ref()).chain([&self.nodes]);
        if lists.into_iter().any(|nodes| nodes.is_empty() || nodes.contains(&0)) {
            return Err("nodes: a list is empty or has a 0; give numbers of 1 or more".into());
        }
        if self.repeats == 0 {
            return Err("repeats: 0 is too few; give 1 or more".into());
        }
        for panel in &self.panels {
            let named = |name: &String| self.methods.iter().any(|method| method.name == *name);
            let unknown = |name: &&String| !named(name) && *name != "all";
            if let Some(name) = panel.without.iter().chain(panel.damping.keys()).find(unknown) {
                return Err(format!(
                    "panel {}: the method {name} does not exist; correct the name",
                    panel.name
                ));
            }
            let undamped =
                |name: &&String| self.methods.iter().any(|method| method.name == **name && !method.damped);
            if let Some(name) = panel.damping.keys().find(undamped) {
                return Err(format!("panel {}: {name} has no damping; remove it", panel.name));
            }
            let limits = panel.limits.unwrap_or(self.limits);
            if limits.time.is_none() && limits.work.is_none() && limits.steps.is_none() {
                return Err(format!("panel {}: its runs have no limit; give limits", panel.name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const SMALL: &str = r#"
        title = "Errors"
        figure = "Fig. 1"
        draws = "error-over-time"
        command = "factorize"
        rank = 4
        nodes = [10]
        network = "1Gbit/s,100us"
        limits = { time = 2.0, steps = 50 }
        [[method]]
        name = "DSANLS/S"
        arguments = ["--algorithm", "dsanls"]
        damped = true
        [[method]]
        name = "MU"
        arguments = ["--algorithm", "mu"]
        [[panel]]
        name = "FACE"
        data = "face.npy.gz"
        damping = { all = [0.1, 1.0] }
        [[panel]]
        name = "RCV1"
        data = "rcv1.npz"
        without = ["MU"]
        nodes = [2, 4]
    "#;

    pub fn small() -> Experiment {
        toml::from_str(SMALL).unwrap()
    }

    fn said(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Experiment::read(file.path()).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn errors_name_the_position() {
        assert_eq!(said(SMALL), "");
        assert!(said(&SMALL.replace("rank = 4", "rang = 4")).contains("line 6: unknown field `rang`"));
        assert!(
            said(&SMALL.replace("[\"MU\"]", "[\"MW\"]")).contains("panel RCV1: the method MW does not exist")
        );
        assert!(said(&SMALL.replace("{ all =", "{ \"MU\" =")).contains("panel FACE: MU has no damping"));
        assert!(said(&SMALL.replace("nodes = [2, 4]", "nodes = []")).contains("nodes: a list is empty"));
        assert!(said(&SMALL.replace("limits =", "#")).contains("panel FACE: its runs have no limit"));
        let absent = Experiment::read(Path::new("absent.toml")).unwrap_err().to_string();
        assert!(absent.starts_with("absent.toml: "), "{absent}");
    }

    #[test]
    fn every_experiment_of_the_project_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            Experiment::read(&entry.unwrap().path()).unwrap();
            count += 1;
        }
        assert_eq!(count, 8, "a figure of Sec. 5 each");
    }
}
