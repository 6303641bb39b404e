//! The endpoint.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use pathweave_policy::{PathView, Peers, Policy};
use pathweave_units::{HostId, PathId, QpNum, Time, TrimmedAt};
use pathweave_wire::{Body, ControlKind, Segment};

use crate::common::Common;
use crate::config::{EndpointConfig, QpConfig};
use crate::contract::Transport;
use crate::counters::{Counters, OrderCounters};
use crate::credit::Crossing;
use crate::events::Event;
use crate::memory::{MemoryError, MemoryRegion};
use crate::ports::PortChange;
use crate::qp::{Outcome, Qp, Waiting};
use crate::rd::SideMessage;
use crate::scheduler::Turn;
use crate::send::message::Start;
use crate::slab::{Numbered, Slab, Slot};
use crate::timers::TimerKind;
use crate::transmit::{Class, Gate, Placement, Transmit};
use crate::work::{PostError, RecvRequest, WorkRequest};

/// The number of no queue pair.
const NOBODY: QpNum = QpNum(0);

/// All queue pairs of a host: reliable connections that speak SEND, WRITE and READ.
///
/// [`Transport`] documents how it is driven, and has an example. A queue pair that was granted a packet for a busy NIC port
/// waits until it is polled with that port open.
///
/// The endpoint never holds payload: what it sends names where the bytes are ([`Transmit::payload`]), and what arrives is
/// answered with where they go ([`Placement`]). A source must keep its bytes until its completion; a destination may be
/// written until its completion, in any order.
///
/// # Example
///
/// Two endpoints, joined by a wire that takes no time:
///
/// ```
/// # use pathweave_policy::{Feedback, Grant, Memo, PathView, Policy, PolicyCx, Sent, Want};
/// # use pathweave_units::{PathId, Rate};
/// use pathweave_transport::{Buffer, Endpoint, EndpointConfig, Event, Gate, Op, QpConfig, RecvRequest, WorkRequest};
/// use pathweave_units::{HostId, Time};
///
/// # struct Unlimited;
/// # impl Policy for Unlimited {
/// #     pathweave_policy::ignores!(on_open, on_close, compose, on_copy_sent, on_control, window, path_beyond_window);
/// #     fn poll_send(&mut self, _: Time, _: &Want, _: &mut PolicyCx<'_>) -> Grant { Grant::Send(PathId(0)) }
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
///         while let Some(packet) = hosts[host].poll_transmit(now, Gate::OPEN) {
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
// The order matters: what every packet looks at is together in the first five cache lines, from `qps` to the beginning
// of `common.memory`.
#[repr(C, align(64))]
pub struct Endpoint<P> {
    qps: Slab<Qp<P>>,
    /// Latest instant told.
    now: Time,
    /// The queue pair at work, if any: the last one that was entered.
    acting: QpNum,
    common: Common,
    /// Counts of destroyed queue pairs, and of packets that belong to none; allocated when there are any.
    retired: Option<Box<Counters>>,
}

impl<P> Endpoint<P> {
    /// Cache lines at its beginning that any packet touches.
    pub(crate) const HOT_LINES: usize = 5;
    /// Bytes of a queue pair, without what it and its policy allocate.
    pub const QUEUE_PAIR_BYTES: usize = size_of::<Slot<Qp<P>>>();
    /// Bytes that a queue pair keeps of a packet in flight.
    pub const IN_FLIGHT_BYTES: usize = crate::send::flight::SLOT_BYTES;

    /// Bytes of the places for queue pairs: as many as have existed at a time, rounded up as vectors grow. What queue pairs
    /// and their policies allocate is not in it.
    pub fn queue_pair_bytes(&self) -> u64 {
        self.qps.bytes() as u64
    }
}

impl<P: Policy> Endpoint<P> {
    /// An endpoint without queue pairs. Panics if the configuration is out of range.
    pub fn new(config: EndpointConfig) -> Self {
        Endpoint::with_peers(config, Peers::Hosts)
    }

    /// As [`new`](Endpoint::new), where the `peer` of a queue pair names what `peers` says.
    pub fn with_peers(config: EndpointConfig, peers: Peers) -> Self {
        config.check();
        let common = Common::new(config, peers);
        Endpoint { common, qps: Slab::new(), now: Time::ZERO, acting: NOBODY, retired: None }
    }

    /// What it was made with.
    pub fn config(&self) -> &EndpointConfig {
        &self.common.config
    }

    /// Has every retransmission and timeout told from now on, each as an [`Event`]. For observers: who counts needs no
    /// more than [`Endpoint::counters`].
    pub fn report_losses(&mut self) {
        self.common.reports_losses = true;
    }

    /// Makes a queue pair. It receives and sends once [`connect`](Endpoint::connect) names its other end; what is
    /// posted before waits. Panics if 2^18 - 2 queue pairs exist.
    pub fn create_qp(&mut self, now: Time, config: QpConfig<'_, P>) -> QpNum {
        self.advance(now);
        let common = &mut self.common;
        let num = self
            .qps
            .insert_with(|num| Qp::new(now, num, config, common))
            .expect("at most 262,142 queue pairs a host");
        self.settle(now);
        num
    }

    /// As [`create_qp`](Endpoint::create_qp), by a number of the caller's choice, 2 to 2^24 - 1, so that another end can
    /// name it before it exists. An endpoint's queue pairs are all numbered by the caller, or none is. Panics if the number
    /// is in use, or if 2^18 - 2 queue pairs exist.
    pub fn create_qp_as(&mut self, now: Time, num: QpNum, config: QpConfig<'_, P>) {
        self.advance(now);
        let common = &mut self.common;
        self.qps
            .insert_as(num, || Qp::new(now, num, config, common))
            .expect("at most 262,142 queue pairs a host");
        self.settle(now);
    }

    /// What the ends of a queue pair have agreed on, before anything is posted and before
    /// [`connect`](Endpoint::connect): its policy, in place of the one it was made with, and the payload of a full packet
    /// where the other end takes less than this endpoint does. Panics if something was posted, or if `mtu_payload` is not
    /// from [`MIN_MTU_PAYLOAD`](crate::MIN_MTU_PAYLOAD) up to the endpoint's own.
    pub fn agree(&mut self, now: Time, num: QpNum, policy: P, mtu_payload: u16) -> Result<(), PostError> {
        self.advance(now);
        let allowed = crate::MIN_MTU_PAYLOAD..=self.common.config.mtu_payload;
        assert!(allowed.contains(&mtu_payload), "mtu_payload is {mtu_payload}; allowed are {allowed:?}");
        let qp = self.qps.get_mut(num).ok_or(PostError::UnknownQp)?;
        self.acting = num;
        self.common.set_mtu_payload(num, Some(mtu_payload));
        qp.take_policy(now, policy, &mut self.common);
        self.settle(now);
        Ok(())
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
        self.acting = qp;
        let mut qp = self.qps.remove(qp).ok_or(PostError::UnknownQp)?;
        qp.close(&mut self.common);
        *self.retired.get_or_insert_default().as_mut() += &qp.counters.all();
        self.ask_woken(self.now);
        Ok(())
    }

    /// The queue pair that was entered last, since [`act_for`](Endpoint::act_for): whose work it was if a call has panicked.
    pub fn acting(&self) -> Option<QpNum> {
        Some(self.acting).filter(|&acting| acting != NOBODY)
    }

    /// What follows is the work of this queue pair, or of none, until another one is entered.
    #[inline(always)]
    pub fn act_for(&mut self, qp: Option<QpNum>) {
        self.acting = qp.unwrap_or(NOBODY);
    }

    /// A call has panicked while a queue pair to `peer` was at work. All queue pairs to it are removed, and what the
    /// endpoint has of them is dropped rather than used: no policy is called, and what the stores of policies and the
    /// lists of outstanding packets have of the peer goes, too. Other peers notice nothing. Returns who is gone.
    pub fn discard_peer(&mut self, peer: HostId) -> Vec<QpNum> {
        let of_peer = self.qps.iter().filter(|qp| qp.peer() == peer);
        let gone: Vec<QpNum> = of_peer.map(Numbered::number).collect();
        for num in &gone {
            if let Some(mut qp) = self.qps.remove(*num) {
                qp.abandon_shares(&mut self.common);
                *self.retired.get_or_insert_default().as_mut() += &qp.counters.all();
            }
        }
        self.common.forget(peer);
        self.acting = NOBODY;
        gone
    }

    /// Time begins anew at zero: the next `now` may be any. Memory that is open stays so. Panics if there are queue
    /// pairs, which hold instants.
    pub fn begin_anew(&mut self) {
        assert!(self.qps.iter().next().is_none(), "queue pairs hold instants of the time that was");
        self.now = Time::ZERO;
        self.common.begin_anew();
    }

    /// Paths were added, failed or came back. Panics if `paths` is empty.
    pub fn set_paths(&mut self, now: Time, qp: QpNum, paths: &[PathView]) -> Result<(), PostError> {
        self.advance(now);
        self.acting = qp;
        let qp = self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?;
        qp.set_paths(now, paths, &mut self.common);
        self.settle(now);
        Ok(())
    }

    /// Takes in what has become of NIC ports: what waited for one may leave by another.
    pub fn change_ports(&mut self, now: Time, change: PortChange) {
        self.advance(now);
        self.common.port_table().change(change);
        for num in self.common.scheduler.take_waiting() {
            if let Some(qp) = self.qps.get_mut(num).filter(|qp| qp.turn == Turn::Port) {
                self.common.scheduler.ready(&mut qp.turn, num);
            }
        }
    }

    /// These paths are dead, as the driver has found out: what is in flight on them is lost, and
    /// sent again at once instead of when the retransmission timer says so. With go-back-N that still waits for the
    /// timer, since what came after it would be refused. Does not tell the policy of the paths.
    pub fn abandon(&mut self, now: Time, qp: QpNum, paths: &[PathId]) -> Result<(), PostError> {
        self.advance(now);
        self.acting = qp;
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.abandon(now, paths, &mut self.common);
        self.settle(now);
        Ok(())
    }

    /// Appends a work request. Its completion comes as an [`Event`], successful or not.
    ///
    /// Requests of a queue pair complete in the order in which they were posted. To the other end's memory it is as if
    /// each were carried out before the next: WRITEs to the same bytes under one key leave what the last of them wrote, and
    /// a READ sees what WRITEs before it wrote and nothing of those behind it. Since packets may take several paths and
    /// be placed as they arrive, a WRITE that overlaps an earlier WRITE or READ under way is held back until that is
    /// complete, and what is posted behind it waits as well. [`post_fenced`](Endpoint::post_fenced) is for the rest.
    pub fn post(&mut self, now: Time, qp: QpNum, request: WorkRequest) -> Result<(), PostError> {
        self.advance(now);
        self.acting = qp;
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.post(&request, Start::InTurn, &mut self.common)
    }

    /// As [`post`](Endpoint::post), behind a fence: the request starts when every request posted before it to this queue
    /// pair is complete. For what the order of [`post`](Endpoint::post) does not cover: memory of the other end that is
    /// registered under several keys, and local memory that a READ fills and a later request sends.
    pub fn post_fenced(&mut self, now: Time, qp: QpNum, request: WorkRequest) -> Result<(), PostError> {
        self.advance(now);
        self.acting = qp;
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.post(&request, Start::AfterAll, &mut self.common)
    }

    /// Appends a buffer for one message of the other end.
    pub fn post_recv(&mut self, qp: QpNum, request: RecvRequest) -> Result<(), PostError> {
        self.acting = qp;
        self.qps.get_mut(qp).ok_or(PostError::UnknownQp)?.post_recv(request)
    }

    /// Opens memory to the other ends of the queue pairs of its scope; they name it by the key returned. A packet that
    /// names another key, or comes from elsewhere, is refused, and is not told which of the two it was.
    ///
    /// The bits of `secret` above the lowest 24 go into the key. A driver whose other ends are not trusted passes
    /// random ones, new for each region; with 0 keys can be guessed. No key is given again for a long time either way.
    pub fn register(&mut self, region: MemoryRegion, secret: u64) -> Result<u64, MemoryError> {
        self.common.memory.register(region, secret)
    }

    /// As [`register`](Endpoint::register), with a key of the driver's [`Keys`](crate::Keys), from which all keys of this
    /// endpoint come then.
    pub fn register_as(&mut self, region: MemoryRegion, rkey: u64) -> Result<(), MemoryError> {
        self.common.memory.register_as(region, rkey)
    }

    /// Closes memory to all that is asked from now on; READs that are being answered go on, and keep it from being
    /// [deregistered](Endpoint::deregister).
    pub fn revoke(&mut self, rkey: u64) -> Result<(), MemoryError> {
        self.common.memory.revoke(rkey)
    }

    /// True if a READ of memory is being answered.
    pub fn is_read(&self, rkey: u64) -> bool {
        self.common.memory.is_read(rkey)
    }

    /// Closes memory. Fails while a READ of it is being answered.
    pub fn deregister(&mut self, rkey: u64) -> Result<(), MemoryError> {
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
        if qp.has_credit() && qp.hear_of_credit(now, from, segment, crossing, common) {
            self.settle(now);
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
        self.settle(now);
        None
    }

    /// The header of a data packet has arrived, whose payload a switch had no room for; `ce`: marked Congestion Experienced.
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
            let _data = qp.hear_of_credit(now, from, segment, Crossing::Trimmed(at), &mut self.common);
        }
        qp.on_trimmed(now, data, segment.path, ce, at, &mut self.common);
    }

    /// The next packet to send now: control before data, data only by NIC ports that `gate` says are free. Data
    /// packets are stamped with `now`, so ask when the packet can really leave.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, gate: Gate) -> Option<Transmit> {
        self.advance(now);
        let mut packet = None;
        if !self.send_control(|control| packet = Some(control)) && gate.data_ports != 0 {
            self.send_data(now, gate, |data| packet = Some(data));
        }
        packet
    }

    /// Whether there are control packets to send. They may leave at any time, so who knows that there are none and that
    /// no port is free for data need not poll.
    #[inline(always)]
    pub fn has_control(&self) -> bool {
        !self.common.control.is_empty()
    }

    /// As [`poll_transmit`](Endpoint::poll_transmit), control packets only; the packet is handed to `send`. False if
    /// there is none.
    #[inline(always)]
    pub fn send_control(&mut self, send: impl FnOnce(Transmit)) -> bool {
        let Common { config, sizes, .. } = &self.common;
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
            // A probe of loss recovery meets what data meets.
            class: if is_question(&segment.body) { Class::Data } else { Class::Control },
            ecn_capable: false,
            wire_bytes: sizes.of_control(config.framing, segment),
            segment: *segment,
            payload: None,
        });
        self.common.control.drop_first();
        true
    }

    /// As [`poll_transmit`](Endpoint::poll_transmit), data packets only, for when there is no control packet; the packet
    /// is handed to `send`, so that it is made where it is to be. False if there is none.
    #[inline(always)]
    pub fn send_data(&mut self, now: Time, gate: Gate, send: impl FnOnce(Transmit)) -> bool {
        self.advance(now);
        loop {
            let Some(num) = self.common.scheduler.next(gate) else { return false };
            // Destroyed since it was queued.
            let Some(qp) = self.qps.get_mut(num) else { continue };
            self.acting = num;
            match qp.grant(now, gate, &mut self.common) {
                Outcome::Send(granted) => {
                    send(qp.commit(now, &granted, &mut self.common));
                    self.ask_woken(now);
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

    /// Whether a queue pair may have data to send once a NIC port is free. When not, only a packet, a timer or a
    /// request can change that.
    #[inline]
    pub fn has_ready_data(&self) -> bool {
        self.common.scheduler.has_ready()
    }

    /// Where the queue pair is, if it is; nothing of it is read.
    #[inline]
    pub(crate) fn place_of(&self, qp: QpNum) -> Option<&Slot<Qp<P>>> {
        self.qps.place(qp)
    }

    /// The queue pair whose turn it is.
    pub(crate) fn next_ready(&self) -> Option<QpNum> {
        self.common.scheduler.peek()
    }

    /// Whether [`poll_event`](Endpoint::poll_event) has something to tell.
    #[inline(always)]
    pub fn has_event(&self) -> bool {
        !self.common.events.is_empty()
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
            if kind == TimerKind::PathOrder {
                self.on_path_timer(now, at);
            } else if kind == TimerKind::Credit {
                self.on_credit_timer(now, at);
            } else if let Some(qp) = self.qps.get_mut(num) {
                self.acting = num;
                qp.on_timer(now, at, kind, &mut self.common);
            }
        }
        self.ask_woken(now);
    }

    /// What one queue pair has found out concerns others.
    #[inline(always)]
    fn settle(&mut self, now: Time) {
        if self.common.rings().is_some() {
            self.tell_suspects(now);
        }
        self.ask_woken(now);
    }

    /// Tells queue pairs of packets that the order on their paths shows to be lost.
    fn tell_suspects(&mut self, now: Time) {
        while let Some(suspect) =
            self.common.rings_mut().and_then(crate::recovery::path_order::Rings::take_suspect)
        {
            if let Some(qp) = self.qps.get_mut(suspect.of.qp) {
                self.acting = suspect.of.qp;
                qp.on_suspect(now, &suspect, &mut self.common);
            }
        }
    }

    /// The time of some path has come.
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
        self.tell_suspects(now);
        self.common.arm_rings();
    }

    /// It is time for a grant, or for a queue pair to ask for credit.
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

    /// Queue pairs of which the policy of another says that something has changed for them.
    #[inline(always)]
    fn ask_woken(&mut self, now: Time) {
        if self.common.shared.has_woken() {
            self.ask_all_woken(now);
        }
    }

    #[cold]
    fn ask_all_woken(&mut self, now: Time) {
        while let Some(num) = self.common.shared.take_woken() {
            if let Some(qp) = self.qps.get_mut(num) {
                self.acting = num;
                qp.ask_again(now, &mut self.common);
            }
        }
    }

    /// Counts of all queue pairs, destroyed ones included. O(queue pairs).
    pub fn counters(&self) -> Counters {
        let mut total = self.retired.as_deref().copied().unwrap_or_default();
        self.qps.iter().for_each(|qp| total += &qp.counters.all());
        total
    }

    /// Counts of one queue pair.
    pub fn qp_counters(&self, qp: QpNum) -> Option<Counters> {
        self.qps.get(qp).map(|qp| qp.counters.all())
    }

    /// The PSNs of a message that a queue pair sends, until its completion has been told.
    pub fn psns_of(&self, qp: QpNum, msn: u32) -> Option<Range<u64>> {
        self.qps.get(qp).and_then(|qp| qp.send.psns_of(msn))
    }

    /// How many packets of these PSNs have yet to reach a queue pair, at least.
    pub fn missing_of(&self, qp: QpNum, psns: Range<u64>) -> Option<u64> {
        let qp = self.qps.get(qp)?;
        let first = psns.start.max(qp.receive.recovery.expected());
        Some(psns.end.saturating_sub(first).saturating_sub(qp.receive.recovery.held()))
    }

    /// What a queue pair counts of copies, notices and gaps; zeros where there are none of these.
    pub fn order_counters(&self, qp: QpNum) -> Option<OrderCounters> {
        self.qps.get(qp).map(|qp| qp.order.as_deref().copied().unwrap_or_default())
    }

    /// Packets a queue pair holds ahead of a gap.
    pub fn held_ahead(&self, qp: QpNum) -> Option<u64> {
        self.qps.get(qp).map(|qp| qp.receive.recovery.held())
    }

    /// Whether a queue pair has data to send, new or again, or in flight.
    pub fn is_busy(&self, qp: QpNum) -> Option<bool> {
        self.qps.get(qp).map(|qp| qp.send.backlogged() || qp.send.flight.inflight_packets() > 0)
    }

    /// What a queue pair with messages under way waits for; `None` with none. For observers.
    pub fn waiting(&self, qp: QpNum) -> Option<Waiting> {
        self.qps.get(qp).and_then(Qp::waiting)
    }

    /// The numbers of the messages that a queue pair has under way. For observers.
    pub fn under_way(&self, qp: QpNum) -> Range<u32> {
        self.qps.get(qp).map_or(0..0, |qp| qp.send.msns_under_way())
    }

    /// The policy of a queue pair, for observers.
    pub fn policy(&self, qp: QpNum) -> Option<&P> {
        self.qps.get(qp).map(|qp| &*qp.policy)
    }

    /// Data packets of a queue pair sent and neither acknowledged nor declared lost, and their wire bytes.
    pub fn inflight(&self, qp: QpNum) -> Option<(u32, u64)> {
        self.qps.get(qp).map(|qp| (qp.send.flight.inflight_packets(), qp.send.flight.inflight_bytes()))
    }

    /// How many different paths the data packets that a queue pair has in flight have taken. `room` is for working in, so
    /// that nothing is allocated. For observers: O(packets in flight).
    pub fn paths_in_flight(&self, qp: QpNum, room: &mut Vec<PathId>) -> Option<usize> {
        self.qps.get(qp).map(|qp| {
            qp.send.flight.paths(room);
            room.len()
        })
    }

    /// For tests: panics unless everything is consistent with itself. O(packets in flight).
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

/// Whether loss recovery asks by it how the network is; what policies ask leaves with data.
fn is_question(body: &Body) -> bool {
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
    fn send_data(&mut self, now: Time, gate: Gate, send: impl FnOnce(Transmit)) -> bool {
        Endpoint::send_data(self, now, gate, send)
    }

    fn held(&self) -> u64 {
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
    fn what_every_packet_looks_at_is_together() {
        let hot = offset_of!(Endpoint<()>, common.memory) + Memory::HOT_BYTES;
        assert!(hot <= Endpoint::<()>::HOT_LINES * LINE_BYTES, "{hot} bytes");
    }
}
