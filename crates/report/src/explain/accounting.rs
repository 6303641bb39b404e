//! Attribution of the time that slow flows lost, relative to an idle network: to links, to losses, or to limits of
//! their own.

use std::collections::BTreeMap;

use pathweave_records::{Direction, WaitKind};

use super::facts::{Facts, Flow};
use super::outage::Outage;
use super::settings::Fault;
use super::weigh::LASTING;

/// A cause of delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DelayCause {
    /// A queue or insufficient rate at a link.
    Link(usize),
    /// Pauses by the host at the end of the link.
    Storm(usize),
    /// The link itself: packets take longer on it than they should.
    Travel(usize),
    /// A port of the sender whose link is down.
    Down(usize),
    /// A scheduled fault, as an index into [`Facts::faults`].
    Fault(usize),
    /// A link that is slower than those beside it.
    SlowLink(usize),
    /// Background traffic at a link.
    Background(usize),
    /// Faults that left the flow no path.
    Outage,
    /// Packets that were lost, or were considered lost.
    Loss,
    /// Congestion control.
    Control,
    Credit,
    /// The window of loss recovery.
    Window,
    /// No receive was posted.
    Receiver,
}

impl DelayCause {
    /// Returns the link at which a flow waited.
    pub(super) fn link(self) -> Option<usize> {
        if let DelayCause::Link(link) = self { Some(link) } else { None }
    }
}

/// Shares of the time that the slowest flows lost, by cause.
pub(super) struct LostTime {
    /// Shares of the time lost, the largest first.
    pub(super) shares: Vec<(DelayCause, f64)>,
    /// The flows, as indices into [`Facts::flows`].
    pub(super) flows: Vec<usize>,
    /// State of each link: the most hosts that waited there at once, the group with most packets there, and its
    /// share.
    pub(super) at: BTreeMap<usize, (f64, String, f64)>,
    /// Outage that the slowest of the flows met, if one did.
    pub(super) outage: Option<Outage>,
    /// Upper bounds of the shares of the time lost that faults can have cost, by fault.
    pub(super) bounds: BTreeMap<usize, f64>,
}

/// Fraction of the delay of the slowest flows from which another flow is included.
const LOOK: f64 = 0.25;
/// Share of the run from which a paused link counts as governed by pauses.
const PAUSED: f64 = 0.1;
/// Largest number of links followed from a paused one to the root of its pauses.
const DEEPEST: usize = 8;
/// Number of the slowest flows whose paths are searched for faults.
pub(super) const CHECKED: usize = 32;
/// Factor over the delay of the shortest parallel link from which a link is longer.
const LONGER: f64 = 1.25;
/// Share of a flow's time for which a link must have been busy to hold the flow back.
const BUSY: f64 = 0.6;
/// Share of retransmitted packets from which slow sending is attributed to losses.
const AGAIN: f64 = 0.1;

impl LostTime {
    /// Creates the account of a run in which one flow in a hundred had the slowdown `tail` or more.
    pub(super) fn new(facts: &Facts, tail: f64) -> LostTime {
        let least = 1.0 + LOOK * (tail - 1.0).max(0.0);
        let flows: Vec<usize> =
            (0..facts.flows.len()).filter(|&flow| facts.flows[flow].slowdown() >= least).collect();
        let mut sums: BTreeMap<DelayCause, f64> = BTreeMap::new();
        let mut at = BTreeMap::new();
        let mut outage = None;
        let mut bounds: BTreeMap<usize, f64> = BTreeMap::new();
        for (rank, &flow) in flows.iter().enumerate() {
            let flow = &facts.flows[flow];
            let met = if rank < CHECKED { facts.outage_of(flow) } else { None };
            let weight = 1.0 / flow.ideal_ns.max(1.0);
            let (lost, most_by_fault) = lost(facts, flow, met.as_ref());
            for (held, ns) in lost {
                *sums.entry(held).or_default() += ns * weight;
            }
            for (fault, ns) in most_by_fault {
                *bounds.entry(fault).or_default() += ns * weight;
            }
            outage = outage.or(met);
            for part in &flow.parts {
                if let Some(link) = part.link {
                    at.insert(link, (part.senders, part.group.clone(), part.group_share));
                }
            }
        }
        let all: f64 = sums.values().sum();
        bounds.values_mut().for_each(|ns| *ns = (*ns / all.max(f64::MIN_POSITIVE)).min(1.0));
        let mut shares: Vec<(DelayCause, f64)> =
            sums.into_iter().map(|(held, sum)| (held, sum / all.max(f64::MIN_POSITIVE))).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        LostTime { shares, flows, at, outage, bounds }
    }

    /// Creates an account in which one link is the only cause.
    pub(super) fn of_link(link: usize) -> LostTime {
        LostTime::of_cause(DelayCause::Link(link), None)
    }

    /// Creates an account in which a fault is the only cause.
    pub(super) fn of_fault(fault: usize) -> LostTime {
        LostTime::of_cause(DelayCause::Fault(fault), None)
    }

    /// Creates an account in which an outage is the only cause.
    pub(super) fn of_outage(outage: Outage) -> LostTime {
        LostTime::of_cause(DelayCause::Outage, Some(outage))
    }

    fn of_cause(cause: DelayCause, outage: Option<Outage>) -> LostTime {
        LostTime {
            shares: vec![(cause, 1.0)],
            flows: Vec::new(),
            at: BTreeMap::new(),
            outage,
            bounds: BTreeMap::new(),
        }
    }
}

/// Time of a flow, from its parts.
#[derive(Default)]
struct Spent {
    /// Time that the flow waited, by cause.
    waiting: BTreeMap<DelayCause, f64>,
    sending_ns: f64,
    travelling_ns: f64,
    /// The sender's link on which it sent.
    own_link: Option<usize>,
    /// Time on each link.
    on_link: BTreeMap<usize, f64>,
}

impl Spent {
    fn new(facts: &Facts, flow: &Flow) -> Spent {
        let own = |link: usize| facts.links[link].from_node == flow.src_host;
        let rules = |link: usize| facts.links[link].paused_ns >= PAUSED * facts.run_ns;
        let mut spent = Spent::default();
        for part in &flow.parts {
            let held = match (part.kind, part.link) {
                (WaitKind::Travel, link) => {
                    spent.travelling_ns += part.time_ns;
                    if let Some(link) = link {
                        *spent.on_link.entry(link).or_default() += part.time_ns;
                    }
                    continue;
                }
                (WaitKind::Port, link) => {
                    spent.sending_ns += part.time_ns;
                    spent.own_link = spent.own_link.or(link);
                    continue;
                }
                (WaitKind::Full | WaitKind::Queue, Some(link)) if own(link) && !rules(link) => {
                    spent.sending_ns += part.time_ns;
                    spent.own_link = spent.own_link.or(Some(link));
                    continue;
                }
                (WaitKind::Full | WaitKind::Queue, Some(link)) if !rules(link) => {
                    DelayCause::Link(real_bottleneck(facts, flow, link))
                }
                (WaitKind::Full | WaitKind::Queue | WaitKind::Pause, Some(link)) => pause_root(facts, link),
                (WaitKind::Control, _) => control_cause(facts, flow, rules),
                (WaitKind::Down, Some(link)) => DelayCause::Down(link),
                (WaitKind::Credit, _) => DelayCause::Credit,
                (WaitKind::Window, _) => DelayCause::Window,
                (WaitKind::Silence, _) => DelayCause::Loss,
                (WaitKind::Receiver, _) => DelayCause::Receiver,
                _ => DelayCause::Control,
            };
            *spent.waiting.entry(held).or_default() += part.time_ns;
        }
        spent
    }

    /// Returns the link on which packets travelled longest.
    fn longest(&self) -> Option<usize> {
        self.on_link.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(link, _)| *link)
    }
}

/// Returns the time to send the bytes of a flow once, on an idle network. `link` is one that it sent on.
fn once_ns(facts: &Facts, flow: &Flow, link: Option<usize>) -> f64 {
    let from_sender = || {
        let links = &facts.links;
        (0..links.len()).find(|&link| links[link].is_from_host() && links[link].from_node == flow.src_host)
    };
    let Some(link) = link.or_else(from_sender) else { return flow.ideal_ns };
    let at_rate = |rate_bps: f64| flow.size_bytes * 8e9 / rate_bps;
    let by_one_ns = at_rate(facts.links[link].rate_bps);
    // A flow that would take less on an idle network uses several ports.
    let several = by_one_ns > flow.ideal_ns;
    let ns = if several { at_rate(facts.rate_of_ports_bps(link)) } else { by_one_ns };
    ns.min(flow.ideal_ns)
}

/// Returns true if packets take longer on a link than on others of the same use: by a fault, by its length, or as
/// part of a detour. Of links without a known length each may be longer.
fn is_longer(facts: &Facts, flow: &Flow, link: usize) -> bool {
    let delay_ns = |link: usize| facts.links[link].delay_ns;
    let own_ns = delay_ns(link);
    let least_ns = || {
        let beside = facts.parallel_links(link, Some(flow)).into_iter().map(delay_ns);
        beside.fold(f64::INFINITY, f64::min) * LONGER
    };
    let is_on_path = || facts.layers_of_paths(flow).iter().any(|layer| layer.contains(&link));
    own_ns.is_nan()
        || is_delayed(facts, flow, link)
        || (own_ns > 0.0 && own_ns >= least_ns())
        || !is_on_path()
}

/// Returns the busiest link that a flow crossed.
fn busiest(facts: &Facts, flow: &Flow) -> Option<usize> {
    let crossed = flow.parts.iter().filter_map(|part| part.link);
    crossed.max_by(|&a, &b| facts.links[a].busy.total_cmp(&facts.links[b].busy))
}

/// Returns true if a fault made a link longer for a fair part of a flow's time.
fn is_delayed(facts: &Facts, flow: &Flow, link: usize) -> bool {
    let lasts = |fault: &Fault| fault.overlap_ns(flow.start_ns, flow.end_ns()) >= LASTING * flow.took_ns;
    facts.faults_of(link).any(|fault| fault.kind == "link-delay" && lasts(fault))
}

/// Returns the time of a flow beyond that on an idle network, by cause, and upper bounds of the time that faults can have cost
/// it, by fault.
fn lost(
    facts: &Facts,
    flow: &Flow,
    outage: Option<&Outage>,
) -> (BTreeMap<DelayCause, f64>, BTreeMap<usize, f64>) {
    let spent = Spent::new(facts, flow);
    let excess = (flow.took_ns - flow.ideal_ns).max(0.0);
    // Time to send everything once, and time for the packets to arrive.
    let once = once_ns(facts, flow, spent.own_link);
    // A short flow has few samples, so a small excess is not significant.
    let more_sending =
        Some((spent.sending_ns - once * 1.1).max(0.0)).filter(|more| *more >= 0.15 * excess).unwrap_or(0.0);
    let more_travelling = (spent.travelling_ns - (flow.ideal_ns - once).max(0.0) * 1.25).max(0.0);
    let more_travelling = Some(more_travelling).filter(|more| *more >= 0.3 * excess).unwrap_or(0.0);
    let longer = spent.longest().filter(|&link| more_travelling > 0.0 && is_longer(facts, flow, link));
    let mut sums = spent.waiting;
    let others: f64 = sums.values().sum();
    // Part of the remaining time that exceeds the ideal.
    let left = (excess - more_sending - more_travelling).clamp(0.0, others);
    // Packets that were on their way for long, though over no longer link, were held up by the rest.
    let held_up = match longer {
        Some(_) => 0.0,
        None => more_travelling.min((excess - more_sending).max(0.0)),
    };
    if others > 0.0 {
        sums.values_mut().for_each(|ns| *ns *= (left + held_up) / others);
    }
    let travelled = longer.map(|link| (DelayCause::Travel(link), more_travelling));
    let unexplained = || {
        let at_link = || busiest(facts, flow).map(DelayCause::Link);
        let held = if flow.sent_again > 0.0 { Some(DelayCause::Loss) } else { at_link() };
        held.filter(|_| others == 0.0 && held_up > 0.0).map(|held| (held, held_up))
    };
    if let Some((held, ns)) = travelled.or_else(unexplained) {
        *sums.entry(held).or_default() += ns;
    }
    if flow.sent_again >= AGAIN * flow.sent && flow.sent_again > 0.0 {
        *sums.entry(DelayCause::Loss).or_default() += more_sending;
    } else if let (Some(link), true) = (spent.own_link, more_sending > 0.0) {
        *sums.entry(DelayCause::Link(link)).or_default() += more_sending;
    }
    attribute_to_losses(facts, flow, &mut sums);
    if let Some(outage) = outage {
        attribute_to_outage(facts, outage, outage.part_of(excess), &mut sums);
    }
    let most_by_fault = facts.weigh(flow, &mut sums);
    (sums, most_by_fault)
}

/// Moves the time that a flow lost because packets were lost.
fn attribute_to_losses(facts: &Facts, flow: &Flow, sums: &mut BTreeMap<DelayCause, f64>) {
    if !facts.has_lost(flow) {
        return;
    }
    let at_once = sums.get(&DelayCause::Loss).copied().unwrap_or(0.0);
    let most_ns = facts.most_by_losses_ns(flow) - at_once;
    // Retransmissions delay the flow itself. Their share of the time at links is attributed to losses.
    let again = (flow.sent_again / flow.sent.max(1.0)).clamp(0.0, 1.0);
    // If the flow lost packets, the losses are the reason for a small window or rate.
    let part_of = |held: &DelayCause| match held {
        DelayCause::Link(_) => again,
        DelayCause::Window | DelayCause::Control => 1.0,
        _ => 0.0,
    };
    let because: f64 = sums.iter().map(|(held, ns)| ns * part_of(held)).sum();
    let possible = (most_ns / because.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    sums.iter_mut().for_each(|(held, ns)| *ns *= 1.0 - possible * part_of(held));
    *sums.entry(DelayCause::Loss).or_default() += because * possible;
}

/// Moves the time that a flow lost without a path: a part of all, and what dead links and losses for want of a path took.
fn attribute_to_outage(facts: &Facts, outage: &Outage, part: f64, sums: &mut BTreeMap<DelayCause, f64>) {
    let lost = facts.part_lost_in(outage).max(part);
    let mut because = 0.0;
    for (held, ns) in &mut *sums {
        let moved = match held {
            DelayCause::Down(_) => *ns,
            DelayCause::Loss => *ns * lost,
            _ => *ns * part,
        };
        because += moved;
        *ns -= moved;
    }
    *sums.entry(DelayCause::Outage).or_default() += because;
}

/// Returns the link on which a flow at this link really waits: the receiver's link if it is at least as busy and has
/// several senders. Packets that passed this link would wait there.
fn real_bottleneck(facts: &Facts, flow: &Flow, link: usize) -> usize {
    if facts.links[link].is_of_host() {
        return link;
    }
    let crossed = flow.parts.iter().filter_map(|part| part.link);
    let end = crossed
        .filter(|&end| facts.links[end].to_node == flow.dst_host)
        .max_by(|&a, &b| facts.links[a].busy.total_cmp(&facts.links[b].busy));
    let several = |end: &usize| flow.parts.iter().any(|part| part.link == Some(*end) && part.senders >= 2.0);
    let fuller = |end: &usize| facts.links[*end].busy >= facts.links[link].busy;
    end.filter(several).filter(fuller).unwrap_or(link)
}

/// Returns the cause for which congestion control delays a flow although no link is full: queues on its path, or
/// congestion control itself. A link that was idle for much of the time had only a short queue of a burst.
fn control_cause(facts: &Facts, flow: &Flow, rules: impl Fn(usize) -> bool) -> DelayCause {
    let crossed = || flow.parts.iter().filter_map(|part| part.link);
    if let Some(link) = crossed().find(|&link| is_delayed(facts, flow, link)) {
        return DelayCause::Travel(link);
    }
    let crossed = crossed().filter(|&link| facts.links[link].marked > 0.0);
    let most = crossed.max_by(|&a, &b| facts.links[a].marked.total_cmp(&facts.links[b].marked));
    let was_full = |link: usize| {
        let at = &facts.links[link];
        at.max_queue_bytes >= facts.bytes_in_flight() && at.busy * facts.run_ns >= BUSY * flow.took_ns
    };
    match most {
        Some(link) if rules(link) => pause_root(facts, link),
        Some(link) if was_full(link) => DelayCause::Link(real_bottleneck(facts, flow, link)),
        _ => DelayCause::Control,
    }
}

/// Returns the cause of the pauses of a link: the host that sends them, or the link at which queues have grown.
fn pause_root(facts: &Facts, paused: usize) -> DelayCause {
    let mut at = paused;
    for _ in 0..DEEPEST {
        let link = &facts.links[at];
        if link.is_to_host() {
            return if link.paused_ns > 0.0 { DelayCause::Storm(at) } else { DelayCause::Link(at) };
        }
        let behind = || {
            let out = (0..facts.links.len()).filter(|&out| facts.links[out].from_node == link.to_node);
            // A packet that came up may go down; a packet that came down continues down.
            out.filter(|&out| {
                link.direction != Direction::Down || facts.links[out].direction == Direction::Down
            })
        };
        let by = |value: fn(&super::facts::Link) -> f64| {
            let known = behind().filter(move |&out| value(&facts.links[out]) > 0.0);
            known.max_by(|&a, &b| value(&facts.links[a]).total_cmp(&value(&facts.links[b])))
        };
        match by(|link| link.paused_ns) {
            Some(next) if facts.links[next].paused_ns >= 0.3 * link.paused_ns => at = next,
            _ => return DelayCause::Link(by(|link| link.max_queue_bytes).unwrap_or(at)),
        }
    }
    DelayCause::Link(at)
}
