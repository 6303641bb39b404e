//! Retransmission timeout on paths whose idle round trip is longer than the usual one.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_records::Quantity;
use pathweave_sim::{NetworkConfig, SimSpec, full_and_ack_bytes, profile};
use pathweave_topo::Routing;
use pathweave_units::{Duration, HostId};

use crate::load::Loaded;
use crate::text::FieldPath;

/// Longest time of a full packet on a link below which no path of up to 128 links has a round trip that concerns the timer.
const SHORT_LINK: Duration = Duration::from_us(15);

/// Largest number of host pairs that are examined for each pair of sites.
const MOST_PAIRS: usize = 64;

/// Timer of a run, and the note on it.
pub(crate) struct Timer {
    /// Network with the timer.
    pub(crate) network: NetworkConfig,
    pub(crate) note: String,
}

impl Loaded {
    /// Returns the timer where the configured timeout is shorter than twice the longest idle round trip: without a
    /// timeout in the file twice that round trip, in whole milliseconds, and else the timeout of the file. A timeout of
    /// the file that no round trip exceeds is not noted.
    pub(crate) fn retransmission_timer(&self, spec: &SimSpec) -> Option<Timer> {
        let (round_trip, (src, dst)) = longest_round_trip(spec)?;
        let mut network = spec.network.clone();
        let timer = &mut network.retransmission;
        let [src, dst] = [src, dst].map(|host| spec.topology.node_name(host.into()));
        let idle = Quantity::TimeNs.format(round_trip.as_ps() as f64 / 1e3);
        let field = FieldPath::root().key("network.retransmission.timeout");
        if self.is_written(&field) || round_trip * 2 <= timer.timeout {
            let why = "packets are sent again although none is lost";
            let note = format!(
                "{field} = {}: the idle round trip of {src} and {dst} is {idle}; {why}",
                timer.timeout
            );
            return (timer.timeout < round_trip).then_some(Timer { network, note });
        }
        let ms = (round_trip * 2).as_ps().div_ceil(Duration::from_ms(1).as_ps());
        let wanted = Duration::from_ms(ms);
        if self.is_written(&FieldPath::root().key("network.retransmission.max_timeout")) {
            timer.timeout = wanted.min(timer.max_timeout);
        } else {
            (timer.timeout, timer.max_timeout) = (wanted, timer.max_timeout.max(wanted));
        }
        let note =
            format!("{field} is {}, as the idle round trip of {src} and {dst} is {idle}", timer.timeout);
        Some(Timer { network, note })
    }
}

/// Returns the longest idle round trip of the hosts that exchange messages, and these hosts, unless all are short.
fn longest_round_trip(spec: &SimSpec) -> Option<(Duration, (HostId, HostId))> {
    let topology = &spec.topology;
    let (full, ack) = full_and_ack_bytes(&spec.network);
    if topology.longest_time_of(full.into()) < SHORT_LINK {
        return None;
    }
    let site = |host| topology.sites().map_or(0, |sites| sites.of_host(host));
    let mut pairs: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for message in spec.graph.messages() {
        let of_sites = pairs.entry((site(message.src), site(message.dst))).or_default();
        if of_sites.len() < MOST_PAIRS {
            of_sites.insert((message.src, message.dst));
        }
    }
    let routing = Routing::all_links_up(topology);
    let round_trip = |pair: (HostId, HostId)| {
        let path = profile(topology, &routing, pair.0, pair.1)?;
        Some((path.round_trip(full, ack), pair))
    };
    pairs.into_values().flatten().filter_map(round_trip).max_by_key(|(round_trip, _)| *round_trip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Changes;

    fn prepared(wan_delay: &str, rest: &str) -> (NetworkConfig, Vec<String>) {
        let text = format!(
            "[topology]\nkind = \"cross-dc\"\nsites = 2\nwan_delay = \"{wan_delay}\"\n\
             site = [{{ kind = \"leaf-spine\", leaves = 1, spines = 1, hosts_per_leaf = 2 }}]\n\
             [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"1KB\" }}, {{ src = 0, dst = 2, size = \"1KB\" }}]\n\
             {rest}"
        );
        let loaded =
            Loaded::parse(&text, "a.toml", ".", &Changes::default()).unwrap_or_else(|why| panic!("{why}"));
        let drafted = loaded.draft().unwrap_or_else(|why| panic!("{why}"));
        let text = &drafted.spec.scenario_toml;
        let resolved = format!("timeout = \"{}\"\n", drafted.spec.network.retransmission.timeout);
        assert!(text.contains(&resolved), "{resolved} is in {text}");
        let notes = drafted.notes.into_iter().filter(|note| note.starts_with("network.retransmission"));
        (drafted.spec.network, notes.collect())
    }

    /// The WAN link takes 3 ms each way, and all other links and serialisation below .1 ms.
    #[test]
    fn the_timeout_follows_long_round_trips_unless_it_is_written() {
        let timeout = |wan_delay: &str, rest: &str| prepared(wan_delay, rest).0.retransmission;
        assert_eq!(timeout("900us", "").timeout, Duration::from_ms(4));
        assert_eq!(timeout("3ms", "").timeout, Duration::from_ms(13));
        let long = timeout("50ms", "");
        assert_eq!((long.timeout, long.max_timeout), (Duration::from_ms(201), Duration::from_ms(201)));
        let most = "[network.retransmission]\nmax_timeout = \"80ms\"\n";
        assert_eq!(timeout("50ms", most).timeout, Duration::from_ms(80));
        let written = "[network.retransmission]\ntimeout = \"4ms\"\n";
        assert_eq!(timeout("3ms", written).timeout, Duration::from_ms(4));
    }

    #[test]
    fn notes_name_the_round_trip() {
        let notes = |wan_delay: &str, rest: &str| prepared(wan_delay, rest).1;
        assert_eq!(notes("900us", ""), [""; 0]);
        let [chosen] = &notes("3ms", "")[..] else { panic!("one note") };
        let expected = "network.retransmission.timeout is 13ms, as the idle round trip of ";
        assert!(chosen.starts_with(expected), "{chosen}");
        let [short] = &notes("3ms", "[network.retransmission]\ntimeout = \"4ms\"\n")[..] else {
            panic!("one note")
        };
        assert!(short.contains("timeout = 4ms: the idle round trip of "), "{short}");
        let enough = "[network.retransmission]\ntimeout = \"7ms\"\n";
        assert_eq!(notes("3ms", enough), [""; 0]);
    }

    /// At 10 Mb/s a packet of 4,178 B takes 3.34 ms on each of two links, and its acknowledgement of 86 B .07 ms: 6.83 ms both
    /// ways, though every link is short.
    #[test]
    fn slow_links_are_long_round_trips_too() {
        let timeout = |rate: &str| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"{rate}\"\n[[workload]]\nkind = \"permutation\"\n\
                 size = \"1MB\"\n"
            );
            let loaded = Loaded::parse(&text, "a.toml", ".", &Changes::default());
            let drafted = loaded.and_then(|loaded| loaded.draft()).unwrap_or_else(|why| panic!("{why}"));
            drafted.spec.network.retransmission.timeout
        };
        assert_eq!(timeout("10Mbps"), Duration::from_ms(14));
        assert_eq!(timeout("100Mbps"), Duration::from_ms(4));
    }
}
