//! Selective repeat: the receiver accepts packets in any order within a window and reports which have arrived. The
//! sender retransmits only the missing ones. A packet counts as lost once one sent `reorder_packets` later has been
//! acknowledged.

use pathweave_policy::Policy;

use super::contract::{Cx, LossRecovery, NextCheck, Setup};
use super::receiver::Receiver;
use super::transmissions::Transmissions;
use crate::common::EndpointShared;

#[derive(Debug)]
pub(crate) struct Sender(Transmissions);

impl LossRecovery for Sender {
    type Config = u32;

    fn open(reorder_packets: u32, _setup: &Setup, _common: &mut EndpointShared) -> Self {
        Sender(Transmissions::new(reorder_packets))
    }
    fn receiver(reorder_packets: u32, window_packets: u32) -> Receiver {
        Receiver::any_order(window_packets, reorder_packets)
    }
    #[inline]
    fn transmissions(&mut self) -> Option<&mut Transmissions> {
        Some(&mut self.0)
    }
    #[inline]
    fn detect<P: Policy>(&mut self, cx: &mut Cx<'_, P>) -> NextCheck {
        self.0.lose_proved(cx.flight, &mut cx.common.lost);
        NextCheck::AsArmed
    }
}
