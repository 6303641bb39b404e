//! Programs that a lab's switches run for each packet, in the kernel's BPF instruction set.

use std::io;

use pathweave_linux::bpf::{Assembler, Condition, Instruction, Map, MapKind, Size};
use pathweave_units::Rate;

/// Return values of traffic control: continue as without a program, and drop.
const GO_ON: i32 = -1;
const DROP: i32 = 2;

const LOOKUP: i32 = 1;
const CLOCK_NS: i32 = 5;
const RANDOM: i32 = 7;
const FORGET_HASH: i32 = 41;
const MARK_CE: i32 = 97;

/// Treatment of packets that leave through a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LossAndMarking {
    /// Probability of loss.
    pub(crate) loss: f64,
    /// Marking, if enabled.
    pub(crate) red: Option<Red>,
}

/// RED for one port. The program maintains a model of the queue in the token bucket behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Red {
    /// Rate at which the queue drains.
    pub(crate) rate: Rate,
    /// Thresholds and capacity in bytes.
    pub(crate) kmin_bytes: u64,
    pub(crate) kmax_bytes: u64,
    pub(crate) room_bytes: u64,
    /// Marking probability at the upper threshold, in millionths.
    pub(crate) pmax_ppm: u32,
    /// Index of the port's entry in the map.
    pub(crate) entry: u32,
}

/// Map with the state of all ports: one entry for each end of each link.
#[derive(Debug)]
pub(crate) struct Queues(Map);

impl Queues {
    /// Size of an entry: time at which the queue will be empty, in nanoseconds of the kernel's monotonic clock, and
    /// number of packets marked.
    const ENTRY_BYTES: u32 = 16;

    /// Creates the map with empty queues and counts of 0.
    pub(crate) fn new(entries: u32) -> io::Result<Queues> {
        Map::new(MapKind::Array, 4, Self::ENTRY_BYTES, entries).map(Queues)
    }

    /// Returns the number of packets marked.
    pub(crate) fn marked(&self, entry: u32) -> io::Result<u64> {
        let mut value = [0; Self::ENTRY_BYTES as usize];
        self.0.read(&entry.to_ne_bytes(), &mut value)?;
        Ok(value.last_chunk().map_or(0, |marked| u64::from_ne_bytes(*marked)))
    }
}

/// Returns a program that clears the hash which a packet carries from its sender's socket. The kernel then chooses
/// among equal-cost routes by addresses and ports, as a switch does.
pub(crate) fn clear_hash_program() -> Vec<Instruction> {
    let mut code = Assembler::default();
    code.call(FORGET_HASH);
    code.return_value(GO_ON);
    code.finish()
}

/// Returns a program that drops and marks packets.
pub(crate) fn loss_and_marking_program(
    treatment: &LossAndMarking,
    queues: Option<&Queues>,
) -> Vec<Instruction> {
    let mut code = Assembler::default();
    code.mov(6, 1);
    if treatment.loss > 0.0 {
        code.call(RANDOM);
        // A packet is dropped if 32 random bits are below the probability times 2^32, which may be 2^32 itself.
        code.constant(1, (treatment.loss * 2f64.powi(32)) as u64);
        let keep = code.jump(Condition::AtLeast, 0, 1);
        code.return_value(DROP);
        code.set_target(keep);
    }
    if let (Some(red), Some(queues)) = (&treatment.red, queues) {
        mark(&mut code, red, queues);
    }
    code.return_value(GO_ON);
    code.finish()
}

/// Appends the marking. The state of a queue is the time at which it will be empty. Packets of one port on two cores
/// at the same instant may overwrite each other's update; the error is one packet in a queue of thousands.
fn mark(code: &mut Assembler, red: &Red, queues: &Queues) {
    let ns = |bytes: u64| red.rate.time_for(bytes).as_ps() / 1_000;
    let (kmin, kmax, room) = (ns(red.kmin_bytes), ns(red.kmax_bytes), ns(red.room_bytes));

    code.store_word(-4, red.entry as i32);
    code.mov(2, 10);
    code.add(2, -4);
    code.map(1, &queues.0);
    code.call(LOOKUP);
    let no_entry = code.jump_if(Condition::Equal, 0, 0);
    code.mov(7, 0);
    code.call(CLOCK_NS);
    code.mov(8, 0);
    // r9 = the later of now and the time at which the queue is empty; r3 = the time until then.
    code.load(Size::Double, 9, 7, 0);
    let waiting = code.jump(Condition::AtLeast, 9, 8);
    code.mov(9, 8);
    code.set_target(waiting);
    code.mov(3, 9);
    code.subtract(3, 8);
    // A packet without room is dropped by the token bucket and adds nothing to the queue.
    code.constant(2, room);
    let full = code.jump(Condition::Above, 3, 2);
    // r1 = transmission time of this packet: its length plus the link's overhead, in units of 2^-16 ns a byte.
    code.load(Size::Word, 1, 6, 0);
    code.add(1, 24);
    code.constant(2, (8e9 * 65_536.0 / red.rate.as_bps() as f64).round() as u64);
    code.multiply(1, 2);
    code.shift_right(1, 16);
    code.add_register(9, 1);
    code.store(Size::Double, 7, 0, 9);

    code.constant(2, kmin);
    let below = code.jump(Condition::Below, 3, 2);
    code.constant(4, kmax);
    let above = code.jump(Condition::AtLeast, 3, 4);
    // r8 = (queue - kmin) / (kmax - kmin) * pmax, as a share of 2^32.
    code.subtract(3, 2);
    let slope = f64::from(red.pmax_ppm) / 1e6 * 2f64.powi(48) / (kmax - kmin).max(1) as f64;
    code.constant(2, slope as u64);
    code.multiply(3, 2);
    code.shift_right(3, 16);
    code.mov(8, 3);
    code.call(RANDOM);
    let spared = code.jump(Condition::AtLeast, 0, 8);
    code.set_target(above);
    code.mov(1, 6);
    code.call(MARK_CE);
    let not_capable = code.jump_if(Condition::Equal, 0, 0);
    code.load(Size::Double, 1, 7, 8);
    code.add(1, 1);
    code.store(Size::Double, 7, 8, 1);
    for jump in [no_entry, full, below, spared, not_capable] {
        code.set_target(jump);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_forgotten_in_three_instructions() {
        let instruction = |code, immediate| Instruction { code, registers: 0, offset: 0, immediate };
        assert_eq!(
            clear_hash_program(),
            [instruction(0x85, 41), instruction(0xb7, -1), instruction(0x95, 0)]
        );
    }
}
