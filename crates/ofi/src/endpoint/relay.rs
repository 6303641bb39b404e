//! Memory that goes through a lane piece by piece, since the kernel does not let one of its ends copy: what was asked of the peer,
//! and what it has asked. Nothing here trusts the peer; what cannot be breaks the lane.

use std::collections::VecDeque;

use pathweave_neighbour::{More, Note, Place};
use pathweave_tagged::{Piece, RequestId};
use slab::Slab;

use super::buffers::Direction;

/// Bytes of a piece: three and a little fit a ring, so one is written while another is read.
pub(super) const PIECE_BYTES: u64 = 32 << 10;
/// Answers that a peer may have coming: more than an engine has READs and WRITEs in flight.
const MOST_ANSWERS: usize = 256;

/// The peer has said what nobody says who keeps to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// Something that was asked of the peer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    way: Direction,
    /// What has not come yet; of a put nothing comes.
    rest: Piece,
    request: RequestId,
}

/// What the peer is told next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Bytes that it has asked for.
    Give { id: u32, from: Place, left: u64 },
    /// Something without bytes.
    Say(Note),
}

/// Pieces of the put that is coming in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// All so far.
    All,
    /// Not all: the key does not open what they were for.
    NotAll,
}

/// Both directions of a lane.
#[derive(Debug)]
pub(super) struct Relay {
    asked: Slab<Asked>,
    answers: VecDeque<Answer>,
    coming: Taken,
}

impl Relay {
    pub(super) fn new() -> Self {
        Relay { asked: Slab::new(), answers: VecDeque::new(), coming: Taken::All }
    }

    /// Remembers what is asked of the peer; by which number its answers name it.
    pub(super) fn ask(&mut self, way: Direction, local: Piece, request: RequestId) -> u32 {
        let rest = if way == Direction::FromPeer { local } else { Piece::NONE };
        self.asked.insert(Asked { way, rest, request }) as u32
    }

    /// Bytes have come: where they go, and the request that is complete with them.
    pub(super) fn given(&mut self, id: u32, len: u64) -> Result<(Piece, Option<RequestId>), Nonsense> {
        let asked = self.asked.get_mut(id as usize).ok_or(Nonsense)?;
        let into = asked.rest.part(0, len).filter(|piece| piece.len > 0).ok_or(Nonsense)?;
        asked.rest = asked.rest.part(len, asked.rest.len - len).ok_or(Nonsense)?;
        let is_last = asked.rest.len == 0;
        let request = asked.request;
        if is_last {
            self.asked.remove(id as usize);
        }
        Ok((into, is_last.then_some(request)))
    }

    /// All pieces of a put are there: the request that is complete.
    pub(super) fn done(&mut self, id: u32) -> Result<RequestId, Nonsense> {
        match self.asked.get(id as usize) {
            Some(Asked { way: Direction::ToPeer, .. }) => Ok(self.asked.remove(id as usize).request),
            _ => Err(Nonsense),
        }
    }

    /// The peer refuses: the request that has failed.
    pub(super) fn denied(&mut self, id: u32) -> Result<RequestId, Nonsense> {
        self.asked.try_remove(id as usize).map(|asked| asked.request).ok_or(Nonsense)
    }

    /// The peer asks for bytes.
    pub(super) fn wanted(&mut self, id: u32, from: Place, len: u64) -> Result<(), Nonsense> {
        if len == 0 || from.address.checked_add(len).is_none() {
            return Err(Nonsense);
        }
        self.answer(Answer::Give { id, from, left: len })
    }

    /// A piece of a put has come, and was taken or not. With the last the peer is told.
    pub(super) fn put(&mut self, id: u32, more: More, taken: Taken) -> Result<(), Nonsense> {
        if taken == Taken::NotAll {
            self.coming = Taken::NotAll;
        }
        if more == More::Follows {
            return Ok(());
        }
        let note = match std::mem::replace(&mut self.coming, Taken::All) {
            Taken::All => Note::Done { id },
            Taken::NotAll => Note::Deny { id },
        };
        self.answer(Answer::Say(note))
    }

    fn answer(&mut self, answer: Answer) -> Result<(), Nonsense> {
        if self.answers.len() >= MOST_ANSWERS {
            return Err(Nonsense);
        }
        self.answers.push_back(answer);
        Ok(())
    }

    /// What the peer is told next.
    pub(super) fn next(&self) -> Option<Answer> {
        self.answers.front().copied()
    }

    /// The next answer, or a piece of so many bytes of it, was sent.
    pub(super) fn told(&mut self, len: u64) {
        match self.answers.front_mut() {
            Some(Answer::Give { from, left, .. }) if *left > len => {
                *left -= len;
                from.address += len;
            }
            _ => drop(self.answers.pop_front()),
        }
    }

    /// What was asked for next cannot be given any more.
    pub(super) fn refuse(&mut self) {
        if let Some(answer) = self.answers.front_mut()
            && let Answer::Give { id, .. } = *answer
        {
            *answer = Answer::Say(Note::Deny { id });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_tagged::Buffer;
    use proptest::prelude::*;

    const FROM: Place = Place { key: 7, address: 1_000 };

    #[test]
    fn what_was_asked_for_comes_in_pieces_and_is_complete_with_the_last() {
        let mut relay = Relay::new();
        let local = Piece { buffer: Buffer(3), offset: 10, len: 100 };
        let id = relay.ask(Direction::FromPeer, local, RequestId(5));
        assert_eq!(relay.given(id, 60), Ok((Piece { len: 60, ..local }, None)));
        assert_eq!(relay.given(id, 41), Err(Nonsense), "more than was asked for");
        assert_eq!(relay.done(id), Err(Nonsense), "that is said of puts");
        let rest = Piece { offset: 70, len: 40, ..local };
        assert_eq!(relay.given(id, 40), Ok((rest, Some(RequestId(5)))));
        assert_eq!(relay.given(id, 1), Err(Nonsense), "it is complete");
        let put = relay.ask(Direction::ToPeer, local, RequestId(6));
        assert_eq!(relay.given(put, 1), Err(Nonsense), "nothing comes of a put");
        assert_eq!((relay.done(put), relay.done(put)), (Ok(RequestId(6)), Err(Nonsense)));
        let denied = relay.ask(Direction::FromPeer, local, RequestId(8));
        assert_eq!((relay.denied(denied), relay.denied(denied)), (Ok(RequestId(8)), Err(Nonsense)));
    }

    #[test]
    fn answers_leave_in_order_and_piece_by_piece() {
        let mut relay = Relay::new();
        relay.wanted(1, FROM, 70).unwrap();
        relay.put(2, More::Follows, Taken::NotAll).unwrap();
        relay.put(2, More::Ends, Taken::All).unwrap();
        relay.put(3, More::Ends, Taken::All).unwrap();
        relay.wanted(4, FROM, 10).unwrap();
        relay.told(60);
        let from = Place { address: 1_060, ..FROM };
        assert_eq!(relay.next(), Some(Answer::Give { id: 1, from, left: 10 }));
        relay.told(10);
        assert_eq!(relay.next(), Some(Answer::Say(Note::Deny { id: 2 })), "one piece of it was not taken");
        relay.told(0);
        assert_eq!(relay.next(), Some(Answer::Say(Note::Done { id: 3 })));
        relay.told(0);
        relay.refuse();
        assert_eq!(relay.next(), Some(Answer::Say(Note::Deny { id: 4 })));
        relay.told(0);
        assert_eq!(relay.next(), None);
    }

    fn said() -> impl Strategy<Value = (u8, u32, u64, u64)> {
        (0u8..6, 0u32..4, prop_oneof![0u64..200, any::<u64>()], any::<u64>())
    }

    proptest! {
        /// Whatever the peer says: bytes go nowhere but where they were asked for, once, nothing grows without end, no panic.
        #[test]
        fn a_mad_peer_gets_nowhere(steps in prop::collection::vec(said(), 0..600)) {
            let mut relay = Relay::new();
            let local = Piece { buffer: Buffer(1), offset: 5, len: 100 };
            let mut open = vec![];
            for id in 0..3 {
                let way = if id == 1 { Direction::ToPeer } else { Direction::FromPeer };
                prop_assert_eq!(relay.ask(way, local, RequestId(id)), id as u32);
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
                        Err(Nonsense) => None,
                    },
                    1 => relay.done(id).ok(),
                    2 => relay.denied(id).ok(),
                    3 => relay.wanted(id, Place { key: 0, address }, len).ok().and(None),
                    4 => relay.put(id, if len % 2 == 0 { More::Ends } else { More::Follows }, Taken::All).ok().and(None),
                    _ => {
                        if let Some(Answer::Give { from, left, .. }) = relay.next() {
                            prop_assert!(left > 0 && from.address.checked_add(left).is_some());
                        }
                        relay.told(len.min(1 << 20));
                        None
                    }
                };
                if let Some(request) = ended {
                    prop_assert_eq!(open.remove(before.unwrap()).0, request.0);
                }
                prop_assert!(relay.answers.len() <= MOST_ANSWERS);
            }
        }
    }
}
