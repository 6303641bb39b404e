//! Key schedule: derives the keys of an epoch from the secrets of a handshake (HKDF with SHA-256, RFC 5869).

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use zeroize::Zeroizing;

use super::layout::{TAG_LEN, VERSION};
use super::protection::Protection;

/// Direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToResponder,
    ToInitiator,
}

struct OutputLen(usize);

impl KeyType for OutputLen {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives key material for the purpose `info` with HKDF-Expand. `secret` must be uniformly random.
pub(crate) fn derive(secret: &[u8], info: &[&[u8]], out: &mut [u8]) {
    let prk = Prk::new_less_safe(HKDF_SHA256, secret);
    let mut labelled = vec![&b"pathweave 1 "[..]];
    labelled.extend_from_slice(info);
    prk.expand(&labelled, OutputLen(out.len()))
        .and_then(|okm| okm.fill(out))
        .expect("at most 255 blocks are asked for");
}

/// Secrets of a finished handshake: one for each direction, bound to the transcript.
pub(crate) struct Secrets {
    to_responder: Zeroizing<[u8; 32]>,
    to_initiator: Zeroizing<[u8; 32]>,
    confirm: Zeroizing<[u8; 32]>,
    plain_to_responder: u32,
    plain_to_initiator: u32,
}

impl Secrets {
    /// Derives the secrets. `split` is the final output of Noise, `transcript` its handshake hash.
    pub(crate) fn new(split: (&[u8; 32], &[u8; 32]), transcript: &[u8], protection: Protection) -> Self {
        let fill = |key: &[u8; 32], label: &[u8], out: &mut [u8]| {
            Salt::new(HKDF_SHA256, transcript)
                .extract(key)
                .expand(&[b"pathweave 1 ", label, &[VERSION, protection.code()]], OutputLen(out.len()))
                .and_then(|okm| okm.fill(out))
                .expect("at most one block is asked for");
        };
        let one = |key: &[u8; 32], label: &[u8]| {
            let mut out = Zeroizing::new([0; 32]);
            fill(key, label, &mut out[..]);
            out
        };
        let tag = |key: &[u8; 32], label: &[u8]| {
            let mut out = [0; 4];
            fill(key, label, &mut out);
            u32::from_be_bytes(out)
        };
        Secrets {
            to_responder: one(split.0, b"to responder"),
            to_initiator: one(split.1, b"to initiator"),
            confirm: one(split.0, b"confirm"),
            plain_to_responder: tag(split.0, b"plain to responder"),
            plain_to_initiator: tag(split.1, b"plain to initiator"),
        }
    }
    /// Returns the secret of the first epoch in a direction.
    pub(crate) fn direction(&self, direction: Direction) -> EpochSecret {
        EpochSecret(match direction {
            Direction::ToResponder => self.to_responder.clone(),
            Direction::ToInitiator => self.to_initiator.clone(),
        })
    }
    /// Returns the value that is combined with the CRCs of unprotected packets in a direction.
    pub(crate) fn plain_tag(&self, direction: Direction) -> u32 {
        match direction {
            Direction::ToResponder => self.plain_to_responder,
            Direction::ToInitiator => self.plain_to_initiator,
        }
    }
    /// Returns the key of the Confirm message.
    pub(crate) fn confirm_key(&self) -> &[u8; 32] {
        &self.confirm
    }
}

/// Secret of an epoch. It yields the keys of this epoch and the secret of the next, but not the previous one.
#[derive(Clone)]
pub(crate) struct EpochSecret(Zeroizing<[u8; 32]>);

impl EpochSecret {
    /// Derives the keys of this epoch.
    pub(crate) fn keys(&self) -> PacketKeys {
        let mut key = Zeroizing::new([0; 16]);
        let mut iv = Zeroizing::new([0; 12]);
        derive(&self.0[..], &[b"key"], &mut key[..]);
        derive(&self.0[..], &[b"iv"], &mut iv[..]);
        let key = UnboundKey::new(&AES_128_GCM, &key[..]).expect("16 bytes are an AES-128 key");
        let (high, low) = iv.split_first_chunk().expect("12 bytes are more than 4");
        let low = low.first_chunk().expect("8 bytes are left");
        let iv = (u32::from_be_bytes(*high), u64::from_be_bytes(*low));
        PacketKeys { aead: LessSafeKey::new(key), iv }
    }
    /// Derives the secret of the next epoch. HKDF cannot be inverted.
    pub(crate) fn next(&self) -> EpochSecret {
        let mut next = Zeroizing::new([0; 32]);
        derive(&self.0[..], &[b"next epoch"], &mut next[..]);
        EpochSecret(next)
    }
}

/// Key and initialisation vector of one direction and epoch.
pub(crate) struct PacketKeys {
    aead: LessSafeKey,
    /// Initialisation vector as two big-endian numbers, each of which is combined with a part of the nonce.
    iv: (u32, u64),
}

/// Inputs that make a packet's nonce unique under its key. The epoch is included although each epoch has its own key,
/// so that a mistake in one of them does not repeat a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NonceParts {
    pub(crate) epoch: u64,
    pub(crate) path: u16,
    pub(crate) number: u64,
}

impl PacketKeys {
    fn nonce(&self, parts: NonceParts) -> Nonce {
        let high = u32::from(parts.epoch as u16) << 16 | u32::from(parts.path);
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&(self.iv.0 ^ high).to_be_bytes());
        bytes[4..].copy_from_slice(&(self.iv.1 ^ parts.number).to_be_bytes());
        Nonce::assume_unique_for_key(bytes)
    }
    /// Encrypts `body` in place. The tag also covers `header`.
    pub(crate) fn encrypt(&self, parts: NonceParts, header: &[u8], body: &mut [u8], tag: &mut [u8]) {
        let made = self
            .aead
            .seal_in_place_separate_tag(self.nonce(parts), Aad::from(header), body)
            .expect("a datagram is far below the length limit of GCM");
        tag.copy_from_slice(made.as_ref());
    }
    /// Decrypts `body`, which ends with the tag, in place. After a failure the content of `body` must not be used.
    pub(crate) fn decrypt(
        &self,
        parts: NonceParts,
        header: &[u8],
        body: &mut [u8],
    ) -> Result<(), TagMismatch> {
        self.aead
            .open_in_place(self.nonce(parts), Aad::from(header), body)
            .map(|_| ())
            .map_err(|_| TagMismatch)
    }
    /// Computes the tag over `covered`, which stays unencrypted.
    pub(crate) fn authenticate(&self, parts: NonceParts, covered: &[u8], tag: &mut [u8]) {
        self.encrypt(parts, covered, &mut [], tag);
    }
    /// Checks the tag of [`authenticate`](Self::authenticate).
    pub(crate) fn verify(&self, parts: NonceParts, covered: &[u8], tag: &[u8]) -> Result<(), TagMismatch> {
        let mut tag: [u8; TAG_LEN] = tag.try_into().map_err(|_| TagMismatch)?;
        self.decrypt(parts, covered, &mut tag)
    }
}

/// Error for a tag that does not match key, header and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagMismatch;

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> EpochSecret {
        Secrets::new((&[1; 32], &[2; 32]), &[3; 32], Protection::Encrypt).direction(Direction::ToResponder)
    }

    #[test]
    fn no_two_packets_share_a_nonce() {
        let keys = secret().keys();
        let mut seen = std::collections::BTreeSet::new();
        let epochs = [0, 1, 255, 256, 0xffff];
        let paths = [0, 1, 255, 256, 0xffff];
        let numbers = [0, 1, 255, 1 << 16, 1 << 32, (1 << 32) + 1, 1 << 48, u64::MAX];
        for epoch in epochs {
            for path in paths {
                for number in numbers {
                    let nonce = keys.nonce(NonceParts { epoch, path, number });
                    assert!(seen.insert(*nonce.as_ref()), "epoch {epoch}, path {path}, number {number}");
                }
            }
        }
    }

    #[test]
    fn keys_differ_by_epoch_direction_mode_and_transcript() {
        let secrets = |fill, mode| Secrets::new((&[1; 32], &[1; 32]), &[fill; 32], mode);
        let one = secrets(3, Protection::Encrypt);
        let all = [
            one.direction(Direction::ToResponder),
            one.direction(Direction::ToInitiator),
            one.direction(Direction::ToResponder).next(),
            one.direction(Direction::ToResponder).next().next(),
            EpochSecret(one.confirm.clone()),
            secrets(4, Protection::Encrypt).direction(Direction::ToResponder),
            secrets(3, Protection::AuthOnly).direction(Direction::ToResponder),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().map(|secret| *secret.0).collect();
        assert_eq!(distinct.len(), all.len());
        let tags = [3, 4].map(|fill| {
            let secrets = secrets(fill, Protection::Insecure);
            [Direction::ToResponder, Direction::ToInitiator].map(|direction| secrets.plain_tag(direction))
        });
        let distinct: std::collections::BTreeSet<u32> = tags.into_iter().flatten().collect();
        assert_eq!(distinct.len(), 4, "{tags:x?}");
    }
}
