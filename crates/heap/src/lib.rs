//! The heap of the programs. A program that links this crate allocates from mimalloc, which requests huge pages from
//! Linux.
//!
//! A simulated fabric consists of a great number of small allocations, accessed in an order that neither caches nor
//! the TLB hold. With pages of 2 MiB a run needs a few dozen pages instead of tens of thousands. On systems other
//! than Linux the system's allocator is used.
//!
//! The module [`usage`] reports the time and memory that a process has used.

pub mod usage;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;
