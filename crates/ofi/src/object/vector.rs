//! Address vectors: addresses of peers, and the numbers by which operations name them. Table and map alike: the number is
//! the index.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock;
use super::uses::Uses;

/// The most addresses there are.
const MOST: usize = 1 << 20;

#[derive(Default)]
struct State {
    entries: Vec<Option<SocketAddr>>,
    free: Vec<usize>,
    /// The first number of each address, and how many it has: the same may be inserted again.
    numbers: HashMap<SocketAddr, Vec<u64>>,
}

/// An address vector.
#[derive(Default)]
pub(crate) struct Vector {
    pub(crate) uses: Uses,
    /// Grows with each change.
    version: AtomicU64,
    state: Mutex<State>,
}

impl Vector {
    /// The number of a new entry; `None` if the vector is full, or nobody can be sent to there.
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

    /// Takes an entry out; false if there is none.
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

    /// What was looked up stays true as long as this does not change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The address of an entry.
    pub(crate) fn address(&self, number: u64) -> Option<SocketAddr> {
        let state = lock(&self.state);
        state.entries.get(usize::try_from(number).ok()?).copied().flatten()
    }

    /// The number of an address: the first that it was inserted under.
    pub(crate) fn number(&self, address: SocketAddr) -> Option<u64> {
        lock(&self.state).numbers.get(&canonical(address)).and_then(|numbers| numbers.first().copied())
    }
}

/// Whatever does not tell one peer from another left out.
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
