#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| partwise_fuzz::targets::frame(bytes));
