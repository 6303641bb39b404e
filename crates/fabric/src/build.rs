//! Construction of a fabric: nodes, cables, buffers.

use pathweave_units::{Bytes, Duration, HostId, Rate, derive_seed};

use crate::cable::{Cable, Span};
use crate::config::{EcmpHash, Forwarding, PfcThreshold, SwitchClasses, SwitchConfig};
use crate::fabric::Fabric;
use crate::forwarding::{Balancer, Balancing, ManyLeaves, SwitchRoutes, leaf_of_hosts};
use crate::impairments::Impairments;
use crate::journal::EventLog;
use crate::link::LinkSpec;
use crate::links::Wires;
use crate::marking::Marker;
use crate::middlebox::Middleboxes;
use crate::numbers::{PortMap, PortNumbers};
use crate::packet::{Contents, PortId};
use crate::port::{Port, WAN};
use crate::ports_and_links::Lines;
use crate::scheduling::Scheduler;
use crate::switch::{IngressAccount, Switch, Switches};
use crate::transit::{PAUSE_FRAME_BYTES, Transit};
use crate::trim::Trimmer;
use crate::window::Window;

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

/// Plan of a fabric, from which all of its parts are built.
#[derive(Clone, Copy)]
pub struct Blueprint<'a> {
    /// Number of hosts.
    pub hosts: u32,
    /// Number of switches.
    pub switches: u32,
    /// Returns a cable by its number.
    pub cable: &'a dyn Fn(usize) -> Cable,
    /// Numbers of the ports.
    pub map: &'a PortMap,
    /// Settings of the switches.
    pub classes: &'a SwitchClasses,
    /// Seed of the run.
    pub seed: u64,
}

impl Blueprint<'_> {
    /// Returns the switch of each host.
    fn leaf_of_hosts(&self) -> Result<Vec<u32>, ManyLeaves> {
        let cables = (0..self.map.cables()).map(|cable| (self.cable)(cable));
        leaf_of_hosts(self.hosts, cables.map(|cable| (cable.a, cable.b)))
    }

    /// Returns the settings that apply at a node: those of a switch, or the general ones at a host.
    fn config_of(&self, node: u32) -> &SwitchConfig {
        node.checked_sub(self.hosts).map_or(self.classes.general(), |switch| self.classes.of(switch))
    }
}

/// Kinds of link of a fabric, numbered, with the number of the latest one that leaves a host, and a switch.
struct Kinds<'a> {
    plan: Blueprint<'a>,
    latest: [Option<(KindKey, u16)>; 2],
}

/// Rate and delay of a direction, and the class of the switch that it leaves; `None` for a host.
type KindKey = (Rate, Duration, Option<u16>);

impl Kinds<'_> {
    /// Returns the number of the kind of a direction that leaves `node`.
    fn number(&mut self, wires: &mut Wires, node: u32, rate: Rate, delay: Duration) -> Option<u16> {
        let plan = &self.plan;
        let class = node.checked_sub(plan.hosts).map(|switch| plan.classes.class_of(switch));
        let key = (rate, delay, class);
        // Neighbouring cables are mostly of one kind.
        let latest = usize::from(class.is_some());
        if let Some((known, number)) = self.latest[latest]
            && known == key
        {
            return Some(number);
        }
        let own = plan.config_of(node);
        let number = wires.number_of(LinkSpec::new(rate, delay, &own.ecn, &own.trim))?;
        self.latest[latest] = Some((key, number));
        Some(number)
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
        let plan = Blueprint { hosts, switches, cable: &|index| cables[index], map, classes, seed };
        Fabric::of_part(&plan, PortNumbers::all(map), routes)
    }

    /// Builds a part of a fabric, idle at time zero: the part that holds the ports of `numbers`, by which all calls name
    /// them. `routes[i]` are the routes of switch i, [`SwitchRoutes::Elsewhere`] for switches of other parts.
    pub fn of_part(
        plan: &Blueprint<'_>,
        numbers: PortNumbers,
        routes: Vec<SwitchRoutes>,
    ) -> Result<Self, BuildError> {
        let (hosts, config) = (plan.hosts, plan.classes.general());
        assert!(config.classes() <= C, "built for {C} classes, configured with {}", config.classes());
        assert_eq!(routes.len(), plan.switches as usize);
        let mut wires = Wires::new(hosts, plan.switches, numbers.held() as u32);
        let mut held = vec![IngressAccount::NOTHING; numbers.held()];
        let (ports, links) = connect(plan, &numbers, &mut wires, &mut held)?;
        let mut built = Vec::with_capacity(plan.switches as usize);
        for ((index, routes), links) in (0..plan.switches).zip(routes).zip(links) {
            let buffer = buffer_of(plan, index, &links)?;
            let ports = numbers.ports(hosts + index);
            built.push(switch(plan, index, ports, (buffer, links.headroom_bytes), routes));
        }
        let mut weights = [0u32; C];
        weights[1..config.classes()].copy_from_slice(&config.weights);
        let dice = derive_seed(plan.seed, "fabric", 0);
        let trims = plan.classes.each().any(|own| own.trim.enabled);
        let balancer = Balancer::new(&config.forwarding, plan.seed, built.len(), numbers.held(), &|| {
            plan.leaf_of_hosts()
        })
        .map_err(|(forwarding, ManyLeaves(host))| BuildError::ManyLeaves { host, forwarding })?;
        Ok(Fabric {
            balancing: Balancing::new(balancer),
            impairments: Impairments::new(dice, &numbers),
            busy_nics: Vec::new(),
            active: Vec::new(),
            window: Window::new(),
            lookahead: wires.lookahead(),
            classes: plan.classes.clone(),
            transit: Transit {
                lines: Lines {
                    wires,
                    scheduler: Scheduler::new(ports.len(), weights),
                    marker: Marker::new(plan.classes.each().map(|own| &own.ecn), &numbers, dice),
                    host_ports: numbers.first(hosts),
                    packet_hops: 0,
                    ports,
                },
                switches: Switches { each: built, held, trims },
                middleboxes: Middleboxes::none(),
                contents: Contents::new(),
                telemetry: None,
                journal: EventLog::new(numbers.held()),
                trimmer: trims.then(|| Box::new(Trimmer::new(dice, &numbers))),
                events: 0,
            },
            numbers,
        })
    }
}

/// Requirements of the links of a switch.
#[derive(Clone, Copy, Default)]
struct LinksOfSwitch {
    /// Headroom of all ports and lossless classes.
    headroom_bytes: u64,
    /// True if a link leads to another site.
    external: bool,
}

/// Creates the ports that a part holds. Returns them with the requirements of the links of every switch of the fabric.
fn connect<const C: usize>(
    plan: &Blueprint<'_>,
    numbers: &PortNumbers,
    wires: &mut Wires,
    held: &mut [IngressAccount<C>],
) -> Result<(Vec<Port<C>>, Vec<LinksOfSwitch>), BuildError> {
    let hosts = plan.hosts;
    let mut by_port: Vec<Option<Port<C>>> = (0..numbers.held()).map(|_| None).collect();
    let mut of_switch = vec![LinksOfSwitch::default(); plan.switches as usize];
    let lossless = plan.classes.general().weights.len() as u64;
    let mut kinds = Kinds { plan: *plan, latest: [None; 2] };
    for index in 0..plan.map.cables() {
        let cable = (plan.cable)(index);
        let there = (cable.rate, cable.delay);
        let back = cable.back.unwrap_or(there);
        let ends = numbers.ends(plan.map, index, (cable.a, cable.b));
        let lossy = matches!(cable.span, Span::Wan { pfc: false });
        for (end, (node, peer_node), (rate, delay)) in
            [(0, (cable.a, cable.b), there), (1, (cable.b, cable.a), back)]
        {
            let spec = kinds.number(wires, node, rate, delay).ok_or(BuildError::TooManyLinkKinds)?;
            let own = plan.config_of(node);
            if let Some(switch) = node.checked_sub(hosts) {
                let links = &mut of_switch[switch as usize];
                links.external |= cable.span != Span::Local;
                if own.pfc.enabled && !lossy {
                    let arriving = if end == 0 { back } else { there };
                    links.headroom_bytes += lossless * headroom_bytes(arriving, (rate, delay), own);
                }
            }
            // A link between two other parts has no state here, but its kind limits the windows of all parts.
            let Some((a, b)) = ends else { continue };
            let (at, peer) = if end == 0 { (a, b) } else { (b, a) };
            let mut port = Port::new(node, peer, peer_node);
            let marks = node >= hosts && own.ecn.marks(peer_node < hosts);
            port.set_spec(spec, &wires.specs, marks);
            if let Span::Wan { .. } = cable.span {
                port.flags |= WAN;
                held[at as usize].lossy = lossy;
            }
            by_port[at as usize] = Some(port);
        }
    }
    let ports = by_port.into_iter().map(|port| port.expect("every port has a cable")).collect();
    Ok((ports, of_switch))
}

/// Returns the buffer of a switch.
fn buffer_of(plan: &Blueprint<'_>, switch: u32, links: &LinksOfSwitch) -> Result<Bytes, BuildError> {
    let own = plan.classes.of(switch);
    let buffer = if links.external { own.external.buffer } else { own.buffer };
    if links.headroom_bytes >= buffer.get() {
        let headroom = Bytes::new(links.headroom_bytes);
        return Err(BuildError::BufferTooSmall { switch, headroom, buffer });
    }
    Ok(buffer)
}

/// Creates a switch with these ports, which has a buffer and a headroom of so many bytes.
fn switch(
    plan: &Blueprint<'_>,
    index: u32,
    ports: std::ops::Range<PortId>,
    (buffer, headroom): (Bytes, u64),
    routes: SwitchRoutes,
) -> Switch {
    let own = plan.classes.of(index);
    let hash_index = match own.hash {
        EcmpHash::Seeded => u64::from(index),
        EcmpHash::Polarised => 0,
    };
    let shared_bytes = buffer.get() - headroom;
    let (pfc_alpha, pfc_static_bytes) = match own.pfc.threshold {
        PfcThreshold::Dynamic => (to_fixed(own.pfc.alpha), 0),
        PfcThreshold::Static => (0, shared_bytes / u64::from(ports.end - ports.start).max(1)),
    };
    Switch {
        routes,
        whole_shift: plan.map.ports(plan.hosts + index).start.wrapping_sub(ports.start),
        hash_seed: derive_seed(plan.seed, "ecmp", hash_index),
        used_bytes: 0,
        buffer_bytes: buffer.get(),
        shared_bytes,
        paused_neighbours: 0,
        first_port: ports.start,
        end_port: ports.end,
        links_down: 0,
        pfc_alpha,
        pfc_static_bytes,
        egress_alpha: to_fixed(own.egress_alpha),
        xon_gap_bytes: own.pfc.xon_gap.get(),
        pfc: own.pfc.enabled,
        trims: own.trim.enabled,
    }
}

/// Returns the bytes that may still arrive on a link after the decision to send XOFF. `arriving` is the rate and the
/// delay of the direction that brings packets, `leaving` of the other one. The pause frame waits for the frame in
/// transmission and then travels. The peer finishes the frame that it has begun, and the bytes in flight arrive.
fn headroom_bytes(arriving: (Rate, Duration), leaving: (Rate, Duration), config: &SwitchConfig) -> u64 {
    if let Some(bytes) = config.pfc.headroom {
        return bytes.get();
    }
    let before = MAX_FRAME_BYTES + u64::from(PAUSE_FRAME_BYTES);
    // Bytes that arrive until the pause frame and the frame before it have left.
    let waiting = match arriving.0 <= leaving.0 {
        true => before,
        false => arriving.0.bytes_in(leaving.0.time_for(before)),
    };
    arriving.0.bytes_in(arriving.1 + leaving.1) + 2 * MAX_FRAME_BYTES + waiting
}

/// Converts a share to 16-bit fixed point, so that thresholds are computed in integers.
fn to_fixed(share: f64) -> u64 {
    (share * 65_536.0).round() as u64
}
