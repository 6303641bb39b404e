//! Mutations for runs on a stable compiler: without coverage feedback, but seeded and fast.

use pathweave_units::Rng;

/// Words that often trigger mistakes in parsers.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e309",
    "-0.0",
    "nan",
    "inf",
    "0.0000000001",
    "100",
    "100Gbps",
    "-5us",
    " ",
    "\n",
    "\r\n",
    ",",
    "\"",
    "[[",
    "=",
    "\u{0}",
];

/// Returns an input made from `seed` by one to eight random changes. Pieces may come from `other`.
pub fn mutate(seed: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.below(8) {
        let at = rng.below(bytes.len() as u32 + 1) as usize;
        let end = (at + 1 + rng.below(16) as usize).min(bytes.len());
        match rng.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
            2 if at < bytes.len() => bytes[at] = [0, 0xff, 0x7f, 0x80][rng.below(4) as usize],
            3 => bytes.insert(at, rng.next_u64() as u8),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            6 if !other.is_empty() => {
                let from = rng.below(other.len() as u32) as usize;
                let to = (from + 1 + rng.below(32) as usize).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            7 => {
                let word = WORDS[rng.below(WORDS.len() as u32) as usize];
                bytes.splice(word_around(&bytes, at), word.bytes());
            }
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}

/// Returns the range of letters and digits around a position.
fn word_around(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let in_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'.' || *b == b'-';
    let before = bytes[..at].iter().rev().take_while(|b| in_word(b)).count();
    let after = bytes[at..].iter().take_while(|b| in_word(b)).count();
    at - before..at + after
}
