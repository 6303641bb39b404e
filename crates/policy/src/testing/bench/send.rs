//! Transmission over the edge, a path and the last hop, and the resulting acknowledgements.

use pathweave_units::{Duration, PathId, Time, TrimmedAt};
use pathweave_wire::Control;

use super::super::channel::Passage;
use super::{Bench, Event, Flying};
use crate::{ControlClass, Outgoing, Policy, SendRequest, Sent};

impl<P: Policy> Bench<'_, P> {
    pub(super) fn transmit(
        &mut self,
        now: Time,
        index: usize,
        want: &SendRequest,
        attempt: u32,
        path: PathId,
    ) {
        let sender = &mut self.senders[index];
        if attempt > 0 {
            sender.resend.pop_front();
            sender.report.retransmitted += 1;
        } else {
            sender.next_psn += 1;
        }
        let sent = Sent {
            path,
            psn: want.psn,
            msn: want.msn,
            payload_bytes: want.payload_bytes,
            wire_bytes: want.wire_bytes,
            retransmit: want.retransmit,
            inflight_packets: want.inflight_packets + 1,
        };
        let memo = sender.policy.on_sent(now, &sent, &mut sender.host.cx());
        let flying = Flying { path, memo, sent_at: now, arrives: Time::MAX, attempt, late: false };
        sender.flying.insert(want.psn, flying);
        sender.report.sent[path.index()] += 1;
        sender.nic_free_at = now + self.scenario.env.line_rate.time_for(u64::from(want.wire_bytes));
        let left = sender.nic_free_at;
        self.push(now + self.scenario.timeout, index, Event::Timeout { psn: want.psn, attempt });
        let left = self.pass_edge(now, left, index, path, want.wire_bytes);
        let Some((passage, back, trimmed)) = self.cross(left, path, want.wire_bytes) else { return };
        let answered = passage.arrives + back;
        let sender = &mut self.senders[index];
        if trimmed.is_none() {
            sender.flying.entry(want.psn).and_modify(|flying| flying.arrives = passage.arrives);
        }
        if passage.marked && passage.arrives >= sender.next_cnp {
            sender.next_cnp = passage.arrives + self.scenario.cnp_interval;
            self.push(answered, index, Event::Cnp);
        }
        if let Some(at) = trimmed {
            let news = Event::Trimmed { psn: want.psn, attempt, at, marked: passage.marked };
            return self.push(answered, index, news);
        }
        let one_way_ps = (passage.arrives - now).as_ps();
        self.push(answered, index, Event::Ack { psn: want.psn, attempt, marked: passage.marked, one_way_ps });
    }

    /// Passes the edge, which replies, if there is one. Returns the time at which the packet has passed it.
    fn pass_edge(&mut self, now: Time, left: Time, index: usize, path: PathId, wire_bytes: u32) -> Time {
        let Some(edge) = &mut self.edge else { return left };
        let at_edge = edge.pass(left, wire_bytes, &mut self.channel_rng).arrives;
        let answered = at_edge + edge.jittered(&mut self.channel_rng);
        let answer = Control::EdgeEcho { sent_at: now };
        self.push(answered, index, Event::Control { answer, path });
        at_edge
    }

    pub(super) fn copy(&mut self, now: Time, index: usize, psn: u64, path: PathId) {
        let wire_bytes = self.scenario.env.mtu_wire_bytes;
        let sender = &mut self.senders[index];
        assert!(sender.flying.contains_key(&psn), "seed {}: PSN {psn} is not in flight", self.scenario.seed);
        let mut cx = sender.host.cx();
        sender.policy.on_copy_sent(now, psn, path, wire_bytes, &mut cx);
        sender.report.sent[path.index()] += 1;
        sender.report.copies += 1;
        sender.nic_free_at = now + self.scenario.env.line_rate.time_for(u64::from(wire_bytes));
        if let Some((passage, back, None)) = self.cross(now, path, wire_bytes) {
            let one_way_ps = (passage.arrives - now).as_ps();
            let heard = Event::Heard { psn, path, sent_at: now, marked: passage.marked, one_way_ps };
            self.push(passage.arrives + back, index, heard);
        }
    }

    pub(super) fn control(&mut self, now: Time, index: usize, path: PathId) {
        let sender = &mut self.senders[index];
        let first = sender.flying.keys().next().copied().unwrap_or(sender.next_psn);
        let mut cx = sender.host.cx();
        let Outgoing { control, treatment } =
            sender.policy.make_control(now, path, first..sender.next_psn, &mut cx);
        match treatment {
            ControlClass::AsData => sender.report.notices += 1,
            ControlClass::AsUnmarkedData | ControlClass::AsAcknowledgement => sender.report.probes += 1,
        }
        if let Some((passage, back, _)) = self.cross(now, path, 84)
            && let Some(answer) = control.answer(passage.arrives, passage.marked)
        {
            self.push(passage.arrives + back, index, Event::Control { answer, path });
        }
    }

    /// Passes the path and the last hop. Returns the passage, the delay of the return path, and the place of a trim;
    /// `None` if the packet is lost.
    fn cross(
        &mut self,
        left: Time,
        path: PathId,
        wire_bytes: u32,
    ) -> Option<(Passage, Duration, Option<TrimmedAt>)> {
        let rng = &mut self.channel_rng;
        let hop = &mut self.paths[path.index()];
        let mut passage = hop.pass(left, wire_bytes, rng);
        let back = hop.jittered(rng);
        let mut trimmed = passage.trimmed.then_some(TrimmedAt::OnTheWay);
        if let (false, None, Some(last)) = (passage.lost, trimmed, &mut self.last_hop) {
            let end = last.pass(passage.arrives, wire_bytes, rng);
            passage = Passage { marked: passage.marked || end.marked, ..end };
            trimmed = end.trimmed.then_some(TrimmedAt::LastHop);
        }
        (!passage.lost).then_some((passage, back, trimmed))
    }
}
