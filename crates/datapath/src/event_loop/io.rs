//! What every loop has, whatever service it drives.

use std::net::SocketAddr;
use std::time::Duration;

use pathweave_units::{Duration as Span, Time};

use super::anticipation::{Anticipation, Look};
use super::line::Line;
use super::outbound::Outbound;
use crate::backend::Backend;
use crate::clock::Clock;
use crate::config::{DeviceConfig, Waiting};
use crate::places::Places;
use crate::scheme;

const DAY: Span = Span::from_ms(86_400_000);
/// Time is counted in picoseconds since the device was opened, in 64 bits, which last 213 days. A device lasts longer: from
/// then on time begins anew as soon as nothing holds an instant.
pub(crate) const MAY_BEGIN_ANEW: Time = Time::from_ps(DAY.as_ps() * 10);
/// And from then on it must: well before the end of 64 bits, so that no timer is set to an instant beyond.
pub(crate) const MUST_BEGIN_ANEW: Time = Time::from_ps(DAY.as_ps() * 200);

/// What every loop has, whatever service it drives.
pub(crate) struct Io {
    pub(crate) clock: Clock,
    /// What the transport was last told.
    pub(crate) now: Time,
    pub(crate) places: Places,
    pub(crate) outbound: Outbound,
    pub(crate) line: Line,
    /// When the line opens again for packets that wait for it.
    pub(crate) waits_for_line: Option<Time>,
    pub(crate) local: SocketAddr,
    /// All addresses at which this end is reached, by rail; the first is `local`.
    pub(crate) addresses: Vec<SocketAddr>,
    /// For each of them, how many bits name the network it is in, if that is known.
    pub(crate) prefixes: Vec<Option<u8>>,
    /// Source port of each path, of the first rail, then of the next, for statistics.
    pub(crate) ports: Vec<u16>,
    pub(crate) counts: Counts,
    pub(crate) next_upkeep: Time,
    pub(super) waiting: Waiting,
    /// No sleep is longer: something is to be looked at that no sleep waits for.
    pub(crate) longest_sleep: Option<Duration>,
    /// When there was last anything to do.
    pub(crate) idle_since: Time,
    pub(crate) anticipation: Anticipation,
    /// All that had arrived has been received, and there was no sleep since.
    pub(super) drained: bool,
    /// Something may have arrived that has not been looked at.
    pub(crate) unread: bool,
    /// Everything that followed from inputs so far has been done.
    pub(crate) settled: bool,
    /// The loop is to end: as soon as peers know, and by then at the latest.
    pub(crate) stop_by: Option<Time>,
}

/// What only the loop counts.
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
    /// `ports`: source port of each path, of the first rail, then of the next.
    pub(crate) fn new<B: Backend>(config: &DeviceConfig, backend: &B, ports: Vec<u16>) -> Self {
        let clock = Clock::start();
        Io {
            now: clock.now(),
            clock,
            places: Places::default(),
            outbound: Outbound::new(backend.limits(), backend.paths(), backend.addresses().len()),
            line: Line::of_device(config),
            waits_for_line: None,
            local: backend.local_addr(),
            addresses: backend.addresses(),
            prefixes: backend.prefixes(),
            ports,
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

    /// Time passes: the present, as the transport is told.
    pub(crate) fn tick(&mut self) -> Time {
        self.now = self.clock.now().max(self.now);
        self.now
    }

    /// Time begins anew: nothing that was is held against what comes.
    pub(crate) fn begin_anew(&mut self, config: &DeviceConfig) {
        self.clock = Clock::start();
        self.now = self.clock.now();
        self.line = Line::of_device(config);
        self.waits_for_line = None;
        self.next_upkeep = Time::ZERO;
        self.idle_since = self.now;
        self.anticipation = anticipation(self.waiting);
    }

    /// The next upkeep is due by then.
    pub(crate) fn look_by(&mut self, at: Time) {
        self.next_upkeep = self.next_upkeep.min(at);
    }

    /// Whether to look for packets rather than sleep.
    pub(super) fn looks_again(&mut self, now: Time) -> Option<Look> {
        match self.waiting {
            Waiting::Busy => Some(Look::Again),
            Waiting::Blocking { spin } => (now - self.idle_since < scheme::span(spin)).then_some(Look::Once),
            Waiting::Adaptive { .. } => {
                let bytes = self.counts.received_bytes + self.outbound.counters().bytes;
                self.anticipation.looks(now, bytes)
            }
        }
    }
}
