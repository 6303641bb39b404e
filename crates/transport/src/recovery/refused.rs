//! Losses that a refusal proves.

use alloc::vec::Vec;

use pathweave_wire::{Nack, NackReason};

use crate::send::flight::Flight;

/// Declares only the packet lost that was refused, or that is missing (selective recovery).
pub(super) fn lose_refused(nack: &Nack, flight: &mut Flight, lost: &mut Vec<u64>) {
    let psn = if nack.reason == NackReason::Sequence { nack.expected } else { nack.psn };
    if flight.can_lose(psn) {
        flight.lose(psn);
        lost.push(psn);
    }
}
