//! Memory of peers on this host: READs and WRITEs that a peer executes for this endpoint, and requests of
//! peers.

use pathweave_shm::{MemoryRequest, More, RemoteLocation, Sent};
use pathweave_tagged::{Failure, PeerId, Remote};

use super::buffers::Direction;
use super::core::EndpointState;
use super::local_peers::{Copy, LocalPeer, Turn, Waiting};
use super::local_thread::LaneKey;
use super::relay::{PIECE_BYTES, ProtocolError, RequestKind, Response, Taken};

/// Largest number of keys that a peer may withdraw while a lane exists. A peer withdraws a key only after it
/// has waited for this endpoint.
const MOST_WITHDRAWN: usize = 1 << 16;

/// Outcome of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// An item was sent.
    Sent,
    /// No item can be sent now.
    Rests,
}

impl LocalPeer {
    /// Makes the peer send bytes that this process cannot copy by itself, or not now.
    pub(super) fn ask(&mut self, copy: Copy) {
        let Copy { remote, local, request } = copy;
        let id = self.relay.ask(RequestKind::Give(local), request);
        self.waiting.push_back(Waiting::Ask { id, from: place(remote), len: local.len });
    }

    /// Makes the peer write to its memory. `start` is the address of the bytes here, if they are contiguous.
    pub(super) fn write(&mut self, copy: Copy, start: Option<u64>) {
        let Copy { remote, local, request } = copy;
        let to = place(remote);
        // Two copies of one piece are faster than one request to the peer.
        let pulled = start.filter(|_| local.len > PIECE_BYTES && self.lane.is_read_by_peer());
        let id = self.relay.ask(RequestKind::Take, request);
        self.waiting.push_back(match pulled {
            Some(start) => Waiting::Pull { id, to, from: local, start },
            None => Waiting::Put { id, to, from: local },
        });
    }

    /// Returns true if the first waiting item may be sent. Nothing may follow data that the peer is to pull
    /// before the pull has ended.
    fn can_say(&self) -> bool {
        match self.waiting.front() {
            None => false,
            Some(Waiting::Pull { .. }) => true,
            Some(_) => !self.relay.is_pulling(),
        }
    }

    fn step(&mut self, sent: Sent) -> Step {
        match sent {
            Sent::Yes => Step::Sent,
            Sent::Full => Step::Rests,
            Sent::Broken => {
                self.mark_broken();
                Step::Rests
            }
        }
    }
}

fn place(remote: Remote) -> RemoteLocation {
    RemoteLocation { key: remote.rkey, address: remote.address }
}

impl EndpointState {
    /// Handles a peer's note about memory, and takes the bytes that follow it.
    pub(super) fn on_note(
        &mut self,
        key: LaneKey,
        peer: PeerId,
        note: MemoryRequest,
    ) -> Result<(), ProtocolError> {
        let Some(neighbour) = self.neighbours.get_mut(key) else { return Ok(()) };
        let mut bytes = neighbour.lane.note_bytes();
        let len = bytes.left() as u64;
        let ended = match note {
            MemoryRequest::Give { id } => {
                let (into, ended) = neighbour.relay.given(id, len)?;
                self.buffers.fill(into, &mut bytes);
                ended.map(|request| (request, Ok(())))
            }
            MemoryRequest::Put { id, to, more } => {
                let taken = match self.buffers.granted_piece(peer, to, len, Direction::ToPeer) {
                    Some(into) => {
                        self.buffers.fill(into, &mut bytes);
                        Taken::All
                    }
                    None => Taken::NotAll,
                };
                neighbour.relay.put(id, more, taken)?;
                None
            }
            MemoryRequest::Ask { id, from, len } => {
                neighbour.relay.wanted(id, from, len)?;
                None
            }
            MemoryRequest::Done { id } => Some((neighbour.relay.done(id)?, Ok(()))),
            MemoryRequest::Refused { id } => Some((neighbour.relay.denied(id)?, Err(Failure::Access))),
            MemoryRequest::Pull { id, to, from, len } => {
                let answer = self.pull(key, id, (to, from, len));
                self.neighbours.get_mut(key).ok_or(ProtocolError)?.relay.pulled(answer)?;
                None
            }
            MemoryRequest::Unable { id } => {
                let (from, to) = neighbour.relay.unable(id)?;
                // It goes before the waiting items, which were held back for it.
                neighbour.waiting.push_front(Waiting::Put { id, to, from });
                None
            }
            MemoryRequest::Withdrawn { key } => {
                neighbour.withdrawn.insert(key);
                if neighbour.withdrawn.len() > MOST_WITHDRAWN {
                    return Err(ProtocolError);
                }
                None
            }
        };
        let Some(neighbour) = self.neighbours.get_mut(key) else { return Ok(()) };
        neighbour.lane.take_note();
        if let Some((request, result)) = ended {
            self.engine.completed(peer, request, result, &mut self.buffers);
        }
        Ok(())
    }

    /// Copies bytes of a peer to local memory that is open to it, and returns the response. The memory stays
    /// open meanwhile, because closing it takes the lock.
    fn pull(&mut self, key: LaneKey, id: u32, (to, from, len): (RemoteLocation, u64, u64)) -> MemoryRequest {
        let Some(neighbour) = self.neighbours.get_mut(key) else { return MemoryRequest::Refused { id } };
        let Some(piece) = self.buffers.granted_piece(neighbour.peer, to, len, Direction::ToPeer) else {
            return MemoryRequest::Refused { id };
        };
        if !neighbour.lane.reads_peer() {
            return MemoryRequest::Unable { id };
        }
        self.neighbours.budget = self.neighbours.budget.saturating_sub(len);
        let Some(neighbour) = self.neighbours.get_mut(key) else { return MemoryRequest::Refused { id } };
        match self.buffers.copy(&neighbour.lane, piece, from).map_err(|error| error.raw_os_error()) {
            Ok(()) => MemoryRequest::Done { id },
            Err(Some(libc::EPERM | libc::ENOSYS)) => {
                neighbour.lane.cannot_read_peer();
                MemoryRequest::Unable { id }
            }
            Err(_) => MemoryRequest::Refused { id },
        }
    }

    /// Withdraws memory from a peer that still uses it.
    pub(super) fn withdraw(&mut self, from: PeerId, key: u64) {
        let Some(lane) = self.lane_of(from) else { return };
        let Some(neighbour) = self.neighbours.get_mut(lane) else { return };
        neighbour.lane.withdraw();
        neighbour.waiting.push_back(Waiting::Withdrawn { key });
        self.send_on(lane);
        self.neighbours.wake();
    }

    /// Sends as many waiting items as there is room for, and executes the consequences.
    pub(super) fn send_waiting(&mut self, key: LaneKey) {
        self.send_on(key);
        self.run_actions();
    }

    /// Sends as many waiting items as there is room for, for a caller that executes the consequences itself.
    /// Own items and responses alternate, and each waits for room for the other, so neither blocks the other
    /// from the ring.
    pub(super) fn send_on(&mut self, key: LaneKey) {
        while let Some(neighbour) = self.neighbours.get_mut(key) {
            let can_say = neighbour.can_say();
            let (turn, step) = match (can_say, neighbour.relay.next()) {
                (false, None) => return,
                (true, None) => (Turn::Said, self.say_next(key)),
                (true, Some(_)) if neighbour.turn == Turn::Said => (Turn::Said, self.say_next(key)),
                (_, Some(answer)) => (Turn::Answers, self.answer_next(key, answer)),
            };
            if step == Step::Rests {
                return;
            }
            if let Some(neighbour) = self.neighbours.get_mut(key) {
                neighbour.turn = turn.other();
            }
        }
    }

    /// Sends the first waiting item, or a piece of it.
    fn say_next(&mut self, key: LaneKey) -> Step {
        let Some(neighbour) = self.neighbours.get_mut(key) else { return Step::Rests };
        let peer = neighbour.peer;
        let (sent, request) = match neighbour.waiting.front_mut() {
            None => return Step::Rests,
            Some(Waiting::Message { bytes, request }) => {
                (neighbour.lane.send(bytes.len(), |writer| writer.put(bytes)), Some(*request))
            }
            Some(Waiting::Ask { id, from, len }) => {
                let ask = MemoryRequest::Ask { id: *id, from: *from, len: *len };
                (neighbour.lane.send_note(ask, 0, |_| ()), None)
            }
            Some(Waiting::Pull { id, to, from, start }) => {
                let pull = MemoryRequest::Pull { id: *id, to: *to, from: *start, len: from.len };
                let sent = neighbour.lane.send_note(pull, 0, |_| ());
                if sent == Sent::Yes {
                    neighbour.relay.pull_requested(*id, *from, *to);
                }
                (sent, None)
            }
            Some(Waiting::Withdrawn { key }) => {
                let withdrawn = MemoryRequest::Withdrawn { key: *key };
                (neighbour.lane.send_note(withdrawn, 0, |_| ()), None)
            }
            Some(Waiting::Put { id, to, from }) => {
                let len = from.len.min(PIECE_BYTES);
                let (Some(piece), Some(rest)) = (from.part(0, len), from.part(len, from.len - len)) else {
                    return Step::Rests;
                };
                let more = if rest.len > 0 { More::Follows } else { More::Ends };
                let buffers = &self.buffers;
                let put = MemoryRequest::Put { id: *id, to: *to, more };
                let sent = neighbour
                    .lane
                    .send_note(put, len as usize, |writer| buffers.each(piece, |bytes| writer.put(bytes)));
                if sent == Sent::Yes && more == More::Follows {
                    (*from, to.address) = (rest, to.address.wrapping_add(len));
                    return Step::Sent;
                }
                (sent, None)
            }
        };
        let step = neighbour.step(sent);
        if step == Step::Sent {
            neighbour.waiting.pop_front();
            if let Some(request) = request {
                self.sent(peer, request);
            }
        }
        step
    }

    /// Sends the next response, or a piece of it.
    fn answer_next(&mut self, key: LaneKey, answer: Response) -> Step {
        let Some(neighbour) = self.neighbours.get_mut(key) else { return Step::Rests };
        let (sent, len) = match answer {
            Response::Say(note) => (neighbour.lane.send_note(note, 0, |_| ()), 0),
            Response::Give { id, from, left } => {
                let len = left.min(PIECE_BYTES);
                // The memory is looked up for each piece, because it may have been closed.
                let Some(piece) = self.buffers.granted_piece(neighbour.peer, from, len, Direction::FromPeer)
                else {
                    neighbour.relay.refuse();
                    return Step::Sent;
                };
                let buffers = &self.buffers;
                let give = |writer: &mut pathweave_shm::Writer<'_>| {
                    buffers.each(piece, |bytes| writer.put(bytes));
                };
                (neighbour.lane.send_note(MemoryRequest::Give { id }, len as usize, give), len)
            }
        };
        let step = neighbour.step(sent);
        if step == Step::Sent {
            neighbour.relay.sent(len);
        }
        step
    }
}
