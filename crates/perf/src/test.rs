//! Parameters of a measurement, on which client and server agree when a connection is opened.

use pathweave_datapath::MAX_MESSAGE_BYTES;
use serde::Serialize;

/// Largest number of messages in flight.
pub const MAX_DEPTH: u32 = 1_000;
/// Approximate memory of a test's buffers in bytes, unless one message is larger.
const BUFFER_BYTES: u64 = 256 << 20;
/// Number of slots that small WRITEs use in turn in latency tests. The acknowledgement of a WRITE may arrive after
/// several further answers.
const PLACES_FOR_LATENCY: u64 = 64;
/// Size in bytes of the slots that WRITEs use in turn in bandwidth tests, at least two messages. It is more than is
/// in flight and fits the caches.
const BYTES_OF_PLACES: u64 = 4 << 20;
/// Buffers for each message in flight, as the peer may be that far behind.
const BUFFERS_A_MESSAGE: u64 = 4;
/// Receives that an end keeps posted for control messages.
const SPARE_RECEIVES: u64 = 8;

/// Description of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TestSummary {
    /// Operation: `send`, `write` or `read`.
    pub(crate) op: &'static str,
    /// Kind: `bandwidth`, `latency` or `survey`.
    pub(crate) kind: &'static str,
    /// Size of a message in bytes.
    pub(crate) size_bytes: u64,
    /// Number of messages in flight.
    pub(crate) depth: u32,
}

/// RDMA operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Sends to the server's next receive.
    Send,
    /// Writes to the server's memory.
    Write,
    /// Reads from the server's memory.
    Read,
}

/// Quantity that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Bandwidth, with as many bytes as possible.
    Bandwidth,
    /// Latency, with one message at a time.
    Latency,
    /// Path survey, with occasional small messages beside probes.
    Survey,
}

/// Role of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// Directions of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Directions {
    /// The client sends.
    One,
    /// Both ends send at once.
    Both,
}

/// Check of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Bytes are not checked.
    Off,
    /// Every byte is computed, sent, and compared.
    EveryByte,
}

/// Parameters of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Quantity that is measured.
    pub kind: Kind,
    /// Operation. Datagrams support SEND only.
    pub op: Op,
    /// Size of a message in bytes.
    pub size_bytes: u64,
    /// Number of messages in flight.
    pub depth: u32,
    /// Number of messages in each direction. `None`: until the client ends the test.
    pub iterations: Option<u64>,
    /// Directions of data.
    pub directions: Directions,
    /// Check of received bytes.
    pub check: Check,
}

/// Private data with which the client opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) test: Test,
    /// Key of the client's memory that the server writes or reads.
    pub(crate) data_key: u64,
    /// Key of the client's memory for control messages of the server.
    pub(crate) control_key: u64,
    /// True if the client will request another measurement after this one.
    pub(crate) comes_back: bool,
    /// Random number that identifies the client's run of the program.
    pub(crate) client: u64,
}

impl Test {
    /// Returns the description that a server reports.
    pub(crate) fn what(&self) -> TestSummary {
        TestSummary {
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

    /// Returns the number of buffers at each end, each with the size of a message.
    pub(crate) fn slots(&self) -> u64 {
        let wanted = match (self.kind, self.check) {
            (Kind::Bandwidth, Check::EveryByte) => BUFFERS_A_MESSAGE * u64::from(self.depth),
            // A WRITE to the destination of an earlier one would wait for it. Several slots avoid that.
            (Kind::Bandwidth, Check::Off) if self.op == Op::Write => {
                (BYTES_OF_PLACES / self.size_bytes).max(2).min(self.depth.into())
            }
            (Kind::Latency | Kind::Survey, _) if self.op == Op::Write => PLACES_FOR_LATENCY,
            // The bytes are not checked, so all messages share one source and one destination buffer.
            (Kind::Bandwidth, Check::Off) | (Kind::Latency | Kind::Survey, _) => 1,
        };
        (BUFFER_BYTES / self.size_bytes).clamp(1, wanted)
    }

    /// Returns the size of all buffers of an end in bytes, for one direction.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.slots() * self.size_bytes
    }

    /// Returns the number of messages in flight. If bytes are checked, each message has its own buffer until the peer
    /// has checked it.
    pub(crate) fn window(&self) -> u64 {
        match self.check {
            Check::Off => self.depth.into(),
            Check::EveryByte => u64::from(self.depth).min((self.slots() / 2).max(1)),
        }
    }

    /// Returns the number of receives that an end keeps posted.
    pub(crate) fn receives(&self) -> u64 {
        match (self.kind, self.op, self.check) {
            (Kind::Bandwidth, Op::Send, Check::EveryByte) => self.slots(),
            (Kind::Bandwidth, Op::Send, _) | (Kind::Bandwidth, Op::Write, Check::EveryByte) => {
                BUFFERS_A_MESSAGE * u64::from(self.depth)
            }
            _ => SPARE_RECEIVES,
        }
    }

    /// Returns true if the peer is notified of each message.
    pub(crate) fn is_announced(&self) -> bool {
        self.kind == Kind::Latency || self.check == Check::EveryByte
    }
}

const MAGIC: &[u8; 4] = b"pwpf";
/// Version of the protocol between client and server.
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
        // 0 stands for an unlimited number, as no test has 0 messages.
        bytes.extend_from_slice(&test.size_bytes.to_be_bytes());
        bytes.extend_from_slice(&test.iterations.unwrap_or(0).to_be_bytes());
        bytes.extend_from_slice(&test.depth.to_be_bytes());
        bytes.extend_from_slice(&self.data_key.to_be_bytes());
        bytes.extend_from_slice(&self.client.to_be_bytes());
        bytes
    }

    /// Returns the key to which a refusal is written. It can be read from a hello of any version.
    pub(crate) fn control_key(bytes: &[u8]) -> Option<u64> {
        let rest = bytes.strip_prefix(MAGIC)?;
        Some(u64::from_be_bytes(*rest.get(1..)?.first_chunk()?))
    }

    /// # Errors
    /// If the hello is invalid, with a message for the client.
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
        // Values other than 0 are reserved for future clients and imply another measurement as well.
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

/// Remaining bytes of a hello.
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
