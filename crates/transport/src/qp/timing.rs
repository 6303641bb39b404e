//! Timers of a queue pair.

use pathweave_policy::{Policy, PolicyCx};
use pathweave_units::Time;
use pathweave_wire::Operation;

use super::{Health, Qp, next_instant};
use crate::common::EndpointShared;
use crate::events::Status;
use crate::scheduler::SchedState;
use crate::send::TimerReason;
use crate::timers::TimerKind;

impl<P: Policy> Qp<P> {
    /// Handles the heap's entry for `kind`, which was set to `at`. The entry may be stale or early.
    pub(crate) fn on_timer(&mut self, now: Time, at: Time, kind: TimerKind, common: &mut EndpointShared) {
        if !self.armed.take(at, kind) || self.health == Health::Failed {
            return;
        }
        match kind {
            TimerKind::Retransmit => self.on_retransmit_timer(now, common),
            TimerKind::DelayedAck => {
                match self.receive.acks.due() {
                    Some(due) if due > now => common.timers.arm(&mut self.armed, self.num, kind, due),
                    Some(_) => {
                        let ack = self.receive.acks.take_held(&self.receive.recovery);
                        self.send_ack(ack, common);
                    }
                    None => {}
                }
                if self.receive.reorder.is_some() {
                    self.on_reorder_timer(now, common);
                }
            }
            TimerKind::Pacing if self.turn == SchedState::Paced => {
                if self.paced_until > now {
                    common.timers.arm(&mut self.armed, self.num, kind, self.paced_until);
                } else {
                    self.turn = SchedState::Off;
                    self.wake(common);
                }
            }
            TimerKind::Pacing => {}
            TimerKind::Policy => {
                if self.policy.next_timer().is_some_and(|at| at <= now) {
                    let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
                    self.policy.on_timer(now, &mut cx);
                    self.wake(common);
                }
                self.arm_policy(now, common);
            }
            TimerKind::RnrBackoff if self.health == Health::BackingOff => {
                if self.backoff_until > now {
                    common.timers.arm(&mut self.armed, self.num, kind, self.backoff_until);
                } else {
                    self.health = Health::Well;
                    self.wake(common);
                }
            }
            // Timers of the endpoint.
            TimerKind::RnrBackoff | TimerKind::PathOrder | TimerKind::Credit => {}
        }
    }

    fn on_retransmit_timer(&mut self, now: Time, common: &mut EndpointShared) {
        match self.send.deadline() {
            None => return,
            Some((deadline, _)) if deadline > now => {}
            Some((_, TimerReason::Probe)) => self.probe(now, common),
            Some((_, TimerReason::Ack)) => self.on_deadline(now, common),
            Some((_, TimerReason::Answer)) => {
                self.note_timeout(now, None, common);
                let read = self
                    .send
                    .messages()
                    .position(|message| message.op == Operation::ReadRequest && !message.answered);
                self.fail(Status::RetryExceeded, read, common);
            }
        }
        if let Some((deadline, _)) = self.send.deadline() {
            common.timers.arm(
                &mut self.armed,
                self.num,
                TimerKind::Retransmit,
                deadline.max(next_instant(now)),
            );
        }
    }
}
