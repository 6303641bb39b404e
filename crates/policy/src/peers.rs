//! State that a store keeps for each peer. An entry is found when a queue pair joins. If peers do not return, it is
//! removed with its last queue pair.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use pathweave_units::HostId;

/// Meaning of a peer's number, which determines the lifetime of its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerKind {
    /// A host. Later queue pairs use it again, so the state of its paths outlives queue pairs, as in the publications
    /// of schemes with path tables.
    #[default]
    Hosts,
    /// A connection. A reused number means a different connection, so the state is removed with its last queue pair.
    Connections,
}

/// Position of a queue pair's entry in a [`PeerTable`]. Valid from [`PeerTable::join`] to [`PeerTable::leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerIndex(u32);

/// Entries by peer. The queue pairs to a peer that may choose from the same number of paths share an entry. So every
/// member of an entry can use all its paths, and no entry has a path that a member cannot use.
#[derive(Debug)]
pub struct PeerTable<T> {
    entries: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
    found: BTreeMap<(HostId, u16), u32>,
}

#[derive(Debug)]
struct Entry<T> {
    key: (HostId, u16),
    /// Number of queue pairs that have joined and not left.
    members: u32,
    state: T,
}

impl<T> PeerTable<T> {
    /// Creates a table without entries, which takes no heap memory.
    pub const fn new() -> Self {
        PeerTable { entries: Vec::new(), free: Vec::new(), found: BTreeMap::new() }
    }

    /// Adds a queue pair to `peer` that may use `paths` paths to its entry. `make` creates the entry if there is
    /// none.
    pub fn join(&mut self, peer: HostId, paths: u16, make: impl FnOnce() -> T) -> PeerIndex {
        let PeerTable { entries, free, found } = self;
        let key = (peer, paths);
        let index = *found.entry(key).or_insert_with(|| {
            let entry = Some(Entry { key, members: 0, state: make() });
            match free.pop() {
                Some(index) => {
                    entries[index as usize] = entry;
                    index
                }
                None => {
                    entries.push(entry);
                    entries.len() as u32 - 1
                }
            }
        });
        if let Some(entry) = &mut entries[index as usize] {
            entry.members += 1;
        }
        PeerIndex(index)
    }

    /// Removes a queue pair from its entry. The entry is removed with its last queue pair, unless peers are hosts.
    pub fn leave(&mut self, index: PeerIndex, peers: PeerKind) {
        let Some(Some(entry)) = self.entries.get_mut(index.0 as usize) else { return };
        entry.members = entry.members.saturating_sub(1);
        if entry.members == 0 && peers == PeerKind::Connections {
            let key = entry.key;
            self.remove(key);
        }
    }

    /// Removes all entries of a peer, with or without members.
    pub fn forget(&mut self, peer: HostId) {
        while let Some((&key, _)) = self.found.range((peer, 0)..=(peer, u16::MAX)).next() {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: (HostId, u16)) {
        if let Some(index) = self.found.remove(&key) {
            self.entries[index as usize] = None;
            self.free.push(index);
        }
    }

    /// Returns an entry. Panics if the queue pair has left it.
    #[inline]
    pub fn get_mut(&mut self, index: PeerIndex) -> &mut T {
        let entry = self.entries.get_mut(index.0 as usize).and_then(Option::as_mut);
        &mut entry.expect("a member of an entry has joined it and not left").state
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the state of all entries.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten().map(|entry| &entry.state)
    }
}

impl<T> Default for PeerTable<T> {
    fn default() -> Self {
        PeerTable::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const A: HostId = HostId(7);
    const B: HostId = HostId(8);

    fn of_paths(table: &mut PeerTable<Vec<u8>>, peer: HostId, paths: u16) -> PeerIndex {
        table.join(peer, paths, || vec![0; usize::from(paths)])
    }

    #[test]
    fn queue_pairs_share_what_has_as_many_paths_as_they_have() {
        let mut table = PeerTable::new();
        let first = of_paths(&mut table, A, 8);
        assert_eq!(of_paths(&mut table, A, 8), first);
        let fewer = of_paths(&mut table, A, 1);
        let other = of_paths(&mut table, B, 8);
        assert_eq!([first, fewer, other].map(|index| table.get_mut(index).len()), [8, 1, 8]);
        table.get_mut(first)[7] = 9;
        assert_eq!((table.get_mut(other)[7], table.len()), (0, 3));
    }

    #[test]
    fn an_entry_goes_with_the_last_of_a_connection_and_outlives_it_with_a_host() {
        for (peers, left) in [(PeerKind::Connections, 0), (PeerKind::Hosts, 9)] {
            let mut table = PeerTable::new();
            let both = [of_paths(&mut table, A, 2), of_paths(&mut table, A, 2)];
            table.get_mut(both[0])[0] = 9;
            table.leave(both[0], peers);
            assert_eq!(table.get_mut(both[1])[0], 9, "one is left");
            table.leave(both[1], peers);
            assert_eq!(table.is_empty(), peers == PeerKind::Connections);
            let again = of_paths(&mut table, A, 2);
            assert_eq!(table.get_mut(again)[0], left);
        }
    }

    #[test]
    fn connections_that_come_and_go_leave_nothing() {
        let mut table = PeerTable::new();
        let stays = of_paths(&mut table, B, 4);
        for n in 0..10_000 {
            let index = of_paths(&mut table, HostId(100 + n), 1 + (n % 8) as u16);
            table.leave(index, PeerKind::Connections);
        }
        assert_eq!((table.len(), table.entries.len(), table.get_mut(stays).len()), (1, 2, 4));
    }

    #[test]
    fn a_peer_is_forgotten_whoever_uses_it() {
        let mut table = PeerTable::new();
        for paths in [1, 8, u16::MAX] {
            of_paths(&mut table, A, paths);
        }
        let other = of_paths(&mut table, B, 2);
        table.forget(A);
        assert_eq!((table.len(), table.get_mut(other).len()), (1, 2));
    }
}
