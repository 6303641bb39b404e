//! One UDP socket, set up for batches.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

use super::sys;

/// A bound UDP socket that is not connected: the kernel's routing then hashes the ports of each packet, while a
/// connected socket has a fixed hash.
#[derive(Debug)]
pub(super) struct UdpSocket {
    socket: Socket,
    local: SocketAddr,
}

/// Buffer of a socket.
#[derive(Clone, Copy, Debug)]
enum Buffer {
    Send,
    Receive,
}

/// Requirement on an address to which a socket is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Needed,
    /// The interface that has the address is down and may come up.
    Awaited,
}

impl UdpSocket {
    /// Binds to `address` with at least `buffer_bytes` for sending and receiving, or as much as the system grants.
    pub(super) fn bind(address: SocketAddr, buffer_bytes: usize, presence: Presence) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        let udp = UdpSocket { socket, local: address };
        udp.enlarge(Buffer::Send, buffer_bytes);
        udp.enlarge(Buffer::Receive, buffer_bytes);
        // A packet that exceeds the MTU is refused, not fragmented.
        let fd = udp.as_fd();
        let _ = match address {
            SocketAddr::V4(_) => {
                sys::set_option(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
            }
            SocketAddr::V6(_) => {
                sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
            }
        };
        if presence == Presence::Awaited {
            let (level, name) = match address {
                SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_FREEBIND),
                SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_FREEBIND),
            };
            sys::set_option(fd, level, name, 1)?;
        }
        udp.socket.bind(&address.into())?;
        let local = udp.socket.local_addr()?.as_socket().unwrap_or(address);
        Ok(UdpSocket { local, ..udp })
    }

    /// Requests a buffer size, beyond the system's limit if necessary, which needs privileges.
    fn enlarge(&self, buffer: Buffer, bytes: usize) {
        let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        let (force, plain) = match buffer {
            Buffer::Send => (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
            Buffer::Receive => (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        };
        if sys::set_option(self.as_fd(), libc::SOL_SOCKET, force, value).is_err() {
            // If this fails the buffer keeps its size; the window is adapted to it.
            let _ = sys::set_option(self.as_fd(), libc::SOL_SOCKET, plain, value);
        }
    }

    /// Binds outgoing packets to this network interface, whatever other routes there are.
    pub(super) fn leave_by(&self, interface: u32) -> io::Result<()> {
        // In network byte order, in both families.
        let value = interface.to_be().cast_signed();
        let (level, name) = match self.local {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_UNICAST_IF),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_IF),
        };
        sys::set_option(self.as_fd(), level, name, value)
    }

    /// Returns the size of the kernel's receive buffer in bytes, beyond which arrivals are dropped.
    pub(super) fn receive_buffer_bytes(&self) -> usize {
        sys::get_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF)
            .map_or(0, |bytes| bytes.max(0) as usize)
    }

    /// Enables receive offload, congestion marks and timestamps. Only the marks are required.
    pub(super) fn prepare_to_receive(&self) -> io::Result<()> {
        let fd = self.as_fd();
        let _ = sys::set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
        let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        match self.local {
            SocketAddr::V4(_) => sys::set_option(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
            SocketAddr::V6(_) => sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
        }
    }

    /// Sets the default type of service of outgoing packets.
    pub(super) fn prepare_to_send(&self, tos: u8) -> io::Result<()> {
        let (level, name) = match self.local {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        };
        sys::set_option(self.as_fd(), level, name, tos.into())
    }

    /// Returns true if the kernel supports segmentation offload.
    pub(super) fn can_segment(&self) -> bool {
        sys::get_option(self.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT).is_ok()
    }

    /// Returns the address to which the socket is bound.
    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

/// Returns a connected socket, on which the route to `peer` can be queried.
fn connected(peer: SocketAddr) -> Option<Socket> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP)).ok()?;
    socket.connect(&peer.into()).ok().map(|()| socket)
}

/// Returns the source address that routing selects for `peer`.
pub(super) fn source_towards(peer: SocketAddr) -> Option<IpAddr> {
    let local = connected(peer)?.local_addr().ok()?;
    local.as_socket().map(|local| local.ip())
}

/// Returns the MTU towards `peer`: that of the route, but no less than that of the interface. A smaller MTU learned
/// by ICMP may apply to one of many paths only, or be forged, and the sockets here ignore it.
pub(super) fn link_mtu(peer: SocketAddr) -> Option<usize> {
    let socket = connected(peer)?;
    let (level, name) = match peer {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let routed = sys::get_option(socket.as_fd(), level, name).ok().and_then(|mtu| usize::try_from(mtu).ok());
    let source = socket.local_addr().ok().and_then(|local| local.as_socket());
    let own = source.and_then(|source| sys::attachment_of(source.ip())).and_then(|at| at.mtu(socket.as_fd()));
    routed.max(own)
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
