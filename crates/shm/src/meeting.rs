//! Set-up of a lane: an abstract Unix socket over which one process hands the memory to the other.
//!
//! Abstract sockets belong to a network namespace, so processes in other namespaces cannot connect, as intended. The
//! socket's name is random. It is sent, with a ticket for one set-up, over a connection that has proved the cluster's
//! key. The kernel reports the user at the other end.
#![allow(unsafe_code, reason = "asks the kernel for the user at the other end of a socket")]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, recvmsg, sendmsg, socket_with,
};
use rustix::rand::{GetRandomFlags, getrandom};

/// Version of the memory layout and of the protocol. It is part of the socket's name, so processes of different
/// versions do not connect and use the network.
const VERSION: u8 = 3;
/// First bytes of the message that hands over the memory.
const MAGIC: [u8; 4] = [b'P', b'W', b'N', VERSION];
/// Backlog of the socket.
const BACKLOG: i32 = 4096;

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // A request of this size is filled completely or fails.
    let filled = getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    if filled == N { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Returns the boot id of the kernel, which distinguishes hosts that have the same addresses.
pub fn boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32).map(u128::to_be_bytes)
}

/// Name of a meeting's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerName(pub [u8; 16]);

/// Secret that admits one peer to a meeting once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub [u8; 16]);

impl Ticket {
    /// Creates a random ticket.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new() -> io::Result<Self> {
        random().map(Ticket)
    }
}

impl ListenerName {
    fn address(self) -> io::Result<SocketAddrUnix> {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(SocketAddrUnix::new_abstract_name(format!("pathweave/{VERSION}/{digits}").as_bytes())?)
    }
}

fn socket() -> io::Result<OwnedFd> {
    // A seqpacket socket delivers each message whole, with its descriptors.
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?)
}

/// Reason why two processes cannot share memory.
#[derive(Debug)]
pub enum CannotShare {
    /// No socket of this name exists here: the process is on another host or in another namespace, or gone.
    NotFound,
    /// The process belongs to another user.
    OtherUser,
    /// The system reported an error.
    System(io::Error),
}

impl From<io::Error> for CannotShare {
    fn from(error: io::Error) -> Self {
        CannotShare::System(error)
    }
}

impl From<rustix::io::Errno> for CannotShare {
    fn from(error: rustix::io::Errno) -> Self {
        CannotShare::System(error.into())
    }
}

/// Returns the id of the process at the other end of a socket. 0 for a process without an id in our namespace.
///
/// # Errors
/// [`CannotShare::OtherUser`], or an error of the system.
pub(crate) fn process_of(socket: BorrowedFd<'_>) -> Result<i32, CannotShare> {
    let mut found = MaybeUninit::<libc::ucred>::uninit();
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: the socket is open, and the buffer has space for the result of the given length.
    let found = unsafe {
        let asked =
            libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, found.as_mut_ptr().cast(), &mut len);
        if asked != 0 {
            return Err(CannotShare::System(io::Error::last_os_error()));
        }
        found.assume_init()
    };
    // SAFETY: the call returns a number and has no preconditions.
    if found.uid == unsafe { libc::geteuid() } { Ok(found.pid) } else { Err(CannotShare::OtherUser) }
}

/// Socket on which this process accepts offers of lanes.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    name: ListenerName,
}

impl Listener {
    /// # Errors
    /// If the socket cannot be created.
    pub fn open() -> io::Result<Self> {
        let name = ListenerName(random()?);
        let socket = socket()?;
        bind(&socket, &name.address()?)?;
        listen(&socket, BACKLOG)?;
        Ok(Listener { socket, name })
    }

    /// Returns the name of the socket.
    pub fn name(&self) -> ListenerName {
        self.name
    }

    /// Accepts the next connection, if there is one. Connections of other users are closed.
    pub fn newcomer(&self) -> Option<PendingPeer> {
        loop {
            let socket = accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok()?;
            if let Ok(pid) = process_of(socket.as_fd()) {
                return Some(PendingPeer { socket, pid });
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Accepted connection that has not made its offer yet.
#[derive(Debug)]
pub struct PendingPeer {
    socket: OwnedFd,
    pid: i32,
}

/// Result of receiving an offer.
#[derive(Debug)]
pub enum Offer {
    /// The offer has not arrived yet.
    NotYet(PendingPeer),
    /// Memory for the lane of this ticket.
    Memory(Ticket, OfferedMemory),
    /// The message is invalid.
    Invalid,
}

/// Memory that was handed over, with the socket that carried it.
#[derive(Debug)]
pub struct OfferedMemory {
    pub(crate) memory: OwnedFd,
    pub(crate) socket: OwnedFd,
    pub(crate) pid: i32,
}

impl PendingPeer {
    /// Receives the offer.
    pub fn offer(self) -> Offer {
        let mut bytes = [0; 32];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(got) => got.bytes,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Offer::NotYet(self),
            Err(_) => return Offer::Invalid,
        };
        let mut files = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let (Some(memory), None) = (files.next(), files.next()) else { return Offer::Invalid };
        match bytes[..got].strip_prefix(&MAGIC).and_then(|ticket| ticket.try_into().ok()) {
            Some(ticket) => {
                Offer::Memory(Ticket(ticket), OfferedMemory { memory, socket: self.socket, pid: self.pid })
            }
            None => Offer::Invalid,
        }
    }
}

impl AsFd for PendingPeer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Connects to a meeting and hands over the memory. Returns the socket and the id of the peer process.
///
/// # Errors
/// [`CannotShare`].
pub(crate) fn hand_over(
    name: ListenerName,
    ticket: Ticket,
    memory: &OwnedFd,
) -> Result<(OwnedFd, i32), CannotShare> {
    let socket = socket()?;
    connect(&socket, &name.address()?).map_err(|error| match error {
        rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT => CannotShare::NotFound,
        other => other.into(),
    })?;
    let pid = process_of(socket.as_fd())?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(ticket.0);
    let files = [memory.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok((socket, pid))
}
