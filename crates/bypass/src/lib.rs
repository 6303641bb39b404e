//! Backends of the datapath beside the kernel's network stack.
//!
//! [`open`] returns a [`Device`](pathweave_datapath::Device) over a [`Carrier`]: UDP sockets, [`xdp`] (AF_XDP at a
//! network interface) or [`dpdk`] (a port that this process polls). [`ether`] writes and reads the frames of both
//! backends. All three send the same packets, so the peer may use any of them.
//!
//! ```no_run
//! use pathweave_bypass::{Carrier, Fallback, open};
//! use pathweave_datapath::DeviceConfig;
//!
//! let config = DeviceConfig::new("10.0.0.1:18515".parse()?);
//! let carrier = Carrier::AfXdp { interface: "eth0".to_owned(), fallback: Fallback::Udp };
//! let opened = open(config, &carrier)?;
//! println!("{}", opened.description.unwrap_or_default());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg(target_os = "linux")]

mod carrier;
pub mod dpdk;
pub mod ether;
pub mod xdp;

pub use carrier::{Carrier, CarrierError, DpdkPort, Fallback, Opened, open, open_af_xdp};
