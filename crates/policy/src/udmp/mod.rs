//! UDMP (Huang et al., "UDMP: Unified Delay-Driven Multipath Protocol for AI Clusters", IEEE ToN 2026): delay decides
//! the rate of the queue pair and, through ACK clocking, the path of every packet, without state per path.
//!
//! The rate fills a *pool* of bytes. An acknowledgement takes none, one or two packets out of it: two if its round-trip
//! time is below the average, one if it is at most a base round-trip time above. They take its path, so fast paths get
//! more, and what a slow path does not take waits for the next acknowledgement of another.
//!
//! The algorithm as printed does not do what the paper claims (`variant = "published"`): its rate drifts to half the
//! line under any noise, and flows deadlock in incast once every acknowledgement is refused. The default,
//! `"repaired"`, differs in this:
//!
//! | | published | repaired |
//! |---|---|---|
//! | rate | gradient alone | gradient, distance from a queue target, additive step; bounded a round trip |
//! | round-trip time that the rate goes by | the average | a low average: 1/32 of what a measurement is above it, 1/2 of what it is below |
//! | queue target | none | a quarter of the base round-trip time and four packet times |
//! | base round-trip time | of any packet | of full packets |
//! | two packets if | below the average | up to 5 % of the base above it |
//! | the second of two | on the path of the acknowledgement | on a spare path, or on any |
//! | pool | without bound | a quarter BDP; one BDP while there is nothing to send |
//! | in flight | without bound | 1.5 BDP and a packet |
//! | nothing clocks | a kick after 100 us | a packet on the last good path: at once if none is in flight, after two round-trip times if one is |
//! | no data when clocked | the chance is kept as a token, for any path | it stays in the pool, which becomes tokens when there is data |
//!
//! *Low round-trip times.* Packets of many senders meet by chance on some paths: that makes long round-trip times, and a
//! lower rate does not help against it. A queue at the last hop, which alone asks for less rate, makes all of them longer,
//! the shortest, too. So the rate goes by an average that lies where what is below it weighs a sixteenth of what is above.
//! Which acknowledgement is fast or late is a matter of paths, and decided by the average of all of them.
//!
//! *The target in round trips.* A queue settles at a share of the base round-trip time, so the same value fits any fabric;
//! four packets are the grain below which a queue is noise.
//!
//! *Spare paths.* With both packets on the path of the acknowledgement, paths are a branching process, of which most lines
//! die out: after some tens of round trips few paths are left. So a path whose acknowledgement was not late and found the
//! pool short is kept, eight of them at most, and the second packet takes the oldest. A path that loses a packet is
//! forgotten. On the policy bench (`snapshot.txt`) the fullest of the four paths of an incast has 10 % more packets than the
//! emptiest, where it had 53 %. The price: where no path is spare, the second packet may go to a path that loses
//! everything. One dead path of four gets 41 packets instead of 30, and 1,000 packets take 417 us instead of 217.
//!
//! Three of the repairs were found on the policy bench (N-to-1 of 3,000 or 6,000 packets, 2 % jitter, three seeds), and
//! checked on the paper's fat tree (permutation of 8 MB, two seeds). Their numbers are of the law before it had low
//! round-trip times and spare paths, with a target of 3 us and 1.25 BDP in flight:
//!
//! - The additive step shrinks as the queue grows, by (base + target) / average. Whole, it keeps flows past the fiftieth
//!   at one bottleneck above their share until T_high cuts them: mean round-trip time of 64-to-1 11.2 base times, 3.9
//!   with it shrinking; of 256-to-1 19.1 and 12.9.
//! - With nothing in flight the next packet leaves as soon as the pool has one, without further wait. Waiting two
//!   (long) round-trip times costs 4 % of the throughput of 32-to-1 and 6 % of 256-to-1; at once, 0.6 % and 0.1 %.
//! - `queue_gain` 0.15 instead of 0.25: P99 FCT of the permutation 755 us instead of 760 (spraying without congestion
//!   control: 738), P99 degree of reordering 61 to 66 packets instead of 71, throughput of 16-to-1 up by 2 %; the
//!   mean round-trip time of 64-to-1 rises to 5.1 base times.
//!
//! On real hosts ([`UdmpLate::ByQueue`]) queues may be many base times long, and round-trip times of good paths then
//! differ by more than one all the time. Nothing for those a base above the average empties a path: all that waits
//! there comes back as late as the first of it, and what left meanwhile makes others late in turn. Paths of 60, 60, 30
//! and 6 Mb/s between hosts that are held up for up to 10 ms now and then gave 77 % of their sum, and 89 % where an
//! acknowledgement is late that waited for twice as long as the average; of 20, 20, 10 and 2 Mb/s without that 56 and
//! 89 % (six seeds, simulated time, `crates/datapath/src/engine/links_test.rs`). In a data centre a base above the
//! average is the better rule: with the other the slowest flows of a degraded fat tree and of a rail took 2 and 8 %
//! longer, an incast of 32 in the mean 2 %.
//!
//! With nothing to send the pool fills, in a round-trip time at line rate to a bandwidth-delay product, and that is all.
//! Data that comes later leaves with what the pool holds, on random paths; then acknowledgements clock again. With a
//! quarter of that, and the rest clocked by what is still on its way, connections that send a message of a round trip
//! after another herd on few paths: the flows of rings that reduce the gradients of ResNet-50 (paper's fat tree, a tenth
//! of its size) took 18.2 us in the mean and 62.9 us at most instead of 16.8 and 25.6, met twelve times the marks, and
//! left 376 us of communication exposed instead of 330.
//!
//! A retransmission takes a token like any packet. A loss takes an acknowledgement from the clock; those of the
//! faster paths make up for it, two packets each.

mod config;
mod law;
mod spares;
#[cfg(test)]
mod tests;

use pathweave_units::{Duration, PathId, Rate, Rng, Time};

use crate::ack_clock::AckClock;
use crate::ooo::OutOfOrder;
use crate::{Egress, Feedback, FeedbackKind, Grant, Memo, PathView, Policy, PolicyCx, PolicyEnv, Sent, Want};

pub use config::{UdmpConfig, UdmpLate, UdmpVariant};
use law::{Law, ps};
use spares::Spares;

/// What a granted packet is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charge {
    /// Released by an acknowledgement, which has paid.
    Release,
    /// A token: for any path.
    Token,
    /// The pool, because nothing comes back that could clock.
    Restart,
}

/// One direction of one queue pair.
// The timer first: the compiler loads it before it knows that a policy is this one.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Udmp {
    /// `Time::MAX`: not set.
    timer: Time,
    law: Law,
    /// Bytes the rate has put in and no packet has taken out.
    pool: f64,
    last_add: Time,
    last_ack: Time,
    last_restart: Time,
    clock: AckClock,
    ooo: OutOfOrder,
    /// Packets that may leave on any path.
    tokens: u32,
    /// What short packets have given back, less what became tokens.
    given_back: f64,
    /// Most packets in flight: a parameter, but here it takes no room.
    inflight_cap: u32,
    /// Path of the last acknowledgement that came back fast.
    good: Option<PathId>,
    spares: Spares,
    /// Repaired: the last acknowledgement found nothing to send.
    idle: bool,
    charge: Charge,
    params: Params,
}

/// The same for all queue pairs of a NIC.
#[derive(Clone, Copy, Debug)]
struct Params {
    pool_cap: f64,
    idle_pool_cap: f64,
    near: f64,
    kick_after: Duration,
}

impl Udmp {
    /// A queue pair that has a bandwidth-delay product of packets to send on random paths.
    pub fn new(config: &UdmpConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let repaired = config.variant == UdmpVariant::Repaired;
        let packet = f64::from(env.mtu_wire_bytes);
        let bdp = env.bdp_bytes() as f64;
        let cap = |share: f64| if repaired { (share * bdp).max(2.0 * packet) } else { f64::INFINITY };
        // To the next packet: less would leave the line idle for the rest of the round trip.
        let tokens = env.bdp_bytes().div_ceil(u64::from(env.mtu_wire_bytes)).max(1);
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        let inflight_cap =
            if repaired { ((config.inflight_bdp * bdp / packet) as u32).saturating_add(1) } else { u32::MAX };
        Udmp {
            law: Law::new(config, env),
            pool: 0.0,
            last_add: Time::ZERO,
            last_ack: Time::ZERO,
            last_restart: Time::ZERO,
            timer: Time::MAX,
            clock: AckClock::new(env.paths, config.explore, rng),
            ooo: OutOfOrder::new(config.ooo_packets),
            spares: Spares::default(),
            tokens: tokens.min(inflight_cap),
            given_back: 0.0,
            inflight_cap,
            good: None,
            idle: false,
            charge: Charge::Token,
            params: Params {
                pool_cap: cap(config.pool_bdp),
                idle_pool_cap: cap(config.idle_pool_bdp),
                near: config.near,
                kick_after: config.kick_after,
            },
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
    /// When the pool holds a packet; not before `now`.
    fn pool_ready(&self, now: Time) -> Time {
        let missing = self.law.packet() - self.pool;
        let ready = self.last_add + Duration::from_ps((missing / self.law.rate).max(0.0) as u64 + 1);
        if self.pool_at(now) >= self.law.packet() { now } else { ready.max(now + Duration::from_ps(1)) }
    }

    /// How many packets an acknowledgement releases (algorithm 2).
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
    /// Packets that may yet be released.
    #[inline]
    fn room(&self, inflight: u32) -> u32 {
        let spoken_for = inflight.saturating_add(self.clock.pending()).saturating_add(self.tokens);
        self.inflight_cap.saturating_sub(spoken_for)
    }

    /// Puts what an acknowledgement releases on its way; says how many packets.
    ///
    /// As published all of them take the acknowledgement's path. Repaired, the second takes a good path whose
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
            // Counted from the first packet the pool would grant the first burst a second time.
            (self.pool, self.last_add) = (0.0, now);
        } else {
            self.refill(now);
        }
        // A retransmission's PSN is old by nature.
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

    /// When a packet may leave although nothing clocks it.
    fn restart_at(&self, now: Time, inflight: u32) -> Option<Time> {
        let alive = self.last_ack.max(self.last_restart);
        if !self.law.repaired {
            return (inflight == 0).then(|| alive + self.params.kick_after);
        }
        let due = match inflight {
            // Everything has come back: there is nothing to wait for, and the rate knows what happened.
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

    /// A path for a packet that no acknowledgement clocked.
    fn restart_path(&self) -> PathId {
        match self.good {
            Some(path) if self.law.repaired && self.clock.is_up(path) => path,
            _ => self.clock.spray(),
        }
    }

    #[inline]
    fn grant(&mut self, charge: Charge, path: PathId, egress: Egress) -> Grant {
        self.charge = charge;
        Grant::Send(self.clock.settle(path, egress))
    }

    /// There is data again: the packets in the pool are tokens from now on.
    #[cold]
    fn end_idleness(&mut self, now: Time, inflight: u32) {
        self.refill(now);
        let tokens = ((self.pool / self.law.packet()) as u32).min(self.room(inflight));
        self.tokens += tokens;
        self.pool -= f64::from(tokens) * self.law.packet();
        self.idle = false;
    }

    #[cold]
    fn poll_unclocked(&mut self, now: Time, want: &Want) -> Grant {
        match self.restart_at(now, want.inflight_packets) {
            Some(due) if due <= now => self.grant(Charge::Restart, self.restart_path(), want.egress),
            due => {
                self.timer = due.unwrap_or(Time::MAX);
                Grant::Blocked
            }
        }
    }
}

/// What [`Udmp`] attaches to a packet sent again.
const RETRANSMITTED: Memo = Memo(1);

impl Policy for Udmp {
    crate::ignores!(on_open, on_close, compose, on_copy_sent, on_control, window, path_beyond_window);
    #[inline]
    fn poll_send(&mut self, now: Time, want: &Want, _cx: &mut PolicyCx<'_>) -> Grant {
        if self.idle {
            self.end_idleness(now, want.inflight_packets);
        }
        if let Some(path) = self.clock.next(want.egress) {
            return self.grant(Charge::Release, path, want.egress);
        }
        if self.tokens > 0 {
            return self.grant(Charge::Token, self.clock.spray(), want.egress);
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
                self.clock.sprayed(cx.rng);
                if !self.law.started() && sent.inflight_packets == 1 {
                    (self.last_ack, self.last_add) = (now, now);
                }
            }
            Charge::Restart => {
                self.last_restart = now;
                self.refill(now);
                self.pool = (self.pool - self.law.packet()).max(0.0);
                self.clock.sprayed(cx.rng);
            }
        }
        // A short packet gives back what it did not need. Where several follow each other, a full packet of that may leave without
        // another acknowledgement: the one that released it stands for as many bytes.
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
            | FeedbackKind::Midway
            | FeedbackKind::Echo
            | FeedbackKind::Heard { .. }
            | FeedbackKind::Late
            | FeedbackKind::Notices(_) => {}
        }
    }

    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.clock.on_paths(paths, cx.rng);
    }

    fn on_timer(&mut self, _now: Time, _cx: &mut PolicyCx<'_>) {
        // Asked next, the policy grants the packet that restarts the clock.
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
