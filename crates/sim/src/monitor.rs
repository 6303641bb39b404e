//! Watching a run from outside: progress, and stopping it.

use pathweave_units::{Duration, Time};

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// Simulated time.
    pub now: Time,
    /// When the run ends whatever is left to do, if it does.
    pub until: Option<Duration>,
    /// Events executed.
    pub events: u64,
    /// Packets that crossed one link each.
    pub packet_hops: u64,
    /// Message bytes delivered, and of how many.
    pub bytes_done: u128,
    /// Message bytes in all.
    pub bytes_total: u128,
    /// Flows done, and of how many.
    pub flows_done: usize,
    /// Flows in all.
    pub flows_total: usize,
}

impl Snapshot {
    /// Share of the run that is done, 0 to 1: of its bytes or of its time, whichever is more.
    pub fn share_done(&self) -> f64 {
        let of_bytes = self.bytes_done as f64 / (self.bytes_total as f64).max(1.0);
        let of_time = self.until.map_or(0.0, |until| self.now.as_ps() as f64 / until.as_ps() as f64);
        of_bytes.max(of_time).min(1.0)
    }
}

/// What a monitor wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// End the run here; what is finished is kept, and the result is marked interrupted.
    Stop,
}

/// Is asked every 2^16 events, a few dozen times a second.
pub trait Monitor {
    /// How far the run has come. Cannot influence results other than by stopping.
    fn look(&mut self, snapshot: &Snapshot) -> Control;
}

/// Watches nothing.
pub struct Quiet;

impl Monitor for Quiet {
    fn look(&mut self, _: &Snapshot) -> Control {
        Control::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_or_time_whichever_is_more() {
        let at = Snapshot {
            now: Time::from_us(30),
            until: None,
            events: 0,
            packet_hops: 0,
            bytes_done: 25,
            bytes_total: 100,
            flows_done: 0,
            flows_total: 1,
        };
        assert_eq!(at.share_done(), 0.25);
        assert_eq!(Snapshot { until: Some(Duration::from_us(60)), ..at }.share_done(), 0.5);
        assert_eq!(Snapshot { until: Some(Duration::from_us(300)), ..at }.share_done(), 0.25);
        // The last window may end behind that time; a run may have nothing to deliver.
        assert_eq!(Snapshot { until: Some(Duration::from_us(20)), ..at }.share_done(), 1.0);
        assert_eq!(Snapshot { bytes_done: 0, bytes_total: 0, ..at }.share_done(), 0.0);
    }
}
