//! Packet sequence numbers: 64 bits in memory, 24 bits on the wire.

/// Bits of a PSN in the base transport header.
pub const PSN_BITS: u32 = 24;

const SPACE: u64 = 1 << PSN_BITS;

/// Returns the 24 bits of `psn` that the wire carries.
pub const fn wire_psn(psn: u64) -> u32 {
    (psn & (SPACE - 1)) as u32
}

/// Returns the 64-bit PSN nearest to `near` whose low 24 bits are `wire`.
///
/// Exact if `near - 2^23 <= psn < near + 2^23`, that is, as long as fewer than 8,388,608 packets of a queue pair are
/// in flight or unaccounted for. The receiver of the number supplies `near`: its next expected PSN for data, its
/// first unacknowledged PSN for answers. No PSN is below zero: near the start of a queue pair, a number that would
/// lie before 0 is read as one cycle later. Bits of `wire` above the 24th are ignored.
pub const fn extend_psn(wire: u32, near: u64) -> u64 {
    let wire = wire as u64 & (SPACE - 1);
    // Distance from the start of the window around `near`, modulo the cycle.
    let window_start = near.saturating_sub(SPACE / 2);
    let ahead = wire.wrapping_sub(window_start) & (SPACE - 1);
    window_start.wrapping_add(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hand_computed() {
        assert_eq!(extend_psn(5, 0), 5);
        // Just past a cycle: 0xffffff belongs to the cycle before.
        assert_eq!(extend_psn(0xff_ffff, 0x100_0002), 0xff_ffff);
        assert_eq!(extend_psn(0x00_0001, 0xff_fffe), 0x100_0001);
        // The edges of the window around 2^24: half a cycle back is inside, half a cycle ahead is not.
        assert_eq!(extend_psn(0x80_0000, 0x100_0000), 0x80_0000);
        assert_eq!(extend_psn(0x7f_ffff, 0x100_0000), 0x17f_ffff);
        // Near the start nothing lies before 0.
        assert_eq!(extend_psn(0xff_ffff, 3), 0xff_ffff);
        assert_eq!(wire_psn(0x1_2345_6789), 0x45_6789);
    }

    proptest! {
        #[test]
        fn exact_within_half_a_cycle(near in any::<u64>(), ahead in -(1i64 << 23)..(1i64 << 23)) {
            prop_assume!(near < u64::MAX - SPACE);
            if let Some(psn) = near.checked_add_signed(ahead) {
                prop_assert_eq!(extend_psn(wire_psn(psn), near), psn);
            }
        }

        #[test]
        fn never_changes_the_bits_that_travelled(wire in any::<u32>(), near in any::<u64>()) {
            prop_assert_eq!(wire_psn(extend_psn(wire, near)), wire & 0xff_ffff);
        }
    }
}
