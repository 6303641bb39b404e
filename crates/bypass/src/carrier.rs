//! Choice of the backend that carries the packets of a device.

use std::net::IpAddr;
use std::time::Duration;

use pathweave_datapath::{Device, DeviceConfig, OpenError, Waiting};

use crate::dpdk;
use crate::dpdk::{DpdkConfig, DpdkError, HugePages, Local};
use crate::xdp::{XdpBackend, XdpConfig, XdpError};

/// Backend that carries the packets of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP sockets.
    #[default]
    Udp,
    /// AF_XDP at a network interface.
    AfXdp {
        /// Name of the interface: `eth0`.
        interface: String,
        /// Behaviour where the interface or the kernel refuses AF_XDP.
        fallback: Fallback,
    },
    /// A port of DPDK.
    Dpdk(DpdkPort),
}

/// A port of DPDK. The device's own configuration adds addresses, paths and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpdkPort {
    /// Network adapter or virtual device.
    pub device: dpdk::Device,
    /// Address of the port with the length of its network's prefix. `None` where the kernel knows the port and has its address.
    pub local: Option<Local>,
    /// Router to other networks.
    pub gateway: Option<IpAddr>,
    /// Longest IP packet, in bytes.
    pub mtu_bytes: u32,
    /// Memory that packets lie in.
    pub huge_pages: HugePages,
}

/// Behaviour where AF_XDP is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// [`open`] fails.
    Fail,
    /// UDP sockets carry packets, and the description of the device says why.
    Udp,
}

/// A device over the carrier that was asked for, or over its fallback.
pub struct Opened {
    /// The device.
    pub device: Device,
    /// Name of the backend for users, and the reason for a fallback. `None` if UDP sockets were asked for.
    pub description: Option<String>,
}

/// A carrier that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// The device's configuration or its sockets.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// AF_XDP at the interface.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// The port of DPDK.
    #[error(transparent)]
    Dpdk(#[from] DpdkError),
}

/// Time that a device which never sleeps polls the driver for packets.
const BUSY_POLL: Duration = Duration::from_micros(20);

/// Opens a device over a carrier.
///
/// # Errors
/// [`CarrierError`]. A fault of the device's configuration is reported before one of the carrier.
pub fn open(config: DeviceConfig, carrier: &Carrier) -> Result<Opened, CarrierError> {
    config.validate().map_err(OpenError::from)?;
    let (device, description) = match carrier {
        Carrier::Udp => (Device::open(config)?, None),
        Carrier::AfXdp { interface, fallback } => return open_af_xdp(config, interface, *fallback),
        Carrier::Dpdk(DpdkPort { device, local, gateway, mtu_bytes, huge_pages }) => {
            let port = dpdk::open(&DpdkConfig {
                device: device.clone(),
                udp: config.udp(),
                local: *local,
                gateway: *gateway,
                mtu_bytes: *mtu_bytes,
                huge_pages: *huge_pages,
            })?;
            (Device::with_backend(config, port.backend)?, Some(port.description))
        }
    };
    Ok(Opened { device, description })
}

/// Opens a device over AF_XDP at a network interface. Programs that call only this need no DPDK.
///
/// # Errors
/// As [`open`].
pub fn open_af_xdp(
    config: DeviceConfig,
    interface: &str,
    fallback: Fallback,
) -> Result<Opened, CarrierError> {
    config.validate().map_err(OpenError::from)?;
    let mut settings = XdpConfig::new(interface, config.udp());
    settings.busy_poll = (config.waiting == Waiting::Busy).then_some(BUSY_POLL);
    match XdpBackend::open(&settings) {
        Ok(backend) => {
            let description = Some(backend.describe());
            Ok(Opened { device: Device::with_backend(config, backend)?, description })
        }
        Err(why) if fallback == Fallback::Udp => {
            let description = Some(format!("UDP sockets, for {why}"));
            Ok(Opened { device: Device::open(config)?, description })
        }
        Err(why) => Err(why.into()),
    }
}
