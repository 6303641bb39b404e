//! UDP sockets of the kernel, with segmentation and receive offload.
//!
//! A device has one socket for everything that arrives, whose address peers know, and one socket a path to send from:
//! its port is what equal-cost routing hashes. That is how RoCEv2 uses ports (one destination port, source ports for
//! entropy), and it means that one system call receives from all paths and all peers. A device with several addresses has
//! these sockets for each of them, and what leaves from an address leaves by the interface that has it.
//!
//! Where descriptors or ports run short there are fewer paths: half of those that could be had, so that some are left for what the
//! process opens next.

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
/// Between two looks for an interface that has gone.
const LOOK_FOR_INTERFACE: Duration = Duration::from_millis(100);

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
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Where peers reach it; port 0: any that is free.
    pub bind: SocketAddr,
    /// Where else, each a [`Rail`] from the second on.
    pub also_bind: Vec<SocketAddr>,
    /// Paths to send on, 1 to 256; there are so many sockets for each address, or fewer where the system has no more.
    pub paths: u16,
    /// Their source ports, the same at each address.
    pub source_ports: SourcePorts,
    /// Bytes the kernel is asked to buffer for each socket. Without privileges it grants at most
    /// `net.core.rmem_max` and `wmem_max`.
    pub socket_buffer_bytes: usize,
}

/// UDP sockets.
pub struct UdpBackend {
    rails: Vec<Sockets>,
    receiver: Receiver,
    waker: Waker,
    segmentation: Segmentation,
    /// Where there was no room last.
    full: Option<(Rail, PathId)>,
    /// Paths at whose ports something may arrive, too.
    also: Vec<(Rail, PathId, Appetite)>,
    /// What else ends a wait.
    watched: Option<OwnedFd>,
}

/// Those of one address.
struct Sockets {
    /// All that arrives at the address, arrives here.
    inbound: UdpSocket,
    appetite: Appetite,
    /// One a path.
    outbound: Vec<UdpSocket>,
    presence: Presence,
    /// By which interface they send; `None`: as routing says.
    attachment: Option<Attachment>,
    /// When that was last looked for.
    looked: Instant,
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

    /// Opens the sockets: fewer than asked for where descriptors or ports run short, which a line of the log tells.
    ///
    /// # Errors
    /// With the address it was about: in use, not of this machine, not allowed, or no descriptor or port left for a single path.
    pub fn open(config: &UdpConfig) -> Result<Self, (SocketAddr, io::Error)> {
        // Before the sockets, which may take the last descriptor.
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

    /// The sockets at which packets may arrive.
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
                // What has left has left; the rest is lost as by a full queue.
                Err(error) => return judge(error),
            }
        }
        Ok(Sent::Done)
    }
}

/// Opens the paths of all rails, one of each in turn.
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
        // Where there is one address, routing alone says where packets leave.
        if !config.also_bind.is_empty() && !rail.inbound.local_addr().ip().is_loopback() {
            rail.find_interface();
        }
    }
    Ok(())
}

/// Whether a socket was refused for want of something that fewer sockets need less of: descriptors, memory, or ports where any
/// would do.
fn is_shortage(error: &io::Error, address: SocketAddr) -> bool {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => true,
        Some(libc::EADDRINUSE) => address.port() == 0,
        _ => false,
    }
}

impl Sockets {
    /// That at which all arrives.
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

    /// Sends by the interface that has the address. Otherwise two interfaces of one network would send by the first of them.
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

    /// A packet could not leave. If the interface is not there, another may have the address now.
    #[cold]
    fn failed(&mut self, error: &io::Error) {
        let is_gone = matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO));
        if self.attachment.is_some() && is_gone && self.looked.elapsed() >= LOOK_FOR_INTERFACE {
            self.find_interface();
        }
    }
}

/// The socket of which peers know. Of several addresses one may be that of an interface which is down: it takes part as soon as
/// the interface is up. An address that no interface has is a mistake.
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
            // Of one interface, which may come back.
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
            // Not on this adapter (EIO) or not with this route (EINVAL), unless single ones do not leave either: then the
            // address is not there.
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
        // Of what is not wanted the waker takes the place: it is looked at once more.
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
