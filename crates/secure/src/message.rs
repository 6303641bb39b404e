//! Encoding of the handshake messages (`docs/wire.md`, "Datapath framing").

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use thiserror::Error;

use super::layout::{
    COOKIE_LEN, COOKIE_MARK_LEN, PUBLIC_LEN, TAG_LEN, VERSION, accept, common, confirm, data, initiate, kind,
    message, reject, retry, versions,
};
use super::negotiate::Refusal;

/// Identifier of an initiator's attempt. It is random, so that only an observer of the packets can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptId(pub(crate) [u8; 8]);

/// Cookie in its wire format.
pub(crate) type Cookie = [u8; COOKIE_LEN];

/// First bytes of the cookie that a Retry refuses; zeros if the request had none.
pub(crate) type CookiePrefix = [u8; COOKIE_MARK_LEN];

/// Returns the mark of a cookie.
pub(crate) fn cookie_prefix(cookie: &Cookie) -> &CookiePrefix {
    cookie.first_chunk().expect("a cookie is longer")
}

/// Well-formed handshake message. Nothing in it is authenticated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// Requests a connection.
    Initiate {
        header: &'a [u8; common::LEN],
        cookie: &'a Cookie,
        noise: &'a [u8],
    },
    /// Requests a connection in a version that this build does not support.
    UnknownVersion {
        version: u8,
    },
    Retry {
        refused: &'a CookiePrefix,
        cookie: &'a Cookie,
    },
    Accept {
        noise: &'a [u8],
    },
    Confirm,
    Reject {
        refusal: Refusal,
    },
    Versions {
        list: &'a [u8],
    },
}

/// Reason why a datagram is not a handshake message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(super) enum MessageError {
    /// The message is too short or too long.
    #[error("{name} has {len} bytes, expected {expected}")]
    Length {
        /// Name of the message.
        name: &'static str,
        /// Length of the message.
        len: usize,
        /// Exact or smallest valid length.
        expected: usize,
    },
    /// The datagram is not a handshake message.
    #[error("first byte is {0:#04x}, expected 0x70 (handshake)")]
    Kind(u8),
    /// The type is unknown.
    #[error("handshake message type is {0}; allowed are 1 to 6")]
    Type(u8),
    /// The answer uses a version that this end did not use.
    #[error("handshake version is {0}, expected {expected}", expected = crate::layout::VERSION)]
    Version(u8),
    /// A reserved byte is not zero.
    #[error("a reserved byte is {0:#04x}, expected 0")]
    Reserved(u8),
}

impl<'a> Message<'a> {
    /// Parses a datagram.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<(AttemptId, Self), MessageError> {
        let header: &[u8; common::LEN] = bytes.first_chunk().ok_or(MessageError::Length {
            name: "a handshake message",
            len: bytes.len(),
            expected: common::LEN,
        })?;
        if header[common::KIND] != kind::HANDSHAKE {
            return Err(MessageError::Kind(header[common::KIND]));
        }
        let attempt = AttemptId(header[common::ATTEMPT..].try_into().expect("eight bytes"));
        let (message_type, version) = (header[common::TYPE], header[common::VERSION]);
        // The meaning of these two types is the same in every version.
        match (message_type, version) {
            (message::VERSIONS, _) => return Ok((attempt, Self::parse_versions(bytes)?)),
            (message::INITIATE, VERSION) => {}
            (message::INITIATE, version) => return Ok((attempt, Message::UnknownVersion { version })),
            _ => {}
        }
        if !(message::INITIATE..=message::VERSIONS).contains(&message_type) {
            return Err(MessageError::Type(message_type));
        }
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        if header[common::RESERVED] != 0 {
            return Err(MessageError::Reserved(header[common::RESERVED]));
        }
        let exactly = |name, expected| match bytes.len() == expected {
            true => Ok(()),
            false => Err(MessageError::Length { name, len: bytes.len(), expected }),
        };
        let at_least = |name, expected| match bytes.len() >= expected {
            true => Ok(()),
            false => Err(MessageError::Length { name, len: bytes.len(), expected }),
        };
        let cookie = |at: usize| bytes[at..].first_chunk().expect("the length was checked");
        let parsed = match message_type {
            message::INITIATE => {
                at_least("Initiate", initiate::MIN_LEN)?;
                Message::Initiate {
                    header,
                    cookie: cookie(initiate::COOKIE),
                    noise: &bytes[initiate::NOISE..],
                }
            }
            message::RETRY => {
                exactly("Retry", retry::LEN)?;
                let refused = bytes[retry::REFUSED..].first_chunk().expect("the length was checked");
                Message::Retry { refused, cookie: cookie(retry::COOKIE) }
            }
            message::ACCEPT => {
                at_least("Accept", accept::NOISE + PUBLIC_LEN + TAG_LEN)?;
                Message::Accept { noise: &bytes[accept::NOISE..] }
            }
            message::CONFIRM => {
                exactly("Confirm", confirm::LEN)?;
                Message::Confirm
            }
            _ => {
                exactly("Reject", reject::LEN)?;
                let detail = bytes[reject::DETAIL..reject::MAC].try_into().expect("four bytes");
                let refusal = Refusal::decode(bytes[reject::REASON], u32::from_be_bytes(detail));
                Message::Reject { refusal }
            }
        };
        Ok((attempt, parsed))
    }

    fn parse_versions(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let count = usize::from(*bytes.get(versions::COUNT).unwrap_or(&0)).min(versions::MAX);
        let expected = versions::LIST + count + TAG_LEN;
        if bytes.len() != expected {
            return Err(MessageError::Length { name: "Versions", len: bytes.len(), expected });
        }
        Ok(Message::Versions { list: &bytes[versions::LIST..versions::LIST + count] })
    }
}

/// Returns the header of a message.
pub(crate) fn header(message_type: u8, attempt: AttemptId) -> [u8; common::LEN] {
    let mut header = [0; common::LEN];
    header[common::KIND] = kind::HANDSHAKE;
    header[common::TYPE] = message_type;
    header[common::VERSION] = VERSION;
    header[common::ATTEMPT..].copy_from_slice(&attempt.0);
    header
}

/// Encodes an Initiate. With an empty `noise` it requests a cookie.
pub(crate) fn emit_initiate(header: &[u8; common::LEN], cookie: &Cookie, noise: &[u8]) -> Vec<u8> {
    let mut bytes = [&header[..], cookie, noise].concat();
    bytes.resize(bytes.len().max(initiate::MIN_LEN), 0);
    bytes
}

pub(crate) fn emit_retry(
    attempt: AttemptId,
    refused: &CookiePrefix,
    cookie: &Cookie,
    key: &hmac::Key,
) -> Vec<u8> {
    with_mac([&header(message::RETRY, attempt)[..], refused, cookie].concat(), key)
}

pub(crate) fn emit_accept(attempt: AttemptId, noise: &[u8]) -> Vec<u8> {
    [&header(message::ACCEPT, attempt)[..], noise].concat()
}

pub(crate) fn emit_confirm(attempt: AttemptId, key: &hmac::Key) -> Vec<u8> {
    with_mac(header(message::CONFIRM, attempt).to_vec(), key)
}

pub(crate) fn emit_reject(attempt: AttemptId, refusal: Refusal, key: &hmac::Key) -> Vec<u8> {
    let (reason, detail) = refusal.encode();
    let fields = [[reason, 0, 0, 0], detail.to_be_bytes()].concat();
    with_mac([&header(message::REJECT, attempt)[..], &fields].concat(), key)
}

pub(crate) fn emit_versions(attempt: AttemptId, list: &[u8], key: &hmac::Key) -> Vec<u8> {
    let count = list.len().min(versions::MAX);
    let mut bytes = header(message::VERSIONS, attempt).to_vec();
    bytes.push(count as u8);
    bytes.extend_from_slice(&list[..count]);
    with_mac(bytes, key)
}

fn with_mac(mut bytes: Vec<u8>, key: &hmac::Key) -> Vec<u8> {
    let mac = hmac::sign(key, &bytes);
    bytes.extend_from_slice(&mac.as_ref()[..TAG_LEN]);
    bytes
}

/// Returns true if the last 16 bytes of `bytes` are the MAC of the bytes before them.
pub(crate) fn verify_mac(bytes: &[u8], key: &hmac::Key) -> bool {
    let Some((covered, mac)) = bytes.split_last_chunk::<TAG_LEN>() else { return false };
    verify_slices_are_equal(&hmac::sign(key, covered).as_ref()[..TAG_LEN], mac).is_ok()
}

/// Recipient of a datagram according to its first bytes, which prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recipient {
    /// For the [`Responder`](super::Responder).
    ToResponder,
    /// For the [`Initiator`](super::Initiator) with this attempt.
    ToInitiator(AttemptId),
    /// For the [`Session`](super::Session) with this id.
    Protected(super::SessionId),
    /// An unprotected packet, which begins with one of our opcodes.
    Plain,
    /// Not a datagram of this protocol.
    Unknown,
}

/// Returns the recipient of a datagram.
pub fn recipient_of(datagram: &[u8]) -> Recipient {
    match datagram.first() {
        Some(&kind::HANDSHAKE) => match datagram.first_chunk::<{ common::LEN }>() {
            Some(header) => match header[common::TYPE] {
                message::INITIATE | message::CONFIRM => Recipient::ToResponder,
                message::RETRY | message::ACCEPT | message::REJECT | message::VERSIONS => {
                    Recipient::ToInitiator(AttemptId(
                        header[common::ATTEMPT..].try_into().expect("eight bytes"),
                    ))
                }
                _ => Recipient::Unknown,
            },
            None => Recipient::Unknown,
        },
        Some(&(kind::ENCRYPTED | kind::AUTHENTICATED)) => match datagram.get(data::TO..data::NUMBER) {
            Some(id) => {
                Recipient::Protected(super::SessionId(u32::from_be_bytes(id.try_into().expect("four bytes"))))
            }
            None => Recipient::Unknown,
        },
        Some(first) if kind::PLAIN.contains(first) => Recipient::Plain,
        _ => Recipient::Unknown,
    }
}
