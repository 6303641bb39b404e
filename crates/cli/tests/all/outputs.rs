//! Outputs in unfortunate places: inside the result folder, over an input, and beside remains of killed processes.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::common::{Done, Lab, Running, SMALL, done, half_way, names};

/// Checks that a command is refused before it runs, with a message that contains `parts`, and leaves all files as they
/// were.
#[track_caller]
fn refused(lab: &Lab, args: &[&str], parts: &[&str]) {
    let contents = |lab: &Lab| -> Vec<_> {
        lab.names().into_iter().map(|name| (fs::read(lab.path(&name)).ok(), name)).collect()
    };
    let before = contents(lab);
    let done = lab.run(args);
    assert_eq!(done.code, 2, "{}", done.err);
    for part in parts {
        assert!(done.err.contains(part), "{part:?} is not in:\n{}", done.err);
    }
    assert!(contents(lab) == before, "something was written: {:?}", lab.names());
}

#[test]
fn an_export_inside_the_result_folder_is_refused_before_the_run() {
    let lab = Lab::with_small();
    let inside = ["the result folder", "replaced as a whole", "name a file outside it"];
    for option in ["--flows-csv", "--fct", "--perfetto", "--pcapng"] {
        refused(&lab, &["run", "small.toml", "--out", "s", option, "s/file"], &inside);
    }
    refused(&lab, &["run", "small.toml", "--out", "s", "--fct", "./x/../s/deep/file"], &inside);
    refused(&lab, &["compare", "small.toml", "--schemes", "rps", "--out", "s", "--fct", "s/f.txt"], &inside);
    refused(&lab, &["compare", "small.toml", "--schemes", "rps", "--out", "f-rps", "--fct", "f"], &inside);
    // A result that is there stays usable, and a folder beside it is not in it.
    assert_eq!(lab.run(&["run", "small.toml", "--out", "s"]).code, 0);
    refused(&lab, &["run", "small.toml", "--out", "s", "--perfetto", "s/t.json"], &inside);
    let beside = lab.run(&["run", "small.toml", "--out", "s", "--flows-csv", "s-flows.csv"]);
    assert_eq!(beside.code, 0, "{}", beside.err);
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let with_flows =
        SMALL.replace("kind = \"permutation\"\nsize = \"100KB\"", "kind = \"flows\"\nfile = \"f.csv\"");
    let lab = Lab::with_small()
        .file("flows.toml", with_flows)
        .file("f.csv", "start_ns,src,dst,size_bytes\n0,0,1,1000\n")
        .file("m.txt", "# size time algbw busbw\n1048576 30 0 0\n");
    std::os::unix::fs::symlink("small.toml", lab.path("link")).unwrap();
    fs::hard_link(lab.path("small.toml"), lab.path("hard")).unwrap();
    let reads = ["this would replace", "which the command reads"];
    for file in ["small.toml", "./x/../small.toml", "link", "hard"] {
        // A path over a folder that is not there leads nowhere.
        fs::create_dir_all(lab.path("x")).unwrap();
        refused(&lab, &["run", "small.toml", "--out", "s", "--flows-csv", file], &reads);
    }
    refused(&lab, &["run", "flows.toml", "--out", "s", "--perfetto", "f.csv"], &reads);
    // The name of the scheme is inserted into the names of files.
    let lab = lab.file("a-rps.toml", SMALL);
    let compare = ["compare", "a-rps.toml", "--schemes", "ecmp,rps", "--out", "s", "--fct", "a.toml"];
    refused(&lab, &compare, &reads);
    refused(&lab, &["convert", "small.toml", "small.toml", "--to", "topology"], &reads);
    refused(&lab, &["convert", "f.csv", "f.csv", "--to", "hpcc-flows"], &reads);
    refused(&lab, &["convert", "flows.toml", "f.csv"], &reads);
    for out in ["m.txt", "small.toml"] {
        let fit = ["fit", "m.txt", "--scenario", "small.toml", "--collective", "all-reduce", "--out", out];
        refused(&lab, &fit, &reads);
    }
}

/// A run that takes minutes.
const LONG: [&str; 6] = ["run", "small.toml", "--set", "workload[0].size=4GB", "--set", "topology.hosts=64"];

#[test]
fn remains_of_killed_runs_go_with_the_next_run_and_those_of_living_ones_stay() {
    let lab = Lab::with_small();
    let partial = |lab: &Lab| -> Vec<String> {
        lab.names().into_iter().filter(|name| name.contains(".partial-")).collect()
    };
    let start = |out| {
        let export = format!("{out}.csv");
        let args = [&LONG[..], &["--out", out, "--flows-csv", &export]].concat();
        let mut run = Running::start(&lab, &args, Stdio::null());
        let both = [format!(".{out}.partial-{}", run.0.id()), format!(".{export}.partial-{}", run.0.id())];
        half_way(&mut run.0, || both.iter().all(|name| partial(&lab).contains(name)));
        (run, both)
    };
    let (dead, left) = start("r");
    drop(dead);
    assert_eq!(partial(&lab).len(), 2, "a killed process removes nothing");
    let (living, kept) = start("r");
    assert!(left.iter().all(|name| !partial(&lab).contains(name)), "{:?}", partial(&lab));
    let other = lab.run(&["run", "small.toml", "--out", "r", "--flows-csv", "r.csv"]);
    assert_eq!(other.code, 0, "{}", other.err);
    assert!(kept.iter().all(|name| partial(&lab).contains(name)), "they belong to a process that runs");
    drop(living);
    // Remains of other names are not touched.
    assert_eq!(lab.run(&["run", "small.toml", "--out", "q"]).code, 0);
    assert_eq!(partial(&lab).len(), 2);
    fs::create_dir(lab.path(".x.partial-7")).unwrap();
    fs::write(lab.path(".x.partial-7/flows.parquet"), "").unwrap();
    let none = lab.run(&["explain", "."]);
    fs::remove_dir_all(lab.path(".x.partial-7")).unwrap();
    assert!(none.err.contains("here: ./q, ./r") && !none.err.contains("partial"), "{}", none.err);
    assert_eq!(lab.run(&["run", "small.toml", "--out", "r", "--flows-csv", "r.csv"]).code, 0);
    assert!(partial(&lab).is_empty(), "{:?}", partial(&lab));
    assert!(!names(&lab.path("r")).iter().any(|name| name.starts_with('.')));
}

/// Runs a command with `text` as its standard input.
fn fed(lab: &Lab, args: &[&str], text: &str) -> Done {
    let mut command = lab.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that needs a file does not read it.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    done(&child.wait_with_output().unwrap())
}

#[test]
fn a_scenario_may_come_from_standard_input() {
    let lab = Lab::with_small();
    let digest =
        |lab: &Lab, folder: &str| lab.json(&format!("{folder}/summary.json"))["run"]["digest"].clone();
    assert_eq!(lab.run(&["run", "small.toml", "--out", "file"]).code, 0);
    for (name, out) in [("-", "a"), ("/dev/stdin", "b")] {
        let run = fed(&lab, &["run", name, "--out", out], SMALL);
        assert_eq!(run.code, 0, "{}", run.err);
        assert_eq!(digest(&lab, out), digest(&lab, "file"));
    }
    let compared = fed(&lab, &["compare", "-", "--schemes", "rps,ecmp"], SMALL);
    assert_eq!(compared.code, 0, "{}", compared.err);
    assert!(lab.path("results/standard-input-compare-seed1/ecmp").is_dir(), "{}", compared.out);
    // File names are relative to the working directory.
    let flows =
        SMALL.replace("kind = \"permutation\"\nsize = \"100KB\"", "kind = \"flows\"\nfile = \"x/f.csv\"");
    fs::create_dir(lab.path("x")).unwrap();
    fs::write(lab.path("x/f.csv"), "start_ns,src,dst,size_bytes\n0,0,1,1000\n").unwrap();
    assert_eq!(fed(&lab, &["check", "-"], &flows).code, 0);
    let wrong = fed(&lab, &["check", "-"], &SMALL.replace("hosts", "hostz"));
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("--> standard input:3:1"), "{}", wrong.err);
    assert!(fed(&lab, &["run", "-"], "\n").err.contains("standard input: it is empty"));
    for command in [&["sweep", "-"][..], &["plan", "-"], &["convert", "-", "x.txt"]] {
        let refused = fed(&lab, command, SMALL);
        assert!(
            refused.code == 2 && refused.err.contains("reads files only; save the text"),
            "{}",
            refused.err
        );
    }
}
