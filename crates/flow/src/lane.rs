//! Lanes, the sending sides of queue pairs, and the parts of messages in service.

use std::collections::VecDeque;

use pathweave_execution::ConnId;
use pathweave_fabric::PortId;
use pathweave_sim::{Chooser, PathUse};
use pathweave_units::{Duration, PathId, Time};

use crate::recovery::RateControl;
use crate::sizes::Size;
use pathweave_execution::max_min::FlowId;

/// Part of a message, sent by one queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) message: u32,
    pub(crate) number: u16,
    pub(crate) bytes: u64,
}

/// Sending side of a queue pair.
#[derive(Default)]
pub(crate) struct SendQueue {
    pub(crate) conn: ConnId,
    /// Index of the pair in the network.
    pub(crate) pair: u32,
    /// Path of the lane, if all packets of a message take a single one.
    pub(crate) single: Option<SinglePath>,
    pub(crate) waiting: VecDeque<Part>,
    pub(crate) serving: Option<FlowId>,
    /// Rate control that increases by timers.
    pub(crate) pace: RateControl,
    /// Time at which the last short message has left.
    pub(crate) free_at: Time,
    /// True if an event at `free_at` or a change of the network will resume the lane.
    pub(crate) waits_until_free: bool,
}

impl SendQueue {
    /// Returns the paths that a message of the lane uses.
    pub(crate) fn used(&self) -> PathUse {
        if self.single.is_some() { PathUse::One } else { PathUse::All }
    }

    /// Returns true if a new part would be served at once.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        let busy = self.serving.is_some() || self.waits_until_free || self.free_at > now;
        !busy && self.waiting.is_empty()
    }
}

/// Times of a single path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathTimes {
    /// One-way time of acknowledgements.
    pub(crate) back: Duration,
    /// True if a round trip takes so much longer than on the best path that windows do not fill the path.
    pub(crate) is_long: bool,
}

/// Single path of a lane.
pub(crate) struct SinglePath {
    pub(crate) path: PathId,
    /// Egress ports of the path. Empty if it leads nowhere.
    pub(crate) route: Vec<PortId>,
    /// Times of the path, if the paths of the pair may differ.
    pub(crate) times: Option<PathTimes>,
    /// Path chooser, if the path is chosen anew for each message.
    pub(crate) chooser: Option<Box<Chooser>>,
}

/// Part of a message in service. The fields used by each change of rate come first, so that they share cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Service {
    /// Bytes of `wire` that are left to send.
    pub(crate) remaining_bytes: f64,
    /// Rate in bytes per picosecond, since the time `since`.
    pub(crate) rate: f64,
    pub(crate) since: Time,
    /// Fraction of the bytes sent that arrive.
    pub(crate) efficiency: f64,
    /// Indices of the pair's gauges.
    pub(crate) gauges: Option<(u32, u32)>,
    /// Index of the pair in the network.
    pub(crate) pair: u32,
    pub(crate) group: u16,
    pub(crate) lane: u32,
    /// Rate to which a slow rate control recovers, and the time since when the flow is limited.
    pub(crate) remembered_rate: f64,
    pub(crate) limited_since: Time,
    /// Largest rate: that of both ends.
    pub(crate) max_rate: f64,
    pub(crate) part: Part,
    /// Size on the wire in bytes.
    pub(crate) wire: f64,
    pub(crate) began: Time,
    pub(crate) size: Size,
    /// Values of `Engine::crossed` when the service began: bytes over the links of both switches, and the pair's part
    /// of them.
    pub(crate) crossed: [f64; 3],
    /// Bytes of acknowledgements per byte sent.
    pub(crate) acks: f64,
    /// Bytes of `wire` that the ledger has.
    pub(crate) ledger_bytes: f64,
}

impl Service {
    /// Advances the service to `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        let span = (now.as_ps() - self.since.as_ps()) as f64;
        self.remaining_bytes = (self.remaining_bytes - self.rate * self.efficiency * span).max(0.0);
        self.since = now;
    }

    /// Returns the time of its end at the current rate, or `None` if nothing gets through.
    pub(crate) fn end_time(&self) -> Option<u64> {
        let rate = self.rate * self.efficiency;
        if self.remaining_bytes <= 0.0 {
            return Some(self.since.as_ps());
        }
        (rate > 0.0).then(|| self.since.as_ps().saturating_add((self.remaining_bytes / rate).ceil() as u64))
    }
}
