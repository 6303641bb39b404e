//! Small programs for the kernel's virtual machine (RFC 9669): an assembler, maps, loading and attaching.
//!
//! Programs here have some dozens of instructions, so [`Assembler`] assembles them next to their use. Neither a compiler
//! for them nor a C library is needed. The kernel's verifier checks each program.

mod call;
mod code;
mod link;
mod map;
mod program;

pub use code::{Assembler, Condition, Instruction, Jump, Size};
pub use link::{Link, XdpMode};
pub use map::{Map, MapKind};
pub use program::{Program, ProgramKind};
