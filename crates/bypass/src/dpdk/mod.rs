//! A backend of the datapath over DPDK: [`open`] gives a port to [`Device::with_backend`](pathweave_datapath::Device::with_backend).
//!
//! ```no_run
//! use pathweave_datapath::{Device, DeviceConfig};
//! use crate::dpdk::{Device as Port, DpdkConfig, HugePages};
//!
//! let config = DeviceConfig::new("0.0.0.0:18515".parse()?);
//! let opened = crate::dpdk::open(&DpdkConfig {
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
//! DPDK takes a network adapter, or one of its virtual devices, from the kernel and polls it. Frames are those that AF_XDP sends, too
//! (`crate::ether::frame`), so a peer may use sockets. Where the kernel has the interface as well (`net_af_packet`), its sockets
//! hold the ports and it finds neighbours; elsewhere this crate looks for neighbours and answers them.
//!
//! DPDK can be started once in a process, and the first port decides with which memory. The crate compiles everywhere; without
//! its feature `dpdk` every port is refused with [`DpdkError::NotBuilt`].
#![cfg_attr(not(feature = "dpdk"), allow(dead_code, reason = "what ports need"))]

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

/// Whether this build has DPDK.
pub const IS_BUILT: bool = cfg!(feature = "dpdk");

/// A port.
pub struct Opened {
    /// Carries packets.
    pub backend: Box<dyn Backend>,
    /// What it is, in words.
    pub description: String,
}

/// Opens a port.
///
/// # Errors
/// [`DpdkError`], which says what to do.
#[cfg(feature = "dpdk")]
pub fn open(config: &DpdkConfig) -> Result<Opened, DpdkError> {
    let backend = DpdkBackend::open(config)?;
    Ok(Opened { description: backend.describe(), backend: Box::new(backend) })
}

/// Refuses to open a port, which needs the feature `dpdk`.
///
/// # Errors
/// [`DpdkError::NotBuilt`].
#[cfg(not(feature = "dpdk"))]
pub fn open(_config: &DpdkConfig) -> Result<Opened, DpdkError> {
    Err(DpdkError::NotBuilt)
}
