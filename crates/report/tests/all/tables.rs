//! Tables for the terminal.

use pathweave_records::{EndReason, FlowRecord, FlowStatus, RunInfo, RunResult, Summary};
use pathweave_report::{comparison_table, summary_table};

/// Creates a run with two groups: flows of 10 and 20 us, and one of 80 us.
fn run() -> RunResult {
    let flow = |(group, fct_us): (u16, u64)| FlowRecord {
        group,
        size_bytes: 1_000,
        finish_ps: Some(fct_us * 1_000_000),
        ideal_fct_ps: 5_000_000,
        status: FlowStatus::Finished,
        ..FlowRecord::default()
    };
    RunResult {
        info: RunInfo {
            groups: vec!["a".into(), "b".into()],
            schemes: vec!["rps".into()],
            simulated_ps: 100_000_000,
            ..RunInfo::default()
        },
        flows: [(0, 10), (0, 20), (1, 80)].map(flow).to_vec(),
        ..RunResult::default()
    }
}

#[test]
fn an_empty_run_has_a_table() {
    assert!(summary_table(&Summary::from_run(&RunResult::default())).contains("Flows"));
}

#[test]
fn terminal_tables() {
    let (first, mut second) = (run(), run());
    let mut faster = second.flows[2];
    faster.finish_ps = Some(40_000_000);
    second.flows[2] = faster;
    second.info.name = "faster".into();
    second.info.ended = EndReason::Interrupted;
    let (first, second) = (Summary::from_run(&first), Summary::from_run(&second));

    let one = summary_table(&first);
    let row = |table: &str, label: &str| -> Vec<String> {
        let line = table.lines().find(|l| l.contains(label)).unwrap_or_else(|| panic!("{label}:\n{table}"));
        line.trim_matches(['│', ' '])
            .split("  ")
            .map(|c| c.trim().to_owned())
            .filter(|c| !c.is_empty())
            .collect()
    };
    assert_eq!(row(&one, "FCT max"), ["FCT max", "20.00 us", "80.00 us", "80.00 us"]);
    assert!(one.contains("all flows"), "{one}");

    let both = comparison_table(&[&first, &second]);
    assert_eq!(row(&both, "FCT max"), ["FCT max", "80.00 us", "40.00 us", "0.500x"]);
    assert!(both.contains("PARTIAL: faster: The user interrupted it."), "{both}");
}
