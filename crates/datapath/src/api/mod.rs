//! Application interface.

mod connection;
mod device;
mod domain;
pub(crate) mod driver;
mod events;
mod fenced;
mod inner;
mod listener;
mod loops;
mod memory;
mod opening;
mod standby;

pub use connection::Connection;
pub use device::Device;
pub use domain::ProtectionDomain;
pub use driver::Turned;
pub use events::{Accepting, Attempt, Events};
pub use fenced::Fenced;
pub use listener::Listener;
pub use loops::{Loops, LoopsListener, LoopsRegistration};
pub use memory::{Registration, Remote};
