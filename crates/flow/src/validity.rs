//! Detection of runs outside the model's validated range.

use std::collections::HashMap;

use pathweave_fabric::config::{SwitchClasses, SwitchConfig};
use pathweave_policy::fluid::AloneAtPort;
use pathweave_sim::SimSpec;
use pathweave_units::{Duration, Time};

use crate::model::Model;
use crate::network::SwitchLinks;
use crate::sizes::Size;
use pathweave_execution::max_min::ResourceId;

/// Number of senders to one port, each limited by it, beyond which the traffic is an incast. The model then gets its
/// end right, but not the order in which flows end.
const MOST_SENDERS: u32 = 24;
/// Ratio of the demand on a port to its capacity beyond which the port counts as crowded.
const CROWDED: f64 = 2.0;
/// The same for one flow: its NIC is that much faster than the port.
const THIN: f64 = 1.1;
/// Standard deviation of the wait of a short message, relative to its time, from which on the last of several is late.
const SCATTERED: f64 = 0.02;
/// Time for which a link of single paths may be crowded.
const CROWDED_FOR: Duration = Duration::from_ms(1);
/// Utilisation beyond which links of sprayed flows count as full.
const FULL: f64 = 0.97;
/// Share of bytes or messages beyond which an effect counts.
const MIN_COUNTED_SHARE: f64 = 0.01;
/// Number of queue pairs per message from which on rate controls by notifications disturb each other.
const MANY_QUEUE_PAIRS: u16 = 8;

/// Largest number of messages of a run without dependencies in which each message counts. In larger runs with many
/// begin times, the model is valid in the mean.
pub const MAX_SMALL_RUN_MESSAGES: usize = 5_000;
/// Utilisation of links beyond which randomly sprayed packets meet queues that mark.
const MARKING: f64 = 0.4;
/// Ratio of the idle path times of flows at one port beyond which delay means something different to each of them.
const UNEQUAL: f64 = 1.5;

/// Observations of a run that bear on the validity of the model.
#[derive(Debug)]
pub(crate) struct ValidityChecks {
    /// True if tasks wait for messages, or if there are so few messages that each counts.
    each_counts: bool,
    /// True if no task waits for messages, and messages begin at many times. Rate controls are then modelled in the
    /// mean.
    pub(crate) open: bool,
    /// True if tasks wait for messages and a host receives from several others. Their packets meet there as soon as
    /// they are out of step.
    drifts: bool,
    /// True if some rate control increases by timers.
    by_timers: bool,
    /// True if such a rate control was limited.
    slowed: bool,
    /// Bytes that were randomly sprayed under a rate control by notifications, and the part of them that crossed
    /// links with marking.
    at_random: f64,
    marked: f64,
    shared: bool,
    unequal: bool,
    /// True if packets were sprayed over paths of unlike delays under a control by delay.
    uneven: bool,
    /// True if the rate control of a message leaves a part of its path unused.
    leaves_room: bool,
    single_paths: bool,
    divided: bool,
    pause_above: f64,
    incast: bool,
    crowded_since: HashMap<ResourceId, Time>,
    crowded: bool,
    lost: bool,
    short_messages: u64,
    /// Short messages that may be much later than their mean.
    scattered: u64,
    met_pauses: u64,
    sprayed: f64,
    sprayed_full: f64,
}

impl ValidityChecks {
    pub(crate) fn new(spec: &SimSpec, switches: &SwitchClasses, models: &[Model]) -> Self {
        let messages = spec.graph.messages();
        let closed = spec.graph.has_dependencies();
        let open = !closed && messages.iter().any(|message| message.start != messages[0].start);
        let divided = |(group, model): (&pathweave_sim::GroupSpec, &Model)| {
            let scheme = &spec.schemes[usize::from(group.scheme)].scheme;
            model.recovery.is_some() && scheme.queue_pairs >= MANY_QUEUE_PAIRS
        };
        // The threshold of an otherwise empty buffer.
        let pause_above = |switch: &SwitchConfig| match switch.pfc.enabled {
            true => switch.buffer.get() as f64 * switch.pfc.alpha / (1.0 + switch.pfc.alpha),
            false => f64::INFINITY,
        };
        let mut senders = vec![None; spec.topology.hosts() as usize];
        let mut several = |message: &pathweave_workload::Message| {
            let sender = *senders[message.dst.index()].get_or_insert(message.src);
            sender != message.src
        };
        ValidityChecks {
            open,
            each_counts: closed || messages.len() <= MAX_SMALL_RUN_MESSAGES,
            drifts: closed && messages.iter().any(&mut several),
            by_timers: models.iter().any(|model| model.recovery.is_some()),
            slowed: false,
            at_random: 0.0,
            marked: 0.0,
            shared: false,
            unequal: false,
            uneven: false,
            leaves_room: false,
            single_paths: models.iter().any(|model| model.spread.is_single()),
            divided: open && spec.groups.iter().zip(models).any(divided),
            pause_above: switches.each().map(pause_above).fold(f64::INFINITY, f64::min),
            incast: false,
            crowded_since: HashMap::new(),
            crowded: false,
            lost: false,
            short_messages: 0,
            scattered: 0,
            met_pauses: 0,
            sprayed: 0.0,
            sprayed_full: 0.0,
        }
    }

    /// Records that a switch port limits `limited` flows, whose demand is `demand` times its capacity.
    pub(crate) fn record_port(&mut self, now: Time, resource: ResourceId, limited: u32, demand: f64) {
        let crowded = limited > 0 && demand > CROWDED;
        // A port below the rate of a single NIC marks its packets, too.
        self.slowed |= limited == 1 && demand > THIN && self.by_timers;
        self.incast |= crowded && limited > MOST_SENDERS;
        if limited >= 2 {
            self.slowed |= self.by_timers;
            self.shared |= self.single_paths;
        }
        if !self.single_paths || self.crowded {
            return;
        }
        if crowded {
            self.crowded_since.entry(resource).or_insert(now);
        } else if let Some(since) = self.crowded_since.remove(&resource) {
            self.crowded |= now - since > CROWDED_FOR;
        }
    }

    /// Records the bytes that a short message found queued at a port.
    pub(crate) fn short_message_met(&mut self, bytes: f64) {
        self.short_messages += 1;
        self.met_pauses += u64::from(bytes > self.pause_above);
    }

    /// Records a long message. Before its rate is cut it builds a queue, if the sender is faster than the path.
    pub(crate) fn long_message(&mut self, model: &Model, size: &Size) {
        let wire = size.wire as f64;
        let queue = wire * (1.0 - 1.0 / size.overrun);
        let law = &model.law;
        self.leaves_room |= match (model.alone, model.recovery) {
            (AloneAtPort::LeavesRoom, _) => wire > law.feedback_delay * size.rate,
            (AloneAtPort::FillsIt, Some(_)) => size.overrun > THIN && queue > law.standing * size.rate,
            (AloneAtPort::FillsIt, None) => false,
        };
    }

    /// Records a message on paths of unlike delays, or on a longer path than the best, under a control by delay.
    pub(crate) fn unequal_paths(&mut self) {
        self.uneven = true;
    }

    /// Records a short message whose packets collide on their paths, with the standard deviation of its wait as a part
    /// of its time.
    pub(crate) fn short_message_collides(&mut self, deviation: f64) {
        self.scattered += u64::from(deviation > SCATTERED);
    }

    /// Records the loss of a message.
    pub(crate) fn lost(&mut self) {
        self.lost = true;
    }

    /// Returns true if [`paths`](ValidityChecks::paths) still needs to be called.
    pub(crate) fn compares_paths(&self) -> bool {
        !self.unequal && self.each_counts
    }

    /// Records the idle times of the paths of flows that share a port.
    pub(crate) fn paths(&mut self, bases: impl Iterator<Item = u64>) {
        let (mut least, mut most) = (u64::MAX, 0);
        bases.for_each(|base| (least, most) = (least.min(base), most.max(base)));
        self.unequal |= most as f64 > UNEQUAL * least as f64;
    }

    /// Records a message that was randomly sprayed under a rate control by notifications.
    pub(crate) fn sprayed_at_random(&mut self, bytes: f64, span: f64, links: [(SwitchLinks, f64); 2]) {
        let full = links.iter().any(|(gauge, crossed)| *crossed > MARKING * gauge.capacity * span);
        self.at_random += bytes;
        self.marked += if full { bytes } else { 0.0 };
    }

    /// Records a message that was sprayed for `span` picoseconds. `links` has the bytes that crossed the links of
    /// both switches in that time.
    pub(crate) fn sprayed(&mut self, bytes: f64, span: f64, links: [(SwitchLinks, f64); 2]) {
        let full = links.iter().any(|(gauge, crossed)| *crossed > FULL * gauge.capacity * span);
        self.sprayed += bytes;
        self.sprayed_full += if full { bytes } else { 0.0 };
    }

    /// Returns the reasons, in words, why a run that ended at `end` is outside the validated range.
    pub(crate) fn reasons(&self, end: Time) -> Vec<String> {
        let still = self.crowded_since.values().any(|&since| end.saturating_since(since) > CROWDED_FOR);
        let paused = self.met_pauses as f64 > MIN_COUNTED_SHARE * self.short_messages as f64;
        let full = self.sprayed_full > MIN_COUNTED_SHARE * self.sprayed;
        let seen = [
            (
                self.incast,
                "more than 24 hosts send to one at once: the last ends as it should, the others need not",
            ),
            (
                self.crowded || still,
                "flows of single paths share a link that could carry less than half of them, for more than 1 ms",
            ),
            (self.divided, "messages over 8 queue pairs or more come at random under DCQCN or TIMELY"),
            (
                full,
                "messages meet links between switches that are more than 97 % full while they are sent, under a scheme that avoids full ones",
            ),
            (
                self.each_counts && (self.slowed || self.marked > MIN_COUNTED_SHARE * self.at_random),
                "rates cut by notifications recover by timers, so dependent messages are late",
            ),
            (
                self.each_counts && self.shared,
                "flows of single paths collide, so dependent messages begin later each time",
            ),
            (
                self.drifts,
                "several hosts send to one in turn: packets get out of step and meet there, flows stay in step",
            ),
            (
                self.unequal,
                "flows of unlike idle times share a port: rate controls by delay do not share it evenly",
            ),
            (self.uneven, "packets take paths of unlike delays: windows and timers by delay are disturbed"),
            (
                self.leaves_room,
                "single messages do not fill their path: HPCC leaves room, and DCQCN and TIMELY cut a sender that is faster than its path too far",
            ),
            (
                self.each_counts && self.scattered as f64 > MIN_COUNTED_SHARE * self.short_messages as f64,
                "short messages take one of several paths at random and collide: the last are later than flows show",
            ),
            (paused, "queues reach the threshold at which switches pause their senders"),
            (self.lost, "messages are lost on links that fail; hosts would send them again after a timeout"),
        ];
        seen.into_iter().filter(|(seen, _)| *seen).map(|(_, reason)| reason.to_owned()).collect()
    }
}
