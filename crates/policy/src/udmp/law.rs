//! UDMP's congestion control: the rate follows the gradient of the average round-trip time over all paths.

use pathweave_units::{Duration, Rate, Time};

use super::UdmpLate;
use super::config::{Algorithm, Common};
use crate::PolicyEnv;
use crate::low_rtt;

/// Minimum rate as a fraction of the line rate. Without it a gradient above one would make the rate negative.
const FLOOR: f64 = 1e-3;
/// Number of packet times added to the queue target, because shorter queues are noise at any rate.
const QUEUE_TARGET_PACKETS: f64 = 4.0;

/// Rate and round-trip times of one queue pair. Rates are in bytes per picosecond, times in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) rate: f64,
    /// Average round-trip time over all paths.
    pub(super) mean: f64,
    /// Round-trip time that the rate follows: published the average, repaired a low average, that of the fast paths.
    pub(super) followed: f64,
    /// Value of `followed` at the last update.
    last_followed: f64,
    last_update: Time,
    /// Shortest round-trip time of a full packet of this queue pair.
    pub(super) base: f64,
    /// Acknowledgements since the last update, and the number of them until the next.
    acks: u32,
    to_ignore: u32,
    started: bool,
    /// Parameters that fit here without extra space.
    pub(super) repaired: bool,
    late: UdmpLate,
    /// Bytes of a full packet.
    packet: u32,
    params: Params,
}

/// Parameters, resolved for line rate and round-trip time. The same for all queue pairs of a NIC.
#[derive(Clone, Copy, Debug)]
struct Params {
    line: f64,
    gain: f64,
    severe: f64,
    /// Parameters of the repaired variant.
    queue_target: f64,
    queue_gain: f64,
    step: f64,
    limit: f64,
}

/// Bytes of [`Law`] that are the same for all queue pairs of a NIC.
#[cfg(test)]
pub(super) const PARAMETER_BYTES: usize = size_of::<Params>();

/// Converts a time to picoseconds as a real number, because the paper's equations use real numbers.
pub(super) fn ps(span: Duration) -> f64 {
    span.as_ps() as f64
}

impl Law {
    pub(super) fn new(algorithm: Algorithm<'_>, env: &PolicyEnv) -> Self {
        let line = env.line_rate.as_bps() as f64 / 8e12;
        let packet_time = f64::from(env.mtu_wire_bytes) / line;
        let Common { rtt_gain: gain, severe_rtt: severe, .. } = algorithm.common();
        let published =
            Params { line, gain, severe, queue_target: 0.0, queue_gain: 0.0, step: 0.0, limit: 0.0 };
        let (late, params) = match algorithm {
            Algorithm::Published(_) => (UdmpLate::ByBase, published),
            Algorithm::Repaired(config) => {
                let noise = QUEUE_TARGET_PACKETS * packet_time;
                let params = Params {
                    queue_target: config.queue_target_rtts * ps(env.base_rtt) + noise,
                    queue_gain: config.queue_gain,
                    step: config.increase_step * line,
                    limit: config.step_limit,
                    ..published
                };
                (config.late, params)
            }
        };
        Law {
            rate: line,
            mean: 0.0,
            followed: 0.0,
            last_followed: 0.0,
            last_update: Time::ZERO,
            base: ps(env.base_rtt),
            acks: 0,
            to_ignore: 0,
            started: false,
            repaired: matches!(algorithm, Algorithm::Repaired(_)),
            late,
            packet: env.mtu_wire_bytes,
            params,
        }
    }

    /// Returns true if a round-trip time has been measured.
    #[inline]
    pub(super) fn started(&self) -> bool {
        self.started
    }

    /// Returns the bytes of a full packet.
    #[inline]
    pub(super) fn packet(&self) -> f64 {
        f64::from(self.packet)
    }

    /// Records the round-trip time of a packet of `wire_bytes`; `None` if the acknowledgement covers a packet that it
    /// does not time. Returns true if it was the first. The averages start with the first measurement; from zero they
    /// would need many acknowledgements to converge.
    #[inline]
    pub(super) fn measure(&mut self, now: Time, rtt: Option<f64>, wire_bytes: u32, inflight: u32) -> bool {
        self.acks = self.acks.saturating_add(1);
        let Some(rtt) = rtt.map(|rtt| rtt.max(1.0)) else { return false };
        // Switches forward a short packet sooner. As the base, its round-trip time would suggest a permanent queue.
        let rtt = if wire_bytes >= self.packet || !self.repaired { rtt } else { rtt.max(self.base) };
        self.base = self.base.min(rtt);
        if self.started {
            self.mean += self.params.gain * (rtt - self.mean);
            self.followed = if self.repaired {
                let off = rtt - self.followed;
                self.followed + off * f64::from(low_rtt::gain(off > 0.0))
            } else {
                self.mean
            };
            return false;
        }
        self.started = true;
        (self.mean, self.followed, self.last_followed, self.last_update) = (rtt, rtt, rtt, now);
        (self.acks, self.to_ignore) = (0, inflight);
        true
    }

    /// Returns the excess over the average from which a path's acknowledgement releases nothing.
    #[inline]
    pub(super) fn slack(&self) -> f64 {
        match self.late {
            UdmpLate::ByBase => self.base,
            UdmpLate::ByQueue => self.base.max(self.mean - self.base),
        }
    }

    /// Algorithm 1, lines 22 to 37. Severe congestion is checked at every acknowledgement. The gradient is computed
    /// about once a round trip: after as many acknowledgements as were in flight at the last update.
    #[inline]
    pub(super) fn update(&mut self, now: Time, inflight: u32) {
        if self.followed > self.params.severe * self.base {
            let severe = self.params.line * (self.base / self.followed).max(FLOOR);
            self.rate = self.rate.min(severe);
        }
        if self.acks > self.to_ignore && self.started {
            self.step(now);
            (self.acks, self.to_ignore) = (0, inflight);
        }
    }

    fn step(&mut self, now: Time) {
        // Two acknowledgements at one instant count as the shortest time span.
        let elapsed = ps(now - self.last_update).max(1.0);
        let gradient = (self.followed - self.last_followed) / elapsed;
        (self.last_followed, self.last_update) = (self.followed, now);
        let Params { line, queue_target, queue_gain, step, limit, .. } = self.params;
        let rate = if self.repaired {
            let excess = (self.followed - self.base - queue_target) / self.followed;
            let cut = (gradient + queue_gain * excess).clamp(-limit, limit);
            // The longer the queue, the smaller the step. The rate settles at step / (queue_gain x excess); with a
            // constant step more than 50 flows would keep rates above their share.
            let room = ((self.base + queue_target) / self.followed).min(1.0);
            self.rate * (1.0 - cut) + step * room
        } else if gradient > 0.0 {
            self.rate - gradient * self.rate
        } else {
            self.rate - gradient * (line - self.rate)
        };
        self.rate = rate.clamp(line * FLOOR, line);
    }

    /// Returns the rate, for observers.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bps((self.rate * 8e12 + 0.5) as u64)
    }
}

#[cfg(test)]
impl Law {
    /// Returns the state after a measurement of `smooth`, with a rate of `share` of the line rate.
    pub(super) fn at(mut self, now: Time, smooth: Duration, share: f64) -> Self {
        self.measure(now, Some(ps(smooth)), self.packet, 0);
        self.rate = share * self.params.line;
        self
    }
    /// Makes the next update due at the next acknowledgement.
    pub(super) fn due(mut self) -> Self {
        (self.acks, self.to_ignore) = (1, 0);
        self
    }
    pub(super) fn set_smooth(&mut self, smooth: Duration) {
        (self.mean, self.followed) = (ps(smooth), ps(smooth));
    }
    pub(super) fn share(&self) -> f64 {
        self.rate / self.params.line
    }
}
