//! Memory regions that peers may write and read.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use pathweave_units::QpNum;

use crate::work::Buffer;

/// Memory opened to peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// Handle that the driver gets with each placement, together with the offset from `addr`.
    pub buffer: Buffer,
    /// Remote address of the first byte.
    pub addr: u64,
    /// Bytes of the region; `addr + len` is at most 2^64 - 1.
    pub len: u64,
    /// Operations that peers may perform.
    pub access: Access,
    /// Queue pairs whose peers may perform them.
    pub scope: Scope,
}

impl MemoryRegion {
    /// Region of all addresses, for simulation without memory.
    pub const fn unbounded() -> Self {
        MemoryRegion {
            buffer: Buffer(0),
            addr: 0,
            len: u64::MAX,
            access: Access::READ_WRITE,
            scope: Scope::DEFAULT,
        }
    }
}

/// A protection domain: queue pairs of a domain reach the regions of that domain. The driver assigns the numbers; 0
/// is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(pub u16);

/// Set of queue pairs to which a region is open.
// Stored as one number, so that a packet costs one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope(u32);

impl Scope {
    /// Queue pairs of the default domain.
    pub const DEFAULT: Scope = Scope::domain(Domain(0));
    /// Scope of a destroyed queue pair, which matches no queue pair.
    const DESTROYED: Scope = Scope(u32::MAX);
    /// Bit that is set in scopes of a single queue pair, whose numbers have 24 bits.
    const ONE: u32 = 1 << 31;

    /// Queue pairs of a domain.
    pub const fn domain(domain: Domain) -> Scope {
        Scope(domain.0 as u32)
    }
    /// A single queue pair, until it is destroyed.
    pub const fn queue_pair(num: QpNum) -> Scope {
        Scope(Scope::ONE | num.0)
    }
    const fn is_of_one(self) -> bool {
        self.0 & Scope::ONE != 0
    }
}

/// Queue pair on whose behalf a packet accesses memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessIdentity {
    domain: Scope,
    own: Scope,
}

impl AccessIdentity {
    #[inline]
    pub(crate) const fn new(domain: Domain, num: QpNum) -> Self {
        AccessIdentity { domain: Scope::domain(domain), own: Scope::queue_pair(num) }
    }
    #[inline]
    fn reaches(self, region: &MemoryRegion) -> bool {
        region.scope == self.domain || region.scope == self.own
    }
}

/// Operations that peers may perform on a region.
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

/// Reason why a region could not be registered or deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The region ends beyond 2^64 - 1.
    OutOfRange,
    /// No region has this key.
    UnknownKey,
    /// READs of the region are being answered.
    InUse,
    /// 2^24 regions are registered.
    TooMany,
    /// Another region occupies the slot of this key.
    Taken,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryError::OutOfRange => "the region ends beyond the last address",
            MemoryError::UnknownKey => "no memory region has this key",
            MemoryError::InUse => "READs of the memory region are being answered",
            MemoryError::TooMany => "too many memory regions",
            MemoryError::Taken => "another memory region has the place of this key",
        })
    }
}
impl core::error::Error for MemoryError {}

/// A key holds its slot in the low bits. The driver chooses the others, possibly at random.
const SLOT_BITS: u32 = 24;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

/// Assigns keys to memory regions.
///
/// An endpoint has its own. A driver that needs a key before the endpoint learns of the region takes it from its own
/// `Keys`, and registers all regions of that endpoint with [`Endpoint::register_as`](crate::Endpoint::register_as).
///
/// The low 24 bits of a key are the slot of its region in a table; slots are used from 0 on. The driver chooses the
/// other bits.
#[derive(Debug, Default)]
pub struct Keys {
    /// Number of regions that each slot has had. It makes their keys differ, whatever bits the driver chooses.
    generations: Vec<u32>,
    /// Free slots, reused oldest first, so that generations wrap as late as possible.
    free: VecDeque<u32>,
}

impl Keys {
    /// No key is taken.
    pub const fn new() -> Self {
        Keys { generations: Vec::new(), free: VecDeque::new() }
    }

    /// Takes a key. The bits of `secret` above the lowest 24 go into it. If peers are not trusted, they must be
    /// random and new for each region.
    ///
    /// # Errors
    /// [`MemoryError::TooMany`].
    pub fn allocate(&mut self, secret: u64) -> Result<u64, MemoryError> {
        let slot = match self.free.pop_front() {
            Some(slot) => slot,
            None if self.generations.len() >= 1 << SLOT_BITS => return Err(MemoryError::TooMany),
            None => {
                self.generations.push(0);
                (self.generations.len() - 1) as u32
            }
        };
        let generation = u64::from(self.generations[slot as usize]);
        Ok(secret & !SLOT_MASK ^ generation << SLOT_BITS | u64::from(slot))
    }

    /// Returns the key of a region that was closed.
    pub fn give_back(&mut self, rkey: u64) {
        let slot = (rkey & SLOT_MASK) as u32;
        if let Some(generation) = self.generations.get_mut(slot as usize) {
            *generation = generation.wrapping_add(1);
            self.free.push_back(slot);
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    /// Key of the region, or of the last one in this slot.
    key: u64,
    readers: u32,
    region: Option<MemoryRegion>,
}

/// Memory regions of an endpoint.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Memory {
    /// Region of the latest WRITE, with its key: successive packets mostly write to the same region.
    latest: Option<(u64, MemoryRegion)>,
    slots: Vec<Slot>,
    /// Keys that this table has assigned.
    keys: Keys,
    /// Number of regions that are open to a single queue pair.
    single_qp_regions: usize,
}

impl Memory {
    /// Bytes at the beginning that a packet of a WRITE reads.
    #[cfg(test)]
    pub(crate) const HOT_BYTES: usize = core::mem::offset_of!(Memory, slots);

    pub(crate) const fn new() -> Self {
        Memory { latest: None, slots: Vec::new(), keys: Keys::new(), single_qp_regions: 0 }
    }

    /// Registers a region under a new key. The bits of `secret` above the lowest 24 go into the key.
    pub(crate) fn register(&mut self, region: MemoryRegion, secret: u64) -> Result<u64, MemoryError> {
        region.addr.checked_add(region.len).ok_or(MemoryError::OutOfRange)?;
        let rkey = self.keys.allocate(secret)?;
        self.register_as(region, rkey).map(|()| rkey)
    }

    /// Registers a region under a key that was taken elsewhere.
    pub(crate) fn register_as(&mut self, region: MemoryRegion, rkey: u64) -> Result<(), MemoryError> {
        region.addr.checked_add(region.len).ok_or(MemoryError::OutOfRange)?;
        let slot = (rkey & SLOT_MASK) as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, Slot::default);
        }
        let entry = &mut self.slots[slot];
        if entry.region.is_some() {
            return Err(MemoryError::Taken);
        }
        (entry.key, entry.region) = (rkey, Some(region));
        self.single_qp_regions += usize::from(region.scope.is_of_one());
        Ok(())
    }

    /// Closes the region to new requests. READs that are being answered continue.
    pub(crate) fn revoke(&mut self, rkey: u64) -> Result<(), MemoryError> {
        let slot = self.slot_mut(rkey).ok_or(MemoryError::UnknownKey)?;
        if let Some(region) = &mut slot.region {
            region.access = Access { read: false, write: false };
        }
        self.latest = None;
        Ok(())
    }

    /// True if a READ of the region is being answered.
    pub(crate) fn is_read(&self, rkey: u64) -> bool {
        self.find(rkey).is_some() && self.slots[(rkey & SLOT_MASK) as usize].readers > 0
    }

    pub(crate) fn deregister(&mut self, rkey: u64) -> Result<(), MemoryError> {
        let slot = self.slot_mut(rkey).ok_or(MemoryError::UnknownKey)?;
        if slot.readers > 0 {
            return Err(MemoryError::InUse);
        }
        let region = slot.region.take();
        self.single_qp_regions -= usize::from(region.is_some_and(|region| region.scope.is_of_one()));
        self.latest = None;
        self.keys.give_back(rkey);
        Ok(())
    }

    /// Closes the regions that are open to a destroyed queue pair alone, so that the next one of its number does not
    /// reach them.
    pub(crate) fn close_to(&mut self, num: QpNum) {
        if self.single_qp_regions == 0 {
            return;
        }
        self.latest = None;
        let gone = Scope::queue_pair(num);
        for region in self.slots.iter_mut().filter_map(|slot| slot.region.as_mut()) {
            if region.scope == gone {
                region.scope = Scope::DESTROYED;
            }
        }
    }

    fn slot_mut(&mut self, rkey: u64) -> Option<&mut Slot> {
        let slot = self.slots.get_mut((rkey & SLOT_MASK) as usize)?;
        (slot.region.is_some() && slot.key == rkey).then_some(slot)
    }

    fn find(&self, rkey: u64) -> Option<&MemoryRegion> {
        let slot = self.slots.get((rkey & SLOT_MASK) as usize)?;
        slot.region.as_ref().filter(|_| slot.key == rkey)
    }

    /// Buffer and offset for the `len` bytes of a WRITE to `addr`, if it is allowed.
    #[inline]
    pub(crate) fn check_write(
        &mut self,
        asker: AccessIdentity,
        rkey: u64,
        addr: u64,
        len: u64,
    ) -> Option<(Buffer, u64)> {
        if self.latest.is_none_or(|(key, _)| key != rkey) {
            let region = *self.find(rkey)?;
            self.latest = Some((rkey, region));
        }
        let (_, region) = self.latest.as_ref()?;
        if !asker.reaches(region) || !region.access.write {
            return None;
        }
        within(region, addr, len)
    }

    /// Buffer and offset of `len` bytes to be read at `addr`, if that is allowed.
    pub(crate) fn check_read(
        &self,
        asker: AccessIdentity,
        rkey: u64,
        addr: u64,
        len: u64,
    ) -> Option<(Buffer, u64)> {
        let region = self.find(rkey).filter(|region| asker.reaches(region) && region.access.read)?;
        within(region, addr, len)
    }

    /// Marks the region as being read by one more READ; it stays registered until [`Memory::release`].
    pub(crate) fn retain(&mut self, rkey: u64) {
        self.slot_mut(rkey).expect("the key was checked just before").readers += 1;
    }

    pub(crate) fn release(&mut self, rkey: u64) {
        let slot = self.slot_mut(rkey).expect("a region being read cannot be deregistered");
        slot.readers -= 1;
    }
}

/// Returns buffer and offset if `len` bytes at `addr` lie in the region. With `len` 0 no bounds are checked, as in
/// the verbs.
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
    use alloc::collections::BTreeSet;

    const ANY: AccessIdentity = AccessIdentity::new(Domain(0), QpNum(2));

    fn region(access: Access) -> MemoryRegion {
        MemoryRegion { buffer: Buffer(7), addr: 1_000, len: 100, access, scope: Scope::DEFAULT }
    }

    #[test]
    fn bounds_are_inclusive_of_the_last_byte() {
        let mut memory = Memory::new();
        let key = memory.register(region(Access::READ_WRITE), 0).unwrap();
        assert_eq!(memory.check_write(ANY, key, 1_000, 100), Some((Buffer(7), 0)));
        assert_eq!(memory.check_write(ANY, key, 1_099, 1), Some((Buffer(7), 99)));
        assert_eq!(memory.check_write(ANY, key, 1_099, 2), None);
        assert_eq!(memory.check_write(ANY, key, 999, 1), None);
        assert_eq!(memory.check_write(ANY, key, u64::MAX, u64::MAX), None);
    }

    #[test]
    fn access_is_checked() {
        let mut memory = Memory::new();
        let read = memory.register(region(Access::READ), 0).unwrap();
        let write = memory.register(region(Access::WRITE), 0).unwrap();
        let may = |memory: &mut Memory, key| {
            let read = memory.check_read(ANY, key, 1_000, 1).is_some();
            (read, memory.check_write(ANY, key, 1_000, 1).is_some())
        };
        assert_eq!((may(&mut memory, read), may(&mut memory, write)), ((true, false), (false, true)));
    }

    #[test]
    fn an_old_key_does_not_open_a_new_region() {
        let mut memory = Memory::new();
        let old = memory.register(region(Access::READ_WRITE), 0).unwrap();
        assert!(memory.check_write(ANY, old, 1_000, 1).is_some());
        memory.retain(old);
        assert_eq!(memory.deregister(old), Err(MemoryError::InUse));
        memory.release(old);
        memory.deregister(old).unwrap();
        let new = memory.register(region(Access::READ_WRITE), 0).unwrap();
        assert_ne!(old, new);
        let opens = (memory.check_read(ANY, old, 1_000, 1), memory.check_write(ANY, old, 1_000, 1));
        assert_eq!(opens, (None, None));
        assert_eq!(memory.deregister(old), Err(MemoryError::UnknownKey));
    }

    #[test]
    fn keys_are_not_given_again_and_the_oldest_slot_is() {
        let mut memory = Memory::new();
        // The driver contributes no bits here. A slot is used 33,334 times.
        let mut seen = BTreeSet::new();
        let keys = [(); 3].map(|()| memory.register(region(Access::READ), 0).unwrap());
        assert_eq!(keys, [0, 1, 2]);
        keys.into_iter().for_each(|key| memory.deregister(key).unwrap());
        for n in 0..100_000u64 {
            let key = memory.register(region(Access::READ), 0).unwrap();
            assert_eq!(key & SLOT_MASK, n % 3, "oldest first");
            assert!(seen.insert(key) && !keys.contains(&key), "{key:#x} again after {n}");
            memory.deregister(key).unwrap();
        }
    }

    #[test]
    fn all_bits_of_a_key_are_compared() {
        let mut memory = Memory::new();
        let secret = 0x0123_4567_89ab_cdef;
        let key = memory.register(region(Access::READ_WRITE), secret).unwrap();
        assert_eq!(key, 0x0123_4567_8900_0000);
        for bit in 0..64 {
            let wrong = key ^ 1 << bit;
            let opens = memory.check_write(ANY, wrong, 1_000, 1).or(memory.check_read(ANY, wrong, 1_000, 1));
            assert_eq!(opens, None, "bit {bit}");
        }
        assert!(memory.check_write(ANY, key, 1_000, 1).is_some());
    }

    #[test]
    fn keys_taken_elsewhere_open_what_is_registered_as_them() {
        let (mut memory, mut keys) = (Memory::new(), Keys::new());
        let [first, second] = [(); 2].map(|()| keys.allocate(0xabcd << 24).unwrap());
        // The region of the second key is registered first.
        memory.register_as(region(Access::READ_WRITE), second).unwrap();
        assert_eq!(memory.check_write(ANY, first, 1_000, 1), None);
        memory.register_as(region(Access::READ_WRITE), first).unwrap();
        assert!([first, second].iter().all(|&key| memory.check_write(ANY, key, 1_000, 1).is_some()));
        assert_eq!(memory.register_as(region(Access::READ), first), Err(MemoryError::Taken));
        memory.deregister(first).unwrap();
        keys.give_back(first);
        let third = keys.allocate(0xabcd << 24).unwrap();
        assert!(third & SLOT_MASK == first & SLOT_MASK && third != first, "{first:#x} {third:#x}");
        assert_eq!(memory.check_write(ANY, third, 1_000, 1), None);
        assert_eq!(memory.deregister(third), Err(MemoryError::UnknownKey));
    }

    #[test]
    fn revoked_regions_serve_earlier_reads_only() {
        let mut memory = Memory::new();
        let key = memory.register(region(Access::READ_WRITE), 0).unwrap();
        assert!(memory.check_write(ANY, key, 1_000, 1).is_some());
        memory.retain(key);
        assert!(memory.is_read(key));
        memory.revoke(key).unwrap();
        let asked = (memory.check_read(ANY, key, 1_000, 1), memory.check_write(ANY, key, 1_000, 1));
        assert_eq!(asked, (None, None));
        assert_eq!(memory.deregister(key), Err(MemoryError::InUse));
        memory.release(key);
        assert_eq!(memory.deregister(key), Ok(()));
        assert_eq!(memory.revoke(key), Err(MemoryError::UnknownKey));
    }

    #[test]
    fn a_region_is_open_to_its_domain_or_its_queue_pair_alone() {
        let mut memory = Memory::new();
        let mut open =
            |scope| memory.register(MemoryRegion { scope, ..region(Access::READ_WRITE) }, 0).unwrap();
        let of_domain = open(Scope::domain(Domain(3)));
        let of_one = open(Scope::queue_pair(QpNum(9)));
        let of_default = open(Scope::DEFAULT);
        let mut reached = |domain, num| {
            let asker = AccessIdentity::new(Domain(domain), QpNum(num));
            [of_default, of_domain, of_one].map(|key| {
                let written = memory.check_write(asker, key, 1_000, 1).is_some();
                assert_eq!(written, memory.check_read(asker, key, 1_000, 1).is_some());
                written
            })
        };
        assert_eq!(reached(0, 2), [true, false, false]);
        assert_eq!(reached(3, 2), [false, true, false]);
        assert_eq!(reached(3, 9), [false, true, true]);
        assert_eq!(reached(9, 3), [false, false, false], "numbers of domains and queue pairs are apart");
        memory.close_to(QpNum(9));
        let later = AccessIdentity::new(Domain(3), QpNum(9));
        assert_eq!(memory.check_write(later, of_one, 1_000, 1), None, "nor to the next one of that number");
        assert!(memory.check_write(later, of_domain, 1_000, 1).is_some());
        memory.deregister(of_one).unwrap();
    }

    #[test]
    fn the_unbounded_region_takes_every_write() {
        let mut memory = Memory::new();
        let key = memory.register(MemoryRegion::unbounded(), 0).unwrap();
        assert!(memory.check_write(ANY, key, u64::MAX - 10, 10).is_some());
        let too_long = MemoryRegion { addr: 2, ..MemoryRegion::unbounded() };
        assert_eq!(memory.register(too_long, 0), Err(MemoryError::OutOfRange));
    }
}
