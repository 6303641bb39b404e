//! RMA reads and writes of peers' memory.

use crate::config::MAX_MESSAGE;
use crate::engine::Engine;
use crate::memory::{Access, Memory, PeerId, Piece, Remote};
use crate::operations::{
    OperationInfo, Owner, Queued, RemoteLocation, RequestPart, Rma, Slot, Stage, Transfer,
};
use crate::output::{Action, Failure, Kind, Payload};
use crate::peer::{Connection, KeyState, Link, MAX_KEY_REQUESTS, Peer, RegionState, Reply};
use crate::pump::Step;
use crate::request::{BufferLifetime, PostError, Read, Segment, Segments, Write};
use crate::shared::SharedState;
use crate::wire::{Message, Notice};

/// Result of looking up memory of a peer.
pub(crate) enum Search {
    Found(RemoteLocation),
    /// The key has been asked for, or will be.
    Waits,
    /// The key is unknown, the range is out of bounds, or the right is missing.
    Refused,
}

impl Engine {
    /// Writes memory of a peer. A message posted later is matched after the bytes have arrived.
    pub fn post_write(&mut self, write: Write, memory: &mut dyn Memory) -> Result<(), PostError> {
        let Write { to, segments, mut from, data, hold, report, context } = write;
        let most = if hold == BufferLifetime::ThisCall { crate::config::MAX_INJECT } else { MAX_MESSAGE };
        self.admit_rma(&segments, from, most)?;
        let kind = Kind::Write;
        let slot = Slot::Counted;
        let ticket = OperationInfo { context, kind, report, peer: to, len: from.len, data, slot };
        if to == PeerId::SELF {
            self.rma_of_self(OperationInfo { slot: Slot::NotCounted, ..ticket }, &segments, from, memory);
            return Ok(());
        }
        let mut kept = None;
        if hold == BufferLifetime::ThisCall && from.len > 0 {
            let buffer = memory.copy_out(from).ok_or(PostError::NoMemory)?;
            from = Piece::whole(buffer, from.len);
            kept = Some(buffer);
        }
        let id = self.core.rmas.insert(Rma { kept, ..new_rma(ticket, segments, from) });
        self.enqueue_rma(to, &segments, Queued::Write(id), memory);
        Ok(())
    }

    /// Reads memory of a peer. The read sees the effect of all writes and messages posted before it.
    pub fn post_read(&mut self, read: Read, memory: &mut dyn Memory) -> Result<(), PostError> {
        let Read { to, segments, into, report, context } = read;
        self.admit_rma(&segments, into, MAX_MESSAGE)?;
        let kind = Kind::Read;
        let slot = Slot::Counted;
        let ticket = OperationInfo { context, kind, report, peer: to, len: into.len, data: None, slot };
        if to == PeerId::SELF {
            self.rma_of_self(OperationInfo { slot: Slot::NotCounted, ..ticket }, &segments, into, memory);
            return Ok(());
        }
        let id = self.core.rmas.insert(new_rma(ticket, segments, into));
        self.enqueue_rma(to, &segments, Queued::Read(id), memory);
        Ok(())
    }

    fn admit_rma(&self, segments: &Segments, local: Piece, most: u64) -> Result<(), PostError> {
        if segments.as_slice().is_empty() || segments.total() != Some(local.len) {
            return Err(PostError::Lengths);
        }
        self.admit(local.len, most)
    }

    fn enqueue_rma(&mut self, to: PeerId, segments: &Segments, queued: Queued, memory: &mut dyn Memory) {
        self.core.operations += 1;
        self.enqueue(to, segments.as_slice().iter().map(|segment| segment.key), queued, memory);
    }

    /// Appends an operation to a peer's queue, and asks for its keys in the meantime.
    pub(crate) fn enqueue(
        &mut self,
        to: PeerId,
        keys: impl Iterator<Item = u64>,
        queued: Queued,
        memory: &mut dyn Memory,
    ) {
        let peer = self.peers.entry(to).or_default();
        peer.queue.push_back(queued);
        if let Link::Up(connection) = &mut peer.link {
            for key in keys {
                ask_for_key(connection, key);
            }
        }
        self.start(to, memory);
    }

    /// Asks for the keys of the operations that waited for a connection.
    pub(crate) fn ask_for_keys(&mut self, peer: PeerId) {
        let Some(Peer { link: Link::Up(connection), queue }) = self.peers.get_mut(&peer) else { return };
        for queued in queue.iter().take(MAX_KEY_REQUESTS as usize) {
            match queued {
                Queued::Send(_) => {}
                Queued::Atomic(atomic) => ask_for_key(connection, atomic.atomic.key),
                Queued::Write(id) | Queued::Read(id) => {
                    let Some(rma) = self.core.rmas.get(*id) else { continue };
                    rma.segments.as_slice().iter().for_each(|s| ask_for_key(connection, s.key));
                }
            }
        }
    }

    fn rma_of_self(
        &mut self,
        ticket: OperationInfo,
        segments: &Segments,
        local: Piece,
        memory: &mut dyn Memory,
    ) {
        let core = &mut self.core;
        let mut done = 0;
        let mut pieces = [(Piece::NONE, 0, crate::wire::Told::default()); Segments::MOST];
        for (segment, place) in segments.as_slice().iter().zip(&mut pieces) {
            let opened = core.regions.by_key(segment.key);
            let allowed = opened.filter(|o| is_allowed(ticket.kind, o.region.access));
            let Some(piece) = allowed.and_then(|o| o.piece(segment.address, segment.len)) else {
                return core.complete(&ticket, Err(Failure::Access));
            };
            *place = (
                piece,
                segment.key,
                allowed.map(|o| o.region.events.reported_accesses()).unwrap_or_default(),
            );
        }
        let last = segments.as_slice().len() - 1;
        for (index, (piece, key, told)) in pieces.into_iter().take(last + 1).enumerate() {
            let part = local.within(done, piece.len);
            done += piece.len;
            let data = ticket.data.filter(|_| index == last);
            if ticket.kind == Kind::Write {
                memory.copy(part, piece);
                if told.of_writes || data.is_some() {
                    core.report_access(Kind::RemoteWrite, PeerId::SELF, Some(key), piece.len, data);
                }
            } else {
                memory.copy(piece, part);
                if told.of_reads {
                    core.report_access(Kind::RemoteRead, PeerId::SELF, Some(key), piece.len, None);
                }
            }
        }
        core.complete(&OperationInfo { data: None, ..ticket }, Ok(()));
    }
}

fn is_allowed(kind: Kind, access: Access) -> bool {
    if kind == Kind::Write { access.writes() } else { access.reads() }
}

fn new_rma(ticket: OperationInfo, segments: Segments, local: Piece) -> Rma {
    Rma {
        ticket,
        segments,
        local,
        kept: None,
        stage: Stage::Unresolved,
        remote: [RemoteLocation::NOWHERE; Segments::MOST],
        under_way: 0,
        failure: None,
    }
}

/// Asks for an unknown key, unless too many questions are open.
fn ask_for_key(connection: &mut Connection, key: u64) {
    if connection.keys.contains_key(&key) || connection.keys_asked >= MAX_KEY_REQUESTS {
        return;
    }
    connection.keys_asked += 1;
    connection.keys.insert(key, KeyState::Asked);
    connection.outbox.push_back(Reply::AskKey { key });
}

/// Looks up memory of a peer, and checks locally everything for which the peer's transport would fail the connection.
pub(crate) fn search(
    connection: &mut Connection,
    segment: &Segment,
    wanted: impl Fn(Access) -> bool,
) -> Search {
    match connection.keys.get(&segment.key) {
        Some(KeyState::Region(id)) => {
            let Some(known) = connection.regions.get(id) else { return Search::Refused };
            let told = &known.description;
            let offset = segment.address.checked_sub(told.base);
            let inside = offset.filter(|o| o.checked_add(segment.len).is_some_and(|end| end <= told.len));
            let Some(offset) = inside.filter(|_| wanted(told.access)) else { return Search::Refused };
            let remote = Remote { address: told.remote.address + offset, rkey: told.remote.rkey };
            Search::Found(RemoteLocation { remote, region: *id })
        }
        Some(KeyState::Refused) => {
            // A later operation asks for the key again.
            connection.keys.remove(&segment.key);
            Search::Refused
        }
        Some(KeyState::Asked) => Search::Waits,
        None => {
            ask_for_key(connection, segment.key);
            Search::Waits
        }
    }
}

/// Counts an operation that uses a region.
pub(crate) fn use_region(connection: &mut Connection, region: u64) {
    if let Some(known) = connection.regions.get_mut(&region) {
        known.users += 1;
    }
}

/// Ends an operation's use of a region. The last user of a revoked region releases it.
pub(crate) fn leave_region(connection: &mut Connection, region: u64) {
    let Some(known) = connection.regions.get_mut(&region) else { return };
    known.users -= 1;
    if known.users == 0 && known.state == RegionState::Revoked {
        connection.regions.remove(&region);
        connection.outbox.push_back(Reply::Revoked { region });
    }
}

impl SharedState {
    /// Looks up all memory of an RMA. Returns the step to take unless all of it was found.
    fn resolve(&mut self, connection: &mut Connection, id: u64, memory: &mut dyn Memory) -> Option<Step> {
        let rma = self.rmas.get_mut(id)?;
        let kind = rma.ticket.kind;
        for (segment, place) in rma.segments.as_slice().iter().zip(&mut rma.remote) {
            match search(connection, segment, |access| is_allowed(kind, access)) {
                Search::Found(found) => *place = found,
                Search::Waits => return Some(Step::Waits),
                Search::Refused => {
                    for other in rma.segments.as_slice() {
                        if connection.keys.get(&other.key) == Some(&KeyState::Refused) {
                            connection.keys.remove(&other.key);
                        }
                    }
                    self.fail_rma(id, Failure::Access, memory);
                    return Some(Step::Issued);
                }
            }
        }
        for place in &rma.remote[..rma.segments.as_slice().len()] {
            use_region(connection, place.region);
        }
        rma.stage = Stage::Bytes(0);
        None
    }

    pub(crate) fn issue_write(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        id: u64,
        memory: &mut dyn Memory,
    ) -> Step {
        loop {
            let Some(rma) = self.rmas.get_mut(id) else { return Step::Issued };
            if matches!(rma.stage, Stage::Bytes(_)) && rma.is_revoked(connection) {
                rma.failure = rma.failure.or(Some(Failure::Access));
            }
            if rma.failure.is_some() {
                rma.stage = Stage::Requested;
            }
            match rma.stage {
                Stage::Unresolved => {
                    if let Some(step) = self.resolve(connection, id, memory) {
                        return step;
                    }
                }
                Stage::Bytes(done) if done == rma.local.len => rma.stage = Stage::Notice(0),
                Stage::Bytes(done) => {
                    let (remote, left) = rma.at(done);
                    let len = left.min(self.config.chunk);
                    let (most, bytes) = (self.config.writes_in_flight, self.config.bytes_in_flight);
                    if !connection.writes.has_room(len, most, bytes) {
                        return Step::Waits;
                    }
                    rma.stage = Stage::Bytes(done + len);
                    rma.under_way += 1;
                    connection.writes.add(len);
                    let from = rma.local.within(done, len);
                    let request = self.start_request(peer, RequestPart::WriteChunk(id, len));
                    self.actions.push_back(Action::Write { peer, remote, from, request });
                }
                Stage::Notice(index) => {
                    let Some(segment) = rma.segments.as_slice().get(index).copied() else {
                        rma.stage = Stage::Requested;
                        continue;
                    };
                    let region = rma.remote[index].region;
                    let is_last = index + 1 == rma.segments.as_slice().len();
                    let data = rma.ticket.data.filter(|_| is_last);
                    let told = connection.regions.get(&region).is_some_and(|r| r.description.told.of_writes);
                    if data.is_none() && !told {
                        rma.stage = Stage::Notice(index + 1);
                        continue;
                    }
                    if !self.may_send(peer, connection) {
                        return Step::Waits;
                    }
                    if let Some(rma) = self.rmas.get_mut(id) {
                        rma.stage = Stage::Notice(index + 1);
                        rma.under_way += 1;
                    }
                    let notice = Message::Notify { region, what: Notice::Written, len: segment.len, data };
                    let request = self.start_request(peer, RequestPart::Notice(id));
                    self.transmit(peer, connection, notice, Payload::None, request);
                }
                Stage::Requested => {
                    self.end_rma_if_over(connection, id, memory);
                    return Step::Issued;
                }
            }
        }
    }

    pub(crate) fn issue_read(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        id: u64,
        memory: &mut dyn Memory,
    ) -> Step {
        if let Some(step) = self.resolve(connection, id, memory) {
            return step;
        }
        let Some(rma) = self.rmas.get_mut(id) else { return Step::Issued };
        rma.stage = Stage::Requested;
        let mut done = 0;
        for (segment, place) in rma.segments.as_slice().iter().zip(&rma.remote) {
            let into = rma.local.within(done, segment.len);
            done += segment.len;
            if segment.len == 0 {
                continue;
            }
            rma.under_way += 1;
            let (remote, owner) = (place.remote, Owner::Rma(id));
            let transfer = Transfer { peer, remote, into, issued: 0, chunks: 0, failure: None, owner };
            connection.pending_transfers.push_back(self.transfers.insert(transfer));
        }
        self.end_rma_if_over(connection, id, memory);
        Step::Issued
    }

    /// Records the end of a request or transfer of an RMA.
    pub(crate) fn part_of_rma_done(&mut self, id: u64, failure: Option<Failure>) {
        if let Some(rma) = self.rmas.get_mut(id) {
            rma.under_way -= 1;
            rma.failure = rma.failure.or(failure);
        }
    }

    /// Ends an RMA if nothing of it is in progress any more.
    pub(crate) fn end_rma_if_over(&mut self, connection: &mut Connection, id: u64, memory: &mut dyn Memory) {
        let Some(rma) = self.rmas.get(id) else { return };
        if rma.under_way > 0 || rma.stage != Stage::Requested {
            return;
        }
        let failure = rma.failure;
        for (segment, place) in rma.segments.as_slice().iter().zip(&rma.remote) {
            let told = connection.regions.get(&place.region).is_some_and(|r| r.description.told.of_reads);
            if told && failure.is_none() && rma.ticket.kind == Kind::Read {
                let (region, len) = (place.region, segment.len);
                connection.outbox.push_back(Reply::Notice { region, what: Notice::Read, len });
            }
            leave_region(connection, place.region);
        }
        self.end_rma(id, failure.map_or(Ok(()), Err), memory);
    }

    /// Ends an RMA that uses no regions, or whose regions are gone.
    pub(crate) fn fail_rma(&mut self, id: u64, failure: Failure, memory: &mut dyn Memory) {
        self.end_rma(id, Err(failure), memory);
    }

    fn end_rma(&mut self, id: u64, result: Result<(), Failure>, memory: &mut dyn Memory) {
        let Some(rma) = self.rmas.remove(id) else { return };
        if let Some(buffer) = rma.kept {
            memory.release(buffer);
        }
        self.complete(&OperationInfo { data: None, ..rma.ticket }, result);
    }
}

impl Rma {
    /// Returns true if one of its regions has been revoked.
    pub(crate) fn is_revoked(&self, connection: &Connection) -> bool {
        let is_revoked = |place: &RemoteLocation| {
            connection.regions.get(&place.region).is_some_and(|known| known.state == RegionState::Revoked)
        };
        self.remote[..self.segments.as_slice().len()].iter().any(is_revoked)
    }

    /// Returns the remote location of local byte `done`, and the number of contiguous bytes there.
    fn at(&self, done: u64) -> (Remote, u64) {
        let mut before = 0;
        for (segment, place) in self.segments.as_slice().iter().zip(&self.remote) {
            let offset = done - before;
            if offset < segment.len {
                let Remote { address, rkey } = place.remote;
                return (Remote { address: address + offset, rkey }, segment.len - offset);
            }
            before += segment.len;
        }
        // Never reached, because `done` is below the total length of the segments.
        (self.remote[0].remote, 0)
    }
}
