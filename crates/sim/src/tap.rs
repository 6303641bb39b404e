//! Watching packets: what arrives at hosts, as it arrives.

use pathweave_fabric::Header;
use pathweave_units::{HostId, Time};
use pathweave_wire::Segment;

/// A packet that has reached a host.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// When its last byte arrived.
    pub at: Time,
    /// The host that sent it.
    pub from: HostId,
    /// The host it has reached.
    pub to: HostId,
    /// What it is.
    pub segment: &'a Segment,
    /// Switches may mark it.
    pub ecn_capable: bool,
    /// A switch has marked it.
    pub congestion_experienced: bool,
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
        }
    }
}

/// A tap, and what it is to be shown. Hosts are run one by one, so the packets of a window come in order of time only when
/// all of them are there.
pub(crate) struct Tapped<'a> {
    tap: &'a mut dyn Tap,
    arrivals: Vec<(Time, HostId, Header, Segment)>,
}

impl<'a> Tapped<'a> {
    pub(crate) fn new(tap: &'a mut dyn Tap) -> Self {
        Tapped { tap, arrivals: Vec::new() }
    }

    /// A packet has reached a host in the window at hand.
    #[cold]
    pub(crate) fn arrived(&mut self, at: Time, to: HostId, header: &Header, segment: &Segment) {
        self.arrivals.push((at, to, *header, *segment));
    }

    /// The window is over.
    pub(crate) fn show(&mut self) {
        self.arrivals.sort_by_key(|&(at, to, ..)| (at, to));
        for (at, to, header, segment) in self.arrivals.drain(..) {
            self.tap.arrived(&Arrival::new(at, to, &header, &segment));
        }
    }
}

/// Is shown every packet that reaches a host, in order of time. Cannot influence the run.
pub trait Tap {
    /// This packet has arrived.
    fn arrived(&mut self, arrival: &Arrival<'_>);
}
