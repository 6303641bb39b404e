//! Atomics on memory of peers and of this endpoint (specification, section 4, "Atomics").

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::atomic::{AtomicForm, AtomicOp, AtomicType, apply};
use crate::config::MAX_ATOMIC_BYTES;
use crate::engine::Engine;
use crate::memory::{Access, Memory, PeerId, Piece};
use crate::operations::{Awaits, Fetching, OperationInfo, Queued, QueuedAtomic, RequestPart, Sent, Slot};
use crate::output::{Failure, Kind, Payload, RequestId};
use crate::peer::{Connection, MAX_KEY_REQUESTS};
use crate::pump::Step;
use crate::region::PeerView;
use crate::request::{Atomic, DoneWhen, Fetch, PostError, Segment};
use crate::rma::{Search, search, use_region};
use crate::shared::SharedState;
use crate::wire::{AckRequest, AtomicMessage, Message};

impl Fetch {
    fn form(&self) -> AtomicForm {
        match self {
            Fetch::Nothing => AtomicForm::Plain,
            Fetch::Old { .. } => AtomicForm::Fetch,
            Fetch::Compared { .. } => AtomicForm::Compare,
        }
    }
    fn result(&self) -> Piece {
        match self {
            Fetch::Nothing => Piece::NONE,
            Fetch::Old { result } | Fetch::Compared { result, .. } => *result,
        }
    }
}

/// Returns true if `access` grants the rights that an atomic needs.
fn is_allowed(op: AtomicOp, form: AtomicForm, access: Access) -> bool {
    let reads = form != AtomicForm::Plain;
    let writes = op != AtomicOp::Read;
    (!reads || access.reads()) && (!writes || access.writes())
}

impl Engine {
    /// Posts an atomic on memory of a peer. The peer's engine executes it once, in the order of this side's messages.
    pub fn post_atomic(&mut self, atomic: Atomic, memory: &mut dyn Memory) -> Result<(), PostError> {
        let form = atomic.fetch.form();
        if !atomic.op.is_valid(atomic.kind, form) {
            return Err(PostError::NotSupported);
        }
        let len = u64::from(atomic.count) * atomic.kind.size() as u64;
        let fits = |piece: Piece| piece.len == len;
        let all_fit = match atomic.fetch {
            Fetch::Nothing => true,
            Fetch::Old { result } => fits(result),
            Fetch::Compared { compare, result } => fits(compare) && fits(result),
        };
        if len == 0 || !all_fit || atomic.op.has_operand() && !fits(atomic.operand) {
            return Err(PostError::Lengths);
        }
        self.admit(len, MAX_ATOMIC_BYTES)?;
        let ticket = OperationInfo {
            context: atomic.context,
            kind: if form == AtomicForm::Plain { Kind::Atomic } else { Kind::FetchAtomic },
            report: atomic.report,
            peer: atomic.to,
            len,
            data: None,
            slot: if atomic.to == PeerId::SELF { Slot::NotCounted } else { Slot::Counted },
        };
        let values = values_of(&atomic, len as usize, memory);
        if atomic.to == PeerId::SELF {
            self.atomic_of_self(&ticket, &atomic, &values, memory);
            return Ok(());
        }
        self.core.operations += 1;
        let queued = Queued::Atomic(QueuedAtomic { ticket, atomic, values });
        self.enqueue(atomic.to, core::iter::once(atomic.key), queued, memory);
        Ok(())
    }

    fn atomic_of_self(
        &mut self,
        ticket: &OperationInfo,
        atomic: &Atomic,
        values: &[u8],
        memory: &mut dyn Memory,
    ) {
        let core = &mut self.core;
        let form = atomic.fetch.form();
        let opened = core.regions.by_key(atomic.key);
        let allowed = opened.filter(|o| is_allowed(atomic.op, form, o.region.access));
        let Some((piece, told)) = allowed
            .and_then(|o| Some((o.piece(atomic.address, ticket.len)?, o.region.events.reported_accesses())))
        else {
            return core.complete(ticket, Err(Failure::Access));
        };
        let old = execute(atomic.op, atomic.kind, piece, values, memory);
        if form != AtomicForm::Plain {
            memory.write(atomic.fetch.result(), &old);
        }
        let (kind, is_told) = told_kind(atomic.op, told);
        if is_told {
            core.report_access(kind, PeerId::SELF, Some(atomic.key), ticket.len, None);
        }
        core.complete(ticket, Ok(()));
    }
}

fn told_kind(op: AtomicOp, told: crate::wire::Told) -> (Kind, bool) {
    if op == AtomicOp::Read { (Kind::RemoteRead, told.of_reads) } else { (Kind::RemoteWrite, told.of_writes) }
}

/// Returns the operands followed by the comparands.
fn values_of(atomic: &Atomic, len: usize, memory: &mut dyn Memory) -> Box<[u8]> {
    let mut values = Vec::with_capacity(2 * len);
    let mut add = |piece: Piece| {
        let start = values.len();
        values.resize(start + len, 0);
        memory.fetch(piece.within(0, len as u64), &mut values[start..]);
    };
    if atomic.op.has_operand() {
        add(atomic.operand);
    }
    if let Fetch::Compared { compare, .. } = atomic.fetch {
        add(compare);
    }
    values.into()
}

/// Executes an atomic value by value, and returns the previous values.
fn execute(
    op: AtomicOp,
    kind: AtomicType,
    piece: Piece,
    values: &[u8],
    memory: &mut dyn Memory,
) -> Box<[u8]> {
    let (size, len) = (kind.size(), piece.len as usize);
    let mut old = vec![0; len];
    let list = |which: usize, at: usize| values.get(which * len + at..which * len + at + size).unwrap_or(&[]);
    for at in (0..len).step_by(size) {
        let before = &mut old[at..at + size];
        memory.update(piece.within(at as u64, size as u64), &mut |word| {
            before.copy_from_slice(word);
            apply(op, kind, word, list(0, at), list(1, at));
        });
    }
    old.into()
}

impl SharedState {
    pub(crate) fn issue_atomic(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        queued: &mut QueuedAtomic,
    ) -> Step {
        let QueuedAtomic { ticket, atomic, values } = queued;
        let form = atomic.fetch.form();
        let segment = Segment { key: atomic.key, address: atomic.address, len: ticket.len };
        let place = match search(connection, &segment, |access| is_allowed(atomic.op, form, access)) {
            Search::Found(place) => place,
            Search::Waits => return Step::Waits,
            Search::Refused => {
                self.complete(ticket, Err(Failure::Access));
                return Step::Issued;
            }
        };
        if form != AtomicForm::Plain && connection.fetching >= MAX_KEY_REQUESTS
            || !self.may_send(peer, connection)
        {
            return Step::Waits;
        }
        let (mut id, mut ack, mut request) = (0, AckRequest::No, RequestId(0));
        if form == AtomicForm::Plain {
            let awaits = match atomic.done {
                DoneWhen::Transmitted => Awaits::Transport,
                DoneWhen::Delivered => Awaits::TransportAndAck,
            };
            let sent = self.sent.insert(Sent { ticket: *ticket, kept: None, registered: None, awaits });
            if awaits == Awaits::TransportAndAck {
                connection.awaiting_ack.push_back(sent);
                ack = AckRequest::Wanted;
            }
            request = self.start_request(peer, RequestPart::Message(sent));
        } else {
            connection.fetching += 1;
            use_region(connection, place.region);
            let result = atomic.fetch.result();
            id = self.fetching.insert(Fetching { ticket: *ticket, result, region: place.region });
        }
        let message = Message::Atomic(AtomicMessage {
            region: place.region,
            address: atomic.address,
            id,
            op: atomic.op,
            kind: atomic.kind,
            form,
            count: atomic.count as u16,
            ack,
            values: &[],
        });
        let values = core::mem::take(values);
        let payload = if values.is_empty() { Payload::None } else { Payload::Bytes(values) };
        self.transmit(peer, connection, message, payload, request);
        Step::Issued
    }

    /// Executes an atomic of a peer and returns the previous values, or an empty list if the memory is withdrawn.
    /// Returns `None` if the peer must not do this.
    pub(crate) fn carry_out(
        &mut self,
        peer: PeerId,
        atomic: &AtomicMessage<'_>,
        memory: &mut dyn Memory,
    ) -> Option<Box<[u8]>> {
        let opened = match self.regions.view_for_peer(atomic.region, peer) {
            PeerView::Yes(opened) => opened,
            PeerView::Withdrawn => return Some(Box::default()),
            PeerView::No => return None,
        };
        if !is_allowed(atomic.op, atomic.form, opened.region.access) {
            return None;
        }
        let len = u64::from(atomic.count) * atomic.kind.size() as u64;
        let piece = opened.piece(atomic.address, len)?;
        let (key, told) = (opened.region.key, opened.region.events.reported_accesses());
        let old = execute(atomic.op, atomic.kind, piece, atomic.values, memory);
        let (kind, is_told) = told_kind(atomic.op, told);
        if is_told {
            self.report_access(kind, peer, Some(key), len, None);
        }
        Some(old)
    }
}
