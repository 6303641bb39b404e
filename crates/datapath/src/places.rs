//! Memory that the endpoint knows by handle: of work requests, of receives, and of registered regions.

use crate::region::Slices;

/// Memory to which a handle refers.
#[derive(Debug)]
pub(crate) struct BufferEntry {
    /// The memory, without any byte next to it.
    pub(crate) memory: Slices,
    /// Work request identifier of the application; unused for registered regions.
    pub(crate) wr_id: u64,
}

/// Places by handle. A handle contains a slot and its generation, so a stale handle does not match a later occupant
/// of the slot.
#[derive(Debug, Default)]
pub(crate) struct BufferTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    place: Option<BufferEntry>,
}

impl BufferTable {
    pub(crate) fn insert(&mut self, place: BufferEntry) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.place = Some(place);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    #[inline]
    pub(crate) fn get(&self, handle: u64) -> Option<&BufferEntry> {
        let slot = self.slots.get((handle & 0xffff_ffff) as usize)?;
        slot.place.as_ref().filter(|_| u64::from(slot.generation) == handle >> 32)
    }

    /// Replaces the memory to which a handle refers.
    pub(crate) fn replace(&mut self, handle: u64, memory: Slices) {
        let slot = self.slots.get_mut((handle & 0xffff_ffff) as usize);
        let slot = slot.filter(|slot| u64::from(slot.generation) == handle >> 32);
        if let Some(place) = slot.and_then(|slot| slot.place.as_mut()) {
            place.memory = memory;
        }
    }

    pub(crate) fn remove(&mut self, handle: u64) -> Option<BufferEntry> {
        let index = (handle & 0xffff_ffff) as u32;
        let slot = self.slots.get_mut(index as usize)?;
        if u64::from(slot.generation) != handle >> 32 {
            return None;
        }
        let place = slot.place.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    #[test]
    fn a_handle_of_the_past_opens_nothing() {
        let region = Region::zeroed(8).unwrap();
        let place = |wr_id| BufferEntry { memory: region.all().into(), wr_id };
        let mut places = BufferTable::default();
        let old = places.insert(place(1));
        assert_eq!(places.get(old).unwrap().wr_id, 1);
        assert_eq!(places.remove(old).unwrap().wr_id, 1);
        let new = places.insert(place(2));
        places.replace(old, Region::zeroed(9).unwrap().all().into());
        assert_eq!(places.get(new).unwrap().memory.len(), 8);
        places.replace(new, Region::zeroed(9).unwrap().all().into());
        assert_eq!(places.get(new).unwrap().memory.len(), 9);
        assert_ne!(old, new);
        assert!(places.get(old).is_none() && places.remove(old).is_none());
        assert_eq!(places.get(new).unwrap().wr_id, 2);
        assert!(places.get(u64::MAX).is_none());
    }
}
