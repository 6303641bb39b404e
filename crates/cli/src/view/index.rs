//! Index of a folder of results: a row for each result, and the runs in progress.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pathweave_report::scheme_colours;
use serde::Serialize;
use serde_json::{Value, json};

use super::scan::{Place, scan};

/// Largest size of a result file. Larger files are not written by pathweave.
const MOST_BYTES: u64 = 64 << 20;

/// Index that caches each file until it changes.
pub(super) struct Index {
    title: String,
    known: BTreeMap<PathBuf, (Option<SystemTime>, u64, Option<Row>)>,
}

/// Row of the index for a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Row {
    /// Folder of the result, relative to the served folder.
    path: String,
    /// Kind: "run", "comparison", "sweep" or "page".
    kind: &'static str,
    name: String,
    schemes: Vec<String>,
    seed: Option<u64>,
    /// Time of writing, in seconds since 1970.
    modified_unix_s: u64,
    flows: Option<u64>,
    /// Slowdown of finished flows. For a comparison, that of the best run.
    slowdown_mean: Option<f64>,
    slowdown_p99: Option<f64>,
    /// Description of the end.
    state: String,
    /// True if there were no failures.
    good: bool,
    /// Page to open, relative to the served folder.
    page: Option<String>,
}

impl Index {
    pub(super) fn of(root: &Path) -> Self {
        let title = root.file_name().map_or("/".to_owned(), |name| name.to_string_lossy().into_owned());
        Index { title, known: BTreeMap::new() }
    }

    /// Returns the present index as JSON.
    pub(super) fn json(&mut self, root: &Path) -> String {
        let (places, all) = scan(root);
        let mut before = std::mem::take(&mut self.known);
        let (mut rows, mut live) = (Vec::new(), Vec::new());
        for place in places {
            match place {
                Place::Progress(path) => live.extend(progress(root, &path)),
                Place::Summary(path) | Place::Page(path) => {
                    let Ok(found) = fs::metadata(&path) else { continue };
                    let stamp = (found.modified().ok(), found.len());
                    let row = match before.remove(&path) {
                        Some((modified, bytes, row)) if (modified, bytes) == stamp => row,
                        _ => row(root, &path, &found),
                    };
                    rows.extend(row.clone());
                    self.known.insert(path, (stamp.0, stamp.1, row));
                }
            }
        }
        json!({ "title": self.title, "rows": rows, "live": live, "all": all }).to_string()
    }
}

/// Returns the progress of runs that are in progress, or were when their process ended.
fn progress(root: &Path, path: &Path) -> Option<Value> {
    let mut told: Value = read(path, fs::metadata(path).ok()?.len())?;
    if told["schema"] != "pathweave.progress" {
        return None;
    }
    let folder = below(root, path.parent()?)?;
    // The folder ".NAME.partial-PID" becomes NAME.
    let target = match folder.rsplit_once('/').map_or(("", folder.as_str()), |(above, name)| (above, name)) {
        (above, name) if name.starts_with('.') => {
            let name = name.trim_start_matches('.').split(".partial-").next()?;
            if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }
        }
        _ => folder.clone(),
    };
    told["alive"] = Value::from(told["process"].as_u64().is_some_and(lives));
    told["path"] = Value::from(target);
    let names: Vec<String> = told["runs"].as_array().into_iter().flatten().map(name_of).collect();
    let colours = scheme_colours(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for (run, colour) in told["runs"].as_array_mut().into_iter().flatten().zip(colours) {
        run["colour"] = Value::from(colour);
    }
    Some(told)
}

fn name_of(run: &Value) -> String {
    run["name"].as_str().unwrap_or_default().to_owned()
}

fn lives(process: u64) -> bool {
    let number = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    // A process of another user counts as alive, too.
    number.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

fn read(path: &Path, bytes: u64) -> Option<Value> {
    let text = (bytes <= MOST_BYTES).then(|| fs::read(path).ok())??;
    serde_json::from_slice(&text).ok()
}

fn below(root: &Path, path: &Path) -> Option<String> {
    let names = path.strip_prefix(root).ok()?.iter().map(|name| name.to_string_lossy().into_owned());
    Some(names.collect::<Vec<_>>().join("/"))
}

fn row(root: &Path, path: &Path, found: &Metadata) -> Option<Row> {
    let folder = path.parent()?;
    let modified = found.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let place = below(root, folder)?;
    let name = folder.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let page = |file: &str| {
        let page = if place.is_empty() { file.to_owned() } else { format!("{place}/{file}") };
        folder.join(file).is_file().then_some(page)
    };
    let row = Row { path: place.clone(), name, modified_unix_s: modified?.as_secs(), ..Row::default() };
    if path.ends_with("index.html") {
        return Some(Row {
            kind: "page",
            state: "page".to_owned(),
            good: true,
            page: page("index.html"),
            ..row
        });
    }
    let summary = read(path, found.len())?;
    let row = Row { page: page("report.html"), ..row };
    match summary["schema"].as_str()? {
        "pathweave.summary" => Some(of_run(row, &summary)),
        "pathweave.comparison" => Some(of_comparison(row, &summary)),
        "pathweave.sweep" => {
            let kind = if folder.join("plan.json").is_file() { "plan" } else { "sweep" };
            Some(Row { kind, ..of_sweep(row, &summary) })
        }
        _ => None,
    }
}

fn of_run(row: Row, summary: &Value) -> Row {
    let run = &summary["run"];
    let flows = if summary["foreground"].is_object() { &summary["foreground"] } else { &summary["overall"] };
    let (count, finished) = (flows["count"].as_u64(), flows["finished"].as_u64());
    let open = count.unwrap_or(0).saturating_sub(finished.unwrap_or(0));
    let ended = run["ended"].as_str().unwrap_or("unknown").replace('_', " ");
    let groups = summary["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let mut schemes: Vec<String> = Vec::new();
    for scheme in groups.iter().filter_map(|group| group["schemes"].as_array()).flatten() {
        let scheme = scheme.as_str().unwrap_or_default().to_owned();
        if !schemes.contains(&scheme) {
            schemes.push(scheme);
        }
    }
    let of_finished = |figure: &str| flows["slowdown"][figure].as_f64().filter(|_| finished.unwrap_or(0) > 0);
    Row {
        kind: "run",
        name: run["name"].as_str().unwrap_or(&row.name).to_owned(),
        schemes,
        seed: run["seed"].as_u64(),
        flows: count,
        slowdown_mean: of_finished("mean"),
        slowdown_p99: of_finished("p99"),
        state: match open {
            0 => ended,
            1 => format!("{ended}, 1 flow unfinished"),
            open => format!("{ended}, {open} flows unfinished"),
        },
        good: open == 0 && run["partial"] == Value::Bool(false),
        ..row
    }
}

fn of_comparison(row: Row, summary: &Value) -> Row {
    let none = Vec::new();
    let all = summary["runs"].as_array().unwrap_or(&none);
    let runs: Vec<Row> = all.iter().map(|run| of_run(Row::default(), run)).collect();
    // The figures of one run: those of different runs, or of the flows that an unfinished one let through, are of none.
    let tail = |run: &&Row| run.slowdown_p99.unwrap_or(f64::INFINITY);
    let best = runs.iter().filter(|run| run.good).min_by(|a, b| tail(a).total_cmp(&tail(b)));
    let bad = runs.iter().find(|run| !run.good);
    Row {
        kind: "comparison",
        seed: runs.first().and_then(|run| run.seed),
        flows: runs.first().and_then(|run| run.flows),
        slowdown_mean: best.and_then(|run| run.slowdown_mean),
        slowdown_p99: best.and_then(|run| run.slowdown_p99),
        state: bad.map_or("completed".to_owned(), |run| format!("{}: {}", run.name, run.state)),
        good: bad.is_none(),
        schemes: runs.into_iter().map(|run| run.name).collect(),
        ..row
    }
}

fn of_sweep(row: Row, summary: &Value) -> Row {
    let count = |name: &str| summary[name].as_u64().unwrap_or(0);
    let (runs, finished, trouble) =
        (count("runs"), count("finished_runs"), count("failed_runs") + count("open_runs"));
    let (partial, left_out) = (summary["partial"] != Value::Bool(false), count("left_out_runs"));
    Row {
        name: summary["name"].as_str().unwrap_or(&row.name).to_owned(),
        state: match (partial, trouble) {
            (true, _) if runs == 0 => "begun".to_owned(),
            (true, _) => format!("{finished} of {runs} runs"),
            (false, 0) if left_out > 0 => format!("completed, {finished} of {runs} runs, others left out"),
            (false, 0) => format!("completed, {runs} runs"),
            (false, _) => format!("{runs} runs, {trouble} with trouble"),
        },
        good: !partial && trouble == 0,
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_what_goes_on_are_found_and_others_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let file = |name: &str, text: String| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let run = |name: &str, finished: u64, p99: f64| {
            json!({
                "schema": "pathweave.summary",
                "run": { "name": name, "seed": 7, "ended": "time_limit", "partial": false },
                "overall": { "count": 4, "finished": finished, "slowdown": { "mean": 2.0, "p99": p99 } },
                "foreground": null,
                "groups": [{ "schemes": ["a", "b"] }, { "schemes": ["b"] }],
            })
        };
        let both = json!({ "schema": "pathweave.comparison", "runs": [run("x", 4, 5.0), run("y", 3, 3.0)] });
        file("both/summary.json", both.to_string());
        file("both/report.html", String::new());
        file("both/x/summary.json", run("x", 4, 5.0).to_string());
        file("sweep/summary.json", json!({ "schema": "pathweave.sweep", "partial": true }).to_string());
        let of_plan = json!({
            "schema": "pathweave.sweep", "partial": false, "runs": 36, "finished_runs": 8, "left_out_runs": 28,
        });
        file("plan/summary.json", of_plan.to_string());
        file("plan/plan.json", "{}".to_owned());
        file("sweep/runs/run=1/summary.json", run("hidden", 1, 1.0).to_string());
        file("other/summary.json", "{}".to_owned());
        file("broken/summary.json", "{".to_owned());
        file("demo/index.html", String::new());
        file("index.html", String::new());
        let runs = json!([{ "name": "rps" }, { "name": "ecmp" }]);
        let told = |process: u32| {
            json!({ "schema": "pathweave.progress", "process": process, "runs": runs }).to_string()
        };
        file(".new.partial-1/progress.json", told(std::process::id()));
        // No process has the largest number.
        file("demo/.old.partial-2/progress.json", told(i32::MAX as u32));
        file(".git/progress.json", told(1));
        let mut index = Index::of(&root);
        let first = index.json(&root);
        assert_eq!(index.json(&root), first);
        let found: Value = serde_json::from_str(&first).unwrap();
        let rows = found["rows"].as_array().unwrap();
        let shown: Vec<_> = rows
            .iter()
            .map(|row| {
                (row["path"].as_str().unwrap(), row["kind"].as_str().unwrap(), row["state"].as_str().unwrap())
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("both", "comparison", "y: time limit, 1 flow unfinished"),
                ("both/x", "run", "time limit"),
                ("plan", "plan", "completed, 8 of 36 runs, others left out"),
                ("sweep", "sweep", "begun"),
                ("demo", "page", "page"),
            ]
        );
        assert_eq!((&rows[0]["page"], &rows[1]["page"]), (&json!("both/report.html"), &Value::Null));
        assert_eq!((&rows[0]["slowdown_p99"], &rows[0]["schemes"]), (&json!(5.0), &json!(["x", "y"])));
        assert_eq!(rows[1]["schemes"], json!(["a", "b"]));
        let live: Vec<_> =
            found["live"].as_array().unwrap().iter().map(|l| (&l["path"], &l["alive"])).collect();
        assert_eq!(live, [(&json!("new"), &json!(true)), (&json!("demo/old"), &json!(false))]);
        let drawn: Vec<_> =
            found["live"][0]["runs"].as_array().unwrap().iter().map(|run| &run["colour"]).collect();
        assert_eq!(drawn, [6, 7], "as on every page");
        fs::remove_dir_all(root.join("both")).unwrap();
        assert!(!index.json(&root).contains("both"));
    }
}
