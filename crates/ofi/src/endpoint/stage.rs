//! Staging memory of the provider that messages are sent from and received into. It is divided into slots of
//! a few sizes, which are reused.

use pathweave_datapath::{Region, Slice};

/// Number of slots that are allocated together.
const PLACES_AT_ONCE: usize = 16;

/// Slots of one size.
struct Class {
    bytes: usize,
    free: Vec<Slice>,
}

/// All slots.
pub(crate) struct StagingPool {
    classes: Vec<Class>,
}

impl StagingPool {
    /// Makes a stage with slots of these sizes.
    pub(crate) fn new(mut sizes: Vec<usize>) -> Self {
        sizes.sort_unstable();
        sizes.dedup();
        StagingPool { classes: sizes.into_iter().map(|bytes| Class { bytes, free: Vec::new() }).collect() }
    }

    /// Returns a slot of at least this size, or `None` without memory. A size above all classes is allocated
    /// individually.
    pub(crate) fn alloc(&mut self, bytes: usize) -> Option<Slice> {
        let Some(class) = self.classes.iter_mut().find(|class| class.bytes >= bytes) else {
            return Region::zeroed(bytes).ok().map(|region| region.all());
        };
        if class.free.is_empty() {
            let region = Region::zeroed(class.bytes * PLACES_AT_ONCE).ok()?;
            let place = |index: usize| region.slice(index * class.bytes..(index + 1) * class.bytes).ok();
            class.free.extend((0..PLACES_AT_ONCE).rev().filter_map(place));
        }
        class.free.pop()
    }

    /// Returns a slot to the stage.
    pub(crate) fn free(&mut self, place: Slice) {
        if let Some(class) = self.classes.iter_mut().find(|class| class.bytes == place.len()) {
            class.free.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_come_back() {
        let mut stage = StagingPool::new(vec![2_048, 256, 2_048]);
        let places: Vec<Slice> = (0..40).map(|_| stage.alloc(200).unwrap()).collect();
        let mut starts: Vec<usize> =
            places.iter().map(|place| place.region().as_ptr() as usize + place.offset()).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 256));
        let last = starts[39];
        places.into_iter().for_each(|place| stage.free(place));
        let again = stage.alloc(256).unwrap();
        assert!(again.region().as_ptr() as usize + again.offset() <= last);
        assert_eq!(stage.alloc(9_999).unwrap().len(), 9_999);
    }
}
