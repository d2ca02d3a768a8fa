//! Runs the example programs.

#[path = "../examples/custom_sketch.rs"]
mod custom_sketch;
#[allow(dead_code)]
#[path = "../examples/digits.rs"]
mod digits;
#[path = "../examples/observer.rs"]
mod observer;
#[path = "../examples/streaming.rs"]
mod streaming;
#[path = "../examples/three_parties.rs"]
mod three_parties;
#[path = "../examples/topics.rs"]
mod topics;

/// Changes to the folder from which examples are run.
fn enter_repository() {
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
}

#[test]
fn digits() {
    enter_repository();
    digits::digits("data/digits.npy", 16).unwrap();
}

#[test]
fn topics() {
    topics::main().unwrap();
}

#[test]
fn streaming() {
    streaming::main().unwrap();
}

#[test]
fn observer() {
    enter_repository();
    observer::main().unwrap();
}

#[test]
fn custom_sketch() {
    enter_repository();
    custom_sketch::main().unwrap();
}

#[test]
fn three_parties() {
    enter_repository();
    three_parties::main().unwrap();
}
