//! Interfaces to Linux: namespaces, netlink, devices, routes, queues, and packet programs.

pub(crate) mod device;
pub(crate) mod filter;
pub(crate) mod netns;
pub(crate) mod program;
pub(crate) mod queue;
pub(crate) mod route;
pub(crate) mod sysctl;
