//! Reporting of finished operations: entries of completion queues, and counts of counters.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pathweave_tagged::{Completion, Failure, Kind, Label, Piece, Release, Report};

use crate::abi::errno::*;
use crate::abi::fabric::*;
use crate::object::counter::Counter;
use crate::object::queue::{Entry, EntryError, Queue};
use crate::object::uses::Use;

/// Operations, without a flag of their own, that make entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All operations.
    All,
    /// Operations that request an entry (FI_SELECTIVE_COMPLETION).
    Flagged,
}

/// A completion queue, bound for one direction.
#[derive(Clone)]
pub(crate) struct BoundQueue {
    pub(crate) queue: Arc<Queue>,
    pub(crate) selection: Selection,
    pub(crate) _held: Arc<Use>,
}

/// A counter, and the flags of the operations it counts.
pub(crate) struct BoundCounter {
    pub(crate) counter: Arc<Counter>,
    pub(crate) flags: u64,
    pub(crate) _held: Use,
}

/// Destinations of an endpoint's reports.
#[derive(Default)]
pub(crate) struct Reporter {
    pub(crate) transmit: Option<BoundQueue>,
    pub(crate) receive: Option<BoundQueue>,
    pub(crate) counters: Vec<BoundCounter>,
    /// Number of entries of peers' writes that the application has read.
    pub(crate) notices_read: Arc<AtomicU64>,
    pub(crate) tray: DirectEntry,
}

/// Shortcut for the entry that goes to a caller polling an empty queue, without passing through the queue.
/// Later entries go into the queue, so the order is kept.
#[derive(Default)]
pub(crate) struct DirectEntry {
    /// Address of the queue that is polled.
    queue: Option<usize>,
    entry: Option<Entry>,
}

impl DirectEntry {
    /// Starts a poll of this queue by a caller.
    pub(crate) fn begin_poll(&mut self, queue: Option<usize>) {
        self.queue = queue;
    }

    /// Ends the poll. Returns the entry, if there is one.
    pub(crate) fn end_poll(&mut self) -> Option<Entry> {
        self.queue = None;
        self.entry.take()
    }

    /// Stores an entry for the polled queue, or returns it if it must go into its queue.
    fn put(&mut self, queue: &Queue, entry: Entry) -> Option<Entry> {
        let fits = self.queue == Some(queue.address()) && entry.error.is_none() && queue.is_empty();
        // Only the first entry is known to have no entry before it.
        if self.queue == Some(queue.address()) {
            self.queue = None;
        }
        if !fits {
            return Some(entry);
        }
        self.entry = Some(entry);
        None
    }
}

/// Parts of an entry that the engine does not know.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Local {
    /// Context of the application.
    pub(crate) context: usize,
    /// Address of the received data.
    pub(crate) address: usize,
    /// Number of the peer in the address vector.
    pub(crate) source: u64,
}

impl Reporter {
    /// Returns the bound queues. One queue may appear twice.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &BoundQueue> {
        [&self.transmit, &self.receive].into_iter().flatten()
    }

    /// Returns the report that an operation with these flags makes on success.
    pub(crate) fn wanted(bound: Option<&BoundQueue>, flags: u64) -> Report {
        match bound {
            Some(BoundQueue { selection: Selection::All, .. }) => Report::Entry,
            Some(_) if flags & FI_COMPLETION != 0 => Report::Entry,
            _ => Report::Count,
        }
    }

    /// Reports a finished operation.
    pub(crate) fn report(&mut self, done: &Completion, local: Local) {
        self.count(done);
        if done.report == Report::Count && done.result.is_ok() {
            return;
        }
        let bound = match done.kind {
            Kind::Receive(_) | Kind::RemoteWrite | Kind::RemoteRead => &self.receive,
            Kind::Send(_) | Kind::Write | Kind::Read | Kind::Atomic | Kind::FetchAtomic => &self.transmit,
        };
        let Some(bound) = bound else { return };
        let notice = (done.kind == Kind::RemoteWrite).then(|| self.notices_read.clone());
        let entry = Entry {
            context: local.context,
            flags: flags_of(done),
            len: done.len as usize,
            buf: local.address,
            data: done.data.unwrap_or(0),
            tag: done.tag(),
            source: local.source,
            error: done.result.err().map(trouble),
            notice,
        };
        if let Some(entry) = self.tray.put(&bound.queue, entry) {
            bound.queue.push(entry);
        }
    }

    /// Reports a message that was sent at once.
    pub(crate) fn sent(&mut self, label: Label, len: usize, report: Report, context: usize) {
        if report == Report::Count && self.counters.is_empty() {
            return;
        }
        let done = Completion {
            context: 0,
            kind: Kind::Send(label),
            report,
            result: Ok(()),
            len: len as u64,
            data: None,
            peer: None,
            into: Piece::NONE,
            release: Release::No,
            region: None,
        };
        self.report(&done, Local { context, address: 0, source: FI_ADDR_NOTAVAIL });
    }

    fn count(&self, done: &Completion) {
        // A search without a match is not counted as an operation.
        let looks = done.result == Err(Failure::NoMessage);
        let class = class_of(done.kind);
        for bound in self.counters.iter().filter(|bound| bound.flags & class != 0 && !looks) {
            bound.counter.change(|counts| match done.result {
                Ok(()) => counts.good += 1,
                Err(_) => counts.bad += 1,
            });
        }
    }
}

/// Returns the flag by which counters select operations of a kind.
pub(crate) fn class_of(kind: Kind) -> u64 {
    match kind {
        Kind::Send(_) => FI_SEND,
        Kind::Receive(_) => FI_RECV,
        Kind::Write | Kind::Atomic => FI_WRITE,
        Kind::Read | Kind::FetchAtomic => FI_READ,
        Kind::RemoteWrite => FI_REMOTE_WRITE,
        Kind::RemoteRead => FI_REMOTE_READ,
    }
}

fn flags_of(done: &Completion) -> u64 {
    let label = |label| if label == Label::Message { FI_MSG } else { FI_TAGGED };
    let kind = match done.kind {
        Kind::Send(of) => FI_SEND | label(of),
        Kind::Receive(of) => FI_RECV | label(of),
        Kind::Write => FI_RMA | FI_WRITE,
        Kind::Read => FI_RMA | FI_READ,
        Kind::Atomic => FI_ATOMIC | FI_WRITE,
        Kind::FetchAtomic => FI_ATOMIC | FI_READ,
        Kind::RemoteWrite => FI_RMA | FI_REMOTE_WRITE,
        Kind::RemoteRead => FI_RMA | FI_REMOTE_READ,
    };
    // The immediate data of own operations is not reported.
    let tells = matches!(done.kind, Kind::Receive(_) | Kind::RemoteWrite);
    let data = if done.data.is_some() && tells { FI_REMOTE_CQ_DATA } else { 0 };
    let release = if done.release == Release::Released { FI_MULTI_RECV } else { 0 };
    kind | data | release
}

fn trouble(failure: Failure) -> EntryError {
    let (errno, cut) = match failure {
        Failure::Truncated { cut } => (FI_ETRUNC, cut as usize),
        Failure::Cancelled => (FI_ECANCELED, 0),
        Failure::NoMessage => (FI_ENOMSG, 0),
        Failure::Reset => (FI_ECONNRESET, 0),
        Failure::TimedOut => (FI_ETIMEDOUT, 0),
        Failure::Refused => (FI_ECONNREFUSED, 0),
        Failure::Access => (FI_EACCES, 0),
        Failure::NoMemory => (FI_ENOMEM, 0),
        Failure::Io => (FI_EIO, 0),
    };
    EntryError { errno, cut }
}
