//! The commands, one file per command.

pub mod audit;
pub mod calibrate;
pub mod cluster;
pub mod completions;
pub mod convert;
pub mod coordinator;
pub mod data_ledger;
pub mod evaluate;
pub mod experiment;
pub mod factorize;
pub mod inspect;
pub mod ledger;
pub mod party;
pub mod plan;
pub mod provision;
pub mod ranks;
pub mod report;
pub mod simulate;
pub mod split;
pub mod top;
pub mod transform;
