//! The contract between a transport and what drives it.

use pathweave_units::{HostId, Time};
use pathweave_wire::Segment;

use crate::rd::SideMessage;
use crate::transmit::{Gate, Transmit};

/// A transport service without I/O: packets, messages of its side channel and time go in; packets, messages of the side
/// channel and events come out.
///
/// There are two services. [`Endpoint`](crate::Endpoint) is reliable connections, the queue pairs of a host.
/// [`RdQp`](crate::rd::RdQp) is reliable datagrams, a queue pair for all its peers; [`RdHost`](crate::rd::RdHost) is all of
/// these of a host. What a simulated host, the loop of the datapath and tests do with a service, they do through this
/// trait, so one driver serves both. It is meant for static dispatch: packets are handed to closures, so that they are
/// made where they are to be.
///
/// # The contract
///
/// **A service acts only when it is called.** Inputs are [`on_packet`](Transport::on_packet),
/// [`on_side`](Transport::on_side), [`on_timer`](Transport::on_timer), what the application asks for (methods of each
/// service), and a NIC port that has become free.
///
/// **After every input, drain the outputs**: events until `None`, messages of the side channel until `None`, packets until
/// `None`; then look at the timer. One input may cause any number of outputs.
///
/// **What may leave now.** Control packets leave whatever the ports are doing, and before data:
/// [`has_control`](Transport::has_control) tells whether there are any, [`send_control`](Transport::send_control) hands
/// over the next one. All are of class [`Control`](crate::Class::Control) but probes of loss recovery, which meet in the
/// network what data meets. Data leaves by NIC ports that are free, which the [`Gate`] names:
/// [`send_data`](Transport::send_data) hands over the next packet that may leave by one of them. It is stamped with `now`,
/// so ask when it can really leave. [`has_ready_data`](Transport::has_ready_data) tells whether there may be data once a
/// port is free. If not, only an input changes that. If so, and `send_data` has answered `false`, data waits for a port
/// that was not open, or for the timer: ask again when either comes.
/// [`poll_transmit`](Transport::poll_transmit) is all of this for who does not need it apart.
///
/// **Time.** The `now` of all calls never decreases; a clock that does is a bug and panics. Call
/// [`on_timer`](Transport::on_timer) at the time [`poll_timer`](Transport::poll_timer) says. Too early or too often does
/// no harm. After the call and the drain that follows, the next timer is later than `now`, or there is none.
///
/// **Payload** never enters a service. A packet that leaves names where its bytes are ([`Transmit::payload`]); the answer
/// to one that arrives says where they go ([`Placement`](Transport::Placement)). Every byte of a message is placed once.
///
/// **The side channel**, where a service has one, is the driver's: for each two hosts one that loses nothing and keeps
/// order. A service without one never has anything to say on it.
///
/// **Memory.** What is kept for work under way ([`held`](Transport::held)) is bounded, whatever the other end does, and
/// gone when the work is done.
///
/// # Example
///
/// A driver for any service: hosts that know each other by their place in the list, and a network in which everything
/// takes 1 us.
///
/// ```
/// use std::collections::VecDeque;
/// use pathweave_transport::{Gate, Transport, rd::SideMessage};
/// use pathweave_units::{Duration, HostId, Time};
/// use pathweave_wire::Segment;
///
/// enum Input {
///     Packet(Segment),
///     Side(SideMessage),
/// }
///
/// /// Runs until nothing is under way. Returns when that is, and what each host has told.
/// fn run<T: Transport>(hosts: &mut [T]) -> (Time, Vec<Vec<T::Event>>) {
///     let mut now = Time::ZERO;
///     let mut told: Vec<Vec<T::Event>> = hosts.iter().map(|_| vec![]).collect();
///     let mut on_the_way = VecDeque::new();
///     loop {
///         let arrives = now + Duration::from_us(1);
///         for (index, host) in hosts.iter_mut().enumerate() {
///             let from = HostId(index as u32);
///             told[index].extend(std::iter::from_fn(|| host.poll_event()));
///             while let Some((to, message)) = host.poll_side() {
///                 on_the_way.push_back((arrives, from, to, Input::Side(message)));
///             }
///             while let Some(packet) = host.poll_transmit(now, Gate::OPEN) {
///                 on_the_way.push_back((arrives, from, packet.to, Input::Packet(packet.segment)));
///             }
///         }
///         let timers = hosts.iter().filter_map(T::poll_timer);
///         let arrival = on_the_way.front().map(|(at, ..)| *at);
///         let Some(next) = timers.chain(arrival).min() else { return (now, told) };
///         now = now.max(next);
///         hosts.iter_mut().for_each(|host| host.on_timer(now));
///         while on_the_way.front().is_some_and(|(at, ..)| *at <= now) {
///             let Some((_, from, to, input)) = on_the_way.pop_front() else { break };
///             match input {
///                 // A driver with memory would copy the payload to where the answer says.
///                 Input::Packet(segment) => _ = hosts[to.index()].on_packet(now, from, &segment, false),
///                 Input::Side(message) => hosts[to.index()].on_side(now, from, &message),
///             }
///         }
///     }
/// }
///
/// // Connections.
/// # use pathweave_policy::{DatagramConfig, Feedback, Grant, Memo, PathView, Policy, PolicyCx, Sent, Want};
/// # use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdQp};
/// # use pathweave_transport::{Buffer, Endpoint, EndpointConfig, Event, Op, QpConfig, RecvRequest, WorkRequest};
/// # use pathweave_units::{PathId, QpNum, Rate};
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
/// let start = Time::ZERO;
/// let mut hosts = [0, 1].map(|host| Endpoint::new(EndpointConfig::new(HostId(host))));
/// let a = hosts[0].create_qp(start, QpConfig::new(HostId(1), Unlimited, &[]));
/// let b = hosts[1].create_qp(start, QpConfig::new(HostId(0), Unlimited, &[]));
/// hosts[0].connect(a, b)?;
/// hosts[1].connect(b, a)?;
/// hosts[1].post_recv(b, RecvRequest { wr_id: 7, buffer: Buffer(0), len: 10_000 })?;
/// hosts[0].post(start, a, WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 10_000 })?;
/// let (_, told) = run(&mut hosts);
/// assert!(matches!(told[0][..], [Event::Completion(done)] if done.wr_id == 1));
///
/// // Datagrams.
/// let peer = |host| PeerId { host: HostId(host), qp: QpNum(1) };
/// let mut hosts = [0, 1].map(|_| RdQp::new(RdConfig {
///     num: QpNum(1),
///     policy: Unlimited,
///     control: None,
///     behaviour: DatagramConfig::default(),
///     mtu_payload: 4_096,
///     framing: pathweave_wire::Framing::Rocev2,
///     paths: 1,
///     nic_ports: 1,
///     seed: 1,
///     rtt: Duration::from_us(2),
///     nack_delay: Duration::ZERO,
/// }));
/// hosts[0].add_peer(start, peer(1), Duration::from_us(2));
/// hosts[1].add_peer(start, peer(0), Duration::from_us(2));
/// hosts[0].post(start, peer(1), 1, 10_000)?;
/// let (_, told) = run(&mut hosts);
/// assert!(matches!(told[1][..], [RdEvent::Delivered { bytes: 10_000, .. }]));
/// assert!(hosts.iter().all(|host| host.held() == 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Transport {
    /// What it tells the application.
    type Event;
    /// Where the payload of a packet goes.
    type Placement;
    /// What it counts.
    type Counters;

    /// A packet has arrived; `ce`: marked Congestion Experienced. The answer says where its payload goes: `None` for
    /// packets without payload, duplicates, and what is refused.
    fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<Self::Placement>;

    /// A message of the side channel has arrived.
    fn on_side(&mut self, now: Time, from: HostId, message: &SideMessage);

    /// Time has come to `now`; fires every timer due.
    fn on_timer(&mut self, now: Time);

    /// When [`on_timer`](Transport::on_timer) wants to be called next. It may be called earlier than anything happens,
    /// for timers that were put off are not taken out.
    fn poll_timer(&self) -> Option<Time>;

    /// Whether [`poll_event`](Transport::poll_event) has something to tell.
    fn has_event(&self) -> bool;

    /// The next thing the application wants to know.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// The next message of the side channel, and the host it is for.
    fn poll_side(&mut self) -> Option<(HostId, SideMessage)>;

    /// Whether there are control packets to send.
    fn has_control(&self) -> bool;

    /// Hands the next control packet to `send`. False if there is none.
    fn send_control(&mut self, send: impl FnOnce(Transmit)) -> bool;

    /// Whether there may be data to send once a NIC port is free.
    fn has_ready_data(&self) -> bool;

    /// Hands the next data packet that may leave by a port of the gate to `send`. False if there is none.
    fn send_data(&mut self, now: Time, gate: Gate, send: impl FnOnce(Transmit)) -> bool;

    /// The next packet to send now: control before data, data only by NIC ports that `gate` says are free.
    #[inline]
    fn poll_transmit(&mut self, now: Time, gate: Gate) -> Option<Transmit> {
        let mut packet = None;
        if !self.send_control(|control| packet = Some(control)) && gate.data_ports != 0 {
            self.send_data(now, gate, |data| packet = Some(data));
        }
        packet
    }

    /// What is kept for work under way: messages of this end that are not done, and packets and messages of other ends
    /// that wait for what is missing before them. 0 when all is done. Takes time with the number of queue pairs and peers.
    fn held(&self) -> u64;

    /// All that has been counted.
    fn counters(&self) -> Self::Counters;
}
