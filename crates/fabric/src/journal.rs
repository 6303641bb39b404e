//! Record of rare events: losses and pauses, counted by port and logged.

use pathweave_units::{Duration, Time};

use crate::event::{DropReason, FabricEvent, FabricEventKind};
use crate::packet::{Contents, Header, PortId};
use crate::pages::Pages;

/// Rare events of a port.
#[derive(Clone, Copy)]
pub(crate) struct RareEvents {
    pub(crate) dropped_packets: u64,
    pub(crate) trimmed_packets: u64,
    pub(crate) pauses: u64,
    /// Total time of the pauses that have ended.
    pub(crate) paused: Duration,
    /// Time since which the port has had a paused class; [`Time::MAX`] if it has none.
    pub(crate) paused_since: Time,
}

impl RareEvents {
    const NONE: RareEvents = RareEvents {
        dropped_packets: 0,
        trimmed_packets: 0,
        pauses: 0,
        paused: Duration::ZERO,
        paused_since: Time::MAX,
    };
}

/// Log of rare events, and their counts by port. Frequent events are counted in the ports and by the marker.
pub(crate) struct EventLog<P> {
    pub(crate) log: Vec<FabricEvent<P>>,
    pub(crate) of_port: Pages<RareEvents>,
}

impl<P: Copy> EventLog<P> {
    pub(crate) fn new(ports: usize) -> Self {
        EventLog { log: Vec::new(), of_port: Pages::new(ports, RareEvents::NONE) }
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
        self.of_port.at(port).dropped_packets += 1;
        let content = *contents.get(header);
        contents.free(header);
        self.note(now, port, FabricEventKind::Dropped { reason, header: *header, content });
    }

    pub(crate) fn note(&mut self, time: Time, port: PortId, kind: FabricEventKind<P>) {
        self.log.push(FabricEvent { time, port, kind });
    }

    /// Records the first pause of a class of a port that had no paused class.
    pub(crate) fn pause_begins(&mut self, now: Time, port: PortId) {
        let events = self.of_port.at(port);
        events.paused_since = now;
        events.pauses += 1;
    }

    /// Records the end of the last pause of a port.
    pub(crate) fn pause_ends(&mut self, now: Time, port: PortId) {
        let events = self.of_port.at(port);
        let since = std::mem::replace(&mut events.paused_since, Time::MAX);
        events.paused += now - since;
    }

    /// Returns true if any port has a paused class.
    pub(crate) fn any_paused(&self) -> bool {
        self.of_port.changed().any(|events| events.paused_since != Time::MAX)
    }
}
