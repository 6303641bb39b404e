//! The report in a real browser: no script error, pictures drawn, figures equal to the summary.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use pathweave_results::{EndReason, RunResult, Summary, report_html};
use support::{Shape, run};

fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|b| Command::new(b).arg("--version").output().is_ok_and(|o| o.status.success()));
    if found.is_none() {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("SKIPPED: no Chromium found, the report was not opened in a browser");
        }
    }
    found
}

/// Runs the browser on a page in a profile of its own and returns what it printed.
fn open(browser: &str, page: &Path, extra: &[&str]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--hide-scrollbars", "--window-size=1400,3200", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(extra)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a page is text")
}

fn write(name: &str, runs: &[&RunResult]) -> PathBuf {
    let summaries: Vec<Summary> = runs.iter().map(|r| Summary::of(r)).collect();
    let pairs: Vec<_> = runs.iter().copied().zip(&summaries).collect();
    let html = report_html(&pairs);
    assert!(html.len() <= 5_000_000, "{} bytes", html.len());
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&page, html).unwrap();
    page
}

/// Opens the page: no script error, and every picture there.
fn check(page: &Path, cards: u32) {
    let Some(browser) = browser() else { return };
    let dom = open(browser, page, &["--dump-dom"]);
    let head = &dom[..dom.len().min(300)];
    assert!(!dom.contains("data-script-error"), "{head}");
    assert!(dom.contains(&format!("data-drawn=\"{cards}\"")), "{head}");
    assert!(!dom.contains("NaN"), "a figure is not a number");

    // Two cards a row of 1,272 px: a chart as wide as the page lies over its neighbour.
    for chart in dom.split("class=\"u-wrap\" style=\"width: ").skip(1) {
        let width: f64 = chart.split_once("px").unwrap().0.parse().unwrap();
        assert!((280.0..640.0).contains(&width), "a chart is {width} px wide");
    }

    let picture = page.with_extension("png");
    open(browser, page, &[&format!("--screenshot={}", picture.display())]);
    // A blank page of this size compresses to a few kilobytes.
    let bytes = std::fs::metadata(&picture).unwrap().len();
    assert!(bytes > 60_000, "the picture has {bytes} bytes: blank?");
}

#[test]
fn one_run_on_a_small_fabric() {
    check(&write("small.html", &[&run("small", Shape::SMALL)]), 6);
}

#[test]
fn one_run_on_a_large_fabric() {
    let mut run = run("large", Shape::LARGE);
    run.info.ended = EndReason::PfcDeadlock;
    run.info.ended_detail = "tor3->spine1 waits for spine1->tor9 waits for tor3->spine1".to_owned();
    run.events_not_recorded = 12_345;
    check(&write("large.html", &[&run]), 6);
}

#[test]
fn a_comparison() {
    let shape = |load, seed| Shape { load, seed, ..Shape::SMALL };
    let runs = [run("ecmp", shape(2.0, 1)), run("rps", shape(0.6, 2)), run("qp-scaling-16", shape(1.2, 3))];
    check(&write("compare.html", &runs.iter().collect::<Vec<_>>()), 8);
}

#[test]
fn a_run_in_which_nothing_happened() {
    check(&write("empty.html", &[&RunResult::default()]), 4);
}

#[test]
fn figures_of_the_page_are_those_of_the_summary() {
    let run = run("small", Shape::SMALL);
    let summary = Summary::of(&run);
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
    let summary = Summary::of(&run);
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
    write("many.html", &runs.iter().collect::<Vec<_>>());
    let one = write("groups.html", &[&runs[0]]);
    assert!(std::fs::read_to_string(one).unwrap().contains("288 more workload groups"));
}
