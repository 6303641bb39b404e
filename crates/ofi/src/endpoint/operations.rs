//! Operations that an application posts to an endpoint.

use pathweave_tagged::{
    Atomic, AtomicOp, AtomicType, BufferLifetime, Claim, DoneWhen, Fetch, Found, Label, MAX_INJECT, MatchOn,
    Peek, PeerId, Piece, PostError, Read, Receive, ReceiveCount, Report, Segments, Send, Write,
};

use super::core::{EndpointState, Operation, OperationKind};
use super::report::Reporter;
use crate::abi::errno::*;
use crate::abi::fabric::*;
use crate::ffi::memory::Spans;
use crate::guard::{Errno, FiResult, refused};

/// Message with a tag or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Plain,
    Tagged(u64),
}

/// A message to send.
pub(crate) struct Outgoing {
    pub(crate) to: u64,
    pub(crate) kind: MessageKind,
    pub(crate) spans: Spans,
    pub(crate) data: Option<u64>,
    /// Operation flags such as FI_INJECT, FI_COMPLETION and FI_DELIVERY_COMPLETE.
    pub(crate) flags: u64,
    pub(crate) wanted: Wanted,
}

/// Completion that the application wants on success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The completion that flags and binding determine, with this context.
    Context(usize),
    /// No completion, as for fi_inject and similar calls.
    Nothing,
}

/// A receive.
pub(crate) struct Incoming {
    pub(crate) from: u64,
    pub(crate) want: MatchOn,
    pub(crate) spans: Spans,
    pub(crate) flags: u64,
    pub(crate) context: usize,
    /// Remaining room below which a multi-receive ends, bytes.
    pub(crate) least_room: usize,
}

/// Access to memory of a peer.
pub(crate) struct Rma {
    pub(crate) kind: RmaKind,
    pub(crate) peer: u64,
    pub(crate) spans: Spans,
    pub(crate) segments: Segments,
    pub(crate) flags: u64,
    pub(crate) wanted: Wanted,
}

/// Direction of an access to memory of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RmaKind {
    Read,
    Write { data: Option<u64> },
}

/// Values that an atomic returns.
pub(crate) enum AtomicFetch {
    Nothing,
    Old { result: Spans },
    Compared { compare: Spans, result: Spans },
}

/// An atomic operation.
pub(crate) struct Amo {
    pub(crate) peer: u64,
    pub(crate) operand: Spans,
    pub(crate) fetch: AtomicFetch,
    pub(crate) address: u64,
    pub(crate) key: u64,
    pub(crate) op: AtomicOp,
    pub(crate) kind: AtomicType,
    pub(crate) count: usize,
    pub(crate) flags: u64,
    pub(crate) wanted: Wanted,
}

/// Completion levels that the provider does not support.
const UNSERVED: u64 = FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE;

fn errno(error: PostError) -> Errno {
    let errno = match error {
        PostError::Full | PostError::NoMemory => return Errno(FI_EAGAIN),
        PostError::TooLong { .. } => FI_EMSGSIZE,
        PostError::Lengths | PostError::NotClaimed => FI_EINVAL,
        PostError::NotSupported => FI_EOPNOTSUPP,
        PostError::KeyInUse => FI_ENOKEY,
    };
    refused(errno, error)
}

fn unserved() -> Errno {
    refused(FI_EOPNOTSUPP, "FI_MATCH_COMPLETE and FI_COMMIT_COMPLETE are not offered")
}

fn done_when(flags: u64) -> DoneWhen {
    if flags & FI_DELIVERY_COMPLETE == 0 { DoneWhen::Transmitted } else { DoneWhen::Delivered }
}

fn hold(flags: u64, wanted: Wanted) -> BufferLifetime {
    if flags & FI_INJECT != 0 || wanted == Wanted::Nothing {
        BufferLifetime::ThisCall
    } else {
        BufferLifetime::UntilDone
    }
}

impl EndpointState {
    /// Returns the peer of a number in the address vector.
    fn target(&mut self, number: u64) -> FiResult<PeerId> {
        let version = self.vector.version();
        if self.targets.0 != version {
            self.targets = (version, Vec::new());
        }
        let at = number as usize;
        if let Some(Some(peer)) = self.targets.1.get(at) {
            return Ok(*peer);
        }
        let address = self.vector.address(number).ok_or_else(|| {
            refused(FI_EINVAL, format_args!("number {number} is not in the address vector"))
        })?;
        let peer = self.links.at(address);
        if self.targets.1.len() <= at {
            self.targets.1.resize(at + 1, None);
        }
        self.targets.1[at] = Some(peer);
        Ok(peer)
    }

    /// Returns the peer whose messages a receive accepts; `None` for any peer.
    fn source(&mut self, number: u64) -> FiResult<Option<PeerId>> {
        if number == FI_ADDR_UNSPEC || self.caps & FI_DIRECTED_RECV == 0 {
            return Ok(None);
        }
        self.target(number).map(Some)
    }

    /// Adds an operation. Returns its identifier for the engine.
    fn remember(&mut self, context: usize, kind: OperationKind, pieces: &[Piece]) -> u64 {
        let buffers = pieces.iter().filter(|piece| piece.len > 0).map(|piece| piece.buffer).collect();
        self.operations.insert(Operation { context, buffers, kind }) as u64 + 1
    }

    /// Removes an operation that was rejected.
    fn take_back(&mut self, id: u64) {
        for buffer in self.operations.remove(id as usize - 1).buffers {
            self.buffers.forget(buffer);
        }
    }

    /// Converts the result of posting an operation. Removes the operation on an error.
    fn posted(&mut self, id: u64, result: Result<(), PostError>) -> FiResult {
        result.map_err(|error| {
            self.take_back(id);
            errno(error)
        })
    }

    fn transmit_report(&self, flags: u64, wanted: Wanted) -> (Report, usize) {
        match wanted {
            Wanted::Nothing => (Report::Count, 0),
            Wanted::Context(context) => (Reporter::wanted(self.reporter.transmit.as_ref(), flags), context),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN, FI_EMSGSIZE, FI_EINVAL for an unknown peer, or FI_EOPNOTSUPP.
    pub(crate) fn send(&mut self, message: Outgoing) -> FiResult {
        if message.flags & UNSERVED != 0 {
            return Err(unserved());
        }
        if self.engine.room() == 0 {
            return Err(Errno(FI_EAGAIN));
        }
        let to = self.target(message.to)?;
        let (report, context) = self.transmit_report(message.flags, message.wanted);
        let label = match message.kind {
            MessageKind::Plain => Label::Message,
            MessageKind::Tagged(tag) => Label::Tagged(tag),
        };
        let done = done_when(message.flags);
        let hold = hold(message.flags, message.wanted);
        let len: usize = message.spans.iter().map(|span| span.len()).sum();
        // The engine reports the error if an injected message is too long.
        let may_go =
            done == DoneWhen::Transmitted && (hold == BufferLifetime::UntilDone || len as u64 <= MAX_INJECT);
        if may_go && self.try_send_local(to, label, &message.spans, message.data) {
            self.reporter.sent(label, len, report, context);
            return Ok(());
        }
        // Memory that a peer reads must be contiguous.
        let payload = match message.spans.len() {
            0 | 1 => self.buffers.add(message.spans),
            _ => self.buffers.gather(&message.spans),
        };
        let id = self.remember(context, OperationKind::Once, &[payload]);
        let send = Send { to, label, payload, data: message.data, hold, done, report, context: id };
        let result = self.engine.post_send(send, &mut self.buffers);
        self.posted(id, result)
    }

    /// Posts a receive.
    ///
    /// # Errors
    ///
    /// Returns FI_EINVAL for an unknown peer, or for a multi-receive without room.
    pub(crate) fn receive(&mut self, receive: Incoming) -> FiResult {
        let from = self.source(receive.from)?;
        let into = self.buffers.add(receive.spans);
        let many = receive.flags & FI_MULTI_RECV != 0;
        let (kind, take) = match many {
            true => (OperationKind::Many, ReceiveCount::Many { least: receive.least_room.max(1) as u64 }),
            false => (OperationKind::Receive, ReceiveCount::One),
        };
        let report = Reporter::wanted(self.reporter.receive.as_ref(), receive.flags);
        let id = self.remember(receive.context, kind, &[into]);
        let post = Receive { from, want: receive.want, into, take, report, context: id };
        let result = self.engine.post_receive(post, &mut self.buffers);
        self.posted(id, result)
    }

    /// Searches for a message, claims it, or receives a claimed one.
    ///
    /// # Errors
    ///
    /// Returns FI_EINVAL for an unknown peer, or if no message was claimed with the context.
    pub(crate) fn look(&mut self, look: Incoming) -> FiResult {
        if look.flags & FI_PEEK == 0 {
            return self.claim(look);
        }
        let from = self.source(look.from)?;
        let (found, kind) = match (look.flags & FI_CLAIM != 0, look.flags & FI_DISCARD != 0) {
            (_, true) => (Found::Dropped, OperationKind::Once),
            (true, false) => (Found::Claimed, OperationKind::Claiming),
            (false, false) => (Found::Stays, OperationKind::Once),
        };
        let context = self.remember(look.context, kind, &[]);
        self.engine.peek(Peek { from, want: look.want, found, context }, &mut self.buffers);
        Ok(())
    }

    fn claim(&mut self, claim: Incoming) -> FiResult {
        let index = self
            .claimed
            .remove(&claim.context)
            .ok_or_else(|| refused(FI_EINVAL, "no message was claimed with this context"))?;
        let report = Reporter::wanted(self.reporter.receive.as_ref(), claim.flags);
        let into = match claim.flags & FI_DISCARD {
            0 => Some(self.buffers.add(claim.spans)),
            _ => None,
        };
        let operation = &mut self.operations[index];
        operation.kind = OperationKind::Once;
        operation.buffers.extend(into.filter(|piece| piece.len > 0).map(|piece| piece.buffer));
        let context = index as u64 + 1;
        self.engine.claim(Claim { into, report, context }, &mut self.buffers).map_err(errno)
    }

    /// Cancels the unmatched receive of a context, if there is one.
    pub(crate) fn cancel(&mut self, context: usize) {
        let waits = |kind| matches!(kind, OperationKind::Receive | OperationKind::Many);
        let found = self.operations.iter().filter(|(_, known)| known.context == context && waits(known.kind));
        let ids: Vec<u64> = found.map(|(index, _)| index as u64 + 1).collect();
        for id in ids {
            let before = self.engine.posted_receives();
            self.engine.cancel(id);
            if self.engine.posted_receives() < before {
                return;
            }
        }
    }

    /// Posts a READ or WRITE.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN, FI_EMSGSIZE, or FI_EINVAL for an unknown peer or lengths that differ.
    pub(crate) fn rma(&mut self, rma: Rma) -> FiResult {
        if rma.flags & UNSERVED != 0 {
            return Err(unserved());
        }
        if self.engine.room() == 0 {
            return Err(Errno(FI_EAGAIN));
        }
        let to = self.target(rma.peer)?;
        let (report, context) = self.transmit_report(rma.flags, rma.wanted);
        let local = self.piece(rma.spans);
        let id = self.remember(context, OperationKind::Once, &[local]);
        let segments = rma.segments;
        let result = match rma.kind {
            RmaKind::Read => {
                let read = Read { to, segments, into: local, report, context: id };
                self.engine.post_read(read, &mut self.buffers)
            }
            RmaKind::Write { data } => {
                let hold = hold(rma.flags, rma.wanted);
                let write = Write { to, segments, from: local, data, hold, report, context: id };
                self.engine.post_write(write, &mut self.buffers)
            }
        };
        self.posted(id, result)
    }

    /// Posts an atomic operation.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN, FI_EMSGSIZE, FI_EOPNOTSUPP, or FI_EINVAL for an unknown peer or lengths that
    /// differ.
    pub(crate) fn atomic(&mut self, amo: Amo) -> FiResult {
        if amo.flags & UNSERVED != 0 {
            return Err(unserved());
        }
        if self.engine.room() == 0 {
            return Err(Errno(FI_EAGAIN));
        }
        let to = self.target(amo.peer)?;
        let (report, context) = self.transmit_report(amo.flags, amo.wanted);
        let operand = self.buffers.add(amo.operand);
        let (fetch, pieces) = match amo.fetch {
            AtomicFetch::Nothing => (Fetch::Nothing, vec![operand]),
            AtomicFetch::Old { result } => {
                let result = self.buffers.add(result);
                (Fetch::Old { result }, vec![operand, result])
            }
            AtomicFetch::Compared { compare, result } => {
                let (compare, result) = (self.buffers.add(compare), self.buffers.add(result));
                (Fetch::Compared { compare, result }, vec![operand, compare, result])
            }
        };
        let id = self.remember(context, OperationKind::Once, &pieces);
        let atomic = Atomic {
            to,
            key: amo.key,
            address: amo.address,
            op: amo.op,
            kind: amo.kind,
            count: amo.count as u32,
            operand,
            fetch,
            done: done_when(amo.flags),
            report,
            context: id,
        };
        let result = self.engine.post_atomic(atomic, &mut self.buffers);
        self.posted(id, result)
    }
}
