//! A blocking rtnetlink socket: one request, its answer, and the kernel's own words where it refuses.
//!
//! Messages are those of `netlink-packet-route`. A [`Netlink`] belongs to the network namespace of the thread that opened it,
//! wherever it is used afterwards.

mod error;
mod socket;

pub use error::SystemError;
pub use socket::Netlink;
