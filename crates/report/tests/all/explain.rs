//! Explanations of the limits of runs, from their result folders.

use std::path::Path;

use pathweave_records::{
    Direction, DropReason, EventKind, EventRecord, FaultInfo, FlowRecord, FlowStatus, LinkTotals, NodeInfo,
    NodeKind, Role, RunResult, Summary, WaitKind, WaitRecord,
};
use pathweave_report::{Finding, ResultFolder, explain};

/// Two hosts at a ToR with two uplinks, of which one carries three times as much as the other and is paused. Late
/// flows waited in its queue.
fn run() -> RunResult {
    let nodes = [("h0", 0), ("h1", 0), ("tor", 0), ("up0", 1), ("up1", 1)];
    let node = |(i, (name, tier)): (usize, (&str, u8))| NodeInfo {
        node: i as u32,
        name: name.to_owned(),
        kind: if name.starts_with('h') { NodeKind::Host } else { NodeKind::Switch },
        tier,
        pod: None,
    };
    let links = [(0, 2, 500), (2, 0, 400), (2, 3, 3_000), (2, 4, 1_000), (3, 2, 10)];
    let link = |(i, (from_node, to_node, tx_bytes)): (usize, (u32, u32, u64))| LinkTotals {
        link: i as u32,
        from_node,
        to_node,
        tier: if i < 2 { 0 } else { 1 },
        direction: if to_node > from_node { Direction::Up } else { Direction::Down },
        rate_bps: 8_000_000_000,
        tx_bytes,
        busy_ps: tx_bytes * 1_000,
        pfc_pauses: if i == 2 { 4 } else { 0 },
        paused_ps: if i == 2 { 7_000 } else { 0 },
        ..LinkTotals::default()
    };
    // One of 100 flows is 40 times as slow as alone.
    let flow = |i: u32| FlowRecord {
        flow: i,
        dst_host: 1,
        size_bytes: 1_000,
        finish_ps: Some(if i == 7 { 40_000 } else { 1_200 }),
        ideal_fct_ps: 1_000,
        cnp_packets: u32::from(i == 7),
        status: FlowStatus::Finished,
        ..FlowRecord::default()
    };
    let mut run = RunResult {
        nodes: nodes.into_iter().enumerate().map(node).collect(),
        links: links.into_iter().enumerate().map(link).collect(),
        flows: (0..200).map(|i| if i >= 198 { FlowRecord { flow: i, ..flow(7) } } else { flow(i) }).collect(),
        waits: [7, 198, 199].into_iter().flat_map(waits).collect(),
        events: vec![EventRecord { link: Some(2), ..EventRecord::new(5_000, EventKind::Fault, 2) }],
        ..RunResult::default()
    };
    run.info.simulated_ps = 4_000_000;
    run.info.groups = vec!["g".to_owned()];
    run.info.schemes = vec!["s".to_owned()];
    run.info.roles = vec![Role::Foreground];
    run
}

/// Returns the waits of a flow of 40 ns: 0.2 ns sending, 0.8 ns on links, and the rest in the queue.
fn waits(flow: u32) -> [WaitRecord; 3] {
    let part = |kind, link, time_ps| WaitRecord {
        flow,
        dst_host: 1,
        size_bytes: 1_000,
        flow_ps: 40_000,
        ideal_fct_ps: 1_000,
        kind,
        link: Some(link),
        time_ps,
        ..WaitRecord::default()
    };
    [part(WaitKind::Port, 0, 200), part(WaitKind::Travel, 2, 800), part(WaitKind::Queue, 2, 39_000)]
}

fn explained(run: &RunResult) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    write(run, &path);
    explain(&path).unwrap()
}

fn write(run: &RunResult, path: &Path) {
    let out = ResultFolder::create(path).unwrap();
    out.write_run(run, &Summary::from_run(run)).unwrap();
    out.commit().unwrap();
}

#[test]
fn tables_of_another_run_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| home.path().join(name));
    write(&run(), &one);
    let mut second = run();
    second.info.digest = 7;
    write(&second, &other);
    for table in
        ["flows", "links", "events", "waits", "critical", "activities"].map(|name| format!("{name}.parquet"))
    {
        let own = std::fs::read(other.join(&table)).unwrap();
        std::fs::copy(one.join(&table), other.join(&table)).unwrap();
        let why = explain(&other).unwrap_err().to_string();
        let expected = format!(
            "{table}: digest = \"0000000000000000\" is that of another run; that of summary.json beside it is \
             \"0000000000000007\"; take all files from the folder of one run"
        );
        assert!(why.ends_with(&expected), "{why}");
        std::fs::write(other.join(&table), own).unwrap();
    }
    assert!(explain(&other).is_ok());
}

#[test]
fn a_missing_table_of_waits_is_said() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("out");
    write(&run(), &path);
    assert_eq!(words(&explain(&path).unwrap(), "warning"), None);
    std::fs::remove_file(path.join("waits.parquet")).unwrap();
    let found = explain(&path).unwrap();
    assert!(words(&found, "warning").unwrap().starts_with("waits.parquet is missing"), "{found:?}");
}

fn words<'a>(found: &'a [Finding], about: &str) -> Option<&'a str> {
    found.iter().find(|finding| finding.about == about).map(|finding| finding.words.as_str())
}

/// Packets that each take a path of their own do not collide by their hashes.
#[test]
fn hashes_are_named_where_flows_keep_their_paths() {
    let mut run = run();
    run.info.scenario_toml = "scheme.policy.picker = \"rps\"\n".to_owned();
    let found = explained(&run);
    let verdict = words(&found, "limited by").unwrap();
    assert!(verdict.starts_with("unevenly used paths: tor to up0 was 75 % busy"), "{verdict}");
}

/// The switch marked packets with a threshold that is far below a round trip.
#[test]
fn marks_are_no_cause_for_senders_that_ignore_them() {
    let mut run = run();
    run.info.scenario_toml = "scheme = { name = \"s\", policy = { cc = { kind = \"c\" } } }\n\
                              [switch.ecn]\nenabled = true\nkmin = \"1B\"\n"
        .to_owned();
    for wait in run.waits.iter_mut().filter(|wait| wait.kind == WaitKind::Queue) {
        (wait.kind, wait.link) = (WaitKind::Control, None);
    }
    (run.links[2].tx_packets, run.links[2].ecn_marked_packets) = (10, 5);
    let verdict = |run: &RunResult| words(&explained(run), "limited by").unwrap().to_owned();
    assert!(verdict(&run).starts_with("ECN thresholds too low: tor to up0 marked 50 %"), "{}", verdict(&run));
    run.info.ignoring_marks = vec!["s".to_owned()];
    assert_eq!(verdict(&run), "congestion control (c) held flows back while no link on their way was full");
}

#[test]
fn a_run_is_explained_by_its_tables() {
    let mut run = run();
    run.info.scenario_toml = "scheme.policy.picker = \"ecmp\"\n".to_owned();
    let found = explained(&run);
    let expected = [
        (
            "limited by",
            "unevenly used paths (collisions of hashes): tor to up0 was 75 % busy, while the link beside it from tor was \
             25 % busy",
        ),
        ("time of slow flows", "of the 3 slowest: 98 % in queues at tor to up0, 2 % on links"),
        (
            "result",
            "200 flows finished, one in a hundred slower than 40.00 times the time on an idle network; the slowest is \
             flow 7 (host 0 to host 1, 1.000 KB): 40.00 ns, 40.00 times",
        ),
        (
            "busiest links",
            "tor to up0 75 % (queue up to 0 B), tor to up1 25 % (queue up to 0 B), h0 to tor 12 % (queue up to 0 B); in \
             the mean links of hosts 11 %, others 33 %",
        ),
        (
            "balance",
            "of the 2 uplinks of tor, the one to up0 was busy 1.50 times as long as the mean, more than any \
             other uplink of any switch",
        ),
        ("pauses", "4 on 1 links; up0 paused tor for 7.000 ns in 4 pauses"),
        ("late flows", "of the 2 slowest, 100 % had congestion notifications (2 % of all)"),
        ("faults", "1 began, the first at 5.000 ns: on tor to up0"),
    ];
    for (about, text) in expected {
        assert_eq!(words(&found, about), Some(text), "{about}");
    }
    assert_eq!(words(&found, "losses"), None, "none were lost");
    assert!(found.iter().all(|finding| finding.evidence.contains(".parquet: ")));
}

/// The run ends at some nanoseconds. A fault at 5 ns has begun, one at 50 ms has not.
#[test]
fn faults_after_the_end_are_not_among_those_that_began() {
    let mut run = run();
    let fault = |at: &str| format!("[[fault]]\nkind = \"link-down\"\nlink = \"tor-up0\"\nat = \"{at}\"\n");
    run.info.scenario_toml = fault("5ns") + &fault("50ms");
    let late = FaultInfo { name: "link-down on tor-up0".to_owned(), at_ps: 50_000_000_000 };
    run.info.faults = vec![FaultInfo { at_ps: 5_000, ..late.clone() }, late];
    let found = explained(&run);
    let began = words(&found, "faults").unwrap();
    assert!(began.starts_with("1 of 2 began, the first at 5.000 ns: "), "{began}");
    let warning = words(&found, "warning").unwrap();
    assert!(
        warning.starts_with("fault 2 of 2 had no effect: link-down on tor-up0 was to begin at 50.00 ms"),
        "{warning}"
    );
    run.events.retain(|event| event.kind != EventKind::Fault);
    run.info.scenario_toml = fault("50ms");
    assert_eq!(words(&explained(&run), "faults"), Some("0 of 1 began"));
}

/// The same run, but the uplink that carries a third has a third of the rate. Both are equally busy, so there is no
/// imbalance.
#[test]
fn links_count_by_what_they_can_carry() {
    let mut proportional = run();
    proportional.links[3].rate_bps /= 3;
    proportional.links[3].busy_ps *= 3;
    let found = explained(&proportional);
    let verdict = words(&found, "limited by").unwrap();
    assert!(verdict.starts_with("links between switches: tor to up0 was 75 % busy"), "{verdict}");
    assert!(words(&found, "balance").unwrap().contains("1.00 times as long as the mean"));
}

/// The effect of a fault is reported with its name, its place, and the rate in force.
#[test]
fn a_slow_link_is_named_as_its_fault() {
    let mut slow = run();
    slow.info.scenario_toml =
        "[[fault]]\nkind = \"link-rate\"\nlink = \"tor-up0\"\nat = \"0s\"\nrate = \"2Gbps\"\n".to_owned();
    let found = explained(&slow);
    let verdict = words(&found, "limited by").unwrap();
    assert!(
        verdict.starts_with("slow link tor-up0: 2.000 Gbps instead of 8.000 Gbps from 0 ns on"),
        "{verdict}"
    );
    assert_eq!(words(&found, "faults"), Some("1 began, the first at 5.000 ns: link-rate on tor-up0"));
}

/// Seven messages to one GPU inside a server take seven times as long as one alone. No link of the network had to do with
/// it. Beside them, the late flows of the network lost less or more time.
#[test]
fn late_messages_of_scale_up_networks_are_explained() {
    let mut inside = run();
    inside.waits.clear();
    let message = |i: u32| FlowRecord {
        flow: i,
        src_host: u32::from(i == 0),
        dst_host: 0,
        size_bytes: 1_000,
        finish_ps: Some(7_000_000),
        ideal_fct_ps: 1_000_000,
        ideal_acked_ps: Some(1_000_000),
        status: FlowStatus::Finished,
        ..FlowRecord::default()
    };
    inside.flows = (0..7).map(message).collect();
    let limit = |run: &RunResult| words(&explained(run), "limited by").unwrap().to_owned();
    assert_eq!(limit(&inside), "the scale-up network, whose links late flows share: 7 of 7 end at h0");
    let mut both = run();
    both.flows.extend((200..207).map(message));
    let words = limit(&both);
    assert!(words.starts_with("the scale-up network"), "{words}");
    // 3 x 39 ns of the network are 1 % of 42 us. Ten times as long, and 100 times, they matter.
    assert!(!words.contains("tor"), "{words}");
    both.flows[7].finish_ps = Some(20_000_000);
    let words = limit(&both);
    assert!(words.starts_with("the scale-up network") && words.contains("tor to up0"), "{words}");
}

#[test]
fn losses_and_fast_runs_are_explained() {
    let mut lossy = run();
    lossy.links[3].dropped_packets = 9;
    lossy.flows[7].timeouts = 1;
    lossy.flows[7].retransmitted_packets = 9;
    lossy.flows[7].sent_packets = 20;
    for wait in &mut lossy.waits {
        if wait.kind == WaitKind::Queue {
            (wait.kind, wait.link) = (WaitKind::Silence, None);
        }
        (wait.timeouts, wait.retransmitted_packets, wait.sent_packets) = (1, 9, 20);
    }
    let drop = |reason| EventRecord {
        link: Some(3),
        reason: Some(reason),
        ..EventRecord::new(100, EventKind::Drop, 2)
    };
    lossy.events = vec![drop(DropReason::RandomLoss); 9];
    let found = explained(&lossy);
    assert_eq!(words(&found, "limited by"), Some("lossy link tor to up1: 9 packets lost at random"));
    assert_eq!(
        words(&found, "losses"),
        Some("9 packets dropped (9 on tor to up1); 9 of 20 sent again, 1 timeouts")
    );
    lossy.events = vec![drop(DropReason::BufferFull); 9];
    assert!(words(&explained(&lossy), "limited by").unwrap().starts_with("buffer too small"));
    lossy.links[3].dropped_packets = 0;
    lossy.events.clear();
    let verdict = explained(&lossy);
    let verdict = words(&verdict, "limited by").unwrap();
    assert!(verdict.starts_with("3 unnecessary timeouts: no packet was lost"), "{verdict}");
    // Recovery by the timer of NICs has a timer of its own.
    for (exponent, timer) in [
        ("", "network.retransmission.timeout"),
        ("[switch.trim]\nenabled = true\n", "not set and therefore of eight idle"),
        ("exponent = 7\n", "= 7, 1.024 us x 2^7,"),
    ] {
        lossy.info.scenario_toml = format!("[scheme.recovery]\nkind = \"timeouts\"\n{exponent}");
        let found = explained(&lossy);
        assert!(
            words(&found, "limited by").unwrap().contains(timer),
            "{timer}: {:?}",
            words(&found, "limited by")
        );
    }
    let mut well = run();
    well.flows.truncate(7);
    well.waits.clear();
    well.events.clear();
    let found = explained(&well);
    assert_eq!(
        words(&found, "limited by"),
        Some("nothing: flows took about as long as on an idle network, at the rate of their own links")
    );
    assert_eq!((words(&found, "late flows"), words(&found, "faults")), (None, None));
    well.flows[0].status = FlowStatus::Unfinished;
    well.flows[0].finish_ps = None;
    assert!(words(&explained(&well), "limited by").unwrap().starts_with("1 flow did not finish"));
    well.flows.clear();
    assert_eq!(words(&explained(&well), "result"), Some("no flow finished"));
}

#[test]
fn a_folder_that_is_none_is_refused_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let why = explain(folder.path()).unwrap_err().to_string();
    assert!(why.contains("summary.json") && why.contains("name the folder of one run"), "{why}");
    let out = folder.path().join("out");
    let results = ResultFolder::create(&out).unwrap();
    results.write_run(&run(), &Summary::from_run(&run())).unwrap();
    results.commit().unwrap();
    std::fs::write(out.join("flows.parquet"), "PAR1 nonsense PAR1").unwrap();
    let why = explain(&out).unwrap_err().to_string();
    assert!(why.contains("flows.parquet") && why.contains("name the folder of one run"), "{why}");
    for (text, said) in [
        ("{}", "has no field `schema`; that of a run has \"pathweave.summary\""),
        ("{\"schema\": \"pathweave.sweep\"}", "schema = \"pathweave.sweep\" is not that of a run"),
        ("", "is not JSON"),
    ] {
        std::fs::write(out.join("summary.json"), text).unwrap();
        let why = explain(&out).unwrap_err().to_string();
        assert!(why.contains("summary.json") && why.contains(said), "{why}");
    }
    std::fs::remove_file(out.join("summary.json")).unwrap();
    assert!(explain(&out).unwrap_err().to_string().contains("cannot be read"));
}
