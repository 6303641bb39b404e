//! Benchmark of the transport on real sockets, beside other programs at the same place and time.

mod figures;
pub(crate) mod ours;
mod peers;
pub(crate) mod place;
pub(crate) mod process;
mod udp;

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

pub(crate) use figures::{Bandwidth, Floor, Latency};
pub(crate) use ours::write_key;
use ours::{Ours, Protection};
use peers::Fabric;
use place::{Location, Packets};

pub(crate) use udp::run as udp;

/// Name on the command line and in the report.
pub(crate) const NAME: &str = "transport";

const SIZE_BYTES: u64 = 1 << 20;
const MTUS_BYTES: [u32; 2] = [1_500, 9_000];
/// Duration of one measurement in seconds.
const SECONDS: f64 = 0.8;
/// Time after which no further peer is started.
const PEERS_UNTIL: Duration = Duration::from_secs(75);
const OPS: [&str; 2] = ["write", "send"];

/// Floors of the project.
const NS_PER_BYTE: f64 = 0.4;
const NS_PER_BYTE_ENCRYPTED: f64 = 0.8;
const LATENCY_RATIO: f64 = 1.3;
const RXD_RATIO: f64 = 10.0;

/// Results so far.
struct Report {
    place: Location,
    begun: Instant,
    streams: Vec<Stream>,
    latencies: Map<String, Value>,
    ratios: Vec<Ratio>,
    floors: Vec<Floor>,
    notes: Vec<String>,
}

/// Measured stream.
struct Stream {
    name: String,
    mtu_bytes: u32,
    packets: Packets,
    figures: Bandwidth,
}

/// Ratio of one of our streams to a peer's, unprotected, with the same MTU and packets.
struct Ratio {
    ours: String,
    peer: String,
    mtu_bytes: u32,
    packets: Packets,
    /// Ratio of rates. Above 1 ours is faster.
    rate: f64,
    /// Ratio of the CPU times of both ends per byte. Below 1 ours takes less.
    cpu_time: Option<f64>,
}

/// Measures everything and prints it. Returns true if all floors are met.
#[allow(clippy::print_stdout)]
pub(crate) fn run() -> (Value, bool) {
    let (place, why) = Location::make();
    println!(
        "{NAME}  1 MiB messages on one path, {}; CPU time is that of each end, kernel included",
        place.describe()
    );
    let mut report = Report {
        place,
        begun: Instant::now(),
        streams: Vec::new(),
        latencies: Map::new(),
        ratios: Vec::new(),
        floors: Vec::new(),
        notes: Vec::new(),
    };
    if let Some(why) = why {
        report.note(format!("on loopback, because {why}"));
    }
    match Ours::find() {
        Ok(ours) => {
            for mtu_bytes in MTUS_BYTES {
                report.ours(&ours, mtu_bytes);
            }
        }
        Err(why) => report.note(why),
    }
    report.udp();
    report.iperf3();
    report.fabric();
    report.compare();
    report.judge();
    report.floors.iter().for_each(|floor| println!("{}", floor.line()));
    println!("    took {:.0} s", report.begun.elapsed().as_secs_f64());
    (report.json(), report.floors.iter().all(Floor::is_met))
}

#[allow(clippy::print_stdout)]
impl Report {
    fn note(&mut self, note: String) {
        println!("    note: {note}");
        self.notes.push(note);
    }

    /// Measures once for each kind of packets that the link can carry with this MTU.
    fn each(&mut self, mtu_bytes: u32, mut measure: impl FnMut(&mut Report, Packets)) {
        for &packets in self.place.packets() {
            match self.place.set(mtu_bytes, packets) {
                Ok(()) => measure(self, packets),
                Err(why) => self.note(why),
            }
        }
    }

    fn stream(&mut self, name: &str, mtu_bytes: u32, packets: Packets, result: Result<Bandwidth, String>) {
        match result {
            Ok(figures) => {
                let label = format!("{name}, {mtu_bytes}, {}", packets.name());
                println!("{}", figures.line(&label));
                self.streams.push(Stream { name: name.into(), mtu_bytes, packets, figures });
            }
            Err(why) => self.note(format!("{name} at MTU {mtu_bytes}: {why}")),
        }
    }

    fn ours(&mut self, ours: &Ours, mtu_bytes: u32) {
        for protection in Protection::ALL {
            self.each(mtu_bytes, |report, packets| {
                let mut results = Vec::new();
                let mut latency = None;
                match ours.serve(&report.place, mtu_bytes, protection) {
                    Ok(server) => {
                        let measure = |op| (op, server.bandwidth(op, SIZE_BYTES, SECONDS));
                        results.extend(OPS.map(measure));
                        if mtu_bytes == MTUS_BYTES[0] && packets == Packets::Super {
                            latency = Some(server.latency(SECONDS));
                        }
                    }
                    Err(why) => results.push(("serving", Err(why))),
                }
                for (op, result) in results {
                    report.stream(&name(op, protection), mtu_bytes, packets, result);
                }
                match latency {
                    Some(Ok(latency)) => {
                        let name = format!("8 B, {}", protection.name());
                        println!("{}", latency.line(&name));
                        report.latencies.insert(protection.name().into(), latency.json());
                    }
                    Some(Err(why)) => report.note(why),
                    None => {}
                }
            });
        }
    }

    fn udp(&mut self) {
        for mtu_bytes in MTUS_BYTES {
            self.each(mtu_bytes, |report, packets| {
                // 28 bytes are the IPv4 and UDP headers.
                let result = peers::udp_stream(&report.place, mtu_bytes - 28, SECONDS);
                report.stream("plain UDP with GSO", mtu_bytes, packets, result);
            });
        }
        match peers::udp_latency(&self.place, SECONDS) {
            Ok(latency) => {
                println!("{}", latency.line("8 B, plain UDP"));
                self.latencies.insert("plain UDP".into(), latency.json());
            }
            Err(why) => self.note(format!("plain UDP: {why}")),
        }
    }

    /// Returns true if there is time for another program and it is installed.
    fn can_measure(&mut self, program: &str) -> bool {
        if !process::is_installed(program) {
            self.note(format!("{program} is not installed: nothing to compare with"));
            return false;
        }
        let in_time = self.begun.elapsed() < PEERS_UNTIL;
        if !in_time {
            self.note(format!("{program} is left out: this machine is slow today"));
        }
        in_time
    }

    fn iperf3(&mut self) {
        for mtu_bytes in MTUS_BYTES {
            if !self.can_measure("iperf3") {
                return;
            }
            self.each(mtu_bytes, |report, packets| {
                let result = peers::iperf3(&report.place, SECONDS);
                report.stream("TCP (iperf3)", mtu_bytes, packets, result);
            });
        }
    }

    fn fabric(&mut self) {
        for fabric in [Fabric::TCP, Fabric::UDP_RXD] {
            if !self.can_measure("fi_pingpong") {
                return;
            }
            let name = format!("libfabric {}", fabric.provider);
            let start_up = match fabric.start_up(&self.place) {
                Ok(start_up) => start_up,
                Err(why) => {
                    self.note(format!("{name}: {why}"));
                    continue;
                }
            };
            for mtu_bytes in MTUS_BYTES {
                self.each(mtu_bytes, |report, packets| {
                    // It sends packet by packet, so super-packets make no difference.
                    let same = fabric.provider == Fabric::UDP_RXD.provider && packets == Packets::Real;
                    if same || report.begun.elapsed() > PEERS_UNTIL {
                        return;
                    }
                    let result = fabric.bandwidth(&report.place, SIZE_BYTES, start_up);
                    report.stream(&name, mtu_bytes, packets, result);
                });
            }
            self.note(format!("{name}: fi_pingpong waits by looking, which its CPU time contains"));
            match fabric.latency_us(&self.place, 500) {
                Ok(mean_us) => {
                    println!("    {:<34} {mean_us:>9.2} us mean", format!("8 B, {name}"));
                    self.latencies.insert(name, json!({ "mean_us": mean_us }));
                }
                Err(why) => self.note(format!("{name}: {why}")),
            }
        }
    }

    /// Returns the figures of a stream.
    fn find(&self, name: &str, mtu_bytes: u32, packets: Packets) -> Option<Bandwidth> {
        let same = |stream: &&Stream| {
            stream.name == name && stream.mtu_bytes == mtu_bytes && stream.packets == packets
        };
        self.streams.iter().find(same).map(|stream| stream.figures)
    }

    /// Compares our streams with each peer's.
    fn compare(&mut self) {
        let ours = |stream: &&Stream| OPS.map(|op| name(op, Protection::Off)).contains(&stream.name);
        let is_peer =
            |stream: &&Stream| !stream.name.starts_with("WRITE") && !stream.name.starts_with("SEND");
        let mut ratios = Vec::new();
        for own in self.streams.iter().filter(ours) {
            let same = |other: &&Stream| (other.mtu_bytes, other.packets) == (own.mtu_bytes, own.packets);
            for peer in self.streams.iter().filter(is_peer).filter(same) {
                let cpu = own.figures.cpu_ns_per_byte().zip(peer.figures.cpu_ns_per_byte());
                ratios.push(Ratio {
                    ours: own.name.clone(),
                    peer: peer.name.clone(),
                    mtu_bytes: own.mtu_bytes,
                    packets: own.packets,
                    rate: own.figures.bytes_per_second / peer.figures.bytes_per_second.max(1.0),
                    cpu_time: cpu.filter(|(_, theirs)| *theirs > 0.0).map(|(ours, theirs)| ours / theirs),
                });
            }
        }
        for ratio in &ratios {
            let cpu = ratio.cpu_time.map_or("-".to_owned(), |cpu| format!("{cpu:.3}"));
            println!(
                "    {}, {}, {} over {}: rate {:.2}, CPU time a byte {cpu}",
                ratio.ours,
                ratio.mtu_bytes,
                ratio.packets.name(),
                ratio.peer,
                ratio.rate
            );
        }
        self.ratios = ratios;
    }

    /// Compares with the floors for which both values are known.
    fn judge(&mut self) {
        let mut floors = Vec::new();
        for op in OPS {
            for mtu_bytes in MTUS_BYTES {
                self.judge_cost(op, mtu_bytes, &mut floors);
                for &packets in self.place.packets() {
                    self.judge_peers(op, mtu_bytes, packets, &mut floors);
                }
            }
        }
        let typical = |name: &str| self.latencies.get(name).and_then(|value| value["typical_us"].as_f64());
        for protection in Protection::ALL {
            if let (Some(ours), Some(udp)) = (typical(protection.name()), typical("plain UDP")) {
                let what = format!("8 B latency, {}, over plain UDP's", protection.name());
                floors.push(Floor { what, measured: ours / udp, at_most: LATENCY_RATIO });
            }
        }
        self.floors = floors;
    }

    fn judge_cost(&self, op: &str, mtu_bytes: u32, floors: &mut Vec<Floor>) {
        let bars = [(Protection::Off, NS_PER_BYTE), (Protection::Encrypt, NS_PER_BYTE_ENCRYPTED)];
        for (protection, at_most) in bars {
            let Some(ours) = self.find(&name(op, protection), mtu_bytes, Packets::Super) else { continue };
            let sides = [("client", ours.client_cpu_ns_per_byte), ("server", ours.server_cpu_ns_per_byte)];
            for (side, measured) in sides {
                let Some(measured) = measured else { continue };
                let what = format!("{}, {mtu_bytes}, super: ns/B of the {side}", name(op, protection));
                floors.push(Floor { what, measured, at_most });
            }
        }
    }

    /// Adds floors for the CPU time per byte of both ends, relative to each peer. A ratio of at most 1 means that
    /// ours is not slower.
    fn judge_peers(&self, op: &str, mtu_bytes: u32, packets: Packets, floors: &mut Vec<Floor>) {
        let ours = self.find(&name(op, Protection::Off), mtu_bytes, packets);
        let Some(ours) = ours.and_then(|figures| figures.cpu_ns_per_byte()) else { return };
        let peers = [
            (format!("libfabric {}", Fabric::TCP.provider), packets, 1.0),
            (format!("libfabric {}", Fabric::UDP_RXD.provider), Packets::Super, 1.0 / RXD_RATIO),
        ];
        for (peer, its_packets, at_most) in peers {
            let theirs = self.find(&peer, mtu_bytes, its_packets);
            let Some(theirs) = theirs.and_then(|figures| figures.cpu_ns_per_byte()) else { continue };
            let what = format!(
                "{}, {mtu_bytes}, {}: CPU time of both ends over {peer}'s",
                name(op, Protection::Off),
                packets.name()
            );
            floors.push(Floor { what, measured: ours / theirs.max(1e-9), at_most });
        }
    }

    fn json(&self) -> Value {
        let stream = |stream: &Stream| {
            let mut value = stream.figures.json();
            value["name"] = stream.name.clone().into();
            value["mtu_bytes"] = stream.mtu_bytes.into();
            value["packets"] = stream.packets.name().into();
            value
        };
        let ratio = |ratio: &Ratio| {
            json!({
                "ours": ratio.ours,
                "peer": ratio.peer,
                "mtu_bytes": ratio.mtu_bytes,
                "packets": ratio.packets.name(),
                "rate": ratio.rate,
                "cpu_time": ratio.cpu_time,
            })
        };
        json!({
            "place": self.place.describe(),
            "message_bytes": SIZE_BYTES,
            "streams": self.streams.iter().map(stream).collect::<Vec<_>>(),
            "latency_8_bytes": self.latencies,
            "ratios": self.ratios.iter().map(ratio).collect::<Vec<_>>(),
            "floors": self.floors.iter().map(Floor::json).collect::<Vec<_>>(),
            "notes": self.notes,
            "seconds": self.begun.elapsed().as_secs_f64(),
        })
    }
}

/// Returns the name of one of our measurements.
fn name(op: &str, protection: Protection) -> String {
    format!("{}, {}", op.to_uppercase(), protection.name())
}
