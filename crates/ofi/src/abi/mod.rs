//! C interface of libfabric as `repr(C)` types. Each header has one file, and names are the same as in C.
//! Structures that the provider allocates have the size of libfabric 2.6. Structures of the caller may be
//! shorter, as old as 1.17.
//!
//! Trailing members that 1.17 lacks are marked. In a structure of the caller, the provider accesses them only
//! if the version given to `getinfo` has them.
#![allow(missing_docs, reason = "the meaning of each field is in libfabric's manual, under the same name")]

pub mod atomic;
pub mod cm;
pub mod domain;
pub mod endpoint;
pub mod eq;
pub mod errno;
pub mod fabric;
pub mod fid;
pub mod provider;
pub mod rma;
pub mod tagged;

#[cfg(test)]
mod layout_test;

/// Computes `FI_VERSION(major, minor)`.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}
