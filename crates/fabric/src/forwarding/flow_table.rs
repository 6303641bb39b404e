//! A table of flows of bounded size, as switches have.

use pathweave_units::{HostId, PathId, Time, mix64};

use crate::packet::Header;

/// Key of a flow: source, destination, path entropy and traffic class.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, borsh::BorshSerialize, borsh::BorshDeserialize,
)]
pub(crate) struct FlowKey {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    pub(crate) path: PathId,
    class: u8,
}

impl FlowKey {
    pub(crate) fn from_header(header: &Header) -> Self {
        FlowKey { src: header.src(), dst: header.dst(), path: header.path(), class: header.class() }
    }

    fn hash(&self) -> u64 {
        let ends = u64::from(self.src.0) << 32 | u64::from(self.dst.0);
        mix64(mix64(ends) ^ (u64::from(self.path.0) << 8 | u64::from(self.class)))
    }
}

/// An entry of a [`FlowTable`].
pub(crate) trait Entry: Sized {
    fn key(&self) -> FlowKey;
    /// Returns true if another flow may take this entry.
    fn is_stale(&self, now: Time) -> bool;
}

/// Flow table with [`WAYS`] candidate entries for each flow. A flow gets no entry if all its candidates belong to
/// flows that are not stale.
pub(crate) struct FlowTable<E> {
    /// Entries; empty until the first flow.
    places: Vec<Option<E>>,
    capacity: usize,
}

const WAYS: usize = 4;

impl<E: Entry> FlowTable<E> {
    /// Creates a table for `capacity` flows, a power of two.
    pub(crate) fn new(capacity: u32) -> Self {
        FlowTable { places: Vec::new(), capacity: (capacity as usize).max(WAYS) }
    }

    fn bucket(&mut self, key: FlowKey) -> &mut [Option<E>] {
        if self.places.is_empty() {
            self.places.resize_with(self.capacity, || None);
        }
        let bucket = key.hash() as usize & (self.capacity / WAYS - 1);
        &mut self.places[bucket * WAYS..][..WAYS]
    }

    /// Returns the entry of a flow, if it has one.
    pub(crate) fn get(&mut self, key: FlowKey) -> Option<&mut E> {
        self.bucket(key).iter_mut().flatten().find(|entry| entry.key() == key)
    }

    /// Returns the entry of a flow. Creates it with `make` if necessary, and returns `None` if there is no room.
    pub(crate) fn get_or_insert(
        &mut self,
        key: FlowKey,
        now: Time,
        make: impl FnOnce() -> E,
    ) -> Option<&mut E> {
        let bucket = self.bucket(key);
        let known = bucket.iter().position(|place| place.as_ref().is_some_and(|entry| entry.key() == key));
        let place = match known {
            Some(place) => place,
            None => {
                let free = |place: &Option<E>| place.as_ref().is_none_or(|entry| entry.is_stale(now));
                let place = bucket.iter().position(free)?;
                bucket[place] = Some(make());
                place
            }
        };
        bucket[place].as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Seen(FlowKey, Time);

    impl Entry for Seen {
        fn key(&self) -> FlowKey {
            self.0
        }
        fn is_stale(&self, now: Time) -> bool {
            now.as_ps() > self.1.as_ps() + 100
        }
    }

    fn key(src: u32) -> FlowKey {
        FlowKey { src: HostId(src), dst: HostId(9), path: PathId(1), class: 1 }
    }

    #[test]
    fn a_full_table_turns_flows_away_until_entries_are_stale() {
        // A table of one bucket.
        let mut table = FlowTable::new(4);
        let mut add = |src, ps| {
            let now = Time::from_ps(ps);
            table.get_or_insert(key(src), now, || Seen(key(src), now)).is_some()
        };
        assert!((0..4).all(|src| add(src, u64::from(src))));
        assert!(!add(4, 100));
        assert!(add(2, 100));
        // The first entry is of time 0, and stale after 100.
        assert!(add(4, 101));
        assert!(!add(0, 101));
        assert!(table.get(key(0)).is_none() && table.get(key(4)).is_some());
    }
}
