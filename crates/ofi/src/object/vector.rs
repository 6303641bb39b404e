//! Address vectors: addresses of peers, and the numbers by which operations refer to them. In both types,
//! table and map, the number is the index.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock;
use super::uses::Uses;

/// Largest number of addresses.
const MOST: usize = 1 << 20;

#[derive(Default)]
struct State {
    entries: Vec<Option<SocketAddr>>,
    free: Vec<usize>,
    /// Numbers of each address. The same address may be inserted several times; the first number is the one
    /// reported.
    numbers: HashMap<SocketAddr, Vec<u64>>,
}

/// An address vector.
#[derive(Default)]
pub(crate) struct Vector {
    pub(crate) uses: Uses,
    /// Version, which grows with each change.
    version: AtomicU64,
    state: Mutex<State>,
}

impl Vector {
    /// Inserts an address and returns its number. Returns `None` if the vector is full, or if the address
    /// cannot be a destination.
    pub(crate) fn insert(&self, address: SocketAddr) -> Option<u64> {
        if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() {
            return None;
        }
        let mut state = lock(&self.state);
        let index = match state.free.pop() {
            Some(index) => index,
            None if state.entries.len() < MOST => {
                state.entries.push(None);
                state.entries.len() - 1
            }
            None => return None,
        };
        state.entries[index] = Some(address);
        self.version.fetch_add(1, Ordering::Release);
        state.numbers.entry(canonical(address)).or_default().push(index as u64);
        Some(index as u64)
    }

    /// Removes an entry. Returns false if there is none.
    pub(crate) fn remove(&self, number: u64) -> bool {
        let mut state = lock(&self.state);
        let Some(index) = usize::try_from(number).ok().filter(|index| *index < state.entries.len()) else {
            return false;
        };
        let Some(address) = state.entries[index].take() else { return false };
        state.free.push(index);
        self.version.fetch_add(1, Ordering::Release);
        if let Some(numbers) = state.numbers.get_mut(&canonical(address)) {
            numbers.retain(|known| *known != number);
            if numbers.is_empty() {
                state.numbers.remove(&canonical(address));
            }
        }
        true
    }

    /// Returns the version. Results of lookups stay valid as long as it does not change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the address of an entry.
    pub(crate) fn address(&self, number: u64) -> Option<SocketAddr> {
        let state = lock(&self.state);
        state.entries.get(usize::try_from(number).ok()?).copied().flatten()
    }

    /// Returns the number of an address: the first one under which it was inserted.
    pub(crate) fn number(&self, address: SocketAddr) -> Option<u64> {
        lock(&self.state).numbers.get(&canonical(address)).and_then(|numbers| numbers.first().copied())
    }
}

/// Returns the address without the fields that do not distinguish peers.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_indices_and_come_back_when_free() {
        let vector = Vector::default();
        let address = |port: u16| SocketAddr::from(([10, 0, 0, 1], port));
        assert_eq!((vector.insert(address(5)), vector.insert(address(6))), (Some(0), Some(1)));
        assert_eq!(vector.insert(address(5)), Some(2), "the same again is another entry");
        assert_eq!(vector.number(address(5)), Some(0));
        assert!(vector.remove(0) && !vector.remove(0) && !vector.remove(9) && !vector.remove(u64::MAX));
        assert_eq!((vector.number(address(5)), vector.address(0)), (Some(2), None));
        assert_eq!(vector.insert(address(7)), Some(0));
        assert_eq!(vector.address(0), Some(address(7)));
        for bad in ["0.0.0.0:5", "10.0.0.1:0", "224.0.0.1:5"] {
            assert_eq!(vector.insert(bad.parse().unwrap()), None, "{bad}");
        }
    }
}
