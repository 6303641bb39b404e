//! Processes of this host, whose memory this one copies: one copy by the kernel in place of packets.
//!
//! Each process says in its greeting which one it is and where its cookie is. The other end reads the cookie there, now
//! and with each copy, so that it reads no other process. It copies from processes of its own user only, and of an
//! address of its own network. The kernel may refuse in addition (Yama, seccomp, a container). Packets are used then.
#![allow(unsafe_code, reason = "names memory by address, here and in another process")]

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::Mutex;

use pathweave_shm::{Proof, boot_id, copy_proven};

use crate::lock;
use crate::record::{Cookie, new_cookie};

/// Bytes of an identity.
const IDENTITY_BYTES: usize = 28;

/// Cookies of this process. A peer that claims to be this process is believed if it names one of them.
static OWN_COOKIES: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Returns a cookie that stays where it is.
pub(crate) fn lasting_cookie() -> &'static Cookie {
    let cookie: &'static Cookie = Box::leak(Box::new(new_cookie()));
    lock(&OWN_COOKIES).push(cookie.as_ptr() as u64);
    cookie
}

/// A process as others of its host find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    boot: [u8; 16],
    pid: i32,
    /// Address of the cookie.
    address: u64,
}

/// Another process of this host, whose memory may be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pid: i32,
    proof: Proof,
}

/// Reason why a process's memory is not copied.
#[derive(Debug)]
pub(crate) enum Apart {
    /// The process is on another host, or does not offer memory.
    Elsewhere,
    /// The process is on this host, and packets are used for this reason.
    Refused(String),
}

impl Identity {
    /// Returns this process's identity with this cookie.
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

    /// Returns the process whose memory may be copied, if it has this cookie and its packets come from this host.
    pub(crate) fn reach(&self, own: &Identity, cookie: &Cookie, from: IpAddr) -> Result<Neighbour, Apart> {
        if self.boot != own.boot || UdpSocket::bind((from, 0)).is_err() {
            return Err(Apart::Elsewhere);
        }
        let pid = self.pid;
        let unseen = || Apart::Refused(format!("process {pid} of this host is not visible to this one"));
        if pid <= 0 || pid == own.pid && !lock(&OWN_COOKIES).contains(&self.address) {
            return Err(unseen());
        }
        let found = Neighbour { pid, proof: Proof { address: self.address, bytes: *cookie } };
        // SAFETY: no byte is written.
        match unsafe { found.copy(NonNull::dangling().as_ptr(), 0, self.address) } {
            Ok(()) => found.of_same_user(own.pid),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unseen()),
            Err(error) => Err(Apart::Refused(found.refusal(&error))),
        }
    }
}

impl Neighbour {
    /// Copies memory of the process.
    ///
    /// # Safety
    /// The bytes at `to` are not otherwise in use during the call.
    pub(crate) unsafe fn copy(&self, to: *mut u8, bytes: usize, address: u64) -> io::Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { copy_proven(self.pid, &self.proof, to, bytes, address) }
    }

    /// The superuser could be made to read any process.
    fn of_same_user(self, own: i32) -> Result<Self, Apart> {
        let user = |pid: i32| std::fs::metadata(format!("/proc/{pid}")).map(|process| process.uid());
        match (user(self.pid), user(own)) {
            (Ok(theirs), Ok(mine)) if theirs == mine => Ok(self),
            (Ok(theirs), Ok(mine)) => {
                let pid = self.pid;
                Err(Apart::Refused(format!(
                    "process {pid} belongs to user {theirs}, this one to user {mine}"
                )))
            }
            (Err(error), _) | (_, Err(error)) => Err(Apart::Refused(self.refusal(&error))),
        }
    }

    /// Describes a copy that has failed.
    pub(crate) fn refusal(&self, error: &io::Error) -> String {
        format!("the kernel does not copy from process {}: {error}", self.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(outcome: Result<Neighbour, Apart>) -> String {
        match outcome {
            Err(Apart::Refused(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_process_is_reached_with_its_cookie_from_this_host_only() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let cookie = lasting_cookie();
        let own = Identity::own(cookie).unwrap();
        assert_eq!(Identity::decode(&own.encode()), Some(own));
        assert_eq!(Identity::decode(&[]), None);
        assert_eq!(own.reach(&own, cookie, here).unwrap().pid, std::process::id() as i32);
        assert!(refused(own.reach(&own, &[8; 16], here)).contains("not visible"), "another has the number");
        let elsewhere = Identity { boot: [1; 16], ..own };
        assert!(matches!(elsewhere.reach(&own, cookie, here), Err(Apart::Elsewhere)));
        let remote = IpAddr::from([192, 0, 2, 1]);
        assert!(matches!(own.reach(&own, cookie, remote), Err(Apart::Elsewhere)));
        // This process has the bytes there, but they are no cookie of its own.
        let forged = Box::new([9; 16]);
        let own_memory = Identity { address: forged.as_ptr() as u64, ..own };
        assert!(refused(own_memory.reach(&own, &forged, here)).contains("not visible"));
        for pid in [0, -1, i32::MAX] {
            assert!(refused(Identity { pid, ..own }.reach(&own, cookie, here)).contains("not visible"));
        }
    }
}
