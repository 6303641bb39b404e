//! How far a run has come, as its main loop needs to know it: of one process, or of all together.

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_execution::Outstanding;
use pathweave_units::Time;

/// How far a run has come.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Pulse {
    /// No later than the next thing that happens.
    pub(crate) next: Time,
    /// When the next step of a barrier is due.
    pub(crate) barrier: Time,
    /// When the latest event of a host was.
    pub(crate) latest: Time,
    /// Events so far, of hosts and of the fabric.
    pub(crate) events: u64,
    /// Packets put on a link so far, by host or switch.
    pub(crate) packet_hops: u64,
    pub(crate) bytes_done: u128,
    pub(crate) flows_done: u64,
    pub(crate) outstanding: Outstanding,
    /// A port is paused. Looked at only where nothing is to come.
    pub(crate) any_paused: bool,
    /// Somebody wants the run to end here.
    pub(crate) stop: bool,
}

impl Pulse {
    /// Of both together.
    fn and(self, other: Pulse) -> Pulse {
        Pulse {
            next: self.next.min(other.next),
            barrier: self.barrier.min(other.barrier),
            latest: self.latest.max(other.latest),
            events: self.events + other.events,
            packet_hops: self.packet_hops + other.packet_hops,
            bytes_done: self.bytes_done + other.bytes_done,
            flows_done: self.flows_done + other.flows_done,
            outstanding: self.outstanding.and(other.outstanding),
            any_paused: self.any_paused | other.any_paused,
            stop: self.stop | other.stop,
        }
    }

    /// Of all of them together.
    pub(crate) fn of_all(pulses: impl IntoIterator<Item = Pulse>) -> Pulse {
        pulses.into_iter().reduce(Pulse::and).expect("there is a part")
    }
}
