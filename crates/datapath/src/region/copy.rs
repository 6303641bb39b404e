//! Copying to and from memory that another thread may touch at the same time.
//!
//! A region is written by the network while the application may look at it, as memory of an RDMA adapter is. Two plain
//! copies that meet would be undefined behaviour in Rust, so the region's side of every copy is made of relaxed atomic
//! accesses, eight bytes at a time where alignment allows. What meets is then torn, as with an adapter, and nothing
//! worse. On the machines we know such a copy is as fast as memory is.
#![allow(unsafe_code, reason = "raw memory shared with other threads")]

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

const WORD: usize = size_of::<u64>();

/// Copies `from` to shared memory.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes, and everybody else accesses them atomically.
pub(super) unsafe fn store(to: *mut u8, from: &[u8]) {
    let head = to.align_offset(WORD).min(from.len());
    let (first, rest) = from.split_at(head);
    let words = rest.chunks_exact(WORD);
    let last = words.remainder();
    // SAFETY: every place written lies within the bytes the caller vouches for; words are aligned by `align_offset`.
    unsafe {
        for (i, &byte) in first.iter().enumerate() {
            AtomicU8::from_ptr(to.add(i)).store(byte, Relaxed);
        }
        let mut at = to.add(head);
        for word in words {
            let value = u64::from_ne_bytes(word.try_into().expect("a chunk has this length"));
            AtomicU64::from_ptr(at.cast()).store(value, Relaxed);
            at = at.add(WORD);
        }
        for (i, &byte) in last.iter().enumerate() {
            AtomicU8::from_ptr(at.add(i)).store(byte, Relaxed);
        }
    }
}

/// Copies shared memory to `to`.
///
/// # Safety
/// `from` is valid for reads of `to.len()` bytes, and everybody else accesses them atomically.
pub(super) unsafe fn load(from: *mut u8, to: &mut [u8]) {
    let head = from.align_offset(WORD).min(to.len());
    let (first, rest) = to.split_at_mut(head);
    let mut words = rest.chunks_exact_mut(WORD);
    // SAFETY: as in `store`.
    unsafe {
        for (i, byte) in first.iter_mut().enumerate() {
            *byte = AtomicU8::from_ptr(from.add(i)).load(Relaxed);
        }
        let mut at = from.add(head);
        for word in words.by_ref() {
            word.copy_from_slice(&AtomicU64::from_ptr(at.cast()).load(Relaxed).to_ne_bytes());
            at = at.add(WORD);
        }
        for (i, byte) in words.into_remainder().iter_mut().enumerate() {
            *byte = AtomicU8::from_ptr(at.add(i)).load(Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn copies_what_and_where_it_is_told(
            from in prop::collection::vec(any::<u8>(), 0..200),
            at in 0..40usize,
        ) {
            let mut memory = vec![0xee; 256];
            // SAFETY: at + from.len() < 256, and this thread is the only one.
            unsafe { store(memory.as_mut_ptr().add(at), &from) };
            prop_assert!(memory[..at].iter().all(|&byte| byte == 0xee));
            prop_assert_eq!(&memory[at..at + from.len()], &from[..]);
            prop_assert!(memory[at + from.len()..].iter().all(|&byte| byte == 0xee));
            let mut back = vec![0; from.len()];
            // SAFETY: as above.
            unsafe { load(memory.as_mut_ptr().add(at), &mut back) };
            prop_assert_eq!(back, from);
        }
    }
}
