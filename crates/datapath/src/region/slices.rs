//! Several slices as the memory of one request.

use super::{RegionError, Slice};

/// Largest number of slices of one request.
pub const MAX_SLICES: usize = 8;

/// Memory of a request: one slice, or up to [`MAX_SLICES`] slices that are filled or gathered one after the other as
/// if they were one. A single slice has no additional cost.
///
/// ```
/// use pathweave_datapath::{Region, Slices};
///
/// let (header, body) = (Region::from_bytes(b"header")?, Region::from_bytes(b"a long body")?);
/// let message = Slices::of([header.all(), body.slice(2..6)?])?;
/// assert_eq!(message.len(), 10);
/// # Ok::<(), pathweave_datapath::RegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Slices(Kind);

#[derive(Clone, Debug)]
enum Kind {
    One(Slice),
    Other(Box<Other>),
}

#[derive(Clone, Debug)]
enum Other {
    Several(Box<[Slice]>),
    /// No memory: bytes written to it are discarded, and bytes read from it are zeros.
    Nothing {
        len: usize,
    },
}

impl Slices {
    /// Returns `len` bytes without memory.
    pub(crate) fn nothing(len: usize) -> Self {
        Slices(Kind::Other(Box::new(Other::Nothing { len })))
    }

    /// Combines slices in this order; none at all are an empty message.
    ///
    /// # Errors
    /// [`RegionError::TooManySlices`].
    pub fn of(slices: impl IntoIterator<Item = Slice>) -> Result<Self, RegionError> {
        let mut slices = slices.into_iter();
        let all: Box<[Slice]> = slices.by_ref().take(MAX_SLICES).collect();
        if slices.next().is_some() {
            return Err(RegionError::TooManySlices { limit: MAX_SLICES });
        }
        Ok(Slices(Kind::Other(Box::new(Other::Several(all)))))
    }

    /// Returns the total length in bytes.
    pub fn len(&self) -> usize {
        let other = match &self.0 {
            Kind::One(slice) => return slice.len(),
            Kind::Other(other) => &**other,
        };
        match other {
            // If the sum exceeds `usize` it saturates, which is too long for any message.
            Other::Several(all) => all.iter().fold(0, |sum: usize, slice| sum.saturating_add(slice.len())),
            Other::Nothing { len } => *len,
        }
    }

    /// Returns true if the total length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `bytes` to `offset` of the concatenated slices. Returns false, and copies nothing, if they do not fit.
    #[inline]
    pub(crate) fn place(&self, offset: u64, bytes: &[u8]) -> bool {
        let other = match &self.0 {
            Kind::One(slice) => return slice.place(offset, bytes),
            Kind::Other(other) => &**other,
        };
        match other {
            Other::Several(all) => {
                let mut left = bytes;
                self.each(all, offset, bytes.len(), |slice, at, len| {
                    let (here, rest) = left.split_at(len);
                    left = rest;
                    slice.place(at, here)
                })
            }
            Other::Nothing { len } => is_within(*len, offset, bytes.len()),
        }
    }

    /// Copies bytes from `offset` of the concatenated slices to `to`. Returns false, and copies nothing, if they are
    /// too short.
    #[inline]
    pub(crate) fn fetch(&self, offset: u64, to: &mut [u8]) -> bool {
        let other = match &self.0 {
            Kind::One(slice) => return slice.fetch(offset, to),
            Kind::Other(other) => &**other,
        };
        match other {
            Other::Several(all) => {
                let mut done = 0;
                self.each(all, offset, to.len(), |slice, at, len| {
                    let here = &mut to[done..done + len];
                    done += len;
                    slice.fetch(at, here)
                })
            }
            Other::Nothing { len } => {
                to.fill(0);
                is_within(*len, offset, to.len())
            }
        }
    }

    /// Visits the part of each slice that lies in the `len` bytes from `offset` on. Returns false, and visits
    /// nothing, if the slices are too short.
    fn each(
        &self,
        all: &[Slice],
        offset: u64,
        len: usize,
        mut visit: impl FnMut(&Slice, u64, usize) -> bool,
    ) -> bool {
        let Ok(mut skip) = usize::try_from(offset) else { return false };
        if skip.checked_add(len).is_none_or(|end| end > self.len()) {
            return false;
        }
        let mut left = len;
        for slice in all {
            let here = left.min(slice.len().saturating_sub(skip));
            if here > 0 && !visit(slice, skip as u64, here) {
                return false;
            }
            left -= here;
            skip = skip.saturating_sub(slice.len());
        }
        true
    }
}

impl From<Slice> for Slices {
    #[inline]
    fn from(slice: Slice) -> Self {
        Slices(Kind::One(slice))
    }
}

/// Returns true if `bytes` at `offset` lie in memory of this length.
fn is_within(len: usize, offset: u64, bytes: usize) -> bool {
    usize::try_from(offset).is_ok_and(|offset| bytes <= len && offset <= len - bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;
    use proptest::prelude::*;

    #[test]
    fn a_single_slice_costs_no_more_than_itself() {
        assert_eq!(size_of::<Slices>(), size_of::<Slice>());
    }

    #[test]
    fn there_are_at_most_eight() {
        let region = Region::zeroed(8).unwrap();
        assert_eq!(Slices::of(vec![region.all(); 8]).unwrap().len(), 64);
        let error = Slices::of(vec![region.all(); 9]).unwrap_err();
        assert_eq!(error, RegionError::TooManySlices { limit: 8 });
        assert!(Slices::of([]).unwrap().is_empty());
    }

    #[test]
    fn nothing_takes_all_and_gives_zeros_within_its_bounds() {
        let nothing = Slices::nothing(10);
        let mut bytes = [1; 4];
        assert_eq!(nothing.len(), 10);
        assert!(nothing.place(6, &bytes) && !nothing.place(7, &bytes) && !nothing.place(u64::MAX, &bytes));
        assert!(nothing.fetch(6, &mut bytes) && bytes == [0; 4] && !nothing.fetch(7, &mut bytes));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 8 } else { 256 }, failure_persistence: None, ..ProptestConfig::default()
        })]

        /// Concatenated slices behave like one slice of the same length.
        #[test]
        fn several_are_as_one(
            lens in prop::collection::vec(0..20usize, 0..=MAX_SLICES),
            offset in 0..100u64,
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let total: usize = lens.iter().sum();
            let one = Region::zeroed(total).unwrap();
            let regions: Vec<Region> = lens.iter().map(|len| Region::zeroed(len + 7).unwrap()).collect();
            let slices = regions.iter().zip(&lens).map(|(region, len)| region.slice(3..3 + len).unwrap());
            let several = Slices::of(slices).unwrap();
            prop_assert_eq!(several.len(), total);
            prop_assert_eq!(several.place(offset, &bytes), one.all().place(offset, &bytes));
            let mut joined = Vec::new();
            for (region, len) in regions.iter().zip(&lens) {
                let all = region.to_vec(0..len + 7).unwrap();
                prop_assert!(all[..3].iter().chain(&all[3 + len..]).all(|&byte| byte == 0), "beside a slice");
                joined.extend_from_slice(&all[3..3 + len]);
            }
            prop_assert_eq!(&joined, &one.to_vec(0..total).unwrap());
            let (mut here, mut there) = (vec![1; bytes.len()], vec![1; bytes.len()]);
            prop_assert_eq!(several.fetch(offset, &mut here), one.all().fetch(offset, &mut there));
            prop_assert_eq!(here, there);
        }
    }
}
