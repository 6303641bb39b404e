//! What a backend has done, for whoever wants to know while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ether::frame::Flaw;

/// Counters of a backend, which goes on counting.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    received: AtomicU64,
    stamped: AtomicU64,
    sent: AtomicU64,
    received_by_kernel: AtomicU64,
    sent_by_kernel: AtomicU64,
    foreign: AtomicU64,
    lost: AtomicU64,
    flawed: [AtomicU64; Flaw::ALL.len()],
}

/// What they are at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Datagrams that came past the kernel's network stack.
    pub received: u64,
    /// Of them those of which it is known when they arrived.
    pub stamped: u64,
    /// Datagrams that left past it.
    pub sent: u64,
    /// Batches of datagrams that came by the kernel's socket all the same.
    pub received_by_kernel: u64,
    /// Batches that left by it.
    pub sent_by_kernel: u64,
    /// Datagrams for another address or port than ours.
    pub foreign: u64,
    /// Datagrams that could not leave and were dropped: the link was down, or nobody has told yet where its peer is.
    pub lost: u64,
    /// Frames that are no datagrams, in the order of [`Flaw::ALL`].
    pub flawed: [u64; Flaw::ALL.len()],
}

impl Tally {
    /// Frames with this flaw.
    pub fn flawed(&self, flaw: Flaw) -> u64 {
        self.flawed[flaw as usize]
    }
}

impl Counters {
    /// What they are now.
    pub fn read(&self) -> Tally {
        let Counts { received, stamped, sent, received_by_kernel, sent_by_kernel, foreign, lost, flawed } =
            &*self.0;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Tally {
            received: read(received),
            stamped: read(stamped),
            sent: read(sent),
            received_by_kernel: read(received_by_kernel),
            sent_by_kernel: read(sent_by_kernel),
            foreign: read(foreign),
            lost: read(lost),
            flawed: flawed.each_ref().map(read),
        }
    }

    /// So many datagrams came past the kernel.
    pub fn received(&self, datagrams: u64) {
        add(&self.0.received, datagrams);
    }

    /// Of so many of them it is known when they arrived.
    pub fn stamped(&self, datagrams: u64) {
        add(&self.0.stamped, datagrams);
    }

    /// So many left past it.
    pub fn sent(&self, datagrams: u64) {
        add(&self.0.sent, datagrams);
    }

    /// So many batches came by the kernel's socket.
    pub fn received_by_kernel(&self, batches: u64) {
        add(&self.0.received_by_kernel, batches);
    }

    /// A batch left by it.
    pub fn sent_by_kernel(&self) {
        add(&self.0.sent_by_kernel, 1);
    }

    /// A datagram was for somebody else.
    pub fn foreign(&self) {
        add(&self.0.foreign, 1);
    }

    /// So many datagrams could not leave.
    pub fn lost(&self, datagrams: u64) {
        add(&self.0.lost, datagrams);
    }

    /// A frame had this flaw.
    pub fn flawed(&self, flaw: Flaw) {
        add(&self.0.flawed[flaw as usize], 1);
    }
}

/// One thread counts, others only read: nothing is lost without an atomic addition, which would cost more.
fn add(count: &AtomicU64, by: u64) {
    count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}
