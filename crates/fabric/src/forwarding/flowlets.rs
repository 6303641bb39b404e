//! Flowlets: parts of a flow so far apart that they may take different ways without overtaking each other.

use pathweave_units::{Duration, Time};

use crate::packet::PortId;

/// What a switch knows of the flowlets of one hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flowlet {
    /// When its last packet came.
    last: Time,
    /// Its egress port; [`NONE`] before the first.
    port: PortId,
}

const NONE: PortId = PortId::MAX;

/// The flowlets of a switch by the hash of their flow. Of bounded size: flows whose hashes meet are taken for one.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowletTable {
    /// Empty until the switch has a choice to make.
    entries: Vec<Flowlet>,
}

/// What the table says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// It belongs to the flowlet that takes this port.
    Known(PortId),
    /// It begins a flowlet; the one before took this port, if there was one.
    Fresh(Option<PortId>),
}

impl FlowletTable {
    /// Looks a packet up and notes that it came.
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

    /// The flowlet a packet belongs to takes this port from now on.
    pub(crate) fn assign(&mut self, flow_hash: u64, port: PortId) {
        let entries = self.entries.len() as u32;
        self.entries[place(flow_hash, entries)].port = port;
    }
}

/// By the low bits: ports are chosen by the high ones.
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
        // Exactly the gap is still the same flowlet; the gap counts from the last packet.
        assert_eq!(look(51, 3), Lookup::Known(7));
        assert_eq!(look(101, 3), Lookup::Known(7));
        assert_eq!(look(152, 3), Lookup::Fresh(Some(7)));
        // The new flowlet may go on where the last one went; 3 + 16 is the same entry, 4 is not.
        assert_eq!(look(153, 19), Lookup::Known(7));
        assert_eq!(look(153, 4), Lookup::Fresh(None));
    }
}
