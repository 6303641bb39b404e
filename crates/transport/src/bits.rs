//! Bitmap over a sliding range of numbers.

use alloc::boxed::Box;
use alloc::vec;

use crate::warm::Prefetch;

/// Words stored inline: enough for 128 numbers, the window of most queue pairs.
const FEW: usize = 2;

/// One bit for each number of a range that slides upwards. The range is never longer than the capacity. Outside the
/// range, bits are those of other numbers, and the caller must mask them.
#[derive(Debug)]
pub(crate) enum BitRing {
    /// Stored inline, without an allocation.
    Few([u64; FEW]),
    /// Allocated; the number of words is a power of two.
    Many(Box<[u64]>),
}

impl BitRing {
    /// Returns a bitmap for a range of 128 numbers, all bits clear. Does not allocate.
    pub(crate) const fn new() -> Self {
        BitRing::Few([0; FEW])
    }

    /// Returns a bitmap for a range of `numbers`, all bits clear. Allocates if they are more than 128.
    pub(crate) fn with_room_for(numbers: u64) -> Self {
        let words = numbers.div_ceil(64).next_power_of_two() as usize;
        if words <= FEW { BitRing::new() } else { BitRing::Many(vec![0; words].into()) }
    }

    /// Extends the capacity to `numbers`. All bits must be clear.
    #[inline]
    pub(crate) fn make_room_for(&mut self, numbers: u64) {
        if self.words().len() as u64 * 64 < numbers {
            *self = BitRing::with_room_for(numbers);
        }
    }

    #[inline]
    fn words(&self) -> &[u64] {
        match self {
            BitRing::Few(words) => words,
            BitRing::Many(words) => words,
        }
    }

    #[inline]
    fn word(&self, number: u64) -> u64 {
        let words = self.words();
        words[(number >> 6) as usize & (words.len() - 1)]
    }

    #[inline]
    fn word_mut(&mut self, number: u64) -> &mut u64 {
        let words = match self {
            BitRing::Few(words) => words.as_mut_slice(),
            BitRing::Many(words) => words,
        };
        &mut words[(number >> 6) as usize & (words.len() - 1)]
    }

    /// Prefetches the bit of a number.
    #[inline]
    pub(crate) fn warm(&self, number: u64, cache: &mut impl Prefetch) {
        if let BitRing::Many(words) = self {
            cache.warm(&words[(number >> 6) as usize & (words.len() - 1)], 0);
        }
    }

    #[inline]
    pub(crate) fn get(&self, number: u64) -> bool {
        self.word(number) >> (number & 63) & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&mut self, number: u64) {
        *self.word_mut(number) |= 1 << (number & 63);
    }

    #[inline]
    pub(crate) fn clear(&mut self, number: u64) {
        *self.word_mut(number) &= !(1 << (number & 63));
    }

    /// Clears `from..to`, a word at a time.
    pub(crate) fn clear_range(&mut self, mut from: u64, to: u64) {
        while from < to {
            let end = to.min((from | 63) + 1);
            let ones = !0 >> (64 - (end - from));
            *self.word_mut(from) &= !(ones << (from & 63));
            from = end;
        }
    }

    /// Returns the 64 bits up to `last`: bit i of the result is the bit of `last - i`.
    #[inline]
    pub(crate) fn down_from(&self, last: u64) -> u64 {
        let first = last.wrapping_sub(63);
        let (low, shift) = (self.word(first), first & 63);
        let natural = if shift == 0 { low } else { low >> shift | self.word(last) << (64 - shift) };
        natural.reverse_bits()
    }

    /// Returns the number of consecutive set bits from `from` on, at most `limit`.
    pub(crate) fn run_of_ones(&self, from: u64, limit: u64) -> u64 {
        let mut run = 0;
        while run < limit {
            let number = from + run;
            let ones = u64::from((self.word(number) >> (number & 63)).trailing_ones());
            // The shift fills with zeros, so a word that is full from here on gives 64 - shift ones.
            run += ones;
            if ones < 64 - (number & 63) {
                break;
            }
        }
        run.min(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_window_reaches_across_words_and_the_end_of_the_ring() {
        let mut bits = BitRing::with_room_for(128);
        for number in [250, 255, 256, 260] {
            bits.set(number);
        }
        assert_eq!(bits.down_from(260), 1 | 1 << 4 | 1 << 5 | 1 << 10);
        assert_eq!(bits.run_of_ones(255, 100), 2);
        bits.clear_range(255, 261);
        assert_eq!(bits.down_from(260), 1 << 10);
    }

    proptest! {
        #[test]
        fn agrees_with_a_list_of_flags(size in prop::sample::select(&[64u64, 128, 256][..]), base in 0u64..1_000,
                                       offsets in prop::collection::vec(0u64..256, 0..200), cut in 0u64..256) {
            let (cut, offsets) = (cut % size, offsets.into_iter().map(|offset| offset % size));
            let mut bits = BitRing::with_room_for(size);
            let mut model = std::collections::BTreeSet::new();
            for offset in offsets {
                bits.set(base + offset);
                model.insert(base + offset);
            }
            bits.clear_range(base, base + cut);
            model.retain(|&n| n >= base + cut);
            for number in base..base + size {
                prop_assert_eq!(bits.get(number), model.contains(&number));
                let run = (number..base + size).take_while(|n| model.contains(n)).count() as u64;
                prop_assert_eq!(bits.run_of_ones(number, base + size - number), run);
            }
            let last = base + size - 1;
            let window = (0..64).filter(|i| model.contains(&(last - i))).fold(0, |w, i| w | 1u64 << i);
            prop_assert_eq!(bits.down_from(last), window);
        }
    }
}
