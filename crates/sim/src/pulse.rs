//! Progress of a run as its main loop needs it, for one process or for all together.

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_execution::Outstanding;
use pathweave_units::Time;

/// Progress of a run.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Progress {
    /// Lower bound of the time of the next event.
    pub(crate) next: Time,
    /// Time of the next step of a barrier.
    pub(crate) barrier: Time,
    /// Time of the latest event of a host.
    pub(crate) latest: Time,
    /// Number of events so far, of hosts and of the fabric.
    pub(crate) events: u64,
    /// Packets put on a link so far, by hosts and switches.
    pub(crate) packet_hops: u64,
    pub(crate) bytes_done: u128,
    pub(crate) flows_done: u64,
    pub(crate) outstanding: Outstanding,
    /// True if a port is paused. Computed only if no event is pending.
    pub(crate) any_paused: bool,
    /// True if the monitor of any process has asked to end the run.
    pub(crate) stop: bool,
}

impl Progress {
    /// Combines the progress of two processes.
    fn and(self, other: Progress) -> Progress {
        Progress {
            next: self.next.min(other.next),
            barrier: self.barrier.min(other.barrier),
            latest: self.latest.max(other.latest),
            events: self.events + other.events,
            packet_hops: self.packet_hops + other.packet_hops,
            bytes_done: self.bytes_done + other.bytes_done,
            flows_done: self.flows_done + other.flows_done,
            outstanding: self.outstanding.merged(other.outstanding),
            any_paused: self.any_paused | other.any_paused,
            stop: self.stop | other.stop,
        }
    }

    /// Combines the progress of all processes.
    pub(crate) fn of_all(pulses: impl IntoIterator<Item = Progress>) -> Progress {
        pulses.into_iter().reduce(Progress::and).expect("there is a part")
    }
}
