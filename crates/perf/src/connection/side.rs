//! Report of one end of a connection about its part of a measurement.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use pathweave_datapath::{ConnectionStats, PathState, PathStats};
use serde::{Deserialize, Serialize};

use crate::end::{Part, share, sums};
use crate::report::Row;
use crate::work::Work;

/// Report of one end. The server sends its report to the client. Both appear in the JSON output under these field
/// names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndReport {
    #[serde(flatten)]
    pub(crate) work: Work,
    /// Largest number of connections that the process had at a time. Its CPU time covers all of them.
    pub(crate) connections: usize,
    pub(crate) counters: Counted,
    pub(crate) paths: Vec<PathReport>,
}

/// Packet counts of one end.
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

/// Path in the direction in which this end sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathReport {
    pub(crate) source_port: u16,
    /// Local and remote address of the path.
    pub(crate) local: Option<IpAddr>,
    pub(crate) remote: Option<IpAddr>,
    pub(crate) up: bool,
    pub(crate) packets: u64,
    pub(crate) payload_bytes: u64,
    /// Share of all payload sent, from 0 to 1.
    pub(crate) share: f64,
    pub(crate) lost: u64,
    /// Smoothed RTT. It includes the software of both ends.
    pub(crate) rtt_us: Option<f64>,
    pub(crate) shortest_rtt_us: Option<f64>,
}

impl Part for EndReport {
    type Stats = ConnectionStats;
    const NAMES: usize = 26;

    fn between(
        work: Work,
        others: usize,
        before: Option<&ConnectionStats>,
        now: Option<&ConnectionStats>,
    ) -> Self {
        let paths = now.map_or(Vec::new(), |now| paths(before, now));
        EndReport { work, connections: others, counters: counted(before, now), paths }
    }

    fn work(&self) -> &Work {
        &self.work
    }

    fn others(&self) -> usize {
        self.connections
    }

    fn counts(rows: &[Row<Self>]) -> Vec<(&'static str, [u64; 2])> {
        type Line = (&'static str, fn(&Counted) -> u64);
        let lines: [Line; 7] = [
            ("data packets sent", |counters| counters.data_packets_sent),
            ("data packets received", |counters| counters.data_packets_received),
            ("retransmitted", |counters| counters.retransmitted),
            ("timeouts", |counters| counters.timeouts),
            ("duplicates received", |counters| counters.duplicates),
            ("marked by switches (ECN)", |counters| counters.marked_received),
            ("arrived out of order", |counters| counters.out_of_order_packets),
        ];
        let most = |of: fn(&Row<Self>) -> &EndReport| {
            rows.iter().map(|row| of(row).counters.out_of_order_max).max().unwrap_or(0)
        };
        let lines = lines.into_iter().map(|(name, of)| (name, sums(rows, |side| of(&side.counters))));
        lines
            .chain([("  at most so far behind", [most(|row| &row.client), most(|row| &row.server)])])
            .collect()
    }

    fn paths(&self, text: &mut String) {
        let _ = writeln!(
            text,
            " {:>4} {:>6} {:<5} {:>12} {:>9} {:>8} {:>12} {:>14}",
            "path", "port", "state", "packets", "share[%]", "lost", "RTT[us]", "least RTT[us]"
        );
        let times = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.1}"));
        let way = |path: &PathReport| (path.local, path.remote);
        let several = self.paths.iter().any(|path| way(path) != way(&self.paths[0]));
        for (index, path) in self.paths.iter().enumerate() {
            let way = match way(path) {
                (Some(local), Some(remote)) if several => format!("  {local} to {remote}"),
                _ => String::new(),
            };
            let _ = writeln!(
                text,
                " {index:>4} {:>6} {:<5} {:>12} {:>9.2} {:>8} {:>12} {:>14}{way}",
                path.source_port,
                if path.up { "up" } else { "down" },
                path.packets,
                path.share * 100.0,
                path.lost,
                times(path.rtt_us),
                times(path.shortest_rtt_us)
            );
        }
    }
}

fn counted(before: Option<&ConnectionStats>, after: Option<&ConnectionStats>) -> Counted {
    let Some(after) = after.map(|stats| &stats.counters) else { return Counted::default() };
    let before = before.map(|stats| stats.counters).unwrap_or_default();
    Counted {
        data_packets_sent: after.sent_packets - before.sent_packets,
        data_packets_received: after.data_received - before.data_received,
        acks_sent: after.acks_sent - before.acks_sent,
        acks_received: after.acks_received - before.acks_received,
        retransmitted: after.retransmitted_packets - before.retransmitted_packets,
        lost: after.lost - before.lost,
        timeouts: after.timeouts - before.timeouts,
        duplicates: after.duplicates - before.duplicates,
        receiver_not_ready: after.rnr_drops - before.rnr_drops,
        marked_received: after.marked_received - before.marked_received,
        out_of_order_packets: after.out_of_order_packets() - before.out_of_order_packets(),
        out_of_order_max: after.out_of_order_max,
    }
}

fn paths(before: Option<&ConnectionStats>, after: &ConnectionStats) -> Vec<PathReport> {
    let old = |index: usize| before.and_then(|stats| stats.paths.get(index));
    let grown = |index: usize, of: fn(&PathStats) -> u64| of(&after.paths[index]) - old(index).map_or(0, of);
    let total: u64 = (0..after.paths.len()).map(|index| grown(index, |path| path.payload_bytes)).sum();
    let us = |span: Option<Duration>| span.map(|span| span.as_nanos() as f64 / 1e3);
    let part = |(index, path): (usize, &PathStats)| {
        let payload_bytes = grown(index, |path| path.payload_bytes);
        PathReport {
            source_port: path.source_port,
            local: Some(path.local),
            remote: Some(path.remote.ip()),
            up: path.state == PathState::Up,
            packets: grown(index, |path| path.packets),
            payload_bytes,
            share: share(payload_bytes, total),
            lost: grown(index, |path| path.lost),
            rtt_us: us(path.rtt),
            shortest_rtt_us: us(path.shortest_rtt),
        }
    };
    after.paths.iter().enumerate().map(part).collect()
}
