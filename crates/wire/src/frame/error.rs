//! What can be wrong with a frame, and what a frame cannot carry.

use thiserror::Error;

/// Why bytes are not a packet of ours. Names the field and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The frame ends inside a header, or before the length a header announces.
    #[error("truncated: {layer} needs {needed} bytes, {available} are there")]
    Truncated {
        /// Which header.
        layer: &'static str,
        /// Bytes it takes, from its start.
        needed: usize,
        /// Bytes left.
        available: usize,
    },
    /// Not IPv4; VLAN tags and IPv6 are not part of the format.
    #[error("EtherType is {0:#06x}, expected 0x0800 (IPv4)")]
    EtherType(u16),
    /// IP version other than 4.
    #[error("IP version is {0}, expected 4")]
    IpVersion(u8),
    /// IPv4 options are not allowed: the invariant CRC does not define them.
    #[error("IPv4 header has {0} words, expected 5 (no options)")]
    IpHeaderWords(u8),
    /// IPv4 header checksum.
    #[error("IPv4 header checksum is {found:#06x}, expected {computed:#06x}")]
    IpChecksum {
        /// In the packet.
        found: u16,
        /// Over the header.
        computed: u16,
    },
    /// A fragment; RoCEv2 packets are never fragmented.
    #[error("IPv4 fragment word is {0:#06x}, expected no fragment offset and no More Fragments bit")]
    IpFragment(u16),
    /// Not UDP.
    #[error("IPv4 protocol is {0}, expected 17 (UDP)")]
    IpProtocol(u8),
    /// Not RoCEv2.
    #[error("UDP destination port is {0}, expected 4791 (RoCEv2)")]
    UdpPort(u16),
    /// UDP and IP disagree.
    #[error("UDP length is {udp}, but IPv4 carries {ip} bytes")]
    UdpLength {
        /// In the UDP header.
        udp: u16,
        /// What the IPv4 total length leaves for UDP.
        ip: u16,
    },
    /// A UDP checksum other than 0 (not used) that does not match.
    #[error("UDP checksum {0:#06x} does not match the datagram")]
    UdpChecksum(u16),
    /// Invariant CRC.
    #[error("ICRC is {found:#010x}, expected {computed:#010x}")]
    Icrc {
        /// In the packet.
        found: u32,
        /// Over the packet.
        computed: u32,
    },
    /// Transport header version.
    #[error("BTH header version is {0}, expected 0")]
    BthVersion(u8),
    /// Not one of our opcodes.
    #[error("BTH opcode is {0:#04x}, which format version 2 does not define")]
    Opcode(u8),
    /// Partition key.
    #[error("BTH partition key is {0:#06x}, expected 0xffff (the default partition)")]
    PartitionKey(u16),
    /// More padding than payload and padding together, or padding that is not zero.
    #[error("BTH pad count is {pad}, but {available} bytes follow the headers")]
    PadCount {
        /// In the header.
        pad: u8,
        /// Payload and padding.
        available: usize,
    },
    /// Payload and padding do not fill words of four bytes, or a packet without payload has some.
    #[error("{opcode} packet has {len} bytes after its headers, expected {expected}")]
    BodyLength {
        /// Kind of packet.
        opcode: &'static str,
        /// Bytes between headers and ICRC.
        len: usize,
        /// What is allowed.
        expected: &'static str,
    },
    /// AETH syndrome.
    #[error("AETH syndrome is {0:#04x}, which format version 2 does not define")]
    Syndrome(u8),
    /// First byte of the extension.
    #[error("extension magic is {0:#04x}, expected 0x70")]
    Magic(u8),
    /// Extension of another version.
    #[error("extension version is {0}, expected 2")]
    Version(u8),
    /// Unknown bits, or bits that contradict the opcode.
    #[error("extension flags are {flags:#04x}, allowed with this opcode are bits {allowed:#04x}")]
    Flags {
        /// In the packet.
        flags: u8,
        /// What the opcode allows.
        allowed: u8,
    },
    /// A number of credit, whose highest bit says that it is one.
    #[error("credit number is {0:#010x}; its highest bit must be 1")]
    CreditNumber(u32),
    /// A notice whose last PSN is not at or shortly after its first.
    #[error("notice of PSNs {first} to {last}; the last must be less than 2^23 after the first")]
    Range {
        /// In the BTH.
        first: u32,
        /// In the extension.
        last: u32,
    },
    /// A list of missing packets that does not begin with one.
    #[error("bit 0 of the missing packets is 0, but PSN {0} is said to be the first of them")]
    NothingMissing(u32),
    /// An acknowledgement whose trigger is beyond its bitmap.
    #[error("the packet that triggered the acknowledgement is {0} before its PSN, expected 0 to 63")]
    Trigger(u8),
    /// Something that must be zero is not.
    #[error("{field} is {value:#x}, expected 0")]
    Reserved {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// First and Only packets have offset 0, Middle and Last ones do not.
    #[error("message offset is {offset}, but the opcode says {position}")]
    Position {
        /// In the extension.
        offset: u32,
        /// First, Middle, Last or Only.
        position: &'static str,
    },
    /// The EETH names another length than the packet has.
    #[error("EETH length is {says}, but the packet carries {len} bytes")]
    EethLength {
        /// In the EETH.
        says: u16,
        /// Payload bytes.
        len: u16,
    },
    /// The packet would end beyond 2^32 bytes.
    #[error("offset {offset} plus {len} bytes exceeds the largest message of 2^32 bytes")]
    OffsetOverflow {
        /// In the extension.
        offset: u32,
        /// Payload bytes.
        len: u16,
    },
    /// The length of a WRITE does not go with the place of this packet in it.
    #[error(
        "RETH DMA length is {dma} (length of the WRITE minus 1), but its {position} packet has {len} bytes at {offset}"
    )]
    DmaLength {
        /// In the RETH.
        dma: u32,
        /// In the extension.
        offset: u32,
        /// Payload bytes.
        len: u16,
        /// First, Middle, Last or Only.
        position: &'static str,
    },
    /// The message would start below address 0 or end beyond 2^64.
    #[error(
        "RETH virtual address {address:#x} is impossible for offset {offset} and DMA length {dma} (minus 1)"
    )]
    Address {
        /// In the RETH.
        address: u64,
        /// In the extension.
        offset: u32,
        /// In the RETH.
        dma: u32,
    },
}

/// Why a segment cannot become a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The output buffer is too small.
    #[error("the frame needs {needed} bytes, the buffer has {available}")]
    BufferTooSmall {
        /// Length of the frame.
        needed: usize,
        /// Length of the buffer.
        available: usize,
    },
    /// The payload is not as long as the segment says.
    #[error("the segment says {expected} bytes of payload, given are {given}")]
    PayloadLength {
        /// `Data::len`, or 0 for packets without payload.
        expected: usize,
        /// Length of the slice.
        given: usize,
    },
    /// A packet of a datagram queue pair without payload.
    #[error("the packet has no payload; one of a datagram queue pair carries at least 1 byte")]
    NoPayload,
    /// A number is too large for its field on the wire.
    #[error("{field} is {value}, at most {max} fits")]
    OutOfRange {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The largest value that fits.
        max: u64,
    },
}
