//! Telemetry of the packets inside a fabric, for schemes that read it. It is kept beside the contents, so that other
//! packets need no room for it.

use pathweave_units::{Rate, Telemetry, TelemetryUnits, Time};

use crate::event::Arrived;
use crate::fabric::Fabric;
use crate::packet::{Header, PortId};
use crate::port::Port;
use crate::transit::Transit;

/// Telemetry of packets, with its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) enum Carried {
    /// Switches write into it.
    Written(Telemetry),
    /// An acknowledgement returns it unchanged.
    Returned(Telemetry),
}

/// Telemetry by the slot of the packet's content.
pub(crate) struct Readings {
    units: TelemetryUnits,
    by_slot: Vec<Carried>,
}

impl Readings {
    /// Stores the telemetry of a packet, whose content is in its slot.
    pub(crate) fn put(&mut self, header: &Header, carried: Carried) {
        let slot = header.content();
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, carried);
        }
        self.by_slot[slot] = carried;
    }

    /// Returns the telemetry of a packet that carries some.
    pub(crate) fn get(&self, header: &Header) -> Carried {
        self.by_slot[header.content()]
    }

    /// Writes the state of a port, whose transmitter is free and takes this packet from the queue.
    fn write<const C: usize>(&mut self, header: &Header, port: &Port<C>, rate: Rate) {
        if let Carried::Written(telemetry) = &mut self.by_slot[header.content()] {
            telemetry.push(port.tx_free, port.sent_bytes, u64::from(port.total_queued_bytes()), rate);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.by_slot.capacity() * size_of::<Carried>()) as u64
    }
}

impl<P: Copy, const C: usize> Transit<P, C> {
    /// Writes the state of a switch's port into a packet that leaves it, if the packet carries telemetry.
    #[inline(never)]
    pub(crate) fn write_telemetry(&mut self, id: PortId, header: &Header) {
        if !header.carries_telemetry() || id < self.lines.host_ports {
            return;
        }
        let rate = self.lines.spec(id).rate;
        if let Some(readings) = &mut self.telemetry {
            readings.write(header, &self.lines.ports[id as usize], rate);
        }
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Has the switches write telemetry into the packets that ask for it. Every part of a fabric needs it.
    pub fn write_telemetry(&mut self, units: TelemetryUnits) {
        self.transit.telemetry = Some(Box::new(Readings { units, by_slot: Vec::new() }));
    }

    /// Sends a packet as [`Fabric::send`] does, into which switches write telemetry, or which returns some.
    ///
    /// # Panics
    /// [`Fabric::write_telemetry`] was not called.
    pub fn send_with_telemetry(
        &mut self,
        now: Time,
        port: PortId,
        header: Header,
        content: P,
        returned: Option<Telemetry>,
    ) {
        let header = header.with_telemetry().with_content(self.transit.contents.insert(content));
        let readings = self.transit.telemetry.as_mut().expect("a fabric that writes telemetry");
        let fresh = Carried::Written(Telemetry::new(readings.units));
        readings.put(&header, returned.map_or(fresh, Carried::Returned));
        self.send_inserted(now, port, header);
    }

    /// Returns the telemetry of a delivered packet, if it carries any.
    pub fn telemetry(&self, packet: &Arrived) -> Option<Telemetry> {
        let carried = self.transit.telemetry.as_ref().filter(|_| packet.0.carries_telemetry());
        carried.map(|readings| match readings.get(&packet.0) {
            Carried::Written(telemetry) | Carried::Returned(telemetry) => telemetry,
        })
    }
}
