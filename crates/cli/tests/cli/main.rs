//! The program from the outside: arguments in; files, streams and an exit code out.

mod audit;
mod bad_arguments;
mod bad_files;
mod bad_folders;
mod common;
mod components;
mod factorize;
mod fields;
mod files;
mod help;
mod hints;
mod interrupt;
mod losses;
mod memory;
mod outputs;
mod plan;
mod ranks;
mod records;
mod results;
mod resume;
mod simulate;
mod split;
mod stopping;
mod streams;
mod unused_options;
mod warnings;
