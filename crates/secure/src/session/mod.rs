//! Protection of the packets of one connection.

mod opener;
mod sealer;

#[cfg(test)]
mod tests;

use core::ops::Range;

use pathweave_units::{Duration, PathId, Time};
use thiserror::Error;

use super::hello::SessionId;
use super::layout::{TAG_LEN, data, kind};
use super::protection::Protection;
use super::schedule::{Direction, Secrets};
use super::window::Window;
use opener::Opener;
use sealer::Sealer;

/// Most packets any key protects. The bound of RFC 9001, section 6.6 and appendix B.1 for packets of at most 2^14
/// bytes is 2^23; our packets have at most 2^14 bytes, and the bytes are bounded as well.
pub const MAX_PACKETS_PER_KEY: u64 = 1 << 23;
/// Most bytes any key protects: 128 GiB, that is 2^33 blocks of AES.
pub const MAX_BYTES_PER_KEY: u64 = 1 << 37;

/// Bytes of a sequence of packets, in both directions: the next number to send, and a replay window.
pub const BYTES_A_SEQUENCE: usize = size_of::<u64>() + size_of::<Option<Box<Window>>>() + size_of::<Window>();

/// When keys change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// New keys after this many packets of one direction. 1 to [`MAX_PACKETS_PER_KEY`] / 2.
    pub packets: u64,
    /// New keys after this many bytes of one direction, tags and headers not counted. 1 to [`MAX_BYTES_PER_KEY`] / 2.
    pub bytes: u64,
    /// How long packets under the previous keys are still accepted once the first under new ones has arrived. More
    /// than any packet stays in the network.
    pub grace: Duration,
}

impl Default for Rotation {
    /// Half of what a key may protect, and one second.
    fn default() -> Self {
        Rotation {
            packets: MAX_PACKETS_PER_KEY / 2,
            bytes: MAX_BYTES_PER_KEY / 2,
            grace: Duration::from_ms(1_000),
        }
    }
}

impl Rotation {
    /// Why it cannot be used, naming field, value and range.
    ///
    /// # Errors
    ///
    /// The sentence to show.
    pub fn validate(&self) -> Result<(), String> {
        for (name, value, max) in [
            ("rotation.packets", self.packets, MAX_PACKETS_PER_KEY / 2),
            ("rotation.bytes", self.bytes, MAX_BYTES_PER_KEY / 2),
        ] {
            if value == 0 || value > max {
                return Err(format!("{name} is {value}; allowed are 1 to {max}"));
            }
        }
        Ok(())
    }
}

/// Why a packet cannot be sealed. All are mistakes of the caller, but [`SealError::KeyExhausted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SealError {
    /// No such path.
    #[error("path is {path}, but the connection has {paths} paths")]
    Path {
        /// Asked for.
        path: PathId,
        /// Agreed on.
        paths: u16,
    },
    /// No room for header and tag.
    #[error("the frame has {len} bytes, at least {needed} are header and tag")]
    TooShort {
        /// Length of the frame.
        len: usize,
        /// Overhead.
        needed: usize,
    },
    /// The peer has not followed to the present keys for so long that they are used up. The connection is dead.
    #[error(
        "the peer has not taken up new keys; {packets} packets and {bytes} bytes are protected by the present ones"
    )]
    KeyExhausted {
        /// Under the present key.
        packets: u64,
        /// Under the present key.
        bytes: u64,
    },
}

/// Why a frame is not a packet of this session. None is a reason to end the connection: anybody can send such frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Shorter than header and tag.
    #[error("the frame has {len} bytes, at least {needed} are header and tag")]
    TooShort {
        /// Length of the frame.
        len: usize,
        /// Overhead.
        needed: usize,
    },
    /// Another kind of frame than was agreed on: an unprotected one in a protected session, say.
    #[error("the frame begins with {found:#04x}, which is not what this session uses")]
    Kind {
        /// First byte.
        found: u8,
    },
    /// For another session.
    #[error("the frame is for session {found:#010x}")]
    Session {
        /// In the frame.
        found: u32,
    },
    /// No such path.
    #[error("path is {path}, but the connection has {paths} paths")]
    Path {
        /// In the frame.
        path: PathId,
        /// Agreed on.
        paths: u16,
    },
    /// Keys that are gone, or too far ahead.
    #[error("the frame uses keys of epoch {found} (modulo 16), which is not the present one nor a neighbour")]
    Epoch {
        /// In the frame.
        found: u8,
    },
    /// Seen before.
    #[error("packet {number} of path {path} was received before")]
    Replayed {
        /// In the frame.
        path: PathId,
        /// Its number.
        number: u64,
    },
    /// Older than the replay window remembers.
    #[error("packet {number} of path {path} is older than the replay window")]
    TooOld {
        /// In the frame.
        path: PathId,
        /// Its number.
        number: u64,
    },
    /// The tag is wrong.
    #[error("the tag is wrong: altered, forged, or under another key")]
    Forged,
}

/// A packet whose origin is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The path the sender chose; `None` without protection, where only the packet itself says it.
    pub path: Option<PathId>,
    /// Where in the frame the packet is.
    pub body: Range<usize>,
}

/// What a session has done and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Packets sealed.
    pub sealed_packets: u64,
    /// Packets opened.
    pub opened_packets: u64,
    /// Times this end changed its sending keys.
    pub send_rotations: u64,
    /// Times the peer changed its sending keys.
    pub receive_rotations: u64,
    /// Frames refused: too short.
    pub rejected_short: u64,
    /// Frames refused: another kind.
    pub rejected_kind: u64,
    /// Frames refused: another session.
    pub rejected_session: u64,
    /// Frames refused: no such path.
    pub rejected_path: u64,
    /// Frames refused: keys that are gone or not yet due.
    pub rejected_epoch: u64,
    /// Frames refused: replayed.
    pub rejected_replayed: u64,
    /// Frames refused: older than the window.
    pub rejected_old: u64,
    /// Frames refused: wrong tag.
    pub rejected_forged: u64,
}

impl SessionCounters {
    /// Frames refused, of all kinds.
    pub fn rejected(&self) -> u64 {
        self.rejected_short
            + self.rejected_kind
            + self.rejected_session
            + self.rejected_path
            + self.rejected_epoch
            + self.rejected_replayed
            + self.rejected_old
            + self.rejected_forged
    }
    fn count(&mut self, error: &OpenError) {
        let counter = match error {
            OpenError::TooShort { .. } => &mut self.rejected_short,
            OpenError::Kind { .. } => &mut self.rejected_kind,
            OpenError::Session { .. } => &mut self.rejected_session,
            OpenError::Path { .. } => &mut self.rejected_path,
            OpenError::Epoch { .. } => &mut self.rejected_epoch,
            OpenError::Replayed { .. } => &mut self.rejected_replayed,
            OpenError::TooOld { .. } => &mut self.rejected_old,
            OpenError::Forged => &mut self.rejected_forged,
        };
        *counter += 1;
    }
}

/// What the CRCs of a session's unprotected packets are combined with (XOR), one a direction.
///
/// They come from the handshake, so packets of an earlier connection with the same queue pairs and addresses do not have
/// them. They are no protection from an observer of packets: its CRC shows its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainTags {
    /// For packets that this end sends.
    pub sends: u32,
    /// For packets that it receives.
    pub receives: u32,
}

/// The packet protection of one connection, both ways.
///
/// A frame is `header | body | tag` in one buffer: [`header_len`](Session::header_len) bytes of room, the packet,
/// [`tag_len`](Session::tag_len) bytes of room. [`seal`](Session::seal) fills both in and encrypts the body in place;
/// [`open`](Session::open) undoes it in place and says where the body is. Both lengths are constant for a session, so
/// packets of equal size stay frames of equal size. Without protection both are 0 and the frame is the packet.
///
/// Keys change by themselves ([`Rotation`]), in each direction for itself: the first packet under new keys tells the
/// other end, which then changes its own soon. Each packet says which keys of the other end have arrived, and until the
/// present ones have, an end keeps them. A key is never used beyond [`MAX_PACKETS_PER_KEY`] and
/// [`MAX_BYTES_PER_KEY`].
pub struct Session {
    protection: Protection,
    local: SessionId,
    plain_tags: PlainTags,
    sealer: Sealer,
    opener: Opener,
    counters: SessionCounters,
}

/// What a session is made from, besides its secrets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionConfig {
    pub(crate) protection: Protection,
    pub(crate) local: SessionId,
    pub(crate) remote: SessionId,
    pub(crate) paths: u16,
    pub(crate) rotation: Rotation,
}

impl Session {
    pub(crate) fn new(secrets: &Secrets, sends: Direction, config: SessionConfig) -> Self {
        let receives = match sends {
            Direction::ToResponder => Direction::ToInitiator,
            Direction::ToInitiator => Direction::ToResponder,
        };
        Session {
            protection: config.protection,
            local: config.local,
            plain_tags: PlainTags { sends: secrets.plain_tag(sends), receives: secrets.plain_tag(receives) },
            sealer: Sealer::new(secrets.direction(sends), config),
            opener: Opener::new(secrets.direction(receives), config),
            counters: SessionCounters::default(),
        }
    }

    /// How packets are protected.
    pub fn protection(&self) -> Protection {
        self.protection
    }
    /// The number by which frames for this session are told apart on arrival.
    pub fn local_id(&self) -> SessionId {
        self.local
    }
    /// What the CRCs behind its packets are combined with, where there is no protection.
    #[inline]
    pub fn plain_tags(&self) -> PlainTags {
        self.plain_tags
    }
    /// Whether an unprotected packet is one of this session: `residue` is its CRC XOR what stands in the place of it.
    #[inline]
    pub fn takes_plain(&self, residue: u32) -> bool {
        self.protection == Protection::Insecure && residue == self.plain_tags.receives
    }
    /// Bytes before the packet.
    pub fn header_len(&self) -> usize {
        header_len(self.protection)
    }
    /// Bytes after the packet.
    pub fn tag_len(&self) -> usize {
        overhead(self.protection) - header_len(self.protection)
    }
    /// Bytes a frame is longer than its packet.
    pub fn overhead(&self) -> usize {
        overhead(self.protection)
    }
    /// What happened so far.
    pub fn counters(&self) -> SessionCounters {
        self.counters
    }

    /// Makes a frame of the packet at `frame[header_len..len - tag_len]`, in place. Changes keys when it is time.
    ///
    /// # Errors
    ///
    /// [`SealError`]; the frame is unchanged then.
    pub fn seal(&mut self, path: PathId, frame: &mut [u8]) -> Result<(), SealError> {
        if self.protection != Protection::Insecure {
            let rotated = self.sealer.seal(path, frame, self.opener.epoch())?;
            self.counters.send_rotations += u64::from(rotated);
        }
        self.counters.sealed_packets += 1;
        Ok(())
    }

    /// Checks a frame and makes a packet of it, in place. What is no packet of this session leaves no trace but a
    /// count, and may have overwritten the body of `frame`.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(&mut self, now: Time, frame: &mut [u8]) -> Result<Opened, OpenError> {
        match self.open_uncounted(now, frame) {
            Ok(opened) => {
                self.counters.opened_packets += 1;
                Ok(opened)
            }
            Err(error) => {
                self.counters.count(&error);
                Err(error)
            }
        }
    }

    fn open_uncounted(&mut self, now: Time, frame: &mut [u8]) -> Result<Opened, OpenError> {
        if self.protection == Protection::Insecure {
            return match frame.first() {
                Some(first) if kind::PLAIN.contains(first) => Ok(Opened { path: None, body: 0..frame.len() }),
                Some(first) => Err(OpenError::Kind { found: *first }),
                None => Err(OpenError::TooShort { len: 0, needed: 1 }),
            };
        }
        let accepted = self.opener.open(now, frame)?;
        self.sealer.on_peer_opened(accepted.peer_opened);
        self.counters.receive_rotations += u64::from(accepted.rotated);
        Ok(Opened { path: Some(accepted.path), body: data::LEN..frame.len() - TAG_LEN })
    }

    /// The frame is of this session: like [`open`](Session::open), but changes nothing. For a responder that still
    /// waits for a sign that the initiator is alive.
    pub(crate) fn recognises(&self, now: Time, frame: &[u8]) -> bool {
        match self.protection {
            Protection::Insecure => false,
            Protection::AuthOnly | Protection::Encrypt => self.opener.recognises(now, frame),
        }
    }
}

/// Bytes a frame is longer than its packet.
pub const fn overhead(protection: Protection) -> usize {
    match protection {
        Protection::Insecure => 0,
        Protection::AuthOnly | Protection::Encrypt => data::LEN + TAG_LEN,
    }
}

/// Bytes of a frame before its packet.
pub const fn header_len(protection: Protection) -> usize {
    match protection {
        Protection::Insecure => 0,
        Protection::AuthOnly | Protection::Encrypt => data::LEN,
    }
}

/// An epoch as a frame carries it.
fn nibble(epoch: u64) -> u8 {
    (epoch & 15) as u8
}

/// First byte of a session's frames.
fn frame_kind(protection: Protection) -> u8 {
    match protection {
        Protection::AuthOnly => kind::AUTHENTICATED,
        Protection::Encrypt => kind::ENCRYPTED,
        Protection::Insecure => *kind::PLAIN.start(),
    }
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session")
            .field("protection", &self.protection)
            .field("local", &self.local)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
