//! Packets and computations count for the message and the host that they belong to.

use pathweave_records::{FLOWS, FlowStatus, Get, RunResult, Summary, collectives, layers};
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::NoMonitor;

fn result(text: &str) -> RunResult {
    let text = format!("{text}\n[observe]\ninterval = \"0s\"\n");
    let loaded = Loaded::parse(&text, "test.toml", "", &Changes::default());
    let prepared = loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{why}"));
    run(&prepared.spec, &mut NoMonitor).expect("it was tried")
}

fn star(hosts: u32, rest: &str) -> String {
    format!("scheme = \"rps\"\n[topology]\nkind = \"star\"\nhosts = {hosts}\n{rest}")
}

/// 1 MB is 245 packets of 4,096 B. The next message of a connection begins while the last packets of the one before
/// are on their way.
#[test]
fn messages_back_to_back_have_their_own_packets() {
    let run = result(&star(2, "[[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\nrepetitions = 4\n"));
    assert_eq!(run.flows.iter().map(|flow| flow.sent_packets).collect::<Vec<_>>(), [245; 8]);
    let once = star(2, "[[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1MB\" }]\n");
    let four = once.replace("\"rps\"", "{ base = \"rps\", queue_pairs = 4 }");
    // Each queue pair has 250,000 B: 62 packets.
    assert_eq!(result(&four).flows[0].sent_packets, 4 * 62);
}

#[test]
fn a_failed_connection_dropped_no_more_than_it_sent() {
    let run = result(&star(
        4,
        "[network.retransmission]\ntimeout = \"200us\"\nmax_timeout = \"400us\"\n\
         [[fault]]\nkind = \"link-down\"\nlink = \"host1-switch0\"\nat = \"50us\"\n\
         [[workload]]\nkind = \"ring-all-reduce\"\nsize = \"8MB\"\n",
    ));
    let failed = || run.flows.iter().filter(|flow| flow.status == FlowStatus::RetriesExceeded);
    assert!(failed().count() > 1);
    for flow in &run.flows {
        assert!(flow.dropped_packets <= flow.sent_packets, "{flow:?}");
        // 2,000,000 B are 489 packets.
        let new = flow.sent_packets - flow.retransmitted_packets;
        assert!(new <= 489 && (flow.status != FlowStatus::Finished || new == 489), "{flow:?}");
    }
}

#[test]
fn a_flow_that_was_never_posted_has_no_ideal_time() {
    let flows = "flows = [{ src = 0, dst = 1, size = \"1MB\" }, { src = 0, dst = 1, size = \"1MB\", start = \"60us\" }]";
    let run =
        result(&star(2, &format!("[run]\nuntil = \"50us\"\n[[workload]]\nkind = \"flows\"\n{flows}\n")));
    let column = FLOWS.iter().find(|column| column.name == "ideal_fct_ns").expect("it exists");
    let Get::F64(get) = column.get else { panic!("it is a time") };
    let ideals: Vec<Option<f64>> = run.flows.iter().map(|flow| get(&run, flow)).collect();
    assert_eq!(ideals, [Some(83_944.0), None]);
}

/// A host that gets more tokens than others has more to compute. A host with a factor on the same work is slow.
#[test]
fn a_host_with_more_work_is_told_from_a_slow_one() {
    let moe = "[[workload]]\nkind = \"moe\"\ntokens = 1000\ntoken_size = \"4096B\"\ntop_k = 3\nskew = 1.0\n\
               expert = \"100us\"\nattention = \"50us\"\nlayers = 2\n";
    let ring = "[[workload]]\nkind = \"collective\"\noperation = \"all-reduce\"\nsize = \"1MB\"\ncompute = \"1ms\"\n\
                [workload.stragglers]\nslow = [{ hosts = [3], factor = 1.5 }]\n";
    for (workload, said, not) in
        [(moe, "has more to compute", "is slow"), (ring, "host3 is slow", "has more to compute")]
    {
        let summary = Summary::from_run(&result(&star(6, workload)));
        let words: String = summary.critical_paths.iter().map(|path| path.words.clone()).collect();
        assert!(words.contains(said) && !words.contains(not), "{words}");
    }
}

/// Nothing computes, so that the whole time of each rank in the all-reduce is exposed. The trace of the ranks is the job, of
/// which the collective is a part.
#[test]
fn a_collective_of_a_trace_is_as_exposed_as_its_layer() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/chakra/all-reduce-16/all_reduce");
    let run = result(&star(16, &format!("[[workload]]\nkind = \"chakra\"\ntrace = \"{trace}\"\n")));
    let (all, layers) = (collectives(&run), layers(&run));
    assert_eq!((all.len(), layers.len()), (1, 1));
    assert!(all[0].job != layers[0].job, "the collective is a job within the trace");
    assert_eq!(Some(all[0].exposed_ps), all[0].mean_ps);
    assert_eq!(
        (all[0].exposed_ps, all[0].most_exposed_ps),
        (layers[0].exposed_ps, layers[0].most_exposed_ps)
    );
}
