//! Benchmark of the carriers that bypass the kernel, beside UDP sockets: AF_XDP, and shared memory of two processes
//! over DPDK if it is built in. Measures CPU time per byte in the process and in the kernel, bytes per second, and
//! the round trip of 8 bytes.
//!
//! Virtual interfaces have XDP, but not its zero copy. Over AF_XDP the kernel then builds each packet from a copy, so
//! the kernel's part does not apply to a network adapter. The process's own part is the same with any interface.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::transport::ours::{Ours, Protection, Server};
use crate::transport::place::{End, Location, Packets};
use crate::transport::{Bandwidth, Floor, Latency};

/// Name on the command line and in the report.
pub(crate) const NAME: &str = "bypass";

const SIZE_BYTES: u64 = 1 << 20;
const MTUS_BYTES: [u32; 2] = [1_500, 9_000];
/// Duration of one measurement in seconds.
const SECONDS: f64 = 1.0;
/// Number of measurements of each carrier, in turns. The median counts.
const ROUNDS: usize = 3;
/// Floor: CPU time of the process itself over AF_XDP, relative to all CPU time over sockets.
const SHARE: f64 = 0.5;
/// Floor: bytes per second over shared memory, relative to sockets.
const RATE_RATIO: f64 = 1.5;

/// Carrier of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Sockets,
    AfXdp,
    Memif,
}

impl Carrier {
    const ALL: [Carrier; 3] = [Carrier::Sockets, Carrier::AfXdp, Carrier::Memif];

    fn name(self) -> &'static str {
        match self {
            Carrier::Sockets => "UDP sockets",
            Carrier::AfXdp => "AF_XDP",
            Carrier::Memif => "DPDK memif",
        }
    }

    /// Returns the command-line options of an end.
    fn options(self, end: End, place: &Location, socket: &Socket) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Carrier::Sockets => Vec::new(),
            Carrier::AfXdp => words(&["--backend", "af-xdp", "--interface", crate::transport::place::PORT]),
            Carrier::Memif => {
                let role = if end == End::Server { "server" } else { "client" };
                let vdev = format!("net_memif0,role={role},socket={},socket-abstract=no", socket.0.display());
                let address = format!("{}/24", place.address(end));
                words(&["--backend", "dpdk", "--vdev", &vdev, "--address", &address])
            }
        }
    }
}

/// Socket through which two processes set up shared memory.
struct Socket(PathBuf);

impl Socket {
    fn new() -> Self {
        Socket(std::env::temp_dir().join(format!("pathweave-bench-{}.sock", std::process::id())))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Measures and prints. Returns true if all floors are met.
#[allow(clippy::print_stdout)]
pub(crate) fn run() -> (Value, bool) {
    println!(
        "{NAME}  AF_XDP and DPDK beside UDP sockets, 1 MiB WRITEs on one path, real packets between two network namespaces"
    );
    let (place, why) = Location::make();
    if let Some(why) = why {
        println!("    note: left out, because {why}");
        return (json!({ "notes": [why] }), true);
    }
    let ours = match Ours::find() {
        Ok(ours) => ours,
        Err(why) => {
            println!("    note: {why}");
            return (json!({ "notes": [why] }), true);
        }
    };
    let mut report = Report::new();
    for mtu_bytes in MTUS_BYTES {
        report.streams(&place, &ours, mtu_bytes);
    }
    report.latencies(&place, &ours);
    report.floors.iter().for_each(|floor| println!("{}", floor.line()));
    (report.json(), report.floors.iter().all(Floor::is_met))
}

struct Report {
    socket: Socket,
    /// Carriers that could not be measured. A note names the reason.
    left_out: Vec<Carrier>,
    streams: Vec<Value>,
    latencies: Vec<Value>,
    floors: Vec<Floor>,
    notes: Vec<String>,
}

#[allow(clippy::print_stdout)]
impl Report {
    fn new() -> Self {
        Report {
            socket: Socket::new(),
            left_out: Vec::new(),
            streams: Vec::new(),
            latencies: Vec::new(),
            floors: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn note(&mut self, why: String) {
        println!("    note: {why}");
        self.notes.push(why);
    }

    /// Measures all carriers in turns, each with its options at both ends.
    fn measure_carriers<T>(
        &mut self,
        (place, ours, mtu_bytes): (&Location, &Ours, u32),
        more: &[&str],
        mut measure: impl FnMut(Server<'_>) -> Result<T, String>,
    ) -> [Vec<T>; Carrier::ALL.len()] {
        let mut measured = [const { Vec::new() }; Carrier::ALL.len()];
        for _ in 0..ROUNDS {
            for carrier in Carrier::ALL {
                if self.left_out.contains(&carrier) {
                    continue;
                }
                let options = [End::Client, End::Server].map(|end| carrier.options(end, place, &self.socket));
                let options = options.each_ref().map(|options| {
                    options.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>()
                });
                let [client, server] = options.each_ref().map(Vec::as_slice);
                let result = ours.serve_each(place, mtu_bytes, Protection::Off, [client, server]);
                match result.and_then(&mut measure) {
                    Ok(value) => measured[carrier as usize].push(value),
                    Err(why) => {
                        self.left_out.push(carrier);
                        self.note(format!("{} is left out: {why}", carrier.name()));
                    }
                }
            }
        }
        measured
    }

    fn streams(&mut self, place: &Location, ours: &Ours, mtu_bytes: u32) {
        if let Err(why) = place.set(mtu_bytes, Packets::Real) {
            return self.note(why);
        }
        let measured = self.measure_carriers((place, ours, mtu_bytes), &[], |server| {
            server.bandwidth("write", SIZE_BYTES, SECONDS)
        });
        let cost = |stream: &Bandwidth| stream.cpu_ns_per_byte().unwrap_or(f64::MAX);
        let [sockets, af_xdp, memif] = measured.map(|streams| median_by(streams, cost));
        for (carrier, stream) in Carrier::ALL.into_iter().zip([&sockets, &af_xdp, &memif]) {
            let Some(stream) = stream else { continue };
            let (all, user) = (cost(stream), stream.user_ns_per_byte().unwrap_or(0.0));
            println!(
                "    {:<12} {mtu_bytes:>5}  {:>8.1} MB/s  {user:>6.3} ns/B in the processes, {:>6.3} in the kernel",
                carrier.name(),
                stream.bytes_per_second / 1e6,
                all - user
            );
            let mut value = stream.json();
            value["carrier"] = carrier.name().into();
            value["mtu_bytes"] = mtu_bytes.into();
            self.streams.push(value);
        }
        let Some(sockets) = sockets else { return };
        if let Some(user) = af_xdp.and_then(|stream| stream.user_ns_per_byte()) {
            let what = format!("{mtu_bytes}: time of both processes over AF_XDP, of all time over sockets");
            self.floors.push(Floor { what, measured: user / cost(&sockets).max(1e-9), at_most: SHARE });
        }
        if let Some(memif) = memif {
            let what = format!("{mtu_bytes}: bytes a second over sockets, of those over DPDK's memif");
            let measured = sockets.bytes_per_second / memif.bytes_per_second.max(1e-9);
            self.floors.push(Floor { what, measured, at_most: 1.0 / RATE_RATIO });
        }
    }

    fn latencies(&mut self, place: &Location, ours: &Ours) {
        if let Err(why) = place.set(MTUS_BYTES[0], Packets::Real) {
            return self.note(why);
        }
        for (mode, option) in [("sleeping", None), ("busy poll", Some("--busy-poll"))] {
            let more: Vec<&str> = option.into_iter().collect();
            let measured =
                self.measure_carriers((place, ours, MTUS_BYTES[0]), &more, |server| server.latency(SECONDS));
            for (carrier, latencies) in Carrier::ALL.into_iter().zip(measured) {
                let Some(latency) = median_by(latencies, |latency: &Latency| latency.typical_us) else {
                    continue;
                };
                println!("{}", latency.line(&format!("8 B, {mode}, {}", carrier.name())));
                let mut value = latency.json();
                value["carrier"] = carrier.name().into();
                value["mode"] = mode.into();
                self.latencies.push(value);
            }
        }
    }

    fn json(&self) -> Value {
        json!({
            "message_bytes": SIZE_BYTES,
            "streams": self.streams,
            "latency_8_bytes": self.latencies,
            "floors": self.floors.iter().map(Floor::json).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// Returns the median element by a figure.
fn median_by<T>(mut all: Vec<T>, figure: impl Fn(&T) -> f64) -> Option<T> {
    all.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let at = all.len() / 2;
    (at < all.len()).then(|| all.swap_remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_that_by_the_figure() {
        assert_eq!(median_by(vec![3.0, 1.0, 2.0], |value| *value), Some(2.0));
        assert_eq!(median_by(Vec::<f64>::new(), |value| *value), None);
        assert_eq!(median_by(vec![5.0], |value| *value), Some(5.0));
    }
}
