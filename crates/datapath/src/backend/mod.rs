//! Packet I/O: UDP sockets, and kernel-bypass backends in separate crates. The loop depends on [`Backend`] only.

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
pub use weather::{Arrival, FaultCounters, FaultModel, Faults};

/// Number of a backend's address, which usually is that of a network interface. A backend with one address has rail 0
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rail(pub u8);

impl Rail {
    /// The first rail, whose address is the one given to peers.
    pub const FIRST: Rail = Rail(0);

    /// Returns the number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Datagrams of equal size (the last may be shorter) for one peer on one path.
#[derive(Clone, Copy, Debug)]
pub struct SendBatch<'a> {
    /// Destination address.
    pub to: SocketAddr,
    /// Number of the source address, below the number of [`Backend::addresses`].
    pub rail: Rail,
    /// Path, below [`Backend::paths`]; `None`: the port at which peers reach the backend.
    pub path: Option<PathId>,
    /// Congestion notification codepoint of every datagram.
    pub ecn: Ecn,
    /// Length of each datagram in bytes, except for the last, which has the rest. At least 1.
    pub segment_bytes: usize,
    /// The datagrams, one after the other. At most [`Limits::batch_bytes`] and [`Limits::batch_segments`].
    pub bytes: &'a [u8],
}

/// Result of sending a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The batch has left, or was lost as a network loses packets.
    Done,
    /// There is no room now; wait with [`Wait::for_room`] and send it again.
    Busy,
}

/// Datagrams that arrived from one sender on one path.
#[derive(Debug)]
pub struct Received<'a> {
    /// Address of the sender; its port is that of the path.
    pub from: SocketAddr,
    /// Rail at which they arrived.
    pub rail: Rail,
    /// Local path at whose port they arrived; `None`: the port at which peers usually reach the backend.
    pub at: Option<PathId>,
    /// Congestion notification codepoint.
    pub ecn: Ecn,
    /// Length of each datagram in bytes, except for the last, which has the rest.
    pub segment_bytes: usize,
    /// The datagrams, one after the other. The receiver may overwrite them, since they are decrypted in place.
    pub bytes: &'a mut [u8],
    /// Time since their arrival in nanoseconds, if the kernel or the adapter has recorded it.
    pub age_ns: Option<u64>,
}

/// Result of a receive call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Nothing has arrived.
    None,
    /// Everything that had arrived was received.
    All,
    /// One call's maximum was received; there may be more.
    More,
}

impl Arrivals {
    /// Combines the results of two sources.
    #[must_use]
    pub fn and(self, other: Arrivals) -> Arrivals {
        match (self, other) {
            (Arrivals::More, _) | (_, Arrivals::More) => Arrivals::More,
            (Arrivals::None, Arrivals::None) => Arrivals::None,
            _ => Arrivals::All,
        }
    }
}

/// Upper bounds on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of datagrams.
    pub batch_segments: usize,
    /// Largest number of bytes of all datagrams together.
    pub batch_bytes: usize,
}

/// Conditions that end a wait, besides arrivals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// Longest time to wait; `None`: unlimited. Zero only polls.
    pub at_most: Option<Duration>,
    /// True to return when there is room again for a batch that [`Backend::send`] refused.
    pub for_room: bool,
}

/// Interface that carries batches of datagrams over several paths. One thread owns it.
pub trait Backend: Send {
    /// Returns the number of paths; their [`PathId`]s are 0 to `paths - 1`.
    fn paths(&self) -> u16;

    /// Returns the address at which peers reach it.
    fn local_addr(&self) -> SocketAddr;

    /// Returns all addresses at which peers reach it, by rail. The first is [`local_addr`](Backend::local_addr).
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.local_addr()]
    }

    /// Returns the prefix length of each address's network, as far as known.
    fn prefixes(&self) -> Vec<Option<u8>> {
        vec![None; self.addresses().len()]
    }

    /// Returns the rail from which this machine would send to `peer`.
    fn rail_towards(&self, _peer: SocketAddr) -> Rail {
        Rail::FIRST
    }

    /// Returns the upper bounds on a batch.
    fn limits(&self) -> Limits;

    /// Returns the size of the receive buffer in bytes, beyond which arrivals are dropped, if known.
    fn receive_buffer_bytes(&self) -> Option<usize> {
        None
    }

    /// Returns the source port of each path as far as known, first those of the first rail, then of the next.
    fn source_ports(&self) -> Vec<u16> {
        Vec::new()
    }

    /// Returns the MTU of this machine's link towards `peer` in bytes, IP header included, if known.
    fn link_mtu(&self, _peer: SocketAddr) -> Option<usize> {
        None
    }

    /// Starts to receive at the port of a path, too, besides the port at which peers usually reach the backend.
    ///
    /// # Errors
    /// The backend does not support it, or the system refuses.
    fn listen_on(&mut self, _rail: Rail, _path: PathId) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends a batch.
    ///
    /// # Errors
    /// Only errors that no retry can resolve and that concern one peer: no route, a datagram larger than the path's
    /// MTU. A loss, which a network can cause as well, is not an error.
    fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent>;

    /// Announces that no further batch follows for now: batches given to [`send`](Backend::send) leave, if they have
    /// not.
    fn flush(&mut self) {}

    /// Passes arrivals to `sink`, without waiting; at most some tens of batches, so that the caller can do other work
    /// in between.
    ///
    /// # Errors
    /// Only errors that make the backend unusable.
    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals>;

    /// Sleeps until something arrives, the [`Waker`] is called, or the time has passed. May return early.
    ///
    /// # Errors
    /// Only errors that make the backend unusable.
    fn wait(&mut self, wait: Wait) -> io::Result<()>;

    /// Returns a handle that ends a [`wait`](Backend::wait) from another thread.
    fn waker(&self) -> Waker;

    /// Adds a descriptor that ends a [`wait`](Backend::wait) when it is readable. Returns false if the backend cannot
    /// do that.
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
