//! Real I/O for the transport. The protocol code that runs in the simulator carries traffic over UDP here, behind an
//! interface modelled on the RDMA verbs.
//!
//! A [`Device`] has one socket for arrivals, one socket for each path, and an event loop that drives them. Connect it
//! to another device, in this process or elsewhere, and post work requests to the [`Connection`].
//!
//! ```
//! use pathweave_datapath::{Access, Device, DeviceConfig, Region};
//! use std::time::Duration;
//!
//! let server = Device::open(DeviceConfig::loopback())?;
//! let client = Device::open(DeviceConfig::loopback())?;
//! let listener = server.listen()?;
//! let near = client.connect(server.local_addr())?;
//! let far = listener.accept(Duration::from_secs(5))?;
//!
//! // The client writes into the server's memory.
//! let target = Region::zeroed(11)?;
//! let registered = server.register(&target, Access::WRITE)?;
//! near.write(1, Region::from_bytes(b"hello world")?.all(), registered.remote(0))?;
//! let done = near.wait(Duration::from_secs(5))?;
//! assert_eq!(done.result(), Ok(11));
//! assert_eq!(target.to_vec(0..11)?, b"hello world");
//! # drop(far);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Many connections
//!
//! An application with many peers opens connections without waiting and receives the events of all of them in one
//! stream: [`Events`]. It may run in the loop's own thread, in a [hook](Device::set_hook) that the loop calls when
//! there are events. In the hook, and wherever waiting for the loop costs too much, regions are closed with
//! [`Events::release`].
//!
//! # Parts
//!
//! | module | subject |
//! |---|---|
//! | [`backend`] | packet I/O: UDP sockets with segmentation offload |
//! | [`secure`] | handshake, keys, packet protection: a separate crate without I/O |
//! | [`Region`] | memory that the network reads and writes; [`Slices`]: several pieces of it as one message |
//! | [`Events`] | events of many connections in one stream |
//! | `event_loop` | the loop, shared by both transport services |
//! | `engine` | connections |
//! | [`rdm`] | reliable datagrams: one endpoint for any number of peers |
//! | `aio` | asynchronous API for tokio, with the feature `tokio` |
#![cfg(target_os = "linux")]

#[cfg(feature = "tokio")]
pub mod aio;
mod api;
pub mod backend;
mod clock;
mod completion;
mod config;
mod crc;
mod engine;
mod error;
mod event;
mod event_loop;
mod hook;
mod places;
pub mod rdm;
mod region;
mod scheme;
mod shared;
mod signals;
mod state;
mod stats;
mod stream;
mod threads;

pub use api::{
    Accepting, Attempt, Connection, Device, Events, Fenced, Listener, Loops, LoopsListener,
    LoopsRegistration, ProtectionDomain, Registration, Remote, Turned,
};
pub use completion::Completion;
pub use config::{ConfigError, DeviceConfig, Driving, MAX_PATHS, Uncontrolled, Unprotected, Waiting};
pub use error::{
    ConnectError, DeregisterError, HookTaken, OpenError, PostError, RegisterError, TooManyDomains, WaitError,
};
pub use event::Event;
pub use pathweave_policy::PathState;
pub use pathweave_secure as secure;
pub use pathweave_transport::{
    Access, Counters, MAX_MESSAGE_BYTES, Opcode, OrderCounters, Status, part_bytes,
};
pub use region::{MAX_SLICES, Region, RegionError, Slice, Slices};
pub use scheme::queue_pairs_of;
pub use shared::ConnectionInfo;
pub use signals::blocked as with_signals_blocked;
pub use state::{CloseReason, ConnectionId, ConnectionState};
pub use stats::{ConnectionStats, DeviceStats, PathStats, SendCounters, SendError};
