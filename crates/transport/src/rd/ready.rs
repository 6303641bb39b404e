//! Messages a receiver has neither a receive nor room for: it says so, and they wait at their sender.

use pathweave_policy::Policy;
use pathweave_units::Time;
use pathweave_wire::RdFlow;

use super::config::PeerId;
use super::input::RdOffer;
use super::receive::Waiting;
use super::send::Flow;
use super::{RdQp, SideMessage};

impl<P: Policy> RdQp<P> {
    /// There is neither a receive nor room for a packet that [`judge`](RdQp::judge) has just offered. It is as if it had not
    /// come; and once it is known how long its message is, the message is to [wait](RdQp::defer), with all after it. True if
    /// one waits.
    pub fn refuse(&mut self, now: Time, offer: RdOffer) -> bool {
        self.advance(now);
        let waiting =
            offer.total().map(|bytes| Waiting { msg: offer.msg(), first_psn: offer.fresh.first_psn, bytes });
        waiting.is_some_and(|waiting| {
            self.wait(offer.flow, waiting);
            true
        })
    }

    /// There is neither a receive nor room for a message of several packets that has been announced. It and those after it
    /// are to wait: nothing of them is taken or asked for until it is [released](RdQp::release). False if there is no such
    /// message on its way.
    pub fn defer(&mut self, now: Time, from: PeerId, msg: u64) -> bool {
        self.advance(now);
        let Some(&flow) = self.index.get(&from) else { return false };
        let waiting = self.flows[flow as usize].rx.as_waiting(msg);
        waiting.is_some_and(|waiting| {
            self.wait(flow, waiting);
            true
        })
    }

    fn wait(&mut self, flow: u32, waiting: Waiting) {
        let terms = self.terms();
        if self.flows[flow as usize].rx.wait(waiting, terms) {
            self.counters.waits_sent += 1;
            self.say_wait(flow, waiting);
        }
    }

    /// The first message of a peer that is to wait, and its bytes.
    pub fn waiting(&self, from: PeerId) -> Option<(u64, u64)> {
        let &flow = self.index.get(&from)?;
        self.flows[flow as usize].rx.waiting().map(|waiting| (waiting.msg, waiting.bytes))
    }

    /// A message that has just been announced by this peer, with these 16 bits of its number, and its bytes; `None` if it
    /// has one packet, or is whole.
    pub fn announced(&self, from: PeerId, msg_id: u16) -> Option<(u64, u64)> {
        let rx = &self.flows[*self.index.get(&from)? as usize].rx;
        let msg = rx.extend_msg(msg_id);
        rx.announced_len(msg).map(|bytes| (msg, bytes))
    }

    /// There is room for the message of a peer that waits first: it and those after it may come.
    pub fn release(&mut self, now: Time, from: PeerId) {
        self.advance(now);
        if let Some(&flow) = self.index.get(&from) {
            self.release_flow(now, flow);
        }
    }

    pub(super) fn release_flow(&mut self, now: Time, flow: u32) {
        if let Some((msg, from_psn)) = self.flows[flow as usize].rx.release() {
            self.say_ready(flow, msg as u16, from_psn);
            self.watch(now, flow);
        }
    }

    /// A message was announced again, which is not whole: its sender may not have heard that it must wait, or need not.
    pub(super) fn say_whether_ready(&mut self, flow: u32, msg: u64, first_psn: u64) {
        let rx = &self.flows[flow as usize].rx;
        match rx.waiting() {
            Some(waiting) if msg >= waiting.msg => self.say_wait(flow, waiting),
            _ => {
                let from_psn = rx.resumes_at(first_psn);
                self.say_ready(flow, msg as u16, from_psn);
            }
        }
    }

    fn say_wait(&mut self, flow: u32, waiting: Waiting) {
        let Waiting { msg, first_psn, .. } = waiting;
        let peer = self.flows[flow as usize].peer;
        let about = RdFlow { src_qp: peer.qp, dst_qp: self.config.num };
        self.side.push_back((peer.host, SideMessage::Wait { flow: about, msg_id: msg as u16, first_psn }));
    }

    fn say_ready(&mut self, flow: u32, msg_id: u16, from_psn: u64) {
        let peer = self.flows[flow as usize].peer;
        let about = RdFlow { src_qp: peer.qp, dst_qp: self.config.num };
        self.side.push_back((peer.host, SideMessage::Ready { flow: about, msg_id, from_psn }));
    }

    /// The peer has room for what waits.
    pub(super) fn on_ready(&mut self, flow: u32, msg_id: u16, from_psn: u64) {
        let (tx, queues) = (&mut self.flows[flow as usize].tx, &mut self.queues);
        tx.go_on(msg_id, from_psn, |msg| queues.post(flow, msg));
    }

    /// Says again how long messages to a peer are that have left whole, or have to wait, and are not done: that they are
    /// whole, or are to wait, or may come, may have been said on a side channel that broke. Looks at `most` messages from
    /// number `from` on, and returns where to go on. The answer to what is not needed does no harm.
    pub fn remind(&mut self, now: Time, to: PeerId, from: u64, most: usize) -> u64 {
        self.advance(now);
        let Some(&flow) = self.index.get(&to) else { return from };
        let Flow { tx, .. } = &self.flows[flow as usize];
        let (unanswered, next) = tx.unanswered(from, most);
        let unanswered: alloc::vec::Vec<u64> = unanswered.collect();
        self.announce_again(flow, unanswered);
        next
    }
}
