//! Processing of packets and side messages, and the scan for missing packets.

use pathweave_policy::{Delivery, Feedback, NotificationScope, Policy, PolicyCx, Repair, RttSource};
use pathweave_units::{HostId, PathId, Time};
use pathweave_wire::{Body, Control, PsnRun, RdData, RdFlow, Segment};

use super::config::PeerId;
use super::pace::notification;
use super::receive::{Arrival, Ended, Extent, Fresh, Refused, Start, Terms};
use super::scan_rule::ScanRule;
use super::send::Flow;
use super::{RdEvent, RdPlacement, RdQp, SideMessage};
use crate::events::Status;

/// A packet that can be accepted.
#[derive(Clone, Copy, Debug)]
pub struct RdOffer {
    pub(super) from: PeerId,
    pub(super) flow: u32,
    path: PathId,
    data: RdData,
    pub(super) fresh: Fresh,
}

impl RdOffer {
    /// Number of its message among those of the peer, from 0.
    pub fn msg(&self) -> u64 {
        self.fresh.msg
    }

    /// Offset of the end of the packet in its message, in bytes.
    pub fn end(&self) -> u64 {
        u64::from(self.data.offset) + u64::from(self.data.len)
    }

    /// Bytes of its message, or `None` while unknown.
    pub fn total(&self) -> Option<u64> {
        self.fresh.extent.map(|extent| extent.bytes)
    }
}

impl<P: Policy> RdQp<P> {
    /// Like [`on_packet`](crate::Transport::on_packet), for a driver that may have no buffer space. A valid new
    /// packet with payload is returned as an offer. Unless the driver [takes](RdQp::take) it, it counts as not
    /// arrived.
    pub fn judge(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<RdOffer> {
        self.advance(now);
        let peer = PeerId { host: from, qp: segment.src_qp };
        let data = match &segment.body {
            Body::Rd(data) => data,
            control => {
                self.on_control(now, peer, segment.path, control);
                return None;
            }
        };
        let Some(&flow) = self.index.get(&peer) else {
            self.counters.foreign += 1;
            return None;
        };
        self.counters.data_received += 1;
        if ce {
            self.on_mark(now, flow, segment.path);
        }
        let (terms, repair) = (self.terms(), self.config.behaviour.repair);
        let rx = &mut self.flows[flow as usize].rx;
        if repair == Repair::Overtaken {
            rx.heard(now, data.retransmit);
        }
        match rx.judge(data, terms) {
            Ok(fresh) => {
                return Some(RdOffer { from: peer, flow, path: segment.path, data: *data, fresh });
            }
            Err(Refused::Duplicate) => self.counters.duplicates += 1,
            Err(Refused::BeyondWindow) => self.counters.beyond_window_drops += 1,
            Err(Refused::MustWait) => self.counters.waiting_drops += 1,
            Err(Refused::Malformed) => self.counters.malformed += 1,
        }
        None
    }

    /// Accepts a packet that [`judge`](RdQp::judge) has just offered; no other call may come between. Returns the
    /// position for its payload.
    pub fn take(&mut self, now: Time, offer: RdOffer) -> RdPlacement {
        let RdOffer { from, flow, path, data, fresh } = offer;
        let terms = self.terms();
        let rx = &mut self.flows[flow as usize].rx;
        let msg = fresh.msg;
        let Arrival { in_order, asked } = rx.take(now, (&data, path), &fresh, terms);
        self.counters.payload_bytes_received += u64::from(data.len);
        self.counters.out_of_order += u64::from(!in_order);
        if !data.multi {
            self.whole(flow, msg, data.psn, u64::from(data.len));
        } else if let Some((first_psn, bytes)) = rx.take_whole(msg) {
            self.whole(flow, msg, first_psn, bytes);
        }
        self.watch(now, flow);
        if let Some(asked) = asked
            && self.config.behaviour.rtt == RttSource::Measured
        {
            self.rtt.note(now, now - asked);
        }
        RdPlacement { from, msg, offset: data.offset, len: data.len, in_order }
    }

    pub(super) fn terms(&self) -> Terms {
        Terms {
            window: u64::from(self.config.behaviour.window_packets),
            paths: self.config.paths,
            capacity: self.config.capacity(),
        }
    }

    /// Processes a packet without data.
    fn on_control(&mut self, now: Time, peer: PeerId, path: PathId, body: &Body) {
        let Some(&flow) = self.index.get(&peer) else {
            self.counters.foreign += 1;
            return;
        };
        match *body {
            // Packets to this destination were marked.
            Body::Cnp => {
                self.counters.cnps_received += 1;
                self.on_notified(now, flow, &notification(path));
            }
            Body::Control(probe @ Control::Probe { .. }) => {
                if let Some(answer) = probe.answer(now, false) {
                    self.queue_control(peer, path, Body::Control(answer));
                }
            }
            // Its arrival is the only information, and the driver has seen it.
            Body::Control(Control::ProbeReply { .. }) => {}
            _ => self.counters.malformed += 1,
        }
    }

    /// Slows the rate control of a destination down, if there is one, because packets to it were marked.
    fn on_notified(&mut self, now: Time, flow: u32, notification: &Feedback) {
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        match &self.config.control {
            Some(control) if control.slows == NotificationScope::QueuePair => {
                self.config.policy.on_feedback(now, notification, &mut cx);
            }
            _ => {
                if let Some(pace) = &mut self.flows[flow as usize].pace {
                    pace.on_cnp(now, notification, &mut cx);
                }
            }
        }
    }

    /// Notifies the sender of a marked packet, on the path of that packet.
    fn on_mark(&mut self, now: Time, flow: u32, path: PathId) {
        self.counters.marked_received += 1;
        let Flow { peer, pace, .. } = &mut self.flows[flow as usize];
        if let (Some(pace), Some(control)) = (pace, &self.config.control)
            && pace.notifies(now, control.cnp)
        {
            self.counters.cnps_sent += 1;
            let peer = *peer;
            self.queue_control(peer, path, Body::Cnp);
        }
    }

    /// Returns true if a data packet is the next expected one of its flow. True for other packets; false for unknown
    /// peers.
    pub fn is_next(&self, from: HostId, segment: &Segment) -> bool {
        let flow = self.index.get(&PeerId { host: from, qp: segment.src_qp });
        match (&segment.body, flow) {
            (Body::Rd(data), Some(&flow)) => self.flows[flow as usize].rx.base == data.psn,
            (Body::Rd(_), None) => false,
            _ => true,
        }
    }

    /// Processes a message of the side channel from a host.
    pub(super) fn hear(&mut self, now: Time, from: HostId, message: &SideMessage) {
        self.advance(now);
        let RdFlow { src_qp, dst_qp } = message.flow();
        // For flows towards this end the sender reports; for flows from here the receiver does.
        let (own, other) = if message.is_from_source() { (dst_qp, src_qp) } else { (src_qp, dst_qp) };
        let known = self.index.get(&PeerId { host: from, qp: other }).copied();
        let Some(flow) = known.filter(|_| own == self.config.num) else {
            self.counters.foreign += 1;
            return;
        };
        let terms = self.terms();
        let rx = &mut self.flows[flow as usize].rx;
        match *message {
            SideMessage::Start { msg_id, first_psn, packets, total, again, .. } => {
                let has_left = self.config.behaviour.announcement_implies_sent(packets);
                let start = Start { msg_id, first_psn, extent: Extent { packets, bytes: total }, has_left };
                match rx.on_start(&start, terms) {
                    Ok(true) if again => self.say_done(flow, msg_id, first_psn),
                    Ok(true) => {}
                    Ok(false) => {
                        let msg = rx.extend_msg(msg_id);
                        if let Some((first_psn, bytes)) = rx.take_whole(msg) {
                            self.whole(flow, msg, first_psn, bytes);
                        } else if again {
                            self.say_whether_ready(flow, msg, first_psn);
                        }
                    }
                    Err(_) => self.counters.malformed += 1,
                }
                self.watch(now, flow);
            }
            SideMessage::Sent { end_psn, .. } => {
                if rx.on_sent(now, end_psn).is_err() {
                    self.counters.malformed += 1;
                }
                self.watch(now, flow);
            }
            SideMessage::Abort { msg_id, first_psn, packets, .. } => {
                match rx.on_abort(msg_id, first_psn, packets, terms) {
                    Ok(Some(msg)) => {
                        if rx.waiting().is_some_and(|waiting| waiting.msg == msg) {
                            self.release_flow(now, flow);
                        }
                        self.tell(flow, Ended { msg, bytes: None });
                    }
                    Ok(None) => {}
                    Err(_) => self.counters.malformed += 1,
                }
            }
            SideMessage::Wait { first_psn, .. } => {
                self.counters.waits_received += u64::from(self.flows[flow as usize].tx.wait(first_psn));
            }
            SideMessage::Ready { msg_id, from_psn, .. } => self.on_ready(flow, msg_id, from_psn),
            // For the driver, which knows the peers that are not needed.
            SideMessage::Close { .. } | SideMessage::Closed { .. } => {}
            SideMessage::Done { first_psn, .. } => {
                if self.finish(flow, first_psn, Status::Success) {
                    self.counters.messages_done += 1;
                }
            }
            SideMessage::Nack { ref runs, .. } => self.on_nack(flow, runs),
        }
    }

    /// Queues missing packets of the peer for retransmission, each once, unless they are done, have not left yet, or
    /// wait. At most `window_packets` PSNs are processed, whatever the NACK contains.
    fn on_nack(&mut self, flow: u32, runs: &[PsnRun]) {
        self.counters.nacks_received += 1;
        let limit = self.config.behaviour.retry_limit;
        let mut left = u64::from(self.config.behaviour.window_packets);
        let mut given_up = None;
        for run in runs {
            let tx = &mut self.flows[flow as usize].tx;
            let (oldest, end) = tx.psns();
            let first = run.first.max(oldest);
            let last =
                run.first.saturating_add(u64::from(run.count)).min(end).min(first.saturating_add(left));
            self.counters.asked_in_vain += u64::from(run.count) - last.saturating_sub(first);
            left -= last.saturating_sub(first);
            for psn in first..last {
                let tx = &mut self.flows[flow as usize].tx;
                let may_send = tx.of_psn(psn).map(|(msg, _)| msg).is_some_and(|msg| tx.may_send(msg));
                match tx.of_psn(psn) {
                    Some((_, message)) if may_send && psn - message.first_psn < u64::from(message.sent) => {
                        if !self.queues.retry(flow, psn) {
                            self.counters.asked_in_vain += 1;
                            continue;
                        }
                        let first_psn = message.first_psn;
                        if !tx.request(psn, limit) {
                            given_up = Some(first_psn);
                        }
                    }
                    _ => self.counters.asked_in_vain += 1,
                }
            }
        }
        if let Some(first_psn) = given_up {
            self.give_up(flow, first_psn);
        }
    }

    fn give_up(&mut self, flow: u32, first_psn: u64) {
        let Flow { peer, tx, .. } = &mut self.flows[flow as usize];
        let Some((msg, message)) = tx.of_psn(first_psn) else { return };
        let about = RdFlow { src_qp: self.config.num, dst_qp: peer.qp };
        let abort =
            SideMessage::Abort { flow: about, msg_id: msg as u16, first_psn, packets: message.packets };
        self.side.push_back((peer.host, abort));
        self.counters.messages_aborted += 1;
        self.finish(flow, first_psn, Status::RetryExceeded);
    }

    /// Handles a message that has arrived completely.
    fn whole(&mut self, flow: u32, msg: u64, first_psn: u64, bytes: u64) {
        if self.repairs() {
            self.say_done(flow, msg as u16, first_psn);
        }
        self.tell(flow, Ended { msg, bytes: Some(bytes) });
    }

    fn say_done(&mut self, flow: u32, msg_id: u16, first_psn: u64) {
        let peer = self.flows[flow as usize].peer;
        let about = RdFlow { src_qp: peer.qp, dst_qp: self.config.num };
        self.side.push_back((peer.host, SideMessage::Done { flow: about, msg_id, first_psn }));
    }

    fn tell(&mut self, flow: u32, ended: Ended) {
        let ordered = self.config.behaviour.delivery == Delivery::Ordered;
        let terms = self.terms();
        let (Flow { peer: from, rx, .. }, events) = (&mut self.flows[flow as usize], &mut self.events);
        let from = *from;
        rx.ended(ended, ordered, terms, |Ended { msg, bytes }| {
            events.push_back(match bytes {
                Some(bytes) => RdEvent::Delivered { from, msg, bytes },
                None => RdEvent::Abandoned { from, msg },
            });
        });
    }

    /// Makes the scan check a flow with missing packets.
    pub(super) fn watch(&mut self, now: Time, flow: u32) {
        let repairs = self.repairs();
        let rx = &mut self.flows[flow as usize].rx;
        if !repairs || rx.watched || !rx.is_waiting() {
            return;
        }
        rx.watched = true;
        self.watched.push(flow);
        if self.next_scan == Time::MAX {
            self.next_scan = self.scan_after(now);
        }
    }

    /// Time of the next scan, at a multiple of the period.
    fn scan_after(&self, now: Time) -> Time {
        let period = self.scan_period().as_ps().max(1);
        Time::from_ps((now.as_ps() / period + 1).saturating_mul(period))
    }

    /// Checks every flow with missing packets, and requests them.
    pub(super) fn scan(&mut self, now: Time) {
        let behaviour = &self.config.behaviour;
        let period = self.scan_period();
        let rule = ScanRule {
            now,
            period,
            hold: period.max(self.rtt.at(now) + self.config.nack_delay * 2),
            repair: behaviour.repair,
            terms: self.terms(),
        };
        let mut watched = core::mem::take(&mut self.watched);
        self.counters.flows_scanned += watched.len() as u64;
        watched.retain(|&flow| {
            let Flow { peer, rx, .. } = &mut self.flows[flow as usize];
            rx.watched = rx.is_waiting();
            if !rx.watched {
                return false;
            }
            let runs = rx.scan(&rule).runs;
            if !runs.is_empty() {
                self.counters.nacks_sent += 1;
                self.counters.packets_asked_for += runs.iter().map(|run| u64::from(run.count)).sum::<u64>();
                let about = RdFlow { src_qp: peer.qp, dst_qp: self.config.num };
                self.side.push_back((peer.host, SideMessage::Nack { flow: about, runs }));
            }
            true
        });
        self.next_scan = if watched.is_empty() { Time::MAX } else { self.scan_after(now) };
        self.watched = watched;
    }
}
