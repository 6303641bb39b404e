//! A libfabric provider: programs that use libfabric (MPI, SHMEM, oneCCL, NCCL through its plugin) run over
//! many paths, unchanged.
//!
//! libfabric opens the shared library and calls [`fi_prov_ini`]. From there on, all calls go through tables
//! of functions. The provider calls no function of libfabric, because the process may contain another copy of
//! it than the one that opened the provider.
//!
//! | module | subject |
//! |---|---|
//! | [`abi`] | structures and constants of libfabric's headers |
//! | `ffi` | functions of the tables; all `unsafe` code |
//! | `getinfo` | offers of the provider |
//! | `settings` | environment variables |
//! | `object` | queues, counters, address vectors, domains |
//! | `endpoint` | `pathweave-tagged` over a `pathweave-datapath` device, and shared memory with peers on this host |
#![cfg(target_os = "linux")]

pub mod abi;
mod endpoint;
mod ffi;
mod getinfo;
mod guard;
mod log;
mod object;
mod settings;

pub use ffi::library::{Library, LibraryError, Offered};
pub use ffi::provider::fi_prov_ini;
pub use getinfo::capability_names;

/// Name of the provider.
const NAME: &str = "pathweave";
