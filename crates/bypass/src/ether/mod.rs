//! What backends of the datapath that bypass the kernel's network stack have in common: [frames](frame) with UDP datagrams,
//! written and read here; who is at the other end of a link, as the kernel knows it ([`Neighbours`]) or as the link itself tells
//! ([`Resolver`], for links that the kernel does not know); and [counters](Counters).

mod counters;
pub mod frame;
mod interface;
mod neighbours;
mod resolve;

pub use counters::{Counters, Tally};
pub use interface::{Interface, InterfaceError};
pub use neighbours::{Neighbours, Way};
pub use resolve::{Heard, Local, LocalError, Message, MessageFlaw, MessageKind, Resolver, Step};
