//! Priority flow control at the paused end: ports whose peers pause them.

use pathweave_units::{HostId, Time};

use crate::event::{FabricEventKind, Step};
use crate::packet::{Header, PFC_RESUME, PortId};
use crate::port::{CONTROLLED, HAS_MIDDLEBOX, STORM};
use crate::transit::Transit;

impl<P: Copy, const C: usize> Transit<P, C> {
    /// Handles a pause frame from the peer of a port.
    pub(crate) fn on_pause_frame(&mut self, now: Time, port: PortId, frame: &Header) -> Step {
        let class = frame.path().0 as u8;
        if !frame.is(PFC_RESUME) {
            self.pause(now, port, class);
            return Step::Done;
        }
        if self.lines.ports[port as usize].is(STORM) {
            return Step::Done;
        }
        self.resume(now, port, class)
    }

    pub(crate) fn pause(&mut self, now: Time, id: PortId, class: u8) {
        // Services that begin up to now still run.
        self.advance(now, id);
        let port = &mut self.lines.ports[id as usize];
        if port.paused >> class & 1 != 0 {
            return;
        }
        if port.paused == 0 {
            self.journal.pause_begins(now, id);
        }
        port.paused |= 1 << class | if port.is(HAS_MIDDLEBOX) { CONTROLLED } else { 0 };
        self.journal.note(now, id, FabricEventKind::Paused(class));
    }

    pub(crate) fn resume(&mut self, now: Time, id: PortId, class: u8) -> Step {
        self.advance(now, id);
        let port = &mut self.lines.ports[id as usize];
        if port.paused >> class & 1 == 0 {
            return Step::Done;
        }
        port.paused &= !(1 << class);
        if port.is(HAS_MIDDLEBOX) && port.paused == CONTROLLED {
            port.paused = 0;
        }
        // The paused class could not be served before this instant.
        port.tx_free = port.tx_free.max(now);
        let host = HostId(port.node);
        if port.paused == 0 {
            self.journal.pause_ends(now, id);
        }
        self.journal.note(now, id, FabricEventKind::Resumed(class));
        self.advance(now, id);
        self.lines.note_service(id);
        match self.lines.switch_of(id) {
            None => Step::Resumed { host, port: id },
            Some(_) => Step::Done,
        }
    }
}
