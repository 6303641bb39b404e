//! `pathweave paper --testbed` from outside: testbed figures in a lab of real hosts.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Done, Lab, Running, done, half_way, labs_can_be_made, names};

fn papers() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/papers").display().to_string()
}

fn start(lab: &Lab, args: &[&str]) -> Child {
    let papers = papers();
    let mut command = lab.command(&[&["paper"], args, &["--papers", &papers, "--out", "out"]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Runs a command. Returns its result, and the number of remaining namespaces of its labs.
fn run(lab: &Lab, args: &[&str]) -> (Done, usize) {
    let child = start(lab, args);
    let prefix = lab_of(&child);
    let done = done(&child.wait_with_output().unwrap());
    (done, left(&prefix))
}

fn lab_of(child: &Child) -> String {
    format!("paper{}-", child.id())
}

/// Returns the number of namespaces of labs whose names begin with `prefix`.
fn left(prefix: &str) -> usize {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return 0 };
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("pw.{prefix}"))).count()
}

#[test]
fn a_figure_of_a_testbed_is_measured_beside_its_simulation() {
    if !labs_can_be_made("a_figure_of_a_testbed_is_measured_beside_its_simulation") {
        return;
    }
    let dpdk = pathweave_bypass::dpdk::IS_BUILT.then_some(("dpdk", "DPDK (net_af_packet)"));
    for (backend, words) in [("udp", "UDP sockets")].into_iter().chain(dpdk) {
        let lab = Lab::new();
        let args =
            ["pair", "--figure", "1", "--testbed", "--backend", backend, "--rate-scale", "1/100", "--json"];
        let (done, left) = run(&lab, &args);
        assert_eq!((done.code, left), (0, 0), "{backend}: {}", done.err);
        let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        let claims = value["claims"].as_array().unwrap().iter();
        let claims: Vec<_> = claims
            .map(|claim| {
                let text = |key: &str| claim[key].as_str().unwrap().to_owned();
                (text("claim"), text("variant"), text("state"))
            })
            .collect();
        let expected = [("All arrives", "measured"), ("All arrives", "simulated")]
            .into_iter()
            .chain([("The link is used", "measured"), ("The link is used", "simulated")])
            .map(|(claim, variant)| (claim.to_owned(), variant.to_owned(), "agrees".to_owned()));
        assert_eq!(claims, expected.collect::<Vec<_>>(), "{backend}: {}", done.out);

        assert_eq!(names(&lab.path("out")), ["pair-testbed"]);
        let read = |name: &str| std::fs::read_to_string(lab.path("out/pair-testbed").join(name)).unwrap();
        let page = read("index.html");
        let scale = format!("over {words}, rates of links 1/100 of the scenario's;");
        for text in [scale.as_str(), "UDMP (measured)", "UDMP (simulated)", "--testbed --backend"] {
            assert!(page.contains(text), "{backend}: {text}");
        }
        assert!(!page.contains("ECMP"), "{backend}: a scheme that no testbed measured");
        // Both flows are in the trace of the receiver, and each with half of its rate in that of a sender.
        let traces = read("traces.csv");
        for variant in ["measured", "simulated"] {
            for trace in ["Both", "First"] {
                let of =
                    traces.lines().filter(|line| line.starts_with(&format!("1,,UDMP,{variant},,1,{trace},")));
                let of = of.filter(|line| !line.ends_with(",0"));
                assert!(of.count() > 10, "{backend}: {variant} {trace}: {traces}");
            }
        }
        // A finished measurement is not repeated.
        let (again, _) = run(&lab, &args);
        assert!(again.err.contains("2 runs, 2 of them finished before"), "{}", again.err);
        assert_eq!(again.out, done.out);
    }
}

#[test]
fn unmeasurable_figures_are_refused_before_a_lab_is_made() {
    let lab = Lab::new();
    let refused = |args: &[&str], part: &str| {
        let (done, left) = run(&lab, args);
        assert_eq!((done.code, done.out.as_str(), left), (2, "", 0), "{args:?}: {}", done.err);
        assert!(done.err.contains(part), "{args:?}: {}", done.err);
    };
    refused(
        &["tiny", "--testbed"],
        "error: --testbed: tiny has no figures of a testbed; papers with such figures: pair",
    );
    refused(&["pair", "--testbed", "--figure", "3"], "no figure of pair is named \"3\"");
    if labs_can_be_made("a curve that no testbed measured") {
        refused(&["pair", "--testbed", "--series", "ECMP"], "no curve is named \"ECMP\"");
    }
    refused(&["pair", "--backend", "udp"], "--testbed");
    refused(&["pair", "--testbed", "--rate-scale", "2"], "above 0, at most 1");
    if !pathweave_bypass::dpdk::IS_BUILT {
        refused(
            &["pair", "--testbed", "--backend", "dpdk"],
            "error: --backend dpdk: this build of pathweave has no DPDK",
        );
    }
    assert!(lab.names().is_empty());
}

#[test]
fn ctrl_c_removes_the_lab() {
    if !labs_can_be_made("ctrl_c_removes_the_lab") {
        return;
    }
    let lab = Lab::new();
    let args = ["pair", "--figure", "2", "--testbed", "--backend", "udp", "--rate-scale", "1/100"];
    let mut child = Running(start(&lab, &args));
    let prefix = lab_of(&child.0);
    half_way(&mut child.0, || left(&prefix) == 4);
    Command::new("kill").args(["-INT", &child.0.id().to_string()]).status().unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
    assert_eq!(left(&prefix), 0);
    let page = std::fs::read_to_string(lab.path("out/pair-testbed/index.html")).unwrap();
    assert!(page.contains("Interrupted"), "{page}");
}
