//! Sending half of a session.

use pathweave_units::PathId;

use super::super::key_schedule::{EpochSecret, NonceParts, PacketKeys};
use super::super::layout::{TAG_LEN, data};
use super::super::protection::Protection;
use super::{
    MAX_BYTES_PER_KEY, MAX_PACKETS_PER_KEY, Rotation, SealError, SessionConfig, frame_kind, wire_epoch,
};

/// Evidence that the peer has received the present keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerHasKeys {
    Yes,
    NotYet,
}

pub(super) struct Sealer {
    protection: Protection,
    remote: u32,
    rotation: Rotation,
    epoch: u64,
    /// State for the present epoch. After the peer has opened a packet of this epoch, it can open one of the next.
    reached: PeerHasKeys,
    secret: EpochSecret,
    keys: PacketKeys,
    /// Packets and bytes sealed under the present key.
    packets: u64,
    bytes: u64,
    /// Next packet number of each path. The numbers continue across epochs.
    numbers: Vec<u64>,
}

impl Sealer {
    pub(super) fn new(secret: EpochSecret, config: SessionConfig) -> Self {
        Sealer {
            protection: config.protection,
            remote: config.remote.0,
            rotation: config.rotation,
            epoch: 0,
            reached: PeerHasKeys::Yes,
            keys: secret.keys(),
            secret,
            packets: 0,
            bytes: 0,
            numbers: vec![0; usize::from(config.paths)],
        }
    }

    /// Seals a packet. `opened_epoch` is the newest epoch that the peer has used. Returns true if the keys changed.
    pub(super) fn seal(
        &mut self,
        path: PathId,
        frame: &mut [u8],
        opened_epoch: u64,
    ) -> Result<bool, SealError> {
        let paths = self.numbers.len() as u16;
        let number = *self.numbers.get(path.index()).ok_or(SealError::Path { path, paths })?;
        let needed = data::LEN + TAG_LEN;
        let Some(body) = frame.len().checked_sub(needed) else {
            return Err(SealError::TooShort { len: frame.len(), needed });
        };
        let rotated = self.rotate_if_due(body as u64, opened_epoch)?;

        let (header, rest) = frame.split_at_mut(data::LEN);
        header[data::KIND] = frame_kind(self.protection);
        header[data::EPOCH] = wire_epoch(self.epoch) << 4 | wire_epoch(opened_epoch);
        header[data::PATH..data::TO].copy_from_slice(&path.0.to_be_bytes());
        header[data::TO..data::NUMBER].copy_from_slice(&self.remote.to_be_bytes());
        header[data::NUMBER..].copy_from_slice(&(number as u32).to_be_bytes());
        let parts = NonceParts { epoch: self.epoch, path: path.0, number };
        match self.protection {
            Protection::Encrypt => {
                let (body, tag) = rest.split_at_mut(body);
                self.keys.encrypt(parts, header, body, tag);
            }
            Protection::AuthOnly | Protection::Insecure => {
                let (covered, tag) = frame.split_at_mut(data::LEN + body);
                self.keys.authenticate(parts, covered, tag);
            }
        }
        self.numbers[path.index()] = number + 1;
        self.packets += 1;
        self.bytes += body as u64;
        Ok(rotated)
    }

    /// Rotates the keys if a limit is reached or the peer has rotated its own, but only if the peer has opened a
    /// packet under the present ones. The peer is therefore never two rotations behind (RFC 9001, section 6.1).
    /// Refuses a packet that would exceed a key's limits.
    fn rotate_if_due(&mut self, bytes: u64, opened_epoch: u64) -> Result<bool, SealError> {
        let due = self.packets >= self.rotation.packets
            || self.bytes >= self.rotation.bytes
            || self.epoch < opened_epoch;
        if due && self.reached == PeerHasKeys::Yes {
            self.advance();
            return Ok(true);
        }
        if self.packets >= MAX_PACKETS_PER_KEY || self.bytes + bytes > MAX_BYTES_PER_KEY {
            return Err(SealError::KeyExhausted { packets: self.packets, bytes: self.bytes });
        }
        Ok(false)
    }

    /// Records the newest of our epochs that the peer has opened, modulo 16, as stated in its packet. It is never
    /// ahead of us, and a packet that could be opened is never 16 epochs late.
    pub(super) fn on_peer_opened(&mut self, epoch_nibble: u8) {
        if epoch_nibble == wire_epoch(self.epoch) {
            self.reached = PeerHasKeys::Yes;
        }
    }

    fn advance(&mut self) {
        self.secret = self.secret.next();
        self.keys = self.secret.keys();
        self.epoch += 1;
        self.reached = PeerHasKeys::NotYet;
        self.packets = 0;
        self.bytes = 0;
    }

    /// Returns the present epoch.
    #[cfg(test)]
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
    /// Simulates a present key that has reached its limit.
    #[cfg(test)]
    pub(super) fn exhaust_key(&mut self) {
        self.packets = MAX_PACKETS_PER_KEY;
    }
}
