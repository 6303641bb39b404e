//! UDP sockets of the kernel, with segmentation and receive offload.
//!
//! A device has one socket for everything that arrives, whose address peers know, and one socket a path to send from:
//! its port is what equal-cost routing hashes. That is how RoCEv2 uses ports (one destination port, source ports for
//! entropy), and it means that one system call receives from all paths and all peers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use pathweave_units::PathId;
use pathweave_wire::Ecn;

use super::socket::{self, UdpSocket};
use super::sys::{self, Receiver};
use super::{Arrivals, Backend, Limits, Received, SendBatch, Sent, Wait, Waker};
use crate::clock::realtime_ns;

/// Datagrams one receive call takes, each of them perhaps many joined by the kernel. Few enough that their buffers stay
/// in a second-level cache.
const RECEIVE_BATCH: usize = 8;
/// The largest IP packet: what the kernel may join.
const RECEIVE_BYTES: usize = 65_535;
/// Datagrams a segmented send may have on every kernel that knows it (UDP_MAX_SEGMENTS).
const SEND_SEGMENTS: usize = 64;
/// Bytes a segmented send may have: an IP packet without the longest headers.
const SEND_BYTES: usize = 65_535 - 40 - 8;
/// Codepoint of most packets on paths: those of data.
const PATH_ECN: Ecn = Ecn::Capable0;
/// Stamps older than this are of a clock that was set meanwhile.
const OLDEST_STAMP_NS: u64 = 1_000_000_000;

/// Source ports of the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourcePorts {
    /// Whichever are free; the system chooses.
    #[default]
    Any,
    /// Consecutive ones, the first for path 0: for networks whose paths were measured by port.
    From(u16),
}

/// Sockets of a device.
#[derive(Clone, Copy, Debug)]
pub struct UdpConfig {
    /// Where peers reach it; port 0: any that is free.
    pub bind: SocketAddr,
    /// Paths to send on, 1 to 256.
    pub paths: u16,
    /// Their source ports.
    pub source_ports: SourcePorts,
    /// Bytes the kernel is asked to buffer for each socket. Without privileges it grants at most
    /// `net.core.rmem_max` and `wmem_max`.
    pub socket_buffer_bytes: usize,
}

/// UDP sockets.
pub struct UdpBackend {
    /// All that arrives, arrives here.
    inbound: UdpSocket,
    /// One a path.
    outbound: Vec<UdpSocket>,
    receiver: Receiver,
    waker: Waker,
    segmentation: Segmentation,
    /// Where there was no room last.
    full: Option<PathId>,
    /// Paths at whose addresses something may arrive, too.
    also: Vec<PathId>,
    /// What else ends a wait.
    watched: Option<OwnedFd>,
}

/// Who divides batches into datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segmentation {
    /// The kernel or the adapter.
    Offloaded,
    /// A system call each: a kernel before 4.18, or an adapter that cannot checksum.
    Here,
}

impl UdpBackend {
    /// The largest batch: what one send with segmentation offload holds.
    pub(crate) const LIMITS: Limits = Limits { batch_segments: SEND_SEGMENTS, batch_bytes: SEND_BYTES };

    /// Opens the sockets.
    ///
    /// # Errors
    /// With the address it was about: in use, not of this machine, not allowed.
    pub fn open(config: &UdpConfig) -> Result<Self, (SocketAddr, io::Error)> {
        let inbound =
            UdpSocket::bind(config.bind, config.socket_buffer_bytes).map_err(|error| (config.bind, error))?;
        inbound.prepare_to_receive().map_err(|error| (config.bind, error))?;
        let mut outbound = Vec::with_capacity(usize::from(config.paths));
        for path in 0..config.paths {
            let port = match config.source_ports {
                SourcePorts::Any => 0,
                SourcePorts::From(first) => first.checked_add(path).unwrap_or(0),
            };
            let address = SocketAddr::new(config.bind.ip(), port);
            let socket =
                UdpSocket::bind(address, config.socket_buffer_bytes).map_err(|error| (address, error))?;
            socket.prepare_to_send(PATH_ECN as u8).map_err(|error| (address, error))?;
            outbound.push(socket);
        }
        let segmentation = if inbound.can_segment() { Segmentation::Offloaded } else { Segmentation::Here };
        let waker = Waker::new().map_err(|error| (config.bind, error))?;
        let receiver = Receiver::new(RECEIVE_BATCH, RECEIVE_BYTES);
        Ok(UdpBackend {
            inbound,
            outbound,
            receiver,
            waker,
            segmentation,
            full: None,
            also: Vec::new(),
            watched: None,
        })
    }

    /// Source port of each path.
    pub fn source_ports(&self) -> Vec<u16> {
        self.outbound.iter().map(|socket| socket.local_addr().port()).collect()
    }

    fn socket(&self, path: Option<PathId>) -> &UdpSocket {
        path.map_or(&self.inbound, |path| &self.outbound[path.index()])
    }

    fn send_one_by_one(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        let socket = self.socket(batch.path);
        for bytes in batch.bytes.chunks(batch.segment_bytes) {
            match sys::send(socket.as_fd(), batch.to, tos(batch), None, bytes) {
                Ok(_) => {}
                // What has left has left; the rest is lost as by a full queue.
                Err(error) => return judge(error),
            }
        }
        Ok(Sent::Done)
    }
}

/// The type of service to give the kernel with a batch: what the socket has by itself need not be said.
fn tos(batch: &SendBatch<'_>) -> Option<u8> {
    let usual = if batch.path.is_some() { PATH_ECN } else { Ecn::NotCapable };
    (batch.ecn != usual).then_some(batch.ecn as u8)
}

/// What a failed send means.
fn judge(error: io::Error) -> io::Result<Sent> {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(Sent::Busy),
        // A queue that is full, a signal, and what ICMP said of packets before this one.
        Some(libc::ENOBUFS | libc::EINTR | libc::ECONNREFUSED | libc::ENOMEM) => Ok(Sent::Done),
        // Firewalls drop; a link that is down loses.
        Some(libc::EPERM | libc::ENETDOWN) => Ok(Sent::Done),
        _ => Err(error),
    }
}

/// Receives from a socket: that of a path, or the one of which peers know.
fn receive_at(
    receiver: &mut Receiver,
    socket: &UdpSocket,
    at: Option<PathId>,
    sink: &mut dyn FnMut(Received<'_>),
) -> io::Result<Arrivals> {
    let (count, arrivals) = match receiver.receive(socket.as_fd()) {
        Ok(received) => received,
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::ENOMEM) => {
                return Ok(Arrivals::None);
            }
            _ => return Err(error),
        },
    };
    let mut now_ns = None;
    for index in 0..count {
        let (meta, bytes) = receiver.get(index);
        let Some(from) = meta.from else { continue };
        if meta.truncated || meta.len == 0 {
            continue;
        }
        let age_ns = meta.stamp_ns.and_then(|stamp| {
            let now = *now_ns.get_or_insert_with(realtime_ns);
            now.checked_sub(stamp).filter(|&age| age < OLDEST_STAMP_NS)
        });
        let ecn = Ecn::from_bits(meta.tos);
        sink(Received { from, at, ecn, segment_bytes: meta.segment, bytes, age_ns });
    }
    Ok(arrivals)
}

impl Backend for UdpBackend {
    fn paths(&self) -> u16 {
        self.outbound.len() as u16
    }

    fn local_addr(&self) -> SocketAddr {
        self.inbound.local_addr()
    }

    fn limits(&self) -> Limits {
        Self::LIMITS
    }

    fn receive_buffer_bytes(&self) -> Option<usize> {
        Some(self.inbound.receive_buffer_bytes()).filter(|bytes| *bytes > 0)
    }

    fn link_mtu(&self, peer: SocketAddr) -> Option<usize> {
        socket::link_mtu(peer)
    }

    fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        let single = batch.bytes.len() <= batch.segment_bytes;
        if self.segmentation == Segmentation::Here && !single {
            return self.send_one_by_one(batch);
        }
        let socket = self.socket(batch.path);
        let segment = (!single).then_some(batch.segment_bytes as u16);
        match sys::send(socket.as_fd(), batch.to, tos(batch), segment, batch.bytes) {
            Ok(_) => Ok(Sent::Done),
            // Not on this adapter (EIO) or not with this route (EINVAL).
            Err(error) if !single && matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => {
                self.segmentation = Segmentation::Here;
                self.send_one_by_one(batch)
            }
            Err(error) => judge(error),
        }
        .inspect(|sent| {
            if *sent == Sent::Busy {
                self.full = batch.path;
            }
        })
    }

    fn listen_on(&mut self, path: PathId) -> io::Result<()> {
        if !self.also.contains(&path) {
            self.outbound[path.index()].prepare_to_receive()?;
            self.also.push(path);
        }
        Ok(())
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals> {
        let mut arrivals = receive_at(&mut self.receiver, &self.inbound, None, sink)?;
        for path in &self.also {
            let socket = &self.outbound[path.index()];
            arrivals = arrivals.and(receive_at(&mut self.receiver, socket, Some(*path), sink)?);
        }
        Ok(arrivals)
    }

    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        let timeout = wait.at_most.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let waker_fd = self.waker.as_fd();
        let woken = PollFd::from_borrowed_fd(waker_fd, PollFlags::IN);
        // Of what is not wanted the waker takes the place: it is looked at once more.
        let room = match self.full.take().filter(|_| wait.for_room) {
            Some(path) => PollFd::new(&self.outbound[path.index()], PollFlags::OUT),
            None => woken.clone(),
        };
        let other = self.watched.as_ref().map_or(woken.clone(), |other| PollFd::new(other, PollFlags::IN));
        let count = if self.watched.is_some() { 4 } else { 2 + usize::from(wait.for_room) };
        let mut fds = [PollFd::new(&self.inbound, PollFlags::IN), woken, room, other];
        let result = if self.also.is_empty() {
            poll(&mut fds[..count], timeout.as_ref()).map(|_| !fds[1].revents().is_empty())
        } else {
            let also = self.also.iter().map(|path| PollFd::new(&self.outbound[path.index()], PollFlags::IN));
            let mut all: Vec<PollFd<'_>> = fds[..count].iter().cloned().chain(also).collect();
            poll(&mut all, timeout.as_ref()).map(|_| !all[1].revents().is_empty())
        };
        match result {
            Ok(true) => {
                self.waker.clear();
                Ok(())
            }
            Ok(false) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn watch(&mut self, other: OwnedFd) -> bool {
        self.watched = Some(other);
        true
    }
}
