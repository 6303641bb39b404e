//! jemalloc as the allocator, with its settings.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static HEAP: Jemalloc = Jemalloc;

/// Settings that jemalloc finds by this name; the environment variable `_RJEM_MALLOC_CONF` goes before them.
// SAFETY: jemalloc reads a pointer to a string that ends in a zero, which this is: a reference has the form of a pointer.
#[allow(unsafe_code)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: Option<&'static u8> = Some(&b"thp:always,metadata_thp:always\0"[0]);
