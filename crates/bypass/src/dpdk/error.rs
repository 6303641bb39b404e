//! Why there is no port of DPDK, said so that it can be mended.

use std::net::IpAddr;

use crate::ether::{InterfaceError, LocalError};
use thiserror::Error;

/// Why a backend over DPDK cannot be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpdkError {
    /// The program was built without DPDK.
    #[error(
        "this build of pathweave has no DPDK: install its headers (Debian: libdpdk-dev) and build with \
         \"cargo build --release -p pathweave-cli --features dpdk\""
    )]
    NotBuilt,
    /// A virtual device cannot be read.
    #[error(
        "{text:?} is no virtual device of DPDK, as net_af_packet0,iface=eth0 or net_memif0,role=client,socket=FILE are"
    )]
    Vdev {
        /// What was given.
        text: String,
    },
    /// DPDK does not start.
    #[error("DPDK does not start: {why}")]
    Start {
        /// What it says.
        why: String,
    },
    /// Too few huge pages.
    #[error(
        "frames need {} MB of huge pages, of which {} MB are free: `sysctl -w vm.nr_hugepages={pages}`, or --huge-pages never",
        .needed_bytes.div_ceil(1 << 20), .free_bytes >> 20
    )]
    HugePages {
        /// Bytes that are needed.
        needed_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
        /// As many pages of the smallest huge size.
        pages: u64,
    },
    /// No such driver.
    #[error("DPDK has no driver for {name}{}; it has {all}, each followed by a number", pathweave_units::did_you_mean(*.nearest))]
    NoDriver {
        /// The device asked for.
        name: String,
        /// A driver with a name much like it.
        nearest: Option<&'static str>,
        /// All there are.
        all: String,
    },
    /// The kernel does not let us.
    #[error(
        "no permission to {doing}: run as root, or with the capability CAP_NET_RAW (`setcap cap_net_raw+ep PROGRAM`)"
    )]
    Permission {
        /// To do what.
        doing: &'static str,
    },
    /// DPDK does not make the device.
    #[error("DPDK cannot use {device}: {why}")]
    Attach {
        /// The device.
        device: String,
        /// What it says.
        why: String,
    },
    /// Packets are too long for the device.
    #[error(
        "packets of {mtu_bytes} bytes are too long for {device}, which takes {most_bytes} at most: --mtu {most_bytes}"
    )]
    Mtu {
        /// The device.
        device: String,
        /// Bytes of the longest packet that was asked for.
        mtu_bytes: u32,
        /// Bytes of the longest it takes.
        most_bytes: u32,
    },
    /// Packets are too long for the kernel's interface.
    #[error(
        "packets of {mtu_bytes} bytes are too long for the network interface {interface}, which takes {most_bytes}: \
         `ip link set {interface} mtu {mtu_bytes}`, or --mtu {most_bytes}"
    )]
    InterfaceMtu {
        /// The interface.
        interface: String,
        /// Bytes of the longest packet that was asked for.
        mtu_bytes: u32,
        /// Bytes of the longest it takes.
        most_bytes: u32,
    },
    /// A device without its interface.
    #[error("{device} needs a network interface: --vdev {device},iface=eth0")]
    NoInterface {
        /// The device.
        device: String,
    },
    /// The kernel's interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// There is no address.
    #[error(
        "the kernel does not know {device}, so its address must be given: --address 10.0.0.1/24, with its network's prefix"
    )]
    NoAddress {
        /// The device.
        device: String,
    },
    /// The kernel's interface has its address.
    #[error(
        "the address of {device} is that of the network interface {interface}: leave out --address and --gateway"
    )]
    AddressOfInterface {
        /// The device.
        device: String,
        /// The interface.
        interface: String,
    },
    /// Two addresses were given that differ.
    #[error("{bind} is not the address of {device}, which is {local}")]
    OtherAddress {
        /// The device.
        device: String,
        /// That to be reached at.
        bind: IpAddr,
        /// That of the device.
        local: IpAddr,
    },
    /// The address is none.
    #[error(transparent)]
    Address(#[from] LocalError),
    /// One port has one address.
    #[error("{count} addresses were given; over DPDK a device has one, that of its port")]
    SeveralAddresses {
        /// How many.
        count: usize,
    },
    /// The kernel's UDP sockets, which hold the ports where the kernel has the interface, too.
    #[error("{why}")]
    Udp {
        /// What they say.
        why: String,
    },
    /// Anything else the system may say.
    #[error("cannot {doing}: {why}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        why: String,
    },
}
