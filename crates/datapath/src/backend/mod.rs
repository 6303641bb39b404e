//! What carries packets: UDP sockets, and in crates of their own whatever passes the kernel's network stack by. The loop knows only
//! [`Backend`].

mod faulty;
mod socket;
mod sys;
mod udp;
mod wake;
mod weather;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use pathweave_units::PathId;
use pathweave_wire::Ecn;

pub use faulty::{Cuts, Faulty};
pub use udp::{SourcePorts, UdpBackend, UdpConfig};
pub use wake::Waker;
pub use weather::{Arrival, Faults, Happened, Weather};

/// One of the addresses at which a backend is reached, by number: that of a network interface, mostly. A backend that is
/// reached at one address has rail 0 alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rail(pub u8);

impl Rail {
    /// The first, whose address peers are told.
    pub const FIRST: Rail = Rail(0);

    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Datagrams of equal size (the last may be shorter) for one peer on one path.
#[derive(Clone, Copy, Debug)]
pub struct SendBatch<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// From which address, below the number of [`Backend::addresses`].
    pub rail: Rail,
    /// Which path, below [`Backend::paths`]; `None`: from the port at which peers reach the backend.
    pub path: Option<PathId>,
    /// Congestion notification codepoint of every datagram.
    pub ecn: Ecn,
    /// Bytes of each datagram but the last, which has what is left. At least 1.
    pub segment_bytes: usize,
    /// The datagrams, one behind the other. At most [`Limits::batch_bytes`] and [`Limits::batch_segments`].
    pub bytes: &'a [u8],
}

/// How a batch fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It has left, or was lost as a network loses packets.
    Done,
    /// There is no room now; wait with [`Wait::for_room`] and send it again.
    Busy,
}

/// Datagrams that arrived from one sender on one path.
#[derive(Debug)]
pub struct Received<'a> {
    /// The sender's address; its port is the path's.
    pub from: SocketAddr,
    /// At which address they arrived.
    pub rail: Rail,
    /// At which port: that of this path of ours, or, `None`, where peers usually reach the backend.
    pub at: Option<PathId>,
    /// Congestion notification codepoint.
    pub ecn: Ecn,
    /// Bytes of each datagram but the last, which has what is left.
    pub segment_bytes: usize,
    /// The datagrams, one behind the other; the receiver may write to them, for they are decrypted in place.
    pub bytes: &'a mut [u8],
    /// How long ago they arrived, in nanoseconds, if the kernel or the adapter has noted it.
    pub age_ns: Option<u64>,
}

/// What a call to receive has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Nothing.
    None,
    /// All there was.
    All,
    /// As much as one call takes; there may be more.
    More,
}

impl Arrivals {
    /// Of two places.
    #[must_use]
    pub fn and(self, other: Arrivals) -> Arrivals {
        match (self, other) {
            (Arrivals::More, _) | (_, Arrivals::More) => Arrivals::More,
            (Arrivals::None, Arrivals::None) => Arrivals::None,
            _ => Arrivals::All,
        }
    }
}

/// The largest batch a backend takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Datagrams.
    pub batch_segments: usize,
    /// Bytes of all datagrams together.
    pub batch_bytes: usize,
}

/// What to wait for besides arrivals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// The longest to wait; `None`: for ever. Zero only looks.
    pub at_most: Option<Duration>,
    /// Return when there is room again for what [`Backend::send`] had none.
    pub for_room: bool,
}

/// Carries batches of datagrams over several paths. One thread owns it.
pub trait Backend: Send {
    /// Paths it has: [`PathId`] 0 to `paths - 1`.
    fn paths(&self) -> u16;

    /// Where peers reach it.
    fn local_addr(&self) -> SocketAddr;

    /// Everywhere they do, by rail. The first is [`local_addr`](Backend::local_addr).
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.local_addr()]
    }

    /// For each of them, how many bits name the network that its interface is attached to, as far as that is known.
    fn prefixes(&self) -> Vec<Option<u8>> {
        vec![None; self.addresses().len()]
    }

    /// From which of its addresses this machine would send to `peer`.
    fn rail_towards(&self, _peer: SocketAddr) -> Rail {
        Rail::FIRST
    }

    /// The largest batch.
    fn limits(&self) -> Limits;

    /// Bytes it holds of what arrives before it drops packets, if that is known.
    fn receive_buffer_bytes(&self) -> Option<usize> {
        None
    }

    /// Source port of each path, of the first rail, then of the next, as far as they are known.
    fn source_ports(&self) -> Vec<u16> {
        Vec::new()
    }

    /// Bytes a packet may have on this machine's link towards `peer`, IP header included, if that is known.
    fn link_mtu(&self, _peer: SocketAddr) -> Option<usize> {
        None
    }

    /// From now on also receives what arrives at the port of a path, besides that at which peers usually reach it.
    ///
    /// # Errors
    /// It cannot.
    fn listen_on(&mut self, _rail: Rail, _path: PathId) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends a batch.
    ///
    /// # Errors
    /// Only what no retry can mend and what concerns one peer: no route, a datagram larger than the path takes. What
    /// a network might also do to a packet, losing it, is not an error.
    fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent>;

    /// No further batch follows for now: what was given to [`send`](Backend::send) leaves, if it has not.
    fn flush(&mut self) {}

    /// Hands what has arrived to `sink`, without waiting; at most some tens of batches, so that the caller can do other
    /// things in between.
    ///
    /// # Errors
    /// Only what makes the backend useless.
    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals>;

    /// Sleeps until something arrives, the [`Waker`] calls, or time is up. May return early.
    ///
    /// # Errors
    /// Only what makes the backend useless.
    fn wait(&mut self, wait: Wait) -> io::Result<()>;

    /// Ends a [`wait`](Backend::wait) from another thread.
    fn waker(&self) -> Waker;

    /// From now on a [`wait`](Backend::wait) also ends when this can be read. False: the backend cannot do that.
    fn watch(&mut self, _other: OwnedFd) -> bool {
        false
    }
}

impl<B: Backend + ?Sized> Backend for Box<B> {
    fn paths(&self) -> u16 {
        (**self).paths()
    }
    fn local_addr(&self) -> SocketAddr {
        (**self).local_addr()
    }
    fn addresses(&self) -> Vec<SocketAddr> {
        (**self).addresses()
    }
    fn prefixes(&self) -> Vec<Option<u8>> {
        (**self).prefixes()
    }
    fn rail_towards(&self, peer: SocketAddr) -> Rail {
        (**self).rail_towards(peer)
    }
    fn limits(&self) -> Limits {
        (**self).limits()
    }
    fn receive_buffer_bytes(&self) -> Option<usize> {
        (**self).receive_buffer_bytes()
    }
    fn source_ports(&self) -> Vec<u16> {
        (**self).source_ports()
    }
    fn link_mtu(&self, peer: SocketAddr) -> Option<usize> {
        (**self).link_mtu(peer)
    }
    fn listen_on(&mut self, rail: Rail, path: PathId) -> io::Result<()> {
        (**self).listen_on(rail, path)
    }
    fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        (**self).send(batch)
    }
    fn flush(&mut self) {
        (**self).flush();
    }
    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals> {
        (**self).receive(sink)
    }
    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        (**self).wait(wait)
    }
    fn waker(&self) -> Waker {
        (**self).waker()
    }
    fn watch(&mut self, other: OwnedFd) -> bool {
        (**self).watch(other)
    }
}
