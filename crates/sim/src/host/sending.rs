//! Departure of a host's packets: control packets, then data by ports that are free.

use std::sync::Arc;

use pathweave_fabric::{Fabric, Header};
use pathweave_transport::{Class, FreePorts, Transmit, Transport};
use pathweave_units::{Telemetry, Time};
use pathweave_wire::Body;

use super::{Content, Host, Nic};
use crate::nic::SentAgain;
use crate::route_headers::RouteHeaders;
use crate::telemetry::{Departure, HostTelemetry};

impl Host {
    /// Sends control packets. Returns the ports whose transmitters they occupy, as a bit set.
    #[inline(never)]
    pub(super) fn send_control<const C: usize>(
        &mut self,
        fabric: &mut Fabric<Content, C>,
        now: Time,
        asleep: bool,
    ) -> u64 {
        let (mut taken, mut bytes) = (0, 0);
        let Host { endpoint, nic, route_headers, telemetry, .. } = self;
        while endpoint.send_control(|packet| {
            taken |= 1 << nic.port_of(&packet, route_headers);
            bytes += nic.send(fabric, now, &packet, route_headers, telemetry);
        }) {}
        if nic.has_model {
            let (ports, more_bytes) = self.send_datagram_control(fabric, now);
            (taken, bytes) = (taken | ports, bytes + more_bytes);
        }
        if asleep && !self.nic.acks_as_data {
            // Control packets leave before waiting data. With several of them the time may be slightly short, which
            // does no harm.
            let (rate, _) = fabric.link(self.nic.first_port);
            self.nic.busy_until = self.nic.busy_until.saturating_add(rate.time_for(u64::from(bytes)));
            self.nic.wake = self.nic.busy_until;
        }
        taken
    }

    /// Sends control packets of datagram queue pairs. Returns the ports that they occupy and their bytes.
    #[cold]
    fn send_datagram_control<const C: usize>(
        &mut self,
        fabric: &mut Fabric<Content, C>,
        now: Time,
    ) -> (u64, u32) {
        let (mut taken, mut bytes) = (0, 0);
        let Host { nic, model, route_headers, telemetry, .. } = self;
        if let Some(model) = model {
            while model.rd.send_control(|packet| {
                taken |= 1 << nic.port_of(&packet, route_headers);
                bytes += nic.send(fabric, now, &packet, route_headers, telemetry);
            }) {}
        }
        (taken, bytes)
    }

    #[inline(never)]
    pub(super) fn send_data<const C: usize>(
        &mut self,
        fabric: &mut Fabric<Content, C>,
        now: Time,
        taken: u64,
    ) {
        let engine = self.engine_free_at();
        if engine > now {
            return self.sleep_until(engine);
        }
        let mut open = self.open_ports(fabric, now) & !taken;
        let Host { endpoint, nic, route_headers, telemetry, departures, .. } = self;
        if nic.has_model {
            self.send_by_engine(fabric, now, open);
        } else {
            while open != 0
                && endpoint.send_data(now, FreePorts { data_ports: open }, |packet| {
                    open &= !(1 << packet.port);
                    let wire_bytes = nic.send(fabric, now, &packet, route_headers, telemetry);
                    if let Some(departures) = departures {
                        departures.note(now, &packet, wire_bytes);
                    }
                })
            {}
        }
        if self.endpoint.has_ready_data() || self.has_datagrams() {
            // A port that is free but refuses data is paused or down. The fabric reports the end of that state.
            let free =
                self.nic.ports().map(|port| fabric.port_free_at(port)).filter(|&free| free > now).min();
            if let Some(free) = free {
                let engine = self.engine_free_at();
                // With several ports, one may be free while the engine is busy.
                let free = if self.nic.ports > 1 && engine > now { engine } else { free.max(engine) };
                self.sleep_until(free);
            }
        }
    }

    /// Sets the wake-up time while data waits and no NIC port accepts it before `free`.
    #[inline(always)]
    fn sleep_until(&mut self, free: Time) {
        self.nic.busy_until = if self.nic.ports == 1 { free } else { Time::ZERO };
        if free < self.nic.wake {
            self.nic.wake = free;
        }
    }

    /// Sends packets of connections and of datagram queue pairs in turn, through a NIC whose engine handles one
    /// packet at a time.
    #[cold]
    fn send_by_engine<const C: usize>(&mut self, fabric: &mut Fabric<Content, C>, now: Time, mut open: u64) {
        let routes = self.route_headers.clone();
        let mut telemetry = self.telemetry.take();
        let Some((endpoint, nic, model)) = self.with_model() else {
            self.telemetry = telemetry;
            return;
        };
        while open != 0 {
            let gate = FreePorts { data_ports: open };
            let mut packet = None;
            let mut take = |data| packet = Some(data);
            model.datagrams_next = !model.datagrams_next;
            let _ = (model.datagrams_next && model.rd.send_data(now, gate, &mut take))
                || endpoint.send_data(now, gate, &mut take)
                || model.rd.send_data(now, gate, &mut take);
            let Some(mut packet) = packet else { break };
            if let Body::Rd(_) = packet.segment.body {
                packet.segment.path = model.route(packet.to, packet.segment.path, packet.port);
            }
            if let (Body::Rd(data), Some(payload)) = (&packet.segment.body, &packet.payload)
                && data.retransmit
            {
                // The buffer of the payload identifies the work request, and so the message.
                let (qp, path, flow) = (packet.segment.src_qp, packet.segment.path, payload.buffer.0 as u32);
                model.sent_again.push(SentAgain { at: now, qp, psn: data.psn, path, flow });
            }
            open &= !(1 << packet.port);
            if let Some(engine) = &mut model.engine {
                engine.sent(now, packet.wire_bytes);
                if engine.free_at() > now {
                    // The next packet waits for the engine even if a port is free.
                    open = 0;
                }
            }
            nic.send(fabric, now, &packet, &routes, &mut telemetry);
        }
        self.telemetry = telemetry;
    }

    /// Returns the NIC ports that could start a data packet now, as a bit set.
    #[inline(always)]
    fn open_ports<const C: usize>(&self, fabric: &mut Fabric<Content, C>, now: Time) -> u64 {
        let mut open = 0;
        for (bit, port) in (0..).zip(self.nic.ports()) {
            open |= u64::from(fabric.port_ready(now, port)) << bit;
        }
        if self.nic.sends_on_down_links {
            for (bit, port) in (0..).zip(self.nic.ports()) {
                open |= u64::from(fabric.port_loses(now, port)) << bit;
            }
        }
        open
    }
}

impl Nic {
    /// Sends a packet into the fabric. Returns its length on the link in bytes.
    #[inline(always)]
    fn send<const C: usize>(
        &self,
        fabric: &mut Fabric<Content, C>,
        now: Time,
        packet: &Transmit,
        routes: &Option<Arc<RouteHeaders>>,
        telemetry: &mut Option<Box<HostTelemetry>>,
    ) -> u32 {
        let port = self.first_port + u32::from(self.port_of(packet, routes));
        let class = self.class(packet);
        let path = packet.segment.path;
        let wire_bytes = match routes {
            None => packet.wire_bytes,
            Some(routes) => routes.wire_bytes(self.host, packet),
        };
        let departure = match telemetry {
            Some(telemetry) if self.has_telemetry => telemetry.departure(packet),
            _ => None,
        };
        let wire_bytes = wire_bytes + if departure.is_some() { Telemetry::WIRE_BYTES } else { 0 };
        let mut header = Header::new(self.host, packet.to, path, wire_bytes, class, packet.ecn_capable);
        if self.trimmable && matches!(packet.segment.body, Body::Data(data) if data.len > 0) {
            header = header.trimmable();
        }
        if self.source_routed && packet.is_answer() {
            header = header.reversed();
        }
        let returned = match departure {
            None => {
                fabric.send(now, port, header, packet.segment);
                return wire_bytes;
            }
            Some(Departure::Asks) => None,
            Some(Departure::Returns(telemetry)) => Some(telemetry),
        };
        fabric.send_with_telemetry(now, port, header, packet.segment, returned);
        wire_bytes
    }

    /// Returns the port by which a packet leaves. If sources choose paths, a reply leaves by the port at which the
    /// path of the packet it answers arrives.
    #[inline(always)]
    fn port_of(&self, packet: &Transmit, routes: &Option<Arc<RouteHeaders>>) -> u8 {
        match routes {
            Some(routes) if self.ports > 1 && packet.is_answer() => routes.answer_port(self.host, packet),
            _ => packet.port,
        }
    }

    #[inline(always)]
    fn class(&self, packet: &Transmit) -> u8 {
        if packet.class == Class::Control && !self.acks_as_data {
            return 0;
        }
        match &self.classes {
            None => 1,
            Some(classes) => classes.get(&packet.segment.src_qp).copied().unwrap_or(1),
        }
    }
}
