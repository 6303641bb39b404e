//! Record of rare events: losses and pauses, counted by port and logged.

use pathweave_units::Time;

use crate::event::{DropReason, FabricEvent, FabricEventKind};
use crate::packet::{Contents, Header, PortId};
use crate::port::PortStats;

/// Log of rare events, and their counts by port. Frequent events are counted in the ports and by the marker.
pub(crate) struct EventLog<P> {
    pub(crate) log: Vec<FabricEvent<P>>,
    pub(crate) stats: Vec<PortStats>,
    /// Time since which each port has had a paused class; [`Time::MAX`] if it has none.
    pub(crate) paused_since: Vec<Time>,
}

impl<P: Copy> EventLog<P> {
    pub(crate) fn new(ports: usize) -> Self {
        EventLog {
            log: Vec::new(),
            stats: vec![PortStats::default(); ports],
            paused_since: vec![Time::MAX; ports],
        }
    }

    /// Records the loss of a packet at `port`, and frees its content.
    #[cold]
    pub(crate) fn lose(
        &mut self,
        contents: &mut Contents<P>,
        now: Time,
        port: PortId,
        header: &Header,
        reason: DropReason,
    ) {
        self.stats[port as usize].dropped_packets += 1;
        let content = *contents.get(header);
        contents.free(header);
        self.note(now, port, FabricEventKind::Dropped { reason, header: *header, content });
    }

    pub(crate) fn note(&mut self, time: Time, port: PortId, kind: FabricEventKind<P>) {
        self.log.push(FabricEvent { time, port, kind });
    }

    /// Records the first pause of a class of a port that had no paused class.
    pub(crate) fn pause_begins(&mut self, now: Time, port: PortId) {
        self.paused_since[port as usize] = now;
        self.stats[port as usize].pauses += 1;
    }

    /// Records the end of the last pause of a port.
    pub(crate) fn pause_ends(&mut self, now: Time, port: PortId) {
        let since = std::mem::replace(&mut self.paused_since[port as usize], Time::MAX);
        self.stats[port as usize].paused += now - since;
    }
}
