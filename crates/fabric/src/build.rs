//! Construction of a fabric: nodes, cables, buffers.

use pathweave_units::{Bytes, Duration, HostId, Rate, derive_seed};

use crate::config::{EcmpHash, Forwarding, PfcThreshold, SwitchClasses, SwitchConfig};
use crate::fabric::Fabric;
use crate::forwarding::{Balancer, Balancing, ManyLeaves, SwitchRoutes};
use crate::impairments::Impairments;
use crate::journal::EventLog;
use crate::link::LinkSpec;
use crate::links::Wires;
use crate::marking::Marker;
use crate::middlebox::Middleboxes;
use crate::packet::{Contents, PortId};
use crate::port::{Port, WAN};
use crate::ports_and_links::Lines;
use crate::scheduling::Scheduler;
use crate::switch::{IngressAccount, Switch, Switches};
use crate::transit::{PAUSE_FRAME_BYTES, Transit};
use crate::trim::Trimmer;
use crate::window::Window;

/// A cable between two nodes. Hosts have the lowest node numbers.
#[derive(Clone, Copy, Debug)]
pub struct Cable {
    /// Node at one end.
    pub a: u32,
    /// Node at the other end.
    pub b: u32,
    /// Rate of each direction, or from `a` to `b`.
    pub rate: Rate,
    /// Delay of each direction, or from `a` to `b`.
    pub delay: Duration,
    /// Rate and delay from `b` to `a`, if they differ.
    pub back: Option<(Rate, Duration)>,
    /// Local to a site, or between sites.
    pub span: Span,
}

/// Extent of a cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// Within a site.
    #[default]
    Local,
    /// Between two external switches.
    Wan {
        /// True if the two switches pause each other while PFC is on.
        pfc: bool,
    },
}

/// Reason why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// The headroom that PFC requires leaves no shared buffer in this switch.
    BufferTooSmall {
        /// Number of the switch, from 0.
        switch: u32,
        /// Size of the headroom.
        headroom: Bytes,
        /// Size of the whole buffer.
        buffer: Bytes,
    },
    /// A host is attached to several leaves, and this kind of load balancing requires one.
    ManyLeaves {
        /// The host.
        host: HostId,
        /// The kind of load balancing.
        forwarding: Forwarding,
    },
    /// More than 65,536 different combinations of rate, delay and settings of switches.
    TooManyLinkKinds,
}

/// Largest frame that headroom is computed for: a 9000-byte payload with its headers.
const MAX_FRAME_BYTES: u64 = 9_216;

/// Ports of each node. Node `n` has the port ids `first_port[n]..first_port[n + 1]`, in the order of its cables.
pub struct PortMap {
    first_port: Vec<PortId>,
    /// Port ids of the two ends of each cable.
    ends: Vec<(PortId, PortId)>,
}

impl PortMap {
    /// Numbers the ports of `nodes` nodes joined by `cables`.
    pub fn new(nodes: u32, cables: &[Cable]) -> Self {
        let mut degree = vec![0u32; nodes as usize + 1];
        for cable in cables {
            degree[cable.a as usize] += 1;
            degree[cable.b as usize] += 1;
        }
        let mut next = 0;
        let first_port: Vec<PortId> = degree
            .iter()
            .map(|&ports| {
                let first = next;
                next += ports;
                first
            })
            .collect();
        let mut free = first_port.clone();
        let mut take = |node: u32| {
            free[node as usize] += 1;
            free[node as usize] - 1
        };
        let ends = cables.iter().map(|cable| (take(cable.a), take(cable.b))).collect();
        PortMap { first_port, ends }
    }

    /// Returns the ports of a node.
    pub fn ports(&self, node: u32) -> std::ops::Range<PortId> {
        self.first_port[node as usize]..self.first_port[node as usize + 1]
    }

    /// Returns the egress ports at the ends of a cable: (at `a`, at `b`).
    pub fn ends(&self, cable: usize) -> (PortId, PortId) {
        self.ends[cable]
    }

    /// Returns the number of ports.
    pub fn len(&self) -> u32 {
        *self.first_port.last().expect("one entry more than nodes")
    }

    /// Returns true if there are no ports.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Builds a fabric of `hosts` hosts and `switches` switches, idle at time zero. `routes[i]` are the routes of
    /// switch i.
    pub fn new(
        hosts: u32,
        switches: u32,
        cables: &[Cable],
        map: &PortMap,
        routes: Vec<SwitchRoutes>,
        classes: &SwitchClasses,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let config = classes.general();
        assert!(config.classes() <= C, "built for {C} classes, configured with {}", config.classes());
        assert_eq!(routes.len(), switches as usize);
        let mut wires = Wires::new(hosts, switches, map.len());
        let mut held = vec![IngressAccount::NOTHING; map.len() as usize];
        let mut by_port: Vec<Option<Port<C>>> = (0..map.len()).map(|_| None).collect();
        for (index, cable) in cables.iter().enumerate() {
            let (at_a, at_b) = map.ends(index);
            let there = (cable.rate, cable.delay);
            let back = cable.back.unwrap_or(there);
            for (at, peer, node, peer_node, (rate, delay)) in
                [(at_a, at_b, cable.a, cable.b, there), (at_b, at_a, cable.b, cable.a, back)]
            {
                let own = node.checked_sub(hosts).map_or(config, |switch| classes.of(switch));
                let spec = LinkSpec::new(rate, delay, &own.ecn, &own.trim);
                let spec = wires.number_of(spec).ok_or(BuildError::TooManyLinkKinds)?;
                let mut port = Port::new(node, peer, peer_node);
                let marks = node >= hosts && own.ecn.marks(peer_node < hosts);
                port.set_spec(spec, &wires.specs, marks);
                if let Span::Wan { pfc } = cable.span {
                    port.flags |= WAN;
                    held[at as usize].lossy = !pfc;
                }
                by_port[at as usize] = Some(port);
            }
        }
        let ports: Vec<Port<C>> = by_port.into_iter().map(|p| p.expect("every port has a cable")).collect();
        let mut built = Vec::with_capacity(switches as usize);
        for (index, routes) in (0..switches).zip(routes) {
            let range = map.ports(hosts + index);
            let own = classes.of(index);
            let spec = |port: PortId| &wires.specs[usize::from(ports[port as usize].spec)];
            let headroom: u64 = if own.pfc.enabled {
                range
                    .clone()
                    .filter(|&p| !held[p as usize].lossy)
                    .map(|p| headroom_bytes(spec(ports[p as usize].peer), spec(p), own))
                    .sum::<u64>()
                    * config.weights.len() as u64
            } else {
                0
            };
            let external = range.clone().any(|p| ports[p as usize].is(WAN));
            let buffer = if external { own.external.buffer } else { own.buffer };
            if headroom >= buffer.get() {
                return Err(BuildError::BufferTooSmall {
                    switch: index,
                    headroom: Bytes::new(headroom),
                    buffer,
                });
            }
            let hash_index = match own.hash {
                EcmpHash::Seeded => u64::from(index),
                EcmpHash::Polarised => 0,
            };
            let shared_bytes = buffer.get() - headroom;
            let (pfc_alpha, pfc_static_bytes) = match own.pfc.threshold {
                PfcThreshold::Dynamic => (to_fixed(own.pfc.alpha), 0),
                PfcThreshold::Static => (0, shared_bytes / u64::from(range.end - range.start).max(1)),
            };
            built.push(Switch {
                routes,
                hash_seed: derive_seed(seed, "ecmp", hash_index),
                used_bytes: 0,
                buffer_bytes: buffer.get(),
                shared_bytes,
                paused_neighbours: 0,
                first_port: range.start,
                end_port: range.end,
                links_down: 0,
                pfc_alpha,
                pfc_static_bytes,
                egress_alpha: to_fixed(own.egress_alpha),
                xon_gap_bytes: own.pfc.xon_gap.get(),
                pfc: own.pfc.enabled,
                trims: own.trim.enabled,
            });
        }
        let mut weights = [0u32; C];
        weights[1..config.classes()].copy_from_slice(&config.weights);
        let dice = derive_seed(seed, "fabric", 0);
        let trims = classes.each().any(|own| own.trim.enabled);
        let balancer = Balancer::new(&config.forwarding, seed, built.len(), &ports, hosts)
            .map_err(|(forwarding, ManyLeaves(host))| BuildError::ManyLeaves { host, forwarding })?;
        Ok(Fabric {
            balancing: Balancing::new(balancer),
            impairments: Impairments::new(dice, ports.len()),
            busy_nics: Vec::new(),
            active: Vec::new(),
            window: Window::new(),
            lookahead: wires.lookahead(),
            classes: classes.clone(),
            transit: Transit {
                lines: Lines {
                    wires,
                    scheduler: Scheduler::new(ports.len(), weights),
                    marker: Marker::new(classes.each().map(|own| &own.ecn), ports.len(), dice),
                    host_ports: map.first_port[hosts as usize],
                    packet_hops: 0,
                    ports,
                },
                switches: Switches { each: built, held, trims },
                middleboxes: Middleboxes::none(),
                contents: Contents::new(),
                journal: EventLog::new(map.len() as usize),
                trimmer: trims.then(|| Box::new(Trimmer::new(dice, map.len() as usize))),
                events: 0,
            },
        })
    }
}

/// Returns the bytes that may still arrive on a link after the decision to send XOFF. `arriving` is the direction of
/// the link that brings packets, `leaving` the other one. The pause frame waits for the frame in transmission and then
/// travels. The peer finishes the frame that it has begun, and the bytes in flight arrive.
fn headroom_bytes(arriving: &LinkSpec, leaving: &LinkSpec, config: &SwitchConfig) -> u64 {
    if let Some(bytes) = config.pfc.headroom {
        return bytes.get();
    }
    let before = MAX_FRAME_BYTES + u64::from(PAUSE_FRAME_BYTES);
    // Bytes that arrive until the pause frame and the frame before it have left.
    let waiting = match arriving.rate <= leaving.rate {
        true => before,
        false => arriving.rate.bytes_in(leaving.rate.time_for(before)),
    };
    arriving.rate.bytes_in(arriving.delay + leaving.delay) + 2 * MAX_FRAME_BYTES + waiting
}

/// Converts a share to 16-bit fixed point, so that thresholds are computed in integers.
fn to_fixed(share: f64) -> u64 {
    (share * 65_536.0).round() as u64
}
