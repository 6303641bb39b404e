//! Queue pairs by number.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use pathweave_units::QpNum;

/// A queue pair number has 24 bits, as on the wire: the slot in the low bits, a generation in the high ones. The
/// generation keeps late packets of a destroyed queue pair from reaching the one that reuses its slot.
const SLOT_BITS: u32 = 18;
const GENERATIONS: u32 = 1 << (24 - SLOT_BITS);
/// First number of a queue pair: 0 and 1 are InfiniBand's management queue pairs.
const FIRST: u32 = 2;

/// A value that knows its own number.
pub(crate) trait Numbered {
    /// Number under which the value was created.
    fn number(&self) -> QpNum;
}

/// A slot of the slab. The number of a stored value contains its generation, so a look-up reads nothing else.
#[derive(Debug)]
pub(crate) enum Slot<T> {
    Taken(T),
    Free { generation: u32 },
}

/// Entry of `places` for a number that is not in use.
const NOWHERE: u32 = u32::MAX;

/// Values by [`QpNum`]. Freed slots are reused oldest first, so that generations wrap as late as possible.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// Slot of each number that the caller chose; empty if the slab chooses the numbers itself.
    slots_by_number: Vec<u32>,
    /// Allocated when the first slot is freed.
    #[expect(clippy::box_collection, reason = "a quarter of the size, beside what every packet touches")]
    free: Option<Box<VecDeque<u32>>>,
}

impl<T: Numbered> Slab<T> {
    pub(crate) const fn new() -> Self {
        Slab { slots: Vec::new(), slots_by_number: Vec::new(), free: None }
    }

    /// Bytes of all slots, used or free.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<T>>() + self.slots_by_number.capacity() * size_of::<u32>()
    }

    /// Inserts the value that `make` builds for its number. Returns `None` if all 2^18 - 2 slots are in use.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(QpNum) -> T) -> Option<QpNum> {
        let (index, generation) = self.take_slot()?;
        let number = QpNum(generation << SLOT_BITS | (index + FIRST));
        self.slots[index as usize] = Slot::Taken(make(number));
        Some(number)
    }

    /// Inserts the value that `make` builds under `number`, which is at least 2. Returns `None` if all slots are in
    /// use. Panics if the number is in use. In one slab, either the caller chooses all numbers or the slab does.
    pub(crate) fn insert_as(&mut self, number: QpNum, make: impl FnOnce() -> T) -> Option<()> {
        let (index, _) = self.take_slot()?;
        let entry = number.0 as usize;
        if self.slots_by_number.len() <= entry {
            self.slots_by_number.resize(entry + 1, NOWHERE);
        }
        assert!(
            number.0 >= FIRST && self.slots_by_number[entry] == NOWHERE,
            "queue pair {} is in use",
            number.0
        );
        self.slots_by_number[entry] = index;
        self.slots[index as usize] = Slot::Taken(make());
        Some(())
    }

    /// Takes a free slot. Returns its index and generation.
    fn take_slot(&mut self) -> Option<(u32, u32)> {
        let index = match self.free.as_mut().and_then(|free| free.pop_front()) {
            Some(index) => index,
            None if self.slots.len() as u32 + FIRST >= 1 << SLOT_BITS => return None,
            None => {
                self.slots.push(Slot::Free { generation: 0 });
                self.slots.len() as u32 - 1
            }
        };
        match self.slots[index as usize] {
            Slot::Free { generation } => Some((index, generation)),
            Slot::Taken(_) => unreachable!("slot {index} is in the list of free ones"),
        }
    }

    #[inline]
    fn index(&self, number: QpNum) -> usize {
        match self.slots_by_number.get(number.0 as usize) {
            Some(&place) => place as usize,
            None => (number.0 & ((1 << SLOT_BITS) - 1)).wrapping_sub(FIRST) as usize,
        }
    }

    /// Returns the slot for this number without reading it. The slot may be free or hold another number.
    #[inline]
    pub(crate) fn slot(&self, number: QpNum) -> Option<&Slot<T>> {
        self.slots.get(self.index(number))
    }

    #[inline]
    pub(crate) fn get(&self, number: QpNum) -> Option<&T> {
        match self.slots.get(self.index(number)) {
            Some(Slot::Taken(value)) if value.number() == number => Some(value),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: QpNum) -> Option<&mut T> {
        let index = self.index(number);
        match self.slots.get_mut(index) {
            Some(Slot::Taken(value)) if value.number() == number => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, number: QpNum) -> Option<T> {
        self.get(number)?;
        let index = self.index(number);
        if let Some(place) = self.slots_by_number.get_mut(number.0 as usize) {
            *place = NOWHERE;
        }
        let generation = ((number.0 >> SLOT_BITS) + 1) % GENERATIONS;
        self.free.get_or_insert_default().push_back(index as u32);
        match core::mem::replace(&mut self.slots[index], Slot::Free { generation }) {
            Slot::Taken(value) => Some(value),
            Slot::Free { .. } => unreachable!("it was there just now"),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Taken(value) => Some(value),
            Slot::Free { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Numbered for (QpNum, char) {
        fn number(&self) -> QpNum {
            self.0
        }
    }

    #[test]
    fn numbers_begin_behind_the_management_queue_pairs() {
        let mut slab = Slab::new();
        assert_eq!(slab.insert_with(|number| (number, 'a')), Some(QpNum(2)));
        assert_eq!(slab.insert_with(|number| (number, 'b')), Some(QpNum(3)));
        for number in [QpNum(0), QpNum(1), QpNum(4), QpNum(u32::MAX)] {
            assert_eq!(slab.get(number), None);
        }
    }

    #[test]
    fn given_numbers_share_slots_one_after_the_other() {
        let mut slab = Slab::new();
        slab.insert_as(QpNum(1_000_000), || (QpNum(1_000_000), 'a')).unwrap();
        slab.insert_as(QpNum(7), || (QpNum(7), 'b')).unwrap();
        assert_eq!(slab.remove(QpNum(1_000_000)), Some((QpNum(1_000_000), 'a')));
        slab.insert_as(QpNum(2), || (QpNum(2), 'c')).unwrap();
        assert_eq!(slab.slots.len(), 2);
        assert_eq!(slab.get(QpNum(7)), Some(&(QpNum(7), 'b')));
        assert_eq!(slab.get_mut(QpNum(2)), Some(&mut (QpNum(2), 'c')));
        for number in [QpNum(0), QpNum(3), QpNum(1_000_000), QpNum(u32::MAX)] {
            assert_eq!(slab.get(number), None);
        }
    }

    #[test]
    fn a_reused_slot_has_another_number() {
        let mut slab = Slab::new();
        let first = slab.insert_with(|number| (number, 'a')).unwrap();
        assert_eq!(slab.remove(first), Some((first, 'a')));
        assert_eq!(slab.remove(first), None);
        let second = slab.insert_with(|number| (number, 'b')).unwrap();
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&(second, 'b'))));
        assert!(second.0 < 1 << 24);
    }
}
