//! Resolution of peers at a port, and the part of the kernel in it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::ether::frame::Mac;
use crate::ether::{Delivery, FrameResult, Interface, Local, Neighbours, Resolver};
use pathweave_datapath::OpenError;
use pathweave_datapath::backend::{Backend, Rail, SourcePorts, UdpBackend, UdpConfig, Waker};
use pathweave_linux::netlink::Netlink;
use pathweave_units::PathId;

use crate::dpdk::config::DpdkConfig;
use crate::dpdk::error::DpdkError;
use crate::dpdk::filter;

/// First dynamic port (RFC 6335). Ports are chosen from here on if no others are requested.
const FIRST_PORT: u16 = 49_152;

/// Method by which peers are resolved.
pub(crate) enum NeighbourResolution {
    /// The kernel also has the interface. It resolves neighbours, and its sockets hold the ports.
    Kernel(Box<KernelReach>),
    /// The kernel does not know the port.
    Own(OwnReach),
}

pub(crate) struct KernelReach {
    pub(crate) neighbours: Neighbours,
    pub(crate) udp: UdpBackend,
    pub(crate) interface: Interface,
}

pub(crate) struct OwnReach {
    resolver: Resolver,
    since: Instant,
    local: SocketAddr,
    ports: Vec<u16>,
    waker: Waker,
}

/// Treatment of a packet to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Forwarding {
    /// Send the packet to this Ethernet address, after the frame if there is one.
    Port(Mac, Option<Vec<u8>>),
    /// Send the packet through the kernel.
    Kernel,
    /// Drop the packet, because the peer's address is not resolved yet. The frame requests it.
    Lost(Option<Vec<u8>>),
    /// The peer is unreachable.
    Unreachable,
}

impl KernelReach {
    /// Opens sockets on the interface of this name. They do not receive what arrives on that interface.
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
        let of_kernel = KernelReach { neighbours: Neighbours::new(netlink, interface.index), udp, interface };
        of_kernel.filter().map_err(system("filter packets that arrive at a socket"))?;
        Ok(of_kernel)
    }

    /// Installs the filter on all sockets that may receive.
    pub(crate) fn filter(&self) -> io::Result<()> {
        self.udp
            .descriptors()
            .try_for_each(|socket| filter::drop_from_interface(socket, self.interface.index))
    }
}

impl OwnReach {
    /// Creates the resolution for an address that belongs to this port only, so that all its UDP ports are free.
    pub(crate) fn new(local: Local, mac: Mac, udp: &UdpConfig, random: u64) -> Result<Self, DpdkError> {
        let waker =
            Waker::new().map_err(|why| DpdkError::System { doing: "make a waker", why: why.to_string() })?;
        let (port, ports) = choose_ports(udp, random);
        Ok(OwnReach {
            resolver: Resolver::new(local, mac),
            since: Instant::now(),
            local: SocketAddr::new(local.address(), port),
            ports,
            waker,
        })
    }
}

/// Returns the port on which peers reach us, and the source ports of paths.
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

impl NeighbourResolution {
    /// Returns the address on which peers reach us.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        match self {
            NeighbourResolution::Kernel(kernel) => kernel.udp.local_addr(),
            NeighbourResolution::Own(own) => own.local,
        }
    }

    /// Returns the source port of each path.
    pub(crate) fn source_ports(&self) -> Vec<u16> {
        match self {
            NeighbourResolution::Kernel(kernel) => kernel.udp.source_ports(),
            NeighbourResolution::Own(own) => own.ports.clone(),
        }
    }

    /// Returns the waker that ends a wait.
    pub(crate) fn waker(&self) -> Waker {
        match self {
            NeighbourResolution::Kernel(kernel) => kernel.udp.waker(),
            NeighbourResolution::Own(own) => own.waker.clone(),
        }
    }

    /// Returns the kernel's sockets, if they exist beside the port.
    pub(crate) fn kernel(&mut self) -> Option<&mut KernelReach> {
        match self {
            NeighbourResolution::Kernel(kernel) => Some(kernel),
            NeighbourResolution::Own(_) => None,
        }
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let kernel = match self {
            NeighbourResolution::Kernel(kernel) => Some(kernel.udp.descriptors()),
            NeighbourResolution::Own(_) => None,
        };
        kernel.into_iter().flatten()
    }

    /// Receives on the source port of a path as well.
    pub(crate) fn listen_on(&mut self, rail: Rail, path: PathId) -> io::Result<()> {
        let NeighbourResolution::Kernel(kernel) = self else { return Ok(()) };
        kernel.udp.listen_on(rail, path)?;
        kernel.filter()
    }

    /// Returns the treatment of a packet to a peer.
    #[inline]
    pub(crate) fn next(&mut self, peer: IpAddr, now: Instant) -> Forwarding {
        match self {
            NeighbourResolution::Kernel(kernel) => match kernel.neighbours.delivery_to(peer, now) {
                Delivery::Direct(mac) => Forwarding::Port(mac, None),
                Delivery::Kernel => Forwarding::Kernel,
            },
            NeighbourResolution::Own(own) => {
                match own.resolver.resolve(peer, now.saturating_duration_since(own.since)) {
                    Some(step) => match step.to {
                        Some(mac) => Forwarding::Port(mac, step.ask),
                        None => Forwarding::Lost(step.ask),
                    },
                    None => Forwarding::Unreachable,
                }
            }
        }
    }

    /// Handles a change of the link. Returns a frame to send.
    pub(crate) fn on_link_change(&mut self, is_up: bool) -> Option<Vec<u8>> {
        match self {
            NeighbourResolution::Kernel(_) => None,
            NeighbourResolution::Own(own) if is_up => own.resolver.announce(),
            NeighbourResolution::Own(own) => {
                own.resolver.forget();
                None
            }
        }
    }

    /// Handles a frame that is not a datagram. Recognises messages of address resolution, and returns the answer.
    pub(crate) fn handle_frame(&mut self, frame: &[u8]) -> FrameResult {
        match self {
            // The kernel answers by itself.
            NeighbourResolution::Kernel(_) => FrameResult::Other,
            NeighbourResolution::Own(own) => own.resolver.handle_frame(frame, own.since.elapsed()),
        }
    }
}

/// Returns the time left until a deadline, or `None` without one.
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
