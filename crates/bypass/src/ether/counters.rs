//! Counters of a backend, which can be read while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ether::frame::ParseError;

/// Counters of a running backend.
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
    flawed: [AtomicU64; ParseError::ALL.len()],
}

/// Values of the counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterValues {
    /// Datagrams received past the kernel's network stack.
    pub received: u64,
    /// The part of these whose arrival time is known.
    pub stamped: u64,
    /// Datagrams sent past the kernel's network stack.
    pub sent: u64,
    /// Batches of datagrams that were received through the kernel's sockets.
    pub received_by_kernel: u64,
    /// Batches of datagrams that were sent through the kernel's sockets.
    pub sent_by_kernel: u64,
    /// Datagrams for another address or port than ours.
    pub foreign: u64,
    /// Datagrams that could not be sent and were dropped, because the link was down or the peer's Ethernet address
    /// was not resolved yet.
    pub lost: u64,
    /// Frames without a valid datagram, in the order of [`ParseError::ALL`].
    pub flawed: [u64; ParseError::ALL.len()],
}

impl CounterValues {
    /// Returns the number of frames with this flaw.
    pub fn flawed(&self, flaw: ParseError) -> u64 {
        self.flawed[flaw as usize]
    }
}

impl Counters {
    /// Returns the current values.
    pub fn read(&self) -> CounterValues {
        let Counts { received, stamped, sent, received_by_kernel, sent_by_kernel, foreign, lost, flawed } =
            &*self.0;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CounterValues {
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

    /// Counts datagrams received past the kernel.
    pub fn received(&self, datagrams: u64) {
        add(&self.0.received, datagrams);
    }

    /// Counts received datagrams with a known arrival time.
    pub fn stamped(&self, datagrams: u64) {
        add(&self.0.stamped, datagrams);
    }

    /// Counts datagrams sent past the kernel.
    pub fn sent(&self, datagrams: u64) {
        add(&self.0.sent, datagrams);
    }

    /// Counts batches received through the kernel's sockets.
    pub fn received_by_kernel(&self, batches: u64) {
        add(&self.0.received_by_kernel, batches);
    }

    /// Counts a batch sent through the kernel's sockets.
    pub fn sent_by_kernel(&self) {
        add(&self.0.sent_by_kernel, 1);
    }

    /// Counts a datagram for another address or port.
    pub fn foreign(&self) {
        add(&self.0.foreign, 1);
    }

    /// Counts datagrams that could not be sent.
    pub fn lost(&self, datagrams: u64) {
        add(&self.0.lost, datagrams);
    }

    /// Counts a frame with this flaw.
    pub fn flawed(&self, flaw: ParseError) {
        add(&self.0.flawed[flaw as usize], 1);
    }
}

/// Adds to a counter. Only one thread writes, so no update is lost without an atomic addition, which would cost more.
fn add(count: &AtomicU64, by: u64) {
    count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}
