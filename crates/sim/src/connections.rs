//! Which messages share queue pairs.

use std::collections::HashMap;

use pathweave_policy::Service;
use pathweave_units::{HostId, QpNum};
use pathweave_workload::GroupId;

use crate::flows::Tally;
use crate::spec::SimSpec;

/// Index of a connection.
pub(crate) type ConnId = u32;

/// A connection: one queue pair at each end, or several where the scheme scales queue pairs.
pub(crate) struct Connection {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    pub(crate) group: GroupId,
    /// Messages that are yet to be acknowledged, posted or not.
    pub(crate) messages_left: u32,
    /// Of datagram queue pairs, which are not a connection's own: messages posted, by their number.
    pub(crate) posted: Vec<u32>,
    /// (At `src`, at `dst`); empty until the first message is posted.
    pub(crate) qps: Vec<(QpNum, QpNum)>,
    /// Counters of its queue pairs when a message was last done with: at the senders and at the receivers. None until
    /// then, and none once all are, so that a million connections of a message each do without.
    pub(crate) taken: Option<Box<(Tally, Tally)>>,
}

/// All connections of a run, opened when first needed and closed after the last message.
pub(crate) struct Connections {
    pub(crate) list: Vec<Connection>,
    of_message: Vec<ConnId>,
}

impl Connections {
    /// One for each distinct (source, destination, group, stream), numbered by first use. Where queue pairs serve more
    /// than a pair of processes, what they serve takes the place of the stream.
    pub(crate) fn new(spec: &SimSpec) -> Self {
        let graph = &spec.graph;
        // Only looked up, never iterated: its order cannot leak.
        let mut known = HashMap::new();
        let mut list: Vec<Connection> = Vec::new();
        let of_message = graph
            .messages()
            .iter()
            .map(|m| {
                let (process, peer_process) = m.processes();
                let shared = match spec.scheme_of(m.group).scheme.service {
                    Service::Connection => m.stream,
                    Service::SharedReceive => u32::from(process),
                    Service::EndToEnd => 0,
                    Service::Datagram(_) => u32::from(process) << 16 | u32::from(peer_process),
                };
                let conn = *known.entry((m.src, m.dst, m.group, shared)).or_insert_with(|| {
                    list.push(Connection {
                        src: m.src,
                        dst: m.dst,
                        group: m.group,
                        messages_left: 0,
                        posted: vec![],
                        qps: vec![],
                        taken: None,
                    });
                    list.len() as ConnId - 1
                });
                list[conn as usize].messages_left += 1;
                conn
            })
            .collect();
        Connections { list, of_message }
    }

    /// How many there are, and how many of them have several messages. To be asked before any message is done with.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let lasting = self.list.iter().filter(|connection| connection.messages_left > 1).count();
        (self.list.len() as u64, lasting as u64)
    }

    pub(crate) fn of(&self, message: u32) -> ConnId {
        self.of_message[message as usize]
    }
}
