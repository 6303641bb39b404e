//! The engine of tagged messages under a peer that says anything: the world of `crates/tagged/tests/hostile`, with the
//! fuzzer's choices.

#[path = "../../crates/tagged/tests/hostile/liar.rs"]
mod liar;

/// More operations take long and find nothing new.
const MOST_BYTES: usize = 8 << 10;

/// What the peer says and the application does.
pub fn tagged(data: &[u8]) {
    liar::run(&data[..data.len().min(MOST_BYTES)]);
}
