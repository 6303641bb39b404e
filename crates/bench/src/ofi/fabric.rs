//! Tagged messages over a libfabric provider, measured by a program that treats all providers alike.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::{Value, json};

use super::site::Site;
use super::tools::{Subject, Tools};
use crate::transport::place::End;
use crate::transport::process::{ProcessError, Running};

/// Time that a program may take beyond its measurement.
const TIMEOUT: Duration = Duration::from_secs(10);
const LATENCY_BYTES: usize = 8;
const MESSAGE_BYTES: usize = 1 << 20;
const WINDOW: usize = 16;

/// Parameters of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measurement {
    mode: &'static str,
    bytes: usize,
    window: usize,
    pub(super) seconds: u32,
    bins: bool,
}

impl Measurement {
    pub(super) const LATENCY: Measurement =
        Measurement { mode: "latency", bytes: LATENCY_BYTES, window: 1, seconds: 1, bins: false };
    pub(super) const BANDWIDTH: Measurement =
        Measurement { mode: "bandwidth", bytes: MESSAGE_BYTES, window: WINDOW, seconds: 1, bins: false };

    /// Returns the same measurement with another duration.
    pub(super) fn with_duration(self, seconds: u32) -> Measurement {
        Measurement { seconds, ..self }
    }

    /// Returns a stream of messages of this size, with `window` of them in flight.
    pub(super) fn stream(bytes: usize, window: usize, seconds: u32) -> Measurement {
        Measurement { bytes, window, ..Measurement::BANDWIDTH.with_duration(seconds) }
    }

    /// Returns a stream of small messages, which resolves the arrival of bytes in time.
    pub(super) fn in_bins(seconds: u32) -> Measurement {
        Measurement { mode: "bandwidth", bytes: 16 << 10, window: 64, seconds, bins: true }
    }
}

/// Pair of running programs, server and client.
pub(super) struct Pair {
    server: Running,
    client: Running,
    ask: Measurement,
}

/// Result of a measurement.
pub(super) struct Measured {
    pub(super) value: Value,
    /// Last output of the server.
    pub(super) arrivals: String,
}

impl Pair {
    pub(super) fn start(
        site: &Site<'_>,
        tools: &Tools,
        subject: &Subject,
        ask: Measurement,
    ) -> Result<Pair, ProcessError> {
        let program = tools.fabric.to_string_lossy();
        let start = |end, first: &str, more: &[String]| {
            let mut command = site.command(end, &program);
            command.args([first, subject.provider, &site.address(end)]).args(more);
            command.envs(subject.variables(tools, &site.variables(end)));
            site.start(end, command).map_err(ProcessError::Failed)
        };
        let mut server = start(End::Server, "serve", &[u8::from(ask.bins).to_string()])?;
        let mut line = String::new();
        let output = server.child().stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).map_err(|why| ProcessError::Failed(why.to_string()))?;
        if line.trim().is_empty() {
            // The server has printed the reason.
            return Err(server.finish_within(TIMEOUT).err().unwrap_or(ProcessError::Hung(TIMEOUT)));
        }
        let more = [line.trim(), ask.mode].map(str::to_owned).into_iter();
        let numbers = [ask.bytes as u64, ask.window as u64, u64::from(ask.seconds)];
        let more: Vec<String> = more.chain(numbers.map(|number| number.to_string())).collect();
        let client = start(End::Client, "drive", &more)?;
        Ok(Pair { server, client, ask })
    }

    pub(super) fn finish(self) -> Result<Measured, ProcessError> {
        let ran = self.client.finish_within(TIMEOUT + Duration::from_secs(self.ask.seconds.into()))?;
        let value = serde_json::from_str(ran.output.trim())
            .map_err(|why| ProcessError::Failed(format!("{why}: {}", ran.output)))?;
        let arrivals = if self.ask.bins { self.server.finish_within(TIMEOUT)?.output } else { String::new() };
        Ok(Measured { value, arrivals })
    }
}

/// Measures once.
pub(super) fn measure(
    site: &Site<'_>,
    tools: &Tools,
    subject: &Subject,
    ask: Measurement,
) -> Result<Value, ProcessError> {
    Ok(Pair::start(site, tools, subject, ask)?.finish()?.value)
}

/// Figures of one provider at one site, measured in turns with other providers.
pub(super) struct Series {
    pub(super) subject: Subject,
    latencies: Vec<Value>,
    streams: Vec<Value>,
    broken: Vec<ProcessError>,
}

impl Series {
    pub(super) fn new(subject: Subject) -> Self {
        Series { subject, latencies: Vec::new(), streams: Vec::new(), broken: Vec::new() }
    }

    /// Measures once. A provider that has failed once is skipped from then on.
    pub(super) fn turn(&mut self, site: &Site<'_>, tools: &Tools, ask: Measurement) {
        if !self.broken.is_empty() {
            return;
        }
        match measure(site, tools, &self.subject, ask) {
            Ok(value) if ask.mode == "latency" => self.latencies.push(value),
            Ok(value) => self.streams.push(value),
            Err(broken) => self.broken.push(broken),
        }
    }

    /// Returns the median of the typical times, which are half a round trip.
    pub(super) fn latency_us(&self) -> Option<f64> {
        median(self.latencies.iter().filter_map(|value| value["typical_us"].as_f64()))
    }

    /// Returns the median rate.
    pub(super) fn mb_per_second(&self) -> Option<f64> {
        median(self.streams.iter().filter_map(rate))
    }

    pub(super) fn line(&self) -> String {
        let text = |value: Option<f64>, unit| value.map_or("-".into(), |value| format!("{value:.1} {unit}"));
        let broken = self.broken.iter().map(|broken| format!("  {broken}")).collect::<String>();
        let cpu = median(self.streams.iter().filter_map(|value| cpu(value, "client_cpu_s")));
        format!(
            "    {:<22} {:>12} {:>14}  client {:>12}{broken}",
            self.subject.name,
            text(self.latency_us(), "us"),
            text(self.mb_per_second(), "MB/s"),
            cpu.map_or("-".into(), |ns| format!("{ns:.3} ns/B"))
        )
    }

    pub(super) fn json(&self) -> Value {
        let of = |part: &str| median(self.streams.iter().filter_map(|value| cpu(value, part)));
        let waits = self.streams.first().map(|value| value["waits"].clone());
        json!({
            "provider": self.subject.name,
            "latency_8_bytes": self.latencies,
            "latency_us": self.latency_us(),
            "mb_per_second": self.mb_per_second(),
            "mb_per_second_runs": self.streams.iter().filter_map(rate).collect::<Vec<_>>(),
            "client_cpu_ns_per_byte": of("client_cpu_s"),
            "server_cpu_ns_per_byte": of("server_cpu_s"),
            "waits": waits,
            "hung": self.broken.iter().any(|broken| matches!(broken, ProcessError::Hung(_))),
            "errors": self.broken.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

/// Returns the megabytes per second of a stream.
pub(super) fn rate(value: &Value) -> Option<f64> {
    Some(value["bytes"].as_f64()? / 1e6 / value["seconds"].as_f64()?)
}

fn cpu(value: &Value, part: &str) -> Option<f64> {
    let bytes = value["bytes"].as_f64().filter(|bytes| *bytes > 0.0)?;
    Some(value[part].as_f64()? * 1e9 / bytes)
}

/// Returns the median. With an even count, the larger of the two middle values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_medians() {
        let stream = json!({ "bytes": 4_000_000, "seconds": 2.0, "client_cpu_s": 0.004 });
        assert_eq!(rate(&stream), Some(2.0));
        assert_eq!(cpu(&stream, "client_cpu_s"), Some(1.0));
        assert_eq!(cpu(&json!({ "bytes": 0 }), "client_cpu_s"), None);
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median(std::iter::empty()), None);
    }
}
