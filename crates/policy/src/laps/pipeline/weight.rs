//! Weight of a path: e^(-beta * delay), computed as 2^(-exponent), where the exponent has ten fractional bits. A
//! multiplication yields the exponent, a table the power of its fraction, a shift the power of its integer part.

use super::Ticks;

/// Weight of a path whose delay is at most the reference.
pub const FULL_WEIGHT: u32 = (1 << 24) - 1;

/// Largest factor: 18 bits, the second operand of an FPGA multiplier whose first has 24.
pub const MAX_FACTOR: u32 = (1 << 18) - 1;

/// Low bits of the product of delay and factor that the exponent drops.
const BELOW_EXPONENT: u32 = 16;
/// Fractional bits of the exponent.
const FRACTION: u32 = 10;
/// Exponent from which a weight of 24 bits is 0 for any table entry.
const MOST_EXPONENT: u64 = 32 << FRACTION;

/// Table of 2^24 * 2^(-f / 1024) for each f, rounded. Entry 0 is reduced by one to fit into 24 bits.
pub const EXP2: [u32; 1 << FRACTION] = exp2();

/// Computes the table in integers, so that no math library affects a bit. The powers are products of 2^(-1/2),
/// 2^(-1/4) and so on with 64 fractional bits, each the square root of the one before.
const fn exp2() -> [u32; 1 << FRACTION] {
    let mut roots = [1u64 << 63; FRACTION as usize + 1];
    let mut i = 1;
    while i < roots.len() {
        roots[i] = ((roots[i - 1] as u128) << 64).isqrt() as u64;
        i += 1;
    }
    let mut table = [FULL_WEIGHT; 1 << FRACTION];
    let mut f = 1;
    while f < table.len() {
        let mut power: u128 = 1 << 64;
        let mut bit = 1;
        while bit <= FRACTION {
            if f >> (FRACTION - bit) & 1 == 1 {
                power = (power * roots[bit as usize] as u128) >> 64;
            }
            bit += 1;
        }
        table[f] = ((power + (1 << 39)) >> 40) as u32;
        f += 1;
    }
    table
}

/// Conversion of delays to a destination into weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Factor: 2^26 / ln 2 times beta, for beta per tick. At most [`MAX_FACTOR`].
    pub factor: u32,
    /// Delay of full weight.
    pub reference: Ticks,
}

impl Scale {
    /// Creates the scale at which a path that takes `unit` / `alpha` longer than `reference` has 1/e of full weight.
    /// A slope above [`MAX_FACTOR`] (for alpha 5 a unit below 1,847 ticks) is clamped to it.
    pub fn new(alpha: f64, unit: Ticks, reference: Ticks) -> Self {
        let exact = alpha * core::f64::consts::LOG2_E * f64::from(1u32 << (FRACTION + BELOW_EXPONENT))
            / f64::from(unit.get().max(1));
        Scale { factor: libm::round(exact.min(f64::from(MAX_FACTOR))) as u32, reference }
    }
}

/// Returns the weight of a path of this delay: at most [`FULL_WEIGHT`], and 0 once the shift has removed all bits.
#[inline]
pub fn weight(scale: Scale, delay: Ticks) -> u32 {
    let above = delay.get().saturating_sub(scale.reference.get());
    let exponent = (u64::from(above) * u64::from(scale.factor)) >> BELOW_EXPONENT;
    if exponent >= MOST_EXPONENT {
        return 0;
    }
    let fraction = exponent as usize & (EXP2.len() - 1);
    EXP2[fraction] >> (exponent >> FRACTION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn scale(factor: u32, reference: u64) -> Scale {
        Scale { factor, reference: Ticks::new(reference) }
    }

    #[test]
    fn the_table_is_rounded_powers_of_two() {
        assert_eq!([0, 1, 512, 1_023].map(|f| EXP2[f]), [16_777_215, 16_765_863, 11_863_283, 8_394_288]);
        for (f, entry) in EXP2.into_iter().enumerate().skip(1) {
            let exact = libm::exp2(24.0 - f as f64 / 1_024.0);
            assert_eq!(entry, libm::round(exact) as u32, "entry {f}");
        }
    }

    #[test]
    fn factors_and_weights_worked_out_by_hand() {
        let unit = Ticks::new(10_000);
        assert_eq!(Scale::new(5.0, unit, unit).factor, 48_409);
        assert_eq!(Scale::new(1.0, unit, unit).factor, 9_682);
        assert_eq!(Scale::new(0.0, unit, unit).factor, 0);
        assert_eq!(Scale::new(5.0, Ticks::new(1_846), unit).factor, MAX_FACTOR);
        assert!(Scale::new(5.0, Ticks::new(1_847), unit).factor < MAX_FACTOR);

        let one = Scale::new(1.0, unit, unit);
        assert_eq!([10_000, 20_000].map(|d| weight(one, Ticks::new(d))), [FULL_WEIGHT, 6_173_328]);
        assert_eq!(weight(one, Ticks::new(9_999)), FULL_WEIGHT);
        let five = Scale::new(5.0, unit, Ticks::new(0));
        assert_eq!([33_270, 33_271].map(|d| weight(five, Ticks::new(d))), [1, 0]);
    }

    #[test]
    fn a_same_index_pair_of_the_rail_fabric() {
        let rail = Scale::new(1.0, Ticks::new(9_040), Ticks::new(4_151));
        let (short, long) = (weight(rail, Ticks::new(4_151)), weight(rail, Ticks::new(8_385)));
        assert_eq!((rail.factor, short, long), (10_710, 16_777_215, 10_509_534));
        let total = f64::from(short) + 7.0 * f64::from(long);
        let shares = [short, long].map(|weight| f64::from(weight) / total);
        assert!((shares[0] - 0.185_70).abs() < 5e-6 && (shares[1] - 0.116_33).abs() < 5e-6, "{shares:?}");
    }

    proptest! {
        /// A longer delay never weighs more. A weight differs from the exact one only by truncation: one step of the
        /// exponent (0.07 %) and one unit of 2^24.
        #[test]
        fn weights_fall_with_delay_and_are_near_the_exact_ones(
            factor in 0..=MAX_FACTOR,
            reference in 0..1u64 << 24,
            delay in 0..1u64 << 24,
            more in 0..1u64 << 20,
        ) {
            let scale = scale(factor, reference);
            let weigh = |ticks| weight(scale, Ticks::new(ticks));
            prop_assert!(weigh(delay + more) <= weigh(delay));
            let above = delay.saturating_sub(reference) as f64;
            let exact = libm::exp2(24.0 - above * f64::from(factor) / f64::from(1u32 << 26));
            let off = f64::from(weigh(delay)) - exact;
            prop_assert!((-1.0..=exact * 6.8e-4 + 1.0).contains(&off), "{} {exact}", weigh(delay));
        }
    }
}
