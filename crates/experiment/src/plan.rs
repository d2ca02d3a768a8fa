//! The runs of an experiment.

use std::path::{Path, PathBuf};

use crate::describe::{Command, Draws, Experiment, Limits, Method, Panel};

/// How much of an experiment to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope {
    /// Short runs, no panels that take long, and of several numbers of nodes the smallest and the largest.
    pub quick: bool,
    /// The number of cores; with more nodes than that, the clock is virtual.
    pub cores: usize,
}

/// The share of the limits that remains in a quick experiment.
const QUICK: f64 = 0.15;
const LEAST_STEPS: usize = 2;
/// More iterations than any time limit allows.
const ENDLESS: usize = 1_000_000;

/// One run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The index of its panel.
    pub panel: usize,
    /// The index of its method.
    pub method: usize,
    /// Nodes, or parties.
    pub nodes: usize,
    /// Its number among the repeats.
    pub repeat: u64,
    /// Its limits.
    pub limits: Limits,
}

impl Experiment {
    /// All runs, panel by panel.
    pub fn runs(&self, scope: Scope) -> Vec<Planned> {
        let mut runs = Vec::new();
        for (panel, described) in self.panels.iter().enumerate() {
            if scope.quick && described.long {
                continue;
            }
            let nodes = described.nodes.as_ref().unwrap_or(&self.nodes);
            for (method, _) in self.shown(described) {
                for &nodes in &few(nodes, scope.quick && self.draws == Draws::SpeedOverNodes) {
                    for repeat in 0..if scope.quick { 1 } else { self.repeats } {
                        let limits = self.limits_of(described, scope);
                        runs.push(Planned { panel, method, nodes, repeat, limits });
                    }
                }
            }
        }
        runs
    }

    /// The methods of a panel, with their indices.
    pub fn shown<'a>(&'a self, panel: &'a Panel) -> impl Iterator<Item = (usize, &'a Method)> {
        self.methods.iter().enumerate().filter(|(_, method)| !panel.without.contains(&method.name))
    }

    fn limits_of(&self, panel: &Panel, scope: Scope) -> Limits {
        let Limits { time, work, steps } = panel.limits.unwrap_or(self.limits);
        if !scope.quick {
            return Limits { time, work, steps };
        }
        let short = |limit: f64| limit * QUICK;
        let fewer = |steps: usize| ((steps as f64 * QUICK) as usize).max(LEAST_STEPS.min(steps));
        Limits { time: time.map(short), work: work.map(short), steps: steps.map(fewer) }
    }

    /// The name of a run and of its folder.
    pub fn name(&self, run: &Planned) -> String {
        let name = format!(
            "{}-{}-{}-{}",
            self.panels[run.panel].name, self.methods[run.method].name, run.nodes, run.repeat
        );
        name.chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .collect::<String>()
            .to_lowercase()
    }

    /// The run in words.
    pub fn words(&self, run: &Planned) -> String {
        let unit = match self.command {
            Command::Factorize => "nodes",
            Command::Simulate => "parties",
        };
        format!("{}, {}, {} {unit}", self.panels[run.panel].name, self.methods[run.method].name, run.nodes)
    }

    /// The program's arguments for a run on a file, without those for output; `rounds` is the limit of a
    /// simulation.
    pub fn arguments(&self, run: &Planned, file: &Path, scope: Scope, rounds: Option<usize>) -> Vec<String> {
        let (panel, method) = (&self.panels[run.panel], &self.methods[run.method]);
        let mut words: Vec<String> = Vec::new();
        let mut add = |name: &str, value: String| words.extend([name.to_string(), value]);
        add(self.command.name(), file.to_string_lossy().into_owned());
        add("--rank", panel.rank.unwrap_or(self.rank).to_string());
        add("--seed", (self.seed + run.repeat).to_string());
        add("--tolerance", "0".into());
        match self.command {
            Command::Factorize => {
                add("--nodes", run.nodes.to_string());
                add("--iterations", run.limits.steps.unwrap_or(ENDLESS).to_string());
                let limits = [run.limits.time, run.limits.work.map(|work| work / run.nodes as f64)];
                if let Some(time) = limits.into_iter().flatten().reduce(f64::min) {
                    add("--time-limit", format!("{time}"));
                }
                match &self.network {
                    Some(network) => add("--network", network.clone()),
                    None if run.nodes > scope.cores => add("--network", "unlimited".into()),
                    None => {}
                }
            }
            Command::Simulate => {
                add("--parties", run.nodes.to_string());
                add("--rounds", rounds.or(run.limits.steps).unwrap_or(LEAST_STEPS).to_string());
                if let Some(network) = &self.network {
                    add("--network", network.clone());
                }
            }
        }
        if let Some([alpha, beta]) = self.damping(panel, method) {
            add("--alpha", alpha.to_string());
            add("--beta", beta.to_string());
        }
        words.extend(["--quiet", "--no-report"].map(String::from));
        words.extend(self.arguments.iter().chain(&method.arguments).chain(&panel.arguments).cloned());
        words
    }

    fn damping(&self, panel: &Panel, method: &Method) -> Option<[f64; 2]> {
        let found = panel.damping.get(&method.name).or(panel.damping.get("all"));
        found.copied().filter(|_| method.damped)
    }

    /// The panels' files, in the data folder or converted in `converted`, and whether they must be converted first.
    pub fn files(&self, data: &Path, converted: &Path) -> Vec<(PathBuf, Option<PathBuf>)> {
        let place = |panel: &Panel| {
            let source = data.join(&panel.data);
            // Text and compressed files would be decoded again for every run.
            let stem = panel.data.strip_suffix(".npy.gz").or(panel.data.strip_suffix(".zip"));
            (source, stem.map(|stem| converted.join(format!("{stem}.npy"))))
        };
        self.panels.iter().map(place).collect()
    }
}

impl Command {
    fn name(self) -> &'static str {
        match self {
            Command::Factorize => "factorize",
            Command::Simulate => "simulate",
        }
    }
}

fn few(nodes: &[usize], quick: bool) -> Vec<usize> {
    match nodes {
        [first, .., last] if quick => vec![*first, *last],
        nodes => nodes.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::tests::small;

    const SCOPE: Scope = Scope { quick: false, cores: 2 };

    #[test]
    fn runs_follow_the_panels_order() {
        let experiment = small();
        let runs = experiment.runs(SCOPE);
        let names: Vec<String> = runs.iter().map(|run| experiment.name(run)).collect();
        assert_eq!(names, ["face-dsanls-s-10-0", "face-mu-10-0", "rcv1-dsanls-s-2-0", "rcv1-dsanls-s-4-0"]);
        assert_eq!(experiment.words(&runs[1]), "FACE, MU, 10 nodes");
    }

    #[test]
    fn arguments_say_all() {
        let experiment = small();
        let runs = experiment.runs(SCOPE);
        let words = experiment.arguments(&runs[0], Path::new("face.npy"), SCOPE, None).join(" ");
        assert_eq!(
            words,
            "factorize face.npy --rank 4 --seed 0 --tolerance 0 --nodes 10 --iterations 50 --time-limit 2 \
             --network 1Gbit/s,100us --alpha 0.1 --beta 1 --quiet --no-report --algorithm dsanls"
        );
        // A method without damping, and without a setting for it.
        assert!(!experiment.arguments(&runs[1], Path::new("f"), SCOPE, None).contains(&"--alpha".into()));
        assert!(!experiment.arguments(&runs[2], Path::new("f"), SCOPE, None).contains(&"--alpha".into()));
    }

    #[test]
    fn the_clock_is_virtual_beyond_the_cores() {
        let mut experiment = small();
        experiment.network = None;
        let runs = experiment.runs(SCOPE);
        let words = |run: &Planned| experiment.arguments(run, Path::new("f"), SCOPE, None).join(" ");
        assert!(words(&runs[0]).contains("--network unlimited") && !words(&runs[2]).contains("--network"));
    }

    #[test]
    fn quick_is_less() {
        let mut experiment = small();
        experiment.panels[1].nodes = Some(vec![2, 4, 8, 16]);
        experiment.draws = Draws::SpeedOverNodes;
        let runs = experiment.runs(Scope { quick: true, cores: 2 });
        assert_eq!(runs.iter().map(|run| run.nodes).collect::<Vec<_>>(), [10, 10, 2, 16]);
        assert_eq!((runs[0].limits.time, runs[0].limits.steps), (Some(0.3), Some(7)));
        experiment.panels[0].long = true;
        assert_eq!(experiment.runs(Scope { quick: true, cores: 2 }).len(), 2);
        assert_eq!(experiment.runs(SCOPE).len(), 6);
    }
}
