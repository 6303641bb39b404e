//! Backoff of polling: limits how long an application that polls without success keeps its core.

use pathweave_datapath::Turned;

use super::core::EndpointState;
use crate::object::{Next, contention};

/// Number of polls of the device before a yield, about as long as a response takes.
const LOOKS_AT_DEVICE: u64 = 64;

/// Number of unsuccessful polls before a nap if other threads need the core.
const LOOKS_BEFORE_A_NAP: u64 = 4;
/// Number of additional yields before a nap if memory is shared.
const YIELDS_BEFORE_A_NAP: u64 = 64;

impl EndpointState {
    /// Returns the number of consecutive unsuccessful polls after which an application yields its core.
    pub(super) fn polls_before_yield(&self, turned: Turned) -> u64 {
        match turned {
            Turned::Here => self.neighbours.looks().max(LOOKS_AT_DEVICE),
            // The application waits for another thread.
            Turned::Elsewhere => self.neighbours.looks(),
        }
    }

    /// Returns the best next step of an application after `vain` consecutive unsuccessful polls. Peers that
    /// share memory respond within a few polls, and waking up for them is slow, so the nap comes later.
    pub(super) fn next(&self, vain: u64, turned: Turned) -> Next {
        let looks = self.polls_before_yield(turned);
        let nap = if self.neighbours.is_any() { looks + YIELDS_BEFORE_A_NAP } else { LOOKS_BEFORE_A_NAP };
        match vain >= nap && contention::is_crowded() {
            true => Next::Nap,
            false if vain >= looks => Next::Yield,
            false => Next::Look,
        }
    }

    /// Returns true if the application, after `looks` polls, should poll the device as well. With shared
    /// memory, polling the device costs more than all the rest. It is done less often the longer the device
    /// has been quiet.
    pub(super) fn device_poll_due(&mut self, looks: u64) -> bool {
        !self.neighbours.is_any() || self.visits.is_due(looks, self.unanswered > 0)
    }
}
