//! The memory packets lie in: chunks of one size, each at any time ours or the kernel's.

#![allow(
    unsafe_code,
    reason = "chunks lie in memory shared with the kernel; each block says why it is valid"
)]

use std::io;

use super::mapping::Mapping;

/// Memory registered with the kernel.
#[derive(Debug)]
pub(super) struct Umem {
    memory: Mapping,
    chunk_bytes: usize,
}

impl Umem {
    pub(super) fn new(chunks: usize, chunk_bytes: usize) -> io::Result<Umem> {
        Ok(Umem { memory: Mapping::anonymous(chunks * chunk_bytes)?, chunk_bytes })
    }

    pub(super) fn address(&self) -> u64 {
        self.memory.place::<u8>(0, self.memory.bytes()).addr() as u64
    }

    pub(super) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Where the chunk begins in which `address` lies; `None`: it lies in none.
    pub(super) fn chunk_of(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address).ok().filter(|at| *at < self.bytes())?;
        Some((at - at % self.chunk_bytes) as u64)
    }

    /// As many bytes in front of `address`; `None`: they are not of its chunk.
    pub(super) fn in_front_mut(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let before = address - self.chunk_of(address)?;
        let start = address.checked_sub(len as u64).filter(|_| before >= len as u64)?;
        self.bytes_mut(start, len)
    }

    /// Bytes of this process: in chunks that the kernel does not have now. `None`: they do not lie in the memory.
    ///
    /// The kernel writes only to chunks in the fill ring and reads only those in the send ring; who calls this has taken the
    /// chunk out of a ring and not put it into another since. Were it otherwise, packets would be damaged, which protection or
    /// CRC find.
    pub(super) fn bytes_mut(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let at = usize::try_from(address).ok()?;
        let end = at.checked_add(len).filter(|end| *end <= self.bytes());
        end.map(|_| {
            // SAFETY: inside the mapping, and `&mut self` says that nobody else of this process looks.
            unsafe { std::slice::from_raw_parts_mut(self.memory.place::<u8>(at, len), len) }
        })
    }
}
