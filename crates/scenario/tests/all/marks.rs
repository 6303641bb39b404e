//! Schemes whose senders do not slow down for marks are known: without marks, their flows take exactly as long.

use pathweave_policy::schemes;
use pathweave_records::RunResult;
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;

/// Runs an incast at one switch, which has one path to each host, with marks from the second packet of a queue on or without.
fn run(scheme: &str, marks: bool) -> RunResult {
    let text = format!(
        "scheme = \"{scheme}\"\ntopology = {{ kind = \"star\", hosts = 5 }}\n\
         switch.ecn = {{ enabled = {marks}, kmin = \"5KB\", kmax = \"10KB\" }}\n\
         [[workload]]\nkind = \"incast\"\nsenders = 4\nsize = \"300KB\"\n"
    );
    let loaded = Loaded::parse(&text, "marks.toml", "", &Changes::default());
    let prepared = loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{scheme}: {why}"));
    pathweave_scenario::run(&prepared.spec, &mut NoMonitor).expect("it was tried")
}

#[test]
fn senders_that_ignore_marks_are_as_fast_without_them() {
    let mut wrong = Vec::new();
    for (name, scheme) in schemes().iter().map(|info| (info.name, (info.make)())) {
        let (with, without) = (run(name, true), run(name, false));
        let marked: u64 = with.links.iter().map(|link| link.ecn_marked_packets).sum();
        if marked == 0 {
            continue;
        }
        let ends = |run: &RunResult| run.flows.iter().map(|flow| flow.finish_ps).collect::<Vec<_>>();
        let ignores = with.info.ignoring_marks == [name];
        let is_as_fast = ends(&with) == ends(&without);
        // Many queue pairs fill the link, however slow each of them is.
        if ignores != is_as_fast && (ignores || scheme.queue_pairs == 1) {
            wrong.push(format!("{name}: said to {} marks", if ignores { "ignore" } else { "heed" }));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
