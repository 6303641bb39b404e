//! Offsets and lengths of every field. docs/wire.md describes the same in words; a test compares the two.

/// Version of the extension header this crate emits and accepts.
pub const VERSION: u8 = 2;
/// First byte of the extension header.
pub const MAGIC: u8 = 0x70;
/// UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// Ethernet II header.
pub const ETHERNET_LEN: usize = 14;
/// IPv4 header without options.
pub const IPV4_LEN: usize = 20;
/// UDP header.
pub const UDP_LEN: usize = 8;
/// Base transport header.
pub const BTH_LEN: usize = 12;
/// RDMA extended transport header.
pub const RETH_LEN: usize = 16;
/// ACK extended transport header.
pub const AETH_LEN: usize = 4;
/// Immediate data header.
pub const IMMDT_LEN: usize = 4;
/// Invariant CRC.
pub const ICRC_LEN: usize = 4;
/// Part of the extension that every packet has.
pub const COMMON_LEN: usize = 8;
/// Extension of a data packet.
pub const DATA_EXT_LEN: usize = COMMON_LEN + 20;
/// Extension of the last packet of a WRITE with immediate, which also names the receive that it consumes.
pub const WRITE_IMM_EXT_LEN: usize = DATA_EXT_LEN + 4;
/// Pull target behind the extension of a data packet that has one.
pub const PULL_TARGET_LEN: usize = 4;
/// Extension of an acknowledgement.
pub const ACK_EXT_LEN: usize = COMMON_LEN + 32;
/// Reliable-datagram extended transport header.
pub const RDETH_LEN: usize = 4;
/// ERD's header: type, message, length, offset.
pub const EETH_LEN: usize = 9;
/// Extension of a datagram packet: the common part, which has the layout of a DETH, and the EETH.
pub const RD_EXT_LEN: usize = COMMON_LEN + EETH_LEN;
/// Extension of a negative acknowledgement.
pub const NACK_EXT_LEN: usize = COMMON_LEN + 12;
/// Extension of a congestion notification.
pub const CNP_EXT_LEN: usize = COMMON_LEN;
/// Extension of a list of missing packets.
pub const MISSING_EXT_LEN: usize = COMMON_LEN + 8;

pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const IP_PROTOCOL_UDP: u8 = 17;
/// Default partition key, full membership.
pub(crate) const PKEY: u16 = 0xffff;

/// Offsets within the base transport header.
pub(crate) mod bth {
    pub(crate) const OPCODE: usize = 0;
    /// Solicited event 0x80, migration 0x40, pad count 0x30, header version 0x0f.
    pub(crate) const FLAGS: usize = 1;
    pub(crate) const PKEY: usize = 2;
    /// FECN, BECN and six reserved bits; masked in the invariant CRC.
    pub(crate) const RESERVED: usize = 4;
    pub(crate) const DEST_QP: usize = 5;
    /// Acknowledge request 0x80.
    pub(crate) const ACK_REQ: usize = 8;
    pub(crate) const PSN: usize = 9;
}

/// Offsets within the RDMA extended transport header.
pub(crate) mod reth {
    pub(crate) const VIRTUAL_ADDRESS: usize = 0;
    pub(crate) const R_KEY: usize = 8;
    pub(crate) const DMA_LENGTH: usize = 12;
}

/// Offsets within the extension header.
pub(crate) mod ext {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 1;
    pub(crate) const PATH: usize = 2;
    pub(crate) const FLAGS: usize = 4;
    pub(crate) const SRC_QP: usize = 5;

    pub(crate) const DATA_MSN: usize = 8;
    pub(crate) const DATA_OFFSET: usize = 12;
    pub(crate) const DATA_REFERENCE: usize = 16;
    pub(crate) const DATA_SENT_AT: usize = 20;
    pub(crate) const DATA_RECEIVE: usize = 28;

    pub(crate) const ACK_BACK: usize = 8;
    pub(crate) const ACK_CUMULATIVE: usize = 9;
    pub(crate) const ACK_PACKETS: usize = 12;
    pub(crate) const ACK_MARKED: usize = 14;
    pub(crate) const ACK_SACK: usize = 16;
    pub(crate) const ACK_ECHO_SENT_AT: usize = 24;
    pub(crate) const ACK_RECEIVED_AT: usize = 32;

    pub(crate) const NACK_EXPECTED: usize = 8;
    pub(crate) const NACK_SACK: usize = 12;

    /// Type bit 0x80; the other bits are zero.
    pub(crate) const RD_TYPE: usize = 8;
    pub(crate) const RD_MSG_ID: usize = 9;
    pub(crate) const RD_LEN: usize = 11;
    pub(crate) const RD_OFFSET: usize = 13;

    pub(crate) const MISSING_BITS: usize = 8;
}

/// Bits of the flags byte of the extension, and the type bit of the EETH. All other bits are zero.
pub(crate) mod flag {
    /// The packet is a retransmission.
    pub(crate) const RETRANSMIT: u8 = 0x01;
    /// Type bit of the EETH: the message has more than one packet.
    pub(crate) const MULTI: u8 = 0x80;
    /// The message carries an immediate, which is in its last packet.
    pub(crate) const IMMEDIATE: u8 = 0x02;
    /// Acknowledgement: the sender must not send notices for now.
    pub(crate) const PAUSED: u8 = 0x04;
    /// Answer to a notice, or refusal of a trimmed packet: the notice or packet carried Congestion Experienced.
    pub(crate) const MARKED: u8 = 0x08;
    /// Missing packets: they are late, not lost.
    pub(crate) const LATE: u8 = 0x10;
    /// Data: a pull target follows the extension.
    pub(crate) const PULL_TARGET: u8 = 0x20;
}
