//! Traces as workloads, from outside: the duration of known traces, and the errors of invalid ones.

use std::path::Path;

use crate::common::{Lab, root};

/// Returns the time of the only job in the summary, in nanoseconds.
fn completion_ns(scenario: &str) -> f64 {
    let lab = Lab::new().file("my.toml", scenario);
    let done = lab.run(&["run", "my.toml", "--out", "out", "--quiet"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let summary = lab.json("out/summary.json");
    assert_eq!(summary["run"]["ended"], "completed");
    summary["jobs"]["completion_ns"]["max"].as_f64().unwrap()
}

/// Returns a trace of eight ranks on an idle star.
fn on_a_star(kind: &str, field: &str, trace: &Path) -> String {
    format!(
        "[topology]\nkind = \"star\"\nhosts = 8\nrate = \"100Gbps\"\ndelay = \"500ns\"\n\n\
         [[workload]]\nkind = {kind:?}\n{field} = {trace:?}\n"
    )
}

#[test]
fn a_ring_of_eight_takes_the_analytical_time() {
    let trace = root().join("scenarios/chakra-ring");
    let ns = completion_ns(&on_a_star("chakra", "trace", &trace));
    // 2 (n - 1) steps of an eighth of 1 MiB at 100 Gb/s, each over two links of 500 ns. All but the last wait for the
    // acknowledgement of the step before, as the trace specifies. Half of them are reduced in 7 us.
    let step = 131_072.0 * 8.0 / 100.0 + 2.0 * 500.0;
    let analytical = 14.0 * step + 13.0 * 2.0 * 500.0 + 7.0 * 7_000.0;
    let ratio = ns / analytical;
    assert!((1.0..1.06).contains(&ratio), "{ns} ns, where the ring takes {analytical}: {ratio}");
}

#[test]
fn impossible_traces_are_refused_with_file_and_record() {
    let trace = root().join("scenarios/chakra-ring");
    let scenario = |hosts: u32, trace: &str| {
        format!(
            "[topology]\nkind = \"star\"\nhosts = {hosts}\n\n[[workload]]\nkind = \"chakra\"\ntrace = {trace:?}\n"
        )
    };
    let error = |lab: &Lab| {
        let done = lab.run(&["check", "my.toml"]);
        assert_eq!(done.code, 2, "{}", done.err);
        done.err
    };
    let lab = Lab::new().file("my.toml", scenario(4, &trace.display().to_string()));
    let text = error(&lab);
    assert!(text.contains("the trace has 8 ranks, the topology 4 hosts"), "{text}");
    let whole = std::fs::read(trace.join("custom_allreduce.0.et")).unwrap();
    let lab = Lab::new().file("my.toml", scenario(2, "t")).file("t.0.et", &whole).file("t.1.et", &whole);
    let text = error(&lab);
    assert!(
        text.contains(
            "t.0.et: record 2: comm_src = 7: t.7.et is missing, only files of ranks 0 to 1 are there"
        ),
        "{text}"
    );
    assert!(text.contains("my.toml:7:"), "the scenario is named, too: {text}");
    let lab = lab.file("my.toml", scenario(8, "t")).file("t.0.et", &whole[..whole.len() - 3]);
    for rank in 2..8 {
        let from = trace.join(format!("custom_allreduce.{rank}.et"));
        std::fs::copy(from, lab.path(&format!("t.{rank}.et"))).unwrap();
    }
    let text = error(&lab);
    assert!(text.contains("t.0.et: record 35: ends after"), "{text}");
}

#[test]
fn a_schedule_takes_the_analytical_time() {
    let schedule = root().join("scenarios/goal-all-reduce.goal");
    let ns = completion_ns(&on_a_star("goal", "file", &schedule));
    // 50 us, then three steps of 1 MiB at 100 Gb/s over two links of 500 ns, each followed by 20 us.
    let step = 1_048_576.0 * 8.0 / 100.0 + 2.0 * 500.0 + 20_000.0;
    let analytical = 50_000.0 + 3.0 * step;
    let ratio = ns / analytical;
    assert!((1.0..1.05).contains(&ratio), "{ns} ns, where the schedule takes {analytical}: {ratio}");
}

#[test]
fn impossible_schedules_are_refused_with_file_and_line() {
    let scenario =
        "[topology]\nkind = \"star\"\nhosts = 2\n\n[[workload]]\nkind = \"goal\"\nfile = \"s.goal\"\n";
    let two = |block: &str| format!("num_ranks 2\nrank 0 {{\n{block}\n}}\nrank 1 {{\n}}\n");
    let cases = [
        ("num_ranks 3\n".to_owned(), "s.goal:1: num_ranks = 3: the block of rank 0 is missing"),
        (
            "num_ranks 3 rank 0 {} rank 1 {} rank 2 {}".to_owned(),
            "the trace has 3 ranks, the topology 2 hosts",
        ),
        (two("send 5b to 1"), "s.goal:3: rank 1 does not receive it (tag 0)"),
        (
            two("a: calc 5\na requires a"),
            "s.goal:3: operations wait for each other in a cycle: line 3, which waits for line 3",
        ),
        (two("sent 5b to 1"), "s.goal:3: \"5b\" behind \"sent\": expected :, requires or irequires"),
    ];
    for (schedule, says) in cases {
        let lab = Lab::new().file("my.toml", scenario).file("s.goal", &schedule);
        let done = lab.run(&["check", "my.toml"]);
        assert_eq!(done.code, 2, "{schedule}");
        assert!(done.err.contains(says), "{schedule}: {}", done.err);
        assert!(done.err.contains("my.toml:"), "the scenario is named, too: {}", done.err);
    }
}
