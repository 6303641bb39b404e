//! The heap of the programs. Whoever links this crate allocates from jemalloc, which asks Linux for huge pages.
//!
//! A simulated fabric is small pieces of memory in great number, visited in an order that no cache and no table of pages
//! holds: with pages of 2 MiB a run needs a few dozen of them instead of tens of thousands. Elsewhere than on Linux the heap
//! is the system's.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static HEAP: Jemalloc = Jemalloc;

/// Settings that jemalloc finds by this name; the environment variable `_RJEM_MALLOC_CONF` goes before them.
// SAFETY: jemalloc reads a pointer to a string that ends in a zero, which this is: a reference has the form of a pointer.
#[allow(unsafe_code)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: Option<&'static u8> = Some(&b"thp:always,metadata_thp:always\0"[0]);
