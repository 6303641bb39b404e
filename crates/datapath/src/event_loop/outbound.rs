//! Outgoing packets, gathered into batches. A batch has packets of one size for one peer on one path, which leave in
//! one send call.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use pathweave_units::PathId;
use pathweave_wire::Ecn;

use crate::backend::{Backend, Limits, Rail, SendBatch, Sent};
use crate::crc;

/// Largest number of spare buffers kept.
const SPARE: usize = 64;
/// Largest number of batches that may wait for room on some rails while others have room.
const MOST_WAITING: usize = 256;

/// Destination address, rail and path of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendRoute {
    pub(crate) to: SocketAddr,
    pub(crate) rail: Rail,
    pub(crate) path: PathId,
}

/// Properties that all packets of a batch share, except for the size: the last packet may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) lane: SendRoute,
    pub(crate) ecn: Ecn,
    pub(crate) ends: Ends,
}

/// Trailer of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// No trailer: the packet is complete as written.
    AsWritten,
    /// A CRC. The writer leaves the tag at the end, with which the CRC is combined. CRCs are computed for several
    /// packets at a time ([`crc`](crate::crc)).
    Crc,
}

#[derive(Debug)]
struct Batch {
    target: Target,
    segment_bytes: usize,
    segments: usize,
    /// Number of bytes of `bytes` in use.
    len: usize,
    /// Number of these, from the front, that belong to packets with complete trailers.
    ended: usize,
    /// Buffer that only grows, so that it is zeroed once and not for each packet.
    bytes: Vec<u8>,
}

/// Counters of all batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Batches sent, each with one system call.
    pub batches: u64,
    /// Datagrams in these batches.
    pub datagrams: u64,
    /// Bytes of these datagrams.
    pub bytes: u64,
    /// Times a socket had no room.
    pub busy: u64,
    /// Batches that the system refused permanently: no route, too long for the path.
    pub failed: u64,
}

/// A batch that the system refused permanently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendError {
    /// Destination of the batch.
    pub to: SocketAddr,
    /// Error of the system. A message too long for the link shows as an uncategorised error.
    pub kind: io::ErrorKind,
}

/// Batches being filled, at most one for each path of each rail, and batches that found no room.
pub(crate) struct Outbound {
    limits: Limits,
    rails: usize,
    paths: usize,
    /// Index in `filling` of each path's batch, first those of the first rail, then of the next.
    of_path: Vec<Option<u16>>,
    filling: Vec<Batch>,
    /// Batches that are full, or that found no room.
    ready: VecDeque<Batch>,
    /// Bit set of the rails on which batches of `ready` found no room.
    stuck: u64,
    spare: Vec<Vec<u8>>,
    counters: SendCounters,
    /// Last permanent failure.
    failure: Option<SendError>,
}

impl Outbound {
    pub(crate) fn new(limits: Limits, paths: u16, rails: usize) -> Self {
        Outbound {
            limits,
            rails,
            paths: paths.into(),
            of_path: vec![None; usize::from(paths) * rails],
            filling: Vec::new(),
            ready: VecDeque::new(),
            stuck: 0,
            spare: Vec::new(),
            counters: SendCounters::default(),
            failure: None,
        }
    }

    pub(crate) fn counters(&self) -> SendCounters {
        self.counters
    }

    /// Returns true if batches wait for room.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck != 0
    }

    /// Returns true if no rail has room, or if too many batches wait. Only control packets should be added then. If
    /// one of several rails is slower than its traffic, the others continue.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.stuck.count_ones() as usize >= self.rails || self.ready.len() > MOST_WAITING
    }

    /// Returns the index of a path's batch in `of_path`.
    #[inline]
    fn slot(&self, lane: SendRoute) -> usize {
        lane.rail.index() * self.paths + lane.path.index()
    }

    /// Returns the last error of the system that no retry can resolve.
    pub(crate) fn last_error(&self) -> Option<SendError> {
        self.failure
    }

    /// Adds a packet of `len` bytes, which `write` writes. `write` may refuse by returning false.
    #[inline]
    pub(crate) fn add(&mut self, target: Target, len: usize, write: impl FnOnce(&mut [u8]) -> bool) {
        let slot = self.slot(target.lane);
        let index = match self.of_path[slot] {
            Some(index) if self.filling[usize::from(index)].takes(&target, len, self.limits) => index,
            Some(index) => {
                // The path's batch is complete, and a fresh one takes its place.
                let fresh = self.fresh(target, len);
                let full = std::mem::replace(&mut self.filling[usize::from(index)], fresh);
                self.finish(full);
                index
            }
            None => {
                let fresh = self.fresh(target, len);
                self.filling.push(fresh);
                let index = (self.filling.len() - 1) as u16;
                self.of_path[slot] = Some(index);
                index
            }
        };
        let batch = &mut self.filling[usize::from(index)];
        let end = batch.len + len;
        if batch.bytes.len() < end {
            batch.bytes.resize((2 * end).min(self.limits.batch_bytes.max(end)), 0);
        }
        if write(&mut batch.bytes[batch.len..end]) {
            batch.segments += 1;
            batch.len = end;
            if batch.segments.is_multiple_of(crc::AT_ONCE) {
                batch.end_packets();
            }
        }
    }

    /// Returns true if a packet for this peer is about to leave on this path.
    fn leaves_for(&self, lane: SendRoute) -> bool {
        let open = self.of_path[self.slot(lane)].map(|index| &self.filling[usize::from(index)]);
        open.is_some_and(|batch| batch.leaves_for(lane))
    }

    /// Returns a lane on which a packet for the same peer is about to leave: `lane` itself if possible, otherwise
    /// another path of the same rail.
    pub(crate) fn lane_along(&self, lane: SendRoute) -> Option<SendRoute> {
        if self.leaves_for(lane) {
            return Some(lane);
        }
        let others = self.filling.iter().filter(|batch| batch.target.lane.rail == lane.rail);
        others
            .map(|batch| (batch, batch.target.lane))
            .find(|(batch, _)| batch.leaves_for(lane))
            .map(|(_, lane)| lane)
    }

    /// Adds a packet without a required congestion codepoint. It joins the batch that leaves for the same peer on the
    /// same path, if there is one. An answer thus shares a batch with data: one system call here, and one wake-up at
    /// the peer.
    pub(crate) fn add_along(
        &mut self,
        lane: SendRoute,
        ends: Ends,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> bool,
    ) {
        let open = self.of_path[self.slot(lane)].filter(|_| self.leaves_for(lane));
        let Some(open) = open else {
            return self.add(Target { lane, ecn: Ecn::NotCapable, ends }, len, write);
        };
        let batch = &mut self.filling[usize::from(open)];
        if batch.target.ends == ends && batch.takes_in_front(len, self.limits) {
            batch.put_in_front(len, write);
        } else {
            let target = Target { ends, ..batch.target };
            self.add(target, len, write);
        }
    }

    /// Sends everything that was added, in order, as far as there is room.
    pub(crate) fn flush<B: Backend>(&mut self, backend: &mut B) {
        for index in 0..self.filling.len() {
            let batch = std::mem::replace(&mut self.filling[index], Batch::EMPTY);
            let slot = self.slot(batch.target.lane);
            self.of_path[slot] = None;
            self.finish(batch);
        }
        self.filling.clear();
        self.stuck = 0;
        for _ in 0..self.ready.len() {
            let Some(batch) = self.ready.pop_front() else { break };
            let rail = 1 << batch.target.lane.rail.0;
            let waits = if self.stuck & rail == 0 { self.try_send(backend, batch) } else { Some(batch) };
            if let Some(batch) = waits {
                self.ready.push_back(batch);
                self.stuck |= rail;
            }
        }
        backend.flush();
    }

    fn fresh(&mut self, target: Target, segment_bytes: usize) -> Batch {
        Batch {
            target,
            segment_bytes,
            segments: 0,
            len: 0,
            ended: 0,
            bytes: self.spare.pop().unwrap_or_default(),
        }
    }

    /// Completes a batch: nothing more is added to it.
    fn finish(&mut self, mut batch: Batch) {
        if batch.segments == 0 {
            return self.recycle(batch.bytes);
        }
        batch.end_packets();
        self.ready.push_back(batch);
    }

    /// Sends a batch. Returns it if there is no room.
    fn try_send<B: Backend>(&mut self, backend: &mut B, batch: Batch) -> Option<Batch> {
        let Target { lane: SendRoute { to, rail, path }, ecn, .. } = batch.target;
        let bytes = &batch.bytes[..batch.len];
        match backend.send(&SendBatch {
            to,
            rail,
            path: Some(path),
            ecn,
            segment_bytes: batch.segment_bytes,
            bytes,
        }) {
            Ok(Sent::Busy) => {
                self.counters.busy += 1;
                return Some(batch);
            }
            Ok(Sent::Done) => {
                self.counters.batches += 1;
                self.counters.datagrams += batch.segments as u64;
                self.counters.bytes += batch.len as u64;
            }
            Err(error) => {
                self.counters.failed += 1;
                self.failure = Some(SendError { to, kind: error.kind() });
            }
        }
        self.recycle(batch.bytes);
        None
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }
}

impl Batch {
    const EMPTY: Batch = Batch {
        target: Target {
            lane: SendRoute {
                to: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0),
                rail: Rail::FIRST,
                path: PathId(0),
            },
            ecn: Ecn::NotCapable,
            ends: Ends::AsWritten,
        },
        segment_bytes: 0,
        segments: 0,
        len: 0,
        ended: 0,
        bytes: Vec::new(),
    };

    /// Returns true if the batch has a packet for this peer.
    fn leaves_for(&self, lane: SendRoute) -> bool {
        self.target.lane.to == lane.to && self.segments > 0
    }

    /// Returns true if a packet of `len` bytes can follow the others.
    #[inline]
    fn takes(&self, target: &Target, len: usize, limits: Limits) -> bool {
        self.target == *target
            && len <= self.segment_bytes
            // A short packet ends a batch.
            && self.len == self.segments * self.segment_bytes
            && self.segments < limits.batch_segments
            && self.len + len <= limits.batch_bytes
    }

    /// Writes the trailers of all packets that have none yet.
    fn end_packets(&mut self) {
        if self.target.ends == Ends::Crc {
            crc::write(&mut self.bytes[self.ended..self.len], self.segment_bytes);
        }
        self.ended = self.len;
    }

    /// Returns true if a packet longer than the only packet of the batch can be put before it, as the shorter one
    /// must be the last.
    fn takes_in_front(&self, len: usize, limits: Limits) -> bool {
        self.segments == 1
            && len > self.segment_bytes
            && limits.batch_segments > 1
            && self.len + len <= limits.batch_bytes
    }

    fn put_in_front(&mut self, len: usize, write: impl FnOnce(&mut [u8]) -> bool) {
        let (behind, end) = (self.len, self.len + len);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes.copy_within(..behind, len);
        if write(&mut self.bytes[..len]) {
            (self.segments, self.segment_bytes, self.len) = (2, len, end);
        } else {
            self.bytes.copy_within(len..end, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Arrivals, Received, Wait, Waker};

    /// Accepts batches while it has room, but none of the second rail while that is full.
    #[derive(Default)]
    struct Sink {
        room: usize,
        second_is_full: bool,
        sent: Vec<(u16, usize, Vec<u8>)>,
    }

    impl Backend for Sink {
        fn paths(&self) -> u16 {
            4
        }
        fn local_addr(&self) -> SocketAddr {
            "127.0.0.1:1".parse().unwrap()
        }
        fn limits(&self) -> Limits {
            LIMITS
        }
        fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
            if self.room == 0 || self.second_is_full && batch.rail == Rail(1) {
                return Ok(Sent::Busy);
            }
            self.room -= 1;
            self.sent.push((batch.path.map_or(99, |path| path.0), batch.segment_bytes, batch.bytes.to_vec()));
            Ok(Sent::Done)
        }
        fn receive(&mut self, _: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals> {
            Ok(Arrivals::None)
        }
        fn wait(&mut self, _: Wait) -> io::Result<()> {
            Ok(())
        }
        fn waker(&self) -> Waker {
            Waker::new().unwrap()
        }
    }

    const LIMITS: Limits = Limits { batch_segments: 3, batch_bytes: 100 };

    fn target(path: u16) -> Target {
        let lane = SendRoute { to: "10.0.0.1:5".parse().unwrap(), rail: Rail::FIRST, path: PathId(path) };
        Target { lane, ecn: Ecn::Capable0, ends: Ends::AsWritten }
    }

    fn add(outbound: &mut Outbound, path: u16, len: usize, byte: u8) {
        outbound.add(target(path), len, |out| {
            out.fill(byte);
            true
        });
    }

    #[test]
    fn packets_of_a_path_leave_together_until_one_is_short() {
        let (mut outbound, mut sink) = (Outbound::new(LIMITS, 4, 1), Sink { room: 99, ..Sink::default() });
        for (path, len, byte) in [(0, 20, 1), (1, 10, 2), (0, 20, 3), (0, 5, 4), (0, 20, 5), (1, 11, 6)] {
            add(&mut outbound, path, len, byte);
        }
        outbound.flush(&mut sink);
        let joined = |parts: &[(u8, usize)]| {
            parts.iter().flat_map(|&(byte, len)| std::iter::repeat_n(byte, len)).collect::<Vec<u8>>()
        };
        assert_eq!(
            sink.sent,
            [
                // Full batches first, then the paths in the order of their first packet.
                (0, 20, joined(&[(1, 20), (3, 20), (4, 5)])),
                (1, 10, joined(&[(2, 10)])),
                (0, 20, joined(&[(5, 20)])),
                (1, 11, joined(&[(6, 11)])),
            ]
        );
        assert_eq!(outbound.counters().datagrams, 6);
    }

    #[test]
    fn an_answer_finds_what_leaves_for_its_peer_on_whatever_path() {
        let mut outbound = Outbound::new(LIMITS, 4, 2);
        let lane = |path| target(path).lane;
        assert_eq!(outbound.lane_along(lane(1)), None, "nothing leaves");
        add(&mut outbound, 2, 10, 1);
        assert_eq!(outbound.lane_along(lane(1)), Some(lane(2)));
        add(&mut outbound, 1, 10, 2);
        assert_eq!(outbound.lane_along(lane(1)), Some(lane(1)), "its own path comes first");
        let stranger = SendRoute { to: "10.0.0.2:5".parse().unwrap(), ..lane(1) };
        let elsewhere = SendRoute { rail: Rail(1), ..lane(1) };
        assert_eq!((outbound.lane_along(stranger), outbound.lane_along(elsewhere)), (None, None));
    }

    #[test]
    fn a_rail_without_room_holds_up_no_other() {
        let mut outbound = Outbound::new(LIMITS, 4, 2);
        let mut sink = Sink { room: 99, second_is_full: true, ..Sink::default() };
        let add = |outbound: &mut Outbound, rail, path, byte| {
            let target = target(path);
            let target = Target { lane: SendRoute { rail: Rail(rail), ..target.lane }, ..target };
            outbound.add(target, 10, |out| {
                out.fill(byte);
                true
            });
        };
        for (rail, path, byte) in [(1, 2, 1), (0, 2, 2), (1, 3, 3), (0, 1, 4)] {
            add(&mut outbound, rail, path, byte);
        }
        outbound.flush(&mut sink);
        let bytes = |sink: &Sink| sink.sent.iter().map(|(_, _, bytes)| bytes[0]).collect::<Vec<_>>();
        assert_eq!(bytes(&sink), [2, 4], "one path, two rails: two batches");
        assert!(outbound.is_stuck() && !outbound.is_full());
        add(&mut outbound, 1, 2, 5);
        sink.second_is_full = false;
        outbound.flush(&mut sink);
        assert_eq!(bytes(&sink), [2, 4, 1, 3, 5], "in their order");
        assert!(!outbound.is_stuck());
        // Neither rail has room.
        sink.room = 0;
        add(&mut outbound, 0, 0, 6);
        add(&mut outbound, 1, 0, 7);
        outbound.flush(&mut sink);
        assert!(outbound.is_full());
    }

    fn add_along(outbound: &mut Outbound, path: u16, len: usize, byte: u8) {
        outbound.add_along(target(path).lane, Ends::AsWritten, len, |out| {
            out.fill(byte);
            true
        });
    }

    #[test]
    fn an_answer_goes_along_with_data_of_its_path() {
        let (mut outbound, mut sink) = (Outbound::new(LIMITS, 4, 1), Sink { room: 99, ..Sink::default() });
        // Longer than the data, shorter, and on a path without data.
        add(&mut outbound, 0, 10, 1);
        add_along(&mut outbound, 0, 15, 2);
        add(&mut outbound, 1, 20, 3);
        add_along(&mut outbound, 1, 15, 4);
        add_along(&mut outbound, 2, 15, 5);
        outbound.flush(&mut sink);
        let joined = |parts: &[(u8, usize)]| {
            parts.iter().flat_map(|&(byte, len)| std::iter::repeat_n(byte, len)).collect::<Vec<u8>>()
        };
        let all = [
            (0, 15, joined(&[(2, 15), (1, 10)])),
            (1, 20, joined(&[(3, 20), (4, 15)])),
            (2, 15, joined(&[(5, 15)])),
        ];
        assert_eq!(sink.sent, all);
        assert_eq!(outbound.counters().datagrams, 5);
    }

    #[test]
    fn an_answer_that_cannot_go_along_goes_alone_and_one_that_is_not_written_leaves_no_trace() {
        let (mut outbound, mut sink) = (Outbound::new(LIMITS, 4, 1), Sink { room: 99, ..Sink::default() });
        // Behind a short packet, before two, and beyond the limit of 100 bytes.
        for len in [20, 5] {
            add(&mut outbound, 0, len, 1);
        }
        add_along(&mut outbound, 0, 30, 2);
        add(&mut outbound, 1, 45, 3);
        add_along(&mut outbound, 1, 60, 4);
        add(&mut outbound, 2, 10, 5);
        outbound.add_along(target(2).lane, Ends::AsWritten, 20, |_| false);
        add(&mut outbound, 2, 10, 6);
        // Data of another peer is no batch to join.
        add(&mut outbound, 3, 20, 7);
        let other = SendRoute { to: "10.0.0.2:5".parse().unwrap(), ..target(3).lane };
        outbound.add_along(other, Ends::AsWritten, 10, |_| true);
        outbound.flush(&mut sink);
        let mut sizes: Vec<_> = sink.sent.iter().map(|(path, len, all)| (*path, *len, all.len())).collect();
        sizes.sort_unstable();
        let all = [(0, 20, 25), (0, 30, 30), (1, 45, 45), (1, 60, 60), (2, 10, 20), (3, 10, 10), (3, 20, 20)];
        assert_eq!(sizes, all);
        let two = sink.sent.iter().find(|(path, ..)| *path == 2).map(|(.., all)| all.clone());
        assert_eq!(two, Some([[5; 10], [6; 10]].concat()));
    }

    #[test]
    fn crcs_are_made_when_a_batch_is_whole_and_stay_apart_from_what_has_none() {
        let (mut outbound, mut sink) = (Outbound::new(LIMITS, 4, 1), Sink { room: 99, ..Sink::default() });
        let crc = Target { ends: Ends::Crc, ..target(0) };
        for (len, byte) in [(20, 1), (20, 2), (9, 3)] {
            outbound.add(crc, len, |out| {
                out.fill(byte);
                true
            });
        }
        add(&mut outbound, 0, 9, 4);
        outbound.flush(&mut sink);
        assert_eq!(
            sink.sent.iter().map(|(_, len, all)| (*len, all.len())).collect::<Vec<_>>(),
            [(20, 49), (9, 9)]
        );
        for packet in sink.sent[0].2.chunks(20) {
            let (content, end) = packet.split_last_chunk::<4>().unwrap();
            let tag = u32::from_le_bytes([packet[0]; 4]);
            assert_eq!((pathweave_wire::datagram_crc(content) ^ tag).to_le_bytes(), *end);
        }
        assert_eq!(sink.sent[1].2, [4; 9]);
    }

    #[test]
    fn limits_of_the_backend_hold() {
        let (mut outbound, mut sink) = (Outbound::new(LIMITS, 4, 1), Sink { room: 99, ..Sink::default() });
        for byte in 0..4 {
            add(&mut outbound, 0, 10, byte);
        }
        for byte in 0..3 {
            add(&mut outbound, 1, 40, byte);
        }
        outbound.flush(&mut sink);
        let sizes: Vec<_> = sink.sent.iter().map(|(path, _, bytes)| (*path, bytes.len())).collect();
        assert_eq!(sizes, [(0, 30), (1, 80), (0, 10), (1, 40)]);
    }

    #[test]
    fn packets_without_room_leave_later_in_order() {
        let (mut outbound, mut sink) = (Outbound::new(LIMITS, 4, 1), Sink { room: 1, ..Sink::default() });
        for path in 0..3 {
            add(&mut outbound, path, 10, path as u8);
        }
        outbound.flush(&mut sink);
        assert_eq!((sink.sent.len(), outbound.is_stuck()), (1, true));
        outbound.flush(&mut sink);
        assert!(outbound.is_stuck());
        sink.room = 9;
        outbound.flush(&mut sink);
        assert!(!outbound.is_stuck());
        assert_eq!(sink.sent.iter().map(|(path, ..)| *path).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_packet_that_cannot_be_written_leaves_no_hole() {
        let (mut outbound, mut sink) = (Outbound::new(LIMITS, 4, 1), Sink { room: 9, ..Sink::default() });
        add(&mut outbound, 0, 10, 1);
        outbound.add(target(0), 10, |_| false);
        add(&mut outbound, 0, 10, 2);
        outbound.add(target(1), 10, |_| false);
        outbound.flush(&mut sink);
        assert_eq!(sink.sent.len(), 1);
        assert_eq!(sink.sent[0].2.len(), 20);
    }
}
