//! Atomic operations on one value (fi_atomic.3).

use core::cmp::Ordering;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomicType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl AtomicType {
    /// All types, in the order of their codes on the wire, which equal those of `enum fi_datatype`.
    pub const ALL: [AtomicType; 10] = [
        AtomicType::I8,
        AtomicType::U8,
        AtomicType::I16,
        AtomicType::U16,
        AtomicType::I32,
        AtomicType::U32,
        AtomicType::I64,
        AtomicType::U64,
        AtomicType::F32,
        AtomicType::F64,
    ];

    /// Size of a value in bytes.
    pub const fn size(self) -> usize {
        match self {
            AtomicType::I8 | AtomicType::U8 => 1,
            AtomicType::I16 | AtomicType::U16 => 2,
            AtomicType::I32 | AtomicType::U32 | AtomicType::F32 => 4,
            AtomicType::I64 | AtomicType::U64 | AtomicType::F64 => 8,
        }
    }
    const fn is_float(self) -> bool {
        matches!(self, AtomicType::F32 | AtomicType::F64)
    }
}

/// Operation on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomicOp {
    Min,
    Max,
    Sum,
    LogicalOr,
    LogicalAnd,
    BitOr,
    BitAnd,
    LogicalXor,
    BitXor,
    /// The value is only fetched.
    Read,
    /// The operand replaces the value.
    Write,
    /// The operand replaces the value if the comparand equals the value.
    SwapIfEqual,
    /// The operand replaces the value if the comparand differs from the value.
    SwapIfNotEqual,
    /// The operand replaces the value if the comparand is less than or equal to the value.
    SwapIfLessOrEqual,
    /// The operand replaces the value if the comparand is less than the value.
    SwapIfLess,
    /// The operand replaces the value if the comparand is greater than or equal to the value.
    SwapIfGreaterOrEqual,
    /// The operand replaces the value if the comparand is greater than the value.
    SwapIfGreater,
    /// The operand replaces the bits that are set in the comparand.
    MaskedSwap,
}

/// Form in which an operation is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicForm {
    /// fi_atomic.
    Plain,
    /// fi_fetch_atomic.
    Fetch,
    /// fi_compare_atomic.
    Compare,
}

impl AtomicOp {
    /// All operations, in the order of their codes on the wire.
    pub const ALL: [AtomicOp; 18] = [
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::Sum,
        AtomicOp::LogicalOr,
        AtomicOp::LogicalAnd,
        AtomicOp::BitOr,
        AtomicOp::BitAnd,
        AtomicOp::LogicalXor,
        AtomicOp::BitXor,
        AtomicOp::Read,
        AtomicOp::Write,
        AtomicOp::SwapIfEqual,
        AtomicOp::SwapIfNotEqual,
        AtomicOp::SwapIfLessOrEqual,
        AtomicOp::SwapIfLess,
        AtomicOp::SwapIfGreaterOrEqual,
        AtomicOp::SwapIfGreater,
        AtomicOp::MaskedSwap,
    ];

    const fn compares(self) -> bool {
        use AtomicOp as Op;
        matches!(
            self,
            Op::SwapIfEqual
                | Op::SwapIfNotEqual
                | Op::SwapIfLessOrEqual
                | Op::SwapIfLess
                | Op::SwapIfGreaterOrEqual
                | Op::SwapIfGreater
                | Op::MaskedSwap
        )
    }
    const fn is_bitwise(self) -> bool {
        matches!(self, AtomicOp::BitOr | AtomicOp::BitAnd | AtomicOp::BitXor | AtomicOp::MaskedSwap)
    }
    /// Returns true if the operation exists for a type in a form (the `*valid` calls, fi_query_atomic).
    pub const fn is_valid(self, kind: AtomicType, form: AtomicForm) -> bool {
        let form_fits = match form {
            AtomicForm::Plain => !self.compares() && !matches!(self, AtomicOp::Read),
            AtomicForm::Fetch => !self.compares(),
            AtomicForm::Compare => self.compares(),
        };
        form_fits && !(self.is_bitwise() && kind.is_float())
    }
    /// Returns true if the operation takes operands.
    pub const fn has_operand(self) -> bool {
        !matches!(self, AtomicOp::Read)
    }
}

/// Operations that each value type implements.
trait Value: Copy + PartialOrd + Default {
    const ONE: Self;
    fn sum(self, other: Self) -> Self;
    fn bits(self, other: Self, op: AtomicOp, mask: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Value for $t {
            const ONE: Self = 1;
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn bits(self, other: Self, op: AtomicOp, mask: Self) -> Self {
                match op {
                    AtomicOp::BitOr => self | other,
                    AtomicOp::BitAnd => self & other,
                    AtomicOp::BitXor => self ^ other,
                    _ => (other & mask) | (self & !mask),
                }
            }
        }
    )*};
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Value for $t {
            const ONE: Self = 1.0;
            fn sum(self, other: Self) -> Self {
                self + other
            }
            /// Never called: [`AtomicOp::is_valid`] refuses bitwise operations on floats.
            fn bits(self, _: Self, _: AtomicOp, _: Self) -> Self {
                self
            }
        }
    )*};
}
floats!(f32 f64);

/// Returns the value after the operation.
fn after<T: Value>(op: AtomicOp, value: T, operand: T, comparand: T) -> T {
    use AtomicOp as Op;
    let truth = |holds: bool| if holds { T::ONE } else { T::default() };
    let is = |v: T| v != T::default();
    let if_holds = |holds: bool| if holds { operand } else { value };
    let order = comparand.partial_cmp(&value);
    match op {
        Op::Min => if_holds(operand < value),
        Op::Max => if_holds(operand > value),
        Op::Sum => value.sum(operand),
        Op::LogicalOr => truth(is(value) || is(operand)),
        Op::LogicalAnd => truth(is(value) && is(operand)),
        Op::LogicalXor => truth(is(value) != is(operand)),
        Op::BitOr | Op::BitAnd | Op::BitXor | Op::MaskedSwap => value.bits(operand, op, comparand),
        Op::Read => value,
        Op::Write => operand,
        Op::SwapIfEqual => if_holds(order == Some(Ordering::Equal)),
        Op::SwapIfNotEqual => if_holds(order != Some(Ordering::Equal)),
        Op::SwapIfLessOrEqual => if_holds(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        Op::SwapIfLess => if_holds(order == Some(Ordering::Less)),
        Op::SwapIfGreaterOrEqual => if_holds(matches!(order, Some(Ordering::Greater | Ordering::Equal))),
        Op::SwapIfGreater => if_holds(order == Some(Ordering::Greater)),
    }
}

/// Applies an operation to one value in the host's byte order. `operand` and `comparand` have the same length as
/// `value`, or are empty if the operation has none; an empty one counts as zero.
pub fn apply(op: AtomicOp, kind: AtomicType, value: &mut [u8], operand: &[u8], comparand: &[u8]) {
    macro_rules! on {
        ($t:ty) => {{
            let read = |bytes: &[u8]| bytes.try_into().map_or(<$t>::default(), <$t>::from_ne_bytes);
            let result = after(op, read(value), read(operand), read(comparand)).to_ne_bytes();
            if value.len() == result.len() {
                value.copy_from_slice(&result);
            }
        }};
    }
    match kind {
        AtomicType::I8 => on!(i8),
        AtomicType::U8 => on!(u8),
        AtomicType::I16 => on!(i16),
        AtomicType::U16 => on!(u16),
        AtomicType::I32 => on!(i32),
        AtomicType::U32 => on!(u32),
        AtomicType::I64 => on!(i64),
        AtomicType::U64 => on!(u64),
        AtomicType::F32 => on!(f32),
        AtomicType::F64 => on!(f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn i32_after(op: AtomicOp, value: i32, operand: i32, comparand: i32) -> i32 {
        let mut bytes = value.to_ne_bytes();
        apply(op, AtomicType::I32, &mut bytes, &operand.to_ne_bytes(), &comparand.to_ne_bytes());
        i32::from_ne_bytes(bytes)
    }

    #[test]
    fn operations_on_a_signed_word_by_hand() {
        use AtomicOp as Op;
        let cases = [
            (Op::Min, -3, -2, 0, -3),
            (Op::Max, -3, -2, 0, -2),
            (Op::Sum, i32::MAX, 1, 0, i32::MIN),
            (Op::LogicalOr, 0, 7, 0, 1),
            (Op::LogicalAnd, 5, 0, 0, 0),
            (Op::LogicalXor, 5, 7, 0, 0),
            (Op::BitOr, 0b1100, 0b1010, 0, 0b1110),
            (Op::BitAnd, 0b1100, 0b1010, 0, 0b1000),
            (Op::BitXor, 0b1100, 0b1010, 0, 0b0110),
            (Op::Read, 9, 1, 1, 9),
            (Op::Write, 9, 1, 1, 1),
            (Op::SwapIfEqual, 9, 1, 9, 1),
            (Op::SwapIfEqual, 9, 1, 8, 9),
            (Op::SwapIfNotEqual, 9, 1, 8, 1),
            // The comparand is the left operand: 8 <= 9.
            (Op::SwapIfLessOrEqual, 9, 1, 8, 1),
            (Op::SwapIfLess, 9, 1, 9, 9),
            (Op::SwapIfGreaterOrEqual, 9, 1, 9, 1),
            (Op::SwapIfGreater, 9, 1, 8, 9),
            (Op::MaskedSwap, 0b1100, 0b0011, 0b0110, 0b1010),
        ];
        for (op, value, operand, comparand, expected) in cases {
            assert_eq!(i32_after(op, value, operand, comparand), expected, "{op:?}");
        }
    }

    #[test]
    fn a_float_that_is_no_number_is_never_swapped_in_by_order() {
        let mut bytes = 1.5f64.to_ne_bytes();
        apply(AtomicOp::Min, AtomicType::F64, &mut bytes, &f64::NAN.to_ne_bytes(), &[]);
        assert_eq!(f64::from_ne_bytes(bytes), 1.5);
    }

    #[test]
    fn forms_and_types_that_do_not_exist() {
        assert!(!AtomicOp::BitOr.is_valid(AtomicType::F32, AtomicForm::Plain));
        assert!(!AtomicOp::Read.is_valid(AtomicType::U8, AtomicForm::Plain));
        assert!(AtomicOp::Read.is_valid(AtomicType::U8, AtomicForm::Fetch));
        assert!(!AtomicOp::Sum.is_valid(AtomicType::U8, AtomicForm::Compare));
        assert!(!AtomicOp::SwapIfLess.is_valid(AtomicType::U8, AtomicForm::Fetch));
        assert!(!AtomicOp::MaskedSwap.is_valid(AtomicType::F64, AtomicForm::Compare));
    }
}
