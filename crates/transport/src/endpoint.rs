//! Endpoint of reliable connections.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use pathweave_policy::{PathView, PeerKind, Policy};
use pathweave_units::{HostId, PathId, QpNum, Telemetry, Time, TrimmedAt};
use pathweave_wire::{Body, ControlKind, Segment};

use crate::common::EndpointShared;
use crate::config::{EndpointConfig, QpConfig};
use crate::contract::Transport;
use crate::counters::{Counters, OrderCounters};
use crate::credit::Crossing;
use crate::events::Event;
use crate::memory::{MemoryError, MemoryRegion};
use crate::ports::PortChange;
use crate::qp::{Outcome, Qp, Waiting};
use crate::rd::SideMessage;
use crate::scheduler::SchedState;
use crate::send::message::Start;
use crate::slab::{Numbered, Slab, Slot};
use crate::timers::TimerKind;
use crate::transmit::{Class, FreePorts, Placement, Transmit};
use crate::work::{PostError, RecvRequest, WorkRequest};

/// Number that no queue pair has.
const NOBODY: QpNum = QpNum(0);

/// All queue pairs of a host: reliable connections with SEND, WRITE and READ.
///
/// [`Transport`] documents the interface and has an example. A queue pair whose packet was granted for a busy NIC
/// port waits until it is polled with that port open.
///
/// The endpoint never holds payload. A packet that leaves names the position of its bytes ([`Transmit::payload`]),
/// and for a packet that arrives the endpoint returns the position for its bytes ([`Placement`]). A source must keep
/// its bytes until its completion; a destination may be written until its completion, in any order.
///
/// # Example
///
/// Two endpoints, joined by a link without delay:
///
/// ```
/// # use pathweave_policy::{Feedback, Grant, Memo, PathView, Policy, PolicyCx, Sent, SendRequest};
/// # use pathweave_units::{PathId, Rate};
/// use pathweave_transport::{Buffer, Endpoint, EndpointConfig, Event, FreePorts, Op, QpConfig, RecvRequest, WorkRequest};
/// use pathweave_units::{HostId, Time};
///
/// # struct Unlimited;
/// # impl Policy for Unlimited {
/// #     pathweave_policy::ignores!(on_open, on_close, make_control, on_copy_sent, on_control, window, path_beyond_window);
/// #     fn poll_send(&mut self, _: Time, _: &SendRequest, _: &mut PolicyCx<'_>) -> Grant { Grant::Send(PathId(0)) }
/// #     fn on_sent(&mut self, _: Time, _: &Sent, _: &mut PolicyCx<'_>) -> Memo { Memo(0) }
/// #     fn on_feedback(&mut self, _: Time, _: &Feedback, _: &mut PolicyCx<'_>) {}
/// #     fn on_paths(&mut self, _: Time, _: &[PathView], _: &mut PolicyCx<'_>) {}
/// #     fn on_timer(&mut self, _: Time, _: &mut PolicyCx<'_>) {}
/// #     fn next_timer(&self) -> Option<Time> { None }
/// #     fn rate(&self, _: Time) -> Option<Rate> { None }
/// # }
/// let now = Time::ZERO;
/// let mut hosts = [0, 1].map(|host| Endpoint::new(EndpointConfig::new(HostId(host))));
/// let a = hosts[0].create_qp(now, QpConfig::new(HostId(1), Unlimited, &[]));
/// let b = hosts[1].create_qp(now, QpConfig::new(HostId(0), Unlimited, &[]));
/// hosts[0].connect(a, b)?;
/// hosts[1].connect(b, a)?;
///
/// let mut memory = [*b"over the wire", [0; 13]];
/// hosts[1].post_recv(b, RecvRequest { wr_id: 7, buffer: Buffer(0), len: 13 })?;
/// hosts[0].post(now, a, WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 13 })?;
///
/// let mut completed = vec![];
/// loop {
///     let mut quiet = true;
///     for host in 0..2 {
///         while let Some(packet) = hosts[host].poll_transmit(now, FreePorts::OPEN) {
///             quiet = false;
///             let to = packet.to.index();
///             if let Some(place) = hosts[to].on_packet(now, HostId(host as u32), &packet.segment, false) {
///                 let from = packet.payload.expect("only what carries payload is placed").offset as usize;
///                 let (at, len) = (place.offset as usize, usize::from(place.len));
///                 let bytes = memory[host][from..from + len].to_vec();
///                 memory[to][at..at + len].copy_from_slice(&bytes);
///             }
///         }
///         while let Some(event) = hosts[host].poll_event() {
///             if let Event::Completion(completion) = event {
///                 completed.push(completion.wr_id);
///             }
///         }
///     }
///     // A driver with a clock would sleep until the earliest `poll_timer` or the next packet.
///     if quiet {
///         break;
///     }
/// }
/// assert_eq!(completed, [7, 1]);
/// assert_eq!(memory[1], *b"over the wire");
/// # Ok::<(), pathweave_transport::PostError>(())
/// ```
// The order matters: fields that every packet reads are together in the first five cache lines, from `qps` to the
// beginning of `common.memory`.
#[repr(C, align(64))]
pub struct Endpoint<P> {
    qps: Slab<Qp<P>>,
    /// Latest `now` of any call.
    now: Time,
    /// Queue pair at work, if any: the last one that was entered.
    acting: QpNum,
    common: EndpointShared,
    /// Counters of destroyed queue pairs, and of packets that belong to none; allocated when needed.
    retired: Option<Box<Counters>>,
}

impl<P> Endpoint<P> {
    /// Number of cache lines at its beginning that every packet touches.
    pub(crate) const HOT_LINES: usize = 5;
    /// Bytes of a queue pair, without allocations of its own and of its policy.
    pub const QUEUE_PAIR_BYTES: usize = size_of::<Slot<Qp<P>>>();
    /// Bytes that a queue pair keeps for each packet in flight.
    pub const IN_FLIGHT_BYTES: usize = crate::send::flight::SLOT_BYTES;

    /// Bytes of all slots for queue pairs: as many as have existed at a time, rounded up as vectors grow. Allocations
    /// of queue pairs and their policies are not included.
    pub fn queue_pair_bytes(&self) -> u64 {
        self.qps.bytes() as u64
    }
}

impl<P: Policy> Endpoint<P> {
    /// Creates an endpoint without queue pairs. Panics if the configuration is out of range.
    pub fn new(config: EndpointConfig) -> Self {
        Endpoint::with_peers(config, PeerKind::Hosts)
    }

    /// Like [`new`](Endpoint::new), but `peers` defines what the `peer` of a queue pair names.
    pub fn with_peers(config: EndpointConfig, peers: PeerKind) -> Self {
        config.check();
        let common = EndpointShared::new(config, peers);
        Endpoint { common, qps: Slab::new(), now: Time::ZERO, acting: NOBODY, retired: None }
    }

    /// Configuration of the endpoint.
    pub fn config(&self) -> &EndpointConfig {
        &self.common.config
    }

    /// Reports every later retransmission and timeout as an [`Event`]. For observers; counting needs only
    /// [`Endpoint::counters`].
    pub fn report_losses(&mut self) {
        self.common.reports_losses = true;
    }

    /// Gives the policy of a queue pair the telemetry of the packet with this PSN, which the acknowledgement that
    /// follows returns. For simulators: no real network writes any.
    pub fn put_telemetry(&mut self, qp: QpNum, psn: u64, telemetry: Telemetry) {
        self.common.shared.put_telemetry(qp, psn, telemetry);
    }

    /// Creates a queue pair. It sends and receives once [`connect`](Endpoint::connect) names its peer; requests
    /// posted before that wait. Panics if 2^18 - 2 queue pairs exist.
    pub fn create_qp(&mut self, now: Time, config: QpConfig<'_, P>) -> QpNum {
        self.advance(now);
        let common = &mut self.common;
        let num = self
            .qps
            .insert_with(|num| Qp::new(now, num, config, common))
            .expect("at most 262,142 queue pairs a host");
        self.apply_cross_qp_effects(now);
        num
    }

    /// Like [`create_qp`](Endpoint::create_qp), with a number that the caller chooses, 2 to 2^24 - 1, so that the
    /// peer can use it before the queue pair exists. In one endpoint, the caller chooses all numbers or none. Panics
    /// if the number is in use, or if 2^18 - 2 queue pairs exist.
    pub fn create_qp_as(&mut self, now: Time, num: QpNum, config: QpConfig<'_, P>) {
        self.advance(now);
        let common = &mut self.common;
        self.qps
            .insert_as(num, || Qp::new(now, num, config, common))
            .expect("at most 262,142 queue pairs a host");
        self.apply_cross_qp_effects(now);
    }

    /// Applies the result of the handshake of both ends: a policy that replaces the first one, and the payload of a
    /// full packet if the peer accepts less than this endpoint. Must precede posting and
    /// [`connect`](Endpoint::connect). Panics if something was posted, or if `mtu_payload` is outside
    /// [`MIN_MTU_PAYLOAD`](crate::MIN_MTU_PAYLOAD) to the endpoint's own.
    pub fn agree(&mut self, now: Time, num: QpNum, policy: P, mtu_payload: u16) -> Result<(), PostError> {
        self.advance(now);
        let allowed = crate::MIN_MTU_PAYLOAD..=self.common.config.mtu_payload;
        assert!(allowed.contains(&mtu_payload), "mtu_payload is {mtu_payload}; allowed are {allowed:?}");
        let qp = self.qps.get_mut(num).ok_or(PostError::UnknownQp)?;
        self.acting = num;
        self.common.set_mtu_payload(num, Some(mtu_payload));
        qp.take_policy(now, policy, &mut self.common);
        self.apply_cross_qp_effects(now);
        Ok(())
    }

    /// Sets the peer's queue pair. Data flows from now on.
    pub fn connect(&mut self, qp: QpNum, remote: QpNum) -> Result<(), PostError> {
        let qp = self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?;
        qp.connect(remote, &mut self.common);
        Ok(())
    }

    /// Removes a queue pair with all posted requests, without completions. Late packets for it are counted as foreign
    /// and dropped.
    pub fn destroy_qp(&mut self, qp: QpNum) -> Result<(), PostError> {
        self.acting = qp;
        let mut qp = self.qps.remove(qp).ok_or(PostError::UnknownQp)?;
        qp.close(&mut self.common);
        *self.retired.get_or_insert_default().as_mut() += &qp.counters.all();
        self.poll_woken_policies(self.now);
        Ok(())
    }

    /// Returns the queue pair that was entered last since [`act_for`](Endpoint::set_acting_qp). If a call has panicked, the
    /// panic happened in its work.
    pub fn acting(&self) -> Option<QpNum> {
        Some(self.acting).filter(|&acting| acting != NOBODY)
    }

    /// Attributes the following work to this queue pair, or to none, until another one is entered.
    #[inline(always)]
    pub fn set_acting_qp(&mut self, qp: Option<QpNum>) {
        self.acting = qp.unwrap_or(NOBODY);
    }

    /// Recovers from a panic that happened while a queue pair to `peer` was at work: removes all queue pairs to the
    /// peer and returns their numbers.
    ///
    /// Their state is dropped, not used: no policy is called, and the entries of the peer in the stores of policies
    /// and in the lists of outstanding packets are removed. Other peers are not affected.
    pub fn discard_peer(&mut self, peer: HostId) -> Vec<QpNum> {
        let of_peer = self.qps.iter().filter(|qp| qp.peer() == peer);
        let gone: Vec<QpNum> = of_peer.map(Numbered::number).collect();
        for num in &gone {
            if let Some(mut qp) = self.qps.remove(*num) {
                qp.release_shared_state(&mut self.common);
                *self.retired.get_or_insert_default().as_mut() += &qp.counters.all();
            }
        }
        self.common.drop_peer_state(peer);
        self.acting = NOBODY;
        gone
    }

    /// Restarts time at zero, so that the next `now` may be any. Open memory regions stay open. Panics if there are
    /// queue pairs, because they hold times.
    pub fn reset_clock(&mut self) {
        assert!(self.qps.iter().next().is_none(), "queue pairs hold instants of the time that was");
        self.now = Time::ZERO;
        self.common.reset_clock();
    }

    /// Informs a queue pair that paths were added, failed or recovered. Panics if `paths` is empty.
    pub fn set_paths(&mut self, now: Time, qp: QpNum, paths: &[PathView]) -> Result<(), PostError> {
        self.advance(now);
        self.acting = qp;
        let qp = self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?;
        qp.set_paths(now, paths, &mut self.common);
        self.apply_cross_qp_effects(now);
        Ok(())
    }

    /// Applies a change of NIC ports. Queue pairs that waited for one port may then leave by another.
    pub fn change_ports(&mut self, now: Time, change: PortChange) {
        self.advance(now);
        self.common.port_table().change(change);
        for num in self.common.scheduler.take_waiting() {
            if let Some(qp) = self.qps.get_mut(num).filter(|qp| qp.turn == SchedState::Port) {
                self.common.scheduler.ready(&mut qp.turn, num);
            }
        }
    }

    /// Declares all packets in flight on dead paths lost, so that they are retransmitted at once instead of after the
    /// retransmission timer. With go-back-N the timer still decides, because the receiver would refuse packets behind
    /// the retransmitted ones. The policy is not informed of the paths.
    pub fn abandon(&mut self, now: Time, qp: QpNum, paths: &[PathId]) -> Result<(), PostError> {
        self.advance(now);
        self.acting = qp;
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.abandon(now, paths, &mut self.common);
        self.apply_cross_qp_effects(now);
        Ok(())
    }

    /// Appends a work request. Its completion is an [`Event`], successful or not.
    ///
    /// Requests of a queue pair complete in the order in which they were posted. To the peer's memory it is as if
    /// each were carried out before the next. WRITEs to the same bytes under one key leave the bytes of the last one.
    /// A READ sees the bytes of WRITEs before it and none of those after it.
    ///
    /// Packets may take several paths and are placed as they arrive. Therefore a WRITE that overlaps an earlier WRITE
    /// or READ in progress is held back until that is complete, and requests posted behind it wait as well.
    /// [`post_fenced`](Endpoint::post_fenced) covers other dependencies.
    pub fn post(&mut self, now: Time, qp: QpNum, request: WorkRequest) -> Result<(), PostError> {
        self.advance(now);
        self.acting = qp;
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.post(&request, Start::InTurn, &mut self.common)
    }

    /// Like [`post`](Endpoint::post), behind a fence: the request starts when every request posted before it to this
    /// queue pair is complete. Needed for dependencies that [`post`](Endpoint::post) does not cover: memory of the
    /// peer that is registered under several keys, and local memory that a READ fills and a later request sends.
    pub fn post_fenced(&mut self, now: Time, qp: QpNum, request: WorkRequest) -> Result<(), PostError> {
        self.advance(now);
        self.acting = qp;
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.post(&request, Start::AfterAll, &mut self.common)
    }

    /// Appends a buffer for one message of the peer.
    pub fn post_recv(&mut self, qp: QpNum, request: RecvRequest) -> Result<(), PostError> {
        self.acting = qp;
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.post_recv(request)
    }

    /// Opens memory to the peers of the queue pairs of its scope, and returns the key by which they name it. A packet
    /// with a wrong key or from another queue pair is refused; the refusal does not reveal which of the two was
    /// wrong.
    ///
    /// The bits of `secret` above the lowest 24 go into the key. A driver that does not trust its peers passes random
    /// ones, new for each region; with 0, keys can be guessed. In either case no key is reused for a long time.
    pub fn register(&mut self, region: MemoryRegion, secret: u64) -> Result<u64, MemoryError> {
        self.common.memory.register(region, secret)
    }

    /// Like [`register`](Endpoint::register), with a key from the driver's [`Keys`](crate::Keys). All keys of this
    /// endpoint must then come from there.
    pub fn register_as(&mut self, region: MemoryRegion, rkey: u64) -> Result<(), MemoryError> {
        self.common.memory.register_as(region, rkey)
    }

    /// Closes memory to new requests. READs that are being answered continue, and prevent
    /// [deregistration](Endpoint::deregister) until they end.
    pub fn revoke(&mut self, rkey: u64) -> Result<(), MemoryError> {
        self.common.memory.revoke(rkey)
    }

    /// Returns true if a READ of the region is being answered.
    pub fn is_read(&self, rkey: u64) -> bool {
        self.common.memory.is_read(rkey)
    }

    /// Closes memory. Fails while a READ of it is being answered.
    pub fn deregister(&mut self, rkey: u64) -> Result<(), MemoryError> {
        self.common.memory.deregister(rkey)
    }

    /// Processes a packet that has arrived. `ce`: the packet carried Congestion Experienced. Returns the position for
    /// its payload, or `None` for packets without payload, duplicates, refused packets, and queue pairs that discard
    /// messages.
    #[inline]
    pub fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<Placement> {
        self.advance(now);
        let qp = match self.qps.get_mut(segment.dst_qp) {
            Some(qp) if qp.is_peer(from, segment.src_qp) => qp,
            _ => {
                self.retired.get_or_insert_default().foreign += 1;
                return None;
            }
        };
        if qp.has_failed() {
            return None;
        }
        self.acting = segment.dst_qp;
        let common = &mut self.common;
        let crossing = Crossing::Whole { marked: ce };
        if qp.has_credit() && qp.on_credit_info(now, from, segment, crossing, common) {
            self.apply_cross_qp_effects(now);
            return None;
        }
        match &segment.body {
            Body::Data(data) => return qp.on_data(now, data, segment.path, ce, common),
            Body::Ack(ack) => qp.on_ack(now, ack, segment.path, common),
            Body::Nack(nack) => qp.on_nack(now, nack, segment.path, common),
            Body::Cnp => qp.on_cnp(now, segment.path, common),
            // A connection has no datagrams.
            Body::Rd(_) => self.retired.get_or_insert_default().foreign += 1,
            Body::Missing(missing) => qp.on_missing(now, missing, common),
            Body::Control(control) => qp.on_control(now, control, segment.path, ce, common),
        }
        self.apply_cross_qp_effects(now);
        None
    }

    /// Processes the header of a data packet that a switch has trimmed. `ce`: it carried Congestion Experienced.
    pub fn on_trimmed(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool, at: TrimmedAt) {
        self.advance(now);
        let (qp, data) = match (self.qps.get_mut(segment.dst_qp), &segment.body) {
            (Some(qp), Body::Data(data)) if qp.is_peer(from, segment.src_qp) => (qp, data),
            _ => {
                self.retired.get_or_insert_default().foreign += 1;
                return;
            }
        };
        if qp.has_failed() {
            return;
        }
        self.acting = segment.dst_qp;
        if qp.has_credit() {
            let _data = qp.on_credit_info(now, from, segment, Crossing::Trimmed(at), &mut self.common);
        }
        qp.on_trimmed(now, data, segment.path, ce, at, &mut self.common);
    }

    /// Returns the next packet to send now: control before data, and data only by NIC ports that are free in `gate`.
    /// Data packets are stamped with `now`, so call it when the packet can really leave.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, gate: FreePorts) -> Option<Transmit> {
        self.advance(now);
        let mut packet = None;
        if !self.send_control(|control| packet = Some(control)) && gate.data_ports != 0 {
            self.send_data(now, gate, |data| packet = Some(data));
        }
        packet
    }

    /// Returns true if there are control packets to send. They may leave at any time. If there are none and no port
    /// is free for data, polling is unnecessary.
    #[inline(always)]
    pub fn has_control(&self) -> bool {
        !self.common.control.is_empty()
    }

    /// Like [`poll_transmit`](Endpoint::poll_transmit) for control packets only. Passes the packet to `send`. Returns
    /// false if there is none.
    #[inline(always)]
    pub fn send_control(&mut self, send: impl FnOnce(Transmit)) -> bool {
        let EndpointShared { config, sizes, .. } = &self.common;
        let Some((to, segment)) = self.common.control.first() else { return false };
        self.acting = segment.src_qp;
        if matches!(segment.body, Body::Missing(_))
            && let Some(qp) = self.qps.get_mut(segment.src_qp)
        {
            qp.report_left();
        }
        send(Transmit {
            to: *to,
            port: self.common.ports_to(*to).port_of(segment.path),
            // A probe of loss recovery must queue in the network like data.
            class: if is_recovery_probe(&segment.body) { Class::Data } else { Class::Control },
            ecn_capable: false,
            wire_bytes: sizes.of_control(config.framing, segment),
            segment: *segment,
            payload: None,
        });
        self.common.control.drop_first();
        true
    }

    /// Like [`poll_transmit`](Endpoint::poll_transmit) for data packets only, to be called when there is no control
    /// packet. Passes the packet to `send`, so that it is built in its final place. Returns false if there is none.
    #[inline(always)]
    pub fn send_data(&mut self, now: Time, gate: FreePorts, send: impl FnOnce(Transmit)) -> bool {
        self.advance(now);
        loop {
            let Some(num) = self.common.scheduler.next(gate) else { return false };
            // The queue pair was destroyed after it was queued.
            let Some(qp) = self.qps.get_mut(num) else { continue };
            self.acting = num;
            match qp.grant(now, gate, &mut self.common) {
                Outcome::Send(granted) => {
                    qp.commit(now, &granted, &mut self.common, send);
                    self.poll_woken_policies(now);
                    return true;
                }
                Outcome::Copy(psn, path) => {
                    send(qp.copy(now, psn, path, &mut self.common));
                    return true;
                }
                Outcome::Control(path) => {
                    send(qp.compose(now, path, &mut self.common));
                    return true;
                }
                Outcome::Ports(ports) => self.common.scheduler.wait_for(&mut qp.turn, num, ports),
                Outcome::Nothing => {}
            }
        }
    }

    /// Returns true if a queue pair may have data to send once a NIC port is free. If not, only a packet, a timer or
    /// a request can change that.
    #[inline]
    pub fn has_ready_data(&self) -> bool {
        self.common.scheduler.has_ready()
    }

    /// Returns the slot of the queue pair without reading it.
    #[inline]
    pub(crate) fn slot_of(&self, qp: QpNum) -> Option<&Slot<Qp<P>>> {
        self.qps.slot(qp)
    }

    /// Next queue pair of the scheduler.
    pub(crate) fn next_ready(&self) -> Option<QpNum> {
        self.common.scheduler.peek()
    }

    /// Returns true if [`poll_event`](Endpoint::poll_event) has an event.
    #[inline(always)]
    pub fn has_event(&self) -> bool {
        !self.common.events.is_empty()
    }

    /// Returns the next event for the application.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.common.events.pop_front()
    }

    /// Time at which [`on_timer`](Endpoint::on_timer) must be called next. That call may find nothing to do, because
    /// postponed timers stay in the heap.
    #[inline]
    pub fn poll_timer(&self) -> Option<Time> {
        self.common.timers.next()
    }

    /// Timer behind [`poll_timer`](Endpoint::poll_timer): its time, queue pair and kind.
    pub fn next_timer(&self) -> Option<(Time, QpNum, TimerKind)> {
        self.common.timers.peek()
    }

    /// Advances time to `now` and fires every timer that is due. Earlier or additional calls do no harm.
    pub fn on_timer(&mut self, now: Time) {
        self.advance(now);
        while let Some((at, num, kind)) = self.common.timers.pop(now) {
            if kind == TimerKind::PathOrder {
                self.on_path_timer(now, at);
            } else if kind == TimerKind::Credit {
                self.on_credit_timer(now, at);
            } else if let Some(qp) = self.qps.get_mut(num) {
                self.acting = num;
                qp.on_timer(now, at, kind, &mut self.common);
            }
        }
        self.poll_woken_policies(now);
    }

    /// Applies the effects that the work of one queue pair has on others.
    #[inline(always)]
    fn apply_cross_qp_effects(&mut self, now: Time) {
        if self.common.rings().is_some() {
            self.dispatch_suspects(now);
        }
        self.poll_woken_policies(now);
    }

    /// Informs queue pairs of packets that the order on their paths shows to be lost.
    fn dispatch_suspects(&mut self, now: Time) {
        while let Some(suspect) = self.common.rings_mut().and_then(crate::recovery::Rings::take_suspect) {
            if let Some(qp) = self.qps.get_mut(suspect.of.qp) {
                self.acting = suspect.of.qp;
                qp.on_suspect(now, &suspect, &mut self.common);
            }
        }
    }

    /// Handles the timer of path order.
    #[cold]
    fn on_path_timer(&mut self, now: Time, at: Time) {
        let Some(rings) = self.common.rings_mut() else { return };
        if rings.armed != at {
            return;
        }
        rings.armed = Time::MAX;
        let qps = &self.qps;
        rings.expire(now, |of| {
            qps.get(of.qp).is_some_and(|qp| qp.send.flight.is_outstanding(of.psn, of.sent_at))
        });
        self.dispatch_suspects(now);
        self.common.arm_rings();
    }

    /// Creates the grants that are due, and lets queue pairs request credit.
    #[cold]
    fn on_credit_timer(&mut self, now: Time, at: Time) {
        match &mut self.common.credit {
            Some(credit) if credit.armed == at => credit.armed = Time::MAX,
            _ => return,
        }
        self.common.grant_credit(now);
        while let Some(num) = self.common.credit.as_mut().and_then(|credit| credit.take_due(now)) {
            if let Some(qp) = self.qps.get_mut(num) {
                self.acting = num;
                qp.on_asking_due(now, &mut self.common);
            }
        }
        self.common.arm_credit();
    }

    /// Polls queue pairs that the policy of another queue pair has woken.
    #[inline(always)]
    fn poll_woken_policies(&mut self, now: Time) {
        if self.common.shared.has_poll_requests() {
            self.ask_all_woken(now);
        }
    }

    #[cold]
    fn ask_all_woken(&mut self, now: Time) {
        while let Some(num) = self.common.shared.take_poll_requests() {
            if let Some(qp) = self.qps.get_mut(num) {
                self.acting = num;
                qp.repoll_policy(now, &mut self.common);
            }
        }
    }

    /// Sums the counters of all queue pairs, destroyed ones included. O(queue pairs).
    pub fn counters(&self) -> Counters {
        let mut total = self.retired.as_deref().copied().unwrap_or_default();
        self.qps.iter().for_each(|qp| total += &qp.counters.all());
        total
    }

    /// Counters of one queue pair.
    pub fn qp_counters(&self, qp: QpNum) -> Option<Counters> {
        self.qps.get(qp).map(|qp| qp.counters.all())
    }

    /// PSNs of a message that a queue pair sends, until its completion has been reported.
    pub fn psns_of(&self, qp: QpNum, msn: u32) -> Option<Range<u64>> {
        self.qps.get(qp).and_then(|qp| qp.send.psns_of(msn))
    }

    /// Lower bound of the number of packets of these PSNs that have yet to reach a queue pair.
    pub fn missing_of(&self, qp: QpNum, psns: Range<u64>) -> Option<u64> {
        let qp = self.qps.get(qp)?;
        let first = psns.start.max(qp.receive.recovery.expected());
        Some(psns.end.saturating_sub(first).saturating_sub(qp.receive.recovery.held()))
    }

    /// Counters of copies, notices and gaps of a queue pair; zeros if it has none of these.
    pub fn order_counters(&self, qp: QpNum) -> Option<OrderCounters> {
        self.qps.get(qp).map(|qp| qp.order.as_deref().copied().unwrap_or_default())
    }

    /// Number of packets that a queue pair holds ahead of a gap.
    pub fn held_ahead(&self, qp: QpNum) -> Option<u64> {
        self.qps.get(qp).map(|qp| qp.receive.recovery.held())
    }

    /// Returns true if a queue pair has data in flight, or new or lost data to send.
    pub fn is_busy(&self, qp: QpNum) -> Option<bool> {
        self.qps.get(qp).map(|qp| qp.send.backlogged() || qp.send.flight.inflight_packets() > 0)
    }

    /// Reason why a queue pair with messages in progress waits; `None` without such messages. For observers.
    pub fn waiting(&self, qp: QpNum) -> Option<Waiting> {
        self.qps.get(qp).and_then(Qp::waiting)
    }

    /// Numbers of the messages that a queue pair has in progress. For observers.
    pub fn under_way(&self, qp: QpNum) -> Range<u32> {
        self.qps.get(qp).map_or(0..0, |qp| qp.send.msns_under_way())
    }

    /// Policy of a queue pair, for observers.
    pub fn policy(&self, qp: QpNum) -> Option<&P> {
        self.qps.get(qp).map(|qp| &*qp.policy)
    }

    /// Data packets of a queue pair that are sent and neither acknowledged nor declared lost, and their wire bytes.
    pub fn inflight(&self, qp: QpNum) -> Option<(u32, u64)> {
        self.qps.get(qp).map(|qp| (qp.send.flight.inflight_packets(), qp.send.flight.inflight_bytes()))
    }

    /// Number of different paths of the data packets that a queue pair has in flight. `room` is scratch space, which
    /// saves an allocation. For observers: O(packets in flight).
    pub fn paths_in_flight(&self, qp: QpNum, room: &mut Vec<PathId>) -> Option<usize> {
        self.qps.get(qp).map(|qp| {
            qp.send.flight.paths(room);
            room.len()
        })
    }

    /// Panics unless all state is consistent. For tests: O(packets in flight).
    pub fn assert_invariants(&self) {
        self.qps.iter().for_each(|qp| qp.assert_invariants(&self.common));
        assert!(self.common.lost.is_empty(), "every loss has been told");
        if let Some(credit) = &self.common.credit {
            credit.assert_invariants();
        }
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time ran backwards: {now} after {}", self.now);
        self.now = now;
    }
}

/// Returns true for probes of loss recovery. Questions of policies leave with data.
fn is_recovery_probe(body: &Body) -> bool {
    matches!(body, Body::Control(control) if control.kind() == ControlKind::Probe)
}

impl<P: Policy> Transport for Endpoint<P> {
    type Event = Event;
    type Placement = Placement;
    type Counters = Counters;

    #[inline]
    fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<Placement> {
        Endpoint::on_packet(self, now, from, segment, ce)
    }

    /// A connection has no side channel.
    fn on_side(&mut self, now: Time, _from: HostId, _message: &SideMessage) {
        self.advance(now);
        self.retired.get_or_insert_default().foreign += 1;
    }

    fn on_timer(&mut self, now: Time) {
        Endpoint::on_timer(self, now);
    }

    #[inline]
    fn poll_timer(&self) -> Option<Time> {
        Endpoint::poll_timer(self)
    }

    #[inline(always)]
    fn has_event(&self) -> bool {
        Endpoint::has_event(self)
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        Endpoint::poll_event(self)
    }

    #[inline(always)]
    fn poll_side(&mut self) -> Option<(HostId, SideMessage)> {
        None
    }

    #[inline(always)]
    fn has_control(&self) -> bool {
        Endpoint::has_control(self)
    }

    #[inline(always)]
    fn send_control(&mut self, send: impl FnOnce(Transmit)) -> bool {
        Endpoint::send_control(self, send)
    }

    #[inline(always)]
    fn has_ready_data(&self) -> bool {
        Endpoint::has_ready_data(self)
    }

    #[inline(always)]
    fn send_data(&mut self, now: Time, gate: FreePorts, send: impl FnOnce(Transmit)) -> bool {
        Endpoint::send_data(self, now, gate, send)
    }

    fn items_in_progress(&self) -> u64 {
        self.qps.iter().map(|qp| qp.send.under_way() + qp.receive.recovery.held()).sum()
    }

    fn counters(&self) -> Counters {
        Endpoint::counters(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::LINE_BYTES;
    use crate::memory::Memory;
    use core::mem::offset_of;

    #[test]
    fn fields_read_for_every_packet_share_cache_lines() {
        let hot = offset_of!(Endpoint<()>, common.memory) + Memory::HOT_BYTES;
        assert!(hot <= Endpoint::<()>::HOT_LINES * LINE_BYTES, "{hot} bytes");
    }
}
