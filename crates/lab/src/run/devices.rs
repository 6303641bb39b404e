//! Devices of hosts.

use pathweave_datapath::{Device, DeviceConfig};

/// Port for which the device of a host is opened, on a thread in the host's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// First network interface of the host, which has its address.
    pub interface: String,
    /// Size of the longest IP packet of its link, in bytes.
    pub mtu_bytes: u32,
}

/// Function that opens the device of a host, or returns the reason why it cannot.
pub type OpenDevice<'a> = dyn Fn(&HostPort, DeviceConfig) -> Result<Device, String> + Sync + 'a;

/// Opens a device over UDP sockets, which use all ports of a host.
///
/// # Errors
/// The message of the device.
pub fn over_sockets(_: &HostPort, config: DeviceConfig) -> Result<Device, String> {
    Device::open(config).map_err(|why| why.to_string())
}
