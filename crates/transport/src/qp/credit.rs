//! Credit of a queue pair: as a sender it spends and requests credit, as a receiver it passes requests to the pacer.

use pathweave_policy::Policy;
use pathweave_units::{HostId, PathId, Time};
use pathweave_wire::{Body, Control, CreditNumber, Segment};

use super::{Health, Qp, next_instant};
use crate::common::EndpointShared;
use crate::credit::{ArrivalKind, CreditSender, Crossing, Sender};
use crate::events::Status;

impl<P: Policy> Qp<P> {
    /// Returns true if senders need credit on this queue pair.
    #[inline(always)]
    pub(crate) fn has_credit(&self) -> bool {
        self.answers.needs_credit()
    }

    /// Returns true if a packet may leave. Otherwise schedules a request to the receiver.
    #[cold]
    pub(crate) fn may_spend(&mut self, now: Time, common: &mut EndpointShared) -> bool {
        let Some(can_send) = common.spender(self.num).map(CreditSender::can_send) else {
            return true;
        };
        if can_send {
            common.credit_mut().set_active(self.num, true);
        } else {
            self.schedule_request(now, common);
        }
        can_send
    }

    /// Spends credit for a packet that leaves. Returns the pull target that it carries.
    #[cold]
    pub(crate) fn spend(
        &mut self,
        now: Time,
        wire_bytes: u32,
        path: PathId,
        common: &mut EndpointShared,
    ) -> Option<CreditNumber> {
        let (spender, _) = common.credit_mut().spender_mut(self.num)?;
        spender.spend(wire_bytes, path);
        self.note_active(common);
        self.tell_wanted(now, common)
    }

    /// Handles the loss of a packet of this wire size that no trim has reported.
    #[cold]
    pub(super) fn take_back(&self, wire_bytes: u16, common: &mut EndpointShared) {
        if let Some((spender, _)) = common.credit_mut().spender_mut(self.num) {
            spender.lost(wire_bytes.into());
        }
    }

    /// Returns true if there is credit for another packet, or none is needed.
    pub(crate) fn can_spend(&self, common: &EndpointShared) -> bool {
        common.spender(self.num).is_none_or(CreditSender::can_send)
    }

    fn note_active(&self, common: &mut EndpointShared) {
        let is_active = self.send.backlogged() && self.can_spend(common);
        common.credit_mut().set_active(self.num, is_active);
    }

    /// Need of credit: bytes that wait, and the window of the policy's rate if that is below the line rate.
    fn needs(&self, now: Time, common: &EndpointShared) -> Option<(u64, Option<u64>)> {
        let terms = &common.spender(self.num)?.terms;
        let around = terms.packet_bytes.saturating_sub(terms.payload_bytes);
        let mtu_payload = common.mtu_payload(self.num);
        let backlog = self.send.backlog_bytes(mtu_payload, around, terms.window_bytes);
        let rate = self.policy.rate(now).filter(|rate| *rate < terms.line_rate);
        Some((backlog, rate.map(|rate| rate.bytes_in(terms.base_rtt))))
    }

    fn tell_wanted(&self, now: Time, common: &mut EndpointShared) -> Option<CreditNumber> {
        let (backlog, window) = self.needs(now, common)?;
        let (spender, active) = common.credit_mut().spender_mut(self.num)?;
        Some(spender.tell(backlog, window, active))
    }

    /// Time of the next request while there is data and no credit: as soon as allowed if the receiver does not know
    /// the need, otherwise after a long silence of the receiver.
    fn asks_at(&self, now: Time, common: &EndpointShared) -> Option<Time> {
        let (backlog, window) = self.needs(now, common)?;
        let credit = common.credit.as_ref()?;
        let spender = credit.spender(self.num)?;
        if !spender.is_told(spender.wanted(backlog, window, credit.active())) {
            return Some(spender.may_ask_at());
        }
        let since = spender.heard_at.max(spender.asked_at.unwrap_or(Time::ZERO));
        Some(since.saturating_add(spender.wait(self.send.timeout(), self.send.rto_config().max_timeout)))
    }

    /// Schedules the next request. It is never due at once, because a packet of data leaves now.
    fn schedule_request(&mut self, now: Time, common: &mut EndpointShared) {
        let at = self.asks_at(now, common).map(|at| at.max(next_instant(now)));
        let credit = common.credit_mut();
        credit.set_active(self.num, false);
        credit.set_due(self.num, at);
        common.arm_credit();
    }

    /// Sends a request if it is due.
    pub(crate) fn on_asking_due(&mut self, now: Time, common: &mut EndpointShared) {
        if self.health != Health::Well || !self.connected || !self.send.sendable() || self.can_spend(common) {
            // A queue pair that needs credit later comes to `may_spend` again.
            return;
        }
        match self.asks_at(now, common) {
            None => {}
            Some(at) if at > now => self.schedule_request(now, common),
            Some(_) if self.has_asked_enough(now, common) => {
                let culprit = self.send.first_unsent();
                self.fail(Status::RetryExceeded, culprit, common);
            }
            Some(_) => self.ask(now, common),
        }
    }

    /// Returns true if no request was answered for as long as all configured timeouts last.
    fn has_asked_enough(&self, now: Time, common: &EndpointShared) -> bool {
        let rto = self.send.rto_config();
        common.spender(self.num).is_some_and(|spender| {
            spender.unanswered > rto.retry_limit
                && spender.silent_since.saturating_add(rto.give_up_after()) <= now
        })
    }

    /// Sends a request for credit.
    fn ask(&mut self, now: Time, common: &mut EndpointShared) {
        let Some(target) = self.tell_wanted(now, common) else { return };
        if let Some((spender, _)) = common.credit_mut().spender_mut(self.num) {
            spender.asks(now);
            let path = spender.path();
            self.control(path, Body::Control(Control::PullRequest { target }), common);
        }
        self.schedule_request(now, common);
    }

    /// Processes what an arriving packet, whole or trimmed, carries about credit. Returns true if it carries nothing
    /// else.
    #[cold]
    pub(crate) fn on_credit_info(
        &mut self,
        now: Time,
        from: HostId,
        segment: &Segment,
        crossing: Crossing,
        common: &mut EndpointShared,
    ) -> bool {
        let sender = Sender { host: from, qp: segment.src_qp, path: segment.path };
        match segment.body {
            Body::Data(_) => {
                let heard = match crossing {
                    Crossing::Whole { .. } => ArrivalKind::Packet,
                    Crossing::Trimmed(_) => ArrivalKind::Header,
                };
                let pacer = &mut common.credit_mut().pacer;
                pacer.crossed(now, self.num, crossing);
                pacer.heard(now, self.num, sender, heard, segment.pull_target);
            }
            Body::Control(Control::PullRequest { target }) => {
                let pacer = &mut common.credit_mut().pacer;
                pacer.heard(now, self.num, sender, ArrivalKind::Request, Some(target));
                // The sender may have missed a grant, and must learn that the receiver is alive.
                if let Some(pull) = pacer.again(self.num) {
                    common.queue_pull(&pull);
                }
            }
            Body::Control(Control::Pull { granted }) => {
                if let Some((spender, _)) = common.credit_mut().spender_mut(self.num) {
                    spender.heard(now);
                    spender.pulled(granted);
                }
                self.note_active(common);
                self.wake(common);
                return true;
            }
            Body::Ack(_) | Body::Nack(_) => {
                if let Some((spender, _)) = common.credit_mut().spender_mut(self.num) {
                    spender.heard(now);
                }
                return false;
            }
            _ => return false,
        }
        common.grant_credit(now);
        matches!(segment.body, Body::Control(_))
    }
}
