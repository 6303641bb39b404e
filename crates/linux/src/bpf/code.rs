//! Assembler of instructions (RFC 9669).

use std::os::fd::{AsFd, AsRawFd};

use crate::bpf::map::Map;

/// One instruction: code, registers (source in the high half), offset, immediate value (`struct bpf_insn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Operation code.
    pub code: u8,
    /// Destination register in the low half, source register in the high half.
    pub registers: u8,
    /// Offset: of an address in bytes, of a jump in instructions.
    pub offset: i16,
    /// Immediate operand.
    pub immediate: i32,
}

/// Condition of a jump. Numbers are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Left equals right.
    Equal = 0x10,
    /// Left differs from right.
    Differs = 0x50,
    /// Left is greater than right.
    Above = 0x20,
    /// Left is greater than or equal to right.
    AtLeast = 0x30,
    /// Left is less than right.
    Below = 0xa0,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// One byte.
    Byte = 0x10,
    /// Two bytes.
    Half = 0x08,
    /// Four bytes.
    Word = 0x00,
    /// Eight bytes.
    Double = 0x18,
}

/// A program under construction.
///
/// Registers: r0 holds a result; r1 to r5 hold arguments and are clobbered by calls; r6 to r9 are preserved; r10 is
/// the frame pointer. Function numbers are those of `enum bpf_func_id`.
#[derive(Debug, Default)]
pub struct Assembler(Vec<Instruction>);

/// A jump whose target is not set yet ([`Assembler::set_target`]).
#[must_use]
#[derive(Debug)]
pub struct Jump(usize);

impl Assembler {
    fn push(&mut self, code: u8, target: u8, source: u8, offset: i16, immediate: i32) {
        self.0.push(Instruction { code, registers: source << 4 | target, offset, immediate });
    }
    /// Calls a function of the kernel.
    pub fn call(&mut self, function: i32) {
        self.push(0x85, 0, 0, 0, function);
    }
    /// `target = source`.
    pub fn mov(&mut self, target: u8, source: u8) {
        self.push(0xbf, target, source, 0, 0);
    }
    /// `target = value`, sign-extended.
    pub fn mov_imm(&mut self, target: u8, value: i32) {
        self.push(0xb7, target, 0, 0, value);
    }
    /// `target += value`.
    pub fn add(&mut self, target: u8, value: i32) {
        self.push(0x07, target, 0, 0, value);
    }
    /// `target += source`.
    pub fn add_register(&mut self, target: u8, source: u8) {
        self.push(0x0f, target, source, 0, 0);
    }
    /// `target -= source`.
    pub fn subtract(&mut self, target: u8, source: u8) {
        self.push(0x1f, target, source, 0, 0);
    }
    /// `target *= source`.
    pub fn multiply(&mut self, target: u8, source: u8) {
        self.push(0x2f, target, source, 0, 0);
    }
    /// `target &= bits`.
    pub fn and(&mut self, target: u8, bits: i32) {
        self.push(0x57, target, 0, 0, bits);
    }
    /// `target >>= bits`, filled with zeros (logical shift).
    pub fn shift_right(&mut self, target: u8, bits: i32) {
        self.push(0x77, target, 0, 0, bits);
    }
    /// Loads from memory.
    pub fn load(&mut self, size: Size, target: u8, address: u8, offset: i16) {
        self.push(0x61 | size as u8, target, address, offset, 0);
    }
    /// Stores a register to memory.
    pub fn store(&mut self, size: Size, address: u8, offset: i16, source: u8) {
        self.push(0x63 | size as u8, address, source, offset, 0);
    }
    /// Stores an immediate of 4 bytes on the stack.
    pub fn store_word(&mut self, offset: i16, value: i32) {
        self.push(0x62, 10, 0, offset, value);
    }
    /// Loads an immediate of 8 bytes, which takes two instructions.
    pub fn constant(&mut self, target: u8, value: u64) {
        self.wide(target, 0, value);
    }
    /// Loads the reference to a map, as functions of the kernel take it.
    pub fn map(&mut self, target: u8, map: &Map) {
        const PSEUDO_MAP_FD: u8 = 1;
        self.wide(target, PSEUDO_MAP_FD, u64::from(map.as_fd().as_raw_fd().cast_unsigned()));
    }
    fn wide(&mut self, target: u8, kind: u8, value: u64) {
        self.push(0x18, target, kind, 0, value as u32 as i32);
        self.push(0, 0, 0, 0, (value >> 32) as i32);
    }
    /// Jumps if the condition holds between two registers.
    pub fn jump(&mut self, condition: Condition, left: u8, right: u8) -> Jump {
        self.push(0x0d | condition as u8, left, right, 0, 0);
        Jump(self.0.len() - 1)
    }
    /// Jumps if the condition holds between a register and an immediate.
    pub fn jump_if(&mut self, condition: Condition, left: u8, value: i32) -> Jump {
        self.push(0x05 | condition as u8, left, 0, 0, value);
        Jump(self.0.len() - 1)
    }
    /// Sets the target of a jump to the next instruction.
    pub fn set_target(&mut self, Jump(from): Jump) {
        // Programs here have some dozens of instructions.
        self.0[from].offset = (self.0.len() - from - 1) as i16;
    }
    /// Ends the program with an immediate result.
    pub fn return_value(&mut self, result: i32) {
        self.mov_imm(0, result);
        self.return_r0();
    }
    /// Ends the program with the result in r0.
    pub fn return_r0(&mut self) {
        self.push(0x95, 0, 0, 0, 0);
    }
    /// Returns the instructions.
    pub fn finish(self) -> Vec<Instruction> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_end_where_they_were_told() {
        let mut code = Assembler::default();
        let over = code.jump_if(Condition::Equal, 0, 0);
        code.constant(1, 0x1_0000_0002);
        code.set_target(over);
        code.return_value(-1);
        let code = code.finish();
        // The jump skips the two slots of the constant.
        assert_eq!(code[0], Instruction { code: 0x15, registers: 0, offset: 2, immediate: 0 });
        assert_eq!((code[1].immediate, code[2].immediate), (2, 1));
    }

    #[test]
    fn loads_and_stores_have_the_codes_of_the_specification() {
        let mut code = Assembler::default();
        for size in [Size::Byte, Size::Half, Size::Word, Size::Double] {
            code.load(size, 1, 2, 3);
            code.store(size, 1, 2, 3);
        }
        let codes: Vec<u8> = code.finish().iter().map(|instruction| instruction.code).collect();
        assert_eq!(codes, [0x71, 0x73, 0x69, 0x6b, 0x61, 0x63, 0x79, 0x7b]);
    }
}
