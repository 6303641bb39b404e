//! Datapath backend over AF_XDP: packets bypass the kernel's network stack between this process and the network
//! interface.
//!
//! ```no_run
//! use pathweave_datapath::{Device, DeviceConfig};
//! use pathweave_bypass::xdp::{XdpBackend, XdpConfig};
//!
//! let config = DeviceConfig::new("10.0.0.1:18515".parse()?);
//! let backend = XdpBackend::open(&XdpConfig::new("eth0", config.udp()))?;
//! println!("{}", backend.describe());
//! let device = Device::with_backend(config, backend)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An XDP program steers the packets for the device's ports to this process and passes all others to the kernel. The
//! crate builds the frames to send: Ethernet, IP and UDP, with the source port of the path, so that networks spread
//! paths as with sockets. The frames are the same as those of sockets, so the peer may use either.
//!
//! Each backend also has the UDP sockets of [`UdpBackend`](pathweave_datapath::backend::UdpBackend). They hold the
//! ports, carry packets over other interfaces, and make the kernel resolve the Ethernet addresses of neighbours. They
//! carry everything if the program is detached or the interface is removed. A device over AF_XDP therefore reaches
//! whatever one over UDP reaches.

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
