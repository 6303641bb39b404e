//! Writes reports of synthetic runs, to test the viewer in a browser and to inspect:
//! `cargo run -p pathweave-report --example sample_reports -- FOLDER`.

use std::path::Path;

use pathweave_records::{EndReason, EventKind, EventRecord, FlowStatus, RunResult, Summary};
use pathweave_report::{SchemeComparison, landing_html, report_html};

#[path = "../tests/all/support/mod.rs"]
mod support;
use support::servers::{Cluster, on_servers};
use support::{Shape, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let write = |name: &str, runs: &[RunResult]| {
        let summaries: Vec<Summary> = runs.iter().map(Summary::from_run).collect();
        let pairs: Vec<_> = runs.iter().zip(&summaries).collect();
        std::fs::write(folder.join(name).with_extension("html"), report_html(&pairs))?;
        std::fs::write(folder.join(name).with_extension("json"), serde_json::to_string(&summaries)?)?;
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    let mut small = run("small", Shape::SMALL);
    for (kind, time_ps) in [(EventKind::Fault, 1_000_000_000), (EventKind::Repair, 2_500_000_000)] {
        small.events.push(EventRecord { link: Some(60), ..EventRecord::new(time_ps, kind, 0) });
    }
    small.events.sort_by_key(|event| event.time_ps);
    write("small", &[small])?;
    write("hosts-320", &[run("320 hosts", Shape::HOSTS_320)])?;
    write("servers-8", &[on_servers("8 GPUs", Cluster::OF_8)])?;
    write("servers-32", &[on_servers("32 GPUs", Cluster::OF_32)])?;
    write("servers-1024", &[on_servers("1,024 GPUs", Cluster::OF_1024)])?;
    write("servers-131072", &[on_servers("131,072 GPUs", Cluster::OF_131072)])?;
    let mut large = run("large", Shape::LARGE);
    large.info.ended = EndReason::PfcDeadlock;
    large.info.ended_detail = "tor3->spine1 waits for spine1->tor9 waits for tor3->spine1".to_owned();
    large.events_not_recorded.insert(EventKind::PfcPause, 12_345);
    write("large", &[large])?;
    let shape = |load, seed| Shape { load, seed, ..Shape::SMALL };
    let mut four = [("ecmp", 2.0, 1), ("rps", 0.6, 2), ("qp16", 1.2, 3), ("udmp", 0.4, 4)]
        .map(|(n, l, s)| run(n, shape(l, s)));
    for run in &mut four {
        run.info.scenario_toml.insert_str(0, "name = \"web & search\"\n");
        for flow in run.flows.iter_mut().filter(|flow| flow.finish_ps.is_none()) {
            flow.finish_ps = Some(flow.start_ps + 5 * flow.ideal_fct_ps);
            flow.status = FlowStatus::Finished;
        }
    }
    write("four", &four)?;
    let summaries: Vec<Summary> = four.iter().map(Summary::from_run).collect();
    let situation = |title, says| SchemeComparison {
        title,
        description: says,
        report: "four.html".to_owned(),
        runs: four.iter().zip(&summaries).collect(),
        missing: Vec::new(),
    };
    let situations = [situation("web & search", "Flows of a web search."), situation("the same again", "")];
    std::fs::write(folder.join("index.html"), landing_html("Two situations", "Made up.", &situations))?;
    write("empty", &[RunResult::default()])
}
