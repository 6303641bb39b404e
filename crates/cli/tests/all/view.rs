//! `pathweave view` from the view of a client: served content, refused requests, and runs in progress.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Lab, Running, names};
use serde_json::Value;

/// Time limit of every wait, even on the slowest machine.
const LONGEST: Duration = Duration::from_secs(60);

impl Running {
    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap().success());
    }

    /// Returns the exit code of the program, after waiting for its end.
    fn ends(&mut self) -> Option<i32> {
        until("the program ends", || self.0.try_wait().unwrap()).code()
    }
}

/// Waits until `found` returns a value.
fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < LONGEST, "{what}: not within {LONGEST:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A served folder.
struct View {
    process: Running,
    /// Address, "127.0.0.1:PORT".
    address: String,
}

impl View {
    fn of(lab: &Lab) -> Self {
        Self::start(lab, &["view", "results", "--port", "0"])
    }

    fn start(lab: &Lab, args: &[&str]) -> Self {
        let mut process = Running::start(lab, args, Stdio::null());
        let (tell, told) = mpsc::channel();
        let mut out = BufReader::new(process.0.stdout.take().unwrap());
        thread::spawn(move || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            tell.send(line)
        });
        let line = told.recv_timeout(LONGEST).expect("it prints its address");
        let address = line.trim_end().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        let address = address.unwrap_or_else(|| panic!("no address: {line:?}")).to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        View { process, address }
    }

    /// Returns status, head and body of the response.
    fn ask(&self, method: &str, path: &str, host: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String, String) {
        self.ask("GET", path, &self.address)
    }

    fn index(&self) -> Value {
        serde_json::from_str(&self.get("/.index.json").2).unwrap()
    }

    /// Returns the progress of a run in progress, or null if there is none.
    fn under_way(&self) -> Value {
        self.index()["live"].get(0).cloned().unwrap_or_default()
    }
}

#[test]
fn an_index_and_its_reports_are_served_and_nothing_else() {
    let lab = Lab::with_small().file("secret", "SECRET");
    assert_eq!(lab.run(&["run", "small.toml", "--quiet", "--out", "results/a run"]).code, 0);
    symlink(lab.path("secret"), lab.path("results/out")).unwrap();
    symlink(lab.path(""), lab.path("results/up")).unwrap();
    let mut view = View::of(&lab);

    let (status, head, page) = view.get("/");
    assert_eq!(status, 200);
    assert!(
        head.contains("content-type: text/html")
            && head.contains("content-security-policy: default-src 'none'"),
        "{head}"
    );
    assert!(page.contains("<!doctype html>") && page.contains("/.index.json"));

    let summary = lab.json("results/a run/summary.json");
    let index = view.index();
    assert_eq!((index["title"].as_str(), index["rows"].as_array().map(Vec::len)), (Some("results"), Some(1)));
    let row = &index["rows"][0];
    for (field, value) in [
        ("path", "a run"),
        ("kind", "run"),
        ("name", summary["run"]["name"].as_str().unwrap()),
        ("state", "completed"),
        ("page", "a run/report.html"),
    ] {
        assert_eq!(row[field], value, "{row}");
    }
    let slowdown = &summary["overall"]["slowdown"];
    assert!(slowdown["p99"].as_f64().unwrap() >= 1.0);
    assert_eq!((&row["slowdown_mean"], &row["slowdown_p99"]), (&slowdown["mean"], &slowdown["p99"]));
    assert_eq!((&row["flows"], &row["seed"]), (&Value::from(4), &summary["run"]["seed"]));
    assert_eq!(index["live"], Value::Array(Vec::new()));

    let report = fs::read_to_string(lab.path("results/a run/report.html")).unwrap();
    assert_eq!(view.get("/a%20run/report.html").2, report);
    let (status, head, _) = view.get("/a%20run/");
    assert!(status == 302 && head.contains("location: /a%20run/report.html"), "{head}");
    let (status, head, body) = view.ask("HEAD", "/a%20run/report.html", &view.address);
    assert_eq!((status, body.as_str()), (200, ""));
    assert!(head.contains(&format!("content-length: {}", report.len())), "{head}");
    // The page may come from others, so it must not read the index.
    assert!(head.contains("content-security-policy: sandbox allow-scripts"), "{head}");

    for method in ["POST", "PUT", "DELETE"] {
        let (status, head, _) = view.ask(method, "/", &view.address);
        assert!(status == 405 && head.contains("allow: get, head"), "{head}");
    }
    let port = view.address.split_once(':').unwrap().1;
    assert_eq!(view.ask("GET", "/", &format!("localhost:{port}")).0, 200);
    for host in ["example.com", "127.0.0.1", "localhost:1", &format!("127.0.0.1.example.com:{port}"), ""] {
        for path in ["/", "/.index.json", "/a%20run/report.html"] {
            assert_eq!(view.ask("GET", path, host).0, 403, "{host}: {path}");
        }
    }
    for path in [
        "/../secret",
        "/a%20run/../../secret",
        "/%2e%2e/secret",
        "/%2E%2E%2fsecret",
        "/..%5csecret",
        "/out",
        "/up/secret",
        "/a%20run/nothing",
        "/.git/config",
    ] {
        let (status, _, body) = view.get(path);
        assert!(status == 404 && !body.contains("SECRET"), "{path}: {status}");
    }

    view.process.signal("-INT");
    assert_eq!(view.process.ends(), Some(0));
}

/// Half the rate takes twice as long, and the page says so. It is made anew for each request.
#[test]
fn two_runs_stand_beside_each_other() {
    let lab = Lab::with_small();
    let made = |set: &str, out: &str| {
        assert_eq!(lab.run(&["run", "small.toml", "--quiet", "--set", set, "--out", out]).code, 0);
    };
    made("scheme=ecmp", "results/a");
    made("scheme=weave", "results/b");
    let view = View::start(&lab, &["view", "results/a", "results/b", "--port", "0"]);
    let (status, head, page) = view.get("/");
    assert_eq!(status, 200);
    assert!(head.contains("content-security-policy: sandbox "), "{head}");
    let data = |page: &str| -> Value {
        let (_, from) = page.split_once("id=\"picture-data\">").unwrap();
        serde_json::from_str(from.split_once("</script>").unwrap().0).unwrap()
    };
    let runs = data(&page);
    assert_eq!([&runs[0]["name"], &runs[1]["name"]], ["A: small (ecmp)", "B: small (weave)"]);
    assert_eq!([&runs[0]["colour"], &runs[1]["colour"]], [7, 2]);
    let said = lab.run(&["diff", "results/a", "results/b"]).out;
    let sentence = said.lines().nth(2).unwrap();
    let (_, verdict) = page.split_once("<p class=\"verdict\">").unwrap();
    assert!(verdict.starts_with(sentence.split(" (").next().unwrap()), "{sentence}: {}", &verdict[..200]);
    // Nothing else is served, not even what lies in the folders.
    for path in ["/a/report.html", "/report.html", "/.index.json", "/results/a/summary.json"] {
        assert_eq!(view.get(path).0, 404, "{path}");
    }
    made("scheme=rps", "results/b");
    assert_eq!(data(&view.get("/").2)[1]["name"], "B: small (rps)");
    fs::remove_dir_all(lab.path("results/b")).unwrap();
    let (status, _, why) = view.get("/");
    assert!(status == 409 && why.contains("results/b: it has no results: there is no such folder"), "{why}");
    let done = lab.run(&["view", "results/a", "results/b", "--port", "0"]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    assert!(
        done.err.starts_with("error: cannot lay runs beside each other: results/b: it has no results"),
        "{}",
        done.err
    );
    let both =
        lab.run(&["compare", "small.toml", "--quiet", "--schemes", "ecmp,rps", "--out", "results/both"]);
    assert_eq!(both.code, 0);
    // A run beside a comparison: all runs of both.
    let view = View::start(&lab, &["view", "results/a", "results/both", "--port", "0"]);
    let runs = data(&view.get("/").2);
    let names: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run["name"]).collect();
    assert_eq!(names, ["A: small", "B: ecmp", "B: rps"]);
    // Comparisons side by side have no report of their own.
    fs::create_dir(lab.path("several")).unwrap();
    fs::rename(lab.path("results/both"), lab.path("several/both")).unwrap();
    let done = lab.run(&["view", "results/a", "several", "--port", "0"]);
    let expected = "several: it has the results of several comparisons";
    assert!(done.code == 2 && done.err.contains(expected), "{}", done.err);
}

#[test]
fn unservable_folders_are_refused_in_one_line() {
    let lab = Lab::new().file("file", "");
    fs::create_dir(lab.path("results")).unwrap();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (args, told) in [
        (["view", "result", "--port", "0"], "cannot serve result: there is no such folder; nearest: results"),
        (["view", "nothing/at/all", "--port", "0"], "cannot serve nothing/at/all: there is no such folder"),
        (["view", "file", "--port", "0"], "cannot serve file: it is not a folder"),
        (["view", "results", "--port", &port], &format!("--port {port}: another program uses that port")),
    ] {
        let done = lab.run(&args);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?}: {}", done.err);
        assert!(done.err.contains(told), "{args:?}: {}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    }
    let done = lab.run(&["view", "results", "--port", "65536"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("65536") && done.err.contains("65535"), "{}", done.err);
}

#[test]
fn a_run_under_way_is_seen_with_its_progress_until_its_results_are_there() {
    // The run takes a minute or more, of which seconds are observed. Bytes count when a message is complete, so the
    // time limit determines the progress.
    let long = crate::common::SMALL.replace("100KB", "4GB").replace("hosts = 4", "hosts = 64");
    let long = format!("{long}\n[run]\nuntil = \"1s\"\n");
    let lab = Lab::new().file("long.toml", long);
    fs::create_dir(lab.path("results")).unwrap();
    let view = View::of(&lab);
    let mut run =
        Running::start(&lab, &["run", "long.toml", "--quiet", "--out", "results/long"], Stdio::null());
    let goes = until("the run is seen, with curves", || {
        let goes = view.under_way();
        (goes["runs"][0]["time_ns"].as_array().is_some_and(|points| points.len() > 2)).then_some(goes)
    });
    assert_eq!((&goes["kind"], &goes["path"], &goes["alive"]), (&"run".into(), &"long".into(), &true.into()));
    assert_eq!(goes["process"], u64::from(run.0.id()));
    let later = until("it gets on", || {
        let later = view.under_way();
        (later["done"].as_f64() > goes["done"].as_f64()).then_some(later)
    });
    let (done, hops) = (later["done"].as_f64().unwrap(), &later["runs"][0]["packet_hops"]);
    let hops: Vec<u64> = hops.as_array().unwrap().iter().map(|hops| hops.as_u64().unwrap()).collect();
    assert!(done < 1.0 && hops.is_sorted() && hops.last() > Some(&0), "{later}");

    run.signal("-INT");
    assert_eq!(run.ends(), Some(130));
    let index = view.index();
    assert_eq!(index["live"], Value::Array(Vec::new()));
    let row = &index["rows"][0];
    assert_eq!(
        (&row["path"], &row["state"], &row["good"]),
        (&"long".into(), &"interrupted, 64 flows unfinished".into(), &false.into())
    );
    assert_eq!(names(&lab.path("results")), ["long"]);
    assert!(!names(&lab.path("results/long")).iter().any(|name| name.contains("progress")));
}

#[test]
fn the_report_of_a_sweeps_run_is_made_on_request() {
    let scenario = crate::common::SMALL
        .replace("[topology]", "[scenario.topology]")
        .replace("[[workload]]", "[[scenario.workload]]");
    let lab = Lab::new().file("sweep.toml", format!("{scenario}\n[[list]]\nname = \"a\"\n"));
    let done = lab.run(&["sweep", "sweep.toml", "--quiet", "--out", "results/sweep"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let key = lab.json("results/sweep/summary.json")["cells"][0]["runs"][0].as_str().unwrap().to_owned();
    let folder = format!("results/sweep/runs/run={key}");
    assert!(!names(&lab.path(&folder)).contains(&"report.html".to_owned()));
    let view = View::of(&lab);
    let path = format!("/sweep/runs/run={key}/report.html");
    let (status, head, page) = view.get(&path);
    assert!(status == 200 && head.contains("content-type: text/html"), "{head}");
    assert!(page.contains(lab.json(&format!("{folder}/run.json"))["digest"].as_str().unwrap()));
    assert!(!names(&lab.path(&folder)).contains(&"report.html".to_owned()), "it reads and does not write");

    // A page of another site must not cause work on this machine.
    let host = format!("{}\r\nSec-Fetch-Site: cross-site", view.address);
    assert_eq!(view.ask("GET", &path, &host).0, 404);
    assert_eq!(view.get("/sweep/runs/run=0/report.html").0, 404);
    assert_eq!(view.get("/sweep/runs/report.html").0, 404);
    // A request that would give a different run is refused, with advice.
    let file = lab.path(&folder).join("scenario.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"rps\"", "\"ecmp\"").replace("100KB", "200KB")).unwrap();
    drop(view);
    let (status, _, body) = View::of(&lab).get(&path);
    assert!(
        status == 409 && body.contains("has changed") && body.contains("pathweave run "),
        "{status}: {body}"
    );
}

#[test]
fn a_sweep_removes_what_a_killed_one_told() {
    let grid = "[[grid]]\nkey = \"scheme\"\nvalues = [\"ecmp\", \"rps\"]\n";
    let scenario = crate::common::SMALL
        .replace("[topology]", "[scenario.topology]")
        .replace("[[workload]]", "[[scenario.workload]]");
    let lab = Lab::new().file("sweep.toml", format!("{scenario}\n{grid}"));
    let again = || lab.run(&["sweep", "sweep.toml", "--quiet", "--out", "results/sweep"]);
    let done = again();
    assert_eq!(done.code, 0, "{}", done.err);
    // The remains of a process that has ended.
    let told = format!("{{\"schema\": \"pathweave.progress\", \"process\": {}}}", i32::MAX);
    for name in ["progress.json", ".progress.json"] {
        fs::write(lab.path("results/sweep").join(name), &told).unwrap();
    }
    let view = View::of(&lab);
    let index = view.index();
    assert_eq!((&index["live"][0]["path"], &index["live"][0]["alive"]), (&"sweep".into(), &false.into()));
    assert_eq!(
        (&index["rows"][0]["kind"], &index["rows"][0]["state"]),
        (&"sweep".into(), &"completed, 2 runs".into())
    );
    let done = again();
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(!names(&lab.path("results/sweep")).iter().any(|name| name.contains("progress")));
    assert_eq!(view.index()["live"], Value::Array(Vec::new()));
}

#[test]
fn clients_that_read_nothing_are_cut_off() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("results/x")).unwrap();
    fs::File::create(lab.path("results/x/big.bin")).unwrap().set_len(1 << 28).unwrap();
    let view = View::of(&lab);
    let request = format!("GET /x/big.bin HTTP/1.1\r\nHost: {}\r\n\r\n", view.address);
    // As many connections as are served concurrently. None of them reads.
    let silent = (0..64).map(|_| {
        let mut stream = TcpStream::connect(&view.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    });
    let silent: Vec<TcpStream> = silent.collect();
    assert_eq!(view.get("/").0, 200);
    drop(silent);
}
