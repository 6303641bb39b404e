//! The timer of recovery by time.

use alloc::vec::Vec;

use pathweave_units::{Duration, Time};

use super::SendStream;
use crate::config::RetransmissionConfig;
use crate::recovery::timed::pause;

/// What it means that patience is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Packets that were overtaken are lost.
    Overtaken,
    /// Nothing tells what became of the oldest packet; it is sent again.
    Silence,
    /// The other end has asked for a pause, so that silence means nothing.
    Pause,
    /// Nothing has come through for as long as the configured timeouts last.
    GiveUp,
}

/// Where the policy holds what is to be sent again, so many times as many packets count as lost with each silence.
const DEAD_A_STEP: u32 = 4;

/// What keeps a packet that is to be sent again from leaving.
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
    /// Whether losses are found by time.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.recovery.is_timed()
    }

    /// A packet took so long, as was heard now.
    #[inline]
    pub(crate) fn measured(&mut self, now: Time, took: Duration) {
        self.timing.measure(took, self.flight.inflight_packets());
        if self.timeouts > 0 {
            self.lives(now);
        }
    }

    /// The other end lives: its silence was that of the packets that are lost, or of a pause. What was doubled for it is not
    /// any more, the less so as patience has grown by what was heard.
    #[cold]
    fn lives(&mut self, now: Time) {
        self.timeouts = 0;
        self.timer_base = now;
    }

    /// How long a packet may say nothing.
    #[inline]
    fn patience(&self) -> Duration {
        self.timing.patience(self.slack, self.timeout)
    }

    /// The schedule of timeouts that begins with patience.
    fn schedule(&self) -> RetransmissionConfig {
        RetransmissionConfig { timeout: self.patience(), ..self.rto }
    }

    /// From the last sign of life to sending the oldest packet again.
    #[inline]
    pub(super) fn wait(&self) -> Duration {
        if self.timeouts == 0 { self.patience() } else { self.schedule().after(u32::from(self.timeouts)) }
    }

    /// When the oldest packet is lost, or is to be sent again.
    pub(super) fn end_of_patience(&mut self) -> Option<Time> {
        let oldest = self.recovery.timed()?.oldest(&self.flight)?;
        Some(if oldest.overtaken {
            let patience = self.patience();
            (oldest.sent_at.saturating_add(patience)).max(self.timer_base.saturating_add(pause(patience)))
        } else {
            oldest.sent_at.max(self.timer_base).saturating_add(self.wait())
        })
    }

    /// An acknowledgement has been taken in: what is lost now? When to look again, if nothing else arrives.
    #[inline]
    pub(crate) fn find_late(&mut self, now: Time, lost: &mut Vec<u64>) -> Option<Time> {
        let patience = self.patience();
        self.recovery.timed()?.find_late(now, patience, &mut self.flight, lost)
    }

    /// Patience is at its end.
    pub(crate) fn lose_patience(&mut self, now: Time, held: HeldBy, lost: &mut Vec<u64>) -> Verdict {
        self.find_late(now, lost);
        if !lost.is_empty() {
            self.timer_base = now;
            return Verdict::Overtaken;
        }
        self.timer_base = now;
        if held == HeldBy::Peer {
            return Verdict::Pause;
        }
        self.timeouts = self.timeouts.saturating_add(1);
        // Counted by what was planned, not by the clock: a host that was not scheduled for a second has not waited for it.
        let waited = RetransmissionConfig { retry_limit: u32::from(self.timeouts) - 1, ..self.schedule() };
        if self.has_retried_enough() && waited.give_up_after() >= self.rto.give_up_after() {
            return Verdict::GiveUp;
        }
        let is_waiting = self.flight.lost_packets() > 0;
        if let Some(sender) = self.recovery.timed() {
            if !is_waiting {
                // One, one, two, two, three: on a channel that loses half of what it carries, single packets would
                // double the time until it is ten thousand round trips.
                for _ in 0..self.timeouts.div_ceil(2) {
                    sender.lose_oldest(now, &mut self.flight, lost);
                }
            } else if held == HeldBy::Policy {
                // A window full of packets that are dead would let nothing leave for ever. But silence may be that of a
                // paused fabric: one, four, sixteen, so that a pause of a few patiences costs few copies, and a window of
                // a hundred dead packets four steps.
                let dead = DEAD_A_STEP.saturating_pow(u32::from(self.timeouts) - 1);
                for _ in 0..dead.min(self.flight.inflight_packets()) {
                    sender.lose_oldest(now, &mut self.flight, lost);
                }
            }
        }
        Verdict::Silence
    }
}
