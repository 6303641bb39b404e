//! Offsets and codes of `docs/wire.md`, section "Datapath framing"; `doc_test.rs` compares both.

/// Version of handshake and packet protection.
pub(crate) const VERSION: u8 = 2;
/// Versions that this build supports, best first.
pub(crate) const VERSIONS: &[u8] = &[VERSION];

/// First byte of a datagram.
pub(crate) mod kind {
    pub(crate) const HANDSHAKE: u8 = 0x70;
    pub(crate) const ENCRYPTED: u8 = 0x71;
    pub(crate) const AUTHENTICATED: u8 = 0x72;
    /// Opcodes in the BTH, with which an unprotected packet begins.
    pub(crate) const PLAIN: core::ops::RangeInclusive<u8> = 0xc0..=0xdf;
}

/// Header of a protected packet.
pub(crate) mod data {
    pub(crate) const KIND: usize = 0;
    pub(crate) const EPOCH: usize = 1;
    pub(crate) const PATH: usize = 2;
    pub(crate) const TO: usize = 4;
    pub(crate) const NUMBER: usize = 8;
    pub(crate) const LEN: usize = 12;
}

/// Bytes of an authentication tag, of packets and of handshake messages.
pub(crate) const TAG_LEN: usize = 16;

/// Second byte of a handshake datagram.
pub(crate) mod message {
    pub(crate) const INITIATE: u8 = 1;
    pub(crate) const RETRY: u8 = 2;
    pub(crate) const ACCEPT: u8 = 3;
    pub(crate) const CONFIRM: u8 = 4;
    pub(crate) const REJECT: u8 = 5;
    pub(crate) const VERSIONS: u8 = 6;
}

/// Header of every handshake message.
pub(crate) mod common {
    pub(crate) const KIND: usize = 0;
    pub(crate) const TYPE: usize = 1;
    pub(crate) const VERSION: usize = 2;
    pub(crate) const RESERVED: usize = 3;
    pub(crate) const ATTEMPT: usize = 4;
    pub(crate) const LEN: usize = 12;
}

/// Initiate.
pub(crate) mod initiate {
    use super::common;
    pub(crate) const COOKIE: usize = common::LEN;
    pub(crate) const NOISE: usize = COOKIE + super::COOKIE_LEN;
    /// Smallest length of an Initiate, reached by padding. No answer to an unproven address is then longer than its
    /// request.
    pub(crate) const MIN_LEN: usize = 256;
}

/// Bytes of a cookie.
pub(crate) const COOKIE_LEN: usize = 24;
/// Bytes of a cookie with which a Retry identifies the cookie that it refuses.
pub(crate) const COOKIE_MARK_LEN: usize = 8;
/// Bytes of a Curve25519 public key.
pub(crate) const PUBLIC_LEN: usize = 32;

/// Retry.
pub(crate) mod retry {
    use super::common;
    pub(crate) const REFUSED: usize = common::LEN;
    pub(crate) const COOKIE: usize = REFUSED + super::COOKIE_MARK_LEN;
    pub(crate) const MAC: usize = COOKIE + super::COOKIE_LEN;
    pub(crate) const LEN: usize = MAC + super::TAG_LEN;
}

/// Accept.
pub(crate) mod accept {
    pub(crate) const NOISE: usize = super::common::LEN;
}

/// Confirm.
pub(crate) mod confirm {
    pub(crate) const MAC: usize = super::common::LEN;
    pub(crate) const LEN: usize = MAC + super::TAG_LEN;
}

/// Reject.
pub(crate) mod reject {
    use super::common;
    pub(crate) const REASON: usize = common::LEN;
    pub(crate) const RESERVED: usize = REASON + 1;
    pub(crate) const DETAIL: usize = RESERVED + 3;
    pub(crate) const MAC: usize = DETAIL + 4;
    pub(crate) const LEN: usize = MAC + super::TAG_LEN;
}

/// Versions.
pub(crate) mod versions {
    use super::common;
    pub(crate) const COUNT: usize = common::LEN;
    pub(crate) const LIST: usize = COUNT + 1;
    /// Largest number of versions that an end may list.
    pub(crate) const MAX: usize = 16;
}

/// The hello inside Initiate and Accept.
pub(crate) mod hello {
    pub(crate) const PROTECTION: usize = 0;
    pub(crate) const TRANSPORT: usize = 1;
    pub(crate) const MTU_PAYLOAD: usize = 2;
    pub(crate) const PATHS: usize = 4;
    pub(crate) const NIC_PORTS: usize = 6;
    pub(crate) const RESERVED: usize = 7;
    pub(crate) const HOST: usize = 8;
    pub(crate) const QP: usize = 12;
    pub(crate) const SESSION: usize = 16;
    pub(crate) const FEATURES: usize = 20;
    pub(crate) const REQUIRED: usize = 24;
    pub(crate) const OPTIONS: usize = 28;

    pub(crate) const OPTION_PAD: u8 = 0;
    pub(crate) const OPTION_VERSIONS: u8 = 1;
    pub(crate) const OPTION_SCHEME: u8 = 2;
    pub(crate) const OPTION_PRIVATE_DATA: u8 = 3;
    pub(crate) const OPTION_ADDRESSES: u8 = 4;
    /// Bit in the type of an option that the receiver must understand.
    pub(crate) const MUST_UNDERSTAND: u8 = 0x80;
}
