//! What an end says of its part of a measurement.

use std::time::{Duration, Instant};

use pathweave_datapath::{ConnectionStats, PathState, PathStats};
use serde::{Deserialize, Serialize};

use super::bundle::Bundle;
use super::flow::Flow;
use crate::usage;

/// An end's part. The server sends its to the client; both are in the JSON output under these names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Side {
    /// From the first message to the last completion, of the measurement as a whole.
    pub(crate) seconds: f64,
    /// CPU time of the whole process in that time.
    pub(crate) cpu_seconds: f64,
    /// Messages this end asked for that were completed.
    pub(crate) messages: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// From its first message to its last completion.
    pub(crate) sending_seconds: f64,
    /// The best 100 ms.
    pub(crate) peak_bytes_per_second: f64,
    /// Connections the process had at a time, at most: its CPU time is theirs, too.
    pub(crate) connections: usize,
    /// Messages whose bytes were compared.
    pub(crate) checked_messages: u64,
    /// Those in which a byte was wrong.
    pub(crate) wrong_messages: u64,
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_wrong: Option<String>,
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
    begun: Instant,
    cpu: Duration,
    stats: Option<ConnectionStats>,
}

impl Mark {
    pub(crate) fn now(connection: &Bundle) -> Mark {
        let stats = connection.stats();
        Mark { begun: Instant::now(), cpu: usage::process_cpu(), stats }
    }

    /// Fraction of `done`, 0 to 1, by time.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// What has happened since.
    pub(crate) fn side(&self, connection: &Bundle, flow: &Flow, connections: usize) -> Side {
        let (seconds, cpu) = (self.begun.elapsed().as_secs_f64(), usage::process_cpu() - self.cpu);
        let now = connection.stats();
        let (checked_messages, wrong_messages, first_wrong) = flow.checked();
        let sent = flow.sent();
        Side {
            seconds,
            cpu_seconds: cpu.as_secs_f64(),
            messages: sent.messages,
            bytes: sent.bytes,
            sending_seconds: sent.span.as_secs_f64(),
            peak_bytes_per_second: sent.peak_bytes_per_second,
            connections,
            checked_messages,
            wrong_messages,
            first_wrong,
            counters: counted(self.stats.as_ref(), now.as_ref()),
            paths: now.map_or(Vec::new(), |now| paths(self.stats.as_ref(), &now)),
        }
    }
}

impl Side {
    /// CPU time for each of `bytes`.
    pub(crate) fn cpu_ns_per_byte(&self, bytes: u64) -> Option<f64> {
        (bytes > 0).then(|| self.cpu_seconds * 1e9 / bytes as f64)
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
