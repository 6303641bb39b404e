//! What queue pairs serve: one peer, one host, or everybody; and how many a process needs of them.

use crate::ConfigError;
use crate::error::check;

/// Whom a queue pair serves (the transport service of the InfiniBand architecture).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Service {
    /// Reliable connection (RC): a queue pair at each end for each pair of processes.
    #[default]
    Connection,
    /// Extended reliable connection (XRC, IBTA annex A14): a process has one initiator for each remote node, whose
    /// processes share receive queues.
    SharedReceive(SharedReceiveConfig),
    /// Reliable datagram with end-to-end contexts (IBTA): a queue pair a process, a context for each remote host, and
    /// one message at a time on each context.
    EndToEnd,
    /// Datagrams made reliable in software (ERD): a queue pair a process, for everybody.
    Datagram(DatagramConfig),
}

impl Service {
    /// A connection, as all schemes are that do not say otherwise.
    pub fn is_connection(&self) -> bool {
        matches!(self, Service::Connection)
    }

    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Service::Datagram(config) => config.validate(),
            Service::SharedReceive(config) => config.validate(),
            Service::Connection | Service::EndToEnd => Ok(()),
        }
    }

    /// Queue pairs of a host among `hosts` that run `processes` each, all of which talk to all others. For XRC those of
    /// initiators: the paper prints N p, which counts the own host as remote. For RD with contexts, the contexts are not
    /// counted ([`Service::contexts`]).
    pub fn queue_pairs(&self, hosts: u64, processes: u64) -> u64 {
        let others = hosts.saturating_sub(1);
        match self {
            Service::Connection => others * processes * processes,
            Service::SharedReceive(config) => others * processes * config.nodes(processes),
            Service::EndToEnd | Service::Datagram(_) => processes,
        }
    }

    /// What a NIC keeps for them: queue pairs and end-to-end contexts.
    pub fn contexts(&self, hosts: u64, processes: u64) -> u64 {
        let end_to_end = if *self == Service::EndToEnd { hosts.saturating_sub(1) } else { 0 };
        self.queue_pairs(hosts, processes) + end_to_end
    }
}

/// Nodes of a host whose processes share receive queues.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedReceiveConfig {
    /// Processes of a node, 1 to 32768: shared receive queues do not cross virtual machines. Absent: all of the host.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub node_processes: Option<u16>,
}

impl SharedReceiveConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        let known = self.node_processes.is_none_or(|processes| (1..=32_768).contains(&processes));
        check(known, "node_processes", self.node_processes.unwrap_or_default(), "1 to 32768")
    }

    /// Nodes of a host that runs so many processes.
    fn nodes(&self, processes: u64) -> u64 {
        self.node_processes.map_or(1, |of| processes.div_ceil(u64::from(of)))
    }

    /// Node of a process of a host.
    pub fn node(&self, process: u16) -> u16 {
        self.node_processes.map_or(0, |of| process / of)
    }
}

/// Whom a notification of marks slows down, where datagrams have congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Slows {
    /// The destination that tells. What is on the way to others does not pay for it.
    #[default]
    Destination,
    /// The queue pair, which has one rate for all its destinations, as that of a connection has. It knows of congestion
    /// before it has sent anything to most of them; one slow destination slows all.
    QueuePair,
}

/// How datagram queue pairs behave (ERD). Both ends alike.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatagramConfig {
    /// What the receiver asks for again: "overtaken" (default) what later packets have overtaken on every path, and the
    /// end of what was sent once the flow has fallen silent; "two_scans" what two scans a period apart found missing;
    /// "literal" what one scan found, as the paper prints it, late packets included; "never" nothing: raw datagrams.
    pub repair: Repair,
    /// Period of the scan in round-trip times, 1 to 100. Default 2.5; the paper says 2 to 3, and no less than 1.
    pub scan_rtts: f64,
    /// Which round-trip time that is: "measured" (default) what it takes at present from asking for a packet to its
    /// arrival, and never less than configured; "configured" the idle network's.
    pub rtt: RttSource,
    /// Which packets leave before which: "first" (default, the paper) retransmissions before all others; "half"
    /// alternately where both wait; "last" after all others.
    pub retries: RetryOrder,
    /// When the receiver is told how long a message is: "first_packet" (default) when its first packet leaves; "post"
    /// when it is posted, so that receivers ask for what waits at the sender.
    pub announce: Announce,
    /// In which order messages of one source are delivered: "unordered" (default) as they become whole; "ordered" as
    /// they were posted.
    pub delivery: Delivery,
    /// Whether ERD's header of 9 bytes takes room from the payload: "inside_mtu" (default), 4,087 bytes of payload at
    /// an MTU of 4,096; or "outside_mtu".
    pub eeth: EethPlace,
    /// Packets beyond the first missing one that the receiver keeps track of, for each source, 64 to 1048576; further
    /// ones are dropped. Default 4096: 1.3 ms of full packets at 100 Gb/s.
    pub window_packets: u32,
    /// Times in a row that the same packet of a message may be asked for before the message fails, 1 to 65535.
    /// Default 64; the paper has no limit.
    pub retry_limit: u16,
    /// Whom a notification slows down, with congestion control "dcqcn": "destination" (default) the one that tells;
    /// "queue_pair" all destinations, which share a rate.
    pub slows: Slows,
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
            slows: Slows::Destination,
        }
    }
}

/// Bytes of ERD's header.
const EETH_BYTES: u16 = pathweave_wire::layout::EETH_LEN as u16;

impl DatagramConfig {
    /// Payload bytes of a full packet where the NIC's MTU is `mtu_payload`.
    pub const fn capacity(&self, mtu_payload: u16) -> u16 {
        match self.eeth {
            EethPlace::InsideMtu => mtu_payload - EETH_BYTES,
            EethPlace::OutsideMtu => mtu_payload,
        }
    }
    /// Whether the announcement of a message of so many packets says that all of it has left. By the rules of scans it
    /// counts as if it did.
    pub fn start_says_sent(&self, packets: u32) -> bool {
        self.repair != Repair::Overtaken || (packets == 1 && self.announce == Announce::FirstPacket)
    }
    /// Names the first field that is wrong.
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
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $(#[$first_doc])*
            #[default]
            $first,
            $($(#[$rest_doc])* $rest),*
        }
    };
}

choice! {
    /// What the receiver asks for again.
    Repair {
        /// What later packets have overtaken on every path, each of which keeps order, and the end of what was sent once
        /// the flow has fallen silent. Who is asked in vain is asked again after twice the time.
        Overtaken,
        /// What two scans a period apart found missing.
        TwoScans,
        /// What one scan found missing below the highest packet, as printed.
        Literal,
        /// Nothing.
        Never,
    }
}

choice! {
    /// The round-trip time that the period of the scan is measured in.
    RttSource {
        /// From asking for a packet to its arrival, of late.
        Measured,
        /// That of the idle network.
        Configured,
    }
}

choice! {
    /// Retransmissions among other packets.
    RetryOrder {
        /// Before all others.
        First,
        /// Alternately with others, where both wait.
        Half,
        /// After all others.
        Last,
    }
}

choice! {
    /// When the receiver is told how long a message is.
    Announce {
        /// When its first packet leaves.
        FirstPacket,
        /// When it is posted.
        Post,
    }
}

choice! {
    /// Order of delivery.
    Delivery {
        /// As messages become whole.
        Unordered,
        /// As they were posted.
        Ordered,
    }
}

choice! {
    /// Whether ERD's header counts as payload of the NIC's packet.
    EethPlace {
        /// It does.
        InsideMtu,
        /// It does not.
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
    fn what_is_wrong_is_named() {
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
