//! Protection of the packets of one connection.

mod opener;
mod sealer;

#[cfg(test)]
mod tests;

use core::ops::Range;

use pathweave_units::{Duration, PathId, Time};
use thiserror::Error;

use super::hello::SessionId;
use super::key_schedule::{Direction, Secrets};
use super::layout::{TAG_LEN, data, kind};
use super::protection::Protection;
use super::window::ReplayWindow;
use opener::Opener;
use sealer::Sealer;

/// Largest number of packets protected by one key. The bound of RFC 9001, section 6.6 and appendix B.1, for packets
/// of at most 2^14 bytes is 2^23. Packets here have at most 2^14 bytes, and the number of bytes is limited as well.
pub const MAX_PACKETS_PER_KEY: u64 = 1 << 23;
/// Largest number of bytes protected by one key: 128 GiB, that is 2^33 blocks of AES.
pub const MAX_BYTES_PER_KEY: u64 = 1 << 37;

/// Memory of a packet sequence in both directions, in bytes: the next number to send, and a replay window.
pub const BYTES_A_SEQUENCE: usize =
    size_of::<u64>() + size_of::<Option<Box<ReplayWindow>>>() + size_of::<ReplayWindow>();

/// Limits after which keys rotate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Number of packets in one direction after which keys rotate. 1 to [`MAX_PACKETS_PER_KEY`] / 2.
    pub packets: u64,
    /// Number of bytes in one direction, without tags and headers, after which keys rotate. 1 to
    /// [`MAX_BYTES_PER_KEY`] / 2.
    pub bytes: u64,
    /// Time for which packets under the previous keys are accepted after the first packet under new ones. Longer than
    /// any packet stays in the network.
    pub grace: Duration,
}

impl Default for Rotation {
    /// Returns the defaults: half of the limits of a key, and one second.
    fn default() -> Self {
        Rotation {
            packets: MAX_PACKETS_PER_KEY / 2,
            bytes: MAX_BYTES_PER_KEY / 2,
            grace: Duration::from_ms(1_000),
        }
    }
}

impl Rotation {
    /// Checks the values.
    ///
    /// # Errors
    ///
    /// A message with field, value and range.
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

/// Reason why a packet cannot be sealed. All except [`SealError::KeyExhausted`] are mistakes of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SealError {
    /// The path does not exist.
    #[error("path is {path}, but the connection has {paths} paths")]
    Path {
        /// Path that was given.
        path: PathId,
        /// Number of paths that was agreed.
        paths: u16,
    },
    /// The frame has no room for header and tag.
    #[error("the frame has {len} bytes, at least {needed} are header and tag")]
    TooShort {
        /// Length of the frame.
        len: usize,
        /// Length of header and tag.
        needed: usize,
    },
    /// The peer has not adopted the present keys before they were used up. The connection is dead.
    #[error(
        "the peer has not taken up new keys; {packets} packets and {bytes} bytes are protected by the present ones"
    )]
    KeyExhausted {
        /// Packets under the present key.
        packets: u64,
        /// Bytes under the present key.
        bytes: u64,
    },
}

/// Reason why a frame is not a packet of this session. No such frame ends the connection, because anyone can send
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The frame is shorter than header and tag.
    #[error("the frame has {len} bytes, at least {needed} are header and tag")]
    TooShort {
        /// Length of the frame.
        len: usize,
        /// Length of header and tag.
        needed: usize,
    },
    /// The frame is of another kind than agreed, such as an unprotected one in a protected session.
    #[error("the frame begins with {found:#04x}, which is not what this session uses")]
    Kind {
        /// First byte of the frame.
        found: u8,
    },
    /// The frame is for another session.
    #[error("the frame is for session {found:#010x}")]
    Session {
        /// Session in the frame.
        found: u32,
    },
    /// The path does not exist.
    #[error("path is {path}, but the connection has {paths} paths")]
    Path {
        /// Path in the frame.
        path: PathId,
        /// Number of paths that was agreed.
        paths: u16,
    },
    /// The epoch's keys are expired or too far ahead.
    #[error("the frame uses keys of epoch {found} (modulo 16), which is not the present one nor a neighbour")]
    Epoch {
        /// Epoch in the frame, modulo 16.
        found: u8,
    },
    /// The packet was received before.
    #[error("packet {number} of path {path} was received before")]
    Replayed {
        /// Path in the frame.
        path: PathId,
        /// Number of the packet.
        number: u64,
    },
    /// The packet is older than the replay window.
    #[error("packet {number} of path {path} is older than the replay window")]
    TooOld {
        /// Path in the frame.
        path: PathId,
        /// Number of the packet.
        number: u64,
    },
    /// The tag is wrong.
    #[error("the tag is wrong: altered, forged, or under another key")]
    Forged,
}

/// Packet whose origin is authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Path that the sender chose. `None` without protection; then only the packet itself states the path.
    pub path: Option<PathId>,
    /// Range of the packet in the frame.
    pub body: Range<usize>,
}

/// Counters of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Packets sealed.
    pub sealed_packets: u64,
    /// Packets opened.
    pub opened_packets: u64,
    /// Key rotations of this end's sending direction.
    pub send_rotations: u64,
    /// Key rotations of the peer's sending direction.
    pub receive_rotations: u64,
    /// Frames refused as too short.
    pub rejected_short: u64,
    /// Frames refused for another kind.
    pub rejected_kind: u64,
    /// Frames refused for another session.
    pub rejected_session: u64,
    /// Frames refused for a path that does not exist.
    pub rejected_path: u64,
    /// Frames refused because their keys are expired or not yet valid.
    pub rejected_epoch: u64,
    /// Frames refused as replayed.
    pub rejected_replayed: u64,
    /// Frames refused as older than the replay window.
    pub rejected_old: u64,
    /// Frames refused for a wrong tag.
    pub rejected_forged: u64,
}

impl SessionCounters {
    /// Returns the number of all refused frames.
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

/// Values that are combined by XOR with the CRCs of a session's unprotected packets, one for each direction.
///
/// They come from the handshake, so packets of an earlier connection with the same queue pairs and addresses do not
/// match. They do not protect against an observer, to whom a packet's CRC reveals the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcSecrets {
    /// Value for packets that this end sends.
    pub sends: u32,
    /// Value for packets that this end receives.
    pub receives: u32,
}

/// Packet protection of one connection, in both directions.
///
/// A frame is `header | body | tag` in one buffer: [`header_len`](Session::header_len) bytes of room, the packet, and
/// [`tag_len`](Session::tag_len) bytes of room. [`seal`](Session::seal) fills in both and encrypts the body in place.
/// [`open`](Session::open) reverses this in place and returns the position of the body. Both lengths are constant for
/// a session, so packets of equal size give frames of equal size. Without protection both are 0, and the frame is the
/// packet.
///
/// Keys rotate automatically ([`Rotation`]), separately in each direction. The first packet under new keys informs
/// the other end, which then soon rotates its own. Each packet states the newest epoch received from the other end,
/// and an end keeps its keys until the other end has received a packet under them. A key is never used beyond
/// [`MAX_PACKETS_PER_KEY`] and [`MAX_BYTES_PER_KEY`].
pub struct Session {
    protection: Protection,
    local: SessionId,
    plain_tags: CrcSecrets,
    sealer: Sealer,
    opener: Opener,
    counters: SessionCounters,
}

/// Parameters of a session besides its secrets.
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
            plain_tags: CrcSecrets { sends: secrets.plain_tag(sends), receives: secrets.plain_tag(receives) },
            sealer: Sealer::new(secrets.direction(sends), config),
            opener: Opener::new(secrets.direction(receives), config),
            counters: SessionCounters::default(),
        }
    }

    /// Returns the protection of packets.
    pub fn protection(&self) -> Protection {
        self.protection
    }
    /// Returns the session number in frames to this end.
    pub fn local_id(&self) -> SessionId {
        self.local
    }
    /// Returns the values that are combined with the CRCs of unprotected packets.
    #[inline]
    pub fn plain_tags(&self) -> CrcSecrets {
        self.plain_tags
    }
    /// Returns true if an unprotected packet belongs to this session. `residue` is its computed CRC XOR the value in
    /// its CRC field.
    #[inline]
    pub fn is_plain_packet(&self, residue: u32) -> bool {
        self.protection == Protection::Insecure && residue == self.plain_tags.receives
    }
    /// Returns the number of bytes before the packet.
    pub fn header_len(&self) -> usize {
        header_len(self.protection)
    }
    /// Returns the number of bytes after the packet.
    pub fn tag_len(&self) -> usize {
        overhead(self.protection) - header_len(self.protection)
    }
    /// Returns the number of bytes that a frame adds to its packet.
    pub fn overhead(&self) -> usize {
        overhead(self.protection)
    }
    /// Returns the counters.
    pub fn counters(&self) -> SessionCounters {
        self.counters
    }

    /// Turns the packet at `frame[header_len..len - tag_len]` into a frame, in place. Rotates the keys if this is
    /// due.
    ///
    /// # Errors
    ///
    /// [`SealError`]. The frame is unchanged then.
    pub fn seal(&mut self, path: PathId, frame: &mut [u8]) -> Result<(), SealError> {
        if self.protection != Protection::Insecure {
            let rotated = self.sealer.seal(path, frame, self.opener.epoch())?;
            self.counters.send_rotations += u64::from(rotated);
        }
        self.counters.sealed_packets += 1;
        Ok(())
    }

    /// Checks a frame and turns it into a packet, in place. A refused frame only increments a counter; its body may
    /// be overwritten.
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

    /// Returns true if the frame belongs to this session. Like [`open`](Session::open), but without any change, for a
    /// responder that waits for evidence that the initiator is alive.
    pub(crate) fn is_authentic(&self, now: Time, frame: &[u8]) -> bool {
        match self.protection {
            Protection::Insecure => false,
            Protection::AuthOnly | Protection::Encrypt => self.opener.recognises(now, frame),
        }
    }
}

/// Returns the number of bytes that a frame adds to its packet.
pub const fn overhead(protection: Protection) -> usize {
    match protection {
        Protection::Insecure => 0,
        Protection::AuthOnly | Protection::Encrypt => data::LEN + TAG_LEN,
    }
}

/// Returns the number of bytes of a frame before its packet.
pub const fn header_len(protection: Protection) -> usize {
    match protection {
        Protection::Insecure => 0,
        Protection::AuthOnly | Protection::Encrypt => data::LEN,
    }
}

/// Returns an epoch as encoded in a frame.
fn wire_epoch(epoch: u64) -> u8 {
    (epoch & 15) as u8
}

/// Returns the first byte of a session's frames.
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
