//! What carries messages: the lanes of queue pairs, and the parts of messages in service.

use std::collections::VecDeque;

use pathweave_execution::ConnId;
use pathweave_fabric::PortId;
use pathweave_sim::{Chooser, PathUse};
use pathweave_units::{Duration, PathId, Time};

use crate::recovery::Pace;
use crate::solver::FlowId;

/// What is to be sent by a queue pair: a part of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) message: u32,
    pub(crate) number: u16,
    pub(crate) bytes: u64,
}

/// The sending side of a queue pair.
#[derive(Default)]
pub(crate) struct Lane {
    pub(crate) conn: ConnId,
    /// Of the network.
    pub(crate) pair: u32,
    /// Where all packets of a message take one path: that, and what chooses it.
    pub(crate) single: Option<Single>,
    pub(crate) waiting: VecDeque<Part>,
    pub(crate) serving: Option<FlowId>,
    /// Of a rate control that gets faster by timers.
    pub(crate) pace: Pace,
    /// When a short message has left.
    pub(crate) free_at: Time,
    /// An event will come when that is.
    pub(crate) waits_until_free: bool,
}

impl Lane {
    /// Which paths a message of it takes.
    pub(crate) fn used(&self) -> PathUse {
        if self.single.is_some() { PathUse::One } else { PathUse::All }
    }

    /// Nothing is before what comes now.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        let busy = self.serving.is_some() || self.waits_until_free || self.free_at > now;
        !busy && self.waiting.is_empty()
    }
}

/// A single path.
pub(crate) struct Single {
    pub(crate) path: PathId,
    /// Empty where there is none.
    pub(crate) route: Vec<PortId>,
    /// Where it is chosen anew with each message.
    pub(crate) chooser: Option<Box<Chooser>>,
}

/// A part of a message in service. What each change of its rate needs comes first, so that it lies together.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Service {
    /// Of `wire`, what is left to send.
    pub(crate) left: f64,
    /// Bytes a picosecond, since when.
    pub(crate) rate: f64,
    pub(crate) since: Time,
    /// What arrives of what is sent.
    pub(crate) efficiency: f64,
    /// Those of its pair.
    pub(crate) gauges: Option<(u32, u32)>,
    /// Of the network.
    pub(crate) pair: u32,
    pub(crate) group: u16,
    pub(crate) lane: u32,
    /// Where its rate control is slow to take what becomes free: the rate it remembers, and since when it is limited.
    pub(crate) remembers: f64,
    pub(crate) limited_since: Time,
    /// What it may have at most: what both ends can do.
    pub(crate) line: f64,
    pub(crate) part: Part,
    /// On the wire.
    pub(crate) wire: f64,
    pub(crate) began: Time,
    pub(crate) base: Duration,
    /// What had crossed the links of both ends' switches when it began, and what of that its pair had sent.
    pub(crate) crossed: [f64; 3],
    /// Bytes of acknowledgements a byte.
    pub(crate) acks: f64,
    /// Of `wire`, what the ledger has.
    pub(crate) counted: f64,
}

impl Service {
    /// Serves it up to `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        let span = (now.as_ps() - self.since.as_ps()) as f64;
        self.left = (self.left - self.rate * self.efficiency * span).max(0.0);
        self.since = now;
    }

    /// When it is over if nothing changes; never where nothing gets through.
    pub(crate) fn ends(&self) -> Option<u64> {
        let rate = self.rate * self.efficiency;
        if self.left <= 0.0 {
            return Some(self.since.as_ps());
        }
        (rate > 0.0).then(|| self.since.as_ps().saturating_add((self.left / rate).ceil() as u64))
    }
}
