//! How hosts get their devices.

use pathweave_datapath::{Device, DeviceConfig};

/// Where the device of a host is opened: on a thread in the host's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// The first network interface of the host, which has its address.
    pub interface: String,
    /// Bytes of the longest IP packet of its link.
    pub mtu_bytes: u32,
}

/// Opens the device of a host, or says why it cannot be.
pub type OpenDevice<'a> = dyn Fn(&HostPort, DeviceConfig) -> Result<Device, String> + Sync + 'a;

/// A device over UDP sockets, which use all ports of a host.
///
/// # Errors
/// What the device says.
pub fn over_sockets(_: &HostPort, config: DeviceConfig) -> Result<Device, String> {
    Device::open(config).map_err(|why| why.to_string())
}
