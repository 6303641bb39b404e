//! Results as text and as JSON.

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde::Serialize;

use crate::end::{Part, append_pair, sums};
use crate::samples::Latency;
use crate::test::{Check, Directions, Kind, Op};
use crate::work::Work;

const RULE: usize = 100;

/// Figures of a measurement, independent of the service.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) size_bytes: u64,
    /// Number of messages that the client has completed.
    pub(crate) iterations: u64,
    /// Bytes per second that both ends together have completed.
    pub(crate) average_bytes_per_second: f64,
    /// Sum of the best 100 ms of each end.
    pub(crate) peak_bytes_per_second: f64,
    pub(crate) messages_per_second: f64,
    /// CPU time of each end per byte, counting the bytes of both directions.
    pub(crate) client_cpu_ns_per_byte: Option<f64>,
    pub(crate) server_cpu_ns_per_byte: Option<f64>,
    /// The part of that CPU time spent outside the kernel.
    pub(crate) client_user_ns_per_byte: Option<f64>,
    pub(crate) server_user_ns_per_byte: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
}

/// Set-up of both ends.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Setup {
    pub(crate) op: Op,
    /// `erd` for datagrams. Absent for a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<&'static str>,
    pub(crate) kind: Kind,
    pub(crate) directions: Directions,
    pub(crate) check: Check,
    pub(crate) server: SocketAddr,
    pub(crate) scheme: String,
    pub(crate) protection: String,
    pub(crate) paths: u16,
    pub(crate) mtu_payload_bytes: u16,
    pub(crate) depth: u32,
    /// Scan period, for datagrams only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scan_period_us: Option<f64>,
}

/// Completed measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row<S> {
    #[serde(flatten)]
    pub(crate) figures: Figures,
    pub(crate) client: S,
    pub(crate) server: S,
}

/// Reason why a client's measurements ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All measurements completed.
    Done,
    /// The user interrupted.
    Interrupted,
    /// A measurement failed.
    Broken,
}

impl Figures {
    /// Computes the figures for a message size from the work of both ends.
    pub(crate) fn of(size_bytes: u64, client: &Work, server: &Work, latency: Option<Latency>) -> Self {
        let bytes = client.bytes + server.bytes;
        Figures {
            size_bytes,
            iterations: client.messages,
            average_bytes_per_second: client.rate(client.bytes) + server.rate(server.bytes),
            peak_bytes_per_second: client.peak_bytes_per_second + server.peak_bytes_per_second,
            messages_per_second: client.rate(client.messages) + server.rate(server.messages),
            client_cpu_ns_per_byte: client.cpu_ns_per_byte(bytes),
            server_cpu_ns_per_byte: server.cpu_ns_per_byte(bytes),
            client_user_ns_per_byte: client.user_ns_per_byte(bytes),
            server_user_ns_per_byte: server.user_ns_per_byte(bytes),
            latency,
        }
    }
}

/// Returns all results as JSON.
pub(crate) fn json<S: Serialize>(setup: &Setup, rows: &[Row<S>], ended: Ended) -> String {
    #[derive(Serialize)]
    struct Document<'a, S> {
        setup: &'a Setup,
        ended: Ended,
        results: &'a [Row<S>],
    }
    crate::json(&Document { setup, ended, results: rows })
}

/// Returns the report in the format of the RDMA perftests, followed by further results.
pub(crate) fn text<S: Part>(setup: &Setup, rows: &[Row<S>]) -> String {
    let mut text = heading(setup);
    if rows.is_empty() {
        return text;
    }
    let figures: Vec<&Figures> = rows.iter().map(|row| &row.figures).collect();
    match setup.kind {
        Kind::Latency => latency(&mut text, &figures),
        Kind::Bandwidth | Kind::Survey => bandwidth(&mut text, &figures),
    }
    rule(&mut text);
    ends(&mut text, rows);
    if let Some(last) = rows.last() {
        paths(&mut text, setup, last);
    }
    if setup.check == Check::EveryByte {
        let [checked, wrong] = [|work: &Work| work.checked_messages, |work: &Work| work.wrong_messages]
            .map(|of| sums(rows, |side| of(side.work())).into_iter().sum::<u64>());
        let _ = writeln!(text, "\nchecked byte by byte: {checked} messages, {wrong} wrong");
    }
    text
}

pub(crate) fn rule(text: &mut String) {
    text.push_str(&"-".repeat(RULE));
    text.push('\n');
}

fn heading(setup: &Setup) -> String {
    let op = match setup.op {
        Op::Send => "SEND",
        Op::Write => "WRITE",
        Op::Read => "READ",
    };
    let what = match (setup.kind, setup.directions) {
        (Kind::Latency, _) => "latency",
        (_, Directions::One) => "bandwidth",
        (_, Directions::Both) => "bandwidth, both directions",
    };
    let mut text = String::new();
    rule(&mut text);
    let service = if setup.transport.is_some() { "Datagram " } else { "" };
    let scan = setup.scan_period_us.map_or(String::new(), |us| format!(", a scan every {us:.1} us"));
    let _ = writeln!(
        text,
        " {service}{op} {what}: server {}, scheme {}, {} paths, {}",
        setup.server, setup.scheme, setup.paths, setup.protection
    );
    let _ = writeln!(
        text,
        " payload of a packet {} bytes, depth {}{scan}; MB are 10^6 bytes",
        setup.mtu_payload_bytes, setup.depth
    );
    rule(&mut text);
    text
}

fn bandwidth(text: &mut String, rows: &[&Figures]) {
    let _ = writeln!(
        text,
        " {:<11} {:<12} {:>14} {:>17} {:>14} {:>12} {:>12}",
        "#bytes",
        "#iterations",
        "BW peak[MB/s]",
        "BW average[MB/s]",
        "MsgRate[Mpps]",
        "client[ns/B]",
        "server[ns/B]"
    );
    for row in rows {
        let _ = writeln!(
            text,
            " {:<11} {:<12} {:>14.2} {:>17.2} {:>14.6} {:>12} {:>12}",
            row.size_bytes,
            row.iterations,
            row.peak_bytes_per_second / 1e6,
            row.average_bytes_per_second / 1e6,
            row.messages_per_second / 1e6,
            figure(row.client_cpu_ns_per_byte),
            figure(row.server_cpu_ns_per_byte)
        );
    }
}

fn latency(text: &mut String, rows: &[&Figures]) {
    let _ = writeln!(
        text,
        " {:<9} {:<11} {:>10} {:>11} {:>15} {:>11} {:>13} {:>9} {:>10}",
        "#bytes",
        "#iterations",
        "t_min[us]",
        "t_max[us]",
        "t_typical[us]",
        "t_avg[us]",
        "t_stdev[us]",
        "99%[us]",
        "99.9%[us]"
    );
    for row in rows {
        let Some(times) = &row.latency else { continue };
        let _ = writeln!(
            text,
            " {:<9} {:<11} {:>10.2} {:>11.2} {:>15.2} {:>11.2} {:>13.2} {:>9.2} {:>10.2}",
            row.size_bytes,
            row.iterations,
            times.min_us,
            times.max_us,
            times.typical_us,
            times.avg_us,
            times.stdev_us,
            times.p99_us,
            times.p999_us
        );
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}

/// Appends the sums over all sizes, with a column per end.
fn ends<S: Part>(text: &mut String, rows: &[Row<S>]) {
    append_pair(text, S::NAMES, "", ["client", "server"]);
    for (name, figures) in S::counts(rows) {
        append_pair(text, S::NAMES, name, figures);
    }
    let cpu = |of: fn(&Row<S>) -> &S| {
        let seconds = rows.iter().map(|row| of(row).work().cpu_seconds).sum::<f64>();
        format!("{seconds:.3}")
    };
    append_pair(text, S::NAMES, "CPU time[s]", [cpu(|row| &row.client), cpu(|row| &row.server)]);
    if rows.iter().any(|row| row.server.others() > 1) {
        text.push_str(" The server had other clients at the time: its CPU time is for all of them.\n");
    }
}

/// Appends the paths of each end that sent data, for the last size.
fn paths<S: Part>(text: &mut String, setup: &Setup, row: &Row<S>) {
    let (client, server) = (("client to server", &row.client), ("server to client", &row.server));
    let senders = match (setup.op, setup.directions, setup.kind) {
        (Op::Read, Directions::One, _) => vec![server],
        (_, Directions::One, Kind::Bandwidth) => vec![client],
        _ => vec![client, server],
    };
    for (whose, side) in senders {
        let _ = writeln!(text, "\n Paths, {whose}, of {} bytes", row.figures.size_bytes);
        side.paths(text);
    }
}
