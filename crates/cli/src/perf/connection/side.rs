//! What an end says of its part of a measurement.

use std::time::Duration;

use pathweave_datapath::{ConnectionStats, PathState, PathStats};
use serde::{Deserialize, Serialize};

use super::bundle::Bundle;
use super::flow::Flow;
use super::work::{Watch, Work};

/// An end's part. The server sends its to the client; both are in the JSON output under these names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Side {
    #[serde(flatten)]
    pub(crate) work: Work,
    /// Connections the process had at a time, at most: its CPU time is theirs, too.
    pub(crate) connections: usize,
    pub(crate) counters: Counted,
    pub(crate) paths: Vec<PathPart>,
}

/// Packets of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) data_packets_sent: u64,
    pub(crate) data_packets_received: u64,
    pub(crate) acks_sent: u64,
    pub(crate) acks_received: u64,
    pub(crate) retransmitted: u64,
    pub(crate) lost: u64,
    pub(crate) timeouts: u64,
    pub(crate) duplicates: u64,
    pub(crate) receiver_not_ready: u64,
    pub(crate) marked_received: u64,
    pub(crate) out_of_order_packets: u64,
    pub(crate) out_of_order_max: u64,
}

/// A path, in the direction in which this end sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathPart {
    pub(crate) source_port: u16,
    pub(crate) up: bool,
    pub(crate) packets: u64,
    pub(crate) payload_bytes: u64,
    /// Of all payload sent, 0 to 1.
    pub(crate) share: f64,
    pub(crate) lost: u64,
    /// Smoothed; software of both ends included.
    pub(crate) rtt_us: Option<f64>,
    pub(crate) shortest_rtt_us: Option<f64>,
}

/// Where counters stood when the measurement began.
pub(crate) struct Mark {
    watch: Watch,
    stats: Option<ConnectionStats>,
}

impl Mark {
    pub(crate) fn now(connection: &Bundle) -> Mark {
        let stats = connection.stats();
        Mark { watch: Watch::now(), stats }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// What has happened since.
    pub(crate) fn side(&self, connection: &Bundle, flow: &Flow, connections: usize) -> Side {
        let now = connection.stats();
        Side {
            work: flow.work(&self.watch),
            connections,
            counters: counted(self.stats.as_ref(), now.as_ref()),
            paths: now.map_or(Vec::new(), |now| paths(self.stats.as_ref(), &now)),
        }
    }
}

fn counted(before: Option<&ConnectionStats>, after: Option<&ConnectionStats>) -> Counted {
    let Some(after) = after.map(|stats| &stats.counters) else { return Counted::default() };
    let before = before.map(|stats| stats.counters).unwrap_or_default();
    Counted {
        data_packets_sent: after.data_sent - before.data_sent,
        data_packets_received: after.data_received - before.data_received,
        acks_sent: after.acks_sent - before.acks_sent,
        acks_received: after.acks_received - before.acks_received,
        retransmitted: after.retransmitted - before.retransmitted,
        lost: after.lost - before.lost,
        timeouts: after.timeouts - before.timeouts,
        duplicates: after.duplicates - before.duplicates,
        receiver_not_ready: after.rnr_drops - before.rnr_drops,
        marked_received: after.marked_received - before.marked_received,
        out_of_order_packets: after.out_of_order_packets() - before.out_of_order_packets(),
        out_of_order_max: after.out_of_order_max,
    }
}

fn paths(before: Option<&ConnectionStats>, after: &ConnectionStats) -> Vec<PathPart> {
    let old = |index: usize| before.and_then(|stats| stats.paths.get(index));
    let grown = |index: usize, of: fn(&PathStats) -> u64| of(&after.paths[index]) - old(index).map_or(0, of);
    let total: u64 = (0..after.paths.len()).map(|index| grown(index, |path| path.payload_bytes)).sum();
    let us = |span: Option<Duration>| span.map(|span| span.as_nanos() as f64 / 1e3);
    let part = |(index, path): (usize, &PathStats)| {
        let payload_bytes = grown(index, |path| path.payload_bytes);
        PathPart {
            source_port: path.source_port,
            up: path.state == PathState::Up,
            packets: grown(index, |path| path.packets),
            payload_bytes,
            share: if total == 0 { 0.0 } else { payload_bytes as f64 / total as f64 },
            lost: grown(index, |path| path.lost),
            rtt_us: us(path.rtt),
            shortest_rtt_us: us(path.shortest_rtt),
        }
    };
    after.paths.iter().enumerate().map(part).collect()
}
