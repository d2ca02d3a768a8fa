//! The results of an experiment: tables, a chart for each panel, and a page with all of them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use partwise_report::chart::{Axis, Lines, STANDALONE, Series};
use partwise_report::text::{details, escape, number, table};

use crate::describe::{Command, Draws, Experiment};
use crate::{Done, Result, file_error};

/// The maximum number of points of a line.
const POINTS: usize = 120;

/// Writes `runs.csv`, `curves.csv`, one SVG per panel and `index.html`.
pub fn write(experiment: &Experiment, done: &[Done], out: &Path) -> Result<()> {
    let put = |name: &str, text: &str| {
        let (part, path) = (out.join(format!(".{name}.partial")), out.join(name));
        fs::write(&part, text).and_then(|()| fs::rename(&part, &path)).map_err(file_error(path))
    };
    put("runs.csv", &runs(experiment, done))?;
    put("curves.csv", &curves(experiment, done))?;
    let mut panels = String::new();
    for (index, panel) in experiment.panels.iter().enumerate() {
        let of_panel: Vec<&Done> = done.iter().filter(|done| done.run.panel == index).collect();
        if of_panel.is_empty() {
            continue;
        }
        put(
            &format!("{}.svg", file_name(&panel.name)),
            &chart(experiment, index, &of_panel, Some(STANDALONE)),
        )?;
        let svg = chart(experiment, index, &of_panel, None);
        let stand_in =
            if panel.stand_in.is_empty() { String::new() } else { format!(" ({})", panel.stand_in) };
        let _ = write!(
            panels,
            "<figure>{svg}<figcaption>({}) {}{}</figcaption>{}</figure>",
            char::from(b'a' + index as u8 % 26),
            escape(&panel.name),
            escape(&stand_in),
            details("The runs as a table", &listing(experiment, &of_panel))
        );
    }
    put("index.html", &page(experiment, done, &panels))
}

/// A panel's name for use in a file name.
fn file_name(panel: &str) -> String {
    panel
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .collect()
}

/// One line per run.
fn runs(experiment: &Experiment, done: &[Done]) -> String {
    let mut text =
        String::from("panel,method,nodes,repeat,clock,steps,seconds,seconds_a_step,relative_error\n");
    for one in done {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{:.6},{:.9},{:.9}",
            experiment.panels[one.run.panel].name,
            experiment.methods[one.run.method].name,
            one.run.nodes,
            one.run.repeat,
            one.clock,
            one.steps,
            one.seconds,
            1.0 / one.speed(),
            one.error
        );
    }
    text
}

/// One line per point of an error curve.
fn curves(experiment: &Experiment, done: &[Done]) -> String {
    let mut text = String::from("panel,method,nodes,repeat,step,seconds,relative_error\n");
    for one in done {
        for [step, seconds, error] in &one.curve {
            let _ = writeln!(
                text,
                "{},{},{},{},{step},{seconds:.6},{error:.9}",
                experiment.panels[one.run.panel].name,
                experiment.methods[one.run.method].name,
                one.run.nodes,
                one.run.repeat
            );
        }
    }
    text
}

/// Draws a panel; `style` is the style sheet if it is a file of its own.
fn chart(experiment: &Experiment, panel: usize, done: &[&Done], style: Option<&str>) -> String {
    let mut series = Vec::new();
    for (method, described) in experiment.shown(&experiment.panels[panel]) {
        let of_method: Vec<&&Done> = done.iter().filter(|done| done.run.method == method).collect();
        let line = |points: Vec<(f64, f64)>| Series {
            name: described.name.clone(),
            colour: method % 8,
            dashed: method % 2 == 1,
            points,
            tips: Vec::new(),
        };
        match experiment.draws {
            Draws::SpeedOverNodes if !of_method.is_empty() => series.push(line(speeds(&of_method))),
            Draws::SpeedOverNodes => {}
            // The repeat with the median final error.
            Draws::ErrorOverTime | Draws::ErrorOverIterations => {
                let mut by_error = of_method.clone();
                by_error.sort_by(|a, b| a.error.total_cmp(&b.error));
                if let Some(middle) = by_error.get(by_error.len() / 2) {
                    let across = if experiment.draws == Draws::ErrorOverTime { 1 } else { 0 };
                    series.push(line(thinned(&middle.curve, across)));
                }
            }
        }
    }
    let caption = format!("{}, {}", experiment.title, experiment.panels[panel].name);
    let (x, y) = axes(experiment, done.first().map_or("real", |done| done.clock));
    let marks = experiment.draws == Draws::SpeedOverNodes;
    Lines { title: &caption, x, y, series: &series, marks }.svg(style)
}

/// Iterations per second for each number of nodes, means over repeats.
fn speeds(done: &[&&Done]) -> Vec<(f64, f64)> {
    let mut nodes: Vec<usize> = done.iter().map(|done| done.run.nodes).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mean = |nodes: usize| {
        let of_nodes: Vec<f64> =
            done.iter().filter(|done| done.run.nodes == nodes).map(|done| 1.0 / done.speed()).collect();
        of_nodes.len() as f64 / of_nodes.iter().sum::<f64>()
    };
    nodes.into_iter().map(|nodes| (nodes as f64, mean(nodes))).collect()
}

/// A curve with few points, including the last one; the start is left out, because its error may exceed the scale.
fn thinned(curve: &[[f64; 3]], across: usize) -> Vec<(f64, f64)> {
    let curve = if curve.len() > 2 && curve[0][0] == 0.0 { &curve[1..] } else { curve };
    let step = curve.len().div_ceil(POINTS).max(1);
    let kept = curve.iter().enumerate().filter(|(index, _)| index % step == 0 || index + 1 == curve.len());
    kept.map(|(_, point)| (point[across], point[2])).collect()
}

fn axes(experiment: &Experiment, clock: &str) -> (Axis, Axis) {
    let error = || Axis::new("Relative error");
    let seconds = if clock == "real" { "Time (s)".to_string() } else { format!("Time (s, {clock} clock)") };
    match experiment.draws {
        Draws::ErrorOverTime => (Axis { zero: true, ..Axis::new(seconds) }, error()),
        Draws::ErrorOverIterations => (Axis { zero: true, ..Axis::new("Iterations") }, error()),
        Draws::SpeedOverNodes => {
            let nodes =
                if experiment.command == Command::Simulate { "Number of parties" } else { "Number of nodes" };
            (Axis::new(nodes), Axis { zero: true, ..Axis::new("iterations per second") })
        }
    }
}

fn listing(experiment: &Experiment, done: &[&Done]) -> String {
    let rows = done.iter().map(|one| {
        vec![
            experiment.methods[one.run.method].name.clone(),
            one.run.nodes.to_string(),
            number(one.steps),
            number(one.seconds),
            number(1.0 / one.speed()),
            number(one.error),
        ]
    });
    table(&["method", "nodes", "steps", "seconds", "seconds a step", "relative error"], rows)
}

const STYLE: &str = "body{margin:0 auto;padding:32px clamp(16px,4vw,40px);max-width:1200px;font:16px/1.55 \
    system-ui,-apple-system,\"Segoe UI\",Roboto,Arial,sans-serif;color:#1d2430;background:#fbfaf8}h1{font-size:26px;line-height:1.2}\
    .panels{display:grid;gap:16px;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr))}figure{margin:0;padding:14px \
    16px;background:#fff;border:1px solid #e3e1dc;border-radius:12px;min-width:0}svg{width:100%;height:auto;display:block}figcaption\
    {text-align:center}.note{color:#5c6675;max-width:76ch}.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:14px}\
    th,td{padding:4px 14px 4px 0;text-align:left;border-bottom:1px solid #e3e1dc}summary{cursor:pointer;color:#0066cc}\
    @media (max-width:520px){.chart text{font-size:16px}}";

fn page(experiment: &Experiment, done: &[Done], panels: &str) -> String {
    let mut clocks: Vec<&str> = done.iter().map(|done| done.clock).collect();
    clocks.sort_unstable();
    clocks.dedup();
    let clock = clocks.into_iter().map(|clock| match clock {
        "virtual" => {
            "There are more nodes than cores, so the clock is virtual: the processor time of each node's thread plus \
             the time that its messages would take on the network of the experiment. "
        }
        "simulated" => {
            "There are more parties than cores, so the clock is simulated: each multiplication, byte and message has \
             a fixed cost. "
        }
        _ => "The clock is real. ",
    });
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>{0}: {1}</title><link rel=\"icon\" href=\"data:,\"><style>{STYLE}{STANDALONE}</style></head>\
         <body><p class=\"note\">Partwise, {0} of the paper</p><h1>{1}</h1><p class=\"note\">{2}{3}</p><div class=\"panels\">{panels}\
         </div></body></html>\n",
        escape(&experiment.figure),
        escape(&experiment.title),
        clock.collect::<String>(),
        escape(&experiment.note)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::tests::small;
    use crate::plan::Scope;

    #[test]
    fn a_figure_has_all_its_files() {
        let experiment = small();
        let out = tempfile::tempdir().unwrap();
        let runs = experiment.runs(Scope { quick: false, cores: 2 });
        let done: Vec<Done> = runs
            .iter()
            .map(|run| Done {
                run: run.clone(),
                curve: vec![[0.0, 0.0, 9.0], [1.0, 0.1, 0.5], [2.0, 0.2, 0.4]],
                steps: 2.0,
                seconds: 0.2,
                error: 0.4,
                clock: "virtual",
            })
            .collect();
        write(&experiment, &done, out.path()).unwrap();
        let read = |name: &str| fs::read_to_string(out.path().join(name)).unwrap();
        assert_eq!(read("runs.csv").lines().count(), 5);
        assert!(read("runs.csv").contains("FACE,MU,10,0,virtual,2,0.200000,0.100000000,0.400000000"));
        assert_eq!(read("curves.csv").lines().count(), 13);
        let face = read("face.svg");
        assert!(
            face.contains(">DSANLS/S</text>") && face.contains(">Time (s, virtual clock)</text>"),
            "{face}"
        );
        assert!(!read("rcv1.svg").contains(">MU</text>"));
        let page = read("index.html");
        assert!(page.contains("the clock is virtual") && page.contains("(b) RCV1"), "{page}");
    }

    #[test]
    fn speed_is_the_reciprocal_of_the_mean_time() {
        let experiment = small();
        let runs = experiment.runs(Scope { quick: false, cores: 2 });
        let of = |seconds: f64| Done {
            run: runs[0].clone(),
            curve: Vec::new(),
            steps: 10.0,
            seconds,
            error: 0.0,
            clock: "real",
        };
        let (fast, slow) = (of(1.0), of(3.0));
        assert_eq!(speeds(&[&&fast, &&slow]), [(10.0, 5.0)]);
    }
}
