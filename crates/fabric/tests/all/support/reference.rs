//! A reference fabric, as simple as possible: every service is an event, every account is exact at all times, and it
//! shares only the configuration with the crate under test. It is slow and easy to verify.
//!
//! It has two classes. As in the real fabric, services that end at an instant start the next one before packets
//! arrive. It reports ties of other kinds.

use std::collections::{BTreeMap, VecDeque};

use pathweave_fabric::config::{EcnConfig, MarkAt, PfcThreshold, SwitchClasses, SwitchConfig};
use pathweave_fabric::{Cable, PortMap};

use super::Packet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The transmitter of a port becomes free.
    Free(u32),
    /// A packet or pause frame reaches the far end of a port's cable.
    Arrival(u32, Cargo),
    Send(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cargo {
    Packet(u32),
    Pause(bool),
}

#[derive(Default)]
struct Port {
    node: u32,
    peer: u32,
    peer_node: u32,
    rate_bps: u64,
    delay_ps: u64,
    busy: bool,
    /// Bytes of the data packet in transmission.
    sending: u64,
    queues: [VecDeque<u32>; 2],
    /// Pause frames to send first.
    urgent: VecDeque<bool>,
    paused: bool,
    /// Bytes of class 0 and 1 in the node's buffer that arrived by this port.
    held: [u64; 2],
    pausing: bool,
}

/// The reference fabric.
pub(crate) struct Reference<'a> {
    classes: &'a SwitchClasses,
    hosts: u32,
    ports: Vec<Port>,
    used: Vec<u64>,
    shared: Vec<u64>,
    /// Number of ports of each switch.
    ports_of: Vec<u64>,
    next_hop: &'a dyn Fn(u32, &Packet) -> u32,
    packets: &'a [Packet],
    /// Port by which each packet arrived at its present node.
    ingress: Vec<u32>,
    marked: Vec<bool>,
    /// Size of each packet of which only the header is left, 0 for others.
    trimmed: Vec<u64>,
    events: BTreeMap<(u64, u8, u64), What>,
    inserted: u64,
    /// Delivered packets: (time in picoseconds, packet, marked, trimmed).
    pub(crate) delivered: Vec<(u64, u32, bool, bool)>,
    /// Packets lost for want of buffer: (time, packet).
    pub(crate) dropped: Vec<(u64, u32)>,
    /// Pause frames: (time, port, pause or resume).
    pub(crate) pauses: Vec<(u64, u32, bool)>,
    /// True if two packets arrived at the same instant, whose order is undefined.
    pub(crate) tie: bool,
}

impl<'a> Reference<'a> {
    /// Creates the fabric. `next_hop` returns the egress port of a packet at a switch.
    pub(crate) fn new(
        hosts: u32,
        switches: u32,
        cables: &[Cable],
        map: &PortMap,
        classes: &'a SwitchClasses,
        packets: &'a [Packet],
        next_hop: &'a dyn Fn(u32, &Packet) -> u32,
    ) -> Self {
        let mut ports: Vec<Port> = (0..map.len()).map(|_| Port::default()).collect();
        for (index, cable) in cables.iter().enumerate() {
            let (a, b) = map.ends(index);
            let there = (cable.rate, cable.delay);
            let back = cable.back.unwrap_or(there);
            for (port, peer, node, peer_node, (rate, delay)) in
                [(a, b, cable.a, cable.b, there), (b, a, cable.b, cable.a, back)]
            {
                let port = &mut ports[port as usize];
                (port.peer, port.node, port.peer_node) = (peer, node, peer_node);
                (port.rate_bps, port.delay_ps) = (rate.as_bps(), delay.as_ps());
            }
        }
        let headroom = |config: &SwitchConfig| match config.pfc.enabled {
            true => config.pfc.headroom.expect("given").get(),
            false => 0,
        };
        let ports_of = (0..switches).map(|s| map.ports(hosts + s).len() as u64).collect();
        let shared = (0..switches)
            .map(|s| (classes.of(s), map.ports(hosts + s).len() as u64))
            .map(|(config, ports)| config.buffer.get() - headroom(config) * ports)
            .collect();
        Reference {
            classes,
            hosts,
            ports,
            used: vec![0; switches as usize],
            shared,
            ports_of,
            next_hop,
            packets,
            ingress: vec![u32::MAX; packets.len()],
            marked: vec![false; packets.len()],
            trimmed: vec![0; packets.len()],
            events: BTreeMap::new(),
            inserted: 0,
            delivered: vec![],
            dropped: vec![],
            pauses: vec![],
            tie: false,
        }
    }

    fn schedule(&mut self, at: u64, what: What) {
        let rank = u8::from(!matches!(what, What::Free(_)));
        self.inserted += 1;
        self.events.insert((at, rank, self.inserted), what);
    }

    /// Runs a script of (picoseconds, packet) to its end. `nic` returns the port of a host.
    pub(crate) fn run(&mut self, script: &[(u64, u32)], nic: impl Fn(u32) -> u32) {
        for &(at, packet) in script {
            self.schedule(at, What::Send(packet));
        }
        let mut last_arrival = u64::MAX;
        while let Some(((now, ..), what)) = self.events.pop_first() {
            if !matches!(what, What::Free(_)) {
                self.tie |= now == last_arrival;
                last_arrival = now;
            }
            match what {
                What::Send(packet) => {
                    let port = nic(self.packets[packet as usize].src);
                    self.enqueue(now, port, packet);
                }
                What::Free(port) => {
                    self.ports[port as usize].busy = false;
                    self.ports[port as usize].sending = 0;
                    self.serve(now, port);
                }
                What::Arrival(from, cargo) => self.arrive(now, from, cargo),
            }
        }
    }

    fn arrive(&mut self, now: u64, from: u32, cargo: Cargo) {
        let (ingress, node) = (self.ports[from as usize].peer, self.ports[from as usize].peer_node);
        match cargo {
            Cargo::Pause(pause) => {
                if self.ports[ingress as usize].paused != pause {
                    self.ports[ingress as usize].paused = pause;
                    self.pauses.push((now, ingress, pause));
                    self.serve(now, ingress);
                }
            }
            Cargo::Packet(id) if node < self.hosts => {
                self.delivered.push((now, id, self.marked[id as usize], self.trimmed[id as usize] > 0));
            }
            Cargo::Packet(id) if self.config(node).trim.enabled => self.admit_or_trim(now, node, ingress, id),
            Cargo::Packet(id) => {
                let packet = self.packets[id as usize];
                let (switch, class, bytes) = ((node - self.hosts) as usize, self.class(id), self.bytes(id));
                let egress = (self.next_hop)(node, &packet);
                let config = self.config(node);
                let free = config.buffer.get() - self.used[switch];
                let queue: u64 =
                    self.ports[egress as usize].queues[class].iter().map(|&q| self.bytes(q)).sum();
                let lossless = config.pfc.enabled || class == 0;
                let limit = (free as f64 * config.egress_alpha) as u64;
                if bytes > free || (!lossless && queue + bytes > limit) {
                    self.dropped.push((now, id));
                    return;
                }
                self.used[switch] += bytes;
                self.ingress[id as usize] = ingress;
                self.ports[ingress as usize].held[class] += bytes;
                let account = &self.ports[ingress as usize];
                if config.pfc.enabled
                    && class == 1
                    && !account.pausing
                    && account.held[1] > self.limit(switch)
                {
                    self.say(now, ingress, true);
                }
                self.enqueue(now, egress, id);
            }
        }
    }

    /// Returns the settings of a switch, or for a host those that all switches share.
    fn config(&self, node: u32) -> &'a SwitchConfig {
        node.checked_sub(self.hosts).map_or(self.classes.general(), |switch| self.classes.of(switch))
    }

    fn bytes(&self, id: u32) -> u64 {
        match self.trimmed[id as usize] {
            0 => u64::from(self.packets[id as usize].bytes),
            bytes => bytes,
        }
    }

    fn class(&self, id: u32) -> usize {
        if self.trimmed[id as usize] > 0 { 0 } else { usize::from(self.packets[id as usize].class) }
    }

    fn queued(&self, port: u32, class: usize) -> u64 {
        self.ports[port as usize].queues[class].iter().map(|&id| self.bytes(id)).sum()
    }

    fn free(&self, switch: usize) -> u64 {
        self.classes.of(switch as u32).buffer.get() - self.used[switch]
    }

    /// Handles a packet at a switch that trims. The limits are the same at every port.
    fn admit_or_trim(&mut self, now: u64, node: u32, ingress: u32, id: u32) {
        let switch = (node - self.hosts) as usize;
        let egress = (self.next_hop)(node, &self.packets[id as usize]);
        let trim = &self.config(node).trim;
        let (size, data_limit) = (trim.size.get(), trim.queue.get());
        let header_limit = trim.header_queue.expect("given").get();
        let (bytes, class) = (self.bytes(id), self.class(id));
        self.ingress[id as usize] = ingress;
        if class == 0 {
            if self.queued(egress, 0) + bytes > header_limit || bytes > self.free(switch) {
                self.dropped.push((now, id));
            } else {
                self.take(now, switch, egress, id);
            }
            return;
        }
        let waiting = self.queued(egress, 1) + self.ports[egress as usize].sending;
        if waiting + bytes <= data_limit && bytes <= self.free(switch) {
            return self.take(now, switch, egress, id);
        }
        if bytes <= size {
            self.dropped.push((now, id));
            return;
        }
        let newest = self.ports[egress as usize].queues[1].back().copied();
        if trim.arriving == 0.0
            && let Some(newest) = newest.filter(|&newest| self.bytes(newest) > size)
        {
            self.ports[egress as usize].queues[1].pop_back();
            let gone = self.bytes(newest);
            self.used[switch] -= gone;
            self.ports[self.ingress[newest as usize] as usize].held[1] -= gone;
            self.trim(now, switch, egress, newest);
            if bytes <= self.free(switch) {
                return self.take(now, switch, egress, id);
            }
        }
        self.trim(now, switch, egress, id);
    }

    fn trim(&mut self, now: u64, switch: usize, egress: u32, id: u32) {
        let trim = &self.classes.of(switch as u32).trim;
        let room = trim.header_queue.expect("given").get()
            - self.queued(egress, 0).min(trim.header_queue.expect("given").get());
        if trim.size.get() > room || trim.size.get() > self.free(switch) {
            self.dropped.push((now, id));
            return;
        }
        self.trimmed[id as usize] = trim.size.get();
        self.take(now, switch, egress, id);
    }

    fn take(&mut self, now: u64, switch: usize, egress: u32, id: u32) {
        let (bytes, class) = (self.bytes(id), self.class(id));
        self.used[switch] += bytes;
        self.ports[self.ingress[id as usize] as usize].held[class] += bytes;
        self.enqueue(now, egress, id);
    }

    fn limit(&self, switch: usize) -> u64 {
        let pfc = &self.classes.of(switch as u32).pfc;
        match pfc.threshold {
            PfcThreshold::Dynamic => {
                (self.shared[switch].saturating_sub(self.used[switch]) as f64 * pfc.alpha) as u64
            }
            PfcThreshold::Static => self.shared[switch] / self.ports_of[switch],
        }
    }

    fn say(&mut self, now: u64, port: u32, pause: bool) {
        self.ports[port as usize].pausing = pause;
        self.ports[port as usize].urgent.push_back(pause);
        self.serve(now, port);
    }

    fn enqueue(&mut self, now: u64, port: u32, id: u32) {
        let class = self.class(id);
        let queued: u64 = self.ports[port as usize].queues[class].iter().map(|&q| self.bytes(q)).sum();
        if self.ecn(port).at == MarkAt::Enqueue {
            self.mark(port, id, queued);
        }
        self.ports[port as usize].queues[class].push_back(id);
        self.serve(now, port);
    }

    fn ecn(&self, port: u32) -> &'a EcnConfig {
        &self.config(self.ports[port as usize].node).ecn
    }

    /// Marks a packet above `kmin`, which must equal `kmax`.
    fn mark(&mut self, port: u32, id: u32, queued: u64) {
        let packet = &self.packets[id as usize];
        let ecn = self.ecn(port);
        if ecn.enabled
            && packet.ecn
            && self.class(id) == 1
            && self.ports[port as usize].node >= self.hosts
            && queued > ecn.kmin.get()
        {
            self.marked[id as usize] = true;
        }
    }

    fn serve(&mut self, now: u64, port_id: u32) {
        let port = &mut self.ports[port_id as usize];
        if port.busy {
            return;
        }
        if let Some(pause) = port.urgent.pop_front() {
            return self.transmit(now, port_id, 84, Cargo::Pause(pause));
        }
        let class = match (&port.queues[0].front(), &port.queues[1].front()) {
            (Some(_), _) => 0,
            (None, Some(_)) if !port.paused => 1,
            _ => return,
        };
        let id = port.queues[class].pop_front().expect("just looked");
        let left: u64 = self.ports[port_id as usize].queues[class].iter().map(|&q| self.bytes(q)).sum();
        if self.ecn(port_id).at == MarkAt::Dequeue {
            self.mark(port_id, id, left);
        }
        let bytes = self.bytes(id);
        self.ports[port_id as usize].sending = if class == 1 { bytes } else { 0 };
        self.transmit(now, port_id, bytes, Cargo::Packet(id));
        let node = self.ports[port_id as usize].node;
        if node < self.hosts {
            return;
        }
        let (switch, ingress) = ((node - self.hosts) as usize, self.ingress[id as usize]);
        self.used[switch] -= bytes;
        self.ports[ingress as usize].held[class] -= bytes;
        let account = &self.ports[ingress as usize];
        let held = account.held[1];
        let low = held == 0 || held + self.config(node).pfc.xon_gap.get() <= self.limit(switch);
        if class == 1 && account.pausing && low {
            self.say(now, ingress, false);
        }
    }

    fn transmit(&mut self, now: u64, port_id: u32, bytes: u64, cargo: Cargo) {
        let port = &mut self.ports[port_id as usize];
        port.busy = true;
        let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
        let free = now + bits.div_ceil(u128::from(port.rate_bps)) as u64;
        let arrival = free + port.delay_ps;
        self.schedule(free, What::Free(port_id));
        self.schedule(arrival, What::Arrival(port_id, cargo));
    }
}
