//! A fabric in parts: each part takes some of the nodes through the windows, and packets go from one part to another between
//! windows.
//!
//! Every part is a whole [`Fabric`] of its own, made alike, in which only its own nodes ever do anything. What they put on
//! the link into a node of another part is handed over before anybody looks at it there: a window ends before it arrives.
//! Where that part is in another process, [`Crossings`] go there in bytes.

use borsh::BorshDeserialize;
use pathweave_units::Time;

use crate::fabric::Fabric;
use crate::forwarding::Note;
use crate::packet::{Header, PortId};

/// Packets on their way into another part of the fabric.
#[derive(borsh::BorshSerialize)]
pub struct Crossings<P> {
    /// As they are on their links, in order of each link.
    packets: Vec<Header>,
    /// What those carry that carry anything, in the same order.
    contents: Vec<P>,
    /// What switches keep of a packet beside it, with its place in `packets`, ascending.
    notes: Vec<(u32, Note)>,
    /// The nodes they go to, with when the first arrives.
    due: Vec<(u32, Time)>,
}

/// Packets ahead of its turn of which the memory that one goes to is asked for.
const AHEAD: usize = 6;

impl<P> Default for Crossings<P> {
    fn default() -> Self {
        Crossings { packets: Vec::new(), contents: Vec::new(), notes: Vec::new(), due: Vec::new() }
    }
}

impl<P> Crossings<P> {
    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Reads what another process has written, into the memory that is here already.
    ///
    /// # Errors
    /// It is not what was written there.
    pub fn read(&mut self, from: &mut &[u8]) -> borsh::io::Result<()>
    where
        P: BorshDeserialize,
    {
        read_list(from, &mut self.packets)?;
        read_list(from, &mut self.contents)?;
        read_list(from, &mut self.notes)?;
        read_list(from, &mut self.due)
    }

    /// Forgets all of it: it has gone another way.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.contents.clear();
        self.notes.clear();
        self.due.clear();
    }
}

fn read_list<T: BorshDeserialize>(from: &mut &[u8], list: &mut Vec<T>) -> borsh::io::Result<()> {
    let count = u32::deserialize(from)? as usize;
    list.clear();
    // Each takes a byte at least.
    list.reserve(count.min(from.len()));
    for _ in 0..count {
        list.push(T::deserialize(from)?);
    }
    Ok(())
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Hands over what is on the links into these ports, all of one node, which belongs to another part. Returns when the
    /// first of it arrives; [`Time::MAX`] if nothing is on its way there.
    pub fn hand_over(&mut self, node: u32, ports: &[PortId], crossings: &mut Crossings<P>) -> Time {
        let wires = &mut self.transit.lines.wires;
        let due = std::mem::replace(&mut wires.due[node as usize], Time::MAX);
        if due == Time::MAX {
            return due;
        }
        crossings.due.push((node, due));
        let start = crossings.packets.len();
        for (turn, &port) in ports.iter().enumerate() {
            if let Some(&next) = ports.get(turn + 1) {
                wires.links[next as usize].prefetch();
            }
            while let Some(header) = wires.links[port as usize].pop_before(Time::MAX) {
                self.transit.contents.prefetch(&header);
                crossings.packets.push(header);
            }
        }
        let packets = &crossings.packets[start..];
        if self.balancing.keeps_notes() {
            let notes = (start as u32..).zip(packets);
            let balancing = &mut self.balancing;
            crossings
                .notes
                .extend(notes.filter_map(|(place, header)| Some((place, balancing.hand_over(header)?))));
        }
        for header in packets.iter().filter(|header| header.has_content()) {
            crossings.contents.push(*self.transit.contents.get(header));
            self.transit.contents.free(header);
        }
        due
    }

    /// Takes over what another part has handed to this one. Nothing is left of it there.
    pub fn take_over(&mut self, crossings: &mut Crossings<P>) {
        let (lines, keeps_notes) = (&mut self.transit.lines, self.balancing.keeps_notes());
        let mut contents = crossings.contents.drain(..);
        let mut notes = crossings.notes.drain(..).peekable();
        for (place, header) in crossings.packets.iter().enumerate() {
            if let Some(later) = crossings.packets.get(place + AHEAD) {
                lines.wires.links[later.ingress() as usize].prefetch_end();
                self.transit.contents.prefetch_free(AHEAD);
            }
            let mut header = *header;
            if header.has_content() {
                let content = contents.next().expect("one for each packet that has any");
                header = header.with_content(self.transit.contents.insert(content));
            }
            if keeps_notes {
                let note = notes.next_if(|(of, _)| *of as usize == place).map(|(_, note)| note);
                header = self.balancing.take_over(header, note);
            }
            lines.wires.links[header.ingress() as usize].take_over(header);
        }
        crossings.packets.clear();
        for (node, due) in crossings.due.drain(..) {
            lines.wires.due_by(node, due);
        }
    }
}
