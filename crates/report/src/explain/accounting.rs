//! Attribution of the time that slow flows lost, relative to an idle network: to links, to losses, or to limits of
//! their own.

use std::collections::BTreeMap;

use pathweave_records::{Direction, WaitKind};

use super::facts::{Facts, Flow};

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

/// Shares of the time that the slowest flows lost, by cause.
pub(super) struct LostTime {
    /// Shares of the time lost, the largest first.
    pub(super) shares: Vec<(DelayCause, f64)>,
    /// The flows, as indices into [`Facts::flows`].
    pub(super) flows: Vec<usize>,
    /// State of each link: the most hosts that waited there at once, the group with most packets there, and its
    /// share.
    pub(super) at: BTreeMap<usize, (f64, String, f64)>,
}

/// Fraction of the delay of the slowest flows from which another flow is included.
const LOOK: f64 = 0.25;
/// Share of the run from which a paused link counts as governed by pauses.
const PAUSED: f64 = 0.1;
/// Largest number of links followed from a paused one to the root of its pauses.
const DEEPEST: usize = 8;
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
        for &flow in &flows {
            let flow = &facts.flows[flow];
            let weight = 1.0 / flow.ideal_ns.max(1.0);
            for (held, ns) in lost(facts, flow) {
                *sums.entry(held).or_default() += ns * weight;
            }
            for part in &flow.parts {
                if let Some(link) = part.link {
                    at.insert(link, (part.senders, part.group.clone(), part.group_share));
                }
            }
        }
        let all: f64 = sums.values().sum();
        let mut shares: Vec<(DelayCause, f64)> =
            sums.into_iter().map(|(held, sum)| (held, sum / all.max(f64::MIN_POSITIVE))).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        LostTime { shares, flows, at }
    }

    /// Creates an account in which one link is the only cause.
    pub(super) fn of_link(link: usize) -> LostTime {
        LostTime { shares: vec![(DelayCause::Link(link), 1.0)], flows: Vec::new(), at: BTreeMap::new() }
    }
}

/// Returns the time of a flow beyond that on an idle network, by cause.
fn lost(facts: &Facts, flow: &Flow) -> BTreeMap<DelayCause, f64> {
    let own = |link: Option<usize>| link.is_some_and(|link| facts.links[link].from_node == flow.src_host);
    let rules = |link: usize| facts.links[link].paused_ns >= PAUSED * facts.run_ns;
    let (mut sending, mut travelling) = (0.0, 0.0);
    let mut own_link = None;
    let mut farthest: BTreeMap<usize, f64> = BTreeMap::new();
    let mut sums: BTreeMap<DelayCause, f64> = BTreeMap::new();
    for part in &flow.parts {
        let held = match (part.kind, part.link) {
            (WaitKind::Travel, link) => {
                travelling += part.time_ns;
                if let Some(link) = link {
                    *farthest.entry(link).or_default() += part.time_ns;
                }
                continue;
            }
            (WaitKind::Port, link) => {
                sending += part.time_ns;
                own_link = own_link.or(link);
                continue;
            }
            (WaitKind::Full | WaitKind::Queue, Some(link)) if own(part.link) && !rules(link) => {
                sending += part.time_ns;
                own_link = own_link.or(Some(link));
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
        *sums.entry(held).or_default() += part.time_ns;
    }
    let excess = (flow.took_ns - flow.ideal_ns).max(0.0);
    // Time to send everything once, and time for the packets to arrive.
    let rate = own_link.map_or(f64::NAN, |link| facts.links[link].rate_bps);
    let once = (flow.size_bytes * 8e9 / rate).min(flow.ideal_ns);
    let once = if once.is_finite() { once } else { flow.ideal_ns.min(sending) };
    // A short flow has few samples, so a small excess is not significant.
    let more_sending =
        Some((sending - once * 1.1).max(0.0)).filter(|more| *more >= 0.15 * excess).unwrap_or(0.0);
    let more_travelling = (travelling - (flow.ideal_ns - once).max(0.0) * 1.25).max(0.0);
    let more_travelling = Some(more_travelling).filter(|more| *more >= 0.3 * excess).unwrap_or(0.0);
    let others: f64 = sums.values().sum();
    // Part of the remaining time that exceeds the ideal.
    let left = (excess - more_sending - more_travelling).clamp(0.0, others);
    if others > 0.0 {
        sums.values_mut().for_each(|ns| *ns *= left / others);
    }
    if flow.sent_again >= AGAIN * flow.sent && flow.sent_again > 0.0 {
        *sums.entry(DelayCause::Loss).or_default() += more_sending;
    } else if let (Some(link), true) = (own_link, more_sending > 0.0) {
        *sums.entry(DelayCause::Link(link)).or_default() += more_sending;
    }
    let longest = farthest.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(link, _)| *link);
    if let (Some(link), true) = (longest, more_travelling > 0.0) {
        *sums.entry(DelayCause::Travel(link)).or_default() += more_travelling;
    }
    // Retransmissions delay the flow itself. Their share of the time at links is attributed to losses.
    let again = (flow.sent_again / flow.sent.max(1.0)).clamp(0.0, 1.0);
    if again > 0.0 {
        let mut because = 0.0;
        for (held, ns) in &mut sums {
            if let DelayCause::Link(_) = held {
                because += *ns * again;
                *ns *= 1.0 - again;
            }
        }
        *sums.entry(DelayCause::Loss).or_default() += because;
    }
    // If the flow lost packets, the losses are the reason for a small window or rate.
    if flow.sent_again > 0.0 {
        let small: f64 =
            [DelayCause::Window, DelayCause::Control].iter().filter_map(|held| sums.remove(held)).sum();
        *sums.entry(DelayCause::Loss).or_default() += small;
    }
    sums
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
/// congestion control itself.
fn control_cause(facts: &Facts, flow: &Flow, rules: impl Fn(usize) -> bool) -> DelayCause {
    let crossed = || flow.parts.iter().filter_map(|part| part.link);
    let long =
        |link: &usize| facts.faults_of(*link).any(|fault| fault.kind == "link-delay" && flow.meets(fault));
    if let Some(link) = crossed().find(long) {
        return DelayCause::Travel(link);
    }
    let crossed = crossed().filter(|&link| facts.links[link].marked > 0.0);
    let most = crossed.max_by(|&a, &b| facts.links[a].marked.total_cmp(&facts.links[b].marked));
    match most {
        Some(link) if rules(link) => pause_root(facts, link),
        Some(link) if facts.links[link].max_queue_bytes >= facts.bytes_in_flight() => {
            DelayCause::Link(real_bottleneck(facts, flow, link))
        }
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
