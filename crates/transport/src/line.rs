//! Alignment to cache lines.

use core::ops::{Deref, DerefMut};

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// A value that begins at the start of a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct CacheAligned<T>(pub(crate) T);

impl<T> Deref for CacheAligned<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CacheAligned<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
