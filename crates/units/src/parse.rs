//! Parsing of values with a unit: "100Gbps", "1.5us", "8MB". A unit is always required, so that no number in a
//! scenario file can be read in the wrong unit.

use core::fmt;
use core::str::FromStr;

use crate::{Bytes, Duration, Rate};

/// Error of a text that is not a value with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseUnitError {
    /// The text has no digits at the start, or a malformed number.
    Number(&'static [(&'static str, u64)]),
    /// The number has no known unit after it.
    Unit(&'static [(&'static str, u64)]),
    /// The value exceeds the type, or is finer than its resolution.
    Range,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, units) = match self {
            ParseUnitError::Number(units) => ("expected a number at or above 0 and then a unit", units),
            ParseUnitError::Unit(units) => ("unknown or missing unit", units),
            ParseUnitError::Range => {
                return f.write_str("out of range: too large, or finer than the smallest unit");
            }
        };
        write!(f, "{what}; the units are")?;
        for (i, (name, _)) in units.iter().enumerate() {
            write!(f, "{} {name}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for ParseUnitError {}

const TIME_UNITS: &[(&str, u64)] =
    &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
const RATE_UNITS: &[(&str, u64)] =
    &[("bps", 1), ("Kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000), ("Tbps", 1_000_000_000_000)];
const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
];

/// Returns true if `unit` spells `name`. Case does not matter, except that of the letter b: "b" is a bit and "B" a
/// byte, so "10GBps" is not 10 Gbps and "8Mb" is not 8 MB.
fn is_spelling_of(unit: &str, name: &str) -> bool {
    unit.eq_ignore_ascii_case(name)
        && unit.bytes().zip(name.bytes()).all(|(a, b)| a == b || !matches!(a, b'b' | b'B'))
}

/// Parses `digits[.digits] unit` exactly. Rejects a value that is not a whole number of the smallest unit.
fn parse(text: &str, units: &'static [(&'static str, u64)]) -> Result<u64, ParseUnitError> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if !whole.starts_with(|c: char| c.is_ascii_digit()) || !digits(fraction) {
        return Err(ParseUnitError::Number(units));
    }
    let scale =
        units.iter().find(|(name, _)| is_spelling_of(unit, name)).ok_or(ParseUnitError::Unit(units))?.1;
    // The number as an integer over a power of ten, so that the final division shows a remainder.
    let (mut value, mut divisor): (u128, u128) = (0, 1);
    for (part, is_fraction) in [(whole, false), (fraction, true)] {
        for b in part.bytes().filter(|&b| b != b'_') {
            value = value * 10 + u128::from(b - b'0');
            divisor *= if is_fraction { 10 } else { 1 };
            if value > 1 << 80 || divisor > 1 << 80 {
                return Err(ParseUnitError::Range);
            }
        }
    }
    value *= u128::from(scale);
    if !value.is_multiple_of(divisor) {
        return Err(ParseUnitError::Range);
    }
    value /= divisor;
    u64::try_from(value).map_err(|_| ParseUnitError::Range)
}

impl FromStr for Duration {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse(text, TIME_UNITS).map(Duration::from_ps)
    }
}
impl FromStr for Rate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse(text, RATE_UNITS).map(Rate::from_bps)
    }
}
impl FromStr for Bytes {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse(text, SIZE_UNITS).map(Bytes::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn values_with_units() {
        assert_eq!("100Gbps".parse(), Ok(Rate::from_gbps(100)));
        assert_eq!("1.5 us".parse(), Ok(Duration::from_ns(1_500)));
        assert_eq!("8MB".parse(), Ok(Bytes::from_mb(8)));
        assert_eq!("4 KiB".parse(), Ok(Bytes::new(4_096)));
        assert_eq!("0.001ms".parse(), Ok(Duration::from_us(1)));
    }

    #[test]
    fn a_unit_is_required() {
        let error = "100".parse::<Rate>().unwrap_err();
        assert_eq!(error.to_string(), "unknown or missing unit; the units are bps, Kbps, Mbps, Gbps, Tbps");
        assert!(matches!("-3us".parse::<Duration>(), Err(ParseUnitError::Number(_))));
        assert!(matches!("".parse::<Bytes>(), Err(ParseUnitError::Number(_))));
    }

    #[test]
    fn bits_are_not_bytes() {
        for rate in ["10GBps", "10GBPS", "10gBps", "1Bps"] {
            assert_eq!(rate.parse::<Rate>(), Err(ParseUnitError::Unit(RATE_UNITS)), "{rate}");
        }
        for size in ["8Mb", "8mb", "1b", "4Kib", "4kib"] {
            assert_eq!(size.parse::<Bytes>(), Err(ParseUnitError::Unit(SIZE_UNITS)), "{size}");
        }
        assert_eq!("10gbps".parse(), Ok(Rate::from_gbps(10)));
        assert_eq!("10GbPS".parse(), Ok(Rate::from_gbps(10)));
        assert_eq!("4kiB".parse(), Ok(Bytes::new(4_096)));
        assert_eq!("8mB".parse(), Ok(Bytes::from_mb(8)));
        let error = "10GBps".parse::<Rate>().unwrap_err();
        assert_eq!(error.to_string(), "unknown or missing unit; the units are bps, Kbps, Mbps, Gbps, Tbps");
    }

    #[test]
    fn binary_units_take_fractions() {
        assert_eq!("0.25KiB".parse(), Ok(Bytes::new(256)));
    }

    #[test]
    fn nothing_is_rounded_in_silence() {
        assert_eq!("1.5ps".parse::<Duration>(), Err(ParseUnitError::Range));
        assert_eq!("0.00001ns".parse::<Duration>(), Err(ParseUnitError::Range));
        assert_eq!("99999999999s".parse::<Duration>(), Err(ParseUnitError::Range));
    }

    proptest! {
        #[test]
        fn text_round_trips(value: u64) {
            prop_assert_eq!(Duration::from_ps(value).to_string().parse(), Ok(Duration::from_ps(value)));
            prop_assert_eq!(Rate::from_bps(value).to_string().parse(), Ok(Rate::from_bps(value)));
            prop_assert_eq!(Bytes::new(value).to_string().parse(), Ok(Bytes::new(value)));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC{0,24}") {
            let _ = text.parse::<Duration>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Bytes>();
        }
    }
}
