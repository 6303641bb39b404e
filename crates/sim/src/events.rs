//! Record of single events, limited for each kind.

use std::collections::BTreeMap;

use pathweave_records::{EventKind, EventRecord};

/// Events of a run so far. Each kind has its own limit, so that a flood of one kind does not displace the others.
#[derive(Debug, Default)]
pub(crate) struct Events {
    most: u32,
    list: Vec<EventRecord>,
    kept: BTreeMap<EventKind, u32>,
    left_out: BTreeMap<EventKind, u64>,
}

impl Events {
    /// Creates a record that keeps up to `most` events of each kind.
    pub(crate) fn new(most: u32) -> Self {
        Events { most, ..Events::default() }
    }

    /// Adds an event. Events need not come in order of time, because hosts are simulated one by one within a window.
    pub(crate) fn push(&mut self, event: EventRecord) {
        let kept = self.kept.entry(event.kind).or_default();
        if *kept < self.most {
            *kept += 1;
            self.list.push(event);
        } else {
            *self.left_out.entry(event.kind).or_default() += 1;
        }
    }

    /// Returns the kept events in order of time, and the number of others by kind.
    pub(crate) fn into_list(mut self) -> (Vec<EventRecord>, BTreeMap<EventKind, u64>) {
        self.list.sort_by_key(|event| event.time_ps);
        (self.list, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_kind_leaves_room_for_others() {
        let mut events = Events::new(2);
        for time_ps in [9, 3, 5, 7] {
            events.push(EventRecord::new(time_ps, EventKind::Retransmit, 0));
        }
        events.push(EventRecord::new(4, EventKind::Drop, 0));
        let (list, left_out) = events.into_list();
        let order: Vec<(u64, EventKind)> = list.iter().map(|event| (event.time_ps, event.kind)).collect();
        assert_eq!(order, [(3, EventKind::Retransmit), (4, EventKind::Drop), (9, EventKind::Retransmit)]);
        assert_eq!(left_out, BTreeMap::from([(EventKind::Retransmit, 2)]));
    }
}
