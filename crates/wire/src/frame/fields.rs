//! Fields of control packets: their position in a frame, and the values they allow.

use pathweave_units::Time;

use super::error::{EmitError, ParseError};
use super::layout::{ext, flag};
use super::psn::{extend_psn, wire_psn};
use super::read::{time_at, u24_at, u32_at, zero};
use super::write::{put, put_u24};
use crate::credit::CreditNumber;

/// Parts of a frame from which the fields of a control packet are read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// PSN in the BTH.
    pub(crate) psn: u32,
    /// A PSN near `psn`, for its extension to 64 bits.
    pub(crate) near: u64,
    pub(crate) extension: &'a [u8],
}

/// A field of a control packet.
pub(crate) trait Field {
    type Value: Copy;
    /// Offset in the extension and length in bytes, with reserved bytes before the value. `None` if the field is not
    /// in the extension.
    const LAYOUT: Option<(usize, usize)> = None;
    /// Bits that the field uses in the flags byte.
    const FLAGS: u8 = 0;
    /// True if the field is the PSN of the BTH.
    const IS_PSN: bool = false;

    /// Returns the value if the field is the PSN of the BTH.
    fn psn(_: Self::Value) -> Option<u64> {
        None
    }
    /// Writes the value to the extension.
    fn write(value: Self::Value, extension: &mut [u8]);
    /// Reads the value from a frame that has passed [`Field::check`].
    fn read(source: &Source<'_>) -> Self::Value;
    /// Checks that the frame has an allowed value.
    fn check(_: &Source<'_>) -> Result<(), ParseError> {
        Ok(())
    }
    /// Checks that the value fits its field in a packet with this PSN.
    fn fits(_: Self::Value, _psn: u64) -> Result<(), EmitError> {
        Ok(())
    }
}

/// A time at offset `AT`.
pub(crate) struct StampAt<const AT: usize>;

impl<const AT: usize> Field for StampAt<AT> {
    type Value = Time;
    const LAYOUT: Option<(usize, usize)> = Some((AT, 8));
    fn write(value: Time, extension: &mut [u8]) {
        put(extension, AT, value.as_ps().to_be_bytes());
    }
    fn read(source: &Source<'_>) -> Time {
        time_at(source.extension, AT)
    }
}

/// The PSN of the BTH, which counts packets of the direction in which the packet travels.
pub(crate) struct PsnOfBth;

impl Field for PsnOfBth {
    type Value = u64;
    const IS_PSN: bool = true;
    fn psn(value: u64) -> Option<u64> {
        Some(value)
    }
    fn write(_: u64, _: &mut [u8]) {}
    fn read(source: &Source<'_>) -> u64 {
        extend_psn(source.psn, source.near)
    }
}

/// Last PSN of a range that begins with the PSN of the BTH: a zero byte at offset `AT`, then 24 bits.
pub(crate) struct LastPsnAt<const AT: usize>;

impl<const AT: usize> Field for LastPsnAt<AT> {
    type Value = u64;
    const LAYOUT: Option<(usize, usize)> = Some((AT, 4));
    fn write(value: u64, extension: &mut [u8]) {
        put_u24(extension, AT + 1, wire_psn(value));
    }
    fn read(source: &Source<'_>) -> u64 {
        extend_psn(u24_at(source.extension, AT + 1), PsnOfBth::read(source))
    }
    fn check(source: &Source<'_>) -> Result<(), ParseError> {
        zero("high byte of the last PSN of a notice", source.extension[AT].into())?;
        let (first, last) = (source.psn, u24_at(source.extension, AT + 1));
        if last.wrapping_sub(first) & 0xff_ffff >= 1 << 23 {
            return Err(ParseError::Range { first, last });
        }
        Ok(())
    }
    fn fits(last: u64, psn: u64) -> Result<(), EmitError> {
        // A `last` below `psn` wraps to a large value and is refused.
        let (value, max) = (last.wrapping_sub(psn), (1 << 23) - 1);
        if value <= max {
            return Ok(());
        }
        Err(EmitError::OutOfRange { field: "packets of a notice, less one", value, max })
    }
}

/// A number of credit at offset `AT`.
pub(crate) struct CreditAt<const AT: usize>;

impl<const AT: usize> Field for CreditAt<AT> {
    type Value = CreditNumber;
    const LAYOUT: Option<(usize, usize)> = Some((AT, 4));
    fn write(value: CreditNumber, extension: &mut [u8]) {
        put(extension, AT, value.to_wire().to_be_bytes());
    }
    fn read(source: &Source<'_>) -> CreditNumber {
        CreditNumber::new(u32_at(source.extension, AT).into())
    }
    fn check(source: &Source<'_>) -> Result<(), ParseError> {
        let wire = u32_at(source.extension, AT);
        CreditNumber::from_wire(wire).map(|_| ()).ok_or(ParseError::CreditNumber(wire))
    }
}

/// Flag of an answer to a question that carried Congestion Experienced.
pub(crate) struct MarkedFlag;

impl Field for MarkedFlag {
    type Value = bool;
    const FLAGS: u8 = flag::MARKED;
    fn write(value: bool, extension: &mut [u8]) {
        extension[ext::FLAGS] |= if value { flag::MARKED } else { 0 };
    }
    fn read(source: &Source<'_>) -> bool {
        source.extension[ext::FLAGS] & flag::MARKED != 0
    }
}
