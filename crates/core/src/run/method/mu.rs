//! MU: multiplicative updates (Lee and Seung 2001).

use super::exact;
use super::{Beginning, Method, MethodSpec};
use crate::Real;
use crate::error::Result;
use crate::solver::Multiplicative;

pub const SPEC: MethodSpec = MethodSpec { fills_zeros: false, ..MethodSpec::EXACT };

pub fn start<'a, T: Real>(beginning: &Beginning<'a, '_, T>) -> Result<Box<dyn Method<T> + 'a>> {
    exact::start("mu", Multiplicative, beginning)
}
