//! HALS on the pooled matrix: U is updated from the sums of M_r V_r and V_rᵀV_r, as if all records were in one
//! place.

use partwise::Real;

use super::local::HALS;
use super::{Definition, Finish, PartyRun, Settings, Stop, TracePoint, matrix};
use crate::error::{Error, Result};
use crate::fixed::{Part, PartShape, whole_gram};
use crate::risk::Exposure;
use crate::session::ALL;
use crate::sum::{SumKind, SumShape};

/// `pooled`.
pub(super) struct Pooled;

impl Definition for Pooled {
    fn inner(&self) -> usize {
        1
    }

    fn fits_v_last(&self) -> bool {
        false
    }

    fn uses(&self, parameter: &str) -> bool {
        const UNUSED: [&str; 10] = [
            "inner",
            "rho",
            "speed",
            "sketch",
            "sketch_records",
            "sketch_features",
            "solver",
            "alpha",
            "beta",
            "step",
        ];
        !UNUSED.contains(&parameter)
    }

    fn sums(&self, settings: &Settings, features: usize) -> Vec<SumShape> {
        let k = settings.rank;
        let parts = vec![PartShape::matrix(features, k), PartShape::gram(k), PartShape::scalars(1)];
        vec![SumShape::new(SumKind::ProductV, parts)]
    }

    /// M_r V_r lies in the span of the records.
    fn enough_records(&self, settings: &Settings, features: usize) -> usize {
        features.max(settings.rank).saturating_mul(2)
    }

    fn hides_in_the_crowd(&self) -> bool {
        false
    }

    fn risks(&self, exposure: &Exposure<'_>) -> Vec<Option<Error>> {
        vec![exposure.plain_shares(), exposure.pooled_span()]
    }

    fn membership_cure(&self) -> Option<&'static str> {
        Some("another protocol, or more records per party than features, reduces this")
    }

    /// One sum per iteration, which also contains what the error of the previous one needs.
    fn run<T: Real>(&self, run: &mut PartyRun<'_, '_, T>) -> Result<Finish> {
        let PartyRun { settings, local, session, curve, gate, .. } = run;
        let k = settings.rank;
        // This party's part of the error without the terms of U.
        let mut own_error = local.norm();
        for round in 0..=settings.rounds {
            let gram = Part::gram(&local.gram_v(), k);
            let parts = vec![matrix(&local.product_v(), k), gram, Part::scalars(&[own_error])];
            session.work(local.take_work());
            gate.before_upload(local, session);
            let total = session.sum(ALL, SumKind::ProductV, parts)?;
            let gram_v = whole_gram(&total.parts[1], k);
            if round > 0 {
                let model: f64 = local.gram_u().iter().zip(&gram_v).map(|(u, v)| u * v).sum();
                let squared_error = total.parts[2][0] + model;
                let (seconds, bytes) = (session.now(), session.meter().bytes);
                if curve.note(TracePoint { round, seconds, squared_error, bytes }, session) {
                    return Ok(Finish { rounds: round, stopped_by: Stop::Tolerance });
                }
            }
            if round < settings.rounds {
                let product = total.parts[0].iter().map(|&value| T::from_f64(value)).collect();
                local.step_u(&HALS, product, &gram_v);
                gate.check_u(local, SumKind::ProductV, session)?;
                own_error = local.norm() - 2.0 * local.sweep_v();
            }
        }
        Ok(Finish { rounds: settings.rounds, stopped_by: Stop::Rounds })
    }
}
