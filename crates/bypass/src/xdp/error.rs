//! Why there is no AF_XDP, said so that it can be mended.

use std::io;

use crate::ether::InterfaceError;
use pathweave_datapath::OpenError;
use thiserror::Error;

/// Why a backend over AF_XDP cannot be opened. A device over UDP sockets does without it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum XdpError {
    /// The interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// One interface carries one address.
    #[error("{count} addresses were given; over AF_XDP a device has one, that of its interface")]
    SeveralAddresses {
        /// How many.
        count: usize,
    },
    /// The kernel does not let us.
    #[error(
        "no permission to {doing}: run as root, or with the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF \
         (`setcap cap_net_admin,cap_net_raw,cap_bpf+ep PROGRAM`)"
    )]
    Permission {
        /// To do what.
        doing: &'static str,
    },
    /// Another program has the interface.
    #[error(
        "another XDP program or AF_XDP socket has the network interface {interface} (`ip link show {interface}` names the \
         program); end it, or use the backend udp"
    )]
    Taken {
        /// Which.
        interface: String,
    },
    /// Kernel or driver have no XDP.
    #[error("the network interface {interface} takes no XDP program ({why}); use the backend udp")]
    NoXdp {
        /// Which interface.
        interface: String,
        /// What the system said.
        why: io::Error,
    },
    /// Packets would be of several pieces, which kernel or driver cannot.
    #[error(
        "packets of {mtu_bytes} bytes are too long for AF_XDP on {interface}, whose driver or kernel (before Linux 6.6) takes \
         one page a packet: `ip link set {interface} mtu 3498`, at both ends, or use the backend udp"
    )]
    Mtu {
        /// Which interface.
        interface: String,
        /// Its MTU.
        mtu_bytes: u32,
    },
    /// No memory for packets.
    #[error(
        "no memory for packets, which are {bytes} bytes a queue and may not be swapped: raise the limit (`ulimit -l`), or ask \
         for smaller buffers"
    )]
    Memory {
        /// For each queue.
        bytes: usize,
    },
    /// The kernel was built without AF_XDP sockets.
    #[error("this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS); use the backend udp")]
    NoSockets,
    /// The kernel's UDP sockets, of which each backend has some.
    #[error(transparent)]
    Udp(#[from] OpenError),
    /// Anything else the system may say.
    #[error("cannot {doing}: {why}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        why: String,
    },
}
