//! Scheduling of the classes of a port: control first, then the data classes by deficit round robin.

use crate::packet::PortId;
use crate::port::Port;

/// Bytes that a class of weight 1 may send in a round. At least one frame, so that every round serves every class.
const QUANTUM_BYTES: i64 = 9_216;

/// State of deficit round robin (Shreedhar and Varghese, 1995) for the data classes of one port.
#[derive(Clone, Debug)]
pub(crate) struct Deficit<const C: usize> {
    credit_bytes: [i64; C],
    turn: u8,
}

impl<const C: usize> Default for Deficit<C> {
    fn default() -> Self {
        Deficit { credit_bytes: [0; C], turn: 1 }
    }
}

/// Scheduler for the classes of all ports.
pub(crate) struct Scheduler<const C: usize> {
    /// Round-robin state of each port; empty if there is one data class.
    round_robin: Vec<Deficit<C>>,
    weights: [u32; C],
}

impl<const C: usize> Scheduler<C> {
    pub(crate) fn new(ports: usize, weights: [u32; C]) -> Self {
        Scheduler { round_robin: if C > 2 { vec![Deficit::default(); ports] } else { Vec::new() }, weights }
    }

    /// Returns the class to serve among the `eligible` ones (one bit each, not 0).
    #[inline(always)]
    pub(crate) fn next_class(&mut self, id: PortId, port: &Port<C>, eligible: u8) -> usize {
        if C <= 2 || eligible & 1 != 0 {
            // 0 if control waits, else 1.
            usize::from(eligible & 1 == 0)
        } else {
            self.next_data_class(id, port, eligible)
        }
    }

    fn next_data_class(&mut self, id: PortId, port: &Port<C>, eligible: u8) -> usize {
        if eligible.is_power_of_two() {
            // A class that is alone neither needs nor earns credit.
            return eligible.trailing_zeros() as usize;
        }
        let deficit = &mut self.round_robin[id as usize];
        loop {
            let class = usize::from(deficit.turn);
            if eligible >> class & 1 != 0 {
                let bytes = i64::from(port.queues[class].front().expect("eligible").wire_bytes());
                if deficit.credit_bytes[class] >= bytes {
                    deficit.credit_bytes[class] -= bytes;
                    return class;
                }
                deficit.credit_bytes[class] += QUANTUM_BYTES * i64::from(self.weights[class]);
            } else {
                deficit.credit_bytes[class] = 0;
            }
            deficit.turn = if class + 1 < C { deficit.turn + 1 } else { 1 };
        }
    }
}
