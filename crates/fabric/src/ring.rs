//! A FIFO queue in contiguous memory, so that successive elements are adjacent.

use crate::prefetch::prefetch;

/// A ring with a power of two of slots, doubled when it is full and never shrunk. It is leaner than `VecDeque`,
/// because every packet passes two of them a hop.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    places: Box<[T]>,
    /// Numbers of elements removed and appended since the ring was last empty, modulo 2^32. The low bits are slot
    /// indices.
    head: u32,
    tail: u32,
}

/// Number of slots of the first allocation.
pub(crate) const FIRST_PLACES: usize = 8;

impl<T: Copy> Ring<T> {
    pub(crate) fn new() -> Self {
        Ring { places: Box::default(), head: 0, tail: 0 }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Returns the number of slots, used or not.
    pub(crate) fn slots(&self) -> usize {
        self.places.len()
    }

    #[inline(always)]
    fn place(&self, count: u32) -> usize {
        count as usize & self.places.len().wrapping_sub(1)
    }

    /// Returns the first element.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.places.get(self.place(self.head)) }
    }

    /// Returns the last element.
    #[inline(always)]
    pub(crate) fn back(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.places.get(self.place(self.tail.wrapping_sub(1))) }
    }

    /// Prefetches the first elements. Packets are two to a cache line.
    #[inline(always)]
    pub(crate) fn prefetch_first<const LINES: u32>(&self) {
        for line in 0..LINES {
            self.peek(2 * line).into_iter().for_each(prefetch);
        }
    }

    /// Prefetches the slot of the next element to be appended.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self) {
        self.back().into_iter().for_each(prefetch);
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, element: T) {
        if self.tail.wrapping_sub(self.head) as usize == self.places.len() {
            self.grow(element);
        }
        let place = self.place(self.tail);
        self.places[place] = element;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Removes the first element of a ring that is not empty.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> T {
        debug_assert!(!self.is_empty());
        let element = self.places[self.place(self.head)];
        let head = self.head.wrapping_add(1);
        // An empty ring starts again at slot 0, because the first slots are most likely in cache.
        let empty = head == self.tail;
        (self.head, self.tail) = if empty { (0, 0) } else { (head, self.tail) };
        element
    }

    /// Returns the first element of a ring that is not empty.
    #[inline(always)]
    pub(crate) fn first(&self) -> &T {
        debug_assert!(!self.is_empty());
        &self.places[self.place(self.head)]
    }

    /// Removes the first element of a ring that is not empty. The ring does not start again at slot 0 when it becomes
    /// empty, until [`Ring::restart_if_empty`].
    #[inline(always)]
    pub(crate) fn drop_first(&mut self) {
        debug_assert!(!self.is_empty());
        self.head = self.head.wrapping_add(1);
    }

    /// Lets the ring start again at slot 0 if it is empty.
    #[inline(always)]
    pub(crate) fn restart_if_empty(&mut self) {
        (self.head, self.tail) = if self.is_empty() { (0, 0) } else { (self.head, self.tail) };
    }

    /// Returns the elements in order, as two slices.
    #[inline(always)]
    pub(crate) fn slices(&self) -> [&[T]; 2] {
        if self.is_empty() {
            return [&[], &[]];
        }
        let count = self.tail.wrapping_sub(self.head) as usize;
        let start = self.place(self.head);
        let first = count.min(self.places.len() - start);
        [&self.places[start..start + first], &self.places[..count - first]]
    }

    /// Removes the first `count` elements. There are at least as many.
    #[inline(always)]
    pub(crate) fn remove_first(&mut self, count: u32) {
        debug_assert!(count <= self.tail.wrapping_sub(self.head));
        let head = self.head.wrapping_add(count);
        let empty = head == self.tail;
        (self.head, self.tail) = if empty { (0, 0) } else { (head, self.tail) };
    }

    /// Removes the last element of a ring that is not empty.
    pub(crate) fn pop_back(&mut self) -> T {
        debug_assert!(!self.is_empty());
        self.tail = self.tail.wrapping_sub(1);
        let element = self.places[self.place(self.tail)];
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        }
        element
    }

    /// Doubles the number of slots. `filler` initializes the unused ones.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: T) {
        let places = (2 * self.places.len()).max(FIRST_PLACES);
        assert!(u32::try_from(places).is_ok(), "more than 2^31 packets in a queue");
        let mut grown = Vec::with_capacity(places);
        grown.extend(self.iter().copied());
        (self.head, self.tail) = (0, grown.len() as u32);
        grown.resize(places, filler);
        self.places = grown.into_boxed_slice();
    }

    /// Returns the element at distance `n` after the first, or an arbitrary one. Only for prefetching.
    #[inline(always)]
    pub(crate) fn peek(&self, n: u32) -> Option<&T> {
        self.places.get(self.place(self.head.wrapping_add(n)))
    }

    /// Iterates from the first element to the last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let count = self.tail.wrapping_sub(self.head);
        (0..count).map(|n| &self.places[self.place(self.head.wrapping_add(n))])
    }

    pub(crate) fn for_each_mut(&mut self, mut act: impl FnMut(&mut T)) {
        for n in 0..self.tail.wrapping_sub(self.head) {
            let place = self.place(self.head.wrapping_add(n));
            act(&mut self.places[place]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn removes_several_at_once(start: u32, elements in prop::collection::vec(any::<u16>(), 0..40), share in 0.0..=1.0) {
            let mut ring = Ring { head: start, tail: start, ..Ring::new() };
            elements.iter().for_each(|&element| ring.push(element));
            let count = (share * elements.len() as f64) as usize;
            ring.remove_first(count as u32);
            prop_assert!(ring.iter().eq(&elements[count..]));
            prop_assert_eq!(ring.is_empty(), count == elements.len());
        }

        /// `Some` appends, `None` removes from the front or the back. The counts may wrap.
        #[test]
        fn behaves_like_a_deque(
            start: u32,
            ops in prop::collection::vec((prop::option::weighted(0.6, any::<u16>()), prop::bool::weighted(0.2)), 0..300),
        ) {
            let mut ring = Ring { head: start, tail: start, ..Ring::new() };
            let mut model = VecDeque::new();
            for (op, back) in ops {
                match op {
                    Some(element) => {
                        ring.push(element);
                        model.push_back(element);
                    }
                    None if model.is_empty() => {}
                    None if back => prop_assert_eq!(Some(ring.pop_back()), model.pop_back()),
                    None => prop_assert_eq!(Some(ring.pop()), model.pop_front()),
                }
                prop_assert_eq!(ring.front(), model.front());
                prop_assert_eq!(ring.back(), model.back());
                prop_assert!(ring.iter().eq(model.iter()));
                prop_assert!(ring.slices().concat().iter().eq(model.iter()));
                prop_assert_eq!(ring.is_empty(), model.is_empty());
            }
        }
    }
}
