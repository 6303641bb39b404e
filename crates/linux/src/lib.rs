//! Linux interfaces that the standard library lacks. [`bpf`] assembles, loads and attaches programs for the kernel's
//! virtual machine. [`netlink`] reads and changes interfaces, addresses and routes.
#![cfg(target_os = "linux")]

pub mod bpf;
pub mod netlink;
