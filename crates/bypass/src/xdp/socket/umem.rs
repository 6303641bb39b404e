//! Memory of packets: chunks of one size, each owned by either this process or the kernel at any time.

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
        self.memory.address_of::<u8>(0, self.memory.bytes()).addr() as u64
    }

    pub(super) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Returns the start of the chunk that contains `address`, or `None` if it is outside the memory.
    pub(super) fn chunk_of(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address).ok().filter(|at| *at < self.bytes())?;
        Some((at - at % self.chunk_bytes) as u64)
    }

    /// Returns the `len` bytes in front of `address`, or `None` if they are not in the same chunk.
    pub(super) fn in_front_mut(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let before = address - self.chunk_of(address)?;
        let start = address.checked_sub(len as u64).filter(|_| before >= len as u64)?;
        self.bytes_mut(start, len)
    }

    /// Returns bytes in chunks that the kernel does not own now, or `None` if they are outside the memory.
    ///
    /// The kernel writes only to chunks in the fill ring and reads only chunks in the send ring. The caller must have
    /// taken the chunk from a ring and not put it into another one since. Otherwise packets would be damaged, which
    /// their protection or CRC would detect.
    pub(super) fn bytes_mut(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let at = usize::try_from(address).ok()?;
        let end = at.checked_add(len).filter(|end| *end <= self.bytes());
        end.map(|_| {
            // SAFETY: the range is within the mapping, and `&mut self` excludes other accesses by this process.
            unsafe { std::slice::from_raw_parts_mut(self.memory.address_of::<u8>(at, len), len) }
        })
    }
}
