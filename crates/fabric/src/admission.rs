//! Admission to the shared buffer of a switch: dynamic thresholds, drops, and PFC pauses of the upstream ports.
//! Admission by trimming switches is in `make_room.rs`.

use pathweave_units::Time;

use crate::event::DropReason;
use crate::packet::{Header, PortId};
use crate::port::DOWN;
use crate::switch::MAX_HOPS;
use crate::transit::Transit;

impl<P: Copy, const C: usize> Transit<P, C> {
    /// Admits a packet to the buffer for an egress port. Returns the packet that joins the queue: the packet itself,
    /// or its trimmed header at switches that trim.
    ///
    /// # Errors
    /// Returns the reason if the packet is lost.
    #[inline(always)]
    pub(crate) fn take_in<'a>(
        &mut self,
        now: Time,
        switch: u32,
        egress: PortId,
        header: &'a Header,
        room: &'a mut Option<Header>,
    ) -> Result<&'a Header, DropReason> {
        self.prepare_egress(now, egress, header)?;
        if self.switches.trims && self.switches.each[switch as usize].trims {
            return self.admit_or_trim(now, switch, egress, header, room);
        }
        self.admit(now, switch, egress, header).map(|()| header)
    }

    /// Admits a packet that the switch holds back instead of queueing it. Such a packet is never trimmed.
    ///
    /// # Errors
    /// Returns the reason if the packet is lost.
    pub(crate) fn take_in_to_hold(
        &mut self,
        now: Time,
        switch: u32,
        egress: PortId,
        header: &Header,
    ) -> Result<(), DropReason> {
        self.prepare_egress(now, egress, header)?;
        self.admit(now, switch, egress, header)
    }

    /// Checks the hop limit and the link of the egress port, and brings the port up to date.
    #[inline(always)]
    fn prepare_egress(&mut self, now: Time, egress: PortId, header: &Header) -> Result<(), DropReason> {
        if header.links() > MAX_HOPS {
            return Err(DropReason::Loop);
        }
        if self.lines.ports[egress as usize].is(DOWN) {
            return Err(DropReason::LinkDown);
        }
        // Before the buffer is checked, so that the port's share of it is exact.
        self.advance(now, egress);
        Ok(())
    }

    /// Admits a packet to the buffer, and pauses the upstream port if its ingress account is over the threshold.
    #[inline(always)]
    fn admit(&mut self, now: Time, switch: u32, egress: PortId, header: &Header) -> Result<(), DropReason> {
        let (bytes, class) = (u32::from(header.wire_bytes()), usize::from(header.class()));
        if !self.has_room(switch, egress, class, bytes) {
            // The lazy account is never too low. A packet is refused by the exact account only.
            self.advance_switch(now, switch);
            if !self.has_room(switch, egress, class, bytes) {
                return Err(DropReason::Buffer);
            }
        }
        if self.switches.account_in(switch, header.ingress(), class, bytes) {
            self.pause_if_over(now, switch, header.ingress(), class);
        }
        Ok(())
    }

    #[inline(always)]
    fn has_room(&self, switch: u32, egress: PortId, class: usize, bytes: u32) -> bool {
        let queued_bytes = self.lines.ports[egress as usize].queued_bytes[class];
        self.switches.has_room(switch, queued_bytes, class, u64::from(bytes))
    }

    /// Pauses the upstream port if the exact account is over the threshold, as the lazy account is.
    #[cold]
    fn pause_if_over(&mut self, now: Time, switch: u32, ingress: PortId, class: usize) {
        // A request does not cross a dead direction. It is made once the direction is back.
        if self.switches.held[ingress as usize].lossy || self.lines.ports[ingress as usize].is(DOWN) {
            return;
        }
        self.advance_switch(now, switch);
        if self.switches.pauses(switch, ingress, class) {
            self.send_pause_frame(now, ingress, class, 0);
        }
    }
}
