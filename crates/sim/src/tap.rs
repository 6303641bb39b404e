//! Observation of packets as they arrive at hosts.

use pathweave_fabric::Header;
use pathweave_units::{HostId, Time, TrimmedAt};
use pathweave_wire::Segment;

/// Packet that has reached a host.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Arrival time of its last byte.
    pub at: Time,
    /// Host that sent the packet.
    pub from: HostId,
    /// Host that the packet has reached.
    pub to: HostId,
    /// Content of the packet.
    pub segment: &'a Segment,
    /// True if switches may mark the packet.
    pub ecn_capable: bool,
    /// True if a switch has marked the packet.
    pub congestion_experienced: bool,
    /// Switch position at which the payload was trimmed, or `None` if the packet has its payload.
    pub trimmed_at: Option<TrimmedAt>,
}

impl<'a> Arrival<'a> {
    fn new(at: Time, to: HostId, header: &Header, segment: &'a Segment) -> Self {
        let congestion_experienced = header.congestion_experienced();
        Arrival {
            at,
            from: header.src(),
            to,
            segment,
            ecn_capable: header.ecn_capable(),
            congestion_experienced,
            trimmed_at: header.trimmed_at(),
        }
    }
}

/// Packet that has reached a host in the current window.
pub(crate) type Seen = (Time, HostId, Header, Segment);

/// Passes the packets of a window to a tap in order of time. Within a window hosts are simulated one by one.
pub(crate) fn show(tap: &mut dyn Tap, mut seen: Vec<Seen>) {
    seen.sort_by_key(|&(at, to, ..)| (at, to));
    for (at, to, header, segment) in seen {
        tap.arrived(&Arrival::new(at, to, &header, &segment));
    }
}

/// Observer of every packet that reaches a host, in order of time. A tap cannot influence the run.
pub trait Tap {
    /// Called for every packet that has arrived.
    fn arrived(&mut self, arrival: &Arrival<'_>);

    /// Returns false once the tap needs no more packets. It then gets none, and the rest of the run costs nothing.
    fn needs_more(&self) -> bool {
        true
    }

    /// Called for every packet that a port has put on its link, in order of the window in which it did, and of the
    /// start of transmission within the window.
    #[cfg(feature = "hops")]
    fn crossed(&mut self, hop: &pathweave_fabric::Hop) {
        let _ = hop;
    }
}
