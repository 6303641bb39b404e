//! What the state of a run weighs: sizes of its pieces, known before it runs, and what its parts had grown to in the end.

use pathweave_execution::{Connection, Connections, Execution, messages_in_a_chunk};
use pathweave_fabric::Fabric;
use pathweave_policy::AnyPolicy;
use pathweave_results::{EventRecord, Fidelity, FlowFigures, FlowRecord, LinkTotals, NodeInfo, SeriesSample};
use pathweave_transport::Endpoint;

use crate::host::{Content, Host};
use crate::shard::{QueuePair, Shard};
use crate::spec::SimSpec;

/// Numbers of what a run keeps of messages and connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Connections, opened when first needed.
    pub connections: u64,
    /// Those of several messages: they stay open from the first to the last.
    pub lasting_connections: u64,
}

impl Footprint {
    /// Counts what the messages of a run need. Nothing else of the run is made.
    pub fn of(spec: &SimSpec) -> Self {
        let service = |group| &spec.scheme_of(group).scheme.service;
        let (connections, lasting_connections) = Connections::<QueuePair>::count(&spec.graph, service);
        Footprint { connections, lasting_connections }
    }
}

/// Whether the records of a run can be written one by one: without packets all are known at once.
pub fn records_can_be_written_singly(spec: &SimSpec) -> bool {
    spec.fidelity == Fidelity::Packet
}

/// Whether records of flows can leave before the run is over: parts of jobs and of activities are needed to its end.
pub fn flows_can_leave(spec: &SimSpec) -> bool {
    records_can_be_written_singly(spec) && spec.graph.jobs().is_empty() && spec.graph.labels().is_empty()
}

/// Bytes of the pieces that a run is made of, each as the compiler lays it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// A port nothing has passed yet, with the link into it and its entries in tables by port.
    pub port: usize,
    /// A node in the table of what is due.
    pub node: usize,
    /// A switch without ports and routes.
    pub switch: usize,
    /// A cable while the fabric is built.
    pub cable: usize,
    /// A place for a packet in a queue or on a link.
    pub place: usize,
    /// Places of a queue or link that something has passed, at least; they double as they are used up.
    pub first_places: usize,
    /// What a packet carries.
    pub content: usize,
    /// A host that does nothing, without what it allocates.
    pub host: usize,
    /// A queue pair, its policy without what that allocates.
    pub queue_pair: usize,
    /// What a queue pair keeps of a packet in flight.
    pub in_flight: usize,
    /// What each part of a run keeps of a message.
    pub message: usize,
    /// What each part of a run keeps of a connection that is not open.
    pub connection: usize,
    /// The numbers of the queue pairs of a connection.
    pub connection_numbers: usize,
    /// Messages whose records leave together; a number, not bytes.
    pub leaving_together: usize,
    /// The record of a message.
    pub flow_record: usize,
    /// What is kept of it when its record has left.
    pub flow_figures: usize,
    /// The record of a directed link, without its name.
    pub link_record: usize,
    /// The record of a host or switch, without its name.
    pub node_record: usize,
    /// A sample.
    pub sample: usize,
    /// A recorded event.
    pub event: usize,
}

impl Sizes {
    /// Those of a run.
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
            cable: Fabric::<Content, C>::CABLE_BYTES,
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
            flow_figures: FlowFigures::FINISHED_BYTES,
            link_record: size_of::<LinkTotals>(),
            node_record: size_of::<NodeInfo>(),
            sample: size_of::<SeriesSample>(),
            event: size_of::<EventRecord>(),
        }
    }
}

/// What the parts of a run had grown to when it was over, all threads together. Nothing of this shrinks while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Weight {
    /// Ports, links and switches, bytes; routes are not in it.
    pub idle_network: u64,
    /// Places for packets in queues and on links, bytes.
    pub places: u64,
    /// What packets carry, bytes.
    pub contents: u64,
    /// Places for queue pairs at all hosts, bytes: as many as were open at a time.
    pub queue_pairs: u64,
}

impl Weight {
    /// Adds that of another process.
    pub(crate) fn join(&mut self, other: &Weight) {
        self.idle_network += other.idle_network;
        self.places += other.places;
        self.contents += other.contents;
        self.queue_pairs += other.queue_pairs;
    }

    pub(crate) fn add<const C: usize>(&mut self, shard: &Shard<'_, C>) {
        let fabric = shard.network.fabric.weigh();
        self.idle_network += fabric.idle;
        self.places += fabric.places;
        self.contents += fabric.contents;
        self.queue_pairs += shard.hosts.iter().map(|host| host.endpoint.queue_pair_bytes()).sum::<u64>();
    }
}
