//! Planted causes are found. Each scenario in `tests/planted` has one deliberate cause, two, or none. At its
//! beginning, lines `# expect: ...` list texts that the verdict of `explain` and the first sentence of the report must
//! contain, and lines `# never: ...` texts that they must not contain. A file with a line `# waits: ...` is disabled;
//! the line states what is missing.
//!
//! `PLANTED=NAME` runs the scenarios whose names contain NAME. `PLANTED_FROM=FOLDER` uses another folder, and
//! `PLANTED_OUT=FOLDER` keeps the results.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use pathweave_records::Summary;
use pathweave_report::{Finding, ResultFolder, explain};
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;

fn folder() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted");
    std::env::var("PLANTED_FROM").map_or_else(|_| own(), PathBuf::from)
}

/// Returns the texts after `word` in the lines of the file.
fn expectations<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix("# ")?.strip_prefix(word)?.strip_prefix(": ")).collect()
}

/// Returns the verdict of `explain`, and the first sentence of the report.
fn verdicts(path: &Path) -> [String; 2] {
    let prepared = Loaded::read(path, &Changes::default()).and_then(|loaded| loaded.prepare());
    let prepared = prepared.unwrap_or_else(|why| panic!("{why}"));
    let run = pathweave_scenario::run(&prepared.spec, &mut NoMonitor).expect("it was tried");
    let results = tempfile::tempdir().unwrap();
    let out = match std::env::var("PLANTED_OUT") {
        Ok(kept) => Path::new(&kept).join(path.file_stem().unwrap()),
        Err(_) => results.path().join("out"),
    };
    let folder = ResultFolder::create(&out).unwrap();
    folder.write_run(&run, &Summary::from_run(&run)).unwrap();
    folder.commit().unwrap();
    let found: Vec<Finding> = explain(&out).unwrap();
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    let first = report.split("<p class=\"verdict\">").nth(1).and_then(|rest| rest.split("</p>").next());
    let first = first.unwrap().replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<");
    [found[0].words.clone(), first]
}

#[test]
fn every_planted_cause_is_named_and_its_place() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    if let Ok(only) = std::env::var("PLANTED") {
        files.retain(|path| path.display().to_string().contains(&only));
    }
    let mut wrong = String::new();
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy();
        if !expectations(&text, "waits").is_empty() {
            continue;
        }
        assert!(!expectations(&text, "expect").is_empty(), "{name} expects nothing");
        let both = verdicts(path);
        if !both[1].contains(&both[0]) {
            writeln!(wrong, "{name}: explain and report differ: {both:#?}").unwrap();
        }
        for (by, verdict) in ["explain", "report"].into_iter().zip(both) {
            for missing in expectations(&text, "expect").iter().filter(|words| !verdict.contains(**words)) {
                writeln!(wrong, "{name}: {by} lacks \"{missing}\": {verdict}").unwrap();
            }
            for words in expectations(&text, "never").iter().filter(|words| verdict.contains(**words)) {
                writeln!(wrong, "{name}: {by} says \"{words}\": {verdict}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A preset gives the ports of NICs a rate, so that the rate of host links of the network beside it says nothing.
#[test]
fn a_rate_of_host_links_that_the_server_replaces_is_noted() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/clusters/dgx-a100.toml");
    let notes = |rate: &str| {
        let set = vec![format!("topology.scale_out.host_rate={rate}")];
        let loaded = Loaded::read(&file, &Changes { set, ..Changes::default() });
        loaded.and_then(|loaded| loaded.draft()).unwrap_or_else(|why| panic!("{why}")).notes
    };
    let replaced = |note: &String| note.contains("`topology.scale_out.host_rate` = 100Gbps sets the default");
    assert!(notes("100Gbps").iter().any(replaced), "{:?}", notes("100Gbps"));
    assert!(notes("200Gbps").iter().all(|note| !note.contains("host_rate")), "the ports' rate");
}

/// The example of docs/planning.md. At a scale with messages of a few kilobytes latency dominates. `check`, the
/// report and `explain` state this; at full size they do not.
#[test]
fn a_job_that_hangs_on_latency_is_told_to() {
    let scenario = |scale: &str| {
        format!(
            "topology = {{ kind = \"leaf-spine\", leaves = 4, spines = 4, hosts_per_leaf = 4 }}\n\
             [[workload]]\nkind = \"transformer\"\nmodel = \"llama-3-8b\"\ntp = 4\npp = 2\nscale = {scale}\n"
        )
    };
    let prepare = |scale: &str| {
        let loaded = Loaded::parse(&scenario(scale), "job.toml", "", &Changes::default());
        loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{why}"))
    };
    let small = prepare("0.000002");
    let rules = |words: &str| words.starts_with("latency rules") && words.contains("`scale = 0.000002`");
    assert!(small.notes.iter().any(|note| rules(note)), "{:?}", small.notes);
    assert!(prepare("1.0").notes.iter().all(|note| !note.contains("latency")));
    // Messages of 512 B that are sent at once occupy links for longer than one takes to arrive.
    let many = "topology = { kind = \"leaf-spine\", leaves = 4, spines = 4, hosts_per_leaf = 16 }\n\
                [[workload]]\nkind = \"all-to-all\"\nprocesses = 320\nsize = \"512B\"\n";
    let loaded = Loaded::parse(many, "many.toml", "", &Changes::default());
    let many = loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{why}"));
    assert!(many.notes.iter().all(|note| !note.contains("latency")), "{:?}", many.notes);
    let run = pathweave_scenario::run(&small.spec, &mut NoMonitor).expect("it was tried");
    let summary = Summary::from_run(&run);
    assert!(summary.run.latency_ratio.is_some_and(|ratio| (0.5..=1.0).contains(&ratio)));
    assert!(summary.run.warnings.iter().any(|warning| rules(warning)), "{:?}", summary.run.warnings);
    let results = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(&results.path().join("out")).unwrap();
    folder.write_run(&run, &summary).unwrap();
    let found = explain(&folder.commit().unwrap()).unwrap();
    assert!(found.iter().any(|finding| finding.about == "warning" && rules(&finding.words)));
}
