//! What the state of a run weighs, as far as it is known before it runs.

use pathweave_results::{FlowRecord, SeriesSample};

use crate::connections::{ConnId, Connection};
use crate::flows::Flow;
use crate::runner::Runner;

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
    pub const MESSAGE_BYTES: usize =
        size_of::<Option<Flow>>() + size_of::<FlowRecord>() + size_of::<ConnId>();
    /// Bytes for each connection, without its queue pairs: itself, and its place among those known while they are counted.
    pub const CONNECTION_BYTES: usize = size_of::<Connection>() + 48;
    /// Bytes of a sample.
    pub const SAMPLE_BYTES: usize = size_of::<SeriesSample>();
}

impl<const C: usize> Runner<'_, C> {
    /// To be asked before the run.
    pub(crate) fn footprint(&self) -> Footprint {
        let (connections, lasting_connections) = self.connections.counts();
        Footprint { connections, lasting_connections }
    }
}
