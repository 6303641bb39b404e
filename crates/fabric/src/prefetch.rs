//! Prefetching of memory into cache.

/// Prefetches the cache line at the start of `place`. A hint only, without waiting.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch affects only caches, for any address. This address is even valid.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Prefetches the cache line that begins `line` times 64 bytes after `place`, as [`prefetch`] does.
#[inline(always)]
pub fn prefetch_line<T>(place: &T, line: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch affects only caches, for any address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast::<i8>().wrapping_add(line * 64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, line);
}

/// Prefetches every cache line of `place`, as [`prefetch`] does.
#[inline(always)]
pub(crate) fn prefetch_all<T>(place: &T) {
    (0..size_of::<T>().div_ceil(64)).for_each(|line| prefetch_line(place, line));
}
