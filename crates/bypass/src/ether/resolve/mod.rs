//! Address resolution on a link that the kernel does not know, without I/O.

mod local;
mod message;
mod resolver;

pub use local::{Local, LocalError};
pub use message::{Message, MessageFlaw, MessageKind};
pub use resolver::{FrameResult, Resolution, Resolver};
