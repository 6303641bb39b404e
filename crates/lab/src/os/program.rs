//! The programs a lab's switches run for each packet, written for the kernel's virtual machine.
//!
//! Registers: r0 is a result, r1 to r5 are arguments and lost in calls, r6 to r9 are ours, r10 is the stack. The
//! numbers of calls are those of `enum bpf_func_id`.

use std::os::fd::{AsFd, AsRawFd};

use pathweave_units::Rate;

use super::bpf::{Instruction, Map};

/// "Go on as if there were no program" and "drop", as traffic control has them.
const GO_ON: i32 = -1;
const DROP: i32 = 2;

const LOOKUP: i32 = 1;
const CLOCK_NS: i32 = 5;
const RANDOM: i32 = 7;
const FORGET_HASH: i32 = 41;
const MARK_CE: i32 = 97;

/// What a packet suffers in front of a switch's link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Treatment {
    /// Probability that it is lost.
    pub(crate) loss: f64,
    /// Marking, if there is any.
    pub(crate) red: Option<Red>,
}

/// RED for one port, on a queue that the program keeps in step with the token bucket behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Red {
    /// Rate at which the queue drains.
    pub(crate) rate: Rate,
    /// Thresholds and room, in bytes.
    pub(crate) kmin_bytes: u64,
    pub(crate) kmax_bytes: u64,
    pub(crate) room_bytes: u64,
    /// Probability at the upper threshold, in millionths.
    pub(crate) pmax_ppm: u32,
    /// Entry of the map that is this port's.
    pub(crate) entry: u32,
}

/// Forgets the hash that a packet carries from its sender's socket: the kernel's choice among equal paths then
/// follows from addresses and ports, as a switch's does.
pub(crate) fn rehash() -> Vec<Instruction> {
    let mut code = Code::default();
    code.call(FORGET_HASH);
    code.give(GO_ON);
    code.finish()
}

/// Loses and marks packets.
pub(crate) fn treat(treatment: &Treatment, map: Option<&Map>) -> Vec<Instruction> {
    let mut code = Code::default();
    code.copy(6, 1);
    if treatment.loss > 0.0 {
        code.call(RANDOM);
        // 32 random bits below the share of 2^32 are a loss; the sum of shares may be 2^32 itself.
        code.constant(1, (treatment.loss * 2f64.powi(32)) as u64);
        let keep = code.jump(AT_LEAST, 0, 1);
        code.give(DROP);
        code.land(keep);
    }
    if let (Some(red), Some(map)) = (&treatment.red, map) {
        mark(&mut code, red, map);
    }
    code.give(GO_ON);
    code.finish()
}

/// The queue is a time: when it will be empty. Packets of one port on two cores at the same instant may miss each
/// other's share; that is one packet's time in a queue of thousands.
fn mark(code: &mut Code, red: &Red, map: &Map) {
    let ns = |bytes: u64| red.rate.time_for(bytes).as_ps() / 1_000;
    let (kmin, kmax, room) = (ns(red.kmin_bytes), ns(red.kmax_bytes), ns(red.room_bytes));

    code.store_word(-4, red.entry as i32);
    code.copy(2, 10);
    code.add(2, -4);
    code.map(1, map.as_fd().as_raw_fd());
    code.call(LOOKUP);
    let no_entry = code.jump_if(EQUAL, 0, 0);
    code.copy(7, 0);
    code.call(CLOCK_NS);
    code.copy(8, 0);
    // r9 = the later of now and when the queue is empty; r3 = how long it takes until then.
    code.load(DOUBLE, 9, 7, 0);
    let waiting = code.jump(AT_LEAST, 9, 8);
    code.copy(9, 8);
    code.land(waiting);
    code.copy(3, 9);
    code.subtract(3, 8);
    // What finds no room is dropped by the token bucket and adds nothing.
    code.constant(2, room);
    let full = code.jump(ABOVE, 3, 2);
    // r1 = this packet's time: its length and what a link adds, in 2^-16 ns a byte.
    code.load(WORD, 1, 6, 0);
    code.add(1, 24);
    code.constant(2, (8e9 * 65_536.0 / red.rate.as_bps() as f64).round() as u64);
    code.multiply(1, 2);
    code.shift_right(1, 16);
    code.add_register(9, 1);
    code.store_double(7, 0, 9);

    code.constant(2, kmin);
    let below = code.jump(BELOW, 3, 2);
    code.constant(4, kmax);
    let above = code.jump(AT_LEAST, 3, 4);
    // r8 = (queue - kmin) / (kmax - kmin) * pmax, as a share of 2^32.
    code.subtract(3, 2);
    let slope = f64::from(red.pmax_ppm) / 1e6 * 2f64.powi(48) / (kmax - kmin).max(1) as f64;
    code.constant(2, slope as u64);
    code.multiply(3, 2);
    code.shift_right(3, 16);
    code.copy(8, 3);
    code.call(RANDOM);
    let spared = code.jump(AT_LEAST, 0, 8);
    code.land(above);
    code.copy(1, 6);
    code.call(MARK_CE);
    let not_capable = code.jump_if(EQUAL, 0, 0);
    code.load(DOUBLE, 1, 7, 8);
    code.add(1, 1);
    code.store_double(7, 8, 1);
    for jump in [no_entry, full, below, spared, not_capable] {
        code.land(jump);
    }
}

/// Conditions of jumps, unsigned.
const EQUAL: u8 = 0x10;
const ABOVE: u8 = 0x20;
const AT_LEAST: u8 = 0x30;
const BELOW: u8 = 0xa0;
/// Sizes of loads.
const WORD: u8 = 0x00;
const DOUBLE: u8 = 0x18;

/// Instructions one after the other (RFC 9669).
#[derive(Default)]
struct Code(Vec<Instruction>);

/// A jump whose end is not known yet.
#[must_use]
struct Jump(usize);

impl Code {
    fn push(&mut self, code: u8, target: u8, source: u8, offset: i16, immediate: i32) {
        self.0.push(Instruction { code, registers: source << 4 | target, offset, immediate });
    }
    fn call(&mut self, function: i32) {
        self.push(0x85, 0, 0, 0, function);
    }
    fn copy(&mut self, target: u8, source: u8) {
        self.push(0xbf, target, source, 0, 0);
    }
    fn add(&mut self, target: u8, value: i32) {
        self.push(0x07, target, 0, 0, value);
    }
    fn add_register(&mut self, target: u8, source: u8) {
        self.push(0x0f, target, source, 0, 0);
    }
    fn subtract(&mut self, target: u8, source: u8) {
        self.push(0x1f, target, source, 0, 0);
    }
    fn multiply(&mut self, target: u8, source: u8) {
        self.push(0x2f, target, source, 0, 0);
    }
    fn shift_right(&mut self, target: u8, bits: i32) {
        self.push(0x77, target, 0, 0, bits);
    }
    fn load(&mut self, size: u8, target: u8, address: u8, offset: i16) {
        self.push(0x61 | size, target, address, offset, 0);
    }
    fn store_double(&mut self, address: u8, offset: i16, source: u8) {
        self.push(0x7b, address, source, offset, 0);
    }
    /// Stores a number of 4 bytes on the stack.
    fn store_word(&mut self, offset: i16, value: i32) {
        self.push(0x62, 10, 0, offset, value);
    }
    /// A number of 8 bytes takes two instructions.
    fn constant(&mut self, target: u8, value: u64) {
        self.wide(target, 0, value);
    }
    fn map(&mut self, target: u8, descriptor: i32) {
        const PSEUDO_MAP_FD: u8 = 1;
        self.wide(target, PSEUDO_MAP_FD, u64::from(descriptor.cast_unsigned()));
    }
    fn wide(&mut self, target: u8, kind: u8, value: u64) {
        self.push(0x18, target, kind, 0, value as u32 as i32);
        self.push(0, 0, 0, 0, (value >> 32) as i32);
    }
    fn jump(&mut self, condition: u8, left: u8, right: u8) -> Jump {
        self.push(0x0d | condition, left, right, 0, 0);
        Jump(self.0.len() - 1)
    }
    fn jump_if(&mut self, condition: u8, left: u8, value: i32) -> Jump {
        self.push(0x05 | condition, left, 0, 0, value);
        Jump(self.0.len() - 1)
    }
    /// The jump ends here.
    fn land(&mut self, Jump(from): Jump) {
        // Programs here have some dozens of instructions.
        self.0[from].offset = (self.0.len() - from - 1) as i16;
    }
    fn give(&mut self, result: i32) {
        self.push(0xb7, 0, 0, 0, result);
        self.push(0x95, 0, 0, 0, 0);
    }
    fn finish(self) -> Vec<Instruction> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_forgotten_in_three_instructions() {
        let instruction = |code, immediate| Instruction { code, registers: 0, offset: 0, immediate };
        assert_eq!(rehash(), [instruction(0x85, 41), instruction(0xb7, -1), instruction(0x95, 0)]);
    }

    #[test]
    fn jumps_end_where_they_were_told() {
        let mut code = Code::default();
        let over = code.jump_if(EQUAL, 0, 0);
        code.constant(1, 0x1_0000_0002);
        code.land(over);
        code.give(GO_ON);
        let code = code.finish();
        // Two slots for the constant are jumped over.
        assert_eq!(code[0], Instruction { code: 0x15, registers: 0, offset: 2, immediate: 0 });
        assert_eq!((code[1].immediate, code[2].immediate), (2, 1));
    }
}
