//! `pathweave perf server` that exits after a number of clients, and its report.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Done, Lab, Running};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);

impl Running {
    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
    }

    /// Returns the exit code and the output after the process has ended by itself. The output must fit a pipe.
    fn end(mut self) -> (i32, String) {
        let since = Instant::now();
        let status = loop {
            match self.0.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(since.elapsed() < PATIENCE, "it does not end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (status.code().unwrap_or(-1), text)
    }
}

const SERVER: [&str; 6] = ["perf", "server", "--bind", "127.0.0.1:0", "--insecure", "--clients"];

/// Returns the address in the line that a server prints at its start.
fn address(line: &str) -> String {
    assert!(line.starts_with("listening on "), "{line:?}");
    line.split_whitespace().nth(2).unwrap().to_owned()
}

/// Starts a server that prints JSON, and therefore prints its address on standard error.
fn server(lab: &Lab, args: &[&str]) -> (Running, String) {
    let mut server = Running::start(lab, &[&SERVER, args, &["--json"]].concat(), Stdio::piped());
    let mut lines = BufReader::new(server.0.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    // The pipe is read continuously, so that the server never blocks.
    std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    (server, address(&line))
}

fn client(lab: &Lab, address: &str, args: &[&str]) -> Done {
    lab.run(&[&["perf", "client", address, "--insecure", "--progress", "never"], args].concat())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

#[test]
fn two_clients_at_once_are_told_of_when_both_are_done() {
    let lab = Lab::new();
    let (server, address) = server(&lab, &["2"]);
    let args = ["--op", "send", "--size", "1000", "--iterations", "30", "--bidirectional"];
    std::thread::scope(|scope| {
        let one = scope.spawn(|| client(&lab, &address, &["--size", "2000,100000", "--iterations", "50"]));
        let other = scope.spawn(|| client(&lab, &address, &args));
        for done in [one.join().unwrap(), other.join().unwrap()] {
            assert_eq!(done.code, 0, "{}", done.err);
        }
    });
    let (code, text) = server.end();
    assert_eq!(code, 0);
    let told = json(&text);
    assert_eq!((&told["ended"], &told["server"]), (&"done".into(), &address.as_str().into()));
    let mut clients: Vec<&Value> = told["clients"].as_array().unwrap().iter().collect();
    clients.sort_by_key(|client| client["measurements"][0]["op"].to_string());
    let [one, two] = clients[..] else { panic!("{text}") };
    let is = |measurement: &Value, op: &str, size: u64, least: [u64; 2]| {
        assert_eq!((&measurement["op"], &measurement["size_bytes"]), (&op.into(), &size.into()));
        assert_eq!((&measurement["kind"], &measurement["ended"]), (&"bandwidth".into(), &"done".into()));
        assert!(measurement["seconds"].as_f64().unwrap() > 0.0);
        let moved = ["received_bytes", "sent_bytes"].map(|name| measurement[name].as_u64().unwrap());
        assert!(moved[0] >= least[0] && moved[1] >= least[1], "{measurement}");
    };
    is(&one["measurements"][0], "send", 1_000, [30_000, 30_000]);
    is(&two["measurements"][0], "write", 2_000, [50 * 2_000, 0]);
    is(&two["measurements"][1], "write", 100_000, [50 * 100_000, 0]);
    assert!(one["address"].as_str().unwrap().starts_with("127.0.0.1:") && one["address"] != two["address"]);
}

/// A survey lasts until its client closes the connection, which is no failure.
#[test]
fn a_survey_that_ends_is_done() {
    let lab = Lab::new();
    let (server, address) = server(&lab, &["1"]);
    let done = lab.run(&["ping", &address, "--insecure", "--count", "2", "--interval", "0.05"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let (code, text) = server.end();
    assert_eq!(code, 0);
    let measurement = &json(&text)["clients"][0]["measurements"][0];
    assert_eq!((&measurement["kind"], &measurement["ended"]), (&"survey".into(), &"done".into()), "{text}");
}

#[test]
fn one_more_than_it_takes_is_refused_and_the_table_tells_of_the_others() {
    let lab = Lab::new();
    let mut server = Running::start(&lab, &[&SERVER[..], &["1"]].concat(), Stdio::piped());
    let mut out = BufReader::new(server.0.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let address = address(&line);
    let args = ["perf", "client", &address, "--insecure", "--progress", "never", "--time", "3600"];
    let first = Running::start(&lab, &[&args[..], &["--size", "64KiB"]].concat(), Stdio::piped());
    let mut said = BufReader::new(server.0.stderr.take().unwrap());
    line.clear();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("write bandwidth, 65536 bytes"), "{line}");
    let second = client(&lab, &address, &[]);
    assert_eq!(second.code, 2, "{}", second.err);
    assert!(second.err.contains("no more than 1 clients (--clients)"), "{}", second.err);
    first.interrupt();
    assert_eq!(first.end().0, 130);
    // The process ends by itself and closes the pipe.
    let mut table = String::new();
    out.read_to_string(&mut table).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("127.0.0.1:")).collect();
    assert_eq!(rows.len(), 1, "{table}");
    assert!(rows[0].contains("write bandwidth") && rows[0].contains("65536"), "{table}");
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn datagrams_are_told_of_as_well() {
    let lab = Lab::new();
    let (server, address) = server(&lab, &["1", "--transport", "erd"]);
    let done = client(
        &lab,
        &address,
        &["--transport", "erd", "--size", "64,20000", "--iterations", "20", "--depth", "4"],
    );
    assert_eq!(done.code, 0, "{}", done.err);
    let (code, text) = server.end();
    assert_eq!(code, 0);
    let told = json(&text);
    let clients = told["clients"].as_array().unwrap();
    assert_eq!(clients.len(), 1, "{text}");
    for (measurement, size) in clients[0]["measurements"].as_array().unwrap().iter().zip([64, 20_000]) {
        assert_eq!((&measurement["size_bytes"], &measurement["ended"]), (&size.into(), &"done".into()));
        assert!(measurement["received_bytes"].as_u64().unwrap() >= 20 * size, "{measurement}");
    }
    assert_eq!(clients[0]["measurements"].as_array().unwrap().len(), 2);
}
