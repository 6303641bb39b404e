//! How a driver is told what is about to be touched, so that it can be loaded in time. Only ever a hint: a simulator with
//! thousands of endpoints spends most of its time waiting for their memory.

/// Begins to load places into the processor's caches.
pub trait Warm {
    /// Loads the cache line that begins `line` lines behind `place`, within it.
    fn warm<T>(&mut self, place: &T, line: usize);
}
