//! Real I/O for the transport: the code that was simulated carries traffic over UDP.
#![cfg(target_os = "linux")]

pub mod secure;
