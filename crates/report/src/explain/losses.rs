//! Names of causes that senders see: losses, and limits of congestion control and of windows.

use pathweave_records::{Quantity, WaitKind};

use super::accounting::CHECKED;
use super::causes::{CauseBuilder, Class, NamedCause, share};
use super::facts::{Facts, Flow, Link};
use super::settings::Fault;

/// Fraction of the bytes in flight in a round trip below which a threshold is low.
const LOW_RTTS: f64 = 0.25;

/// Round trips that one failure can cost beyond its length, by losses that no timer repairs.
const REPAIR_RTTS: f64 = 5.0;

impl Facts {
    /// Returns the part of packets lost for a fault, of all that were lost.
    pub(super) fn part_of_losses(&self, fault: &Fault) -> f64 {
        let all: u64 = self.drops.values().sum();
        self.lost_by(fault) as f64 / all.max(1) as f64
    }

    /// Returns the packets that a fault took on its links, and at its ends for want of a path.
    pub(super) fn lost_by(&self, fault: &Fault) -> u64 {
        let without_path = |((reason, link), _): &(&(String, usize), &u64)| {
            let at = &self.links[*link];
            fault.takes_down() && reason == "no_route" && (at.has(fault) || self.ends_at(fault, at.from_node))
        };
        self.lost_on(fault) + self.drops.iter().filter(without_path).map(|(_, count)| count).sum::<u64>()
    }

    fn ends_at(&self, fault: &Fault, node: u32) -> bool {
        self.links.iter().any(|link| link.from_node == node && link.has(fault))
    }

    /// Returns the longest time that a flow can have lost to losses, if all are those of faults.
    pub(super) fn most_by_losses_ns(&self, flow: &Flow) -> f64 {
        let met = self.faults.iter().filter(|fault| flow.meets(fault) && self.lost_by(fault) > 0);
        let part: f64 = met.clone().map(|fault| self.part_of_losses(fault)).sum();
        if part < 1.0 {
            return f64::INFINITY;
        }
        met.map(|fault| self.repair_ns(flow, fault)).sum()
    }

    /// Returns the longest time that a flow can have lost to the losses of a fault: the length of failures, or the part of
    /// the time for which packets were sent in vain, timeouts, and a few round trips for each failure or lost packet.
    pub(super) fn repair_ns(&self, flow: &Flow, fault: &Fault) -> f64 {
        let over_ns = fault.overlap_ns(flow.start_ns, flow.end_ns());
        let (part, repairs) = match fault.takes_down() {
            true => (1.0, fault.times.max(1) as f64),
            false => {
                let lost = self.lost_of(flow, fault);
                ((lost / flow.sent.max(1.0)).min(1.0), lost)
            }
        };
        over_ns * part + silence_ns(flow) + REPAIR_RTTS * self.round_trip_ns() * repairs
    }

    /// Returns the packets of a flow that a fault took: in proportion to what flows sent again or, as long as none has, at
    /// most all that it sent over paths with links of the fault.
    fn lost_of(&self, flow: &Flow, fault: &Fault) -> f64 {
        let lost = self.lost_by(fault) as f64;
        let again = self.sent_again();
        if lost == 0.0 || again > 0.0 {
            return lost * flow.sent_again / again.max(1.0);
        }
        let on_paths = || self.layers_of_paths(flow).concat().iter().any(|&link| self.links[link].has(fault));
        if flow.meets(fault) && on_paths() { lost.min(flow.sent) } else { 0.0 }
    }

    /// Returns true if a flow sent packets again, or lost some to a fault and has not sent them again yet.
    pub(super) fn has_lost(&self, flow: &Flow) -> bool {
        flow.sent_again > 0.0 || self.faults.iter().any(|fault| self.lost_of(flow, fault) > 0.0)
    }

    /// Returns the packets that flows with records of waits sent again.
    fn sent_again(&self) -> f64 {
        self.flows.iter().map(|flow| flow.sent_again).sum()
    }
}

fn silence_ns(flow: &Flow) -> f64 {
    flow.parts.iter().filter(|part| part.kind == WaitKind::Silence).map(|part| part.time_ns).sum()
}

impl CauseBuilder<'_> {
    pub(super) fn loss(&self) -> NamedCause {
        let facts = self.facts;
        let settings = &facts.settings;
        let random = facts.dropped(&["random_loss", "corrupted"]);
        let down = facts.dropped(&["link_down", "no_route"]);
        let full = facts.dropped(&["buffer_full", "header_queue_full"]);
        let most = [random, down, full].into_iter().max_by_key(|(n, _)| *n).unwrap_or((0, None));
        let (Some(link), count) = (most.1, most.0) else {
            return self.trimmed().unwrap_or_else(|| self.no_loss());
        };
        let lost = Quantity::Count.format(count as f64);
        if most == random {
            let fault =
                self.faults_of(link).find(|f| matches!(f.kind.as_str(), "link-loss" | "link-corruption"));
            if let Some(fault) = fault {
                let (class, place, link, words) = self.fault(fault, Some(link));
                return (class, place, link, format!("{words}; {lost} lost"));
            }
            let words = format!("lossy link {}: {lost} packets lost at random", self.name(link));
            return (Class::Loss, link, Some(link), words);
        }
        if most == down {
            return self.down(link, &lost);
        }
        let at = &facts.links[link];
        let buffer = settings.text("switch.buffer").unwrap_or("unknown").to_owned();
        let words = if settings.is_on("switch.pfc.enabled") && settings.text("switch.pfc.headroom").is_some()
        {
            format!(
                "PFC headroom too small (switch.pfc.headroom = {}): {lost} packets dropped at {}, most for {}",
                settings.text("switch.pfc.headroom").unwrap_or("unknown"),
                at.from,
                at.name()
            )
        } else {
            let senders = self.senders(link);
            let crowd = match at.is_to_host() && senders >= 2.0 {
                true => format!(", in an incast of {senders:.0} hosts to {}", at.to),
                false => String::new(),
            };
            format!(
                "buffer too small (switch.buffer = {buffer}): {lost} packets dropped at {}, most for {}{crowd}",
                at.from,
                at.name()
            )
        };
        (Class::Loss, at.from_node as usize, Some(link), words)
    }

    /// Names the cause of packets that were lost where a link was down or no path led on. Those without a path are
    /// recorded at the link back to where they came from.
    fn down(&self, link: usize, lost: &str) -> NamedCause {
        if let Some(fault) = self.fault_that_takes_down(link).or_else(|| self.fault_on_paths()) {
            return self.fault(fault, Some(link));
        }
        let count = |reason: &str| self.facts.drops.get(&(reason.to_owned(), link)).copied().unwrap_or(0);
        let words = if count("no_route") > count("link_down") {
            format!("{lost} packets lost at {}, where no path led on", self.facts.links[link].from)
        } else {
            format!("{lost} packets lost on {}, which was down", self.name(link))
        };
        (Class::Loss, link, Some(link), words)
    }

    /// Returns a fault that takes down a link on the shortest paths of a late flow.
    fn fault_on_paths(&self) -> Option<&Fault> {
        let late = self.account.flows.iter().take(CHECKED).map(|&flow| &self.facts.flows[flow]);
        late.flat_map(|flow| self.facts.layers_of_paths(flow).concat())
            .find_map(|link| self.fault_that_takes_down(link))
    }

    /// Names the cause of a queue whose switch trimmed packets.
    fn trimmed(&self) -> Option<NamedCause> {
        let links = &self.facts.links;
        let count = |link: usize| if links[link].trimmed.is_finite() { links[link].trimmed } else { 0.0 };
        let most = (0..links.len()).max_by(|&a, &b| count(a).total_cmp(&count(b)).then(b.cmp(&a)));
        let most = most.filter(|&link| count(link) > 0.0)?;
        let (class, place, link, words) = self.link(most);
        let trimmed = Quantity::Count.format(count(most));
        Some((class, place, link, format!("{words}; {trimmed} packets trimmed there")))
    }

    /// Names the setting that determines the retransmission timer.
    fn timer(&self) -> String {
        let settings = &self.facts.settings;
        let own = settings.text("scheme.recovery.kind") == Some("timeouts");
        match (own, settings.number("scheme.recovery.exponent")) {
            (true, Some(exponent)) => {
                format!("scheme.recovery.exponent = {exponent}, 1.024 us x 2^{exponent},")
            }
            (true, None) if settings.is_on("switch.trim.enabled") => {
                "scheme.recovery.exponent, not set and therefore of eight idle round trips,".to_owned()
            }
            (_, _) => {
                let timeout = settings.text("network.retransmission.timeout").unwrap_or("unknown");
                format!("network.retransmission.timeout = {timeout}")
            }
        }
    }

    /// Names the cause of retransmissions without losses.
    fn no_loss(&self) -> NamedCause {
        let flows = || self.account.flows.iter().map(|&flow| &self.facts.flows[flow]);
        let timeouts: f64 = flows().map(|flow| flow.timeouts).sum();
        let settings = &self.facts.settings;
        let words = if timeouts > 0.0 {
            format!(
                "{} unnecessary timeouts: no packet was lost, {} expires before answers arrive",
                Quantity::Count.format(timeouts),
                self.timer()
            )
        } else if flows().any(|flow| flow.sent_again > 0.0) {
            let limit = settings.number("scheme.recovery.reorder_packets").filter(|limit| *limit > 0.0);
            let limit = match limit {
                Some(limit) => format!("scheme.recovery.reorder_packets = {limit} takes"),
                None => format!(
                    "recovery \"{}\" takes",
                    settings.text("scheme.recovery.kind").unwrap_or("unknown")
                ),
            };
            format!(
                "packets out of order taken for lost and sent again though none was lost: {limit} reordering for loss"
            )
        } else {
            "nothing in flight: senders waited for answers although nothing was lost".to_owned()
        };
        (Class::Loss, usize::MAX, None, words)
    }

    pub(super) fn control(&self) -> NamedCause {
        let links = &self.facts.links;
        let marks = |link: &Link| if link.marked.is_finite() { link.marked } else { 0.0 };
        let most = (0..links.len()).max_by(|&a, &b| marks(&links[a]).total_cmp(&marks(&links[b])));
        let settings = &self.facts.settings;
        let name_of =
            ["scheme.policy.cc.kind", "scheme.policy.kind"].iter().find_map(|path| settings.text(path));
        let name = name_of.unwrap_or("congestion control");
        if let (Some("none"), Some(window)) = (name_of, settings.words("scheme.policy.cc.window")) {
            let words = format!(
                "the sender's fixed window (scheme.policy.cc.window = {window}), shorter than a round trip of {} at its rate",
                Quantity::TimeNs.format(self.facts.round_trip_ns())
            );
            return (Class::Window, 1, None, words);
        }
        let heeds_marks = self.facts.heeds_marks(&self.account.flows);
        let Some(link) = most.filter(|&link| heeds_marks && marks(&links[link]) > 0.0) else {
            let words =
                format!("congestion control ({name}) held flows back while no link on their way was full");
            return (Class::Control, 0, None, words);
        };
        let at = &links[link];
        let kmin = settings.threshold_bytes("kmin", at.rate_bps).unwrap_or(f64::NAN);
        let marked = format!(
            "{} marked {} of its packets while {}",
            at.name(),
            share(at.marked / at.tx_packets.max(1.0)),
            self.state(link)
        );
        let words = if kmin * 8e9 / at.rate_bps < LOW_RTTS * self.facts.round_trip_ns() {
            format!(
                "ECN thresholds too low: {marked}; marking begins at {} (switch.ecn.kmin), {} round trips",
                Quantity::Bytes.format(kmin),
                Quantity::Plain.format(kmin * 8e9 / at.rate_bps / self.facts.round_trip_ns())
            )
        } else {
            format!("congestion control ({name}) kept rates low after marks: {marked}")
        };
        (Class::Thresholds, 0, Some(link), words)
    }

    pub(super) fn window(&self) -> NamedCause {
        let packets = self.facts.settings.number("scheme.recovery.window_packets");
        let packets =
            packets.map_or("the window".to_owned(), |packets| format!("window_packets = {packets}"));
        let words = format!(
            "window of loss recovery (scheme.recovery.{packets}): senders may not be further ahead of the first gap that the \
             receiver tracks, while no link was full"
        );
        (Class::Window, 0, None, words)
    }
}
