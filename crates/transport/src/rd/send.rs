//! Sending half of a flow: messages that were posted to one peer and are not done.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use pathweave_policy::DestinationControl;
use pathweave_units::Time;

use super::config::PeerId;
use super::pace::Pace;
use super::receive::RxFlow;

/// Largest number of outstanding messages of a flow: half of the range of 16-bit message numbers.
pub const MAX_RD_OUTSTANDING: u64 = 1 << 15;
/// Largest number of outstanding packets of a flow: half of the range of 24-bit PSNs.
pub(super) const MAX_PACKETS: u64 = 1 << 23;
/// Value of `waits_from` while no message has to wait.
const NONE_WAITS: u64 = u64::MAX;

/// Packets of a message that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdOutstanding {
    /// Identifier given when the message was posted.
    pub wr_id: u64,
    /// Number of its packets that were sent, retransmissions included.
    pub sent_packets: u32,
    /// Number of retransmissions among them.
    pub retransmitted: u32,
}

/// A message that is not done. Packet i has PSN `first_psn + i`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutMessage {
    pub(super) first_psn: u64,
    pub(super) packets: u32,
    /// Index of the next new packet: all packets before it have left.
    pub(super) sent: u32,
    /// Number of packets that have left at least once. Above `sent` if the peer was not ready for them.
    pub(super) reached: u32,
    pub(super) len: u64,
    pub(super) wr_id: u64,
    pub(super) retransmitted: u32,
    pub(super) announced: bool,
    /// True if the message is in the queue of messages with packets to send.
    pub(super) queued: bool,
    pub(super) done: bool,
}

/// A packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) len: u16,
    pub(super) multi: bool,
}

impl OutMessage {
    /// Packet `index` of the message.
    pub(super) fn part(&self, index: u32, capacity: u16) -> Part {
        let offset = u64::from(index) * u64::from(capacity);
        let len = (self.len - offset).min(u64::from(capacity)) as u16;
        Part { offset, len, multi: self.packets > 1 }
    }

    /// Number of packets that have left so far, retransmissions included.
    pub(super) fn sent_packets(&self) -> u32 {
        self.reached + self.retransmitted
    }
}

/// Sending half of a flow.
#[derive(Clone, Debug)]
pub(super) struct TxFlow {
    next_psn: u64,
    next_msg: u64,
    /// First message for which the peer has no room. It waits with all later ones.
    waits_from: u64,
    /// Messages that are not done, and later ones that are.
    outstanding: VecDeque<OutMessage>,
    /// Number of requests for each packet of them that was requested, by PSN.
    requests: BTreeMap<u64, u16>,
}

/// Reason why a flow accepts no further message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    Messages,
    Packets,
}

impl TxFlow {
    pub(super) const fn new() -> Self {
        TxFlow {
            next_psn: 0,
            next_msg: 0,
            waits_from: NONE_WAITS,
            outstanding: VecDeque::new(),
            requests: BTreeMap::new(),
        }
    }

    /// Appends a message and returns its number.
    pub(super) fn post(&mut self, wr_id: u64, len: u64, capacity: u16) -> Result<u64, Full> {
        if self.outstanding.len() as u64 >= MAX_RD_OUTSTANDING {
            return Err(Full::Messages);
        }
        // At most 2^23.
        let packets = len.div_ceil(u64::from(capacity)) as u32;
        let oldest = self.outstanding.front().map_or(self.next_psn, |message| message.first_psn);
        if self.next_psn + u64::from(packets) - oldest > MAX_PACKETS {
            return Err(Full::Packets);
        }
        if self.outstanding.capacity() == 0 {
            // Most flows of an all-to-all have a single message.
            self.outstanding = VecDeque::with_capacity(1);
        }
        self.outstanding.push_back(OutMessage {
            first_psn: self.next_psn,
            packets,
            sent: 0,
            reached: 0,
            len,
            wr_id,
            retransmitted: 0,
            announced: false,
            queued: false,
            done: false,
        });
        self.next_psn += u64::from(packets);
        self.next_msg += 1;
        Ok(self.next_msg - 1)
    }

    /// Messages that are not done.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = RdOutstanding> {
        self.outstanding.iter().filter(|message| !message.done).map(|message| RdOutstanding {
            wr_id: message.wr_id,
            sent_packets: message.sent_packets(),
            retransmitted: message.retransmitted,
        })
    }

    fn first_msg(&self) -> u64 {
        self.next_msg - self.outstanding.len() as u64
    }

    /// Message of this number, unless it is done.
    pub(super) fn message(&mut self, msg: u64) -> Option<&mut OutMessage> {
        let index = msg.checked_sub(self.first_msg())?;
        self.outstanding.get_mut(usize::try_from(index).ok()?).filter(|message| !message.done)
    }

    /// Message that contains a packet, with its number, unless it is done.
    pub(super) fn of_psn(&mut self, psn: u64) -> Option<(u64, &mut OutMessage)> {
        let index = self.outstanding.partition_point(|m| m.first_psn + u64::from(m.packets) <= psn);
        let msg = self.first_msg() + index as u64;
        let message = self.outstanding.get_mut(index)?;
        (!message.done && message.first_psn <= psn).then_some((msg, message))
    }

    /// Records a request for the packet `psn`. Returns false if it was requested more than `limit` times.
    pub(super) fn request(&mut self, psn: u64, limit: u16) -> bool {
        let times = self.requests.entry(psn).or_default();
        *times = times.saturating_add(1);
        *times <= limit
    }

    fn forget_requests(&mut self, from_psn: u64, to_psn: u64) {
        while let Some((&psn, _)) = self.requests.range(from_psn..to_psn).next() {
            self.requests.remove(&psn);
        }
    }

    /// Marks a message done and returns it, if it is outstanding.
    pub(super) fn finish(&mut self, first_psn: u64) -> Option<(u64, OutMessage)> {
        let (msg, message) = self.of_psn(first_psn)?;
        if message.first_psn != first_psn {
            return None;
        }
        message.done = true;
        let copy = *message;
        self.forget_requests(first_psn, first_psn + u64::from(copy.packets));
        while self.outstanding.front().is_some_and(|first| first.done) {
            self.outstanding.pop_front();
        }
        if self.outstanding.is_empty() {
            self.outstanding = VecDeque::new();
        }
        Some((msg, copy))
    }

    /// PSNs of the outstanding messages: the first, and one more than the last.
    pub(super) fn psns(&self) -> (u64, u64) {
        (self.outstanding.front().map_or(self.next_psn, |message| message.first_psn), self.next_psn)
    }

    /// Returns true if the peer has room for a message, as far as it has reported.
    #[inline]
    pub(super) fn may_send(&self, msg: u64) -> bool {
        msg < self.waits_from
    }

    /// Makes the message that begins at `first_psn` wait with all later ones, because the peer has no room. Returns
    /// false if that was known, or there is no such message.
    pub(super) fn wait(&mut self, first_psn: u64) -> bool {
        let found = self.of_psn(first_psn).filter(|(_, message)| message.first_psn == first_psn);
        let Some(msg) = found.map(|(msg, _)| msg).filter(|&msg| msg < self.waits_from) else { return false };
        self.waits_from = msg;
        true
    }

    /// Releases the first waiting message. Packets from `from_psn` on are sent again. `queue` is called for every
    /// message with packets to send that is not queued. Returns false if `msg_id` is not the first waiting message.
    pub(super) fn go_on(&mut self, msg_id: u16, from_psn: u64, mut queue: impl FnMut(u64)) -> bool {
        if self.waits_from == NONE_WAITS || self.waits_from as u16 != msg_id {
            return false;
        }
        let first = self.first_msg();
        let skipped = self.waits_from.saturating_sub(first) as usize;
        self.waits_from = NONE_WAITS;
        let begin = self.outstanding.get(skipped).map_or(self.next_psn, |message| message.first_psn);
        self.forget_requests(begin, self.next_psn);
        for (msg, message) in (first..).zip(&mut self.outstanding).skip(skipped) {
            let arrived = from_psn.saturating_sub(message.first_psn).min(u64::from(message.sent));
            message.sent = arrived as u32;
            let has_more = !message.done && message.sent < message.packets;
            if has_more && !core::mem::replace(&mut message.queued, true) {
                queue(msg);
            }
        }
        true
    }

    /// Messages from number `from` on that have left completely or wait, among the next `most` ones; and the number
    /// to continue with.
    pub(super) fn unanswered(&self, from: u64, most: usize) -> (impl Iterator<Item = u64>, u64) {
        let first = self.first_msg();
        let from = if (first..self.next_msg).contains(&from) { from } else { first };
        let looked_at = (from..).zip(self.outstanding.iter().skip((from - first) as usize)).take(most);
        let waits_from = self.waits_from;
        let unanswered = looked_at
            .filter(move |(msg, message)| {
                let left = message.sent == message.packets || *msg == waits_from;
                message.announced && !message.done && left
            })
            .map(|(msg, _)| msg);
        (unanswered, from.saturating_add(most as u64))
    }

    /// Messages that are not done.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = (u64, &OutMessage)> {
        (self.first_msg()..).zip(&self.outstanding).filter(|(_, message)| !message.done)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.outstanding.is_empty()
    }
}

/// A flow of one queue pair: the peer, and the sending and receiving halves.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) peer: PeerId,
    pub(super) tx: TxFlow,
    pub(super) rx: RxFlow,
    /// Rate control, if destinations have their own rates.
    pub(super) pace: Option<Box<Pace>>,
}

impl Flow {
    pub(super) fn new(now: Time, peer: PeerId, control: Option<&DestinationControl>) -> Self {
        Flow { peer, tx: TxFlow::new(), rx: RxFlow::new(now), pace: control.map(|c| Box::new(Pace::new(c))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn parts_by_hand() {
        let part = |capacity: u16, index| {
            let mut flow = TxFlow::new();
            flow.post(0, 10_000, capacity).expect("room");
            let message = flow.message(0).expect("posted");
            assert_eq!(message.packets, 3);
            let part = message.part(index, capacity);
            (part.offset, part.len)
        };
        assert_eq!([0, 1, 2].map(|i| part(4_087, i)), [(0, 4_087), (4_087, 4_087), (8_174, 1_826)]);
        assert_eq!([0, 1, 2].map(|i| part(4_096, i)), [(0, 4_096), (4_096, 4_096), (8_192, 1_808)]);
    }

    #[test]
    fn messages_are_found_by_number_and_by_packet() {
        let mut flow = TxFlow::new();
        for len in [1_000, 9_000, 1] {
            flow.post(len, len, 4_000).expect("room");
        }
        // PSNs 0; 1, 2, 3; 4.
        assert_eq!(flow.of_psn(3).map(|(msg, m)| (msg, m.wr_id)), Some((1, 9_000)));
        assert!(flow.of_psn(5).is_none() && flow.finish(2).is_none());
        assert_eq!(flow.finish(1).map(|(msg, m)| (msg, m.wr_id)), Some((1, 9_000)));
        assert!(flow.finish(1).is_none() && flow.message(1).is_none() && flow.of_psn(2).is_none());
        assert_eq!(flow.unfinished().map(|(msg, _)| msg).collect::<Vec<_>>(), [0, 2]);
        assert!(flow.finish(0).is_some());
        assert_eq!((flow.first_msg(), flow.outstanding.len()), (2, 1));
        assert!(flow.finish(4).is_some() && flow.is_idle());
    }

    #[test]
    fn numbers_are_never_ambiguous() {
        let mut flow = TxFlow::new();
        for _ in 0..MAX_RD_OUTSTANDING {
            flow.post(0, 1, 4_000).expect("room");
        }
        assert_eq!(flow.post(0, 1, 4_000), Err(Full::Messages));
        // A message done in the middle does not help: its number still lies between those of the others.
        assert!(flow.finish(7).is_some());
        assert_eq!(flow.post(0, 1, 4_000), Err(Full::Messages));
        assert!(flow.finish(0).is_some());
        assert_eq!(flow.post(0, 1, 4_000), Ok(MAX_RD_OUTSTANDING));
        let mut flow = TxFlow::new();
        // 2^32 bytes in packets of 1,024: 2^22 packets.
        assert_eq!((flow.post(0, 1 << 32, 1_024), flow.post(0, 1 << 32, 1_024)), (Ok(0), Ok(1)));
        assert_eq!(flow.post(0, 1, 1_024), Err(Full::Packets));
    }

    #[test]
    fn waiting_messages_are_resent_from_the_psn_of_ready() {
        let mut flow = TxFlow::new();
        for len in [1_000, 3_000, 2_000, 1_000] {
            flow.post(len, len, 1_000).expect("room");
        }
        // PSNs 0; 1, 2, 3; 4, 5; 6. All have left except the last.
        for msg in 0..3 {
            let message = flow.message(msg).expect("posted");
            message.sent = message.packets;
        }
        flow.message(3).expect("posted").queued = true;
        assert!(
            !flow.wait(2) && flow.wait(1) && !flow.wait(4),
            "from where a message begins, and the first counts"
        );
        assert!(flow.may_send(0) && !flow.may_send(1) && !flow.may_send(3));
        assert_eq!(flow.unanswered(0, 9).0.count(), 0, "none was announced");
        (0..4).for_each(|msg| flow.message(msg).expect("posted").announced = true);
        assert_eq!(flow.unanswered(0, 9).0.collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((flow.unanswered(2, 1).0.count(), flow.unanswered(2, 1).1), (1, 3));
        let mut queued = Vec::new();
        assert!(!flow.go_on(2, 2, |_| {}), "another one waits first");
        assert!(flow.go_on(1, 2, |msg| queued.push(msg)));
        assert_eq!((queued, flow.may_send(3)), (vec![1, 2], true));
        assert_eq!([0, 1, 2, 3].map(|msg| flow.message(msg).expect("posted").sent), [1, 1, 0, 0]);
        assert!(!flow.go_on(1, 2, |_| {}), "nothing waits");
    }

    #[test]
    fn every_packet_is_requested_up_to_the_limit() {
        let mut flow = TxFlow::new();
        flow.post(0, 9_000, 1_000).expect("room");
        // Packet 5 is missing besides packet 2 at first, and arrives after the first request.
        assert!(flow.request(2, 2) && flow.request(5, 2) && flow.request(2, 2));
        assert!(!flow.request(2, 2), "the lower one has a limit, too");
        assert!(flow.request(5, 2) && !flow.request(5, 2));
        assert!(flow.finish(0).is_some() && flow.requests.is_empty());
    }

    #[test]
    fn a_message_that_had_to_wait_begins_its_requests_anew() {
        let mut flow = TxFlow::new();
        (0..2).for_each(|_| _ = flow.post(0, 2_000, 1_000));
        assert!([0, 2, 3].into_iter().all(|psn| flow.request(psn, 1)));
        assert!(flow.wait(2) && flow.go_on(1, 2, |_| {}));
        assert_eq!(flow.requests.keys().copied().collect::<Vec<_>>(), [0]);
    }
}
