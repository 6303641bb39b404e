//! A hostile wire between two hosts. Each host is a network namespace with one interface; a fault model
//! decides on each packet between them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pathweave_datapath::backend::{Arrival, FaultCounters, FaultModel, Faults};

use crate::script::End;

const MTU: &str = "1500";
const INTERFACE: &str = "wire0";
/// Size of the buffer for a packet, bytes.
const ROOM: usize = 2_048;
const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn address(self, end: End) -> IpAddr {
        let host = 1 + end as u8;
        match self {
            Family::V4 => Ipv4Addr::new(10, 77, 0, host).into(),
            Family::V6 => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host.into()).into(),
        }
    }
}

/// A host: its network namespace, and the end of the wire in it.
pub(crate) struct Host {
    pub(crate) network: File,
    tun: File,
}

/// `struct ifreq` as used by TUNSETIFF.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

fn tun() -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let mut name = [0; 16];
    name[..INTERFACE.len()].copy_from_slice(INTERFACE.as_bytes());
    let request = Request { name, flags: (libc::IFF_TUN | libc::IFF_NO_PI) as i16, rest: [0; 22] };
    // SAFETY: the tun device, and a request of the right form.
    let (made, flagged) = unsafe {
        let made = libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw const request);
        (made, libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK))
    };
    if made < 0 || flagged < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    let done = Command::new("ip").args(arguments).output()?;
    let text = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(io::Error::other(format!("ip {arguments:?}: {text}"))) }
}

impl Host {
    /// Makes a host, if this process has the permission.
    pub(crate) fn new(end: End) -> io::Result<Host> {
        // A network namespace belongs to a thread.
        let made = std::thread::spawn(move || {
            // SAFETY: the call affects this thread only.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
                return Err(io::Error::last_os_error());
            }
            let tun = tun()?;
            ip(&["link", "set", "lo", "up"])?;
            ip(&["address", "add", &format!("{}/24", Family::V4.address(end)), "dev", INTERFACE])?;
            ip(&["address", "add", &format!("{}/64", Family::V6.address(end)), "dev", INTERFACE, "nodad"])?;
            ip(&["link", "set", INTERFACE, "mtu", MTU, "up"])?;
            Ok(Host { network: File::open("/proc/thread-self/ns/net")?, tun })
        });
        made.join().expect("no panic")
    }
}

/// Receiver of a datagram, and the headers before its payload.
#[derive(Clone, Copy)]
struct Way {
    to: usize,
    headers: [u8; 48],
    len: usize,
}

/// Returns the folded sum of 16-bit words.
fn sum(bytes: &[u8], start: u32) -> u32 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let all: u32 = words.fold(start, |sum, word| sum + word);
    let folded = (all & 0xffff) + (all >> 16);
    (folded & 0xffff) + (folded >> 16)
}

impl Way {
    /// Parses a packet; `None` if it is not UDP.
    fn of(packet: &[u8], to: usize) -> Option<Way> {
        let ip = match packet.first()? >> 4 {
            4 if packet.len() > 28 && packet[0] & 15 == 5 && packet[9] == UDP => 20,
            6 if packet.len() > 48 && packet[6] == UDP => 40,
            _ => return None,
        };
        let (mut headers, len) = ([0; 48], ip + UDP_HEADER);
        headers[..len].copy_from_slice(&packet[..len]);
        Some(Way { to, headers, len })
    }

    /// Returns the packet with this payload, with matching lengths and checksums.
    fn packet(mut self, bytes: &[u8], marked: bool) -> Vec<u8> {
        let (ip, udp) = (self.len - UDP_HEADER, (UDP_HEADER + bytes.len()) as u16);
        let headers = &mut self.headers;
        let mark = u8::from(marked);
        let addresses = if ip == 20 {
            headers[2..4].copy_from_slice(&(20 + udp).to_be_bytes());
            // ECN-capable becomes Congestion Experienced.
            headers[1] |= if headers[1] & 3 != 0 { 3 * mark } else { 0 };
            headers[10..12].fill(0);
            let checksum = !(sum(&headers[..20], 0) as u16);
            headers[10..12].copy_from_slice(&checksum.to_be_bytes());
            12..20
        } else {
            headers[4..6].copy_from_slice(&udp.to_be_bytes());
            headers[1] |= if headers[1] & 0x30 != 0 { 0x30 * mark } else { 0 };
            8..40
        };
        headers[ip + 4..ip + 6].copy_from_slice(&udp.to_be_bytes());
        headers[ip + 6..ip + 8].fill(0);
        let pseudo = sum(&headers[addresses], u32::from(UDP) + u32::from(udp));
        let checksum = !(sum(bytes, sum(&headers[ip..ip + 8], pseudo)) as u16);
        // A checksum of zero means none, so it is written as all ones.
        let checksum = if checksum == 0 { u16::MAX } else { checksum };
        headers[ip + 6..ip + 8].copy_from_slice(&checksum.to_be_bytes());
        [&headers[..self.len], bytes].concat()
    }
}

/// A delayed packet.
struct Late {
    due: Instant,
    to: usize,
    packet: Vec<u8>,
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Late {}

/// The current fault model.
struct Now {
    weather: FaultModel<Way>,
    latest: Duration,
}

/// State that a test changes while traffic flows.
struct Shared {
    now: Mutex<Now>,
    /// Largest packet that passes, for each sender; 0 loses all packets.
    longest: [AtomicUsize; 2],
    ended: AtomicBool,
}

impl Shared {
    fn now(&self) -> std::sync::MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wire between two hosts.
pub(crate) struct Wire {
    shared: Arc<Shared>,
    relay: Option<JoinHandle<()>>,
    happened: FaultCounters,
}

impl Wire {
    pub(crate) fn between(hosts: &[Host; 2]) -> io::Result<Wire> {
        let shared = Arc::new(Shared {
            now: Mutex::new(Now { weather: FaultModel::new(Faults::default(), 0), latest: Duration::ZERO }),
            longest: [const { AtomicUsize::new(usize::MAX) }; 2],
            ended: AtomicBool::new(false),
        });
        let tuns = [hosts[0].tun.try_clone()?, hosts[1].tun.try_clone()?];
        let of_relay = shared.clone();
        let relay = std::thread::spawn(move || relay(&of_relay, tuns));
        Ok(Wire { shared, relay: Some(relay), happened: FaultCounters::default() })
    }

    /// Replaces the fault model.
    pub(crate) fn change(&mut self, faults: Faults, latest: Duration, seed: u64) {
        let next = Now { weather: FaultModel::new(faults, seed), latest };
        let before = std::mem::replace(&mut *self.shared.now(), next);
        self.happened += before.weather.happened();
    }

    /// Loses the packets of these endpoints that exceed a length.
    pub(crate) fn narrow(&self, ends: &[End], longest: usize) {
        for end in ends {
            self.shared.longest[*end as usize].store(longest, Ordering::Relaxed);
        }
    }

    /// Returns the counts of all packets.
    pub(crate) fn happened(&self) -> FaultCounters {
        let mut all = self.happened;
        all += self.shared.now().weather.happened();
        all
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(relay) = self.relay.take() {
            let _ = relay.join();
        }
    }
}

/// Forwards packets until the wire is dropped.
fn relay(shared: &Shared, mut tuns: [File; 2]) {
    let mut late: BinaryHeap<Reverse<Late>> = BinaryHeap::new();
    let mut room = [0; ROOM];
    while !shared.ended.load(Ordering::Relaxed) {
        let now = Instant::now();
        while late.peek().is_some_and(|Reverse(first)| first.due <= now) {
            let Some(Reverse(Late { to, packet, .. })) = late.pop() else { break };
            // A packet that finds no room is lost.
            let _ = tuns[to].write(&packet);
        }
        let until = late.peek().map_or(Duration::from_millis(50), |Reverse(first)| first.due - now);
        let mut polled =
            [0, 1].map(|end| libc::pollfd { fd: tuns[end].as_raw_fd(), events: libc::POLLIN, revents: 0 });
        let time = libc::timespec { tv_sec: 0, tv_nsec: until.as_nanos().min(50_000_000) as i64 };
        // SAFETY: two descriptors and a time.
        unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const time, std::ptr::null()) };
        for from in 0..2 {
            for _ in 0..64 {
                let Ok(len) = tuns[from].read(&mut room) else { break };
                let packet = &room[..len];
                let Some(way) = Way::of(packet, 1 - from) else {
                    let _ = tuns[1 - from].write(packet);
                    continue;
                };
                if len > shared.longest[from].load(Ordering::Relaxed) {
                    continue;
                }
                let mut now = shared.now();
                let latest = now.latest;
                now.weather.send(way, &packet[way.len..], |arrival| {
                    let Arrival { way, bytes, late: lateness, marked, .. } = arrival;
                    let packet = way.packet(&bytes, marked);
                    if lateness > 0.0 {
                        let due = Instant::now() + latest.mul_f64(lateness);
                        late.push(Reverse(Late { due, to: way.to, packet }));
                    } else {
                        let _ = tuns[way.to].write(&packet);
                    }
                });
            }
        }
    }
}

#[test]
fn packets_are_put_together_as_they_were() {
    let v4 = "45000021000040004011b7a50a4d00010a4d0002\
              4844484400 0d0000 0102030405";
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    };
    let packet = hex(v4);
    let made = Way::of(&packet, 0).unwrap().packet(&packet[28..], false);
    assert_eq!((sum(&made[..20], 0), made.len()), (0xffff, packet.len()));
    assert_eq!(sum(&made[20..], sum(&made[12..20], u32::from(UDP) + 13)), 0xffff);
    // The payload is truncated.
    let made = Way::of(&packet, 0).unwrap().packet(&packet[28..30], false);
    assert_eq!((made[3], made[25], sum(&made[..20], 0)), (30, 10, 0xffff));
}
