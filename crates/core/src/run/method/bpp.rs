//! ANLS/BPP: both half steps solved exactly, by block principal pivoting (Kim and Park 2011).

use super::exact;
use super::{Beginning, Method, MethodSpec};
use crate::Real;
use crate::error::Result;
use crate::solver::Pivoting;

pub const SPEC: MethodSpec = MethodSpec::EXACT;

pub fn start<'a, T: Real>(beginning: &Beginning<'a, '_, T>) -> Result<Box<dyn Method<T> + 'a>> {
    exact::start("bpp", Pivoting, beginning)
}
