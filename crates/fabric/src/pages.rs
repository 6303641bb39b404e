//! State of ports that few ports ever need: memory for it is allocated when it is first changed.

use crate::packet::PortId;

/// Number of ports that share an allocation.
const PORTS_A_PAGE: usize = 32;
const SHIFT: u32 = PORTS_A_PAGE.ilog2();

/// A value for each port. Neighbouring ports share a page, which exists once one of their values has been changed.
pub(crate) struct Pages<T> {
    pages: Vec<Option<Box<[T; PORTS_A_PAGE]>>>,
    initial: T,
}

impl<T: Copy> Pages<T> {
    /// Creates the value `initial` for each of `ports` ports.
    pub(crate) fn new(ports: usize, initial: T) -> Self {
        Pages { pages: (0..ports.div_ceil(PORTS_A_PAGE)).map(|_| None).collect(), initial }
    }

    /// Returns the value of a port.
    #[inline]
    pub(crate) fn get(&self, port: PortId) -> &T {
        match &self.pages[(port >> SHIFT) as usize] {
            Some(page) => &page[port as usize % PORTS_A_PAGE],
            None => &self.initial,
        }
    }

    /// Returns the value of a port for a change.
    #[inline]
    pub(crate) fn at(&mut self, port: PortId) -> &mut T {
        let page = &mut self.pages[(port >> SHIFT) as usize];
        let page = match page {
            Some(page) => page,
            None => page.insert(first_page(self.initial)),
        };
        &mut page[port as usize % PORTS_A_PAGE]
    }

    /// Iterates over the values of the pages that exist.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flatten().flat_map(|page| page.iter())
    }

    /// Returns the allocated bytes.
    pub(crate) fn bytes(&self) -> usize {
        let used = self.pages.iter().flatten().count();
        size_of_val(&self.pages[..]) + used * size_of::<[T; PORTS_A_PAGE]>()
    }
}

#[cold]
fn first_page<T: Copy>(initial: T) -> Box<[T; PORTS_A_PAGE]> {
    Box::new([initial; PORTS_A_PAGE])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_with_the_first_change() {
        let mut counts = Pages::new(100, 7u64);
        let empty = counts.bytes();
        assert_eq!((*counts.get(0), *counts.get(99)), (7, 7));
        assert_eq!(counts.bytes(), empty);
        *counts.at(40) += 1;
        // Ports 32 to 63 have a page now: 32 numbers of 8 bytes.
        assert_eq!(counts.bytes(), empty + 256);
        assert_eq!((*counts.get(39), *counts.get(40), *counts.get(64)), (7, 8, 7));
        *counts.at(63) = 0;
        *counts.at(99) = 1;
        assert_eq!(counts.bytes(), empty + 512);
        assert_eq!(counts.changed().sum::<u64>(), 30 * 7 + 8 + 31 * 7 + 1);
    }
}
