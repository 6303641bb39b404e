//! Prefetch hints: a driver learns which memory is about to be touched and can load it in time. A simulator with
//! thousands of endpoints spends most of its time waiting for their memory.

/// Prefetches memory into the processor's caches.
pub trait Prefetch {
    /// Loads the cache line that begins `line` lines behind the start of `place`. The line lies within `place`.
    fn warm<T>(&mut self, place: &T, line: usize);
}
