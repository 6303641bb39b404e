//! The timer of recovery by time.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Time};

use super::SendStream;
use crate::recovery::timed::{Answers, Rule, Standing, pause};

/// The meaning of an end of patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Packets that were overtaken are lost.
    Overtaken,
    /// Packets were overtaken, and probes are to prove them lost.
    Ask,
    /// Nothing tells what became of the oldest packet, yet: probes ask.
    Probe,
    /// No probe was answered either; the oldest packet is sent again.
    Silence,
    /// The other end has asked for a pause, so that silence means nothing.
    Pause,
    /// For as long as the configured timeouts last nothing has come through, or the oldest packet has not.
    GiveUp,
}

/// Where the policy holds what is to be sent again, so many times as many packets count as lost with each silence.
const DEAD_A_STEP: u32 = 4;

/// Probes that leave with each silence on paths other than that of the oldest packet, besides one on that of the next.
const OTHERS: usize = 2;

/// The longest silence is at least that of two probes: of one patience, and of two.
const LEAST_PATIENCES: u64 = 3;

/// The reason why a packet that is to be sent again does not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBy {
    /// Nothing, or not for long: its turn comes, or its time.
    Nothing,
    /// The policy: too much is in flight.
    Policy,
    /// The other end, which was not ready.
    Peer,
}

impl SendStream {
    /// Losses are found by time.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.recovery.is_timed()
    }

    /// A packet took so long, as was heard now.
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

    /// A packet took longer than any timeout. If a timeout has counted while the packet was on its way, it tells how long nothing came
    /// through, and not how long packets take. Patience must not follow it, or losses of now would be found as late. The first such
    /// packet still counts, for at most the longest silence: a way that has become so long must be learned in the end.
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

    /// The other end lives: its silence was that of the packets that are lost, or of a pause. What was doubled for it is not
    /// any more, the less so as patience has grown by what was heard.
    #[cold]
    fn lives(&mut self, now: Time) {
        self.timeouts = 0;
        self.timer_base = now;
    }

    /// Time that a packet may say nothing.
    #[inline]
    fn patience(&self) -> Duration {
        self.timing.patience(self.slack, self.timeout)
    }

    /// Time in which nothing at all may be heard, of probes neither, before that counts as a timeout: as configured, but no sooner
    /// than the second probe would leave.
    fn longest_silence(&self) -> Duration {
        self.rto.timeout.max(self.patience() * LEAST_PATIENCES)
    }

    /// Ends of patience until the longest silence is over, each time after twice as long.
    fn silences_to_a_timeout(&self) -> u32 {
        let patiences = self.longest_silence().as_ps().div_ceil(self.patience().as_ps().max(1));
        patiences.saturating_add(1).checked_next_power_of_two().map_or(u64::BITS, u64::trailing_zeros)
    }

    /// Timeouts in a row, so many silences of patience after the last sign of life.
    fn timeouts_after(&self, silences: u16) -> u32 {
        (u32::from(silences) + 1).saturating_sub(self.silences_to_a_timeout())
    }

    /// From the last sign of life, or the last end of patience since, to the next.
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

    /// The path of the oldest packet in flight.
    pub(crate) fn oldest_path(&mut self) -> Option<PathId> {
        let Self { flight, recovery, .. } = self;
        recovery.timed()?.oldest_path(flight)
    }

    /// Up to [`OTHERS`] paths of which something came back lately, other than this one, else the first; others with each silence, as
    /// those may have died since.
    pub(crate) fn other_paths(&self, than: PathId, into: &mut Vec<PathId>) {
        let tried = OTHERS * usize::from(self.timeouts.saturating_sub(1));
        let acked = self.flight.acked_paths().filter(|&path| path != than);
        into.extend(acked.skip(tried).take(OTHERS));
        if into.is_empty() && than != PathId(0) {
            into.push(PathId(0));
        }
        into.dedup();
    }

    /// A probe was answered that left then on this path: if it is one of this stream. What it proves lost goes to `lost`.
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

    /// The times at which overtaken packets are asked for and lost.
    #[inline]
    fn rule(&self) -> Rule {
        let patience = self.patience();
        Rule { patience, lost_after: self.slack.lost_after(patience) }
    }

    /// The time at which the oldest packet is lost, or is to be asked for.
    pub(super) fn end_of_patience(&mut self) -> Option<Time> {
        let oldest = self.recovery.timed()?.oldest(&self.flight)?;
        let Rule { patience, lost_after } = self.rule();
        let wait = match oldest.standing {
            Standing::InTurn => {
                return Some(oldest.sent_at.max(self.timer_base).saturating_add(self.wait()));
            }
            Standing::Overtaken => patience,
            Standing::Asked => lost_after,
        };
        Some((oldest.sent_at.saturating_add(wait)).max(self.timer_base.saturating_add(pause(patience))))
    }

    /// An acknowledgement has been taken in: what is lost now? When to look again, if nothing else arrives.
    #[inline]
    pub(crate) fn find_late(&mut self, now: Time, lost: &mut Vec<u64>) -> Option<Time> {
        let rule = self.rule();
        self.recovery.timed()?.find_late(now, rule, &mut self.flight, lost)
    }

    /// The paths to send probes on after what is late, into `paths`.
    pub(crate) fn ask(&mut self, now: Time, paths: &mut Vec<PathId>) {
        let patience = self.patience();
        if let Some(timed) = self.recovery.timed() {
            timed.ask(now, patience, &self.flight, paths);
        }
    }

    /// Patience is at its end.
    pub(crate) fn lose_patience(&mut self, now: Time, held: HeldBy, lost: &mut Vec<u64>) -> Verdict {
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
        if held == HeldBy::Peer {
            return Verdict::Pause;
        }
        let oldest = self.recovery.timed().and_then(|timed| timed.oldest(&self.flight));
        if oldest.is_some_and(|oldest| oldest.standing == Standing::Overtaken) {
            return Verdict::Ask;
        }
        // Counted by what was planned, not by the clock: a host that was not scheduled for a second has not waited for it.
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
                // One, one, two, two, three: on a channel that loses half of what it carries, single packets would
                // double the time until it is ten thousand round trips.
                for _ in 0..timeouts.div_ceil(2) {
                    sender.lose_oldest(now, &mut self.flight, lost);
                }
            } else if held == HeldBy::Policy {
                // A window full of packets that are dead would let nothing leave for ever. But silence may be that of a
                // paused fabric: one, four, sixteen, so that a pause of a few patiences costs few copies, and a window of
                // a hundred dead packets four steps.
                let dead = DEAD_A_STEP.saturating_pow(timeouts - 1);
                for _ in 0..dead.min(self.flight.inflight_packets()) {
                    sender.lose_oldest(now, &mut self.flight, lost);
                }
            }
        }
        Verdict::Silence
    }
}
