//! Requests between two peers on one host: to pull bytes, or to transfer them piece by piece through the
//! lane. The latter is for few bytes, or if the kernel does not let one of the peers copy. The peer is not
//! trusted: an impossible message breaks the lane.

use std::collections::VecDeque;

use pathweave_shm::{MemoryRequest, More, RemoteLocation};
use pathweave_tagged::{Piece, RequestId};
use slab::Slab;

/// Largest size of a piece, bytes. Three pieces fit into a ring, so one is written while another is read.
pub(super) const PIECE_BYTES: u64 = 32 << 10;
/// Largest number of pending responses to a peer. An engine has fewer READs and WRITEs in flight.
const MOST_ANSWERS: usize = 256;

/// Error of a peer that violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProtocolError;

/// A request to the peer that is not finished.
#[derive(Clone, Copy, Debug)]
struct Asked {
    what: RequestKind,
    request: RequestId,
}

/// Kind of a request to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// READ: the peer sends bytes. Holds the piece still to be filled.
    Give(Piece),
    /// WRITE: the bytes go through the lane, or the pull request has not been sent yet.
    Take,
    /// WRITE: the peer was told to pull these bytes to that place.
    Pull(Piece, RemoteLocation),
}

/// A response to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// Bytes that the peer has requested.
    Give { id: u32, from: RemoteLocation, left: u64 },
    /// A note without bytes.
    Say(MemoryRequest),
}

/// Success of the pieces of the incoming put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// All pieces so far were written.
    All,
    /// A piece was rejected, because its key does not permit it.
    NotAll,
}

/// Requests in both directions of a lane.
#[derive(Debug)]
pub(super) struct Relay {
    asked: Slab<Asked>,
    answers: VecDeque<Response>,
    put_result: Taken,
    /// Number of unfinished WRITEs, and in `pulls` the number of those that the peer is to pull.
    writes: u32,
    pulls: u32,
}

impl Relay {
    pub(super) fn new() -> Self {
        Relay { asked: Slab::new(), answers: VecDeque::new(), put_result: Taken::All, writes: 0, pulls: 0 }
    }

    /// Adds a request to the peer. Returns the identifier that the peer's responses carry.
    pub(super) fn ask(&mut self, what: RequestKind, request: RequestId) -> u32 {
        self.writes += u32::from(what == RequestKind::Take);
        self.asked.insert(Asked { what, request }) as u32
    }

    /// Records that the peer was told to pull the bytes of a WRITE.
    pub(super) fn pull_requested(&mut self, id: u32, from: Piece, to: RemoteLocation) {
        if let Some(asked) = self.asked.get_mut(id as usize).filter(|asked| asked.what == RequestKind::Take) {
            asked.what = RequestKind::Pull(from, to);
            self.pulls += 1;
        }
    }

    /// Returns true if a WRITE is unfinished.
    pub(super) fn is_writing(&self) -> bool {
        self.writes > 0
    }

    /// Returns true if a WRITE that the peer is to pull is unfinished.
    pub(super) fn is_pulling(&self) -> bool {
        self.pulls > 0
    }

    /// Handles incoming bytes. Returns the piece to fill, and the request if this completes it.
    pub(super) fn given(&mut self, id: u32, len: u64) -> Result<(Piece, Option<RequestId>), ProtocolError> {
        let Some(Asked { what: RequestKind::Give(rest), request }) = self.asked.get_mut(id as usize) else {
            return Err(ProtocolError);
        };
        let into = rest.part(0, len).filter(|piece| piece.len > 0).ok_or(ProtocolError)?;
        *rest = rest.part(len, rest.len - len).ok_or(ProtocolError)?;
        let (is_last, request) = (rest.len == 0, *request);
        if is_last {
            self.asked.remove(id as usize);
        }
        Ok((into, is_last.then_some(request)))
    }

    /// Handles the end of a WRITE. Returns the completed request.
    pub(super) fn done(&mut self, id: u32) -> Result<RequestId, ProtocolError> {
        match self.asked.get(id as usize) {
            Some(Asked { what: RequestKind::Take | RequestKind::Pull(..), .. }) => self.denied(id),
            _ => Err(ProtocolError),
        }
    }

    /// Handles a rejection by the peer. Returns the failed request.
    pub(super) fn denied(&mut self, id: u32) -> Result<RequestId, ProtocolError> {
        let Asked { what, request } = self.asked.try_remove(id as usize).ok_or(ProtocolError)?;
        match what {
            RequestKind::Give(_) => {}
            RequestKind::Take => self.writes -= 1,
            RequestKind::Pull(..) => (self.writes, self.pulls) = (self.writes - 1, self.pulls - 1),
        }
        Ok(request)
    }

    /// Handles a peer that cannot pull. Returns the piece to put instead, and its destination.
    pub(super) fn unable(&mut self, id: u32) -> Result<(Piece, RemoteLocation), ProtocolError> {
        let asked = self.asked.get_mut(id as usize).ok_or(ProtocolError)?;
        let RequestKind::Pull(from, to) = asked.what else { return Err(ProtocolError) };
        asked.what = RequestKind::Take;
        self.pulls -= 1;
        Ok((from, to))
    }

    /// Handles a peer's request for bytes.
    pub(super) fn wanted(&mut self, id: u32, from: RemoteLocation, len: u64) -> Result<(), ProtocolError> {
        if len == 0 || from.address.checked_add(len).is_none() {
            return Err(ProtocolError);
        }
        self.answer(Response::Give { id, from, left: len })
    }

    /// Handles a piece of a put. Responds after the last piece.
    pub(super) fn put(&mut self, id: u32, more: More, taken: Taken) -> Result<(), ProtocolError> {
        if taken == Taken::NotAll {
            self.put_result = Taken::NotAll;
        }
        if more == More::Follows {
            return Ok(());
        }
        let note = match std::mem::replace(&mut self.put_result, Taken::All) {
            Taken::All => MemoryRequest::Done { id },
            Taken::NotAll => MemoryRequest::Refused { id },
        };
        self.answer(Response::Say(note))
    }

    /// Responds to a pull.
    pub(super) fn pulled(&mut self, note: MemoryRequest) -> Result<(), ProtocolError> {
        self.answer(Response::Say(note))
    }

    fn answer(&mut self, answer: Response) -> Result<(), ProtocolError> {
        if self.answers.len() >= MOST_ANSWERS {
            return Err(ProtocolError);
        }
        self.answers.push_back(answer);
        Ok(())
    }

    /// Returns the next response.
    pub(super) fn next(&self) -> Option<Response> {
        self.answers.front().copied()
    }

    /// Records that the next response, or `len` bytes of it, was sent.
    pub(super) fn sent(&mut self, len: u64) {
        match self.answers.front_mut() {
            Some(Response::Give { from, left, .. }) if *left > len => {
                *left -= len;
                from.address += len;
            }
            _ => drop(self.answers.pop_front()),
        }
    }

    /// Replaces the next response with a rejection, because its memory is closed.
    pub(super) fn refuse(&mut self) {
        if let Some(answer) = self.answers.front_mut()
            && let Response::Give { id, .. } = *answer
        {
            *answer = Response::Say(MemoryRequest::Refused { id });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_tagged::Buffer;
    use proptest::prelude::*;

    const FROM: RemoteLocation = RemoteLocation { key: 7, address: 1_000 };

    #[test]
    fn requested_bytes_arrive_in_pieces() {
        let mut relay = Relay::new();
        let local = Piece { buffer: Buffer(3), offset: 10, len: 100 };
        let id = relay.ask(RequestKind::Give(local), RequestId(5));
        assert_eq!(relay.given(id, 60), Ok((Piece { len: 60, ..local }, None)));
        assert_eq!(relay.given(id, 41), Err(ProtocolError), "more than was asked for");
        assert_eq!(relay.done(id), Err(ProtocolError), "that is said of puts");
        let rest = Piece { offset: 70, len: 40, ..local };
        assert_eq!(relay.given(id, 40), Ok((rest, Some(RequestId(5)))));
        assert_eq!(relay.given(id, 1), Err(ProtocolError), "it is complete");
        let put = relay.ask(RequestKind::Take, RequestId(6));
        assert_eq!(relay.given(put, 1), Err(ProtocolError), "nothing comes of a put");
        assert_eq!(relay.unable(put), Err(ProtocolError), "that is said of pulls");
        assert_eq!((relay.done(put), relay.done(put)), (Ok(RequestId(6)), Err(ProtocolError)));
        let denied = relay.ask(RequestKind::Give(local), RequestId(8));
        assert_eq!((relay.denied(denied), relay.denied(denied)), (Ok(RequestId(8)), Err(ProtocolError)));
    }

    #[test]
    fn bytes_that_the_peer_cannot_pull_are_put() {
        let mut relay = Relay::new();
        let local = Piece { buffer: Buffer(3), offset: 10, len: 100 };
        let [pulled, put] = [5, 6].map(|number| relay.ask(RequestKind::Take, RequestId(number)));
        assert!(relay.is_writing() && !relay.is_pulling(), "the peer is not told yet");
        [pulled, put].iter().for_each(|id| relay.pull_requested(*id, local, FROM));
        assert!(relay.is_pulling());
        assert_eq!(relay.done(pulled), Ok(RequestId(5)));
        assert_eq!((relay.unable(put), relay.unable(put)), (Ok((local, FROM)), Err(ProtocolError)));
        assert!(relay.is_writing() && !relay.is_pulling());
        assert_eq!(relay.done(put), Ok(RequestId(6)));
        assert!(!relay.is_writing());
    }

    #[test]
    fn answers_leave_in_order_and_piece_by_piece() {
        let mut relay = Relay::new();
        relay.wanted(1, FROM, 70).unwrap();
        relay.put(2, More::Follows, Taken::NotAll).unwrap();
        relay.put(2, More::Ends, Taken::All).unwrap();
        relay.put(3, More::Ends, Taken::All).unwrap();
        relay.wanted(4, FROM, 10).unwrap();
        relay.sent(60);
        let from = RemoteLocation { address: 1_060, ..FROM };
        assert_eq!(relay.next(), Some(Response::Give { id: 1, from, left: 10 }));
        relay.sent(10);
        assert_eq!(
            relay.next(),
            Some(Response::Say(MemoryRequest::Refused { id: 2 })),
            "one piece of it was not taken"
        );
        relay.sent(0);
        assert_eq!(relay.next(), Some(Response::Say(MemoryRequest::Done { id: 3 })));
        relay.sent(0);
        relay.refuse();
        assert_eq!(relay.next(), Some(Response::Say(MemoryRequest::Refused { id: 4 })));
        relay.sent(0);
        assert_eq!(relay.next(), None);
    }

    fn said() -> impl Strategy<Value = (u8, u32, u64, u64)> {
        (0u8..7, 0u32..5, prop_oneof![0u64..200, any::<u64>()], any::<u64>())
    }

    proptest! {
        /// Whatever a peer sends: bytes go only where they were requested, once; nothing grows without bound;
        /// nothing panics.
        #[test]
        fn a_mad_peer_gets_nowhere(steps in prop::collection::vec(said(), 0..600)) {
            let mut relay = Relay::new();
            let local = Piece { buffer: Buffer(1), offset: 5, len: 100 };
            let mut open = vec![];
            for id in 0..4 {
                let wish = if id % 2 == 1 { RequestKind::Take } else { RequestKind::Give(local) };
                prop_assert_eq!(relay.ask(wish, RequestId(id)), id as u32);
                if id == 3 {
                    relay.pull_requested(id as u32, local, FROM);
                }
                open.push((id, 100));
            }
            for (kind, id, len, address) in steps {
                let before = open.iter().position(|(other, _)| *other == u64::from(id));
                let ended = match kind {
                    0 => match relay.given(id, len) {
                        Ok((piece, ended)) => {
                            let (_, left) = &mut open[before.unwrap()];
                            prop_assert_eq!(piece, Piece { offset: 105 - *left, len, ..local });
                            *left -= len;
                            prop_assert_eq!(ended.is_some(), *left == 0);
                            ended
                        }
                        Err(ProtocolError) => None,
                    },
                    1 => relay.done(id).ok(),
                    2 => relay.denied(id).ok(),
                    6 => relay.unable(id).ok().and(None),
                    3 => relay.wanted(id, RemoteLocation { key: 0, address }, len).ok().and(None),
                    4 => relay.put(id, if len % 2 == 0 { More::Ends } else { More::Follows }, Taken::All).ok().and(None),
                    _ => {
                        if let Some(Response::Give { from, left, .. }) = relay.next() {
                            prop_assert!(left > 0 && from.address.checked_add(left).is_some());
                        }
                        relay.sent(len.min(1 << 20));
                        None
                    }
                };
                if let Some(request) = ended {
                    prop_assert_eq!(open.remove(before.unwrap()).0, request.0);
                }
                prop_assert!(relay.answers.len() <= MOST_ANSWERS);
                prop_assert!(relay.pulls <= relay.writes && relay.writes <= open.len() as u32);
            }
        }
    }
}
