//! Contexts that NICs hold for messages in progress: queue-pair contexts and end-to-end contexts.

use std::collections::VecDeque;

use pathweave_execution::ConnId;
use pathweave_policy::Service;
use pathweave_units::{Duration, HostId, Time};

use crate::agenda::Item;
use crate::shard::Shard;

/// End of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

impl<const C: usize> Shard<'_, C> {
    /// Requests the end-to-end context of a connection, which carries one message at a time. Returns false if the
    /// message has to wait.
    pub(crate) fn take_context(&mut self, conn: ConnId, flow: u32, posted: Time) -> bool {
        let src = self.traffic.execution.connections[conn].src;
        let waiting = &mut self.model(src).waiting;
        match waiting.get_mut(&conn) {
            Some(queue) => queue.push_back((flow, posted)),
            None => return waiting.insert(conn, VecDeque::new()).is_none(),
        }
        false
    }

    /// Releases an end-to-end context and starts the next message that waits for it, after the delays of host and
    /// NIC.
    pub(crate) fn free_context(&mut self, now: Time, src: HostId, conn: ConnId) {
        let waiting = &mut self.model(src).waiting;
        let next = waiting.get_mut(&conn).and_then(VecDeque::pop_front);
        let Some((flow, posted)) = next else {
            waiting.remove(&conn);
            return;
        };
        let nic = self.spec.network.nic.as_ref();
        let crossing = nic.map_or(Duration::ZERO, |nic| nic.arrival_delay(0) + nic.post_delay());
        self.schedule_own(now + crossing, src, Item::Posted { flow, at: posted, granted: true });
    }

    /// Begins or ends the use of NIC contexts for a message, at one of its ends.
    pub(crate) fn note_context(&mut self, flow: u32, side: Side, begin: bool) {
        if self.spec.network.nic.is_none() {
            return;
        }
        let message = self.spec.graph.messages()[flow as usize];
        let scheme = &self.spec.scheme_of(message.group).scheme;
        let own = (message.stream >> 31 == 1).then_some(self.traffic.execution.connections.of(flow));
        let (src, dst) = message.processes();
        let (host, process, peer, peer_process) = match side {
            Side::Sender => (message.src, src, message.dst, dst),
            Side::Receiver => (message.dst, dst, message.src, src),
        };
        let engine = self.hosts[host.index()].model().and_then(|model| model.engine.as_mut());
        let Some(engine) = engine else { return };
        for user in users_of(&scheme.service, own, side, process, peer, peer_process).into_iter().flatten() {
            if begin { engine.begin(user, scheme.queue_pairs) } else { engine.end(user) }
        }
    }
}

const OF_PROCESS: u64 = 1 << 62;
const OF_CONNECTION: u64 = 1 << 63;

/// Returns the users of contexts that the NIC at one end holds for a message.
fn users_of(
    service: &Service,
    own: Option<ConnId>,
    side: Side,
    process: u16,
    peer: HostId,
    peer_process: u16,
) -> [Option<u64>; 2] {
    let remote = u64::from(peer.0) << 30;
    let local = OF_PROCESS | u64::from(process);
    match service {
        Service::Connection => match own {
            Some(conn) => [Some(OF_CONNECTION | u64::from(conn)), None],
            // A queue pair serves both directions between two processes.
            None => [Some(remote | u64::from(process) << 15 | u64::from(peer_process)), None],
        },
        // Only initiators count, as in the paper's formulas. A target costs a NIC less than a queue pair.
        Service::SharedReceive(config) => {
            let target = u64::from(config.node(peer_process));
            [(side == Side::Sender).then_some(remote | u64::from(process) << 15 | target), None]
        }
        Service::EndToEnd => [Some(local), Some(remote)],
        Service::Datagram(_) => [Some(local), None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_policy::find_scheme;
    use std::collections::BTreeSet;

    /// The number of contexts of a NIC agrees with the formulas if all processes send to all others.
    #[test]
    fn contexts_are_those_of_the_formulas() {
        let of = |name: &str| (find_scheme(name).expect("a scheme").make)().service;
        let nodes_of_two =
            Service::SharedReceive(pathweave_policy::SharedReceiveConfig { node_processes: Some(2) });
        for (service, hosts, processes) in [
            (of("ecmp"), 5, 4),
            (of("xrc"), 5, 4),
            (nodes_of_two, 5, 5),
            (of("rd"), 5, 4),
            (of("erd-uncontrolled"), 5, 4),
            (of("ecmp"), 2, 9),
        ] {
            let mut kept = BTreeSet::new();
            for (peer, own, other) in (1..hosts).flat_map(|peer| {
                (0..processes).flat_map(move |own| (0..processes).map(move |other| (peer, own, other)))
            }) {
                for side in [Side::Sender, Side::Receiver] {
                    let users = users_of(&service, None, side, own, HostId(peer), other);
                    kept.extend(users.into_iter().flatten());
                }
            }
            let expected = service.contexts(u64::from(hosts), u64::from(processes));
            assert_eq!(kept.len() as u64, expected, "{service:?}");
        }
    }
}
