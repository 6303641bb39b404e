//! Peers by number and by address: the address vector of an endpoint.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use pathweave_transport::rd::MAX_RD_OUTSTANDING;

use super::error::PeerError;
use crate::shared::{Room, lock};

/// A peer of an endpoint, as [`RdmEndpoint::insert`](super::RdmEndpoint::insert) and completions name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "peer {}", self.index)
    }
}

/// What the application's threads and the loop know of a peer.
#[derive(Debug)]
pub(super) struct PeerEntry {
    pub(super) peer: Peer,
    pub(super) address: SocketAddr,
    /// Messages that may yet be posted to it before others are done.
    pub(super) room: Room,
}

/// All peers.
#[derive(Debug)]
pub(super) struct Book {
    pages: Mutex<Pages>,
    limit: usize,
    family: SocketAddr,
}

#[derive(Debug, Default)]
struct Pages {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_address: HashMap<SocketAddr, u32>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    entry: Option<Arc<PeerEntry>>,
}

impl Book {
    /// For an endpoint at `local`, of at most `limit` peers.
    pub(super) fn new(local: SocketAddr, limit: usize) -> Self {
        Book { pages: Mutex::default(), limit, family: local }
    }

    /// The peer of this address, who is made known if need be.
    pub(super) fn insert(&self, address: SocketAddr) -> Result<Arc<PeerEntry>, PeerError> {
        if address.is_ipv4() != self.family.is_ipv4() {
            return Err(PeerError::Family { peer: address, local: self.family });
        }
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err(PeerError::Address(address));
        }
        let mut pages = lock(&self.pages);
        let pages = &mut *pages;
        if let Some(&index) = pages.by_address.get(&address)
            && let Some(entry) = &pages.slots[index as usize].entry
        {
            return Ok(entry.clone());
        }
        if pages.by_address.len() >= self.limit {
            return Err(PeerError::TooMany { limit: self.limit });
        }
        let index = pages.free.pop().unwrap_or_else(|| {
            pages.slots.push(Slot::default());
            pages.slots.len() as u32 - 1
        });
        let slot = &mut pages.slots[index as usize];
        let peer = Peer { index, generation: slot.generation };
        let entry = Arc::new(PeerEntry { peer, address, room: Room::new(MAX_RD_OUTSTANDING as u32) });
        slot.entry = Some(entry.clone());
        pages.by_address.insert(address, index);
        Ok(entry)
    }

    /// A peer by its name.
    pub(super) fn get(&self, peer: Peer) -> Option<Arc<PeerEntry>> {
        let pages = lock(&self.pages);
        pages.slots.get(peer.index as usize)?.entry.clone().filter(|entry| entry.peer == peer)
    }

    /// A peer by its address.
    pub(super) fn find(&self, address: SocketAddr) -> Option<Arc<PeerEntry>> {
        let pages = lock(&self.pages);
        let index = *pages.by_address.get(&address)?;
        pages.slots[index as usize].entry.clone()
    }

    /// Takes a peer out.
    pub(super) fn remove(&self, peer: Peer) -> Option<Arc<PeerEntry>> {
        let mut pages = lock(&self.pages);
        let pages = &mut *pages;
        let slot = pages.slots.get_mut(peer.index as usize)?;
        let entry = slot.entry.take_if(|entry| entry.peer == peer)?;
        slot.generation = slot.generation.wrapping_add(1);
        pages.by_address.remove(&entry.address);
        pages.free.push(peer.index);
        Some(entry)
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.pages).by_address.len()
    }
}

/// Bytes a peer costs here.
pub(super) const BYTES_A_PEER: usize = size_of::<Slot>()
    // The counts of an `Arc`, the entry, and its place in the map, which is at most half empty and has a control byte.
    + 2 * size_of::<usize>()
    + size_of::<PeerEntry>()
    + 2 * (size_of::<(SocketAddr, u32)>() + 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_keeps_its_name_and_a_removed_one_is_gone() {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let book = Book::new(address(1), 2);
        let first = book.insert(address(5)).unwrap().peer;
        assert_eq!(book.insert(address(5)).unwrap().peer, first);
        let second = book.insert(address(6)).unwrap().peer;
        assert_eq!(book.insert(address(7)).unwrap_err(), PeerError::TooMany { limit: 2 });
        assert_eq!(book.remove(first).unwrap().address, address(5));
        assert!(book.get(first).is_none() && book.remove(first).is_none());
        let third = book.insert(address(7)).unwrap().peer;
        assert_eq!((third.index, third == first, book.len()), (first.index, false, 2));
        assert!(book.get(first).is_none() && book.get(second).is_some());
        assert!(matches!(book.insert("[::1]:5".parse().unwrap()), Err(PeerError::Family { .. })));
        assert!(matches!(book.insert(address(0)), Err(PeerError::Address(_))));
    }
}
