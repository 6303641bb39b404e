//! The report as text: its figures are those of the summary, it is one file, and it stays small. `web/test` tests it
//! in a browser.

use crate::support::servers::{Cluster, on_servers};
use crate::support::{Shape, run};
use pathweave_records::{EndReason, FlowRecord, FlowStatus, RunInfo, RunResult, Summary, percentile};
use pathweave_report::report_html;
use serde_json::Value;

fn report(runs: &[&RunResult]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(|r| Summary::from_run(r)).collect();
    let pairs: Vec<_> = runs.iter().copied().zip(&summaries).collect();
    let html = report_html(&pairs);
    assert!(html.len() <= 5_000_000, "{} bytes", html.len());
    html
}

/// Returns the data of one script element.
fn embedded(html: &str, id: &str) -> Value {
    let text = html.split_once(&format!("id=\"{id}\">")).unwrap().1.split_once("</script>").unwrap().0;
    serde_json::from_str(text).unwrap()
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn figures_of_the_page_are_those_of_the_summary() {
    let run = run("small", Shape::SMALL);
    let summary = Summary::from_run(&run);
    let html = report_html(&[(&run, &summary)]);
    let embedded = html.split_once("id=\"summaries\">").unwrap().1.split_once("</script>").unwrap().0;
    assert_eq!(embedded, serde_json::to_string(&[&summary]).unwrap());
    for (label, value) in [
        ("FCT P99", summary.overall.fct_ns.p99),
        ("Slowdown mean", summary.overall.slowdown.mean),
        ("Goodput aggregate", summary.overall.aggregate_goodput_bps),
    ] {
        let row = html.split_once(&format!("<tr><th>{label}</th>")).unwrap().1.split_once("</tr>").unwrap().0;
        assert!(row.contains(&format!("data-value=\"{value}\"")), "{label} {value}: {row}");
    }
}

#[test]
fn text_from_outside_cannot_become_markup() {
    let mut run = run("<script>alert(1)</script>", Shape { flows: 10, ..Shape::SMALL });
    run.info.groups[0] = "</script><script>alert(2)</script>".to_owned();
    let summary = Summary::from_run(&run);
    let html = report_html(&[(&run, &summary)]);
    assert!(!html.contains("<script>alert"));
    assert!(!html.contains("http://") || !html.contains("src=\"http"), "nothing is loaded from a network");
}

#[test]
fn many_runs_with_many_groups_stay_within_the_size() {
    let runs: Vec<RunResult> = (0..40)
        .map(|i| {
            let mut run = run(&format!("run {i}"), Shape { seed: i, flows: 3_000, ..Shape::SMALL });
            run.info.groups.extend((2..300).map(|g| format!("group {g}")));
            run.info.scenario_toml = "# a long scenario\n".repeat(50_000);
            run
        })
        .collect();
    report(&runs.iter().collect::<Vec<_>>());
    assert!(report(&[&runs[0]]).contains("288 more workload groups"));
}

#[test]
fn a_large_fabric_is_drawn_in_blocks_and_matrices_that_hold_every_link() {
    let mut run = run("large", Shape::LARGE);
    run.info.ended = EndReason::PfcDeadlock;
    run.events_not_recorded.insert(pathweave_records::EventKind::Drop, 12_345);
    // 64 ToRs of 16 hosts below 16 spines: 2 * (1,024 + 1,024) directed links.
    assert_eq!(run.links.len(), 4_096);
    let fabric = &embedded(&report(&[&run]), "picture-data")[0]["fabric"];
    let blocks = &fabric["blocks"];
    let links: f64 = blocks["panels"].as_array().unwrap().iter().map(|p| p["links"].as_f64().unwrap()).sum();
    assert_eq!(links, 4_096.0);
    // 16 blocks of 4 ToRs with their hosts, and 16 spines: the lines between them, followed by the cells of the
    // matrices.
    assert_eq!(fabric["nodes"].as_array().unwrap().len(), 48);
    let lines = fabric["from"].as_array().unwrap().len();
    assert_eq!(lines, 2 * 16 * 16 + 2 * 16);
    let all = run.links.iter().map(|l| l.dropped_packets as f64).sum::<f64>();
    let dropped = numbers(&fabric["totals"]["dropped"]);
    assert_eq!(dropped[..lines].iter().sum::<f64>(), all);
    assert_eq!(dropped[lines..].iter().sum::<f64>(), all);
    let (mean, most) = (numbers(&fabric["totals"]["utilisation"]), numbers(&fabric["totals"]["busiest"]));
    assert!(mean.iter().zip(&most).all(|(mean, most)| mean <= most) && mean[..lines] != most[..lines]);
}

#[test]
fn a_run_in_which_nothing_happened_has_a_report() {
    let html = report(&[&RunResult::default()]);
    assert!(!html.contains("NaN") && !html.contains("[[summaries]]"));
}

/// Half a million flows: the part that the page contains is bounded, exact where it claims to be, and reproducible.
#[test]
fn many_flows_are_thinned_out_to_exact_quantiles_and_a_fixed_sample() {
    const FLOWS: u32 = 500_000;
    // 7 and 500,000 are coprime, so every number of picoseconds occurs once.
    let flow = |flow: u32| FlowRecord {
        flow,
        size_bytes: 1_000,
        finish_ps: Some(1_000 + 7 * u64::from(flow) % u64::from(FLOWS)),
        ideal_fct_ps: 1_000,
        status: FlowStatus::Finished,
        ..FlowRecord::default()
    };
    let run = RunResult {
        info: RunInfo { groups: vec!["all".into()], schemes: vec!["ecmp".into()], ..RunInfo::default() },
        flows: (0..FLOWS).map(flow).collect(),
        ..RunResult::default()
    };
    let html = report(&[&run]);
    assert!(html.len() < 800_000, "{} bytes", html.len());
    assert_eq!(html, report(&[&run]));
    let data = &embedded(&html, "picture-data")[0];

    let cdf = data["cdfs"].as_array().unwrap().iter().find(|c| c["measure"] == "slowdown").unwrap();
    let (values, fractions) = (numbers(&cdf["value"]), numbers(&cdf["fraction"]));
    let mut all: Vec<f64> = run.flows.iter().filter_map(FlowRecord::slowdown).collect();
    all.sort_by(f64::total_cmp);
    for (per_mille, of_summary) in {
        let s = Summary::from_run(&run).overall.slowdown;
        [(500, s.p50), (950, s.p95), (990, s.p99), (999, s.p999), (1_000, s.max)]
    } {
        let at = fractions.iter().position(|f| *f == f64::from(per_mille) / 1_000.0).expect("it is shown");
        assert_eq!(of_summary, percentile(&all, per_mille as u64));
        // The page has five significant digits.
        assert!((values[at] / of_summary - 1.0).abs() < 1e-4, "{per_mille}: {} {of_summary}", values[at]);
    }

    let flows = &data["flows"];
    let (picked, slowest) = (numbers(&flows["flow"]), flows["slowest"].as_u64().unwrap() as usize);
    assert_eq!((flows["of"].as_u64(), slowest), (Some(u64::from(FLOWS)), 300));
    assert!(picked.len() <= 3_300 && picked.len() > 3_200, "{}", picked.len());
    let slowdowns = numbers(&flows["slowdown"]);
    for (shown, exact) in slowdowns[..slowest].iter().zip(all.iter().rev()) {
        assert!((shown / exact - 1.0).abs() < 1e-4);
    }
    // The mean of the random part is that of all flows, 251.0 times the ideal, within five standard errors
    // (144/sqrt(3,000)).
    let sample = &slowdowns[slowest..];
    let mean = sample.iter().sum::<f64>() / sample.len() as f64;
    assert!((mean - 251.0).abs() < 13.2, "{mean}");
}

/// The builder of the viewer may use any registry; packages are identified by their hashes.
#[test]
fn the_lock_file_of_the_viewer_names_no_registry() {
    let lock: Value = serde_json::from_str(include_str!("../../../../web/package-lock.json")).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        assert!(package["resolved"].is_null(), "{name}: npm install in web/ with its .npmrc leaves that out");
        assert!(package["integrity"].is_string(), "{name} has no hash");
    }
}

/// Servers of a report: 8 and 32 GPUs with all links, 1,024 and 131,072 in blocks.
#[test]
fn servers_rails_and_planes_are_in_the_page() {
    let fabric = |cluster| {
        let run = on_servers("run", cluster);
        embedded(&report(&[&run]), "picture-data")[0]["fabric"].clone()
    };
    let one = fabric(Cluster::OF_8);
    let servers = &one["servers"];
    assert_eq!((&servers["columns"], servers["lanes"].as_array().unwrap().len()), (&1.into(), 8));
    assert_eq!((&servers["lanes"][3], &servers["leaves"][3]), (&"rail 3".into(), &"leaf3".into()));
    // GPU 3 has the links 6 and 7. Half of the GPUs send 20 MB in 1 ms: .16 Tb/s of 2.952, a share of .0542.
    assert_eq!((&servers["up"][3], &servers["down"][3]), (&6.into(), &7.into()));
    assert_eq!(numbers(&servers["scale_up_of_gpu"])[..2], [0.054201, 0.0]);
    assert!(one["blocks"].is_null());

    let two_planes = fabric(Cluster::OF_32);
    assert_eq!(two_planes["servers"]["lanes"][11], "plane 1, rail 3");
    assert_eq!(two_planes["servers"]["leaves"][11], "p1.leaf3");

    let names = |fabric: &Value| -> Vec<String> {
        let nodes = fabric["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["name"].as_str().unwrap().to_owned()).collect()
    };
    let superpod = fabric(Cluster::OF_1024);
    let blocks = names(&superpod);
    assert_eq!(blocks[..2], ["rail 0", "rail 1"]);
    assert_eq!((blocks[8].as_str(), blocks[24].as_str()), ("spine0 to spine1", "srv0 to srv3"));
    assert_eq!(superpod["servers"]["columns"], 128);
    // Rail 3 is the busiest; a cell is a link here.
    let cell = superpod["servers"]["up"][3].as_u64().unwrap() as usize;
    let utilisation = numbers(&superpod["totals"]["utilisation"]);
    assert!(utilisation[cell] > 0.84 && utilisation[cell - 1] < 0.61);
    assert_eq!(superpod["blocks"]["links"][cell], 1);

    let largest = fabric(Cluster::OF_131072);
    assert_eq!(names(&largest)[..2], ["plane 0, rail 0", "plane 0, rail 1"]);
    assert_eq!(names(&largest).last().unwrap(), "srv15872 to srv16383");
    let index = &largest["blocks"]["index"];
    assert_eq!(index["block"].as_array().unwrap().len(), 131_072 + 2 * (256 + 16));
    assert_eq!(index["names"][0], serde_json::json!(["p0.leaf", 0, 256]));
    let (known, all) = (index["row"].as_array().unwrap().len(), index["of_links"].as_u64().unwrap());
    assert!(known >= 1_000 && all == 2 * 2 * (131_072 + 256 * 16), "{known} of {all}");
}
