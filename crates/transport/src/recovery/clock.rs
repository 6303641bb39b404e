//! Retransmission timer of a queue pair.

use pathweave_units::{Duration, Time};

use super::timed::timing::Slack;
use crate::config::RetransmissionConfig;

/// State of the retransmission timer, which loss recovery reads and changes.
pub(crate) struct Clock<'a> {
    pub(crate) rto: &'a RetransmissionConfig,
    /// Time from a packet to its timeout: the configured value, longer after successive timeouts.
    pub(crate) timeout: &'a mut Duration,
    /// Number of successive timeouts; with recovery by time, of successive ends of patience.
    pub(crate) timeouts: &'a mut u16,
    /// Latest time at which the oldest packet was acknowledged or the timer fired.
    pub(crate) base: &'a mut Time,
    /// Delay of hosts and evidence of losses, for recovery by time.
    pub(crate) slack: Slack,
}

/// Values of a [`Clock`] at one time.
#[derive(Clone, Copy)]
pub(crate) struct ClockValues<'a> {
    pub(crate) rto: &'a RetransmissionConfig,
    pub(crate) timeout: Duration,
    pub(crate) timeouts: u16,
    pub(crate) slack: Slack,
}

impl Clock<'_> {
    #[inline]
    pub(crate) fn values(&self) -> ClockValues<'_> {
        ClockValues { rto: self.rto, timeout: *self.timeout, timeouts: *self.timeouts, slack: self.slack }
    }

    /// Counts a timeout, after which the time grows by `doublings` of the number of successive timeouts. Returns
    /// false if the retry limit is exceeded.
    pub(super) fn count(&mut self, doublings: impl FnOnce(u32) -> u32) -> bool {
        *self.timeouts = self.timeouts.saturating_add(1);
        let timeouts = u32::from(*self.timeouts);
        *self.timeout = self.rto.after(doublings(timeouts));
        // A limit above the range of the counter is reached when the counter saturates.
        *self.timeouts < u16::MAX && timeouts <= self.rto.retry_limit
    }
}
