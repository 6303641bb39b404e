//! The endpoint.

use pathweave_policy::{PathView, Policy};
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::{Body, Segment};

use crate::common::Common;
use crate::config::{EndpointConfig, QpConfig};
use crate::counters::Counters;
use crate::events::Event;
use crate::memory::{MemoryError, MemoryRegion};
use crate::qp::{Outcome, Qp, port_of};
use crate::slab::Slab;
use crate::timers::TimerKind;
use crate::transmit::{Class, Gate, Placement, Transmit};
use crate::work::{PostError, RecvRequest, WorkRequest};

/// All queue pairs of a host: reliable connections that speak SEND, WRITE and READ.
pub struct Endpoint<P> {
    common: Common,
    qps: Slab<Qp<P>>,
    /// Latest instant told.
    now: Time,
    /// Counts of destroyed queue pairs, and of packets that belong to none.
    retired: Counters,
}

impl<P: Policy> Endpoint<P> {
    /// An endpoint without queue pairs. Panics if the configuration is out of range.
    pub fn new(config: EndpointConfig) -> Self {
        config.check();
        Endpoint {
            common: Common::new(config),
            qps: Slab::new(),
            now: Time::ZERO,
            retired: Counters::default(),
        }
    }

    /// As given.
    pub fn config(&self) -> &EndpointConfig {
        &self.common.config
    }

    /// Makes a queue pair. It receives and sends once [`connect`](Endpoint::connect) names its other end; what is
    /// posted before waits. Panics if 2^18 - 2 queue pairs exist.
    pub fn create_qp(&mut self, now: Time, config: QpConfig<'_, P>) -> QpNum {
        self.advance(now);
        let common = &mut self.common;
        self.qps
            .insert_with(|num| Qp::new(now, num, config, common))
            .expect("at most 262,142 queue pairs a host")
    }

    /// Names the queue pair at the other end; data flows from now on.
    pub fn connect(&mut self, qp: QpNum, remote: QpNum) -> Result<(), PostError> {
        let qp = self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?;
        qp.connect(remote, &mut self.common);
        Ok(())
    }

    /// Removes a queue pair with all that was posted, without completions. Late packets for it are counted as
    /// foreign and dropped.
    pub fn destroy_qp(&mut self, qp: QpNum) -> Result<(), PostError> {
        let mut qp = self.qps.remove(qp).ok_or(PostError::UnknownQp)?;
        qp.release_memory(&mut self.common);
        self.retired += &qp.counters;
        Ok(())
    }

    /// Paths were added, failed or came back. Panics if `paths` is empty.
    pub fn set_paths(&mut self, now: Time, qp: QpNum, paths: &[PathView]) -> Result<(), PostError> {
        self.advance(now);
        let qp = self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?;
        qp.set_paths(now, paths, &mut self.common);
        Ok(())
    }

    /// Appends a work request. Its completion comes as an [`Event`], successful or not.
    pub fn post(&mut self, now: Time, qp: QpNum, request: WorkRequest) -> Result<(), PostError> {
        self.advance(now);
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.post(&request, &mut self.common)
    }

    /// Appends a buffer for one message of the other end.
    pub fn post_recv(&mut self, qp: QpNum, request: RecvRequest) -> Result<(), PostError> {
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.post_recv(request)
    }

    /// Opens memory to the other ends of all queue pairs; they name it by the key returned.
    pub fn register(&mut self, region: MemoryRegion) -> Result<u32, MemoryError> {
        self.common.memory.register(region)
    }

    /// Closes memory. Fails while a READ of it is being answered.
    pub fn deregister(&mut self, rkey: u32) -> Result<(), MemoryError> {
        self.common.memory.deregister(rkey)
    }

    /// A packet has arrived; `ce`: marked Congestion Experienced. The answer says where its payload goes: `None`
    /// for packets without payload, duplicates, refused ones, and queue pairs that discard what they receive.
    #[inline]
    pub fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<Placement> {
        self.advance(now);
        let qp = match self.qps.get_mut(segment.dst_qp) {
            Some(qp) if qp.is_peer(from, segment.src_qp) => qp,
            _ => {
                self.retired.foreign += 1;
                return None;
            }
        };
        if qp.has_failed() {
            return None;
        }
        let common = &mut self.common;
        match &segment.body {
            Body::Data(data) => return qp.on_data(now, data, segment.path, ce, common),
            Body::Ack(ack) => qp.on_ack(now, ack, common),
            Body::Nack(nack) => qp.on_nack(now, nack, common),
            Body::Cnp => qp.on_cnp(now, segment.path, common),
            Body::Probe { sent_at } => {
                let body = Body::ProbeReply { sent_at: *sent_at, received_at: now };
                qp.control(segment.path, body, common);
            }
            Body::ProbeReply { sent_at, received_at } => {
                qp.on_probe_reply(now, segment.path, *sent_at, *received_at, common);
            }
        }
        None
    }

    /// The next packet to send now: control before data, data only by NIC ports that `gate` says are free. Data
    /// packets are stamped with `now`, so ask when the packet can really leave.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, gate: Gate) -> Option<Transmit> {
        self.advance(now);
        if let Some((to, segment)) = self.common.control.pop_front() {
            return Some(Transmit {
                to,
                port: port_of(segment.path.0, &self.common),
                class: Class::Control,
                ecn_capable: false,
                wire_bytes: self.common.config.framing.wire_bytes(&segment),
                segment,
                payload: None,
            });
        }
        if gate.data_ports == 0 {
            return None;
        }
        loop {
            let num = self.common.scheduler.next(gate)?;
            // Destroyed since it was queued.
            let Some(qp) = self.qps.get_mut(num) else { continue };
            match qp.transmit(now, gate, &mut self.common) {
                Outcome::Sent(transmit) => return Some(transmit),
                Outcome::Port(port) => self.common.scheduler.wait_for(&mut qp.turn, num, port),
                Outcome::Nothing => {}
            }
        }
    }

    /// Whether a queue pair may have data to send once a NIC port is free. When not, only a packet, a timer or a
    /// request can change that.
    #[inline]
    pub fn has_ready_data(&self) -> bool {
        self.common.scheduler.has_ready()
    }

    /// The next thing the application wants to know.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.common.events.pop_front()
    }

    /// When [`on_timer`](Endpoint::on_timer) wants to be called next. Timers that were put off are not taken out
    /// of the heap, so it may be called earlier than anything happens.
    #[inline]
    pub fn poll_timer(&self) -> Option<Time> {
        self.common.timers.next()
    }

    /// The timer behind [`poll_timer`](Endpoint::poll_timer): whose it is and what for.
    pub fn next_timer(&self) -> Option<(Time, QpNum, TimerKind)> {
        self.common.timers.peek()
    }

    /// Time has come to `now`; fires every timer due. Calling it too early or too often does no harm.
    pub fn on_timer(&mut self, now: Time) {
        self.advance(now);
        while let Some((at, num, kind)) = self.common.timers.pop(now) {
            if let Some(qp) = self.qps.get_mut(num) {
                qp.on_timer(now, at, kind, &mut self.common);
            }
        }
    }

    /// Counts of all queue pairs, destroyed ones included. O(queue pairs).
    pub fn counters(&self) -> Counters {
        let mut total = self.retired;
        self.qps.iter().for_each(|qp| total += &qp.counters);
        total
    }

    /// Counts of one queue pair.
    pub fn qp_counters(&self, qp: QpNum) -> Option<&Counters> {
        self.qps.get(qp).map(|qp| &qp.counters)
    }

    /// The policy of a queue pair, for observers.
    pub fn policy(&self, qp: QpNum) -> Option<&P> {
        self.qps.get(qp).map(|qp| &qp.policy)
    }

    /// Data packets of a queue pair sent and neither acknowledged nor declared lost, and their wire bytes.
    pub fn inflight(&self, qp: QpNum) -> Option<(u32, u64)> {
        self.qps.get(qp).map(|qp| (qp.send.flight.inflight_packets(), qp.send.flight.inflight_bytes()))
    }

    /// For tests: panics unless everything is consistent with itself. O(packets in flight).
    pub fn assert_invariants(&self) {
        self.qps.iter().for_each(|qp| qp.assert_invariants(&self.common));
        assert!(self.common.lost.is_empty(), "every loss has been told");
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time ran backwards: {now} after {}", self.now);
        self.now = now;
    }
}
