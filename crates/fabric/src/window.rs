//! Arrivals at a switch in a window, and their order.

use pathweave_units::Time;

use crate::forwarding::SwitchRoutes;
use crate::link::Link;
use crate::links::LONGEST_WINDOW;
use crate::packet::{Header, LOST, PFC, PortId};
use crate::ports_and_links::LINKS_AHEAD;
use crate::switch::{MAX_HOPS, Switch};

/// Packets that arrive at the current switch before the end of the window. Kept to reuse its memory.
pub(crate) struct Window<const C: usize> {
    arrivals: Vec<Header>,
    /// Sort keys, from the high end: index of the egress port in the switch, time since the earliest begin of the
    /// window, index into `arrivals`.
    order: Vec<u64>,
    /// Scratch memory to sort `order`: position of the next arrival of each port, and the keys by port.
    places: Vec<u32>,
    by_port: Vec<u64>,
    /// Bytes that arrived, by ingress port and class.
    pub(crate) came_bytes: Vec<[u32; C]>,
    /// Sum of `came_bytes`.
    pub(crate) bytes: u64,
    /// Bytes for each egress port, once [counted](Window::count_by_egress).
    pub(crate) to_bytes: Vec<u64>,
    /// True if an arrival or the switch is out of the ordinary, so that the window must be executed in order of time.
    irregular: bool,
}

const INDEX_BITS: u32 = 24;
/// Sufficient for [`LONGEST_WINDOW`] in picoseconds.
const TIME_BITS: u32 = 22;
const INDEX: u64 = (1 << INDEX_BITS) - 1;
const EGRESS_SHIFT: u32 = INDEX_BITS + TIME_BITS;

impl<const C: usize> Window<C> {
    pub(crate) fn new() -> Self {
        Window {
            arrivals: Vec::new(),
            order: Vec::new(),
            places: Vec::new(),
            by_port: Vec::new(),
            came_bytes: Vec::new(),
            bytes: 0,
            to_bytes: Vec::new(),
            irregular: false,
        }
    }

    pub(crate) fn is_rough(&self) -> bool {
        self.irregular
    }

    /// Moves the packets that arrive at a switch before `end` from its links into the window. Returns the time of the
    /// next arrival. If `HASH`, ports are chosen by hash and stored in the window. Other choices have to wait until
    /// earlier events are executed.
    pub(crate) fn collect<const HASH: bool>(&mut self, links: &mut [Link], end: Time, at: &Switch) -> Time {
        if !HASH {
            return self.collect_with(links, end, at, |_| Some(at.first_port));
        }
        // One loop for each kind of routes, rather than a match for each packet.
        match &at.routes {
            SwitchRoutes::Interval(routes) => self.collect_with(links, end, at, |header| {
                routes.choose(header.dst().0, || at.flow_hash(header))
            }),
            SwitchRoutes::Placed(routes) => self
                .collect_with(links, end, at, |header| routes.choose(header.dst(), || at.flow_hash(header))),
            _ => self.collect_with(links, end, at, |header| at.choose(header)),
        }
    }

    /// Equals [`Window::collect`], with the egress port of a packet chosen by `choose`.
    #[inline(always)]
    fn collect_with(
        &mut self,
        links: &mut [Link],
        end: Time,
        at: &Switch,
        choose: impl Fn(&Header) -> Option<PortId>,
    ) -> Time {
        let start_ps = end.as_ps().saturating_sub(LONGEST_WINDOW.as_ps());
        let (first, ports) = (at.first_port, (at.end_port - at.first_port) as usize);
        self.arrivals.clear();
        self.order.clear();
        self.came_bytes.clear();
        self.bytes = 0;
        self.irregular = false;
        let mut next = Time::MAX;
        let links = &mut links[first as usize..][..ports];
        for index in 0..ports {
            if let Some(link) = links.get(index + LINKS_AHEAD) {
                link.prefetch();
            }
            let link = &mut links[index];
            let mut came_bytes = [0; C];
            let mut flags = if link.impaired { u8::MAX } else { 0 };
            let (arrivals, order) = (&mut self.arrivals, &mut self.order);
            link.drain_before(end, |header| {
                let number = arrivals.len() as u64;
                arrivals.push(*header);
                flags |= header.flags();
                came_bytes[header.class_index::<C>()] += u32::from(header.wire_bytes());
                let egress = choose(header).unwrap_or(PortId::MAX);
                let down = egress == PortId::MAX || header.links() > MAX_HOPS;
                flags |= u8::from(down) * LOST;
                let since = header.arrival().as_ps() - start_ps;
                debug_assert!(since >> TIME_BITS == 0 && number <= INDEX);
                let egress = u64::from(egress.wrapping_sub(first));
                order.push(egress << EGRESS_SHIFT | since << INDEX_BITS | number);
            });
            self.irregular |= flags & (LOST | PFC) != 0;
            self.bytes += came_bytes.iter().map(|&bytes| u64::from(bytes)).sum::<u64>();
            self.came_bytes.push(came_bytes);
            next = next.min(link.next_arrival());
        }
        self.irregular |= at.links_down > 0 || ports >> (64 - EGRESS_SHIFT) != 0;
        next
    }

    /// Counts the bytes for each egress port, if ports were stored and all arrivals have one.
    pub(crate) fn count_by_egress(&mut self) {
        self.to_bytes.clear();
        if self.irregular {
            return;
        }
        self.to_bytes.resize(self.came_bytes.len(), 0);
        for &key in &self.order {
            let header = &self.arrivals[(key & INDEX) as usize];
            self.to_bytes[(key >> EGRESS_SHIFT) as usize] += u64::from(header.wire_bytes());
        }
    }

    /// Returns the number of arrivals.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Sorts the arrivals by time and ingress port.
    pub(crate) fn sort_by_time(&mut self) {
        self.order.iter_mut().for_each(|key| *key &= (1 << EGRESS_SHIFT) - 1);
        self.order.sort_unstable();
    }

    /// Sorts the arrivals by egress port and time. Arrivals are first distributed over the ports, which leaves few
    /// for each.
    pub(crate) fn sort_by_egress(&mut self) {
        let egress = |key: u64| (key >> EGRESS_SHIFT) as usize;
        self.places.clear();
        self.places.resize(self.came_bytes.len() + 1, 0);
        self.order.iter().for_each(|&key| self.places[egress(key) + 1] += 1);
        (1..self.places.len()).for_each(|port| self.places[port] += self.places[port - 1]);
        self.by_port.resize(self.order.len(), 0);
        for &key in &self.order {
            let place = &mut self.places[egress(key)];
            self.by_port[*place as usize] = key;
            *place += 1;
        }
        // Each position has advanced to the first arrival of the next port.
        let mut first = 0;
        for &end in &self.places[..self.came_bytes.len()] {
            let of_port = first..end as usize;
            sort_few(&self.by_port[of_port.clone()], &mut self.order[of_port]);
            first = end as usize;
        }
    }

    /// Iterates over the arrivals in the order of [`Window::sort_by_time`].
    pub(crate) fn by_time(&self) -> impl Iterator<Item = &Header> {
        self.order.iter().map(|key| &self.arrivals[(key & INDEX) as usize])
    }

    /// Iterates over the arrivals by egress port and time.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder { arrivals: &self.arrivals, order: &self.order }
    }
}

/// Writes a handful of distinct keys in order to `sorted`, which is as long. Each goes to the index given by the number
/// of smaller keys, so that no branch depends on a comparison.
#[inline(always)]
fn sort_few(keys: &[u64], sorted: &mut [u64]) {
    const FEW: usize = 12;
    if keys.len() > FEW {
        sorted.copy_from_slice(keys);
        return sorted.sort_unstable();
    }
    for &key in keys {
        let rank: usize = keys.iter().map(|&other| usize::from(other < key)).sum();
        sorted[rank] = key;
    }
}

/// Remaining arrivals of a window.
pub(crate) struct InOrder<'a> {
    arrivals: &'a [Header],
    order: &'a [u64],
}

impl<'a> InOrder<'a> {
    /// Removes the next arrivals, as long as they are for this egress port.
    #[inline(always)]
    pub(crate) fn take_at(&mut self, egress: u64) -> impl ExactSizeIterator<Item = &'a Header> + use<'a> {
        let count = self.order.iter().position(|key| key >> EGRESS_SHIFT != egress);
        let (keys, rest) = self.order.split_at(count.unwrap_or(self.order.len()));
        self.order = rest;
        let arrivals = self.arrivals;
        keys.iter().map(move |key| &arrivals[(key & INDEX) as usize])
    }
}
