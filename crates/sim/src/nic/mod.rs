//! NIC and host beyond the link: queue-pair contexts, PCIe, and the cores that handle datagrams.

mod config;
mod core;
mod engine;
mod model;
mod reorder;

pub use config::{NicConfig, SideChannelConfig, SideRoute};
pub(crate) use core::{Cores, Datagram};
pub(crate) use engine::Engine;
pub(crate) use model::{Channel, DATAGRAMS, DatagramRoutes, NicModel, SentAgain};
pub(crate) use reorder::Reorder;
