//! Runs and comparisons from outside: output, files and exit codes.

use std::fs;
use std::time::{Duration, Instant};

use crate::common::{Lab, SMALL, done, names, root};

const FILES: [&str; 13] = [
    "activities.parquet",
    "collectives.parquet",
    "critical.parquet",
    "events.parquet",
    "flows.parquet",
    "jobs.parquet",
    "layers.parquet",
    "links.parquet",
    "report.html",
    "scenario.toml",
    "series.parquet",
    "summary.json",
    "waits.parquet",
];

#[test]
fn a_run_leaves_a_folder_and_says_where() {
    let lab = Lab::with_small();
    let done = lab.run(&["run", "small.toml"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("4 of 4 flows finished") && done.out.contains("Job time "), "{}", done.out);
    assert!(done.out.ends_with("report: results/small-seed1/report.html\n"), "{}", done.out);
    fits_a_terminal(&done.out);
    let all = lab.run(&["run", "small.toml", "--all"]);
    assert!(all.out.contains("FCT mean") && all.out.contains("Packet-hops"), "{}", all.out);
    assert!(done.err.contains("small: completed"), "{}", done.err);
    assert_eq!(names(&lab.path("results/small-seed1")), FILES);
    assert_eq!(lab.names(), ["results", "small.toml"]);
}

/// Checks that a text fits a terminal of 40 lines and 100 columns.
fn fits_a_terminal(text: &str) {
    assert!(text.lines().count() < 40, "{} lines:\n{text}", text.lines().count());
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn five_schemes_are_one_table_and_a_sentence() {
    let lab = Lab::with_small();
    let schemes = "ecmp,rps,udmp,reps,weave";
    let brief = lab.run(&["compare", "small.toml", "--schemes", schemes, "--out", "r"]);
    fits_a_terminal(&brief.out);
    assert!(
        brief.out.starts_with("small: ") && brief.out.contains("has the shortest job time"),
        "{}",
        brief.out
    );
    assert_eq!(brief.out.matches('╞').count(), 1, "one table:\n{}", brief.out);
    let all = lab.run(&["compare", "small.toml", "--schemes", schemes, "--out", "r", "--all"]);
    assert!(all.out.lines().count() > 100 && all.out.contains("ratio"), "{}", all.out);
    // The place of each run and its numbers are those of the complete tables.
    let value = lab.json("r/summary.json");
    for place in value["verdict"]["order"].as_array().unwrap() {
        let name = place["run"].as_str().unwrap();
        let line = brief.out.lines().find(|line| line.starts_with(&format!("│ {name} "))).unwrap();
        let time = format!("{:.2} us", place["value"].as_f64().unwrap() / 1e3);
        assert!(line.contains(&time) && all.out.contains(&time), "{time} in {line}");
    }
}

#[test]
fn two_folders_are_compared() {
    let lab = Lab::with_small();
    assert_eq!(lab.run(&["compare", "small.toml", "--schemes", "ecmp,rps", "--out", "a"]).code, 0);
    let slow =
        ["compare", "small.toml", "--schemes", "rps,weave", "--out", "b", "--set", "topology.rate=50Gbps"];
    assert_eq!(lab.run(&slow).code, 0);
    let json: serde_json::Value = serde_json::from_str(&lab.run(&["diff", "a", "b", "--json"]).out).unwrap();
    assert_eq!(json["settings"][0]["field"], "topology.rate");
    assert_eq!((&json["only_in_a"][0], &json["only_in_b"][0]), (&"ecmp".into(), &"weave".into()));
    let time =
        |folder: &str| lab.json(&format!("{folder}/rps/summary.json"))["jobs"]["time_ns"].as_f64().unwrap();
    let row = json["results"].as_array().unwrap().iter().find(|row| row["figure"] == "job_time_ns").unwrap();
    assert_eq!((row["a"].as_f64(), row["b"].as_f64()), (Some(time("a")), Some(time("b"))));
    // At half of the rate, 100 KB take almost twice as long.
    assert!((0.8..1.0).contains(&row["change_ratio"].as_f64().unwrap()), "{row}");
    let table = lab.run(&["diff", "a", "b"]);
    fits_a_terminal(&table.out);
    assert!(table.out.contains("B has a longer job time") && table.out.contains("100Gbps"), "{}", table.out);
    let csv = lab.run(&["diff", "a", "b", "--csv"]).out;
    assert!(csv.starts_with("run,workload,figure,a,b,change_ratio\nrps,"), "{csv}");
    let none = lab.run(&["diff", "a", "c"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("c: it has no results: there is no such folder"), "{}", none.err);
    let file = lab.run(&["diff", "small.toml", "a"]);
    assert!(file.err.contains("small.toml: it has no results: it is a file"), "{}", file.err);
}

#[test]
fn quiet_is_quiet_and_json_is_only_json() {
    let lab = Lab::with_small();
    let quiet = lab.run(&["run", "small.toml", "--quiet"]);
    let where_to = "report: results/small-seed1/report.html\n";
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (0, where_to, ""));
    let json = lab.run(&["run", "small.toml", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(value["overall"]["finished"], 4);
    assert_eq!(value["run"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(lab.json("results/small-seed1/summary.json"), value);
}

/// Returns the digest of a run, which does not depend on the clock.
fn digest(lab: &Lab, folder: &str) -> String {
    lab.json(&format!("{folder}/summary.json"))["run"]["digest"].as_str().unwrap().to_owned()
}

#[test]
fn the_same_scenario_and_seed_give_the_same_digest() {
    let lab = Lab::with_small();
    for (seed, out) in [("1", "a"), ("1", "b"), ("2", "c")] {
        assert_eq!(lab.run(&["run", "small.toml", "--seed", seed, "--out", out]).code, 0);
    }
    assert_eq!(digest(&lab, "a"), digest(&lab, "b"));
    assert_ne!(digest(&lab, "a"), digest(&lab, "c"));
}

#[test]
fn threads_do_not_show_in_results() {
    let wide = SMALL.replace(
        "kind = \"star\"\nhosts = 4",
        "kind = \"leaf-spine\"\nleaves = 8\nspines = 4\nhosts_per_leaf = 16",
    );
    let lab = Lab::new().file("wide.toml", wide);
    let summary = |out: &str, more: &[&str]| {
        let done = lab.run(&[&["run", "wide.toml", "--out", out][..], more].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let mut summary = lab.json(&format!("{out}/summary.json"));
        for clock in ["wall_s", "cpu_s", "peak_rss_bytes", "packet_hops_per_cpu_s"] {
            summary["run"][clock] = serde_json::Value::Null;
        }
        summary
    };
    let alone = summary("one", &["--threads", "1"]);
    assert_eq!(summary("three", &["--threads", "3"]), alone);
    assert_eq!(summary("all", &[]), alone);
    let of_scenario = summary("two", &["--set", "run.threads=2"]);
    assert_eq!(of_scenario["run"]["digest"], alone["run"]["digest"]);
    let table = |folder: &str, name: &str| fs::read(lab.path(folder).join(name)).unwrap();
    for name in ["flows.parquet", "series.parquet", "links.parquet", "events.parquet"] {
        assert_eq!(table("one", name), table("three", name), "{name}");
    }
    // If another file needs all records, they are written at the end, with equal content.
    assert_eq!(summary("kept", &["--flows-csv", "flows.csv"]), alone);
    assert_eq!(table("one", "flows.parquet"), table("kept", "flows.parquet"));
    // Every second leaf is in another shard, so that most packets cross between shards.
    let leaves = (0..8).map(|leaf| format!("leaf{leaf} {}\n", leaf % 2)).collect::<String>();
    fs::write(lab.path("parts.txt"), format!("{leaves}spine0 0\nspine1 1\nspine2 2\nspine3 1\n")).unwrap();
    let parted = summary("parted", &["--set", "run.partition=parts.txt", "--threads", "3"]);
    assert_eq!(parted["run"]["digest"], alone["run"]["digest"]);
    assert_eq!(table("one", "flows.parquet"), table("parted", "flows.parquet"));
}

const SMALL_RING: &str = r#"
scheme = "rps"
topology = { kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 4 }

[[workload]]
kind = "ring-all-reduce"
group_size = 4
size = "1MB"
repetitions = 2
compute = "10us"
"#;

/// Jobs with computations, collectives and labels: all tables are equal whether flow records are kept to the end or
/// written during the run, alone and in a comparison.
#[test]
fn records_of_jobs_are_the_same_kept_and_written() {
    let lab = Lab::new().file("ring.toml", SMALL_RING);
    let made = |command: &[&str], out: &str, more: &[&str]| {
        let done = lab.run(&[command, &["--out", out, "--quiet"], more].concat());
        assert_eq!(done.code, 0, "{}", done.err);
    };
    made(&["run", "ring.toml"], "written", &[]);
    made(&["run", "ring.toml"], "kept", &["--flows-csv", "flows.csv"]);
    let compare = ["compare", "ring.toml", "--schemes", "rps,ecmp"];
    made(&compare, "both", &[]);
    made(&compare, "both-kept", &["--flows-csv", "both.csv"]);
    // Jobs are compared by the arrival times of their flows, with one curve for each scheme. Only the ends of a curve
    // are known in advance.
    for folder in ["both", "both-kept"] {
        let report = fs::read_to_string(lab.path(folder).join("report.html")).unwrap();
        let curves: Vec<&str> = report.split("<path class=\"curve\"").skip(1).collect();
        assert_eq!(curves.len(), 2, "{folder}: a curve a scheme");
        for curve in curves {
            let path = curve.split("d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
            assert!(path.matches('V').count() > 10, "{folder}: {path}");
            assert!(
                path.starts_with("M52.0 244.0") && path.ends_with("V12.0"),
                "{folder}: from none to all: {path}"
            );
        }
    }
    let tables = ["flows", "jobs", "activities", "collectives", "layers", "critical", "waits", "links"];
    for name in tables.map(|table| format!("{table}.parquet")) {
        let table = |folder: &str| fs::read(lab.path(folder).join(&name)).unwrap();
        assert_eq!(table("written"), table("kept"), "{name}");
        for scheme in ["rps", "ecmp"] {
            assert_eq!(
                table(&format!("both/{scheme}")),
                table(&format!("both-kept/{scheme}")),
                "{scheme} {name}"
            );
        }
    }
    let figures = |folder: &str| {
        let mut summary = lab.json(&format!("{folder}/summary.json"));
        for run in summary["runs"].as_array_mut().unwrap() {
            run["run"].as_object_mut().unwrap().retain(|key, _| key == "digest");
        }
        summary
    };
    assert_eq!(figures("both"), figures("both-kept"));
    assert!(lab.json("written/summary.json")["overall"]["count"].as_u64().unwrap() > 0);
}

#[test]
fn the_resolved_scenario_runs_again_from_elsewhere() {
    let text = SMALL
        .replace("permutation", "poisson")
        .replace("size = \"100KB\"", "sizes = \"my.cdf\"\nload = 0.5\nflows = 9");
    let own = "[scheme]\nbase = \"rps\"\npaths = 8\nname = \"eight\"\n";
    let lab = Lab::new().file("a.toml", format!("{text}{own}")).file("my.cdf", "1000 0\n2000 50\n9000 100\n");
    let first = lab.run(&["run", "a.toml", "--out", "first", "--set", "topology.delay=2us"]);
    assert_eq!(first.code, 0, "{}", first.err);
    fs::create_dir(lab.path("elsewhere")).unwrap();
    fs::copy(lab.path("first/scenario.toml"), lab.path("elsewhere/again.toml")).unwrap();
    let again = lab.run(&["run", "elsewhere/again.toml", "--out", "second"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(digest(&lab, "first"), digest(&lab, "second"));
    let text = |folder: &str| fs::read_to_string(lab.path(folder).join("scenario.toml")).unwrap();
    assert_eq!(text("first"), text("second"));
}

#[test]
fn results_are_replaced_as_a_whole() {
    let lab = Lab::with_small();
    for seed in ["1", "2"] {
        assert_eq!(lab.run(&["run", "small.toml", "--out", "r", "--seed", seed]).code, 0);
    }
    assert_eq!(lab.json("r/summary.json")["run"]["seed"], 2);
    assert_eq!(names(&lab.path("r")), FILES);
}

#[test]
fn unfinished_flows_are_named_with_the_reason() {
    let lab = Lab::with_small();
    let done = lab.run(&["run", "small.toml", "--set", "run.until=3us", "--out", "r"]);
    assert_eq!(done.code, 3);
    assert!(done.err.contains("4 of 4 flows did not finish"), "{}", done.err);
    assert!(
        done.err.contains("time limit") && done.err.contains("flow 0 of group permutation: host"),
        "{}",
        done.err
    );
    assert_eq!(lab.json("r/summary.json")["run"]["ended"], "time_limit");
    // A flow under way has sent packets; without packets there are none to count.
    assert!(done.err.contains(" packets sent, "), "{}", done.err);
    let flow = ["--set", "run.until=3us", "--set", "run.fidelity=flow", "--out", "f"];
    let done = lab.run(&[&["run", "small.toml"], &flow[..]].concat());
    assert_eq!(done.code, 3, "{}", done.err);
    assert!(done.err.contains(", unfinished\n") && !done.err.contains("packets sent"), "{}", done.err);
}

#[test]
fn a_comparison_has_the_same_traffic_and_does_not_depend_on_jobs() {
    let lab = Lab::with_small();
    let compare = |jobs, out| {
        let done =
            lab.run(&["compare", "small.toml", "--schemes", "ecmp,rps,qp16", "--jobs", jobs, "--out", out]);
        assert_eq!(done.code, 0, "{}", done.err);
        done
    };
    let (one, three) = (compare("1", "one"), compare("3", "three"));
    assert_eq!(one.out.replace("one/", "three/"), three.out);
    assert!(one.out.contains("job time") && one.out.contains("report: one/report.html"), "{}", one.out);
    for scheme in ["ecmp", "rps", "qp16"] {
        let folder = |base: &str| format!("{base}/{scheme}");
        assert_eq!(digest(&lab, &folder("one")), digest(&lab, &folder("three")));
    }
    assert_eq!(
        names(&lab.path("one")),
        ["comparison.csv", "ecmp", "qp16", "report.html", "rps", "summary.json"]
    );
}

#[test]
fn a_changed_scheme_has_a_star_its_notes_name_it_and_a_single_run_wins_nothing() {
    let lab = Lab::with_small();
    let args = ["--set", "scheme.recovery={kind=\"go_back_n\"}", "--out", "r"];
    // Names in a list may have a space after the comma.
    let both = lab.run(&[&["compare", "small.toml", "--schemes", "ecmp, rps"], &args[..]].concat());
    assert_eq!(both.code, 0, "{}", both.err);
    assert!(both.out.contains("rps* "), "{}", both.out);
    assert!(both.err.contains("note: rps*: scheme.recovery is \"go_back_n\""), "{}", both.err);
    assert_eq!(lab.json("r/summary.json")["runs"][1]["run"]["name"], "rps*");
    let one = lab.run(&["compare", "small.toml", "--schemes", "rps", "--out", "one"]);
    assert!(one.out.contains("rps has a job time of ") && !one.out.contains("shortest"), "{}", one.out);
}

#[test]
fn several_scenarios_are_compared_side_by_side() {
    let lab = Lab::with_small().file("other.toml", SMALL.replace("100KB", "50KB"));
    let args = ["compare", "small.toml", "other.toml", "--schemes", "ecmp,rps", "--out", "r", "--json"];
    let done = lab.run(&args);
    assert_eq!(done.code, 0, "{}", done.err);
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(value[1]["scenario"], "other");
    assert_eq!(value[1]["runs"][1]["run"]["name"], "rps");
    assert_eq!(names(&lab.path("r")), ["index.html", "other", "small"]);
    let index = fs::read_to_string(lab.path("r/index.html")).unwrap();
    assert!(index.contains("href=\"other/report.html\"") && index.contains("has the shortest job time, "));
    assert_eq!(value[0]["verdict"]["measure"], "job time");
    assert_eq!(lab.run(&args).code, 0, "results of several scenarios are replaced too");
    let twice = lab.run(&["compare", "small.toml", "small.toml", "--schemes", "rps"]);
    assert_eq!(twice.code, 2);
    assert!(twice.err.contains("two scenarios are named \"small\""));
}

#[test]
fn schemes_of_the_scenario_can_be_compared() {
    let own = "\n[schemes.few]\nbase = \"rps\"\npaths = 2\n";
    let lab = Lab::new().file("a.toml", format!("{SMALL}{own}"));
    let done = lab.run(&["compare", "a.toml", "--schemes", "rps,few", "--out", "r"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let resolved = fs::read_to_string(lab.path("r/few/scenario.toml")).unwrap();
    assert!(resolved.contains("name = \"few\"") && resolved.contains("paths = 2"), "{resolved}");
}

#[test]
fn lines_or_a_bar_tell_of_progress() {
    let lab = Lab::with_small();
    let lines = lab.run(&["run", "small.toml", "--progress", "never"]).err;
    assert!(lines.starts_with("small: completed in 0:00") && lines.lines().count() == 1, "{lines}");
    let bar = lab.run(&["run", "small.toml", "--progress", "always"]).err;
    assert!(bar.contains("small") && bar.contains("completed"), "{bar}");
}

/// Ctrl-C during a run: the results so far are written and marked, and the exit code reports the interruption.
#[cfg(unix)]
#[test]
fn an_interrupted_run_is_written_and_marked() {
    let long = SMALL.replace("100KB", "4GB");
    let lab = Lab::new().file("long.toml", long);
    let mut command = lab.command(&["run", "long.toml", "--out", "r"]);
    let child =
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    // The folder under construction appears just before the run begins.
    let start = Instant::now();
    while !lab.names().iter().any(|name| name.starts_with(".r.")) {
        assert!(start.elapsed() < Duration::from_secs(60), "the run does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let done = done(&child.wait_with_output().unwrap());
    assert_eq!(done.code, 130, "{}", done.err);
    assert!(done.err.contains("stopping") && done.err.contains("did not finish"), "{}", done.err);
    let run = lab.json("r/summary.json")["run"].clone();
    assert_eq!((run["partial"].as_bool(), run["ended"].as_str()), (Some(true), Some("interrupted")));
    assert_eq!(lab.names(), ["long.toml", "r"]);
}

#[test]
fn check_prints_the_resolved_scenario_and_its_size() {
    let lab = Lab::with_small();
    let done = lab.run(&["check", "small.toml", "--set", "topology.hosts=8"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(lab.names(), ["small.toml"]);
    for part in [
        "hosts = 8",
        "name = \"rps\"",
        "# network",
        "hosts: 8, switches: 1, links: 8",
        "# bounds",
        "# estimate",
    ] {
        assert!(done.out.contains(part), "{part} is not in:\n{}", done.out);
    }
    // The output is a scenario. Its forecast of the duration differs between calls, because it is measured.
    let lab = lab.file("again.toml", &done.out);
    let again = lab.run(&["check", "again.toml"]);
    let but_for_time = |out: &str| {
        out.lines().filter(|line| !line.starts_with("# estimate")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(but_for_time(&done.out), but_for_time(&again.out), "{}", again.err);
    let json: serde_json::Value =
        serde_json::from_str(&lab.run(&["check", "again.toml", "--json"]).out).unwrap();
    assert_eq!(json["network"]["hosts"], 8);
    assert_eq!(json["traffic"]["messages"], 8);
    // 100 KB at 100 Gb/s, with the delays of two links of 1 us and what a switch and headers add: no message is faster.
    let least_ns = json["bounds"]["completion_ns"].as_f64().expect("a bound");
    assert_eq!(lab.run(&["run", "again.toml", "--out", "r", "-q"]).code, 0);
    let summary = lab.json("r/summary.json");
    assert_eq!(summary["overall"]["ideal_fct_ns"]["max"], least_ns);
    assert!(least_ns > 10_000.0 && summary["run"]["simulated_ns"].as_f64().expect("a time") >= least_ns);
}

#[test]
fn everything_can_be_listed() {
    let lab = Lab::new();
    for (what, part) in [
        ("schemes", "rps-nocc"),
        ("topologies", "hosts_per_tor"),
        ("workloads", "ring-all-reduce"),
        ("presets", "udmp-320"),
    ] {
        let done = lab.run(&["list", what]);
        assert!(done.code == 0 && done.out.contains(part), "{}", done.out);
        let json: serde_json::Value = serde_json::from_str(&lab.run(&["list", what, "--json"]).out).unwrap();
        assert!(json[0]["entries"][0]["help"].is_string());
    }
    assert!(lab.run(&["completions", "bash"]).out.contains("_pathweave"));
    let schema: serde_json::Value = serde_json::from_str(&lab.run(&["schema"]).out).unwrap();
    assert_eq!(schema["title"], "pathweave scenario");
    assert_eq!(lab.run(&[]).code, 2);
    assert_eq!(lab.run(&["list", "everything"]).code, 2);
}

/// Every scenario in the repository is valid, and the small ones run.
#[test]
fn shipped_scenarios() {
    let lab = Lab::new();
    let folder = root().join("scenarios");
    for name in names(&folder).iter().filter(|name| name.ends_with(".toml")) {
        let path = folder.join(name);
        let done = lab.run(&["check", path.to_str().unwrap()]);
        assert_eq!(done.code, 0, "{name}: {}", done.err);
    }
    for name in ["quickstart", "incast", "faults", "mixed"] {
        let path = folder.join(format!("{name}.toml"));
        let done = lab.run(&["run", path.to_str().unwrap(), "--out", name]);
        assert_eq!(done.code, 0, "{name}: {}", done.err);
    }
}
