//! Federations of real processes on this machine.

mod agreement;
mod faults;
mod hostile;
mod keys;
mod runs;
mod status;
mod trial;
