//! The simulator's own structures are sections of a scenario: a field that is added to one of them needs no other place.

use std::num::NonZeroU16;

use pathweave_scenario::{Changes, Loaded};

/// Every field of these sections is set, so that a field that does not reach the simulator would show.
const SECTIONS: &str = r#"
[topology]
kind = "star"
hosts = 4
[[workload]]
kind = "flows"
flows = [{ src = 0, dst = 1, size = "1MB", start = "0s" }]
[network]
framing = "ns3"
source_route = "hops"
mtu = "1000B"
verb = "send"
retransmission = { timeout = "1ms", max_timeout = "5ms", backoff = 3, retry_limit = 4 }
nic = { packet_cost = "5ns" }
side_channel = { stack = "7us" }
task_notification = "3us"
[run]
fidelity = "packet"
calibrate = "off"
fold = "never"
until = "1s"
max_events = 1000000
threads = 2
partition = "parts.txt"
verify = true
[observe]
interval = "10us"
max_samples = 77
max_events = 88
flows = 1
follow = [0]
departures = true
"#;

#[test]
fn sections_reach_the_simulator_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let loaded = Loaded::parse(SECTIONS, "test.toml", folder.path(), &Changes::default()).expect("valid");
    let topology = loaded.topology().expect("a star");
    let parts = topology.switches().iter().map(|switch| format!("{} 0\n", switch.name));
    std::fs::write(folder.path().join("parts.txt"), parts.collect::<String>()).expect("a folder to write to");
    let spec = loaded.prepare().map_err(|why| why.to_string()).expect("it can run").spec;
    let scenario = &loaded.scenario;
    assert_eq!(
        (&spec.network, &spec.run, &spec.observe),
        (&scenario.network, &scenario.run, &scenario.observe)
    );
    assert_eq!(spec.threads.map(NonZeroU16::get), Some(2));

    // The text sets all fields that there are: the schema knows no other.
    let document: toml::Table = SECTIONS.parse().expect("TOML");
    let schema = pathweave_scenario::schema();
    for (section, type_name) in
        [("network", "NetworkConfig"), ("run", "RunConfig"), ("observe", "ObserveConfig")]
    {
        let fields = schema["$defs"][type_name]["properties"].as_object().expect("a structure");
        let set = document[section].as_table().expect("a table");
        let missing: Vec<&String> = fields.keys().filter(|field| !set.contains_key(*field)).collect();
        assert!(missing.is_empty(), "[{section}] of the test sets no {missing:?}");
    }
}
