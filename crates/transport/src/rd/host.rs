//! Datagram queue pairs of a host.

use alloc::vec::Vec;

use pathweave_policy::Policy;
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::Segment;

use super::{RdCounters, RdEvent, RdPlacement, RdQp, SideMessage};
use crate::contract::Transport;
use crate::ports::PortChange;
use crate::transmit::{FreePorts, Transmit};

/// All datagram queue pairs of a host, one per process. Driven like a single one; the queue pairs take turns at
/// sending.
#[derive(Debug)]
pub struct RdHost<P> {
    /// Queue pairs, ascending by number.
    qps: Vec<RdQp<P>>,
    /// Index of the queue pair whose turn it is to send.
    turn: usize,
    /// Number of packets and side messages for none of them.
    foreign: u64,
    /// Bit set of the NIC ports that are up, once one has failed.
    working: Option<u64>,
}

impl<P> Default for RdHost<P> {
    fn default() -> Self {
        RdHost { qps: Vec::new(), turn: 0, foreign: 0, working: None }
    }
}

impl<P: Policy> RdHost<P> {
    /// Adds a queue pair. Panics if there is one with the same number.
    pub fn add(&mut self, mut qp: RdQp<P>) {
        if let Some(ports) = self.working {
            qp.change_ports(PortChange::Works { ports });
        }
        let at = self.qps.binary_search_by_key(&qp.num(), RdQp::num).expect_err("a number of its own");
        self.qps.insert(at, qp);
        self.turn = 0;
    }

    /// Queue pair of this number, for changes.
    pub fn get_mut(&mut self, qp: QpNum) -> Option<&mut RdQp<P>> {
        let at = self.qps.binary_search_by_key(&qp, RdQp::num).ok()?;
        self.qps.get_mut(at)
    }

    /// Queue pair of this number.
    pub fn get(&self, qp: QpNum) -> Option<&RdQp<P>> {
        let at = self.qps.binary_search_by_key(&qp, RdQp::num).ok()?;
        self.qps.get(at)
    }

    /// All queue pairs, ascending by number.
    pub fn iter(&self) -> impl Iterator<Item = &RdQp<P>> {
        self.qps.iter()
    }

    /// Applies a change of NIC ports to all queue pairs. Those added later learn which ports are up.
    pub fn change_ports(&mut self, change: PortChange) {
        if let PortChange::Works { ports } = change {
            self.working = Some(ports);
        }
        self.qps.iter_mut().for_each(|qp| qp.change_ports(change));
    }

    /// Calls [`RdQp::on_side_reset`] on all queue pairs.
    pub fn on_side_reset(&mut self, now: Time, host: HostId) {
        self.qps.iter_mut().for_each(|qp| qp.on_side_reset(now, host));
    }
}

/// Packets and side messages for an unknown queue pair are counted and dropped. Queue pairs take turns at sending
/// data. An event names the queue pair that reports it.
impl<P: Policy> Transport for RdHost<P> {
    type Event = (QpNum, RdEvent);
    type Placement = RdPlacement;
    type Counters = RdCounters;

    fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<RdPlacement> {
        let Some(qp) = self.get_mut(segment.dst_qp) else {
            self.foreign += 1;
            return None;
        };
        qp.on_packet(now, from, segment, ce)
    }

    fn on_side(&mut self, now: Time, from: HostId, message: &SideMessage) {
        let flow = message.flow();
        match self.get_mut(if message.is_from_source() { flow.dst_qp } else { flow.src_qp }) {
            Some(qp) => qp.on_side(now, from, message),
            None => self.foreign += 1,
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.qps.iter_mut().for_each(|qp| qp.on_timer(now));
    }

    fn poll_timer(&self) -> Option<Time> {
        self.qps.iter().filter_map(RdQp::poll_timer).min()
    }

    fn has_event(&self) -> bool {
        self.qps.iter().any(RdQp::has_event)
    }

    fn poll_event(&mut self) -> Option<(QpNum, RdEvent)> {
        self.qps.iter_mut().find_map(|qp| qp.poll_event().map(|event| (qp.num(), event)))
    }

    fn poll_side(&mut self) -> Option<(HostId, SideMessage)> {
        self.qps.iter_mut().find_map(RdQp::poll_side)
    }

    fn has_control(&self) -> bool {
        self.qps.iter().any(RdQp::has_control)
    }

    fn send_control(&mut self, send: impl FnOnce(Transmit)) -> bool {
        let speaker = self.qps.iter_mut().find(|qp| qp.has_control());
        speaker.is_some_and(|qp| qp.send_control(send))
    }

    fn has_ready_data(&self) -> bool {
        self.qps.iter().any(RdQp::has_ready_data)
    }

    fn send_data(&mut self, now: Time, gate: FreePorts, send: impl FnOnce(Transmit)) -> bool {
        for _ in 0..self.qps.len() {
            let turn = self.turn;
            self.turn = if turn + 1 < self.qps.len() { turn + 1 } else { 0 };
            let (qp, mut packet) = (&mut self.qps[turn], None);
            if qp.has_ready_data() {
                qp.send_data(now, gate, |data| packet = Some(data));
            }
            if let Some(packet) = packet {
                send(packet);
                return true;
            }
        }
        false
    }

    fn items_in_progress(&self) -> u64 {
        self.qps.iter().map(RdQp::items_in_progress).sum()
    }

    fn counters(&self) -> RdCounters {
        let mut sum = RdCounters { foreign: self.foreign, ..RdCounters::default() };
        self.qps.iter().for_each(|qp| sum += &qp.counters());
        sum
    }
}
