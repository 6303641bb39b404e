use super::*;
use std::fs;

/// Folder of a run: one workload of flows whose P99 slowdown and job time are given, and dropped packets.
fn write(folder: &Path, name: &str, job_us: Option<f64>, slowdown: f64, drops: u64, switch: &str) {
    fs::create_dir_all(folder).unwrap();
    let jobs = serde_json::json!([{"group": "w", "time_ns": job_us.map(|us| us * 1e3)}]);
    let group = serde_json::json!({
        "group": "w", "finished": 2, "unfinished": 0,
        "fct_ns": {"mean": 1000.0 * slowdown, "p99": 2000.0 * slowdown},
        "slowdown": {"mean": slowdown / 2.0, "p99": slowdown},
        "dropped_packets": drops, "retransmitted_packets": 2 * drops,
    });
    let summary = serde_json::json!({
        "schema": "pathweave.summary", "schema_version": 2,
        "run": {"name": name, "version": "1", "digest": format!("{slowdown}{drops}")},
        "groups": [group], "overall": {}, "foreground": null,
        "jobs": {"by_group": if job_us.is_some() { jobs } else { serde_json::json!([]) }, "time_ns": null},
    });
    fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
    let scenario = format!(
        "name = '{name}'\n[scheme]\nname = 'rps'\n[switch]\nbuffer = '{switch}'\n[[workload]]\nsize = 7\n"
    );
    fs::write(folder.join("scenario.toml"), scenario).unwrap();
}

fn comparison(folder: &Path, runs: &[(&str, f64)], switch: &str) {
    let names: Vec<_> = runs.iter().map(|(name, _)| serde_json::json!({"run": {"name": name}})).collect();
    for (name, us) in runs {
        write(&folder.join(name), name, Some(*us), 2.0, 0, switch);
    }
    let summary = serde_json::json!({"schema": "pathweave.comparison", "schema_version": 2, "runs": names});
    fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
}

#[test]
fn each_label_has_a_format() {
    FIGURES.iter().for_each(|label| _ = format_of(label));
}

#[test]
fn two_runs_differ_as_computed_by_hand() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    write(&a, "x", Some(8.0), 2.0, 0, "8MB");
    write(&b, "x", Some(6.0), 3.0, 5, "16MB");
    let found = diff(&a, &b).unwrap();
    // From 8 us to 6 us is -25 %.
    assert_eq!(
        found.sentence,
        "B has a shorter job time: 6.000 us, A has 8.000 us (-25 %). Each run is of one seed, and `pathweave sweep` shows the \
         spread over seeds. One setting differs."
    );
    let setting = &found.settings[0];
    assert_eq!(
        (setting.field.as_str(), setting.a.as_deref(), setting.b.as_deref()),
        ("switch.buffer", Some("8MB"), Some("16MB"))
    );
    let row = |figure: &str| found.results.iter().find(|row| row.figure == figure).unwrap();
    assert_eq!(row("job_time_ns").change_ratio, Some(-0.25));
    assert_eq!((row("fct_mean_ns").a, row("fct_mean_ns").b), (Some(2000.0), Some(3000.0)));
    assert_eq!(row("fct_p99_ns").change_ratio, Some(0.5));
    assert_eq!(row("slowdown_p99").change_ratio, Some(0.5));
    // There is no ratio to zero.
    assert_eq!((row("retransmissions").b, row("retransmissions").change_ratio), (Some(10.0), None));
    assert!(!row("unfinished").differs());
    let csv = found.csv();
    assert_eq!(csv.lines().next(), Some("run,workload,figure,a,b,change_ratio"));
    assert!(
        csv.contains("x,w,job_time_ns,8000,6000,-0.25\n") && csv.contains("x,w,dropped_packets,0,5,\n"),
        "{csv}"
    );
    let table = found.table();
    assert!(table.contains("-25 %") && table.contains("0 to 5") && table.contains("+50 %"), "{table}");
    assert!(found.long_table().contains("Retransmissions"), "{}", found.long_table());
}

#[test]
fn a_run_against_itself_is_equal() {
    let home = tempfile::tempdir().unwrap();
    let a = home.path().join("a");
    write(&a, "x", None, 2.0, 1, "8MB");
    let found = diff(&a, &a).unwrap();
    assert_eq!(found.sentence, "The results are equal: so is each digest. No setting differs.");
}

#[test]
fn without_jobs_the_slowdown_decides() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    write(&a, "x", None, 2.0, 0, "8MB");
    write(&b, "y", None, 5.0, 0, "8MB");
    let found = diff(&a, &b).unwrap();
    assert_eq!(
        found.sentence,
        "B has a higher P99 slowdown: 5.000, A has 2.000 (2.5x). A P99 of 2 flows rests on the slowest, so another seed may \
         turn the order. No setting differs."
    );
    assert_eq!(found.results[0].run, "x to y");
}

#[test]
fn flows_that_finished_do_not_stand_for_all() {
    let home = tempfile::tempdir().unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| home.path().join(name));
    write(&a, "x", None, 2.0, 0, "8MB");
    for (folder, slowdown, place, left) in
        [(&b, 1.5, "/groups/0", "unfinished"), (&c, 1.4, "/run", "partial")]
    {
        write(folder, "x", None, slowdown, 0, "8MB");
        let path = folder.join("summary.json");
        let mut summary: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        summary.pointer_mut(place).unwrap()[left] = if left == "partial" { true.into() } else { 3.into() };
        fs::write(&path, summary.to_string()).unwrap();
    }
    let said = |a: &Path, b: &Path| diff(a, b).unwrap().sentence;
    for open in [&b, &c] {
        assert_eq!(said(&a, open), "B leaves work unfinished, A does not. No setting differs.");
        assert_eq!(said(open, &a), "A leaves work unfinished, B does not. No setting differs.");
    }
    let both = said(&b, &c);
    assert_eq!(
        both,
        "A and B leave work unfinished, so neither has a P99 slowdown of all flows. No setting differs."
    );
}

#[test]
fn comparisons_pair_by_name() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    comparison(&a, &[("ecmp", 10.0), ("weave", 4.0), ("rps", 5.0), ("old", 1.0)], "8MB");
    comparison(&b, &[("weave", 5.0), ("ecmp", 9.0), ("rps", 5.0)], "4MB");
    let found = diff(&a, &b).unwrap();
    assert_eq!(
        found.sentence,
        "B has a shorter job time in 1 of 3 runs (ecmp -10 %); B has a longer job time in 1 of 3 runs (weave +25 %); \
         1 of 3 is level (rps). Each run is of one seed, and `pathweave sweep` shows the spread over seeds. \
         One setting differs. Only A has old."
    );
    assert!(found.settings[0].runs.is_empty());
    // One of two runs is of the scheme of a single run.
    let single = home.path().join("single");
    write(&single, "scenario", Some(10.0), 2.0, 0, "8MB");
    let found = diff(&single, &a).unwrap();
    assert_eq!(
        found.sentence,
        "B has a shorter job time: 5.000 us, A has 10.00 us (-50 %). Each run is of one seed, and `pathweave sweep` shows the \
         spread over seeds. No setting differs. Only B has ecmp, weave, old."
    );
}

/// A comparison with --set has `rps*` where the other one has `rps`.
#[test]
fn a_scheme_with_other_settings_pairs_with_itself() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    comparison(&a, &[("ecmp", 10.0), ("rps", 5.0)], "8MB");
    comparison(&b, &[("ecmp*", 10.0), ("rps*", 6.0), ("rps", 4.0)], "8MB");
    let found = diff(&a, &b).unwrap();
    let time = |run: &str| {
        let row = found.results.iter().find(|row| row.run == run && row.label == "Job time").unwrap();
        (row.a.unwrap(), row.b.unwrap())
    };
    assert_eq!((time("ecmp"), time("rps")), ((10e3, 10e3), (5e3, 4e3)));
    assert_eq!(found.only_in_b, ["rps*"]);
}

#[test]
fn cells_of_sweeps_pair_by_label() {
    let home = tempfile::tempdir().unwrap();
    let sweep = |name: &str, mean: f64| {
        let folder = home.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        let cell = |label: &str, mean: f64| serde_json::json!({"label": label, "runs": ["k"], "metrics": {"slowdown_p99": {"mean": mean}}});
        let cells = [cell("load 0.5", 2.0), cell("load 0.8", mean)];
        let summary = serde_json::json!({"schema": "pathweave.sweep", "schema_version": 1, "engine": name, "cells": cells});
        fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
        folder
    };
    let found = diff(&sweep("1", 4.0), &sweep("2", 3.0)).unwrap();
    assert_eq!(
        found.sentence,
        "B has a lower P99 slowdown in 1 of 2 runs (load 0.8 -25 %); 1 of 2 is level (load 0.5). No setting differs. \
         Version 1 made A and version 2 made B."
    );
}

#[test]
fn folders_without_results_are_errors() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    let error = |a: &Path, b: &Path| diff(a, b).unwrap_err().to_string();
    write(&a, "x", None, 2.0, 0, "8MB");
    assert!(error(&a, &b).contains("b: it has no results: there is no such folder; name a folder that"));
    let inside = error(home.path(), &a);
    assert!(inside.contains("there is no summary.json") && inside.contains("; here: "), "{inside}");
    fs::create_dir(&b).unwrap();
    fs::write(b.join("summary.json"), "{}").unwrap();
    assert!(error(&a, &b).contains("`schema` is \"\"; expected \"pathweave.summary\""), "{}", error(&a, &b));
    fs::write(b.join("summary.json"), "{").unwrap();
    assert!(error(&a, &b).contains("summary.json: the summary is not JSON"));
    fs::write(b.join("summary.json"), "{\"schema\": \"pathweave.summary\", \"schema_version\": 9}").unwrap();
    assert!(error(&a, &b).contains("version 9, this program reads up to 2"));
    let (c, d) = (home.path().join("c"), home.path().join("d"));
    comparison(&c, &[("p", 1.0), ("q", 1.0)], "8MB");
    comparison(&d, &[("r", 1.0), ("s", 1.0)], "8MB");
    assert_eq!(error(&c, &d), "no run is in both folders: A has p, q; B has r, s");
}

#[test]
fn a_table_fits_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let runs: Vec<(String, f64)> =
        (0..40).map(|n| (format!("a-scheme-of-a-very-long-name-{n:02}"), 5_000.0)).collect();
    let named: Vec<(&str, f64)> = runs.iter().map(|(name, us)| (name.as_str(), *us)).collect();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    comparison(&a, &named, "8MB");
    comparison(&b, &named, "9MB");
    for (name, _) in &named {
        write(&b.join(name), name, Some(9_999.0), 7.5, 123_456_789, "9MB");
    }
    let text = diff(&a, &b).unwrap().table();
    assert!(text.lines().count() < 34 && text.contains("and 26 more rows"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// Two of four flows failed under B, which the fastest two survived.
#[test]
fn flows_that_failed_are_shown_and_flatter_nobody() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| home.path().join(name));
    for (folder, slowdown, failed) in [(&a, 2.0, 0), (&b, 1.0, 2)] {
        write(folder, "x", None, slowdown, 0, "8MB");
        change_summary(folder, |summary| summary["groups"][0]["failed"] = failed.into());
    }
    let found = diff(&a, &b).unwrap();
    assert_eq!(found.sentence, "B leaves work unfinished, A does not. No setting differs.");
    let row = |label: &str| found.results.iter().find(|row| row.label == label).unwrap();
    assert_eq!(
        (row("Failed").a, row("Failed").b, row("Failed").better),
        (Some(0.0), Some(2.0), Better::Lower)
    );
    let has_line = |text: String, words: &[&str]| {
        text.lines().any(|line| words.iter().all(|word| line.split_whitespace().any(|part| part == *word)))
    };
    for label in ["Slowdown P99", "Slowdown mean", "FCT P99", "FCT mean"] {
        assert_eq!((row(label).better, row(label).change_ratio), (Better::Neither, None), "{label}");
    }
    // The slowdown of the two that finished is half of that of four, which is no gain.
    assert!(!found.table().contains('%') && !found.long_table().contains('%'), "{}", found.table());
    assert!(has_line(found.long_table(), &["Slowdown", "P99", "2.000", "1.000", "-"]));
    assert_eq!(row("Dropped packets").better, Better::Lower);
    assert!(has_line(found.long_table(), &["Failed", "0", "2"]), "{}", found.long_table());
    assert!(found.table().contains("Failed"), "{}", found.table());
    // With all flows, the lower slowdown is better.
    change_summary(&b, |summary| summary["groups"][0]["failed"] = 0.into());
    let whole = diff(&a, &b).unwrap();
    let slowdown = whole.results.iter().find(|row| row.label == "Slowdown P99").unwrap();
    assert_eq!(slowdown.better, Better::Lower);
}

#[test]
fn parts_of_the_calling_program_differ() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| home.path().join(name));
    write(&a, "x", None, 2.0, 0, "8MB");
    write(&b, "x", None, 3.0, 0, "8MB");
    let picker = serde_json::json!([{"part": "picker", "name": "RoundRobin"}]);
    change_summary(&b, |summary| summary["run"]["supplied"] = picker);
    let found = diff(&a, &b).unwrap();
    assert!(found.sentence.ends_with("One setting differs."), "{}", found.sentence);
    let setting = &found.settings[0];
    assert_eq!(
        (setting.field.as_str(), setting.a.as_deref(), setting.b.as_deref()),
        ("picker of the program", None, Some("RoundRobin"))
    );
}

fn change_summary(folder: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let path = folder.join("summary.json");
    let mut summary = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut summary);
    fs::write(&path, summary.to_string()).unwrap();
}
