//! Changes of the window by an acknowledgement, a trim or a loss.

use alloc::boxed::Box;

use pathweave_units::{Duration, Time, TrimmedAt};

use super::super::median::Median;
use super::{COLLAPSE_DELAY, LastHopTrims, NsccConfig, NsccProfile, TARGET};
use crate::{PolicyEnv, SendWindow};

/// Network for which increases are given: 100 Gb/s and 12 us, with a bandwidth-delay product of 150,000 bytes.
const REFERENCE_BDP_BYTES: f64 = 150_000.0;
const REFERENCE_TARGET_PS: f64 = 12e6;

/// Fraction of the base round-trip time that the average delay approaches while packets above the target are
/// unmarked.
const UNMARKED_AVERAGE: f64 = 0.25;

/// One acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    /// Bytes of the packets that this acknowledgement is the first to report.
    pub(super) bytes: u64,
    /// Round-trip time of the packet that triggered it, if that was sent once, and its bytes on the wire.
    pub(super) rtt: Option<Duration>,
    pub(super) timed_bytes: u32,
    /// True if the packet that triggered it was marked.
    pub(super) marked: bool,
}

/// The window and the state that controls it. Sizes are bytes on the wire; delays are in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    window: u64,
    in_flight: u64,
    base_rtt: Duration,
    max_window: u64,
    /// Average queueing delay.
    average: f64,
    /// Sum of increases not yet applied, each weighted by its acknowledged bytes; and those bytes.
    earned: f64,
    received: u64,
    /// Bytes acknowledged in a row without a queue; and whether the window grows fast.
    unqueued: u64,
    fast: bool,
    last_applied: Time,
    last_decrease: Time,
    /// Median filter of delays and its largest number of delays, if configured.
    median: Option<Box<(Median, u16)>>,
    /// State of quick adapt: bytes acknowledged since the last check; time of the next check, zero before the first;
    /// whether a packet was trimmed since quick adapt last acted; number of bytes whose marks are ignored, and how
    /// many of them have arrived.
    achieved: u64,
    adapt_at: Time,
    trimmed: bool,
    to_ignore: u64,
    ignored: u64,
    // Boxed, because it never changes.
    params: Box<Params>,
}

#[derive(Clone, Copy, Debug)]
struct Params {
    profile: NsccProfile,
    mtu: u64,
    network_rtt: Duration,
    /// Shortest base that measurements may show: none is shorter where the idle path is known.
    least_base: Duration,
    target: f64,
    /// Increase in bytes, per acknowledged byte and picosecond below the target, times the window.
    proportional: f64,
    /// Increase in bytes per acknowledged byte, times the window.
    fair: f64,
    constant: f64,
    fast: f64,
    fast_delay: f64,
    decrease: f64,
    max_decrease: f64,
    gain: f64,
    collapse_delay: f64,
    collapse_share: f64,
    apply_bytes: f64,
    max_bdp: f64,
    last_hop_trims: LastHopTrims,
    /// Picoseconds per byte at line rate.
    byte_ps: f64,
}

impl Controller {
    pub(super) fn new(config: &NsccConfig, env: &PolicyEnv) -> Self {
        let network_rtt = config.network_rtt.unwrap_or(env.base_rtt);
        let byte_ps = 8e12 / env.line_rate.as_bps().max(1) as f64;
        let bdp = network_rtt.as_ps() as f64 / byte_ps;
        let target = config.delay_target.unwrap_or(TARGET) * network_rtt.as_ps() as f64;
        let scale = bdp / REFERENCE_BDP_BYTES;
        let mss = f64::from(env.mtu_payload_bytes);
        let mut law = Controller {
            window: 0,
            in_flight: 0,
            base_rtt: network_rtt,
            max_window: 0,
            average: 0.0,
            earned: 0.0,
            received: 0,
            unqueued: 0,
            fast: false,
            last_applied: Time::ZERO,
            last_decrease: Time::ZERO,
            median: config.median_packets.map(|packets| Box::new((Median::default(), packets))),
            achieved: 0,
            adapt_at: Time::ZERO,
            trimmed: false,
            to_ignore: 0,
            ignored: 0,
            params: Box::new(Params {
                profile: config.profile,
                mtu: u64::from(env.mtu_wire_bytes),
                network_rtt,
                least_base: if env.measured.links > 0 { env.base_rtt } else { Duration::ZERO },
                target,
                proportional: config.proportional_increase * mss * scale * (target / REFERENCE_TARGET_PS)
                    / target,
                fair: config.fair_increase * mss * scale,
                constant: config.constant_increase * mss * scale,
                fast: config.fast_increase * scale,
                fast_delay: config.fast_delay.as_ps() as f64,
                decrease: config.decrease,
                max_decrease: config.max_decrease,
                gain: config.delay_gain,
                collapse_delay: config.collapse_delay.unwrap_or(COLLAPSE_DELAY) * target,
                collapse_share: config.collapse_share,
                apply_bytes: config.apply_packets * f64::from(env.mtu_wire_bytes),
                max_bdp: config.max_bdp,
                last_hop_trims: config.last_hop_trims,
                byte_ps,
            }),
        };
        law.max_window = law.most_at(network_rtt);
        law.window = law.max_window;
        law
    }

    /// Returns the largest window of a network with this round-trip time. Below two packets a window of whole packets
    /// would leave the line idle.
    fn most_at(&self, base_rtt: Duration) -> u64 {
        let bdp = ((base_rtt.as_ps() as f64 / self.params.byte_ps) as u64).max(2 * self.params.mtu);
        ((self.params.max_bdp * bdp as f64) as u64).max(self.params.mtu)
    }

    pub(super) fn window_bytes(&self) -> u64 {
        self.window
    }
    pub(super) fn base_rtt(&self) -> Duration {
        self.base_rtt
    }
    pub(super) fn send_window(&self) -> SendWindow {
        SendWindow {
            bytes: self.window,
            most_bytes: self.max_window,
            base_rtt: self.base_rtt,
            delay_target: Duration::from_ps(self.params.target as u64),
        }
    }

    /// Starts the clocks when the queue pair opens.
    pub(super) fn begin(&mut self, now: Time) {
        if self.params.profile == NsccProfile::Ue10 {
            (self.last_applied, self.last_decrease) = (now, now);
        }
    }

    pub(super) fn on_sent(&mut self, wire_bytes: u32) {
        self.in_flight += u64::from(wire_bytes);
    }

    fn landed(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// Lowers the base to the shorter round-trip time of a packet of this size. Links and switches forward shorter packets
    /// faster, so only full ones show the base.
    fn learn_base(&mut self, rtt: Duration, wire_bytes: u32) {
        let rtt = rtt.max(self.params.least_base);
        if u64::from(wire_bytes) >= self.params.mtu && rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.max_window = self.most_at(rtt);
        }
    }

    pub(super) fn on_ack(&mut self, now: Time, acked: &Acked) {
        self.achieved += acked.bytes;
        self.received += acked.bytes;
        self.ignored += acked.bytes;
        self.landed(acked.bytes);
        let delay = match acked.rtt {
            Some(rtt) => {
                self.learn_base(rtt, acked.timed_bytes);
                let delay = self.delay_of(rtt.saturating_sub(self.base_rtt)).as_ps() as f64;
                self.note_delay(delay, acked.marked);
                delay
            }
            None if self.params.profile == NsccProfile::Ue10 => return,
            None => self.average,
        };
        if self.quick_adapt(now, false, acked.marked, delay) {
            return;
        }
        match (acked.marked, delay < self.params.target) {
            (false, false) => self.earned += self.params.fair * acked.bytes as f64,
            (false, true) => self.grow(acked.bytes, delay),
            (true, false) => self.shrink(now),
            (true, true) => {}
        }
        self.bound();
        let since = now.saturating_since(self.last_applied);
        if self.received as f64 > self.params.apply_bytes || since > self.params.network_rtt {
            self.apply(now, since);
        }
        self.bound();
    }

    /// Returns the delay that counts for a measured queueing delay.
    fn delay_of(&mut self, queued: Duration) -> Duration {
        let half_window = self.window / (2 * self.params.mtu);
        match self.median.as_deref_mut() {
            Some((median, most)) => median.next(queued, half_window.min(u64::from(*most)) as usize),
            None => queued,
        }
    }

    fn note_delay(&mut self, delay: f64, marked: bool) {
        let towards = if !marked && delay > self.params.target {
            UNMARKED_AVERAGE * self.base_rtt.as_ps() as f64
        } else {
            delay
        };
        self.average += self.params.gain * (towards - self.average);
    }

    fn grow(&mut self, bytes: u64, delay: f64) {
        if delay < self.params.fast_delay {
            self.unqueued += bytes;
            if self.unqueued > self.window || self.fast {
                self.window += (self.params.fast * bytes as f64) as u64;
                self.fast = true;
                return;
            }
        } else {
            self.unqueued = 0;
        }
        self.fast = false;
        self.earned += self.params.proportional * bytes as f64 * (self.params.target - delay);
    }

    fn shrink(&mut self, now: Time) {
        (self.fast, self.unqueued) = (false, 0);
        let excess = (self.average - self.params.target) / self.average;
        if self.average > self.params.target && now.saturating_since(self.last_decrease) > self.base_rtt {
            let left = (1.0 - self.params.decrease * excess).max(1.0 - self.params.max_decrease);
            self.window = ((self.window as f64 * left) as u64).max(self.params.mtu);
            self.last_decrease = now;
        }
    }

    /// Applies the sum of increases. `since` is the time since the last application by time.
    fn apply(&mut self, now: Time, since: Duration) {
        self.window = (self.window as f64 + self.earned / self.window as f64) as u64;
        if since >= self.params.network_rtt {
            self.window = (self.window as f64 + self.params.constant) as u64;
            self.last_applied = now;
        }
        (self.earned, self.received) = (0.0, 0);
    }

    /// Returns true if the feedback has been processed: either the window has been set to the bytes acknowledged, or
    /// the feedback is a mark of data sent before that.
    fn quick_adapt(&mut self, now: Time, is_trim: bool, marked: bool, delay: f64) -> bool {
        let mut done = false;
        if self.ignored < self.to_ignore && marked {
            done = true;
        } else if self.is_adapt_due(now) {
            let severe = self.trimmed || is_trim || delay > self.params.collapse_delay;
            let little = (self.achieved as f64) < self.max_window as f64 * self.params.collapse_share;
            if self.adapt_at > Time::ZERO && severe && little {
                self.window = self.achieved.max(self.params.mtu);
                (self.to_ignore, self.ignored) = (self.in_flight, 0);
                self.trimmed = false;
                done = true;
            }
            self.achieved = 0;
            let target = Duration::from_ps(self.params.target as u64);
            self.adapt_at = now.saturating_add(self.base_rtt).saturating_add(target);
        }
        if done {
            (self.earned, self.received) = (0.0, 0);
        }
        done
    }

    fn is_adapt_due(&self, now: Time) -> bool {
        match self.params.profile {
            NsccProfile::Htsim => now > self.adapt_at,
            NsccProfile::Ue10 => now >= self.adapt_at,
        }
    }

    /// Processes a trimmed packet. The round trip of a header without its payload is too short for a base.
    pub(super) fn on_trim(&mut self, now: Time, wire_bytes: u32, at: TrimmedAt) {
        let bytes = u64::from(wire_bytes);
        self.ignored += bytes;
        self.note_delay(self.params.network_rtt.as_ps() as f64, true);
        self.trimmed = true;
        let is_spared = at == TrimmedAt::LastHop && self.params.last_hop_trims == LastHopTrims::Spare;
        if !self.quick_adapt(now, true, true, 0.0) && !is_spared {
            self.cut(bytes);
            self.bound();
        }
        self.landed(bytes);
    }

    /// Processes a packet that is found missing.
    pub(super) fn on_loss(&mut self, wire_bytes: u32) {
        let bytes = u64::from(wire_bytes);
        if self.params.profile == NsccProfile::Ue10 {
            self.ignored += bytes;
            self.cut(bytes);
        }
        self.landed(bytes);
    }

    /// Processes the timeout of a packet.
    pub(super) fn on_timeout(&mut self, wire_bytes: u32) {
        self.cut(u64::from(wire_bytes));
        self.landed(u64::from(wire_bytes));
    }

    fn cut(&mut self, bytes: u64) {
        self.window = self.window.saturating_sub(bytes).max(self.params.mtu);
    }

    fn bound(&mut self) {
        self.window = self.window.clamp(self.params.mtu, self.max_window);
    }
}

#[cfg(test)]
impl Controller {
    /// Sets the window, as if its last check and step had been at `now`.
    pub(super) fn at(mut self, window: u64, now: Time) -> Self {
        self.window = window;
        self.last_applied = now;
        self.adapt_at = now.saturating_add(self.base_rtt).saturating_add(self.base_rtt);
        self
    }
    pub(super) fn set_average(&mut self, average: Duration) {
        self.average = average.as_ps() as f64;
    }
    pub(super) fn average_ps(&self) -> f64 {
        self.average
    }
    pub(super) fn set_achieved(&mut self, achieved: u64, in_flight: u64) {
        (self.achieved, self.in_flight) = (achieved, in_flight);
    }
    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.in_flight
    }
    pub(super) fn max_window_bytes(&self) -> u64 {
        self.max_window
    }
    pub(super) fn earned_bytes(&self) -> f64 {
        self.earned / self.window as f64
    }
    pub(super) fn constant_bytes(&self) -> f64 {
        self.params.constant
    }
}
