//! Slot table with keys that are never reused.

use alloc::vec::Vec;

/// Slot table. A key combines the slot's index with the number of times the slot was used, so a stale key finds
/// nothing.
#[derive(Debug)]
pub(crate) struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    uses: u32,
    value: Option<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Inserts a value and returns its key, which is never zero.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { uses: 0, value: None });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[place as usize];
        slot.uses = slot.uses.wrapping_add(1).max(1);
        slot.value = Some(value);
        u64::from(slot.uses) << 32 | u64::from(place)
    }
    fn slot(&self, id: u64) -> Option<&Slot<T>> {
        self.slots.get(id as u32 as usize).filter(|slot| u64::from(slot.uses) == id >> 32)
    }
    fn slot_mut(&mut self, id: u64) -> Option<&mut Slot<T>> {
        self.slots.get_mut(id as u32 as usize).filter(|slot| u64::from(slot.uses) == id >> 32)
    }
    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        self.slot(id)?.value.as_ref()
    }
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.slot_mut(id)?.value.as_mut()
    }
    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let value = self.slot_mut(id)?.value.take()?;
        self.free.push(id as u32);
        Some(value)
    }
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    /// Iterates over all entries in unspecified order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (0u32..).zip(&self.slots).filter_map(|(place, slot)| {
            Some((u64::from(slot.uses) << 32 | u64::from(place), slot.value.as_ref()?))
        })
    }
    /// Returns the keys of all values that satisfy `fits`.
    pub(crate) fn ids(&self, fits: impl Fn(&T) -> bool) -> Vec<u64> {
        self.iter().filter(|(_, value)| fits(value)).map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_number_finds_nothing() {
        let mut table = Table::default();
        let first = table.insert('a');
        assert_eq!(table.remove(first), Some('a'));
        let second = table.insert('b');
        assert_ne!(first, second);
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!((table.get(second), table.len()), (Some(&'b'), 1));
    }
}
