//! Simulation of a calm switch: a switch that cannot reach any buffer limit in a window.
//!
//! The ports of a calm switch are independent of each other: no pause begins or ends, and no packet is refused. Each
//! port is therefore simulated alone through the window, which keeps its state in cache. The result is the same as in
//! order of time.

use pathweave_units::Time;

use crate::links::Wires;
use crate::packet::{Header, PortId};
use crate::plain::{is_plain, run_plain_port};
use crate::port::Port;
use crate::ports_and_links::{Lines, as_queued, served};
use crate::switch::{IngressAccount, Switches};
use crate::window::Window;

/// Number of ports by which prefetching runs ahead.
pub(crate) const PORTS_AHEAD: usize = 3;

/// Departures from a port in the window, and the accounts that they reduce.
pub(crate) struct Departures<'a, const C: usize> {
    /// Accounts of the switch, by ingress port.
    held: &'a mut [IngressAccount<C>],
    /// First port of the switch.
    first: usize,
    packets: u64,
    bytes: u64,
}

impl<'a, const C: usize> Departures<'a, C> {
    pub(crate) fn new(held: &'a mut [IngressAccount<C>], first: usize) -> Self {
        Departures { held, first, packets: 0, bytes: 0 }
    }

    /// Counts a packet that departs, and removes it from its account.
    #[inline(always)]
    pub(crate) fn note(&mut self, header: &Header) {
        self.packets += 1;
        self.bytes += u64::from(header.wire_bytes());
        let account = &mut self.held[header.ingress() as usize - self.first];
        account.bytes[header.class_index::<C>()] -= u32::from(header.wire_bytes());
    }

    /// Returns the packets and bytes that have departed.
    #[inline(always)]
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    #[inline(always)]
    fn put(&mut self, wires: &mut Wires, port: &mut Port<C>, header: &Header) {
        wires.transmit(port, header);
        self.note(header);
    }
}

/// Returns true if no event of the window can reach a buffer limit, even if every arriving packet stayed.
pub(crate) fn is_calm<const C: usize>(
    lines: &Lines<C>,
    switches: &Switches<C>,
    switch: u32,
    window: &Window<C>,
) -> bool {
    let at = &switches.each[switch as usize];
    let used = at.used_bytes + window.bytes;
    if window.is_rough() || at.paused_neighbours > 0 || used > at.buffer_bytes {
        return false;
    }
    let ports = at.first_port as usize..at.end_port as usize;
    if at.trims {
        let within = |(port, &to): (&Port<C>, &u64)| {
            let limits = lines.wires.specs[usize::from(port.spec)].trim;
            let headers = u64::from(port.queued_bytes[0]);
            let data = u64::from(port.total_queued_bytes()) + u64::from(port.most_data_being_sent());
            limits.is_some_and(|limits| headers + to <= limits.header_bytes && data + to <= limits.data_bytes)
        };
        return lines.ports[ports].iter().zip(&window.to_bytes).all(within);
    }
    if !at.pfc {
        let limit = at.queue_limit_bytes(used);
        let within = |port: &Port<C>| u64::from(port.total_queued_bytes()) + window.bytes <= limit;
        return lines.ports[ports].iter().all(within);
    }
    let limit = at.xoff_limit_bytes(used);
    let within = |(held, came): (&u32, &u32)| u64::from(*held) + u64::from(*came) <= limit;
    switches.held[ports]
        .iter()
        .zip(&window.came_bytes)
        .all(|(held, came)| held.bytes[1..].iter().zip(&came[1..]).all(within))
}

/// Simulates the ports of a switch one by one through the window. Returns the time of the next service.
pub(crate) fn run_calm<const C: usize>(
    lines: &mut Lines<C>,
    switches: &mut Switches<C>,
    last: Time,
    switch: u32,
    window: &Window<C>,
) -> Time {
    let at = &mut switches.each[switch as usize];
    let (first, end) = (at.first_port as usize, at.end_port as usize);
    for (held, came) in switches.held[first..end].iter_mut().zip(&window.came_bytes) {
        (0..C).for_each(|class| held.bytes[class] += came[class]);
    }
    at.used_bytes += window.bytes;
    let mut left_bytes = 0;
    let mut next = Time::MAX;
    let mut arrivals = window.in_order();
    for index in 0..end - first {
        let id = (first + index) as u32;
        if index + PORTS_AHEAD < end - first {
            lines.prefetch_services(id + PORTS_AHEAD as u32);
        }
        if index + 1 < end - first {
            let next = &lines.ports[first + index + 1];
            next.prefetch_end();
            lines.wires.links[next.peer as usize].prefetch_end();
        }
        let port = &lines.ports[first + index];
        let arrivals = arrivals.take_at(index as u64);
        let is_idle = arrivals.len() == 0 && port.eligible_by(last).is_none();
        if !is_idle {
            let mut departures = Departures::new(&mut switches.held[first..end], first);
            if is_plain(port, window.bytes) {
                let port = &mut lines.ports[first + index];
                run_plain_port(&mut lines.wires, port, last, &mut departures, arrivals);
            } else {
                run_port(lines, id, last, &mut departures, arrivals);
            }
            let port = &mut lines.ports[first + index];
            let (packets, bytes) = departures.counts();
            port.sent_packets += packets;
            port.sent_bytes += bytes;
            lines.packet_hops += packets;
            left_bytes += bytes;
        }
        let port = &lines.ports[first + index];
        let service = if port.eligible() != 0 { port.tx_free } else { Time::MAX };
        next = next.min(service);
    }
    switches.each[switch as usize].used_bytes -= left_bytes;
    next
}

/// Simulates a port up to `last`, with its arrivals in order of time.
#[inline(always)]
pub(crate) fn run_port<'a, const C: usize>(
    lines: &mut Lines<C>,
    id: PortId,
    last: Time,
    departures: &mut Departures<'_, C>,
    mut arrivals: impl Iterator<Item = &'a Header>,
) {
    let port = &mut lines.ports[id as usize];
    loop {
        let arrival = arrivals.next();
        let until = arrival.map_or(last, Header::arrival);
        while let Some(eligible) = port.eligible_by(until) {
            let class = lines.scheduler.next_class(id, port, eligible);
            let header = served(&mut lines.marker, &lines.wires.specs, id, port, class);
            departures.put(&mut lines.wires, port, &header);
        }
        let Some(header) = arrival else { break };
        let mut room = None;
        let header = as_queued(&mut lines.marker, &lines.wires.specs, id, port, header, &mut room);
        let class = usize::from(header.class());
        if port.starts_at_once(class, until) {
            departures.put(&mut lines.wires, port, header);
        } else {
            port.push(class, header);
        }
    }
}
