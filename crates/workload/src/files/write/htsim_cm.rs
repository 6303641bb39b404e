//! Connection matrices of htsim.

use std::collections::BTreeMap;
use std::fmt::Write;

use pathweave_units::Time;

use super::{count, has_delay, shared_connections, start_ps};
use crate::files::{FlowFile, FlowRecord};

/// Size from which on htsim does not take a flow, bytes.
const TOO_LARGE: u64 = 1 << 31;

/// Writes a connection matrix. Flows that wait for the same others do so by one trigger: a barrier, or for a single flow
/// one of one shot. Refused: flows that would have to set off several triggers, and flows of 2 GiB and more.
pub fn write_htsim_cm(flows: &FlowFile, lost: &mut Vec<String>) -> Result<String, String> {
    if let Some(large) = flows.flows.iter().find(|flow| flow.size_bytes >= TOO_LARGE) {
        return Err(format!(
            "a flow from {} to {} has {} bytes; htsim takes less than {TOO_LARGE}",
            large.src, large.dst, large.size_bytes
        ));
    }
    let triggers = Triggers::of(flows)?;
    let losses = [
        count(flows, has_delay).map(|some| format!("the time between others and {some}")),
        count(flows, |flow| !flow.after.is_empty() && flow.start > Time::ZERO)
            .map(|some| format!("the start of {some}, beside a trigger")),
        Some(shared_connections(flows))
            .filter(|&n| n > 0)
            .map(|n| format!("that {n} flows share connections")),
    ];
    lost.extend(losses.into_iter().flatten());
    let highest = flows.flows.iter().map(|flow| flow.src.max(flow.dst)).max().unwrap_or(0);
    let nodes = flows.hosts.unwrap_or(0).max(highest + 1);
    let mut text = format!("Nodes {nodes}\nConnections {}\n", flows.flows.len());
    if !triggers.waiting.is_empty() {
        let _ = writeln!(text, "Triggers {}", triggers.waiting.len());
    }
    for (flow, id) in flows.flows.iter().zip(1u64..) {
        let begin = match triggers.of_waiting(flow) {
            Some(trigger) => format!("trigger {trigger}"),
            None => format!("start {}", start_ps(flow)),
        };
        let _ = write!(text, "{}->{} id {id} {begin} size {}", flow.src, flow.dst, flow.size_bytes);
        let sets_off = flow.id.as_deref().and_then(|id| triggers.set_off_by.get(id));
        if let Some(trigger) = sets_off {
            let _ = write!(text, " recv_done_trigger {trigger}");
        }
        text.push('\n');
    }
    for (on, trigger) in triggers.in_order() {
        let _ = match on.len() {
            1 => writeln!(text, "trigger id {trigger} oneshot"),
            n => writeln!(text, "trigger id {trigger} barrier count {n}"),
        };
    }
    Ok(text)
}

/// Which trigger flows wait for, and which they set off.
struct Triggers<'a> {
    /// By the flows that set it off, in order of their names.
    waiting: BTreeMap<Vec<&'a str>, usize>,
    set_off_by: BTreeMap<&'a str, usize>,
}

impl<'a> Triggers<'a> {
    fn of(flows: &'a FlowFile) -> Result<Self, String> {
        let mut triggers = Triggers { waiting: BTreeMap::new(), set_off_by: BTreeMap::new() };
        for flow in flows.flows.iter().filter(|flow| !flow.after.is_empty()) {
            let next = triggers.waiting.len() + 1;
            triggers.waiting.entry(waits_for(flow)).or_insert(next);
        }
        for (on, &trigger) in &triggers.waiting {
            for &id in on {
                if triggers.set_off_by.insert(id, trigger).is_some() {
                    let ways = triggers.waiting.keys().filter(|on| on.contains(&id)).count();
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
        self.waiting.get(&waits_for(flow)).copied()
    }

    fn in_order(&self) -> Vec<(&Vec<&'a str>, usize)> {
        let mut all: Vec<_> = self.waiting.iter().map(|(on, &trigger)| (on, trigger)).collect();
        all.sort_unstable_by_key(|&(_, trigger)| trigger);
        all
    }
}

/// The names of the flows that a flow waits for, each once, in order.
fn waits_for(flow: &FlowRecord) -> Vec<&str> {
    let mut on: Vec<&str> = flow.after.iter().map(|after| after.id.as_str()).collect();
    on.sort_unstable();
    on.dedup();
    on
}
