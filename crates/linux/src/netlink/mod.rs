//! A blocking rtnetlink socket: one request, its response, and the kernel's error message.
//!
//! Messages are those of `netlink-packet-route`. A [`Netlink`] belongs to the network namespace of the thread that
//! opened it, also if another thread uses it.

mod error;
mod socket;

pub use error::SystemError;
pub use socket::Netlink;
