//! Errors of opening a DPDK port. Their texts name the remedy.

use std::net::IpAddr;

use crate::ether::{InterfaceError, LocalError};
use thiserror::Error;

/// Reason why a backend over DPDK cannot be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpdkError {
    /// The program was built without DPDK.
    #[error(
        "this build of pathweave has no DPDK: install its headers (Debian: libdpdk-dev) and build with \
         \"cargo build --release -p pathweave-cli --features dpdk\""
    )]
    NotBuilt,
    /// The text does not describe a virtual device.
    #[error(
        "{text:?} is no virtual device of DPDK, as net_af_packet0,iface=eth0 or net_memif0,role=client,socket=FILE are"
    )]
    Vdev {
        /// Text that was given.
        text: String,
    },
    /// DPDK fails to start.
    #[error("DPDK does not start: {why}")]
    Start {
        /// Message of DPDK.
        why: String,
    },
    /// There are too few huge pages.
    #[error(
        "frames need {} MB of huge pages, but {} MB are free: `sysctl -w vm.nr_hugepages={pages}`, or \
         --huge-pages never",
        .needed_bytes.div_ceil(1 << 20), .free_bytes >> 20
    )]
    HugePages {
        /// Number of bytes needed.
        needed_bytes: u64,
        /// Number of free bytes.
        free_bytes: u64,
        /// Number of pages needed, of the smallest huge size.
        pages: u64,
    },
    /// DPDK has no such driver.
    #[error("DPDK has no driver for {name}{}; it has {all}, each followed by a number", pathweave_units::suggestion(*.nearest))]
    NoDriver {
        /// Name of the requested device.
        name: String,
        /// Driver with a similar name.
        nearest: Option<&'static str>,
        /// Names of all drivers.
        all: String,
    },
    /// The kernel refuses permission.
    #[error(
        "no permission to {doing}: run as root, or with the capability CAP_NET_RAW (`setcap cap_net_raw+ep PROGRAM`)"
    )]
    Permission {
        /// Operation that was refused.
        doing: &'static str,
    },
    /// DPDK cannot create the device.
    #[error("DPDK cannot use {device}: {why}")]
    Attach {
        /// Name of the device.
        device: String,
        /// Message of DPDK.
        why: String,
    },
    /// Packets are too long for the device.
    #[error(
        "packets of {mtu_bytes} bytes are too long for {device}, which takes {most_bytes} at most: --mtu {most_bytes}"
    )]
    Mtu {
        /// Name of the device.
        device: String,
        /// Size of the largest requested packet in bytes.
        mtu_bytes: u32,
        /// Size of the largest accepted packet in bytes.
        most_bytes: u32,
    },
    /// Packets are too long for the kernel's interface.
    #[error(
        "packets of {mtu_bytes} bytes are too long for the network interface {interface}, which takes {most_bytes}: \
         `ip link set {interface} mtu {mtu_bytes}`, or --mtu {most_bytes}"
    )]
    InterfaceMtu {
        /// Name of the interface.
        interface: String,
        /// Size of the largest requested packet in bytes.
        mtu_bytes: u32,
        /// Size of the largest accepted packet in bytes.
        most_bytes: u32,
    },
    /// The device needs a network interface, and none is given.
    #[error("{device} needs a network interface: --vdev {device},iface=eth0")]
    NoInterface {
        /// Name of the device.
        device: String,
    },
    /// The kernel's interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// No address is given.
    #[error(
        "{device} is unknown to the kernel, so it needs its address: --address 10.0.0.1/24, with its \
         network's prefix"
    )]
    NoAddress {
        /// Name of the device.
        device: String,
    },
    /// An address is given, although the kernel's interface has one.
    #[error(
        "the address of {device} is that of the network interface {interface}: leave out --address and --gateway"
    )]
    AddressOfInterface {
        /// Name of the device.
        device: String,
        /// Name of the interface.
        interface: String,
    },
    /// The two addresses given differ.
    #[error("{bind} is not the address of {device}, which is {local}")]
    OtherAddress {
        /// Name of the device.
        device: String,
        /// Address on which peers reach the device.
        bind: IpAddr,
        /// Address of the device.
        local: IpAddr,
    },
    /// The address or its prefix is invalid.
    #[error(transparent)]
    Address(#[from] LocalError),
    /// Several addresses are given, but a port has only one.
    #[error("{count} addresses were given; over DPDK a device has one, that of its port")]
    SeveralAddresses {
        /// Number of addresses.
        count: usize,
    },
    /// The kernel's UDP sockets cannot be opened. They hold the ports if the kernel also has the interface.
    #[error("{why}")]
    Udp {
        /// Message of the sockets.
        why: String,
    },
    /// Another error of the system.
    #[error("cannot {doing}: {why}")]
    System {
        /// Operation that failed.
        doing: &'static str,
        /// Message of the system.
        why: String,
    },
}
