//! Syn-SD and Syn-SSD (Alg. `Syn_SD` and `Syn_SSD`): every party factorizes by itself with its own copy of U, and all
//! copies are averaged every T2 iterations; sketched, the V-step uses the average of S U in each of them.

use partwise::Real;

use super::{Line, Local, Log, Settings, Stop, first_diagonal, matrix, mean};
use crate::error::Result;
use crate::fixed::Part;
use crate::session::{ALL, Session};

/// Iterations between two evaluations where the error costs a product more: about a tenth of the time.
const EVALUATE_EVERY: usize = 10;
/// In how many parts evaluations divide even a short run.
const EVALUATED_PARTS: usize = 4;

/// T1 rounds of T2 iterations. U's steps are proximal, with the same weight at all parties: one that hardly uses a
/// component then hardly moves it, where the minimum of its own problem would lie anywhere; and as the weight grows, the
/// mean of all steps becomes a step of the pooled problem.
pub fn run<T: Real>(
    settings: &Settings,
    local: &mut Local<T>,
    session: &mut Session<'_>,
    log: &mut Log,
) -> Result<(usize, Stop)> {
    let k = settings.rank;
    let records = local.records_sketch(settings, session.me());
    let mut features = settings.protocol.sketches_features().then(|| local.features_side(settings));
    let (sum, parties) = first_diagonal(local, session)?;
    let mut diagonal = sum / parties as f64;
    let mut damping = settings.damping(diagonal);
    let seldom = EVALUATE_EVERY.div_ceil(settings.inner).min(settings.rounds.div_ceil(EVALUATED_PARTS));
    let every = if records.is_some() { seldom } else { 1 };
    for round in 0..settings.rounds {
        // The state that this round begins from, evaluated from the product that its first step needs anyway.
        let reached = (session.now(), session.bytes);
        let evaluated = round > 0 && round % every == 0;
        let mut own_error = 0.0;
        for inner in 0..settings.inner {
            let iteration = round * settings.inner + inner;
            let solver = damping.next(iteration, diagonal, 0.0);
            let product = (records.is_none() || evaluated && inner == 0).then(|| local.product_v());
            if let (true, 0, Some(product)) = (evaluated, inner, &product) {
                own_error = local.error_from(dot(product, &local.u));
            }
            match (&records, product) {
                (Some(sketch), _) => {
                    // Evaluation counts as no work.
                    local.take_work();
                    local.sketched_u(solver, sketch, iteration);
                }
                (None, Some(product)) => {
                    let gram = local.gram_v();
                    local.step_u(solver, product, &gram);
                }
                (None, None) => {}
            }
            match &mut features {
                None => drop(local.sweep_v()),
                Some(side) => {
                    let operator = side.distribution.draw::<T>(iteration);
                    let summand = local.project_u(&*operator);
                    session.work(local.take_work());
                    let total = session.sum(ALL, "S U", vec![matrix(&summand, k)])?;
                    let b: Vec<T> = mean(&total.parts[0], total.parties);
                    local.sketched_v(side, iteration, &*operator, &b);
                }
            }
            session.work(local.take_work());
        }
        let parts = vec![matrix(&local.u, k), Part::scalars(&[own_error, local.diagonal()])];
        let total = session.sum(ALL, "U", parts)?;
        local.u = mean(&total.parts[0], total.parties);
        diagonal = total.parts[1][1] / total.parties as f64;
        if evaluated {
            let (seconds, bytes) = reached;
            let line = Line { round, seconds, squared_error: total.parts[1][0], bytes };
            if log.note(line, session) {
                return Ok((round + 1, Stop::Tolerance));
            }
        }
    }
    Ok((settings.rounds, Stop::Rounds))
}

/// ⟨A, B⟩ in f64.
fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
}
