//! What is rare, written down: losses and pauses, by port and as a log.

use pathweave_units::Time;

use crate::event::{DropReason, FabricEvent, FabricEventKind};
use crate::packet::{Contents, Header, PortId};
use crate::port::PortStats;

/// The log of rare events, and their counts by port. What is frequent is counted in the ports and by the marker.
pub(crate) struct Journal<P> {
    pub(crate) log: Vec<FabricEvent<P>>,
    pub(crate) stats: Vec<PortStats>,
    /// Since when each port has had a paused class; [`Time::MAX`] where it has none.
    pub(crate) paused_since: Vec<Time>,
}

impl<P: Copy> Journal<P> {
    pub(crate) fn new(ports: usize) -> Self {
        Journal {
            log: Vec::new(),
            stats: vec![PortStats::default(); ports],
            paused_since: vec![Time::MAX; ports],
        }
    }

    /// A packet is lost at `port`: frees its content.
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

    /// A port that had no paused class has one.
    pub(crate) fn pause_begins(&mut self, now: Time, port: PortId) {
        self.paused_since[port as usize] = now;
        self.stats[port as usize].pauses += 1;
    }

    /// No class of a port is paused any more.
    pub(crate) fn pause_ends(&mut self, now: Time, port: PortId) {
        let since = std::mem::replace(&mut self.paused_since[port as usize], Time::MAX);
        self.stats[port as usize].paused += now - since;
    }
}
