//! Watching packets: what arrives at hosts, as it arrives.

use pathweave_fabric::Header;
use pathweave_units::{HostId, Time, TrimmedAt};
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
    /// Where a switch has taken its payload; `None`: it has it.
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

/// A packet that has reached a host in the window at hand.
pub(crate) type Seen = (Time, HostId, Header, Segment);

/// Shows a tap what has been seen in a window, in order of time: hosts are run one by one.
pub(crate) fn show(tap: &mut dyn Tap, mut seen: Vec<Seen>) {
    seen.sort_by_key(|&(at, to, ..)| (at, to));
    for (at, to, header, segment) in seen {
        tap.arrived(&Arrival::new(at, to, &header, &segment));
    }
}

/// Is shown every packet that reaches a host, in order of time. Cannot influence the run.
pub trait Tap {
    /// This packet has arrived.
    fn arrived(&mut self, arrival: &Arrival<'_>);
}
