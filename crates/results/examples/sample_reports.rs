//! Reports of synthetic runs, for tests of the viewer in a browser and to look at:
//! `cargo run -p pathweave-results --example sample_reports -- FOLDER`.

use std::path::Path;

use pathweave_results::{EndReason, EventKind, RunResult, Summary, report_html};

#[path = "../tests/support/mod.rs"]
mod support;
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
    write("small", &[run("small", Shape::SMALL)])?;
    write("hosts-320", &[run("320 hosts", Shape::HOSTS_320)])?;
    let mut large = run("large", Shape::LARGE);
    large.info.ended = EndReason::PfcDeadlock;
    large.info.ended_detail = "tor3->spine1 waits for spine1->tor9 waits for tor3->spine1".to_owned();
    large.events_not_recorded.insert(EventKind::PfcPause, 12_345);
    write("large", &[large])?;
    let shape = |load, seed| Shape { load, seed, ..Shape::SMALL };
    write(
        "four",
        &[
            run("ecmp", shape(2.0, 1)),
            run("rps", shape(0.6, 2)),
            run("qp16", shape(1.2, 3)),
            run("udmp", shape(0.4, 4)),
        ],
    )?;
    write("empty", &[RunResult::default()])
}
