//! Several queue pairs over which a scheme divides a flow, used as one connection.
//!
//! Every request is posted on each queue pair, with a part of the message each, as the simulator divides it. All
//! queue pairs complete the same requests in the same order. A completion is reported when all of them have it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pathweave_datapath::{
    CloseReason, Completion, Connection, ConnectionInfo, ConnectionState, ConnectionStats, Device, Opcode,
    PathState, PathStats, PostError, Remote, Slice, WaitError, part_bytes,
};

/// Connections of one device to one peer. There is at least one.
pub(crate) struct Bundle {
    device: Device,
    connections: Vec<Connection>,
    /// Completions that not all connections have yet. Unused with a single connection.
    parts: RefCell<Parts>,
}

/// Pending completions by connection, oldest first.
#[derive(Default)]
struct Parts {
    sends: Vec<VecDeque<Completion>>,
    receives: Vec<VecDeque<Completion>>,
}

impl Bundle {
    pub(crate) fn new(device: &Device, connections: Vec<Connection>) -> Self {
        assert!(!connections.is_empty(), "a bundle is at least one connection");
        let empty = || vec![VecDeque::new(); connections.len()];
        let parts = RefCell::new(Parts { sends: empty(), receives: empty() });
        Bundle { device: device.clone(), connections, parts }
    }

    fn first(&self) -> &Connection {
        &self.connections[0]
    }

    /// Posts a part of `memory` on each connection. `post` receives the part and its offset within the message.
    fn each(
        &self,
        memory: &Slice,
        post: impl Fn(&Connection, Slice, u64) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let (parts, mut begin) = (self.connections.len() as u64, 0);
        for (part, connection) in (0..parts).zip(&self.connections) {
            let end = begin + part_bytes(memory.len() as u64, part, parts);
            let at = memory.offset();
            let part = memory.region().slice(at + begin as usize..at + end as usize);
            post(connection, part.expect("a part is within the whole"), begin)?;
            begin = end;
        }
        Ok(())
    }

    pub(crate) fn send(&self, wr_id: u64, from: Slice) -> Result<(), PostError> {
        match &self.connections[..] {
            [one] => one.send(wr_id, from),
            _ => self.each(&from, |connection, part, _| connection.send(wr_id, part)),
        }
    }

    pub(crate) fn send_imm(&self, wr_id: u64, from: Slice, imm: u32) -> Result<(), PostError> {
        match &self.connections[..] {
            [one] => one.send_imm(wr_id, from, imm),
            _ => self.each(&from, |connection, part, _| connection.send_imm(wr_id, part, imm)),
        }
    }

    pub(crate) fn recv(&self, wr_id: u64, into: Slice) -> Result<(), PostError> {
        match &self.connections[..] {
            [one] => one.recv(wr_id, into),
            _ => self.each(&into, |connection, part, _| connection.recv(wr_id, part)),
        }
    }

    pub(crate) fn write(&self, wr_id: u64, from: Slice, to: Remote) -> Result<(), PostError> {
        match &self.connections[..] {
            [one] => one.write(wr_id, from, to),
            _ => self
                .each(&from, |connection, part, begin| connection.write(wr_id, part, at_offset(to, begin))),
        }
    }

    pub(crate) fn write_imm(&self, wr_id: u64, from: Slice, to: Remote, imm: u32) -> Result<(), PostError> {
        match &self.connections[..] {
            [one] => one.write_imm(wr_id, from, to, imm),
            _ => self.each(&from, |connection, part, begin| {
                connection.write_imm(wr_id, part, at_offset(to, begin), imm)
            }),
        }
    }

    pub(crate) fn read(&self, wr_id: u64, into: Slice, from: Remote) -> Result<(), PostError> {
        match &self.connections[..] {
            [one] => one.read(wr_id, into, from),
            _ => self
                .each(&into, |connection, part, begin| connection.read(wr_id, part, at_offset(from, begin))),
        }
    }

    /// Runs the event loop once, so that the peer is answered while this end is busy.
    pub(crate) fn turn(&self) {
        self.device.progress();
    }

    /// Returns the next completion if there is one, without running the event loop.
    pub(crate) fn poll_completion(&self) -> Option<Completion> {
        match &self.connections[..] {
            [one] => one.take(),
            all => {
                let mut parts = self.parts.borrow_mut();
                for (index, connection) in all.iter().enumerate() {
                    while let Some(completion) = connection.take() {
                        if !completion.is_success() {
                            // The other connections may never complete the failed request.
                            return Some(completion);
                        }
                        let queues = match completion.opcode {
                            Opcode::Recv | Opcode::RecvWriteImm => &mut parts.receives,
                            Opcode::Send | Opcode::Write | Opcode::Read => &mut parts.sends,
                        };
                        queues[index].push_back(completion);
                    }
                }
                let Parts { sends, receives } = &mut *parts;
                pop_complete(receives).or_else(|| pop_complete(sends))
            }
        }
    }

    /// Waits for the next completion.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<Completion, WaitError> {
        match &self.connections[..] {
            [one] => one.wait(timeout),
            all => {
                let next = || match self.poll_completion() {
                    Some(completion) => Some(Ok(completion)),
                    None => all.iter().find_map(Connection::ended).map(Err),
                };
                let next = self.device.wait_until(timeout, next)?.ok_or(WaitError::Timeout(timeout))?;
                next.map_err(WaitError::ConnectionClosed)
            }
        }
    }

    pub(crate) fn probe_paths(&self) {
        self.first().probe_paths();
    }

    pub(crate) fn info(&self) -> &ConnectionInfo {
        self.first().info()
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        self.first().peer_addr()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.connections.iter().any(|connection| connection.state() == ConnectionState::Closed)
    }

    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.connections.iter().find_map(Connection::close_reason)
    }

    /// Returns the statistics of all queue pairs together. Paths are added index by index, as all queue pairs use the
    /// same ports.
    pub(crate) fn stats(&self) -> Option<ConnectionStats> {
        let mut all = self.connections.iter().map(Connection::stats);
        let first = all.next()??;
        all.try_fold(first, |sum, next| Some(add_stats(sum, &next?)))
    }
}

/// Prefix of the private data of each connection in a bundle. The server groups connections by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Random tag, shared by the connections of a bundle only.
    pub(crate) tag: u64,
    pub(crate) index: u16,
    /// Number of connections in the bundle.
    pub(crate) count: u16,
}

const MAGIC: &[u8; 4] = b"pwqp";
/// Largest number of connections in a bundle.
pub(crate) const MAX_CONNECTIONS: u16 = 256;
/// Largest number of incomplete bundles that a server keeps.
const MOST_WAITING: usize = 64;

impl Member {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.tag.to_be_bytes());
        bytes.extend_from_slice(&self.index.to_be_bytes());
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes
    }

    /// Decodes the prefix and returns it with the remaining bytes. `None` if there is no valid prefix, as with a
    /// single connection.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Member, &[u8])> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (tag, rest) = rest.split_first_chunk()?;
        let (index, rest) = rest.split_first_chunk()?;
        let (of, rest) = rest.split_first_chunk()?;
        let (tag, index, of) =
            (u64::from_be_bytes(*tag), u16::from_be_bytes(*index), u16::from_be_bytes(*of));
        (index < of && of <= MAX_CONNECTIONS).then_some((Member { tag, index, count: of }, rest))
    }
}

/// Incomplete bundles: some of their connections have not been opened yet.
#[derive(Default)]
pub(crate) struct IncompleteBundles(Vec<Waiting>);

struct Waiting {
    peer: IpAddr,
    tag: u64,
    members: Vec<Option<Connection>>,
}

impl IncompleteBundles {
    /// Adds a connection. Returns the bundle and the client's hello as soon as all its connections are open.
    pub(crate) fn add(&mut self, device: &Device, connection: Connection) -> Option<(Bundle, Vec<u8>)> {
        let said = connection.info().private_data.clone();
        let Some((Member { tag, index, count: of }, hello)) = Member::decode(&said) else {
            return Some((Bundle::new(device, vec![connection]), said));
        };
        let peer = connection.peer_addr().ip();
        let same = |one: &Waiting| (one.peer, one.tag, one.members.len()) == (peer, tag, usize::from(of));
        let at = self.0.iter().position(same).unwrap_or_else(|| {
            if self.0.len() >= MOST_WAITING {
                self.0.remove(0);
            }
            let members = (0..of).map(|_| None).collect();
            self.0.push(Waiting { peer, tag, members });
            self.0.len() - 1
        });
        self.0[at].members[usize::from(index)] = Some(connection);
        if self.0[at].members.iter().any(Option::is_none) {
            return None;
        }
        let members = self.0.swap_remove(at).members;
        Some((Bundle::new(device, members.into_iter().flatten().collect()), hello.to_vec()))
    }

    /// Drops incomplete bundles of which a connection has closed.
    pub(crate) fn drop_closed(&mut self) {
        let closed = |one: &Connection| one.state() == ConnectionState::Closed;
        self.0.retain(|waiting| !waiting.members.iter().flatten().any(closed));
    }
}

/// Returns the remote memory from offset `begin` on.
fn at_offset(remote: Remote, begin: u64) -> Remote {
    Remote { address: remote.address + begin, ..remote }
}

/// Returns the oldest completion that all connections have, with the sum of their bytes.
fn pop_complete(of_each: &mut [VecDeque<Completion>]) -> Option<Completion> {
    if of_each.iter().any(VecDeque::is_empty) {
        return None;
    }
    let mut parts = of_each.iter_mut().filter_map(VecDeque::pop_front);
    let first = parts.next()?;
    Some(parts.fold(first, |sum, part| Completion { byte_len: sum.byte_len + part.byte_len, ..sum }))
}

fn add_stats(mut sum: ConnectionStats, next: &ConnectionStats) -> ConnectionStats {
    sum.counters += &next.counters;
    sum.inflight_packets += next.inflight_packets;
    sum.inflight_bytes += next.inflight_bytes;
    sum.paths.iter_mut().zip(&next.paths).for_each(|(sum, next)| join_paths(sum, next));
    let total: u64 = sum.paths.iter().map(|path| path.payload_bytes).sum();
    for path in &mut sum.paths {
        path.share = if total == 0 { 0.0 } else { path.payload_bytes as f64 / total as f64 };
    }
    sum
}

fn join_paths(sum: &mut PathStats, next: &PathStats) {
    if next.packets > sum.packets {
        sum.rtt = next.rtt.or(sum.rtt);
    }
    sum.rtt = sum.rtt.or(next.rtt);
    sum.shortest_rtt = [sum.shortest_rtt, next.shortest_rtt].into_iter().flatten().min();
    if next.state == PathState::Down {
        sum.state = PathState::Down;
    }
    sum.packets += next.packets;
    sum.payload_bytes += next.payload_bytes;
    sum.lost += next.lost;
    sum.marked += next.marked;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_datapath::{Access, DeviceConfig, Region, Status};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Two bundles of three connections each, between two devices.
    fn pair() -> (Device, Bundle, Device, Bundle) {
        let open = || Device::open(DeviceConfig::loopback()).unwrap();
        let (client, server) = (open(), open());
        let listener = server.listen().unwrap();
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            near.push(client.connect(server.local_addr()).unwrap());
            far.push(listener.accept(PATIENCE).unwrap());
        }
        let (near, far) = (Bundle::new(&client, near), Bundle::new(&server, far));
        (client, near, server, far)
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index * 7 % 251) as u8).collect()
    }

    #[test]
    fn every_verb_is_divided_and_comes_back_as_one() {
        let (_client, near, server, far) = pair();
        let region = Region::zeroed(10_000).unwrap();
        let open = server.register(&region, Access::READ_WRITE).unwrap();
        for len in [0, 1, 2, 10_000] {
            let message = Region::from_bytes(&bytes(len)).unwrap();
            far.recv(1, region.slice(0..len).unwrap()).unwrap();
            near.send(2, message.all()).unwrap();
            let (sent, received) = (near.wait(PATIENCE).unwrap(), far.wait(PATIENCE).unwrap());
            assert_eq!((sent.wr_id, sent.result(), sent.opcode), (2, Ok(len as u64), Opcode::Send));
            assert_eq!((received.wr_id, received.result()), (1, Ok(len as u64)));
            assert!(region.to_vec(0..len).unwrap() == bytes(len), "{len} bytes");
        }
        let blank = Region::zeroed(10_000).unwrap();
        near.write(3, blank.slice(0..5_000).unwrap(), open.remote(100)).unwrap();
        assert_eq!(near.wait(PATIENCE).unwrap().result(), Ok(5_000));
        let mut expected = bytes(10_000);
        expected[100..5_100].fill(0);
        near.read(4, blank.all(), open.remote(0)).unwrap();
        assert_eq!(near.wait(PATIENCE).unwrap().result(), Ok(10_000));
        assert!(blank.to_vec(0..10_000).unwrap() == expected);
        far.recv(5, region.slice(0..0).unwrap()).unwrap();
        near.write_imm(6, blank.slice(0..9).unwrap(), open.remote(9_000), 77).unwrap();
        let told = far.wait(PATIENCE).unwrap();
        assert_eq!((told.imm, told.opcode, told.byte_len), (Some(77), Opcode::RecvWriteImm, 9));
        let stats = near.stats().unwrap();
        // Some packets may be retransmitted on a busy machine.
        assert!(stats.counters.payload_bytes_sent >= 15_012);
        assert!(stats.paths.iter().map(|path| path.payload_bytes).sum::<u64>() >= 15_012);
    }

    #[test]
    fn members_are_told_apart_and_nonsense_is_none() {
        let member = Member { tag: 0x1234_5678_9abc_def0, index: 2, count: 3 };
        let bytes = [member.encode(), b"hello".to_vec()].concat();
        assert_eq!(Member::decode(&bytes), Some((member, &b"hello"[..])));
        assert!((0..16).all(|len| Member::decode(&bytes[..len]).is_none()));
        for wrong in [Member { index: 3, ..member }, Member { count: MAX_CONNECTIONS + 1, ..member }] {
            assert_eq!(Member::decode(&wrong.encode()), None);
        }
    }

    #[test]
    fn the_end_of_one_is_the_end_of_all() {
        let (_client, near, _server, far) = pair();
        assert!(!near.is_closed());
        near.recv(1, Region::zeroed(3).unwrap().all()).unwrap();
        drop(far);
        let flushed = near.wait(PATIENCE).unwrap();
        assert_eq!((flushed.wr_id, flushed.status), (1, Status::Flushed));
        assert!(near.is_closed() && near.close_reason() == Some(CloseReason::Peer));
    }
}
