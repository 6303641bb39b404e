//! What has ended, as entries of completion queues and counts of counters.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pathweave_tagged::{Completion, Failure, Kind, Label, Piece, Release, Report};

use crate::abi::errno::*;
use crate::abi::fabric::*;
use crate::object::counter::Counter;
use crate::object::queue::{Entry, Queue, Trouble};
use crate::object::uses::Use;

/// Which operations without a flag of their own make entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All.
    All,
    /// Those that ask for it (FI_SELECTIVE_COMPLETION).
    Flagged,
}

/// A completion queue, bound for one direction.
#[derive(Clone)]
pub(crate) struct BoundQueue {
    pub(crate) queue: Arc<Queue>,
    pub(crate) selection: Selection,
    pub(crate) _held: Arc<Use>,
}

/// A counter, and what it counts.
pub(crate) struct BoundCounter {
    pub(crate) counter: Arc<Counter>,
    pub(crate) flags: u64,
    pub(crate) _held: Use,
}

/// Where an endpoint reports to.
#[derive(Default)]
pub(crate) struct Reporter {
    pub(crate) transmit: Option<BoundQueue>,
    pub(crate) receive: Option<BoundQueue>,
    pub(crate) counters: Vec<BoundCounter>,
    /// Entries of peers' writes that the application has read.
    pub(crate) notices_read: Arc<AtomicU64>,
    pub(crate) tray: Tray,
}

/// The entry that goes to a caller who looks into an empty queue, past the queue. Behind it entries go into the queue, so they stay
/// in order.
#[derive(Default)]
pub(crate) struct Tray {
    /// The address of the queue.
    queue: Option<usize>,
    entry: Option<Entry>,
}

impl Tray {
    /// A caller looks into this queue.
    pub(crate) fn hold_out(&mut self, queue: Option<usize>) {
        self.queue = queue;
    }

    /// It takes what there is.
    pub(crate) fn take_back(&mut self) -> Option<Entry> {
        self.queue = None;
        self.entry.take()
    }

    /// Puts in an entry for a queue, or gives it back.
    fn put(&mut self, queue: &Queue, entry: Entry) -> Option<Entry> {
        let fits = self.queue == Some(queue.address()) && entry.error.is_none() && queue.is_empty();
        // Of the first alone is it known that none is before it.
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

/// What an entry says that the engine does not know.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Local {
    /// The application's context.
    pub(crate) context: usize,
    /// Where it was put.
    pub(crate) address: usize,
    /// The peer's number in the address vector.
    pub(crate) source: u64,
}

impl Reporter {
    /// The queues, one of them perhaps twice.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &BoundQueue> {
        [&self.transmit, &self.receive].into_iter().flatten()
    }

    /// Whether an operation of these flags makes an entry when it succeeds.
    pub(crate) fn wanted(bound: Option<&BoundQueue>, flags: u64) -> Report {
        match bound {
            Some(BoundQueue { selection: Selection::All, .. }) => Report::Entry,
            Some(_) if flags & FI_COMPLETION != 0 => Report::Entry,
            _ => Report::Count,
        }
    }

    /// Something has ended.
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

    /// A message has been sent at once.
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
        // What only looks, or only says that a buffer is free, is no operation that ended.
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

/// The flag by which counters choose.
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
    // Of what this end sent the data is nobody's news.
    let tells = matches!(done.kind, Kind::Receive(_) | Kind::RemoteWrite);
    let data = if done.data.is_some() && tells { FI_REMOTE_CQ_DATA } else { 0 };
    let release = if done.release == Release::Released { FI_MULTI_RECV } else { 0 };
    kind | data | release
}

fn trouble(failure: Failure) -> Trouble {
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
    Trouble { errno, cut }
}
