//! Memory regions the other ends may write to and read from.

use alloc::vec::Vec;
use core::fmt;

use crate::work::Buffer;

/// Memory opened to other ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// Handle the driver gets with each placement, with the offset from `addr`.
    pub buffer: Buffer,
    /// Remote address of the first byte.
    pub addr: u64,
    /// Bytes; `addr + len` is at most 2^64 - 1.
    pub len: u64,
    /// What others may do.
    pub access: Access,
}

impl MemoryRegion {
    /// All addresses, for simulation without memory.
    pub const fn unbounded() -> Self {
        MemoryRegion { buffer: Buffer(0), addr: 0, len: u64::MAX, access: Access::READ_WRITE }
    }
}

/// What others may do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// RDMA READ.
    pub read: bool,
    /// RDMA WRITE.
    pub write: bool,
}

impl Access {
    /// READ only.
    pub const READ: Access = Access { read: true, write: false };
    /// WRITE only.
    pub const WRITE: Access = Access { read: false, write: true };
    /// READ and WRITE.
    pub const READ_WRITE: Access = Access { read: true, write: true };
}

/// Why a region could not be registered or deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The region's end is beyond 2^64 - 1.
    OutOfRange,
    /// No region has this key.
    UnknownKey,
    /// READs of the region are being answered.
    InUse,
    /// 2^24 regions are registered.
    TooMany,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryError::OutOfRange => "the region ends beyond the last address",
            MemoryError::UnknownKey => "no memory region has this key",
            MemoryError::InUse => "READs of the memory region are being answered",
            MemoryError::TooMany => "too many memory regions",
        })
    }
}
impl core::error::Error for MemoryError {}

/// Slot in the low bits, generation in the high ones: a key of the past does not open what came after it.
const SLOT_BITS: u32 = 24;

#[derive(Debug, Default)]
struct Slot {
    generation: u8,
    readers: u32,
    region: Option<MemoryRegion>,
}

/// The regions of an endpoint.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Memory {
    /// The region written to last, with its key: packets in a row mostly write to the same one.
    latest: Option<(u32, MemoryRegion)>,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Memory {
    /// What a packet that writes looks at: the beginning.
    #[cfg(test)]
    pub(crate) const HOT_BYTES: usize = core::mem::offset_of!(Memory, slots);

    pub(crate) const fn new() -> Self {
        Memory { latest: None, slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn register(&mut self, region: MemoryRegion) -> Result<u32, MemoryError> {
        region.addr.checked_add(region.len).ok_or(MemoryError::OutOfRange)?;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() >= 1 << SLOT_BITS => return Err(MemoryError::TooMany),
            None => {
                self.slots.push(Slot::default());
                (self.slots.len() - 1) as u32
            }
        };
        let entry = &mut self.slots[slot as usize];
        entry.region = Some(region);
        Ok(u32::from(entry.generation) << SLOT_BITS | slot)
    }

    pub(crate) fn deregister(&mut self, rkey: u32) -> Result<(), MemoryError> {
        let slot = self.slot_mut(rkey).ok_or(MemoryError::UnknownKey)?;
        if slot.readers > 0 {
            return Err(MemoryError::InUse);
        }
        slot.region = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.latest = None;
        self.free.push(rkey & ((1 << SLOT_BITS) - 1));
        Ok(())
    }

    fn slot_mut(&mut self, rkey: u32) -> Option<&mut Slot> {
        let slot = self.slots.get_mut((rkey & ((1 << SLOT_BITS) - 1)) as usize)?;
        (slot.region.is_some() && u32::from(slot.generation) == rkey >> SLOT_BITS).then_some(slot)
    }

    fn find(&self, rkey: u32) -> Option<&MemoryRegion> {
        let slot = self.slots.get((rkey & ((1 << SLOT_BITS) - 1)) as usize)?;
        slot.region.as_ref().filter(|_| u32::from(slot.generation) == rkey >> SLOT_BITS)
    }

    /// Buffer and offset for `len` bytes written at `addr`, if that is allowed.
    #[inline]
    pub(crate) fn check_write(&mut self, rkey: u32, addr: Option<u64>, len: u64) -> Option<(Buffer, u64)> {
        if self.latest.is_none_or(|(key, _)| key != rkey) {
            let region = *self.find(rkey)?;
            self.latest = Some((rkey, region));
        }
        let (_, region) = self.latest.as_ref().filter(|(_, region)| region.access.write)?;
        within(region, addr?, len)
    }

    /// Buffer and offset of `len` bytes to be read at `addr`, if that is allowed.
    pub(crate) fn check_read(&self, rkey: u32, addr: u64, len: u64) -> Option<(Buffer, u64)> {
        let region = self.find(rkey).filter(|region| region.access.read)?;
        within(region, addr, len)
    }

    /// A READ of the region is being answered: it stays until [`Memory::release`].
    pub(crate) fn retain(&mut self, rkey: u32) {
        self.slot_mut(rkey).expect("the key was checked just before").readers += 1;
    }

    pub(crate) fn release(&mut self, rkey: u32) {
        let slot = self.slot_mut(rkey).expect("a region being read cannot be deregistered");
        slot.readers -= 1;
    }
}

/// `len` bytes at `addr` lie in the region. No bounds are checked where nothing is touched, as in the verbs.
fn within(region: &MemoryRegion, addr: u64, len: u64) -> Option<(Buffer, u64)> {
    if len == 0 {
        return Some((region.buffer, addr.saturating_sub(region.addr)));
    }
    let offset = addr.checked_sub(region.addr)?;
    (len <= region.len && offset <= region.len - len).then_some((region.buffer, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(access: Access) -> MemoryRegion {
        MemoryRegion { buffer: Buffer(7), addr: 1_000, len: 100, access }
    }

    #[test]
    fn bounds_are_inclusive_of_the_last_byte() {
        let mut memory = Memory::new();
        let key = memory.register(region(Access::READ_WRITE)).unwrap();
        assert_eq!(memory.check_write(key, Some(1_000), 100), Some((Buffer(7), 0)));
        assert_eq!(memory.check_write(key, Some(1_099), 1), Some((Buffer(7), 99)));
        assert_eq!(memory.check_write(key, Some(1_099), 2), None);
        assert_eq!(memory.check_write(key, Some(999), 1), None);
        assert_eq!(memory.check_write(key, Some(u64::MAX), u64::MAX), None);
        assert_eq!(memory.check_write(key, None, 1), None);
    }

    #[test]
    fn access_is_checked() {
        let mut memory = Memory::new();
        let read = memory.register(region(Access::READ)).unwrap();
        let write = memory.register(region(Access::WRITE)).unwrap();
        assert!(
            memory.check_write(read, Some(1_000), 1).is_none() && memory.check_read(read, 1_000, 1).is_some()
        );
        assert!(
            memory.check_write(write, Some(1_000), 1).is_some()
                && memory.check_read(write, 1_000, 1).is_none()
        );
    }

    #[test]
    fn an_old_key_does_not_open_a_new_region() {
        let mut memory = Memory::new();
        let old = memory.register(region(Access::READ_WRITE)).unwrap();
        assert!(memory.check_write(old, Some(1_000), 1).is_some());
        memory.retain(old);
        assert_eq!(memory.deregister(old), Err(MemoryError::InUse));
        memory.release(old);
        memory.deregister(old).unwrap();
        let new = memory.register(region(Access::READ_WRITE)).unwrap();
        assert_ne!(old, new);
        assert_eq!((memory.check_read(old, 1_000, 1), memory.check_write(old, Some(1_000), 1)), (None, None));
        assert_eq!(memory.deregister(old), Err(MemoryError::UnknownKey));
    }

    #[test]
    fn the_unbounded_region_takes_every_write() {
        let mut memory = Memory::new();
        let key = memory.register(MemoryRegion::unbounded()).unwrap();
        assert!(memory.check_write(key, Some(u64::MAX - 10), 10).is_some());
        let too_long = MemoryRegion { addr: 2, ..MemoryRegion::unbounded() };
        assert_eq!(memory.register(too_long), Err(MemoryError::OutOfRange));
    }
}
