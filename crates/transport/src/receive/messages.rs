//! Which packets make which message. A packet says where in its message it is, and its PSN says where in the stream; the
//! last packet of a message says how long it is. Only the other end vouches for that, so a message counts as whole
//! only if every packet between its first PSN and its last was one of its own, in its place:
//!
//! - A packet's offset is what the packets before it in its message hold, all of them full. So each implies the PSN of its
//!   message's first packet.
//! - All packets of a message imply the same one, and want the same to be done with them.
//! - The first packet of a message comes right behind the last one of the message before.
//!
//! Of the message in progress that costs an in-order packet a multiplication and two comparisons. Of messages from which
//! packets have arrived ahead of a gap there is an entry each, no more than there are such packets.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use pathweave_wire::{Data, Operation};

use super::ReceiveStream;
use crate::config::ReceiveMode;

/// What the packets of a message are for. With or without an immediate value, which only the last one brings.
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

/// Where the bytes of a message go: a receive, by its index; memory, by key and address; a READ, by its number.
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

/// A message from which packets have arrived ahead of a gap.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    msn: u32,
    /// PSN of its first packet, as all that have arrived imply.
    first: u64,
    /// The highest PSN of those that arrived ahead of a gap.
    highest: u64,
    purpose: Purpose,
    target: Target,
    /// Its last packet, if that is among them.
    end: Option<Data>,
}

/// By number.
pub(crate) type AheadMessages = VecDeque<Ahead>;

/// How far into its message a packet is, in packets; `None` where its offset is not that of any.
#[inline]
fn packets_before(data: &Data, mtu_payload: u16) -> Option<u64> {
    if data.op == Operation::ReadRequest {
        // It is one packet, whose offset has another meaning.
        return Some(0);
    }
    let mtu_payload = u32::from(mtu_payload);
    data.offset.is_multiple_of(mtu_payload).then(|| u64::from(data.offset / mtu_payload))
}

impl ReceiveStream {
    /// Whether a packet that loss recovery would take goes together with what is known of the stream of messages.
    #[inline]
    pub(crate) fn fits(&self, data: &Data, mtu_payload: u16) -> bool {
        if data.msn != self.next_msn {
            // The next packet expected is of the message in progress, or that would have a hole.
            return data.psn != self.recovery.expected() && self.fits_ahead(data, mtu_payload);
        }
        // A message has at most 2^24 packets.
        let before = (data.psn as u32).wrapping_sub(self.first_psn);
        let offset = u64::from(before) * u64::from(mtu_payload);
        let in_place = offset == u64::from(data.offset) || (data.op == Operation::ReadRequest && before == 0);
        in_place
            && self.is_for_the_same(data)
            && self.ahead.as_ref().is_none_or(|ahead| goes_between(data, ahead))
    }

    /// Whether a packet of the message in progress is for what the others are for.
    #[inline]
    fn is_for_the_same(&self, data: &Data) -> bool {
        let purpose = Purpose::of(data);
        // Receives are consumed in their order, so it is known which one is filled before any packet comes.
        let target = match purpose {
            Purpose::Send => self.mode == ReceiveMode::Discard || data.receive_index == self.receives_done,
            Purpose::Write | Purpose::ReadResponse => {
                self.purpose.is_none() || self.target == Target::of(data)
            }
            Purpose::ReadRequest => true,
        };
        target && self.purpose.is_none_or(|known| known == purpose)
    }

    /// The same for a packet of a message whose turn has not come.
    #[cold]
    fn fits_ahead(&self, data: &Data, mtu_payload: u16) -> bool {
        let later = data.msn.wrapping_sub(self.next_msn);
        let Some(before) = packets_before(data, mtu_payload) else { return false };
        let Some(first) = data.psn.checked_sub(before) else { return false };
        // What is missing is a packet at least of the message in progress and of each before this one.
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

    /// A packet has been taken in order, of the message in progress.
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

    /// A packet has been taken ahead of a gap.
    #[cold]
    pub(crate) fn took_ahead(&mut self, data: &Data, mtu_payload: u16) {
        if data.msn == self.next_msn {
            self.took_in_order(data);
        }
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

    /// The message in progress is delivered; `end` was its last packet. False if the next one, of which packets have
    /// arrived, does not begin right behind it or is for something else than comes next: what was taken for it then was
    /// not what it should have been.
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

    /// The end of the message in progress, if the packets in order have passed it.
    pub(crate) fn passed_end(&self) -> Option<Data> {
        let message = self.ahead.as_ref()?.front().filter(|message| message.msn == self.next_msn)?;
        message.end.filter(|end| end.psn < self.recovery.expected())
    }
}

/// Whether a message, `later` than the one in progress by so many and beginning at `first`, comes behind all that is known
/// of those before it.
fn follows(later: u32, first: u64, next_msn: u32, ahead: &AheadMessages) -> bool {
    let before = ahead.iter().rev().find(|message| message.msn.wrapping_sub(next_msn) < later);
    before.is_none_or(|message| match &message.end {
        Some(end) if message.msn.wrapping_sub(next_msn) + 1 == later => first == end.psn + 1,
        _ => first > message.highest,
    })
}

/// Whether a packet comes before those of later messages, and its message has no end before it; and if it is an end, no
/// packet behind it and no other end.
fn goes_between(data: &Data, ahead: &AheadMessages) -> bool {
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

/// What is kept of messages ahead; allocated while there are any.
pub(crate) type Kept = Option<Box<AheadMessages>>;
