//! A fabric in parts: each part takes some of the nodes through the windows, and packets go from one part to another between
//! windows.
//!
//! Every part is a whole [`Fabric`] of its own, made alike, in which only its own nodes ever do anything. What they put on
//! the link into a node of another part is handed over before anybody looks at it there: a window ends before it arrives.

use pathweave_units::Time;

use crate::fabric::Fabric;
use crate::forwarding::Note;
use crate::packet::{Header, PortId};

/// Packets on their way into another part of the fabric.
pub struct Crossings<P> {
    /// As they are on their links, in order of each link.
    packets: Vec<Header>,
    /// What those carry that carry anything, in the same order.
    contents: Vec<P>,
    /// What switches keep of a packet beside it, with its place in `packets`, ascending.
    notes: Vec<(u32, Note)>,
}

impl<P> Default for Crossings<P> {
    fn default() -> Self {
        Crossings { packets: Vec::new(), contents: Vec::new(), notes: Vec::new() }
    }
}

impl<P> Crossings<P> {
    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Hands over what is on the links into these ports, all of one node, which belongs to another part. Returns when the
    /// first of it arrives; [`Time::MAX`] if nothing is on its way there.
    pub fn hand_over(&mut self, node: u32, ports: &[PortId], crossings: &mut Crossings<P>) -> Time {
        let due = std::mem::replace(&mut self.transit.lines.wires.due[node as usize], Time::MAX);
        if due == Time::MAX {
            return due;
        }
        for &port in ports {
            while let Some(header) = self.transit.lines.wires.links[port as usize].pop_before(Time::MAX) {
                if let Some(note) = self.balancing.hand_over(&header) {
                    crossings.notes.push((crossings.packets.len() as u32, note));
                }
                if header.has_content() {
                    crossings.contents.push(*self.transit.contents.get(&header));
                    self.transit.contents.free(&header);
                }
                crossings.packets.push(header);
            }
        }
        due
    }

    /// Takes over what another part has handed to this one. Nothing is left of it there.
    pub fn take_over(&mut self, crossings: &mut Crossings<P>) {
        let mut contents = crossings.contents.drain(..);
        let mut notes = crossings.notes.drain(..).peekable();
        for (place, mut header) in (0..).zip(crossings.packets.drain(..)) {
            if header.has_content() {
                let content = contents.next().expect("one for each packet that has any");
                header = header.with_content(self.transit.contents.insert(content));
            }
            let note = notes.next_if(|(of, _)| *of == place).map(|(_, note)| note);
            header = self.balancing.take_over(header, note);
            let lines = &mut self.transit.lines;
            lines.wires.links[header.ingress() as usize].take_over(header);
            lines.wires.due_by(lines.ports[header.ingress() as usize].node, header.arrival());
        }
    }
}
