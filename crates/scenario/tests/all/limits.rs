//! Scenarios that are too large for the engine are refused before the run.

use pathweave_scenario::{Changes, Loaded};

fn refusal(switches: u32, to: u32, routing: &str) -> Option<String> {
    let text = format!(
        "topology = {{ kind = \"torus\", size = [{switches}] }}\nrouting = \"{routing}\"\n[[workload]]\n\
         kind = \"flows\"\nflows = [{{ src = 0, dst = {to}, size = \"1KB\" }}]\n"
    );
    let loaded = Loaded::parse(&text, "ring.toml", ".", &Changes::default()).expect("well-formed");
    loaded.prepare().err().map(|why| why.to_string())
}

/// A packet counts the links it crosses in eight bits. Explicit paths have at most 64 switches, and so have all
/// others.
#[test]
fn hosts_that_are_too_far_apart_are_refused() {
    assert_eq!(refusal(160, 63, "ecmp"), None, "64 switches");
    let why = refusal(160, 64, "ecmp").expect("65 switches");
    assert!(
        why.contains("host0 and host64 are more than 64 switches apart; at most 64 are allowed"),
        "{why}"
    );
    // Sources use both directions around the ring, and so all switches.
    assert_eq!(refusal(64, 1, "source"), None);
    let why = refusal(65, 1, "source").expect("65 switches");
    assert!(why.contains("is over 65 switches; at most 64 are allowed"), "{why}");
    assert!(refusal(700, 350, "ecmp").expect("351 switches").contains("host0 and host350 are more than 64"));
}
