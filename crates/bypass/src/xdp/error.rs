//! Errors of opening AF_XDP sockets. Their texts name the remedy.

use std::io;

use crate::ether::InterfaceError;
use pathweave_datapath::OpenError;
use thiserror::Error;

/// Reason why a backend over AF_XDP cannot be opened. A device over UDP sockets does not need it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum XdpError {
    /// The interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Several addresses are given, but an interface carries only one.
    #[error("{count} addresses were given; over AF_XDP a device has one, that of its interface")]
    SeveralAddresses {
        /// Number of addresses.
        count: usize,
    },
    /// The kernel refuses permission.
    #[error(
        "no permission to {doing}: run as root, or with the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF \
         (`setcap cap_net_admin,cap_net_raw,cap_bpf+ep PROGRAM`)"
    )]
    Permission {
        /// Operation that was refused.
        doing: &'static str,
    },
    /// Another program uses the interface.
    #[error(
        "another XDP program or AF_XDP socket has the network interface {interface} (`ip link show {interface}` names the \
         program); end it, or use the backend udp"
    )]
    Taken {
        /// Name of the interface.
        interface: String,
    },
    /// The kernel or the driver does not support XDP.
    #[error("the network interface {interface} takes no XDP program ({why}); use the backend udp")]
    NoXdp {
        /// Name of the interface.
        interface: String,
        /// Message of the system.
        why: io::Error,
    },
    /// Packets would need several buffers each, which the kernel or the driver does not support.
    #[error(
        "packets of {mtu_bytes} bytes are too long for AF_XDP on {interface}, whose driver or kernel (before Linux 6.6) takes \
         one page a packet: `ip link set {interface} mtu 3498`, at both ends, or use the backend udp"
    )]
    Mtu {
        /// Name of the interface.
        interface: String,
        /// MTU of the interface in bytes.
        mtu_bytes: u32,
    },
    /// There is not enough memory for packets.
    #[error(
        "no memory for packets, which are {bytes} bytes a queue and may not be swapped: raise the limit (`ulimit -l`), or ask \
         for smaller buffers"
    )]
    Memory {
        /// Bytes needed for each queue.
        bytes: usize,
    },
    /// The kernel was built without AF_XDP sockets.
    #[error("this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS); use the backend udp")]
    NoSockets,
    /// The kernel's UDP sockets cannot be opened. Each backend needs some.
    #[error(transparent)]
    Udp(#[from] OpenError),
    /// Another error of the system.
    #[error("cannot {doing}: {why}")]
    System {
        /// Operation that failed.
        doing: &'static str,
        /// Message of the system.
        why: String,
    },
}
