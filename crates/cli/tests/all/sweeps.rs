//! `pathweave sweep` from the outside.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use crate::common::{Lab, names};

const SMALL: &str = "\
seeds = 2

[scenario.topology]
kind = \"star\"
hosts = 4

[[scenario.workload]]
kind = \"permutation\"
size = \"10KB\"

[[grid]]
key = \"scheme\"
values = [\"ecmp\", \"rps\"]

[[grid]]
key = \"workload[0].size\"
values = [\"10KB\", \"20KB\", \"40KB\"]
";

fn digest(lab: &Lab, out: &str) -> String {
    lab.json(&format!("{out}/summary.json"))["digest"].as_str().unwrap().to_owned()
}

/// Returns the finished runs of a dataset, and the time at which each was written.
fn finished(lab: &Lab, out: &str) -> BTreeMap<String, SystemTime> {
    let runs = lab.path(out).join("runs");
    let Ok(entries) = fs::read_dir(&runs) else { return BTreeMap::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.starts_with("run="));
    names
        .map(|name| {
            let time = fs::metadata(runs.join(&name).join("run.json")).unwrap().modified().unwrap();
            (name, time)
        })
        .collect()
}

/// Job time and slowdown of a permutation need not agree, and flows that arrive over time have no job.
#[test]
fn jobs_are_judged_by_their_time_and_flows_over_time_by_p99_and_mean() {
    let open = SMALL.replace(
        "kind = \"permutation\"\nsize = \"10KB\"",
        "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.3\nduration = \"1ms\"",
    );
    let open = open[..open.rfind("[[grid]]").unwrap()].to_owned();
    let lab = Lab::new().file("jobs.toml", SMALL).file("open.toml", &open);
    let jobs = lab.run(&["sweep", "jobs.toml", "--out", "jobs", "--jobs", "2"]);
    assert!(
        jobs.out.contains("Job time, best of 3 settings: ") && jobs.out.contains("from ecmp"),
        "{}",
        jobs.out
    );
    assert!(!jobs.out.contains("rests on"), "{}", jobs.out);
    let summary = lab.json("jobs/summary.json");
    assert_eq!(summary["metric"], "job_time_ns");
    // The change of a cell is that of its figure from the cell of the first scheme.
    for cell in summary["cells"].as_array().unwrap() {
        let time = |cell: &serde_json::Value| cell["metrics"]["job_time_ns"]["mean"].as_f64().unwrap();
        let of_ecmp = |other: &&serde_json::Value| other["at"][0] == 0 && other["at"][1] == cell["at"][1];
        let first = summary["cells"].as_array().unwrap().iter().find(of_ecmp).unwrap();
        match cell["change"]["mean"].as_f64() {
            Some(change) => assert!((change - (time(cell) / time(first) - 1.0)).abs() < 1e-9),
            None => assert_eq!(cell["at"][0], 0),
        }
    }
    let over_time = lab.run(&["sweep", "open.toml", "--out", "open", "--jobs", "2"]);
    assert_eq!(lab.json("open/summary.json")["metric"], "slowdown_p99");
    for words in ["Slowdown P99: ", "Slowdown mean: ", "A P99 of ", "so another seed may turn the order."] {
        assert!(over_time.out.contains(words), "{words}: {}", over_time.out);
    }
}

#[test]
fn a_dataset_with_summary_tables_and_report() {
    let lab = Lab::new().file("small.toml", SMALL);
    let done = lab.run(&["sweep", "small.toml", "--out", "out", "--jobs", "2"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("6 cells, 12 runs, 0 of them finished before"), "{}", done.err);
    assert!(done.out.contains("dataset digest: ") && done.out.contains("Job time, best of"), "{}", done.out);
    let files = [".lock", "report.html", "runs", "runs.parquet", "summary.json", "summary.parquet"];
    assert_eq!(names(&lab.path("out")), files);
    let summary = lab.json("out/summary.json");
    assert_eq!((summary["runs"].as_u64(), summary["partial"].as_bool()), (Some(12), Some(false)));
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    // The figures of a cell are the means over its runs.
    let of_run = |run: usize| {
        let key = cells[0]["runs"][run].as_str().unwrap();
        lab.json(&format!("out/runs/run={key}/run.json"))["metrics"]["fct_max_ns"].as_f64().unwrap()
    };
    let (a, b) = (of_run(0), of_run(1));
    let figure = &cells[0]["metrics"]["fct_max_ns"];
    assert_eq!(figure["mean"].as_f64().unwrap(), (a + b) / 2.0);
    assert_eq!(figure["n"], 2);
    assert_eq!((figure["min"].as_f64().unwrap(), figure["max"].as_f64().unwrap()), (a.min(b), a.max(b)));
    // Student's t with one degree of freedom. The standard error of two values is half their distance.
    let ci95 = figure["ci95"].as_f64().unwrap();
    assert!((ci95 - 12.706 * (a - b).abs() / 2.0).abs() <= 1e-9 * ci95.max(1.0), "{ci95} of {a} and {b}");
    // The scenario in the folder of a run reproduces its digest.
    let key = cells[5]["runs"][1].as_str().unwrap();
    let again = lab.run(&["run", &format!("out/runs/run={key}/scenario.toml"), "--json", "--out", "again"]);
    let again: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(again["run"]["digest"], lab.json(&format!("out/runs/run={key}/run.json"))["digest"]);
}

#[test]
fn kept_runs_are_result_folders_with_reports() {
    let kept = format!("{SMALL}\n[report]\nruns = \"kept\"\n").replace("seeds = 2", "seeds = 1");
    let lab =
        Lab::new().file("small.toml", &kept).file("figures.toml", kept.replace("\"kept\"", "\"figures\""));
    let sweep = |file: &str| {
        let done = lab.run(&["sweep", file, "--out", "out"]);
        assert_eq!(done.code, 0, "{}", done.err);
        done.err
    };
    sweep("figures.toml");
    let before = finished(&lab, "out");
    assert_eq!(before.len(), 6);
    // Runs without a report run again if reports are requested, but not if they are no longer requested.
    let told = sweep("small.toml");
    assert!(told.contains("0 of them finished before"), "{told}");
    let told = sweep("figures.toml");
    assert!(told.contains("6 of them finished before"), "{told}");
    for run in before.keys() {
        let folder = format!("out/runs/{run}");
        let report = fs::read_to_string(lab.path(&folder).join("report.html")).unwrap();
        assert!(report.contains("<!doctype html>"));
        assert_eq!(
            lab.json(&format!("{folder}/summary.json"))["run"]["digest"],
            lab.json(&format!("{folder}/run.json"))["digest"]
        );
        let done = lab.run(&["explain", &folder]);
        assert_eq!(done.code, 0, "{}", done.err);
    }
    let done = lab.file("wrong.toml", kept.replace("\"kept\"", "\"keptt\"")).run(&["sweep", "wrong.toml"]);
    assert!(
        done.code == 2 && done.err.contains("report.runs") && done.err.contains("`kept`"),
        "{}",
        done.err
    );
}

#[test]
fn nothing_runs_twice_and_what_is_added_runs_alone() {
    let lab = Lab::new().file("small.toml", SMALL);
    let run = |jobs: &str, sweep: &str, out: &str| {
        let done = lab.run(&["sweep", sweep, "--out", out, "--jobs", jobs]);
        assert_eq!(done.code, 0, "{}", done.err);
        done.err
    };
    run("1", "small.toml", "one");
    run("3", "small.toml", "three");
    assert_eq!(digest(&lab, "one"), digest(&lab, "three"));
    let before = finished(&lab, "one");
    let told = run("1", "small.toml", "one");
    assert!(told.contains("12 of them finished before") && told.contains("0 runs in"), "{told}");
    assert_eq!(finished(&lab, "one"), before);

    // Another order of the values gives the same dataset. Another value adds two runs.
    fs::write(lab.path("turned.toml"), SMALL.replace("\"ecmp\", \"rps\"", "\"rps\", \"ecmp\"")).unwrap();
    let told = run("1", "turned.toml", "one");
    assert!(told.contains("12 of them finished before"), "{told}");
    assert_eq!(digest(&lab, "one"), digest(&lab, "three"));
    fs::write(lab.path("more.toml"), SMALL.replace("\"40KB\"]", "\"40KB\", \"80KB\"]")).unwrap();
    let told = run("1", "more.toml", "one");
    assert!(told.contains("16 runs, 12 of them finished before"), "{told}");
    assert_ne!(digest(&lab, "one"), digest(&lab, "three"));

    // Runs that the sweep no longer includes stay until they are pruned.
    let told = run("1", "small.toml", "one");
    assert!(told.contains("note: 4 more runs in the folder"), "{told}");
    assert_eq!(lab.run(&["sweep", "small.toml", "--out", "one", "--prune", "--quiet"]).code, 0);
    assert_eq!(finished(&lab, "one"), before);
    assert_eq!(digest(&lab, "one"), digest(&lab, "three"));
}

/// A sweep of 200 cells that is killed without cleanup.
#[test]
fn a_killed_sweep_goes_on_where_it_was() {
    let sweep = "\
[scenario.topology]
kind = \"star\"
hosts = 4
[[scenario.workload]]
kind = \"permutation\"
size = \"10KB\"
[latin-hypercube]
samples = 100
[[latin-hypercube.axis]]
key = \"workload[0].size\"
from = \"1000B\"
to = \"200000B\"
scale = \"log\"
[[latin-hypercube.axis]]
key = \"topology.delay\"
from = \"0.100us\"
to = \"2.000us\"
[[grid]]
key = \"scheme\"
values = [\"ecmp\", \"rps\"]
";
    let lab = Lab::new().file("sweep.toml", sweep);
    let mut program = lab.command(&["sweep", "sweep.toml", "--out", "killed", "--jobs", "1", "--quiet"]);
    let mut program = program.stderr(Stdio::null()).spawn().unwrap();
    crate::common::half_way(&mut program, || finished(&lab, "killed").len() >= 40);
    program.kill().unwrap();
    program.wait().unwrap();
    let before = finished(&lab, "killed");
    assert!((40..200).contains(&before.len()), "{} runs", before.len());

    let done = lab.run(&["sweep", "sweep.toml", "--out", "killed", "--jobs", "2"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let told = format!("200 cells, 200 runs, {} of them finished before", before.len());
    assert!(done.err.contains(&told), "{}", done.err);
    let after = finished(&lab, "killed");
    assert_eq!(after.len(), 200);
    assert!(before.iter().all(|(name, time)| after[name] == *time), "a finished run was made again");

    assert_eq!(lab.run(&["sweep", "sweep.toml", "--out", "whole", "--quiet"]).code, 0);
    assert_eq!(digest(&lab, "killed"), digest(&lab, "whole"));
    assert_eq!(lab.json("killed/summary.json"), lab.json("whole/summary.json"));
}

#[test]
fn ctrl_c_keeps_what_is_finished() {
    let many = SMALL.replace("seeds = 2", "seeds = 500");
    let lab = Lab::new().file("sweep.toml", many);
    let child =
        lab.command(&["sweep", "sweep.toml", "--out", "out", "--jobs", "1"]).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    while finished(&lab, "out").len() < 3 {
        assert!(Instant::now() < patience, "nothing is finished");
        sleep(Duration::from_millis(2));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let done = crate::common::done(&child.wait_with_output().unwrap());
    assert_eq!(done.code, 130, "{}", done.err);
    assert!(
        done.err.contains("stopping: finished runs are kept") && done.err.contains("PARTIAL: "),
        "{}",
        done.err
    );
    let summary = lab.json("out/summary.json");
    assert_eq!(summary["partial"], true);
    assert_eq!(summary["finished_runs"].as_u64().unwrap() as usize, finished(&lab, "out").len());
}

/// The report in a real browser: its pictures and tables are drawn, and no script fails.
#[test]
fn the_report_is_drawn() {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let runs =
        |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|done| done.status.success());
    let Some(browser) = browsers.iter().find(runs) else {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("SKIPPED: no Chromium found, the report was not opened in a browser");
        }
        return;
    };
    let cube = "[latin-hypercube]\nsamples = 20\n[[latin-hypercube.axis]]\nkey = \"topology.delay\"\nfrom = \"1ns\"\nto = \"900ns\"\n";
    let alone = SMALL.split("[[grid]]").next().unwrap().to_owned() + "[[list]]\nname = \"<b>&\"\n";
    let lab = Lab::new()
        .file("small.toml", SMALL)
        .file("cube.toml", format!("{SMALL}{cube}"))
        .file("alone.toml", alone);
    // A single axis allows no comparison along another.
    for (sweep, cards) in [("small", 6), ("cube", 6), ("alone", 4)] {
        assert_eq!(lab.run(&["sweep", &format!("{sweep}.toml"), "--out", sweep, "--quiet"]).code, 0);
        let page = lab.path(sweep).join("report.html").display().to_string();
        let done = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--virtual-time-budget=4000",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--dump-dom"])
            .arg(format!("--user-data-dir={}", lab.path("profile").display()))
            .arg(format!("file://{page}"))
            .output()
            .unwrap();
        let dom = String::from_utf8_lossy(&done.stdout);
        assert!(!dom.contains("data-script-error"), "{sweep}: {}", &dom[..dom.len().min(300)]);
        assert!(dom.contains(&format!("data-drawn=\"{cards}\"")), "{sweep}: {}", &dom[..dom.len().min(300)]);
        let shown = without_scripts(&dom);
        for wrong in ["NaN", "Infinity", "undefined"] {
            assert!(!shown.contains(wrong), "{sweep}: a figure is {wrong}");
        }
    }
}

/// Returns a page without its scripts, whose code contains words that look like figures.
fn without_scripts(page: &str) -> String {
    let mut pieces = page.split("<script");
    let before = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(before, |shown, piece| shown + piece.split_once("</script>").map_or("", |(_, after)| after))
}

#[test]
fn figures_are_sought_in_what_is_shown() {
    let page = "<p>1 NaN</p><script id=\"a\">const x = NaN;</script><p>2</p><script>Infinity</script>";
    assert_eq!(without_scripts(page), "<p>1 NaN</p><p>2</p>");
}

#[test]
fn a_limited_sweep_says_what_is_missing_and_the_rest_follows() {
    let lab = Lab::new().file("small.toml", SMALL);
    let done = lab.run(&["sweep", "small.toml", "--out", "out", "--most", "5"]);
    assert_eq!(done.code, 3, "{}", done.err);
    assert!(done.err.contains("PARTIAL: 7 of 12 runs are missing"), "{}", done.err);
    assert_eq!(lab.json("out/summary.json")["partial"], true);
    let left = lab.run(&["sweep", "small.toml", "--out", "out", "--dry-run"]);
    assert_eq!((left.code, left.out.lines().count()), (0, 1 + 7), "{}", left.out);
    assert_eq!(lab.run(&["sweep", "small.toml", "--out", "out", "--quiet"]).code, 0);
    assert_eq!(lab.json("out/summary.json")["partial"], false);
    assert_eq!(lab.run(&["sweep", "small.toml", "--out", "other", "--dry-run"]).code, 0);
    assert!(!lab.path("other").exists());
}

#[test]
fn a_cell_that_fails_is_told_and_the_others_run() {
    // Two hosts do not have three senders; four hosts do.
    let sweep = "\
[scenario.topology]
kind = \"star\"
hosts = 4
[[scenario.workload]]
kind = \"incast\"
senders = 1
size = \"10KB\"
[[grid]]
key = \"topology.hosts\"
values = [2, 4]
[[grid]]
key = \"workload[0].senders\"
values = [1, 3]
";
    let lab = Lab::new().file("sweep.toml", sweep);
    let done = lab.run(&["sweep", "sweep.toml", "--out", "out"]);
    assert_eq!(done.code, 3, "{}", done.err);
    assert!(done.err.contains("failed: topology.hosts=2, workload[0].senders=3: "), "{}", done.err);
    let summary = lab.json("out/summary.json");
    let failed: Vec<_> =
        summary["cells"].as_array().unwrap().iter().map(|c| c["failed"].as_array().unwrap().len()).collect();
    assert_eq!(failed, [0, 1, 0, 0]);
    assert!(fs::read_to_string(lab.path("out/report.html")).unwrap().contains("1 failed"));
    // The text of the error and the number of failed flows are columns of their own.
    let table = fs::read(lab.path("out/runs.parquet")).unwrap();
    let has = |name: &[u8]| table.windows(name.len()).any(|part| part == name);
    assert!(has(b"error") && has(b"failed") && !has(b"failed_2"));
}

#[test]
fn flows_that_do_not_finish_are_told() {
    let sweep = SMALL.replace("seeds = 2", "seeds = 1\nset = { \"run.until\" = \"3us\" }");
    let lab = Lab::new().file("sweep.toml", sweep);
    let done = lab.run(&["sweep", "sweep.toml", "--out", "out"]);
    assert_eq!(done.code, 3, "{}", done.err);
    assert!(done.err.contains("unfinished: scheme=ecmp, workload[0].size=40KB: 4 flows"), "{}", done.err);
    // Failed runs are results, too, and are not repeated.
    let again = lab.run(&["sweep", "sweep.toml", "--out", "out"]);
    assert!(again.code == 3 && again.err.contains("6 of them finished before"), "{}", again.err);
}

/// Flows that did not finish are the slow ones: at 46 us ECMP has lost 32 of them, and what is left of it looks better than
/// RPS, which is better when all finish. At 60 us two of six permutations are not over.
#[test]
fn a_cell_is_not_judged_by_what_finished() {
    let sweep = |until: &str, metric: &str| {
        format!(
            "seeds = 6\n{until}[report]\nmetric = \"{metric}\"\n[scenario.topology]\nkind = \"leaf-spine\"\nleaves = 4\n\
             spines = 2\nhosts_per_leaf = 4\n[[scenario.workload]]\nkind = \"permutation\"\nsize = \"200KB\"\n\
             [[grid]]\nkey = \"scheme\"\nvalues = [\"ecmp\", \"rps\"]\n"
        )
    };
    let until = |time: &str| format!("set = {{ \"run.until\" = \"{time}\" }}\n");
    let lab = Lab::new()
        .file("whole.toml", sweep("", "slowdown_p99"))
        .file("cut.toml", sweep(&until("46us"), "slowdown_p99"))
        .file("jobs.toml", sweep(&until("60us"), "job_time_ns"));
    let whole = lab.run(&["sweep", "whole.toml"]);
    assert!(whole.out.contains("Slowdown P99: rps is best."), "{}", whole.out);
    for (name, figure) in [("cut", "slowdown_p99"), ("jobs", "job_time_ns")] {
        let done = lab.run(&["sweep", &format!("{name}.toml"), "--out", name]);
        assert!(done.out.contains("Not judged: scheme=ecmp (unfinished)."), "{}", done.out);
        let ecmp = done.out.lines().find(|line| line.contains("ecmp")).unwrap();
        assert!(ecmp.contains("unfinished") && !done.out.contains("is best"), "{}", done.out);
        let cells = &lab.json(&format!("{name}/summary.json"))["cells"];
        assert!(cells[0]["metrics"][figure].is_null() && cells[0]["metrics"]["flows"]["n"] == 6, "{cells}");
        assert!(cells[0]["withheld"].as_array().unwrap().contains(&figure.into()), "{cells}");
        assert_eq!(cells[1]["metrics"][figure]["n"], 6, "{cells}");
        let page = fs::read_to_string(lab.path(&format!("{name}/report.html"))).unwrap();
        assert!(page.contains("Not judged: scheme=ecmp (unfinished)."));
    }
    // What is best at one size of two is not best at both.
    let sizes = "[[grid]]\nkey = \"workload[0].size\"\nvalues = [\"100KB\", \"200KB\"]\n";
    fs::write(lab.path("sizes.toml"), sweep(&until("46us"), "slowdown_p99") + sizes).unwrap();
    let done = lab.run(&["sweep", "sizes.toml", "--out", "sizes"]);
    assert!(done.out.contains("Slowdown P99, in 1 of 2 settings: rps is best."), "{}", done.out);
    assert!(
        done.out.contains("Not judged: scheme=ecmp, workload[0].size=200KB (unfinished)."),
        "{}",
        done.out
    );
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let lab = Lab::new()
        .file("key.toml", SMALL.replace("\"workload[0].size\"", "\"workload[0].sise\""))
        .file("empty.toml", SMALL.replace("[\"ecmp\", \"rps\"]", "[]"))
        .file("file.toml", "scenario = \"gone.toml\"\n[[list]]\nname = \"a\"\n")
        .file("text.toml", "seeds = = 3");
    for (sweep, says) in [
        ("key.toml", &["unknown field `sise`", "did you mean `size`?"][..]),
        ("empty.toml", &["axis \"scheme\" has no values", "empty.toml:13"]),
        ("file.toml", &["cannot read gone.toml"]),
        ("text.toml", &["not valid TOML", "text.toml:1"]),
        ("none.toml", &["cannot read none.toml"]),
    ] {
        let done = lab.run(&["sweep", sweep]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{sweep}: {}", done.err);
        for text in says {
            assert!(done.err.contains(text), "{sweep} does not say {text}:\n{}", done.err);
        }
    }
    assert!(!lab.path("results").exists());
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let lab = Lab::new().file("small.toml", SMALL);
    fs::create_dir(lab.path("out")).unwrap();
    fs::write(lab.path("out/thesis.tex"), "years of work").unwrap();
    let done = lab.run(&["sweep", "small.toml", "--out", "out"]);
    assert!(done.code == 2 && done.err.contains("thesis.tex"), "{}", done.err);
    assert_eq!(names(&lab.path("out")), ["thesis.tex"]);
}

/// A run whose stored files are damaged is repeated.
#[test]
fn a_damaged_run_is_made_again() {
    let lab = Lab::new().file("small.toml", SMALL);
    assert_eq!(lab.run(&["sweep", "small.toml", "--out", "out", "--quiet"]).code, 0);
    let before = digest(&lab, "out");
    let runs = names(&lab.path("out/runs"));
    fs::write(lab.path("out/runs").join(&runs[0]).join("run.json"), "{\"key\": ").unwrap();
    fs::remove_file(lab.path("out/runs").join(&runs[1]).join("flows.parquet")).unwrap();
    let emptied = lab.path("out/runs").join(&runs[2]).join("flows.parquet");
    fs::write(&emptied, "").unwrap();
    let cut = lab.path("out/runs").join(&runs[3]).join("links.parquet");
    let half = fs::read(&cut).unwrap();
    fs::write(&cut, &half[..half.len() / 2]).unwrap();
    let done = lab.run(&["sweep", "small.toml", "--out", "out"]);
    assert!(done.code == 0 && done.err.contains("8 of them finished before"), "{}", done.err);
    assert_eq!(digest(&lab, "out"), before);
    assert!(fs::read(emptied).unwrap().ends_with(b"PAR1") && fs::read(cut).unwrap() == half);
}

/// Two hosts have one path between them, so that schemes and seeds make no difference.
#[test]
fn equal_results_are_level() {
    let sweep = "seeds = 2\n[scenario.topology]\nkind = \"star\"\nhosts = 2\n[[scenario.workload]]\nkind = \"ring-all-reduce\"\n\
                 size = \"10KB\"\n[[grid]]\nkey = \"scheme\"\nvalues = [\"ecmp\", \"rps\"]\n";
    let lab = Lab::new().file("level.toml", sweep);
    let done = lab.run(&["sweep", "level.toml"]);
    assert!(done.out.contains("Job time: ecmp is level with rps; none is better."), "{}", done.out);
}

const CLUSTER: &str = "\
schemes = [\"ecmp\", \"rps\"]

[[scenario.workload]]
kind = \"collective\"
operation = \"all-to-all\"
size = \"64KB\"

[[fabric]]
name = \"four spines\"
topology = { kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 4 }
rates = [\"100Gbps\", \"200Gbps\"]

[[fabric]]
name = \"one spine\"
topology = { kind = \"leaf-spine\", leaves = 2, spines = 1, hosts_per_leaf = 4, host_rate = \"100Gbps\" }

[[prices.of]]
rate = \"100Gbps\"
switch_port = 100
optics = 50

[[prices.of]]
rate = \"200Gbps\"
switch_port = 200
optics = 90
";

#[test]
fn a_plan_holds_time_against_cost_and_goes_on_where_it_was() {
    let lab = Lab::new().file("cluster.toml", CLUSTER);
    let listed = lab.run(&["plan", "cluster.toml", "--out", "p", "--dry-run"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    assert!(
        listed.out.contains("6 cells, 6 runs") && listed.out.contains("one spine, scheme=rps"),
        "{}",
        listed.out
    );
    assert_eq!(listed.out.lines().count(), 1 + 6, "{}", listed.out);
    let half = lab.run(&["plan", "cluster.toml", "--out", "p", "--most", "2"]);
    assert_eq!(half.code, 3, "{}", half.err);
    assert_eq!(lab.json("p/plan.json")["partial"], true);
    let before = finished(&lab, "p");
    assert_eq!(before.len(), 2);
    let done = lab.run(&["plan", "cluster.toml", "--out", "p"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("2 of them finished before"), "{}", done.err);
    let after = finished(&lab, "p");
    assert!(before.iter().all(|(name, time)| after.get(name) == Some(time)), "made again");
    let plan = lab.json("p/plan.json");
    let choices = plan["choices"].as_array().unwrap();
    assert_eq!((choices.len(), plan["partial"].as_bool()), (6, Some(false)));
    let of = |field: &str| -> Vec<f64> { choices.iter().map(|c| c[field].as_f64().unwrap()).collect() };
    let (costs, times) = (of("cost"), of("time_ns"));
    // 8 host ports, and 4 or 16 ports and transceivers between switches.
    assert_eq!(costs, [1_400.0, 1_400.0, 3_200.0, 3_200.0, 6_240.0, 6_240.0]);
    // The best choice at its cost is faster than all cheaper ones.
    let mut fastest = f64::INFINITY;
    for (choice, &time) in choices.iter().zip(&times) {
        assert_eq!(choice["best_of_its_cost"], time < fastest * 0.995, "{choice}");
        fastest = fastest.min(time);
    }
    assert_eq!(choices.last().map(|c| c["fabric"].as_str()), Some(Some("four spines at 200Gbps")));
    let page = fs::read_to_string(lab.path("p/plan.html")).unwrap();
    assert_eq!(page.matches("<circle").count(), 6);
    let bad =
        Lab::new().file("cluster.toml", CLUSTER.replace("rate = \"200Gbps\"\n", "rate = \"400Gbps\"\n"));
    let refused = bad.run(&["plan", "cluster.toml", "--out", "p"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("links of 200Gbps have no price"), "{}", refused.err);
}

/// Packets run for the best choices by flows only, which are known after the runs with flows.
#[test]
fn a_dry_run_of_a_plan_lists_what_would_run() {
    let text = format!("search = \"front\"\nfidelity = [\"flow\", \"packet\"]\n{CLUSTER}");
    let lab = Lab::new().file("cluster.toml", text);
    let listed = || lab.run(&["plan", "cluster.toml", "--out", "p", "--dry-run"]).out;
    let fresh = listed();
    let lines: Vec<&str> = fresh.lines().collect();
    assert_eq!(lines.len(), 1 + 6 + 1, "{fresh}");
    assert!(lines[1..7].iter().all(|line| line.contains("run.fidelity=flow")), "{fresh}");
    assert_eq!(lines[7], "6 follow, unless the results show that they cannot be the best");
    assert_eq!(lab.run(&["plan", "cluster.toml", "--out", "p", "--quiet"]).code, 0);
    let done = listed();
    let lines: Vec<&str> = done.lines().collect();
    assert_eq!(lines[0], "12 cells, 12 runs, 9 of them finished before");
    assert_eq!(lines[1..], ["3 left out, since they cannot be the best"]);
}
