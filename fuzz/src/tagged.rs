//! Engine of tagged messages under a hostile peer. Uses the world of `crates/tagged/tests/hostile`, with the fuzzer's
//! choices.

#[path = "../../crates/tagged/tests/hostile/liar.rs"]
mod liar;

/// Largest input in bytes. More operations take long and find nothing new.
const MOST_BYTES: usize = 8 << 10;

/// Runs the engine. The input selects the actions of peer and application.
pub fn tagged(data: &[u8]) {
    liar::run(&data[..data.len().min(MOST_BYTES)]);
}
