//! State of a loop that does not depend on the service.

use std::net::SocketAddr;
use std::time::Duration;

use pathweave_units::{Duration as Span, Time};

use super::anticipation::{Anticipation, PollMode};
use super::outbound::Outbound;
use super::pacing::Pacer;
use crate::backend::Backend;
use crate::clock::Clock;
use crate::config::{DeviceConfig, Waiting};
use crate::places::BufferTable;
use crate::scheme;

const DAY: Span = Span::from_ms(86_400_000);
/// Time from which the clock may be reset. Time is counted in picoseconds since the device was opened, in 64 bits,
/// which overflow after 213 days. A device may live longer, so from this time on its clock is reset as soon as no
/// state holds an instant.
pub(crate) const MAY_BEGIN_ANEW: Time = Time::from_ps(DAY.as_ps() * 10);
/// Time from which the clock must be reset: well before the overflow, so that no timer is set to an instant beyond
/// it.
pub(crate) const MUST_BEGIN_ANEW: Time = Time::from_ps(DAY.as_ps() * 200);

/// State of a loop that does not depend on the service.
pub(crate) struct Io {
    pub(crate) clock: Clock,
    /// Time last given to the transport.
    pub(crate) now: Time,
    pub(crate) places: BufferTable,
    pub(crate) outbound: Outbound,
    pub(crate) line: Pacer,
    /// Time at which the line rate permits the next packet, if any packets wait for it.
    pub(crate) waits_for_line: Option<Time>,
    pub(crate) local: SocketAddr,
    /// All addresses at which this end is reached, by rail; the first is `local`.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Prefix length of the network of each address, if known.
    pub(crate) prefixes: Vec<Option<u8>>,
    /// Source port of each path, first those of the first rail, then of the next. For statistics.
    pub(crate) ports: Vec<u16>,
    pub(crate) counts: Counts,
    pub(crate) next_upkeep: Time,
    pub(super) waiting: Waiting,
    /// Upper bound on sleeps, set if something must be polled that cannot end a sleep.
    pub(crate) longest_sleep: Option<Duration>,
    /// Time of the last work.
    pub(crate) idle_since: Time,
    pub(crate) anticipation: Anticipation,
    /// True if all arrivals have been received, and there was no sleep since.
    pub(super) drained: bool,
    /// True if there may be arrivals that have not been processed.
    pub(crate) unread: bool,
    /// True if all consequences of the inputs so far have been processed.
    pub(crate) settled: bool,
    /// Deadline by which the loop ends; it ends earlier if all peers have been informed.
    pub(crate) stop_by: Option<Time>,
}

/// Counters that only the loop maintains.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) received_datagrams: u64,
    pub(crate) received_bytes: u64,
    pub(crate) refused_datagrams: u64,
    pub(crate) marked_datagrams: u64,
    pub(crate) turns: u64,
    pub(crate) sleeps: u64,
    pub(crate) paced: u64,
    pub(crate) paced_late_ns: u64,
    pub(crate) paced_late_over_10us: u64,
    pub(crate) panics: u64,
}

fn anticipation(waiting: Waiting) -> Anticipation {
    Anticipation::new(match waiting {
        Waiting::Adaptive { most } => scheme::span(most),
        Waiting::Busy | Waiting::Blocking { .. } => Span::ZERO,
    })
}

impl Io {
    pub(crate) fn new<B: Backend>(config: &DeviceConfig, backend: &B) -> Self {
        let clock = Clock::start();
        Io {
            now: clock.now(),
            clock,
            places: BufferTable::default(),
            outbound: Outbound::new(backend.limits(), backend.paths(), backend.addresses().len()),
            line: Pacer::of_device(config),
            waits_for_line: None,
            local: backend.local_addr(),
            addresses: backend.addresses(),
            prefixes: backend.prefixes(),
            ports: backend.source_ports(),
            counts: Counts::default(),
            next_upkeep: Time::ZERO,
            waiting: config.waiting,
            longest_sleep: None,
            idle_since: Time::ZERO,
            anticipation: anticipation(config.waiting),
            drained: false,
            unread: true,
            settled: false,
            stop_by: None,
        }
    }

    /// Reads the clock and returns the present time as given to the transport.
    pub(crate) fn tick(&mut self) -> Time {
        self.now = self.clock.now().max(self.now);
        self.now
    }

    /// Resets the clock, and all state that holds an instant.
    pub(crate) fn begin_anew(&mut self, config: &DeviceConfig) {
        self.clock = Clock::start();
        self.now = self.clock.now();
        self.line = Pacer::of_device(config);
        self.waits_for_line = None;
        self.next_upkeep = Time::ZERO;
        self.idle_since = self.now;
        self.anticipation = anticipation(self.waiting);
    }

    /// Ensures that the next upkeep is due no later than `at`.
    pub(crate) fn look_by(&mut self, at: Time) {
        self.next_upkeep = self.next_upkeep.min(at);
    }

    /// Returns the way to poll for packets, or `None` to sleep.
    pub(super) fn poll_mode(&mut self, now: Time) -> Option<PollMode> {
        match self.waiting {
            Waiting::Busy => Some(PollMode::Again),
            Waiting::Blocking { spin } => {
                (now - self.idle_since < scheme::span(spin)).then_some(PollMode::Once)
            }
            Waiting::Adaptive { .. } => {
                let bytes = self.counts.received_bytes + self.outbound.counters().bytes;
                self.anticipation.looks(now, bytes)
            }
        }
    }
}
