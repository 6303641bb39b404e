//! No option is ignored silently. Every field of a scheme, of switches and of the network is changed, one at a time,
//! in a run where it applies. Then either the outcome changes, the change is refused, or a note states that the field
//! has no effect and why.

pub(crate) mod fields;
mod idle;
mod parts;
mod record;

use std::collections::BTreeSet;

use pathweave_policy::schemes;
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;

use record::{EffectsRecord, Inert, outcome};

/// Schemes that switches serve with load balancing of their own.
const BY_SWITCHES: [&str; 6] = ["rps", "conga", "conweave", "drill", "letflow", "wcmp"];

/// Network with queues, marks, drops and losses, a path that goes down and up, messages of several packets that
/// follow each other, and pauses between them.
const NETWORK: &str = r#"
topology = { kind = "leaf-spine", leaves = 3, spines = 3, hosts_per_leaf = 3 }

[network]
retransmission = { timeout = "150us" }

[switch]
buffer = "400KB"
pfc = { enabled = false }
ecn = { kmin = "16KB", kmax = "64KB" }
reroute_after = "30us"

[[fault]]
kind = "link-loss"
link = "leaf0-spine0"
probability = 0.03

[[fault]]
kind = "link-flap"
link = "leaf1-spine1"
at = "60us"
down_for = "60us"
up_for = "200us"
times = 2

[[workload]]
kind = "all-to-all"
size = "40KB"
repetitions = 2
compute = "120us"

[[workload]]
group = "fan in"
kind = "incast"
senders = 6
size = "300KB"

[run]
until = "20ms"
"#;

/// Inert fields of schemes.
const INERT_OF_SCHEMES: &[Inert] = &[
    ("erd", "scheme.ports", "has the one value that it may have"),
    ("erd", "service.delivery", "each pair of hosts has one message at a time"),
    ("erd", "service.retries", "little is sent again"),
    ("erd", "service.rtt", "likewise"),
    ("erd", "service.window_packets", "no source has 64 packets under way"),
    ("", "recovery.sender_window_packets", "no sender has as many packets under way as the receiver tracks"),
    ("xrc", "service.node_processes", "every host runs one process"),
    ("timely", "policy.cc.t_high", "round trips stay below t_low, and with it all that TIMELY does"),
    ("timely", "policy.cc.beta", "likewise"),
    ("timely", "policy.cc.gain", "likewise"),
    ("timely", "policy.cc.hyper_", "likewise"),
    ("timely", "policy.cc.min_r", "likewise"),
    ("timely", "policy.cc.step", "likewise"),
    ("swift", "policy.cc.min_packets", "losses keep the window small"),
    ("swift", "policy.cc.min_rate", "over so short a way either is less than a packet"),
    ("mswift", "policy.cc.swift.min_packets", "as with swift: losses keep the window small"),
    ("mswift", "policy.cc.swift.min_rate", "as with swift: over so short a way either is less than a packet"),
    ("udmp", "policy.kick_after", "in the published variant something is always in flight"),
    ("erd", "policy.cc.window", "has the one value that it may have"),
    ("udmp-published", "policy.severe_rtt", "round trips stay below"),
    ("mprdma", "policy.burst_timer", "connections have a message each"),
    ("mprdma-half-window", "policy.ooo_packets", "after a mark the window is a packet or two"),
    ("reps", "policy.freeze", "nothing is silent for as long as a timeout takes"),
    ("reps", "policy.decrease", "the window is at its least"),
    ("reps", "policy.max_decrease", "likewise"),
    (
        "uet-nscc",
        "policy.cc.proportional_increase",
        "what comes back within the target meets a window at its most",
    ),
    ("uet-nscc", "policy.cc.fast_", "likewise"),
    (
        "uet-nscc",
        "policy.cc.apply_packets",
        "messages are so short that increases count once a round trip only",
    ),
    ("uet-nscc", "policy.cc.last_hop_trims", "no switch trims here"),
    ("mrc", "policy.nscc.last_hop_trims", "likewise"),
    (
        "mrc",
        "policy.nscc.profile",
        "profiles differ in losses that acknowledgements tell of, and only timers find losses here",
    ),
    ("smartt", "recycled.explore_after", "no path is silent for as long as freeze says"),
    ("uet-", "mixed.silent", "no path has a loss that a timer finds"),
    ("uet-rccc", "mixed.most", "no path has so many penalties"),
    ("plb", "plb.congested_share", "the packets of a round are all marked, or none is"),
    ("plb", "plb.idle_rounds", "something is in flight when a round ends"),
    ("plb", "plb.suspend_after_timeout", "every value that is tried outlasts the run"),
    ("dlbf", "reordering.high", "less is held"),
    ("dlbf", "reordering.low", "likewise"),
    (
        "laps",
        "policy.arithmetic",
        "from the same random numbers integers and floating point choose the same paths here",
    ),
];

/// Inert fields of switches and of the network.
const INERT_OF_SWITCHES: &[Inert] = &[
    ("rps", "network.retransmission.retry_limit", "losses are found long before a timeout"),
    ("drill", "network.retransmission.retry_limit", "likewise"),
    ("", "network.retransmission.backoff", "no timeout follows another"),
    ("", "network.retransmission.max_timeout", "likewise"),
    ("", "switch.hash", "its field says so: where no other load balancing does"),
    ("conweave", "conweave.stale_after", "there is room for all flows"),
    ("conweave", "conweave.flush_default", "what tells the deadline comes before it passes"),
    ("wcmp", "wcmp.most_entries", "all ways have one capacity"),
];

/// Inert fields of the run.
const INERT_OF_THE_RUN: &[Inert] = &[
    ("", "run.threads", "its field says so: of no influence on results"),
    ("", "run.verify", "every byte is where it should be"),
    ("packet", "run.fold", "\"never\" is what happens, and \"always\" is refused"),
    ("flow", "run.fold", "likewise: no ranks of a training job are there"),
];

/// Returns one scheme for each combination of components; other schemes differ only in values.
fn kinds_of_schemes() -> Vec<&'static str> {
    let mut seen = BTreeSet::new();
    let kind_of = |value: &serde_json::Value, out: &mut String| {
        for path in [
            "/policy/kind",
            "/policy/cc/kind",
            "/policy/picker",
            "/policy/picker/kind",
            "/recovery/kind",
            "/service/kind",
            "/reordering/kind",
            "/policy/variant",
        ] {
            out.push_str(value.pointer(path).and_then(serde_json::Value::as_str).unwrap_or("-"));
        }
    };
    let names = schemes().iter().filter(|info| {
        let value = serde_json::to_value((info.make)()).expect("a scheme can be written");
        let mut kind = String::new();
        kind_of(&value, &mut kind);
        seen.insert(kind)
    });
    names.map(|info| info.name).collect()
}

#[test]
fn every_field_of_every_scheme_does_something_or_says_why_not() {
    let mut tried = EffectsRecord::default();
    for name in kinds_of_schemes() {
        tried.add(name, &format!("scheme = \"{name}\"\n{NETWORK}"), "scheme");
    }
    tried.check(INERT_OF_SCHEMES, &["scheme."]);
}

#[test]
fn every_field_of_switches_and_network_does_something_or_says_why_not() {
    let mut tried = EffectsRecord::default();
    for name in BY_SWITCHES {
        for under in ["switch", "network"] {
            tried.add(name, &format!("scheme = \"{name}\"\n{NETWORK}"), under);
        }
    }
    tried.check(INERT_OF_SWITCHES, &["switch.", "network."]);
}

/// Tables for some switches and links.
const TABLES: &str = r#"
[[link]]
match = "leaf0-spine*"
rate = "50Gbps"
delay = "2us"
error_rate = 0.001

[[switch.for]]
match = "leaf*"
tier = 0
egress_alpha = 0.5
ecn = { enabled = true, kmin = "8KB" }
"#;

/// Inert fields of tables for some switches and links.
const INERT_OF_TABLES: &[Inert] = &[
    ("pause", "for[0].egress_alpha", "switches that pause do not drop by it"),
    ("trim", "for[0].egress_alpha", "its field says so: switches that trim use trim.queue"),
    ("trim", "for[0].buffer", "likewise"),
    ("trim", "for[0].asic", "likewise"),
    ("trim", "for[0].trim.header_queue", "headers do not wait long"),
];

/// Settings of switches that drop, pause and trim: their name, buffer, settings of all switches and of the table.
const FULL_BUFFERS: [(&str, &str, &str, &str); 3] = [
    ("drop", "400KB", "pfc = { enabled = false }", "pfc = { enabled = false }"),
    ("pause", "800KB", "pfc = { enabled = true }", "pfc = { enabled = true }"),
    (
        "trim",
        "400KB",
        "pfc = { enabled = false }\ntrim = { enabled = true, queue = \"80KB\" }",
        "pfc = { enabled = false }\ntrim = { enabled = true, queue = \"60KB\" }",
    ),
];

/// Returns a scenario with tables for some switches and links.
fn with_tables((_, buffer, general, table): (&str, &str, &str, &str)) -> String {
    let network = NETWORK
        .replace("pfc = { enabled = false }", general)
        .replace("buffer = \"400KB\"", &format!("buffer = \"{buffer}\""));
    format!("scheme = \"rps\"\n{network}{TABLES}{table}\n")
}

#[test]
fn every_field_of_tables_for_switches_and_links_does_something_or_says_why_not() {
    let mut tried = EffectsRecord::default();
    for buffers in FULL_BUFFERS {
        let text = with_tables(buffers);
        for under in ["switch", "link"] {
            tried.add(buffers.0, &text, under);
        }
    }
    tried.silent.retain(|(_, field, _)| field.starts_with("switch.for") || field.starts_with("link"));
    tried.check(INERT_OF_TABLES, &["switch.for", "link"]);
}

/// Returns the scenarios of the tests of schemes, switches and tables, each with the parts whose fields are tried.
fn scenarios() -> Vec<(String, &'static [&'static str])> {
    let with = |name: &str| format!("scheme = \"{name}\"\n{NETWORK}");
    let schemes = kinds_of_schemes().into_iter().map(|name| (with(name), &["scheme"][..]));
    let switches = BY_SWITCHES.into_iter().map(|name| (with(name), &["switch", "network"][..]));
    let tables = FULL_BUFFERS.into_iter().map(|of| (with_tables(of), &["switch", "link"][..]));
    schemes.chain(switches).chain(tables).chain([(with("rps"), &["run"][..])]).collect()
}

#[test]
fn every_field_of_the_run_does_something_or_says_why_not() {
    let mut tried = EffectsRecord::default();
    for name in ["packet", "flow"] {
        let text = format!(
            "scheme = \"rps\"\ntopology = {{ kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 4 }}\n\
             [[workload]]\nkind = \"all-to-all\"\nsize = \"256KB\"\nrepetitions = 3\n[run]\nfidelity = \"{name}\"\n"
        );
        tried.add(name, &text, "run");
    }
    tried.check(INERT_OF_THE_RUN, &["run."]);
}

/// A partition assigns nodes to threads, which only packet simulations use.
#[test]
fn a_partition_of_a_run_of_flows_is_said_to_do_nothing() {
    let parts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(parts.path(), "leaf0 0\nleaf1 1\nspine0 0\n").unwrap();
    let text = "topology = { kind = \"leaf-spine\", leaves = 2, spines = 1, hosts_per_leaf = 2 }\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"64KB\"\n";
    let notes = |more: &[&str]| {
        let of_parts = format!("run.partition={}", parts.path().display());
        let set = more.iter().map(|&set| set.to_owned()).chain([of_parts]).collect();
        let changes = Changes { set, ..Changes::default() };
        let prepared = Loaded::parse(text, "a.toml", ".", &changes).and_then(|loaded| loaded.prepare());
        prepared.unwrap_or_else(|why| panic!("{why}")).notes
    };
    assert_eq!(notes(&[]), [""; 0]);
    let said = "run.partition has no effect: run.fidelity is \"flow\", and flows are run by one thread";
    assert_eq!(notes(&["run.fidelity=flow"]), [said]);
    // The packets that calibrate the flows use the partition.
    assert_eq!(notes(&["run.fidelity=flow", "run.calibrate=prefix"]), [""; 0]);
}

/// No listed scheme repeats NACKs for a gap. With reordering and loss, the repetition and its interval change the
/// outcome.
#[test]
fn when_a_gap_is_told_of_again_matters() {
    let text = format!("scheme = \"ecmp\"\n{NETWORK}");
    let after = |set: &str| outcome(&text, &[set.to_owned()]).expect("it runs");
    let repeated = |us| after(&format!("scheme.recovery={{kind=\"go_back_n_repeated\", repeat=\"{us}us\"}}"));
    let once = after("scheme.recovery={kind=\"go_back_n\"}");
    assert!(repeated(4) != repeated(12) && repeated(4) != once && repeated(12) != once);
}

/// Four spines of 100, 100, 50 and 10 Mb/s. The setting that is used on real hosts fills them as well as that of simulated
/// ones.
#[test]
fn weave_fills_unequal_spines_with_either_choice_of_paths() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let text = "scheme = \"weave\"\ntopology = { kind = \"file\", path = \"unequal-spines/fabric.toml\" }\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"10MB\"\n";
    let run = |choice: &str| {
        let set = vec![format!("scheme.policy.choice={choice}")];
        let changes = Changes { set, ..Changes::default() };
        let loaded = Loaded::parse(text, "a.toml", folder, &changes).map_err(|why| why.to_string())?;
        let prepared = loaded.prepare().map_err(|why| why.to_string())?;
        let result = pathweave_sim::run(&prepared.spec, &mut NoMonitor).map_err(|why| why.to_string())?;
        let finished = result.flows.iter().map(|flow| flow.finish_ps).max().flatten();
        finished.map(|at| at as f64 / 1e12).ok_or_else(|| "a message did not finish".to_owned())
    };
    let (ring, windows) = (run("came_back_well").unwrap(), run("window_each").unwrap());
    let ratio = windows / ring;
    assert!((0.95..1.05).contains(&ratio), "{windows} s with windows, {ring} s with the ring");
    let why = run("windows_each").unwrap_err();
    assert!(
        why.contains("choice") && why.contains("came_back_well") && why.contains("`window_each`"),
        "{why}"
    );
}
