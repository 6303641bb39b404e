//! A NIC and its host beyond the link: contexts of queue pairs, the bus, the cores that handle datagrams.

mod config;
mod core;
mod engine;

pub use config::{NicConfig, SideChannelConfig};
pub(crate) use core::Cores;
pub(crate) use engine::Engine;
