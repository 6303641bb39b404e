//! What a device and its connections count.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pathweave_policy::PathState;
use pathweave_transport::{Counters, OrderCounters};
use pathweave_units::{PathId, Rate};

use crate::engine::watch::{PathProbe, PathRecord};
pub use crate::event_loop::outbound::{SendCounters, SendError};
use crate::secure::SessionCounters;

/// A connection, as it is now.
#[derive(Clone, Debug)]
pub struct ConnectionStats {
    /// Packets, acknowledgements, retransmissions, degrees of reordering.
    pub counters: Counters,
    /// Copies and notices of schemes that keep an order.
    pub order: OrderCounters,
    /// Each path, in order.
    pub paths: Vec<PathStats>,
    /// Data packets sent and neither acknowledged nor declared lost.
    pub inflight_packets: u32,
    /// Their bytes, headers included.
    pub inflight_bytes: u64,
    /// What the scheme allows at the moment, if it sets a rate.
    pub rate: Option<Rate>,
    /// Packet protection: packets sealed, opened and refused, changes of keys.
    pub session: SessionCounters,
}

/// A path of a connection, this end's sending direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStats {
    /// UDP source port.
    pub source_port: u16,
    /// From which address of this end.
    pub local: IpAddr,
    /// To which address of the peer.
    pub remote: SocketAddr,
    /// Whether it carries packets.
    pub state: PathState,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Their payload, in bytes.
    pub payload_bytes: u64,
    /// Of all payload sent, the part this path took, 0 to 1.
    pub share: f64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets acknowledged as marked Congestion Experienced (ECN). An acknowledgement of several packets says
    /// how many of them were marked, not which: the newest are taken to be.
    pub marked: u64,
    /// Smoothed round-trip time, software included; `None` before the first measurement.
    pub rtt: Option<Duration>,
    /// The shortest measured.
    pub shortest_rtt: Option<Duration>,
    /// Probes answered ([`Connection::probe_paths`](crate::Connection::probe_paths), and those of dead paths).
    pub probe_replies: u64,
    /// Round-trip time of the latest probe.
    pub probe_rtt: Option<Duration>,
    /// The shortest of all probes.
    pub shortest_probe_rtt: Option<Duration>,
}

impl PathStats {
    /// From the records of all paths. `way`: from where to where each goes.
    pub(crate) fn of(
        records: &[PathRecord],
        probes: &[PathProbe],
        way: impl Fn(PathId) -> (SocketAddr, SocketAddr),
    ) -> Vec<PathStats> {
        let total: u64 = records.iter().map(|record| record.payload_bytes).sum();
        let known = |span: pathweave_units::Duration| {
            let measured = span != pathweave_units::Duration::ZERO && span != pathweave_units::Duration::MAX;
            measured.then(|| Duration::from_nanos(span.as_ns()))
        };
        let stats = |(index, record): (usize, &PathRecord)| PathStats {
            source_port: way(PathId(index as u16)).0.port(),
            local: way(PathId(index as u16)).0.ip(),
            remote: way(PathId(index as u16)).1,
            state: record.state,
            packets: record.packets,
            payload_bytes: record.payload_bytes,
            share: if total == 0 { 0.0 } else { record.payload_bytes as f64 / total as f64 },
            lost: record.lost,
            marked: record.marked,
            rtt: known(record.rtt),
            shortest_rtt: known(record.shortest_rtt),
            probe_replies: probes.get(index).map_or(0, |probe| probe.replies),
            probe_rtt: probes.get(index).and_then(|probe| known(probe.latest)),
            shortest_probe_rtt: probes.get(index).and_then(|probe| known(probe.shortest)),
        };
        records.iter().enumerate().map(stats).collect()
    }
}

/// A device, as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Connections, half-open ones included.
    pub connections: usize,
    /// What was sent.
    pub sent: SendCounters,
    /// Datagrams received, of any kind.
    pub received_datagrams: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Datagrams that were nothing of ours, damaged, or of no connection.
    pub refused_datagrams: u64,
    /// Sums over all queue pairs, past ones included.
    pub counters: Counters,
    /// The last batch that the system refused for good, if any.
    pub last_send_error: Option<SendError>,
    /// Turns of the loop.
    pub turns: u64,
    /// Times the loop slept.
    pub sleeps: u64,
    /// Times the loop woke up for a packet that a scheme, or the line rate, had made wait for an instant.
    pub paced: u64,
    /// How much later than that instant, in all, in nanoseconds.
    pub paced_late_ns: u64,
    /// How often more than 10 us later.
    pub paced_late_over_10us: u64,
    /// Bugs that struck in the work of one connection, or of one peer of datagrams, and cost no other
    /// ([`CloseReason::Internal`](crate::CloseReason::Internal)), and panics of the application's
    /// [hook](crate::Device::set_hook). Each is in the log, at level error.
    pub panics: u64,
}
