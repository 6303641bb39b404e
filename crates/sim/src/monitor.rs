//! Observation of a run from outside: its progress, and a request to stop.

use pathweave_units::{Duration, Time};

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// Simulated time.
    pub now: Time,
    /// Simulated time at which the run ends even if work is left, or `None`.
    pub until: Option<Duration>,
    /// Number of events executed.
    pub events: u64,
    /// Number of packet-hops: packets that crossed one link each.
    pub packet_hops: u64,
    /// Message bytes delivered so far.
    pub bytes_done: u128,
    /// Message bytes of the whole run.
    pub bytes_total: u128,
    /// Flows finished so far.
    pub flows_done: usize,
    /// Flows of the whole run.
    pub flows_total: usize,
}

impl Snapshot {
    /// Returns the fraction of the run that is done, from 0 to 1: the larger of the fractions of bytes and of time.
    pub fn share_done(&self) -> f64 {
        let of_bytes = self.bytes_done as f64 / (self.bytes_total as f64).max(1.0);
        let of_time = self.until.map_or(0.0, |until| self.now.as_ps() as f64 / until.as_ps() as f64);
        of_bytes.max(of_time).min(1.0)
    }
}

/// Decision of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorDecision {
    /// Continue the run.
    Continue,
    /// End the run now. Finished flows are kept, and the result is marked as interrupted.
    Stop,
}

/// Observer that is called every 2^16 events, a few dozen times a second.
pub trait Monitor {
    /// Examines the progress of the run. A monitor cannot influence results except by stopping the run.
    fn look(&mut self, snapshot: &Snapshot) -> MonitorDecision;
}

/// Monitor that ignores the progress and never stops the run.
pub struct NoMonitor;

impl Monitor for NoMonitor {
    fn look(&mut self, _: &Snapshot) -> MonitorDecision {
        MonitorDecision::Continue
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
        // The last window may end after `until`, and a run may have nothing to deliver.
        assert_eq!(Snapshot { until: Some(Duration::from_us(20)), ..at }.share_done(), 1.0);
        assert_eq!(Snapshot { bytes_done: 0, bytes_total: 0, ..at }.share_done(), 0.0);
    }
}
