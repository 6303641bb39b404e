//! An end's part in a measurement of datagrams, and what is shown of both.

use std::fmt::Write as _;
use std::time::Duration;

use pathweave_datapath::rdm::{RdmEndpoint, RdmStats};
use serde::{Deserialize, Serialize};

use super::super::clients::Moved;
use super::super::show::{Figures, bandwidth, latency, rule};
use super::super::work::{Watch, Work};
use super::end::End;

/// An end's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Side {
    #[serde(flatten)]
    pub(super) work: Work,
    /// Measurements the process had at a time, at most.
    pub(super) measurements: usize,
    pub(super) counters: Counted,
    pub(super) side_channel: SidePart,
    pub(super) paths: Vec<PathPart>,
}

macro_rules! counted {
    ($($name:ident: $words:literal, $of:expr;)*) => {
        /// Counts of one end.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub(super) struct Counted {
            $(pub(super) $name: u64,)*
        }
        impl Counted {
            fn of(stats: &RdmStats) -> Self {
                $(let $name: fn(&RdmStats) -> u64 = $of;)*
                Counted { $($name: $name(stats),)* }
            }
            fn since(&self, before: &Self) -> Self {
                Counted { $($name: self.$name - before.$name,)* }
            }
            /// What people are told.
            const LINES: &[(&str, fn(&Counted) -> u64)] = &[$(($words, |counted| counted.$name),)*];
        }
    };
}

counted! {
    data_packets_sent: "data packets sent", |s| s.counters.data_sent;
    data_packets_received: "data packets received", |s| s.counters.data_received;
    retransmitted: "retransmitted", |s| s.counters.retransmitted;
    nacks_sent: "NACKs sent", |s| s.counters.nacks_sent;
    nacks_received: "NACKs received", |s| s.counters.nacks_received;
    packets_asked_for: "packets asked for", |s| s.counters.packets_asked_for;
    asked_in_vain: "asked for in vain", |s| s.counters.asked_in_vain;
    flows_scanned: "flows scanned", |s| s.counters.flows_scanned;
    duplicates: "duplicates received", |s| s.counters.duplicates;
    beyond_window: "dropped beyond the window", |s| s.counters.beyond_window_drops;
    no_room: "dropped for want of a receive", |s| s.no_room_drops;
    refused: "refused datagrams", |s| s.refused_datagrams;
    marked_received: "marked by switches (ECN)", |s| s.marked_datagrams;
    cnps_sent: "CNPs sent", |s| s.counters.cnps_sent;
    cnps_received: "CNPs received", |s| s.counters.cnps_received;
    out_of_order_packets: "arrived out of order", |s| s.counters.out_of_order;
}

/// The side channel of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SidePart {
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) connections: u64,
    pub(super) broken: u64,
}

/// A path, in the direction in which this end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PathPart {
    pub(super) source_port: u16,
    pub(super) packets: u64,
    /// Of all packets sent, 0 to 1.
    pub(super) share: f64,
}

/// Where counts stood when the measurement began.
pub(super) struct Mark {
    watch: Watch,
    stats: Option<RdmStats>,
}

impl Mark {
    pub(super) fn now(endpoint: &RdmEndpoint) -> Mark {
        let stats = endpoint.stats();
        Mark { watch: Watch::now(), stats }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// What has been moved since; sent is what is done.
    pub(super) fn moved(&self, end: &End) -> Moved {
        let bytes = |stats: &RdmStats| stats.counters.payload_bytes_received;
        let now = end.endpoint().stats().as_ref().map_or(0, bytes);
        Moved {
            seconds: self.elapsed().as_secs_f64(),
            received_bytes: now.saturating_sub(self.stats.as_ref().map_or(0, bytes)),
            sent_bytes: end.work(&self.watch).bytes,
        }
    }

    /// What has happened since.
    pub(super) fn side(&self, end: &End, measurements: usize) -> Side {
        let mut side = Side { work: end.work(&self.watch), measurements, ..Side::default() };
        if let (Some(before), Some(now)) = (&self.stats, end.endpoint().stats()) {
            side.counters = Counted::of(&now).since(&Counted::of(before));
            let (new, old) = (now.side, before.side);
            side.side_channel = SidePart {
                sent_bytes: new.sent_bytes - old.sent_bytes,
                received_bytes: new.received_bytes - old.received_bytes,
                connections: new.opened + new.accepted - old.opened - old.accepted,
                broken: new.broken - old.broken,
            };
            let grown = |index: usize| now.paths[index].packets - before.paths[index].packets;
            let all: u64 = (0..now.paths.len()).map(grown).sum();
            let part = |(index, path): (usize, &pathweave_datapath::rdm::RdmPath)| PathPart {
                source_port: path.source_port,
                packets: grown(index),
                share: grown(index) as f64 / all.max(1) as f64,
            };
            side.paths = now.paths.iter().enumerate().map(part).collect();
        }
        side
    }
}

/// A measurement that is done.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) client: Side,
    pub(super) server: Side,
}

/// How the ends were set up.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Setup {
    pub(super) op: &'static str,
    pub(super) transport: &'static str,
    pub(super) kind: &'static str,
    pub(super) directions: &'static str,
    pub(super) check: &'static str,
    pub(super) server: std::net::SocketAddr,
    pub(super) scheme: String,
    pub(super) protection: String,
    pub(super) paths: u16,
    pub(super) mtu_payload_bytes: u16,
    pub(super) depth: u32,
    pub(super) scan_period_us: f64,
}

/// As for connections, with what datagrams have besides.
pub(super) fn text(setup: &Setup, rows: &[Row]) -> String {
    let mut text = String::new();
    rule(&mut text);
    let both = if setup.directions == "both" { ", both directions" } else { "" };
    let _ = writeln!(
        text,
        " Datagram SEND {}{both}: server {}, scheme {}, {} paths, {}",
        setup.kind, setup.server, setup.scheme, setup.paths, setup.protection
    );
    let _ = writeln!(
        text,
        " payload of a packet {} bytes, depth {}, a scan every {:.1} us; MB are 10^6 bytes",
        setup.mtu_payload_bytes, setup.depth, setup.scan_period_us
    );
    rule(&mut text);
    if rows.is_empty() {
        return text;
    }
    let figures: Vec<&Figures> = rows.iter().map(|row| &row.figures).collect();
    if setup.kind == "latency" {
        latency(&mut text, &figures);
    } else {
        bandwidth(&mut text, &figures);
    }
    rule(&mut text);
    let _ = writeln!(text, " {:<30} {:>14} {:>14}", "", "client", "server");
    let mut line = |name: &str, of: &dyn Fn(&Side) -> u64| {
        let sum = |end: fn(&Row) -> &Side| rows.iter().map(|row| of(end(row))).sum::<u64>();
        let _ = writeln!(text, " {name:<30} {:>14} {:>14}", sum(|row| &row.client), sum(|row| &row.server));
    };
    for (name, of) in Counted::LINES {
        line(name, &|side| of(&side.counters));
    }
    line("side channel, bytes sent", &|side| side.side_channel.sent_bytes);
    line("side channel, TCP connections", &|side| side.side_channel.connections);
    let cpu = |end: fn(&Row) -> &Side| rows.iter().map(|row| end(row).work.cpu_seconds).sum::<f64>();
    let _ = writeln!(
        text,
        " {:<30} {:>14.3} {:>14.3}",
        "CPU time[s]",
        cpu(|row| &row.client),
        cpu(|row| &row.server)
    );
    if rows.iter().any(|row| row.server.measurements > 1) {
        text.push_str(" The server had other clients at the time: its CPU time is for all of them.\n");
    }
    if let Some(last) = rows.last() {
        for (whose, side) in [("client to server", &last.client), ("server to client", &last.server)] {
            if side.work.messages > 0 {
                let _ = writeln!(text, "\n Paths, {whose}, of {} bytes", last.figures.size_bytes);
                let _ = writeln!(text, " {:>4} {:>6} {:>12} {:>9}", "path", "port", "packets", "share[%]");
                for (index, path) in side.paths.iter().enumerate() {
                    let PathPart { source_port, packets, share } = path;
                    let _ =
                        writeln!(text, " {index:>4} {source_port:>6} {packets:>12} {:>9.2}", share * 100.0);
                }
            }
        }
    }
    if setup.check != "off" {
        let sum =
            |of: fn(&Side) -> u64| rows.iter().map(|row| of(&row.client) + of(&row.server)).sum::<u64>();
        let (checked, wrong) = (sum(|side| side.work.checked_messages), sum(|side| side.work.wrong_messages));
        let _ = writeln!(text, "\nchecked byte by byte: {checked} messages, {wrong} wrong");
    }
    text
}
