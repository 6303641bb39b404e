//! Notes on loss-recovery windows that are shorter than the paths on which they are used.

use std::collections::BTreeSet;

use pathweave_sim::{SimSpec, full_and_ack_bytes, profile};
use pathweave_topo::Routing;
use pathweave_units::HostId;

use crate::model::Scenario;

/// Largest number of host pairs that are examined for each scheme.
const MOST_PAIRS: usize = 4_096;

/// Longest path of a scheme, in full packets.
struct LongestPath {
    packets: u64,
    pair: (HostId, HostId),
}

/// Returns a note for each scheme whose configured `recovery.window_packets` is smaller than the capacity of a path.
pub(crate) fn notes(scenario: &Scenario, spec: &SimSpec) -> Vec<String> {
    let mut notes = Vec::new();
    let mut routing = None;
    for (path, named) in scenario.schemes() {
        let Some(window) = named.scheme.recovery.given_window_packets() else { continue };
        let number = spec.schemes.iter().position(|other| other.name == named.name);
        let Some(LongestPath { packets, pair: (src, dst) }) = longest(spec, number, &mut routing) else {
            continue;
        };
        if u64::from(window) < packets {
            let [src, dst] = [src, dst].map(|host| spec.topology.node_name(host.into()));
            let share = f64::from(window) * 100.0 / packets as f64;
            notes.push(format!(
                "{path}.recovery.window_packets = {window}: the path from {src} to {dst} holds {packets} packets, so that a \
                 flow alone has {share:.0} % of it at most; without the field the window follows the path"
            ));
        }
    }
    notes
}

/// Returns the longest path of a scheme. `routing` is computed when a scheme first needs it.
fn longest(spec: &SimSpec, scheme: Option<usize>, routing: &mut Option<Routing>) -> Option<LongestPath> {
    let of_scheme = |group: usize| Some(usize::from(spec.groups[group].scheme)) == scheme;
    let messages = spec.graph.messages().iter().filter(|message| of_scheme(message.group.index()));
    let mut pairs = BTreeSet::new();
    for message in messages {
        pairs.insert((message.src, message.dst));
        if pairs.len() == MOST_PAIRS {
            break;
        }
    }
    let routing = &*routing.get_or_insert_with(|| Routing::all_links_up(&spec.topology));
    let (full, ack) = full_and_ack_bytes(&spec.network);
    let holds = |pair: (HostId, HostId)| {
        let path = profile(&spec.topology, routing, pair.0, pair.1)?;
        let bytes = path.line_rate.bytes_in(path.round_trip(full, ack));
        Some(LongestPath { packets: bytes.div_ceil(u64::from(full)), pair })
    };
    pairs.into_iter().filter_map(holds).max_by_key(|longest| longest.packets)
}

#[cfg(test)]
mod tests {
    use crate::load::{Changes, Loaded};

    /// 100 Gb/s over slightly more than two times 500 us: more than 12.5 MB in packets of 1,024 B plus headers.
    #[test]
    fn a_window_that_a_path_exceeds_is_noted() {
        let notes = |scheme: &str| {
            let text = format!(
                "name = \"long\"\nscheme = {scheme}\n[network]\nmtu = \"1024B\"\n[topology]\nkind = \"cross-dc\"\nsites = 2\n\
                 site = [{{ kind = \"leaf-spine\", leaves = 1, spines = 1, hosts_per_leaf = 2, host_rate = \"100Gbps\" }}]\n\
                 [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 2, size = \"64KB\", start = \"0s\" }}]\n"
            );
            Loaded::parse(&text, "long.toml", ".", &Changes::default()).unwrap().draft().unwrap().notes
        };
        assert_eq!(notes("\"weave\""), [""; 0]);
        let [note] = &notes("{ base = \"weave\", recovery = { window_packets = 4096 } }")[..] else {
            panic!("one note")
        };
        assert!(note.starts_with("scheme.recovery.window_packets = 4096: the path from "), "{note}");
        assert!(note.contains(" holds 11") && note.contains(" has 36 % of it at most"), "{note}");
        assert_eq!(notes("{ base = \"weave\", recovery = { window_packets = 65536 } }"), [""; 0]);
    }
}
