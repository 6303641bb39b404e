//! Heap with changeable keys: four children per node, ties broken by number.

/// Place of a number that is not in the heap.
const ABSENT: u32 = u32::MAX;

fn entry(key: u64, number: u32) -> u128 {
    u128::from(key) << 32 | u128::from(number)
}

fn key(entry: u128) -> u64 {
    (entry >> 32) as u64
}

fn number(entry: u128) -> u32 {
    entry as u32
}

/// Numbers sorted by key, smallest first. Equal keys are sorted by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexedHeap {
    /// Key and number packed into one integer, which sorts by key and then number.
    heap: Vec<u128>,
    /// Place in the heap, by number.
    place: Vec<u32>,
}

impl IndexedHeap {
    /// Returns the smallest key with its number.
    pub(crate) fn first(&self) -> Option<(u64, u32)> {
        self.heap.first().map(|&first| (key(first), number(first)))
    }

    /// Inserts a number with this key, or changes its key.
    pub(crate) fn set(&mut self, of: u32, new: u64) {
        if self.place.len() <= of as usize {
            self.place.resize(of as usize + 1, ABSENT);
        }
        let place = self.place[of as usize];
        if place == ABSENT {
            self.heap.push(entry(new, of));
            self.rise(self.heap.len() - 1);
            return;
        }
        let before = key(self.heap[place as usize]);
        self.heap[place as usize] = entry(new, of);
        if new < before {
            self.rise(place as usize);
        } else if new > before {
            self.sink(place as usize);
        }
    }

    /// Removes a number if it is in the heap.
    pub(crate) fn remove(&mut self, of: u32) {
        let Some(&place) = self.place.get(of as usize) else { return };
        if place == ABSENT {
            return;
        }
        self.place[of as usize] = ABSENT;
        let last = self.heap.pop().expect("there is at least this one");
        if number(last) != of {
            let place = place as usize;
            self.heap[place] = last;
            self.place[number(last) as usize] = place as u32;
            self.rise(place);
            self.sink(self.place[number(last) as usize] as usize);
        }
    }

    fn rise(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let first = 4 * at + 1;
            let children = &self.heap[first.min(self.heap.len())..(first + 4).min(self.heap.len())];
            let (mut least, mut child) = (entry, at);
            for (place, &one) in (first..).zip(children) {
                if one < least {
                    (least, child) = (one, place);
                }
            }
            if child == at {
                break;
            }
            self.put(at, least);
            at = child;
        }
        self.put(at, entry);
    }

    fn put(&mut self, at: usize, entry: u128) {
        self.heap[at] = entry;
        self.place[number(entry) as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pathweave_units::Rng;

    use super::*;

    #[test]
    fn random_operations_against_a_map() {
        let mut rng = Rng::for_component(1, "heap", 0);
        let (mut heap, mut map) = (IndexedHeap::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let number = rng.below(60);
            if rng.below(3) == 0 {
                heap.remove(number);
                map.remove(&number);
            } else {
                let key = u64::from(rng.below(40));
                heap.set(number, key);
                map.insert(number, key);
            }
            let least = map.iter().map(|(&number, &key)| (key, number)).min();
            assert_eq!(heap.first(), least);
        }
    }
}
