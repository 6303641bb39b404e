//! Shared parts of datapath backends that bypass the kernel's network stack: writing and parsing of [frames](frame)
//! with UDP datagrams, neighbour resolution, and [counters](Counters). Neighbours are resolved by the kernel
//! ([`Neighbours`]), or by this crate on links that the kernel does not know ([`Resolver`]).

mod counters;
pub mod frame;
mod interface;
mod neighbours;
mod resolve;

pub use counters::{CounterValues, Counters};
pub use interface::{Interface, InterfaceError};
pub use neighbours::{Delivery, Neighbours};
pub use resolve::{FrameResult, Local, LocalError, Message, MessageFlaw, MessageKind, Resolution, Resolver};
