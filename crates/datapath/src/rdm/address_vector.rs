//! The address vector of an endpoint: peers by number and by address.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use pathweave_transport::rd::MAX_RD_OUTSTANDING;

use super::error::PeerError;
use crate::shared::{Room, lock};

/// Bounds on the number of peers in transit. Within them it equals the limit of known peers.
const LEAST_PASSING: usize = 64;
pub(super) const MOST_PASSING: usize = 4_096;

/// A peer of an endpoint, as [`RdmEndpoint::insert`](super::RdmEndpoint::insert) and completions return it.
///
/// It contains the peer's address and therefore stays valid, even after the endpoint has forgotten or
/// [removed](super::RdmEndpoint::remove) the peer. Using it again inserts the peer again.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    address: SocketAddr,
    /// Index in the address vector, valid while the generation matches.
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl Peer {
    /// Returns the peer's address.
    pub fn address(self) -> SocketAddr {
        self.address
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Peer) -> bool {
        self.address == other.address
    }
}
impl Eq for Peer {}

impl std::hash::Hash for Peer {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.address.hash(state);
    }
}

impl PartialOrd for Peer {
    fn partial_cmp(&self, other: &Peer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Peer {
    fn cmp(&self, other: &Peer) -> std::cmp::Ordering {
        self.address.cmp(&other.address)
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "peer {}", self.address)
    }
}

/// State of a peer that the application's threads and the loop share.
#[derive(Debug)]
pub(super) struct PeerEntry {
    pub(super) peer: Peer,
    /// Number of messages that may still be posted to it before others complete.
    pub(super) room: Room,
}

impl PeerEntry {
    pub(super) fn address(&self) -> SocketAddr {
        self.peer.address
    }
}

/// All peers of an endpoint: known peers, up to a limit, and peers in transit with a separate bound. A peer is in
/// transit while its association is being negotiated, or while it is being retired.
#[derive(Debug)]
pub(super) struct AddressVector {
    pages: Mutex<Pages>,
    limit: usize,
    most_passing: usize,
    family: SocketAddr,
}

#[derive(Debug, Default)]
struct Pages {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_address: HashMap<SocketAddr, u32>,
    passing: usize,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    passing: bool,
    entry: Option<Arc<PeerEntry>>,
}

impl Pages {
    fn find(&self, address: SocketAddr) -> Option<(u32, &Arc<PeerEntry>)> {
        let index = *self.by_address.get(&address)?;
        Some((index, self.slots[index as usize].entry.as_ref()?))
    }

    fn known(&self) -> usize {
        self.by_address.len() - self.passing
    }

    fn add(&mut self, address: SocketAddr, passing: bool) -> Arc<PeerEntry> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        let peer = Peer { address, index, generation: slot.generation };
        let entry = Arc::new(PeerEntry { peer, room: Room::new(MAX_RD_OUTSTANDING as u32) });
        (slot.entry, slot.passing) = (Some(entry.clone()), passing);
        self.passing += usize::from(passing);
        self.by_address.insert(address, index);
        entry
    }

    /// Sets whether a peer is in transit.
    fn set_passing(&mut self, index: u32, passing: bool) {
        if let Some(slot) = self.slots.get_mut(index as usize).filter(|slot| slot.entry.is_some())
            && slot.passing != passing
        {
            slot.passing = passing;
            self.passing = if passing { self.passing + 1 } else { self.passing - 1 };
        }
    }
}

impl AddressVector {
    /// `local`: address of the endpoint. `limit`: largest number of known peers.
    pub(super) fn new(local: SocketAddr, limit: usize) -> Self {
        let most_passing = limit.clamp(LEAST_PASSING, MOST_PASSING);
        AddressVector { pages: Mutex::default(), limit, most_passing, family: local }
    }

    /// Returns the peer with this address; inserts it if necessary.
    pub(super) fn insert(&self, address: SocketAddr) -> Result<Arc<PeerEntry>, PeerError> {
        if address.is_ipv4() != self.family.is_ipv4() {
            return Err(PeerError::Family { peer: address, local: self.family });
        }
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err(PeerError::Address(address));
        }
        let mut pages = lock(&self.pages);
        let found = pages.find(address).map(|(index, entry)| (index, entry.clone()));
        let is_known = found.as_ref().is_some_and(|&(index, _)| !pages.slots[index as usize].passing);
        if !is_known && pages.known() >= self.limit {
            return Err(PeerError::TooMany { limit: self.limit });
        }
        let Some((index, entry)) = found else { return Ok(pages.add(address, false)) };
        pages.set_passing(index, false);
        Ok(entry)
    }

    /// Returns the peer with this address, which requests an association. An unknown peer is added as in transit;
    /// `None` if there are too many of those.
    pub(super) fn meet(&self, address: SocketAddr) -> Option<Arc<PeerEntry>> {
        let mut pages = lock(&self.pages);
        if let Some((_, entry)) = pages.find(address) {
            return Some(entry.clone());
        }
        (pages.passing < self.most_passing).then(|| pages.add(address, true))
    }

    /// Marks a peer as known, and no longer in transit.
    pub(super) fn confirm(&self, index: u32) {
        lock(&self.pages).set_passing(index, false);
    }

    /// Marks a peer as in transit because it is being retired. Returns false if there are too many.
    pub(super) fn dismiss(&self, index: u32) -> bool {
        let mut pages = lock(&self.pages);
        let room = pages.passing < self.most_passing;
        if room {
            pages.set_passing(index, true);
        }
        room
    }

    pub(super) fn is_passing(&self, index: u32) -> bool {
        lock(&self.pages).slots.get(index as usize).is_some_and(|slot| slot.passing)
    }

    /// Returns a peer by its name.
    pub(super) fn get(&self, peer: Peer) -> Option<Arc<PeerEntry>> {
        let pages = lock(&self.pages);
        let entry = pages.slots.get(peer.index as usize)?.entry.as_ref()?;
        let same = entry.peer.generation == peer.generation && entry.peer == peer;
        same.then(|| entry.clone())
    }

    /// Returns a peer by its address.
    pub(super) fn find(&self, address: SocketAddr) -> Option<Arc<PeerEntry>> {
        lock(&self.pages).find(address).map(|(_, entry)| entry.clone())
    }

    /// Removes a peer, unless its entry is held by more than the `holders` that the caller knows of. Returns true if
    /// it was removed.
    pub(super) fn remove(&self, index: u32, holders: usize) -> bool {
        let mut pages = lock(&self.pages);
        let pages = &mut *pages;
        let Some(slot) = pages.slots.get_mut(index as usize) else { return false };
        // New references can be taken under the lock only. One reference is the address vector's own.
        let Some(entry) = slot.entry.take_if(|entry| Arc::strong_count(entry) <= holders + 1) else {
            return false;
        };
        slot.generation = slot.generation.wrapping_add(1);
        pages.passing -= usize::from(std::mem::take(&mut slot.passing));
        pages.by_address.remove(&entry.address());
        pages.free.push(index);
        true
    }

    /// Returns the known peers.
    pub(super) fn known(&self) -> Vec<Arc<PeerEntry>> {
        let pages = lock(&self.pages);
        pages.slots.iter().filter(|slot| !slot.passing).filter_map(|slot| slot.entry.clone()).collect()
    }

    /// Returns true if there are as many known peers as permitted.
    pub(super) fn is_full(&self) -> bool {
        lock(&self.pages).known() >= self.limit
    }

    /// Returns true if there are more known peers than permitted, because some returned while being retired.
    pub(super) fn is_crowded(&self) -> bool {
        lock(&self.pages).known() > self.limit
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of known peers.
    pub(super) fn len(&self) -> usize {
        lock(&self.pages).known()
    }
}

/// Bytes of state of a peer here.
pub(super) const BYTES_A_PEER: usize = size_of::<Slot>()
    // The counts of an `Arc`, the entry, and its slot in the map, which is at most half empty and has a control byte.
    + 2 * size_of::<usize>()
    + size_of::<PeerEntry>()
    + 2 * (size_of::<(SocketAddr, u32)>() + 1);

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn a_peer_keeps_its_name_and_a_removed_one_may_come_again() {
        let addresses = AddressVector::new(address(1), 2);
        let first = addresses.insert(address(5)).unwrap().peer;
        assert_eq!(addresses.insert(address(5)).unwrap().peer.index, first.index);
        let second = addresses.insert(address(6)).unwrap().peer;
        assert_eq!(addresses.insert(address(7)).unwrap_err(), PeerError::TooMany { limit: 2 });
        let held = addresses.get(first);
        assert!(!addresses.remove(first.index, 0), "somebody has hold of it");
        drop(held);
        assert!(addresses.remove(first.index, 0) && !addresses.remove(first.index, 0));
        let third = addresses.insert(address(7)).unwrap().peer;
        assert_eq!((third.index, third == first, addresses.len()), (first.index, false, 2));
        assert!(addresses.get(first).is_none() && addresses.get(second).is_some());
        assert!(addresses.remove(second.index, 0));
        let again = addresses.insert(first.address()).unwrap().peer;
        assert_eq!((again, again.index), (first, second.index));
        assert!(matches!(addresses.insert("[::1]:5".parse().unwrap()), Err(PeerError::Family { .. })));
        assert!(matches!(addresses.insert(address(0)), Err(PeerError::Address(_))));
    }

    #[test]
    fn transient_peers_do_not_count_and_have_their_own_bound() {
        let addresses = AddressVector::new(address(1), 2);
        let passing: Vec<u32> =
            (0..64).map(|n| addresses.meet(address(100 + n)).unwrap().peer.index).collect();
        assert!(addresses.meet(address(200)).is_none() && addresses.len() == 0 && !addresses.is_full());
        assert!(addresses.is_passing(passing[0]) && addresses.known().is_empty());
        addresses.confirm(passing[0]);
        addresses.confirm(passing[1]);
        assert!(
            addresses.is_full() && addresses.insert(address(110)).is_err(),
            "it passes through, and is not known"
        );
        assert!(addresses.dismiss(passing[0]) && addresses.dismiss(passing[1]) && addresses.len() == 0);
        assert!(addresses.insert(address(110)).is_ok(), "who was passing through is known");
        assert!(addresses.remove(passing[5], 0) && addresses.meet(address(200)).is_some());
    }

    /// Ten thousand peers come and go: the number of slots never exceeds the number present at the same time.
    #[test]
    fn churn_leaves_nothing_behind() {
        let addresses = AddressVector::new(address(1), 4);
        for n in 0..10_000u32 {
            let comes = SocketAddr::from((n.to_be_bytes(), 5));
            let index = addresses.meet(comes).unwrap().peer.index;
            addresses.confirm(index);
            assert!(addresses.dismiss(index) && addresses.remove(index, 0));
        }
        let pages = lock(&addresses.pages);
        assert_eq!((pages.slots.len(), pages.by_address.len(), pages.passing), (1, 0, 0));
    }
}
