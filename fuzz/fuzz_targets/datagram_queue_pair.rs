#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pathweave_fuzz::datagram_queue_pair(data));
