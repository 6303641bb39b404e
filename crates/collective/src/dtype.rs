//! Types of elements, and operations on them.

use std::fmt;

/// Type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Dtype {
    /// Truth values, one byte each: 0 or 1.
    Bool,
    /// Unsigned 8 bits.
    U8,
    /// Unsigned 16 bits.
    U16,
    /// Unsigned 32 bits.
    U32,
    /// Unsigned 64 bits.
    U64,
    /// Signed 8 bits.
    I8,
    /// Signed 16 bits.
    I16,
    /// Signed 32 bits.
    I32,
    /// Signed 64 bits.
    I64,
    /// IEEE half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Elements of one byte that are moved only, such as 8-bit floats.
    Byte,
}

/// All types, by their numbers on the wire.
const ALL: [Dtype; 14] = [
    Dtype::Bool,
    Dtype::U8,
    Dtype::U16,
    Dtype::U32,
    Dtype::U64,
    Dtype::I8,
    Dtype::I16,
    Dtype::I32,
    Dtype::I64,
    Dtype::F16,
    Dtype::Bf16,
    Dtype::F32,
    Dtype::F64,
    Dtype::Byte,
];

impl Dtype {
    /// Returns the bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::Bool | Dtype::U8 | Dtype::I8 | Dtype::Byte => 1,
            Dtype::U16 | Dtype::I16 | Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::U32 | Dtype::I32 | Dtype::F32 => 4,
            Dtype::U64 | Dtype::I64 | Dtype::F64 => 8,
        }
    }

    /// Returns the name that users of tensors know.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::Bool => "bool",
            Dtype::U8 => "uint8",
            Dtype::U16 => "uint16",
            Dtype::U32 => "uint32",
            Dtype::U64 => "uint64",
            Dtype::I8 => "int8",
            Dtype::I16 => "int16",
            Dtype::I32 => "int32",
            Dtype::I64 => "int64",
            Dtype::F16 => "float16",
            Dtype::Bf16 => "bfloat16",
            Dtype::F32 => "float32",
            Dtype::F64 => "float64",
            Dtype::Byte => "byte",
        }
    }

    /// Returns the type of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    pub(crate) fn from_wire(number: u8) -> Option<Self> {
        ALL.into_iter().find(|dtype| *dtype as u8 == number)
    }

    /// Returns true if values of the type can be combined by an operation.
    pub fn supports(self, op: ReduceOp) -> bool {
        match op {
            _ if self == Dtype::Byte => false,
            ReduceOp::Band | ReduceOp::Bor | ReduceOp::Bxor => !self.is_float(),
            ReduceOp::Avg => self != Dtype::Bool,
            _ => true,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Operation that combines the values of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReduceOp {
    /// Sum; of truth values: any is true. Integers wrap around.
    Sum,
    /// Sum divided by the number of ranks; of integers, towards zero.
    Avg,
    /// Product; of truth values: all are true.
    Product,
    /// Smallest value, or NaN if there is one.
    Min,
    /// Largest value, or NaN if there is one.
    Max,
    /// AND of the bits.
    Band,
    /// OR of the bits.
    Bor,
    /// Exclusive OR of the bits.
    Bxor,
}

/// All operations, by their numbers on the wire.
const OPS: [ReduceOp; 8] = [
    ReduceOp::Sum,
    ReduceOp::Avg,
    ReduceOp::Product,
    ReduceOp::Min,
    ReduceOp::Max,
    ReduceOp::Band,
    ReduceOp::Bor,
    ReduceOp::Bxor,
];

impl ReduceOp {
    /// Returns the name of the operation.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Avg => "avg",
            ReduceOp::Product => "product",
            ReduceOp::Min => "min",
            ReduceOp::Max => "max",
            ReduceOp::Band => "band",
            ReduceOp::Bor => "bor",
            ReduceOp::Bxor => "bxor",
        }
    }

    /// Returns the operation of this name.
    pub fn named(name: &str) -> Option<Self> {
        OPS.into_iter().find(|op| op.name() == name)
    }

    pub(crate) fn from_wire(number: u8) -> Option<Self> {
        OPS.into_iter().find(|op| *op as u8 == number)
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_come_back() {
        for (number, dtype) in ALL.into_iter().enumerate() {
            assert_eq!((dtype as usize, Dtype::named(dtype.name())), (number, Some(dtype)));
            assert_eq!(Dtype::from_wire(number as u8), Some(dtype));
        }
        for (number, op) in OPS.into_iter().enumerate() {
            assert_eq!((op as usize, ReduceOp::named(op.name())), (number, Some(op)));
            assert_eq!(ReduceOp::from_wire(number as u8), Some(op));
        }
        assert_eq!((Dtype::from_wire(14), ReduceOp::from_wire(8)), (None, None));
        assert!(!Dtype::F32.supports(ReduceOp::Band) && Dtype::Bool.supports(ReduceOp::Bor));
        assert!(!Dtype::Byte.supports(ReduceOp::Sum) && !Dtype::Bool.supports(ReduceOp::Avg));
    }
}
