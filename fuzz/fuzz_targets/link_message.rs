#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pathweave_fuzz::link_message(data));
