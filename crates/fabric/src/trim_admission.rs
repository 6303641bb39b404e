//! Admission at switches that trim: a packet or its trimmed header enters the buffer.
//!
//! The decision depends only on the egress port and on the memory of its switch. The port is brought up to date
//! first, so [lazy service](crate::Fabric) does not affect the result.

use pathweave_units::{Time, TrimmedAt};

use crate::event::DropReason;
use crate::packet::{Header, PortId};
use crate::transit::Transit;
use crate::trim::TrimLimits;

impl<P: Copy, const C: usize> Transit<P, C> {
    /// Admits a packet to the buffer of a switch that trims; the port is up to date. Returns the packet that joins
    /// the queue: the packet itself, or its trimmed header.
    ///
    /// # Errors
    /// Returns the reason if the packet is lost.
    #[inline(never)]
    pub(crate) fn admit_or_trim<'a>(
        &mut self,
        now: Time,
        switch: u32,
        egress: PortId,
        header: &'a Header,
        room: &'a mut Option<Header>,
    ) -> Result<&'a Header, DropReason> {
        let Some(limits) = self.lines.spec(egress).trim else { return Err(DropReason::Buffer) };
        let (bytes, class) = (u64::from(header.wire_bytes()), usize::from(header.class()));
        let port = &self.lines.ports[egress as usize];
        let waiting = u64::from(port.queued_bytes[class]);
        if class == 0 {
            if waiting + bytes > limits.header_bytes || !self.has_memory(now, switch, bytes) {
                return Err(DropReason::Buffer);
            }
            self.hold(switch, header);
            return Ok(header);
        }
        let fits = waiting + u64::from(port.data_being_sent(now)) + bytes <= limits.data_bytes;
        if fits && self.has_memory(now, switch, bytes) {
            self.hold(switch, header);
            return Ok(header);
        }
        let Some(trimmer) = &mut self.trimmer else { return Err(DropReason::Buffer) };
        if !limits.can_trim(header) {
            return Err(DropReason::Buffer);
        }
        let newest = self.lines.ports[egress as usize].queues[class].back();
        let newest = newest.copied().filter(|newest| limits.can_trim(newest));
        match newest {
            Some(newest) if !trimmer.chooses_arriving(egress, &limits) => {
                self.lines.ports[egress as usize].pop_newest(class);
                self.note_taken_out(egress, &newest);
                self.release(now, switch, &newest);
                match self.trim(now, switch, egress, &newest, limits) {
                    Ok(rest) => self.enqueue(now, egress, &rest),
                    Err(reason) => {
                        self.journal.lose(&mut self.contents, now, egress, &newest, reason);
                    }
                }
                if self.has_memory(now, switch, bytes) {
                    self.hold(switch, header);
                    return Ok(header);
                }
                // The packet removed for it was smaller, and no other memory is free.
                self.trim(now, switch, egress, header, limits).map(|rest| &*room.insert(rest))
            }
            _ => self.trim(now, switch, egress, header, limits).map(|rest| &*room.insert(rest)),
        }
    }

    /// Trims a packet and admits its header to the buffer.
    fn trim(
        &mut self,
        now: Time,
        switch: u32,
        egress: PortId,
        header: &Header,
        limits: TrimLimits,
    ) -> Result<Header, DropReason> {
        let size_bytes = limits.size_bytes;
        let port = &self.lines.ports[egress as usize];
        let at =
            if port.peer_node < self.lines.wires.hosts { TrimmedAt::LastHop } else { TrimmedAt::OnTheWay };
        let waiting = u64::from(port.queued_bytes[0]);
        let fits = waiting + u64::from(size_bytes) <= limits.header_bytes;
        if !fits || !self.has_memory(now, switch, u64::from(size_bytes)) {
            return Err(DropReason::HeaderQueue);
        }
        let rest = header.trimmed(size_bytes, at);
        self.journal.of_port.at(egress).trimmed_packets += 1;
        self.hold(switch, &rest);
        Ok(rest)
    }

    /// Returns true if the memory of a switch has room for `bytes` more bytes.
    fn has_memory(&mut self, now: Time, switch: u32, bytes: u64) -> bool {
        if self.switches.has_memory(switch, bytes) {
            return true;
        }
        // The lazy account is never too low.
        self.advance_switch(now, switch);
        self.switches.has_memory(switch, bytes)
    }

    fn hold(&mut self, switch: u32, header: &Header) {
        let (bytes, class) = (u32::from(header.wire_bytes()), usize::from(header.class()));
        // Switches that trim never pause.
        let _pauses = self.switches.account_in(switch, header.ingress(), class, bytes);
    }
}
