//! Datapath backend over a DPDK port.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::ether::frame::{ETHERNET, FrameAddresses, MAX_HEADERS, Mac, Template, parse};
use crate::ether::{Counters, FrameResult};
use pathweave_datapath::backend::{Arrivals, Backend, Limits, Rail, Received, SendBatch, Sent, Wait, Waker};
use pathweave_units::PathId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use crate::dpdk::config::{Device, DpdkConfig};
use crate::dpdk::eal::{Port, PortConfig, start};
use crate::dpdk::error::DpdkError;
use crate::dpdk::memif;
use crate::dpdk::memory::choose;
use crate::dpdk::reach::{Forwarding, KernelReach, NeighbourResolution, OwnReach, left_until};
use crate::dpdk::vdev::Vdev;

/// Number of frames that each queue of a port holds.
const QUEUE_FRAMES: u16 = 1_024;
/// Size in bytes of each ring of a memif, if frames are so long that [`QUEUE_FRAMES`] of them would take more. Both
/// ends cycle through all of this memory, which should stay in a cache.
const MEMIF_BYTES: usize = 2 << 20;
/// Smallest number of frames in a ring of a memif, for frames of any length. It exceeds the number that waits at
/// either end.
const LEAST_MEMIF_FRAMES: usize = 256;
/// Size of a VLAN tag in bytes, which a received frame may carry before it is dropped.
const VLAN_TAG: usize = 4;
/// Largest number of bytes that packet sockets put in front of a frame in their memory.
const PACKET_HEADER: usize = 128;
/// Size of a cache line in bytes. The room of a frame is a multiple of it.
const CACHE_LINE: usize = 64;
/// Granularity in bytes of the memory of packet sockets. The driver assumes that it has no gaps, so frames take half
/// a page or whole pages.
const PAGE: usize = 4_096;
/// Largest frame in bytes. DPDK counts the room of a frame, with 128 bytes in front of it, in 16 bits.
const MOST_FRAME_BYTES: usize = (65_535 - 128) / PAGE * PAGE - PACKET_HEADER;
/// Number of frames after which a receive call returns.
const FRAMES_A_CALL: usize = 128;
/// Number of receive calls between two checks of the kernel's sockets, while nothing arrives on them.
const LOOKS_AT_KERNEL: u32 = 32;
/// Shortest sleep between two checks of the port.
const SHORTEST_NAP: Duration = Duration::from_micros(20);
/// Timer slack of a waiting thread in nanoseconds. The system's default is 50 us.
const SLACK_NS: u64 = 1_000;
/// Longest sleep between two checks of the port.
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// Divisor of the idle time that gives the length of a sleep. Waiting delays an answer by no more than this fraction
/// of it.
const SLEEP_DIVISOR: u32 = 8;
/// Interval between two checks of the link.
const LOOK_AT_LINK: Duration = Duration::from_millis(20);
/// Interval between two attempts to connect, each of which takes about 30 ms.
const CONNECT_AGAIN: Duration = Duration::from_millis(200);

/// Backend over a port of DPDK.
pub struct DpdkBackend {
    port: Port,
    reach: NeighbourResolution,
    local: SocketAddr,
    mac: Mac,
    mtu_bytes: u32,
    /// Number of frames that the port holds. More are dropped, or their sender waits.
    queue_frames: usize,
    /// Source port of each path.
    ports: Vec<u16>,
    counters: Counters,
    /// Ports of paths on which packets are received as well.
    path_ports: Vec<(u16, PathId)>,
    /// True if packets may have arrived at the kernel's sockets.
    kernel_may_have_packets: bool,
    receive_calls: u32,
    /// Further descriptor that ends a wait.
    watched: Option<OwnedFd>,
    idle_since: Instant,
    looked_at_link: Instant,
    was_up: bool,
    connected: Instant,
    name: String,
}

impl DpdkBackend {
    /// Starts DPDK, unless this process already has, and opens a port.
    ///
    /// # Errors
    /// [`DpdkError`], with the remedy in its text.
    pub fn open(config: &DpdkConfig) -> Result<Self, DpdkError> {
        let several = config.udp.also_bind.len();
        if several > 0 {
            return Err(DpdkError::SeveralAddresses { count: 1 + several });
        }
        let frame_bytes = config.mtu_bytes as usize + ETHERNET + VLAN_TAG;
        if frame_bytes > MOST_FRAME_BYTES {
            let most_bytes = (MOST_FRAME_BYTES - ETHERNET - VLAN_TAG) as u32;
            let device = "DPDK".to_owned();
            return Err(DpdkError::Mtu { device, mtu_bytes: config.mtu_bytes, most_bytes });
        }
        let interface = kernel_interface(&config.device)?;
        let kernel = interface.map(|name| open_kernel(name, config)).transpose()?;
        let local = match &kernel {
            Some(_) => None,
            None => Some(own_address(config)?),
        };
        let (device, frame_bytes) = with_memory_arguments(&config.device, frame_bytes);
        let port = PortConfig { frame_bytes, mtu_bytes: config.mtu_bytes, queue_frames: QUEUE_FRAMES };
        start(&device, choose(config.huge_pages, port.pool_bytes())?)?;
        if let Device::Vdev(vdev) = &device {
            memif::remove_stale_socket(vdev);
        }
        let port = Port::open(&device, port)?;
        let random = RandomState::new().hash_one(std::process::id());
        let mac = if has_own_mac(&config.device, port.mac()) { port.mac() } else { random_mac(random) };
        let reach = match (kernel, local) {
            (Some(kernel), _) => NeighbourResolution::Kernel(kernel),
            (None, Some(local)) => NeighbourResolution::Own(OwnReach::new(local, mac, &config.udp, random)?),
            (None, None) => return Err(DpdkError::NoAddress { device: name_of(&config.device) }),
        };
        let now = Instant::now();
        Ok(DpdkBackend {
            port,
            local: reach.local_addr(),
            ports: reach.source_ports(),
            kernel_may_have_packets: matches!(reach, NeighbourResolution::Kernel(_)),
            reach,
            mac,
            mtu_bytes: config.mtu_bytes,
            queue_frames: queue_frames(&device),
            counters: Counters::default(),
            path_ports: Vec::new(),
            receive_calls: 0,
            watched: None,
            idle_since: now,
            looked_at_link: now,
            was_up: false,
            connected: now,
            name: name_of(&config.device),
        })
    }

    /// Returns a description of the opened port.
    pub fn describe(&self) -> String {
        let neighbours = match &self.reach {
            NeighbourResolution::Kernel(kernel) => format!("beside the kernel's {}", kernel.interface.name),
            NeighbourResolution::Own(_) => format!("at {}, unknown to the kernel", self.local.ip()),
        };
        format!("DPDK's {}, {neighbours}", self.name)
    }

    /// Returns the backend's counters, which can be read while it runs.
    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// Returns the number of received packets dropped for lack of space since the port was opened, if the driver
    /// counts them.
    pub fn dropped(&self) -> u64 {
        self.port.missed()
    }

    /// Returns the Ethernet address of the port.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Returns true if the link is up.
    pub fn is_up(&self) -> bool {
        self.port.is_up()
    }

    fn send_by_kernel(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        self.counters.sent_by_kernel();
        match self.reach.kernel() {
            Some(kernel) => kernel.udp.send(batch),
            None => Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
        }
    }

    /// Sends frames to a next hop. Returns `None` if frames cannot be built.
    fn send_frames(&mut self, batch: &SendBatch<'_>, to_mac: Mac) -> Option<Sent> {
        let port =
            batch.path.map_or(Some(self.local.port()), |path| self.ports.get(path.index()).copied())?;
        let from = SocketAddr::new(self.local.ip(), port);
        let template =
            Template::new(FrameAddresses { from_mac: self.mac, to_mac, from, to: batch.to }, batch.ecn)?;
        let longest = template.len() + batch.segment_bytes.min(batch.bytes.len());
        if longest > self.mtu_bytes as usize + ETHERNET {
            return None;
        }
        let count = batch.bytes.len().div_ceil(batch.segment_bytes);
        if !self.port.has_room(count) {
            return Some(Sent::Busy);
        }
        for datagram in batch.bytes.chunks(batch.segment_bytes) {
            self.port.send(|out| template.write(datagram, out));
        }
        self.counters.sent(count as u64);
        if self.port.waiting() >= self.port.burst() {
            self.flush();
        }
        Some(Sent::Done)
    }

    /// Sends a frame without a datagram, if there is space. A peer that needs it asks again.
    fn send_frame(&mut self, frame: &[u8]) {
        if self.port.has_room(1) {
            self.port.send(|out| {
                out.get_mut(..frame.len())?.copy_from_slice(frame);
                Some(frame.len())
            });
        }
    }

    /// Checks the link. When it comes up, announces our address. If it is down, reconnects ports that do not
    /// reconnect themselves.
    fn poll_link(&mut self, now: Instant) {
        if now.saturating_duration_since(self.looked_at_link) < LOOK_AT_LINK {
            return;
        }
        self.looked_at_link = now;
        let is_up = self.port.is_up();
        if is_up != self.was_up {
            self.was_up = is_up;
            if let Some(announcement) = self.reach.on_link_change(is_up) {
                self.send_frame(&announcement);
                self.flush();
            }
        }
        if !is_up && now.saturating_duration_since(self.connected) >= CONNECT_AGAIN {
            self.connected = now;
            self.port.reconnect();
        }
    }

    /// Sleeps until a descriptor other than the port is readable or the time is over. Returns true if one is
    /// readable.
    fn sleep(&mut self, time: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        shorten_naps();
        let waker = self.reach.waker();
        let mut all = vec![PollFd::from_borrowed_fd(waker.as_fd(), PollFlags::IN)];
        all.extend(self.watched.iter().map(|other| PollFd::new(other, PollFlags::IN)));
        let first_socket = all.len();
        all.extend(self.reach.sockets().map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
        match poll(&mut all, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let (any, kernel_has) = (all.iter().any(is_ready), all[first_socket..].iter().any(is_ready));
        if is_ready(&all[0]) {
            waker.clear();
        }
        self.kernel_may_have_packets |= kernel_has;
        Ok(any)
    }

    fn receive_by_port(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> Arrivals {
        let DpdkBackend { port, reach, local, mac, path_ports: also, counters, .. } = self;
        let mut received = 0;
        let mut answers = Vec::new();
        let more = loop {
            let count = port.receive(|frame| {
                let parsed = match parse(frame) {
                    Ok(parsed) => parsed,
                    Err(flaw) => {
                        return match reach.handle_frame(frame) {
                            FrameResult::Message(answer) => answers.extend(answer),
                            FrameResult::Other | FrameResult::Flawed(_) => counters.flawed(flaw),
                        };
                    }
                };
                let is_for_us = parsed.to.ip() == local.ip() && frame.starts_with(mac);
                let at = if is_for_us && parsed.to.port() == local.port() {
                    None
                } else {
                    let path = also.iter().find(|(port, _)| *port == parsed.to.port());
                    let Some((_, path)) = path.filter(|_| is_for_us) else { return counters.foreign() };
                    Some(*path)
                };
                let bytes = &mut frame[parsed.datagram];
                if !bytes.is_empty() {
                    let (from, ecn, segment_bytes) = (parsed.from, parsed.ecn, bytes.len());
                    sink(Received { from, rail: Rail::FIRST, at, ecn, segment_bytes, bytes, age_ns: None });
                }
            });
            received += count;
            let more = count == port.burst();
            if !more || received >= FRAMES_A_CALL {
                break more;
            }
        };
        for answer in answers {
            self.send_frame(&answer);
        }
        self.counters.received(received as u64);
        match received {
            0 => Arrivals::None,
            _ if more => Arrivals::More,
            _ => Arrivals::All,
        }
    }
}

impl Backend for DpdkBackend {
    fn paths(&self) -> u16 {
        self.ports.len() as u16
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn source_ports(&self) -> Vec<u16> {
        self.ports.clone()
    }

    fn limits(&self) -> Limits {
        Limits { batch_segments: Port::MOST_FRAMES, batch_bytes: 65_535 - MAX_HEADERS }
    }

    fn receive_buffer_bytes(&self) -> Option<usize> {
        Some(self.queue_frames * self.mtu_bytes as usize)
    }

    fn link_mtu(&self, peer: SocketAddr) -> Option<usize> {
        match &self.reach {
            NeighbourResolution::Kernel(kernel) => kernel.udp.link_mtu(peer),
            NeighbourResolution::Own(_) => Some(self.mtu_bytes as usize),
        }
    }

    fn listen_on(&mut self, rail: Rail, path: PathId) -> io::Result<()> {
        self.reach.listen_on(rail, path)?;
        let Some(port) = self.ports.get(path.index()).copied() else { return Ok(()) };
        if !self.path_ports.iter().any(|(_, known)| *known == path) {
            self.path_ports.push((port, path));
        }
        Ok(())
    }

    fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        match self.reach.next(batch.to.ip(), Instant::now()) {
            Forwarding::Port(mac, ask) => {
                if let Some(ask) = ask {
                    self.send_frame(&ask);
                }
                match self.send_frames(batch, mac) {
                    Some(sent) => Ok(sent),
                    // The kernel decides about batches that do not fit a frame.
                    None => self.send_by_kernel(batch),
                }
            }
            Forwarding::Kernel => self.send_by_kernel(batch),
            Forwarding::Lost(ask) => {
                if let Some(ask) = ask {
                    self.send_frame(&ask);
                }
                self.counters.lost(batch.bytes.len().div_ceil(batch.segment_bytes) as u64);
                Ok(Sent::Done)
            }
            Forwarding::Unreachable => Err(io::Error::from_raw_os_error(libc::EHOSTUNREACH)),
        }
    }

    fn flush(&mut self) {
        let dropped = self.port.flush();
        if dropped > 0 {
            self.counters.lost(dropped as u64);
        }
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals> {
        let by_port = self.receive_by_port(sink);
        // Sends frames that wait for space, and answers to neighbour requests.
        if self.port.waiting() > 0 {
            self.flush();
        }
        self.receive_calls = self.receive_calls.wrapping_add(1);
        if !self.kernel_may_have_packets && !self.receive_calls.is_multiple_of(LOOKS_AT_KERNEL) {
            return Ok(by_port);
        }
        let Some(kernel) = self.reach.kernel() else {
            self.poll_link(Instant::now());
            return Ok(by_port);
        };
        let mut batches = 0;
        let by_kernel = kernel.udp.receive(&mut |received| {
            batches += 1;
            sink(received);
        })?;
        self.counters.received_by_kernel(batches);
        self.kernel_may_have_packets = by_kernel != Arrivals::None;
        Ok(by_port.and(by_kernel))
    }

    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        self.flush();
        let mut now = Instant::now();
        let deadline = wait.at_most.map(|time| now + time);
        loop {
            if self.port.has_arrived() {
                self.idle_since = now;
                return Ok(());
            }
            self.poll_link(now);
            let idle = now.saturating_duration_since(self.idle_since);
            let nap = (idle / SLEEP_DIVISOR).clamp(SHORTEST_NAP, LONGEST_NAP);
            let left = left_until(deadline, now);
            let waits_for_room = wait.for_room || self.port.waiting() > 0;
            let nap = if waits_for_room { SHORTEST_NAP } else { nap };
            if self.sleep(left.map_or(nap, |left| left.min(nap)))? {
                return Ok(());
            }
            now = Instant::now();
            if waits_for_room || left_until(deadline, now) == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    fn waker(&self) -> Waker {
        self.reach.waker()
    }

    fn watch(&mut self, other: OwnedFd) -> bool {
        self.watched = Some(other);
        true
    }
}

/// Reduces the timer slack of this thread, so that it sleeps hardly longer than requested. Errors are ignored.
fn shorten_naps() {
    thread_local! {
        static ARE_SHORT: bool = set_current_timer_slack(NonZero::new(SLACK_NS)).is_ok();
    }
    let _ = ARE_SHORT.try_with(|are_short| *are_short);
}

/// Returns true if the port has an Ethernet address of its own. Rings have none, and a tap has the address of the
/// kernel's interface at its other end.
fn has_own_mac(device: &Device, mac: Mac) -> bool {
    mac != [0; 6] && !matches!(device, Device::Vdev(vdev) if vdev.driver() == "net_tap")
}

/// Returns a locally administered Ethernet address.
fn random_mac(random: u64) -> Mac {
    let [a, b, c, d, e, ..] = random.to_le_bytes();
    [2, a, b, c, d, e]
}

fn name_of(device: &Device) -> String {
    match device {
        Device::Vdev(vdev) => vdev.name().to_owned(),
        Device::Pci(address) => address.clone(),
    }
}

/// Returns the network interface that the kernel shares with the device, if the driver works beside the kernel.
fn kernel_interface(device: &Device) -> Result<Option<&str>, DpdkError> {
    let Device::Vdev(vdev) = device else { return Ok(None) };
    match vdev.driver() {
        "net_af_packet" => match vdev.get("iface") {
            Some(name) => Ok(Some(name)),
            None => Err(DpdkError::NoInterface { device: vdev.name().to_owned() }),
        },
        _ => Ok(None),
    }
}

fn open_kernel(name: &str, config: &DpdkConfig) -> Result<Box<KernelReach>, DpdkError> {
    if config.local.is_some() || config.gateway.is_some() {
        let (device, interface) = (name_of(&config.device), name.to_owned());
        return Err(DpdkError::AddressOfInterface { device, interface });
    }
    may_open_packet_sockets()?;
    KernelReach::open(name, config).map(Box::new)
}

/// Checks the permission to open packet sockets, as DPDK's own error message is less specific.
fn may_open_packet_sockets() -> Result<(), DpdkError> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    match socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None) {
        Ok(_) => Ok(()),
        Err(Errno::PERM | Errno::ACCESS) => Err(DpdkError::Permission { doing: "open a packet socket" }),
        Err(why) => Err(DpdkError::System { doing: "open a packet socket", why: why.to_string() }),
    }
}

/// Returns the address of a port that the kernel does not know.
fn own_address(config: &DpdkConfig) -> Result<crate::ether::Local, DpdkError> {
    let device = || name_of(&config.device);
    let local = config.local.ok_or_else(|| DpdkError::NoAddress { device: device() })?;
    let bind = config.udp.bind.ip();
    if !bind.is_unspecified() && bind != local.address() {
        return Err(DpdkError::OtherAddress { device: device(), bind, local: local.address() });
    }
    Ok(match config.gateway {
        Some(gateway) => local.with_gateway(gateway)?,
        None => local,
    })
}

/// Returns the number of frames that a queue of a [`sized`] device holds.
fn queue_frames(device: &Device) -> usize {
    let Device::Vdev(vdev) = device else { return QUEUE_FRAMES.into() };
    let log2 = vdev.get("rsize").filter(|_| vdev.driver() == "net_memif").and_then(|log2| log2.parse().ok());
    log2.and_then(|log2| 1usize.checked_shl(log2)).unwrap_or(QUEUE_FRAMES.into())
}

/// Returns the device with memory for frames of this length, and the room of a frame. Explicit arguments of the
/// device are kept.
fn with_memory_arguments(device: &Device, frame_bytes: usize) -> (Device, usize) {
    let room = frame_bytes.next_multiple_of(CACHE_LINE);
    let Device::Vdev(vdev) = device else { return (device.clone(), room) };
    match vdev.driver() {
        "net_memif" => {
            let frames = (MEMIF_BYTES / room).clamp(LEAST_MEMIF_FRAMES, QUEUE_FRAMES.into());
            // The driver takes the logarithm to base 2.
            let sized: Vdev = vdev.clone().with_default("bsize", room).with_default("rsize", frames.ilog2());
            (Device::Vdev(sized), room)
        }
        "net_af_packet" => {
            let needed = frame_bytes + PACKET_HEADER;
            let block = needed.next_multiple_of(PAGE);
            let frame = if needed <= PAGE / 2 { PAGE / 2 } else { block };
            let sized = vdev
                .clone()
                .with_default("framesz", frame)
                .with_default("blocksz", block)
                .with_default("framecnt", QUEUE_FRAMES);
            // The driver requires frames to be as long as the slots that store them.
            let kept = sized.get("framesz").and_then(|bytes| bytes.parse().ok()).unwrap_or(frame);
            (Device::Vdev(sized), room.max(kept))
        }
        _ => (device.clone(), room),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(text: &str) -> Device {
        Device::Vdev(text.parse().unwrap())
    }

    #[test]
    fn devices_get_room_for_the_longest_frame() {
        let of = |text: &str, mtu_bytes: usize| {
            let (device, room) = with_memory_arguments(&device(text), mtu_bytes + ETHERNET + VLAN_TAG);
            let Device::Vdev(vdev) = device else { panic!("it is one") };
            (vdev.arguments(), room)
        };
        let frames_of = |text: &str, mtu_bytes: usize| {
            queue_frames(&with_memory_arguments(&device(text), mtu_bytes + ETHERNET + VLAN_TAG).0)
        };
        // 1,518 bytes, rounded up to a multiple of 64.
        assert_eq!(of("net_memif0,role=client", 1_500), ("role=client,bsize=1536,rsize=10".into(), 1_536));
        assert_eq!(of("net_memif0,bsize=2048,rsize=11", 9_000), ("bsize=2048,rsize=11".into(), 9_024));
        // 2 MiB hold 1,365 frames of 1,536 bytes, 512 of 4,096 and 232 of 9,024. The minimum is 256 frames.
        assert_eq!([1_500, 4_078, 9_000].map(|mtu| frames_of("net_memif0", mtu)), [1_024, 512, 256]);
        assert_eq!(frames_of("net_memif0,rsize=11", 9_000), 2_048, "as it was told");
        assert_eq!(frames_of("net_ring0", 9_000), 1_024);
        // With 128 bytes in front, a frame takes half a page or whole pages.
        let packet = "iface=eth0,framesz=2048,blocksz=4096,framecnt=1024";
        assert_eq!(of("net_af_packet0,iface=eth0", 1_500), (packet.into(), 2_048));
        let packet = "iface=eth0,framesz=12288,blocksz=12288,framecnt=1024";
        assert_eq!(of("net_af_packet0,iface=eth0", 9_000), (packet.into(), 12_288));
        assert_eq!(of("net_ring0", 1_500), (String::new(), 1_536));
    }

    #[test]
    fn packet_sockets_are_beside_the_kernel() {
        assert_eq!(kernel_interface(&device("net_af_packet0,iface=eth0")), Ok(Some("eth0")));
        assert_eq!(kernel_interface(&device("net_memif0,role=client")), Ok(None));
        let why = kernel_interface(&device("net_af_packet7")).unwrap_err().to_string();
        assert_eq!(why, "net_af_packet7 needs a network interface: --vdev net_af_packet7,iface=eth0");
    }
}
