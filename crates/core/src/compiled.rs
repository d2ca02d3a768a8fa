//! The large functions, compiled here for both types. As generic functions alone they would be compiled again in every
//! crate and every test that calls them (docs/decisions/0026-build-times.md). So `read` calls `T::read`, which is not generic
//! and calls `read_here`, the function itself; and likewise the others.

use std::path::Path;
use std::sync::Mutex;

use crate::comm::Comm;
use crate::error::Result;
use crate::io::{self, Input, Parts, ReadOptions};
use crate::kernels::{self, Columns, Product};
use crate::partition::{Block, Shard};
use crate::real::Real;
use crate::run::{self, Factors, Monitor, RankOutcome, Residual, Settings, StartFrom, Streamed};
use crate::sketch::{self, Distribution, Operator};
use crate::solver::{self, Moving, Problem, Updated};
use crate::threads::Threads;

macro_rules! compiled {
    ($($path:path as $name:ident ($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        /// What the functions of the same names call.
        #[allow(missing_docs, clippy::type_complexity)]
        pub trait Compiled: Copy + 'static {
            $(fn $name($($argument: $type),*) -> $result where Self: Real;)*
        }
        compiled!(@ f32 $($path as $name ($($argument: $type),*) -> $result;)*);
        compiled!(@ f64 $($path as $name ($($argument: $type),*) -> $result;)*);
    };
    (@ $real:ident $($path:path as $name:ident ($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl Compiled for $real {
            $(fn $name($($argument: $type),*) -> $result { $path($($argument),*) })*
        }
    };
}

compiled! {
    io::read_here as read (path: &Path, options: &ReadOptions) -> Result<Input<Self>>;
    io::read_parts_here as read_parts (path: &Path, options: &ReadOptions, choose: io::Choose<'_>) -> Result<Parts<Self>>;
    kernels::gram_here as gram (threads: &Threads, factor: &[Self], k: usize) -> Vec<f64>;
    kernels::gram_in_f64_here as gram_in_f64 (threads: &Threads, factor: &[Self], k: usize) -> Vec<f64>;
    kernels::multiply_here as multiply
        (threads: &Threads, block: &Block<Self>, columns: Columns<'_>, weights: &[Self], k: usize) -> Vec<Self>;
    run::best_of_restarts_here as best_of_restarts
        (input: (&Shard<Self>, Option<&Streamed>), comm: &dyn Comm, threads: &Threads, settings: &Settings,
         from: Option<StartFrom<'_, Self>>, monitor: &Mutex<&mut dyn Monitor<Self>>) -> Result<(RankOutcome<Self>, Vec<f64>)>;
    run::residual_here as residual
        (shard: &Shard<Self>, factors: &Factors<Self>, threads: &Threads) -> Result<Residual>;
    sketch::draw_here as draw (distribution: &Distribution, iteration: usize) -> Box<dyn Operator<Self>>;
    solver::update_here as update
        (threads: &Threads, problem: &Problem<'_>, product: &Product<'_, Self>, moving: Moving<'_, Self>, k: usize) -> Updated;
}
