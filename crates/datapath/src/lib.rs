//! Real I/O for the transport: the code that was simulated carries traffic over UDP, behind an interface in the manner
//! of the verbs.
//!
//! A [`Device`] is a socket for what arrives, a socket for each path, and a loop that drives them. Connect it to
//! another one, in this process or elsewhere, and post work to the [`Connection`].
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
//! An application with many peers opens connections without waiting, and has all that happens on them in one stream:
//! [`Events`]. It may work in the loop's own thread, from a [hook](Device::set_hook) that the loop calls when there is
//! something to see. There, and wherever waiting for the loop costs too much, regions are closed with [`Events::release`].
//!
//! # Parts
//!
//! | module | subject |
//! |---|---|
//! | [`backend`] | what carries packets: UDP sockets with segmentation offload |
//! | [`secure`] | handshake, keys, packet protection: a crate of its own, without I/O |
//! | [`Region`] | memory that the network reads and writes; [`Slices`]: several pieces of it as one message |
//! | [`Events`] | all that happens on many connections |
//! | `event_loop` | the loop, whatever transport service it drives |
//! | `engine` | connections |
//! | [`rdm`] | reliable datagrams: one endpoint for any number of peers |
//! | `aio` | the same for tokio, with the feature `tokio` |
#![cfg(target_os = "linux")]

#[cfg(feature = "tokio")]
pub mod aio;
mod api;
pub mod backend;
mod clock;
mod completion;
mod config;
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
mod sum;
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
