//! UDMP (Huang et al., "UDMP: Unified Delay-Driven Multipath Protocol for AI Clusters", IEEE ToN 2026): delay
//! determines the rate of the queue pair and, through ACK clocking, the path of every packet, without state per path.
//!
//! The rate fills a *pool* of bytes. An acknowledgement takes zero, one or two packets out of it. It takes two if its
//! round-trip time is below the average, and one if it is at most one base round-trip time above. The packets take
//! the acknowledgement's path, so fast paths get more packets. Packets that a slow path does not take wait for the
//! next acknowledgement of another path.
//!
//! The algorithm as printed (`kind = "udmp_published"`) does not achieve what the paper claims: its rate drifts to half
//! the line rate under any noise, and flows deadlock in incast once every acknowledgement is refused. The default,
//! `"repaired"`, differs in these points:
//!
//! | | published | repaired |
//! |---|---|---|
//! | rate | gradient only | gradient, distance from a queue target, additive step; bounded per round trip |
//! | round-trip time that the rate follows | the average | a low average: gain 1/32 upwards, 1/2 downwards |
//! | queue target | none | a quarter of the base round-trip time plus four packet times |
//! | base round-trip time | of any packet | of full packets |
//! | two packets if | below the average | up to 5 % of the base above it |
//! | the second of two | on the path of the acknowledgement | on a spare path, or on any |
//! | pool | unbounded | a quarter BDP; one BDP while there is nothing to send |
//! | in flight | unbounded | 1.5 BDP and a packet |
//! | nothing clocks | a kick after 100 us | a packet on the last good path (see below) |
//! | no data when clocked | the release is kept as a token, for any path | it stays in the pool |
//!
//! If nothing clocks, the repaired variant sends a packet at once if none is in flight, and after two round-trip
//! times if one is. Packets that stay in the pool become tokens when there is data.
//!
//! *Low round-trip times.* Packets of many senders collide by chance on some paths. This makes long round-trip times,
//! and a lower rate does not help against it. A queue at the last hop makes all round-trip times longer, the
//! shortest, too, and only such a queue requires a lower rate. The rate therefore follows an average that settles
//! where a value below it weighs sixteen times as much as one above. Whether an acknowledgement is fast or late
//! depends on its path, and is decided by the average of all.
//!
//! *The target in round trips.* A queue settles at a fraction of the base round-trip time, so the same value fits any
//! fabric. A queue below four packets is noise.
//!
//! *Spare paths.* With both packets on the path of the acknowledgement, paths are a branching process, most branches
//! of which die out: after some tens of round trips few paths are left. A path whose acknowledgement was not late and
//! found the pool short is therefore kept as a spare, at most eight of them, and the second packet takes the oldest.
//! A path that loses a packet is removed. On the policy bench (`snapshot.txt`) the fullest of the four paths of an
//! incast has 10 % more packets than the emptiest, instead of 53 %. The cost: without a spare path, the second packet
//! may go to a path that loses everything. One dead path of four gets 41 packets instead of 30, and 1,000 packets
//! take 417 us instead of 217.
//!
//! Three of the repairs were found on the policy bench (N-to-1 of 3,000 or 6,000 packets, 2 % jitter, three seeds),
//! and checked on the paper's fat tree (permutation of 8 MB, two seeds). Their numbers hold for the algorithm before
//! low round-trip times and spare paths were added, with a target of 3 us and 1.25 BDP in flight:
//!
//! - The additive step shrinks as the queue grows, by (base + target) / average. A constant step keeps flows beyond
//!   the fiftieth at one bottleneck above their share until T_high cuts them. The mean round-trip time of 64-to-1 is
//!   then 11.2 base times instead of 3.9, and that of 256-to-1 19.1 instead of 12.9.
//! - With nothing in flight the next packet leaves as soon as the pool has one. To wait for two (long) round-trip
//!   times costs 4 % of the throughput of 32-to-1 and 6 % of 256-to-1; without the wait it is 0.6 % and 0.1 %.
//! - `queue_gain` is 0.15 instead of 0.25. The P99 FCT of the permutation is then 755 us instead of 760 (spraying
//!   without congestion control: 738), the P99 degree of reordering 61 to 66 packets instead of 71, and the
//!   throughput of 16-to-1 2 % higher. The mean round-trip time of 64-to-1 rises to 5.1 base times.
//!
//! On real hosts ([`UdmpLate::ByQueue`]) queues may be many base times long, and round-trip times of good paths then
//! always differ by more than one base time. If an acknowledgement one base above the average released nothing, a
//! path would run empty: all packets queued there return as late as the first one, and those sent meanwhile make
//! other packets late. Two examples with six seeds in simulated time (`crates/datapath/src/engine/links_test.rs`)
//! compare this with the rule that a packet is late if it waited for twice as long as the average:
//!
//! - Paths of 60, 60, 30 and 6 Mb/s between hosts with occasional stalls of up to 10 ms gave 77 % of their sum, and
//!   89 % with the rule.
//! - Paths of 20, 20, 10 and 2 Mb/s without stalls gave 56 and 89 %.
//!
//! In a data centre one base above the average is the better bound. With the other rule the slowest flows of a
//! degraded fat tree and of a rail took 2 and 8 % longer, and an incast of 32 took 2 % longer in the mean.
//!
//! With nothing to send the pool fills at line rate, within a round-trip time, to one bandwidth-delay product. Data
//! that arrives later leaves with the content of the pool, on random paths; then acknowledgements clock again. A pool
//! of a quarter of that, with the rest clocked by packets still in flight, was worse: connections that send one
//! message of a round trip after another then crowd on few paths. The flows of rings that reduce the gradients of
//! ResNet-50 (paper's fat tree at a tenth of its size) took 18.2 us in the mean and 62.9 us at most, instead of 16.8
//! and 25.6. They met twelve times as many marks, and left 376 us of communication exposed instead of 330.
//!
//! A retransmission takes a token like any packet. A lost packet causes no acknowledgement that clocks;
//! acknowledgements of the faster paths, which release two packets each, make up for it.

mod config;
mod law;
mod spares;
#[cfg(test)]
mod tests;

use pathweave_units::{Duration, PathId, Rate, Rng, Time};

use crate::ack_clock::AckClock;
use crate::late_acks::LateAckDetector;
use crate::{
    Egress, Feedback, FeedbackKind, Grant, Memo, PathView, Policy, PolicyCx, PolicyEnv, SendRequest, Sent,
};

use config::{Algorithm, Common};
pub use config::{UdmpConfig, UdmpLate, UdmpPublishedConfig};
use law::{Law, ps};
use spares::Spares;

/// Budget to which a granted packet is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charge {
    /// A release by an acknowledgement, which was charged to the pool.
    Release,
    /// A token, valid for any path.
    Token,
    /// The pool, because no acknowledgement is expected that could clock.
    Restart,
}

/// Policy of one direction of one queue pair.
// The timer comes first: the compiler loads it before it knows that a policy is of this kind.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Udmp {
    /// Time of the timer; `Time::MAX` if not set.
    timer: Time,
    law: Law,
    /// Bytes that the rate has added and no packet has taken.
    pool: f64,
    last_add: Time,
    last_ack: Time,
    last_restart: Time,
    clock: AckClock,
    ooo: LateAckDetector,
    /// Packets that may leave on any path.
    tokens: u32,
    /// Bytes that short packets have given back, less those converted to tokens.
    given_back: f64,
    /// Largest number of packets in flight; a parameter that fits here without extra space.
    inflight_cap: u32,
    /// Path of the last fast acknowledgement.
    good: Option<PathId>,
    spares: Spares,
    /// Repaired: true if the last acknowledgement found nothing to send.
    idle: bool,
    charge: Charge,
    params: Params,
}

/// Parameters that are the same for all queue pairs of a NIC.
#[derive(Clone, Copy, Debug)]
struct Params {
    pool_cap: f64,
    idle_pool_cap: f64,
    near: f64,
    kick_after: Duration,
}

impl Udmp {
    /// Creates a queue pair with tokens for a bandwidth-delay product of packets on random paths.
    fn new(algorithm: Algorithm<'_>, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let packet = f64::from(env.mtu_wire_bytes);
        let bdp = env.bdp_bytes() as f64;
        let cap = |share: f64| (share * bdp).max(2.0 * packet);
        // Rounded up to a whole packet: less would leave the line idle for the rest of the round trip.
        let tokens = env.bdp_bytes().div_ceil(u64::from(env.mtu_wire_bytes)).max(1);
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        let Common { explore, ooo_packets, .. } = algorithm.common();
        let (inflight_cap, params) = match algorithm {
            Algorithm::Published(config) => {
                let kick_after = config.kick_after;
                let unlimited = f64::INFINITY;
                (u32::MAX, Params { pool_cap: unlimited, idle_pool_cap: unlimited, near: 0.0, kick_after })
            }
            Algorithm::Repaired(config) => {
                let packets = ((config.inflight_bdp * bdp / packet) as u32).saturating_add(1);
                let (pool_cap, idle_pool_cap) = (cap(config.pool_bdp), cap(config.idle_pool_bdp));
                (packets, Params { pool_cap, idle_pool_cap, near: config.near, kick_after: Duration::ZERO })
            }
        };
        Udmp {
            law: Law::new(algorithm, env),
            pool: 0.0,
            last_add: Time::ZERO,
            last_ack: Time::ZERO,
            last_restart: Time::ZERO,
            timer: Time::MAX,
            clock: AckClock::new(env.paths, explore, rng),
            ooo: LateAckDetector::new(ooo_packets),
            spares: Spares::default(),
            tokens: tokens.min(inflight_cap),
            given_back: 0.0,
            inflight_cap,
            good: None,
            idle: false,
            charge: Charge::Token,
            params,
        }
    }

    fn pool_at(&self, now: Time) -> f64 {
        let cap = if self.idle { self.params.idle_pool_cap } else { self.params.pool_cap };
        (self.pool + self.law.rate * ps(now - self.last_add)).min(cap)
    }
    #[inline]
    fn refill(&mut self, now: Time) {
        self.pool = self.pool_at(now);
        self.last_add = now;
    }
    /// Returns the time at which the pool holds a packet, at least `now`.
    fn pool_ready(&self, now: Time) -> Time {
        let missing = self.law.packet() - self.pool;
        let ready = self.last_add + Duration::from_ps((missing / self.law.rate).max(0.0) as u64 + 1);
        if self.pool_at(now) >= self.law.packet() { now } else { ready.max(now + Duration::from_ps(1)) }
    }

    /// Returns the number of packets that an acknowledgement releases (algorithm 2), and whether its round-trip time
    /// is short.
    #[inline]
    fn released(&self, rtt: Option<f64>, inflight: u32) -> (u32, bool) {
        let packet = self.law.packet();
        let Some(rtt) = rtt else {
            // Not timed: neither fast nor slow.
            return (u32::from(self.pool >= packet).min(self.room(inflight)), false);
        };
        let smooth = self.law.mean;
        let near =
            if self.law.repaired { rtt <= smooth + self.params.near * self.law.base } else { rtt < smooth };
        let packets = if near && self.pool >= 2.0 * packet {
            2
        } else {
            u32::from(self.pool >= packet && rtt < smooth + self.law.slack())
        };
        (packets.min(self.room(inflight)), near)
    }
    /// Returns the number of packets that may still be released.
    #[inline]
    fn room(&self, inflight: u32) -> u32 {
        let spoken_for = inflight.saturating_add(self.clock.pending()).saturating_add(self.tokens);
        self.inflight_cap.saturating_sub(spoken_for)
    }

    /// Releases packets on an acknowledgement of `path`. Returns their number.
    ///
    /// Published: all of them take the acknowledgement's path. Repaired: the second one takes a good path whose
    /// acknowledgement found the pool short, or any.
    #[inline]
    fn release(&mut self, path: PathId, packets: u32, good: bool, rng: &mut Rng) -> u32 {
        if !self.law.repaired {
            return self.clock.release(path, packets, rng);
        }
        if packets == 0 && good {
            self.spares.keep(path);
        }
        let mut taken = self.clock.release(path, packets.min(1), rng);
        if packets > 1 {
            let other = self.spares.take();
            taken += match other {
                Some(path) => self.clock.release(path, 1, rng),
                None => self.clock.release_anywhere(rng),
            };
        }
        taken
    }

    #[inline]
    fn on_ack(&mut self, now: Time, feedback: &Feedback, timed: bool, rng: &mut Rng) {
        let rtt = timed.then(|| ps(feedback.rtt));
        if self.idle && feedback.backlogged {
            self.end_idleness(now, feedback.inflight_packets);
        }
        self.last_ack = now;
        self.timer = Time::MAX;
        if self.law.measure(now, rtt, feedback.wire_bytes, feedback.inflight_packets) {
            // Counted from the first packet, the pool would grant the first burst a second time.
            (self.pool, self.last_add) = (0.0, now);
        } else {
            self.refill(now);
        }
        // The PSN of a retransmission is always old.
        let late = feedback.memo != RETRANSMITTED && self.ooo.is_late(feedback.psn);
        if !late && self.law.started() {
            let (packets, near) = self.released(rtt, feedback.inflight_packets);
            if feedback.backlogged {
                let good = rtt.is_none_or(|rtt| rtt < self.law.mean + self.law.slack());
                let taken = self.release(feedback.path, packets, good, rng);
                self.pool -= f64::from(taken) * self.law.packet();
            } else if !self.law.repaired {
                self.tokens = self.tokens.saturating_add(packets);
                self.pool -= f64::from(packets) * self.law.packet();
            }
            if near {
                self.good = Some(feedback.path);
            }
        }
        self.idle = self.law.repaired && !feedback.backlogged;
        self.law.update(now, feedback.inflight_packets);
    }

    /// Returns the time at which a packet may leave without an acknowledgement that clocks it.
    fn restart_at(&self, now: Time, inflight: u32) -> Option<Time> {
        let alive = self.last_ack.max(self.last_restart);
        if !self.law.repaired {
            return (inflight == 0).then(|| alive + self.params.kick_after);
        }
        let due = match inflight {
            // Everything has been acknowledged: there is nothing to wait for, and the rate includes all feedback.
            0 => now,
            1 if self.inflight_cap > 1 => {
                let patience = Duration::from_ps((2.0 * self.law.mean.max(self.law.base)) as u64);
                let base = Duration::from_ps(self.law.base as u64);
                (self.last_ack + patience).max(self.last_restart + base)
            }
            _ => return None,
        };
        Some(due.max(self.pool_ready(now)))
    }

    /// Returns the path for a packet that no acknowledgement clocked.
    fn restart_path(&self) -> PathId {
        match self.good {
            Some(path) if self.law.repaired && self.clock.is_up(path) => path,
            _ => self.clock.random_path(),
        }
    }

    #[inline]
    fn grant(&mut self, charge: Charge, path: PathId, egress: Egress) -> Grant {
        self.charge = charge;
        Grant::Send(self.clock.move_to_free_port(path, egress))
    }

    /// Converts the packets in the pool to tokens when there is data again.
    #[cold]
    fn end_idleness(&mut self, now: Time, inflight: u32) {
        self.refill(now);
        let tokens = ((self.pool / self.law.packet()) as u32).min(self.room(inflight));
        self.tokens += tokens;
        self.pool -= f64::from(tokens) * self.law.packet();
        self.idle = false;
    }

    #[cold]
    fn poll_unclocked(&mut self, now: Time, want: &SendRequest) -> Grant {
        match self.restart_at(now, want.inflight_packets) {
            Some(due) if due <= now => self.grant(Charge::Restart, self.restart_path(), want.egress),
            due => {
                self.timer = due.unwrap_or(Time::MAX);
                Grant::Blocked
            }
        }
    }
}

/// Memo that [`Udmp`] attaches to a retransmission.
const RETRANSMITTED: Memo = Memo(1);

impl Policy for Udmp {
    crate::ignores!(on_open, on_close, make_control, on_copy_sent, on_control, window, path_beyond_window);
    #[inline]
    fn poll_send(&mut self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Grant {
        if self.idle {
            self.end_idleness(now, want.inflight_packets);
        }
        if let Some(path) = self.clock.next(want.egress) {
            return self.grant(Charge::Release, path, want.egress);
        }
        if self.tokens > 0 {
            return self.grant(Charge::Token, self.clock.random_path(), want.egress);
        }
        self.poll_unclocked(now, want)
    }

    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.timer = Time::MAX;
        match self.charge {
            Charge::Release => self.clock.pop(sent.path),
            Charge::Token => {
                self.tokens -= 1;
                self.clock.commit_random_path(cx.rng);
                if !self.law.started() && sent.inflight_packets == 1 {
                    (self.last_ack, self.last_add) = (now, now);
                }
            }
            Charge::Restart => {
                self.last_restart = now;
                self.refill(now);
                self.pool = (self.pool - self.law.packet()).max(0.0);
                self.clock.commit_random_path(cx.rng);
            }
        }
        // A short packet gives back the unused part of its grant. If several follow each other, a full packet of it
        // may leave without another acknowledgement, because the one that released it stands for as many bytes.
        let rest = (self.law.packet() - f64::from(sent.wire_bytes)).max(0.0);
        self.pool += rest;
        self.given_back = if rest > 0.0 { self.given_back + rest } else { 0.0 };
        if self.given_back >= self.law.packet() {
            self.given_back -= self.law.packet();
            self.pool -= self.law.packet();
            self.tokens = self.tokens.saturating_add(1);
        }
        if sent.retransmit { RETRANSMITTED } else { Memo::default() }
    }

    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        match feedback.kind {
            FeedbackKind::Ack { timed, .. } => self.on_ack(now, feedback, timed, cx.rng),
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } | FeedbackKind::Timeout => {
                if self.good == Some(feedback.path) {
                    self.good = None;
                }
                self.spares.forget(feedback.path);
            }
            FeedbackKind::Cnp
            | FeedbackKind::EdgeRtt
            | FeedbackKind::PathSample
            | FeedbackKind::Duplicate { .. }
            | FeedbackKind::Late
            | FeedbackKind::NoticeFlow(_) => {}
        }
    }

    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.clock.on_paths(paths, cx.rng);
    }

    fn on_timer(&mut self, _now: Time, _cx: &mut PolicyCx<'_>) {
        // The next poll grants the packet that restarts the clock.
        self.timer = Time::MAX;
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        (self.timer != Time::MAX).then_some(self.timer)
    }

    fn rate(&self, _now: Time) -> Option<Rate> {
        Some(self.law.rate())
    }
}
