//! The receiving half of a flow: what has arrived from one peer, what is missing, which messages are whole.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use pathweave_units::{Duration, Time};
use pathweave_wire::RdData;

use super::intervals::Intervals;
use super::side::Missing;
use crate::bits::BitRing;

/// Message numbers are told apart within half of their 16 bits.
const HALF: u64 = 1 << 15;
/// A packet this far from what is expected has a PSN that makes no sense.
const MAX_AHEAD: u64 = 1 << 23;

/// The receiving half of a flow. Small while everything arrives in order.
#[derive(Debug)]
pub(super) struct RxFlow {
    /// First PSN that has not arrived.
    pub(super) base: u64,
    /// One more than the highest PSN that has arrived.
    highest: u64,
    /// `highest` at the last scan.
    scan_mark: u64,
    /// One more than the last PSN that is known to be sent; 0 while none is known.
    known_end: u64,
    /// When a packet arrived last, or the flow came to be known.
    last_arrival: Time,
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
    /// When each missing PSN was asked for last.
    asked: BTreeMap<u64, Time>,
    messages: BTreeMap<u64, InMessage>,
    /// Messages to be delivered behind one that is not whole: their bytes, or `None` if they were given up.
    held: BTreeMap<u64, Option<u64>>,
    /// PSNs of messages given up, not yet passed by `base`: from, to.
    aborted: Vec<(u64, u64)>,
}

/// A message of more than one packet that is not whole.
#[derive(Debug, Default)]
struct InMessage {
    there: Intervals,
    /// PSN of its first packet and its bytes, once they are known: the sender has said so, or its last packet is there.
    extent: Option<(u64, u64)>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// New; its message may be whole now. `asked`: when it was asked for last, if it was.
    New { msg: u64, in_order: bool, asked: Option<Time> },
    /// Has arrived before, or belongs to a message that was given up.
    Duplicate,
    /// Beyond what can be kept track of.
    BeyondWindow,
    /// Contradicts itself or what is known.
    Malformed,
}

/// A message that is over, to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) msg: u64,
    /// Its bytes; `None` if the sender gave it up.
    pub(super) bytes: Option<u64>,
}

/// How the scan judges.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanRule {
    pub(super) now: Time,
    pub(super) period: Duration,
    /// A packet asked for is not asked for again before this time is over.
    pub(super) hold: Duration,
    /// Report what one scan finds.
    pub(super) literal: bool,
    pub(super) window: u64,
}

impl RxFlow {
    pub(super) fn new(now: Time) -> Self {
        RxFlow {
            base: 0,
            highest: 0,
            scan_mark: 0,
            known_end: 0,
            last_arrival: now,
            next_msg: 0,
            next_delivery: 0,
            watched: false,
            open: None,
        }
    }

    fn open(&mut self, window: u64) -> &mut Open {
        self.open.get_or_insert_with(|| {
            Box::new(Open {
                bits: BitRing::with_room_for(window + 64),
                asked: BTreeMap::new(),
                messages: BTreeMap::new(),
                held: BTreeMap::new(),
                aborted: Vec::new(),
            })
        })
    }

    /// The number of a message from its 16 bits: the one nearest to the highest seen.
    pub(super) fn extend_msg(&self, id: u16) -> u64 {
        let start = self.next_msg.saturating_sub(HALF);
        start + u64::from(id.wrapping_sub(start as u16))
    }

    fn has(&self, psn: u64) -> bool {
        let Some(open) = &self.open else { return psn < self.base };
        psn < self.base
            || (psn < self.highest && open.bits.get(psn))
            || open.aborted.iter().any(|&(from, to)| (from..to).contains(&psn))
    }

    /// A packet has arrived. Takes note of its PSN and its bytes.
    /// `capacity` is what all packets of a message carry but the last.
    pub(super) fn on_packet(&mut self, now: Time, data: &RdData, window: u64, capacity: u16) -> Verdict {
        let end = u64::from(data.offset) + u64::from(data.len);
        if data.len == 0
            || (!data.multi && data.offset != 0)
            || end > 1 << 32
            || data.len > capacity
            || data.psn > self.base + MAX_AHEAD
        {
            return Verdict::Malformed;
        }
        if self.has(data.psn) {
            return Verdict::Duplicate;
        }
        if data.psn >= self.base + window {
            return Verdict::BeyondWindow;
        }
        let msg = self.extend_msg(data.msg_id);
        if data.multi {
            let message = self.open(window).messages.entry(msg).or_default();
            if data.len < capacity {
                // Only the last packet is not full: here the message ends.
                let index = u64::from(data.offset / u32::from(capacity));
                let Some(first) = data.psn.checked_sub(index) else { return Verdict::Malformed };
                if *message.extent.get_or_insert((first, end)) != (first, end) {
                    return Verdict::Malformed;
                }
            }
            let beyond = message.extent.is_some_and(|(_, total)| end > total);
            if beyond || message.there.add(u64::from(data.offset), end) != u64::from(data.len) {
                return Verdict::Malformed;
            }
        }
        self.next_msg = self.next_msg.max(msg + 1);
        self.last_arrival = now;
        let asked = self.open.as_deref_mut().and_then(|open| open.asked.remove(&data.psn));
        let in_order = data.psn == self.base;
        if in_order && self.base == self.highest {
            self.base += 1;
            self.highest += 1;
        } else {
            self.highest = self.highest.max(data.psn + 1);
            let open = self.open(window);
            open.bits.set(data.psn);
        }
        self.advance();
        Verdict::New { msg, in_order, asked }
    }

    /// Moves `base` over what has arrived or was given up.
    fn advance(&mut self) {
        let Some(open) = self.open.as_deref_mut() else { return };
        loop {
            let run = open.bits.run_of_ones(self.base, self.highest - self.base);
            open.bits.clear_range(self.base, self.base + run);
            self.base += run;
            let Some(&(_, to)) = open.aborted.iter().find(|(from, to)| (*from..*to).contains(&self.base))
            else {
                break;
            };
            // Some of its packets may have arrived.
            open.bits.clear_range(self.base, to.min(self.highest));
            self.base = to;
            self.highest = self.highest.max(to);
        }
        open.aborted.retain(|&(_, to)| to > self.base);
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
        {
            self.open = None;
        }
    }

    /// The sender says how long a message is. True if it has been whole before that.
    pub(super) fn on_start(
        &mut self,
        (msg_id, first_psn, packets, total): (u16, u64, u32, u64),
        window: u64,
    ) -> Result<bool, Malformed> {
        let end = first_psn + u64::from(packets);
        if end > self.base.max(self.known_end) + (MAX_AHEAD << 1) || u64::from(packets) > total {
            return Err(Malformed);
        }
        let msg = self.extend_msg(msg_id);
        self.known_end = self.known_end.max(end);
        if packets == 1 {
            return Ok(self.has(first_psn));
        }
        let unknown = self.open.as_ref().is_none_or(|open| !open.messages.contains_key(&msg));
        if unknown && (first_psn..end.min(first_psn + 2)).all(|psn| self.has(psn)) {
            // No message is half there without an entry: this one is over.
            return Ok(true);
        }
        self.next_msg = self.next_msg.max(msg + 1);
        let message = self.open(window).messages.entry(msg).or_default();
        if message.there.end() > total {
            return Err(Malformed);
        }
        if *message.extent.get_or_insert((first_psn, total)) != (first_psn, total) {
            return Err(Malformed);
        }
        Ok(false)
    }

    /// Bytes of a message that is not whole, if they are known.
    pub(super) fn announced_len(&self, msg: u64) -> Option<u64> {
        self.open.as_deref()?.messages.get(&msg)?.extent.map(|(_, total)| total)
    }

    /// Whether a message is whole: then it is taken out, with the PSN of its first packet and its bytes.
    pub(super) fn take_whole(&mut self, msg: u64) -> Option<(u64, u64)> {
        let messages = &mut self.open.as_deref_mut()?.messages;
        let (first_psn, total) = messages.get(&msg)?.extent?;
        if !messages[&msg].there.is_whole(total) {
            return None;
        }
        messages.remove(&msg);
        Some((first_psn, total))
    }

    /// The sender gives a message up. True if it was not over.
    pub(super) fn on_abort(&mut self, msg_id: u16, first_psn: u64, packets: u32, window: u64) -> Option<u64> {
        let (msg, end) = (self.extend_msg(msg_id), first_psn + u64::from(packets));
        if first_psn > self.base + (MAX_AHEAD << 1) || (first_psn..end).take(2).all(|psn| self.has(psn)) {
            return None;
        }
        self.next_msg = self.next_msg.max(msg + 1);
        let open = self.open(window);
        open.messages.remove(&msg);
        open.aborted.push((first_psn, end));
        open.asked.retain(|psn, _| !(first_psn..end).contains(psn));
        self.advance();
        Some(msg)
    }

    /// A message is over. Hands out what is to be told: at once, or once all before it are over.
    pub(super) fn ended(&mut self, ended: Ended, ordered: bool, window: u64, mut tell: impl FnMut(Ended)) {
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
        } else {
            self.open(window).held.insert(ended.msg, ended.bytes);
        }
        self.close();
    }

    /// Whether packets are known to be missing.
    pub(super) fn is_waiting(&self) -> bool {
        self.base < self.highest.max(self.known_end)
    }

    /// Whether a message is on its way.
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_waiting() || self.open.as_ref().is_some_and(|open| !open.messages.is_empty())
    }

    /// The scan: what is missing and is to be asked for.
    pub(super) fn scan(&mut self, rule: &ScanRule) -> Missing {
        let ScanRule { now, period, hold, literal, window } = *rule;
        let known_end = if self.known_end == 0 { u64::MAX } else { self.known_end };
        let old = if literal { self.highest } else { self.scan_mark }.min(known_end);
        // With nothing behind it a packet is missed only when the flow has fallen silent.
        let silent = self.known_end > self.highest && now.saturating_since(self.last_arrival) >= period;
        let tail = if silent { self.known_end.min(self.base + window) } else { 0 };
        self.scan_mark = self.highest;
        let mut missing = Missing::default();
        if old <= self.base && tail <= self.base {
            return missing;
        }
        let (base, highest) = (self.base, self.highest);
        let open = self.open(window);
        let holes = (base..old.min(highest)).filter(|&psn| !open.bits.get(psn));
        let mut all: Vec<u64> = holes.chain(highest..tail).collect();
        all.retain(|psn| !open.aborted.iter().any(|&(from, to)| (from..to).contains(psn)));
        for psn in all {
            let held = open.asked.get(&psn).is_some_and(|&at| now.saturating_since(at) < hold);
            if !held && missing.has_room() {
                open.asked.insert(psn, now);
                missing.push(psn);
            }
        }
        missing
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

    const WINDOW: u64 = 4_096;
    const CAPACITY: u16 = 10;

    fn single(psn: u64) -> RdData {
        RdData { psn, msg_id: psn as u16, multi: false, offset: 0, len: 1, retransmit: false }
    }

    fn flow_with(psns: &[u64]) -> RxFlow {
        let mut flow = RxFlow::new(Time::ZERO);
        for &psn in psns {
            let verdict = flow.on_packet(Time::ZERO, &single(psn), WINDOW, CAPACITY);
            assert!(matches!(verdict, Verdict::New { .. }), "{psn}: {verdict:?}");
        }
        flow
    }

    fn scan(flow: &mut RxFlow, us: u64, literal: bool) -> Vec<u64> {
        let (period, hold) = (Duration::from_us(10), Duration::from_us(15));
        let missing =
            flow.scan(&ScanRule { now: Time::from_us(us), period, hold, literal, window: WINDOW }).runs;
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
        flow.on_packet(Time::from_us(15), &single(5), WINDOW, CAPACITY);
        assert_eq!(scan(&mut flow, 20, false), [2, 6]);
        // As printed.
        assert_eq!(scan(&mut flow_with(&there), 10, true), [2, 5, 6]);
    }

    #[test]
    fn the_end_of_a_message_is_asked_for_when_the_flow_is_silent() {
        let mut flow = flow_with(&[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(flow.on_start((8, 8, 2, 5_000), WINDOW), Ok(false));
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

    #[test]
    fn a_flow_in_order_keeps_nothing_and_duplicates_are_told() {
        let mut flow = flow_with(&[0, 1, 2]);
        assert!(!flow.is_open());
        assert_eq!(flow.on_packet(Time::ZERO, &single(1), WINDOW, CAPACITY), Verdict::Duplicate);
        assert_eq!(flow.on_packet(Time::ZERO, &single(3 + WINDOW), WINDOW, CAPACITY), Verdict::BeyondWindow);
        assert_eq!(
            flow.on_packet(Time::ZERO, &single(4), WINDOW, CAPACITY),
            Verdict::New { msg: 4, in_order: false, asked: None }
        );
        assert_eq!(flow.on_packet(Time::ZERO, &single(4), WINDOW, CAPACITY), Verdict::Duplicate);
        assert_eq!(
            flow.on_packet(Time::ZERO, &single(3), WINDOW, CAPACITY),
            Verdict::New { msg: 3, in_order: true, asked: None }
        );
        flow.ended(Ended { msg: 3, bytes: Some(1) }, false, WINDOW, |_| {});
        assert!(!flow.is_open() && flow.base == 5);
    }

    #[test]
    fn messages_in_order_wait_for_those_before_them() {
        let mut flow = flow_with(&[]);
        let mut told = vec![];
        for msg in [1, 2, 0, 3] {
            let bytes = (msg != 2).then_some(msg + 100);
            flow.ended(Ended { msg, bytes }, true, WINDOW, |ended| told.push((ended.msg, ended.bytes)));
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
        assert!(matches!(flow.on_packet(Time::ZERO, &part, WINDOW, CAPACITY), Verdict::New { .. }));
        assert!(matches!(
            flow.on_packet(Time::ZERO, &RdData { msg_id: 2, ..single(5) }, WINDOW, CAPACITY),
            Verdict::New { .. }
        ));
        assert_eq!(flow.on_abort(1, 1, 4, WINDOW), Some(1));
        assert_eq!((flow.base, flow.on_abort(1, 1, 4, WINDOW)), (6, None));
        assert_eq!(
            flow.on_packet(Time::ZERO, &RdData { psn: 3, ..part }, WINDOW, CAPACITY),
            Verdict::Duplicate
        );
    }
}
