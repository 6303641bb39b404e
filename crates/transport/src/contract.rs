//! Contract between a transport service and its driver.

use pathweave_units::{HostId, Time};
use pathweave_wire::Segment;

use crate::rd::SideMessage;
use crate::transmit::{FreePorts, Transmit};

/// A transport service without I/O. Inputs are packets, messages of its side channel, and time; outputs are packets,
/// messages of the side channel, and events.
///
/// There are two services. [`Endpoint`](crate::Endpoint) implements reliable connections: the queue pairs of a host.
/// [`RdQp`](crate::rd::RdQp) implements reliable datagrams: one queue pair for all its peers.
/// [`RdHost`](crate::rd::RdHost) holds all such queue pairs of a host. Simulated hosts, the loop of the datapath and
/// tests drive a service through this trait, so one driver serves both. The trait is meant for static dispatch:
/// packets are passed to closures, so that they are built in their final place.
///
/// # The contract
///
/// **A service acts only when it is called.** Inputs are [`on_packet`](Transport::on_packet),
/// [`on_side`](Transport::on_side), [`on_timer`](Transport::on_timer), requests of the application (methods of each
/// service), and a NIC port that has become free.
///
/// **After every input, drain the outputs**: events until `None`, messages of the side channel until `None`, packets
/// until `None`. Then read the timer. One input may cause any number of outputs.
///
/// **Packets that may leave now.** Control packets leave before data, even while all ports are busy:
/// [`has_control`](Transport::has_control) shows if there are any, [`send_control`](Transport::send_control) passes
/// on the next one. They are of class [`Control`](crate::Class::Control), except probes of loss recovery, which queue
/// in the network like data. Data leaves by the free NIC ports that the [`FreePorts`] names:
/// [`send_data`](Transport::send_data) passes on the next packet that may leave by one of them. The packet is stamped
/// with `now`, so call it when the packet can really leave.
///
/// [`has_ready_data`](Transport::has_ready_data) shows if there may be data once a port is free. If it returns false,
/// only an input changes that. If it returns true and `send_data` has returned false, data waits for a port that was
/// not open, or for the timer: call again at either. [`poll_transmit`](Transport::poll_transmit) combines all of
/// these calls.
///
/// **Time.** The `now` of successive calls never decreases; a violation panics. Call
/// [`on_timer`](Transport::on_timer) at the time that [`poll_timer`](Transport::poll_timer) returns. Earlier or
/// additional calls do no harm. After the call and the drain that follows, the next timer is later than `now`, or
/// there is none.
///
/// **Payload** never enters a service. A packet that leaves names the position of its bytes ([`Transmit::payload`]).
/// For a packet that arrives, the service returns the position for its bytes ([`Placement`](Transport::Placement)).
/// Every byte of a message is placed once.
///
/// **The side channel** of a service belongs to the driver: a reliable, ordered channel between each two hosts. A
/// service without one never has a message for it.
///
/// **Memory.** State kept for work in progress ([`held`](Transport::items_in_progress)) is bounded, whatever the peer does, and
/// released when the work is done.
///
/// # Example
///
/// A driver for any service: hosts whose number is their index in the list, and a network with a delay of 1 us.
///
/// ```
/// use std::collections::VecDeque;
/// use pathweave_transport::{FreePorts, Transport, rd::SideMessage};
/// use pathweave_units::{Duration, HostId, Time};
/// use pathweave_wire::Segment;
///
/// enum Input {
///     Packet(Segment),
///     Side(SideMessage),
/// }
///
/// /// Runs until nothing is in flight. Returns the time at which that is, and the events of each host.
/// fn run<T: Transport>(hosts: &mut [T]) -> (Time, Vec<Vec<T::Event>>) {
///     let mut now = Time::ZERO;
///     let mut events: Vec<Vec<T::Event>> = hosts.iter().map(|_| vec![]).collect();
///     let mut on_the_way = VecDeque::new();
///     loop {
///         let arrives = now + Duration::from_us(1);
///         for (index, host) in hosts.iter_mut().enumerate() {
///             let from = HostId(index as u32);
///             events[index].extend(std::iter::from_fn(|| host.poll_event()));
///             while let Some((to, message)) = host.poll_side() {
///                 on_the_way.push_back((arrives, from, to, Input::Side(message)));
///             }
///             while let Some(packet) = host.poll_transmit(now, FreePorts::OPEN) {
///                 on_the_way.push_back((arrives, from, packet.to, Input::Packet(packet.segment)));
///             }
///         }
///         let timers = hosts.iter().filter_map(T::poll_timer);
///         let arrival = on_the_way.front().map(|(at, ..)| *at);
///         let Some(next) = timers.chain(arrival).min() else { return (now, events) };
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
/// # use pathweave_policy::{DatagramConfig, Feedback, Grant, Memo, PathView, Policy, PolicyCx, Sent, SendRequest};
/// # use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdQp};
/// # use pathweave_transport::{Buffer, Endpoint, EndpointConfig, Event, Op, QpConfig, RecvRequest, WorkRequest};
/// # use pathweave_units::{PathId, QpNum, Rate};
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
/// let start = Time::ZERO;
/// let mut hosts = [0, 1].map(|host| Endpoint::new(EndpointConfig::new(HostId(host))));
/// let a = hosts[0].create_qp(start, QpConfig::new(HostId(1), Unlimited, &[]));
/// let b = hosts[1].create_qp(start, QpConfig::new(HostId(0), Unlimited, &[]));
/// hosts[0].connect(a, b)?;
/// hosts[1].connect(b, a)?;
/// hosts[1].post_recv(b, RecvRequest { wr_id: 7, buffer: Buffer(0), len: 10_000 })?;
/// hosts[0].post(start, a, WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 10_000 })?;
/// let (_, events) = run(&mut hosts);
/// assert!(matches!(events[0][..], [Event::Completion(done)] if done.wr_id == 1));
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
/// let (_, events) = run(&mut hosts);
/// assert!(matches!(events[1][..], [RdEvent::Delivered { bytes: 10_000, .. }]));
/// assert!(hosts.iter().all(|host| host.items_in_progress() == 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Transport {
    /// Events for the application.
    type Event;
    /// Position for the payload of a packet.
    type Placement;
    /// Counters of the service.
    type Counters;

    /// Processes a packet that has arrived. `ce`: the packet carried Congestion Experienced. Returns the position for
    /// its payload, or `None` for packets without payload, duplicates and refused packets.
    fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<Self::Placement>;

    /// Processes a message of the side channel.
    fn on_side(&mut self, now: Time, from: HostId, message: &SideMessage);

    /// Advances time to `now` and fires every timer that is due.
    fn on_timer(&mut self, now: Time);

    /// Time at which [`on_timer`](Transport::on_timer) must be called next. That call may find nothing to do, because
    /// timers that were postponed stay in the heap.
    fn poll_timer(&self) -> Option<Time>;

    /// Returns true if [`poll_event`](Transport::poll_event) has an event.
    fn has_event(&self) -> bool;

    /// Returns the next event for the application.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Returns the next message of the side channel, and the host that it is for.
    fn poll_side(&mut self) -> Option<(HostId, SideMessage)>;

    /// Returns true if there are control packets to send.
    fn has_control(&self) -> bool;

    /// Passes the next control packet to `send`. Returns false if there is none.
    fn send_control(&mut self, send: impl FnOnce(Transmit)) -> bool;

    /// Returns true if there may be data to send once a NIC port is free.
    fn has_ready_data(&self) -> bool;

    /// Passes the next data packet that may leave by a port of the gate to `send`. Returns false if there is none.
    fn send_data(&mut self, now: Time, gate: FreePorts, send: impl FnOnce(Transmit)) -> bool;

    /// Returns the next packet to send now: control before data, and data only by NIC ports that are free in `gate`.
    #[inline]
    fn poll_transmit(&mut self, now: Time, gate: FreePorts) -> Option<Transmit> {
        let mut packet = None;
        if !self.send_control(|control| packet = Some(control)) && gate.data_ports != 0 {
            self.send_data(now, gate, |data| packet = Some(data));
        }
        packet
    }

    /// Number of items kept for work in progress: unfinished messages of this end, and packets and messages of peers
    /// that wait for earlier ones. 0 when all is done. Takes time proportional to the number of queue pairs and
    /// peers.
    fn items_in_progress(&self) -> u64;

    /// Returns all counters.
    fn counters(&self) -> Self::Counters;
}
