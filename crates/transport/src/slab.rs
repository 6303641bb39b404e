//! Queue pairs by number.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use pathweave_units::QpNum;

/// Slot in the low bits, generation in the high ones, 24 bits in all as on the wire: a late packet for a queue
/// pair that was destroyed does not reach the one that took its slot.
const SLOT_BITS: u32 = 18;
const GENERATIONS: u32 = 1 << (24 - SLOT_BITS);
/// QPs 0 and 1 are InfiniBand's management queue pairs.
const FIRST: u32 = 2;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Values by [`QpNum`]. Freed slots are reused oldest first, so that generations last.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: VecDeque<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Slab { slots: Vec::new(), free: VecDeque::new() }
    }

    /// Puts in what `make` builds for its number; `None` when all 2^18 - 2 slots are taken.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(QpNum) -> T) -> Option<QpNum> {
        let index = match self.free.pop_front() {
            Some(index) => index,
            None if self.slots.len() as u32 + FIRST >= 1 << SLOT_BITS => return None,
            None => {
                self.slots.push(Slot { generation: 0, value: None });
                self.slots.len() as u32 - 1
            }
        };
        let slot = &mut self.slots[index as usize];
        let number = QpNum(slot.generation << SLOT_BITS | (index + FIRST));
        slot.value = Some(make(number));
        Some(number)
    }

    #[inline]
    fn index(number: QpNum) -> (usize, u32) {
        let index = (number.0 & ((1 << SLOT_BITS) - 1)).wrapping_sub(FIRST);
        (index as usize, number.0 >> SLOT_BITS)
    }

    #[inline]
    pub(crate) fn get(&self, number: QpNum) -> Option<&T> {
        let (index, generation) = Self::index(number);
        self.slots.get(index).filter(|slot| slot.generation == generation)?.value.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: QpNum) -> Option<&mut T> {
        let (index, generation) = Self::index(number);
        self.slots.get_mut(index).filter(|slot| slot.generation == generation)?.value.as_mut()
    }

    pub(crate) fn remove(&mut self, number: QpNum) -> Option<T> {
        let (index, generation) = Self::index(number);
        let slot = self.slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        let value = slot.value.take()?;
        slot.generation = (generation + 1) % GENERATIONS;
        self.free.push_back(index as u32);
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_behind_the_management_queue_pairs() {
        let mut slab = Slab::new();
        assert_eq!(slab.insert_with(|number| number), Some(QpNum(2)));
        assert_eq!(slab.insert_with(|number| number), Some(QpNum(3)));
        for number in [QpNum(0), QpNum(1), QpNum(4), QpNum(u32::MAX)] {
            assert_eq!(slab.get(number), None);
        }
    }

    #[test]
    fn a_reused_slot_has_another_number() {
        let mut slab = Slab::new();
        let first = slab.insert_with(|_| 'a').unwrap();
        assert_eq!(slab.remove(first), Some('a'));
        assert_eq!(slab.remove(first), None);
        let second = slab.insert_with(|_| 'b').unwrap();
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&'b')));
        assert!(second.0 < 1 << 24);
    }
}
