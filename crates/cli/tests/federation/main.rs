//! Federations of real processes on this machine.

#[cfg(unix)]
mod access;
mod agreement;
mod disturbed;
mod faults;
mod hostile;
mod keys;
mod ledgers;
mod runs;
mod shipped;
mod status;
mod trial;
