//! Shard: a part of a run that owns some of the hosts and switches with all their state. A run with one thread has a
//! single shard.

use std::sync::Arc;

use pathweave_execution::{Connections, Execution, Part, ScaleUpCarrier};
use pathweave_fabric::{Arrived, Step};
use pathweave_records::{EventKind, EventRecord};
use pathweave_transport::Event;
use pathweave_units::{Duration, HostId, QpNum, Time};
use pathweave_wire::Body;

use crate::check::Ledger;
use crate::config::Verb;
use crate::faults::scale_up_changes;
use crate::followed::{Followed, Inspect};
use crate::hosts::Hosts;
use crate::mailbox::Outbox;
use crate::network::Network;
use crate::nic::{DATAGRAMS, Datagram};
use crate::partition::ShardLayout;
use crate::plan::NetworkPlan;
use crate::side::first_side;
use crate::spec::{SimError, SimSpec};
use crate::tap::Seen;

/// Number of the first queue pair of a host. Queue pairs 0 and 1 are InfiniBand's management queue pairs.
pub(crate) const FIRST_NUMBER: u32 = 2;

/// Numbers of a queue pair at the sender and at the receiver of a connection.
pub(crate) type QueuePair = (QpNum, QpNum);

/// Shard of a run in progress. It has the state of its own nodes and of all messages. Events for other nodes leave
/// through the outbox.
pub(crate) struct Shard<'a, const C: usize> {
    pub(crate) spec: &'a SimSpec,
    pub(crate) place: ShardLayout,
    pub(crate) network: Network<C>,
    pub(crate) hosts: Hosts,
    pub(crate) traffic: Traffic,
    pub(crate) observers: Observers,
    pub(crate) windows: Windows,
    pub(crate) outbox: Outbox,
    /// Messages over the scale-up networks of this shard's servers, if there are such networks.
    pub(crate) scale_up: Option<Box<ScaleUpCarrier>>,
    /// Number of host events so far, and the time of the latest.
    pub(crate) host_events: u64,
    pub(crate) latest: Time,
    /// Time of the earliest event that was sent to other shards with the latest window.
    pub(crate) sent_due: Time,
    /// Lower bound of the time of the next event, in this shard or caused by it elsewhere.
    pub(crate) next: Time,
}

/// Messages and their transport.
pub(crate) struct Traffic {
    /// Tasks, messages and their connections.
    pub(crate) execution: Execution<QueuePair>,
    /// Numbers of the first queue pair at the sender and at the receiver, by connection. The other queue pairs have
    /// consecutive numbers.
    pub(crate) queue_pairs: Arc<[[u32; 2]]>,
    /// Number of the first queue pair of side channels: higher than those of connections at any host.
    pub(crate) first_side: u32,
    /// Remote key to the memory of any host.
    pub(crate) rkey: u64,
    /// Delay of a task notification: time until a host knows that a task at another host has ended.
    pub(crate) notification: Duration,
}

/// Observers of a shard, which do not influence it.
pub(crate) struct Observers {
    pub(crate) inspect: Option<Box<Inspect>>,
    /// Events of the current window, ordered by time within each host.
    pub(crate) events: Vec<EventRecord>,
    /// Packets that have reached hosts in the current window, if a tap observes them.
    pub(crate) seen: Option<Vec<Seen>>,
}

impl Observers {
    /// Returns the ledger of placed bytes, if placements are verified.
    pub(crate) fn ledger(&mut self) -> Option<&mut Ledger> {
        self.inspect.as_mut()?.ledger.as_mut()
    }
    /// Returns the followed flows, if there are any.
    pub(crate) fn followed(&mut self) -> Option<&mut Followed> {
        self.inspect.as_mut()?.followed.as_mut()
    }
}

/// State of the current window.
pub(crate) struct Windows {
    /// Largest length of a window. Every effect of one host on another takes longer than this.
    pub(crate) longest: Duration,
    /// End of the current window, or of the latest one.
    pub(crate) end: Time,
    /// Hosts to simulate in the current window. Kept to reuse its memory.
    pub(crate) active: Vec<HostId>,
    /// For tests: random generator of the order of hosts.
    #[cfg(test)]
    pub(crate) shuffle: Option<pathweave_units::Rng>,
}

impl<'a, const C: usize> Shard<'a, C> {
    /// Builds the shard at this place. `queue_pairs` holds the numbers of all `connections` ([`queue_pair_numbers`]).
    pub(crate) fn new(
        spec: &'a SimSpec,
        plan: Arc<NetworkPlan>,
        place: ShardLayout,
        queue_pairs: Arc<[[u32; 2]]>,
        connections: Connections<QueuePair>,
    ) -> Result<Self, SimError> {
        let network = Network::new(spec, plan, &place)?;
        let notification = spec.task_notification()?;
        let hosts = network.hosts(spec, &place);
        let mut execution = Execution::new(spec.graph.clone(), &spec.groups, connections, notification)
            .with_payload(spec.network.mtu);
        if !place.is_all() {
            execution = execution.with_part(Part::new(place.number, place.of_node.clone()));
        }
        let mut shard = Shard {
            traffic: Traffic {
                first_side: first_side(spec, &queue_pairs),
                queue_pairs,
                execution,
                // Hosts register no other memory, so the keys of all hosts are equal.
                rkey: hosts.iter().next().map_or(0, |host| host.rkey),
                notification,
            },
            observers: Observers {
                // A SEND that consumes no posted receive is not placed anywhere.
                inspect: Inspect::new(
                    (spec.run.verify && spec.network.verb == Verb::Write).then(Ledger::default),
                    Followed::new(spec),
                ),
                events: Vec::new(),
                seen: None,
            },
            windows: Windows {
                longest: network.longest_window().min(notification).min(spec.scale_up_window()),
                end: Time::ZERO,
                active: Vec::new(),
                #[cfg(test)]
                shuffle: None,
            },
            outbox: Outbox::new(&place, &network),
            scale_up: match spec.topology.scale_up() {
                Some(network) => {
                    let changes = scale_up_changes(spec)?;
                    Some(Box::new(ScaleUpCarrier::new(network.clone(), &changes)))
                }
                None => None,
            },
            host_events: 0,
            latest: Time::ZERO,
            sent_due: Time::MAX,
            next: Time::ZERO,
            place,
            network,
            hosts,
            spec,
        };
        shard.set_up_models();
        shard.look_ahead();
        Ok(shard)
    }

    /// Number of events so far, of hosts and of the fabric.
    pub(crate) fn events(&self) -> u64 {
        let scale_up = self.scale_up.as_ref().map_or(0, |carrier| carrier.events());
        self.host_events + self.network.fabric.events() + scale_up
    }

    /// Processes the result of an arrival.
    pub(crate) fn on_step(&mut self, now: Time, step: Step) {
        if let Step::Delivered { host, .. } | Step::Resumed { host, .. } = step {
            self.on_step_at(now, self.hosts.place_of(host.index()), step);
        }
    }

    /// Processes the result of an arrival at the host at `place`.
    #[inline(always)]
    pub(crate) fn on_step_at(&mut self, now: Time, place: usize, step: Step) {
        match step {
            Step::Done => {}
            Step::Delivered { host, packet, .. } => {
                let (header, segment) = self.network.fabric.delivered(&packet);
                if let Some(seen) = &mut self.observers.seen {
                    seen.push((now, host, *header, *segment));
                }
                let at = self.hosts.at_mut(place);
                at.delivered.note(now, host, segment);
                let datagram = match segment.body {
                    Body::Rd(_) => true,
                    Body::Cnp | Body::Control(_) => {
                        at.model().is_some_and(|model| model.is_notified(header.src(), segment))
                    }
                    _ => false,
                };
                if datagram {
                    return self.on_datagram_packet(now, host, packet);
                }
                if header.carries_telemetry()
                    && let Some(reading) = self.network.fabric.telemetry(&packet)
                    && let Some(telemetry) = &mut at.telemetry
                {
                    telemetry.arrival(&mut at.endpoint, segment, reading);
                }
                if let Some(trimmed_at) = header.trimmed_at() {
                    let ce = header.congestion_experienced();
                    at.endpoint.on_trimmed(now, header.src(), segment, ce, trimmed_at);
                    self.network.fabric.discard(packet);
                    return self.after_input_at(now, place, host.index());
                }
                if let Body::Data(data) = &segment.body {
                    at.received_bytes += u64::from(data.len);
                }
                let placement =
                    at.endpoint.on_packet(now, header.src(), segment, header.congestion_experienced());
                if let Some(inspect) = &mut self.observers.inspect {
                    inspect.arrived(header.src(), segment, placement);
                }
                self.network.fabric.discard(packet);
                self.after_input_at(now, place, host.index());
            }
            Step::Resumed { .. } => self.transmit_at(now, place),
        }
    }

    /// Processes the events of an endpoint after an input, then transmits.
    #[inline(always)]
    pub(crate) fn after_input(&mut self, now: Time, host: usize) {
        self.after_input_at(now, self.hosts.place_of(host), host);
    }

    #[inline(always)]
    fn after_input_at(&mut self, now: Time, place: usize, host: usize) {
        if self.hosts.at(place).endpoint.has_event() {
            self.on_events(now, host);
        }
        self.transmit_at(now, place);
    }

    #[inline(never)]
    fn on_events(&mut self, now: Time, host: usize) {
        while let Some(event) = self.hosts[host].endpoint.poll_event() {
            match event {
                Event::Delivered { qp, msn, bytes, .. } => self.on_delivered(now, host, qp, msn, bytes),
                Event::Completion(completion) => self.on_completion(now, completion.wr_id, completion.status),
                Event::Retransmitted { packet, at } => {
                    self.note_loss(host, EventKind::Retransmit, &packet, at);
                }
                Event::TimedOut { packet, at } => self.note_loss(host, EventKind::Timeout, &packet, at),
                Event::QpError { .. } => {}
            }
        }
    }

    #[inline(always)]
    pub(crate) fn transmit(&mut self, now: Time, host: usize) {
        self.transmit_at(now, self.hosts.place_of(host));
    }

    #[inline(always)]
    pub(crate) fn transmit_at(&mut self, now: Time, place: usize) {
        let at = self.hosts.at_mut(place);
        at.transmit(&mut self.network.fabric, now);
        let (id, due) = (at.nic.host, at.nic.wake.min(at.nic.alarm));
        let has_model = at.has_model();
        self.network.fabric.make_host_due(id, due);
        if has_model {
            self.drain_model(now, id.index());
        }
    }

    #[cold]
    fn on_datagram_packet(&mut self, now: Time, host: HostId, packet: Arrived) {
        let (header, segment) = self.network.fabric.take(packet);
        let (from, ce) = (header.src(), header.congestion_experienced());
        self.on_datagram(now, host, Datagram { from, segment, ce });
    }
}

/// Assigns numbers to all queue pairs that a run may open, so that a sender can name the receiver's queue pair before
/// it exists. Numbers of a host follow the order in which its connections are first used.
pub(crate) fn queue_pair_numbers<Q>(
    spec: &SimSpec,
    connections: &Connections<Q>,
) -> Result<Vec<[u32; 2]>, SimError> {
    let mut next = vec![FIRST_NUMBER; spec.topology.hosts() as usize];
    let mut numbers = Vec::with_capacity(connections.len());
    for connection in connections.iter() {
        let queue_pairs = u32::from(spec.scheme_of(connection.group).scheme.queue_pairs);
        let mut take = |host: HostId| {
            let next = &mut next[host.index()];
            std::mem::replace(next, next.saturating_add(queue_pairs))
        };
        numbers.push([take(connection.src), take(connection.dst)]);
    }
    match next.iter().zip(0..).max() {
        Some((&end, host)) if end > DATAGRAMS => Err(SimError::Network(format!(
            "{} would open {} queue pairs in the run; at most {} are possible",
            spec.topology.node_name(pathweave_topo::NodeId(host)),
            end - FIRST_NUMBER,
            DATAGRAMS - FIRST_NUMBER
        ))),
        _ => Ok(numbers),
    }
}
