//! DPDK as the rest of the crate sees it: started once a process, with ports that frames go through. All `unsafe` code is here.

mod ffi;
mod gate;
mod held;
mod port;
mod start;

pub(crate) use port::{Port, PortConfig};
pub(crate) use start::start;
