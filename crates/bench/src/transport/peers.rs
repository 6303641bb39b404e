//! Peers at the same place: plain UDP, TCP by `iperf3`, and libfabric's providers by `fi_pingpong`.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::Value;

use super::figures::{Bandwidth, Latency};
use super::place::{End, Location};
use super::process::{ProcessResult, Running};

/// Time for a server to start that does not report when it is ready.
const START_UP: Duration = Duration::from_millis(150);
const UDP_PORT: u16 = 18_600;
const IPERF_PORT: &str = "18601";
const FABRIC_PORT: &str = "18602";

/// Measures plain UDP with segmentation offload at full speed. Received bytes count.
pub(crate) fn udp_stream(place: &Location, payload_bytes: u32, seconds: f64) -> Result<Bandwidth, String> {
    let more = [payload_bytes.to_string(), seconds.to_string()];
    let (client, server) = udp_ends(place, ["stream-server", "stream-client"], &more)?;
    let figure = |value: &Value, name: &str| value[name].as_f64().unwrap_or(0.0);
    let cpu = |value: &Value| {
        let bytes = figure(value, "bytes");
        (bytes > 0.0).then(|| figure(value, "cpu_seconds") * 1e9 / bytes)
    };
    Ok(Bandwidth {
        bytes_per_second: figure(&server, "bytes") / figure(&server, "seconds").max(1e-9),
        client_cpu_ns_per_byte: cpu(&client),
        server_cpu_ns_per_byte: cpu(&server),
        client_user_ns_per_byte: None,
        server_user_ns_per_byte: None,
    })
}

/// Measures round trips of 8 bytes over plain UDP, with both ends asleep in between.
pub(crate) fn udp_latency(place: &Location, seconds: f64) -> Result<Latency, String> {
    let (client, _) = udp_ends(place, ["echo-server", "echo-client"], &[seconds.to_string()])?;
    Latency::of(&client).ok_or_else(|| format!("no latency in {client}"))
}

fn udp_ends(place: &Location, parts: [&str; 2], more: &[String]) -> Result<(Value, Value), String> {
    let here = std::env::current_exe().map_err(|why| why.to_string())?;
    let here = here.to_string_lossy();
    let address = format!("{}:{UDP_PORT}", place.address(End::Server));
    let start = |end, part: &str, more: &[String]| {
        let mut command = place.command(end, &here);
        command.args(["--udp", part, &address]).args(more);
        Running::start(command)
    };
    let mut server = start(End::Server, parts[0], &[])?;
    let mut line = String::new();
    let output = server.child().stdout.as_mut().expect("it is piped");
    BufReader::new(output).read_line(&mut line).map_err(|why| why.to_string())?;
    let client = start(End::Client, parts[1], more)?.finish()?;
    let server = server.finish()?;
    let parse = |ran: &ProcessResult| {
        serde_json::from_str(ran.output.trim()).map_err(|why| format!("{why}: {}", ran.output))
    };
    Ok((parse(&client)?, parse(&server)?))
}

/// Measures one TCP connection.
pub(crate) fn iperf3(place: &Location, seconds: f64) -> Result<Bandwidth, String> {
    let mut server = place.command(End::Server, "iperf3");
    server.args(["-s", "-1", "-p", IPERF_PORT, "-B", place.address(End::Server)]);
    let server = Running::start(server)?;
    std::thread::sleep(START_UP);
    let mut client = place.command(End::Client, "iperf3");
    // It accepts whole seconds only.
    let seconds = seconds.ceil().max(1.0);
    client.args(["-c", place.address(End::Server), "-p", IPERF_PORT, "-J", "-t", &seconds.to_string()]);
    let client = Running::start(client)?.finish();
    let client = client?;
    drop(server);
    parse_iperf3(&client.output).ok_or_else(|| format!("iperf3 says {}", client.output))
}

fn parse_iperf3(output: &str) -> Option<Bandwidth> {
    let value: Value = serde_json::from_str(output).ok()?;
    let end = &value["end"];
    let received = &end["sum_received"];
    let (bytes, seconds) = (received["bytes"].as_f64()?, received["seconds"].as_f64()?);
    // Percent of one core.
    let cpu =
        |name: &str| Some(end["cpu_utilization_percent"][name].as_f64()? / 100.0 * seconds * 1e9 / bytes);
    Some(Bandwidth {
        bytes_per_second: bytes / seconds,
        client_cpu_ns_per_byte: cpu("host_total"),
        server_cpu_ns_per_byte: cpu("remote_total"),
        client_user_ns_per_byte: None,
        server_user_ns_per_byte: None,
    })
}

/// Provider of libfabric, driven by `fi_pingpong`, which sends one message at a time in each direction.
pub(crate) struct Fabric {
    pub(crate) provider: &'static str,
    pub(crate) endpoint: &'static str,
    /// Number of messages of the first run, whose times give the number for the measurement.
    pub(crate) first_iterations: u32,
}

/// Smallest duration of a measurement. CPU time of other processes is counted in hundredths of a second.
const LONG_ENOUGH: Duration = Duration::from_millis(1_000);
const LEAST_CPU_SECONDS: f64 = 0.1;
const MOST_ITERATIONS: f64 = 20_000.0;

impl Fabric {
    pub(crate) const TCP: Fabric = Fabric { provider: "tcp", endpoint: "msg", first_iterations: 20 };
    pub(crate) const UDP_RXD: Fabric =
        Fabric { provider: "udp;ofi_rxd", endpoint: "rdm", first_iterations: 2 };

    /// Returns the CPU seconds of client and server with almost no messages.
    pub(crate) fn start_up(&self, place: &Location) -> Result<(f64, f64), String> {
        let (client, server) = self.run(place, 8, 1)?;
        Ok((client.cpu_seconds, server.cpu_seconds))
    }

    /// Measures messages of `size_bytes`. Bytes of both directions count.
    pub(crate) fn bandwidth(
        &self,
        place: &Location,
        size_bytes: u64,
        start_up: (f64, f64),
    ) -> Result<Bandwidth, String> {
        let time_us = |client: &ProcessResult| {
            let parsed = parse_fabric(&client.output).map(|(time_us, _)| time_us);
            parsed.filter(|us| *us > 0.0).ok_or_else(|| format!("it says {}", client.output))
        };
        let (first, _) = self.run(place, size_bytes, self.first_iterations)?;
        // Each message is answered by another one.
        let enough = LONG_ENOUGH.as_micros() as f64 / (2.0 * time_us(&first)?);
        let iterations = enough.clamp(self.first_iterations.into(), MOST_ITERATIONS) as u32;
        let (client, server) = self.run(place, size_bytes, iterations)?;
        let time_us = time_us(&client)?;
        let bytes = 2.0 * size_bytes as f64 * f64::from(iterations);
        let cpu = |ran: &ProcessResult, start_up: f64| {
            let used = ran.cpu_seconds - start_up;
            (used >= LEAST_CPU_SECONDS).then(|| used * 1e9 / bytes)
        };
        Ok(Bandwidth {
            bytes_per_second: size_bytes as f64 / (time_us / 1e6),
            client_cpu_ns_per_byte: cpu(&client, start_up.0),
            server_cpu_ns_per_byte: cpu(&server, start_up.1),
            client_user_ns_per_byte: None,
            server_user_ns_per_byte: None,
        })
    }

    /// Returns the mean one-way microseconds of 8 bytes.
    pub(crate) fn latency_us(&self, place: &Location, iterations: u32) -> Result<f64, String> {
        let (client, _) = self.run(place, 8, iterations)?;
        let parsed = parse_fabric(&client.output).ok_or_else(|| format!("it says {}", client.output))?;
        Ok(parsed.0)
    }

    fn run(
        &self,
        place: &Location,
        size_bytes: u64,
        iterations: u32,
    ) -> Result<(ProcessResult, ProcessResult), String> {
        let program = |end| {
            let mut command = place.command(end, "fi_pingpong");
            command.args(["-p", self.provider, "-e", self.endpoint]);
            command.args(["-S", &size_bytes.to_string(), "-I", &iterations.to_string()]);
            command
        };
        let mut server = program(End::Server);
        server.args(["-B", FABRIC_PORT]);
        let server = Running::start(server)?;
        std::thread::sleep(START_UP);
        let mut client = program(End::Client);
        client.args(["-P", FABRIC_PORT, place.address(End::Server)]);
        let client = Running::start(client)?.finish()?;
        Ok((client, server.finish()?))
    }
}

/// Parses microseconds and MB/s from the last line: bytes, #sent, #ack, total, time, MB/sec, usec/xfer, Mxfers/sec.
fn parse_fabric(output: &str) -> Option<(f64, f64)> {
    let line = output.lines().rev().find(|line| line.contains('='))?;
    let mut fields = line.split_whitespace().skip(5);
    let mb_per_second = fields.next()?.parse().ok()?;
    Some((fields.next()?.parse().ok()?, mb_per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_others_are_read() {
        let output = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                      1m      100     =100     200m        4.17s     50.34   20828.91       0.00\n";
        assert_eq!(parse_fabric(output), Some((20_828.91, 50.34)));
        assert_eq!(parse_fabric("error"), None);
        let output = r#"{"end": {"sum_received": {"bytes": 2e9, "seconds": 2.0},
            "cpu_utilization_percent": {"host_total": 50.0, "remote_total": 25.0}}}"#;
        let expected = Bandwidth {
            bytes_per_second: 1e9,
            client_cpu_ns_per_byte: Some(0.5),
            server_cpu_ns_per_byte: Some(0.25),
            client_user_ns_per_byte: None,
            server_user_ns_per_byte: None,
        };
        assert_eq!(parse_iperf3(output), Some(expected));
        assert_eq!(parse_iperf3("{}"), None);
    }
}
