//! Hops: packets put on links, for observers. Compiled only with the feature `hops`, because the check for an observer
//! would be the only work on a hop that no result needs.

use pathweave_units::{Duration, HostId, Time};

use crate::packet::{Header, PFC, PortId};

/// Packet that a port has put on its link. The hops of a packet follow from each other: a packet enters the far node
/// by port `far` at `arrival`, and its next hop has that port as `ingress` and that time as `entered`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Hop {
    /// Port that sends.
    pub port: PortId,
    /// Port at which the packet arrives.
    pub far: PortId,
    /// Port by which the packet entered the switch, or `None` at its sender.
    pub ingress: Option<PortId>,
    /// Time at which the packet entered the switch and joined the queue; at its sender, the start of transmission.
    pub entered: Time,
    /// Start of transmission.
    pub start: Time,
    /// Arrival of the last bit at the far end. A packet on a link that fails does not arrive.
    pub arrival: Time,
    /// Host that sent the packet.
    pub src: HostId,
    /// Host that is to receive it.
    pub dst: HostId,
    /// Bytes on the link.
    pub wire_bytes: u16,
    /// Traffic class; 0 is control.
    pub class: u8,
    /// True if only the headers are left, because a switch had no room for the payload.
    pub trimmed: bool,
}

/// Hops since the last call of [`HopLog::take`], if they are recorded.
#[derive(Default)]
pub(crate) struct HopLog(Option<Vec<Hop>>);

impl HopLog {
    /// Records hops from now on.
    pub(crate) fn start(&mut self) {
        self.0 = Some(Vec::new());
    }

    /// Returns the hops since the last call. None are recorded unless [`HopLog::start`] was called.
    pub(crate) fn take(&mut self) -> Vec<Hop> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records a packet that `peer` is to receive. The sending port has its number later, from its far end.
    #[inline(always)]
    pub(crate) fn note(&mut self, header: &Header, peer: PortId, start: Time, arrival: Time) {
        let Some(hops) = &mut self.0 else { return };
        if header.is(PFC) {
            return;
        }
        let ingress = (header.links() > 0).then(|| header.ingress());
        hops.push(Hop {
            port: peer,
            far: peer,
            ingress,
            entered: if ingress.is_some() { header.arrival() } else { start },
            start,
            arrival,
            src: header.src(),
            dst: header.dst(),
            wire_bytes: header.wire_bytes(),
            class: header.class(),
            trimmed: header.trimmed_at().is_some(),
        });
    }
}

impl Hop {
    /// Returns the time for which the packet waited in the queue.
    pub fn waited(&self) -> Duration {
        self.start.saturating_since(self.entered)
    }
}
