//! Hello of the handshake: authenticated description of an end and its requirements.

use core::fmt;
use core::net::SocketAddr;

use pathweave_units::{HostId, QpNum};
use pathweave_wire::{MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD};
use thiserror::Error;

use super::addresses::{self, MAX_ADDRESSES};
use super::layout::{VERSION, VERSIONS, hello, versions};
use super::protection::Protection;

/// Largest number of paths of a connection.
pub const MAX_PATHS: u16 = 256;
/// Largest number of NIC ports of a host.
pub const MAX_NIC_PORTS: u8 = 64;
/// Largest length of a scheme's name, in bytes.
pub const MAX_SCHEME_LEN: usize = 32;
/// Largest amount of private data of the application, in bytes.
pub const MAX_PRIVATE_DATA_LEN: usize = 196;

/// Session number in the frames to an end. The receiving end chooses it, unique among its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// Transport service of the queue pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportType {
    /// Reliable connection.
    #[default]
    Rc,
    /// Reliable datagram: many peers on one queue pair.
    Erd,
}

impl TransportType {
    const fn code(self) -> u8 {
        match self {
            TransportType::Rc => 0,
            TransportType::Erd => 1,
        }
    }
    fn from_code(code: u8) -> Option<Self> {
        [TransportType::Rc, TransportType::Erd].into_iter().find(|kind| kind.code() == code)
    }
    /// Returns the name in configuration files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            TransportType::Rc => "rc",
            TransportType::Erd => "erd",
        }
    }
}

impl fmt::Display for TransportType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Set of features, one bit each. A later build can add a feature without a new version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Features(pub u32);

impl Features {
    /// No features.
    pub const NONE: Features = Features(0);
    /// Support for several addresses: this end uses a connection to and from all addresses that the other end has
    /// listed. It answers probes for incoming packets at one of these addresses with the probe's secret. Bit 0 stood
    /// for answers without a secret.
    pub const ADDRESSES: Features = Features(2);

    /// Returns the features of `self` that are not in `other`.
    pub const fn difference(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }
    /// Returns the features in both sets.
    pub const fn intersection(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }
    /// Returns true if `self` contains all features of `other`.
    pub const fn contains(self, other: Features) -> bool {
        other.difference(self).is_empty()
    }
    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Description of an end for one connection: its requirements and capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Protection of packets. Must be the same at both ends.
    pub protection: Protection,
    /// Transport service. Must be the same at both ends.
    pub transport: TransportType,
    /// Scheme (a name of the policy registry). Must be the same at both ends. 1 to 32 of the characters `a-z 0-9 - +
    /// . _`.
    pub scheme: String,
    /// Largest payload of a packet that this end can handle, in bytes, 256 to 32,576. The connection uses the smaller
    /// of both ends' values.
    pub mtu_payload: u16,
    /// Largest number of paths that this end can handle, 1 to 256. The connection uses the smaller of both ends'
    /// values.
    pub paths: u16,
    /// Number of NIC ports of this end, 1 to 64. Informs the other end.
    pub nic_ports: u8,
    /// Host number of this end.
    pub host: HostId,
    /// Queue pair of this end for the connection, below 2^24.
    pub qp: QpNum,
    /// Session number that the other end writes into each frame to this end. Unique among this end's sessions.
    pub session: SessionId,
    /// Features that this end supports.
    pub features: Features,
    /// Features without which this end refuses the connection; a subset of `features`.
    pub required: Features,
    /// Data of the application, at most 196 bytes. It is encrypted; the initiator's data has no forward secrecy.
    pub private_data: Vec<u8>,
    /// Addresses at which this end receives, if there are several: 2 to 8, all IPv4 or all IPv6, without repetition.
    /// Empty: only the address of the handshake.
    pub addresses: Vec<SocketAddr>,
}

/// Reason why a hello of either end is invalid. Names the field and its value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The hello ends too early.
    #[error("the hello has {len} bytes, at least {needed} are needed")]
    Truncated {
        /// Length found.
        len: usize,
        /// Length required.
        needed: usize,
    },
    /// A number is out of its range.
    #[error("{field} is {value}; allowed are {min} to {max}")]
    Range {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
        /// Smallest allowed value.
        min: u64,
        /// Largest allowed value.
        max: u64,
    },
    /// The scheme's name is invalid.
    #[error("scheme is {0:?}; allowed are 1 to 32 of the characters a-z 0-9 - + . _")]
    Scheme(String),
    /// An option is unknown but marked as required to understand.
    #[error("option {0:#04x} must be understood, but version {VERSION} does not define it")]
    Option(u8),
    /// An option occurs twice or is missing.
    #[error("option {option:#04x} is there {count} times, expected once")]
    OptionCount {
        /// Type of the option.
        option: u8,
        /// Number of occurrences.
        count: usize,
    },
    /// The list of addresses is invalid.
    #[error(
        "addresses are {0}; allowed are 2 to {MAX_ADDRESSES} of one family, each once, of a host, with a port"
    )]
    Addresses(String),
    /// The padding after the options is not zero.
    #[error("the padding is not 0")]
    Padding,
}

/// Hello of a peer, with the fields that only the handshake uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HelloMessage {
    pub(crate) hello: Hello,
    /// Versions that the sender supports.
    pub(crate) versions: Vec<u8>,
}

fn in_range(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), HelloError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(HelloError::Range { field, value, min, max })
}

impl Hello {
    /// Checks every field.
    ///
    /// # Errors
    ///
    /// [`HelloError`] names the field.
    pub fn validate(&self) -> Result<(), HelloError> {
        let (least, most) = (MIN_MTU_PAYLOAD.into(), MAX_MTU_PAYLOAD.into());
        in_range("mtu_payload", self.mtu_payload.into(), least, most)?;
        in_range("paths", self.paths.into(), 1, MAX_PATHS.into())?;
        in_range("nic_ports", self.nic_ports.into(), 1, MAX_NIC_PORTS.into())?;
        in_range("qp", self.qp.0.into(), 0, (1 << 24) - 1)?;
        in_range("private_data length", self.private_data.len() as u64, 0, MAX_PRIVATE_DATA_LEN as u64)?;
        let missing = self.required.difference(self.features);
        in_range("required features that are not offered", missing.0.into(), 0, 0)?;
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"-+._".contains(&c);
        if !(1..=MAX_SCHEME_LEN).contains(&self.scheme.len()) || !self.scheme.bytes().all(allowed) {
            return Err(HelloError::Scheme(self.scheme.chars().take(2 * MAX_SCHEME_LEN).collect()));
        }
        addresses::validate(&self.addresses)
    }
}

impl HelloMessage {
    /// Creates the message for a hello of this end.
    pub(crate) fn new(hello: Hello) -> Self {
        HelloMessage { hello, versions: VERSIONS.to_vec() }
    }

    /// Encodes the message, padded with zeros to `min_len`.
    pub(crate) fn encode(&self, min_len: usize) -> Vec<u8> {
        let said = &self.hello;
        let mut out = vec![0; hello::OPTIONS];
        out[hello::PROTECTION] = said.protection.code();
        out[hello::TRANSPORT] = said.transport.code();
        out[hello::MTU_PAYLOAD..hello::PATHS].copy_from_slice(&said.mtu_payload.to_be_bytes());
        out[hello::PATHS..hello::NIC_PORTS].copy_from_slice(&said.paths.to_be_bytes());
        out[hello::NIC_PORTS] = said.nic_ports;
        for (at, word) in [
            (hello::HOST, said.host.0),
            (hello::QP, said.qp.0),
            (hello::SESSION, said.session.0),
            (hello::FEATURES, said.features.0),
            (hello::REQUIRED, said.required.0),
        ] {
            out[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        for (option, content) in [
            (hello::OPTION_VERSIONS, &self.versions[..]),
            (hello::OPTION_SCHEME, said.scheme.as_bytes()),
            (hello::OPTION_PRIVATE_DATA, &said.private_data),
        ] {
            out.extend_from_slice(&[option, content.len() as u8]);
            out.extend_from_slice(content);
        }
        if !said.addresses.is_empty() {
            let content = addresses::encode(&said.addresses);
            out.extend_from_slice(&[hello::OPTION_ADDRESSES, content.len() as u8]);
            out.extend_from_slice(&content);
        }
        out.resize(out.len().max(min_len), hello::OPTION_PAD);
        out
    }

    /// Decodes a peer's message.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HelloError> {
        if bytes.len() < hello::OPTIONS {
            return Err(HelloError::Truncated { len: bytes.len(), needed: hello::OPTIONS });
        }
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let code = |field, at: usize, max| HelloError::Range { field, value: bytes[at].into(), min: 0, max };
        in_range("reserved byte", bytes[hello::RESERVED].into(), 0, 0)?;
        let options = Options::read(&bytes[hello::OPTIONS..])?;
        let listed = options.versions.len() as u64;
        in_range("number of versions", listed, 1, versions::MAX as u64)?;
        let hello = Hello {
            protection: Protection::from_code(bytes[hello::PROTECTION]).ok_or(code(
                "protection",
                hello::PROTECTION,
                2,
            ))?,
            transport: TransportType::from_code(bytes[hello::TRANSPORT]).ok_or(code(
                "transport",
                hello::TRANSPORT,
                1,
            ))?,
            scheme: String::from_utf8_lossy(options.scheme).into_owned(),
            mtu_payload: half(hello::MTU_PAYLOAD),
            paths: half(hello::PATHS),
            nic_ports: bytes[hello::NIC_PORTS],
            host: HostId(word(hello::HOST)),
            qp: QpNum(word(hello::QP)),
            session: SessionId(word(hello::SESSION)),
            features: Features(word(hello::FEATURES)),
            required: Features(word(hello::REQUIRED)),
            private_data: options.private_data.to_vec(),
            addresses: options.addresses.map(addresses::decode).transpose()?.unwrap_or_default(),
        };
        hello.validate()?;
        Ok(HelloMessage { hello, versions: options.versions.to_vec() })
    }
}

/// Options of a hello.
struct Options<'a> {
    versions: &'a [u8],
    scheme: &'a [u8],
    private_data: &'a [u8],
    addresses: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn read(mut rest: &'a [u8]) -> Result<Self, HelloError> {
        const KNOWN: [u8; 4] = [
            hello::OPTION_VERSIONS,
            hello::OPTION_SCHEME,
            hello::OPTION_PRIVATE_DATA,
            hello::OPTION_ADDRESSES,
        ];
        let mut found: [Option<&[u8]>; 4] = [None; 4];
        while let Some((option, after)) = rest.split_first() {
            if *option == hello::OPTION_PAD {
                if rest.iter().any(|byte| *byte != 0) {
                    return Err(HelloError::Padding);
                }
                break;
            }
            let (len, after) = after.split_first().ok_or(HelloError::Truncated { len: 1, needed: 2 })?;
            let len = usize::from(*len);
            let content = after.get(..len).ok_or(HelloError::Truncated { len: after.len(), needed: len })?;
            rest = &after[len..];
            match KNOWN.iter().position(|known| *known == *option & !hello::MUST_UNDERSTAND) {
                Some(index) if found[index].is_some() => {
                    return Err(HelloError::OptionCount { option: *option, count: 2 });
                }
                Some(index) => found[index] = Some(content),
                None if option & hello::MUST_UNDERSTAND != 0 => return Err(HelloError::Option(*option)),
                None => {}
            }
        }
        let once =
            |index: usize| found[index].ok_or(HelloError::OptionCount { option: KNOWN[index], count: 0 });
        Ok(Options { versions: once(0)?, scheme: once(1)?, private_data: once(2)?, addresses: found[3] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Hello {
        Hello {
            protection: Protection::Encrypt,
            transport: TransportType::Rc,
            scheme: "udmp".into(),
            mtu_payload: 4_096,
            paths: 8,
            nic_ports: 2,
            host: HostId(3),
            qp: QpNum(4),
            session: SessionId(5),
            features: Features(6),
            required: Features(2),
            private_data: vec![7],
            addresses: vec![],
        }
    }

    fn with(options: &[u8]) -> Result<HelloMessage, HelloError> {
        let mut bytes = HelloMessage::new(good()).encode(0);
        bytes.extend_from_slice(options);
        HelloMessage::decode(&bytes)
    }

    #[test]
    fn options_of_the_future_are_ignored_unless_they_must_be_understood() {
        assert_eq!(with(&[9, 2, 1, 1, 0x70, 0]).unwrap().hello, good());
        assert_eq!(with(&[0x89, 0]), Err(HelloError::Option(0x89)));
        assert_eq!(with(&[9, 0, 0, 0, 0]).unwrap().hello, good());
    }

    #[test]
    fn addresses_come_back_and_such_as_no_packet_may_go_to_are_named() {
        for list in [["10.0.1.1:7", "10.0.2.1:8"], ["[fd00::1]:1", "[fd00::2]:65535"]] {
            let addresses = list.map(|text| text.parse().unwrap()).to_vec();
            let hello = Hello { addresses, ..good() };
            assert_eq!(
                HelloMessage::decode(&HelloMessage::new(hello.clone()).encode(0)).unwrap().hello,
                hello
            );
        }
        for list in [
            "10.0.1.1:7",
            "10.0.1.1:7 10.0.1.1:8",
            "10.0.1.1:7 10.0.2.1:0",
            "10.0.1.1:7 0.0.0.0:8",
            "10.0.1.1:7 224.0.0.1:8",
            "10.0.1.1:7 255.255.255.255:8",
            "10.0.1.1:7 [fd00::1]:8",
            "[fd00::1]:1 [fe80::1]:1",
            "[fd00::1]:1 [ff02::1]:1",
            "10.0.0.1:1 10.0.0.2:1 10.0.0.3:1 10.0.0.4:1 10.0.0.5:1 10.0.0.6:1 10.0.0.7:1 10.0.0.8:1 10.0.0.9:1",
        ] {
            let addresses = list.split(' ').map(|text| text.parse().unwrap()).collect();
            let error = Hello { addresses, ..good() }.validate().unwrap_err();
            assert!(error.to_string().contains(list.split(' ').next_back().unwrap()), "{error}");
        }
        // Invalid lists of addresses: no protocol version, an unknown version, part of an address, a second list.
        for option in [&[4, 0][..], &[4, 1, 4], &[4, 3, 5, 0, 0], &[4, 8, 4, 0, 7, 10, 0, 1, 1, 0]] {
            assert!(matches!(with(option), Err(HelloError::Addresses(_))), "{option:?}");
        }
        let list = [4, 13, 4, 0, 7, 10, 0, 1, 1, 0, 7, 10, 0, 2, 1];
        assert_eq!(with(&list).unwrap().hello.addresses.len(), 2);
        assert_eq!(with(&list.repeat(2)), Err(HelloError::OptionCount { option: 4, count: 2 }));
    }

    #[test]
    fn malformed_options_are_named() {
        assert_eq!(with(&[9]), Err(HelloError::Truncated { len: 1, needed: 2 }));
        assert_eq!(with(&[9, 4, 1]), Err(HelloError::Truncated { len: 1, needed: 4 }));
        assert_eq!(with(&[0, 0, 1]), Err(HelloError::Padding));
        assert_eq!(with(&[2, 1, b'a']), Err(HelloError::OptionCount { option: 2, count: 2 }));
        let fixed = &HelloMessage::new(good()).encode(0)[..hello::OPTIONS];
        assert_eq!(HelloMessage::decode(fixed), Err(HelloError::OptionCount { option: 1, count: 0 }));
        let len = hello::OPTIONS - 1;
        let truncated = HelloError::Truncated { len, needed: hello::OPTIONS };
        assert_eq!(HelloMessage::decode(&fixed[..len]), Err(truncated));
    }

    #[test]
    fn every_field_out_of_range_is_named() {
        type Change = fn(&mut Hello);
        let cases: [(Change, &str); 11] = [
            (|h| h.mtu_payload = 255, "mtu_payload is 255; allowed are 256 to 32576"),
            (|h| h.mtu_payload = 32_577, "mtu_payload is 32577; allowed are 256 to 32576"),
            (|h| h.paths = 0, "paths is 0; allowed are 1 to 256"),
            (|h| h.paths = 257, "paths is 257; allowed are 1 to 256"),
            (|h| h.nic_ports = 0, "nic_ports is 0; allowed are 1 to 64"),
            (|h| h.nic_ports = 65, "nic_ports is 65; allowed are 1 to 64"),
            (|h| h.qp = QpNum(1 << 24), "qp is 16777216; allowed are 0 to 16777215"),
            (|h| h.private_data = vec![0; 197], "private_data length is 197; allowed are 0 to 196"),
            (|h| h.required = Features(9), "required features that are not offered is 9; allowed are 0 to 0"),
            (|h| h.scheme = String::new(), "scheme is \"\"; allowed are 1 to 32 of the characters"),
            (|h| h.scheme = "UDMP".into(), "scheme is \"UDMP\"; allowed are 1 to 32 of the characters"),
        ];
        for (change, text) in cases {
            let mut hello = good();
            change(&mut hello);
            let error = hello.validate().expect_err(text);
            assert!(error.to_string().starts_with(text), "{error}");
            // A peer's hello is checked by the same rules.
            assert_eq!(HelloMessage::decode(&HelloMessage::new(hello).encode(0)), Err(error));
        }
    }

    #[test]
    fn codes_nobody_defined_are_named() {
        for (at, value, text) in [
            (hello::PROTECTION, 3, "protection is 3; allowed are 0 to 2"),
            (hello::TRANSPORT, 2, "transport is 2; allowed are 0 to 1"),
            (hello::RESERVED, 1, "reserved byte is 1; allowed are 0 to 0"),
        ] {
            let mut bytes = HelloMessage::new(good()).encode(0);
            bytes[at] = value;
            assert_eq!(HelloMessage::decode(&bytes).unwrap_err().to_string(), text);
        }
        let none = HelloMessage { hello: good(), versions: vec![] }.encode(0);
        let error = HelloMessage::decode(&none).unwrap_err().to_string();
        assert_eq!(error, "number of versions is 0; allowed are 1 to 16");
    }
}
