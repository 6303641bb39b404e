//! Copies to and from memory that other threads may access at the same time.
//!
//! The network writes a region while the application may read it, like the memory of an RDMA adapter. In Rust,
//! concurrent plain copies would be undefined behaviour, and so would concurrent atomic accesses of different sizes.
//! To the language, every access to a region is therefore a relaxed atomic access of a single byte. Concurrent
//! accesses may then be torn byte by byte, as with an adapter, and have no worse effect.
//!
//! As a loop over `AtomicU8` a copy would take many times as long, since the compiler does not merge atomic accesses.
//! The processor may merge them: no guarantee is made about which bytes become visible together, so wider registers
//! do nothing that single bytes could not have done. On x86-64 and AArch64 the copies are therefore inline assembly.
//! The compiler assumes neither that the memory is unchanged nor that no other thread sees it. The effect on memory
//! is that of the loop. Other targets use the loop itself, and so does Miri, which can then detect races with plain
//! accesses.
#![allow(unsafe_code, reason = "raw memory shared with other threads")]

/// Copies `from` to shared memory.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes, and all other accesses to them use these functions or atomics of
/// one byte.
#[inline]
pub(super) unsafe fn store(to: *mut u8, from: &[u8]) {
    // SAFETY: guaranteed by the caller.
    unsafe { machine::store(to, from.as_ptr(), from.len()) }
}

/// Copies `from` to shared memory in ascending order: whoever sees a byte of an aligned word of 8 bytes sees the whole
/// word, and on x86-64 all words below it. On AArch64 whoever sees the last word of an aligned line of 128 bytes sees
/// the words of the line below it.
///
/// # Safety
/// The requirements are those of [`store`].
#[inline]
pub(super) unsafe fn store_ascending(to: *mut u8, from: &[u8]) {
    // SAFETY: guaranteed by the caller.
    unsafe { machine::store_ascending(to, from.as_ptr(), from.len()) }
}

/// Copies shared memory to `to`.
///
/// # Safety
/// `from` is valid for reads of `to.len()` bytes, and all other accesses to them use these functions or atomics of
/// one byte.
#[inline]
pub(super) unsafe fn load(from: *mut u8, to: &mut [u8]) {
    // SAFETY: guaranteed by the caller.
    unsafe { machine::load(to.as_mut_ptr(), from, to.len()) }
}

/// Copy loops in assembly: 64 bytes at a time, then 8, then 1. Each loop counts from minus the number of bytes up to
/// 0, or from the number down to 0. On x86-64 processors with fast string operations (CPUID flag ERMS) long copies
/// are one instruction.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod machine {
    use core::arch::asm;

    pub(super) use copy as store;
    pub(super) use copy as load;

    const BLOCK: usize = 64;
    const WORD: usize = 8;
    /// Length in bytes from which one string instruction is faster than the loops: it takes some 30 cycles to start.
    #[cfg(target_arch = "x86_64")]
    const STRING: usize = 1_024;

    /// Copies `len` bytes; either side may be shared.
    ///
    /// # Safety
    /// `to` is valid for writes and `from` for reads of `len` bytes; they do not overlap.
    #[inline]
    pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
        #[cfg(target_arch = "x86_64")]
        if len >= STRING && std::arch::is_x86_feature_detected!("ermsb") {
            // SAFETY: guaranteed by the caller.
            return unsafe { string(to, from, len) };
        }
        let in_blocks = len / BLOCK * BLOCK;
        let in_words = len / WORD * WORD;
        // SAFETY: the three parts are adjacent and together have `len` bytes.
        unsafe {
            if in_blocks > 0 {
                blocks(to, from, in_blocks);
            }
            if in_words > in_blocks {
                words(to.add(in_blocks), from.add(in_blocks), in_words - in_blocks);
            }
            if len > in_words {
                bytes(to.add(in_words), from.add(in_words), len - in_words);
            }
        }
    }

    /// Bytes of a line of the protocol LL128 of NCCL, whose last word says that the others are there.
    #[cfg(target_arch = "aarch64")]
    const LINE: usize = 128;

    /// Copies `len` bytes upwards, in words that are aligned at the destination. Neither a string instruction nor a
    /// wide register writes here: the order in which their parts become visible is not guaranteed.
    ///
    /// # Safety
    /// The requirements are those of [`copy`].
    pub(crate) unsafe fn store_ascending(to: *mut u8, from: *const u8, len: usize) {
        let head = to.align_offset(WORD).min(len);
        let in_words = (len - head) / WORD * WORD;
        let tail = len - head - in_words;
        // SAFETY: the three parts are adjacent and together have `len` bytes.
        unsafe {
            if head > 0 {
                bytes(to, from, head);
            }
            if in_words > 0 {
                ascending_words(to.add(head), from.add(head), in_words);
            }
            if tail > 0 {
                bytes(to.add(head + in_words), from.add(head + in_words), tail);
            }
        }
    }

    /// # Safety
    /// The requirements are those of [`copy`]; `len` is a multiple of [`WORD`], not 0, and `to` is aligned to it.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    unsafe fn ascending_words(to: *mut u8, from: *const u8, len: usize) {
        // The processor makes stores visible in the order of the program.
        // SAFETY: guaranteed by the caller.
        unsafe { words(to, from, len) }
    }

    /// # Safety
    /// The requirements are those of [`copy`]; `len` is a multiple of [`WORD`], not 0, and `to` is aligned to it.
    #[cfg(target_arch = "aarch64")]
    #[inline]
    unsafe fn ascending_words(to: *mut u8, from: *const u8, len: usize) {
        let mut at = 0;
        while at < len {
            let last_word = LINE - WORD - (to as usize + at) % LINE;
            let before = last_word.min(len - at);
            // SAFETY: parts of `len` bytes.
            unsafe {
                if before > 0 {
                    words(to.add(at), from.add(at), before);
                    at += before;
                }
                if at < len {
                    // SAFETY: a barrier between stores; it changes no register.
                    asm!("dmb ishst", options(nostack, preserves_flags));
                    words(to.add(at), from.add(at), WORD);
                    at += WORD;
                }
            }
        }
    }

    /// Copies with one instruction. It writes whole cache lines without reading their old content first. If the
    /// destination is in no cache, as is mostly true of receive buffers, this halves the memory traffic.
    ///
    /// # Safety
    /// The requirements are those of [`copy`].
    #[cfg(target_arch = "x86_64")]
    #[inline]
    unsafe fn string(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: it copies `len` bytes upwards, because the direction flag is clear on entry to inline assembly. It
        // changes no flags and uses no stack, and its registers are operands.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") len => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags),
            );
        }
    }

    /// # Safety
    /// The requirements are those of [`copy`]; `len` is a multiple of [`BLOCK`], not 0.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    unsafe fn blocks(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: 16 bytes at a time (SSE2, which every x86-64 has), at offsets from `-len` up to 0 relative to the
        // end. Flags may change, no stack is used, and the registers are named.
        unsafe {
            asm!(
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
                from = in(reg) from.add(len),
                to = in(reg) to.add(len),
                at = inout(reg) len.wrapping_neg() => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack),
            );
        }
    }

    /// # Safety
    /// The requirements are those of [`copy`]; `len` is a multiple of [`WORD`], not 0.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    unsafe fn words(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: as in `blocks`.
        unsafe {
            asm!(
                "2:",
                "mov {a}, [{from} + {at}]",
                "mov [{to} + {at}], {a}",
                "add {at}, 8",
                "jnz 2b",
                from = in(reg) from.add(len),
                to = in(reg) to.add(len),
                at = inout(reg) len.wrapping_neg() => _,
                a = out(reg) _,
                options(nostack),
            );
        }
    }

    /// # Safety
    /// The requirements are those of [`copy`]; `len` is not 0.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    unsafe fn bytes(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: as in `blocks`.
        unsafe {
            asm!(
                "2:",
                "mov {a}, [{from} + {at}]",
                "mov [{to} + {at}], {a}",
                "inc {at}",
                "jnz 2b",
                from = in(reg) from.add(len),
                to = in(reg) to.add(len),
                at = inout(reg) len.wrapping_neg() => _,
                a = out(reg_byte) _,
                options(nostack),
            );
        }
    }

    /// # Safety
    /// The requirements are those of [`copy`]; `len` is a multiple of [`BLOCK`], not 0.
    #[cfg(target_arch = "aarch64")]
    #[inline]
    unsafe fn blocks(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: 64 bytes in each iteration, until none of `len` are left. Flags may change, no stack is used, and
        // the registers are named.
        unsafe {
            asm!(
                "2:",
                "ldp {a:q}, {b:q}, [{from}], #32",
                "ldp {c:q}, {d:q}, [{from}], #32",
                "stp {a:q}, {b:q}, [{to}], #32",
                "stp {c:q}, {d:q}, [{to}], #32",
                "subs {left}, {left}, #64",
                "b.ne 2b",
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                left = inout(reg) len => _,
                a = out(vreg) _,
                b = out(vreg) _,
                c = out(vreg) _,
                d = out(vreg) _,
                options(nostack),
            );
        }
    }

    /// # Safety
    /// The requirements are those of [`copy`]; `len` is a multiple of [`WORD`], not 0.
    #[cfg(target_arch = "aarch64")]
    #[inline]
    unsafe fn words(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: as in `blocks`.
        unsafe {
            asm!(
                "2:",
                "ldr {a}, [{from}], #8",
                "str {a}, [{to}], #8",
                "subs {left}, {left}, #8",
                "b.ne 2b",
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                left = inout(reg) len => _,
                a = out(reg) _,
                options(nostack),
            );
        }
    }

    /// # Safety
    /// The requirements are those of [`copy`]; `len` is not 0.
    #[cfg(target_arch = "aarch64")]
    #[inline]
    unsafe fn bytes(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: as in `blocks`.
        unsafe {
            asm!(
                "2:",
                "ldrb {a:w}, [{from}], #1",
                "strb {a:w}, [{to}], #1",
                "subs {left}, {left}, #1",
                "b.ne 2b",
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                left = inout(reg) len => _,
                a = out(reg) _,
                options(nostack),
            );
        }
    }
}

/// Portable definition of the copies.
#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
mod machine {
    use core::sync::atomic::{AtomicU8, Ordering::Relaxed, Ordering::Release};

    /// # Safety
    /// `to` is valid for writes of `len` bytes that others access atomically, `from` for reads of as many.
    pub(super) unsafe fn store(to: *mut u8, from: *const u8, len: usize) {
        for at in 0..len {
            // SAFETY: within `len`.
            unsafe { AtomicU8::from_ptr(to.add(at)).store(from.add(at).read(), Relaxed) };
        }
    }

    /// # Safety
    /// The requirements are those of [`store`].
    pub(super) unsafe fn store_ascending(to: *mut u8, from: *const u8, len: usize) {
        for at in 0..len {
            // SAFETY: within `len`. Each byte is released after those below it.
            unsafe { AtomicU8::from_ptr(to.add(at)).store(from.add(at).read(), Release) };
        }
    }

    /// # Safety
    /// `from` is valid for reads of `len` bytes that others access atomically, `to` for writes of as many.
    pub(super) unsafe fn load(to: *mut u8, from: *mut u8, len: usize) {
        for at in 0..len {
            // SAFETY: within `len`.
            unsafe { to.add(at).write(AtomicU8::from_ptr(from.add(at)).load(Relaxed)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    /// Number of cases; smaller under Miri, which takes a thousand times as long.
    const CASES: u32 = if cfg!(miri) { 16 } else { 512 };

    proptest! {
        #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn copies_what_and_where_it_is_told(
            // Short copies, and some on either side of the 1,024 bytes from which the string instruction is used.
            len in prop_oneof![0..200usize, 1_000..1_100usize],
            seed in any::<u8>(),
            at in 0..40usize,
        ) {
            let from: Vec<u8> = (0..len).map(|place| (place * 31) as u8 ^ seed).collect();
            let mut memory = vec![0xee; len + 56];
            // SAFETY: at + from.len() is less than the memory has, and no other thread uses it.
            unsafe { store(memory.as_mut_ptr().add(at), &from) };
            prop_assert!(memory[..at].iter().all(|&byte| byte == 0xee));
            prop_assert_eq!(&memory[at..at + from.len()], &from[..]);
            prop_assert!(memory[at + from.len()..].iter().all(|&byte| byte == 0xee));
            let mut back = vec![0; from.len()];
            // SAFETY: as above.
            unsafe { load(memory.as_mut_ptr().add(at), &mut back) };
            prop_assert_eq!(&back, &from);
            let mut again = vec![0xee; len + 56];
            // SAFETY: as above.
            unsafe { store_ascending(again.as_mut_ptr().add(at), &from) };
            prop_assert_eq!(again, memory);
        }
    }

    /// A reader that finds a word of one round finds no word of an earlier one below it, and no word is torn.
    #[test]
    #[cfg(not(miri))]
    fn ascending_stores_appear_in_order() {
        use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire};
        const WORDS: usize = 176;
        const LINE_WORDS: usize = 16;
        #[repr(align(128))]
        struct Lines([AtomicU64; WORDS]);
        let lines = Lines(std::array::from_fn(|_| AtomicU64::new(0)));
        let (lines, over) = (&lines.0, &AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for round in 1..=200_000u32 {
                    let word = (u64::from(round) << 32 | u64::from(round)).to_ne_bytes();
                    let packet: Vec<u8> = word.iter().copied().cycle().take(WORDS * 8).collect();
                    // SAFETY: within the atomics; their readers are machine instructions of 8 bytes.
                    unsafe { store_ascending(lines.as_ptr().cast::<u8>().cast_mut(), &packet) };
                }
                over.store(true, std::sync::atomic::Ordering::Release);
            });
            let mut line = 0;
            while !over.load(Acquire) {
                line = (line + 1) % (WORDS / LINE_WORDS);
                let words = &lines[line * LINE_WORDS..][..LINE_WORDS];
                let flag = words[LINE_WORDS - 1].load(Acquire);
                for word in words {
                    let seen = word.load(Acquire);
                    assert!(seen >= flag, "{seen:#x} below a flag of {flag:#x}");
                    assert_eq!(seen >> 32, seen & 0xffff_ffff, "a torn word");
                }
            }
        });
    }

    /// Concurrent copies of every length and alignment in one place: each byte read is one of those that were
    /// written. Miri checks that this is defined.
    #[test]
    fn copies_that_meet_mix_bytes_and_nothing_else() {
        // Long enough for the string instruction.
        const LEN: usize = if cfg!(miri) { 203 } else { 1_403 };
        let shared: Vec<AtomicU8> = (0..LEN).map(|_| AtomicU8::new(1)).collect();
        let shared = &shared[..];
        let start = || shared.as_ptr().cast::<u8>().cast_mut();
        let rounds = if cfg!(miri) { 2 } else { 300 };
        std::thread::scope(|scope| {
            for value in [2, 3] {
                scope.spawn(move || {
                    for round in 0..rounds {
                        let (from, to) = (value as usize * round % 17, LEN - round % 23);
                        // SAFETY: within the atomics, which all threads access atomically.
                        unsafe { store(start().add(from), &[value; LEN][from..to]) };
                    }
                });
            }
            for round in 0..rounds {
                let mut seen = [0; LEN];
                // SAFETY: as above.
                unsafe { load(start(), &mut seen) };
                assert!(seen.iter().all(|byte| (1..=3).contains(byte)), "{seen:?}");
                let single = shared[round % LEN].load(Relaxed);
                assert!((1..=3).contains(&single), "{single}");
            }
        });
    }
}
