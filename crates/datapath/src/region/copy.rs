//! Copying to and from memory that another thread may touch at the same time.
//!
//! A region is written by the network while the application may look at it, as memory of an RDMA adapter is. Two plain
//! copies that meet would be undefined behaviour in Rust, so the region's side of every copy is made of relaxed atomic
//! accesses, eight bytes at a time where alignment allows, or of instructions the compiler does not look into. What meets
//! is then torn, as with an adapter, and nothing worse.
#![allow(unsafe_code, reason = "raw memory shared with other threads")]

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

const WORD: usize = size_of::<u64>();

/// Copies `from` to shared memory.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes, and everybody else accesses them atomically.
#[inline]
pub(super) unsafe fn store(to: *mut u8, from: &[u8]) {
    // SAFETY: as the caller says; what is left is within `from`.
    unsafe {
        let done = blocks(to, from.as_ptr(), from.len());
        store_words(to.add(done), &from[done..]);
    }
}

/// Copies shared memory to `to`.
///
/// # Safety
/// `from` is valid for reads of `to.len()` bytes, and everybody else accesses them atomically.
#[inline]
pub(super) unsafe fn load(from: *mut u8, to: &mut [u8]) {
    // SAFETY: as the caller says; what is left is within `to`.
    unsafe {
        let done = blocks(to.as_mut_ptr(), from, to.len());
        load_words(from.add(done), &mut to[done..]);
    }
}

/// Copies as many whole blocks as `len` has, with instructions that take more than eight bytes at a time, and says how
/// many bytes that were. To the compiler these instructions are opaque: it supposes neither that memory stays as it is
/// nor that nobody else sees it, so that one side may be shared.
///
/// # Safety
/// `to` is valid for writes and `from` for reads of `len` bytes; they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn blocks(to: *mut u8, from: *const u8, len: usize) -> usize {
    const BLOCK: usize = 64;
    let bytes = len / BLOCK * BLOCK;
    if bytes == 0 {
        return 0;
    }
    // SAFETY: 16 bytes at a time (SSE2, which every x86-64 has), from `-bytes` up to 0 before the end of what is copied,
    // which is within `len`. No flags are kept, no stack is used, and the registers are named.
    unsafe {
        core::arch::asm!(
            "2:",
            "movups {a}, [{from} + {at}]",
            "movups {b}, [{from} + {at} + 16]",
            "movups {c}, [{from} + {at} + 32]",
            "movups {d}, [{from} + {at} + 48]",
            "movups [{to} + {at}], {a}",
            "movups [{to} + {at} + 16], {b}",
            "movups [{to} + {at} + 32], {c}",
            "movups [{to} + {at} + 48], {d}",
            "add {at}, 64",
            "jnz 2b",
            from = in(reg) from.add(bytes),
            to = in(reg) to.add(bytes),
            at = inout(reg) bytes.wrapping_neg() => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
    bytes
}

/// Elsewhere words must do.
///
/// # Safety
/// None is needed.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
unsafe fn blocks(_: *mut u8, _: *const u8, _: usize) -> usize {
    0
}

/// Copies `from` to shared memory, eight bytes at a time.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes, and everybody else accesses them atomically.
#[inline]
unsafe fn store_words(to: *mut u8, from: &[u8]) {
    let (head, words) = divide(to, from.len());
    let source = from.as_ptr();
    // SAFETY: all offsets are below `from.len()`, which both sides are valid for; `divide` gives aligned words.
    unsafe {
        for i in 0..head {
            AtomicU8::from_ptr(to.add(i)).store(source.add(i).read(), Relaxed);
        }
        for i in 0..words {
            let at = head + i * WORD;
            AtomicU64::from_ptr(to.add(at).cast())
                .store(source.add(at).cast::<u64>().read_unaligned(), Relaxed);
        }
        for i in head + words * WORD..from.len() {
            AtomicU8::from_ptr(to.add(i)).store(source.add(i).read(), Relaxed);
        }
    }
}

/// Copies shared memory to `to`, eight bytes at a time.
///
/// # Safety
/// `from` is valid for reads of `to.len()` bytes, and everybody else accesses them atomically.
#[inline]
unsafe fn load_words(from: *mut u8, to: &mut [u8]) {
    let (head, words) = divide(from, to.len());
    let target = to.as_mut_ptr();
    // SAFETY: as in `store`.
    unsafe {
        for i in 0..head {
            target.add(i).write(AtomicU8::from_ptr(from.add(i)).load(Relaxed));
        }
        for i in 0..words {
            let at = head + i * WORD;
            target
                .add(at)
                .cast::<u64>()
                .write_unaligned(AtomicU64::from_ptr(from.add(at).cast()).load(Relaxed));
        }
        for i in head + words * WORD..to.len() {
            target.add(i).write(AtomicU8::from_ptr(from.add(i)).load(Relaxed));
        }
    }
}

/// Bytes of `len` at `start` before the first aligned word, and the words from there on.
#[inline]
fn divide(start: *mut u8, len: usize) -> (usize, usize) {
    let head = (start as usize).wrapping_neg() % WORD;
    let head = head.min(len);
    (head, (len - head) / WORD)
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
