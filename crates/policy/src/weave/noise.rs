//! Detection of late and early packets relative to the flow's usual round-trip times, so that one bound fits quiet and
//! noisy fabrics.

use pathweave_units::Duration;

use crate::PolicyEnv;

/// Number of mean deviations above the mean beyond which a packet is late. The bound is wide, so that a normal path
/// is hardly ever given up and assignments without collisions last.
const LATE_DEVIATIONS: f32 = 3.0;
/// Number of mean deviations below the mean beyond which a packet is early. Only scouts must be early, and each of them may
/// only gain.
const EARLY_DEVIATIONS: f32 = 1.0;
/// Weight of the newest round-trip time in mean and deviation.
const GAIN: f32 = 1.0 / 16.0;
/// Number of mean deviations for which a round-trip time counts at most. Without a limit, the packets of one slow link
/// widen the bound until none of them is late. With 3, collectives beside slow links take as long, and permutations 5 %
/// longer, because the bound becomes narrow.
const COUNTED_DEVIATIONS: f32 = 6.0;

/// Round-trip time of a packet relative to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Shorter than the mean by more than the noise.
    Early,
    /// Within the noise, or not measured.
    Usual,
    /// Longer than the mean by more than the noise.
    Late,
}

/// Averages of the round-trip time, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) mean: f32,
    pub(super) deviation: f32,
    /// Time of a full packet at line rate. A delay below it is not late.
    packet: f32,
}

impl Noise {
    pub(super) fn new(env: &PolicyEnv) -> Self {
        let ps = |span: Duration| span.as_ps() as f32;
        let packet = ps(env.line_rate.time_for(u64::from(env.mtu_wire_bytes)));
        // A new flow knows no round-trip time. It takes a packet for late if it took four idle ones.
        Noise { mean: ps(env.base_rtt), deviation: packet.max(ps(env.base_rtt)), packet }
    }

    /// Updates the averages with a round-trip time, and returns its relation to the averages before.
    #[inline]
    pub(super) fn judge(&mut self, rtt: f32) -> Arrival {
        let off = rtt - self.mean;
        let arrival = if off > (LATE_DEVIATIONS * self.deviation).max(self.packet) {
            Arrival::Late
        } else if -off > (EARLY_DEVIATIONS * self.deviation).max(self.packet) {
            Arrival::Early
        } else {
            Arrival::Usual
        };
        let most = (COUNTED_DEVIATIONS * self.deviation).max(self.packet);
        let off = off.clamp(-most, most);
        self.mean += off * GAIN;
        self.deviation += (if off < 0.0 { -off } else { off } - self.deviation) * GAIN;
        arrival
    }
}
