//! Frames owned by this process: received ones, and those about to be sent.

#![allow(unsafe_code, reason = "frames lie in DPDK's memory; each block says why it is valid")]

use std::ptr::null_mut;

use super::ffi::{self, Mbuf, Pool};

/// Largest number of frames that one call takes from a port or gives to it.
pub(super) const BURST: usize = 64;
/// Smallest burst, for frames of any length.
const LEAST_BURST: usize = 8;
/// Bytes of a burst, which makes bursts of long frames shorter. The copied bytes of a burst are read when it is
/// complete, and should still be in the second-level cache.
const BURST_BYTES: usize = 128 << 10;

/// Returns the number of frames of this length that one call takes from a port or gives to it.
pub(super) fn burst_of(frame_bytes: usize) -> usize {
    (BURST_BYTES / frame_bytes.max(1)).clamp(LEAST_BURST, BURST)
}
/// Largest number of frames that wait for space at the port.
const MOST_WAITING: usize = 4 * BURST;

/// Received frames that have not been delivered.
#[derive(Debug)]
pub(super) struct RxBurst {
    frames: [*mut Mbuf; BURST],
    bytes: [*mut u8; BURST],
    lengths: [u32; BURST],
    count: usize,
    burst: usize,
}

impl RxBurst {
    /// Creates an empty store for bursts of at most `burst` frames.
    pub(super) fn new(burst: usize) -> Self {
        let (frames, bytes, lengths) = ([null_mut(); BURST], [null_mut(); BURST], [0; BURST]);
        RxBurst { frames, bytes, lengths, count: 0, burst: burst.min(BURST) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes a burst from the port, if none is stored.
    pub(super) fn take(&mut self, port: u16) {
        if self.count == 0 {
            let (frames, bytes) = (self.frames.as_mut_ptr(), self.bytes.as_mut_ptr());
            // SAFETY: the arrays have space for the given number of frames, and the port is alive because a `Port`
            // calls this.
            let count = unsafe {
                ffi::pathweave_dpdk_receive(port, frames, bytes, self.lengths.as_mut_ptr(), self.burst as u16)
            };
            self.count = usize::from(count);
        }
    }

    /// Passes all frames to `sink` and frees them. Returns their number.
    pub(super) fn deliver(&mut self, mut sink: impl FnMut(&mut [u8])) -> usize {
        /// Frees the frames even if `sink` panics, so that no frame is delivered twice.
        struct Shown<'a>(&'a mut RxBurst);
        impl Drop for Shown<'_> {
            fn drop(&mut self) {
                self.0.free();
            }
        }
        let shown = Shown(self);
        let count = shown.0.count;
        for index in 0..count {
            let (bytes, length) = (shown.0.bytes[index], shown.0.lengths[index] as usize);
            // SAFETY: we own the frame until it is freed, its driver has written `length` bytes there, and no other
            // reference to it exists.
            sink(unsafe { std::slice::from_raw_parts_mut(bytes, length) });
        }
        count
    }

    fn free(&mut self) {
        // SAFETY: the first `count` frames belong to DPDK, and we alone own them.
        unsafe { ffi::pathweave_dpdk_free(self.frames.as_mut_ptr(), self.count as u32) };
        self.count = 0;
    }
}

impl Drop for RxBurst {
    fn drop(&mut self) {
        self.free();
    }
}

/// Frames to be sent.
#[derive(Debug)]
pub(super) struct TxQueue {
    /// Empty frames, with the addresses of their bytes.
    spare: [(*mut Mbuf, *mut u8); BURST],
    spares: usize,
    waiting: Vec<*mut Mbuf>,
    lengths: Vec<u16>,
    frame_bytes: usize,
}

impl TxQueue {
    pub(super) fn new(frame_bytes: usize) -> Self {
        TxQueue {
            spare: [(null_mut(), null_mut()); BURST],
            spares: 0,
            waiting: Vec::with_capacity(MOST_WAITING),
            lengths: Vec::with_capacity(MOST_WAITING),
            frame_bytes,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if `wanted` more frames may wait. `wanted` is at most a burst.
    pub(super) fn has_room(&self, wanted: usize) -> bool {
        self.waiting.len() + wanted <= MOST_WAITING
    }

    /// Fetches empty frames until there are `wanted`, and no more. The most recently sent frames come first and are
    /// still in a cache. Returns false if the pool is exhausted.
    pub(super) fn has_spares(&mut self, pool: *mut Pool, wanted: usize) -> bool {
        if self.spares < wanted.min(BURST) {
            let missing = wanted.min(BURST) - self.spares;
            let (mut frames, mut bytes) = ([null_mut(); BURST], [null_mut(); BURST]);
            // SAFETY: the arrays have space for the given number of frames, and the pool is alive because a `Port`
            // calls this.
            let result = unsafe {
                ffi::pathweave_dpdk_allocate(pool, frames.as_mut_ptr(), bytes.as_mut_ptr(), missing as u32)
            };
            if result != 0 {
                return false;
            }
            for spare in frames.into_iter().zip(bytes).take(missing) {
                self.spare[self.spares] = spare;
                self.spares += 1;
            }
        }
        wanted <= BURST
    }

    /// Lets `write` fill an empty frame and queues it with the returned length. `write` may return `None`, which
    /// queues nothing. Returns false without an empty frame.
    #[inline]
    pub(super) fn push(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let Some(last) = self.spares.checked_sub(1) else { return false };
        let (frame, bytes) = self.spare[last];
        // SAFETY: frames of the pool have `frame_bytes` of space (`Port::open`), and we alone own this one.
        let room = unsafe { std::slice::from_raw_parts_mut(bytes, self.frame_bytes) };
        let length = write(room).filter(|length| (1..=self.frame_bytes).contains(length));
        if let Some(length) = length.and_then(|length| u16::try_from(length).ok()) {
            self.spares = last;
            self.waiting.push(frame);
            self.lengths.push(length);
        }
        true
    }

    /// Gives the port as many frames as it accepts. Returns their number.
    pub(super) fn transmit(&mut self, port: u16, frees_quietly: bool) -> usize {
        let mut left = 0;
        while left < self.waiting.len() {
            let count = (self.waiting.len() - left).min(BURST);
            let (frames, lengths) = (&mut self.waiting[left..], &self.lengths[left..]);
            // SAFETY: `count` frames with their lengths follow, we own them, and the port is alive because a `Port`
            // calls this.
            let taken = unsafe {
                ffi::pathweave_dpdk_send(
                    port,
                    frames.as_mut_ptr(),
                    lengths.as_ptr(),
                    count as u16,
                    frees_quietly.into(),
                )
            };
            left += usize::from(taken).min(count);
            if usize::from(taken) < count {
                break;
            }
        }
        self.waiting.drain(..left);
        self.lengths.drain(..left);
        left
    }

    /// Drops the waiting frames. Returns their number.
    pub(super) fn drop_waiting(&mut self) -> usize {
        let count = self.waiting.len();
        // SAFETY: the frames belong to DPDK, and we alone own them.
        unsafe { ffi::pathweave_dpdk_free(self.waiting.as_mut_ptr(), count as u32) };
        self.waiting.clear();
        self.lengths.clear();
        count
    }
}

impl Drop for TxQueue {
    fn drop(&mut self) {
        self.drop_waiting();
        let mut spare = self.spare.map(|(frame, _)| frame);
        // SAFETY: the first `spares` frames belong to DPDK, and we alone own them.
        unsafe { ffi::pathweave_dpdk_free(spare.as_mut_ptr(), self.spares as u32) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_long_frames_are_shorter() {
        // 131,072 bytes hold 85 frames of 1,536, 14 of 9,024 and 2 of 65,408.
        assert_eq!([64, 1_536, 9_024, 65_408].map(burst_of), [BURST, BURST, 14, LEAST_BURST]);
    }
}
