//! Solves X S = Y as the audit's linear recovery does, so that other programs can compare. JSON on stdin (`unknowns`, `size`,
//! `sketches` and `seen` by iteration, each by row) and on stdout (`least_squares`, `nonnegative`, by row).

use partwise::threads::Threads;
use partwise_secure::audit::Equations;

#[derive(serde::Deserialize)]
struct Asked {
    unknowns: usize,
    size: usize,
    sketches: Vec<Vec<f64>>,
    seen: Vec<Vec<f64>>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Asked = serde_json::from_reader(std::io::stdin())?;
    let iterations = asked.seen.len();
    let features = asked.seen.first().map_or(0, Vec::len) / asked.size.max(1);
    let equations = Equations {
        size: asked.size,
        sketches: asked.sketches,
        seen: asked.seen,
        truth: vec![0.0; features * asked.unknowns],
        unknowns: asked.unknowns,
    };
    let solved = serde_json::json!({
        "least_squares": equations.least_squares(iterations),
        "nonnegative": equations.nonnegative(&Threads::new(1)?, iterations),
    });
    println!("{solved}");
    Ok(())
}
