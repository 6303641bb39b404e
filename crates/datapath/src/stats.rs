//! Statistics of a device and its connections.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pathweave_policy::PathState;
use pathweave_transport::{Counters, OrderCounters};
use pathweave_units::{PathId, Rate};

use crate::engine::path_monitor::{PathProbe, PathRecord};
pub use crate::event_loop::outbound::{SendCounters, SendError};
use crate::secure::SessionCounters;

/// Statistics and present state of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionStats {
    /// Packets, acknowledgements, retransmissions, degrees of reordering.
    pub counters: Counters,
    /// Control packets and gaps, for schemes that preserve packet order.
    pub order: OrderCounters,
    /// Statistics of each path, in order of path number.
    pub paths: Vec<PathStats>,
    /// Data packets sent and neither acknowledged nor declared lost.
    pub inflight_packets: u32,
    /// Bytes of these packets, headers included.
    pub inflight_bytes: u64,
    /// Present rate of the scheme, if it sets one.
    pub rate: Option<Rate>,
    /// Packet protection: packets sealed, opened and refused, key changes.
    pub session: SessionCounters,
}

/// A path of a connection in the sending direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStats {
    /// UDP source port.
    pub source_port: u16,
    /// Source address.
    pub local: IpAddr,
    /// Destination address.
    pub remote: SocketAddr,
    /// State of the path: whether it carries packets.
    pub state: PathState,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Payload of these packets, in bytes.
    pub payload_bytes: u64,
    /// Share of this path in all payload sent, 0 to 1.
    pub share: f64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets acknowledged as marked Congestion Experienced (ECN). An acknowledgement of several packets contains
    /// the number of marked ones only; the newest are assumed to be the marked ones.
    pub marked: u64,
    /// Smoothed round-trip time, software included; `None` before the first measurement.
    pub rtt: Option<Duration>,
    /// Shortest measured round-trip time.
    pub shortest_rtt: Option<Duration>,
    /// Number of answered probes ([`Connection::probe_paths`](crate::Connection::probe_paths), and probes of dead
    /// paths).
    pub probe_replies: u64,
    /// Round-trip time of the latest answered probe.
    pub probe_rtt: Option<Duration>,
    /// Shortest round-trip time of all probes.
    pub shortest_probe_rtt: Option<Duration>,
}

impl PathStats {
    /// Combines the records of all paths. `way`: source and destination address of each path.
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

/// Statistics and present state of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Number of connections, half-open ones included.
    pub connections: usize,
    /// Batches sent.
    pub sent: SendCounters,
    /// Datagrams received, of any kind.
    pub received_datagrams: u64,
    /// Bytes of these datagrams.
    pub received_bytes: u64,
    /// Datagrams refused: foreign, damaged, or without a connection.
    pub refused_datagrams: u64,
    /// Sums over all queue pairs, past ones included.
    pub counters: Counters,
    /// Last batch that the system refused permanently, if any.
    pub last_send_error: Option<SendError>,
    /// Turns of the loop.
    pub turns: u64,
    /// Sleeps of the loop.
    pub sleeps: u64,
    /// Wake-ups of the loop for a packet that was delayed by pacing, of a scheme or at the line rate.
    pub paced: u64,
    /// Total lateness of these wake-ups, in nanoseconds.
    pub paced_late_ns: u64,
    /// Number of these wake-ups that were more than 10 us late.
    pub paced_late_over_10us: u64,
    /// Panics in the work of one connection, or of one peer of datagrams, which ended that one only
    /// ([`CloseReason::Internal`](crate::CloseReason::Internal)), and panics of the application's
    /// [hook](crate::Device::set_hook). Each is in the log, at level error.
    pub panics: u64,
}
