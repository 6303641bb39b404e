//! Tests of notes on settings without an effect.

use super::signals::MADE_FOR_TRIMMING;
use crate::load::{Changes, Loaded};

/// Switches that trim.
const TRIMS: [&str; 2] = ["switch.trim.enabled=true", "switch.pfc.enabled=false"];

fn notes(scheme: &str, set: &[&str]) -> Vec<String> {
    notes_on("{ kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2 }", scheme, set)
}

fn notes_on(topology: &str, scheme: &str, set: &[&str]) -> Vec<String> {
    let text = format!(
        "scheme = \"{scheme}\"\ntopology = {topology}\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    let set = set.iter().map(|&text| text.to_owned()).collect();
    let loaded = Loaded::parse(&text, "a.toml", ".", &Changes { set, ..Changes::default() });
    let prepared = loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{scheme}: {why}"));
    // Notes on latency are expected with messages of one packet.
    prepared.notes.into_iter().filter(|note| !note.starts_with("latency rules")).collect()
}

#[test]
fn reflex_without_edges_is_not_reflex() {
    let two_sites = "{ preset = \"reflex-32\" }";
    let [note] = &notes_on(two_sites, "reflex-swift", &[])[..] else { panic!("one note") };
    assert!(note.contains("gets no feedback of an edge") && note.contains("nsf = {}, ndt = {}"), "{note}");
    assert!(notes_on(two_sites, "reflex-swift", &["switch.external.nsf={}"]).is_empty());
    assert!(notes("reflex-swift", &[]).is_empty(), "one site has no flows to hear an edge for");
}

#[test]
fn ignored_settings_are_reported() {
    let one = |scheme, set: &[&str], note: &str| assert_eq!(notes(scheme, set), [note]);
    for scheme in ["erd", "xrc"] {
        one(
            scheme,
            &["workload[0].connections=own"],
            "workload[0].connections has no effect: no message has a connection of its own where service is not \
             \"connection\": one queue pair serves several peers",
        );
    }
    assert!(notes("ecmp", &["workload[0].connections=own"]).is_empty());
    one(
        "uet-nscc",
        &["scheme.acks.every_packets=4", TRIMS[0], TRIMS[1]],
        "scheme.acks.every_packets has no effect: bytes count where acks.every_bytes is given",
    );
    one(
        "rps",
        &["switch.forwarding.conga.gap=9us"],
        "switch.forwarding.conga has no effect: neither switch.forwarding.kind nor a scheme uses \
         \"conga\"",
    );
    one(
        "rps",
        &["network.source_route=hops"],
        "network.source_route has no effect: packets carry a route only with routing.kind = \"source\"",
    );
    one(
        "rps",
        &["switch.pfc.enabled=false", "switch.pfc.alpha=0.5"],
        "switch.pfc.alpha has no effect: switch.pfc.enabled is false",
    );
    one(
        "udmp",
        &["scheme.acks.every_packets=8"],
        "scheme.acks.every_packets is 8: the policy sends a packet for each acknowledgement that \
         arrives, so fewer acknowledgements slow it down; expected 1",
    );
    for scheme in ["swift", "swift-rps", "mswift", "reps", "weave", "strack", "hpcc", "reflex-swift"] {
        one(
            scheme,
            &["scheme.acks.every_packets=16"],
            "scheme.acks.every_packets is 16: a window of fewer packets waits up to acks.max_delay for each \
             acknowledgement, and a round trip that is measured includes this delay; expected 1",
        );
    }
    for scheme in ["ecmp", "rps", "timely", "laps"] {
        assert!(notes(scheme, &["scheme.acks.every_packets=16"]).is_empty(), "{scheme}");
    }
    one(
        "rps",
        &["run.calibrate=prefix"],
        "run.calibrate has no effect: run.fidelity is \"packet\", and only runs of flows are measured",
    );
    one(
        "rps",
        &["run.fidelity=flow", "run.threads=4"],
        "run.threads has no effect: run.fidelity is \"flow\", and flows are run by one thread",
    );
    assert_eq!(notes("rps", &["run.fidelity=flow", "run.calibrate=prefix"]), [""; 0]);
    assert_eq!(notes("conga", &["switch.forwarding.conga.gap=9us"]), [""; 0]);
    assert_eq!(notes("rps", &["routing=source", "network.source_route=hops"]), [""; 0]);
}

#[test]
fn settings_of_nics_without_datagrams_are_reported() {
    let set = |fields: &str| format!("network.nic={{{fields}}}");
    let all = set("packet_cost=\"9ns\", reorder_buffer=\"64KB\", reorder_cost=\"9ns\", qp_fits=9");
    let why = "no scheme in use sends datagrams";
    let of = |field: &str| format!("network.nic.{field} has no effect: {why}");
    assert_eq!(notes("rps", &[&all]), [of("packet_cost"), of("reorder_buffer"), of("reorder_cost")]);
    assert_eq!(
        notes("erd", &[&all]),
        [
            "network.nic.reorder_cost has no effect: the NIC restores the order, because reorder_buffer is above 0B"
        ]
    );
    assert_eq!(notes("erd", &[&set("reorder_cost=\"9ns\"")]), [""; 0]);
}

#[test]
fn reference_rates_and_weights_without_effect_are_reported() {
    let rate = "switch.ecn.reference_rate=25Gbps";
    assert_eq!(notes("rps", &[rate]), [""; 0]);
    assert_eq!(
        notes("rps", &[rate, "switch.ecn.thresholds=fixed"]),
        ["switch.ecn.reference_rate has no effect: thresholds are \"fixed\" at every switch"]
    );
    assert_eq!(
        notes("rps", &["switch.weights=[1,3]"]),
        ["switch.weights has no effect: no workload has a class above 1"]
    );
    assert_eq!(notes("rps", &["switch.weights=[1,3]", "workload[0].class=2"]), [""; 0]);
    let by_table = "switch.for=[{match=\"leaf*\", ecn={thresholds=\"by-rate\"}}]";
    assert_eq!(notes("rps", &[rate, "switch.ecn.thresholds=fixed", by_table]), [""; 0]);
}

#[test]
fn pauses_across_a_wan_need_switches_that_pause() {
    let sites = "{ preset = \"reflex-32\", wan_pfc = true }";
    assert_eq!(
        notes_on(sites, "rps", &["switch.pfc.enabled=false"]),
        ["topology.wan_pfc has no effect: no switch pauses: switch.pfc.enabled is false"]
    );
}

/// The storm of a host acts on the switch at its link. Another switch may pause.
#[test]
fn pause_storms_need_a_switch_that_pauses() {
    let storm = "fault=[{kind=\"pause-storm\", host=\"host0\", at=\"1us\"}]";
    let none = "fault[0], a pause-storm, has no effect: leaf0 ignores pause frames, as it has no PFC \
                (switch.pfc.enabled is false)";
    assert_eq!(notes("rps", &["switch.pfc.enabled=false", storm]), [none]);
    assert_eq!(notes("rps", &[storm]), [""; 0]);
}

/// Default thresholds at 100 Gb/s: packets are trimmed at 178,450 B and marked at 400 KB. Both scale with the
/// rate of the link.
#[test]
fn schemes_that_switches_which_trim_are_not_made_for() {
    let goes_back = "scheme.recovery is \"go_back_n\" and switch.trim.enabled: for each packet that is trimmed, all behind it \
                     are sent again; it is made for switches that pause (switch.pfc)";
    let unmarked = "scheme slows down for marks, and there are none: switch.ecn.kmin = 400KB is not below switch.trim.queue = \
                    178450B, beyond which packets are trimmed";
    assert_eq!(notes("ecmp", &TRIMS), [goes_back, unmarked]);
    assert_eq!(notes("timely", &TRIMS), [goes_back]);
    assert_eq!(notes("rps", &TRIMS), [unmarked]);
    assert_eq!(notes("weave", &TRIMS), [""; 0]);
    let low = [TRIMS[0], TRIMS[1], "switch.ecn.kmin=20KB", "switch.ecn.kmax=80KB"];
    assert_eq!(notes("ecmp", &low), [goes_back]);
    let nothing_trims = ["switch.pfc.enabled=false"];
    assert_eq!(notes("ecmp", &nothing_trims), [""; 0]);
}

/// A NIC that goes back takes a packet that overtook another for a loss.
#[test]
fn receivers_that_keep_no_order_are_named_where_packets_take_several_paths() {
    let goes_back = "scheme.recovery={kind=\"go_back_n\"}";
    let told = |scheme: &str, set: &[&str]| {
        notes(scheme, set).iter().any(|note| note.contains("receivers drop those that overtake others"))
    };
    for scheme in ["rps", "weave", "switch-rps", "drill"] {
        assert!(told(scheme, &[goes_back]), "{scheme}");
        assert!(!told(scheme, &[]), "{scheme}");
    }
    assert!(told("ecmp", &["switch.forwarding.kind=drill"]));
    assert!(!told("rps", &[goes_back, "scheme.paths=1"]));
    for scheme in ["ecmp", "per-message", "letflow"] {
        assert!(!told(scheme, &[goes_back]), "{scheme}");
    }
}

/// Schemes that are made for trimming say so where no switch trims, and nothing else.
#[test]
fn no_listed_scheme_sets_what_it_ignores() {
    for info in pathweave_policy::schemes() {
        let found = notes(info.name, &[]);
        if info.help.contains(MADE_FOR_TRIMMING) {
            let [note] = &found[..] else { panic!("{}: {found:?}", info.name) };
            assert!(note.starts_with("scheme is made for trimming, and no switch trims"), "{note}");
            assert_eq!(notes(info.name, &TRIMS), [""; 0], "{}", info.name);
        } else {
            assert_eq!(found, [""; 0], "{}", info.name);
        }
    }
}

#[test]
fn flows_without_packets_read_no_settings_of_packets() {
    let why = "run.fidelity is \"flow\" and run.calibrate is \"off\": no packet is marked, trimmed, dropped or lost";
    for changed in ["switch.ecn.kmin=8KB", "switch.egress_alpha=3.0", "network.retransmission.retry_limit=3"]
    {
        let (field, _) = changed.split_once('=').expect("a setting");
        let of = |calibrate: &str| notes("udmp", &["run.fidelity=flow", calibrate, changed]);
        assert_eq!(of("run.calibrate=off"), [format!("{field} has no effect: {why}")]);
        let by_packets = of("run.calibrate=prefix");
        assert!(by_packets.iter().all(|note| !note.contains(why)), "{by_packets:?}");
    }
}

#[test]
fn schemes_that_carry_no_message_wait_for_nothing() {
    let text = |top: &str| {
        format!(
            "scheme = \"{top}\"\ntopology = {{ kind = \"star\", hosts = 3 }}\n\
             [[workload]]\nkind = \"permutation\"\nsize = \"40KB\"\nscheme = \"udmp\"\n"
        )
    };
    let set = vec!["switch.ecn.enabled=false".to_owned()];
    for top in ["rps", "ndp"] {
        let loaded =
            Loaded::parse(&text(top), "a.toml", ".", &Changes { set: set.clone(), ..Changes::default() });
        let prepared = loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{why}"));
        let waits = |note: &String| note.contains("marks") || note.contains(MADE_FOR_TRIMMING);
        assert!(!prepared.notes.iter().any(waits), "{:?}", prepared.notes);
    }
}

/// Tables for some switches have the notes of the general fields.
#[test]
fn what_only_packets_read_is_noted_in_tables_too() {
    for (table, field) in [("egress_alpha=0.25", "egress_alpha"), ("ecn={kmin=\"1KB\"}", "ecn.kmin")] {
        let table = format!("switch.for=[{{tier=0,{table}}}]");
        let found = notes("ecmp", &["run.fidelity=flow", "run.calibrate=off", &table]);
        let note = format!("switch.for[0].{field} has no effect: run.fidelity is \"flow\"");
        assert!(found.iter().any(|found| found.starts_with(&note)), "{found:?}");
    }
}
