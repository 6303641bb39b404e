//! What an application uses.

mod connection;
mod device;
pub(crate) mod driver;
mod listener;
mod memory;

pub use connection::Connection;
pub use device::Device;
pub use listener::Listener;
pub use memory::{Registration, Remote};
