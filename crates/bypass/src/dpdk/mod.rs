//! Datapath backend over DPDK. [`open`] opens a port, which becomes the backend of a device with
//! [`Device::with_backend`](pathweave_datapath::Device::with_backend).
//!
//! ```no_run
//! use pathweave_datapath::{Device, DeviceConfig};
//! use pathweave_bypass::dpdk::{Device as Port, DpdkConfig, HugePages};
//!
//! let config = DeviceConfig::new("0.0.0.0:18515".parse()?);
//! let opened = pathweave_bypass::dpdk::open(&DpdkConfig {
//!     device: Port::Vdev("net_memif0,role=server,socket=/run/fabric.sock".parse()?),
//!     udp: config.udp(),
//!     local: Some("10.0.0.1/24".parse()?),
//!     gateway: None,
//!     mtu_bytes: 1_500,
//!     huge_pages: HugePages::Auto,
//! })?;
//! println!("{}", opened.description);
//! let device = Device::with_backend(config, opened.backend)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! DPDK takes a network adapter, or one of its virtual devices, away from the kernel and polls it. Frames have the
//! format of AF_XDP (`crate::ether::frame`), so the peer may use sockets. If the kernel also has the interface
//! (`net_af_packet`), its sockets hold the ports and it resolves neighbours. Otherwise this crate resolves neighbours
//! and answers their requests.
//!
//! DPDK can be started once per process, and the first port decides about its memory. The crate compiles on every
//! Linux system. Without its feature `dpdk`, opening a port returns [`DpdkError::NotBuilt`].
#![cfg_attr(not(feature = "dpdk"), allow(dead_code, reason = "setup of ports"))]

#[cfg(feature = "dpdk")]
mod backend;
mod config;
#[cfg(feature = "dpdk")]
mod eal;
mod error;
#[cfg(feature = "dpdk")]
mod filter;
#[cfg(feature = "dpdk")]
mod memif;
mod memory;
#[cfg(feature = "dpdk")]
mod reach;
mod vdev;

pub use crate::ether::{Local, LocalError};
use pathweave_datapath::backend::Backend;

#[cfg(feature = "dpdk")]
pub use backend::DpdkBackend;
pub use config::{Device, DpdkConfig};
pub use error::DpdkError;
pub use memory::HugePages;
pub use vdev::Vdev;

/// True if this build contains DPDK.
pub const IS_BUILT: bool = cfg!(feature = "dpdk");

/// Opened port.
pub struct Opened {
    /// Backend that carries packets over the port.
    pub backend: Box<dyn Backend>,
    /// Description of the port.
    pub description: String,
}

/// Opens a port.
///
/// # Errors
/// [`DpdkError`], with the remedy in its text.
#[cfg(feature = "dpdk")]
pub fn open(config: &DpdkConfig) -> Result<Opened, DpdkError> {
    let backend = DpdkBackend::open(config)?;
    Ok(Opened { description: backend.describe(), backend: Box::new(backend) })
}

/// Refuses to open a port, because the feature `dpdk` is disabled.
///
/// # Errors
/// [`DpdkError::NotBuilt`].
#[cfg(not(feature = "dpdk"))]
pub fn open(_config: &DpdkConfig) -> Result<Opened, DpdkError> {
    Err(DpdkError::NotBuilt)
}
