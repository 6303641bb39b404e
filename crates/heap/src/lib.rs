//! The heap of the programs. Whoever links this crate allocates from mimalloc, which asks Linux for huge pages.
//!
//! A simulated fabric is small pieces of memory in great number, visited in an order that no cache and no table of pages
//! holds: with pages of 2 MiB a run needs a few dozen of them instead of tens of thousands. Elsewhere than on Linux the heap
//! is the system's.
//!
//! What a program has [used] of time and memory is told here, too, for whoever reports it.
//!
//! [used]: usage

pub mod usage;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;
