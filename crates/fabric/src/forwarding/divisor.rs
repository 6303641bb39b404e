//! Division by a number that is known in advance, as a multiplication.

/// A divisor with its reciprocal. The quotient of each 32-bit number is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    value: u32,
    /// The largest number whose product with `value` is below 2^64.
    reciprocal: u64,
}

impl Divisor {
    /// Creates a divisor.
    ///
    /// # Panics
    /// Panics if the value is 0.
    pub const fn new(value: u32) -> Self {
        assert!(value > 0, "a division by 0");
        Divisor { value, reciprocal: u64::MAX / value as u64 }
    }

    /// Returns the number to divide by.
    #[inline(always)]
    pub const fn get(self) -> u32 {
        self.value
    }

    /// Divides a number, rounding down.
    ///
    /// With divisor d and reciprocal (2^64 - 1 - r) / d, where r is below d, the result is (n + 1) / d less
    /// (n + 1) (1 + r) / (2^64 d), rounded down. The second term is above 0, and below 1 / d since (n + 1) (1 + r) is
    /// at most 2^32 (2^32 - 1). So the result lies in the same integer as n / d.
    #[inline(always)]
    pub(crate) fn divide(self, n: u32) -> u32 {
        let product = u128::from(self.reciprocal) * (u128::from(n) + 1);
        (product >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotients_by_hand() {
        assert_eq!([0, 1, 7, u32::MAX].map(|n| Divisor::new(1).divide(n)), [0, 1, 7, u32::MAX]);
        assert_eq!([0, 15, 16, 31, 32].map(|n| Divisor::new(16).divide(n)), [0, 0, 1, 1, 2]);
        assert_eq!([u32::MAX - 1, u32::MAX].map(|n| Divisor::new(u32::MAX).divide(n)), [0, 1]);
    }

    proptest! {
        /// Also next to each multiple, where an inexact reciprocal would round to the other side.
        #[test]
        fn divides_as_the_operator_does(value in 1u32.., n: u32) {
            let multiple = n / value * value;
            for n in [n, multiple, multiple.saturating_sub(1), u32::MAX] {
                prop_assert_eq!(Divisor::new(value).divide(n), n / value);
            }
        }

        #[test]
        fn divides_by_small_numbers(value in 1u32..100, n: u32) {
            prop_assert_eq!(Divisor::new(value).divide(n), n / value);
        }
    }
}
