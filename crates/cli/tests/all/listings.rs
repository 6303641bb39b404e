//! Listings, explanations and the demo: `list`, `show`, `explain`, `demo`.

use crate::common::{Lab, root};

#[track_caller]
fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn lists_are_short_long_and_by_entry() {
    let lab = Lab::new();
    let out = |args: &[&str]| {
        let done = lab.run(args);
        assert_eq!(done.code, 0, "{}", done.err);
        done.out
    };
    let kinds = out(&["list"]);
    for kind in ["schemes", "topologies", "workloads", "presets"] {
        assert!(kinds.contains(kind), "{kinds}");
        let (short, long) = (out(&["list", kind]), out(&["list", kind, "--long"]));
        fits(&short);
        assert!(short.len() < long.len() / 2);
    }
    for (kind, name) in [
        ("controls", "dcqcn"),
        ("pickers", "round_robin"),
        ("transports", "selective_repeat"),
        ("switching", "conweave"),
        ("faults", "link-flap"),
        ("models", "deepseek-v3"),
        ("hardware", "gb300"),
        ("hardware", "dgx-h100"),
        ("collectives", "reduce-scatter"),
    ] {
        assert!(kinds.contains(kind), "{kinds}");
        let short = out(&["list", kind]);
        assert!(short.contains(&format!("\n  {name}")), "{short}");
        fits(&short);
        assert!(out(&["show", name]).contains(&format!("\n  {name}")));
    }
    let flap = out(&["show", "link-flap"]);
    assert!(flap.contains("times (required)  Number of failures"), "{flap}");
    fits(&kinds);
    let short = out(&["list", "schemes"]);
    assert!(short.contains("\n  weave") && !short.contains("policy.kind"), "{short}");
    let one = out(&["show", "qp16"]);
    assert!(one.contains("qp-scaling (also qp16)") && one.contains("queue_pairs = 16"), "{one}");
    assert!(one.lines().any(|line| line.trim() == "queue_pairs = 16"), "a setting a line: {one}");
    fits(&one);
    assert!(out(&["show", "udmp-320"]).contains("320 hosts"));
    let json: serde_json::Value = serde_json::from_str(&out(&["show", "weave", "--json"])).unwrap();
    assert_eq!(json[0]["entries"][0]["name"], "weave");
    let wrong = lab.run(&["show", "weav"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (2, ""));
    assert!(wrong.err.contains("did you mean \"weave\"?"), "{}", wrong.err);
}

#[test]
fn shells_complete_names() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = lab.run(&["completions", shell]).out;
        assert!(script.contains("reflex-swift"), "{shell}");
        // The script for fish completes options only.
        for name in ["leaf-spine", "udmp-320", "topologies", "many-processes"] {
            assert!(shell == "fish" || script.contains(name), "{shell}: {name}");
        }
    }
}

#[test]
fn manual_pages_are_written() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("man")).unwrap();
    assert_eq!(lab.run(&["man", "man"]).code, 0);
    let page = std::fs::read_to_string(lab.path("man/pathweave-run.1")).unwrap();
    assert!(page.starts_with(".ie") && page.contains("Result folder"), "{page}");
    assert!(lab.path("man/pathweave.1").exists());
    assert_eq!(lab.run(&["man", "none"]).code, 2);
}

#[test]
fn a_run_is_explained_and_a_comparison_is_not() {
    let lab = Lab::with_small();
    assert_eq!(lab.run(&["run", "small.toml", "--out", "r", "--quiet"]).code, 0);
    let done = lab.run(&["explain", "r"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(
        done.out.starts_with("limited by: ") && done.out.contains("    [links.parquet: "),
        "{}",
        done.out
    );
    fits(&done.out);
    let json: serde_json::Value = serde_json::from_str(&lab.run(&["explain", "r", "--json"]).out).unwrap();
    assert_eq!(json[1]["about"], "result");
    let none = lab.run(&["explain", "none"]);
    assert_eq!((none.code, none.out.as_str()), (2, ""));
    assert!(none.err.contains("cannot explain none: there is no such folder"), "{}", none.err);
    std::fs::create_dir_all(lab.path("results")).unwrap();
    std::fs::rename(lab.path("r"), lab.path("results/incast")).unwrap();
    let near = lab.run(&["explain", "result/incats"]);
    assert!(near.err.contains("there is no such folder; nearest: results/incast"), "{}", near.err);
    let above = lab.run(&["explain", "results"]);
    assert!(above.err.contains("name the folder of one run; here: results/incast"), "{}", above.err);
}

/// Four stages of a pipeline, of which host 2 computes three times as long.
#[test]
fn an_iteration_is_explained_with_its_slow_rank() {
    let scenario = "topology = { kind = \"star\", hosts = 4 }\n[[workload]]\nkind = \"pipeline\"\nmicrobatches = 4\n\
                    activation = \"100KB\"\nforward = \"50us\"\nbackward = \"100us\"\n\
                    [workload.stragglers]\nslow = [{ hosts = [2], factor = 3.0 }]\n";
    let lab = Lab::new().file("slow.toml", scenario);
    assert_eq!(lab.run(&["run", "slow.toml", "--out", "r", "--quiet"]).code, 0);
    let done = lab.run(&["explain", "r", "--json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let of = |about: &str| {
        let found = json.as_array().unwrap().iter().find(|finding| finding["about"] == about);
        found.unwrap_or_else(|| panic!("{about}: {json}"))["words"].as_str().unwrap().to_owned()
    };
    let (iteration, path) = (of("iteration"), of("critical path"));
    assert!(iteration.contains("in the mean of 4 ranks") && iteration.contains("computation"), "{iteration}");
    assert!(path.contains("host2 is slow: \"") && path.contains("3.00 times the median"), "{path}");
    let summary = lab.json("r/summary.json");
    let path = &summary["critical_paths"][0];
    let job = &summary["iterations"][0];
    // The path of the only iteration is as long as the iteration.
    assert_eq!(path["time_ns"], job["time_ns"]);
    assert_eq!(job["longest_computation_host"], 2);
    for table in ["collectives.parquet", "layers.parquet", "critical.parquet"] {
        assert!(lab.path("r").join(table).is_file(), "{table}");
    }
    let refused =
        lab.run(&["check", "slow.toml", "--set", "workload[0].stragglers.slow=[{hosts=[4],factor=2.0}]"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("hosts of the workload are 0 to 3"), "{}", refused.err);
}

#[test]
fn the_demo_ends_with_a_sentence_and_a_page() {
    let lab = Lab::new();
    let done = lab.run(&["demo", "slow-links", "many-processes", "--out", "d", "--jobs", "2"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let sentences: Vec<&str> = done.out.split("\n\n").take(2).collect();
    for (sentence, begin) in sentences.iter().zip(["A permutation over slow links: ", "Many processes: "]) {
        assert!(sentence.starts_with(begin), "{}", done.out);
        assert!(readme.contains(sentence), "the README has another end of the demo:\n{sentence}");
    }
    assert!(done.out.contains("weave") && done.out.ends_with("report: d/index.html\n"), "{}", done.out);
    fits(&done.out);
    let page = std::fs::read_to_string(lab.path("d/index.html")).unwrap();
    // Saved pictures name the XML namespace of SVG, which nobody fetches.
    let addresses = page.replace("http://www.w3.org/2000/svg", "").matches("://").count();
    assert!(page.contains("href=\"many-processes/report.html\"") && addresses == 0, "no network is needed");
    assert!(lab.path("d/many-processes/report.html").exists());
    assert_eq!(lab.run(&["demo", "nonsense"]).code, 2);
}

#[test]
fn memory_is_told_by_part() {
    let lab = Lab::with_small();
    let table = lab.run(&["check", "small.toml", "--memory", "--threads", "1"]);
    assert_eq!(table.code, 0, "{}", table.err);
    for part in
        ["program", "network", "queue pairs", "packets", "samples", "all", "by one thread", "available"]
    {
        assert!(table.out.contains(part), "{part} is not in:\n{}", table.out);
    }
    let json = |threads| {
        let done = lab.run(&["check", "small.toml", "--memory", "--json", "--threads", threads]);
        serde_json::from_str::<serde_json::Value>(&done.out)
            .unwrap_or_else(|why| panic!("{why}: {}", done.err))
    };
    let memory = json("1");
    let parts = memory["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["bytes"].as_u64().unwrap()).sum();
    assert_eq!(memory["total_bytes"].as_u64(), Some(sum));
    let of = |memory: &serde_json::Value, name: &str| {
        let part = memory["parts"].as_array().unwrap().iter().find(|part| part["part"] == name);
        part.unwrap_or_else(|| panic!("no part {name}"))["bytes"].as_u64().unwrap()
    };
    // Each thread has its own nodes, and the far ends of their links.
    let by_two = json("2");
    assert_eq!(by_two["threads"], 2);
    let (one, two) = (of(&memory, "network"), of(&by_two, "network"));
    assert!((one..2 * one).contains(&two), "{one} by one thread, {two} by two");
}
