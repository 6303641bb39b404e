//! Datapath backend over AF_XDP sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::ether::frame::{ETHERNET, FrameAddresses, Mac, Template, parse};
use crate::ether::{Counters, Delivery, Interface, InterfaceError, Neighbours};
use pathweave_datapath::OpenError;
use pathweave_datapath::backend::{
    Arrivals, Backend, Limits, Rail, Received, SendBatch, Sent, UdpBackend, Wait, Waker,
};
use pathweave_linux::bpf::{Link, XdpMode};
use pathweave_linux::netlink::Netlink;
use pathweave_units::PathId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::xdp::config::XdpConfig;
use crate::xdp::error::XdpError;
use crate::xdp::socket::{FlushResult, Opened, Queue, QueueConfig, Transfer};
use crate::xdp::stamp;
use crate::xdp::steering::Steering;

/// Largest number of frames that one receive call takes from a queue.
const RECEIVE_BATCH: usize = 64;
/// Number of receive calls between two checks of the kernel's sockets, while nothing arrives on them.
const LOOKS_AT_KERNEL: u32 = 32;
/// Largest number of queues with a socket. Packets of further queues go through the kernel.
const MOST_QUEUES: u32 = 32;
/// Interval at which a full send ring is checked, as nothing signals that it has space.
const LOOK_FOR_ROOM: Duration = Duration::from_micros(100);
/// Time for which the kernel's sockets carry packets after the interface was found down.
const DOWN_FOR: Duration = Duration::from_millis(100);

/// Backend over AF_XDP sockets on one network interface.
pub struct XdpBackend {
    /// Queues of the interface. The first one also sends.
    queues: Vec<Queue>,
    attachment: Attachment,
    udp: UdpBackend,
    interface: Interface,
    local: SocketAddr,
    /// Source port of each path.
    ports: Vec<u16>,
    neighbours: Neighbours,
    counters: Counters,
    /// Ports of paths on which packets are received as well.
    path_ports: Vec<(u16, PathId)>,
    state: State,
    /// True if packets may have arrived at the kernel's sockets.
    kernel_may_have_packets: bool,
    receive_calls: u32,
    /// Further descriptor that ends a wait.
    watched: Option<OwnedFd>,
    busy_poll: bool,
}

/// XDP program attached to the interface.
struct Attachment {
    steering: Steering,
    link: Link,
    mode: XdpMode,
}

/// State of the interface for sending frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    DownUntil(Instant),
    /// The interface was removed.
    Removed,
}

impl XdpBackend {
    /// Opens sockets on all queues of the interface and attaches the program that steers the device's packets to
    /// them.
    ///
    /// # Errors
    /// [`XdpError`], with the remedy in its text.
    pub fn open(config: &XdpConfig) -> Result<Self, XdpError> {
        let several = config.udp.also_bind.len();
        if several > 0 {
            return Err(XdpError::SeveralAddresses { count: 1 + several });
        }
        let doing = "open a netlink socket";
        let mut netlink = Netlink::open().map_err(|why| system(doing, &why))?;
        let interface = Interface::find(&mut netlink, &config.interface)?;
        let mut udp = config.udp.clone();
        udp.bind.set_ip(interface.address(udp.bind.ip())?);
        let udp = UdpBackend::open(&udp).map_err(|(address, why)| OpenError::of_socket(address, why))?;
        let local = udp.local_addr();

        let most = interface.queues.min(MOST_QUEUES);
        let steering = Steering::load(local, most)
            .map_err(|why| attach_error(&interface, "load an XDP program", why))?;
        // As long as there are no sockets, the program passes all packets to the kernel.
        let attached = steering.attach(interface.index);
        let (link, mode) = attached.map_err(|why| attach_error(&interface, "attach an XDP program", why))?;
        let mut queues = Vec::new();
        for queue in 0..most {
            let config = QueueConfig {
                interface: interface.index,
                queue,
                frame_bytes: interface.mtu_bytes as usize + ETHERNET,
                receive_bytes: config.udp.socket_buffer_bytes,
                sends: queue == 0,
                busy_poll: config.busy_poll,
            };
            let Opened::Queue(opened) =
                Queue::open(&config).map_err(|why| socket_error(&interface, &config, why))?
            else {
                break;
            };
            let doing = "give packets to an AF_XDP socket";
            steering.set_socket(queue, opened.as_fd()).map_err(|why| system(doing, &why))?;
            queues.push(*opened);
        }
        Ok(XdpBackend {
            queues,
            attachment: Attachment { steering, link, mode },
            ports: udp.source_ports(),
            udp,
            neighbours: Neighbours::new(netlink, interface.index),
            interface,
            local,
            counters: Counters::default(),
            path_ports: Vec::new(),
            state: State::Up,
            kernel_may_have_packets: true,
            receive_calls: 0,
            watched: None,
            busy_poll: config.busy_poll.is_some(),
        })
    }

    /// Returns a description of the interface: mode, transfer, queues.
    pub fn describe(&self) -> String {
        let mode = match self.attachment.mode {
            XdpMode::Driver => "in the driver",
            XdpMode::Generic => "behind the driver",
        };
        let transfer = match self.transfer() {
            Transfer::ZeroCopy => "without a copy",
            Transfer::Copy => "copied by the kernel",
        };
        let queues = match self.queues.len() {
            1 => "1 queue".to_owned(),
            count => format!("{count} queues"),
        };
        format!("AF_XDP on {}, {mode}, packets {transfer}, {queues}", self.interface.name)
    }

    /// Returns how packets get into this process's memory.
    pub fn transfer(&self) -> Transfer {
        self.queues.first().map_or(Transfer::Copy, Queue::transfer)
    }

    /// Returns the backend's counters, which can be read while it runs.
    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// Returns the number of packets dropped for lack of space since the backend was opened.
    pub fn dropped(&self) -> u64 {
        self.queues.iter().map(Queue::dropped).sum()
    }

    /// Detaches the program from the interface. From then on all packets arrive at the kernel's sockets.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn detach(&self) -> io::Result<()> {
        self.attachment.link.detach()
    }

    fn is_up(&mut self, now: Instant) -> bool {
        if let State::DownUntil(until) = self.state
            && until <= now
        {
            self.state = State::Up;
        }
        self.state == State::Up
    }

    fn send_by_kernel(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        self.counters.sent_by_kernel();
        self.udp.send(batch)
    }

    /// Sends frames to a next hop. Returns `None` if frames cannot be built.
    fn send_frames(&mut self, batch: &SendBatch<'_>, to_mac: Mac) -> Option<Sent> {
        let port =
            batch.path.map_or(Some(self.local.port()), |path| self.ports.get(path.index()).copied())?;
        let from = SocketAddr::new(self.local.ip(), port);
        let ends = FrameAddresses { from_mac: self.interface.mac, to_mac, from, to: batch.to };
        let template = Template::new(ends, batch.ecn)?;
        if template.len() + batch.segment_bytes.min(batch.bytes.len())
            > self.interface.mtu_bytes as usize + ETHERNET
        {
            return None;
        }
        let count = batch.bytes.len().div_ceil(batch.segment_bytes);
        let queue = self.queues.first_mut()?;
        if queue.room(count) < count {
            return Some(Sent::Busy);
        }
        for datagram in batch.bytes.chunks(batch.segment_bytes) {
            queue.send(|out| template.write(datagram, out));
        }
        self.counters.sent(count as u64);
        Some(Sent::Done)
    }
}

impl Backend for XdpBackend {
    fn paths(&self) -> u16 {
        self.udp.paths()
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn source_ports(&self) -> Vec<u16> {
        self.ports.clone()
    }

    fn limits(&self) -> Limits {
        self.udp.limits()
    }

    fn receive_buffer_bytes(&self) -> Option<usize> {
        let of_queue = self.queues.iter().map(Queue::receive_bytes).min();
        of_queue.into_iter().chain(self.udp.receive_buffer_bytes()).min()
    }

    fn link_mtu(&self, peer: SocketAddr) -> Option<usize> {
        self.udp.link_mtu(peer)
    }

    fn listen_on(&mut self, rail: Rail, path: PathId) -> io::Result<()> {
        self.udp.listen_on(rail, path)?;
        let Some(port) = self.ports.get(path.index()).copied() else { return Ok(()) };
        if !self.path_ports.iter().any(|(_, known)| *known == path) {
            self.attachment.steering.add_port(port)?;
            self.path_ports.push((port, path));
        }
        Ok(())
    }

    fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        let now = Instant::now();
        if !self.is_up(now) {
            return self.send_by_kernel(batch);
        }
        match self.neighbours.delivery_to(batch.to.ip(), now) {
            // The kernel decides about batches that do not fit a frame.
            Delivery::Direct(mac) => match self.send_frames(batch, mac) {
                Some(sent) => Ok(sent),
                None => self.send_by_kernel(batch),
            },
            Delivery::Kernel => self.send_by_kernel(batch),
        }
    }

    fn flush(&mut self) {
        let Some(queue) = self.queues.first_mut() else { return };
        match queue.flush() {
            FlushResult::Done => {}
            FlushResult::Down => self.state = State::DownUntil(Instant::now() + DOWN_FOR),
            FlushResult::Gone => self.state = State::Removed,
        }
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals> {
        let XdpBackend { queues, local, path_ports: also, counters, busy_poll, .. } = self;
        let (mut received, mut stamped, mut more, mut now_ns) = (0, 0, false, None);
        for queue in queues {
            if *busy_poll {
                queue.poll_driver();
            }
            let count = queue.receive(RECEIVE_BATCH, |frame, arrived_ns| {
                let parsed = match parse(frame) {
                    Ok(parsed) => parsed,
                    Err(flaw) => return counters.flawed(flaw),
                };
                let at = if parsed.to == *local {
                    None
                } else {
                    let path = also.iter().find(|(port, _)| *port == parsed.to.port());
                    let Some((_, path)) = path.filter(|_| parsed.to.ip() == local.ip()) else {
                        return counters.foreign();
                    };
                    Some(*path)
                };
                let bytes = &mut frame[parsed.datagram];
                if !bytes.is_empty() {
                    let age_ns = arrived_ns.and_then(|arrived_ns| {
                        stamped += 1;
                        stamp::age_ns(arrived_ns, *now_ns.get_or_insert_with(stamp::now_ns))
                    });
                    let (from, ecn, segment_bytes) = (parsed.from, parsed.ecn, bytes.len());
                    sink(Received { from, rail: Rail::FIRST, at, ecn, segment_bytes, bytes, age_ns });
                }
            });
            received += count;
            more |= count == RECEIVE_BATCH;
        }
        self.counters.received(received as u64);
        self.counters.stamped(stamped);
        let past_kernel = match received {
            0 => Arrivals::None,
            _ if more => Arrivals::More,
            _ => Arrivals::All,
        };
        self.receive_calls = self.receive_calls.wrapping_add(1);
        if !self.kernel_may_have_packets && !self.receive_calls.is_multiple_of(LOOKS_AT_KERNEL) {
            return Ok(past_kernel);
        }
        let mut batches = 0;
        let by_kernel = self.udp.receive(&mut |received| {
            batches += 1;
            sink(received);
        })?;
        self.counters.received_by_kernel(batches);
        self.kernel_may_have_packets = by_kernel != Arrivals::None;
        Ok(past_kernel.and(by_kernel))
    }

    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        self.flush();
        let at_most = match wait.for_room {
            true => Some(wait.at_most.unwrap_or(LOOK_FOR_ROOM).min(LOOK_FOR_ROOM)),
            false => wait.at_most,
        };
        let timeout = at_most.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let waker = self.udp.waker();
        let gone = self.state == State::Removed;
        let queues = self.queues.iter().filter(|_| !gone).map(|queue| PollFd::new(queue, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = queues.collect();
        let of_queues = all.len();
        all.extend(self.udp.descriptors().map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
        let of_sockets = all.len();
        all.push(PollFd::from_borrowed_fd(waker.as_fd(), PollFlags::IN));
        all.extend(self.watched.iter().map(|other| PollFd::new(other, PollFlags::IN)));
        match poll(&mut all, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        let is_gone = all[..of_queues].iter().any(|queue| queue.revents().intersects(broken));
        let kernel_has = all[of_queues..of_sockets].iter().any(|socket| !socket.revents().is_empty());
        if !all[of_sockets].revents().is_empty() {
            waker.clear();
        }
        self.kernel_may_have_packets |= kernel_has || gone;
        if is_gone {
            self.state = State::Removed;
        }
        Ok(())
    }

    fn waker(&self) -> Waker {
        self.udp.waker()
    }

    fn watch(&mut self, other: OwnedFd) -> bool {
        self.watched = Some(other);
        true
    }
}

fn system(doing: &'static str, why: &io::Error) -> XdpError {
    XdpError::System { doing, why: why.to_string() }
}

/// Returns the error for a program that could not be loaded or attached.
fn attach_error(interface: &Interface, doing: &'static str, why: io::Error) -> XdpError {
    let name = || interface.name.clone();
    match why.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => XdpError::Permission { doing },
        Some(libc::EBUSY | libc::EEXIST) => XdpError::Taken { interface: name() },
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => XdpError::NoXdp { interface: name(), why },
        Some(libc::EINVAL | libc::ERANGE | libc::E2BIG) if needs_several_pieces(interface) => {
            XdpError::Mtu { interface: name(), mtu_bytes: interface.mtu_bytes }
        }
        Some(libc::EINVAL) => XdpError::NoXdp { interface: name(), why },
        _ => system(doing, &why),
    }
}

/// Returns the error for a socket that could not be opened or bound.
fn socket_error(interface: &Interface, config: &QueueConfig, why: io::Error) -> XdpError {
    let doing = "open an AF_XDP socket";
    match why.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => XdpError::NoSockets,
        Some(libc::ENOMEM | libc::ENOBUFS) => XdpError::Memory { bytes: config.receive_bytes },
        Some(libc::ENETDOWN) => InterfaceError::Down { interface: interface.name.clone() }.into(),
        _ => attach_error(interface, doing, why),
    }
}

/// Returns true if the largest packets, with the space that XDP needs, exceed a page.
fn needs_several_pieces(interface: &Interface) -> bool {
    const ONE_PAGE: usize = 3_498;
    interface.mtu_bytes as usize > ONE_PAGE
}
