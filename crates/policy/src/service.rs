//! Transport services of queue pairs: one peer process, one host, or all peers; and the number of queue pairs that a
//! process needs.

use crate::ConfigError;
use crate::error::check;

/// Transport service of a queue pair (InfiniBand architecture).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind"))]
pub enum Service {
    /// Reliable connection (RC): a queue pair at each end for each pair of processes.
    #[default]
    Connection,
    /// Extended reliable connection (XRC, IBTA annex A14): one initiator per process and remote node. The processes
    /// of a node share receive queues.
    SharedReceive(SharedReceiveConfig),
    /// Reliable datagram with end-to-end contexts (IBTA): one queue pair per process, one context per remote host,
    /// and one message at a time on each context.
    EndToEnd,
    /// Datagrams made reliable in software (ERD): one queue pair per process for all its peers.
    Datagram(DatagramConfig),
}

impl Service {
    /// Returns true for a connection, the default of all schemes.
    pub fn is_connection(&self) -> bool {
        matches!(self, Service::Connection)
    }

    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Service::Datagram(config) => config.validate(),
            Service::SharedReceive(config) => config.validate(),
            Service::Connection | Service::EndToEnd => Ok(()),
        }
    }

    /// Returns the number of queue pairs of a host among `hosts` that run `processes` each, all of which communicate
    /// with all others. For XRC these are initiators; the paper prints N p, which counts the own host as remote. For
    /// RD, the end-to-end contexts are not counted ([`Service::contexts`]).
    pub fn queue_pairs(&self, hosts: u64, processes: u64) -> u64 {
        let others = hosts.saturating_sub(1);
        match self {
            Service::Connection => others * processes * processes,
            Service::SharedReceive(config) => others * processes * config.nodes(processes),
            Service::EndToEnd | Service::Datagram(_) => processes,
        }
    }

    /// Returns the number of contexts in a NIC: queue pairs and end-to-end contexts.
    pub fn contexts(&self, hosts: u64, processes: u64) -> u64 {
        let end_to_end = if *self == Service::EndToEnd { hosts.saturating_sub(1) } else { 0 };
        self.queue_pairs(hosts, processes) + end_to_end
    }
}

/// Division of a host into nodes whose processes share receive queues.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct SharedReceiveConfig {
    /// Processes of a node, 1 to 32768. Shared receive queues do not cross virtual machines. Absent: all processes of
    /// the host.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub node_processes: Option<u16>,
}

impl SharedReceiveConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        let known = self.node_processes.is_none_or(|processes| (1..=32_768).contains(&processes));
        check(known, "node_processes", self.node_processes.unwrap_or_default(), "1 to 32768")
    }

    /// Returns the number of nodes of a host that runs `processes` processes.
    fn nodes(&self, processes: u64) -> u64 {
        self.node_processes.map_or(1, |of| processes.div_ceil(u64::from(of)))
    }

    /// Returns the node of a process of a host.
    pub fn node(&self, process: u16) -> u16 {
        self.node_processes.map_or(0, |of| process / of)
    }
}

/// Scope of a congestion notification, for datagrams with congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum NotificationScope {
    /// The destination that sent the notification. Messages to other destinations are not slowed.
    #[default]
    Destination,
    /// The queue pair, which has one rate for all its destinations, like that of a connection. It learns of
    /// congestion before it has sent anything to most of them, but one slow destination slows all.
    QueuePair,
}

/// Behaviour of datagram queue pairs (ERD). The same at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct DatagramConfig {
    /// Rule by which the receiver requests retransmissions. "overtaken" (default): packets that later packets have
    /// overtaken on every path, and the last packets sent once the flow is silent. "two_scans": packets that two
    /// scans a period apart found missing. "literal": packets that one scan found missing, as the paper prints it,
    /// late packets included. "never": none (raw datagrams).
    pub repair: Repair,
    /// Period of the scan in round-trip times, 1 to 100. Default 2.5; the paper has 2 to 3, and at least 1.
    pub scan_rtts: f64,
    /// Round-trip time that the period is measured in. "measured" (default): the current time from the request for a
    /// packet to its arrival, at least the configured one. "configured": that of the idle network.
    pub rtt: RttSource,
    /// Priority of retransmissions over other packets. "first" (default, the paper): before all others. "half":
    /// alternately if both wait. "last": after all others.
    pub retries: RetryOrder,
    /// Time at which the sender announces the length of a message. "first_packet" (default): when its first packet
    /// leaves. "post": when the message is posted, so that receivers request packets that still wait at the sender.
    pub announce: Announce,
    /// Order in which messages of one source are delivered. "unordered" (default): as they complete. "ordered": as
    /// they were posted.
    pub delivery: Delivery,
    /// Place of ERD's header of 9 bytes. "inside_mtu" (default): it reduces the payload, to 4,087 bytes at an MTU of
    /// 4,096. "outside_mtu": it does not.
    pub eeth: EethPlace,
    /// Packets beyond the first missing one that the receiver tracks for each source, 64 to 1048576; further ones are
    /// dropped. Default 4096: 1.3 ms of full packets at 100 Gb/s.
    pub window_packets: u32,
    /// Number of requests in a row for the same packet after which its message fails, 1 to 65535. Default 64; the
    /// paper has no limit.
    pub retry_limit: u16,
    /// Scope of a notification, with congestion control "dcqcn". "destination" (default): the destination that sent
    /// it. "queue_pair": all destinations, which share a rate.
    pub slows: NotificationScope,
}

impl Default for DatagramConfig {
    fn default() -> Self {
        DatagramConfig {
            repair: Repair::Overtaken,
            scan_rtts: 2.5,
            rtt: RttSource::Measured,
            retries: RetryOrder::First,
            announce: Announce::FirstPacket,
            delivery: Delivery::Unordered,
            eeth: EethPlace::InsideMtu,
            window_packets: 4_096,
            retry_limit: 64,
            slows: NotificationScope::Destination,
        }
    }
}

/// Bytes of ERD's header.
const EETH_BYTES: u16 = pathweave_wire::layout::EETH_LEN as u16;

impl DatagramConfig {
    /// Returns the payload bytes of a full packet if the NIC's MTU is `mtu_payload`.
    pub const fn capacity(&self, mtu_payload: u16) -> u16 {
        match self.eeth {
            EethPlace::InsideMtu => mtu_payload - EETH_BYTES,
            EethPlace::OutsideMtu => mtu_payload,
        }
    }
    /// Returns true if the announcement of a message of `packets` packets implies that all of them have left. With
    /// rules that use scans it always counts so.
    pub fn announcement_implies_sent(&self, packets: u32) -> bool {
        self.repair != Repair::Overtaken || (packets == 1 && self.announce == Announce::FirstPacket)
    }
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let allowed = "1 to 100 round-trip times";
        check((1.0..=100.0).contains(&self.scan_rtts), "scan_rtts", self.scan_rtts, allowed)?;
        let window = self.window_packets;
        check((64..=1 << 20).contains(&window), "window_packets", window, "64 to 1048576")?;
        check(self.retry_limit > 0, "retry_limit", self.retry_limit, "1 to 65535")
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $(#[$first_doc:meta])* $first:ident, $($(#[$rest_doc:meta])* $rest:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        pub enum $name {
            $(#[$first_doc])*
            #[default]
            $first,
            $($(#[$rest_doc])* $rest),*
        }
    };
}

choice! {
    /// Rule by which the receiver requests retransmissions.
    Repair {
        /// Requests packets that later packets have overtaken on every path, each of which keeps order, and the last
        /// packets sent once the flow is silent. An unanswered request is repeated after twice the time.
        Overtaken,
        /// Requests packets that two scans a period apart found missing.
        TwoScans,
        /// Requests packets that one scan found missing below the highest packet, as printed.
        Literal,
        /// Requests nothing.
        Never,
    }
}

choice! {
    /// Round-trip time that the period of the scan is measured in.
    RttSource {
        /// Recent time from the request for a packet to its arrival.
        Measured,
        /// Round-trip time of the idle network.
        Configured,
    }
}

choice! {
    /// Priority of retransmissions over other packets.
    RetryOrder {
        /// Retransmissions leave before all other packets.
        First,
        /// Retransmissions alternate with other packets, if both wait.
        Half,
        /// Retransmissions leave after all other packets.
        Last,
    }
}

choice! {
    /// Time at which the sender announces the length of a message.
    Announce {
        /// The time at which its first packet leaves.
        FirstPacket,
        /// The time at which it is posted.
        Post,
    }
}

choice! {
    /// Order of delivery.
    Delivery {
        /// In order of completion.
        Unordered,
        /// In order of posting.
        Ordered,
    }
}

choice! {
    /// Place of ERD's header.
    EethPlace {
        /// The header counts as payload of the NIC's packet.
        InsideMtu,
        /// The header does not count as payload.
        OutsideMtu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// The ERD paper, section 2, with erratum E15: (N - 1) p^2, (N - 1) p, p.
    #[test]
    fn queue_pairs_of_a_host_by_hand() {
        let erd = Service::Datagram(DatagramConfig::default());
        let counts = |hosts| {
            [Service::Connection, Service::SharedReceive(SharedReceiveConfig::default()), erd]
                .map(|service| service.queue_pairs(hosts, 4))
        };
        assert_eq!(counts(2), [16, 4, 4]);
        assert_eq!(counts(64), [1_008, 252, 4]);
        assert_eq!(counts(1_024), [16_368, 4_092, 4]);
        assert_eq!((Service::EndToEnd.queue_pairs(64, 4), Service::EndToEnd.contexts(64, 4)), (4, 67));
        assert_eq!(erd.contexts(64, 4), 4);
    }

    #[test]
    fn invalid_values_are_named() {
        let complaint = |config: DatagramConfig| config.validate().expect_err("out of range").to_string();
        let config = DatagramConfig::default();
        assert_eq!(
            complaint(DatagramConfig { scan_rtts: 0.5, ..config }),
            "scan_rtts = 0.5 is not allowed: 1 to 100 round-trip times"
        );
        assert!(complaint(DatagramConfig { window_packets: 1, ..config }).starts_with("window_packets = 1"));
        assert!(complaint(DatagramConfig { retry_limit: 0, ..config }).starts_with("retry_limit = 0"));
        assert_eq!(config.validate(), Ok(()));
    }
}
