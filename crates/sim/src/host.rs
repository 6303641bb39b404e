//! Simulated host: an endpoint behind NIC ports.

mod sending;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pathweave_fabric::{Fabric, PortId};
use pathweave_policy::AnyPolicy;
use pathweave_transport::rd::{RdOutstanding, RdQp};
use pathweave_transport::{Endpoint, MemoryRegion, PortChange, Prefetch, Transport};
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::Segment;

use crate::agenda::{Agenda, Item, Rank};
use crate::departures::DepartureLog;
use crate::digest::Trace;
use crate::nic::{Engine, NicModel};
use crate::route_headers::RouteHeaders;
use crate::telemetry::HostTelemetry;

/// Content of a packet in the fabric: the segment as the endpoint made it.
pub(crate) type Content = Segment;

/// Simulated host.
// The order of fields matters: fields that every packet uses follow the endpoint's hot fields, in adjacent cache
// lines.
#[repr(C)]
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint<AnyPolicy>,
    pub(crate) nic: Nic,
    /// Running hash of the packets that have reached the host.
    pub(crate) delivered: Trace,
    /// Payload bytes that have arrived, for the rate series.
    pub(crate) received_bytes: u64,
    /// Datagram queue pairs and the NIC model beyond the link, if the run needs them.
    model: Option<Box<NicModel>>,
    /// Pending items besides packets, transmitter and timers. Created with the first item.
    agenda: Option<Box<Agenda>>,
    /// Headers that packets carry for paths that this host chooses, if any.
    pub(crate) route_headers: Option<Arc<RouteHeaders>>,
    /// Telemetry of queue pairs, if a scheme of the run reads it.
    pub(crate) telemetry: Option<Box<HostTelemetry>>,
    /// Statistics of departed data packets, if they are collected.
    pub(crate) departures: Option<Box<DepartureLog>>,
    /// Remote key to the host's memory. The memory itself is not simulated.
    pub(crate) rkey: u64,
    /// Flows of the messages that each queue pair sends and receives, indexed by message sequence number.
    pub(crate) outgoing: BTreeMap<QpNum, Vec<u32>>,
    pub(crate) incoming: BTreeMap<QpNum, Vec<u32>>,
}

/// NIC ports of a host, and the times at which it wakes.
pub(crate) struct Nic {
    pub(crate) host: HostId,
    first_port: PortId,
    /// Number of ports, at most 64.
    ports: u8,
    acks_as_data: bool,
    /// True if the host's paths are explicit. Acknowledgements then return over the links of the packets they
    /// acknowledge.
    pub(crate) source_routed: bool,
    /// True if the NIC also sends on links that are down, which lose its packets. It does if no port is up, or if a
    /// path names its port.
    pub(crate) sends_on_down_links: bool,
    /// True if [`Host::model`] exists.
    has_model: bool,
    /// True if switches may trim the payload of data that the host sends.
    pub(crate) trimmable: bool,
    /// True if [`Host::telemetry`] exists.
    pub(crate) has_telemetry: bool,
    /// Times at which the transmitter is free for waiting data and at which a timer of the endpoint expires, or
    /// [`Time::MAX`].
    pub(crate) wake: Time,
    pub(crate) alarm: Time,
    /// Time until which the transmitter of the only port is certain to be busy. Unused with several ports.
    busy_until: Time,
    /// Data class of packets to and from each queue pair, if it is not 1.
    #[expect(clippy::box_collection, reason = "a third of the size, beside what every packet touches")]
    pub(crate) classes: Option<Box<BTreeMap<QpNum, u8>>>,
}

// All fields that every packet uses, up to the key, are in one cache line.
const _: () = assert!(size_of::<Nic>() == 48 && std::mem::offset_of!(Host, nic).is_multiple_of(64));

impl Host {
    pub(crate) fn new(mut endpoint: Endpoint<AnyPolicy>, ports: Range<PortId>, acks_as_data: bool) -> Self {
        let rkey = endpoint.register(MemoryRegion::unbounded(), 0).expect("the first region of an endpoint");
        let nic = Nic {
            host: endpoint.config().host,
            first_port: ports.start,
            ports: (ports.end - ports.start) as u8,
            acks_as_data,
            source_routed: false,
            sends_on_down_links: false,
            has_model: false,
            trimmable: false,
            has_telemetry: false,
            wake: Time::MAX,
            alarm: Time::MAX,
            busy_until: Time::ZERO,
            classes: None,
        };
        Host {
            endpoint,
            nic,
            delivered: Trace::new(),
            received_bytes: 0,
            model: None,
            agenda: None,
            route_headers: None,
            telemetry: None,
            departures: None,
            rkey,
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
        }
    }

    /// Destroys a queue pair and removes its state, if it exists.
    pub(crate) fn close(&mut self, qp: QpNum) {
        if self.endpoint.destroy_qp(qp).is_ok() {
            self.outgoing.remove(&qp);
            self.incoming.remove(&qp);
            if let Some(classes) = &mut self.nic.classes {
                classes.remove(&qp);
            }
            if let Some(telemetry) = &mut self.telemetry {
                telemetry.close(qp);
            }
        }
    }

    /// Prefetches the state that every event of the host uses.
    #[inline(always)]
    pub(crate) fn warm(&self, cache: &mut impl Prefetch) {
        self.endpoint.warm_endpoint(cache);
        cache.warm(&self.nic, 0);
    }

    /// Clears the wake-up time, because the transmitter may be free. [`Host::transmit`] must follow.
    #[inline(always)]
    pub(crate) fn on_wake(&mut self) {
        self.nic.wake = Time::MAX;
    }

    /// Adds an item that is due at `at`. Returns the time at which the host must wake.
    pub(crate) fn push_due(&mut self, at: Time, rank: Rank, item: Item) -> Time {
        self.agenda.get_or_insert_default().push(at, rank, item);
        self.nic.alarm = self.nic.alarm.min(at);
        self.nic.alarm
    }

    /// Adds an item that the host schedules for itself. Returns the time at which the host must wake.
    pub(crate) fn schedule_own(&mut self, at: Time, item: Item) -> Time {
        self.agenda.get_or_insert_default().push_own(at, item);
        self.nic.alarm = self.nic.alarm.min(at);
        self.nic.alarm
    }

    /// Removes and returns the next item that is due. When none is left at `now`, sets the alarm for the next one.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Item> {
        let agenda = self.agenda.as_mut()?;
        let item = agenda.pop(now);
        if item.is_none() {
            self.nic.alarm = self.nic.alarm.min(agenda.next());
        }
        item
    }

    /// Handles an expired timer of the endpoint. [`Host::transmit`] must follow.
    pub(crate) fn on_alarm(&mut self, now: Time) {
        self.nic.alarm = Time::MAX;
        self.endpoint.on_timer(now);
        if self.nic.has_model
            && let Some(model) = &mut self.model
        {
            model.rd.on_timer(now);
        }
    }

    /// Sends all packets that may leave now, and sets the wake-up time for the rest. Must be called after every
    /// change of the endpoint that may produce packets.
    #[inline(always)]
    pub(crate) fn transmit<const C: usize>(&mut self, fabric: &mut Fabric<Content, C>, now: Time) {
        let asleep = (self.nic.wake != Time::MAX) & (self.nic.busy_until > now);
        let mut taken = 0;
        if self.endpoint.has_control() || self.has_notices() {
            taken = self.send_control(fabric, now, asleep);
        }
        if !asleep && (self.endpoint.has_ready_data() || self.has_datagrams()) {
            self.send_data(fabric, now, taken);
        }
        let timer = self.endpoint.poll_timer();
        let timer = if self.nic.has_model { self.earliest(timer) } else { timer };
        if let Some(timer) = timer
            && timer.max(now) < self.nic.alarm
        {
            self.nic.alarm = timer.max(now);
        }
    }

    #[inline]
    fn has_datagrams(&self) -> bool {
        self.nic.has_model && self.model.as_ref().is_some_and(|model| model.rd.has_ready_data())
    }

    #[inline]
    fn has_notices(&self) -> bool {
        self.nic.has_model && self.model.as_ref().is_some_and(|model| model.rd.has_control())
    }

    /// Returns the time at which the engine of the NIC is free, or [`Time::ZERO`] without an engine.
    #[inline]
    fn engine_free_at(&self) -> Time {
        if !self.nic.has_model {
            return Time::ZERO;
        }
        let engine = self.model.as_ref().and_then(|model| model.engine.as_ref());
        engine.map_or(Time::ZERO, Engine::free_at)
    }

    /// Returns the datagram queue pairs and the NIC model, if the run has them.
    pub(crate) fn model(&mut self) -> Option<&mut NicModel> {
        self.model.as_deref_mut()
    }

    /// Returns the datagrams that this host has posted and that are not finished.
    pub(crate) fn outstanding_datagrams(&self) -> impl Iterator<Item = RdOutstanding> {
        self.model.iter().flat_map(|model| model.rd.iter()).flat_map(RdQp::outstanding)
    }

    /// Returns the model together with the endpoint and the NIC, if the run has a model.
    pub(crate) fn with_model(&mut self) -> Option<(&mut Endpoint<AnyPolicy>, &mut Nic, &mut NicModel)> {
        self.model.as_deref_mut().map(|model| (&mut self.endpoint, &mut self.nic, model))
    }

    #[inline(always)]
    pub(crate) fn has_model(&self) -> bool {
        self.nic.has_model
    }

    pub(crate) fn set_model(&mut self, model: NicModel) {
        self.nic.has_model = true;
        self.model = Some(Box::new(model));
    }

    /// Returns the earlier of `timer` and the timers of datagram queue pairs.
    #[cold]
    fn earliest(&self, timer: Option<Time>) -> Option<Time> {
        let datagrams = self.model.as_ref().and_then(|model| model.rd.poll_timer());
        timer.into_iter().chain(datagrams).min()
    }

    /// Handles a change of the set of working ports, a bit set. [`Host::transmit`] must follow.
    pub(crate) fn on_working_ports(&mut self, now: Time, working: u64) {
        let all = u64::MAX >> (64 - u32::from(self.nic.ports));
        let names_ports = self.nic.ports > 1 && self.nic.source_routed;
        self.nic.sends_on_down_links = working == 0 || names_ports && working != all;
        let change = PortChange::Works { ports: working };
        if names_ports {
            self.tell_datagrams(change);
        } else if self.nic.ports > 1 {
            self.on_ports(now, change);
        }
    }

    /// Tells connections by which NIC ports, a bit set, a peer is reached, if there are several. The empty set means that
    /// there is no route.
    pub(crate) fn note_leading_ports(&mut self, now: Time, to: HostId, ports: u64) {
        if self.nic.ports > 1 && ports != 0 {
            self.endpoint.change_ports(now, PortChange::Leads { to, ports });
        }
    }

    /// Handles a change of the host's ports or of their reachability. [`Host::transmit`] must follow.
    pub(crate) fn on_ports(&mut self, now: Time, change: PortChange) {
        self.endpoint.change_ports(now, change);
        self.tell_datagrams(change);
    }

    fn tell_datagrams(&mut self, change: PortChange) {
        if let Some(model) = &mut self.model {
            model.rd.change_ports(change);
        }
    }

    /// Invalidates the cached state of the transmitter after a change of links. [`Host::transmit`] must follow.
    pub(crate) fn on_links_changed(&mut self) {
        self.nic.busy_until = Time::ZERO;
    }
}

impl Nic {
    #[inline(always)]
    pub(crate) fn ports(&self) -> Range<PortId> {
        self.first_port..self.first_port + u32::from(self.ports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_host_leaves_room_for_its_port_in_a_kilobyte() {
        // A port takes 268 bytes (checked by the memory tests), and its entry in the fabric's agenda 8.
        assert!(size_of::<Host>() <= 1_024 - 268 - 8, "{} B", size_of::<Host>());
    }
}
