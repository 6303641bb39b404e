//! Safe interface to DPDK: started once per process, with ports that carry frames. All `unsafe` code that calls DPDK
//! is here.

mod ffi;
mod frames;
mod gate;
mod port;
mod start;

pub(crate) use port::{Port, PortConfig};
pub(crate) use start::start;
