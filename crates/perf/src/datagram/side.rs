//! Report of one end of a datagram measurement.

use std::fmt::Write as _;

use pathweave_datapath::rdm::{RdmPath, RdmStats};
use serde::{Deserialize, Serialize};

use crate::end::{Part, share, sums};
use crate::report::Row;
use crate::work::Work;

/// Report of one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Side {
    #[serde(flatten)]
    pub(crate) work: Work,
    /// Largest number of measurements that the process had at a time.
    pub(crate) measurements: usize,
    pub(crate) counters: Counted,
    pub(crate) side_channel: SidePart,
    pub(crate) paths: Vec<PathPart>,
}

macro_rules! counted {
    ($($name:ident: $words:literal, $of:expr;)*) => {
        /// Counters of one end.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) struct Counted {
            $(pub(crate) $name: u64,)*
        }
        impl Counted {
            fn of(stats: &RdmStats) -> Self {
                $(let $name: fn(&RdmStats) -> u64 = $of;)*
                Counted { $($name: $name(stats),)* }
            }
            fn since(&self, before: &Self) -> Self {
                Counted { $($name: self.$name - before.$name,)* }
            }
            /// Counters shown to people, with their labels.
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
    packets_asked_for: "packets requested", |s| s.counters.packets_asked_for;
    asked_in_vain: "requested in vain", |s| s.counters.asked_in_vain;
    flows_scanned: "flows scanned", |s| s.counters.flows_scanned;
    duplicates: "duplicates received", |s| s.counters.duplicates;
    beyond_window: "dropped beyond the window", |s| s.counters.beyond_window_drops;
    no_room: "dropped without a receive", |s| s.no_room_drops;
    refused: "refused datagrams", |s| s.refused_datagrams;
    marked_received: "marked by switches (ECN)", |s| s.marked_datagrams;
    cnps_sent: "CNPs sent", |s| s.counters.cnps_sent;
    cnps_received: "CNPs received", |s| s.counters.cnps_received;
    out_of_order_packets: "arrived out of order", |s| s.counters.out_of_order;
}

/// Traffic of one end's side channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SidePart {
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) connections: u64,
    pub(crate) broken: u64,
}

/// Path in the direction in which this end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathPart {
    pub(crate) source_port: u16,
    pub(crate) packets: u64,
    /// Share of all packets sent, from 0 to 1.
    pub(crate) share: f64,
}

impl Part for Side {
    type Stats = RdmStats;
    const NAMES: usize = 30;

    fn between(work: Work, others: usize, before: Option<&RdmStats>, now: Option<&RdmStats>) -> Self {
        let mut side = Side { work, measurements: others, ..Side::default() };
        if let (Some(before), Some(now)) = (before, now) {
            side.counters = Counted::of(now).since(&Counted::of(before));
            let (new, old) = (now.side, before.side);
            side.side_channel = SidePart {
                sent_bytes: new.sent_bytes - old.sent_bytes,
                received_bytes: new.received_bytes - old.received_bytes,
                connections: new.opened + new.accepted - old.opened - old.accepted,
                broken: new.broken - old.broken,
            };
            let grown = |index: usize| now.paths[index].packets - before.paths[index].packets;
            let all: u64 = (0..now.paths.len()).map(grown).sum();
            let part = |(index, path): (usize, &RdmPath)| {
                let packets = grown(index);
                PathPart { source_port: path.source_port, packets, share: share(packets, all) }
            };
            side.paths = now.paths.iter().enumerate().map(part).collect();
        }
        side
    }

    fn work(&self) -> &Work {
        &self.work
    }

    fn others(&self) -> usize {
        self.measurements
    }

    fn counts(rows: &[Row<Self>]) -> Vec<(&'static str, [u64; 2])> {
        let lines = Counted::LINES.iter().map(|(name, of)| (*name, sums(rows, |side| of(&side.counters))));
        type Line = (&'static str, fn(&SidePart) -> u64);
        let side: [Line; 2] = [
            ("side channel, bytes sent", |part| part.sent_bytes),
            ("side channel, TCP connections", |part| part.connections),
        ];
        lines.chain(side.map(|(name, of)| (name, sums(rows, |side| of(&side.side_channel))))).collect()
    }

    fn paths(&self, text: &mut String) {
        let _ = writeln!(text, " {:>4} {:>6} {:>12} {:>9}", "path", "port", "packets", "share[%]");
        for (index, path) in self.paths.iter().enumerate() {
            let PathPart { source_port, packets, share } = path;
            let _ = writeln!(text, " {index:>4} {source_port:>6} {packets:>12} {:>9.2}", share * 100.0);
        }
    }
}
