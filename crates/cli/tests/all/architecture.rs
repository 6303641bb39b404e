//! Rules of ARCHITECTURE.md that can be checked automatically: dependencies between crates, access to the operating
//! system, and the size of files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::packages;

/// Each crate and the workspace crates on which it may depend. A crate that is missing from the list fails the test.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    // Memory allocation of the programs.
    ("heap", &[]),
    ("wire", &["units"]),
    ("policy", &["units", "wire"]),
    ("transport", &["units", "wire", "policy"]),
    ("secure", &["units", "wire"]),
    // Tag matching, above queue pairs and below libfabric's interface, independent of both.
    ("tagged", &[]),
    // Collectives of ranks, above queue pairs and below torch's interface, independent of both.
    ("collective", &[]),
    ("fabric", &["units", "wire"]),
    ("topo", &["units"]),
    ("workload", &["units", "topo"]),
    // Records and figures computed from them: no files, no pages.
    ("records", &["units"]),
    // Files and pages of runs.
    ("report", &["units", "records"]),
    // Handling of workloads shared by the simulator and the lab, without I/O.
    ("execution", &["units", "policy", "transport", "topo", "workload", "records"]),
    ("sim", &["units", "wire", "policy", "transport", "fabric", "topo", "workload", "records", "execution"]),
    // Flow-level simulation. It uses the configuration of the simulator, and the simulator's paths.
    ("flow", &["units", "policy", "transport", "fabric", "topo", "workload", "records", "execution", "sim"]),
    (
        "scenario",
        &["units", "wire", "policy", "transport", "fabric", "topo", "workload", "records", "sim", "flow"],
    ),
    // The simulator as WebAssembly, for a page.
    ("browser", &["units", "wire", "topo", "records", "sim", "scenario"]),
    ("datapath", &["units", "wire", "policy", "transport", "secure"]),
    // Byte rings in shared memory between processes of one host, whatever the content.
    ("shm", &[]),
    // BPF programs, and queries of network interfaces, independent of their use.
    ("linux", &[]),
    // Backends of the datapath beside the kernel's network stack, and the choice among them.
    ("bypass", &["units", "wire", "datapath", "linux"]),
    // Shared by libraries that other programs load.
    ("door", &["units", "datapath", "bypass"]),
    // The libfabric provider.
    ("ofi", &["units", "tagged", "datapath", "shm", "door"]),
    // The network plug-in of NCCL.
    ("nccl", &["datapath", "door"]),
    // The backend of torch.distributed.
    ("torch", &["collective", "datapath", "shm", "door"]),
    // The lab uses from fabric and simulator only the configuration of a run and the ideal times.
    (
        "lab",
        &[
            "units",
            "policy",
            "topo",
            "fabric",
            "workload",
            "records",
            "execution",
            "sim",
            "datapath",
            "linux",
        ],
    ),
    // Plans runs and judges their results. The caller executes the runs.
    ("study", &["units", "policy", "scenario", "records", "report"]),
    // Measurements over the datapath, and the report of them.
    ("perf", &["heap", "datapath", "bypass"]),
    (
        "cli",
        &[
            "heap",
            "units",
            "scenario",
            "records",
            "report",
            "sim",
            "transport",
            "study",
            "lab",
            "datapath",
            "ofi",
            "perf",
            "bypass",
        ],
    ),
    // Bindings: what Python sees of scenarios, runs, sweeps, results and pickers; and the program, for the wheel.
    ("python", &["heap", "units", "policy", "scenario", "records", "report", "sim", "study", "cli", "torch"]),
    // Measures every layer alone, so it may see all of them; nothing depends on it.
    // Feeds any bytes to whatever reads foreign ones.
    (
        "fuzz",
        &[
            "units",
            "wire",
            "policy",
            "transport",
            "tagged",
            "collective",
            "topo",
            "workload",
            "datapath",
            "shm",
            "bypass",
        ],
    ),
    // Runs circuits compiled by Verilator. Tests compare them with workspace crates.
    ("cosim", &[]),
    (
        "bench",
        &[
            "heap",
            "units",
            "wire",
            "policy",
            "transport",
            "fabric",
            "topo",
            "workload",
            "records",
            "report",
            "sim",
            "scenario",
            "datapath",
            "lab",
        ],
    ),
];

/// Crates that build without std; `.ci/bare-target` builds them for a target that has none.
const NO_STD: &[&str] = &["units", "wire", "policy", "transport", "tagged"];

/// Crates that may look at the clock, open sockets and start threads.
const MAY_TOUCH_THE_SYSTEM: &[&str] = &[
    "heap", "cli", "datapath", "shm", "linux", "bypass", "door", "ofi", "nccl", "torch", "lab", "perf",
    "python", "bench", "cosim",
];

/// The one file of the simulator with threads: rounds of shards side by side. Nothing that is simulated sees them.
const ROUNDS: &str = "crates/sim/src/rounds.rs";

/// Largest number of lines of code in a file, not counting tests.
const MAX_CODE_LINES: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace folder")
}

/// Returns the crates of the workspace and their normal dependencies among each other, without the common prefix.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let short = |name: &str| name.strip_prefix("pathweave-").map(str::to_owned);
    let mut crates = BTreeMap::new();
    for package in packages() {
        let name = package["name"].as_str().and_then(short).expect("our crates are named pathweave-...");
        let normal = package["dependencies"].as_array().expect("a list of dependencies").iter();
        let ours = normal.filter(|d| d["kind"].is_null()).filter_map(|d| d["name"].as_str().and_then(short));
        crates.insert(name, ours.collect());
    }
    crates
}

#[test]
fn dependencies_follow_the_arrows() {
    let mut wrong = Vec::new();
    for (name, uses) in dependencies() {
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{name} has no place in ARROWS"));
            continue;
        };
        for dependency in uses.iter().filter(|d| !allowed.contains(&d.as_str())) {
            wrong.push(format!("{name} may not depend on {dependency}; it may on {allowed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_arrows_have_no_cycle() {
    let mut placed = BTreeSet::new();
    for (name, allowed) in ARROWS {
        for dependency in *allowed {
            assert!(placed.contains(dependency), "{name} -> {dependency}: list {dependency} first");
        }
        placed.insert(*name);
    }
}

/// Source file and its text.
struct Source {
    krate: String,
    path: PathBuf,
    text: String,
}

impl Source {
    fn shown(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }
    /// Returns true if the file is not part of a library or program.
    fn is_test(&self) -> bool {
        let shown = self.shown();
        let folders = ["/tests/", "/testing/", "/examples/", "/benches/"];
        folders.iter().any(|folder| shown.contains(folder))
            || shown.ends_with("test.rs")
            || shown.ends_with("tests.rs")
    }
    /// Iterates over the numbered lines before the file's test module, which comes last by convention.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let until_tests =
            self.text.lines().take_while(|line| *line != "#[cfg(test)]" && *line != "mod tests {");
        (1..).zip(until_tests).filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("a folder of crates") {
        let folder = entry.expect("a readable folder").path();
        let krate = folder.file_name().expect("a name").to_string_lossy().into_owned();
        for path in files_below(&folder, &["rs"]) {
            let text = std::fs::read_to_string(&path).expect("source is UTF-8");
            found.push(Source { krate: krate.clone(), path, text });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 20, "sources were not found");
    found
}

fn files_below(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "node_modules", ".venv", ".git", "corpus", "artifacts"].contains(&name.as_str()) {
                found.extend(files_below(&path, extensions));
            }
        } else if extensions.is_empty()
            || extensions.iter().any(|e| path.extension().is_some_and(|x| x == *e))
        {
            found.push(path);
        }
    }
    found
}

/// Returns the places where code contains one of `needles`, as `file:line: needle`.
fn places(sources: &[&Source], needles: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (number, line) in source.code() {
            for needle in needles.iter().filter(|needle| line.contains(**needle)) {
                found.push(format!("{}:{number}: {needle}", source.shown()));
            }
        }
    }
    found
}

#[test]
fn only_the_outer_crates_touch_the_operating_system() {
    let sources = sources();
    let inner: Vec<&Source> = sources
        .iter()
        .filter(|s| !s.is_test() && !MAY_TOUCH_THE_SYSTEM.contains(&s.krate.as_str()))
        .filter(|s| s.shown() != ROUNDS)
        .collect();
    let system = [
        "std::net",
        "std::thread",
        "std::time",
        "SystemTime",
        "Instant::now",
        "std::process::Command",
        "thread_rng",
    ];
    let found = places(&inner, &system);
    assert!(
        found.is_empty(),
        "the clock, the network and threads belong to {MAY_TOUCH_THE_SYSTEM:?}:\n{}",
        found.join("\n")
    );
}

#[test]
fn the_core_is_no_std() {
    for name in NO_STD {
        let text =
            std::fs::read_to_string(root().join("crates").join(name).join("src/lib.rs")).expect("a crate");
        assert!(text.contains("#![no_std]"), "{name} must say #![no_std]");
    }
}

#[test]
fn files_stay_small() {
    let large: Vec<String> = sources()
        .iter()
        .filter(|source| !source.is_test())
        .map(|source| (source.code().filter(|(_, line)| !line.trim().is_empty()).count(), source.shown()))
        .filter(|(lines, _)| *lines > MAX_CODE_LINES)
        .map(|(lines, path)| {
            format!("{path}: {lines} lines of code, at most {MAX_CODE_LINES}; split it by subject")
        })
        .collect();
    assert!(large.is_empty(), "{}", large.join("\n"));
}

/// Between the queue pair and the files of a run, only the table and the code that counts name a counter.
#[test]
fn a_counter_of_flows_takes_two_files() {
    let sources = sources();
    let way = ["units", "transport", "execution", "sim", "records"];
    for (counter, counted) in [("copied_packets", "output"), ("notice_packets", "control")] {
        let files: BTreeSet<String> = sources
            .iter()
            .filter(|source| !source.is_test() && way.contains(&source.krate.as_str()))
            .filter(|source| !places(&[source], &[counter]).is_empty())
            .map(Source::shown)
            .collect();
        let counted = format!("crates/transport/src/qp/{counted}.rs");
        assert_eq!(files, BTreeSet::from([counted, "crates/units/src/flow_counters.rs".to_owned()]));
    }
}

#[test]
fn nothing_is_left_to_do() {
    let sources = sources();
    let all: Vec<&Source> = sources.iter().filter(|s| !s.path.ends_with("architecture.rs")).collect();
    let found = places(&all, &["todo!(", "unimplemented!(", "dbg!(", "FIXME", "XXX"]);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_crate_has_the_workspace_lints() {
    for entry in std::fs::read_dir(root().join("crates")).expect("a folder of crates") {
        let manifest = entry.expect("a readable folder").path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        assert!(text.contains("[lints]\nworkspace = true"), "{}: lints.workspace = true", manifest.display());
    }
}

/// Paths of a developer's machine must not appear in any file.
#[test]
fn no_file_names_a_machine() {
    let mut found = Vec::new();
    let folders = ["crates", "docs", "scenarios", "fuzz", "papers", "validation", "python", ".ci", "tests"];
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| {
            files_below(&root().join(folder), &["rs", "md", "toml", "py", "sh", "ts", "html", "yml"])
        })
        .collect();
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "Cargo.toml"]
    {
        files.push(root().join(name));
    }
    // The paths are assembled, so that this file does not contain them.
    let machine_paths = ["home", "root", "Users", "work"].map(|folder| format!("/{folder}/"));
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            // Only the beginning of a path counts: `target/work/` and `https://host/work/` are not paths of a
            // machine.
            let begins = |needle: &String| {
                line.match_indices(needle.as_str()).any(|(at, _)| {
                    at == 0 || line[..at].ends_with(|c: char| c.is_whitespace() || "\"'`=(:".contains(c))
                })
            };
            if let Some(needle) = machine_paths.iter().find(|needle| begins(needle)) {
                found.push(format!("{}:{number}: {needle}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
