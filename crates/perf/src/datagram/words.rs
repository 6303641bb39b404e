//! Control messages of client and server, sent as messages among the measured ones.

use serde::{Deserialize, Serialize};

use super::side::Side;
use crate::meet::Request;
use crate::test::{Check, Directions, Kind, Op, Test};

/// Largest control message in bytes. Every receive has room for one.
pub(crate) const WORDS_BYTES: u64 = 64 << 10;
const MAGIC: &[u8; 8] = b"pwperd01";

/// Request for a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ask {
    pub(crate) size_bytes: u64,
    pub(crate) depth: u32,
    pub(crate) latency: bool,
    pub(crate) both: bool,
    pub(crate) check: bool,
    pub(crate) iterations: Option<u64>,
    /// Random number that identifies the client's run of the program.
    #[serde(default)]
    pub(crate) client: u64,
    /// True if the client will request another measurement after this one.
    #[serde(default)]
    pub(crate) comes_back: bool,
}

impl Ask {
    /// Returns the request for a client's test.
    pub(crate) fn of(asks: &Request) -> Self {
        let Request { test, comes_back, client } = *asks;
        Ask {
            size_bytes: test.size_bytes,
            depth: test.depth,
            latency: test.kind == Kind::Latency,
            both: test.directions == Directions::Both,
            check: test.check == Check::EveryByte,
            iterations: test.iterations,
            client,
            comes_back,
        }
    }

    /// Returns the requested test.
    pub(crate) fn test(&self) -> Test {
        Test {
            kind: if self.latency { Kind::Latency } else { Kind::Bandwidth },
            op: Op::Send,
            size_bytes: self.size_bytes,
            depth: self.depth,
            iterations: self.iterations,
            directions: if self.both { Directions::Both } else { Directions::One },
            check: if self.check { Check::EveryByte } else { Check::Off },
        }
    }
}

/// Control message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Word {
    /// Client to the server's endpoint: requests a measurement.
    Ask(Ask),
    /// Server: the measurement takes place at this port.
    Ready { port: u16 },
    /// Server: it refuses the measurement.
    Refused { why: String },
    /// Client to the measurement's endpoint: begins the measurement.
    Begin,
    /// Number of further messages that have been checked.
    Checked { count: u64 },
    /// Client: it has sent its last message.
    Finish,
    /// Server: its report.
    Report(Box<Side>),
    /// Client: it has received the report, and nothing follows.
    Bye,
}

/// Encodes a control message with the measurement's token. A data message starts with the same bytes with a
/// probability of 2^-128 only.
pub(crate) fn encode(token: u64, word: &Word) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &token.to_be_bytes()].concat();
    bytes.extend(serde_json::to_vec(word).expect("plain data serialises"));
    bytes
}

/// Returns the token of a message that may be a control message.
pub(crate) fn token_of(bytes: &[u8]) -> Option<u64> {
    let (token, _) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    Some(u64::from_be_bytes(*token))
}

/// Decodes a control message of the measurement with this token, or of any measurement without a token.
pub(crate) fn decode(token: Option<u64>, bytes: &[u8]) -> Option<(u64, Word)> {
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
