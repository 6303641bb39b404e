//! How much: a window that follows the low round-trip times. Where many share a link they take turns: each draws a *lot*,
//! the queue that it may keep, and who has the longest is done first.

use pathweave_units::{Duration, Rate, Rng, Time};

use super::WeaveConfig;
use crate::low;
use crate::{PathState, PathView, PolicyEnv};

/// Packets added a round trip while nothing queues, less as the queue nears its target: finds free capacity in a few round
/// trips, and fades at the target.
pub(super) const INCREASE: f32 = 8.0;
/// Of the share by which the queue is above its target, what the window loses (Swift has the same).
pub(super) const DECREASE: f32 = 0.8;
/// Most that it loses at once.
pub(super) const MOST_DECREASE: f32 = 0.5;
/// Packets that may queue besides the share of the window: the grain of a single link.
const TARGET_PACKETS: f32 = 2.0;
/// The first window, of the largest: a bandwidth-delay product with the usual one. A quarter more gains 1.5 % in permutations
/// of 2 MB, and costs 5 % where many small messages share 80 % of the fabric (AliStorage).
const FIRST: f32 = 2.0 / 3.0;
/// Packets that the window loses with each that is lost: where buffers are too shallow for delay to tell of a queue, losses
/// do. Next to what it grows in a round trip it is nothing where single paths lose.
pub(super) const LOST: f32 = 1.0;

/// A window cut to this share of the largest is that of a crowd. Of eight flows on one link each has an eighth of a product,
/// a twelfth of the usual largest.
const CROWD: f32 = 1.0 / 12.0;
/// The longest lot, of the queue there is. Half of the lots are longer than that queue, and who has one of these grows; 1.1 to
/// 3 did the same in mean within 2 %.
const LONGEST_LOT: f32 = 2.0;
/// A lot fades while so many of the largest windows are answered. Flows that last longer share in the long run.
const LOT_WINDOWS: f32 = 40.0;

/// Of the window, so much may take one path in a row: paths remain many, and what one loses or holds up is little.
const RUN_OF_WINDOW: f32 = 1.0 / 8.0;
/// And of the target, so much may be the time that it takes on the line: it waits for itself, and must not pass for a queue
/// even where the path has a tenth of the line's rate.
const RUN_OF_TARGET: f32 = 1.0 / 16.0;

/// Times in picoseconds, sizes in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) packets: f32,
    /// The low round-trip time.
    pub(super) low: f32,
    /// The least; where paths of unequal length are known, that of the longest.
    pub(super) base: f32,
    /// No round trip is less: the idle one of the longest path known, or nothing.
    longest: f32,
    last_cut: Time,
    /// Queueing delay that this flow may keep in a crowd; nothing outside one.
    pub(super) lot: f32,
    params: Params,
}

/// The same for all queue pairs of a NIC.
#[derive(Clone, Copy, Debug)]
struct Params {
    /// Queueing delay at which the window stays.
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
        let target = config.target as f32 * base + TARGET_PACKETS * packet;
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
                run: config.run_packets.min((RUN_OF_TARGET * target / packet) as u8).max(1),
            },
        }
    }

    /// These paths can be used. The time by which one is longer than another is no queue, and who takes all of them waits
    /// for the longest.
    pub(super) fn on_paths(&mut self, paths: &[PathView]) {
        let idle =
            paths.iter().filter(|path| path.state == PathState::Up).filter_map(|path| path.base_rtt).max();
        if let Some(idle) = idle {
            self.longest = idle.as_ps() as f32;
            self.base = self.base.max(self.longest);
        }
    }

    /// So many packets have been answered, of which one was timed.
    #[inline]
    pub(super) fn on_rtt(&mut self, now: Time, rtt: f32, answered: f32, backlogged: bool, rng: &mut Rng) {
        let p = self.params;
        self.base = self.base.min(rtt.max(self.longest));
        let off = rtt - self.low;
        self.low += off * low::gain(off > 0.0);
        let queue = self.low - self.base;
        self.fade(queue, answered);
        let target = self.lot.max(p.target);
        if queue < target {
            // A window that is not used is not known to be right.
            if backlogged {
                self.packets += INCREASE * (1.0 - queue / target) * answered / self.packets;
            }
        } else if now.saturating_since(self.last_cut).as_ps() as f32 >= self.low {
            let cut = DECREASE * (queue - target) / self.low;
            self.packets *= 1.0 - cut.min(MOST_DECREASE);
            self.last_cut = now;
            self.draw(queue, rng);
        }
        self.packets = self.packets.clamp(1.0, p.most);
    }

    /// After a cut: in a crowd, and without a lot that counts, this flow draws one.
    fn draw(&mut self, queue: f32, rng: &mut Rng) {
        let p = &self.params;
        if self.packets <= (CROWD * p.most).max(1.0) && self.lot <= p.target {
            self.lot = LONGEST_LOT * queue * rng.unit_f64() as f32;
        }
    }

    /// The lot ends with the queue, and shrinks with what is answered.
    #[inline]
    fn fade(&mut self, queue: f32, answered: f32) {
        if self.lot == 0.0 {
            return;
        }
        let left = 1.0 - answered / (LOT_WINDOWS * self.params.most);
        self.lot = if queue < self.params.target { 0.0 } else { self.lot * left.max(0.0) };
    }

    /// A packet is lost.
    pub(super) fn on_loss(&mut self) {
        self.packets = (self.packets - LOST).max(1.0);
    }

    /// The largest.
    pub(super) fn most(&self) -> f32 {
        self.params.most
    }
    /// Time of a full packet on the line.
    pub(super) fn packet(&self) -> f32 {
        self.params.packet
    }
    /// Packets in a row that may take one path.
    #[inline]
    pub(super) fn run(&self) -> u8 {
        ((self.packets * RUN_OF_WINDOW) as u8).min(self.params.run).max(1)
    }
    #[inline]
    pub(super) fn fits(&self, inflight_packets: u32) -> bool {
        inflight_packets as f32 + 1.0 <= self.packets
    }
    /// Such a window a least round-trip time: what it allows while there is no queue.
    pub(super) fn rate(&self, packets: f32) -> Rate {
        let share = packets * self.params.packet / self.base;
        self.params.line.scale(f64::from(share).clamp(1e-6, 1.0))
    }
}
