//! Conversion of floats of 16 bits, without branches, so that loops over them are vectorised.

/// Converts IEEE half precision to single precision, exactly.
#[inline(always)]
pub(crate) fn from_f16(half: u16) -> f32 {
    let magnitude = u32::from(half & 0x7fff) << 13;
    let sign = u32::from(half & 0x8000) << 16;
    // 2^112 moves the exponent's bias; it makes subnormal values normal, too.
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    // Infinity and NaN keep the largest exponent.
    let special = if magnitude >= 0x0f80_0000 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | special | sign)
}

/// Converts single precision to IEEE half precision, rounded to the nearest, ties to even.
#[inline(always)]
pub(crate) fn to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
    // Below the smallest normal half: adding 0.5 leaves the rounded result in the lowest bits.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_add(0xc800_0fff).wrapping_add(odd) >> 13;
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let finite = if magnitude < 0x3880_0000 { small } else { normal };
    let result = if magnitude >= 0x4780_0000 { special } else { finite };
    result as u16 | sign
}

/// Converts bfloat16 to single precision, exactly.
#[inline(always)]
pub(crate) fn from_bf16(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// Converts single precision to bfloat16, rounded to the nearest, ties to even.
#[inline(always)]
pub(crate) fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff).wrapping_add((bits >> 16) & 1) >> 16;
    let nan = (bits >> 16) | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of a half, computed from its fields.
    fn value(half: u16) -> f64 {
        let (exponent, fraction) = (i32::from(half >> 10 & 31), f64::from(half & 1_023));
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(-24),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1_024.0 + fraction) * 2f64.powi(exponent - 25),
        };
        if half & 0x8000 == 0 { magnitude } else { -magnitude }
    }

    #[test]
    fn every_half_comes_back() {
        for half in 0..=u16::MAX {
            let wide = from_f16(half);
            if value(half).is_nan() {
                assert!(wide.is_nan() && from_f16(to_f16(wide)).is_nan());
            } else {
                assert_eq!(f64::from(wide), value(half), "{half:#x}");
                assert_eq!(to_f16(wide), half);
            }
            if !from_bf16(half).is_nan() {
                assert_eq!(to_bf16(from_bf16(half)), half);
            }
        }
    }

    #[test]
    fn values_between_two_halves_go_to_the_nearer_or_to_the_even_one() {
        for half in 0..0x7bff_u16 {
            let (low, high) = (from_f16(half), from_f16(half + 1));
            let middle = (low + high) / 2.0;
            let even = if half % 2 == 0 { half } else { half + 1 };
            assert_eq!(to_f16(middle), even, "{half:#x}");
            assert_eq!(to_f16(f32::from_bits(middle.to_bits() - 1)), half);
            assert_eq!(to_f16(f32::from_bits(middle.to_bits() + 1)), half + 1);
        }
        assert_eq!([to_f16(65_519.0), to_f16(65_520.0), to_f16(1e9)], [0x7bff, 0x7c00, 0x7c00]);
        // 1 + 2^-8 lies between 1 and 1 + 2^-7: to even is 1.
        assert_eq!(to_bf16(1.0 + 1.0 / 256.0), 0x3f80);
        assert_eq!(to_bf16(1.0 + 3.0 / 256.0), 0x3f82);
        assert_eq!(to_bf16(f32::MAX), 0x7f80, "rounds to infinity");
        assert!(from_bf16(to_bf16(f32::NAN)).is_nan());
    }
}
