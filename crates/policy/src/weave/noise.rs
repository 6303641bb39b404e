//! Whether a packet came back late, by what is usual of the flow: so one bound suits quiet and noisy fabrics.

use pathweave_units::Duration;

use crate::PolicyEnv;

/// Mean deviations above the mean from which a packet is late: a normal path is hardly ever given up, so that assignments
/// without collisions last.
const LATE_DEVIATIONS: f32 = 3.0;
/// Weight of the newest round trip in mean and deviation.
const GAIN: f32 = 1.0 / 16.0;

/// Times in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) mean: f32,
    pub(super) deviation: f32,
    /// Of a packet on the line: the grain of queueing, below which nothing is late.
    packet: f32,
}

impl Noise {
    pub(super) fn new(env: &PolicyEnv) -> Self {
        let ps = |span: Duration| span.as_ps() as f32;
        let packet = ps(env.line_rate.time_for(u64::from(env.mtu_wire_bytes)));
        Noise { mean: ps(env.base_rtt), deviation: packet, packet }
    }

    /// Takes in a round trip. Whether it is late by those before.
    #[inline]
    pub(super) fn is_late(&mut self, rtt: f32) -> bool {
        let off = rtt - self.mean;
        let is_late = off > (LATE_DEVIATIONS * self.deviation).max(self.packet);
        self.mean += off * GAIN;
        self.deviation += (if off < 0.0 { -off } else { off } - self.deviation) * GAIN;
        is_late
    }
}
