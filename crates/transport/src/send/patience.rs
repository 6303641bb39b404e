//! Retransmission timer of recovery by time ([`crate::recovery::timed`]).

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Time};

use super::SendStream;
use crate::recovery::timed::{Answers, LateRule, OldestState, pause};

/// Result of an end of patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Overtaken packets are lost.
    Overtaken,
    /// Packets were overtaken, and probes must prove them lost.
    Ask,
    /// Nothing is known about the oldest packet yet: probes are sent.
    Probe,
    /// No probe was answered either: the oldest packet is retransmitted.
    Silence,
    /// The peer has asked for a pause, so silence proves nothing.
    Pause,
    /// Nothing has arrived for as long as all configured timeouts last, or the oldest packet was lost for that long.
    GiveUp,
}

/// Factor by which the number of packets declared lost grows with each silence, while the policy holds back
/// retransmissions.
const DEAD_A_STEP: u32 = 4;

/// Number of probes with each silence on paths other than that of the oldest packet, besides one on that of the next
/// packet.
const OTHERS: usize = 2;

/// Patiences that the longest silence lasts at least. Two probes fit: after one patience, and after two more.
const LEAST_PATIENCES: u64 = 3;

/// Reason why a packet that must be retransmitted does not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockedBy {
    /// Nothing, or only its turn or its pacing time.
    Nothing,
    /// The policy: too much is in flight.
    Policy,
    /// The peer, which was not ready.
    Peer,
}

impl SendStream {
    /// Returns true if losses are found by time.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.recovery.is_timed()
    }

    /// Records the time that a packet took, as measured now.
    #[inline]
    pub(crate) fn measured(&mut self, now: Time, took: Duration) {
        if took <= self.rto.max_timeout {
            self.timing.measure(took, self.flight.inflight_packets());
        } else {
            self.measured_long(now, took);
        }
        if self.timeouts > 0 {
            self.lives(now);
        }
    }

    /// Records a packet that took longer than any timeout. If a timeout has counted while the packet was in flight,
    /// it measures the length of an interruption, not the time that packets take. If patience followed it, later
    /// losses would be found late. The first such packet still counts, with at most the longest silence, so that a
    /// path that has become that long is learned in the end.
    #[cold]
    fn measured_long(&mut self, now: Time, took: Duration) {
        let left = Time::from_ps(now.as_ps().saturating_sub(took.as_ps()));
        let was_silent = self.recovery.timed().is_some_and(|timed| timed.has_timed_out_since(left));
        let counts = match (was_silent, self.timeouts) {
            (false, _) => took,
            (true, 0) => return,
            (true, _) => took.min(self.longest_silence().max(self.rto.max_timeout)),
        };
        self.timing.measure(counts, self.flight.inflight_packets());
    }

    /// Resets the count of silences, because the peer is alive: only the lost packets were silent, or it paused.
    /// Doubled times are not needed any more, the less as patience has grown by the measurement.
    #[cold]
    fn lives(&mut self, now: Time) {
        self.timeouts = 0;
        self.timer_base = now;
    }

    /// Time that a packet may stay unacknowledged.
    #[inline]
    fn patience(&self) -> Duration {
        self.timing.patience(self.slack, self.timeout)
    }

    /// Time without any arrival, not even answers to probes, that counts as a timeout: the configured one, but not
    /// before the second probe would leave.
    fn longest_silence(&self) -> Duration {
        self.rto.timeout.max(self.patience() * LEAST_PATIENCES)
    }

    /// Number of ends of patience, each after twice the time, until the longest silence is over.
    fn silences_to_a_timeout(&self) -> u32 {
        let patiences = self.longest_silence().as_ps().div_ceil(self.patience().as_ps().max(1));
        patiences.saturating_add(1).checked_next_power_of_two().map_or(u64::BITS, u64::trailing_zeros)
    }

    /// Number of successive timeouts that `silences` ends of patience since the last arrival amount to.
    fn timeouts_after(&self, silences: u16) -> u32 {
        (u32::from(silences) + 1).saturating_sub(self.silences_to_a_timeout())
    }

    /// Time to the next end of patience, from the last arrival or the previous end of patience.
    #[inline]
    pub(super) fn wait(&self) -> Duration {
        if self.timeouts == 0 { self.patience() } else { self.wait_on() }
    }

    #[cold]
    fn wait_on(&self) -> Duration {
        match self.timeouts_after(self.timeouts) {
            0 => {
                let (patience, over) = (self.patience().as_ps(), (1u64 << self.timeouts.min(63)) - 1);
                let waited = Duration::from_ps(patience.saturating_mul(over));
                let doubled = Duration::from_ps(patience.saturating_mul(over + 1));
                doubled.min(self.longest_silence().saturating_sub(waited))
            }
            timeouts => self.rto.after(timeouts).max(self.longest_silence()),
        }
    }

    /// Path of the oldest packet in flight.
    pub(crate) fn oldest_path(&mut self) -> Option<PathId> {
        let Self { flight, recovery, .. } = self;
        recovery.timed()?.oldest_path(flight)
    }

    /// Collects up to [`OTHERS`] paths other than `than` that worked recently, or else the first path. Each silence
    /// gives others, because those tried before may have died.
    pub(crate) fn other_paths(&self, than: PathId, into: &mut Vec<PathId>) {
        let tried = OTHERS * usize::from(self.timeouts.saturating_sub(1));
        let acked = self.flight.acked_paths().filter(|&path| path != than);
        into.extend(acked.skip(tried).take(OTHERS));
        if into.is_empty() && than != PathId(0) {
            into.push(PathId(0));
        }
        into.dedup();
    }

    /// Processes the answer to a probe. Returns false if it is not one of this stream. Packets that it proves lost go
    /// to `lost`.
    pub(crate) fn probe_answered(
        &mut self,
        now: Time,
        (sent_at, path): (Time, PathId),
        lost: &mut Vec<u64>,
    ) -> bool {
        let Self { recovery, flight, slack, .. } = self;
        let Some(timed) = recovery.timed() else { return false };
        let answers = if slack.answers_prove() { Answers::Prove } else { Answers::Overtake };
        let is_own = timed.answered(now, (sent_at, path), answers, flight, lost);
        if is_own {
            self.measured(now, now - sent_at);
        }
        is_own
    }

    /// Times after which overtaken packets are probed for and lost.
    #[inline]
    fn rule(&self) -> LateRule {
        let patience = self.patience();
        LateRule { patience, lost_after: self.slack.lost_after(patience) }
    }

    /// Time at which the oldest packet is lost, or must be probed for.
    pub(super) fn end_of_patience(&mut self) -> Option<Time> {
        let oldest = self.recovery.timed()?.oldest(&self.flight)?;
        let LateRule { patience, lost_after } = self.rule();
        let wait = match oldest.standing {
            OldestState::InTurn => {
                return Some(oldest.sent_at.max(self.timer_base).saturating_add(self.wait()));
            }
            OldestState::Overtaken => patience,
            OldestState::Asked => lost_after,
        };
        Some((oldest.sent_at.saturating_add(wait)).max(self.timer_base.saturating_add(pause(patience))))
    }

    /// Declares packets lost after an acknowledgement. Returns the time of the next check if nothing else arrives.
    #[inline]
    pub(crate) fn find_late(&mut self, now: Time, lost: &mut Vec<u64>) -> Option<Time> {
        let rule = self.rule();
        self.recovery.timed()?.find_late(now, rule, &mut self.flight, lost)
    }

    /// Collects the paths on which probes follow late packets.
    pub(crate) fn ask(&mut self, now: Time, paths: &mut Vec<PathId>) {
        let patience = self.patience();
        if let Some(timed) = self.recovery.timed() {
            timed.ask(now, patience, &self.flight, paths);
        }
    }

    /// Handles an end of patience.
    pub(crate) fn lose_patience(&mut self, now: Time, held: BlockedBy, lost: &mut Vec<u64>) -> Verdict {
        let stuck = self.recovery.timed().and_then(|timed| timed.stuck_for(now, &self.flight));
        if stuck.is_some_and(|long| long >= self.rto.give_up_after()) {
            return Verdict::GiveUp;
        }
        self.find_late(now, lost);
        if !lost.is_empty() {
            self.timer_base = now;
            return Verdict::Overtaken;
        }
        self.timer_base = now;
        if held == BlockedBy::Peer {
            return Verdict::Pause;
        }
        let oldest = self.recovery.timed().and_then(|timed| timed.oldest(&self.flight));
        if oldest.is_some_and(|oldest| oldest.standing == OldestState::Overtaken) {
            return Verdict::Ask;
        }
        // Counts planned waits, not the clock: a host that was not scheduled for a second has not waited for it.
        self.timeouts = self.timeouts.saturating_add(1);
        let timeouts = self.timeouts_after(self.timeouts);
        if timeouts == 0 {
            return Verdict::Probe;
        }
        if timeouts > self.rto.retry_limit || self.timeouts == u16::MAX {
            return Verdict::GiveUp;
        }
        let is_waiting = self.flight.lost_packets() > 0;
        if let Some(sender) = self.recovery.timed() {
            sender.timed_out(now);
            if !is_waiting {
                // One, one, two, two, three packets. With single packets, a channel that loses half of its packets
                // would double the time up to ten thousand round trips.
                for _ in 0..timeouts.div_ceil(2) {
                    sender.lose_oldest(now, &mut self.flight, lost);
                }
            } else if held == BlockedBy::Policy {
                // A window full of dead packets would block all others for ever. But the silence may be that of a
                // paused fabric. One, four, sixteen: a pause of a few patiences then costs few copies, and a window
                // of a hundred dead packets takes four steps.
                let dead = DEAD_A_STEP.saturating_pow(timeouts - 1);
                for _ in 0..dead.min(self.flight.inflight_packets()) {
                    sender.lose_oldest(now, &mut self.flight, lost);
                }
            }
        }
        Verdict::Silence
    }
}
