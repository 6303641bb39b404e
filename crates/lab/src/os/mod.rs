//! What Linux does for us: namespaces, netlink, devices, routes, queues, and programs in the packets' way.

pub(crate) mod device;
pub(crate) mod filter;
pub(crate) mod netns;
pub(crate) mod program;
pub(crate) mod queue;
pub(crate) mod route;
pub(crate) mod sysctl;
