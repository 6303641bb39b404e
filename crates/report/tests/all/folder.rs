//! The result folder is complete or absent, and never replaces files of other programs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{Shape, run};
use pathweave_records::{FlowStats, Role, RunResult, Summary};
use pathweave_report::{FILES, OutputError, ResultFolder, report_html};

fn write(destination: &Path, run: &RunResult) -> Result<(), OutputError> {
    let folder = ResultFolder::create(destination)?;
    folder.write_run(run, &Summary::from_run(run))?;
    folder.commit().map(drop)
}

fn small() -> RunResult {
    run("small", Shape { flows: 50, ..Shape::SMALL })
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_folder_has_every_file_and_nothing_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let destination = dir.path().join("new/parents/demo");
    write(&destination, &small()).unwrap();
    let mut expected: Vec<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(names(&destination), expected);
    assert_eq!(names(destination.parent().unwrap()), ["demo"]);
    assert_eq!(fs::read_to_string(destination.join("scenario.toml")).unwrap(), small().info.scenario_toml);
}

#[test]
fn nothing_appears_before_commit_and_nothing_stays_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let destination = dir.path().join("demo");
    let folder = ResultFolder::create(&destination).unwrap();
    folder.write_run(&small(), &Summary::from_run(&small())).unwrap();
    assert!(!destination.exists());
    drop(folder);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn an_older_result_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let destination = dir.path().join("demo");
    write(&destination, &small()).unwrap();
    let mut second = small();
    second.info.scenario_toml = "# second\n".to_owned();
    write(&destination, &second).unwrap();
    assert_eq!(fs::read_to_string(destination.join("scenario.toml")).unwrap(), "# second\n");
    assert_eq!(names(dir.path()), ["demo"]);
}

#[test]
fn other_peoples_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path| write(path, &small()).unwrap_err().to_string();

    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    assert!(refused(&file).contains("is not a result folder (a file)"), "{}", refused(&file));

    let stranger = dir.path().join("stranger");
    fs::create_dir(&stranger).unwrap();
    fs::write(stranger.join("thesis.tex"), "mine").unwrap();
    assert!(refused(&stranger).contains("it holds \"thesis.tex\""));

    let mixed = dir.path().join("mixed");
    write(&mixed, &small()).unwrap();
    fs::write(mixed.join("notes.txt"), "mine").unwrap();
    assert!(refused(&mixed).contains("it holds \"notes.txt\""));
    assert_eq!(fs::read_to_string(mixed.join("notes.txt")).unwrap(), "mine");

    // A file with the name of a result file, but foreign contents.
    let lookalike = dir.path().join("lookalike");
    fs::create_dir(&lookalike).unwrap();
    fs::write(lookalike.join("summary.json"), "{\"schema\": \"other\"}").unwrap();
    assert!(refused(&lookalike).contains("it holds \"summary.json\""));
    assert_eq!(names(dir.path()), ["file", "lookalike", "mixed", "stranger"]);
}

#[test]
fn an_empty_folder_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let destination = dir.path().join("empty");
    fs::create_dir(&destination).unwrap();
    write(&destination, &small()).unwrap();
    assert!(destination.join("report.html").exists());
}

#[test]
fn a_parent_that_is_a_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = write(&dir.path().join("file/demo"), &small()).unwrap_err().to_string();
    assert!(error.contains("file"), "{error}");
    assert!(error.contains("cannot"), "{error}");
}

#[test]
fn a_comparison_has_a_folder_for_each_run_and_can_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let destination = dir.path().join("compare");
    for _ in 0..2 {
        // Different names that map to the same folder name.
        let runs = [run("a/b", Shape::SMALL), run("a:b", Shape::SMALL), run("c", Shape::SMALL)];
        let summaries: Vec<Summary> = runs.iter().map(Summary::from_run).collect();
        let folder = ResultFolder::create(&destination).unwrap();
        folder.write_comparison(&runs.iter().zip(&summaries).collect::<Vec<_>>()).unwrap();
        folder.commit().unwrap();
        assert_eq!(
            names(&destination),
            ["a_b", "a_b-2", "c", "comparison.csv", "report.html", "summary.json"]
        );
        assert_eq!(names(&destination.join("c")).len(), FILES.len());
    }
}

#[test]
fn records_of_a_comparison_are_written_before_the_rest_of_their_folders() {
    let dir = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(&dir.path().join("compare")).unwrap();
    let runs = [run("a/b", Shape::SMALL), run("a:b", Shape::SMALL)];
    let known = |run: &RunResult| RunResult {
        info: run.info.clone(),
        labels: run.labels.clone(),
        ..RunResult::default()
    };
    let mut file = folder.comparison_flow_file(known(&runs[0])).unwrap().expect("the first of its name");
    // The other run has a folder of the same name, so this run's records are kept in memory.
    assert!(folder.comparison_flow_file(known(&runs[1])).unwrap().is_none());
    file.add(&runs[0].flows).unwrap();
    file.finish(&runs[0].info).unwrap();
    let [first, second] = runs;
    let groups = first.info.groups.iter().map(|_| (Role::Foreground, 0));
    let mut figures = FlowStats::new(groups, BTreeSet::new(), &first.labels);
    first.flows.iter().for_each(|flow| figures.add(flow));
    let written = RunResult { flows: Vec::new(), streamed: Some(Box::new(figures)), ..first.clone() };
    let summaries = [&written, &second].map(Summary::from_run);
    folder.write_comparison(&[(&second, &summaries[1]), (&written, &summaries[0])]).unwrap();
    // The report is the same with and without the records.
    let kept = report_html(&[(&second, &summaries[1]), (&first, &summaries[0])]);
    assert_eq!(report_html(&[(&second, &summaries[1]), (&written, &summaries[0])]), kept);
    let target = folder.commit().unwrap();
    assert_eq!(names(&target), ["a_b", "a_b-2", "comparison.csv", "report.html", "summary.json"]);
    let alone = dir.path().join("alone");
    write(&alone, &first).unwrap();
    for table in ["flows.parquet", "collectives.parquet"] {
        let bytes = |folder: &Path| fs::read(folder.join(table)).unwrap();
        assert_eq!(bytes(&target.join("a_b")), bytes(&alone), "{table}");
    }
}
