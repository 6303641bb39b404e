//! UDP sockets of the kernel, with segmentation and receive offload.
//!
//! A device has one receive socket, whose address peers know, and one send socket for each path, whose port is an
//! input of equal-cost routing. RoCEv2 uses ports in the same way (one destination port, source ports for entropy).
//! One system call thus receives from all paths and all peers. A device with several addresses has these sockets for
//! each address, and packets from an address leave by the interface that has it.
//!
//! If file descriptors or ports run short there are fewer paths: half of those that could be opened, so that some
//! descriptors are left for the process.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use pathweave_units::PathId;
use pathweave_wire::Ecn;

use super::socket::{self, Presence, UdpSocket};
use super::sys::{self, Appetite, Attachment, Receiver};
use super::{Arrivals, Backend, Limits, Rail, Received, SendBatch, Sent, Wait, Waker};
use crate::clock::realtime_ns;

/// Number of datagrams that one receive call takes, each possibly joined from many by the kernel. Small enough that
/// their buffers stay in a second-level cache.
const RECEIVE_BATCH: usize = 8;
/// Length of the largest IP packet, up to which the kernel joins datagrams.
const RECEIVE_BYTES: usize = 65_535;
/// Largest number of datagrams of a segmented send that every kernel with segmentation supports (UDP_MAX_SEGMENTS).
const SEND_SEGMENTS: usize = 64;
/// Largest number of bytes of a segmented send: an IP packet without the longest headers.
const SEND_BYTES: usize = 65_535 - 40 - 8;
/// Default codepoint of path sockets, that of data packets.
const PATH_ECN: Ecn = Ecn::Capable0;
/// Age from which a timestamp is ignored, since the clock was probably set meanwhile.
const OLDEST_STAMP_NS: u64 = 1_000_000_000;
/// Interval between two searches for an interface that has disappeared.
const LOOK_FOR_INTERFACE: Duration = Duration::from_millis(100);

/// Source ports of the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourcePorts {
    /// Free ports that the system chooses.
    #[default]
    Any,
    /// Consecutive ports, the first one for path 0: for networks whose paths were measured by port.
    From(u16),
}

/// Configuration of a device's sockets.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Address at which peers reach it; port 0 selects any free port.
    pub bind: SocketAddr,
    /// Further addresses, each a [`Rail`] from the second on.
    pub also_bind: Vec<SocketAddr>,
    /// Number of paths to send on, 1 to 256. Each address has one socket for each path, or fewer if the system has no
    /// more.
    pub paths: u16,
    /// Source ports of the paths, the same at each address.
    pub source_ports: SourcePorts,
    /// Buffer size in bytes that is requested from the kernel for each socket. Without privileges it grants at most
    /// `net.core.rmem_max` and `wmem_max`.
    pub socket_buffer_bytes: usize,
}

/// Backend over UDP sockets.
pub struct UdpBackend {
    rails: Vec<Sockets>,
    receiver: Receiver,
    waker: Waker,
    segmentation: Segmentation,
    /// Rail and path whose socket last had no room.
    full: Option<(Rail, PathId)>,
    /// Paths at whose ports packets are received, too.
    also: Vec<(Rail, PathId, Appetite)>,
    /// Additional descriptor that ends a wait.
    watched: Option<OwnedFd>,
}

/// Sockets of one address.
struct Sockets {
    /// Socket at which all packets to the address arrive.
    inbound: UdpSocket,
    appetite: Appetite,
    /// Send socket of each path.
    outbound: Vec<UdpSocket>,
    presence: Presence,
    /// Interface by which they send; `None`: as routing decides.
    attachment: Option<Attachment>,
    /// Time of the last search for the interface.
    looked: Instant,
}

/// Segmentation of batches into datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segmentation {
    /// Done by the kernel or the adapter.
    Offloaded,
    /// Done here, with one system call for each datagram: for a kernel before 4.18, or an adapter without checksum
    /// offload.
    Here,
}

impl UdpBackend {
    /// Upper bounds on a batch: those of one send with segmentation offload.
    pub(crate) const LIMITS: Limits = Limits { batch_segments: SEND_SEGMENTS, batch_bytes: SEND_BYTES };

    /// Opens the sockets. If file descriptors or ports run short there are fewer paths, with a warning in the log.
    ///
    /// # Errors
    /// An error with the address concerned: in use, not of this machine, not permitted, or no descriptor or port left
    /// for even one path.
    pub fn open(config: &UdpConfig) -> Result<Self, (SocketAddr, io::Error)> {
        // Created before the sockets, which may take the last descriptor.
        let waker = Waker::new().map_err(|error| (config.bind, error))?;
        let addresses = std::iter::once(&config.bind).chain(&config.also_bind);
        let mut rails: Vec<Sockets> =
            addresses.map(|address| Sockets::open(*address, config)).collect::<Result<_, _>>()?;
        open_paths(&mut rails, config)?;
        let segmentation =
            if rails[0].inbound.can_segment() { Segmentation::Offloaded } else { Segmentation::Here };
        Ok(UdpBackend {
            rails,
            receiver: Receiver::new(RECEIVE_BATCH, RECEIVE_BYTES),
            waker,
            segmentation,
            full: None,
            also: Vec::new(),
            watched: None,
        })
    }

    /// Returns the sockets at which packets may arrive.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let inbound = self.rails.iter().map(|rail| rail.inbound.as_fd());
        let also = self.also.iter().map(|(rail, path, _)| self.socket(*rail, Some(*path)).as_fd());
        inbound.chain(also)
    }

    fn socket(&self, rail: Rail, path: Option<PathId>) -> &UdpSocket {
        let sockets = &self.rails[rail.index()];
        path.map_or(&sockets.inbound, |path| &sockets.outbound[path.index()])
    }

    fn send_one_by_one(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        let socket = self.socket(batch.rail, batch.path);
        for bytes in batch.bytes.chunks(batch.segment_bytes) {
            match sys::send(socket.as_fd(), batch.to, tos(batch), None, bytes) {
                Ok(_) => {}
                // Datagrams that have left stay sent; the rest is lost as if a queue were full.
                Err(error) => return judge(error),
            }
        }
        Ok(Sent::Done)
    }
}

/// Opens the paths of all rails, round robin.
fn open_paths(rails: &mut [Sockets], config: &UdpConfig) -> Result<(), (SocketAddr, io::Error)> {
    for path in 0..config.paths {
        let opened = rails.iter_mut().try_for_each(|rail| rail.open_path(path, config));
        let Err((address, error)) = opened else { continue };
        if path == 0 || !is_shortage(&error, address) {
            return Err((address, error));
        }
        let kept = (path / 2).max(1);
        log::warn!("{}: {kept} paths in place of {}: {error}", config.bind, config.paths);
        rails.iter_mut().for_each(|rail| rail.outbound.truncate(usize::from(kept)));
        break;
    }
    for rail in rails {
        // With one address, routing alone decides which interface packets use.
        if !config.also_bind.is_empty() && !rail.inbound.local_addr().ip().is_loopback() {
            rail.find_interface();
        }
    }
    Ok(())
}

/// Returns true if a socket was refused for want of a resource of which fewer sockets need less: descriptors, memory,
/// or ports if any port is acceptable.
fn is_shortage(error: &io::Error, address: SocketAddr) -> bool {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => true,
        Some(libc::EADDRINUSE) => address.port() == 0,
        _ => false,
    }
}

impl Sockets {
    /// Opens the receive socket.
    fn open(bind: SocketAddr, config: &UdpConfig) -> Result<Self, (SocketAddr, io::Error)> {
        let (inbound, presence) = open_inbound(bind, config).map_err(|error| (bind, error))?;
        inbound.prepare_to_receive().map_err(|error| (bind, error))?;
        let (appetite, looked, outbound) = (Appetite::default(), Instant::now(), Vec::new());
        Ok(Sockets { inbound, appetite, outbound, presence, attachment: None, looked })
    }

    fn open_path(&mut self, path: u16, config: &UdpConfig) -> Result<(), (SocketAddr, io::Error)> {
        let port = match config.source_ports {
            SourcePorts::Any => 0,
            SourcePorts::From(first) => first.checked_add(path).unwrap_or(0),
        };
        let address = SocketAddr::new(self.inbound.local_addr().ip(), port);
        let open = || {
            let socket = UdpSocket::bind(address, config.socket_buffer_bytes, self.presence)?;
            socket.prepare_to_send(PATH_ECN as u8)?;
            Ok(socket)
        };
        self.outbound.push(open().map_err(|error| (address, error))?);
        Ok(())
    }

    /// Binds the sockets to the interface that has the address. Without this, two interfaces in one network would
    /// both send by the first of them.
    fn find_interface(&mut self) {
        self.looked = Instant::now();
        let found = sys::attachment_of(self.inbound.local_addr().ip());
        let Some(found) = found.filter(|found| self.attachment != Some(*found)) else { return };
        let mut sockets = std::iter::once(&self.inbound).chain(&self.outbound);
        // If the system refuses, routing decides.
        if sockets.all(|socket| socket.leave_by(found.interface).is_ok()) {
            self.attachment = Some(found);
        }
    }

    /// Handles a send error. If the interface has disappeared, another may have the address now.
    #[cold]
    fn failed(&mut self, error: &io::Error) {
        let is_gone = matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO));
        if self.attachment.is_some() && is_gone && self.looked.elapsed() >= LOOK_FOR_INTERFACE {
            self.find_interface();
        }
    }
}

/// Opens the receive socket. With several addresses, the interface of one may be down; the socket works as soon as
/// the interface is up. An address that no interface has is an error.
fn open_inbound(bind: SocketAddr, config: &UdpConfig) -> io::Result<(UdpSocket, Presence)> {
    match UdpSocket::bind(bind, config.socket_buffer_bytes, Presence::Needed) {
        Err(error)
            if error.kind() == io::ErrorKind::AddrNotAvailable
                && !config.also_bind.is_empty()
                && sys::attachment_of(bind.ip()).is_some() =>
        {
            let socket = UdpSocket::bind(bind, config.socket_buffer_bytes, Presence::Awaited)?;
            Ok((socket, Presence::Awaited))
        }
        bound => bound.map(|socket| (socket, Presence::Needed)),
    }
}

/// Returns the type of service to pass to the kernel with a batch, if it differs from the socket's default.
fn tos(batch: &SendBatch<'_>) -> Option<u8> {
    let usual = if batch.path.is_some() { PATH_ECN } else { Ecn::NotCapable };
    (batch.ecn != usual).then_some(batch.ecn as u8)
}

/// Classifies a failed send.
fn judge(error: io::Error) -> io::Result<Sent> {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(Sent::Busy),
        // A full queue, a signal, or an ICMP error of an earlier packet.
        Some(libc::ENOBUFS | libc::EINTR | libc::ECONNREFUSED | libc::ENOMEM) => Ok(Sent::Done),
        // A firewall that drops, or a link that is down.
        Some(libc::EPERM | libc::ENETDOWN) => Ok(Sent::Done),
        _ => Err(error),
    }
}

/// Receives from a socket: that of a path, or the receive socket.
fn receive_at(
    receiver: &mut Receiver,
    (socket, appetite): (&UdpSocket, &mut Appetite),
    (rail, at): (Rail, Option<PathId>),
    sink: &mut dyn FnMut(Received<'_>),
) -> io::Result<Arrivals> {
    let (count, arrivals) = match receiver.receive(socket.as_fd(), appetite) {
        Ok(received) => received,
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::ENOMEM) => {
                return Ok(Arrivals::None);
            }
            // An error of one interface, which may recover.
            Some(libc::ENETDOWN | libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENODEV) => {
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
        sink(Received { from, rail, at, ecn, segment_bytes: meta.segment, bytes, age_ns });
    }
    Ok(arrivals)
}

impl Backend for UdpBackend {
    fn paths(&self) -> u16 {
        self.rails[0].outbound.len() as u16
    }

    fn local_addr(&self) -> SocketAddr {
        self.rails[0].inbound.local_addr()
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.rails.iter().map(|rail| rail.inbound.local_addr()).collect()
    }

    fn prefixes(&self) -> Vec<Option<u8>> {
        self.rails.iter().map(|rail| rail.attachment.map(|found| found.prefix)).collect()
    }

    fn rail_towards(&self, peer: SocketAddr) -> Rail {
        if self.rails.len() == 1 {
            return Rail::FIRST;
        }
        let source = socket::source_towards(peer);
        let found = self.rails.iter().position(|rail| Some(rail.inbound.local_addr().ip()) == source);
        found.map_or(Rail::FIRST, |index| Rail(index as u8))
    }

    fn limits(&self) -> Limits {
        Self::LIMITS
    }

    fn source_ports(&self) -> Vec<u16> {
        let outbound = self.rails.iter().flat_map(|rail| &rail.outbound);
        outbound.map(|socket| socket.local_addr().port()).collect()
    }

    fn receive_buffer_bytes(&self) -> Option<usize> {
        Some(self.rails[0].inbound.receive_buffer_bytes()).filter(|bytes| *bytes > 0)
    }

    fn link_mtu(&self, peer: SocketAddr) -> Option<usize> {
        socket::link_mtu(peer)
    }

    fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        let single = batch.bytes.len() <= batch.segment_bytes;
        if self.segmentation == Segmentation::Here && !single {
            return self.send_one_by_one(batch);
        }
        let socket = self.socket(batch.rail, batch.path);
        let segment = (!single).then_some(batch.segment_bytes as u16);
        match sys::send(socket.as_fd(), batch.to, tos(batch), segment, batch.bytes) {
            Ok(_) => Ok(Sent::Done),
            // The adapter (EIO) or the route (EINVAL) does not support segmentation. If single datagrams fail as
            // well, the address is unreachable instead.
            Err(error) if !single && matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => {
                let sent = self.send_one_by_one(batch);
                if sent.is_ok() {
                    self.segmentation = Segmentation::Here;
                }
                sent
            }
            Err(error) => judge(error),
        }
        .inspect(|sent| {
            if *sent == Sent::Busy {
                self.full = batch.path.map(|path| (batch.rail, path));
            }
        })
        .inspect_err(|error| self.rails[batch.rail.index()].failed(error))
    }

    fn listen_on(&mut self, rail: Rail, path: PathId) -> io::Result<()> {
        if !self.also.iter().any(|(at, known, _)| (*at, *known) == (rail, path)) {
            self.socket(rail, Some(path)).prepare_to_receive()?;
            self.also.push((rail, path, Appetite::default()));
        }
        Ok(())
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals> {
        let mut arrivals = Arrivals::None;
        for (index, rail) in self.rails.iter_mut().enumerate() {
            let from = (&rail.inbound, &mut rail.appetite);
            let at = (Rail(index as u8), None);
            arrivals = arrivals.and(receive_at(&mut self.receiver, from, at, sink)?);
        }
        for (rail, path, appetite) in &mut self.also {
            let socket = &self.rails[rail.index()].outbound[path.index()];
            let at = (*rail, Some(*path));
            arrivals = arrivals.and(receive_at(&mut self.receiver, (socket, appetite), at, sink)?);
        }
        Ok(arrivals)
    }

    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        let timeout = wait.at_most.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let full = self.full.take().filter(|_| wait.for_room);
        let waker_fd = self.waker.as_fd();
        let woken = PollFd::from_borrowed_fd(waker_fd, PollFlags::IN);
        // An unwanted descriptor is replaced by the waker, which is then polled twice.
        let room = match full {
            Some((rail, path)) => PollFd::new(self.socket(rail, Some(path)), PollFlags::OUT),
            None => woken.clone(),
        };
        let other = self.watched.as_ref().map_or(woken.clone(), |other| PollFd::new(other, PollFlags::IN));
        let count = if self.watched.is_some() { 4 } else { 2 + usize::from(wait.for_room) };
        let mut fds = [PollFd::new(&self.rails[0].inbound, PollFlags::IN), woken, room, other];
        let result = if self.also.is_empty() && self.rails.len() == 1 {
            poll(&mut fds[..count], timeout.as_ref()).map(|_| !fds[1].revents().is_empty())
        } else {
            let others = self.rails[1..].iter().map(|rail| &rail.inbound);
            let also = self.also.iter().map(|(rail, path, _)| self.socket(*rail, Some(*path)));
            let further = others.chain(also).map(|socket| PollFd::new(socket, PollFlags::IN));
            let mut all: Vec<PollFd<'_>> = fds[..count].iter().cloned().chain(further).collect();
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
