//! `pathweave paper` from the outside.

use std::path::Path;
use std::process::Stdio;

use crate::common::{Done, Lab, names};

fn tiny() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/papers").display().to_string()
}

fn run(lab: &Lab, args: &[&str]) -> Done {
    let papers = tiny();
    let all: Vec<&str> = ["paper"].iter().chain(args).copied().chain(["--papers", &papers]).collect();
    lab.run(&all)
}

#[test]
fn json_is_the_claims_and_nothing_else() {
    let lab = Lab::new();
    let done = run(&lab, &["tiny", "--json", "--out", "out"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 1);
    let claims = value["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 5);
    for claim in claims {
        let keys: Vec<_> = claim.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = ["figure", "claim", "published", "variant", "measured", "state", "why"];
        expected.sort_unstable();
        let mut keys = keys;
        keys.sort_unstable();
        assert_eq!(keys, expected);
    }
    let brief: Vec<_> =
        claims.iter().map(|c| (c["variant"].as_str().unwrap(), c["state"].as_str().unwrap())).collect();
    assert_eq!(
        brief,
        [
            ("as printed", "agrees"),
            ("ours", "agrees"),
            ("as printed", "contradicts"),
            ("ours", "contradicts"),
            ("ours", "agrees")
        ]
    );
    assert_eq!(claims[2]["why"], "there is one path (shown by 1)");
    assert!(done.err.contains("12 runs in"), "{}", done.err);
}

#[test]
fn a_folder_with_page_pictures_and_data_appears_whole() {
    let lab = Lab::new();
    let done = run(&lab, &["tiny", "--out", "out"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("as printed") && done.out.contains("contradicts"), "{}", done.out);
    assert_eq!(names(&lab.path("out")), ["tiny"]);
    let files = [
        ".lock",
        "claims.json",
        "figure-1-numbers.csv",
        "figure-1.png",
        "figure-1.svg",
        "index.html",
        "measures.csv",
        "runs",
        "samples.csv",
        "traces.csv",
    ];
    assert_eq!(names(&lab.path("out/tiny")), files);
    let page = std::fs::read_to_string(lab.path("out/tiny/index.html")).unwrap();
    for text in ["A paper of two pages", "Smaller messages.", "pathweave paper tiny --quick", "<svg"] {
        assert!(page.contains(text), "{text}");
    }
    let png = std::fs::read(lab.path("out/tiny/figure-1.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    // Twelve runs of two measures, and the state of one scheme, below a header line.
    let csv = std::fs::read_to_string(lab.path("out/tiny/measures.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 24 + 1);
    for file in ["measures.csv", "samples.csv", "traces.csv"] {
        let csv = std::fs::read_to_string(lab.path("out/tiny").join(file)).unwrap();
        assert!(csv.lines().next().unwrap().ends_with(",unit"), "{file}: {csv}");
    }
    // The figure has the runs; the state belongs to a table without a picture.
    let numbers = std::fs::read_to_string(lab.path("out/tiny/figure-1-numbers.csv")).unwrap();
    assert_eq!(numbers.lines().count(), 1 + 24);
    assert!(csv.starts_with(&numbers), "{numbers}");
    links_lead_to_files(&lab, "out/tiny", &page);
}

/// Checks that each file that a page links is beside it, and that each picture has links to three.
fn links_lead_to_files(lab: &Lab, folder: &str, page: &str) {
    let links: Vec<&str> =
        page.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let files: Vec<&&str> =
        links.iter().filter(|link| !link.contains(':') && !link.starts_with('#')).collect();
    for file in &files {
        assert!(lab.path(&format!("{folder}/{file}")).is_file(), "{file}");
    }
    for kind in [".svg", ".png", ".csv"] {
        assert!(files.iter().any(|file| file.ends_with(kind)), "{kind}: {files:?}");
    }
}

/// A row with jobs and one whose flows arrive over time. The job time of the page is that of a run.
#[test]
fn rows_with_jobs_are_judged_by_job_time_and_others_by_slowdown() {
    let scenario = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[[workload]]\n\
                    kind = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"ring\"\nsize = \"100KB\"\n";
    let lab = Lab::new().file("ring.toml", scenario);
    let done = run(&lab, &["jobs", "--out", "out"]);
    assert_eq!(done.code, 0, "{}", done.err);
    for text in [
        "By job time, geometric mean over 1 row with jobs",
        "By P99 slowdown, geometric mean over 1 row without jobs",
    ] {
        assert!(done.out.contains(text), "{text}: {}", done.out);
    }
    let files = names(&lab.path("out/jobs"));
    for file in ["rows-by-jobs.svg", "rows-by-jobs.png", "rows-by-jobs.csv", "by-jobs.csv"] {
        assert!(files.iter().any(|name| name == file), "{file}: {files:?}");
    }
    // One row of one fabric, and that row again over all fabrics, for each scheme.
    let by_jobs = std::fs::read_to_string(lab.path("out/jobs/by-jobs.csv")).unwrap();
    assert_eq!(by_jobs.lines().filter(|line| line.contains(",1,0,")).count(), 4, "{by_jobs}");
    assert_eq!(lab.run(&["run", "ring.toml", "--set", "scheme=rps", "--seed", "1", "--out", "run"]).code, 0);
    let time = lab.json("run/summary.json")["jobs"]["time_ns"].as_f64().unwrap();
    let measures = std::fs::read_to_string(lab.path("out/jobs/measures.csv")).unwrap();
    let line =
        measures.lines().find(|line| line.contains(",ring,rps,") && line.contains(",job time,")).unwrap();
    assert!(line.contains(&format!(",{time},")) && line.ends_with(",ns"), "{line}: {time}");
    let rows = std::fs::read_to_string(lab.path("out/jobs/rows.csv")).unwrap();
    assert!(rows.lines().nth(1).unwrap().contains("by job time, "), "{rows}");
    assert!(rows.lines().nth(2).unwrap().contains("by P99 slowdown, "), "{rows}");
}

#[test]
fn results_do_not_depend_on_jobs_and_replace_older_ones() {
    let lab = Lab::new();
    let measures = |jobs: &str| {
        let words =
            ["tiny", "--figure", "1", "--jobs", jobs, "--out", "out", "--seeds", "1", "--quiet", "--fresh"];
        let done = run(&lab, &words);
        assert_eq!((done.code, done.err.as_str(), done.out.as_str()), (0, "", "page: out/tiny/index.html\n"));
        std::fs::read_to_string(lab.path("out/tiny/measures.csv")).unwrap()
    };
    assert_eq!(measures("1"), measures("3"));
    assert_eq!(names(&lab.path("out")), ["tiny"]);
}

#[test]
fn unknown_names_list_the_known_ones() {
    let lab = Lab::new();
    let done = run(&lab, &["tiny", "--figure", "7"]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    assert!(
        done.err.contains("no figure of tiny is named \"7\"") && done.err.contains("there are: 1, 2"),
        "{}",
        done.err
    );
    let done = run(&lab, &["tinny"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("did you mean \"tiny\"?"), "{}", done.err);
    assert!(lab.names().is_empty());
}

#[test]
fn a_record_is_kept_whole_and_figures_are_added_to_it() {
    let lab = Lab::new();
    let figures = |lab: &Lab| -> Vec<String> {
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(lab.path("record.json")).unwrap()).unwrap();
        record["figures"].as_object().unwrap().keys().cloned().collect()
    };
    for (figure, expected) in [("2", &["2"][..]), ("1", &["1", "2"])] {
        let done = run(&lab, &["tiny", "--figure", figure, "--out", "out", "--record", "record.json"]);
        assert_eq!(done.code, 0, "{}", done.err);
        assert_eq!(figures(&lab), expected);
    }
    // Inputs and outputs are checked before anything runs.
    std::fs::write(lab.path("other.json"), "{\"mine\": 1}").unwrap();
    for (file, why) in
        [("other.json", "no record of a paper's results"), ("gone/record.json", "there is no folder gone")]
    {
        let done = run(&lab, &["tiny", "--out", "other", "--record", file]);
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        assert!(
            done.err.contains(file) && done.err.contains(why) && !done.err.contains("runs in"),
            "{}",
            done.err
        );
    }
    assert_eq!(std::fs::read_to_string(lab.path("other.json")).unwrap(), "{\"mine\": 1}");
    assert!(!lab.names().iter().any(|name| name.contains("partial")), "{:?}", lab.names());
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("out/tiny")).unwrap();
    std::fs::write(lab.path("out/tiny/thesis.doc"), "years").unwrap();
    let done = run(&lab, &["tiny", "--out", "out"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("thesis.doc"), "{}", done.err);
    assert_eq!(names(&lab.path("out")), ["tiny"]);
}

#[test]
fn a_heat_map_has_a_table_a_picture_and_files_for_programs() {
    let lab = Lab::new();
    let done = run(&lab, &["map", "--out", "out"]);
    assert_eq!(done.code, 0, "{}", done.err);
    // Two schemes in two rows, and a third one in the first.
    assert!(done.err.contains("5 runs in"), "{}", done.err);
    assert!(done.out.contains("best in 1 of 1 row,"), "{}", done.out);
    assert!(done.out.contains("not in spines dead small"), "{}", done.out);
    let expected = [
        ".lock",
        "claims.json",
        "index.html",
        "measures.csv",
        "rows-numbers.csv",
        "rows.csv",
        "rows.png",
        "rows.svg",
        "runs",
        "samples.csv",
        "scores.csv",
        "traces.csv",
    ];
    assert_eq!(names(&lab.path("out/map")), expected);
    let page = std::fs::read_to_string(lab.path("out/map/index.html")).unwrap();
    for text in ["class=\"map\"", "<b>1.", "8 left", "prefers-color-scheme:dark", "Broken"] {
        assert!(page.contains(text), "{text}");
    }
    links_lead_to_files(&lab, "out/map", &page);
    let rows = std::fs::read_to_string(lab.path("out/map/rows.csv")).unwrap();
    assert_eq!(rows.lines().nth(2), Some("rows,spines dead small,Broken,held-out,,two-spines dead small,,"));
    let scores = std::fs::read_to_string(lab.path("out/map/scores.csv")).unwrap();
    assert_eq!(scores.lines().count(), 1 + 3);
}

#[test]
fn rows_and_columns_can_be_chosen() {
    let lab = Lab::new();
    let done = run(&lab, &["map", "--panel", "Whole", "--series", "rps,drill", "--json", "--out", "out"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("2 runs in"), "{}", done.err);
    // Only claims whose rows and columns were selected. A large claim runs at full size only.
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert!(
        value["claims"].as_array().unwrap().iter().all(|claim| claim["state"] == "undecided"),
        "{}",
        done.out
    );
    let page = std::fs::read_to_string(lab.path("out/map/index.html")).unwrap();
    assert!(page.contains("A part of the figures ran alone, which gives no verdict."));
    let claims: Vec<_> =
        value["claims"].as_array().unwrap().iter().map(|claim| claim["claim"].as_str().unwrap()).collect();
    assert_eq!(
        claims,
        ["No flow is left", "rps within a tenth of the best", "rps better than every other by half"]
    );
    let done = run(&lab, &["map", "--panel", "spines smal"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("did you mean \"spines small\""), "{}", done.err);
    let done = lab.run(&["paper", "dlbf", "--figure", "1a", "--panel", "foo"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("--panel: figure 1a has no panels; leave --panel out"), "{}", done.err);
}

/// Returns the runs stored below a paper's results.
fn kept(lab: &Lab, out: &str) -> Vec<String> {
    let runs = lab.path(out).join("runs");
    if !runs.exists() {
        return Vec::new();
    }
    names(&runs).into_iter().filter(|name| name.starts_with("run=")).collect()
}

#[test]
fn finished_runs_are_not_made_again_unless_asked_for() {
    let lab = Lab::new();
    let made = |args: &[&str]| {
        let all: Vec<&str> = ["tiny", "--figure", "1", "--out", "out"].iter().chain(args).copied().collect();
        let done = run(&lab, &all);
        assert_eq!(done.code, 0, "{}", done.err);
        done.err
    };
    let first = made(&["--seeds", "1"]);
    assert!(first.contains("6 runs in") && !first.contains("finished before"), "{first}");
    let again = made(&["--seeds", "1"]);
    assert!(again.contains("6 runs, 6 of them finished before") && again.contains("0 runs in"), "{again}");
    // Another seed adds six runs. `--fresh` repeats all.
    let more = made(&["--seeds", "2"]);
    assert!(more.contains("12 runs, 6 of them finished before") && more.contains("6 runs in"), "{more}");
    let fresh = made(&["--seeds", "2", "--fresh"]);
    assert!(!fresh.contains("finished before") && fresh.contains("12 runs in"), "{fresh}");
    assert_eq!(kept(&lab, "out/tiny").len(), 12);
}

/// After a kill without cleanup, finished runs are kept, and a new call gives the same page.
#[test]
fn a_killed_paper_goes_on_where_it_was() {
    let lab = Lab::new();
    let papers = tiny();
    let words =
        ["paper", "tiny", "--figure", "1", "--seeds", "60", "--jobs", "1", "--quiet", "--papers", &papers];
    let mut program = lab.command(&[&words[..], &["--out", "killed"]].concat());
    let mut program = program.stderr(Stdio::null()).spawn().unwrap();
    crate::common::half_way(&mut program, || kept(&lab, "killed/tiny").len() >= 20);
    program.kill().unwrap();
    program.wait().unwrap();
    let before = kept(&lab, "killed/tiny").len();
    assert!((20..360).contains(&before), "{before} runs");
    assert!(!lab.path("killed/tiny/index.html").exists());

    let done = run(&lab, &["tiny", "--figure", "1", "--seeds", "60", "--out", "killed"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains(&format!("360 runs, {before} of them finished before")), "{}", done.err);
    assert_eq!(lab.run(&[&words[..], &["--out", "whole"]].concat()).code, 0);
    for file in ["measures.csv", "samples.csv", "traces.csv", "claims.json", "figure-1.svg"] {
        let text = |out: &str| std::fs::read_to_string(lab.path(&format!("{out}/tiny/{file}"))).unwrap();
        assert!(text("killed") == text("whole"), "{file}");
    }
}

#[test]
fn the_overview_has_every_published_figure() {
    let lab = Lab::new();
    let done = lab.run(&["paper", "overview", "--out", "out"]);
    assert_eq!((done.code, done.out.as_str()), (0, "page: out/overview.html\n"), "{}", done.err);
    let page = std::fs::read_to_string(lab.path("out/overview.html")).unwrap();
    for text in [
        "Of 46 figures and tables",
        "Figure 8: Completion times: rails, web search",
        "no counterpart",
        "class=\"dot\"",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

/// The built-in papers: the cheapest figure with runs, from start to end.
#[test]
fn udmp_is_part_of_the_program() {
    let lab = Lab::new();
    let list = lab.run(&["paper", "list"]);
    assert!(list.code == 0 && list.out.contains("udmp") && list.out.contains("table-1"), "{}", list.err);
    let done =
        lab.run(&["paper", "udmp", "--figure", "4a", "--quick", "--seeds", "1", "--json", "--out", "out"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(value["claims"].as_array().unwrap().len(), 12);
    assert!(value["claims"].as_array().unwrap().iter().all(|claim| claim["measured"] != "none"));
}
