//! Congestion window that follows the low round-trip times. The queue that a flow allows rises as its window shrinks, so
//! flows that see one queue have one window. In a crowd, flows that nobody waits for together take turns: each draws a
//! *lot*, a random queue target, and the flow with the largest lot finishes first.

use pathweave_units::{Duration, Rate, Rng, Time};

use super::WeaveConfig;
use super::config::MESSAGE_TARGET;
use crate::low_rtt;
use crate::{PathState, PathView, PolicyEnv};

/// Growth per round trip without a queue, as a fraction of the largest window; less as the queue approaches its
/// target. This finds free capacity in a few round trips at every rate, and fades at the target. A half gave the same
/// times of jobs within 0.1 %; eight packets at every rate were 6 % late in halving-doubling at 400 Gb/s.
const INCREASE: f32 = 0.25;
/// Largest factor by which a small window raises the target. It applies to windows below 0.38 of the largest. Many
/// flows share a link then, and lots decide.
const MOST_RAISED: f32 = 18.0;
/// Decrease of the window per relative excess of the queue over its target (the same as in Swift).
pub(super) const DECREASE: f32 = 0.8;
/// Largest decrease at once, as a fraction of the window.
pub(super) const MOST_DECREASE: f32 = 0.5;
/// Packets that may queue in addition to the target in round-trip times: the queue that a single link causes by
/// chance.
const TARGET_PACKETS: f32 = 2.0;
/// First window as a fraction of the largest: one bandwidth-delay product by default. A quarter more gains 1.5 % in
/// permutations of 2 MB, and costs 5 % if many small messages share 80 % of the fabric (AliStorage).
const FIRST: f32 = 2.0 / 3.0;
/// Packets that the window loses with each lost packet. If buffers are too shallow for delay to indicate a queue,
/// losses do. If single paths lose packets, this is negligible compared to the growth in a round trip.
pub(super) const LOST: f32 = 1.0;

/// Fraction of the largest window at which a flow considers its link shared by many. Of eight flows on one link each
/// has an eighth of a bandwidth-delay product, a twelfth of the default largest window.
const CROWD: f32 = 1.0 / 12.0;
/// Largest lot, in current queueing delays. Half of the lots exceed the queue, and flows with such a lot grow. Values
/// of 1.1 to 3 gave the same mean within 2 %.
const LONGEST_LOT: f32 = 2.0;
/// Number of largest windows acknowledged over which a lot fades. Flows that last longer share equally in the long
/// run.
const LOT_WINDOWS: f32 = 40.0;

/// Fraction of the window that may take one path in a row, so that many paths stay in use and a lossy or slow one
/// affects few packets.
const RUN_OF_WINDOW: f32 = 1.0 / 8.0;
/// Time that a run of packets on one path may take at line rate, in idle round-trip times and packets. The run queues
/// behind itself. This must not count as congestion, even if the path has a tenth of the line rate.
const RUN_ROUND_TRIPS: f32 = 0.3 / 16.0;
const RUN_PACKETS: f32 = 2.0 / 16.0;

/// Congestion window of a flow. Times are in picoseconds, sizes in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) packets: f32,
    /// Low round-trip time: an average that rises slowly and falls fast.
    pub(super) low: f32,
    /// Least round-trip time; if paths of unequal length are known, that of the longest.
    pub(super) base: f32,
    /// Lower bound of `base`: the idle round-trip time of the longest known path, or 0.
    longest: f32,
    last_cut: Time,
    /// Lot: queueing delay that this flow may keep on a shared link; 0 otherwise.
    pub(super) lot: f32,
    params: Params,
}

/// Parameters that are the same for all queue pairs of a NIC.
#[derive(Clone, Copy, Debug)]
struct Params {
    /// Queueing delay at which the largest window stays as it is.
    target: f32,
    most: f32,
    packet: f32,
    line: Rate,
    /// Most packets in a row on one path.
    run: u8,
}

impl Window {
    pub(super) fn new(config: &WeaveConfig, env: &PolicyEnv) -> Self {
        let ps = |span: Duration| span.as_ps() as f32;
        let bdp = env.bdp_bytes() as f32 / env.mtu_wire_bytes as f32;
        let base = ps(env.base_rtt);
        let packet = ps(env.line_rate.time_for(u64::from(env.mtu_wire_bytes)));
        let largest = config.max_bdp as f32 * bdp;
        let target = config.target.unwrap_or(MESSAGE_TARGET) as f32 * base + TARGET_PACKETS * packet;
        let run = ((RUN_ROUND_TRIPS * base + RUN_PACKETS * packet) / packet) as u8;
        Window {
            packets: (FIRST * largest).max(2.0),
            low: base,
            base,
            longest: 0.0,
            last_cut: Time::ZERO,
            lot: 0.0,
            params: Params {
                target,
                most: (largest + 1.0).max(2.0),
                packet,
                line: env.line_rate,
                run: config.run_packets.min(run).max(1),
            },
        }
    }

    /// Updates the base by the usable paths. The time by which one path is longer than another is not a queue, and a
    /// flow over all paths waits for the longest.
    pub(super) fn on_paths(&mut self, paths: &[PathView]) {
        let idle =
            paths.iter().filter(|path| path.state == PathState::Up).filter_map(|path| path.base_rtt).max();
        if let Some(idle) = idle {
            self.longest = idle.as_ps() as f32;
            self.base = self.base.max(self.longest);
        }
    }

    /// Processes `answered` acknowledged packets, of which one was timed.
    #[inline]
    pub(super) fn on_rtt(&mut self, now: Time, rtt: f32, answered: f32, backlogged: bool, rng: &mut Rng) {
        let p = self.params;
        self.base = self.base.min(rtt.max(self.longest));
        let off = rtt - self.low;
        self.low += off * low_rtt::gain(off > 0.0);
        let queue = self.low - self.base;
        self.fade(queue, answered);
        let target = self.lot.max(self.target());
        if queue < target {
            // A window that is not used up may be too large already, so it does not grow.
            if backlogged {
                self.packets += INCREASE * p.most * (1.0 - queue / target) * answered / self.packets;
            }
        } else if now.saturating_since(self.last_cut).as_ps() as f32 >= self.low {
            let cut = DECREASE * (queue - target) / self.low;
            self.packets *= 1.0 - cut.min(MOST_DECREASE);
            self.last_cut = now;
            self.draw(queue, rng);
        }
        self.packets = self.packets.clamp(1.0, p.most);
    }

    /// Returns the queueing delay at which the window stays as it is: higher by the cube of the factor by which the window
    /// is smaller than the largest. Seen the other way, the window follows the queue by its third root, so flows whose
    /// paths have unlike queues still have windows that are alike. With one target for all windows, each difference in
    /// queues would add up, and equal flows would end at unequal times.
    #[inline]
    fn target(&self) -> f32 {
        let smaller = self.params.most / self.packets;
        self.params.target * (smaller * smaller * smaller).min(MOST_RAISED)
    }

    /// Draws a lot after a cut, if the window is that of a shared link and the flow has no lot above the target.
    fn draw(&mut self, queue: f32, rng: &mut Rng) {
        let p = &self.params;
        if self.packets <= (CROWD * p.most).max(1.0) && self.lot <= p.target {
            self.lot = LONGEST_LOT * queue * rng.unit_f64() as f32;
        }
    }

    /// Drops the lot when the queue is below the target, and shrinks it as packets are acknowledged.
    #[inline]
    fn fade(&mut self, queue: f32, answered: f32) {
        if self.lot == 0.0 {
            return;
        }
        let left = 1.0 - answered / (LOT_WINDOWS * self.params.most);
        self.lot = if queue < self.params.target { 0.0 } else { self.lot * left.max(0.0) };
    }

    /// Processes the loss of a packet.
    pub(super) fn on_loss(&mut self) {
        self.packets = (self.packets - LOST).max(1.0);
    }

    /// Returns the largest window.
    pub(super) fn max_packets(&self) -> f32 {
        self.params.most
    }
    /// Returns the time of a full packet at line rate.
    pub(super) fn packet(&self) -> f32 {
        self.params.packet
    }
    /// Returns the number of packets in a row that may take one path.
    #[inline]
    pub(super) fn burst_packets(&self) -> u8 {
        ((self.packets * RUN_OF_WINDOW) as u8).min(self.params.run).max(1)
    }
    #[inline]
    pub(super) fn fits(&self, inflight_packets: u32) -> bool {
        inflight_packets as f32 + 1.0 <= self.packets
    }
    /// Returns the rate of a window of `packets` per base round-trip time: the rate while there is no queue.
    pub(super) fn rate(&self, packets: f32) -> Rate {
        let share = packets * self.params.packet / self.base;
        self.params.line.scale(f64::from(share).clamp(1e-6, 1.0))
    }
}
