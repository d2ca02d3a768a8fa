//! Whole runs of the protocols, and what attackers make of them. One program, since each takes long to build.

mod audit;
mod gate;
mod individuals;
mod protocols;
mod vectors;
