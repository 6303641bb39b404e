//! `pathweave validate` from the outside.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{self, Lab};

#[test]
fn quick_cases_hold() {
    let lab = Lab::new();
    let done = lab.run(&["validate", "--quick", "--json", "--out", "out"]);
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{}", done.err));
    let cases = value["cases"].as_array().unwrap();
    let out: Vec<_> = cases.iter().filter(|case| case["holds"] != true).collect();
    assert!(out.is_empty() && done.code == 0, "exit code {}, {out:#?}", done.code);
    assert!(cases.len() > 6, "{}", cases.len());
    // A law is exact. The figures of a peer state their source.
    let case = |name: &str| cases.iter().find(|case| case["case"] == name).unwrap();
    let ratio = case("law-ring")["trials"][0]["rows"][0]["ratio"].as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    let theirs = &case("roce-shift")["theirs"];
    assert!(theirs["peer"] == "csg-htsim" && theirs["command"].as_str().unwrap().contains("htsim_roce"));
    let page = fs::read_to_string(lab.path("out/index.html")).unwrap();
    assert!(page.contains("<svg class=\"overview\"") && page.contains("id=\"law-ring\""));
    assert_eq!(fs::read_to_string(lab.path("out/outcomes.json")).unwrap(), done.out);
}

/// Returns a folder with one case: a message alone on its path, whose law has `packets`.
fn one_case(packets: u32) -> Lab {
    let lab = Lab::new();
    for name in ["cases", "scenarios"] {
        fs::create_dir_all(lab.path("own").join(name)).unwrap();
    }
    lab.file("own/peers.toml", "")
        .file(
            "own/scenarios/two.toml",
            "[topology]\nkind = \"star\"\nhosts = 2\n[network]\nframing = \"ns3\"\nmtu = \"1000B\"\n\
             [[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"10000B\" }]\n",
        )
        .file(
            "own/cases/two.toml",
            format!(
                "title = \"t\"\nscheme = \"rps-nocc\"\ntraffic = \"t\"\nscenario = \"two.toml\"\nquick = true\n\
                 measure = \"delivered\"\n[law]\nkind = \"alone\"\nlink = {{ rate_gbps = 100.0, delay_ns = 1000.0 }}\nlinks = 2\n\
                 packets = {packets}\npacket_bytes = 1048.0\n"
            ),
        )
}

#[test]
fn the_exit_code_is_one_when_a_ratio_is_out_of_its_band() {
    let done = one_case(10).run(&["validate", "--cases", "own", "--out", "out"]);
    assert_eq!((done.code, done.out.contains("all in their bands")), (0, true), "{}{}", done.out, done.err);
    let done = one_case(11).run(&["validate", "--cases", "own", "--out", "out"]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    // 10 packets of 83.84 ns, one more at the second link, 2 us: 2.92224 us. The law for 11 packets gives 3.00608 us.
    assert!(done.out.contains("max: 2.922 us here, 3.006 us there, ratio 0.9721"), "{}", done.out);
    assert!(done.out.contains("1 of 1 cases are out of their bands"), "{}", done.out);
}

#[test]
fn bad_input_is_told_by_name() {
    let lab = one_case(10).file("plain", "");
    fs::create_dir(lab.path("page")).unwrap();
    let lab = lab.file("page/index.html", "mine");
    for (args, expected) in [
        (
            ["validate", "law-rin", "--out", "out"],
            "no case or peer is named \"law-rin\" (did you mean \"law-ring\"?)",
        ),
        (["validate", "--cases", "ow", "--quick"], "there is no such folder; nearest: own"),
        (["validate", "--cases", "plain", "--quick"], "it is not a folder"),
        (["validate", "--cases", "page", "--quick"], "peers.toml"),
        (["validate", "law-ring", "--out", "page"], "exists and is not a page of `pathweave validate`"),
        (["validate", "law-ring", "--out", "plain"], "plain"),
    ] {
        let done = lab.run(&args);
        assert_eq!(done.code, 2, "{args:?}: {}{}", done.out, done.err);
        assert!(done.err.contains(expected), "{args:?}: {}", done.err);
    }
    let done = lab
        .file("own/scenarios/two.toml", "[topology]\nkind = \"stat\"\n")
        .run(&["validate", "--cases", "own"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("own/scenarios/two.toml:2") && done.err.contains("star"), "{}", done.err);
}

#[test]
fn the_list_names_every_case() {
    let lab = Lab::new();
    let all = lab.run(&["validate", "list"]);
    assert_eq!(all.code, 0, "{}", all.err);
    assert!(all.out.contains("law-md1") && all.out.contains("csg-htsim"), "{}", all.out);
    let quick = lab.run(&["validate", "list", "--quick", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&quick.out).unwrap();
    assert!(value.as_array().unwrap().len() < all.out.lines().count());
    let of_peer = lab.run(&["validate", "list", "csg-htsim"]);
    assert!(of_peer.out.lines().count() > 1 && !of_peer.out.contains("law-"), "{}", of_peer.out);
}

#[test]
fn quiet_names_what_is_out_of_its_band() {
    let done = one_case(10).run(&["validate", "--cases", "own", "--out", "out", "--quiet"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "page: out/index.html\n", ""));
    let done = one_case(11).run(&["validate", "--cases", "own", "--out", "out", "--quiet"]);
    assert_eq!((done.code, done.out.as_str()), (1, "page: out/index.html\n"));
    assert!(done.err.contains("out of band: two") && done.err.contains("ratio 0.9721"), "{}", done.err);
}

#[test]
fn the_page_says_where_the_cases_are() {
    let lab = one_case(10);
    let done = lab.run(&["validate", "two", "--cases", "own", "--out", "out", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{}", done.err));
    assert_eq!(value["command"], "pathweave validate two --cases own");
    let page = fs::read_to_string(lab.path("out/index.html")).unwrap();
    assert!(page.contains("<pre>pathweave validate two --cases own</pre>"), "{page}");
    // CPU time is that of the run.
    assert!(value["cases"][0]["trials"][0]["cpu_s"].as_f64().unwrap() > 0.0);
}

/// No case runs for hours and then fails, and nothing is written among foreign files.
#[test]
fn validation_checks_everything_before_the_first_run() {
    let lab = one_case(10);
    let text = fs::read_to_string(lab.path("own/cases/two.toml")).unwrap();
    let other = text.replace("title", "set = { \"topology.hosst\" = 3 }\ntitle");
    let lab = lab.file("own/cases/z-wrong.toml", other);
    let run = |out: &str, expected: &str| {
        let done = lab.run(&["validate", "--cases", "own", "--out", out]);
        assert_eq!(done.code, 2, "{}{}", done.out, done.err);
        assert!(done.err.contains(expected) && !done.err.contains("runs in"), "{expected}: {}", done.err);
    };
    run("out", "hosst");
    assert!(!lab.path("out").exists());
    fs::remove_file(lab.path("own/cases/z-wrong.toml")).unwrap();
    fs::create_dir_all(lab.path("full/outcomes.json")).unwrap();
    run("full", "exists and is not a folder of `pathweave validate` (it holds \"outcomes.json\")");
    fs::write(lab.path("full/index.html"), "<title>Validation of pathweave</title>").unwrap();
    run("full", "cannot write full/outcomes.json: it is a folder");
    assert_eq!(common::names(&lab.path("full")), ["index.html", "outcomes.json"]);
    fs::create_dir(lab.path("mine")).unwrap();
    fs::write(lab.path("mine/notes.txt"), "").unwrap();
    run("mine", "(it holds \"notes.txt\")");
    let done = lab.run(&["validate", "--cases", "own", "--out", "deep/out"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let again = lab.run(&["validate", "--cases", "own", "--out", "deep/out"]);
    assert_eq!(again.code, 0, "{}", again.err);
}

#[test]
fn a_case_that_does_not_fit_into_memory_is_not_run_and_ends_the_others() {
    let lab = one_case(10);
    // A run of half a minute with a sample every nanosecond keeps terabytes of samples.
    let huge = "set = { \"observe.interval\" = \"1ns\", \"observe.max_samples\" = 4000000000, \"topology.rate\" = \"1Gbps\", \
                \"workload[0].flows[0].size\" = \"4GB\" SOON}\ntitle";
    let text = fs::read_to_string(lab.path("own/cases/two.toml")).unwrap();
    let lab = lab.file("own/cases/a-huge.toml", text.replace("title", &huge.replace("SOON", "")));
    let done = lab.run(&["validate", "--cases", "own", "--out", "out", "--jobs", "1"]);
    assert_eq!(done.code, 2, "{}{}", done.out, done.err);
    for part in ["a-huge: the run takes about", "are available", "--force", "0 runs in"] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    // With --force the run is executed anyway. Here it ends early.
    let soon = huge.replace("SOON", ", \"run.max_events\" = 20 ");
    let lab = lab.file("own/cases/a-huge.toml", text.replace("title", &soon));
    let done = lab.run(&["validate", "--cases", "own", "--out", "out", "--force"]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    assert!(done.out.contains("flows did not finish"), "{}", done.out);
}

#[test]
fn an_interrupted_validation_says_what_is_missing() {
    let lab = one_case(10);
    let text = fs::read_to_string(lab.path("own/cases/two.toml")).unwrap();
    let long = text.replace(
        "title",
        "set = { \"workload[0].flows[0].size\" = \"4GB\", \"network.mtu\" = \"256B\" }\ntitle",
    );
    let lab = lab.file("own/cases/z-long.toml", long);
    let mut command = lab.command(&["validate", "--cases", "own", "--out", "out", "--jobs", "1"]);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let start = Instant::now();
    while !lab.path("out").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "the runs do not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let done = common::done(&child.wait_with_output().unwrap());
    assert_eq!(done.code, 130, "{}{}", done.out, done.err);
    assert!(done.err.contains(" of 2 cases are missing"), "{}", done.err);
    assert!(
        fs::read_to_string(lab.path("out/index.html")).unwrap().contains("Interrupted: cases are missing")
    );
}
