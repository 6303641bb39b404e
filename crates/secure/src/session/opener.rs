//! Receiving half of a session.

use pathweave_units::{Duration, PathId, Time};

use super::super::key_schedule::{EpochSecret, NonceParts, PacketKeys, TagMismatch};
use super::super::layout::{TAG_LEN, data};
use super::super::protection::Protection;
use super::super::window::{ReplayCheck, ReplayWindow};
use super::{OpenError, SessionConfig, frame_kind, wire_epoch};

pub(super) struct Opener {
    protection: Protection,
    local: u32,
    grace: Duration,
    epoch: u64,
    previous: Option<Previous>,
    present: PacketKeys,
    /// Keys of the next epoch, derived ahead, so that a forged packet with the next epoch costs no key derivation.
    next: PacketKeys,
    next_secret: EpochSecret,
    /// Replay window of each path, created when the path's first packet arrives.
    windows: Vec<Option<Box<ReplayWindow>>>,
}

struct Previous {
    keys: PacketKeys,
    until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EpochAge {
    Previous,
    Present,
    Next,
}

/// Properties of an accepted packet.
pub(super) struct Accepted {
    pub(super) path: PathId,
    /// True if the packet was the first under new keys.
    pub(super) rotated: bool,
    /// Newest of our epochs that the peer has opened, modulo 16.
    pub(super) peer_opened: u8,
}

/// Frame that is a packet if its tag is valid.
struct ParsedFrame {
    path: PathId,
    peer_opened: u8,
    number: u64,
    age: EpochAge,
    epoch: u64,
}

impl Opener {
    pub(super) fn new(secret: EpochSecret, config: SessionConfig) -> Self {
        let next_secret = secret.next();
        Opener {
            protection: config.protection,
            local: config.local.0,
            grace: config.rotation.grace,
            epoch: 0,
            previous: None,
            present: secret.keys(),
            next: next_secret.keys(),
            next_secret,
            windows: (0..config.paths).map(|_| None).collect(),
        }
    }

    /// Returns the newest epoch that the peer has used.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Opens a frame in place.
    pub(super) fn open(&mut self, now: Time, frame: &mut [u8]) -> Result<Accepted, OpenError> {
        let candidate = self.parse_and_precheck(now, frame)?;
        self.check(&candidate, frame).map_err(|TagMismatch| OpenError::Forged)?;
        let window =
            self.windows[candidate.path.index()].get_or_insert_with(|| Box::new(ReplayWindow::new()));
        window.insert(candidate.number);
        let rotated = candidate.age == EpochAge::Next;
        if rotated {
            self.advance(now);
        }
        Ok(Accepted { path: candidate.path, rotated, peer_opened: candidate.peer_opened })
    }

    pub(super) fn recognises(&self, now: Time, frame: &[u8]) -> bool {
        let mut copy = frame.to_vec();
        self.parse_and_precheck(now, frame).is_ok_and(|candidate| self.check(&candidate, &mut copy).is_ok())
    }

    /// Performs all checks that need no cryptography.
    fn parse_and_precheck(&self, now: Time, frame: &[u8]) -> Result<ParsedFrame, OpenError> {
        let needed = data::LEN + TAG_LEN;
        if frame.len() < needed {
            return Err(OpenError::TooShort { len: frame.len(), needed });
        }
        let header: &[u8; data::LEN] = frame[..data::LEN].try_into().expect("just measured");
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
        if header[data::KIND] != frame_kind(self.protection) {
            return Err(OpenError::Kind { found: header[data::KIND] });
        }
        let session = word(data::TO);
        if session != self.local {
            return Err(OpenError::Session { found: session });
        }
        let path = PathId(u16::from_be_bytes([header[data::PATH], header[data::PATH + 1]]));
        let paths = self.windows.len() as u16;
        let window = self.windows.get(path.index()).ok_or(OpenError::Path { path, paths })?;
        let (age, epoch) = self.age(now, header[data::EPOCH] >> 4)?;
        let low = word(data::NUMBER);
        let (number, seen) = match window {
            Some(window) => {
                let number = window.full_number(low);
                (number, window.check(number))
            }
            None => (u64::from(low), ReplayCheck::New),
        };
        match seen {
            ReplayCheck::New => {
                Ok(ParsedFrame { path, peer_opened: header[data::EPOCH] & 15, number, age, epoch })
            }
            ReplayCheck::Replayed => Err(OpenError::Replayed { path, number }),
            ReplayCheck::TooOld => Err(OpenError::TooOld { path, number }),
        }
    }

    fn age(&self, now: Time, low: u8) -> Result<(EpochAge, u64), OpenError> {
        match low.wrapping_sub(wire_epoch(self.epoch)) & 15 {
            0 => Ok((EpochAge::Present, self.epoch)),
            1 => Ok((EpochAge::Next, self.epoch + 1)),
            15 if self.previous.as_ref().is_some_and(|previous| now < previous.until) => {
                Ok((EpochAge::Previous, self.epoch - 1))
            }
            _ => Err(OpenError::Epoch { found: low }),
        }
    }

    fn check(&self, candidate: &ParsedFrame, frame: &mut [u8]) -> Result<(), TagMismatch> {
        let keys = match candidate.age {
            EpochAge::Previous => &self.previous.as_ref().ok_or(TagMismatch)?.keys,
            EpochAge::Present => &self.present,
            EpochAge::Next => &self.next,
        };
        let parts = NonceParts { epoch: candidate.epoch, path: candidate.path.0, number: candidate.number };
        match self.protection {
            Protection::Encrypt => {
                let (header, body) = frame.split_at_mut(data::LEN);
                keys.decrypt(parts, header, body)
            }
            Protection::AuthOnly | Protection::Insecure => {
                let (covered, tag) = frame.split_at(frame.len() - TAG_LEN);
                keys.verify(parts, covered, tag)
            }
        }
    }

    fn advance(&mut self, now: Time) {
        self.next_secret = self.next_secret.next();
        let after = self.next_secret.keys();
        let present = core::mem::replace(&mut self.next, after);
        let keys = core::mem::replace(&mut self.present, present);
        self.previous = Some(Previous { keys, until: now.saturating_add(self.grace) });
        self.epoch += 1;
    }
}
