//! Linux interfaces that the standard library lacks: [`bpf`] assembles, loads and attaches programs for the kernel's virtual
//! machine, and [`netlink`] asks the kernel about interfaces, addresses and routes, and changes them.
#![cfg(target_os = "linux")]

pub mod bpf;
pub mod netlink;
