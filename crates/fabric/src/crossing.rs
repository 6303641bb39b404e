//! Division of a fabric into parts. Each part simulates some of the nodes through the windows, and packets move from
//! one part to another between windows.
//!
//! A part is a [`Fabric`] with the ports of its own nodes and the far ends of the links that lead out of it
//! ([`PortNumbers`](crate::PortNumbers)). The memory of all parts together is little more than that of the whole. A packet
//! on the link into a node of another part is handed over before that part needs it, because a window ends
//! before the packet arrives. If the other part is in another process, [`PartTransfer`] are serialized.

use borsh::BorshDeserialize;
use pathweave_units::Time;

use crate::fabric::Fabric;
use crate::forwarding::PacketState;
use crate::packet::{Header, PortId};
use crate::telemetry::Carried;

/// Packets that move into another part of the fabric.
#[derive(borsh::BorshSerialize)]
pub struct PartTransfer<P> {
    /// Headers of the packets on their links, in the order of each link.
    packets: Vec<Header>,
    /// Contents of the packets that have one, in the same order.
    contents: Vec<P>,
    /// Telemetry of the packets that carry any, in the same order.
    telemetry: Vec<Carried>,
    /// State that switches keep for a packet, with the index of the packet in `packets`, ascending.
    notes: Vec<(u32, PacketState)>,
    /// Destination nodes, each with the time of its first arrival.
    due: Vec<(u32, Time)>,
}

/// Number of packets by which prefetching runs ahead.
const AHEAD: usize = 6;

impl<P> Default for PartTransfer<P> {
    fn default() -> Self {
        PartTransfer {
            packets: Vec::new(),
            contents: Vec::new(),
            telemetry: Vec::new(),
            notes: Vec::new(),
            due: Vec::new(),
        }
    }
}

impl<P> PartTransfer<P> {
    /// Returns true if there are no packets.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Reads the crossings that another process has written, into the memory allocated already.
    ///
    /// # Errors
    /// The bytes are not serialized crossings.
    pub fn read(&mut self, from: &mut &[u8]) -> borsh::io::Result<()>
    where
        P: BorshDeserialize,
    {
        read_list(from, &mut self.packets)?;
        read_list(from, &mut self.contents)?;
        read_list(from, &mut self.telemetry)?;
        read_list(from, &mut self.notes)?;
        read_list(from, &mut self.due)
    }

    /// Removes all packets, after they have been transferred by other means.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.contents.clear();
        self.telemetry.clear();
        self.notes.clear();
        self.due.clear();
    }
}

fn read_list<T: BorshDeserialize>(from: &mut &[u8], list: &mut Vec<T>) -> borsh::io::Result<()> {
    let count = u32::deserialize(from)? as usize;
    list.clear();
    // Each element takes at least one byte.
    list.reserve(count.min(from.len()));
    for _ in 0..count {
        list.push(T::deserialize(from)?);
    }
    Ok(())
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Moves the packets on the links into `ports` to `crossings`. The ports are all far ports of `node`, which belongs
    /// to another part, each with its number there. Returns the time of the first arrival, or [`Time::MAX`] if there is
    /// no packet.
    pub fn hand_over(
        &mut self,
        node: u32,
        ports: &[(PortId, PortId)],
        crossings: &mut PartTransfer<P>,
    ) -> Time {
        let wires = &mut self.transit.lines.wires;
        let due = std::mem::replace(&mut wires.due[node as usize], Time::MAX);
        if due == Time::MAX {
            return due;
        }
        crossings.due.push((node, due));
        let start = crossings.packets.len();
        for (turn, &(port, there)) in ports.iter().enumerate() {
            if let Some(&(next, _)) = ports.get(turn + 1) {
                wires.links[next as usize].prefetch();
            }
            while let Some(header) = wires.links[port as usize].pop_before(Time::MAX) {
                self.transit.contents.prefetch(&header);
                crossings.packets.push(header.with_ingress(there));
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
        if let Some(readings) = &self.transit.telemetry {
            let carrying = packets.iter().filter(|header| header.carries_telemetry());
            crossings.telemetry.extend(carrying.map(|header| readings.get(header)));
        }
        for header in packets.iter().filter(|header| header.has_content()) {
            crossings.contents.push(*self.transit.contents.get(header));
            self.transit.contents.free(header);
        }
        due
    }

    /// Accepts the packets that another part has handed over, and empties `crossings`.
    pub fn take_over(&mut self, crossings: &mut PartTransfer<P>) {
        let (lines, keeps_notes) = (&mut self.transit.lines, self.balancing.keeps_notes());
        let mut contents = crossings.contents.drain(..);
        let mut telemetry = crossings.telemetry.drain(..);
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
                if header.carries_telemetry()
                    && let Some(readings) = &mut self.transit.telemetry
                {
                    readings.put(&header, telemetry.next().expect("one for each packet that has any"));
                }
            }
            if keeps_notes {
                let note = notes.next_if(|(of, _)| *of as usize == place).map(|(_, note)| note);
                header = self.balancing.take_over(header, note);
            }
            lines.wires.links[header.ingress() as usize].take_over(header);
        }
        crossings.packets.clear();
        for (node, due) in crossings.due.drain(..) {
            lines.wires.advance_due(node, due);
        }
    }
}
