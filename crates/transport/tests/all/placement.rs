//! Every byte of a complete message has arrived: a peer that mixes offsets, numbers and ends cannot make a receive or
//! a READ complete with bytes that it never sent.

use std::collections::BTreeMap;

use crate::pair::Fixed;
use pathweave_policy::Recovery;
use pathweave_transport::{
    Access, Buffer, Endpoint, EndpointConfig, Event, FreePorts, MemoryRegion, Op, Opcode, QpConfig,
    RecvRequest, Scope, Status, WorkRequest,
};
use pathweave_units::{HostId, PathId, QpNum, Time};
use pathweave_wire::{Body, Data, Operation, Segment};
use proptest::prelude::*;

const MTU: u16 = 256;
const RECEIVES: u64 = 6;
/// Bytes of each receive and of each READ.
const ROOM: usize = 8 * MTU as usize;
const REMOTE: QpNum = QpNum(77);

/// An endpoint with a malicious peer, and the bytes that have arrived in each buffer since it was posted.
struct Victim {
    endpoint: Endpoint<Fixed>,
    qp: QpNum,
    rkey: u64,
    placed: BTreeMap<u64, Vec<bool>>,
    completed: Vec<(u64, Opcode, Status)>,
}

/// Buffer of the memory that the peer may write: a range for each receive of a WRITE's immediate.
const BOARD: u64 = 1_000;

impl Victim {
    fn new() -> Self {
        let mut endpoint =
            Endpoint::new(EndpointConfig { mtu_payload: MTU, ..EndpointConfig::new(HostId(0)) });
        let recovery = Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(64),
            sender_window_packets: None,
        };
        let config = QpConfig { recovery, ..QpConfig::new(HostId(1), Fixed::window(64), &[]) };
        let qp = endpoint.create_qp(Time::ZERO, config);
        endpoint.connect(qp, REMOTE).unwrap();
        let region = MemoryRegion {
            buffer: Buffer(BOARD),
            addr: 0,
            len: 8 * ROOM as u64,
            access: Access::READ_WRITE,
            scope: Scope::DEFAULT,
        };
        let rkey = endpoint.register(region, 7).unwrap();
        let mut placed = BTreeMap::from([(BOARD, vec![false; 8 * ROOM])]);
        for wr_id in 0..RECEIVES {
            let len = ROOM as u64;
            endpoint.post_recv(qp, RecvRequest { wr_id, buffer: Buffer(wr_id), len }).unwrap();
            placed.insert(wr_id, vec![false; ROOM]);
        }
        for wr_id in 100..103 {
            let op = Op::Read { rkey: 5, remote_addr: 0 };
            let len = ROOM as u64 - 100 * (wr_id - 100);
            endpoint.post(Time::ZERO, qp, WorkRequest { wr_id, op, local: Buffer(wr_id), len }).unwrap();
            placed.insert(wr_id, vec![false; len as usize]);
        }
        while endpoint.poll_transmit(Time::ZERO, FreePorts::OPEN).is_some() {}
        Victim { endpoint, qp, rkey, placed, completed: Vec::new() }
    }

    /// Delivers a packet, and checks the completions that it causes.
    fn take(&mut self, data: Data) {
        let segment = Segment::new(self.qp, REMOTE, PathId(0), Body::Data(data));
        if let Some(place) = self.endpoint.on_packet(Time::ZERO, HostId(1), &segment, false) {
            let at = place.offset as usize;
            let bytes = self.placed.get_mut(&place.buffer.0).expect("a buffer of this queue pair");
            bytes[at..at + usize::from(place.len)].fill(true);
        }
        while self.endpoint.poll_transmit(Time::ZERO, FreePorts::OPEN).is_some() {}
        while let Some(event) = self.endpoint.poll_event() {
            let Event::Completion(done) = event else { continue };
            self.completed.push((done.wr_id, done.opcode, done.status));
            if done.status != Status::Success {
                continue;
            }
            let bytes = match done.opcode {
                Opcode::RecvWriteImm => &self.placed[&BOARD][done.wr_id as usize * ROOM..],
                _ => &self.placed[&done.wr_id][..],
            };
            let arrived = bytes[..done.byte_len as usize].iter().all(|arrived| *arrived);
            assert!(arrived, "{done:?} with bytes that have not arrived");
        }
    }
}

fn data(op: Operation, psn: u64, msn: u32, offset: u32, len: u16, last: bool) -> Data {
    Data { psn, msn, offset, len, op, last, ..Data::EMPTY }
}

#[test]
fn the_last_packet_alone_completes_nothing() {
    let mut victim = Victim::new();
    victim.take(data(Operation::Send, 0, 0, 7 * u32::from(MTU), 1, true));
    assert_eq!(victim.completed, []);
    // Nor as a READ response.
    victim.take(data(Operation::ReadResponse, 0, 0, 7 * u32::from(MTU), MTU, true));
    assert_eq!(victim.completed, []);
    assert_eq!(victim.endpoint.qp_counters(victim.qp).unwrap().malformed, 2);
    // Valid packets are accepted after all that, in any order.
    let full = |psn: u64, last| data(Operation::Send, psn, 0, psn as u32 * u32::from(MTU), MTU, last);
    victim.take(full(2, true));
    victim.take(full(0, false));
    assert_eq!(victim.completed, []);
    victim.take(full(1, false));
    assert_eq!(victim.completed, [(0, Opcode::Recv, Status::Success)]);
}

/// Each packet would leave a hole in a message. After each, the honest rest is accepted.
#[test]
fn packets_that_leave_a_hole_are_refused() {
    let mtu = u32::from(MTU);
    let send = |psn, msn, offset, last| data(Operation::Send, psn, msn, offset * mtu, MTU, last);
    let second = |psn, offset, last| Data { receive_index: 1, ..send(psn, 1, offset, last) };
    let cases: [(&str, &[Data]); 6] = [
        (
            "a packet of the next message in the middle of the first",
            &[send(0, 0, 0, false), second(1, 0, true)],
        ),
        ("an end before what has arrived", &[send(2, 0, 2, false), send(1, 0, 1, true)]),
        ("two ends", &[send(3, 0, 3, true), send(2, 0, 2, true)]),
        ("a message that begins where another goes on", &[second(3, 1, true), send(2, 0, 2, false)]),
        ("a gap between messages", &[second(4, 0, true), send(2, 0, 2, true)]),
        ("offsets that are none", &[data(Operation::Send, 1, 0, 100, MTU, false)]),
    ];
    for (name, packets) in cases {
        let mut victim = Victim::new();
        for (at, packet) in packets.iter().enumerate() {
            let before = victim.endpoint.qp_counters(victim.qp).unwrap().malformed;
            victim.take(*packet);
            let refused = victim.endpoint.qp_counters(victim.qp).unwrap().malformed - before;
            assert_eq!(refused, u64::from(at + 1 == packets.len()), "{name}, packet {at}");
        }
        assert_eq!(victim.completed, [], "{name}");
    }
}

/// Packets of a few messages of a few packets, mostly valid, sometimes with one change.
fn hostile() -> impl Strategy<Value = (u64, u32, u32, u16, bool, u8)> {
    let psn = 0u64..14;
    let len = prop_oneof![6 => Just(MTU), 1 => Just(0u16), 1 => Just(1u16)];
    (psn, 0u32..5, 0u32..8, len, any::<bool>(), 0u8..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The sender follows a plan of messages, and forges one packet in three.
    #[test]
    fn no_completion_without_its_bytes(
        plan in prop::collection::vec((1u64..5, 0u8..4), 1..5),
        lies in prop::collection::vec((hostile(), any::<bool>()), 0..40),
        order in prop::collection::vec(0usize..1_000, 20),
    ) {
        let mut victim = Victim::new();
        let rkey = victim.rkey;
        let op = |kind| match kind {
            0 => Operation::Send,
            1 => Operation::SendImm,
            2 => Operation::WriteImm,
            _ => Operation::ReadResponse,
        };
        let finish = |mut packet: Data, receive: u32, read: u64| {
            match packet.op {
                Operation::Write | Operation::WriteImm => {
                    (packet.rkey, packet.remote_addr) = (rkey, u64::from(receive) * ROOM as u64);
                    if !packet.last {
                        // The length of the message is chosen so that it fits.
                        packet.imm = 5 * u32::from(MTU) - 1;
                    }
                }
                Operation::ReadResponse => packet.remote_addr = read,
                _ => {}
            }
            packet.receive_index = receive;
            packet
        };
        let (mut psn, mut receive, mut read) = (0, 0, 0);
        let mut packets = Vec::new();
        for (msn, (count, kind)) in (0u32..).zip(&plan) {
            let op = op(*kind);
            for nth in 0..*count {
                let last = nth + 1 == *count;
                packets.push(finish(data(op, psn, msn, nth as u32 * u32::from(MTU), MTU, last), receive, read));
                psn += 1;
            }
            if op == Operation::ReadResponse { read += 1 } else { receive += 1 }
        }
        for ((psn, msn, offset, len, last, kind), same_place) in lies {
            let at = packets.len().min(psn as usize);
            let offset = if same_place { psn as u32 } else { offset } * u32::from(MTU);
            let lie = data(op(kind % 4), psn, msn, offset, len, last);
            packets.insert(at, finish(lie, u32::from(kind) / 4, u64::from(kind) / 4));
        }
        for swap in order {
            let at = swap % packets.len();
            let packet = packets.remove(at);
            packets.push(packet);
        }
        // Repeats all packets, like a sender that receives no acknowledgements.
        for packet in packets.iter().chain(&packets) {
            victim.take(*packet);
        }
    }

    /// No valid packet is refused, in any order.
    #[test]
    fn valid_packets_complete_in_any_order(
        plan in prop::collection::vec((1u64..6, 0u8..3), 1..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let mut victim = Victim::new();
        let rkey = victim.rkey;
        let mut packets = Vec::new();
        let mut psn = 0;
        for (msn, (count, kind)) in (0u32..).zip(&plan) {
            let op = [Operation::Send, Operation::SendImm, Operation::WriteImm][usize::from(*kind)];
            for nth in 0..*count {
                let last = nth + 1 == *count;
                let len = if last { 100 } else { MTU };
                let packet = data(op, psn, msn, nth as u32 * u32::from(MTU), len, last);
                let imm = (count - 1) as u32 * u32::from(MTU) + 99;
                let packet = match op {
                    Operation::WriteImm if last => Data { rkey, ..packet },
                    Operation::WriteImm => Data { rkey, imm, ..packet },
                    _ => packet,
                };
                packets.push(Data { receive_index: msn, ..packet });
                psn += 1;
            }
        }
        for index in order {
            let at = index.index(packets.len());
            let packet = packets.remove(at);
            packets.push(packet);
        }
        let mut completed = Vec::new();
        for packet in &packets {
            let segment =
                Segment::new(victim.qp, REMOTE, PathId(0), Body::Data(*packet));
            victim.endpoint.on_packet(Time::ZERO, HostId(1), &segment, false);
            while victim.endpoint.poll_transmit(Time::ZERO, FreePorts::OPEN).is_some() {}
            while let Some(event) = victim.endpoint.poll_event() {
                if let Event::Completion(done) = event {
                    prop_assert_eq!(done.status, Status::Success);
                    completed.push((done.wr_id, done.byte_len));
                }
            }
        }
        let expected: Vec<(u64, u64)> =
            (0..).zip(&plan).map(|(at, (count, _))| (at, (count - 1) * u64::from(MTU) + 100)).collect();
        prop_assert_eq!(completed, expected);
        prop_assert_eq!(victim.endpoint.qp_counters(victim.qp).unwrap().malformed, 0);
    }
}
