//! One file a command.

pub mod convert;
pub mod evaluate;
pub mod factorize;
pub mod inspect;
pub mod simulate;
pub mod top;
pub mod transform;
