//! A backend of the datapath over AF_XDP: packets go to and from the network interface past the kernel's network stack.
//!
//! ```no_run
//! use pathweave_datapath::{Device, DeviceConfig};
//! use crate::xdp::{XdpBackend, XdpConfig};
//!
//! let config = DeviceConfig::new("10.0.0.1:18515".parse()?);
//! let backend = XdpBackend::open(&XdpConfig::new("eth0", config.udp()))?;
//! println!("{}", backend.describe());
//! let device = Device::with_backend(config, backend)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An XDP program gives us the packets that are for the device's ports, and passes all others to the kernel. What the device
//! sends is made here: Ethernet, IP and UDP, with the source port of its path, so that networks spread paths as with
//! sockets. It is the same on the wire, so peers may use either.
//!
//! Each backend has the UDP sockets of [`UdpBackend`](pathweave_datapath::backend::UdpBackend), too. They hold the ports, carry
//! what goes by another interface, have the kernel find out the Ethernet addresses of neighbours, and carry everything
//! where the program is taken off or the interface goes: a device over AF_XDP is never worse off than one over UDP.

mod backend;
mod config;
mod error;
mod socket;
mod stamp;
mod steering;

pub use backend::XdpBackend;
pub use config::XdpConfig;
pub use error::XdpError;
pub use socket::Transfer;
