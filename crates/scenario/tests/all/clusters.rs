//! Clusters: faults of scale-up networks, and tenants on servers.

use std::num::NonZeroU16;

use pathweave_records::{EventKind, RunResult};
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::{NoMonitor, SimSpec};

/// Four DGX H100: 450 GB/s of NVLink in each direction of a GPU, of which .82, over four chips.
const CLUSTER: &str = "
[topology]
kind = 'cluster'
servers = 4
server = { preset = 'dgx-h100' }
scale_out = { kind = 'leaf-spine', leaves = 8, spines = 2, hosts_per_leaf = 4 }
[observe]
interval = '0s'
";

/// Seven GPUs of server 0 send 1 GB each to the eighth.
const SEVEN_TO_ONE: &str = "
[[workload]]
kind = 'flows'
flows = [
    { src = 'srv0.gpu0', dst = 'srv0.gpu7', size = '1GB' }, { src = 1, dst = 7, size = '1GB' }, { src = 2, dst = 7, size = '1GB' },
    { src = 3, dst = 7, size = '1GB' }, { src = 4, dst = 7, size = '1GB' }, { src = 5, dst = 7, size = '1GB' },
    { src = 6, dst = 7, size = '1GB' },
]
";

fn load(text: &str) -> Result<Loaded, String> {
    Loaded::parse(&format!("{text}{CLUSTER}"), "test.toml", "", &Changes::default())
        .map_err(|why| why.to_string())
}

fn spec(text: &str) -> SimSpec {
    load(text).and_then(|loaded| loaded.prepare().map_err(|why| why.to_string())).unwrap().spec
}

fn result(text: &str) -> RunResult {
    run(&spec(text), &mut NoMonitor).expect("it was tried")
}

fn error(text: &str) -> String {
    load(text).and_then(|loaded| loaded.prepare().map(drop).map_err(|why| why.to_string())).unwrap_err()
}

fn fault(kind: &str, on: &str, rest: &str) -> String {
    format!("[[fault]]\nkind = '{kind}'\n{on}\n{rest}\n")
}

/// 7 GB at 450 x .82 = 369 GB/s take 18.970 ms. With one of four chips down, the rest takes 4/3 of its time: on packets
/// and in flows alike.
#[test]
fn a_chip_that_fails_takes_its_share_of_the_rate() {
    let usual_ns = 18_970_190.0;
    let chip = |rest| fault("switch-down", "switch = 'srv0.chip1'", rest);
    for (faults, ends_ns) in [
        (String::new(), usual_ns),
        (chip("at = '0s'"), usual_ns * 4.0 / 3.0),
        (chip("at = '10ms'"), 1e7 + (usual_ns + 250.0 - 1e7) * 4.0 / 3.0 - 250.0),
        (chip("at = '10ms'\nup_at = '13ms'"), usual_ns + 750_000.0),
        // A link of the receiver to one chip has the same share, and at half its rate half of it is missing.
        (fault("link-down", "link = 'srv0.gpu7-srv0.chip3'", "at = '0s'"), usual_ns * 4.0 / 3.0),
        (
            fault("link-rate", "link = 'srv0.gpu7-srv0.chip3'", "at = '0s'\nrate = '450Gbps'"),
            usual_ns * 8.0 / 7.0,
        ),
        (fault("switch-down", "switch = 'srv1.chip1'", "at = '0s'"), usual_ns),
    ] {
        for fidelity in ["packet", "flow"] {
            let run = result(&format!("{SEVEN_TO_ONE}{faults}[run]\nfidelity = '{fidelity}'\n"));
            for flow in &run.flows {
                let took_ns = flow.fct_ps().expect("it finished") as f64 / 1e3;
                assert!(
                    (took_ns - 250.0 - ends_ns).abs() < 100.0,
                    "{fidelity} {faults}: {took_ns}, not {ends_ns}"
                );
            }
        }
    }
}

/// The events of a run have the fault and the repair, at the first GPU of the server.
#[test]
fn faults_of_chips_are_events() {
    let chip = fault("switch-down", "switch = 'srv1.chip1'", "at = '1ms'\nup_at = '2ms'");
    let run = result(&format!("{SEVEN_TO_ONE}{chip}"));
    let events: Vec<_> =
        run.events.iter().map(|event| (event.time_ps, event.kind, event.node, event.link)).collect();
    let ms = 1_000_000_000;
    assert_eq!(events, [(ms, EventKind::Fault, 8, None), (2 * ms, EventKind::Repair, 8, None)]);
}

/// Traffic inside and between servers, while chips and links fail: threads change nothing.
#[test]
fn threads_do_not_change_what_faults_do() {
    let text = format!(
        "[[workload]]\nkind = 'all-to-all'\nsize = '200KB'\n{}{}{}",
        fault("switch-down", "switch = 'srv0.chip0'", "at = '1us'\nup_at = '4us'"),
        fault(
            "link-flap",
            "link = 'srv2.gpu5-srv2.chip1'",
            "at = '2us'\ndown_for = '1us'\nup_for = '1us'\ntimes = 3"
        ),
        fault("link-down", "link = 'leaf0-spine0'", "at = '3us'"),
    );
    let one = spec(&text);
    let digest = |threads| {
        let spec = SimSpec { threads: NonZeroU16::new(threads), ..one.clone() };
        let run = run(&spec, &mut NoMonitor).expect("it was tried");
        assert!(run.flows.iter().all(|flow| flow.finish_ps.is_some()));
        run.info.digest
    };
    assert_eq!(digest(1), digest(2));
    let without = result("[[workload]]\nkind = 'all-to-all'\nsize = '200KB'\n");
    assert_ne!(digest(1), without.info.digest);
}

#[test]
fn parts_that_do_not_exist_are_named() {
    let with = |kind, on, rest| error(&format!("{SEVEN_TO_ONE}{}", fault(kind, on, rest)));
    let chip = with("switch-down", "switch = 'srv0.chip4'", "at = '0s'");
    assert!(chip.contains("did you mean `srv0.chip3`?"), "{chip}");
    let link = with("link-down", "link = 'srv0.gpu1-srv0.chip4'", "at = '0s'");
    assert!(link.contains("did you mean `srv0.gpu1-srv0.chip0`?"), "{link}");
    let flow = error(&SEVEN_TO_ONE.replace("'srv0.gpu0'", "'srv0.gpu8'"));
    assert!(flow.contains("no host has such a name; did you mean \"srv0.gpu0\"?"), "{flow}");
    let flow = error(&SEVEN_TO_ONE.replace("'srv0.gpu0'", "'srv0.gpu[0-3]'"));
    assert!(flow.contains("4 hosts have such a name; expected one"), "{flow}");
    let loss = with("link-loss", "link = 'srv0.gpu1-srv0.chip0'", "probability = 0.1");
    assert!(loss.contains("carries no packets; it takes link-down, link-flap and link-rate"), "{loss}");
}

/// 3,600 Gb/s over four chips: 900 Gb/s each, of which .82 are usable.
#[test]
fn a_fault_cannot_make_a_scale_up_link_faster() {
    let at = |rate: &str| {
        fault("link-rate", "link = 'srv0.gpu1-srv0.chip0'", &format!("at = '0s'\nrate = '{rate}'"))
    };
    let why = error(&format!("{SEVEN_TO_ONE}{}", at("901Gbps")));
    assert!(why.contains("srv0.gpu1-srv0.chip0") && why.contains("a fault can only slow down"), "{why}");
    load(&format!("{SEVEN_TO_ONE}{}", at("900Gbps")))
        .unwrap()
        .prepare()
        .map(drop)
        .unwrap_or_else(|why| panic!("{why}"));
}

/// A scale-up network of packets: a message inside the server crosses the two links of a chip, one to the other server
/// the four links of the fabric.
#[test]
fn scale_up_networks_of_packets_carry_messages_of_their_server() {
    let cluster = "
        [topology]
        kind = 'cluster'
        servers = 2
        attach = 'server'
        server = { gpus = 4, scale_up = { kind = 'switch', rate = '1600Gbps', chips = 2, packets = true } }
        scale_out = { kind = 'leaf-spine', leaves = 2, spines = 2, hosts_per_leaf = 4 }
        [[workload]]
        kind = 'flows'
        flows = [{ src = 0, dst = 1, size = '1MB' }, { src = 0, dst = 4, size = '1MB' }]
        [run]
    ";
    for scheme in ["ecmp", "rps", "weave", "reps", "udmp"] {
        let mut times = Vec::new();
        for fidelity in ["packet", "flow"] {
            let text = format!("scheme = '{scheme}'\n{cluster}\nfidelity = '{fidelity}'\n");
            let loaded = Loaded::parse(&text, "test.toml", "", &Changes::default()).unwrap();
            let run = run(&loaded.prepare().unwrap().spec, &mut NoMonitor).unwrap();
            let mbytes = |part: &str| {
                let links = run.links.iter().filter(|link| link.name.contains(part));
                links.map(|link| link.tx_bytes).sum::<u64>() as f64 / 1e6
            };
            let [inside, outside] = [mbytes("chip"), mbytes("leaf")];
            assert!((2.0..2.2).contains(&inside), "{scheme} {fidelity}: {inside} MB");
            assert!((4.0..4.4).contains(&outside), "{scheme} {fidelity}: {outside} MB");
            times.push(run.flows.iter().map(|flow| flow.fct_ps().unwrap() as f64).collect::<Vec<_>>());
        }
        for (packets, flows) in times[0].iter().zip(&times[1]) {
            assert!((packets / flows - 1.0).abs() < 0.1, "{scheme}: {times:?}");
        }
    }
}

/// A chip of a network of packets is a switch: it fails like one, and threads change nothing.
#[test]
fn chips_of_packets_fail_like_switches() {
    let text = "
        scheme = 'weave'
        [topology]
        kind = 'cluster'
        servers = 4
        server = { gpus = 4, scale_up = { kind = 'switch', rate = '1600Gbps', chips = 2, packets = true } }
        scale_out = { kind = 'leaf-spine', leaves = 4, spines = 2, hosts_per_leaf = 4 }
        [[fault]]
        kind = 'switch-down'
        switch = 'srv1.chip1'
        at = '2us'
        [[workload]]
        kind = 'all-to-all'
        size = '100KB'
    ";
    let loaded = Loaded::parse(text, "test.toml", "", &Changes::default()).unwrap();
    let one = loaded.prepare().unwrap().spec;
    let digest = |threads| {
        let spec = SimSpec { threads: NonZeroU16::new(threads), ..one.clone() };
        let run = run(&spec, &mut NoMonitor).unwrap();
        assert!(run.flows.iter().all(|flow| flow.finish_ps.is_some()));
        run.info.digest
    };
    assert_eq!(digest(1), digest(2));
}

/// Two servers of eight GPUs in a ring of 800 Gb/s that carries packets, all NICs of a server at one leaf.
fn ring(scheme: &str, rest: &str) -> SimSpec {
    let text = format!(
        "scheme = '{scheme}'
        [topology]
        kind = 'cluster'
        servers = 2
        attach = 'server'
        server = {{ gpus = 8, scale_up = {{ kind = 'ring', rate = '800Gbps', packets = true }} }}
        scale_out = {{ kind = 'leaf-spine', leaves = 2, spines = 2, hosts_per_leaf = 8 }}
        {rest}"
    );
    Loaded::parse(&text, "test.toml", "", &Changes::default()).unwrap().prepare().unwrap().spec
}

/// GPU 3 is three links from GPU 0: one way. A packet of 4,096 B is 4,194 B on the wire (82 B of headers, 16 B RETH),
/// 41.94 ns at 800 Gb/s and half of that between a GPU and its router, each stored and forwarded; the links have 250 ns.
/// Of 100 packets, the other 99 have 4,178 B and follow the first on the last link of the ring at 800 Gb/s.
#[test]
fn a_message_crosses_three_links_of_a_ring() {
    let one_ps = 2 * 20_970 + 3 * 41_940 + 3 * 250_000 + 2;
    let all_ps = 20_970 + 3 * 41_940 + 99 * 41_780 + 20_890 + 3 * 250_000 + 2;
    for scheme in ["ecmp", "rps", "weave", "reps"] {
        for (size, expected_ps) in [("4096B", one_ps), ("409600B", all_ps)] {
            let flows =
                format!("[[workload]]\nkind = 'flows'\nflows = [{{ src = 0, dst = 3, size = '{size}' }}]");
            let result = run(&ring(scheme, &flows), &mut NoMonitor).unwrap();
            let flow = &result.flows[0];
            assert_eq!(flow.ideal_fct_ps, expected_ps, "{scheme} {size}");
            let late_ps = flow.fct_ps().unwrap() - expected_ps;
            // Windows of other schemes may close for a moment.
            let most_ps = if scheme == "ecmp" || size == "4096B" { 0 } else { expected_ps / 50 };
            assert!(late_ps <= most_ps, "{scheme} {size}: {late_ps}");
        }
    }
}

/// A link of the ring fails while each GPU sends to each other one: all messages arrive, the other way around after
/// `reroute_after`. Threads change nothing, and flows take the same ways.
#[test]
fn packets_go_around_a_link_of_a_ring_that_is_down() {
    let text = "
        [switch]
        reroute_after = '10us'
        [[fault]]
        kind = 'link-down'
        link = 'srv0.router1-srv0.router2'
        at = '2us'
        [[workload]]
        kind = 'all-to-all'
        size = '100KB'
    ";
    for scheme in ["weave", "rps"] {
        let one = ring(scheme, text);
        let result = |threads| {
            let spec = SimSpec { threads: NonZeroU16::new(threads), ..one.clone() };
            let result = run(&spec, &mut NoMonitor).unwrap();
            assert!(result.flows.iter().all(|flow| flow.finish_ps.is_some()), "{scheme}");
            result
        };
        let (alone, divided) = (result(1), result(2));
        assert_eq!(alone.info.digest, divided.info.digest, "{scheme}");
    }
    let flow = ring("rps", &format!("{text}\n[run]\nfidelity = 'flow'"));
    let result = run(&flow, &mut NoMonitor).unwrap();
    assert!(result.flows.iter().all(|flow| flow.finish_ps.is_some()));
}

/// A tenant on two whole servers, one on eight GPUs by name, and a job of unequal groups on the rest.
#[test]
fn tenants_have_their_own_servers() {
    let text = "
        pools = { a = { servers = 2, placement = 'packed' }, b = 'srv3.gpu*', c = 8 }
        [[workload]]
        group = 'a'
        pool = 'a'
        kind = 'transformer'
        model = 'llama-3-8b'
        tp = 8
        scale = 0.001
        [[workload]]
        group = 'b'
        pool = 'b'
        kind = 'collective'
        operation = 'all-gather'
        groups = ['srv3.gpu[0-4]', ['srv3.gpu5', 6, 7]]
        size = '80KB'
        [[workload]]
        group = 'c'
        pool = 'c'
        kind = 'ring-all-reduce'
        group_size = [5, 3]
        size = '60KB'
    ";
    let graph = spec(text).graph;
    let hosts = |name: &str| {
        let group = graph.groups().iter().position(|group| group.name == name).expect("declared");
        let of_group = graph.messages().iter().filter(|message| message.group.index() == group);
        let mut hosts: Vec<u32> = of_group.flat_map(|message| [message.src.0, message.dst.0]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    };
    assert_eq!(hosts("a"), (0..16).collect::<Vec<_>>());
    assert_eq!(hosts("b"), (24..32).collect::<Vec<_>>());
    assert_eq!(hosts("c"), (16..24).collect::<Vec<_>>(), "the hosts that are left");
    let clash = error(&text.replace("b = 'srv3.gpu*'", "b = 'srv3.gpu*', d = ['srv3.gpu2']"));
    assert!(clash.contains("pools \"b\" and \"d\" both have srv3.gpu2"), "{clash}");
}

/// Four GPUs share a NIC, whose queue is longer than many idle round trips. Nothing is lost, and nothing times out.
#[test]
fn timers_of_nics_outlast_the_queue_of_a_shared_nic() {
    let text = "
scheme = 'mrc'
[topology]
kind = 'cluster'
servers = 4
server = { gpus = 4, nics = 1, port_rate = '200Gbps', scale_up = { kind = 'switch', rate = '3600Gbps', delay = '250ns' } }
scale_out = { kind = 'star', hosts = 4, rate = '200Gbps' }
[[workload]]
kind = 'all-to-all'
size = '250KB'
";
    let loaded = Loaded::parse(text, "test.toml", "", &Changes::default()).unwrap();
    let result = run(&loaded.prepare().unwrap().spec, &mut NoMonitor).expect("it was tried");
    let timeouts: u32 = result.flows.iter().map(|flow| flow.timeouts).sum();
    let again: u32 = result.flows.iter().map(|flow| flow.retransmitted_packets).sum();
    assert_eq!((timeouts, again, result.flows.len()), (0, 0, 240));
}
