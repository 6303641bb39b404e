//! Flow simulations of unlike delays, ports and rates, of small messages and of links that are dead from the begin:
//! cases computed by hand, invariants, and comparisons with packets.

use std::fmt::Write;

use pathweave_records::{FlowStatus, RunResult};
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::NoMonitor;

const LEAVES: &str = "[topology]\nkind = \"leaf-spine\"\n";

fn result(text: &str, set: &[&str]) -> RunResult {
    let changes = Changes { set: set.iter().map(|&set| set.to_owned()).collect(), ..Changes::default() };
    let text = format!("{text}\n[observe]\ninterval = \"0s\"\n");
    let loaded =
        Loaded::parse(&text, "test.toml", "", &changes).unwrap_or_else(|why| panic!("{text}: {why}"));
    let prepared = loaded.prepare().unwrap_or_else(|why| panic!("{text}: {why}"));
    run(&prepared.spec, &mut NoMonitor).expect("it was tried")
}

fn flows(text: &str, set: &[&str]) -> RunResult {
    let set: Vec<&str> = set.iter().copied().chain(["run.fidelity=flow"]).collect();
    result(text, &set)
}

fn times_us(result: &RunResult) -> Vec<f64> {
    let time = |flow: &pathweave_records::FlowRecord| flow.fct_ps().expect("it finished") as f64 / 1e6;
    result.flows.iter().map(time).collect()
}

fn longest_us(result: &RunResult) -> f64 {
    times_us(result).into_iter().fold(0.0, f64::max)
}

fn mean_us(result: &RunResult) -> f64 {
    let times = times_us(result);
    times.iter().sum::<f64>() / times.len() as f64
}

fn is_marked(result: &RunResult, word: &str) -> bool {
    result.info.model_limits_exceeded.iter().any(|why| why.contains(word))
}

/// Returns a workload of one message.
fn message(src: u32, dst: u32, size: &str) -> String {
    format!("[[workload]]\nkind = \"flows\"\nflows = [{{ src = {src}, dst = {dst}, size = \"{size}\" }}]\n")
}

/// 16 messages of 20,410 bytes on the wire share an uplink of 100 Gb/s, behind which all links are as fast or faster:
/// 26.1 us, and 4 us of delays and transmissions of some packets.
#[test]
fn queues_in_a_row_delay_short_messages_once() {
    let text = format!(
        "{LEAVES}leaves = 2\nspines = 1\nhosts_per_leaf = 4\nhost_rate = \"400Gbps\"\nspine_rate = \"100Gbps\"\n\
         [[workload]]\nkind = \"all-to-all\"\nsize = \"20KB\"\n"
    );
    for scheme in ["rps", "ecmp", "reps"] {
        let longest = longest_us(&flows(&text, &[&format!("scheme={scheme}")]));
        assert!((30.0..32.5).contains(&longest), "{scheme}: {longest}");
    }
}

/// Over paths of 4 us and 102 us a message of 31 packets ends with one on the longer path: 102 us of delays, 10.2 us of
/// transmission less some packets.
#[test]
fn a_sprayed_message_ends_with_its_slowest_packet() {
    let text = format!(
        "{LEAVES}leaves = 2\nspines = 2\nhosts_per_leaf = 1\n[[link]]\nmatch = \"leaf*-spine1\"\ndelay = \"50us\"\n"
    );
    let message = |size: &str| format!("{text}{}", message(0, 1, size));
    let time = longest_us(&flows(&message("125KB"), &["scheme=rps"]));
    assert!((111.0..113.5).contains(&time), "{time}");
    // Of single packets half take either path.
    let list: Vec<String> =
        (0..64).map(|at| format!("{{ src = 0, dst = 1, size = \"1B\", start = \"{at}ms\" }}")).collect();
    let single = format!("{text}[[workload]]\nkind = \"flows\"\nflows = [{}]\n", list.join(", "));
    let times = times_us(&flows(&single, &["scheme=rps"]));
    let long = times.iter().filter(|us| (102.0..103.0).contains(*us)).count();
    let short = times.iter().filter(|us| (4.0..5.0).contains(*us)).count();
    assert!(long + short == 64 && (20..44).contains(&long), "{times:?}");
    // Windows and choices by delay do not keep the rate.
    for scheme in ["reps", "weave", "swift-rps"] {
        let run = flows(&message("125KB"), &[&format!("scheme={scheme}"), "run.calibrate=off"]);
        assert!(is_marked(&run, "unlike delays"), "{scheme}: {:?}", run.info.model_limits_exceeded);
    }
}

/// The acknowledgement of a message on one path is as late as its own path back.
#[test]
fn acknowledgements_take_the_delay_of_their_path() {
    let list: Vec<String> =
        (0..16).map(|at| format!("{{ src = 0, dst = 1, size = \"1B\", start = \"{at}ms\" }}")).collect();
    let text = format!(
        "{LEAVES}leaves = 2\nspines = 2\nhosts_per_leaf = 1\n[[link]]\nmatch = \"leaf*-spine1\"\ndelay = \"50us\"\n\
         [[workload]]\nkind = \"flows\"\nflows = [{}]\n",
        list.join(", ")
    );
    let acked = |result: &RunResult| -> Vec<u64> {
        result.flows.iter().map(|flow| (flow.acked_ps.expect("it is") - flow.start_ps) / 1_000_000).collect()
    };
    let (fluid, packets) = (flows(&text, &["scheme=ecmp"]), result(&text, &["scheme=ecmp"]));
    assert_eq!(acked(&fluid), acked(&packets));
}

/// Ports of 100 and of 40 Gb/s lead to the receiver: 102 MB on the wire at 140 Gb/s take 5.83 ms.
#[test]
fn sprayers_use_the_whole_rate_of_unlike_ports() {
    let topology = "hosts = 2\nswitch = [{ name = \"L0\" }, { name = \"L1\" }]\nlink = [\n\
        { a = \"host0\", b = \"L0\", rate = \"100Gbps\", delay = \"1us\" },\n\
        { a = \"host0\", b = \"L1\", rate = \"40Gbps\", delay = \"1us\" },\n\
        { a = \"host1\", b = \"L0\", rate = \"100Gbps\", delay = \"1us\" },\n\
        { a = \"host1\", b = \"L1\", rate = \"100Gbps\", delay = \"1us\" },\n]\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ports.topo.toml");
    std::fs::write(&path, topology).expect("it is written");
    let text = format!(
        "scheme = \"rps\"\ntopology = {{ kind = \"file\", path = {path:?} }}\n{}",
        message(0, 1, "100MB")
    );
    let time = longest_us(&flows(&text, &[]));
    assert!((5_825.0..5_850.0).contains(&time), "{time}");
}

const DEAD: &str = "[[fault]]\nkind = \"link-down\"\nlink = \"leaf0-spine3\"\nat = ";

/// A quarter of each host's packets takes a dead link until routing knows of it. What is lost is sent
/// again: the links into receivers carry whole messages, those of the senders more.
#[test]
fn what_is_lost_is_sent_again() {
    for (size, at) in [("50MB", "0s"), ("50MB", "1ms"), ("20KB", "0s")] {
        let text = format!(
            "scheme = \"rps\"\n{LEAVES}leaves = 2\nspines = 4\nhosts_per_leaf = 2\nspine_rate = \"50Gbps\"\n\
             [switch]\nreroute_after = \"20ms\"\n{}{DEAD}\"{at}\"\n",
            message(0, 2, size)
        );
        let run = flows(&text, &["run.calibrate=off"]);
        assert!(is_marked(&run, "links that fail"), "{size} {at}: {:?}", run.info.model_limits_exceeded);
        let bytes = |name: &str| {
            run.links.iter().find(|link| link.name == name).map_or(0.0, |link| link.tx_bytes as f64)
        };
        let payload = run.flows[0].size_bytes as f64;
        let (sent, received) = (bytes("host0>leaf0"), bytes("leaf1>host2"));
        assert!((1.019..1.022).contains(&(received / payload)), "{size} {at}: {received} of {payload}");
        let again = if at == "0s" { 4.0 / 3.0 } else { 1.0 };
        assert!(sent / received > again - 1e-3 && sent / received < 4.0 / 3.0 + 1e-3, "{sent} {received}");
    }
}

/// Schemes that choose paths by feedback lose packets, too, before they learn of a dead link.
#[test]
fn a_link_that_is_dead_from_the_begin_marks_a_run() {
    for scheme in ["rps", "reps", "mrc", "weave", "ecmp-sr"] {
        let flows_of = |at: &str| {
            let text = format!(
                "{LEAVES}leaves = 2\nspines = 4\nhosts_per_leaf = 2\n{DEAD}\"{at}\"\n\
                 [[workload]]\nkind = \"permutation\"\npattern = \"shift\"\nshift = 2\nsize = \"1MB\"\n"
            );
            flows(&text, &[&format!("scheme={scheme}"), "run.calibrate=off", "seed=3"])
        };
        if scheme != "ecmp-sr" {
            for at in ["0s", "20us"] {
                let run = flows_of(at);
                assert!(
                    is_marked(&run, "links that fail"),
                    "{scheme} {at}: {:?}",
                    run.info.model_limits_exceeded
                );
            }
        }
        let late = flows_of("50ms");
        assert!(!is_marked(&late, "links that fail"), "{scheme}: {:?}", late.info.model_limits_exceeded);
    }
}

/// DCQCN cuts a sender of 400 Gb/s below the 40 Gb/s of its receiver, and HPCC leaves a twentieth of each link.
#[test]
fn controls_that_leave_room_mark_long_messages() {
    let star = |rate: &str, size: &str| {
        format!(
            "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"400Gbps\"\n[[link]]\nmatch = \"host1-switch0\"\n\
             rate = \"{rate}\"\n{}",
            message(0, 1, size)
        )
    };
    for (scheme, rate, size, expected) in [
        ("rps", "40Gbps", "5MB", true),
        ("ecmp", "40Gbps", "5MB", true),
        ("hpcc", "40Gbps", "5MB", true),
        ("hpcc", "400Gbps", "5MB", true),
        ("rps", "40Gbps", "100KB", false),
        ("rps", "400Gbps", "5MB", false),
        ("swift-rps", "40Gbps", "5MB", false),
    ] {
        let set = format!("scheme={scheme}");
        let run = flows(&star(rate, size), &[&set]);
        let marked = !run.info.model_limits_exceeded.is_empty();
        assert_eq!(marked, expected, "{scheme} {rate} {size}: {:?}", run.info.model_limits_exceeded);
        let error = longest_us(&run) / longest_us(&result(&star(rate, size), &[&set])) - 1.0;
        assert_eq!(error.abs() > 0.03, expected, "{scheme} {rate} {size}: {error}");
    }
}

/// Random small fabrics. Returns a scenario without scheme, sizes and fidelity.
fn fabric(random: &mut impl FnMut(u64) -> u64) -> String {
    let (leaves, spines, hosts) = (2 + random(2), 1 + random(3), 2 + random(3));
    let host_rate = [100, 400][random(2) as usize];
    let over = [1, 2, 4][random(3) as usize];
    let spine_rate = (host_rate * hosts / spines / over).max(1);
    let mut text = format!(
        "{LEAVES}leaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\nhost_rate = \"{host_rate}Gbps\"\n\
         spine_rate = \"{spine_rate}Gbps\"\n"
    );
    if spines > 1 && random(3) == 0 {
        let (spine, us) = (random(spines), [2, 5, 20][random(3) as usize]);
        let _ = write!(text, "[[link]]\nmatch = \"leaf*-spine{spine}\"\ndelay = \"{us}us\"\n");
    }
    if random(4) == 0 {
        let rate = host_rate / 4;
        let _ = write!(text, "[[link]]\nmatch = \"host{}-leaf0\"\nrate = \"{rate}Gbps\"\n", random(hosts));
    }
    if spines > 1 && random(4) == 0 {
        let _ = write!(
            text,
            "[[fault]]\nkind = \"link-down\"\nlink = \"leaf0-spine{}\"\nat = \"0s\"\n",
            random(spines)
        );
    }
    text
}

/// Returns a generator of numbers below a bound.
fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = pathweave_units::mix64(state.wrapping_add(1));
        state % below
    }
}

const SCHEMES: [&str; 5] = ["rps", "swift-rps", "reps", "weave", "udmp"];

#[test]
fn no_message_ends_earlier_for_another_packet() {
    for number in 0..12 {
        let mut random = numbers(number);
        let fabric = fabric(&mut random);
        let scheme = SCHEMES[random(5) as usize];
        let mut before = 0.0;
        for size in ["1B", "4KB", "16KB", "29KB", "29500B", "30KB", "60KB", "250KB", "1MB"] {
            let text = format!("{fabric}[[workload]]\nkind = \"all-to-all\"\nsize = \"{size}\"\n");
            let set = format!("scheme={scheme}");
            let longest = longest_us(&flows(&text, &[&set, "run.calibrate=off"]));
            assert!(longest >= 0.97 * before, "{scheme} {size}: {longest} after {before}\n{text}");
            before = longest;
        }
    }
}

#[test]
fn links_into_receivers_carry_whole_messages() {
    for number in 0..12 {
        let mut random = numbers(100 + number);
        let fabric = fabric(&mut random);
        let size = ["1B", "20KB", "200KB", "4MB"][random(4) as usize];
        let text = format!("{fabric}{}{}", message(0, 2, size), message(1, 2, size));
        let run = flows(&text, &[&format!("scheme={}", SCHEMES[random(5) as usize]), "run.calibrate=off"]);
        assert!(run.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
        let into = run.links.iter().filter(|link| link.to_node == 2).map(|link| link.tx_bytes).sum::<u64>();
        let wire: u64 = run
            .flows
            .iter()
            .map(|flow| {
                let packets = flow.size_bytes.div_ceil(4096);
                // Headers of 82 bytes, 16 more in the first packet, and the padding to 4 bytes.
                flow.size_bytes.next_multiple_of(4) + 82 * packets
            })
            .sum();
        assert!(into.abs_diff(wire) <= 64 + wire / 1000, "{into} of {wire}\n{text}");
    }
}

/// Times of messages against packets, unless a run is marked.
#[test]
fn small_fabrics_agree_with_packets_or_are_marked() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for number in 0..40 {
        let mut random = numbers(1000 + number);
        let fabric = fabric(&mut random);
        let size = ["1B", "4KB", "20KB", "28KB", "200KB", "1MB"][random(6) as usize];
        let kind = ["all-to-all", "permutation"][random(2) as usize];
        let text = format!("{fabric}[[workload]]\nkind = \"{kind}\"\nsize = \"{size}\"\n");
        let set = format!("scheme={}", SCHEMES[random(5) as usize]);
        let fluid = flows(&text, &[&set]);
        if !fluid.info.model_limits_exceeded.is_empty() {
            continue;
        }
        compared += 1;
        let packets = result(&text, &[&set]);
        let error = |of: fn(&RunResult) -> f64| of(&fluid) / of(&packets) - 1.0;
        let (mean, longest) = (error(mean_us), error(longest_us));
        // Each packet of a message of one packet takes a path by chance, and flows and packets draw apart.
        let by_chance = if ["1B", "4KB"].contains(&size) { 2.5 } else { 1.0 };
        if mean.abs() > 0.1 * by_chance || longest.abs() > 0.12 * by_chance {
            wrong.push(format!("{set}: mean {mean:+.3} longest {longest:+.3}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 15, "{compared} were compared");
}
