//! Checks that `docs/results.md` matches the code. `UPDATE_DOCS=1` rewrites its generated parts.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use crate::support::{Shape, run};
use pathweave_records::*;
use pathweave_report::*;

fn files() -> String {
    let mut out = String::from("| File | What it holds |\n|---|---|\n");
    for (name, meaning) in FILES {
        writeln!(out, "| `{name}` | {meaning} |").unwrap();
    }
    out
}

fn table<R>(file: &str, columns: &[Column<R>]) -> String {
    let mut out = format!("### {file}\n\n| Column | Type | Unit | Meaning |\n|---|---|---|---|\n");
    for c in columns {
        let nullable = if c.nullable { ", may be null" } else { "" };
        let type_name = c.get.type_name();
        writeln!(out, "| `{}` | {type_name}{nullable} | {} | {} |", c.name, c.unit(), c.meaning).unwrap();
    }
    out + "\n"
}

fn words(title: &str, words: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let mut out = format!("{title}\n\n| Word | Meaning |\n|---|---|\n");
    for (name, meaning) in words {
        writeln!(out, "| `{name}` | {meaning} |").unwrap();
    }
    out + "\n"
}

fn series_kinds() -> String {
    let mut out = String::from("`kind`:\n\n| Word | Of | Without a sample | Meaning |\n|---|---|---|---|\n");
    for kind in SeriesKind::ALL {
        let (span, missing) = (kind.span(), kind.missing());
        writeln!(out, "| `{}` | {span} | {missing} | {} |", kind.name(), kind.meaning()).unwrap();
    }
    let spans = words("`Of`:", Span::ALL.iter().map(|s| (s.name(), s.meaning())));
    let missing = words("`Without a sample`:", Missing::ALL.iter().map(|m| (m.name(), m.meaning())));
    out + "\n" + &spans + &missing
}

fn columns() -> String {
    let parts = [
        table("flows.parquet", FLOWS),
        words("`status`:", FlowStatus::ALL.iter().map(|s| (s.name(), s.meaning()))),
        table("jobs.parquet", JOBS),
        table("activities.parquet", ACTIVITIES),
        table("collectives.parquet", COLLECTIVES),
        table("layers.parquet", LAYERS),
        words("`parallelism`:", Parallelism::ALL.iter().map(|p| (p.name(), p.meaning()))),
        table("critical.parquet", CRITICAL),
        words("`kind`:", StepKind::ALL.iter().map(|k| (k.name(), k.meaning()))),
        table("waits.parquet", WAITS),
        words("`kind`:", WaitKind::ALL.iter().map(|k| (k.name(), k.meaning()))),
        table("series.parquet", SERIES),
        series_kinds(),
        table("events.parquet", EVENTS),
        words("`kind`:", EventKind::ALL.iter().map(|k| (k.name(), k.meaning()))),
        words("`reason`:", DropReason::ALL.iter().map(|r| (r.name(), r.meaning()))),
        table("links.parquet", LINKS),
    ];
    parts.concat().trim_end().to_owned() + "\n"
}

fn summary() -> String {
    let mut out = String::new();
    for object in SUMMARY {
        writeln!(
            out,
            "### `{}`\n\n{}\n\n| Field | Type | Meaning |\n|---|---|---|",
            object.path, object.meaning
        )
        .unwrap();
        for f in object.fields {
            writeln!(out, "| `{}` | {} | {} |", f.name, f.kind, f.meaning).unwrap();
        }
        out.push('\n');
    }
    out + words("`run.ended`:", EndReason::ALL.iter().map(|r| (r.name(), r.meaning()))).trim_end() + "\n"
}

#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.md");
    let old = std::fs::read_to_string(&path).unwrap();
    let mut new = old.clone();
    for (part, text) in [("files", files()), ("columns", columns()), ("summary", summary())] {
        let (begin, end) =
            (format!("<!-- begin generated: {part} -->\n"), format!("<!-- end generated: {part} -->"));
        let (before, rest) = new.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
        new = format!("{before}{begin}{text}{end}{after}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(
            old == new,
            "docs/results.md is stale: UPDATE_DOCS=1 cargo test -p pathweave-report --test all docs"
        );
    }
}

#[test]
fn the_summary_has_exactly_the_documented_fields() {
    let mut run = run("small", Shape::SMALL);
    run.middleboxes.push(MiddleboxTotals::default());
    run.departures = Departures { gaps: vec![Gaps::default()], lengths: vec![PathLength::default()] };
    run.jobs[0].training =
        Some(TrainingRecord { gpus: 2, tokens: 1, scale_ppb: 1, ..TrainingRecord::default() });
    let json = serde_json::to_value(Summary::from_run(&run)).unwrap();
    let keys = |value: &serde_json::Value| -> BTreeSet<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    let objects = [
        ("(top)", &json),
        ("run", &json["run"]),
        ("overall, foreground, groups[]", &json["groups"][0]),
        ("by_size[]", &json["overall"]["by_size"][0]),
        ("fabric", &json["fabric"]),
        ("fabric.balancing", &json["fabric"]["balancing"]),
        ("fabric.tiers[]", &json["fabric"]["tiers"][0]),
        ("jobs", &json["jobs"]),
        ("jobs.by_group[]", &json["jobs"]["by_group"][0]),
        ("jobs.longest[]", &json["jobs"]["longest"][0]),
        ("iterations[]", &json["iterations"][0]),
        ("training[]", &json["training"][0]),
        ("critical_paths[]", &json["critical_paths"][0]),
        ("middleboxes[]", &json["middleboxes"][0]),
        ("departures", &json["departures"]),
        ("departures.gaps[]", &json["departures"]["gaps"][0]),
        ("departures.lengths[]", &json["departures"]["lengths"][0]),
        ("distribution", &json["overall"]["fct_ns"]),
    ];
    assert_eq!(objects.len(), SUMMARY.len());
    for ((path, value), object) in objects.into_iter().zip(SUMMARY) {
        assert_eq!(path, object.path);
        let documented: BTreeSet<String> = object.fields.iter().map(|f| f.name.to_owned()).collect();
        assert_eq!(keys(value), documented, "{path}");
    }
    let mut of_group = keys(&json["groups"][0]);
    let own = ["group", "role", "schemes", "policy_rate_bps", "held_bytes"];
    of_group.retain(|k| !own.contains(&k.as_str()));
    assert_eq!(keys(&json["overall"]), of_group);
}
