//! Messages for which a receiver has neither a receive nor buffer space: it reports that, and they wait at their
//! sender.

use pathweave_policy::Policy;
use pathweave_units::Time;
use pathweave_wire::RdFlow;

use super::config::PeerId;
use super::input::RdOffer;
use super::receive::Waiting;
use super::send::Flow;
use super::{RdQp, SideMessage};

impl<P: Policy> RdQp<P> {
    /// Refuses a packet that [`judge`](RdQp::judge) has just offered, because there is neither a receive nor buffer
    /// space. The packet counts as not arrived. Once the length of its message is known, the message must
    /// [wait](RdQp::defer), with all later ones. Returns true if one waits.
    pub fn refuse(&mut self, now: Time, offer: RdOffer) -> bool {
        self.advance(now);
        let waiting =
            offer.total().map(|bytes| Waiting { msg: offer.msg(), first_psn: offer.fresh.first_psn, bytes });
        waiting.is_some_and(|waiting| {
            self.wait(offer.flow, waiting);
            true
        })
    }

    /// Makes an announced message of several packets wait, because there is neither a receive nor buffer space for
    /// it. Nothing of it and of later ones is accepted or requested until it is [released](RdQp::release). Returns
    /// false if there is no such message in progress.
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

    /// First message of a peer that must wait, and its bytes.
    pub fn waiting(&self, from: PeerId) -> Option<(u64, u64)> {
        let &flow = self.index.get(&from)?;
        self.flows[flow as usize].rx.waiting().map(|waiting| (waiting.msg, waiting.bytes))
    }

    /// Message that this peer has just announced with these low 16 bits of its number, and its bytes. `None` if it
    /// has one packet, or is complete.
    pub fn announced(&self, from: PeerId, msg_id: u16) -> Option<(u64, u64)> {
        let rx = &self.flows[*self.index.get(&from)? as usize].rx;
        let msg = rx.extend_msg(msg_id);
        rx.announced_len(msg).map(|bytes| (msg, bytes))
    }

    /// Releases the first waiting message of a peer, because there is room for it: the peer may send it and later
    /// ones.
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

    /// Answers a repeated announcement of a message that is not complete. Its sender may have missed that the message
    /// must wait, or need not wait any more.
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

    /// Handles the peer's report that it has room for waiting messages.
    pub(super) fn on_ready(&mut self, flow: u32, msg_id: u16, from_psn: u64) {
        let (tx, queues) = (&mut self.flows[flow as usize].tx, &mut self.queues);
        tx.go_on(msg_id, from_psn, |msg| queues.post(flow, msg));
    }

    /// Repeats the announcements of messages to a peer that have left completely or must wait, and are not done.
    /// Their Done, Wait or Ready may have been lost with a broken side channel.
    ///
    /// Checks `most` messages from number `from` on, and returns the number to continue with. An unneeded answer does
    /// no harm.
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
