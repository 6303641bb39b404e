#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pathweave_fuzz::collective(data));
