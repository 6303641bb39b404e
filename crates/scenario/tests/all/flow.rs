//! Flow simulations (`run.fidelity = "flow"`): cases computed by hand, comparisons with packets, and refusals.

use pathweave_records::{EndReason, FlowStatus, RunResult, Summary};
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::{Monitor, MonitorDecision, NoMonitor, Snapshot};

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 16\n";
const LEAVES: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n";

fn load(text: &str, set: &[&str]) -> Result<Loaded, String> {
    let changes = Changes { set: set.iter().map(|&set| set.to_owned()).collect(), ..Changes::default() };
    let text = format!("{text}\n[observe]\ninterval = \"0s\"\n");
    Loaded::parse(&text, "test.toml", "", &changes).map_err(|why| why.to_string())
}

fn result(text: &str, set: &[&str]) -> RunResult {
    let prepared = load(text, set).and_then(|loaded| loaded.prepare().map_err(|why| why.to_string()));
    let prepared = prepared.unwrap_or_else(|why| panic!("{why}"));
    run(&prepared.spec, &mut NoMonitor).expect("it was tried")
}

fn flows(text: &str, set: &[&str]) -> RunResult {
    let set: Vec<&str> = set.iter().copied().chain(["run.fidelity=flow"]).collect();
    result(text, &set)
}

fn refusal(text: &str, set: &[&str]) -> String {
    let set: Vec<&str> = set.iter().copied().chain(["run.fidelity=flow"]).collect();
    match load(text, &set).map(|loaded| loaded.prepare().map(drop).map_err(|why| why.to_string())) {
        Ok(Ok(())) => panic!("{set:?} is not refused"),
        Ok(Err(why)) | Err(why) => why,
    }
}

/// Returns a workload with the messages (from, to, MB, start in ns).
fn messages(list: &[(u32, u32, u32, u32)]) -> String {
    let flow = |&(src, dst, mb, start): &(u32, u32, u32, u32)| {
        format!("{{ src = {src}, dst = {dst}, size = \"{mb}MB\", start = \"{start}ns\" }}")
    };
    let flows: Vec<String> = list.iter().map(flow).collect();
    format!("[[workload]]\nkind = \"flows\"\nflows = [{}]\n", flows.join(", "))
}

/// Returns the completion times in ns, by sender and receiver.
fn times(result: &RunResult) -> Vec<((u32, u32), f64)> {
    let time = |flow: &pathweave_records::FlowRecord| {
        ((flow.src_host, flow.dst_host), flow.fct_ps().expect("it finished") as f64 / 1e3)
    };
    let mut times: Vec<_> = result.flows.iter().map(time).collect();
    times.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    times
}

/// Messages over a star at 100 Gb/s with 1 us a link. 1 MB takes 1,020,106 B or 81,608.48 ns on the wire, plus
/// 2,335.52 ns.
#[test]
fn shares_of_a_star_by_hand() {
    let alone = 83_944.0;
    let two = 165_552.48;
    for (list, expected) in [
        (vec![(0, 1, 1, 0)], vec![alone]),
        (vec![(0, 2, 1, 0), (1, 2, 1, 0)], vec![two, two]),
        (vec![(0, 2, 1, 0), (1, 2, 2, 0)], vec![two, 247_153.12]),
        // Host 1's link gives a third of its rate to host 2, so host 3 gets two thirds.
        (
            vec![(0, 2, 1, 0), (1, 2, 1, 0), (1, 3, 1, 0), (4, 2, 1, 0)],
            vec![247_160.96, 247_160.96, 124_748.24, 247_160.96],
        ),
        // Half of each message is sent alone, the other half at half the rate.
        (vec![(0, 2, 1, 0), (1, 2, 1, 40_804)], vec![124_748.24, 124_748.24]),
    ] {
        let result = flows(&format!("scheme = \"rps-nocc\"\n{STAR}{}", messages(&list)), &[]);
        assert_eq!(result.info.ended, EndReason::Completed);
        let times = times(&result);
        for ((ends, time), expected) in times.iter().zip(&expected) {
            assert!(
                (time - expected).abs() < 0.0015 * expected,
                "{list:?}: {ends:?} took {time}, not {expected}"
            );
        }
        // A single message is exact: it takes the same time as with packets.
        if list.len() == 1 {
            assert_eq!(times[0].1, alone);
            assert_eq!(result.flows[0].fct_ps(), Some(result.flows[0].ideal_fct_ps));
        }
    }
}

/// Both directions of a link are in use: each leaves capacity for the acknowledgements of the other.
#[test]
fn acknowledgements_take_their_part() {
    let text = format!("scheme = \"rps\"\n{STAR}{}", messages(&[(0, 1, 1, 0), (1, 0, 1, 0)]));
    let (fluid, packets) = (times(&flows(&text, &[])), times(&result(&text, &[])));
    for (a, b) in fluid.iter().zip(&packets) {
        assert!((a.1 / b.1 - 1.0).abs() < 0.002, "{fluid:?} {packets:?}");
    }
}

/// A leaf of 16 hosts with 4 uplinks. A sprayed message gets a quarter of its host's rate, one on a single path the
/// rest of its uplink.
#[test]
fn uplinks_are_shared_as_packets_are_spread() {
    let topology = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 16\n";
    let list: Vec<_> = (0..16).map(|host| (host, host + 16, 1, 0)).collect();
    let text = format!("scheme = \"rps\"\n{topology}{}", messages(&list));
    // DCQCN is avoided, since its rate cuts leave links idle.
    let sprayed = flows(&text, &["scheme=swift-rps"]);
    let wire = 4.0 * 81_608.48;
    for (_, time) in times(&sprayed) {
        // Random packets collide on saturated links: 2.4 times the square root of the time in packets.
        assert!((wire..wire * 1.2).contains(&time), "{time}");
    }
    let single = flows(&text, &["scheme=ecmp"]);
    // Data direction only: with packets, the reverse direction also carries congestion notifications.
    let spines = || {
        single.links.iter().filter(|link| {
            link.from_node >= 32
                && link.to_node >= 32
                && (link.name.starts_with("leaf0>") || link.name.ends_with(">leaf1"))
        })
    };
    // The same hashes: each link carries the same bytes as with packets.
    let packets = result(&text, &["scheme=ecmp"]);
    for link in spines() {
        let there = packets.links[link.link as usize].tx_bytes as f64;
        let here = link.tx_bytes as f64;
        assert!((here - there).abs() <= 0.01 * there + 1.0, "{}: {here} and {there}", link.name);
    }
    assert!(
        spines().any(|link| link.tx_bytes == 0)
            || spines().map(|link| link.tx_bytes).max() > spines().map(|link| link.tx_bytes).min()
    );
}

/// Returns the relative difference of two means.
fn error(text: &str, set: &[&str], of: fn(&Summary) -> f64) -> f64 {
    let packets = Summary::from_run(&result(text, set));
    let fluid = Summary::from_run(&flows(text, set));
    of(&fluid) / of(&packets) - 1.0
}

fn mean_fct(summary: &Summary) -> f64 {
    summary.overall.fct_ns.mean
}

fn mean_job(summary: &Summary) -> f64 {
    summary.jobs.completion_ns.mean
}

/// Both engines are deterministic, so the bounds are for these exact runs. Other seeds are similar
/// (docs/flow-fidelity.md).
#[test]
fn sprayed_messages_take_about_as_long_as_their_packets() {
    let permutation = format!("{LEAVES}[[workload]]\nkind = \"permutation\"\nsize = \"4MB\"\n");
    let all_to_all =
        format!("{LEAVES}[[workload]]\nkind = \"all-to-all\"\ngroup_size = 8\nsize = \"256KB\"\n");
    let websearch = format!(
        "{LEAVES}[[workload]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\nduration = \"3ms\"\n"
    );
    for (text, scheme, of, bound) in [
        (&permutation, "rps", mean_fct as fn(&Summary) -> f64, 0.04),
        (&permutation, "udmp", mean_fct, 0.04),
        (&all_to_all, "rps", mean_fct, 0.04),
        (&all_to_all, "udmp", mean_fct, 0.04),
        (&all_to_all, "reps", mean_job, 0.04),
        (&websearch, "udmp", mean_fct, 0.05),
    ] {
        let error = error(text, &[&format!("scheme={scheme}"), "seed=7"], of);
        assert!(error.abs() < bound, "{scheme}: {error:+.4}\n{text}");
    }
}

/// The same run twice, and with another number of threads.
#[test]
fn equal_scenarios_give_equal_digests_and_another_fidelity_another() {
    let text = format!(
        "scheme = \"ecmp\"\n{LEAVES}[[workload]]\nkind = \"poisson\"\nsizes = \"alistorage\"\nload = 0.5\nduration = \"200us\"\n"
    );
    let first = flows(&text, &[]);
    assert_eq!(first.info.digest, flows(&text, &["run.threads=4"]).info.digest);
    assert_ne!(first.info.digest, flows(&text, &["seed=2"]).info.digest);
    assert_ne!(first.info.digest, result(&text, &[]).info.digest);
    assert!(first.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
}

/// Figures that have no meaning for flows are null, not 0, and the label states the fidelity.
#[test]
fn figures_of_packets_are_null() {
    let text = format!("scheme = \"rps\"\n{STAR}{}", messages(&[(0, 1, 1, 0)]));
    let summary = serde_json::to_value(Summary::from_run(&flows(&text, &[]))).expect("it is JSON");
    assert_eq!(summary["run"]["fidelity"], "flow");
    assert!(summary["run"]["label"].as_str().is_some_and(|label| label.contains("flow")));
    for (of, field) in [
        ("overall", "sent_packets"),
        ("overall", "retransmitted_packets"),
        ("overall", "timeouts"),
        ("fabric", "pfc_pauses"),
        ("fabric", "max_queue_bytes"),
        ("fabric", "paused_ns"),
        ("run", "packet_hops"),
    ] {
        assert!(summary[of].get(field).is_some_and(serde_json::Value::is_null), "{of}.{field}");
    }
    let packets = serde_json::to_value(Summary::from_run(&result(&text, &[]))).expect("it is JSON");
    assert_eq!((&packets["run"]["fidelity"], &packets["run"]["label"]), (&"packet".into(), &"".into()));
    assert!(packets["overall"]["sent_packets"].as_u64() > Some(0));
}

#[test]
fn waits_of_jobs_are_known_without_packets() {
    let text = format!("scheme = \"rps\"\n{STAR}[[workload]]\nkind = \"ring-all-reduce\"\nsize = \"1MB\"\n");
    let (fluid, packets) = (flows(&text, &[]), result(&text, &[]));
    assert!(!packets.critical.is_empty());
    assert_eq!(fluid.critical.len(), packets.critical.len());
    assert_eq!(
        Summary::from_run(&fluid).critical_paths.len(),
        Summary::from_run(&packets).critical_paths.len()
    );
}

#[test]
fn messages_of_a_connection_go_in_order() {
    let list = "[[workload]]\nkind = \"flows\"\nflows = [\
        { src = 0, dst = 1, size = \"1MB\", connection = 1 },\
        { src = 0, dst = 1, size = \"1MB\", connection = 1 },\
        { src = 0, dst = 1, size = \"10KB\", connection = 1 }]\n";
    let result = flows(&format!("scheme = \"udmp\"\n{STAR}{list}"), &[]);
    let mut ends: Vec<_> =
        result.flows.iter().map(|flow| (flow.finish_ps.unwrap(), flow.size_bytes)).collect();
    ends.sort_unstable();
    let wire = 81_608_480;
    assert!(ends[1].0 - ends[0].0 >= wire - 1_000 || ends[0].1 == 10_000, "{ends:?}");
    assert!(ends[2].0 >= 2 * wire, "{ends:?}");
}

#[test]
fn links_that_fail_and_slow_down() {
    let list: Vec<_> = (0..4).map(|host| (host, host + 4, 8, 0)).collect();
    let text = format!("scheme = \"udmp\"\n{LEAVES}{}", messages(&list));
    let whole = times(&flows(&text, &[]));
    // Three of four uplinks at a tenth of their rate: 130 Gb/s for 4 hosts.
    let faults: String = (0..3)
        .map(|spine| format!("[[fault]]\nkind = \"link-rate\"\nlink = \"leaf0-spine{spine}\"\nat = \"0s\"\nrate = \"10Gbps\"\n"))
        .collect();
    let slow = times(&flows(&format!("{text}{faults}"), &[]));
    for (a, b) in whole.iter().zip(&slow) {
        let relation = b.1 / a.1;
        assert!((2.7..3.3).contains(&relation), "{relation}");
    }
    // All uplinks are down for 2 ms. Nothing arrives in that time, and everything in the end.
    let faults: String = (0..4)
        .map(|spine| {
            format!("[[fault]]\nkind = \"link-down\"\nlink = \"leaf0-spine{spine}\"\nat = \"100us\"\nup_at = \"2ms\"\n")
        })
        .collect();
    let cut = flows(&format!("{text}{faults}"), &["switch.reroute_after=10us"]);
    assert_eq!(cut.info.ended, EndReason::Completed);
    for (a, b) in whole.iter().zip(&times(&cut)) {
        let longer = b.1 - a.1;
        assert!((1_800_000.0..2_100_000.0).contains(&longer), "{longer}");
    }
}

/// 12.5 B a nanosecond over four uplinks for 300 us, and over three of them afterwards.
#[test]
fn bytes_before_a_failure_count_for_the_link() {
    let fault = "[[fault]]\nkind = \"link-down\"\nlink = \"leaf0-spine3\"\nat = \"300us\"\n";
    let text = format!("scheme = \"udmp\"\n{LEAVES}{}{fault}", messages(&[(0, 4, 8, 0)]));
    let result = flows(&text, &["switch.reroute_after=10us"]);
    let crossed = |spine: &str| {
        let links =
            result.links.iter().filter(|link| link.name.contains("leaf0") && link.name.contains(spine));
        links.map(|link| link.tx_bytes).max().expect("two directions") as f64
    };
    let expected = 12.5 * 300_000.0 / 4.0;
    assert!((crossed("spine3") / expected - 1.0).abs() < 0.01, "{} of {expected}", crossed("spine3"));
    let all = ["spine0", "spine1", "spine2", "spine3"].map(crossed).iter().sum::<f64>();
    assert!((1.015..1.03).contains(&(all / 8e6)), "82 B of headers for 4,096 B: {all}");
}

#[test]
fn settings_that_need_packets_are_refused_with_place_and_remedy() {
    let text = format!("scheme = \"rps\"\n{LEAVES}{}", messages(&[(0, 5, 1, 0)]));
    let fault =
        |kind: &str, rest: &str| format!("{text}[[fault]]\nkind = \"{kind}\"\nat = \"1us\"\n{rest}\n");
    for (text, set, words) in [
        (&text, vec!["observe.departures=true"], vec!["observe.departures", "leave out observe.departures"]),
        (&text, vec!["observe.flows=3"], vec!["observe.flows", "packets of messages are followed"]),
        (
            &text,
            vec!["observe.follow=[0]", "observe.interval=1us"],
            vec!["observe.follow", "packets of messages are followed"],
        ),
        (&text, vec!["run.verify=true"], vec!["run.verify"]),
        (&text, vec!["scheme=reflex-timely"], vec!["reflex-timely", "choose another scheme"]),
        (&text, vec!["scheme=erd"], vec!["erd", "datagrams"]),
        (&text, vec!["scheme=rd"], vec!["rd", "one message at a time"]),
        (&text, vec!["scheme=ugal"], vec!["detours"]),
        (&text, vec!["switch.weights=[1, 1]"], vec!["switch.weights", "several classes"]),
        (&text, vec!["topology.error_rate=0.001"], vec!["loses packets"]),
        (&text, vec!["routing.kind=source"], vec!["explicit paths"]),
        (&fault("pause-storm", "host = \"host0\""), vec![], vec!["pauses its switch", "[[fault]]"]),
        (&fault("link-loss", "link = \"leaf0-spine0\"\nprobability = 0.1"), vec![], vec!["lost one by one"]),
        (&fault("link-delay", "link = \"leaf0-spine0\"\ndelay = \"9us\""), vec![], vec!["delay of a link"]),
        (&fault("link-down", "link = \"leaf0-spine0\""), vec!["scheme=ecmp"], vec!["go-back-N", "ecmp"]),
    ] {
        let why = refusal(text, &set);
        for word in words.iter().chain(&["set run.fidelity to \"packet\""]) {
            assert!(why.contains(word), "{set:?} lacks {word}: {why}");
        }
    }
    let incast: Vec<_> = (1..16).map(|host| (host, 0, 1, 0)).collect();
    let text = format!("scheme = \"rps\"\n{LEAVES}{}", messages(&incast));
    let why = refusal(&text, &["switch.pfc.enabled=false", "switch.buffer=1MB"]);
    assert!(why.contains("15 hosts send to host0") && why.contains("switch.pfc"), "{why}");
}

#[test]
fn an_incast_of_many_is_marked() {
    let mark = |senders: u32| {
        let text = format!(
            "scheme = \"udmp\"\n[topology]\nkind = \"star\"\nhosts = 40\n{}",
            messages(&(1..=senders).map(|host| (host, 0, 1, 0)).collect::<Vec<_>>())
        );
        flows(&text, &["run.calibrate=off"]).info.model_limits_exceeded
    };
    assert!(mark(32).iter().any(|reason| reason.contains("24 hosts")));
    assert_eq!(mark(8), [] as [String; 0]);
}

/// No link carries more than its capacity, and the bytes sent are those of the messages on the wire.
#[test]
fn links_carry_what_they_can_and_all_there_is() {
    let text = format!(
        "scheme = \"swift-rps\"\n{LEAVES}[[workload]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.8\nduration = \"2ms\"\n"
    );
    let result = flows(&text, &[]);
    for link in &result.links {
        let most = link.rate_bps as f64 / 8e12 * result.info.simulated_ps as f64;
        assert!(link.tx_bytes as f64 <= most * 1.002, "{}: {} of {most}", link.name, link.tx_bytes);
    }
    let sent: u64 = result.links.iter().filter(|link| link.from_node < 16).map(|link| link.tx_bytes).sum();
    let payload: u64 = result.flows.iter().map(|flow| flow.size_bytes).sum();
    let relation = sent as f64 / payload as f64;
    // 82 B of headers for 4,096 B, and 86 B of acknowledgements.
    assert!((1.04..1.06).contains(&relation), "{relation}");
}

/// Equivalent ranks are simulated once, on a fabric without oversubscription and on one with saturated links between
/// switches.
#[test]
fn alike_ranks_that_are_run_once_take_as_long_and_load_all_links() {
    for spines in [4, 1] {
        let text = format!(
            "scheme = \"udmp\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 8\nspines = {spines}\nhosts_per_leaf = 8\n\
             [[workload]]\nkind = \"simai\"\nfile = \"moe-9216gpu\"\ngpus = 64\nep = 4\npp = 2\nmicrobatches = 1\n\
             scale = 0.001\n"
        );
        let whole = flows(&text, &[]);
        let folded = flows(&text, &["run.fold=always"]);
        assert_eq!((whole.info.ranks_represented, folded.info.ranks_represented), (None, Some(8)));
        assert_eq!(whole.flows.len(), 8 * folded.flows.len());
        let ranks = |result: &RunResult| Summary::from_run(result).iterations[0].ranks;
        assert_eq!((ranks(&whole), ranks(&folded)), (64, 64));
        let time = |result: &RunResult| {
            assert_eq!(result.info.ended, EndReason::Completed);
            result.jobs[0].finish_ps.expect("it ended") as f64
        };
        let error = time(&folded) / time(&whole) - 1.0;
        assert!(error.abs() < 0.002, "{spines} spines: {error}");
        for (all, once) in whole.links.iter().zip(&folded.links) {
            let (all, once) = (all.tx_bytes as f64, once.tx_bytes as f64);
            assert!((once - all).abs() < 0.005 * all + 1.0, "{spines} spines: {once} and not {all} bytes");
        }
    }
}

#[test]
fn a_collective_whose_ranks_are_alike_takes_as_long_and_loads_all_links() {
    // Groups of two leaves: the four groups are interchangeable, and the leaves of each. Groups with one host of each
    // leaf: all ranks are.
    for (operation, placement, spines, order) in [
        ("all-reduce", "consecutive", 4, 8),
        ("all-to-all", "consecutive", 1, 8),
        ("all-to-all", "strided", 2, 32),
    ] {
        let text = format!(
            "scheme = \"udmp\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 8\nspines = {spines}\nhosts_per_leaf = 4\n\
             [[workload]]\nkind = \"collective\"\noperation = \"{operation}\"\ngroup_size = 8\n\
             placement = \"{placement}\"\nsize = \"4MB\"\nrepetitions = 2\ncompute = \"20us\"\n"
        );
        let whole = flows(&text, &[]);
        let folded = flows(&text, &["run.fold=always"]);
        assert_eq!((whole.info.ranks_represented, folded.info.ranks_represented), (None, Some(order)));
        assert_eq!(whole.flows.len(), order as usize * folded.flows.len());
        let time = |result: &RunResult| {
            assert_eq!(result.info.ended, EndReason::Completed);
            result.jobs.iter().map(|job| job.finish_ps.expect("it ended")).max().expect("jobs") as f64
        };
        let error = time(&folded) / time(&whole) - 1.0;
        // The waiting times of individual messages are random if none of them stands for others.
        assert!(error.abs() < 0.015, "{operation} over {spines} spines: {error}");
        for (all, once) in whole.links.iter().zip(&folded.links) {
            let (all, once) = (all.tx_bytes as f64, once.tx_bytes as f64);
            assert!(
                (once - all).abs() < 0.005 * all + 1.0,
                "{operation}, {spines} spines: {once} and not {all} bytes"
            );
        }
    }
}

#[test]
fn ranks_that_differ_all_run() {
    let text = "scheme = \"ecmp\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 8\n\
                [[workload]]\nkind = \"simai\"\nfile = \"moe-9216gpu\"\ngpus = 32\nep = 2\npp = 2\nmicrobatches = 1\n\
                scale = 0.0001\n";
    assert_eq!(flows(text, &["run.fold=always", "scheme=udmp"]).info.ranks_represented, Some(4));
    for single in ["scheme=ecmp", "scheme=wcmp"] {
        let error = refusal(text, &["run.fold=always", single]);
        assert!(error.contains("run.fold") && error.contains("takes single paths"), "{single}: {error}");
    }
    // The effective spreading of packets counts, by switches or by hosts.
    assert_eq!(
        flows(text, &["run.fold=always", "switch.forwarding.kind=rps"]).info.ranks_represented,
        Some(4)
    );
    assert_eq!(flows(text, &["run.fold=always", "scheme=letflow"]).info.ranks_represented, Some(4));
    let torn = [
        "run.fold=always",
        "scheme=udmp",
        "topology.hosts_per_leaf=5",
        "topology.leaves=7",
        "workload[0].tp=1",
    ];
    let error = refusal(text, &torn);
    assert!(error.contains("workload[0].gpus") && error.contains("leaves both the network"), "{error}");
    let star = format!("scheme = \"udmp\"\n{STAR}{}", messages(&[(0, 1, 1, 0)]));
    assert!(refusal(&star, &["run.fold=always"]).contains("\"collective\", \"simai\" and"));
}

/// All-to-all with packets of the beginning. The label has the error on held-out messages.
#[test]
fn a_run_of_packets_of_the_beginning_tells_the_error() {
    let text = format!(
        "scheme = \"rps\"\n{LEAVES}[[workload]]\nkind = \"all-to-all\"\nsize = \"256KB\"\nrepetitions = 4\n"
    );
    let plain = flows(&text, &["run.calibrate=off"]);
    assert_eq!((plain.info.calibration, plain.info.label().as_str()), (None, "fidelity: flow, uncalibrated"));
    let run = flows(&text, &["run.calibrate=prefix"]);
    let calibration = run.info.calibration.expect("960 messages are enough");
    let efficiency = calibration.efficiency.expect("it was fitted");
    assert!((0.8..1.05).contains(&efficiency), "{calibration:?}");
    assert!(calibration.held_out >= 20 && calibration.mean_error.abs() < 0.03, "{calibration:?}");
    assert!(run.info.label().contains("messages held out: mean"), "{}", run.info.label());
    // The packet simulation covers the whole run, so its error is known.
    let packets = result(&text, &[]);
    let mean = |run: &RunResult| mean_fct(&Summary::from_run(run));
    assert!((mean(&run) / mean(&packets) - 1.0).abs() < 0.03, "{} {}", mean(&run), mean(&packets));
    // No message ends within the packet simulation, so there is no calibration.
    let short = flows(&text, &["run.calibrate=prefix", "run.max_events=10"]);
    assert_eq!(short.info.calibration, None);
}

/// A run that shows signs of being outside of the model is measured. The result is either its error, which equals
/// that against a full packet simulation, or that it is inside. A run without signs is not measured.
#[test]
fn a_run_in_doubt_is_measured() {
    let job = |algorithm: &str, scheme: &str| {
        format!(
            "scheme = \"{scheme}\"\n{LEAVES}[[workload]]\nkind = \"collective\"\noperation = \"all-reduce\"\n\
             algorithm = \"{algorithm}\"\nsize = \"4MB\"\nrepetitions = 2\n"
        )
    };
    let time = |run: &RunResult| {
        run.jobs.iter().map(|job| job.completion_ps().expect("it is over") as f64).sum::<f64>()
    };
    let mut verdicts = Vec::new();
    for (algorithm, scheme) in [
        ("halving-doubling", "ecmp"),
        ("double-binary-tree", "rps"),
        ("hierarchical", "udmp"),
        ("ring", "udmp"),
    ] {
        let text = job(algorithm, scheme);
        let (run, packets) = (flows(&text, &[]), result(&text, &[]));
        let error = time(&run) / time(&packets) - 1.0;
        let told = run.info.calibration.and_then(|calibration| calibration.time_error);
        if let Some(told) = told {
            assert!((told - error).abs() < 1e-9, "{algorithm} {scheme}: {told} and not {error}");
        }
        let outside = &run.info.model_limits_exceeded;
        assert_eq!(error.abs() > 0.03, !outside.is_empty(), "{algorithm} {scheme}: {error} {outside:?}");
        let says = outside.iter().any(|why| why.contains("measured on all of its packets"));
        assert_eq!(says, !outside.is_empty(), "{outside:?}");
        verdicts.push((told.is_some(), says));
    }
    // An evenly sprayed ring shows no sign: no host receives from two.
    assert_eq!(verdicts[3], (false, false));
    assert!(verdicts.contains(&(true, true)) && verdicts.contains(&(true, false)), "{verdicts:?}");
    // A run that is not measured reports its signs.
    let unmeasured = flows(&job("double-binary-tree", "rps"), &["run.calibrate=off"]).info;
    assert!(
        unmeasured.calibration.is_none()
            && unmeasured.model_limits_exceeded.iter().any(|why| why.contains("out of step"))
    );
}

/// Requests a stop at the first call, and counts the calls.
struct StopAtOnce(u32);

impl Monitor for StopAtOnce {
    fn look(&mut self, at: &Snapshot) -> MonitorDecision {
        self.0 += 1;
        assert_eq!(at.share_done(), 0.0, "the beginning is not the whole");
        MonitorDecision::Stop
    }
}

/// The packet simulation of a calibration can be interrupted, too.
#[test]
fn a_run_is_interrupted_while_it_is_measured() {
    let text = format!(
        "scheme = \"rps\"\n{LEAVES}[[workload]]\nkind = \"all-to-all\"\nsize = \"256KB\"\nrepetitions = 40\n\
         [run]\nfidelity = \"flow\"\ncalibrate = \"prefix\"\n"
    );
    let prepared = load(&text, &[]).unwrap().prepare().unwrap();
    let mut impatient = StopAtOnce(0);
    let run = run(&prepared.spec, &mut impatient).unwrap();
    assert_eq!((run.info.ended, run.info.calibration), (EndReason::Interrupted, None));
    assert!(run.info.ended_detail.contains("measured on packets"), "{}", run.info.ended_detail);
    assert!(run.flows.iter().all(|flow| flow.status != FlowStatus::Finished));
    assert!(impatient.0 < 5, "{} looks", impatient.0);
}

/// Requests a stop when a third of the messages has arrived.
struct StopAtThird;

impl Monitor for StopAtThird {
    fn look(&mut self, at: &Snapshot) -> MonitorDecision {
        if at.flows_done * 3 < at.flows_total { MonitorDecision::Continue } else { MonitorDecision::Stop }
    }
}

/// Messages that no other task waits for are computed ahead. An interrupted run contains everything that happened
/// before the interruption and nothing later.
#[test]
fn a_run_that_is_cut_off_knows_what_happened_and_nothing_else() {
    let text = "[topology]\nkind = \"star\"\nhosts = 8\n[[workload]]\nkind = \"poisson\"\nsizes = \"alistorage\"\n\
                load = 0.5\nflows = 60_000\n";
    let whole = flows(text, &[]);
    let limited = flows(text, &["run.until=10ms"]);
    assert_eq!((limited.info.ended, limited.info.simulated_ps), (EndReason::TimeLimit, 10_000_000_000));
    let prepared = load(text, &["run.fidelity=flow"]).unwrap().prepare().unwrap();
    let stopped = run(&prepared.spec, &mut StopAtThird).unwrap();
    assert_eq!(stopped.info.ended, EndReason::Interrupted);
    for cut_off in [limited, stopped] {
        let end = cut_off.info.simulated_ps;
        let (mut done, mut open) = (0, 0);
        for (flow, of_whole) in cut_off.flows.iter().zip(&whole.flows) {
            let until = |ps: Option<u64>| ps.filter(|&ps| ps <= end);
            assert_eq!(flow.finish_ps, until(of_whole.finish_ps), "flow {} until {end}", flow.flow);
            assert_eq!(flow.acked_ps, until(of_whole.acked_ps), "flow {} until {end}", flow.flow);
            *(if flow.finish_ps.is_some() { &mut done } else { &mut open }) += 1;
        }
        assert!(done > 10_000 && open > 10_000, "{done} done, {open} open at {end}");
    }
}
