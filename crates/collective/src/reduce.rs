//! Reductions: one rank's values are combined with another one's. The compiler vectorises the loops.

use crate::dtype::{Dtype, ReduceOp};
use crate::half::{from_bf16, from_f16, to_bf16, to_f16};

/// Operand that comes first. Ranks that compute one value twice take the operands in one order, so that they get the
/// same bits, those of NaN included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Own values first.
    OwnFirst,
    /// Values that were received first.
    ReceivedFirst,
}

/// Type that a number has in memory.
trait Stored: Copy {
    /// Type to compute with.
    type Wide: Number;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
}

trait Number: Copy {
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn divide(self, by: u32) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Stored for $type {
            type Wide = $type;
            #[inline(always)]
            fn widen(self) -> $type { self }
            #[inline(always)]
            fn narrow(wide: $type) -> $type { wide }
        }
        impl Number for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn divide(self, by: u32) -> Self { <$type>::try_from(i128::from(self) / i128::from(by)).unwrap_or_default() }
        }
    )*};
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { if self.is_nan() || self < other { self } else { other } }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { if self.is_nan() || self > other { self } else { other } }
            #[inline(always)]
            fn divide(self, by: u32) -> Self { (f64::from(self) / f64::from(by)) as $type }
        }
    )*};
}
floats!(f32, f64);

macro_rules! stored {
    ($($type:ty, $wide:ty, $widen:expr, $narrow:expr);*) => {$(
        impl Stored for $type {
            type Wide = $wide;
            #[inline(always)]
            fn widen(self) -> $wide { $widen(self) }
            #[inline(always)]
            fn narrow(wide: $wide) -> Self { $narrow(wide) }
        }
    )*};
}

/// IEEE half precision in memory.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct F16(u16);
/// Bfloat16 in memory.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Bf16(u16);

stored! {
    f32, f32, |value| value, |value| value;
    f64, f64, |value| value, |value| value;
    F16, f32, |half: F16| from_f16(half.0), |wide| F16(to_f16(wide));
    Bf16, f32, |half: Bf16| from_bf16(half.0), |wide| Bf16(to_bf16(wide))
}

/// Number as bytes of memory.
trait Bytes: Copy {
    /// The bytes of one number.
    type Raw: Copy;
    /// Returns whole numbers of memory.
    fn all(bytes: &[u8]) -> &[Self::Raw];
    fn all_mut(bytes: &mut [u8]) -> &mut [Self::Raw];
    fn load(raw: Self::Raw) -> Self;
    fn store(self) -> Self::Raw;
}

macro_rules! bytes {
    ($($type:ty, $size:literal, $from:expr, $to:expr);* $(;)?) => {$(
        impl Bytes for $type {
            type Raw = [u8; $size];
            #[inline(always)]
            fn all(bytes: &[u8]) -> &[Self::Raw] { bytes.as_chunks().0 }
            #[inline(always)]
            fn all_mut(bytes: &mut [u8]) -> &mut [Self::Raw] { bytes.as_chunks_mut().0 }
            #[inline(always)]
            fn load(raw: Self::Raw) -> Self { $from(raw) }
            #[inline(always)]
            fn store(self) -> Self::Raw { $to(self) }
        }
    )*};
}
bytes! {
    u8, 1, u8::from_ne_bytes, u8::to_ne_bytes;
    u16, 2, u16::from_ne_bytes, u16::to_ne_bytes;
    u32, 4, u32::from_ne_bytes, u32::to_ne_bytes;
    u64, 8, u64::from_ne_bytes, u64::to_ne_bytes;
    i8, 1, i8::from_ne_bytes, i8::to_ne_bytes;
    i16, 2, i16::from_ne_bytes, i16::to_ne_bytes;
    i32, 4, i32::from_ne_bytes, i32::to_ne_bytes;
    i64, 8, i64::from_ne_bytes, i64::to_ne_bytes;
    f32, 4, f32::from_ne_bytes, f32::to_ne_bytes;
    f64, 8, f64::from_ne_bytes, f64::to_ne_bytes;
    F16, 2, |raw| F16(u16::from_ne_bytes(raw)), |half: F16| half.0.to_ne_bytes();
    Bf16, 2, |raw| Bf16(u16::from_ne_bytes(raw)), |half: Bf16| half.0.to_ne_bytes();
}

/// Combines two operands into the first, whose element is the first operand of `f` or the second one. One function each:
/// the compiler does not inline into one that has the loops of all types, and would call functions for each element.
#[inline(never)]
fn zip<T: Bytes>(into: &mut [u8], other: &[u8], f: impl Fn(T, T) -> T) {
    for (to, from) in T::all_mut(into).iter_mut().zip(T::all(other)) {
        *to = f(T::load(*to), T::load(*from)).store();
    }
}

fn ordered<T: Bytes>(into: &mut [u8], other: &[u8], order: Order, f: impl Fn(T, T) -> T) {
    match order {
        Order::OwnFirst => zip(into, other, f),
        Order::ReceivedFirst => zip(into, other, |own, received| f(received, own)),
    }
}

fn numbers<T: Stored + Bytes>(op: ReduceOp, into: &mut [u8], other: &[u8], order: Order) {
    let (w, n) = (T::widen, T::narrow);
    match op {
        ReduceOp::Sum | ReduceOp::Avg => ordered::<T>(into, other, order, |a, b| n(w(a).add(w(b)))),
        ReduceOp::Product => ordered::<T>(into, other, order, |a, b| n(w(a).multiply(w(b)))),
        ReduceOp::Min => ordered::<T>(into, other, order, |a, b| n(w(a).smaller(w(b)))),
        ReduceOp::Max => ordered::<T>(into, other, order, |a, b| n(w(a).larger(w(b)))),
        ReduceOp::Band => zip::<u8>(into, other, |a, b| a & b),
        ReduceOp::Bor => zip::<u8>(into, other, |a, b| a | b),
        ReduceOp::Bxor => zip::<u8>(into, other, |a, b| a ^ b),
    }
}

fn truths(op: ReduceOp, into: &mut [u8], other: &[u8]) {
    match op {
        ReduceOp::Sum | ReduceOp::Max | ReduceOp::Bor | ReduceOp::Avg => zip::<u8>(into, other, |a, b| a | b),
        ReduceOp::Product | ReduceOp::Min | ReduceOp::Band => zip::<u8>(into, other, |a, b| a & b),
        ReduceOp::Bxor => zip::<u8>(into, other, |a, b| a ^ b),
    }
}

/// Combines `received` into `own`, element by element. Of floats of 16 bits, each result is rounded to even. If the
/// lengths differ, the elements that both have are combined. [`Dtype::supports`] says what has a meaning.
pub fn combine(dtype: Dtype, op: ReduceOp, own: &mut [u8], received: &[u8], order: Order) {
    match dtype {
        Dtype::Bool => truths(op, own, received),
        Dtype::U8 | Dtype::Byte => numbers::<u8>(op, own, received, order),
        Dtype::U16 => numbers::<u16>(op, own, received, order),
        Dtype::U32 => numbers::<u32>(op, own, received, order),
        Dtype::U64 => numbers::<u64>(op, own, received, order),
        Dtype::I8 => numbers::<i8>(op, own, received, order),
        Dtype::I16 => numbers::<i16>(op, own, received, order),
        Dtype::I32 => numbers::<i32>(op, own, received, order),
        Dtype::I64 => numbers::<i64>(op, own, received, order),
        Dtype::F16 => numbers::<F16>(op, own, received, order),
        Dtype::Bf16 => numbers::<Bf16>(op, own, received, order),
        Dtype::F32 => numbers::<f32>(op, own, received, order),
        Dtype::F64 => numbers::<f64>(op, own, received, order),
    }
}

#[inline(never)]
fn divided<T: Stored + Bytes>(values: &mut [u8], by: u32) {
    for value in T::all_mut(values) {
        *value = T::narrow(T::load(*value).widen().divide(by)).store();
    }
}

/// Divides each element, for an average over this many ranks. Integers are rounded towards zero.
pub fn divide(dtype: Dtype, values: &mut [u8], by: u32) {
    match dtype {
        Dtype::Bool | Dtype::Byte => {}
        Dtype::U8 => divided::<u8>(values, by),
        Dtype::U16 => divided::<u16>(values, by),
        Dtype::U32 => divided::<u32>(values, by),
        Dtype::U64 => divided::<u64>(values, by),
        Dtype::I8 => divided::<i8>(values, by),
        Dtype::I16 => divided::<i16>(values, by),
        Dtype::I32 => divided::<i32>(values, by),
        Dtype::I64 => divided::<i64>(values, by),
        Dtype::F16 => divided::<F16>(values, by),
        Dtype::Bf16 => divided::<Bf16>(values, by),
        Dtype::F32 => divided::<f32>(values, by),
        Dtype::F64 => divided::<f64>(values, by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_f32(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    fn combined(dtype: Dtype, op: ReduceOp, own: &[u8], received: &[u8]) -> Vec<u8> {
        let mut result = own.to_vec();
        combine(dtype, op, &mut result, received, Order::OwnFirst);
        result
    }

    #[test]
    fn integers_wrap_and_keep_their_sign() {
        assert_eq!(combined(Dtype::U8, ReduceOp::Sum, &[250, 1], &[10, 2]), [4, 3]);
        assert_eq!(combined(Dtype::I8, ReduceOp::Min, &[0xff, 3], &[1, 2]), [0xff, 2]);
        assert_eq!(combined(Dtype::U8, ReduceOp::Min, &[0xff, 3], &[1, 2]), [1, 2]);
        assert_eq!(combined(Dtype::U8, ReduceOp::Product, &[7, 16], &[3, 17]), [21, 16]);
        assert_eq!(combined(Dtype::U8, ReduceOp::Bxor, &[0b1100], &[0b1010]), [0b0110]);
        let mut values: Vec<u8> = [-7_i32, 7].iter().flat_map(|value| value.to_ne_bytes()).collect();
        divide(Dtype::I32, &mut values, 2);
        assert_eq!(values, [-3_i32, 3].iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>());
        let mut largest = u64::MAX.to_ne_bytes();
        divide(Dtype::U64, &mut largest, 1);
        assert_eq!(u64::from_ne_bytes(largest), u64::MAX);
    }

    #[test]
    fn truth_values_stay_truth_values() {
        let (a, b) = ([0, 0, 1, 1], [0, 1, 0, 1]);
        assert_eq!(combined(Dtype::Bool, ReduceOp::Sum, &a, &b), [0, 1, 1, 1]);
        assert_eq!(combined(Dtype::Bool, ReduceOp::Product, &a, &b), [0, 0, 0, 1]);
        assert_eq!(combined(Dtype::Bool, ReduceOp::Bxor, &a, &b), [0, 1, 1, 0]);
    }

    #[test]
    fn a_nan_wins_on_either_side() {
        for op in [ReduceOp::Min, ReduceOp::Max, ReduceOp::Sum, ReduceOp::Product] {
            let (a, b) = (of_f32(&[f32::NAN, 1.0, 1.0]), of_f32(&[1.0, f32::NAN, 2.0]));
            for order in [Order::OwnFirst, Order::ReceivedFirst] {
                let mut result = a.clone();
                combine(Dtype::F32, op, &mut result, &b, order);
                let values: Vec<f32> = f32::all(&result).iter().copied().map(f32::load).collect();
                assert!(values[0].is_nan() && values[1].is_nan() && !values[2].is_nan(), "{op} {values:?}");
            }
        }
    }

    #[test]
    fn halves_are_added_wide_and_rounded_to_even() {
        // 2048 + 1 lies between the halves 2048 and 2050: to even is 2048. 2050 + 1 goes to 2052.
        let (a, b) = ([0x00, 0x68, 0x01, 0x68], [0x00, 0x3c, 0x00, 0x3c]);
        assert_eq!(combined(Dtype::F16, ReduceOp::Sum, &a, &b), [0x00, 0x68, 0x02, 0x68]);
        // 256 + 1 lies between the bfloat16 256 and 258: to even is 256.
        assert_eq!(combined(Dtype::Bf16, ReduceOp::Sum, &[0x80, 0x43], &[0x80, 0x3f]), [0x80, 0x43]);
    }
}
