//! The datagram queue pairs of a host.

use alloc::vec::Vec;

use pathweave_policy::Policy;
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::Segment;

use super::{RdCounters, RdEvent, RdPlacement, RdQp, SideMessage};
use crate::contract::Transport;
use crate::transmit::{Gate, Transmit};

/// All datagram queue pairs of a host, one a process. Driven as one of them; they take turns at sending.
#[derive(Debug)]
pub struct RdHost<P> {
    /// Ascending by number.
    qps: Vec<RdQp<P>>,
    /// Whose turn it is to send.
    turn: usize,
    /// Packets and side messages for none of them.
    foreign: u64,
}

impl<P> Default for RdHost<P> {
    fn default() -> Self {
        RdHost { qps: Vec::new(), turn: 0, foreign: 0 }
    }
}

impl<P: Policy> RdHost<P> {
    /// Adds a queue pair. Panics if there is one of that number.
    pub fn add(&mut self, qp: RdQp<P>) {
        let at = self.qps.binary_search_by_key(&qp.num(), RdQp::num).expect_err("a number of its own");
        self.qps.insert(at, qp);
        self.turn = 0;
    }

    /// The queue pair of this number.
    pub fn get_mut(&mut self, qp: QpNum) -> Option<&mut RdQp<P>> {
        let at = self.qps.binary_search_by_key(&qp, RdQp::num).ok()?;
        self.qps.get_mut(at)
    }

    /// As [`get_mut`](RdHost::get_mut), to look at.
    pub fn get(&self, qp: QpNum) -> Option<&RdQp<P>> {
        let at = self.qps.binary_search_by_key(&qp, RdQp::num).ok()?;
        self.qps.get(at)
    }

    /// All of them, ascending by number.
    pub fn iter(&self) -> impl Iterator<Item = &RdQp<P>> {
        self.qps.iter()
    }

    /// As [`Transport::on_packet`]; a packet for no queue pair is counted and dropped.
    pub fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<RdPlacement> {
        let Some(qp) = self.get_mut(segment.dst_qp) else {
            self.foreign += 1;
            return None;
        };
        qp.on_packet(now, from, segment, ce)
    }

    /// As [`Transport::on_side`].
    pub fn on_side(&mut self, now: Time, from: HostId, message: &SideMessage) {
        let flow = message.flow();
        match self.get_mut(if message.is_of_sender() { flow.dst_qp } else { flow.src_qp }) {
            Some(qp) => qp.on_side(now, from, message),
            None => self.foreign += 1,
        }
    }

    /// As [`RdQp::on_side_reset`].
    pub fn on_side_reset(&mut self, now: Time, host: HostId) {
        self.qps.iter_mut().for_each(|qp| qp.on_side_reset(now, host));
    }

    /// As [`Transport::send_control`].
    pub fn poll_control(&mut self) -> Option<Transmit> {
        let mut packet = None;
        let _ = self.qps.iter_mut().any(|qp| qp.send_control(|control| packet = Some(control)));
        packet
    }

    /// As [`Transport::has_control`].
    pub fn has_control(&self) -> bool {
        self.qps.iter().any(RdQp::has_control)
    }

    /// As [`Transport::poll_transmit`], of the queue pair whose turn it is.
    pub fn poll_transmit(&mut self, now: Time, gate: Gate) -> Option<Transmit> {
        for _ in 0..self.qps.len() {
            let turn = self.turn;
            self.turn = if turn + 1 < self.qps.len() { turn + 1 } else { 0 };
            let qp = &mut self.qps[turn];
            let mut packet = None;
            if qp.has_ready_data() && qp.send_data(now, gate, |data| packet = Some(data)) {
                return packet;
            }
        }
        None
    }

    /// Whether any has packets to send once a NIC port is free.
    pub fn has_ready_data(&self) -> bool {
        self.qps.iter().any(RdQp::has_ready_data)
    }

    /// As [`Transport::poll_side`].
    pub fn poll_side(&mut self) -> Option<(HostId, SideMessage)> {
        self.qps.iter_mut().find_map(RdQp::poll_side)
    }

    /// As [`Transport::poll_event`], with the queue pair.
    pub fn poll_event(&mut self) -> Option<(QpNum, RdEvent)> {
        self.qps.iter_mut().find_map(|qp| qp.poll_event().map(|event| (qp.num(), event)))
    }

    /// As [`Transport::poll_timer`].
    pub fn poll_timer(&self) -> Option<Time> {
        self.qps.iter().filter_map(RdQp::poll_timer).min()
    }

    /// As [`Transport::on_timer`].
    pub fn on_timer(&mut self, now: Time) {
        self.qps.iter_mut().for_each(|qp| qp.on_timer(now));
    }

    /// Counts of all, and what came for none.
    pub fn counters(&self) -> RdCounters {
        let mut sum = RdCounters { foreign: self.foreign, ..RdCounters::default() };
        self.qps.iter().for_each(|qp| sum += &qp.counters());
        sum
    }
}
