//! What a backend is opened with.

use std::net::IpAddr;

use crate::ether::Local;
use pathweave_datapath::backend::UdpConfig;

use crate::dpdk::memory::HugePages;
use crate::dpdk::vdev::Vdev;

/// What DPDK is to make a port of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// A virtual device.
    Vdev(Vdev),
    /// A network adapter, by PCI address: `0000:03:00.0`.
    Pci(String),
}

/// What a backend is opened with.
#[derive(Clone, Debug)]
pub struct DpdkConfig {
    /// The device.
    pub device: Device,
    /// Address, paths and ports, as for sockets. An unspecified address stands for that of `local` or of the kernel's interface.
    pub udp: UdpConfig,
    /// This end of the link. None where the kernel has the interface, too (`net_af_packet`): there it is the interface's.
    pub local: Option<Local>,
    /// Who passes packets on to other networks, if somebody does.
    pub gateway: Option<IpAddr>,
    /// Bytes of the longest IP packet.
    pub mtu_bytes: u32,
    /// Which memory frames lie in. The first backend of a process decides for all.
    pub huge_pages: HugePages,
}
