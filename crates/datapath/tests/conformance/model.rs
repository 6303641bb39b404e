//! Expected memory and completions, derived from the requests alone, without code of either side.

use std::collections::VecDeque;
use std::ops::Range;

use pathweave_datapath::{Opcode, Status};
use pathweave_units::Rng;

use crate::world::{Done, End, Key, Order, Request, Start, Verb, World};

/// Bytes between areas, which must not change.
const GUARD: usize = 13;
/// Bit that is set in the numbers of receives.
pub(crate) const RECEIVE: u64 = 1 << 32;

/// All completions of a run, in the order in which each end saw them. Requests and receives are separate, as verbs
/// guarantee no order between the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcript {
    pub(crate) requests: [Vec<Done>; 2],
    pub(crate) receives: [Vec<Done>; 2],
}

/// Expected content of both memories, and the completions still due.
pub(crate) struct Model {
    memory: [Vec<u8>; 2],
    used: [usize; 2],
    due_requests: [VecDeque<Done>; 2],
    due_receives: [VecDeque<Done>; 2],
    posted: u64,
    rng: Rng,
    context: String,
    pub(crate) transcript: Transcript,
}

impl Model {
    /// Fills both memories of a newly opened world.
    pub(crate) fn new<W: World>(world: &mut W, memory_bytes: usize, seed: u64, context: String) -> Self {
        let memory = [vec![0; memory_bytes], vec![0; memory_bytes]];
        let mut model = Model {
            memory,
            used: [0; 2],
            due_requests: Default::default(),
            due_receives: Default::default(),
            posted: 0,
            rng: Rng::for_component(seed, "conformance", 0),
            context: format!("{}, {context}, seed {seed}", W::NAME),
            transcript: Transcript::default(),
        };
        End::BOTH.into_iter().for_each(|end| model.fill(world, end));
        model
    }

    /// Fills the memory of an end with random bytes.
    pub(crate) fn fill<W: World>(&mut self, world: &mut W, end: End) {
        for bytes in self.memory[end.index()].chunks_mut(8) {
            bytes.copy_from_slice(&self.rng.next_u64().to_le_bytes()[..bytes.len()]);
        }
        world.write(end, 0, &self.memory[end.index()]);
    }

    /// Permits reuse of all areas. Everything posted must be complete.
    pub(crate) fn rewind(&mut self) {
        self.used = [0; 2];
    }

    fn area(&mut self, end: End, len: usize) -> Range<usize> {
        let start = self.used[end.index()] + GUARD;
        self.used[end.index()] = start + len;
        assert!(start + len + GUARD <= self.memory[end.index()].len(), "the script fits into the memory");
        start..start + len
    }

    /// Reserves bytes of an end for requests of the other end that overlap. Returns their offset.
    pub(crate) fn shared(&mut self, end: End, len: usize) -> usize {
        self.area(end, len).start
    }

    /// Returns a random element.
    pub(crate) fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.below(of.len() as u32) as usize]
    }

    /// Returns a request of `size` bytes at `end` between separate areas, or with the area at `of` of the other end.
    fn request(&mut self, end: End, verb: Verb, size: usize, of: Option<usize>) -> Request {
        let local = self.area(end, size);
        let remote = match of {
            Some(remote) => remote,
            None => self.area(end.other(), size).start,
        };
        self.request_between(verb, local, remote)
    }

    fn request_between(&mut self, verb: Verb, local: Range<usize>, remote: usize) -> Request {
        self.posted += 1;
        let imm = self.rng.next_u64() as u32;
        Request { wr_id: self.posted, verb, local, remote, imm, key: Key::Right, start: Start::AtOnce }
    }

    /// Posts a request that must succeed. Returns the offset of its bytes at the other end.
    pub(crate) fn post<W: World>(
        &mut self,
        world: &mut W,
        end: End,
        verb: Verb,
        size: usize,
        of: Option<usize>,
    ) -> usize {
        self.post_at(world, end, (verb, size, Start::AtOnce), of)
    }

    /// Posts a request that must succeed, with the given start condition.
    pub(crate) fn post_at<W: World>(
        &mut self,
        world: &mut W,
        end: End,
        (verb, size, start): (Verb, usize, Start),
        of: Option<usize>,
    ) -> usize {
        let request = self.request(end, verb, size, of);
        self.post_request(world, end, &Request { start, ..request })
    }

    /// Posts a READ, and behind a fence a request that carries the bytes read to another place.
    pub(crate) fn post_what_is_read<W: World>(&mut self, world: &mut W, end: End, verb: Verb, size: usize) {
        let read = self.request(end, Verb::Read, size, None);
        self.post_request(world, end, &read);
        let place = self.area(end.other(), size).start;
        let request = self.request_between(verb, read.local, place);
        self.post_request(world, end, &Request { start: Start::Fenced, ..request });
    }

    fn post_request<W: World>(&mut self, world: &mut W, end: End, request: &Request) -> usize {
        let (verb, size) = (request.verb, request.local.len());
        let (local, remote) = (request.local.clone(), request.remote..request.remote + size);
        let (here, there) = (end.index(), end.other().index());
        let opcode = match verb {
            Verb::Send | Verb::SendImm => Opcode::Send,
            Verb::Write | Verb::WriteImm => Opcode::Write,
            Verb::Read => Opcode::Read,
        };
        let imm = matches!(verb, Verb::SendImm | Verb::WriteImm).then_some(request.imm);
        let done =
            Done { wr_id: request.wr_id, status: Status::Success, opcode, byte_len: size as u64, imm: None };
        self.due_requests[here].push_back(done);
        let place = match verb {
            Verb::Send | Verb::SendImm => Some((Opcode::Recv, remote.clone())),
            Verb::WriteImm => Some((Opcode::RecvWriteImm, remote.start..remote.start)),
            Verb::Write | Verb::Read => None,
        };
        if let Some((opcode, place)) = place {
            let wr_id = RECEIVE | request.wr_id;
            world.receive(end.other(), wr_id, place);
            self.due_receives[there].push_back(Done { wr_id, opcode, imm, ..done });
        }
        if verb == Verb::Read {
            let bytes = self.memory[there][remote.clone()].to_vec();
            self.memory[here][local].copy_from_slice(&bytes);
        } else {
            let bytes = self.memory[here][local].to_vec();
            self.memory[there][remote.clone()].copy_from_slice(&bytes);
        }
        world.post(end, request);
        remote.start
    }

    /// Posts a request that must fail with `status`; `change` makes it invalid.
    pub(crate) fn post_in_vain<W: World>(
        &mut self,
        world: &mut W,
        end: End,
        (verb, size): (Verb, usize),
        status: Status,
        change: impl FnOnce(&mut Request),
    ) {
        let mut request = self.request(end, verb, size, None);
        change(&mut request);
        let opcode = match verb {
            Verb::Send | Verb::SendImm => Opcode::Send,
            Verb::Write | Verb::WriteImm => Opcode::Write,
            Verb::Read => Opcode::Read,
        };
        let done = Done { wr_id: request.wr_id, status, opcode, byte_len: 0, imm: None };
        self.due_requests[end.index()].push_back(done);
        world.post(end, &request);
    }

    /// Posts a receive of `size` bytes that must fail with `status`.
    pub(crate) fn receive_in_vain<W: World>(&mut self, world: &mut W, end: End, size: usize, status: Status) {
        let place = self.area(end, size);
        self.posted += 1;
        let wr_id = RECEIVE | self.posted;
        let done = Done { wr_id, status, opcode: Opcode::Recv, byte_len: 0, imm: None };
        self.due_receives[end.index()].push_back(done);
        world.receive(end, wr_id, place);
    }

    /// Returns the number of completions that `end` still has to see.
    pub(crate) fn due(&self, end: End) -> usize {
        self.due_requests[end.index()].len() + self.due_receives[end.index()].len()
    }

    /// Returns true if `end` waits for a request of its own.
    pub(crate) fn has_requests(&self, end: End) -> bool {
        !self.due_requests[end.index()].is_empty()
    }

    /// Waits for one completion at `end`, which must be the next of its kind.
    #[track_caller]
    pub(crate) fn wait<W: World>(&mut self, world: &mut W, end: End) {
        let context = &self.context;
        let Some(done) = world.next(end) else {
            panic!("{context}: no completion at the {end:?} end; due: {:?}", self.due_requests[end.index()]);
        };
        let index = end.index();
        let is_receive = done.wr_id & RECEIVE != 0;
        let (due, seen) = if !is_receive {
            (&mut self.due_requests[index], &mut self.transcript.requests[index])
        } else {
            (&mut self.due_receives[index], &mut self.transcript.receives[index])
        };
        let in_order = W::ORDER == Order::OfPosting || (W::ORDER == Order::OfReceives && is_receive);
        let found = if in_order { None } else { due.iter().position(|due| due.wr_id == done.wr_id) };
        let first = found.unwrap_or(0);
        let expected = due.remove(first);
        assert!(
            Some(done) == expected,
            "{context}: at the {end:?} end, {} before it: {done:?} instead of {expected:?}; {}",
            seen.len(),
            world.state()
        );
        seen.push(done);
        if due.is_empty() && !in_order {
            seen.sort_unstable_by_key(|done| done.wr_id);
        }
    }

    /// Waits until everything posted is complete.
    #[track_caller]
    pub(crate) fn wait_all<W: World>(&mut self, world: &mut W) {
        for end in End::BOTH {
            while self.due(end) > 0 {
                self.wait(world, end);
            }
        }
    }

    /// Waits until everything posted at `end` has completed, though the other end has crashed. Earlier requests may
    /// have succeeded, but none after a failed one. At most one was retried in vain; none if that was a response to
    /// the other end.
    #[track_caller]
    pub(crate) fn give_up<W: World>(&mut self, world: &mut W, end: End) {
        let (index, mut failed, mut retried) = (end.index(), false, 0);
        while self.due(end) > 0 {
            // Retransmission timers of NICs back off.
            let done = (0..60).find_map(|_| world.next(end));
            let done = done.unwrap_or_else(|| panic!("{}: it does not end after a crash", self.context));
            let is_receive = done.wr_id & RECEIVE != 0;
            let due = if is_receive { &mut self.due_receives[index] } else { &mut self.due_requests[index] };
            let expected = due.pop_front();
            let may_be = match done.status {
                Status::Success => is_receive || !failed,
                Status::RetryExceeded => !is_receive,
                Status::Flushed => true,
                _ => false,
            };
            failed |= !is_receive && done.status != Status::Success;
            retried += u64::from(done.status == Status::RetryExceeded);
            assert!(
                may_be && retried <= 1 && expected.is_some_and(|expected| expected.wr_id == done.wr_id),
                "{}: {done:?} instead of {expected:?} after a crash",
                self.context
            );
        }
    }

    /// Drops the due completions of an end that has crashed.
    pub(crate) fn crashed(&mut self, end: End) {
        self.due_requests[end.index()].clear();
        self.due_receives[end.index()].clear();
    }

    /// Compares every byte of both memories.
    #[track_caller]
    pub(crate) fn compare<W: World>(&self, world: &W) {
        for end in End::BOTH {
            let (is, must) = (world.memory(end), &self.memory[end.index()]);
            if is != *must {
                let wrong = is.iter().zip(must).filter(|(a, b)| a != b).count();
                let first = is.iter().zip(must).position(|(a, b)| a != b);
                panic!(
                    "{}: {wrong} bytes at the {end:?} end are wrong, the first at {first:?}",
                    self.context
                );
            }
        }
    }
}
