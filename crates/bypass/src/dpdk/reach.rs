//! Who is at the other end of a port, and what the kernel does beside it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::ether::frame::Mac;
use crate::ether::{Heard, Interface, Local, Neighbours, Resolver, Way};
use pathweave_datapath::OpenError;
use pathweave_datapath::backend::{Backend, Rail, SourcePorts, UdpBackend, UdpConfig, Waker};
use pathweave_linux::netlink::Netlink;
use pathweave_units::PathId;

use crate::dpdk::config::DpdkConfig;
use crate::dpdk::error::DpdkError;
use crate::dpdk::filter;

/// The first of the ports that nobody has by right (RFC 6335), of which ours are chosen where any will do.
const FIRST_PORT: u16 = 49_152;

/// How peers are found.
pub(crate) enum Reach {
    /// The kernel has the interface, too: it knows neighbours, and its sockets hold the ports.
    Kernel(Box<OfKernel>),
    /// The kernel knows nothing of the port.
    Own(OfUs),
}

pub(crate) struct OfKernel {
    pub(crate) neighbours: Neighbours,
    pub(crate) udp: UdpBackend,
    pub(crate) interface: Interface,
}

pub(crate) struct OfUs {
    resolver: Resolver,
    since: Instant,
    local: SocketAddr,
    ports: Vec<u16>,
    waker: Waker,
}

/// What becomes of a packet to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It goes to this Ethernet address, after the frame, if there is one.
    Port(Mac, Option<Vec<u8>>),
    /// The kernel sends it.
    Kernel,
    /// It is lost, for nobody has said where its peer is; the frame asks for it.
    Lost(Option<Vec<u8>>),
    /// There is no way to the peer.
    NoWay,
}

impl OfKernel {
    /// Of the interface of this name, with sockets that do not get what arrives there.
    pub(crate) fn open(name: &str, config: &DpdkConfig) -> Result<Self, DpdkError> {
        let system = |doing| move |why: io::Error| DpdkError::System { doing, why: why.to_string() };
        let mut netlink = Netlink::open().map_err(system("open a netlink socket"))?;
        let interface = Interface::find(&mut netlink, name)?;
        if interface.mtu_bytes < config.mtu_bytes {
            return Err(DpdkError::InterfaceMtu {
                interface: interface.name,
                mtu_bytes: config.mtu_bytes,
                most_bytes: interface.mtu_bytes,
            });
        }
        let mut udp = config.udp.clone();
        udp.bind.set_ip(interface.address(udp.bind.ip())?);
        let udp = UdpBackend::open(&udp).map_err(|(address, why)| DpdkError::Udp {
            why: OpenError::of_socket(address, why).to_string(),
        })?;
        let of_kernel = OfKernel { neighbours: Neighbours::new(netlink, interface.index), udp, interface };
        of_kernel.filter().map_err(system("filter what arrives at a socket"))?;
        Ok(of_kernel)
    }

    /// All sockets at which something may arrive.
    pub(crate) fn filter(&self) -> io::Result<()> {
        self.udp.descriptors().try_for_each(|socket| filter::refuse(socket, self.interface.index))
    }
}

impl OfUs {
    /// At an address that is ours alone: all its ports are.
    pub(crate) fn new(local: Local, mac: Mac, udp: &UdpConfig, random: u64) -> Result<Self, DpdkError> {
        let waker =
            Waker::new().map_err(|why| DpdkError::System { doing: "make a waker", why: why.to_string() })?;
        let (port, ports) = choose_ports(udp, random);
        Ok(OfUs {
            resolver: Resolver::new(local, mac),
            since: Instant::now(),
            local: SocketAddr::new(local.address(), port),
            ports,
            waker,
        })
    }
}

/// The port at which peers reach us, and those of paths.
fn choose_ports(udp: &UdpConfig, random: u64) -> (u16, Vec<u16>) {
    let free = u64::from(u16::MAX - FIRST_PORT - udp.paths) + 1;
    let first = FIRST_PORT + (random % free) as u16;
    let port = if udp.bind.port() == 0 { first } else { udp.bind.port() };
    let first = match udp.source_ports {
        SourcePorts::Any => first,
        SourcePorts::From(first) => first,
    };
    let others = (first..=u16::MAX).chain(FIRST_PORT..first);
    (port, others.filter(|other| *other != port).take(udp.paths.into()).collect())
}

impl Reach {
    /// Where peers reach us.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        match self {
            Reach::Kernel(kernel) => kernel.udp.local_addr(),
            Reach::Own(own) => own.local,
        }
    }

    /// Source port of each path.
    pub(crate) fn source_ports(&self) -> Vec<u16> {
        match self {
            Reach::Kernel(kernel) => kernel.udp.source_ports(),
            Reach::Own(own) => own.ports.clone(),
        }
    }

    /// What ends a wait.
    pub(crate) fn waker(&self) -> Waker {
        match self {
            Reach::Kernel(kernel) => kernel.udp.waker(),
            Reach::Own(own) => own.waker.clone(),
        }
    }

    /// The kernel's sockets, beside the port.
    pub(crate) fn kernel(&mut self) -> Option<&mut OfKernel> {
        match self {
            Reach::Kernel(kernel) => Some(kernel),
            Reach::Own(_) => None,
        }
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let kernel = match self {
            Reach::Kernel(kernel) => Some(kernel.udp.descriptors()),
            Reach::Own(_) => None,
        };
        kernel.into_iter().flatten()
    }

    /// What arrives at the port of a path is ours, too.
    pub(crate) fn listen_on(&mut self, rail: Rail, path: PathId) -> io::Result<()> {
        let Reach::Kernel(kernel) = self else { return Ok(()) };
        kernel.udp.listen_on(rail, path)?;
        kernel.filter()
    }

    /// What becomes of a packet to a peer.
    #[inline]
    pub(crate) fn next(&mut self, peer: IpAddr, now: Instant) -> Next {
        match self {
            Reach::Kernel(kernel) => match kernel.neighbours.way(peer, now) {
                Way::Direct(mac) => Next::Port(mac, None),
                Way::Kernel => Next::Kernel,
            },
            Reach::Own(own) => match own.resolver.step(peer, now.saturating_duration_since(own.since)) {
                Some(step) => match step.to {
                    Some(mac) => Next::Port(mac, step.ask),
                    None => Next::Lost(step.ask),
                },
                None => Next::NoWay,
            },
        }
    }

    /// The link has come up, or gone down. A frame to send.
    pub(crate) fn link_is(&mut self, is_up: bool) -> Option<Vec<u8>> {
        match self {
            Reach::Kernel(_) => None,
            Reach::Own(own) if is_up => own.resolver.announce(),
            Reach::Own(own) => {
                own.resolver.forget();
                None
            }
        }
    }

    /// A frame that is no datagram: whether it is about who has which address, and the answer to it.
    pub(crate) fn hear(&mut self, frame: &[u8]) -> Heard {
        match self {
            // The kernel answers.
            Reach::Kernel(_) => Heard::Else,
            Reach::Own(own) => own.resolver.hear(frame, own.since.elapsed()),
        }
    }
}

/// A moment between two others, for how long is left.
pub(crate) fn left_until(deadline: Option<Instant>, now: Instant) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(port: u16, paths: u16, source_ports: SourcePorts) -> UdpConfig {
        let bind = SocketAddr::from(([0, 0, 0, 0], port));
        UdpConfig { bind, also_bind: Vec::new(), paths, source_ports, socket_buffer_bytes: 1 << 20 }
    }

    #[test]
    fn ports_are_distinct_and_those_asked_for() {
        assert_eq!(
            choose_ports(&udp(18_515, 3, SourcePorts::From(5_000)), 7),
            (18_515, vec![5_000, 5_001, 5_002])
        );
        assert_eq!(
            choose_ports(&udp(5_001, 3, SourcePorts::From(5_000)), 7),
            (5_001, vec![5_000, 5_002, 5_003])
        );
        for random in [0, 1, 12_345, u64::MAX] {
            let (port, ports) = choose_ports(&udp(0, 256, SourcePorts::Any), random);
            let mut all: Vec<u16> = ports.iter().copied().chain([port]).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 257, "from {port}");
            assert!(all[0] >= FIRST_PORT);
        }
    }
}
