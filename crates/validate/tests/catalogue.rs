//! The committed cases, and what is said of cases that are wrong.

use std::path::Path;

use pathweave_validate::{Catalogue, ValidateError};
use toml::Table;

fn committed() -> Catalogue {
    Catalogue::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data")).unwrap()
}

#[test]
fn every_case_has_a_scenario_that_can_be_run() {
    let catalogue = committed();
    let mut names: Vec<&str> = Vec::new();
    for case in catalogue.cases() {
        let name = &case.name;
        names.push(name);
        assert!(case.peer().is_some() || name.starts_with("law-"), "{name}: laws come first in every list");
        let nothing = Table::new();
        for set in case.file.experiment.iter().map(|experiment| &experiment.set).chain([&nothing]) {
            case.load(1, set).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
    for peer in catalogue.peers().keys() {
        assert!(
            !catalogue.select(std::slice::from_ref(peer), false).unwrap().is_empty(),
            "{peer} has no case"
        );
    }
    names.dedup();
    assert_eq!(names.len(), catalogue.cases().len());
}

#[test]
fn what_is_embedded_is_what_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let mut embedded = Catalogue::embedded().unwrap();
    embedded.lay_out(&folder.path().join("inputs")).unwrap();
    let names =
        |catalogue: &Catalogue| catalogue.cases().iter().map(|case| case.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&embedded), names(&committed()));
    for case in embedded.cases() {
        case.load(1, &Table::new()).unwrap_or_else(|why| panic!("{}: {why}", case.name));
    }
}

const PEERS: &str = "[htsim]\nwhat = \"w\"\nsource = \"s\"\ncommit = \"c\"\nbuilt = \"b\"\n";

/// A folder with one case, whose text `change` has changed.
fn with_case(change: impl Fn(String) -> String) -> Result<Catalogue, ValidateError> {
    let curve = vec!["5.0"; 101].join(", ");
    let case = format!(
        "title = \"t\"\nscheme = \"ecmp\"\ntraffic = \"t\"\nscenario = \"s.toml\"\n[theirs]\npeer = \"htsim\"\ncommand = \"c\"\n\
         parameters = \"p\"\ndate = \"2026-11-26\"\ncpu_s = 1.0\nflows = 1\ndigest = \"d\"\nmean_us = 5.0\ncurve_us = [{curve}]\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    for name in ["cases", "scenarios"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    write("peers.toml", PEERS);
    write("scenarios/s.toml", "[topology]\nkind = \"star\"\nhosts = 2\n");
    write("cases/one.toml", &change(case));
    Catalogue::read(folder.path())
}

#[test]
fn a_case_that_is_wrong_is_named_with_what_is_wrong() {
    assert_eq!(with_case(|case| case).unwrap().cases().len(), 1);
    for (from, to, expected) in [
        (
            "peer = \"htsim\"",
            "peer = \"htsin\"",
            "theirs.peer: no peer is named \"htsin\" (did you mean \"htsim\"?)",
        ),
        ("scenario = \"s.toml\"", "scenario = \"x.toml\"", "no scenario is named \"x.toml\""),
        ("[5.0, 5.0,", "[5.0,", "theirs.curve_us has 100 values; expected 101"),
        ("[5.0, 5.0,", "[5.0, 4.0,", "theirs.curve_us: expected times above 0, the smaller ones first"),
        ("[5.0, 5.0,", "[nan, 5.0,", "theirs.curve_us: expected times above 0, the smaller ones first"),
        ("mean_us = 5.0", "mean_us = 6.0", "theirs.mean_us = 6"),
        ("mean_us = 5.0", "mean_us = nan", "theirs.mean_us = NaN"),
        ("title = \"t\"", "titel = \"t\"", "unknown field `titel`"),
        (
            "[theirs]",
            "[band]\nmean = [1.1, 0.9]\n[theirs]",
            "band.mean = [1.1, 0.9]: expected two ratios above 0",
        ),
        (
            "[theirs]",
            "[band]\nmean = [0.9, 1.0]\n[theirs]",
            "band.mean is wider than usual, and no `cause` names \"mean\"",
        ),
        (
            "[theirs]",
            "[law]\nkind = \"ring\"\nlink = { rate_gbps = 1.0, delay_ns = 1.0 }\nranks = 2\npackets = 1\npacket_bytes = 1.0\nack_bytes = 1.0\n[theirs]",
            "has both `theirs` and `law`",
        ),
    ] {
        let why = with_case(|case| case.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(why.contains(expected) && why.contains("cases/one.toml"), "{why}");
    }
    let law_less = with_case(|case| case[..case.find("[theirs]").unwrap()].to_owned());
    assert!(law_less.unwrap_err().to_string().contains("has neither `theirs` nor `law`"));
}

#[test]
fn names_select_cases_and_peers() {
    let catalogue = committed();
    let all = catalogue.select(&[], false).unwrap().len();
    let quick = catalogue.select(&[], true).unwrap();
    assert!(!quick.is_empty() && quick.len() < all);
    let of_peer = catalogue.select(&["csg-htsim".to_owned()], false).unwrap();
    assert!(of_peer.iter().all(|case| case.peer() == Some("csg-htsim")));
    let why = catalogue.select(&["law-rin".to_owned()], false).unwrap_err().to_string();
    assert!(why.starts_with("no case or peer is named \"law-rin\" (did you mean \"law-ring\"?)"), "{why}");
}
