//! Flowlets: bursts of a flow with gaps between them so long that they may take different paths without overtaking.

use pathweave_units::{Duration, Time};

use crate::packet::PortId;

/// State of the flowlets of one hash value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flowlet {
    /// Time of the last packet.
    last: Time,
    /// Egress port; [`NONE`] before the first.
    port: PortId,
}

const NONE: PortId = PortId::MAX;

/// Flowlet table of a switch, indexed by the hash of the flow. The size is bounded; flows whose hashes collide count
/// as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowletTable {
    /// Entries; empty until the switch has a choice to make.
    entries: Vec<Flowlet>,
}

/// Result of a lookup of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The packet belongs to the flowlet that takes this port.
    Known(PortId),
    /// The packet begins a flowlet. The value is the port of the flowlet before it, if there was one.
    Fresh(Option<PortId>),
}

impl FlowletTable {
    /// Looks a packet up and records its time.
    pub(crate) fn look(&mut self, flow_hash: u64, now: Time, gap: Duration, entries: u32) -> Lookup {
        if self.entries.is_empty() {
            self.entries = vec![Flowlet { last: Time::ZERO, port: NONE }; entries as usize];
        }
        let entry = &mut self.entries[place(flow_hash, entries)];
        let idle = now.saturating_since(entry.last);
        entry.last = now;
        match entry.port {
            NONE => Lookup::Fresh(None),
            port if idle > gap => Lookup::Fresh(Some(port)),
            port => Lookup::Known(port),
        }
    }

    /// Assigns an egress port to the flowlet of a packet.
    pub(crate) fn assign(&mut self, flow_hash: u64, port: PortId) {
        let entries = self.entries.len() as u32;
        self.entries[place(flow_hash, entries)].port = port;
    }
}

/// Returns the index of a hash, from its low bits. Ports are chosen by the high bits.
fn place(flow_hash: u64, entries: u32) -> usize {
    (flow_hash as u32 & (entries - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_begins_a_flowlet() {
        let mut table = FlowletTable::default();
        let gap = Duration::from_us(50);
        let mut look = |us, hash| table.look(hash, Time::ZERO + Duration::from_us(us), gap, 16);
        assert_eq!(look(0, 3), Lookup::Fresh(None));
        assert_eq!(look(1, 3), Lookup::Fresh(None));
        table.assign(3, 7);
        let mut look = |us, hash| table.look(hash, Time::ZERO + Duration::from_us(us), gap, 16);
        // Exactly the gap is still the same flowlet. The gap counts from the last packet.
        assert_eq!(look(51, 3), Lookup::Known(7));
        assert_eq!(look(101, 3), Lookup::Known(7));
        assert_eq!(look(152, 3), Lookup::Fresh(Some(7)));
        // The new flowlet may take the port of the last one. Hash 3 + 16 has the same entry, hash 4 has not.
        assert_eq!(look(153, 19), Lookup::Known(7));
        assert_eq!(look(153, 4), Lookup::Fresh(None));
    }
}
