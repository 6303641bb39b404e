//! Receiving half of a flow: packets that have arrived from one peer, missing ones, and complete messages.
//!
//! All inputs may come from a malicious peer. State is therefore bounded ([`MOST_KEPT`] messages, a bitmap of the
//! window). No step takes longer than the logarithm of that, except the scan, which reads the window.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use pathweave_policy::Repair;
use pathweave_units::{Duration, PathId, Time};
use pathweave_wire::RdData;

use super::ranges::Ranges;
use super::scan_rule::{Asked, ScanRule};
use super::send::MAX_RD_OUTSTANDING;
use super::side::Missing;
use crate::bits::BitRing;

/// Half of the range of 16-bit message numbers: numbers are unambiguous within it.
const HALF: u64 = 1 << 15;
/// Distance from the expected PSN at which a PSN counts as malformed.
const MAX_AHEAD: u64 = 1 << 23;
/// Largest number of paths of a flow that are tracked one by one. With more paths, only silence shows losses.
const MOST_HEADS: u16 = 256;
/// Number of packets that a silent flow requests on suspicion, before it knows that any is lost.
const FIRST_GUESSES: u32 = 16;
/// Part of the longest pause between arrivals that is forgotten with each arrival, as a divisor.
const PAUSE_FADES: u64 = 64;
/// Largest number of messages of each kind (incomplete, aborted, complete but undelivered) that a flow tracks: as
/// many as a peer may have outstanding. A peer that names more violates the protocol.
const MOST_KEPT: usize = MAX_RD_OUTSTANDING as usize;

/// Receiving half of a flow. Small while everything arrives in order.
#[derive(Debug)]
pub(super) struct RxFlow {
    /// First PSN that has not arrived.
    pub(super) base: u64,
    /// Highest PSN that has arrived, plus 1.
    highest: u64,
    /// `highest` at the last scan.
    scan_mark: u64,
    /// Last PSN that is known to be sent, plus 1; 0 while none is known. For the scan rules, an announced PSN counts
    /// as sent.
    known_end: u64,
    /// Time of the latest arrival, duplicates included, or of the creation of the flow.
    last_arrival: Time,
    /// Longest recent time between two arrivals while a message was in progress.
    longest_pause: Duration,
    /// Highest message number seen, plus 1. Other numbers are near it.
    next_msg: u64,
    /// Next message to deliver, if messages are delivered in order.
    next_delivery: u64,
    /// True if the scan checks this flow.
    pub(super) watched: bool,
    /// State that exists only while something is missing.
    open: Option<Box<Open>>,
}

/// State of a flow while packets are missing or a message has more to come.
#[derive(Debug)]
struct Open {
    /// Bitmap of the packets from `base` to `highest` that have arrived.
    bits: BitRing,
    /// Missing PSNs that were requested.
    asked: BTreeMap<u64, Asked>,
    /// Largest number of packets requested at a time on no evidence but silence. It grows with each requested copy
    /// that was needed. When an original arrives, which was only late, it falls back to its initial value.
    guesses: u32,
    /// For each path, the front of the arrivals that have overtaken missing packets.
    heads: Box<[Head]>,
    messages: BTreeMap<u64, InMessage>,
    /// Messages to be delivered after one that is not complete: their bytes, or `None` if they were aborted.
    held: BTreeMap<u64, Option<u64>>,
    /// PSNs of aborted messages that `base` has not passed yet.
    aborted: Ranges,
    /// First message for which there is no room.
    waiting: Option<Waiting>,
}

/// Front of the arrivals on a path. A path keeps order, so a packet missing from before the front is lost, or took
/// another path.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// Highest PSN that arrived as a first transmission, plus 1.
    end: u64,
    /// Time of the latest such arrival; initially, of the flow's latest arrival when this state was created.
    at: Time,
}

/// An incomplete message of more than one packet. All packets except the last are full, so PSNs determine their
/// offsets, and counting them is enough.
#[derive(Clone, Copy, Debug)]
struct InMessage {
    first_psn: u64,
    /// Number of packets that have arrived, each counted once.
    arrived: u32,
    /// Highest index of a packet that has arrived, plus 1.
    seen: u32,
    /// Length of the message, once the sender has announced it or the last packet has arrived.
    extent: Option<Extent>,
}

/// Length of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

/// A message for which there is neither a receive nor buffer space. It must wait with all later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) msg: u64,
    pub(super) first_psn: u64,
    pub(super) bytes: u64,
}

/// A packet that can be accepted, with the information that it gives about its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fresh {
    pub(super) msg: u64,
    /// PSN of the first packet of its message.
    pub(super) first_psn: u64,
    pub(super) extent: Option<Extent>,
}

/// Reason why a packet cannot be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The packet has arrived before, or belongs to an aborted message.
    Duplicate,
    /// The packet lies beyond the window or the number of tracked messages.
    BeyondWindow,
    /// The packet belongs to a message that must wait.
    MustWait,
    /// The packet contradicts itself or the known state.
    Malformed,
}

/// Circumstances of an accepted packet's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) in_order: bool,
    /// Time of the latest request for it, if there was one.
    pub(super) asked: Option<Time>,
}

/// A finished message, to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) msg: u64,
    /// Bytes of the message, or `None` if the sender has aborted it.
    pub(super) bytes: Option<u64>,
}

/// Announcement of a message by its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) msg_id: u16,
    pub(super) first_psn: u64,
    pub(super) extent: Extent,
    /// True if all of its packets count as sent.
    pub(super) has_left: bool,
}

/// Parameters on which both ends agree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Number of packets, from the first missing one on, that are tracked.
    pub(super) window: u64,
    /// Number of paths that packets take.
    pub(super) paths: u16,
    /// Payload of all packets of a message except the last.
    pub(super) capacity: u16,
}

impl Open {
    /// Records the arrival of a missing packet. Returns the time of the latest request for it, if there was one.
    fn answered(&mut self, data: &RdData) -> Option<Time> {
        let asked = self.asked.remove(&data.psn)?;
        self.guesses = if data.retransmit { self.guesses.saturating_add(1) } else { FIRST_GUESSES };
        Some(asked.at)
    }
}

impl RxFlow {
    pub(super) fn new(now: Time) -> Self {
        RxFlow {
            base: 0,
            highest: 0,
            scan_mark: 0,
            known_end: 0,
            last_arrival: now,
            longest_pause: Duration::ZERO,
            next_msg: 0,
            next_delivery: 0,
            watched: false,
            open: None,
        }
    }

    fn open(&mut self, terms: Terms) -> &mut Open {
        let (base, at) = (self.base, self.last_arrival);
        let heads = if terms.paths <= MOST_HEADS { usize::from(terms.paths) } else { 0 };
        self.open.get_or_insert_with(|| {
            Box::new(Open {
                bits: BitRing::with_room_for(terms.window + 64),
                asked: BTreeMap::new(),
                guesses: FIRST_GUESSES,
                heads: core::iter::repeat_n(Head { end: base, at }, heads).collect(),
                messages: BTreeMap::new(),
                held: BTreeMap::new(),
                aborted: Ranges::default(),
                waiting: None,
            })
        })
    }

    /// Message number from its low 16 bits: the one nearest to the highest number seen.
    pub(super) fn extend_msg(&self, id: u16) -> u64 {
        let start = self.next_msg.saturating_sub(HALF);
        start + u64::from(id.wrapping_sub(start as u16))
    }

    /// Returns true if a message of this number can begin at this PSN. Each message has at least one packet, and
    /// something has been seen of all messages before `base`. So the message number leads by at most as much as the
    /// PSN.
    fn is_near(&self, msg: u64, first_psn: u64) -> bool {
        msg.saturating_sub(self.next_msg) <= first_psn.saturating_sub(self.base)
    }

    fn has(&self, psn: u64) -> bool {
        let Some(open) = &self.open else { return psn < self.base };
        psn < self.base || (psn < self.highest && open.bits.get(psn)) || open.aborted.contains(psn)
    }

    /// Checks if a packet that has arrived can be accepted. Changes nothing.
    pub(super) fn judge(&self, data: &RdData, terms: Terms) -> Result<Fresh, Refused> {
        let end = u64::from(data.offset) + u64::from(data.len);
        if data.len == 0
            || (!data.multi && data.offset != 0)
            || end > 1 << 32
            || data.len > terms.capacity
            || data.psn > self.base + MAX_AHEAD
        {
            return Err(Refused::Malformed);
        }
        if self.has(data.psn) {
            return Err(Refused::Duplicate);
        }
        if data.psn >= self.base + terms.window {
            return Err(Refused::BeyondWindow);
        }
        if self.waiting().is_some_and(|waiting| data.psn >= waiting.first_psn) {
            return Err(Refused::MustWait);
        }
        let msg = self.extend_msg(data.msg_id);
        if !data.multi {
            let extent = Some(Extent { packets: 1, bytes: end });
            let near = self.is_near(msg, data.psn);
            return if near {
                Ok(Fresh { msg, first_psn: data.psn, extent })
            } else {
                Err(Refused::Malformed)
            };
        }
        self.judge_part(data, msg, terms)
    }

    /// Equals [`judge`](RxFlow::judge) for a packet of a message of several packets.
    fn judge_part(&self, data: &RdData, msg: u64, terms: Terms) -> Result<Fresh, Refused> {
        let capacity = u32::from(terms.capacity);
        let index = data.offset / capacity;
        let end = u64::from(data.offset) + u64::from(data.len);
        let first_psn = data.psn.checked_sub(u64::from(index)).ok_or(Refused::Malformed)?;
        // Only the last packet may be short: there the message ends.
        let short = data.len < terms.capacity;
        if !data.offset.is_multiple_of(capacity) || (short && index == 0) || !self.is_near(msg, first_psn) {
            return Err(Refused::Malformed);
        }
        let ends = short.then_some(Extent { packets: index + 1, bytes: end });
        let messages = self.open.as_deref().map(|open| &open.messages);
        let Some(known) = messages.and_then(|messages| messages.get(&msg)) else {
            let full = messages.is_some_and(|messages| messages.len() >= MOST_KEPT);
            return if full {
                Err(Refused::BeyondWindow)
            } else {
                Ok(Fresh { msg, first_psn, extent: ends })
            };
        };
        let fits = match (known.extent, ends) {
            (Some(extent), None) => end <= extent.bytes,
            (Some(extent), Some(ends)) => ends == extent,
            (None, Some(ends)) => known.seen <= ends.packets,
            (None, None) => true,
        };
        if known.first_psn != first_psn || !fits {
            return Err(Refused::Malformed);
        }
        Ok(Fresh { msg, first_psn, extent: known.extent.or(ends) })
    }

    /// Accepts a packet that was judged acceptable.
    pub(super) fn take(
        &mut self,
        now: Time,
        (data, path): (&RdData, PathId),
        fresh: &Fresh,
        terms: Terms,
    ) -> Arrival {
        if data.multi {
            let &Fresh { msg, first_psn, extent } = fresh;
            let none = InMessage { first_psn, arrived: 0, seen: 0, extent: None };
            let message = self.open(terms).messages.entry(msg).or_insert(none);
            message.arrived += 1;
            message.seen = message.seen.max((data.psn - first_psn) as u32 + 1);
            message.extent = extent;
        }
        self.next_msg = self.next_msg.max(fresh.msg + 1);
        self.last_arrival = now;
        let asked = self.open.as_deref_mut().and_then(|open| open.answered(data));
        let in_order = data.psn == self.base;
        if in_order && self.base == self.highest {
            self.base += 1;
            self.highest += 1;
        } else {
            self.highest = self.highest.max(data.psn + 1);
            let open = self.open(terms);
            open.bits.set(data.psn);
        }
        if let Some(open) = self.open.as_deref_mut()
            && !data.retransmit
            && let Some(head) = open.heads.get_mut(path.index())
        {
            *head = Head { end: head.end.max(data.psn + 1), at: now };
        }
        self.advance();
        Arrival { in_order, asked }
    }

    /// Records any arrival, which shows that the flow is alive. The wait for copies differs from the time between
    /// other packets, so retransmissions do not count as pauses.
    pub(super) fn heard(&mut self, now: Time, retransmit: bool) {
        if !retransmit && self.is_unfinished() {
            let fades = self.longest_pause - self.longest_pause / PAUSE_FADES;
            self.longest_pause = fades.max(now.saturating_since(self.last_arrival));
        }
        self.last_arrival = now;
    }

    /// Records that every packet before this PSN has left.
    pub(super) fn on_sent(&mut self, now: Time, end_psn: u64) -> Result<(), Malformed> {
        if end_psn > self.base + (MAX_AHEAD << 1) {
            return Err(Malformed);
        }
        self.known_end = self.known_end.max(end_psn);
        self.last_arrival = now;
        Ok(())
    }

    /// Moves `base` over packets that have arrived or were aborted.
    fn advance(&mut self) {
        let Some(open) = self.open.as_deref_mut() else { return };
        loop {
            let run = open.bits.run_of_ones(self.base, self.highest - self.base);
            open.bits.clear_range(self.base, self.base + run);
            self.base += run;
            let Some(to) = open.aborted.end_of(self.base) else { break };
            // Some packets of the range may have arrived.
            open.bits.clear_range(self.base, to.min(self.highest));
            self.base = to;
            self.highest = self.highest.max(to);
        }
        open.aborted.forget_below(self.base);
        if open.asked.first_key_value().is_some_and(|(&first, _)| first < self.base) {
            open.asked = open.asked.split_off(&self.base);
        }
    }

    /// Frees the state that is needed only while something is missing, if nothing is.
    fn close(&mut self) {
        if self.base == self.highest
            && let Some(open) = &self.open
            && open.messages.is_empty()
            && open.held.is_empty()
            && open.aborted.is_empty()
            && open.waiting.is_none()
        {
            self.open = None;
        }
    }

    /// Processes the announcement of a message's length. Returns true if the message was complete before.
    pub(super) fn on_start(&mut self, start: &Start, terms: Terms) -> Result<bool, Malformed> {
        let &Start { msg_id, first_psn, extent, has_left } = start;
        let (end, msg) = (first_psn + u64::from(extent.packets), self.extend_msg(msg_id));
        if end > self.base + (MAX_AHEAD << 1)
            || u64::from(extent.packets) != extent.bytes.div_ceil(u64::from(terms.capacity))
            || !self.is_near(msg, first_psn)
        {
            return Err(Malformed);
        }
        if extent.packets == 1 {
            if has_left {
                self.known_end = self.known_end.max(end);
            }
            return Ok(self.has(first_psn));
        }
        let known = self.open.as_deref().and_then(|open| open.messages.get(&msg));
        match known {
            // An incomplete message always has an entry once a packet of it arrived, so this one is finished.
            None if (first_psn..end.min(first_psn + 2)).all(|psn| self.has(psn)) => return Ok(true),
            None => {}
            Some(known) => {
                let fits = known.extent.is_none_or(|known| known == extent) && known.seen <= extent.packets;
                if !fits || known.first_psn != first_psn {
                    return Err(Malformed);
                }
            }
        }
        let messages = &mut self.open(terms).messages;
        if messages.len() >= MOST_KEPT && !messages.contains_key(&msg) {
            return Err(Malformed);
        }
        let none = InMessage { first_psn, arrived: 0, seen: 0, extent: None };
        messages.entry(msg).or_insert(none).extent = Some(extent);
        if has_left {
            self.known_end = self.known_end.max(end);
        }
        self.next_msg = self.next_msg.max(msg + 1);
        Ok(false)
    }

    /// Bytes of an incomplete message of several packets, if they are known.
    pub(super) fn announced_len(&self, msg: u64) -> Option<u64> {
        self.open.as_deref()?.messages.get(&msg)?.extent.map(|extent| extent.bytes)
    }

    /// Removes a message if it is complete, and returns the PSN of its first packet and its bytes.
    pub(super) fn take_whole(&mut self, msg: u64) -> Option<(u64, u64)> {
        let messages = &mut self.open.as_deref_mut()?.messages;
        let &InMessage { first_psn, arrived, extent, .. } = messages.get(&msg)?;
        let extent = extent.filter(|extent| extent.packets == arrived)?;
        messages.remove(&msg);
        Some((first_psn, extent.bytes))
    }

    /// Processes the abort of a message. Returns its number if it was not finished.
    pub(super) fn on_abort(
        &mut self,
        msg_id: u16,
        first_psn: u64,
        packets: u32,
        terms: Terms,
    ) -> Result<Option<u64>, Malformed> {
        let (msg, end) = (self.extend_msg(msg_id), first_psn + u64::from(packets));
        let full = |open: &Open| open.aborted.len() >= MOST_KEPT || open.held.len() >= MOST_KEPT;
        if end > self.base + (MAX_AHEAD << 1) || self.open.as_deref().is_some_and(full) {
            return Err(Malformed);
        }
        if (first_psn..end).take(2).all(|psn| self.has(psn)) {
            return Ok(None);
        }
        self.next_msg = self.next_msg.max(msg + 1);
        let open = self.open(terms);
        open.messages.remove(&msg);
        open.aborted.add(first_psn, end);
        while let Some((&psn, _)) = open.asked.range(first_psn..end).next() {
            open.asked.remove(&psn);
        }
        self.advance();
        Ok(Some(msg))
    }

    /// Handles a finished message. Calls `tell` at once or, if `ordered`, after all earlier messages are finished.
    pub(super) fn ended(&mut self, ended: Ended, ordered: bool, terms: Terms, mut tell: impl FnMut(Ended)) {
        if !ordered {
            tell(ended);
        } else if ended.msg == self.next_delivery {
            tell(ended);
            self.next_delivery += 1;
            while let Some(bytes) =
                self.open.as_deref_mut().and_then(|open| open.held.remove(&self.next_delivery))
            {
                tell(Ended { msg: self.next_delivery, bytes });
                self.next_delivery += 1;
            }
        } else if ended.msg > self.next_delivery {
            let held = &mut self.open(terms).held;
            // A peer with more messages behind an incomplete one violates the protocol, and loses them.
            if held.len() < MOST_KEPT {
                held.insert(ended.msg, ended.bytes);
            }
        }
        self.close();
    }

    /// First message that must wait, if any.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        self.open.as_deref()?.waiting
    }

    /// Makes a message and all later ones wait. Returns false if that was known. Requests for their packets are
    /// dropped, because their answers will come after the release and measure nothing of the network.
    pub(super) fn wait(&mut self, waiting: Waiting, terms: Terms) -> bool {
        let open = self.open(terms);
        let earlier = open.waiting.is_none_or(|known| waiting.msg < known.msg);
        if earlier {
            open.waiting = Some(waiting);
            drop(open.asked.split_off(&waiting.first_psn));
        }
        earlier
    }

    /// Start and length of a message of several packets, once they are known.
    pub(super) fn as_waiting(&self, msg: u64) -> Option<Waiting> {
        let message = self.open.as_deref()?.messages.get(&msg)?;
        Some(Waiting { msg, first_psn: message.first_psn, bytes: message.extent?.bytes })
    }

    /// Releases the waiting message. Returns its number and the PSN from which on its packets must be sent.
    pub(super) fn release(&mut self) -> Option<(u64, u64)> {
        let waiting = self.open.as_deref_mut()?.waiting.take()?;
        self.close();
        Some((waiting.msg, self.resumes_at(waiting.first_psn)))
    }

    /// First PSN of a message, beginning at `first_psn`, that has not arrived.
    pub(super) fn resumes_at(&self, first_psn: u64) -> u64 {
        self.base.max(first_psn)
    }

    /// Last PSN that is known to be sent and need not wait, plus 1.
    fn wanted_end(&self) -> u64 {
        let end = self.highest.max(self.known_end);
        self.waiting().map_or(end, |waiting| end.min(waiting.first_psn))
    }

    /// Returns true if packets are known to be missing.
    pub(super) fn is_waiting(&self) -> bool {
        self.base < self.wanted_end()
    }

    /// Returns true if a message is in progress.
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_waiting()
            || self.open.as_ref().is_some_and(|open| !open.messages.is_empty() || open.waiting.is_some())
    }

    /// Scans for missing packets and returns those to request.
    pub(super) fn scan(&mut self, rule: &ScanRule) -> Missing {
        let ScanRule { now, terms, .. } = *rule;
        let (holes_end, tail_end) = self.suspects(rule);
        let known_to = if rule.repair == Repair::Overtaken { self.overtaken_to(rule) } else { u64::MAX };
        self.scan_mark = self.highest;
        let mut missing = Missing::default();
        if holes_end <= self.base && tail_end <= self.base {
            return missing;
        }
        let (base, highest, pause) = (self.base, self.highest, self.longest_pause);
        let Open { bits, asked, aborted, guesses, .. } = self.open(terms);
        // A guess that was requested and has not been answered still counts.
        let mut guesses_left = (*guesses as usize).saturating_sub(asked.range(known_to..).count());
        let holes = (base..holes_end.min(highest)).filter(|&psn| !bits.get(psn));
        let all = holes.chain(highest..tail_end).filter(|&psn| !aborted.contains(psn));
        for psn in all {
            let before = asked.get(&psn).copied();
            let held =
                before.is_some_and(|before| now.saturating_since(before.at) < rule.hold_after(before, pause));
            if before.is_none() && psn >= known_to {
                if guesses_left == 0 {
                    continue;
                }
                guesses_left -= 1;
            }
            if !held && missing.has_room() {
                let times = before.map_or(0, |before| before.times).saturating_add(1);
                asked.insert(psn, Asked { at: now, times });
                missing.push(psn);
            }
        }
        missing
    }

    /// PSNs below which missing packets count as lost: for holes, and for the tail that nothing has overtaken.
    fn suspects(&self, rule: &ScanRule) -> (u64, u64) {
        let ScanRule { now, period, repair, terms, .. } = *rule;
        let wanted_end = self.wanted_end();
        let patience = match repair {
            Repair::Overtaken => rule.patience(self.longest_pause),
            _ => period,
        };
        // Nothing overtakes the last packets, so they are missed only when the flow has fallen silent.
        let silent = now.saturating_since(self.last_arrival) >= patience;
        let known_end = if self.known_end == 0 { u64::MAX } else { self.known_end };
        let holes_end = match repair {
            Repair::Literal => self.highest.min(known_end).min(wanted_end),
            Repair::TwoScans | Repair::Never => self.scan_mark.min(known_end).min(wanted_end),
            Repair::Overtaken if silent => self.highest.min(wanted_end),
            Repair::Overtaken => self.overtaken_to(rule).min(wanted_end),
        };
        let has_tail = self.known_end > self.highest && silent;
        let tail_end =
            if has_tail { self.known_end.min(self.base + terms.window).min(wanted_end) } else { 0 };
        (holes_end, tail_end)
    }

    /// PSN up to which the first transmissions on every path have overtaken. A path without an arrival for two of its
    /// turns counts as empty, or dead.
    fn overtaken_to(&self, rule: &ScanRule) -> u64 {
        let heads = self.open.as_deref().map_or(&[][..], |open| &open.heads);
        let patience = rule.two_turns(self.longest_pause, heads.len());
        let end = |head: &Head| {
            if rule.now.saturating_since(head.at) >= patience { u64::MAX } else { head.end }
        };
        heads.iter().map(end).min().unwrap_or(0)
    }

    /// Returns true if the flow keeps state beyond its own size.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// Error: a side message contradicts the known state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const WINDOW: u64 = 4_096;
    const TERMS: Terms = Terms { window: WINDOW, paths: 1, capacity: 10 };

    fn single(psn: u64) -> RdData {
        RdData { psn, msg_id: psn as u16, multi: false, offset: 0, len: 1, retransmit: false }
    }

    /// Accepts a packet, or returns the reason why not.
    fn take(flow: &mut RxFlow, now: Time, data: &RdData) -> Result<(u64, Arrival), Refused> {
        let fresh = flow.judge(data, TERMS)?;
        Ok((fresh.msg, flow.take(now, (data, PathId(0)), &fresh, TERMS)))
    }

    fn flow_with(psns: &[u64]) -> RxFlow {
        let mut flow = RxFlow::new(Time::ZERO);
        for &psn in psns {
            let taken = take(&mut flow, Time::ZERO, &single(psn));
            assert!(taken.is_ok(), "{psn}: {taken:?}");
        }
        flow
    }

    fn scan(flow: &mut RxFlow, us: u64, literal: bool) -> Vec<u64> {
        let (period, hold) = (Duration::from_us(10), Duration::from_us(15));
        let repair = if literal { Repair::Literal } else { Repair::TwoScans };
        let missing =
            flow.scan(&ScanRule { now: Time::from_us(us), period, hold, repair, terms: TERMS }).runs;
        missing.iter().flat_map(|run| run.first..run.first + u64::from(run.count)).collect()
    }

    #[test]
    fn two_scans_tell_lost_from_late() {
        let there = [0, 1, 3, 4, 7];
        let mut flow = flow_with(&there);
        assert!(scan(&mut flow, 10, false).is_empty());
        assert_eq!(flow.scan_mark, 8);
        assert_eq!(scan(&mut flow, 20, false), [2, 5, 6]);
        let mut flow = flow_with(&there);
        assert!(scan(&mut flow, 10, false).is_empty());
        take(&mut flow, Time::from_us(15), &single(5)).expect("new");
        assert_eq!(scan(&mut flow, 20, false), [2, 6]);
        // Rule as printed in the paper.
        assert_eq!(scan(&mut flow_with(&there), 10, true), [2, 5, 6]);
    }

    #[test]
    fn the_end_of_a_message_is_asked_for_when_the_flow_is_silent() {
        let mut flow = flow_with(&[0, 1, 2, 3, 4, 5, 6, 7]);
        let start =
            Start { msg_id: 8, first_psn: 8, extent: Extent { packets: 2, bytes: 15 }, has_left: true };
        assert_eq!(flow.on_start(&start, TERMS), Ok(false));
        assert!(scan(&mut flow, 9, false).is_empty());
        assert_eq!(scan(&mut flow, 10, false), [8, 9]);
        // Packets that have not been sent are never requested.
        assert!(flow_with(&[0, 1]).known_end == 0 && scan(&mut flow_with(&[0, 1]), 100, false).is_empty());
    }

    #[test]
    fn nothing_is_asked_for_again_within_the_hold() {
        let mut flow = flow_with(&[0, 2]);
        assert!(scan(&mut flow, 10, false).is_empty());
        assert_eq!(scan(&mut flow, 20, false), [1]);
        assert!(scan(&mut flow, 30, false).is_empty());
        assert_eq!(scan(&mut flow, 40, false), [1]);
    }

    #[test]
    fn requested_packets_are_missing_sorted_and_unique() {
        let mut flow = flow_with(&[9, 3, 1, 20, 5]);
        scan(&mut flow, 10, false);
        let asked = scan(&mut flow, 20, false);
        assert!(asked.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(asked.iter().all(|psn| *psn < 20 && ![9, 3, 1, 5].contains(psn)));
        assert_eq!(asked.len(), 20 - 4);
    }

    /// A flow over two paths. Arrivals are given as microsecond, PSN and path.
    fn over_two_paths(arrivals: &[(u64, u64, u16)]) -> RxFlow {
        let terms = Terms { paths: 2, ..TERMS };
        let mut flow = RxFlow::new(Time::ZERO);
        for &(us, psn, path) in arrivals {
            let (now, data) = (Time::from_us(us), single(psn));
            flow.heard(now, false);
            let fresh = flow.judge(&data, terms).expect("new");
            flow.take(now, (&data, PathId(path)), &fresh, terms);
        }
        flow
    }

    /// PSNs requested at this microsecond: period 10 us, hold 15 us.
    fn overtaken(flow: &mut RxFlow, us: u64) -> Vec<u64> {
        let (period, hold) = (Duration::from_us(10), Duration::from_us(15));
        let terms = Terms { paths: 2, ..TERMS };
        let rule = ScanRule { now: Time::from_us(us), period, hold, repair: Repair::Overtaken, terms };
        let runs = flow.scan(&rule).runs;
        runs.iter().flat_map(|run| run.first..run.first + u64::from(run.count)).collect()
    }

    #[test]
    fn a_hole_is_lost_once_every_path_has_overtaken_it() {
        // 2 and 3 are missing; path 0 is at 4, path 1 at 1, then at 5.
        let mut flow = over_two_paths(&[(0, 0, 0), (0, 1, 1), (1, 4, 0)]);
        assert!(overtaken(&mut flow, 2).is_empty(), "path 1 may bring both");
        let mut flow = over_two_paths(&[(0, 0, 0), (0, 1, 1), (1, 4, 0), (2, 5, 1), (3, 9, 0)]);
        assert_eq!(overtaken(&mut flow, 3), [2, 3], "and not 6 to 8, which path 1 may bring");
    }

    #[test]
    fn a_path_on_which_nothing_comes_counts_as_empty_after_a_while() {
        // Path 1 is silent after 1 us. Path 0 continues every 2 us, and never falls silent for a period. 2 and 5 are
        // missing.
        let mut arrivals = vec![(0, 0, 0), (0, 1, 0), (1, 3, 1), (2, 4, 0)];
        arrivals.extend((2..20).map(|n| (2 * n, 4 + n, 0)));
        let mut flow = over_two_paths(&arrivals);
        assert_eq!(overtaken(&mut flow, 20), [2], "path 1 may bring 5");
        assert_eq!(overtaken(&mut flow, 21), [5], "it has not for two periods");
    }

    #[test]
    fn a_slow_path_of_many_is_not_empty() {
        let terms = Terms { paths: 256, ..TERMS };
        let (period, hold) = (Duration::from_us(10), Duration::from_us(15));
        let rule = ScanRule { now: Time::ZERO, period, hold, repair: Repair::Overtaken, terms };
        let turns = |us, paths| rule.two_turns(Duration::from_us(us), paths).as_ns() / 1_000;
        assert_eq!([turns(1, 4), turns(42, 16), turns(u64::MAX >> 24, 256)], [40, 1_344, 163_840]);
    }

    /// Packets suspected only because of silence are requested a few at a time: more with each copy that was needed.
    #[test]
    fn silence_is_believed_as_far_as_it_told_the_truth() {
        let terms = Terms { paths: 16, ..TERMS };
        let (period, hold) = (Duration::from_us(10), Duration::from_us(15));
        let guessed = |flow: &mut RxFlow, us| -> Vec<u64> {
            let now = Time::from_us(us);
            let runs = flow.scan(&ScanRule { now, period, hold, repair: Repair::Overtaken, terms }).runs;
            runs.iter().flat_map(|run| run.first..run.first + u64::from(run.count)).collect()
        };
        let mut flow = over_two_paths(&[(0, 0, 0)]);
        assert_eq!(flow.on_sent(Time::ZERO, 101), Ok(()));
        assert_eq!(guessed(&mut flow, 10), (1..17).collect::<Vec<_>>());
        assert!(guessed(&mut flow, 20).is_empty(), "these stand");
        let arrives = |flow: &mut RxFlow, us, psn, retransmit| {
            let (now, data) = (Time::from_us(us), RdData { retransmit, ..single(psn) });
            flow.heard(now, retransmit);
            let fresh = flow.judge(&data, terms).expect("new");
            assert!(flow.take(now, (&data, PathId(0)), &fresh, terms).asked.is_some());
        };
        (1..17).for_each(|psn| arrives(&mut flow, 21, psn, true));
        assert_eq!(guessed(&mut flow, 31), (17..49).collect::<Vec<_>>(), "twice as many");
        // The original of one arrives: it was late, and so may be the others.
        (17..48).for_each(|psn| arrives(&mut flow, 32, psn, true));
        arrives(&mut flow, 32, 48, false);
        let patience = flow.longest_pause.as_ns() / 1_000 * 2;
        assert_eq!(guessed(&mut flow, 32 + patience.max(10)), (49..65).collect::<Vec<_>>());
    }

    #[test]
    fn the_end_is_asked_for_once_it_was_sent_and_the_flow_is_silent() {
        let mut flow = over_two_paths(&[(0, 0, 0), (3, 1, 1)]);
        let start =
            Start { msg_id: 2, first_psn: 2, extent: Extent { packets: 2, bytes: 15 }, has_left: false };
        assert_eq!(flow.on_start(&start, TERMS), Ok(false));
        assert!(overtaken(&mut flow, 100).is_empty(), "announced, not known to be sent");
        assert_eq!(flow.on_sent(Time::from_us(100), 4), Ok(()));
        assert!(overtaken(&mut flow, 109).is_empty());
        assert_eq!(overtaken(&mut flow, 110), [2, 3]);
        // Without an answer, the request is repeated after 15, 30, 60 us.
        let again: Vec<u64> = (111..=300).filter(|&us| !overtaken(&mut flow, us).is_empty()).collect();
        assert_eq!(again, [125, 155, 215]);
        assert_eq!(flow.on_sent(Time::from_us(300), 1 << 40), Err(Malformed));
    }

    #[test]
    fn a_pause_of_days_is_no_reason_to_wait_for_days() {
        let day = 86_400_000_000;
        let mut flow = over_two_paths(&[(0, 0, 0), (0, 3, 1), (100 * day, 4, 0)]);
        let again: Vec<u64> =
            (1..=2_000).filter(|&us| !overtaken(&mut flow, 100 * day + us).is_empty()).collect();
        // 64 periods, and twice as many.
        assert_eq!((flow.longest_pause, again), (Duration::from_us(100 * day), vec![1, 641, 1_921]));
    }

    #[test]
    fn late_peers_do_not_delay_others() {
        let (period, hold) = (Duration::from_us(10), Duration::MAX);
        let rule = ScanRule { now: Time::ZERO, period, hold, repair: Repair::Overtaken, terms: TERMS };
        let after = |rule: &ScanRule, times| rule.hold_after(Asked { at: Time::ZERO, times }, Duration::ZERO);
        assert_eq!(
            [1, 2, 7, 99].map(|times| after(&rule, times).as_ns()),
            [640, 1_280, 40_960, 40_960].map(|us| us * 1_000)
        );
        let short = ScanRule { hold: Duration::from_us(15), ..rule };
        assert_eq!([1, 3].map(|times| after(&short, times).as_ns()), [15_000, 60_000]);
        // The scan rules wait as long as packets took.
        assert_eq!(after(&ScanRule { repair: Repair::TwoScans, ..rule }, 3), hold);
    }

    /// A duplicate is a sign of life. The wait for copies is no time between packets.
    #[test]
    fn copies_are_a_sign_of_life() {
        let mut flow = over_two_paths(&[(0, 0, 0)]);
        assert_eq!(flow.on_sent(Time::from_us(1), 2), Ok(()));
        flow.heard(Time::from_us(9), true);
        assert!(overtaken(&mut flow, 18).is_empty());
        assert_eq!((overtaken(&mut flow, 19), flow.longest_pause), (vec![1], Duration::ZERO));
        flow.heard(Time::from_us(29), false);
        assert_eq!(flow.longest_pause, Duration::from_us(20));
    }

    #[test]
    fn a_flow_in_order_keeps_nothing_and_duplicates_are_told() {
        let mut flow = flow_with(&[0, 1, 2]);
        assert!(!flow.is_open());
        let mut arrives = |psn| take(&mut flow, Time::ZERO, &single(psn));
        let new = |msg, in_order| Ok((msg, Arrival { in_order, asked: None }));
        assert_eq!(arrives(1), Err(Refused::Duplicate));
        assert_eq!(arrives(3 + WINDOW), Err(Refused::BeyondWindow));
        assert_eq!(arrives(4), new(4, false));
        assert_eq!(arrives(4), Err(Refused::Duplicate));
        assert_eq!(arrives(3), new(3, true));
        flow.ended(Ended { msg: 3, bytes: Some(1) }, false, TERMS, |_| {});
        assert!(!flow.is_open() && flow.base == 5);
    }

    #[test]
    fn messages_in_order_wait_for_those_before_them() {
        let mut flow = flow_with(&[]);
        let mut told = vec![];
        for msg in [1, 2, 0, 3] {
            let bytes = (msg != 2).then_some(msg + 100);
            flow.ended(Ended { msg, bytes }, true, TERMS, |ended| told.push((ended.msg, ended.bytes)));
        }
        assert_eq!(told, [(0, Some(100)), (1, Some(101)), (2, None), (3, Some(103))]);
    }

    #[test]
    fn numbers_of_messages_wrap() {
        let mut flow = flow_with(&[]);
        flow.next_msg = 70_000;
        assert_eq!(flow.extend_msg(70_000u32 as u16), 70_000);
        assert_eq!(flow.extend_msg((70_000u32 - 32_768) as u16), 70_000 - 32_768);
        assert_eq!(flow.extend_msg((70_000u32 + 32_767) as u16), 70_000 + 32_767);
    }

    #[test]
    fn a_message_given_up_is_passed() {
        let mut flow = flow_with(&[0]);
        // Message 1 is PSN 1 to 4, of which 2 arrived; message 2 is PSN 5.
        let part = RdData { psn: 2, msg_id: 1, multi: true, offset: 10, len: 10, retransmit: false };
        assert!(take(&mut flow, Time::ZERO, &part).is_ok());
        assert!(take(&mut flow, Time::ZERO, &RdData { msg_id: 2, ..single(5) }).is_ok());
        assert_eq!(flow.on_abort(1, 1, 4, TERMS), Ok(Some(1)));
        assert_eq!((flow.base, flow.on_abort(1, 1, 4, TERMS)), (6, Ok(None)));
        assert_eq!(take(&mut flow, Time::ZERO, &RdData { psn: 3, ..part }), Err(Refused::Duplicate));
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        let part = |psn, offset, len| RdData { psn, msg_id: 0, multi: true, offset, len, retransmit: false };
        let mut flow = flow_with(&[]);
        let mut arrives = |data: RdData| take(&mut flow, Time::ZERO, &data).map(|(msg, _)| msg);
        assert_eq!(arrives(part(1, 10, 10)), Ok(0));
        for (wrong, why) in [
            (part(0, 20, 10), "begins before PSN 0"),
            (part(3, 20, 10), "begins at PSN 1, not 0"),
            (part(0, 0, 7), "a message of several packets that is one"),
            (part(2, 25, 5), "not where a packet begins"),
            (
                RdData { msg_id: 4, ..part(2, 0, 10) },
                "three messages further than the last, two packets further than the first",
            ),
        ] {
            assert_eq!(arrives(wrong), Err(Refused::Malformed), "{why}");
        }
        // The message ends with its third packet; a fourth one, or another end, is malformed.
        assert_eq!(arrives(part(2, 20, 5)), Ok(0));
        assert_eq!(arrives(part(3, 30, 10)), Err(Refused::Malformed));
        assert_eq!(arrives(part(0, 0, 10)), Ok(0));
        assert_eq!(flow.take_whole(0), Some((0, 25)));
    }

    #[test]
    fn a_message_that_must_wait_is_not_asked_for_nor_what_comes_after_it() {
        let part = |psn: u64| RdData {
            psn,
            msg_id: 1,
            multi: true,
            offset: 10 * (psn as u32 - 1),
            len: 10,
            retransmit: false,
        };
        let mut flow = flow_with(&[0]);
        let start =
            Start { msg_id: 1, first_psn: 1, extent: Extent { packets: 50, bytes: 500 }, has_left: true };
        assert_eq!(flow.on_start(&start, TERMS), Ok(false));
        assert!(
            take(&mut flow, Time::ZERO, &part(1)).is_ok() && take(&mut flow, Time::ZERO, &part(3)).is_ok()
        );
        let waiting = flow.as_waiting(1).expect("announced");
        assert!(flow.wait(waiting, TERMS) && !flow.wait(waiting, TERMS), "said once");
        assert_eq!(take(&mut flow, Time::ZERO, &part(2)), Err(Refused::MustWait));
        assert_eq!(take(&mut flow, Time::ZERO, &single(60)), Err(Refused::MustWait));
        assert!(!flow.is_waiting() && flow.is_unfinished());
        assert!(scan(&mut flow, 10, false).is_empty() && scan(&mut flow, 20, false).is_empty());
        // After the release, packets from the first missing one on may come.
        assert_eq!(flow.release(), Some((1, 2)));
        assert_eq!(scan(&mut flow, 30, false).len(), 48);
        assert_eq!((take(&mut flow, Time::ZERO, &part(2)).map(|(msg, _)| msg), flow.base), (Ok(1), 4));
    }

    #[test]
    fn how_long_a_message_waits_is_not_measured() {
        let mut flow = flow_with(&[0]);
        let start =
            Start { msg_id: 1, first_psn: 1, extent: Extent { packets: 2, bytes: 15 }, has_left: true };
        assert_eq!(flow.on_start(&start, TERMS), Ok(false));
        assert_eq!(scan(&mut flow, 10, false), [1, 2]);
        let waiting = flow.as_waiting(1).expect("announced");
        assert!(flow.wait(waiting, TERMS));
        assert_eq!(flow.release(), Some((1, 1)));
        let first = RdData { psn: 1, msg_id: 1, multi: true, offset: 0, len: 10, retransmit: false };
        let arrival = Arrival { in_order: true, asked: None };
        assert_eq!(take(&mut flow, Time::from_us(9_000), &first), Ok((1, arrival)));
    }

    /// Bounds of the state that a malicious peer can cause.
    #[test]
    fn state_from_messages_of_a_peer_is_bounded() {
        let mut flow = flow_with(&[]);
        let mut refused = 0;
        for n in 0..1_000_000u64 {
            let start = Start {
                msg_id: n as u16,
                first_psn: 10 + 2 * n,
                extent: Extent { packets: 2, bytes: 15 },
                has_left: true,
            };
            refused += u64::from(flow.on_start(&start, TERMS).is_err());
        }
        let kept = flow.open.as_ref().expect("open").messages.len();
        assert_eq!((kept, refused), (MOST_KEPT, 1_000_000 - MOST_KEPT as u64));
        let mut flow = flow_with(&[]);
        for n in 0..100_000u64 {
            let _ = flow.on_abort(n as u16, 10 + 2 * n, 1, TERMS);
        }
        assert_eq!(flow.open.as_ref().expect("open").aborted.len(), MOST_KEPT);
        // The first packet of a message each, which never completes.
        let mut flow = flow_with(&[]);
        for n in 0..100_000u64 {
            let first =
                RdData { psn: n, msg_id: n as u16, multi: true, offset: 0, len: 10, retransmit: false };
            let _ = take(&mut flow, Time::ZERO, &first);
        }
        assert_eq!(flow.open.as_ref().expect("open").messages.len(), MOST_KEPT);
    }
}
