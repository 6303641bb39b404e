//! What is measured, as client and server agree on it when a connection is opened.

use pathweave_datapath::MAX_MESSAGE_BYTES;
use serde::Serialize;

/// Most messages under way at a time.
pub const MAX_DEPTH: u32 = 1_000;
/// Buffers of a test take about this much, unless one message is more.
const BUFFER_BYTES: u64 = 256 << 20;
/// Places that WRITEs of a few bytes go to in turn where times are measured: the acknowledgement of one may be later than the
/// answer to it, and several answers are quicker.
const PLACES_FOR_LATENCY: u64 = 64;
/// Bytes that WRITEs of bandwidth go to in turn, two messages at least: more than is on the way, and no more than caches hold.
const BYTES_OF_PLACES: u64 = 4 << 20;
/// Buffers for each message under way: the other end may be that far behind.
const BUFFERS_A_MESSAGE: u64 = 4;
/// Receives an end keeps posted for what is not data.
const SPARE_RECEIVES: u64 = 8;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct What {
    /// Verb: `send`, `write`, `read`.
    pub(crate) op: &'static str,
    /// `bandwidth`, `latency`, `survey`.
    pub(crate) kind: &'static str,
    /// Bytes of a message.
    pub(crate) size_bytes: u64,
    /// Messages under way at a time.
    pub(crate) depth: u32,
}

/// A verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// To the server's next receive.
    Send,
    /// To the server's memory.
    Write,
    /// From the server's memory.
    Read,
}

/// What is asked of the verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// As many bytes as can be.
    Bandwidth,
    /// One message at a time.
    Latency,
    /// Nothing but small messages now and then, beside probes.
    Survey,
}

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Directions {
    /// The client alone.
    One,
    /// Both ends at once.
    Both,
}

/// What is done with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// They are not looked at.
    Off,
    /// Each is computed, sent, and compared.
    EveryByte,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// What is asked of the verb.
    pub kind: Kind,
    /// The verb; datagrams have SEND alone.
    pub op: Op,
    /// Bytes of a message.
    pub size_bytes: u64,
    /// Messages under way at a time.
    pub depth: u32,
    /// Messages in each direction; `None`: until the client says so.
    pub iterations: Option<u64>,
    /// Who sends.
    pub directions: Directions,
    /// What is done with the bytes.
    pub check: Check,
}

/// What the client says when it opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) test: Test,
    /// Key of the client's memory for what the server writes or reads.
    pub(crate) data_key: u64,
    /// Key of the client's memory for what the server says.
    pub(crate) control_key: u64,
    /// The client will ask for another measurement after this one.
    pub(crate) comes_back: bool,
    /// The run of the program that asks; a number it has drawn.
    pub(crate) client: u64,
}

impl Test {
    /// As a server tells of it.
    pub(crate) fn what(&self) -> What {
        What {
            op: match self.op {
                Op::Send => "send",
                Op::Write => "write",
                Op::Read => "read",
            },
            kind: match self.kind {
                Kind::Bandwidth => "bandwidth",
                Kind::Latency => "latency",
                Kind::Survey => "survey",
            },
            size_bytes: self.size_bytes,
            depth: self.depth,
        }
    }

    /// Buffers at each end, each of the size of a message.
    pub(crate) fn slots(&self) -> u64 {
        let wanted = match (self.kind, self.check) {
            (Kind::Bandwidth, Check::EveryByte) => BUFFERS_A_MESSAGE * u64::from(self.depth),
            // A WRITE that goes where an earlier one does waits for it, and nothing is to wait here.
            (Kind::Bandwidth, Check::Off) if self.op == Op::Write => {
                (BYTES_OF_PLACES / self.size_bytes).max(2).min(self.depth.into())
            }
            (Kind::Latency | Kind::Survey, _) if self.op == Op::Write => PLACES_FOR_LATENCY,
            // The bytes are not looked at, so all messages come from one buffer and go to one.
            (Kind::Bandwidth, Check::Off) | (Kind::Latency | Kind::Survey, _) => 1,
        };
        (BUFFER_BYTES / self.size_bytes).clamp(1, wanted)
    }

    /// Bytes of all buffers of an end, for one direction.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.slots() * self.size_bytes
    }

    /// Messages under way: where bytes are checked each has a buffer of its own until the other end has looked at it.
    pub(crate) fn window(&self) -> u64 {
        match self.check {
            Check::Off => self.depth.into(),
            Check::EveryByte => u64::from(self.depth).min((self.slots() / 2).max(1)),
        }
    }

    /// Receives an end keeps posted.
    pub(crate) fn receives(&self) -> u64 {
        match (self.kind, self.op, self.check) {
            (Kind::Bandwidth, Op::Send, Check::EveryByte) => self.slots(),
            (Kind::Bandwidth, Op::Send, _) | (Kind::Bandwidth, Op::Write, Check::EveryByte) => {
                BUFFERS_A_MESSAGE * u64::from(self.depth)
            }
            _ => SPARE_RECEIVES,
        }
    }

    /// The other end is told of each message.
    pub(crate) fn is_announced(&self) -> bool {
        self.kind == Kind::Latency || self.check == Check::EveryByte
    }
}

const MAGIC: &[u8; 4] = b"pwpf";
/// Of what client and server say to each other.
const VERSION: u8 = 3;
const LEN: usize = 54;

impl Hello {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let test = &self.test;
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.control_key.to_be_bytes());
        bytes.push(test.kind as u8);
        bytes.push(test.op as u8);
        bytes.push(test.directions as u8);
        bytes.push(test.check as u8);
        bytes.push(self.comes_back.into());
        // No test has 0 messages.
        bytes.extend_from_slice(&test.size_bytes.to_be_bytes());
        bytes.extend_from_slice(&test.iterations.unwrap_or(0).to_be_bytes());
        bytes.extend_from_slice(&test.depth.to_be_bytes());
        bytes.extend_from_slice(&self.data_key.to_be_bytes());
        bytes.extend_from_slice(&self.client.to_be_bytes());
        bytes
    }

    /// Where the client hears why a hello of whatever version is refused.
    pub(crate) fn control_key(bytes: &[u8]) -> Option<u64> {
        let rest = bytes.strip_prefix(MAGIC)?;
        Some(u64::from_be_bytes(*rest.get(1..)?.first_chunk()?))
    }

    /// # Errors
    /// What is wrong, for the client.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Hello, String> {
        let Some((MAGIC, rest)) = bytes.split_first_chunk() else {
            return Err("this is a server of `pathweave perf`, and the client is something else".into());
        };
        match rest.first() {
            Some(&VERSION) => {}
            version => {
                let theirs = version.map_or("none".to_owned(), u8::to_string);
                return Err(format!(
                    "the client's `pathweave perf` has version {theirs}, the server's {VERSION}"
                ));
            }
        }
        let mut reader = Reader(&rest[1..]);
        let control_key = u64::from_be_bytes(reader.take()?);
        let kind = reader.choice("kind", &[Kind::Bandwidth, Kind::Latency, Kind::Survey])?;
        let op = reader.choice("op", &[Op::Send, Op::Write, Op::Read])?;
        let directions = reader.choice("directions", &[Directions::One, Directions::Both])?;
        let check = reader.choice("check", &[Check::Off, Check::EveryByte])?;
        // Any other value is of a client to come, which will not mean less by it.
        let comes_back = reader.take()? != [0];
        let size_bytes = u64::from_be_bytes(reader.take()?);
        let iterations = u64::from_be_bytes(reader.take()?);
        let depth = u32::from_be_bytes(reader.take()?);
        let data_key = u64::from_be_bytes(reader.take()?);
        let client = u64::from_be_bytes(reader.take()?);
        if !(1..=MAX_MESSAGE_BYTES).contains(&size_bytes) {
            return Err(format!("messages of {size_bytes} bytes; allowed are 1 to {MAX_MESSAGE_BYTES}"));
        }
        if !(1..=MAX_DEPTH).contains(&depth) {
            return Err(format!("a depth of {depth}; allowed are 1 to {MAX_DEPTH}"));
        }
        let iterations = (iterations > 0).then_some(iterations);
        let test = Test { kind, op, size_bytes, depth, iterations, directions, check };
        Ok(Hello { test, data_key, control_key, comes_back, client })
    }
}

/// What is left of a hello.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (first, rest) = self.0.split_first_chunk().ok_or("the client's hello is too short")?;
        self.0 = rest;
        Ok(*first)
    }
    fn choice<T: Copy>(&mut self, what: &str, all: &[T]) -> Result<T, String> {
        let [code] = self.take()?;
        let found = all.get(usize::from(code)).copied();
        found.ok_or_else(|| format!("{what} {code} in the client's hello; allowed: 0 to {}", all.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Test = Test {
        kind: Kind::Bandwidth,
        op: Op::Write,
        size_bytes: 1 << 20,
        depth: 8,
        iterations: Some(1_000_000_000_000),
        directions: Directions::Both,
        check: Check::EveryByte,
    };

    #[test]
    fn a_hello_comes_back_and_fits_a_handshake() {
        for test in [TEST, Test { kind: Kind::Latency, op: Op::Read, iterations: None, ..TEST }] {
            let comes_back = test.kind == Kind::Latency;
            let hello = Hello {
                test,
                data_key: 0xdead_beef_0000_0001,
                control_key: 7,
                comes_back,
                client: u64::MAX - 1,
            };
            let bytes = hello.encode();
            assert_eq!(bytes.len(), LEN);
            assert_eq!(Hello::decode(&bytes), Ok(hello));
            for len in 0..LEN {
                assert!(Hello::decode(&bytes[..len]).is_err(), "{len} bytes");
            }
        }
    }

    #[test]
    fn nonsense_is_named() {
        let hello = |change: fn(&mut Vec<u8>)| {
            let mut bytes =
                Hello { test: TEST, data_key: 1, control_key: 2, comes_back: false, client: 3 }.encode();
            change(&mut bytes);
            Hello::decode(&bytes).unwrap_err()
        };
        let later = Hello { test: TEST, data_key: 1, control_key: 2, comes_back: false, client: 3 }.encode();
        assert_eq!((Hello::control_key(&later), Hello::control_key(&later[..12])), (Some(2), None));
        assert!(hello(|b| b[0] = b'x').contains("something else"));
        assert!(hello(|b| b[4] = 9).contains("version 9, the server's 3"));
        assert!(hello(|b| b[14] = 3).contains("op 3"));
        assert!(hello(|b| b[18] = 1).contains("allowed are 1 to 4294967296"));
        assert!(hello(|b| b[34..38].fill(0)).contains("a depth of 0"));
    }

    #[test]
    fn buffers_have_a_bound_and_every_message_under_way_its_own_if_checked() {
        let test = |size_bytes, depth, check| Test { size_bytes, depth, check, ..TEST };
        assert_eq!(test(1 << 20, 8, Check::EveryByte).slots(), 32);
        assert_eq!(test(1 << 20, 8, Check::EveryByte).window(), 8);
        let large = test(100 << 20, 64, Check::EveryByte);
        assert_eq!((large.slots(), large.window(), large.memory_bytes()), (2, 1, 200 << 20));
        let huge = test(MAX_MESSAGE_BYTES, 64, Check::EveryByte);
        assert_eq!((huge.slots(), huge.window()), (1, 1));
        let unchecked = test(1 << 20, 64, Check::Off);
        assert_eq!((unchecked.slots(), unchecked.window(), unchecked.receives()), (4, 64, 8));
        assert_eq!((test(100, 64, Check::Off).slots(), test(100, 1, Check::Off).slots()), (64, 1));
        let sends = Test { op: Op::Send, ..unchecked };
        assert_eq!((sends.slots(), sends.window()), (1, 64));
    }
}
