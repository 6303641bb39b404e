//! How two processes come together: an abstract unix socket, over which the one hands the other the memory.
//!
//! Abstract sockets are of a network namespace: processes in others cannot connect, which is just who is not to. The name is
//! random and is told, with a ticket for one meeting, over a connection that has proved the cluster's key. The kernel says which
//! user is at the other end.
#![allow(unsafe_code, reason = "asks the kernel who is at the other end of a socket")]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, recvmsg, sendmsg, socket_with,
};
use rustix::rand::{GetRandomFlags, getrandom};

/// Of the layout of the memory and of what is said there. It is part of where processes meet: those of two versions do not, and
/// talk over the network.
const VERSION: u8 = 3;
/// First bytes of what is handed over.
const MAGIC: [u8; 4] = [b'P', b'W', b'N', VERSION];
/// Connections that wait to be taken.
const BACKLOG: i32 = 4096;

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // So few bytes come at once, or not at all.
    let filled = getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    if filled == N { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Which start of which kernel this is, so that addresses that two hosts have are not taken for one.
pub fn kernel() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32).map(u128::to_be_bytes)
}

/// What a meeting is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub [u8; 16]);

/// Admits to a meeting, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub [u8; 16]);

impl Ticket {
    /// A new one.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new() -> io::Result<Self> {
        random().map(Ticket)
    }
}

impl Name {
    fn address(self) -> io::Result<SocketAddrUnix> {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(SocketAddrUnix::new_abstract_name(format!("pathweave/{VERSION}/{digits}").as_bytes())?)
    }
}

fn socket() -> io::Result<OwnedFd> {
    // Packets: each is taken whole, with what comes along.
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?)
}

/// Why a process is not met.
#[derive(Debug)]
pub enum Apart {
    /// There is no such meeting here: the process is elsewhere, or gone.
    Elsewhere,
    /// It is another user's.
    OtherUser,
    /// The system does not let us.
    System(io::Error),
}

impl From<io::Error> for Apart {
    fn from(error: io::Error) -> Self {
        Apart::System(error)
    }
}

impl From<rustix::io::Errno> for Apart {
    fn from(error: rustix::io::Errno) -> Self {
        Apart::System(error.into())
    }
}

/// The process at the other end of a socket; 0 for one that has no number here.
///
/// # Errors
/// [`Apart::OtherUser`].
pub(crate) fn process_of(socket: BorrowedFd<'_>) -> Result<i32, Apart> {
    let mut found = MaybeUninit::<libc::ucred>::uninit();
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: an open socket, and room for what is asked for, of the length said.
    let found = unsafe {
        let asked =
            libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, found.as_mut_ptr().cast(), &mut len);
        if asked != 0 {
            return Err(Apart::System(io::Error::last_os_error()));
        }
        found.assume_init()
    };
    // SAFETY: asks the kernel for a number.
    if found.uid == unsafe { libc::geteuid() } { Ok(found.pid) } else { Err(Apart::OtherUser) }
}

/// A place to be met at.
#[derive(Debug)]
pub struct Meeting {
    socket: OwnedFd,
    name: Name,
}

impl Meeting {
    /// # Errors
    /// Why there is no socket.
    pub fn open() -> io::Result<Self> {
        let name = Name(random()?);
        let socket = socket()?;
        bind(&socket, &name.address()?)?;
        listen(&socket, BACKLOG)?;
        Ok(Meeting { socket, name })
    }

    /// What it is called.
    pub fn name(&self) -> Name {
        self.name
    }

    /// The next who has come, if there is one. Those of other users are sent away.
    pub fn newcomer(&self) -> Option<Newcomer> {
        loop {
            let socket = accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok()?;
            if let Ok(pid) = process_of(socket.as_fd()) {
                return Some(Newcomer { socket, pid });
            }
        }
    }
}

impl AsFd for Meeting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Who has come, and has yet to say what for.
#[derive(Debug)]
pub struct Newcomer {
    socket: OwnedFd,
    pid: i32,
}

/// What a newcomer has brought.
#[derive(Debug)]
pub enum Offer {
    /// Nothing yet.
    NotYet(Newcomer),
    /// Memory, for the lane of this ticket.
    Memory(Ticket, Brought),
    /// Nothing that makes sense.
    Nonsense,
}

/// Memory that was handed over, and the socket it came by.
#[derive(Debug)]
pub struct Brought {
    pub(crate) memory: OwnedFd,
    pub(crate) socket: OwnedFd,
    pub(crate) pid: i32,
}

impl Newcomer {
    /// Takes what it has brought.
    pub fn offer(self) -> Offer {
        let mut bytes = [0; 32];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(got) => got.bytes,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Offer::NotYet(self),
            Err(_) => return Offer::Nonsense,
        };
        let mut files = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let (Some(memory), None) = (files.next(), files.next()) else { return Offer::Nonsense };
        match bytes[..got].strip_prefix(&MAGIC).and_then(|ticket| ticket.try_into().ok()) {
            Some(ticket) => {
                Offer::Memory(Ticket(ticket), Brought { memory, socket: self.socket, pid: self.pid })
            }
            None => Offer::Nonsense,
        }
    }
}

impl AsFd for Newcomer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Goes to a meeting and hands memory over; the socket, and the process met.
///
/// # Errors
/// [`Apart`].
pub(crate) fn hand_over(name: Name, ticket: Ticket, memory: &OwnedFd) -> Result<(OwnedFd, i32), Apart> {
    let socket = socket()?;
    connect(&socket, &name.address()?).map_err(|error| match error {
        rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT => Apart::Elsewhere,
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
