//! The receiving half of a flow: what has arrived from one peer, what is missing, which messages are whole.
//!
//! All of it may be the work of a peer that follows no rule. So what is kept is bounded ([`MOST_KEPT`] messages, a bitmap
//! of the window), and no step takes longer than the logarithm of that, but the scan, which looks at the window.

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

/// Message numbers are told apart within half of their 16 bits.
const HALF: u64 = 1 << 15;
/// A packet this far from what is expected has a PSN that makes no sense.
const MAX_AHEAD: u64 = 1 << 23;
/// Paths of a flow that are watched one by one; of more, silence alone tells what is lost.
const MOST_HEADS: u16 = 256;
/// Packets of which a silent flow asks whether they are lost, before it knows that any is.
const FIRST_GUESSES: u32 = 16;
/// The longest pause between arrivals loses this part of itself with each of them.
const PAUSE_FADES: u64 = 64;
/// Messages of each kind (not whole, given up, to be told later) that a flow keeps account of: as many as a peer may have
/// outstanding. A peer that names more breaks the rules.
const MOST_KEPT: usize = MAX_RD_OUTSTANDING as usize;

/// The receiving half of a flow. Small while everything arrives in order.
#[derive(Debug)]
pub(super) struct RxFlow {
    /// First PSN that has not arrived.
    pub(super) base: u64,
    /// One more than the highest PSN that has arrived.
    highest: u64,
    /// `highest` at the last scan.
    scan_mark: u64,
    /// One more than the last PSN that is known to be sent, or, for the rules of scans, announced; 0 while none is known.
    known_end: u64,
    /// When a packet arrived last, one that had arrived before included, or the flow came to be known.
    last_arrival: Time,
    /// The longest time of late between two arrivals while something was on its way.
    longest_pause: Duration,
    /// One more than the highest message number seen: others are near it.
    next_msg: u64,
    /// The next message to deliver, where they are delivered in order.
    next_delivery: u64,
    /// Whether the scan looks here.
    pub(super) watched: bool,
    /// What is there only while something is missing.
    open: Option<Box<Open>>,
}

/// What a flow keeps while something is missing or a message has more to come.
#[derive(Debug)]
struct Open {
    /// From `base` to `highest`: which have arrived.
    bits: BitRing,
    /// Missing PSNs that were asked for.
    asked: BTreeMap<u64, Asked>,
    /// Most packets asked for at a time that nothing but silence speaks against: more with each copy that was needed, as at
    /// first once an original answers, which was late.
    guesses: u32,
    /// By path, what has overtaken whatever is still missing.
    heads: Box<[Head]>,
    messages: BTreeMap<u64, InMessage>,
    /// Messages to be delivered behind one that is not whole: their bytes, or `None` if they were given up.
    held: BTreeMap<u64, Option<u64>>,
    /// PSNs of messages given up, not yet passed by `base`.
    aborted: Ranges,
    /// The first message there is no room for.
    waiting: Option<Waiting>,
}

/// The front of what has arrived on a path. A path keeps order, so what is missing from before it is lost, or took another
/// path.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// One more than the highest PSN that arrived as it left for the first time.
    end: u64,
    /// When that was, or the flow began to look.
    at: Time,
}

/// A message of more than one packet that is not whole. Its packets are all full but the last, so their PSNs say where
/// they belong, and it is enough to count them.
#[derive(Clone, Copy, Debug)]
struct InMessage {
    first_psn: u64,
    /// Packets that have arrived, each once.
    arrived: u32,
    /// One more than the number of the last one of them.
    seen: u32,
    /// How long it is, once that is known: the sender has said so, or its last packet is there.
    extent: Option<Extent>,
}

/// How long a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

/// A message there is neither a receive nor room for. It and those after it are to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) msg: u64,
    pub(super) first_psn: u64,
    pub(super) bytes: u64,
}

/// A packet that can be taken, and what it tells of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fresh {
    pub(super) msg: u64,
    /// PSN of the first packet of its message.
    pub(super) first_psn: u64,
    pub(super) extent: Option<Extent>,
}

/// Why a packet cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Has arrived before, or belongs to a message that was given up.
    Duplicate,
    /// Beyond what can be kept track of.
    BeyondWindow,
    /// Of a message that is to wait.
    MustWait,
    /// Contradicts itself or what is known.
    Malformed,
}

/// How a packet that was taken has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) in_order: bool,
    /// When it was asked for last, if it was.
    pub(super) asked: Option<Time>,
}

/// A message that is over, to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) msg: u64,
    /// Its bytes; `None` if the sender gave it up.
    pub(super) bytes: Option<u64>,
}

/// What a sender says of a message that begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) msg_id: u16,
    pub(super) first_psn: u64,
    pub(super) extent: Extent,
    /// All of it counts as sent.
    pub(super) has_left: bool,
}

/// What both ends have settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Packets from the first missing one on that are kept track of.
    pub(super) window: u64,
    /// Paths that packets take.
    pub(super) paths: u16,
    /// What all packets of a message carry but the last.
    pub(super) capacity: u16,
}

impl Open {
    /// A packet has come that was missing. When it was asked for last, if it was.
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

    /// The number of a message from its 16 bits: the one nearest to the highest seen.
    pub(super) fn extend_msg(&self, id: u16) -> u64 {
        let start = self.next_msg.saturating_sub(HALF);
        start + u64::from(id.wrapping_sub(start as u16))
    }

    /// Whether a message of this number can begin at this PSN. Each message has a packet at least, and of all before
    /// `base` something has been seen: so many packets ahead, so many messages at most.
    fn is_near(&self, msg: u64, first_psn: u64) -> bool {
        msg.saturating_sub(self.next_msg) <= first_psn.saturating_sub(self.base)
    }

    fn has(&self, psn: u64) -> bool {
        let Some(open) = &self.open else { return psn < self.base };
        psn < self.base || (psn < self.highest && open.bits.get(psn)) || open.aborted.contains(psn)
    }

    /// Whether a packet that has arrived can be taken. Nothing changes.
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

    /// As [`judge`](RxFlow::judge), of a packet of a message of several.
    fn judge_part(&self, data: &RdData, msg: u64, terms: Terms) -> Result<Fresh, Refused> {
        let capacity = u32::from(terms.capacity);
        let index = data.offset / capacity;
        let end = u64::from(data.offset) + u64::from(data.len);
        let first_psn = data.psn.checked_sub(u64::from(index)).ok_or(Refused::Malformed)?;
        // Only the last packet is not full: there the message ends.
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

    /// Takes a packet that can be taken.
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

    /// Something of the flow has come, whatever it is: it lives. How long one waits for copies says nothing of the time
    /// between other packets.
    pub(super) fn heard(&mut self, now: Time, retransmit: bool) {
        if !retransmit && self.is_unfinished() {
            let fades = self.longest_pause - self.longest_pause / PAUSE_FADES;
            self.longest_pause = fades.max(now.saturating_since(self.last_arrival));
        }
        self.last_arrival = now;
    }

    /// Every packet before this PSN has left.
    pub(super) fn on_sent(&mut self, now: Time, end_psn: u64) -> Result<(), Malformed> {
        if end_psn > self.base + (MAX_AHEAD << 1) {
            return Err(Malformed);
        }
        self.known_end = self.known_end.max(end_psn);
        self.last_arrival = now;
        Ok(())
    }

    /// Moves `base` over what has arrived or was given up.
    fn advance(&mut self) {
        let Some(open) = self.open.as_deref_mut() else { return };
        loop {
            let run = open.bits.run_of_ones(self.base, self.highest - self.base);
            open.bits.clear_range(self.base, self.base + run);
            self.base += run;
            let Some(to) = open.aborted.end_of(self.base) else { break };
            // Some of its packets may have arrived.
            open.bits.clear_range(self.base, to.min(self.highest));
            self.base = to;
            self.highest = self.highest.max(to);
        }
        open.aborted.forget_below(self.base);
        if open.asked.first_key_value().is_some_and(|(&first, _)| first < self.base) {
            open.asked = open.asked.split_off(&self.base);
        }
    }

    /// Frees what is there only while something is missing, if nothing is.
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

    /// The sender says how long a message is. True if it has been whole before that.
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
            // No message is half there without an entry: this one is over.
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

    /// Bytes of a message of several packets that is not whole, if they are known.
    pub(super) fn announced_len(&self, msg: u64) -> Option<u64> {
        self.open.as_deref()?.messages.get(&msg)?.extent.map(|extent| extent.bytes)
    }

    /// Whether a message is whole: then it is taken out, with the PSN of its first packet and its bytes.
    pub(super) fn take_whole(&mut self, msg: u64) -> Option<(u64, u64)> {
        let messages = &mut self.open.as_deref_mut()?.messages;
        let &InMessage { first_psn, arrived, extent, .. } = messages.get(&msg)?;
        let extent = extent.filter(|extent| extent.packets == arrived)?;
        messages.remove(&msg);
        Some((first_psn, extent.bytes))
    }

    /// The sender gives a message up. Its number, if it was not over.
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

    /// A message is over. Hands out what is to be told: at once, or once all before it are over.
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
            // A peer that has more behind one that is not whole breaks the rules, and loses what it sends.
            if held.len() < MOST_KEPT {
                held.insert(ended.msg, ended.bytes);
            }
        }
        self.close();
    }

    /// The first message that is to wait, if any is.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        self.open.as_deref()?.waiting
    }

    /// A message, and all after it, is to wait. False if that was known. What was asked for of it comes when it may, which
    /// says nothing of the network.
    pub(super) fn wait(&mut self, waiting: Waiting, terms: Terms) -> bool {
        let open = self.open(terms);
        let earlier = open.waiting.is_none_or(|known| waiting.msg < known.msg);
        if earlier {
            open.waiting = Some(waiting);
            drop(open.asked.split_off(&waiting.first_psn));
        }
        earlier
    }

    /// Where a message of several packets begins, and its bytes, once that is known.
    pub(super) fn as_waiting(&self, msg: u64) -> Option<Waiting> {
        let message = self.open.as_deref()?.messages.get(&msg)?;
        Some(Waiting { msg, first_psn: message.first_psn, bytes: message.extent?.bytes })
    }

    /// What was to wait may come: the message, and the PSN from which on packets are to be sent.
    pub(super) fn release(&mut self) -> Option<(u64, u64)> {
        let waiting = self.open.as_deref_mut()?.waiting.take()?;
        self.close();
        Some((waiting.msg, self.resumes_at(waiting.first_psn)))
    }

    /// The PSN from which on a message that begins at `first_psn` has not arrived.
    pub(super) fn resumes_at(&self, first_psn: u64) -> u64 {
        self.base.max(first_psn)
    }

    /// One more than the last PSN that is known to be sent and need not wait.
    fn wanted_end(&self) -> u64 {
        let end = self.highest.max(self.known_end);
        self.waiting().map_or(end, |waiting| end.min(waiting.first_psn))
    }

    /// Whether packets are known to be missing.
    pub(super) fn is_waiting(&self) -> bool {
        self.base < self.wanted_end()
    }

    /// Whether a message is on its way.
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_waiting()
            || self.open.as_ref().is_some_and(|open| !open.messages.is_empty() || open.waiting.is_some())
    }

    /// The scan: what is missing and is to be asked for.
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
        // What was asked for and has not come is a guess that stands, if it is one.
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

    /// Before which PSNs what is missing counts as lost: of holes, and of the end that nothing has overtaken.
    fn suspects(&self, rule: &ScanRule) -> (u64, u64) {
        let ScanRule { now, period, repair, terms, .. } = *rule;
        let wanted_end = self.wanted_end();
        let patience = match repair {
            Repair::Overtaken => rule.patience(self.longest_pause),
            _ => period,
        };
        // With nothing behind it a packet is missed only when the flow has fallen silent.
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

    /// The PSN up to which every path has been overtaken by what left on it for the first time. A path on which nothing
    /// has come for so long that it would have had its turn twice counts as empty, or dead.
    fn overtaken_to(&self, rule: &ScanRule) -> u64 {
        let heads = self.open.as_deref().map_or(&[][..], |open| &open.heads);
        let patience = rule.two_turns(self.longest_pause, heads.len());
        let end = |head: &Head| {
            if rule.now.saturating_since(head.at) >= patience { u64::MAX } else { head.end }
        };
        heads.iter().map(end).min().unwrap_or(0)
    }

    /// Bytes it takes beyond its own size.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// A side message that contradicts what is known.
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

    /// Takes a packet, or says why not.
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
        // As printed.
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
        // Never what has not been sent.
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
    fn what_is_asked_for_is_missing_sorted_and_once() {
        let mut flow = flow_with(&[9, 3, 1, 20, 5]);
        scan(&mut flow, 10, false);
        let asked = scan(&mut flow, 20, false);
        assert!(asked.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(asked.iter().all(|psn| *psn < 20 && ![9, 3, 1, 5].contains(psn)));
        assert_eq!(asked.len(), 20 - 4);
    }

    /// A flow over two paths; packets arrive at these microseconds, on these paths.
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

    /// What is asked for at this microsecond: period 10 us, hold 15 us.
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
        // Path 1 is silent from 1 on; path 0 goes on every 2 us, and never falls silent for a period. 2 and 5 are missing.
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

    /// What only silence speaks against is guessed at a few packets at a time: more with each copy that was needed.
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
        // The original of one answers: it was late, and so may be the others.
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
        // Asked in vain, it is asked for again after 15, 30, 60 us.
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
    fn who_answers_late_keeps_no_others_waiting() {
        let (period, hold) = (Duration::from_us(10), Duration::MAX);
        let rule = ScanRule { now: Time::ZERO, period, hold, repair: Repair::Overtaken, terms: TERMS };
        let after = |rule: &ScanRule, times| rule.hold_after(Asked { at: Time::ZERO, times }, Duration::ZERO);
        assert_eq!(
            [1, 2, 7, 99].map(|times| after(&rule, times).as_ns()),
            [640, 1_280, 40_960, 40_960].map(|us| us * 1_000)
        );
        let short = ScanRule { hold: Duration::from_us(15), ..rule };
        assert_eq!([1, 3].map(|times| after(&short, times).as_ns()), [15_000, 60_000]);
        // The rules of scans wait as long as packets took.
        assert_eq!(after(&ScanRule { repair: Repair::TwoScans, ..rule }, 3), hold);
    }

    /// A copy of what has arrived is a sign of life; the time one waits for copies is not that between packets.
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
        // It ends with its third packet; then a fourth one, or another end, is nonsense.
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
        // It may come: from the first one on that is missing.
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

    /// What a peer that follows no rule can make this end keep, and how much of it.
    #[test]
    fn what_a_peer_says_is_kept_within_bounds() {
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
        // Packets: the first of a message each, which is never whole.
        let mut flow = flow_with(&[]);
        for n in 0..100_000u64 {
            let first =
                RdData { psn: n, msg_id: n as u16, multi: true, offset: 0, len: 10, retransmit: false };
            let _ = take(&mut flow, Time::ZERO, &first);
        }
        assert_eq!(flow.open.as_ref().expect("open").messages.len(), MOST_KEPT);
    }
}
