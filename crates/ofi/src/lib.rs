//! A libfabric provider on the datapath.
#![cfg(target_os = "linux")]
pub mod abi;
