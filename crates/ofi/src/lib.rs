//! A libfabric provider: what speaks libfabric (MPI, SHMEM, oneCCL, NCCL through its plugin) runs over many paths, unchanged.
//!
//! libfabric opens the shared library, calls [`fi_prov_ini`], and from there on everything goes through tables of functions.
//! No function of libfabric is called: the process may hold another copy of it than the one that opened us.
//!
//! | module | subject |
//! |---|---|
//! | [`abi`] | the structures and constants of libfabric's headers |
//! | `ffi` | the functions of the tables; all `unsafe` code |
//! | `getinfo` | what is offered |
//! | `settings` | the environment |
//! | `object` | queues, counters, address vectors, domains |
//! | `endpoint` | the engine of `pathweave-tagged` over the device of `pathweave-datapath`, and memory shared with peers on this host |
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

/// What the provider is called.
const NAME: &str = "pathweave";
