//! HALS: one sweep of exact coordinate descent for each product.

use super::exact;
use super::{Beginning, Method, MethodSpec};
use crate::Real;
use crate::error::Result;
use crate::solver::CoordinateDescent;

pub const SPEC: MethodSpec = MethodSpec { uses: &["grid", "bound"], ..MethodSpec::EXACT };

pub fn start<'a, T: Real>(beginning: &Beginning<'a, '_, T>) -> Result<Box<dyn Method<T> + 'a>> {
    exact::start("hals", CoordinateDescent::HALS, beginning)
}
