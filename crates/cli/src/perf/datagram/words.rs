//! What client and server say to each other, in messages of their own among those that are measured.

use serde::{Deserialize, Serialize};

use super::report::Side;

/// Longest message of words; every receive has room for one.
pub(super) const WORDS_BYTES: u64 = 64 << 10;
const MAGIC: &[u8; 8] = b"pwperd01";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) size_bytes: u64,
    pub(super) depth: u32,
    pub(super) latency: bool,
    pub(super) both: bool,
    pub(super) check: bool,
    pub(super) iterations: Option<u64>,
    /// The run of the program that asks; a number it has drawn.
    #[serde(default)]
    pub(super) client: u64,
    /// It will ask for another measurement after this one.
    #[serde(default)]
    pub(super) comes_back: bool,
}

/// A word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    /// Client, to the server's own endpoint: asks for a measurement.
    Ask(Ask),
    /// Server: it takes place at this port.
    Ready { port: u16 },
    /// Server: it does not take place.
    Refused { why: String },
    /// Client, to the measurement's endpoint: it begins.
    Begin,
    /// So many messages have been looked at.
    Checked { count: u64 },
    /// Client: it has sent what it wanted.
    Finish,
    /// Server: its part.
    Report(Box<Side>),
    /// Client: it has heard that, and nothing follows.
    Bye,
}

/// A word's bytes. The token is the measurement's: what is measured does not begin so, but by a chance of 2^-128.
pub(super) fn encode(token: u64, word: &Word) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &token.to_be_bytes()].concat();
    bytes.extend(serde_json::to_vec(word).expect("plain data serialises"));
    bytes
}

/// The token of a message that may be words.
pub(super) fn token_of(bytes: &[u8]) -> Option<u64> {
    let (token, _) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    Some(u64::from_be_bytes(*token))
}

/// The word in a message, if it is one of this measurement; without a token, of any.
pub(super) fn decode(token: Option<u64>, bytes: &[u8]) -> Option<(u64, Word)> {
    let (found, text) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    let found = u64::from_be_bytes(*found);
    if token.is_some_and(|token| token != found) {
        return None;
    }
    serde_json::from_slice(text).ok().map(|word| (found, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_data_is_none() {
        let (latency, both, check) = (false, true, true);
        let (iterations, client, comes_back) = (Some(7), 5, true);
        let ask = Ask { size_bytes: 9, depth: 3, latency, both, check, iterations, client, comes_back };
        for word in
            [Word::Ask(ask), Word::Ready { port: 9 }, Word::Begin, Word::Bye, Word::Checked { count: 1 }]
        {
            let bytes = encode(77, &word);
            assert_eq!(decode(Some(77), &bytes), Some((77, word.clone())));
            assert_eq!(decode(None, &bytes), Some((77, word)));
            assert_eq!(decode(Some(78), &bytes), None);
            assert_eq!(decode(None, &bytes[1..]), None);
        }
        assert_eq!(decode(None, &[0; 100]), None);
    }
}
