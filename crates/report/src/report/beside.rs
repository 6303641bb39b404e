//! Page of two runs, or two comparisons, in result folders beside each other, made from the reports in the folders.

use std::fs;
use std::path::{Path, PathBuf};

use pathweave_records::{RunResult, Summary, scheme_colours};
use serde_json::Value;

use super::Budget;
use super::page::{VIEWER, pictures};
use super::tables::html_table;
use crate::diff::{self, Diff, DiffError, ResultDifference, Side};
use crate::grid::{Cell, Grid, Row};
use crate::metrics::Better;
use crate::template::{escape, fill, script_json};

/// Largest number of settings that the heading names.
const NAMED: usize = 4;

/// A run as its report has it.
struct Pictured {
    summary: Value,
    pictures: Value,
    scenario: String,
}

/// Returns a page with the runs of two result folders: their differences in a sentence, tables of both, and every
/// picture with all runs on the same axes.
///
/// # Errors
/// A folder has no results, has those of a sweep or of several comparisons, no run is in both, or a report is missing
/// or lacks what the page draws.
pub fn beside(a: &Path, b: &Path) -> Result<String, DiffError> {
    one_page(a)?;
    one_page(b)?;
    let found = diff::diff(a, b)?;
    let (first, second) = (Pictured::read_all(a)?, Pictured::read_all(b)?);
    let heading = headings(&found, &first, &second);
    let mut runs: Vec<Pictured> = first.into_iter().chain(second).collect();
    let colours = scheme_colours(&runs.iter().map(Pictured::scheme).collect::<Vec<_>>());
    for ((run, name), colour) in runs.iter_mut().zip(&heading.runs).zip(colours) {
        run.pictures["name"] = Value::from(name.as_str());
        run.pictures["colour"] = Value::from(colour);
        run.summary["run"]["name"] = Value::from(name.as_str());
    }
    let texts = [
        ("title", escape(&heading.sides.join(" beside "))),
        ("header", header(&found, &heading.sides)),
        ("first", String::new()),
        ("tables", tables(&found, &heading.sides)),
        ("scenarios", runs.iter().zip(&heading.runs).map(|(run, name)| scenario(run, name)).collect()),
        ("summaries", script_json(&runs.iter().map(|run| &run.summary).collect::<Vec<_>>())),
        ("pictures", script_json(&runs.iter().map(|run| &run.pictures).collect::<Vec<_>>())),
    ];
    Ok(fill(VIEWER, &texts))
}

/// Checks that a folder has the results of one run or comparison, which have a report.
fn one_page(folder: &Path) -> Result<(), DiffError> {
    let kind = match diff::kind(folder)? {
        "run" | "comparison" => return Ok(()),
        "comparisons" => "several comparisons".to_owned(),
        kind => format!("a {kind}"),
    };
    Err(DiffError::Several { path: folder.to_owned(), kind, found: reports_within(folder) })
}

/// Returns the first folders of runs in a folder.
fn reports_within(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join("report.html").is_file()).collect();
    found.sort();
    found.iter().map(|path| path.display().to_string()).collect()
}

impl Pictured {
    /// Reads the runs of the report in a folder.
    fn read_all(folder: &Path) -> Result<Vec<Self>, DiffError> {
        let path = folder.join("report.html");
        let refuse = |why: String| DiffError::File { path: path.clone(), why };
        let page =
            fs::read_to_string(&path).map_err(|why| refuse(format!("cannot read the report: {why}")))?;
        let all = |id: &str| serde_json::from_str::<Vec<Value>>(script(&page, id)?).ok();
        let (Some(summaries), Some(pictures)) = (all("summaries"), all("picture-data")) else {
            return Err(refuse("it is not the report of a run or comparison".to_owned()));
        };
        let fields = drawn();
        let lacking = |run: &Value| fields.iter().find(|field| run.get(field).is_none()).cloned();
        if let Some(field) = pictures.iter().find_map(lacking) {
            let again = match pictures.len() {
                1 => format!("`pathweave run {}`", folder.join("scenario.toml").display()),
                _ => "`pathweave compare`".to_owned(),
            };
            return Err(refuse(format!(
                "another version of the program made it: it lacks \"{field}\"; make it again with {again}"
            )));
        }
        let alone = pictures.len() == 1;
        let runs = summaries.into_iter().zip(pictures).map(|(summary, pictures)| {
            let own = if alone { "" } else { pictures["name"].as_str().unwrap_or_default() };
            let scenario = fs::read_to_string(folder.join(own).join("scenario.toml")).unwrap_or_default();
            Pictured { summary, pictures, scenario }
        });
        Ok(runs.collect())
    }

    fn name(&self) -> &str {
        self.pictures["name"].as_str().unwrap_or_default()
    }

    /// Returns the only scheme of the run, or the name of a run with several.
    fn scheme(&self) -> &str {
        match self.pictures["schemes"].as_array().map(Vec::as_slice) {
            Some([scheme]) => scheme.as_str().unwrap_or_default(),
            _ => self.name(),
        }
    }
}

/// Returns the content of a script element of a report.
fn script<'a>(page: &'a str, id: &str) -> Option<&'a str> {
    let (_, from) = page.split_once(&format!("<script type=\"application/json\" id=\"{id}\">"))?;
    from.split_once("</script>").map(|(content, _)| content)
}

/// Returns the fields of a run that the viewer draws.
fn drawn() -> Vec<String> {
    let run = RunResult::default();
    let summary = Summary::from_run(&run);
    let figures = run.figures();
    let all = pictures(&run, &summary, (&figures, &[]), &Budget::for_runs(1));
    let fields = serde_json::to_value(&all).expect("plain data with text keys serialises");
    fields.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

/// Names of the page.
struct Headings {
    /// Both folders.
    sides: [String; 2],
    /// Each run, those of the first folder before those of the second.
    runs: Vec<String>,
}

/// Returns "A: name" and "B: name" of two runs, with the schemes where the names alone do not tell them. Comparisons
/// have the names of their folders.
fn headings(found: &Diff, first: &[Pictured], second: &[Pictured]) -> Headings {
    let schemes = match (first, second) {
        ([a], [b]) => a.scheme() != b.scheme() && a.name() == b.name(),
        _ => false,
    };
    let name = |letter: &str, run: &Pictured| {
        let scheme = if schemes { format!(" ({})", run.scheme()) } else { String::new() };
        format!("{letter}: {}{scheme}", run.name())
    };
    let side = |letter: &str, runs: &[Pictured], side: &Side| match (side.kind, runs) {
        ("run", [run]) => name(letter, run),
        _ => format!("{letter}: {}", side.folder),
    };
    let all = [("A", first), ("B", second)];
    Headings {
        sides: [side("A", first, &found.a), side("B", second, &found.b)],
        runs: all.iter().flat_map(|(letter, runs)| runs.iter().map(|run| name(letter, run))).collect(),
    }
}

fn header(found: &Diff, names: &[String; 2]) -> String {
    let side = |side: &Side, name: &str| {
        // A comparison is named by its folder.
        let folder = if side.kind == "run" { format!(", in {}", side.folder) } else { String::new() };
        format!(
            "<p class=\"note\">{}, version {}</p>",
            escape(&(name.to_owned() + &folder)),
            escape(&side.versions.join(", "))
        )
    };
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    let setting = |setting: &crate::SettingDifference| {
        format!("{}: {} to {}", setting.field, value(&setting.a), value(&setting.b))
    };
    let named: Vec<String> = found.settings.iter().take(NAMED).map(setting).collect();
    let more = match found.settings.len() {
        0 => String::new(),
        all if all > NAMED => {
            format!("<p class=\"note\">{}; {} more are below.</p>", escape(&named.join("; ")), all - NAMED)
        }
        _ => format!("<p class=\"note\">{}.</p>", escape(&named.join("; "))),
    };
    format!(
        "<h1>{}</h1>{}{}<p class=\"verdict\">{}</p>{more}",
        escape(&names.join(" beside ")),
        side(&found.a, &names[0]),
        side(&found.b, &names[1]),
        escape(&found.sentence),
    )
}

/// Returns the figures of both runs by workload, and the settings that differ.
fn tables(found: &Diff, names: &[String; 2]) -> String {
    let mut out = String::new();
    let several = found.results.iter().any(|row| row.run != found.results[0].run);
    for rows in found.results.chunk_by(|a, b| a.run == b.run && a.workload == b.workload) {
        let columns = [names[0].clone(), names[1].clone(), "ratio".to_owned()].to_vec();
        let of_run = if several { format!("{}: ", rows[0].run) } else { String::new() };
        out += &html_table(&Grid {
            title: of_run + &rows[0].workload,
            columns,
            rows: rows.iter().map(row).collect(),
        });
    }
    let text = |value: &Option<String>| Cell {
        text: value.clone().unwrap_or_else(|| "-".to_owned()),
        ..Cell::default()
    };
    let settings = found
        .settings
        .iter()
        .map(|setting| Row { label: setting.field.clone(), cells: vec![text(&setting.a), text(&setting.b)] });
    if found.settings.is_empty() {
        return out;
    }
    out + &html_table(&Grid {
        title: "Setting".to_owned(),
        columns: names.to_vec(),
        rows: settings.collect(),
    })
}

fn row(found: &ResultDifference) -> Row {
    let cell = |value: Option<f64>| Cell {
        text: value.map_or("-".to_owned(), |value| found.quantity.format(value)),
        value,
        is_better: None,
    };
    let better = found.a.zip(found.b).filter(|_| found.differs()).and_then(|(a, b)| match found.better {
        Better::Lower => Some(b < a),
        Better::Higher => Some(b > a),
        Better::Neither => None,
    });
    let ratio =
        found.change_ratio.map_or("-".to_owned(), |change| pathweave_records::ratio(1.0 + change, 1.0));
    let ratio = Cell { text: ratio, value: None, is_better: better };
    Row { label: found.label.to_owned(), cells: vec![cell(found.a), cell(found.b), ratio] }
}

fn scenario(run: &Pictured, name: &str) -> String {
    let name = escape(name);
    format!(
        "<details><summary>{name}</summary><pre tabindex=\"0\" aria-label=\"Scenario of {name}\">{}</pre></details>\n",
        escape(&run.scenario)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResultFolder;
    use pathweave_records::{Fidelity, FlowRecord, FlowStatus};

    /// Writes the folder of a run with one flow of this time.
    fn write(folder: &Path, name: &str, scheme: &str, us: u64) {
        let flow = FlowRecord {
            size_bytes: 1_000,
            finish_ps: Some(us * 1_000_000),
            ideal_fct_ps: 1_000_000,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        };
        let mut run = RunResult { flows: vec![flow], ..RunResult::default() };
        run.info.name = name.to_owned();
        run.info.schemes = vec![scheme.to_owned()];
        run.info.groups = vec!["g".to_owned()];
        run.info.fidelity = Fidelity::Packet;
        run.info.scenario_toml = format!("name = \"{name}\"\n[scheme]\nname = \"{scheme}\"\n");
        let target = ResultFolder::create(folder).unwrap();
        target.write_run(&run, &Summary::from_run(&run)).unwrap();
        target.commit().unwrap();
    }

    fn data(page: &str, id: &str) -> Value {
        serde_json::from_str(script(page, id).unwrap()).unwrap()
    }

    #[test]
    fn both_runs_are_on_one_page_with_the_colours_of_their_schemes() {
        let home = tempfile::tempdir().unwrap();
        let (a, b) = (home.path().join("a"), home.path().join("b"));
        write(&a, "one", "ecmp", 4);
        write(&b, "one", "weave", 2);
        let page = beside(&a, &b).unwrap();
        let runs = data(&page, "picture-data");
        let of = |field: &str| [0, 1].map(|run: usize| runs[run][field].clone());
        assert_eq!(of("name"), ["A: one (ecmp)", "B: one (weave)"]);
        assert_eq!(of("colour"), [7, 2], "as on every page");
        // From 4 us to 2 us is half.
        assert!(
            page.contains("B has a lower P99 slowdown: 2.000, A has 4.000 (-50 %). A P99 of 1 flow rests"),
            "{page}"
        );
        assert!(page.contains("scheme.name: ecmp to weave."));
        assert!(page.contains("<td class=\"ratio good\" title=\"better\">0.500x</td>"), "{page}");
        assert_eq!(data(&page, "summaries")[1]["run"]["name"], "B: one (weave)");
        // Two runs of one scheme still differ.
        write(&b, "one", "ecmp", 4);
        let runs = data(&beside(&a, &b).unwrap(), "picture-data");
        assert_eq!(runs[0]["colour"], 7);
        assert_ne!(runs[1]["colour"], 7);
        assert_eq!([&runs[0]["name"], &runs[1]["name"]], ["A: one", "B: one"]);
    }

    /// One flow of B is twice as fast, and the other failed.
    #[test]
    fn slowdowns_of_survivors_have_no_ratio() {
        let home = tempfile::tempdir().unwrap();
        let (a, b) = (home.path().join("a"), home.path().join("b"));
        write(&a, "one", "ecmp", 4);
        write(&b, "one", "ecmp", 2);
        let path = b.join("summary.json");
        let mut summary: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        summary["groups"][0]["failed"] = 1.into();
        fs::write(&path, summary.to_string()).unwrap();
        let page = beside(&a, &b).unwrap();
        assert!(
            page.contains("<td class=\"ratio\">-</td>")
                && !page.contains("0.500x")
                && !page.contains("ratio good"),
            "{page}"
        );
        assert!(
            page.contains("<th>Failed</th><td data-value=\"0\">0</td><td data-value=\"1\">1</td>"),
            "{page}"
        );
    }

    /// Writes the folder of a comparison with a flow of these times.
    fn write_comparison(folder: &Path, times: &[(&str, u64)]) {
        for (scheme, us) in times {
            write(&folder.join(scheme), scheme, scheme, *us);
        }
        let page = |scheme: &str| fs::read_to_string(folder.join(scheme).join("report.html")).unwrap();
        let of = |id: &str| {
            let all: Vec<Value> =
                times.iter().map(|(scheme, _)| data(&page(scheme), id)[0].clone()).collect();
            format!("<script type=\"application/json\" id=\"{id}\">{}</script>", script_json(&all))
        };
        fs::write(folder.join("report.html"), of("summaries") + &of("picture-data")).unwrap();
        let runs: Vec<Value> = times
            .iter()
            .map(|(scheme, _)| {
                serde_json::from_slice(&fs::read(folder.join(scheme).join("summary.json")).unwrap()).unwrap()
            })
            .collect();
        let summary =
            serde_json::json!({ "schema": "pathweave.comparison", "schema_version": 2, "runs": runs });
        fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
    }

    #[test]
    fn all_runs_of_two_comparisons_are_on_one_page() {
        let home = tempfile::tempdir().unwrap();
        let (a, b) = (home.path().join("a"), home.path().join("b"));
        write_comparison(&a, &[("ecmp", 4), ("weave", 2)]);
        write_comparison(&b, &[("ecmp", 8), ("weave", 2)]);
        let page = beside(&a, &b).unwrap();
        let runs = data(&page, "picture-data");
        let names: Vec<&str> =
            runs.as_array().unwrap().iter().filter_map(|run| run["name"].as_str()).collect();
        assert_eq!(names, ["A: ecmp", "A: weave", "B: ecmp", "B: weave"]);
        assert_eq!([&runs[0]["colour"], &runs[1]["colour"]], [7, 2], "as on every page");
        let (first, second) = (a.display(), b.display());
        assert!(page.contains(&format!("<h1>A: {first} beside B: {second}</h1>")), "{page}");
        // From 4 us to 8 us is twice.
        assert!(page.contains("ecmp: g") && page.contains("weave: g"), "{page}");
        assert!(page.contains("<td class=\"ratio bad\" title=\"worse\">2.000x</td>"), "{page}");
        assert!(page.contains("<details><summary>B: weave</summary>"));
        // A run lies beside the run of its scheme.
        let page = beside(&a.join("ecmp"), &b).unwrap();
        assert_eq!(data(&page, "picture-data").as_array().unwrap().len(), 3);
    }

    #[test]
    fn what_is_no_run_is_refused_with_a_reason() {
        let home = tempfile::tempdir().unwrap();
        let (a, b) = (home.path().join("a"), home.path().join("b"));
        write(&a, "one", "ecmp", 4);
        let why = |b: &Path| beside(&a, b).unwrap_err().to_string();
        assert!(why(&b).contains("there is no such folder"), "{}", why(&b));
        write(&b.join("ecmp"), "ecmp", "ecmp", 4);
        let sweep = r#"{"schema": "pathweave.sweep", "schema_version": 1, "partial": false}"#;
        fs::write(b.join("summary.json"), sweep).unwrap();
        assert!(why(&b).contains("no run of it has finished"), "{}", why(&b));
        let report = b.join("ecmp/report.html");
        let page = fs::read_to_string(&report).unwrap();
        fs::write(&report, page.replace("\"timeline\":", "\"other\":")).unwrap();
        assert!(why(&b.join("ecmp")).contains("report.html: another version of the program made it: it lacks \"timeline\"; make it again with `pathweave run "));
        fs::write(&report, "").unwrap();
        assert!(why(&b.join("ecmp")).ends_with("report.html: it is not the report of a run or comparison"));
        fs::remove_file(&report).unwrap();
        assert!(why(&b.join("ecmp")).contains("report.html: cannot read the report"));
    }
}
