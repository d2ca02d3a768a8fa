//! Whole runs of the methods: agreement between ranks, convergence, descent.

extern crate partwise_core as partwise;

mod auto;
mod common;
mod convergence;
mod descent;
mod grid;
mod missing;
mod network;
mod plan;
mod ranks;
mod resume;
mod scale;
mod streamed;
