//! Writer of connection matrices of htsim.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use pathweave_units::Time;

use super::{count, has_delay, shared_connections, start_ps};
use crate::files::{FlowFile, FlowRecord, HtsimDialect};
use crate::graph::Moment;

/// Smallest size of a flow that htsim rejects, bytes.
const TOO_LARGE: u64 = 1 << 31;

/// Writes a connection matrix. Starts have the unit of the dialect; if there are starts, a comment names the
/// unit.
///
/// Flows that wait for the same flows share a trigger: a oneshot if they wait for one flow, else a barrier.
/// It is a multishot if the first needs one of these flows, the second two, and so on.
///
/// # Errors
///
/// Returns an error for a flow that would have to fire several triggers, for other numbers of flows that
/// suffice, and for flows of 2 GiB or more.
pub fn write_htsim_cm(
    flows: &FlowFile,
    dialect: HtsimDialect,
    lost: &mut Vec<String>,
) -> Result<String, String> {
    if let Some(large) = flows.flows.iter().find(|flow| flow.size_bytes >= TOO_LARGE) {
        return Err(format!(
            "a flow from {} to {} has {} bytes; htsim takes less than {TOO_LARGE}",
            large.src, large.dst, large.size_bytes
        ));
    }
    let triggers = Triggers::new(flows)?;
    let unit_ps = dialect.start_unit_ps();
    let losses = [
        count(flows, |flow| flow.after.is_empty() && !start_ps(flow).is_multiple_of(unit_ps)).map(|some| {
            format!("parts of a microsecond in the start of {some} (--to csg-htsim-flows has picoseconds)")
        }),
        count(flows, |flow| flow.id.is_some() && number_of(flow).is_none())
            .map(|some| format!("the names of {some}, which get numbers")),
        count(flows, has_delay).map(|some| format!("the time between others and {some}")),
        count(flows, |flow| !flow.after.is_empty() && flow.start > Time::ZERO)
            .map(|some| format!("the start of {some}, beside a trigger")),
        Some(shared_connections(flows))
            .filter(|&n| n > 0)
            .map(|n| format!("that {n} flows share connections")),
    ];
    lost.extend(losses.into_iter().flatten());
    let highest = flows.flows.iter().map(|flow| flow.src.max(flow.dst)).max().unwrap_or(0);
    let nodes = flows.hosts.map_or(0, |hosts| hosts.count).max(highest + 1);
    let has_starts = flows.flows.iter().any(|flow| flow.after.is_empty() && start_ps(flow) > 0);
    let mut text = if has_starts { format!("{}\n", dialect.comment()) } else { String::new() };
    let _ = write!(text, "Nodes {nodes}\nConnections {}\n", flows.flows.len());
    if !triggers.waiting.is_empty() {
        let _ = writeln!(text, "Triggers {}", triggers.waiting.len());
    }
    let given: BTreeSet<u64> = flows.flows.iter().filter_map(number_of).collect();
    let mut free = (1..).filter(|number| !given.contains(number));
    for flow in &flows.flows {
        let id = number_of(flow).or_else(|| free.next()).expect("numbers do not run out");
        let begin = match triggers.of_waiting(flow) {
            Some(trigger) => format!("trigger {trigger}"),
            None => format!("start {}", start_ps(flow) / unit_ps),
        };
        let _ = write!(text, "{}->{} id {id} {begin} size {}", flow.src, flow.dst, flow.size_bytes);
        for (key, moment) in
            [("send_done_trigger", Moment::Completion), ("recv_done_trigger", Moment::Delivery)]
        {
            let sets_off = flow.id.as_deref().and_then(|id| triggers.set_off_by.get(&(id, moment)));
            if let Some(trigger) = sets_off {
                let _ = write!(text, " {key} {trigger}");
            }
        }
        text.push('\n');
    }
    for (on, trigger) in triggers.in_order() {
        let _ = match on.len() {
            _ if trigger.is_multishot => writeln!(text, "trigger id {} multishot", trigger.id),
            1 => writeln!(text, "trigger id {} oneshot", trigger.id),
            n => writeln!(text, "trigger id {} barrier count {n}", trigger.id),
        };
    }
    Ok(text)
}

/// Returns the flow's identifier as a number, if htsim accepts it.
fn number_of(flow: &FlowRecord) -> Option<u64> {
    let id = flow.id.as_ref()?;
    id.parse().ok().filter(|number: &u64| *number > 0 && number.to_string() == *id)
}

/// Flows that a flow waits for, each with the moment that is waited for.
type WaitsFor<'a> = Vec<(&'a str, Moment)>;

#[derive(Default)]
struct Trigger {
    id: usize,
    is_multishot: bool,
    /// Number of waiting flows that have been visited.
    started: usize,
}

/// Triggers that flows wait for, and triggers that flows fire.
struct Triggers<'a> {
    /// Triggers by the flows that fire them, in order of the flows' names.
    waiting: BTreeMap<WaitsFor<'a>, Trigger>,
    set_off_by: BTreeMap<(&'a str, Moment), usize>,
}

impl<'a> Triggers<'a> {
    fn new(flows: &'a FlowFile) -> Result<Self, String> {
        let mut triggers = Triggers { waiting: BTreeMap::new(), set_off_by: BTreeMap::new() };
        let all = || flows.flows.iter().filter(|flow| !flow.after.is_empty());
        for flow in all() {
            let next = triggers.waiting.len() + 1;
            let known =
                triggers.waiting.entry(waits_for(flow)).or_insert(Trigger { id: next, ..Trigger::default() });
            known.is_multishot |= flow.needs.is_some();
        }
        for flow in all() {
            let on = waits_for(flow);
            let needs = flow.needs.map_or(on.len(), |needs| needs as usize);
            let trigger = triggers.waiting.get_mut(&on).expect("there is one for each");
            trigger.started += 1;
            if trigger.is_multishot && needs != trigger.started {
                return Err(format!(
                    "a flow from {} to {} waits for {needs} of {} flows; a trigger of htsim starts the first \
                     behind one, the second behind two and so on",
                    flow.src,
                    flow.dst,
                    on.len()
                ));
            }
        }
        for (on, trigger) in &triggers.waiting {
            for &(id, moment) in on {
                if triggers.set_off_by.insert((id, moment), trigger.id).is_some() {
                    let ways = triggers.waiting.keys().filter(|on| on.contains(&(id, moment))).count();
                    return Err(format!(
                        "the flow \"{id}\" would have to set off {ways} triggers, as flows wait for it in several ways; a \
                         flow of htsim sets off one"
                    ));
                }
            }
        }
        Ok(triggers)
    }

    fn of_waiting(&self, flow: &'a FlowRecord) -> Option<usize> {
        self.waiting.get(&waits_for(flow)).map(|trigger| trigger.id)
    }

    fn in_order(&self) -> Vec<(&WaitsFor<'a>, &Trigger)> {
        let mut all: Vec<_> = self.waiting.iter().collect();
        all.sort_unstable_by_key(|(_, trigger)| trigger.id);
        all
    }
}

/// Returns the flows that a flow waits for, without duplicates, in order of their names.
fn waits_for(flow: &FlowRecord) -> WaitsFor<'_> {
    let mut on: WaitsFor<'_> = flow.after.iter().map(|after| (after.id.as_str(), after.moment)).collect();
    on.sort_unstable();
    on.dedup();
    on
}
