//! Processes of this host, whose memory this one copies: one copy by the kernel in place of packets.
//!
//! A sender names its memory in a frame; the receiver copies it and answers. Each process proves which one it is: the
//! other end reads its cookie where the greeting says that it is. If that fails, or a copy does, packets are used.
#![allow(unsafe_code, reason = "names memory by address, here and in another process")]

use pathweave_collective::Target;
use pathweave_shm::boot_id;

use crate::record::Cookie;

/// Bytes of an identity.
const IDENTITY_BYTES: usize = 28;

/// A process as others of its host find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    boot: [u8; 16],
    pid: i32,
    /// Address of the cookie.
    address: u64,
}

impl Identity {
    /// Returns this process's identity; its cookie stays where it is.
    pub(crate) fn own(cookie: &'static Cookie) -> Option<Self> {
        pathweave_shm::permit_sibling_access();
        let pid = i32::try_from(std::process::id()).ok()?;
        Some(Identity { boot: boot_id()?, pid, address: cookie.as_ptr() as u64 })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.boot.to_vec();
        bytes.extend(self.pid.to_le_bytes());
        bytes.extend(self.address.to_le_bytes());
        bytes
    }

    /// Parses an identity; `None` if a peer gives none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; IDENTITY_BYTES] = bytes.try_into().ok()?;
        Some(Identity {
            boot: *bytes.first_chunk()?,
            pid: i32::from_le_bytes(bytes[16..20].try_into().ok()?),
            address: u64::from_le_bytes(bytes[20..28].try_into().ok()?),
        })
    }

    /// Returns the process whose memory may be copied, if it is on this host and has this cookie.
    pub(crate) fn reached(&self, own: &Identity, cookie: &Cookie) -> Option<i32> {
        let mut found = [0; 16];
        // SAFETY: the array is memory of this call.
        let copied = unsafe { copy(self.pid, found.as_mut_ptr(), found.len(), self.address) };
        (self.boot == own.boot && copied && found == *cookie).then_some(self.pid)
    }
}

/// Copies memory of another process. Returns false if the kernel does not.
///
/// # Safety
/// The memory is not otherwise in use during the call.
pub(crate) unsafe fn copy(pid: i32, to: *mut u8, bytes: usize, address: u64) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { pathweave_shm::copy_from_process(pid, &[(to as usize, bytes)], address) }.is_ok()
}

/// Frame between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// The bytes for this token are there to be copied.
    Fetch { token: u32, number: u64, address: u64, bytes: u64 },
    /// They were copied.
    Fetched { number: u64 },
    /// They could not be copied.
    Failed { number: u64 },
}

/// First bytes of notes, which no frame of the engine has.
const FETCH: u8 = 0xf0;
const FETCHED: u8 = 0xf1;
const FAILED: u8 = 0xf2;

impl Note {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, numbers): (u8, &[u64]) = match self {
            Note::Fetch { token, number, address, bytes } => {
                (FETCH, &[*number, u64::from(*token), *address, *bytes])
            }
            Note::Fetched { number } => (FETCHED, &[*number]),
            Note::Failed { number } => (FAILED, &[*number]),
        };
        let mut to = vec![kind];
        numbers.iter().for_each(|number| to.extend(number.to_le_bytes()));
        to
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (words, odd) = rest.as_chunks::<8>();
        let word = |index: usize| words.get(index).map(|word| u64::from_le_bytes(*word));
        if !odd.is_empty() {
            return None;
        }
        let number = word(0)?;
        match (kind, words.len()) {
            (&FETCH, 4) => {
                let token = u32::try_from(word(1)?).ok()?;
                Some(Note::Fetch { token, number, address: word(2)?, bytes: word(3)? })
            }
            (&FETCHED, 1) => Some(Note::Fetched { number }),
            (&FAILED, 1) => Some(Note::Failed { number }),
            _ => None,
        }
    }
}

/// An own WRITE that a neighbour carries out by a copy.
pub(crate) struct Offered {
    pub(crate) peer: pathweave_collective::PeerId,
    /// Memory, which lives until the neighbour has copied it.
    pub(crate) memory: pathweave_datapath::Slice,
    pub(crate) target: Target,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_identities_come_back() {
        for note in [
            Note::Fetch { token: u32::MAX, number: 5, address: 1 << 60, bytes: 7 },
            Note::Fetched { number: 1 },
            Note::Failed { number: u64::MAX },
        ] {
            let bytes = note.encode();
            assert_eq!(Note::decode(&bytes), Some(note));
            assert!((0..bytes.len()).all(|len| Note::decode(&bytes[..len]).is_none()));
        }
        assert_eq!(Note::decode(&[1; 33]), None);
        let cookie: &'static Cookie = Box::leak(Box::new([9; 16]));
        let own = Identity::own(cookie).unwrap();
        assert_eq!(Identity::decode(&own.encode()), Some(own));
        assert_eq!(own.reached(&own, cookie), Some(std::process::id() as i32));
        assert_eq!(own.reached(&own, &[8; 16]), None, "another process has the number");
        let elsewhere = Identity { boot: [1; 16], ..own };
        assert_eq!(elsewhere.reached(&own, cookie), None);
        assert_eq!(Identity::decode(&[]), None);
    }
}
