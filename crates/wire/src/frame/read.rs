//! Reads fields from bytes whose length has been checked.

use super::error::ParseError;
use pathweave_units::Time;

#[inline]
pub(super) fn zero(field: &'static str, value: u32) -> Result<(), ParseError> {
    if value == 0 { Ok(()) } else { Err(ParseError::Reserved { field, value: value.into() }) }
}

#[inline]
pub(super) fn take<'a>(bytes: &'a [u8], needed: usize, layer: &'static str) -> Result<&'a [u8], ParseError> {
    bytes.get(..needed).ok_or(ParseError::Truncated { layer, needed, available: bytes.len() })
}

// The functions below index within lengths that `take` has checked.

#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("lengths are checked before fields are read")
}
#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}
#[inline]
pub(super) fn u24_at(bytes: &[u8], at: usize) -> u32 {
    let [a, b, c] = array(bytes, at);
    u32::from_be_bytes([0, a, b, c])
}
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}
#[inline]
pub(super) fn time_at(bytes: &[u8], at: usize) -> Time {
    Time::from_ps(u64_at(bytes, at))
}
