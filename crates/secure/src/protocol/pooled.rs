//! HALS on the pooled matrix: U moves by the sums of M_r V_r and V_rᵀV_r, as if all records were in one place.

use partwise::Real;

use super::local::HALS;
use super::{Line, Local, Log, Settings, Stop, matrix};
use crate::error::Result;
use crate::fixed::{Part, whole_gram};
use crate::session::{ALL, Session};

/// One sum an iteration, which also has what the error of the last one needs.
pub fn run<T: Real>(
    settings: &Settings,
    local: &mut Local<T>,
    session: &mut Session<'_>,
    log: &mut Log,
) -> Result<(usize, Stop)> {
    let k = settings.rank;
    // This party's part of the error but for the terms of U.
    let mut own_error = local.norm();
    for round in 0..=settings.rounds {
        let parts =
            vec![matrix(&local.product_v(), k), Part::gram(&local.gram_v(), k), Part::scalars(&[own_error])];
        session.work(local.take_work());
        let total = session.sum(ALL, "M V", parts)?;
        let gram_v = whole_gram(&total.parts[1], k);
        if round > 0 {
            let model: f64 = local.gram_u().iter().zip(&gram_v).map(|(u, v)| u * v).sum();
            let squared_error = total.parts[2][0] + model;
            let line = Line { round, seconds: session.now(), squared_error, bytes: session.bytes };
            if log.note(line, session) {
                return Ok((round, Stop::Tolerance));
            }
        }
        if round < settings.rounds {
            let product = total.parts[0].iter().map(|&value| T::from_f64(value)).collect();
            local.step_u(HALS, product, &gram_v);
            own_error = local.norm() - 2.0 * local.sweep_v();
        }
    }
    Ok((settings.rounds, Stop::Rounds))
}
