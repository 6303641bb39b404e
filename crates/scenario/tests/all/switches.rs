//! Settings of some switches (`[[switch.for]]`) and links (`[[link]]`), and faults of one direction.

use pathweave_records::RunResult;
use pathweave_scenario::{Changes, Loaded, Prepared, run};
use pathweave_sim::{InProcess, NoMonitor, RankSimulation, full_and_ack_bytes};

/// Two leaves with a host each, and one spine; 100 Gb/s and 1 us everywhere.
const PAIR: &str = "topology = { kind = \"leaf-spine\", leaves = 2, spines = 1, hosts_per_leaf = 1, \
                    host_rate = \"100Gbps\", spine_rate = \"100Gbps\" }\n";

const FABRIC: &str = "topology = { kind = \"leaf-spine\", leaves = 3, spines = 2, hosts_per_leaf = 3 }\n\
                      [[workload]]\nkind = \"all-to-all\"\nsize = \"120KB\"\n\
                      [[workload]]\nkind = \"incast\"\ngroup = \"many\"\nsenders = 6\nsize = \"300KB\"\n";

/// Tables that make every switch and some directions differ.
const UNEQUAL: &str = r#"
[switch]
reroute_after = "20us"
[[switch.for]]
tier = 0
asic = "tomahawk-3"
latency = "600ns"
pfc = { alpha = 0.0005 }
ecn = { kmin = "20KB", kmax = "80KB", thresholds = "fixed" }
[[switch.for]]
match = "spine1"
buffer = "5MB"
latency = "350ns"
hash = "polarised"
[[link]]
match = "leaf*->spine0"
rate = "40Gbps"
[[link]]
match = "host2-leaf?"
delay = "3us"
[[link]]
match = "spine1->leaf2"
error_rate = 0.01
[[fault]]
kind = "link-down"
link = "leaf1->spine1"
at = "15us"
up_at = "90us"
[[fault]]
kind = "link-rate"
link = "spine0->leaf0"
at = "10us"
rate = "25Gbps"
until = "60us"
[[fault]]
kind = "link-loss"
link = "host3->leaf1"
probability = 0.02
"#;

fn load(text: &str, set: &[&str]) -> Result<Prepared, String> {
    let changes = Changes { set: set.iter().map(|&set| set.to_owned()).collect(), ..Changes::default() };
    let loaded = Loaded::parse(text, "test.toml", "", &changes).map_err(|why| why.to_string())?;
    loaded.prepare().map_err(|why| why.to_string())
}

fn result(text: &str, set: &[&str]) -> RunResult {
    let prepared = load(text, set).unwrap_or_else(|why| panic!("{why}"));
    run(&prepared.spec, &mut NoMonitor).expect("it was tried")
}

/// Returns a workload with messages (from, to, size).
fn messages(list: &[(u32, u32, &str)]) -> String {
    let flow = |(src, dst, size): &(u32, u32, &str)| {
        format!("{{ src = {src}, dst = {dst}, size = \"{size}\", start = \"0s\" }}")
    };
    let flows: Vec<String> = list.iter().map(flow).collect();
    format!("[[workload]]\nkind = \"flows\"\nflows = [{}]\n", flows.join(", "))
}

/// Returns the time in picoseconds until each message is complete at its receiver.
fn finish(result: &RunResult) -> Vec<u64> {
    result.flows.iter().map(|flow| flow.finish_ps.expect("it arrives") - flow.start_ps).collect()
}

#[test]
fn tables_that_repeat_the_general_settings_change_no_digest() {
    let plain = result(FABRIC, &[]).info.digest;
    let repeated = format!(
        "{FABRIC}[[switch.for]]\nmatch = \"leaf*\"\nbuffer = \"32MB\"\npfc = {{ alpha = 0.125, xon_gap = \"3KB\" }}\n\
         ecn = {{ kmin = \"400KB\" }}\n[[switch.for]]\ntier = 1\nhash = \"seeded\"\nlatency = \"0s\"\n\
         [[link]]\nmatch = \"*\"\ndelay = \"1us\"\n"
    );
    assert_eq!(result(&repeated, &[]).info.digest, plain);
    let inspection = load(&repeated, &[]).expect("a good scenario").inspect();
    assert_eq!(inspection.network.switch_classes.len(), 1);
}

#[test]
fn unequal_switches_and_links_run_alike_on_threads_and_ranks() {
    let text = format!("scheme = \"ecmp\"\n{FABRIC}{UNEQUAL}");
    let one = result(&text, &[]);
    assert!(one.links.iter().any(|link| link.pfc_pauses > 0), "leaves pause");
    assert_ne!(one.info.digest, result(&format!("scheme = \"ecmp\"\n{FABRIC}"), &[]).info.digest);
    for threads in ["run.threads=2", "run.threads=3"] {
        assert_eq!(result(&text, &[threads]).info.digest, one.info.digest, "{threads}");
    }
    let spec = load(&text, &[]).expect("a good scenario").spec;
    let of_ranks: Vec<_> = std::thread::scope(|scope| {
        let start = |mut rank: InProcess| {
            let spec = &spec;
            scope.spawn(move || RankSimulation::new(spec, &mut rank).expect("valid").run(&mut NoMonitor))
        };
        let running: Vec<_> = InProcess::ranks(2).into_iter().map(start).collect();
        running.into_iter().filter_map(|rank| rank.join().expect("no panic")).collect()
    });
    assert_eq!(of_ranks.len(), 1, "rank 0 has the result");
    assert_eq!(of_ranks[0].info.digest, one.info.digest);
}

#[test]
fn latency_adds_to_the_one_way_time_and_to_no_other() {
    let text = format!("{PAIR}{}", messages(&[(0, 1, "64B")]));
    let (plain, all, spine) = (
        result(&text, &[]),
        result(&text, &["switch.latency=600ns"]),
        result(&format!("{text}[[switch.for]]\nmatch = \"spine0\"\nlatency = \"600ns\"\n"), &[]),
    );
    assert_eq!(finish(&all)[0], finish(&plain)[0] + 3 * 600_000, "two leaves and a spine");
    assert_eq!(finish(&spine)[0], finish(&plain)[0] + 600_000);
    // The acknowledgement comes back through the same switches, and the ideal times know of them.
    let acked = |result: &RunResult| result.flows[0].acked_ps.expect("it is acknowledged");
    assert_eq!(acked(&all), acked(&plain) + 6 * 600_000);
    for result in [&plain, &all, &spine] {
        assert_eq!(finish(result)[0], result.flows[0].ideal_fct_ps);
    }
}

#[test]
fn a_slow_link_takes_its_time() {
    let size = "4096B";
    let text = |messages: &str, more: &str| format!("scheme = \"rps-nocc\"\n{PAIR}{messages}{more}");
    let there = messages(&[(0, 1, size)]);
    let spec = load(&text(&there, ""), &["network.mtu=4096B"]).expect("good").spec;
    let packet = u64::from(full_and_ack_bytes(&spec.network).0);
    // The first packet of a write has 16 B more. At 10 Gb/s in place of 100 Gb/s it takes 720 ps a byte longer.
    let more = (packet + 16) * 720;
    let slow = |names: &str| format!("[[link]]\nmatch = \"{names}\"\nrate = \"10Gbps\"\n");
    let of = |messages: &str, more: &str| finish(&result(&text(messages, more), &["network.mtu=4096B"]))[0];
    let plain = of(&there, "");
    assert_eq!(of(&there, &slow("spine0-leaf0")), plain + more);
    assert_eq!(of(&there, &slow("leaf0->spine0")), plain + more);
    assert_eq!(of(&there, &slow("*-*")), plain + 4 * more);
    assert_eq!(of(&there, &slow("leaf0->spine0")), of(&messages(&[(1, 0, size)]), &slow("spine0->leaf0")));
    // The other direction carries the acknowledgement only, which does not delay the message.
    assert_eq!(of(&there, &slow("spine0->leaf0")), plain);
    let delay = "[[link]]\nmatch = \"leaf0->spine0\"\ndelay = \"5us\"\n";
    assert_eq!(of(&there, delay), plain + 4_000_000);
    // 100 packets behind each other: the slow link is busy from the arrival of the first packet on. The last packet
    // lacks the 16 B on the two links behind.
    let long = result(&text(&messages(&[(0, 1, "409600B")]), &slow("leaf0->spine0")), &["network.mtu=4096B"]);
    assert_eq!(finish(&long)[0], plain + more + 99 * packet * 800 - 2 * 16 * 80);
    let ideal = long.flows[0].ideal_fct_ps;
    assert!(ideal <= finish(&long)[0] && ideal > finish(&long)[0] / 100 * 99, "{ideal}");
}

#[test]
fn flows_know_directions_and_latencies() {
    let text = format!(
        "scheme = \"rps-nocc\"\n{PAIR}{}[[link]]\nmatch = \"leaf0->spine0\"\nrate = \"10Gbps\"\n\
         [[switch.for]]\nmatch = \"spine0\"\nlatency = \"2us\"\nbuffer = \"64MB\"\n",
        messages(&[(0, 1, "10MB"), (1, 0, "10MB")])
    );
    let (flows, packets) = (result(&text, &["run.fidelity=flow"]), result(&text, &[]));
    for (flow, packet) in finish(&flows).iter().zip(finish(&packets)) {
        // Acknowledgements of the fast direction take 2 % of the slow one.
        assert!((*flow as f64 / packet as f64 - 1.0).abs() < 0.025, "{flow} {packet}");
    }
    assert!(finish(&flows)[0] > 8 * finish(&flows)[1], "one direction is ten times slower");
    // A fault of one direction leaves the other alone.
    let fault = "[[fault]]\nkind = \"link-rate\"\nlink = \"spine0->leaf1\"\nat = \"0s\"\nrate = \"1Gbps\"\n";
    let broken = result(&format!("{text}{fault}"), &["run.fidelity=flow"]);
    assert!(finish(&broken)[0] > 8 * finish(&flows)[0]);
    assert!(finish(&broken)[1] < 2 * finish(&flows)[1]);
}

#[test]
fn a_fault_of_one_direction_loses_nothing_in_the_other() {
    let lossy = |link: &str| {
        let fault = format!("[[fault]]\nkind = \"link-loss\"\nlink = \"{link}\"\nprobability = 0.2\n");
        let both = messages(&[(0, 1, "400KB"), (1, 0, "400KB")]);
        let result = result(&format!("{PAIR}{both}{fault}"), &[]);
        let dropped = |from: &str, to: &str| {
            let name = |node: u32| result.nodes[node as usize].name.clone();
            let found =
                result.links.iter().find(|link| name(link.from_node) == from && name(link.to_node) == to);
            found.expect("a link").dropped_packets
        };
        (dropped("leaf0", "spine0") > 0, dropped("spine0", "leaf0") > 0)
    };
    assert_eq!(lossy("leaf0->spine0"), (true, false));
    assert_eq!(lossy("spine0->leaf0"), (false, true));
    assert_eq!(lossy("leaf0-spine0"), (true, true));
}

#[test]
fn check_knows_the_classes() {
    let classes = load(&format!("{FABRIC}{UNEQUAL}"), &[]).expect("good").inspect().network.switch_classes;
    let found: Vec<_> = classes
        .iter()
        .map(|class| (class.switches, class.first.as_str(), class.buffer_bytes, class.latency_ns))
        .collect();
    let expected =
        [(3, "leaf0", 64_000_000, 600.0), (1, "spine0", 32_000_000, 0.0), (1, "spine1", 5_000_000, 350.0)];
    assert_eq!(found, expected);
    assert_eq!(
        classes[2].settings,
        [
            "buffer 5MB",
            "pauses above 0.125 of the free buffer",
            "marks from 400KB to 1600KB at 100Gbps",
            "hash polarised",
            "latency 350ns"
        ]
    );
    assert!(load(FABRIC, &[]).expect("good").inspect().network.switch_classes.is_empty());
}

/// NICs that GPUs share mark no packets, whatever the settings of switches: they are apart from switches like them.
#[test]
fn check_knows_that_nics_do_not_mark() {
    let text = "
        scheme = 'rps'
        [topology]
        kind = 'cluster'
        servers = 2
        server = { gpus = 2, nics = 1 }
        scale_out = { kind = 'leaf-spine', leaves = 2, spines = 1, hosts_per_leaf = 1 }
        attach = 'server'
        [[switch.for]]
        match = 'leaf*'
        asic = 'tomahawk-5'
        [[workload]]
        kind = 'flows'
        flows = [{ src = 0, dst = 2, size = '1MB' }]
    ";
    let loaded = Loaded::parse(text, "test.toml", "", &Changes::default()).expect("good");
    let classes = loaded.prepare().expect("good").inspect().network.switch_classes;
    let found: Vec<_> = classes
        .iter()
        .map(|class| (class.switches, class.first.as_str(), class.settings[2].starts_with("marks from")))
        .collect();
    assert_eq!(found, [(2, "srv0.nic0", false), (2, "leaf0", true), (1, "spine0", true)]);
}

#[test]
fn the_example_has_three_classes() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/asics.toml");
    let loaded = Loaded::read(&path, &Changes::default()).unwrap_or_else(|why| panic!("{why}"));
    let prepared = loaded.prepare().unwrap_or_else(|why| panic!("{why}"));
    let classes = prepared.inspect().network.switch_classes;
    let found: Vec<_> = classes.iter().map(|class| (class.switches, class.first.as_str())).collect();
    assert_eq!(found, [(4, "leaf0"), (3, "spine0"), (1, "spine3")]);
    assert_eq!(classes[1].settings[0], "buffer 1GB");
}

/// Every refusal says where, and what is right.
#[test]
fn bad_tables_are_refused_with_the_nearest_right_choice() {
    let refused = |more: &str, parts: &[&str]| {
        let why = load(&format!("{FABRIC}{more}"), &[]).err().unwrap_or_else(|| panic!("{more} is accepted"));
        for part in parts {
            assert!(why.contains(part), "{more}: {part} is missing in\n{why}");
        }
    };
    let table = |lines: &str| format!("[[switch.for]]\n{lines}\n");
    refused(
        &table("match = \"laef*\"\nbuffer = \"1MB\""),
        &["no switch matches \"laef*\"", "leaf*", "switch.for[0].match", "spine*"],
    );
    refused(&table("tier = 4\nbuffer = \"1MB\""), &["no switch is of tier 4", "0 to 1"]);
    refused(&table("group = 7\nbuffer = \"1MB\""), &["no switch is of group 7", "0 to 2"]);
    refused(&table("buffer = \"1MB\""), &["the table selects no switch", "match"]);
    refused(&table("match = \"*\"\nasic = \"tomahawk5\""), &["tomahawk5", "tomahawk-5"]);
    refused(&table("match = \"*\"\nbufer = \"1MB\""), &["bufer", "buffer"]);
    refused(&table("match = \"*\"\nbuffer = \"1KB\""), &["switch.for[0].buffer", "1KB", "64KB"]);
    refused(
        &(table("match = \"leaf*\"\necn = { kmin = \"1MB\" }")
            + &table("match = \"leaf1\"\necn = { kmax = \"500KB\" }")),
        &["switch.for[1].ecn.kmin", "at most kmax, 500KB"],
    );
    for (field, value) in [
        ("weights", "[1, 2]"),
        ("acks", "\"data\""),
        ("forwarding", "{ kind = \"drill\" }"),
        ("reroute_after", "\"1us\""),
        ("external", "{ buffer = \"1MB\" }"),
    ] {
        let help = format!("set switch.{field}");
        let parts = ["can only be set for all switches", &help, "buffer (or asic)"];
        refused(&table(&format!("tier = 0\n{field} = {value}")), &parts);
    }
    refused(
        &table("tier = 0\npfc = { storm_after = \"1ms\" }"),
        &["switch.for[0].pfc.storm_after", "can only be set for all switches", "set switch.pfc.storm_after"],
    );
    refused(
        &(table("match = \"spine0\"\nbuffer = \"9MB\"")
            + &table("match = \"leaf1\"\npfc = { enabled = false }")),
        &[
            "link leaf1-spine0 differ in PFC",
            "[[switch.for]] with match = \"leaf1\"",
            "[switch.pfc]",
            "switch.for[1].pfc.enabled",
        ],
    );
    refused(
        "[[link]]\nmatch = \"leaf0-spin0\"\nrate = \"1Gbps\"\n",
        &["no link matches \"leaf0-spin0\"", "leaf*-spine*", "link[0].match"],
    );
    refused("[[link]]\nmatch = \"host0->spine*\"\nrate = \"1Gbps\"\n", &["no link matches", "host*->leaf*"]);
    for selection in ["tier = 0", "match = \"leaf*\"\npfc = {}"] {
        refused(&table(selection), &["the table changes nothing", "`egress_alpha`", "switch.for[0]"]);
    }
    refused("[[link]]\nmatch = \"*\"\n", &["the table changes nothing", "`rate`, `delay` or `error_rate`"]);
    refused("[[link]]\nmatch = \"*\"\nrate = \"0Gbps\"\n", &["link[0].rate", "link-down"]);
    refused("[[link]]\nmatch = \"*\"\nerror_rate = 2.0\n", &["link[0].error_rate", "0 to 1"]);
    refused("[[link]]\nrate = \"1Gbps\"\n", &["match"]);
    refused(
        "[[fault]]\nkind = \"link-down\"\nlink = \"spine0->laef1\"\nat = \"0s\"\n",
        &["no link is named \"spine0->laef1\"", "spine0->leaf1"],
    );
}

#[test]
fn fields_of_parts_that_are_off_are_noted() {
    let text = format!(
        "{FABRIC}[switch]\npfc = {{ enabled = false }}\n[[switch.for]]\ntier = 0\npfc = {{ alpha = 0.5 }}\n\
         ecn = {{ enabled = false, kmin = \"1KB\" }}\ntrim = {{ queue = \"9KB\" }}\n"
    );
    let notes = load(&text, &[]).expect("good").notes;
    for (field, part) in [("pfc.alpha", "pfc"), ("ecn.kmin", "ecn"), ("trim.queue", "trim")] {
        let note = format!(
            "switch.for[0].{field} has no effect: {part}.enabled is false at the switches that the table selects"
        );
        assert!(notes.contains(&note), "{note} is missing in {notes:?}");
    }
}

/// Headroom of a link between sites is twice its delay at its full rate, 200 MB: three of them exceed the 512 MB of an
/// external switch. The field that sets a buffer is named, wherever it stands.
#[test]
fn a_buffer_that_headroom_fills_is_named_by_its_field() {
    let sites = "[topology]\nkind = \"cross-dc\"\nsites = 4\nwan_pfc = true\nsite = [{ kind = \"star\", hosts = 2 }]\n\
                 [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n[switch]\npfc = { enabled = true }\n";
    let small = "[[switch.for]]\nmatch = \"dc*.esw0\"\nbuffer = \"1MB\"\n";
    for (text, field) in [
        (sites.to_owned(), "switch.external.buffer"),
        (format!("{sites}external = {{ buffer = \"2GB\" }}\nbuffer = \"64KB\"\n"), "switch.buffer"),
        (format!("{sites}{small}"), "switch.for[0].buffer"),
        (
            format!("{sites}{}", small.replace("buffer = \"1MB\"", "asic = \"tomahawk-3\"")),
            "switch.for[0].asic",
        ),
    ] {
        let loaded =
            Loaded::parse(&text, "a.toml", ".", &Changes::default()).unwrap_or_else(|why| panic!("{why}"));
        let prepared = loaded.prepare().map(|prepared| run(&prepared.spec, &mut NoMonitor).err());
        let why = match prepared {
            Err(why) => why.to_string(),
            Ok(why) => loaded.sim_error(&why.expect("it is refused")).to_string(),
        };
        assert!(
            why.contains(&format!("enlarge {field} or")) && why.contains(&format!("field: {field}")),
            "{why}"
        );
    }
}
