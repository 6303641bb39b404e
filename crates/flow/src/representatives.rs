//! Links between switches that can be filled, with one of those that are filled alike for all of them.

use std::collections::HashMap;

use pathweave_execution::max_min::bytes_per_ps;
use pathweave_fabric::PortId;
use pathweave_sim::PacketFreeNetwork;
use pathweave_topo::Topology;
use pathweave_units::{HostId, Spread, mix64};

use crate::classes::classes_of;
use crate::walk::{Capacities, Crossing, Walker};
use crate::wanted::{ClassPairs, PairOfClasses};

/// Scale of signatures. Fractions over rates become integers, whose sum does not depend on the order.
const SIGNATURE_SCALE: f64 = (1u64 << 20) as f64;

/// Relative excess over its rate that a link may get without counting as one that can be filled. It absorbs rounding
/// errors.
const ROUNDING: f64 = 1e-6;

/// Returns by egress port its representative, or `None` if the port cannot be filled.
pub(crate) fn representatives(
    ways: &PacketFreeNetwork<'_>,
    topology: &Topology,
    walker: &mut Walker<'_>,
    capacities: &mut Capacities<'_>,
    wanted: &ClassPairs,
    class_of: &[u32],
    (rates, efficiency): (&[f64], f64),
) -> Vec<Option<PortId>> {
    let mut signatures = vec![0u64; rates.len()];
    let classes = classes_of(class_of);
    // Rates at which all hosts of each class together can send, and receive.
    let (mut sending, mut receiving) = (vec![0.0; classes], vec![0.0; classes]);
    for host in (0..topology.hosts()).map(HostId) {
        for port in topology.ports(host.into()) {
            let class = class_of[host.index()] as usize;
            let rate = |from_a| {
                // A fault may have made the link faster than the topology has it.
                let (_, now) = ways.direction(port.link, from_a);
                efficiency * bytes_per_ps(now.max(topology.direction(port.link, from_a).rate))
            };
            sending[class] += rate(port.is_a);
            receiving[class] += rate(!port.is_a);
        }
    }
    let largest = rates.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut from_sources = MaxLoad::new(rates.len());
    for (number, &PairOfClasses { spread, from, to, ends }) in wanted.list.iter().enumerate() {
        let walk = walker.walk(ways, capacities, spread, number, ends);
        let random = mix64(mix64(u64::from(from) << 32 | u64::from(to)) ^ (spread as u64 + 1));
        from_sources.begin((spread, from), sending[from as usize]);
        for &Crossing { port, share, .. } in walk.crossed {
            let relative = share * (largest / rates[port as usize]);
            let fixed = (relative * SIGNATURE_SCALE + 0.5) as u64;
            let signature = &mut signatures[port as usize];
            *signature = signature.wrapping_add(random.wrapping_mul(fixed));
            from_sources.note(port, share);
        }
    }
    // Computes the same bound from the receivers' side.
    let mut to_receivers = MaxLoad::new(rates.len());
    let mut by_receiver: Vec<_> = wanted.list.iter().enumerate().collect();
    by_receiver.sort_unstable_by_key(|(_, pair)| (pair.spread, pair.to, pair.from));
    for (number, &PairOfClasses { spread, to, ends, .. }) in by_receiver {
        let walk = walker.walk(ways, capacities, spread, number, ends);
        to_receivers.begin((spread, to), receiving[to as usize]);
        for &Crossing { port, share, .. } in walk.crossed {
            to_receivers.note(port, share);
        }
    }
    let (sent, received) = (from_sources.finish(), to_receivers.finish());
    let mut first = HashMap::new();
    let (hosts, map) = (topology.hosts(), ways.ports());
    let mut representative = vec![None; rates.len()];
    for link in 0..topology.links().len() {
        let (a, b) = map.ends(link);
        for port in [a, b] {
            let (node, peer) = ways.ends(port);
            let at_host = node < hosts || peer < hosts;
            let used = signatures[port as usize] != 0;
            let most = sent[port as usize].min(received[port as usize]);
            representative[port as usize] = match (at_host, used) {
                (true, _) => Some(port),
                (false, true) if most > rates[port as usize] * (1.0 + ROUNDING) => {
                    Some(*first.entry(signatures[port as usize]).or_insert(port))
                }
                _ => None,
            };
        }
    }
    representative
}

/// Upper bound on the traffic over each port: the sum over classes of the rate at which the hosts of the class can
/// send, times the largest fraction that crosses the port.
struct MaxLoad {
    sum: Vec<f64>,
    of_class: Vec<f64>,
    touched: Vec<PortId>,
    class: Option<(Spread, u32)>,
    rate: f64,
}

impl MaxLoad {
    fn new(ports: usize) -> Self {
        MaxLoad {
            sum: vec![0.0; ports],
            of_class: vec![0.0; ports],
            touched: Vec::new(),
            class: None,
            rate: 0.0,
        }
    }

    fn begin(&mut self, class: (Spread, u32), rate: f64) {
        if self.class != Some(class) {
            self.settle();
            self.class = Some(class);
            self.rate = rate;
        }
    }

    fn note(&mut self, port: PortId, share: f64) {
        let most = &mut self.of_class[port as usize];
        if *most == 0.0 {
            self.touched.push(port);
        }
        *most = most.max(share);
    }

    fn settle(&mut self) {
        for port in self.touched.drain(..) {
            self.sum[port as usize] += self.rate * std::mem::take(&mut self.of_class[port as usize]);
        }
    }

    fn finish(mut self) -> Vec<f64> {
        self.settle();
        self.sum
    }
}
