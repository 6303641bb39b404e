//! Who has an address on a link that the kernel does not know: asked for and answered by us, without I/O.

mod local;
mod message;
mod resolver;

pub use local::{Local, LocalError};
pub use message::{Message, MessageFlaw, MessageKind};
pub use resolver::{Heard, Resolver, Step};
