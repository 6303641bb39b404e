//! What the state of a run weighs, as far as it is known before it runs.

use pathweave_execution::{Connection, Execution};
use pathweave_results::{FlowRecord, SeriesSample};

use crate::shard::{QueuePair, Shard};

/// Numbers and sizes of what a run keeps of messages and connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Connections, opened when first needed.
    pub connections: u64,
    /// Those of several messages: they stay open from the first to the last.
    pub lasting_connections: u64,
}

impl Footprint {
    /// Bytes for each message: its state, its record when the run is over, its connection.
    pub const MESSAGE_BYTES: usize = Execution::<QueuePair>::MESSAGE_BYTES + size_of::<FlowRecord>();
    /// Bytes for each connection, without its queue pairs: itself, the numbers these will have, and its place among those
    /// known while they are counted.
    pub const CONNECTION_BYTES: usize = size_of::<Connection<QueuePair>>() + size_of::<[u32; 2]>() + 48;
    /// Bytes of a sample.
    pub const SAMPLE_BYTES: usize = size_of::<SeriesSample>();
}

impl<const C: usize> Shard<'_, C> {
    /// To be asked before the run.
    pub(crate) fn footprint(&self) -> Footprint {
        let connections = &self.traffic.execution.connections;
        let lasting = connections.iter().filter(|connection| connection.messages_left() > 1).count();
        Footprint { connections: connections.len() as u64, lasting_connections: lasting as u64 }
    }
}
