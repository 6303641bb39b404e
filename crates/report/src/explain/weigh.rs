//! Bounds on the time that faults, slower links and background traffic can have cost a flow, and the attribution of its
//! lost time to them.

use std::collections::BTreeMap;

use super::accounting::DelayCause;
use super::facts::{Facts, Flow};
use super::room::SPARE;
use super::settings::Fault;

/// Part of a flow's time for which a fault must last to change the use of paths beyond its own end.
pub(super) const LASTING: f64 = 0.1;
/// Factor on the mean use of the links beside it below which a link counts as avoided.
const AVOIDED: f64 = 0.9;
/// Part of the run for which a link must be up for its use to be known.
const KNOWN_UP: f64 = 0.25;
/// Kinds of pickers that keep a flow or a message on one path.
const ONE_PATH: [&str; 4] = ["ecmp", "weighted", "per_message", "plb"];
/// Choices of switches that keep a flow or a flowlet on one path, whatever its state.
const BY_HASH: [&str; 3] = ["ecmp", "wcmp", "letflow"];

/// A flow in space and time.
#[derive(Clone, Copy)]
pub(super) struct Journey {
    pub(super) src_host: u32,
    pub(super) dst_host: u32,
    pub(super) start_ns: f64,
    pub(super) end_ns: f64,
}

impl From<&Flow> for Journey {
    fn from(flow: &Flow) -> Journey {
        let (src_host, dst_host) = (flow.src_host, flow.dst_host);
        Journey { src_host, dst_host, start_ns: flow.start_ns, end_ns: flow.end_ns() }
    }
}

impl Journey {
    pub(super) fn took_ns(&self) -> f64 {
        self.end_ns - self.start_ns
    }
}

/// Origin of a hindrance.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Origin {
    /// Fault, as an index into [`Facts::faults`].
    Fault(usize),
    /// Link that is slower than those beside it.
    SlowLink(usize),
}

impl Origin {
    fn cause(self) -> DelayCause {
        match self {
            Origin::Fault(fault) => DelayCause::Fault(fault),
            Origin::SlowLink(link) => DelayCause::SlowLink(link),
        }
    }
}

/// Something that took capacity from the paths of a flow.
pub(super) struct Hindrance {
    pub(super) origin: Origin,
    /// Links on the paths, behind the numbers of their layers.
    pub(super) links: Vec<(usize, usize)>,
    /// Time for which the flow met it.
    pub(super) over_ns: f64,
    /// Largest part of the rate of a layer of paths that its links have.
    pub(super) part: f64,
    /// Part of the capacity of its links that it took.
    pub(super) depth: f64,
}

/// Hindrances of a flow, and the links of its paths by their distance from the sender.
pub(super) struct Met<'a> {
    pub(super) facts: &'a Facts,
    pub(super) journey: Journey,
    /// Links on the shortest paths by their distance from the sender, and behind them each other link that the flow crossed.
    pub(super) layers: Vec<Vec<usize>>,
    /// Number of layers of shortest paths.
    on_paths: usize,
    pub(super) hindrances: Vec<Hindrance>,
}

impl Facts {
    /// Returns true if flows or messages keep to one path, which neither switches nor senders move.
    pub(super) fn keeps_paths(&self) -> bool {
        let settings = &self.settings;
        let picker = settings.text("scheme.policy.picker");
        let of_kind = |kind: &&str| {
            picker == Some(*kind) || settings.words(&format!("scheme.policy.picker.{kind}")).is_some()
        };
        let of_switches = settings.text("scheme.forwarding").is_none_or(|kind| BY_HASH.contains(&kind));
        of_switches && ONE_PATH.iter().any(of_kind)
    }

    /// Returns the bytes that a link carried, as a part of what it could have carried in the run without faults.
    pub(super) fn carried(&self, links: &[usize]) -> f64 {
        let sum =
            |of: fn(&super::facts::Link) -> f64| links.iter().map(|&link| of(&self.links[link])).sum::<f64>();
        let could = sum(|link| link.rate_bps) / 8e9 * self.run_ns;
        if could > 0.0 { sum(|link| link.tx_bytes) / could } else { 0.0 }
    }

    /// Returns the part of a link's capacity that a fault takes while it is in force.
    fn depth(&self, fault: &Fault, link: usize) -> f64 {
        let at = &self.links[link];
        match fault.kind.as_str() {
            "link-rate" => (1.0 - fault.rate_bps.unwrap_or(at.rate_bps) / at.rate_bps).clamp(0.0, 1.0),
            "link-delay" => (self.added_ns(fault, link) / self.round_trip_ns()).clamp(0.0, 1.0),
            "link-loss" | "link-corruption" => fault.probability.clamp(0.0, 1.0),
            _ => 1.0,
        }
    }

    fn added_ns(&self, fault: &Fault, link: usize) -> f64 {
        let usual_ns = Some(self.links[link].delay_ns).filter(|ns| ns.is_finite()).unwrap_or(0.0);
        (fault.delay_ns.unwrap_or(0.0) - usual_ns).max(0.0)
    }

    /// Returns the links of a layer that are slower than the others as the fabric is built.
    fn slower_in(&self, layer: &[usize]) -> Vec<usize> {
        let rate = |link: usize| self.links[link].rate_bps;
        let most = layer.iter().map(|&link| rate(link)).fold(0.0, f64::max);
        let slow = layer.iter().copied().filter(|&link| rate(link) < 0.75 * most && self.is_slow(link));
        slow.collect()
    }

    /// Returns the hindrances that a flow met, which is known to have crossed some links.
    pub(super) fn met(&self, journey: Journey, crossed: impl Iterator<Item = usize>) -> Met<'_> {
        let mut layers = self.layers_between(journey.src_host, journey.dst_host);
        let on_paths = layers.len();
        for link in crossed {
            if !layers.iter().any(|layer| layer.contains(&link)) {
                layers.push(vec![link]);
            }
        }
        let mut met = Met { facts: self, journey, layers, on_paths, hindrances: Vec::new() };
        for (index, fault) in self.faults.iter().enumerate().filter(|(_, fault)| fault.kind != "pause-storm")
        {
            let over_ns = fault.overlap_ns(journey.start_ns, journey.end_ns);
            if over_ns > 0.0 {
                let depth = |link: usize| self.depth(fault, link);
                met.add(Origin::Fault(index), over_ns, |link| self.links[link].has(fault), depth);
            }
        }
        let slower: Vec<usize> = met.layers.iter().flat_map(|layer| self.slower_in(layer)).collect();
        for slow in slower {
            let depth = |link: usize| 1.0 - self.links[link].rate_bps / self.usual_rate_bps(link);
            met.add(Origin::SlowLink(slow), journey.took_ns(), |link| link == slow, depth);
        }
        met
    }

    /// Attributes the lost time of a flow to faults, to links that are slower than those beside them, and to background
    /// traffic, as far as these can have cost it. Returns upper bounds of the time that faults can have cost it, by fault.
    pub(super) fn weigh(&self, flow: &Flow, sums: &mut BTreeMap<DelayCause, f64>) -> BTreeMap<usize, f64> {
        let met = self.met(Journey::from(flow), flow.crossed());
        met.weigh_losses(flow, sums);
        met.weigh_dead_ports(flow, sums);
        met.weigh_distance(flow, sums);
        met.weigh_links(sums);
        self.weigh_background(flow, sums);
        met.bounds_of_faults(|hindrance, fault| {
            met.held_ns(hindrance) + 2.0 * met.added_ns(hindrance) + met.repair_ns(flow, fault)
        })
    }

    /// Attributes waits at links to background traffic: without its packets a link would have had as much more room.
    fn weigh_background(&self, flow: &Flow, sums: &mut BTreeMap<DelayCause, f64>) {
        let workloads = self.settings.workloads();
        let is_background = |group: &str| workloads.iter().any(|w| w.group == group && w.is_background);
        if !workloads.iter().any(|workload| workload.is_background) {
            return;
        }
        let links: Vec<usize> = sums.keys().filter_map(|held| held.link()).collect();
        for link in links {
            let Some(part) = flow.parts.iter().find(|part| part.link == Some(link)) else { continue };
            let others = workloads.iter().filter(|workload| workload.group != flow.group);
            let share = match part.group == flow.group {
                true if others.clone().all(|workload| workload.is_background) => 1.0 - part.group_share,
                false if is_background(&part.group) => part.group_share,
                _ => continue,
            };
            take(sums, DelayCause::Link(link), DelayCause::Background(link), share * flow.took_ns);
        }
    }
}

/// Moves time from one cause to another, up to a limit.
fn take(sums: &mut BTreeMap<DelayCause, f64>, from: DelayCause, to: DelayCause, most_ns: f64) -> f64 {
    let Some(at) = sums.get_mut(&from) else { return 0.0 };
    let moved = at.min(most_ns.max(0.0));
    *at -= moved;
    if moved > 0.0 {
        *sums.entry(to).or_default() += moved;
    }
    moved
}

impl Met<'_> {
    fn add(
        &mut self,
        origin: Origin,
        over_ns: f64,
        has: impl Fn(usize) -> bool,
        depth_of: impl Fn(usize) -> f64,
    ) {
        let (mut links, mut part, mut depth) = (Vec::new(), 0.0_f64, 0.0_f64);
        for (number, layer) in self.layers.iter().enumerate() {
            let rate = |link: &usize| self.facts.links[*link].rate_bps;
            let own: Vec<usize> = layer.iter().copied().filter(|&link| has(link)).collect();
            let slow = matches!(origin, Origin::SlowLink(_));
            // Packets are spread over the links of unlike rates by their number.
            let of_layer = match slow {
                true => own.len() as f64 / layer.len() as f64,
                false => own.iter().map(rate).sum::<f64>() / layer.iter().map(rate).sum::<f64>(),
            };
            if !own.is_empty() && number < self.on_paths {
                part = part.max(of_layer);
            }
            depth = own.iter().map(|&link| depth_of(link)).fold(depth, f64::max);
            links.extend(own.into_iter().map(|link| (number, link)));
        }
        if !links.is_empty() {
            self.hindrances.push(Hindrance { origin, links, over_ns, part, depth });
        }
    }

    /// Returns a bound for each fault among the hindrances.
    pub(super) fn bounds_of_faults(
        &self,
        bound_ns: impl Fn(&Hindrance, usize) -> f64,
    ) -> BTreeMap<usize, f64> {
        let of_fault = |hindrance: &Hindrance| match hindrance.origin {
            Origin::Fault(fault) => Some((fault, bound_ns(hindrance, fault))),
            Origin::SlowLink(_) => None,
        };
        self.hindrances.iter().filter_map(of_fault).collect()
    }

    pub(super) fn fault(&self, hindrance: &Hindrance) -> Option<&Fault> {
        match hindrance.origin {
            Origin::Fault(fault) => Some(&self.facts.faults[fault]),
            Origin::SlowLink(_) => None,
        }
    }

    /// Returns the time that repairs of a fault's losses can have cost a flow that sent packets again.
    fn repair_ns(&self, flow: &Flow, fault: usize) -> f64 {
        let fault = &self.facts.faults[fault];
        if !self.facts.has_lost(flow) && flow.timeouts <= 0.0 || self.facts.lost_by(fault) == 0 {
            return 0.0;
        }
        self.facts.repair_ns(flow, fault)
    }

    fn weigh_losses(&self, flow: &Flow, sums: &mut BTreeMap<DelayCause, f64>) {
        let Some(&lost_ns) = sums.get(&DelayCause::Loss) else { return };
        for (index, fault) in self.facts.faults.iter().enumerate().filter(|(_, fault)| flow.meets(fault)) {
            let most_ns = self.facts.repair_ns(flow, fault).min(lost_ns * self.facts.part_of_losses(fault));
            take(sums, DelayCause::Loss, DelayCause::Fault(index), most_ns);
        }
    }

    fn weigh_dead_ports(&self, flow: &Flow, sums: &mut BTreeMap<DelayCause, f64>) {
        let down: Vec<usize> = sums
            .keys()
            .filter_map(|held| if let DelayCause::Down(link) = held { Some(*link) } else { None })
            .collect();
        for link in down {
            let by =
                |fault: &Fault| fault.takes_down() && flow.meets(fault) && self.facts.links[link].has(fault);
            if let Some(fault) = self.facts.faults.iter().position(by) {
                take(sums, DelayCause::Down(link), DelayCause::Fault(fault), f64::INFINITY);
            }
        }
    }

    fn weigh_distance(&self, flow: &Flow, sums: &mut BTreeMap<DelayCause, f64>) {
        let far: Vec<usize> = sums
            .keys()
            .filter_map(|held| if let DelayCause::Travel(link) = held { Some(*link) } else { None })
            .collect();
        for link in far {
            let by = |fault: &Fault| {
                fault.kind == "link-delay" && flow.meets(fault) && self.facts.links[link].has(fault)
            };
            let Some(index) = self.facts.faults.iter().position(by) else { continue };
            let fault = &self.facts.faults[index];
            let over_ns = fault.overlap_ns(flow.start_ns, flow.end_ns());
            let most_ns = over_ns + 2.0 * self.facts.added_ns(fault, link);
            take(sums, DelayCause::Travel(link), DelayCause::Fault(index), most_ns);
            take(sums, DelayCause::Travel(link), DelayCause::Control, f64::INFINITY);
        }
        // Answers that are late hold senders back, even if no link is full.
        for hindrance in self.hindrances.iter().filter(|hindrance| self.can_meet(hindrance)) {
            let (cause, added_ns) = (hindrance.origin.cause(), self.added_ns(hindrance));
            let bound_ns = self.held_ns(hindrance) + 2.0 * added_ns;
            let left_ns = bound_ns - sums.get(&cause).copied().unwrap_or(0.0);
            if added_ns > 0.0 {
                let moved = take(sums, DelayCause::Control, cause, left_ns);
                take(sums, DelayCause::Window, cause, left_ns - moved);
            }
        }
    }

    fn weigh_links(&self, sums: &mut BTreeMap<DelayCause, f64>) {
        let mut links: Vec<(usize, f64)> =
            sums.iter().filter_map(|(held, ns)| Some((held.link()?, *ns))).collect();
        links.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut left: Vec<f64> = vec![1.0; self.hindrances.len()];
        for (link, ns) in links {
            let bounds: Vec<f64> = (0..left.len()).map(|at| self.bounds_at_ns(link, at)).collect();
            let all: f64 = bounds.iter().zip(&left).map(|(bound, left)| bound * left).sum();
            for (at, &bound) in bounds.iter().enumerate().filter(|(_, bound)| **bound > 0.0) {
                let share = (ns / all).min(1.0) * bound * left[at];
                let moved = take(sums, DelayCause::Link(link), self.hindrances[at].origin.cause(), share);
                left[at] -= moved / bound;
            }
        }
    }

    /// Returns the time that a hindrance takes by its part of the capacity of paths.
    fn held_ns(&self, hindrance: &Hindrance) -> f64 {
        hindrance.over_ns * hindrance.part * hindrance.depth
    }

    /// Returns the delay that a hindrance adds to packets.
    pub(super) fn added_ns(&self, hindrance: &Hindrance) -> f64 {
        let Some(fault) = self.fault(hindrance).filter(|fault| fault.kind == "link-delay") else {
            return 0.0;
        };
        hindrance.links.iter().map(|(_, link)| self.facts.added_ns(fault, *link)).fold(0.0, f64::max)
    }

    /// Returns true if packets of the flow are known to have met the hindrance, or may have.
    fn can_meet(&self, hindrance: &Hindrance) -> bool {
        hindrance.part >= 1.0 || !self.facts.keeps_paths()
    }

    /// Returns the longest time that packets can have waited behind a longer link: those that it held up arrive together with
    /// later ones when it is shorter again.
    fn bunched_ns(&self, hindrance: &Hindrance, layer: usize) -> f64 {
        let ends = |fault: &Fault| fault.until_ns.is_some_and(|until_ns| until_ns < self.journey.end_ns);
        let before = hindrance.links.iter().any(|(other, _)| *other < layer);
        let is_over = self.fault(hindrance).is_some_and(ends);
        if is_over && before && self.can_meet(hindrance) {
            self.added_ns(hindrance) * hindrance.part
        } else {
            0.0
        }
    }

    /// Returns the longest time that a hindrance can have made the flow wait at a link.
    fn bounds_at_ns(&self, link: usize, at: usize) -> f64 {
        let hindrance = &self.hindrances[at];
        let Some(layer) = self.layers.iter().position(|layer| layer.contains(&link)) else { return 0.0 };
        if hindrance.links.contains(&(layer, link)) {
            return self.own_ns(hindrance, link);
        }
        // Failures lead to detours.
        if layer >= self.on_paths {
            let takes_down = self.fault(hindrance).is_some_and(Fault::takes_down);
            return if takes_down { hindrance.over_ns * hindrance.part } else { 0.0 };
        }
        let bunched_ns = self.bunched_ns(hindrance, layer);
        if self.layers[layer].len() < 2 {
            return bunched_ns;
        }
        let is_beside = hindrance.links.iter().any(|(other, _)| *other == layer);
        let beside_ns = if is_beside { self.beside_ns(hindrance) } else { 0.0 };
        beside_ns.max(self.displaced_ns(hindrance, link, layer)).max(bunched_ns)
    }

    /// Returns the longest time that packets can have waited at a link of the hindrance itself.
    fn own_ns(&self, hindrance: &Hindrance, link: usize) -> f64 {
        let at = &self.facts.links[link];
        if let Origin::SlowLink(_) = hindrance.origin {
            let (part, even) = (hindrance.part, self.is_used_alike(hindrance));
            return hindrance.over_ns * hindrance.depth * if even { part } else { 1.0 };
        }
        let drained_ns =
            Some(at.max_queue_bytes * 8e9 / at.rate_bps).filter(|ns| ns.is_finite()).unwrap_or(0.0);
        // Without the fault, packets would have waited no longer than at links beside it.
        let depth = if self.has_room_beside(hindrance, link) { 1.0 } else { hindrance.depth };
        match self.fault(hindrance) {
            Some(fault) if fault.takes_down() || fault.kind == "link-rate" => {
                depth * (hindrance.over_ns + drained_ns)
            }
            _ => hindrance.depth * hindrance.over_ns * hindrance.part,
        }
    }

    /// Returns true if the links beside a link were far less busy, so that flows would not have waited for it as they did.
    fn has_room_beside(&self, hindrance: &Hindrance, link: usize) -> bool {
        let busy = |link: usize| self.facts.links[link].busy;
        hindrance.links.iter().filter(|(_, own)| *own == link).any(|&(layer, _)| {
            let beside = self.layers[layer].iter().copied().filter(|&other| other != link);
            let (sum, count) = beside.fold((0.0, 0), |(sum, count), other| (sum + busy(other), count + 1));
            count > 0 && sum / f64::from(count) < SPARE * busy(link)
        })
    }

    /// Returns the longest time that a hindrance can have taken from the flow at links beside its own.
    fn beside_ns(&self, hindrance: &Hindrance) -> f64 {
        let takes_down = self.fault(hindrance).is_some_and(Fault::takes_down);
        if !self.facts.keeps_paths() || hindrance.part >= 1.0 {
            return self.held_ns(hindrance);
        }
        // Only failures move flows that keep to their paths.
        if !takes_down {
            return 0.0;
        }
        let Some(fault) = self.fault(hindrance) else { return 0.0 };
        let facts = self.facts;
        let up = 1.0 - fault.overlap_ns(0.0, facts.run_ns) / facts.run_ns;
        if up < KNOWN_UP {
            return hindrance.over_ns * hindrance.part;
        }
        let moved = hindrance.links.iter().map(|(_, link)| facts.carried(&[*link])).sum::<f64>() / up;
        hindrance.over_ns * moved.min(1.0)
    }

    /// Returns the time that the flow would have saved at a link if all links of the layer had been used alike, as far as
    /// the hindrance is the reason why they were not. Paths that are kept are uneven by themselves.
    fn displaced_ns(&self, hindrance: &Hindrance, link: usize, layer: usize) -> f64 {
        let facts = self.facts;
        let took_ns = self.journey.took_ns();
        if facts.keeps_paths() || !self.is_avoided(hindrance) || hindrance.over_ns < LASTING * took_ns {
            return 0.0;
        }
        let weight = |hindrance: &Hindrance| hindrance.over_ns * hindrance.part;
        let avoided = self.hindrances.iter().filter(|other| self.is_avoided(other));
        let all: f64 = avoided.map(weight).sum();
        let saved = 1.0 - facts.carried(&self.layers[layer]) / facts.carried(&[link]).max(f64::MIN_POSITIVE);
        took_ns * saved.max(0.0) * weight(hindrance) / all
    }

    /// Returns true if the links of the hindrance carried about as much of their rates as the links beside them.
    fn is_used_alike(&self, hindrance: &Hindrance) -> bool {
        hindrance.links.iter().all(|&(layer, link)| {
            let ratio = self.facts.carried(&[link]) / self.facts.carried(&self.layers[layer]);
            (AVOIDED..=1.0 / AVOIDED).contains(&ratio)
        })
    }

    /// Returns true if a link of the hindrance carried less than the links beside it.
    pub(super) fn is_avoided(&self, hindrance: &Hindrance) -> bool {
        hindrance.links.iter().any(|&(layer, link)| {
            let others: Vec<usize> =
                self.layers[layer].iter().copied().filter(|&other| other != link).collect();
            self.facts.carried(&[link]) < AVOIDED * self.facts.carried(&others)
        })
    }
}
