//! Errors of parsing a frame, and of emitting one.

use thiserror::Error;

/// Reason why bytes are not a packet of our format. Names the field and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The frame ends inside a header, or before the length a header announces.
    #[error("truncated: {layer} needs {needed} bytes, {available} are there")]
    Truncated {
        /// Name of the header.
        layer: &'static str,
        /// Bytes of the header, from its start.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// The frame does not carry IPv4. VLAN tags and IPv6 are not part of the format.
    #[error("EtherType is {0:#06x}, expected 0x0800 (IPv4)")]
    EtherType(u16),
    /// The IP version is not 4.
    #[error("IP version is {0}, expected 4")]
    IpVersion(u8),
    /// The header has IPv4 options, which are not allowed: the invariant CRC does not define them.
    #[error("IPv4 header has {0} words, expected 5 (no options)")]
    IpHeaderWords(u8),
    /// The IPv4 header checksum is wrong.
    #[error("IPv4 header checksum is {found:#06x}, expected {computed:#06x}")]
    IpChecksum {
        /// Checksum in the packet.
        found: u16,
        /// Checksum computed over the header.
        computed: u16,
    },
    /// The packet is a fragment; RoCEv2 packets are never fragmented.
    #[error("IPv4 fragment word is {0:#06x}, expected no fragment offset and no More Fragments bit")]
    IpFragment(u16),
    /// The packet is not UDP.
    #[error("IPv4 protocol is {0}, expected 17 (UDP)")]
    IpProtocol(u8),
    /// The UDP port is not RoCEv2's.
    #[error("UDP destination port is {0}, expected 4791 (RoCEv2)")]
    UdpPort(u16),
    /// The lengths of UDP and IP disagree.
    #[error("UDP length is {udp}, but IPv4 carries {ip} bytes")]
    UdpLength {
        /// Length in the UDP header.
        udp: u16,
        /// Length that the IPv4 total length leaves for UDP.
        ip: u16,
    },
    /// The UDP checksum does not match. A checksum of 0 (not used) is accepted.
    #[error("UDP checksum {0:#06x} does not match the datagram")]
    UdpChecksum(u16),
    /// The invariant CRC is wrong.
    #[error("ICRC is {found:#010x}, expected {computed:#010x}")]
    Icrc {
        /// CRC in the packet.
        found: u32,
        /// CRC computed over the packet.
        computed: u32,
    },
    /// The version of the transport header is not 0.
    #[error("BTH header version is {0}, expected 0")]
    BthVersion(u8),
    /// The opcode is not one of ours.
    #[error("BTH opcode is {0:#04x}, which format version 2 does not define")]
    Opcode(u8),
    /// The partition key is not the default one.
    #[error("BTH partition key is {0:#06x}, expected 0xffff (the default partition)")]
    PartitionKey(u16),
    /// The pad count exceeds the bytes behind the headers.
    #[error("BTH pad count is {pad}, but {available} bytes follow the headers")]
    PadCount {
        /// Pad count in the header.
        pad: u8,
        /// Bytes of payload and padding.
        available: usize,
    },
    /// Payload and padding are not a multiple of 4 bytes, or a packet that must have no payload has some.
    #[error("{opcode} packet has {len} bytes after its headers, expected {expected}")]
    BodyLength {
        /// Kind of packet.
        opcode: &'static str,
        /// Bytes between headers and ICRC.
        len: usize,
        /// Allowed lengths.
        expected: &'static str,
    },
    /// The AETH syndrome is not defined.
    #[error("AETH syndrome is {0:#04x}, which format version 2 does not define")]
    Syndrome(u8),
    /// The first byte of the extension is not [`MAGIC`](super::layout::MAGIC).
    #[error("extension magic is {0:#04x}, expected 0x70")]
    Magic(u8),
    /// The extension has another version.
    #[error("extension version is {0}, expected 2")]
    Version(u8),
    /// The flags have unknown bits, or bits that contradict the opcode.
    #[error("extension flags are {flags:#04x}, allowed with this opcode are bits {allowed:#04x}")]
    Flags {
        /// Flags in the packet.
        flags: u8,
        /// Flags that the opcode allows.
        allowed: u8,
    },
    /// A number of credit has its highest bit clear. The bit is always set in a valid one.
    #[error("credit number is {0:#010x}; its highest bit must be 1")]
    CreditNumber(u32),
    /// The last PSN of a notice is before its first, or 2^23 or more after it.
    #[error("notice of PSNs {first} to {last}; the last must be less than 2^23 after the first")]
    Range {
        /// First PSN, in the BTH.
        first: u32,
        /// Last PSN, in the extension.
        last: u32,
    },
    /// A list of missing packets does not begin with a missing one.
    #[error("bit 0 of the missing packets is 0, but PSN {0} must be the first of them")]
    NothingMissing(u32),
    /// The trigger of an acknowledgement lies beyond its bitmap.
    #[error("the packet that triggered the acknowledgement is {0} before its PSN, expected 0 to 63")]
    Trigger(u8),
    /// A field that must be zero is not. Padding is one of these fields.
    #[error("{field} is {value:#x}, expected 0")]
    Reserved {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// Opcode and offset disagree: First and Only packets have offset 0, Middle and Last ones do not.
    #[error("message offset is {offset}, but the opcode is for {position}")]
    Position {
        /// Offset in the extension.
        offset: u32,
        /// Position in the opcode: First, Middle, Last or Only.
        position: &'static str,
    },
    /// The length in the EETH differs from that of the payload, or is 0.
    #[error("EETH length is {says}, but the packet carries {len} bytes")]
    EethLength {
        /// Length in the EETH.
        says: u16,
        /// Payload bytes.
        len: u16,
    },
    /// The packet would end beyond 2^32 bytes of its message.
    #[error("offset {offset} plus {len} bytes exceeds the largest message of 2^32 bytes")]
    OffsetOverflow {
        /// Offset in the extension.
        offset: u32,
        /// Payload bytes.
        len: u16,
    },
    /// The length of a WRITE does not fit the position of this packet in it.
    #[error(
        "RETH DMA length is {dma} (length of the WRITE minus 1), but its {position} packet has {len} bytes at {offset}"
    )]
    DmaLength {
        /// Length of the WRITE minus 1, in the RETH.
        dma: u32,
        /// Offset in the extension.
        offset: u32,
        /// Payload bytes.
        len: u16,
        /// Position in the opcode: First, Middle, Last or Only.
        position: &'static str,
    },
    /// The message would start below address 0 or end beyond 2^64.
    #[error(
        "RETH virtual address {address:#x} is impossible for offset {offset} and DMA length {dma} (minus 1)"
    )]
    Address {
        /// Address in the RETH.
        address: u64,
        /// Offset in the extension.
        offset: u32,
        /// Length of the WRITE minus 1, in the RETH.
        dma: u32,
    },
}

/// Reason why a segment cannot become a frame.
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
    /// The length of the payload differs from the one in the segment.
    #[error("the segment has {expected} bytes of payload, but {given} were passed")]
    PayloadLength {
        /// `Data::len`, or 0 for packets without payload.
        expected: usize,
        /// Length of the slice.
        given: usize,
    },
    /// A packet of a datagram queue pair has no payload.
    #[error("the packet has no payload; one of a datagram queue pair carries at least 1 byte")]
    NoPayload,
    /// A number is too large for its field on the wire.
    #[error("{field} is {value}, at most {max} fits")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
        /// Largest value that fits.
        max: u64,
    },
}
