//! A heap of keys whose entries can be changed: four children a node, ties by number.

/// Not in the heap.
const ABSENT: u32 = u32::MAX;

/// Numbers by key, the least first; of equal keys the smaller number.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexedHeap {
    heap: Vec<(u64, u32)>,
    /// By number.
    place: Vec<u32>,
}

impl IndexedHeap {
    /// The least key, with its number.
    pub(crate) fn first(&self) -> Option<(u64, u32)> {
        self.heap.first().copied()
    }

    /// Gives a number this key.
    pub(crate) fn set(&mut self, number: u32, key: u64) {
        if self.place.len() <= number as usize {
            self.place.resize(number as usize + 1, ABSENT);
        }
        let place = self.place[number as usize];
        if place == ABSENT {
            self.heap.push((key, number));
            self.rise(self.heap.len() - 1);
            return;
        }
        let before = self.heap[place as usize].0;
        self.heap[place as usize].0 = key;
        if key < before {
            self.rise(place as usize);
        } else if key > before {
            self.sink(place as usize);
        }
    }

    /// Takes a number out, if it is in.
    pub(crate) fn remove(&mut self, number: u32) {
        let Some(&place) = self.place.get(number as usize) else { return };
        if place == ABSENT {
            return;
        }
        self.place[number as usize] = ABSENT;
        let last = self.heap.pop().expect("there is at least this one");
        if last.1 != number {
            let place = place as usize;
            self.heap[place] = last;
            self.place[last.1 as usize] = place as u32;
            self.rise(place);
            self.sink(self.place[last.1 as usize] as usize);
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
            let children = 4 * at + 1..(4 * at + 5).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else { break };
            if entry <= self.heap[least] {
                break;
            }
            self.put(at, self.heap[least]);
            at = least;
        }
        self.put(at, entry);
    }

    fn put(&mut self, at: usize, entry: (u64, u32)) {
        self.heap[at] = entry;
        self.place[entry.1 as usize] = at as u32;
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
