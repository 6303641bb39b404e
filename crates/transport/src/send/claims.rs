//! Byte ranges of the peer's memory that requests in progress write or read, and that a later WRITE must not
//! overtake.

use alloc::collections::{BTreeMap, VecDeque};

use pathweave_wire::Operation;

use super::message::Message;

/// Bytes of the peer's memory, at least one, under the key that names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    rkey: u64,
    first: u64,
    last: u64,
}

impl Range {
    /// Range that a request accesses, if any.
    fn of(message: &Message) -> Option<Range> {
        let touches = matches!(message.op, Operation::Write | Operation::WriteImm | Operation::ReadRequest);
        (touches && message.len > 0).then(|| Range {
            rkey: message.rkey,
            first: message.remote_addr,
            last: message.remote_addr.saturating_add(message.len - 1),
        })
    }

    fn overlaps(&self, other: &Range) -> bool {
        self.rkey == other.rkey && self.first <= other.last && other.first <= self.last
    }

    /// Smallest range that contains this one and `other`, which has the same key.
    fn with(&self, other: &Range) -> Range {
        Range { first: self.first.min(other.first), last: self.last.max(other.last), ..*self }
    }
}

/// Rule by which WRITEs claim their bytes until they are complete. READs always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// The peer places packets as they arrive: a WRITE must wait for those that it overlaps.
    Claim,
    /// The peer accepts packets in order only, so that WRITEs are carried out in order anyway (go-back-N).
    LandInOrder,
}

/// Bytes claimed by requests in progress. Computed when a WRITE first needs them, and dropped when nothing is in
/// progress.
#[derive(Debug)]
pub(crate) struct Claims {
    writes: Writes,
    known: Known,
}

#[derive(Debug)]
enum Known {
    /// Not computed.
    Nothing,
    /// All claims have one key and lie within this range; `None` if there are no claims. A stream of consecutive
    /// WRITEs never needs more.
    Within(Option<Range>),
    Exactly(Exact),
}

/// Claims as single ranges.
#[derive(Debug, Default)]
struct Exact {
    /// Last byte by key and first byte. Ranges of WRITEs do not overlap, or one of them would be waiting.
    writes: BTreeMap<(u64, u64), u64>,
    /// Ranges of READs, which may overlap. They are few, and end in the order in which they began.
    reads: VecDeque<Range>,
}

impl Claims {
    pub(crate) fn new(writes: Writes) -> Self {
        Claims { writes, known: Known::Nothing }
    }

    /// Range that a request claims, if any.
    fn claim(&self, message: &Message) -> Option<Range> {
        let passes = self.writes == Writes::LandInOrder && message.op != Operation::ReadRequest;
        if passes { None } else { Range::of(message) }
    }

    /// Returns true if a WRITE overlaps no claim of the requests in progress.
    pub(crate) fn admit(&mut self, write: &Message, under_way: &VecDeque<Message>) -> bool {
        let Some(range) = Range::of(write) else { return true };
        if let Known::Nothing = self.known {
            self.look(under_way);
        }
        match &self.known {
            Known::Within(None) => return true,
            Known::Within(Some(all)) if all.rkey == range.rkey && !all.overlaps(&range) => return true,
            Known::Within(Some(_)) => self.look_closely(under_way),
            Known::Nothing | Known::Exactly(_) => {}
        }
        let Known::Exactly(exact) = &self.known else { return true };
        exact.is_free(&range)
    }

    /// Adds the claim of a request that is now in progress, the last one of them.
    pub(crate) fn began(&mut self, message: &Message, under_way: &VecDeque<Message>) {
        let Some(range) = self.claim(message) else { return };
        match &mut self.known {
            Known::Nothing => {}
            Known::Within(None) => self.known = Known::Within(Some(range)),
            Known::Within(Some(all)) if all.rkey == range.rkey => *all = all.with(&range),
            Known::Within(Some(_)) => self.look_closely(under_way),
            Known::Exactly(exact) => exact.add(message, range),
        }
    }

    /// Removes the claim of a complete request, the first one in progress.
    pub(crate) fn ended(&mut self, message: &Message, left: &VecDeque<Message>) {
        if left.is_empty() {
            self.known = Known::Nothing;
        } else if let Some(range) = self.claim(message)
            && let Known::Exactly(exact) = &mut self.known
        {
            exact.remove(message, range);
        }
    }

    fn look(&mut self, under_way: &VecDeque<Message>) {
        let mut all: Option<Range> = None;
        for range in under_way.iter().filter_map(|message| self.claim(message)) {
            match &mut all {
                Some(all) if all.rkey != range.rkey => return self.look_closely(under_way),
                Some(all) => *all = all.with(&range),
                None => all = Some(range),
            }
        }
        self.known = Known::Within(all);
    }

    #[cold]
    fn look_closely(&mut self, under_way: &VecDeque<Message>) {
        let mut exact = Exact::default();
        for message in under_way {
            if let Some(range) = self.claim(message) {
                exact.add(message, range);
            }
        }
        self.known = Known::Exactly(exact);
    }

    /// Equals [`admit`](Self::admit), by comparison with each request, for tests.
    pub(crate) fn admits_slowly(&self, write: &Message, under_way: &VecDeque<Message>) -> bool {
        let mut claims = under_way.iter().filter_map(|message| self.claim(message));
        Range::of(write).is_none_or(|range| !claims.any(|claim| claim.overlaps(&range)))
    }
}

impl Exact {
    fn is_free(&self, range: &Range) -> bool {
        // Of disjoint ranges, the last one that begins at or before the end of this one reaches furthest.
        let before = self.writes.range(..=(range.rkey, range.last)).next_back();
        let written = before.is_some_and(|((rkey, _), last)| *rkey == range.rkey && *last >= range.first);
        !written && !self.reads.iter().any(|read| read.overlaps(range))
    }

    fn add(&mut self, message: &Message, range: Range) {
        if message.op == Operation::ReadRequest {
            self.reads.push_back(range);
        } else {
            self.writes.insert((range.rkey, range.first), range.last);
        }
    }

    fn remove(&mut self, message: &Message, range: Range) {
        if message.op == Operation::ReadRequest {
            let first = self.reads.pop_front();
            debug_assert_eq!(first, Some(range), "requests end in the order in which they began");
        } else {
            self.writes.remove(&(range.rkey, range.first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Buffer, Op, WorkRequest};
    use pathweave_units::Rng;

    fn message(op: Op, len: u64) -> Message {
        Message::from_request(&WorkRequest { wr_id: 0, op, local: Buffer(0), len })
    }
    fn write(rkey: u64, remote_addr: u64, len: u64) -> Message {
        message(Op::Write { rkey, remote_addr }, len)
    }
    fn read(rkey: u64, remote_addr: u64, len: u64) -> Message {
        message(Op::Read { rkey, remote_addr }, len)
    }

    /// Requests in progress with their claims, as in a stream.
    struct Stream {
        claims: Claims,
        under_way: VecDeque<Message>,
    }

    impl Stream {
        fn new(writes: Writes) -> Self {
            Stream { claims: Claims::new(writes), under_way: VecDeque::new() }
        }
        fn begin(&mut self, message: Message) {
            self.under_way.push_back(message);
            self.claims.began(&message, &self.under_way);
        }
        fn end(&mut self) {
            let message = self.under_way.pop_front().expect("one is under way");
            self.claims.ended(&message, &self.under_way);
        }
        fn admits(&mut self, write: Message) -> bool {
            self.claims.admit(&write, &self.under_way)
        }
    }

    #[test]
    fn a_write_waits_for_what_it_overlaps_by_a_byte() {
        let mut stream = Stream::new(Writes::Claim);
        stream.begin(write(7, 100, 50));
        stream.begin(read(7, 300, 1));
        assert!(stream.admits(write(7, 150, 150)) && stream.admits(write(7, 50, 50)));
        assert!(!stream.admits(write(7, 149, 1)) && !stream.admits(write(7, 99, 2)));
        assert!(!stream.admits(write(7, 300, 1)), "a READ claims its bytes, too");
        assert!(stream.admits(write(7, 120, 0)), "nothing overlaps nothing");
        assert!(stream.admits(write(8, 100, 50)), "other keys are not compared");
        stream.end();
        assert!(stream.admits(write(7, 149, 1)) && !stream.admits(write(7, 300, 1)));
        stream.end();
        assert!(stream.admits(write(7, 300, 1)));
    }

    #[test]
    fn where_writes_land_in_order_only_reads_claim() {
        let mut stream = Stream::new(Writes::LandInOrder);
        stream.begin(write(7, 100, 50));
        assert!(stream.admits(write(7, 100, 50)));
        stream.begin(read(7, 120, 1));
        assert!(!stream.admits(write(7, 100, 50)) && stream.admits(write(7, 100, 20)));
    }

    #[test]
    fn writes_one_behind_the_other_take_no_list() {
        let mut stream = Stream::new(Writes::Claim);
        stream.begin(write(7, 0, 10));
        for n in 1..1_000 {
            assert!(stream.admits(write(7, 10 * n, 10)));
            stream.begin(write(7, 10 * n, 10));
            if n > 20 {
                stream.end();
            }
        }
        assert!(matches!(stream.claims.known, Known::Within(Some(Range { first: 0, last: 9_999, .. }))));
        // When a ring buffer wraps, a list is made of the requests in progress.
        assert!(stream.admits(write(7, 0, 10)));
        let Known::Exactly(exact) = &stream.claims.known else { panic!("{:?}", stream.claims.known) };
        assert_eq!(exact.writes.len(), stream.under_way.len());
    }

    #[test]
    fn the_end_of_memory_does_not_wrap() {
        let mut stream = Stream::new(Writes::Claim);
        stream.begin(write(7, u64::MAX - 1, 5));
        assert!(stream.admits(write(7, 0, 3)) && !stream.admits(write(7, u64::MAX, 1)));
    }

    #[test]
    fn random_requests_are_judged_as_by_comparing_with_each() {
        let mut rng = Rng::for_component(5, "claims", 0);
        for round in 0..40 {
            let writes = if round % 4 == 3 { Writes::LandInOrder } else { Writes::Claim };
            let (keys, space) = (1 + rng.below(2), 20 + rng.below(400));
            let mut stream = Stream::new(writes);
            let mut admitted = 0;
            for _ in 0..500 {
                let rkey = rng.below(keys).into();
                let (at, len) = (rng.below(space).into(), rng.below(12).into());
                match rng.below(4) {
                    0 => stream.begin(read(rkey, at, len)),
                    1 if !stream.under_way.is_empty() => stream.end(),
                    _ => {
                        let asks = write(rkey, at, len);
                        let free = stream.claims.admits_slowly(&asks, &stream.under_way);
                        assert_eq!(stream.admits(asks), free, "round {round}: {asks:?}");
                        if free {
                            stream.begin(asks);
                            admitted += 1;
                        }
                    }
                }
            }
            assert!(admitted > 20, "round {round}");
        }
    }
}
