//! Memory that the network reads and writes.
#![allow(unsafe_code, reason = "owns raw memory that several threads access")]

mod copy;
mod pages;
mod slices;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use thiserror::Error;

pub use slices::{MAX_SLICES, Slices};

/// Alignment of allocated regions in bytes: a page, so that nothing else shares their cache lines or pages.
const PAGE_BYTES: usize = 4_096;

/// Error in the allocation or use of a region.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegionError {
    /// The system has not enough memory.
    #[error("no memory for a region of {len} bytes")]
    OutOfMemory {
        /// Requested length, in bytes.
        len: usize,
    },
    /// The range is not within the region.
    #[error("bytes {start} to {end} are not within the region, which has {len}")]
    OutOfBounds {
        /// First byte of the range.
        start: usize,
        /// End of the range, exclusive.
        end: usize,
        /// Length of the region, in bytes.
        len: usize,
    },
    /// The request has too many slices.
    #[error("more than {limit} slices for one request")]
    TooManySlices {
        /// Largest number of slices.
        limit: usize,
    },
}

/// Memory that work requests use, and that peers can access once it is registered. Clones refer to the same memory,
/// which is freed with the last of them; outstanding work requests hold one.
///
/// While a work request is outstanding, or while peers may write, the bytes can change at any time, exactly as with
/// an RDMA adapter: wait for the completion before reading. Earlier accesses are not undefined behaviour
/// ([`read`](Region::read) and [`write`](Region::write) copy atomically, each byte by itself), but may return a
/// mixture of old and new bytes.
#[derive(Clone)]
pub struct Region(Arc<Memory>);

struct Memory {
    start: NonNull<u8>,
    len: usize,
    order: StoreOrder,
    owner: Owner,
}

/// Order in which the bytes of a packet become visible in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreOrder {
    /// Any.
    Any,
    /// Ascending, in aligned words of 8 bytes.
    Ascending,
}

/// Owner of the memory, which frees it.
enum Owner {
    /// The region itself.
    Allocated(Layout),
    /// A mapping, unmapped when dropped.
    Mapped { _keep: pages::Pages },
    /// An object of the lender, dropped with the region.
    Lent { _keep: Box<dyn Any + Send + Sync> },
}

// SAFETY: the memory is owned (or lent for as long as this lives). It is only accessed atomically, or by raw pointers
// whose users are responsible.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Owner::Allocated(layout) = self.owner {
            // SAFETY: allocated with this layout in `zeroed`, and no clone is left.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

impl Region {
    /// Allocates `len` zero bytes, aligned to a page. From 2 MiB on it uses huge pages if the system has them, which
    /// reduces the cost of address translation for large messages.
    ///
    /// # Errors
    /// [`RegionError::OutOfMemory`].
    pub fn zeroed(len: usize) -> Result<Self, RegionError> {
        Region::zeroed_in_parts(len, || ())
    }

    /// Allocates a region as [`zeroed`](Region::zeroed) does, and calls `between` after each 64 MiB: the system takes
    /// seconds for many gigabytes, in which a caller that runs the event loop itself must run it.
    ///
    /// # Errors
    /// [`RegionError::OutOfMemory`].
    pub fn zeroed_in_parts(len: usize, between: impl FnMut()) -> Result<Self, RegionError> {
        let out_of_memory = RegionError::OutOfMemory { len };
        if len >= pages::HUGE_BYTES {
            let mapped = pages::Pages::zeroed(len, between).ok_or(out_of_memory)?;
            let start = mapped.start();
            return Ok(Region(Arc::new(Memory {
                start,
                len,
                order: StoreOrder::Any,
                owner: Owner::Mapped { _keep: mapped },
            })));
        }
        let layout = Layout::from_size_align(len.max(1), PAGE_BYTES).map_err(|_| out_of_memory.clone())?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(out_of_memory)?;
        Ok(Region(Arc::new(Memory { start, len, order: StoreOrder::Any, owner: Owner::Allocated(layout) })))
    }

    /// Allocates a region with these bytes.
    ///
    /// # Errors
    /// [`RegionError::OutOfMemory`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RegionError> {
        let region = Region::zeroed(bytes.len())?;
        region.write(0, bytes)?;
        Ok(region)
    }

    /// Creates a region over memory of the caller: a mapping, another library's buffer. `keep` is dropped with the
    /// region's last clone.
    ///
    /// # Safety
    /// `start` is valid for reads and writes of `len` bytes until `keep` is dropped. As long as a clone of the region
    /// lives, all other accesses to the bytes are atomic and byte by byte, or happen while no work request and no
    /// registration covers them.
    pub unsafe fn from_raw(start: NonNull<u8>, len: usize, keep: Box<dyn Any + Send + Sync>) -> Self {
        Region(Arc::new(Memory { start, len, order: StoreOrder::Any, owner: Owner::Lent { _keep: keep } }))
    }

    /// Returns the same memory as a region in which the bytes of a packet become visible in ascending order, in aligned
    /// words of 8 bytes. Register it for readers that poll flags within a message which is still arriving, as NCCL's
    /// kernels do: if the last word of a line of 128 bytes is new, so is the rest of the line. Packets still arrive in
    /// any order, so no line may be spread over two of them
    /// ([`payload_of_lines`](crate::DeviceConfig::payload_of_lines)). Long packets take a little longer to copy.
    ///
    /// ```
    /// use pathweave_datapath::Region;
    ///
    /// let memory = Region::zeroed(4_096)?;
    /// let polled = memory.in_order();
    /// polled.write(0, b"a line")?;
    /// assert_eq!(memory.to_vec(0..6)?, b"a line");
    /// # Ok::<(), pathweave_datapath::RegionError>(())
    /// ```
    pub fn in_order(&self) -> Region {
        let owner = Owner::Lent { _keep: Box::new(self.clone()) };
        Region(Arc::new(Memory { start: self.0.start, len: self.0.len, order: StoreOrder::Ascending, owner }))
    }

    /// Copies bytes into the region in its order.
    ///
    /// # Safety
    /// The bytes at `offset` are within the region.
    #[inline]
    unsafe fn store(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: guaranteed by the caller; all safe accesses are atomic.
        unsafe {
            let to = self.as_ptr().add(offset);
            match self.0.order {
                StoreOrder::Any => copy::store(to, bytes),
                StoreOrder::Ascending => copy::store_ascending(to, bytes),
            }
        }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Returns true if the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Returns a pointer to the first byte. Accesses through it are the caller's responsibility; see [`Region`] for
    /// when bytes may change.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.start.as_ptr()
    }

    /// Copies `bytes` into the region.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`]; nothing is copied then.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.check(offset, bytes.len())?;
        // SAFETY: the range was checked.
        unsafe { self.store(offset, bytes) };
        Ok(())
    }

    /// Copies bytes of the region to `to`.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`]; nothing is copied then.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), RegionError> {
        self.check(offset, to.len())?;
        // SAFETY: the range was checked; all safe accesses are atomic.
        unsafe { copy::load(self.as_ptr().add(offset), to) };
        Ok(())
    }

    /// Copies bytes of the region to a vector.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`].
    pub fn to_vec(&self, range: Range<usize>) -> Result<Vec<u8>, RegionError> {
        let mut bytes = vec![0; self.check(range.start, range.end.saturating_sub(range.start))?];
        self.read(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns the whole region, as the memory of a work request.
    pub fn all(&self) -> Slice {
        Slice { region: self.clone(), offset: 0, len: self.len() }
    }

    /// Returns a part of the region, as the memory of a work request.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`].
    pub fn slice(&self, range: Range<usize>) -> Result<Slice, RegionError> {
        let len = self.check(range.start, range.end.saturating_sub(range.start))?;
        Ok(Slice { region: self.clone(), offset: range.start, len })
    }

    fn check(&self, start: usize, len: usize) -> Result<usize, RegionError> {
        let end = start.saturating_add(len);
        if end <= self.0.len {
            Ok(len)
        } else {
            Err(RegionError::OutOfBounds { start, end, len: self.0.len })
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} bytes)", self.0.len)
    }
}

/// Part of a region: source or destination of a message.
#[derive(Clone, Debug)]
pub struct Slice {
    region: Region,
    offset: usize,
    len: usize,
}

impl Slice {
    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Returns true if the slice has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the region that contains the slice.
    pub fn region(&self) -> &Region {
        &self.region
    }
    /// Returns the offset of the slice in its region.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Copies `bytes` to `offset` of the slice. Returns false, and copies nothing, if they do not fit.
    #[inline]
    pub(crate) fn place(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(at) = self.within(offset, bytes.len()) else { return false };
        // SAFETY: `within` has checked that the bytes lie in the slice, and the slice lies in the region.
        unsafe { self.region.store(at, bytes) };
        true
    }

    /// Copies bytes from `offset` of the slice to `to`. Returns false, and copies nothing, if the slice is too short.
    #[inline]
    pub(crate) fn fetch(&self, offset: u64, to: &mut [u8]) -> bool {
        let Some(at) = self.within(offset, to.len()) else { return false };
        // SAFETY: as in `place`.
        unsafe { copy::load(self.region.as_ptr().add(at), to) };
        true
    }

    #[inline]
    fn within(&self, offset: u64, len: usize) -> Option<usize> {
        let offset = usize::try_from(offset).ok()?;
        let fits = len <= self.len && offset <= self.len - len;
        fits.then(|| self.offset + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn written_values_are_read_back() {
        let region = Region::zeroed(10_000).unwrap();
        assert_eq!(region.as_ptr() as usize % PAGE_BYTES, 0);
        region.write(5, b"abcdefghijkl").unwrap();
        assert_eq!(region.to_vec(4..18).unwrap(), b"\0abcdefghijkl\0");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no huge pages")]
    fn large_regions_are_zero_and_whole_as_well() {
        for len in [pages::HUGE_BYTES, pages::HUGE_BYTES + 1, 3 * pages::HUGE_BYTES - 1] {
            let region = Region::zeroed(len).unwrap();
            assert_eq!(region.as_ptr() as usize % pages::HUGE_BYTES, 0);
            assert_eq!(region.to_vec(len - 3..len).unwrap(), [0; 3]);
            region.write(0, b"ab").unwrap();
            region.write(len - 2, b"yz").unwrap();
            let slice = region.all();
            drop(region);
            assert_eq!(slice.region().to_vec(0..3).unwrap(), *b"ab\0");
            assert_eq!(slice.region().to_vec(len - 3..len).unwrap(), *b"\0yz");
        }
        // 160 MiB are populated in parts of 64 MiB.
        let mut parts = 0;
        Region::zeroed_in_parts(80 * pages::HUGE_BYTES, || parts += 1).unwrap();
        assert_eq!(parts, 3);
        let too_much = Region::zeroed(usize::MAX - 1);
        assert_eq!(too_much.unwrap_err(), RegionError::OutOfMemory { len: usize::MAX - 1 });
    }

    #[test]
    fn bounds_are_those_of_the_region_and_of_the_slice() {
        let region = Region::zeroed(100).unwrap();
        assert_eq!(region.write(99, b"ab"), Err(RegionError::OutOfBounds { start: 99, end: 101, len: 100 }));
        assert_eq!(
            region.slice(0..101).unwrap_err(),
            RegionError::OutOfBounds { start: 0, end: 101, len: 100 }
        );
        assert!(region.read(usize::MAX, &mut [0; 2]).is_err());
        let slice = region.slice(10..20).unwrap();
        assert!(slice.place(0, &[1; 10]) && slice.place(10, &[]));
        assert!(!slice.place(1, &[1; 10]) && !slice.place(u64::MAX, &[1]) && !slice.place(0, &[1; 11]));
        assert!(slice.fetch(9, &mut [0]) && !slice.fetch(10, &mut [0]));
        assert_eq!(region.to_vec(9..21).unwrap(), [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn lent_memory_is_given_back_with_the_last_clone() {
        static FREED: AtomicU32 = AtomicU32::new(0);
        struct Lender(Vec<u8>);
        impl Drop for Lender {
            fn drop(&mut self) {
                FREED.fetch_add(1, Ordering::Relaxed);
            }
        }
        let mut lender = Lender(vec![7; 64]);
        let start = NonNull::new(lender.0.as_mut_ptr()).unwrap();
        // SAFETY: the vector's memory lives as long as the lender, and nothing else accesses it.
        let region = unsafe { Region::from_raw(start, 64, Box::new(lender)) };
        let slice = region.all();
        drop(region);
        assert_eq!(FREED.load(Ordering::Relaxed), 0);
        assert_eq!(slice.region().to_vec(60..64).unwrap(), [7; 4]);
        drop(slice);
        assert_eq!(FREED.load(Ordering::Relaxed), 1);
    }
}
