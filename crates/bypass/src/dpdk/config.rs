//! Configuration of a backend.

use std::net::IpAddr;

use crate::ether::Local;
use pathweave_datapath::backend::UdpConfig;

use crate::dpdk::memory::HugePages;
use crate::dpdk::vdev::Vdev;

/// Device that becomes a DPDK port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// Virtual device.
    Vdev(Vdev),
    /// Network adapter with this PCI address, for instance `0000:03:00.0`.
    Pci(String),
}

/// Configuration of a backend.
#[derive(Clone, Debug)]
pub struct DpdkConfig {
    /// Device to open.
    pub device: Device,
    /// Address, paths and ports, as for sockets. An unspecified address stands for that of `local`, or of the
    /// kernel's interface.
    pub udp: UdpConfig,
    /// Address of this end with its network. `None` if the kernel also has the interface (`net_af_packet`), which
    /// then supplies it.
    pub local: Option<Local>,
    /// Gateway to other networks, if there is one.
    pub gateway: Option<IpAddr>,
    /// Size of the largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Memory in which frames are stored. The first backend of a process decides for all.
    pub huge_pages: HugePages,
}
