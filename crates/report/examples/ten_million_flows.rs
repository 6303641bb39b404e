//! Measures the time and memory of writing a large result. With a folder as argument the result is kept there, to
//! inspect its report: `cargo run --release -p pathweave-report --example ten_million_flows`.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::path::PathBuf;
use std::time::Instant;

use pathweave_records::{FlowRecord, FlowStatus, RunResult, Summary};
use pathweave_report::{ResultFolder, summary_table};

fn peak_rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1_000
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut run = RunResult::default();
    run.info.groups = vec!["all".to_owned()];
    run.info.schemes = vec!["rps".to_owned()];
    run.flows.extend((0..10_000_000u32).map(|flow| {
        let noise = u64::from(flow.wrapping_mul(2_654_435_761));
        FlowRecord {
            flow,
            size_bytes: noise % 3_000_000 + 1,
            start_ps: u64::from(flow) * 1_000,
            finish_ps: Some(u64::from(flow) * 1_000 + 5_000_000 + noise),
            ideal_fct_ps: 5_000_000,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        }
    }));
    println!("{} bytes a record; records: peak {} MB", size_of::<FlowRecord>(), peak_rss_mb());
    let start = Instant::now();
    let summary = Summary::from_run(&run);
    println!("summary: {:.1} s, peak {} MB", start.elapsed().as_secs_f64(), peak_rss_mb());
    let kept = std::env::args().nth(1).map(PathBuf::from);
    let passing = || std::env::temp_dir().join(format!("ten-million-flows-{}", std::process::id()));
    let place = kept.clone().unwrap_or_else(passing);
    let folder = ResultFolder::create(&place)?;
    folder.write_run(&run, &summary)?;
    let path = folder.commit()?;
    println!("files: {:.1} s in all, peak {} MB", start.elapsed().as_secs_f64(), peak_rss_mb());
    let bytes = |file: &str| std::fs::metadata(path.join(file)).map(|data| data.len());
    println!("flows.parquet: {} MB", bytes("flows.parquet")? / 1_000_000);
    println!("report.html: {} KB\n{}", bytes("report.html")? / 1_000, summary_table(&summary));
    if kept.is_none() {
        std::fs::remove_dir_all(path)?;
    }
    Ok(())
}
