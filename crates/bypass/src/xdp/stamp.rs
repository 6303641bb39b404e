//! Arrival time that the XDP program writes in front of a packet.

use rustix::time::{ClockId, clock_gettime};

/// Size of a stamp in bytes: the sign, then the time.
pub(crate) const BYTES: usize = 16;
/// Magic number that distinguishes a stamp from other bytes in front of a packet.
pub(crate) const SIGN: u64 = u64::from_ne_bytes(*b"pathwtim");
/// Largest plausible age. Older stamps are ignored.
const OLDEST_NS: u64 = 1_000_000_000;

/// Removes the stamp and returns the arrival time in nanoseconds of the kernel's monotonic clock.
#[inline]
pub(crate) fn remove_stamp(note: &mut [u8]) -> Option<u64> {
    let (sign, time) = note.split_first_chunk_mut::<8>()?;
    if u64::from_ne_bytes(*sign) != SIGN {
        return None;
    }
    // The sign is cleared, because the next packet at this address may have no stamp.
    *sign = [0; 8];
    time.first_chunk().map(|time| u64::from_ne_bytes(*time))
}

/// Returns the current time of the same clock.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Returns the age of a packet, or `None` if it is negative or implausible.
#[inline]
pub(crate) fn age_ns(arrived_ns: u64, now_ns: u64) -> Option<u64> {
    now_ns.checked_sub(arrived_ns).filter(|age| *age < OLDEST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_taken_once() {
        let mut note = [SIGN.to_ne_bytes(), 77u64.to_ne_bytes()].concat();
        assert_eq!(remove_stamp(&mut note), Some(77));
        assert_eq!(remove_stamp(&mut note), None);
        assert_eq!((remove_stamp(&mut [0; 16]), remove_stamp(&mut [])), (None, None));
    }

    #[test]
    fn future_and_old_stamps_are_no_arrival_times() {
        assert_eq!(age_ns(100, 350), Some(250));
        assert_eq!(age_ns(350, 100), None);
        assert_eq!(age_ns(0, OLDEST_NS), None);
    }
}
