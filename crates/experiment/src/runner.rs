//! Starts the program for each run, several at a time, and skips finished runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use partwise::run::record::RUN_FILE;

use crate::describe::Command as What;
use crate::{Done, Error, Experiment, Planned, Result, Scope, file_error};

/// The folders and limits of an experiment.
pub struct Stage<'a> {
    /// The program.
    pub program: &'a Path,
    /// The folder of matrices.
    pub data: &'a Path,
    /// The output folder.
    pub out: &'a Path,
    /// How much of it to run.
    pub scope: Scope,
    /// The number of simultaneous runs.
    pub jobs: usize,
    /// Panels to run; all if it is empty.
    pub only: &'a [String],
}

/// The rounds of the short simulation that measures the time per round.
const PILOT: usize = 2;
/// The share of its time limit that a simulation must use.
const NEARLY: f64 = 0.9;

/// Starts all unfinished runs; `tell` receives a message about each.
pub fn perform(experiment: &Experiment, stage: &Stage, tell: &(dyn Fn(&str) + Sync)) -> Result<Vec<Done>> {
    let files = prepare(experiment, stage, tell)?;
    let runs: Vec<Planned> = experiment.runs(stage.scope);
    let runs: Vec<&Planned> = runs.iter().filter(|run| files[run.panel].is_some()).collect();
    let all = in_parallel(&runs, stage.jobs, |index, run| {
        let begun = Instant::now();
        let file = files[run.panel].as_deref().unwrap_or(Path::new(""));
        let (done, ran) = one(experiment, stage, run, file)?;
        let how = if ran { format!("{:.1} s here", begun.elapsed().as_secs_f64()) } else { "kept".into() };
        tell(&format!(
            "{}/{} {}: relative error {:.5} after {} steps and {:.3} s ({}), {how}",
            index + 1,
            runs.len(),
            experiment.words(run),
            done.error,
            done.steps,
            done.seconds,
            done.clock
        ));
        Ok(done)
    })?;
    Ok(all)
}

/// The best alpha and beta of {0.1, 1, 10} (Sec. 5.1) for each panel and damped method, by the final error. Returns
/// the lines of a table: panel, method, alpha, beta, error.
pub fn search(experiment: &Experiment, stage: &Stage, tell: &(dyn Fn(&str) + Sync)) -> Result<Vec<String>> {
    const GRID: [f64; 3] = [0.1, 1.0, 10.0];
    let mut lines = vec!["panel,method,alpha,beta,relative_error".to_string()];
    let mut tried = Vec::new();
    for [alpha, beta] in GRID.into_iter().flat_map(|alpha| GRID.map(|beta| [alpha, beta])) {
        let mut variant = experiment.clone();
        variant.repeats = 1;
        for panel in &mut variant.panels {
            panel.damping = [("all".to_string(), [alpha, beta])].into();
            let undamped = variant.methods.iter().filter(|method| !method.damped);
            panel.without.extend(undamped.map(|method| method.name.clone()));
            panel.nodes =
                panel.nodes.take().or(Some(experiment.nodes.clone())).map(|nodes| nodes[..1].to_vec());
        }
        let out = stage.out.join(format!("search/{alpha}-{beta}"));
        for done in perform(&variant, &Stage { out: &out, ..*stage }, tell)? {
            tried.push((done.run.panel, done.run.method, alpha, beta, done.error));
        }
    }
    for (panel, method, alpha, beta, error) in &tried {
        let (panel, method) = (&experiment.panels[*panel].name, &experiment.methods[*method].name);
        lines.push(format!("{panel},{method},{alpha},{beta},{error:.6}"));
    }
    let mut pairs: Vec<(usize, usize)> = tried.iter().map(|entry| (entry.0, entry.1)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    for pair in pairs {
        let of_pair = tried.iter().filter(|entry| (entry.0, entry.1) == pair);
        // An overflow must not count as the smallest error.
        let finite = of_pair.filter(|entry| entry.4.is_finite());
        if let Some((panel, method, alpha, beta, error)) = finite.min_by(|a, b| a.4.total_cmp(&b.4)) {
            let (panel, method) = (&experiment.panels[*panel].name, &experiment.methods[*method].name);
            tell(&format!("best on {panel}: \"{method}\" = [{alpha}, {beta}] (relative error {error:.5})"));
        }
    }
    Ok(lines)
}

/// The panels' files, converted where that saves time; `None` for a panel that is not wanted or has no data.
fn prepare(
    experiment: &Experiment,
    stage: &Stage,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Option<PathBuf>>> {
    let converted = stage.out.join("data");
    fs::create_dir_all(&converted).map_err(file_error(&converted))?;
    let places = experiment.files(stage.data, &converted);
    if places.iter().all(|(source, _)| !source.exists()) {
        let names: Vec<&str> = experiment.panels.iter().map(|panel| panel.data.as_str()).collect();
        return Err(Error::NoData { folder: stage.data.into(), names: names.join(", ") });
    }
    let mut files = Vec::new();
    for ((source, target), panel) in places.into_iter().zip(&experiment.panels) {
        if !stage.only.is_empty() && !stage.only.iter().any(|only| only.eq_ignore_ascii_case(&panel.name)) {
            files.push(None);
            continue;
        }
        if panel.long && stage.scope.quick {
            tell(&format!("skipping {}: it takes too long for a quick experiment", panel.name));
            files.push(None);
            continue;
        }
        if !source.exists() {
            tell(&format!("skipping {}: {} does not exist", panel.name, source.display()));
            files.push(None);
            continue;
        }
        if let Some(target) = target.as_ref().filter(|target| !target.exists()) {
            let words = ["convert".into(), source.as_os_str().into(), target.as_os_str().to_os_string()];
            start(stage.program, &words, &panel.name)?;
        }
        files.push(Some(target.unwrap_or(source)));
    }
    Ok(files)
}

/// Executes a run unless it is finished; returns its result, and whether it was executed now.
fn one(experiment: &Experiment, stage: &Stage, run: &Planned, file: &Path) -> Result<(Done, bool)> {
    let folder = stage.out.join("runs").join(experiment.name(run));
    let words = experiment.arguments(run, file, stage.scope, None).join(" ");
    let noted = folder.join("command.txt");
    if fs::read_to_string(&noted).is_ok_and(|earlier| earlier == words) {
        return Ok((Done::read(run, &folder)?, false));
    }
    let attempt = |rounds| attempt(experiment, stage, run, file, rounds, &folder);
    let done = match (experiment.command, run.limits.time) {
        (What::Simulate, Some(time)) => until(time, run.limits.steps, attempt)?,
        _ => attempt(None)?,
    };
    // The file that is written last: a run without it is not finished.
    fs::write(&noted, words).map_err(file_error(&noted))?;
    Ok((done, true))
}

/// Simulations are limited by rounds, not by time: increases the rounds, up to `most`, until the run lasts nearly
/// as long as its limit.
fn until(time: f64, most: Option<usize>, attempt: impl Fn(Option<usize>) -> Result<Done>) -> Result<Done> {
    let most = most.unwrap_or(usize::MAX).max(PILOT);
    let mut rounds = PILOT;
    loop {
        let done = attempt(Some(rounds))?;
        if done.seconds >= NEARLY * time || rounds >= most {
            return Ok(done);
        }
        let wanted = (rounds as f64 * time / done.seconds.max(f64::MIN_POSITIVE)).ceil() as usize;
        rounds = wanted.clamp(rounds + 1, most);
    }
}

/// Starts the program and reads its results; factors are not kept.
fn attempt(
    experiment: &Experiment,
    stage: &Stage,
    run: &Planned,
    file: &Path,
    rounds: Option<usize>,
    folder: &Path,
) -> Result<Done> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(file_error(folder))?;
    }
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(file_error(parent))?;
    }
    let mut words = experiment.arguments(run, file, stage.scope, rounds);
    words.extend(["--out".to_string(), folder.to_string_lossy().into_owned()]);
    start(stage.program, &words, &experiment.words(run))?;
    for entry in fs::read_dir(folder).map_err(file_error(folder))?.flatten() {
        let kept = entry.file_name() == RUN_FILE || entry.file_name() == "trace.csv";
        if !kept {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(file_error(path))?;
        }
    }
    Done::read(run, folder)
}

/// Exit code of a run that was ended by Ctrl-C or SIGTERM.
const INTERRUPTED: i32 = 130;

fn start(program: &Path, words: &[impl AsRef<std::ffi::OsStr>], name: &str) -> Result<()> {
    let done = Command::new(program).args(words).stdin(Stdio::null()).stdout(Stdio::null()).output();
    let done = done.map_err(file_error(program))?;
    if done.status.success() {
        return Ok(());
    }
    // Interrupted by its exit code, or by the signal if that came before the program handled it.
    if matches!(done.status.code(), Some(INTERRUPTED) | None) {
        return Err(Error::Interrupted);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().rfind(|line| !line.is_empty()).unwrap_or("it ended without a message");
    Err(Error::Run { run: name.into(), said: said.trim_start_matches("error: ").into() })
}

/// All results in order, computed by several threads; after a failure no further run is started.
fn in_parallel<I: Sync, R: Send>(
    items: &[I],
    jobs: usize,
    work: impl Fn(usize, &I) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(index, item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    if let Ok(mut results) = results.lock() {
                        results.push((index, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulations_last_as_long_as_they_are_given() {
        let experiment = crate::describe::tests::small();
        let run = &experiment.runs(Scope::default())[0];
        let asked = Mutex::new(Vec::new());
        // The first rounds are slow.
        let attempt = |rounds: Option<usize>| {
            let rounds = rounds.unwrap();
            asked.lock().unwrap().push(rounds);
            let (steps, seconds) = (rounds as f64, 1.0 + 0.1 * rounds as f64);
            Ok(Done { run: run.clone(), curve: Vec::new(), steps, seconds, error: 0.5, clock: "simulated" })
        };
        assert!(until(10.0, None, attempt).unwrap().seconds >= 9.0);
        assert_eq!(asked.lock().unwrap()[..2], [2, 17]);
        asked.lock().unwrap().clear();
        assert!(until(10.0, Some(20), attempt).unwrap().seconds == 3.0);
        assert_eq!(*asked.lock().unwrap(), [2, 17, 20]);
    }

    #[test]
    fn results_keep_their_order_and_an_error_ends_it() {
        let items: Vec<usize> = (0..50).collect();
        assert_eq!(
            in_parallel(&items, 4, |_, &item| Ok(2 * item)).unwrap(),
            (0..50).map(|i| 2 * i).collect::<Vec<_>>()
        );
        let begun = AtomicUsize::new(0);
        let failed = in_parallel(&items, 1, |index, _| {
            begun.fetch_add(1, Ordering::Relaxed);
            if index == 3 { Err(Error::Run { run: "r".into(), said: "s".into() }) } else { Ok(()) }
        });
        assert!(failed.is_err() && begun.into_inner() == 4);
    }
}
