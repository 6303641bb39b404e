//! A host: an endpoint behind NIC ports.

use std::collections::BTreeMap;

use pathweave_des::{EventQueue, SourceId};
use pathweave_fabric::{Fabric, Header, PortId};
use pathweave_policy::AnyPolicy;
use pathweave_transport::{Class, Endpoint, Gate, MemoryRegion, Transmit};
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::Segment;

/// What the fabric carries: the packet as the endpoint made it.
pub(crate) type Content = Segment;

/// A host.
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) endpoint: Endpoint<AnyPolicy>,
    /// Key to all its memory; there is none behind it.
    pub(crate) rkey: u32,
    /// Its first NIC port and how many there are.
    first_port: PortId,
    ports: u32,
    /// Event sources: the transmitter is free; a timer of the endpoint.
    transmit_source: SourceId,
    timer_source: SourceId,
    /// Flows of the messages that each queue pair here sends, and receives; by message sequence number.
    pub(crate) outgoing: BTreeMap<QpNum, Vec<u32>>,
    pub(crate) incoming: BTreeMap<QpNum, Vec<u32>>,
    /// Data class of packets to and from each queue pair, where it is not 1.
    pub(crate) classes: BTreeMap<QpNum, u8>,
    /// Payload that arrived, for the rate series.
    pub(crate) received_bytes: u64,
    acks_as_data: bool,
    /// None of its links is up: what it sends is lost, until its queue pairs give up.
    pub(crate) cut_off: bool,
}

impl Host {
    pub(crate) fn new(
        mut endpoint: Endpoint<AnyPolicy>,
        ports: std::ops::Range<PortId>,
        sources: (SourceId, SourceId),
        acks_as_data: bool,
    ) -> Self {
        let rkey = endpoint.register(MemoryRegion::unbounded()).expect("the first region of an endpoint");
        Host {
            rkey,
            id: endpoint.config().host,
            endpoint,
            first_port: ports.start,
            ports: ports.end - ports.start,
            transmit_source: sources.0,
            timer_source: sources.1,
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            classes: BTreeMap::new(),
            received_bytes: 0,
            acks_as_data,
            cut_off: false,
        }
    }

    /// Sends what the endpoint has to send now, and sees to being woken for the rest. To be called after everything
    /// that may change what the endpoint wants.
    #[inline]
    pub(crate) fn transmit<const C: usize>(
        &mut self,
        fabric: &mut Fabric<Content, C>,
        queue: &mut EventQueue,
        now: Time,
    ) {
        let mut gate = self.gate(fabric, queue, now);
        while let Some(packet) = self.endpoint.poll_transmit(now, gate) {
            let port = self.first_port + u32::from(packet.port);
            let class = self.class(&packet);
            let header = Header::new(
                self.id,
                packet.to,
                packet.segment.path,
                packet.wire_bytes,
                class,
                packet.ecn_capable,
            );
            fabric.send(queue, now, port, header, packet.segment);
            // Data or control, it has taken the transmitter.
            gate.data_ports &= !(1 << packet.port);
        }
        if self.endpoint.has_ready_data() {
            // A port that is free but refuses data is paused or down; the fabric tells when that ends.
            let ports = self.first_port..self.first_port + self.ports;
            if let Some(free) = ports.map(|p| fabric.port_free_at(p)).filter(|&free| free > now).min() {
                queue.schedule_no_later(self.transmit_source, free);
            }
        }
        if let Some(timer) = self.endpoint.poll_timer() {
            queue.schedule_no_later(self.timer_source, timer.max(now));
        }
    }

    /// The NIC ports that could start a data packet now.
    #[inline]
    fn gate<const C: usize>(
        &self,
        fabric: &mut Fabric<Content, C>,
        queue: &mut EventQueue,
        now: Time,
    ) -> Gate {
        let mut open = 0;
        for port in 0..self.ports {
            open |= u64::from(fabric.port_ready(queue, now, self.first_port + port)) << port;
        }
        if self.cut_off && fabric.port_free_at(self.first_port) <= now {
            open = 1;
        }
        Gate { data_ports: open }
    }

    #[inline]
    fn class(&self, packet: &Transmit) -> u8 {
        if packet.class == Class::Control && !self.acks_as_data {
            return 0;
        }
        if self.classes.is_empty() {
            return 1;
        }
        self.classes.get(&packet.segment.src_qp).copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_host_leaves_room_for_its_port_in_a_kilobyte() {
        // A port takes 228 bytes (the memory tests weigh it), two event sources 32.
        assert!(size_of::<Host>() <= 1_024 - 228 - 32, "{} B", size_of::<Host>());
    }
}
