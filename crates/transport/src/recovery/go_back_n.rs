//! Go-back-N as in RoCE NICs: the receiver drops packets out of order and sends one NACK per gap. The sender
//! retransmits everything from the gap on (InfiniBand architecture, 9.7.5.2.8, "PSN sequence error").

use alloc::vec::Vec;

use pathweave_policy::Policy;
use pathweave_units::{Duration, PathId, Time};
use pathweave_wire::Nack;

use super::contract::{Cx, LossRecovery, Setup, Verdict};
use super::receiver::Receiver;
use crate::common::EndpointShared;
use crate::send::flight::Flight;

#[derive(Debug)]
pub(crate) struct Sender;

impl LossRecovery for Sender {
    /// Interval after which the NACK of a gap is repeated, if it is.
    type Config = Option<Duration>;

    fn open(_repeat: Option<Duration>, _setup: &Setup, _common: &mut EndpointShared) -> Self {
        Sender
    }
    fn receiver(repeat: Option<Duration>, _window_packets: u32) -> Receiver {
        Receiver::in_order(repeat)
    }
    #[inline]
    fn is_selective(&self) -> bool {
        false
    }
    fn on_nack(&mut self, _nack: &Nack, flight: &mut Flight, lost: &mut Vec<u64>) {
        flight.go_back(lost);
    }
    fn lose_before(&mut self, _before: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
        flight.go_back(lost);
    }
    /// Ignored: the receiver would refuse packets behind the retransmitted ones, so the timer decides.
    fn abandon<P: Policy>(&mut self, _cx: &mut Cx<'_, P>, _dead: &[PathId]) -> Verdict {
        Verdict::Wait
    }
    /// Packets are sent and retransmitted in order, so the first one is the oldest.
    fn oldest_in_flight(&mut self, flight: &Flight) -> Option<Time> {
        flight.can_lose(flight.una()).then(|| flight.slot(flight.una()).sent_at)
    }
}
