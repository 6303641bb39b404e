//! Memory use of a run: sizes of its data structures, known in advance, and their total at the end.

use pathweave_execution::{Connection, Connections, Execution, messages_in_a_chunk};
use pathweave_fabric::Fabric;
use pathweave_policy::AnyPolicy;
use pathweave_records::{EventRecord, Fidelity, FlowRecord, FlowStats, LinkTotals, NodeInfo, SeriesSample};
use pathweave_topo::Link;
use pathweave_transport::Endpoint;

use crate::division::Division;
use crate::forwarding;
use crate::host::{Content, Host};
use crate::plan::needs_whole_network;
use crate::shard::{QueuePair, Shard};
use crate::spec::SimSpec;

/// Numbers of messages and connections that determine the memory of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Number of connections. Each is opened when it is first needed.
    pub connections: u64,
    /// Number of connections with several messages. They stay open from the first message to the last.
    pub lasting_connections: u64,
}

impl Footprint {
    /// Counts the connections that the messages of a run need. Creates no other state of the run.
    pub fn of(spec: &SimSpec) -> Self {
        let service = |group| &spec.scheme_of(group).scheme.service;
        let (connections, lasting_connections) = Connections::<QueuePair>::count(&spec.graph, service);
        Footprint { connections, lasting_connections }
    }
}

/// Returns true if the records of a run can be written one by one. A run without packets yields all its records at
/// once.
pub fn records_can_be_written_singly(spec: &SimSpec) -> bool {
    spec.run.fidelity == Fidelity::Packet
}

/// Returns true if records of flows can be passed on before the run is over. Jobs and activities need the records of
/// their parts until the end.
pub fn flows_can_leave(spec: &SimSpec) -> bool {
    records_can_be_written_singly(spec) && spec.graph.jobs().is_empty() && spec.graph.labels().is_empty()
}

/// Returns the number of ports that the threads of a run hold, all together: those of the network, and once more the far
/// ports of links between nodes of different threads.
pub fn ports_of_all_threads(spec: &SimSpec, threads: u16) -> usize {
    let topology = &*spec.topology;
    let ports = 2 * topology.links().len();
    if threads <= 1 {
        return ports;
    }
    let forwarding = forwarding::of_run(spec).unwrap_or_default();
    let Ok(division) = Division::new(spec, &[threads]) else { return ports };
    let places = division.places(0);
    if needs_whole_network(spec, forwarding) {
        return ports * places.len();
    }
    let between = |link: &&Link| places[0].part_of(link.a.0) != places[0].part_of(link.b.0);
    ports + 2 * topology.links().iter().filter(between).count()
}

/// Sizes in bytes of the data structures of a run, as the compiler lays them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Port that no packet has passed yet, with the link into it and its entries in tables indexed by port.
    pub port: usize,
    /// Entry of a node in the table of pending events.
    pub node: usize,
    /// Switch without ports and routes.
    pub switch: usize,
    /// Slot for a packet in a queue or on a link.
    pub place: usize,
    /// Smallest number of slots of a queue or link that a packet has passed. The number doubles when the slots are
    /// full.
    pub first_places: usize,
    /// Content of a packet.
    pub content: usize,
    /// Idle host, without its allocations.
    pub host: usize,
    /// Queue pair, without the allocations of its policy.
    pub queue_pair: usize,
    /// State that a queue pair holds for a packet in flight.
    pub in_flight: usize,
    /// State that each shard holds for a message.
    pub message: usize,
    /// State that each shard holds for a connection that is not open.
    pub connection: usize,
    /// Numbers of the queue pairs of a connection.
    pub connection_numbers: usize,
    /// Number of messages whose records are passed on together. A count, not bytes.
    pub leaving_together: usize,
    /// Record of a message.
    pub flow_record: usize,
    /// State kept of a message after its record has been passed on.
    pub flow_figures: usize,
    /// Record of a directed link, without its name.
    pub link_record: usize,
    /// Record of a host or switch, without its name.
    pub node_record: usize,
    /// Sample of a time series.
    pub sample: usize,
    /// Recorded event.
    pub event: usize,
}

impl Sizes {
    /// Returns the sizes for a run.
    pub fn of(spec: &SimSpec) -> Self {
        let messages = spec.graph.messages().len();
        match spec.switch.classes() {
            0..=2 => Sizes::of_width::<2>(messages),
            3..=4 => Sizes::of_width::<4>(messages),
            _ => Sizes::of_width::<8>(messages),
        }
    }

    fn of_width<const C: usize>(messages: usize) -> Self {
        Sizes {
            port: Fabric::<Content, C>::PORT_BYTES,
            node: Fabric::<Content, C>::NODE_BYTES,
            switch: Fabric::<Content, C>::SWITCH_BYTES,
            place: Fabric::<Content, C>::PLACE_BYTES,
            first_places: Fabric::<Content, C>::FIRST_PLACES,
            content: Fabric::<Content, C>::CONTENT_BYTES,
            host: size_of::<Host>(),
            queue_pair: Endpoint::<AnyPolicy>::QUEUE_PAIR_BYTES,
            in_flight: Endpoint::<AnyPolicy>::IN_FLIGHT_BYTES,
            message: Execution::<QueuePair>::MESSAGE_BYTES,
            connection: size_of::<Connection<QueuePair>>(),
            connection_numbers: size_of::<[u32; 2]>(),
            leaving_together: messages_in_a_chunk(messages),
            flow_record: size_of::<FlowRecord>(),
            flow_figures: FlowStats::FINISHED_BYTES,
            link_record: size_of::<LinkTotals>(),
            node_record: size_of::<NodeInfo>(),
            sample: size_of::<SeriesSample>(),
            event: size_of::<EventRecord>(),
        }
    }
}

/// Memory that the shards of a run occupied at its end, for all threads together. None of it shrinks during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Weight {
    /// Ports, links and switches without routes, in bytes.
    pub idle_network: u64,
    /// Slots for packets in queues and on links, in bytes.
    pub places: u64,
    /// Contents of packets, in bytes.
    pub contents: u64,
    /// Counters of ports that have lost, marked or paused anything, in bytes.
    pub counters: u64,
    /// Slots for queue pairs at all hosts, in bytes. Their number is the largest number of queue pairs open at one
    /// time.
    pub queue_pairs: u64,
}

impl Weight {
    /// Adds the memory of another process.
    pub(crate) fn join(&mut self, other: &Weight) {
        self.idle_network += other.idle_network;
        self.places += other.places;
        self.contents += other.contents;
        self.counters += other.counters;
        self.queue_pairs += other.queue_pairs;
    }

    pub(crate) fn add<const C: usize>(&mut self, shard: &Shard<'_, C>) {
        let fabric = shard.network.fabric.memory_use();
        self.idle_network += fabric.idle;
        self.places += fabric.places;
        self.contents += fabric.contents;
        self.counters += fabric.counters;
        self.queue_pairs += shard.hosts.iter().map(|host| host.endpoint.queue_pair_bytes()).sum::<u64>();
    }
}
