//! Checks of the committed cases, and of the errors for invalid cases.

use std::path::Path;

use pathweave_scenario::nccl::{Fitted, Generation};
use pathweave_study::validate::{
    Case, Catalogue, RowState, ValidateError, load_all, measured_markdown, measured_text, runs,
    training_markdown, training_text,
};
use toml::Table;

fn committed() -> Catalogue {
    Catalogue::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("validation")).unwrap()
}

#[test]
fn every_case_has_a_scenario_that_can_be_run() {
    let catalogue = committed();
    let mut names: Vec<&str> = Vec::new();
    for case in catalogue.cases() {
        let name = &case.name;
        names.push(name);
        let begins = match (&case.file.law, &case.file.packets) {
            (Some(_), _) => "law-",
            (None, Some(_)) => "flow-",
            (None, None) if case.file.one_port.is_some() => "law-",
            (None, None) if case.file.measured.is_some() => "truth-",
            (None, None) => "",
        };
        assert!(name.starts_with(begins), "{name}: what it is beside shows in its name");
        if case.file.measured.is_some() {
            continue;
        }
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
    embedded.write_scenario_files(&folder.path().join("inputs")).unwrap();
    let names =
        |catalogue: &Catalogue| catalogue.cases().iter().map(|case| case.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&embedded), names(&committed()));
    for case in embedded.cases().iter().filter(|case| case.file.measured.is_none()) {
        case.load(1, &Table::new()).unwrap_or_else(|why| panic!("{}: {why}", case.name));
    }
}

const PEERS: &str = "[htsim]\nwhat = \"w\"\nsource = \"s\"\ncommit = \"c\"\nbuilt = \"b\"\n";

/// Reads a folder with one case, whose text `change` has modified.
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
    let scenario =
        "[topology]\nkind = \"star\"\nhosts = 2\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    write("scenarios/s.toml", scenario);
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
    let law = "[law]\nkind = \"md1\"\nlink = { rate_gbps = 1.0, delay_ns = 1.0 }\nlinks = 1\npacket_bytes = 1.0\nload = 1.5\n";
    let of_law = with_case(|case| format!("{}{law}", &case[..case.find("[theirs]").unwrap()]));
    let why = of_law.unwrap_err().to_string();
    assert!(why.contains("cases/one.toml: law.load = 1.5: expected a number above 0"), "{why}");
    let law_less = with_case(|case| case[..case.find("[theirs]").unwrap()].to_owned());
    assert!(
        law_less
            .unwrap_err()
            .to_string()
            .contains("has none of `theirs`, `law`, `packets`, `one_port` and `measured`")
    );
}

/// The scheme is set first, so that a case or an experiment can set fields of it.
#[test]
fn a_case_sets_fields_of_its_scheme() {
    let set = |case: String| case.replace("[theirs]", "[set]\n\"scheme.acks.every_packets\" = 4\n[theirs]");
    let catalogue = with_case(|case| set(case).replace("\"ecmp\"", "\"rps\"")).unwrap();
    let [case] = catalogue.cases() else { panic!("one case") };
    let scheme = |more: &Table| case.load(1, more).unwrap().scenario.scheme;
    let own = scheme(&Table::new());
    assert_eq!((own.name.as_str(), own.scheme.acks.every_packets), ("rps*", 4));
    let more = [("scheme.acks.every_packets".to_owned(), toml::Value::Integer(8))].into_iter().collect();
    assert_eq!(scheme(&more).scheme.acks.every_packets, 8);
    let other = [("scheme".to_owned(), toml::Value::String("udmp".to_owned()))].into_iter().collect();
    assert_eq!(scheme(&other).name, "udmp");
}

#[test]
fn what_is_wrong_with_an_experiment_is_known_before_anything_runs() {
    let experiment = "\n[[experiment]]\ntitle = \"e\"\nset = { \"topology.hosst\" = 3 }\n";
    let catalogue = with_case(|case| case + experiment).unwrap();
    let cases: Vec<&Case> = catalogue.cases().iter().collect();
    load_all(&cases, false).expect("without experiments nothing is wrong");
    let why = load_all(&cases, true).expect_err("there is no such field").to_string();
    assert!(why.contains("hosst") && why.contains("case one"), "{why}");
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

/// Rows that miss their bars are those that the case names, no more and no fewer, and the rows of the fit are close to
/// it. `UPDATE_DOCS=1 cargo test -p pathweave-study --test validation` writes the tables of docs/validation.md anew.
#[test]
fn misses_of_hardware_are_known() {
    let catalogue = committed();
    let cases = catalogue.select(&["truth-collectives".to_owned()], true).unwrap();
    let [case] = cases[..] else { panic!("one case") };
    let outcome = runs(case, false, &mut |_| panic!("nothing is simulated")).unwrap();
    let report = outcome.measured.as_ref().unwrap();
    check_document(&measured_markdown(report));
    let wide: Vec<_> =
        measured_text(report).lines().filter(|line| line.chars().count() > 80).map(str::to_owned).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let of = |state| report.rows.iter().filter(move |row| row.state == state).map(|row| row.id.as_str());
    assert_eq!(of(RowState::Misses).collect::<Vec<_>>(), Vec::<&str>::new(), "no known cause");
    assert!(outcome.holds);
    let known: Vec<&String> =
        case.file.measured.iter().flat_map(|m| &m.known).flat_map(|miss| &miss.rows).collect();
    assert_eq!(known.len(), of(RowState::KnownMiss).count(), "rows named as misses that are none");
    let fitted = report.rows.iter().filter(|row| row.state == RowState::Fitted);
    let errors: Vec<f64> = fitted.filter_map(|row| Some(row.simulated?.error)).collect();
    assert_eq!(errors.len(), 5);
    assert!(errors.iter().all(|error| error.abs() < 0.05), "{errors:?}");
    // The numbers of the workload are those of the fit.
    let generations = [
        (Generation::Ampere, "A100"),
        (Generation::Hopper, "H100"),
        (Generation::Blackwell, "B200"),
        (Generation::Cdna3, "MI300X"),
    ];
    for (generation, name) in generations {
        let fit = report.fitted.iter().find(|fit| fit.generation == name).unwrap().numbers.fitted;
        let known = Fitted::of(generation);
        let ratios = [fit.latency / known.latency, fit.bandwidth / known.bandwidth];
        assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() < 0.002), "{name}: {fit:?}, not {known:?}");
    }
}

/// Steps of training that miss their bar are those that the case names. `UPDATE_DOCS=1 cargo test -p pathweave-study --test
/// validation -- --ignored` writes the table of docs/validation.md anew.
#[test]
#[ignore = "it simulates steps of 16,384 GPUs, which takes minutes"]
fn misses_of_training_are_known() {
    let catalogue = committed();
    let cases = catalogue.select(&["truth-training".to_owned()], false).unwrap();
    let [case] = cases[..] else { panic!("one case") };
    let outcome = runs(case, false, &mut |loaded| {
        let prepared = loaded.prepare().unwrap_or_else(|why| panic!("{why}"));
        Ok(pathweave_scenario::run(&prepared.spec, &mut pathweave_sim::NoMonitor).expect("it was tried"))
    })
    .unwrap();
    let report = outcome.training.as_ref().unwrap();
    check_block("training", &training_markdown(report));
    let text = training_text(report);
    let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(outcome.holds, "{text}");
    let wrong: Vec<_> =
        report.rows.iter().filter(|row| row.known && row.is_within()).map(|row| &row.id).collect();
    assert!(wrong.is_empty(), "rows named as misses that are none: {wrong:?}");
}

fn hold(name: &str, count: usize) {
    let catalogue = committed();
    let cases = catalogue.select(&[name.to_owned()], true).unwrap();
    assert_eq!(cases.len(), count, "{name}");
    for case in cases {
        let outcome = runs(case, false, &mut |loaded| {
            let prepared = loaded.prepare().unwrap_or_else(|why| panic!("{why}"));
            Ok(pathweave_scenario::run(&prepared.spec, &mut pathweave_sim::NoMonitor).expect("it was tried"))
        })
        .unwrap();
        assert!(outcome.holds, "{outcome:?}");
    }
}

/// Utilisation by the fixed point of HPCC's rates.
#[test]
fn hpcc_holds_its_link_as_the_law_says() {
    hold("law-held-link", 1);
}

/// NVLink, planes and their failed ports, rails, PXN.
#[test]
fn servers_do_what_the_laws_say() {
    hold("law-cluster", 7);
}

fn check_document(text: &str) {
    check_block("hardware", text);
}

fn check_block(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/validation.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name}: written by a test -->\n"), format!("<!-- end of {name} -->"));
    let (head, rest) = document.split_once(&begin).unwrap();
    let (old, tail) = rest.split_once(&end).unwrap();
    let text = format!("\n{}\n\n", text.trim());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{begin}{text}{end}{tail}")).unwrap();
        return;
    }
    assert!(old == text, "docs/validation.md is out of date; UPDATE_DOCS=1 writes its tables anew");
}
