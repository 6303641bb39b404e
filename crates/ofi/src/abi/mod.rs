//! The C interface of libfabric, as `repr(C)` types: one file a header, names as there. What we allocate has the size of
//! libfabric 2.6; what the caller allocates may be shorter, as old as 1.17.
//!
//! Tails that 1.17 does not have are marked; in a structure of the caller they are touched only when the version given to
//! `getinfo` has them.
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

/// `FI_VERSION(major, minor)`.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}
