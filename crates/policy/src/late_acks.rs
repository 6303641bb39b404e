//! Out-of-order-aware path selection: detects acknowledgements of paths that lag behind the others.

/// Detector of lagging acknowledgements (MP-RDMA, NSDI 2018, section 4.3; UDMP, section III-D). An acknowledgement
/// lags if its PSN is more than `delta` behind the highest acknowledged one. Its path is then so much slower than the
/// others that more packets there would only fill the receiver's bitmap. The policy decides how to respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateAckDetector {
    /// Highest PSN acknowledged (`snd_ooh`).
    highest: u64,
    /// Tolerance in packets; 0 disables the detector.
    delta_packets: u32,
}

impl LateAckDetector {
    /// Creates a detector with this tolerance in packets; 0 disables it.
    pub const fn new(delta_packets: u32) -> Self {
        LateAckDetector { highest: 0, delta_packets }
    }
    /// Records an acknowledged PSN. Returns true if it lags.
    #[inline]
    pub fn is_late(&mut self, psn: u64) -> bool {
        let behind = self.highest.saturating_sub(psn);
        self.highest = self.highest.max(psn);
        self.delta_packets > 0 && behind > u64::from(self.delta_packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lags_by_more_than_delta_is_late() {
        let mut ooo = LateAckDetector::new(64);
        assert!(!ooo.is_late(0) && !ooo.is_late(100));
        assert!(!ooo.is_late(36)); // 64 behind
        assert!(ooo.is_late(35));
        assert!(!ooo.is_late(101));
        assert!(ooo.is_late(36)); // now 65 behind
    }

    #[test]
    fn switched_off_nothing_is_late() {
        let mut ooo = LateAckDetector::new(0);
        assert!(!ooo.is_late(1_000_000) && !ooo.is_late(0));
    }
}
