//! Assignment of packets to messages. A packet carries its offset in its message, its PSN gives the position in the
//! stream, and the last packet of a message determines the length. All of that comes from the peer alone. A message
//! therefore counts as complete only if every packet between its first PSN and its last belonged to it and had the
//! right offset:
//!
//! - The offset of a packet equals the bytes of the packets before it in its message, all of them full. So each
//!   packet implies the PSN of its message's first packet.
//! - All packets of a message imply the same first PSN, and have the same purpose and target.
//! - The first packet of a message directly follows the last one of the previous message.
//!
//! For the message in progress this costs a packet in order one multiplication and two comparisons. Messages with
//! packets ahead of a gap have one entry each, so there are no more entries than such packets.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use pathweave_wire::{Data, Operation};

use super::ReceiveStream;
use crate::config::ReceiveMode;

/// Purpose of the packets of a message, without regard to an immediate, which only the last packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
}

impl Purpose {
    #[inline]
    fn of(data: &Data) -> Self {
        match data.op {
            Operation::Send | Operation::SendImm => Purpose::Send,
            Operation::Write | Operation::WriteImm => Purpose::Write,
            Operation::ReadRequest => Purpose::ReadRequest,
            Operation::ReadResponse => Purpose::ReadResponse,
        }
    }
}

/// Destination of a message: a receive, by its index; memory, by key and address; or a READ, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    address: u64,
    key: u64,
}

impl Target {
    #[inline]
    fn of(data: &Data) -> Self {
        match data.op {
            Operation::Send | Operation::SendImm => Target { address: 0, key: data.receive_index.into() },
            Operation::Write | Operation::WriteImm => Target { address: data.remote_addr, key: data.rkey },
            Operation::ReadResponse => Target { address: data.remote_addr, key: 0 },
            Operation::ReadRequest => Target::default(),
        }
    }
}

/// A message with packets that have arrived ahead of a gap.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    msn: u32,
    /// PSN of its first packet, as implied by all packets that have arrived.
    first: u64,
    /// Highest PSN that arrived ahead of a gap.
    highest: u64,
    purpose: Purpose,
    target: Target,
    /// Last packet of the message, if it has arrived ahead of a gap.
    end: Option<Data>,
}

/// Messages ahead, by number.
pub(crate) type AheadMessages = VecDeque<Ahead>;

/// Index of a packet in its message, or `None` if its offset is not that of any packet.
#[inline]
fn packets_before(data: &Data, mtu_payload: u16) -> Option<u64> {
    if data.op == Operation::ReadRequest {
        // A READ request is a single packet, whose offset has another meaning.
        return Some(0);
    }
    let mtu_payload = u32::from(mtu_payload);
    data.offset.is_multiple_of(mtu_payload).then(|| u64::from(data.offset / mtu_payload))
}

impl ReceiveStream {
    /// Returns true if a packet that loss recovery would accept is consistent with the known messages.
    #[inline]
    pub(crate) fn fits(&self, data: &Data, mtu_payload: u16) -> bool {
        if data.msn != self.next_msn {
            // The next expected packet belongs to the message in progress, or that would have a hole.
            return data.psn != self.recovery.expected() && self.fits_ahead(data, mtu_payload);
        }
        // A message has at most 2^24 packets, so 32 bits are enough.
        let before = (data.psn as u32).wrapping_sub(self.first_psn);
        let offset = u64::from(before) * u64::from(mtu_payload);
        let in_place = offset == u64::from(data.offset) || (data.op == Operation::ReadRequest && before == 0);
        in_place
            && self.is_for_the_same(data)
            && self.ahead.as_ref().is_none_or(|ahead| goes_between(data, ahead))
    }

    /// Returns true if a packet of the message in progress has the purpose and target of the others.
    #[inline]
    fn is_for_the_same(&self, data: &Data) -> bool {
        let purpose = Purpose::of(data);
        // Receives are consumed in order, so the receive is known before any packet arrives.
        let target = match purpose {
            Purpose::Send => self.mode == ReceiveMode::Discard || data.receive_index == self.receives_done,
            Purpose::Write | Purpose::ReadResponse => {
                self.purpose.is_none() || self.target == Target::of(data)
            }
            Purpose::ReadRequest => true,
        };
        target && self.purpose.is_none_or(|known| known == purpose)
    }

    /// Equals [`fits`](Self::fits) for a packet of a later message than the one in progress.
    #[cold]
    fn fits_ahead(&self, data: &Data, mtu_payload: u16) -> bool {
        let later = data.msn.wrapping_sub(self.next_msn);
        let Some(before) = packets_before(data, mtu_payload) else { return false };
        let Some(first) = data.psn.checked_sub(before) else { return false };
        // At least one packet is missing of the message in progress and of each later one before this.
        if later >= 1 << 31 || first < self.recovery.expected() + u64::from(later) {
            return false;
        }
        let Some(ahead) = &self.ahead else { return true };
        let known = ahead.iter().find(|message| message.msn == data.msn);
        let same = known.is_none_or(|message| {
            message.first == first
                && message.purpose == Purpose::of(data)
                && message.target == Target::of(data)
        });
        same && follows(data.msn.wrapping_sub(self.next_msn), first, self.next_msn, ahead)
            && goes_between(data, ahead)
    }

    /// Records a packet of the message in progress that was accepted in order.
    #[inline]
    pub(crate) fn took_in_order(&mut self, data: &Data) {
        if self.purpose.is_none() {
            self.begin(Purpose::of(data), Target::of(data));
        }
    }

    #[inline]
    fn begin(&mut self, purpose: Purpose, target: Target) {
        self.purpose = Some(purpose);
        if matches!(purpose, Purpose::Write | Purpose::ReadResponse) {
            self.target = target;
        }
    }

    /// Records a packet that was accepted ahead of a gap. Where paths differ in delay, most packets are, and of the
    /// message in progress.
    #[inline]
    pub(crate) fn took_ahead(&mut self, data: &Data, mtu_payload: u16) {
        if data.msn == self.next_msn {
            self.took_in_order(data);
        }
        if let Some(first) = self.ahead.as_mut().and_then(|ahead| ahead.front_mut())
            && first.msn == data.msn
            && !data.last
        {
            first.highest = first.highest.max(data.psn);
            return;
        }
        self.took_of_another(data, mtu_payload);
    }

    /// Records a packet ahead of a gap that is the last of its message, or not of the first message ahead.
    #[cold]
    fn took_of_another(&mut self, data: &Data, mtu_payload: u16) {
        let Some(before) = packets_before(data, mtu_payload) else { return };
        let base = self.next_msn;
        let later = |msn: u32| msn.wrapping_sub(base);
        let ahead = self.ahead.get_or_insert_default();
        let at = ahead.partition_point(|message| later(message.msn) < later(data.msn));
        if ahead.get(at).is_none_or(|message| message.msn != data.msn) {
            let message = Ahead {
                msn: data.msn,
                first: data.psn - before,
                highest: data.psn,
                purpose: Purpose::of(data),
                target: Target::of(data),
                end: None,
            };
            ahead.insert(at, message);
        }
        let message = &mut ahead[at];
        message.highest = message.highest.max(data.psn);
        if data.last {
            message.end = Some(*data);
        }
    }

    /// Moves on after the message in progress was delivered; `end` was its last packet. Returns false if packets of
    /// the next message have arrived, and it does not begin directly behind `end` or does not use the next receive.
    /// These packets should not have been accepted.
    #[inline]
    pub(crate) fn next_message(&mut self, end: &Data) -> bool {
        self.next_msn = self.next_msn.wrapping_add(1);
        self.first_psn = (end.psn as u32).wrapping_add(1);
        self.purpose = None;
        self.ahead.is_none() || self.next_of_ahead(end)
    }

    #[cold]
    fn next_of_ahead(&mut self, end: &Data) -> bool {
        let Some(ahead) = &mut self.ahead else { return true };
        if ahead.front().is_some_and(|message| message.msn == end.msn) {
            ahead.pop_front();
        }
        let Some(next) = ahead.front() else {
            self.ahead = None;
            return true;
        };
        if next.msn != self.next_msn {
            return true;
        }
        let (first, purpose, target) = (next.first, next.purpose, next.target);
        self.begin(purpose, target);
        let next_receive = self.mode == ReceiveMode::Discard || target.key == u64::from(self.receives_done);
        first == end.psn + 1 && (purpose != Purpose::Send || next_receive)
    }

    /// End of the message in progress, if the packets in order have passed it.
    pub(crate) fn passed_end(&self) -> Option<Data> {
        let message = self.ahead.as_ref()?.front().filter(|message| message.msn == self.next_msn)?;
        message.end.filter(|end| end.psn < self.recovery.expected())
    }
}

/// Returns true if a message is consistent with all known ones before it. It is the `later`-th one after the message
/// in progress, and begins at `first`.
fn follows(later: u32, first: u64, next_msn: u32, ahead: &AheadMessages) -> bool {
    let before = ahead.iter().rev().find(|message| message.msn.wrapping_sub(next_msn) < later);
    before.is_none_or(|message| match &message.end {
        Some(end) if message.msn.wrapping_sub(next_msn) + 1 == later => first == end.psn + 1,
        _ => first > message.highest,
    })
}

/// Returns true if a packet lies before those of later messages, and before the end of its own. If it is an end, no
/// packet of its message may lie behind it, and no other end may be known.
#[inline]
fn goes_between(data: &Data, ahead: &AheadMessages) -> bool {
    match ahead.front() {
        Some(only) if ahead.len() == 1 && only.msn == data.msn && !data.last => {
            only.end.as_ref().is_none_or(|end| data.psn < end.psn)
        }
        _ => goes_between_several(data, ahead),
    }
}

/// Equals [`goes_between`], for any packet and messages.
#[cold]
fn goes_between_several(data: &Data, ahead: &AheadMessages) -> bool {
    let mut own = true;
    let mut next = None;
    for message in ahead {
        if message.msn == data.msn {
            own = match &message.end {
                Some(end) => !data.last && data.psn < end.psn,
                None => !data.last || data.psn > message.highest,
            };
        } else if message.msn.wrapping_sub(data.msn) < 1 << 31 {
            next = Some(message);
            break;
        }
    }
    own && next.is_none_or(|next| {
        let adjacent = next.msn == data.msn.wrapping_add(1);
        if data.last && adjacent { data.psn + 1 == next.first } else { data.psn < next.first }
    })
}

/// Messages ahead; allocated while there are any.
pub(crate) type Kept = Option<Box<AheadMessages>>;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(msn: u32, psn: u64, last: bool) -> Data {
        Data { msn, psn, last, ..Data::EMPTY }
    }

    /// Up to three messages, of 8 PSNs each. The low bits of `ends` choose those whose end has arrived.
    fn messages(count: u32, highest: u64, ends: u32) -> AheadMessages {
        let message = |msn| Ahead {
            msn,
            first: 8 * u64::from(msn),
            highest: 8 * u64::from(msn) + highest,
            purpose: Purpose::Write,
            target: Target::default(),
            end: (ends >> msn & 1 == 1).then(|| data(msn, 8 * u64::from(msn) + highest, true)),
        };
        (0..count).map(message).collect()
    }

    proptest! {
        #[test]
        fn the_short_way_for_one_message_gives_the_same_answer(
            count in 0u32..4, highest in 0u64..8, ends: u32, msn in 0u32..4, psn in 0u64..32, last: bool,
        ) {
            let (ahead, data) = (messages(count, highest, ends), data(msn, psn, last));
            prop_assert_eq!(goes_between(&data, &ahead), goes_between_several(&data, &ahead));
        }
    }

    /// The end of message 0, packet 5, has arrived ahead of a gap.
    #[test]
    fn packets_of_a_message_are_before_its_end() {
        let ahead = messages(1, 5, 1);
        let fits = |psn, last| goes_between(&data(0, psn, last), &ahead);
        assert!(fits(1, false) && fits(4, false));
        assert!(!fits(5, false) && !fits(6, false) && !fits(4, true));
    }
}
