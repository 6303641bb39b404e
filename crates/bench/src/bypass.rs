//! AF_XDP beside UDP sockets: what a byte costs in the process and in the kernel, and how long 8 bytes take there and back.
//!
//! Virtual interfaces have XDP and no zero copy, so the kernel's part over AF_XDP is that of a packet made of a copy, for each
//! packet: it says nothing of a network adapter. The process's own part is the same with any.

use serde_json::{Value, json};

use crate::transport::ours::{Ours, Protection};
use crate::transport::place::{Packets, Place};
use crate::transport::{Bandwidth, Floor, Latency};

/// As it is called on the command line and in the report.
pub(crate) const NAME: &str = "bypass";

const SIZE_BYTES: u64 = 1 << 20;
const MTUS_BYTES: [u32; 2] = [1_500, 9_000];
/// Of one measurement.
const SECONDS: f64 = 1.0;
/// Each is measured so often, in turns; the one in the middle counts.
const ROUNDS: usize = 3;
/// The bar: the process's own time over AF_XDP, of all the time over sockets.
const SHARE: f64 = 0.5;

/// What carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Sockets,
    Bypass,
}

impl Carrier {
    const ALL: [Carrier; 2] = [Carrier::Sockets, Carrier::Bypass];

    fn name(self) -> &'static str {
        match self {
            Carrier::Sockets => "UDP sockets",
            Carrier::Bypass => "AF_XDP",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Carrier::Sockets => &[],
            Carrier::Bypass => &["--backend", "af-xdp", "--interface", crate::transport::place::PORT],
        }
    }
}

/// Measures and prints. True if all floors are met.
#[allow(clippy::print_stdout)]
pub(crate) fn run() -> (Value, bool) {
    println!(
        "{NAME}  AF_XDP beside UDP sockets, 1 MiB WRITEs on one path, real packets between two network namespaces"
    );
    let (place, why) = Place::make();
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
    let mut report = Report::default();
    for mtu_bytes in MTUS_BYTES {
        report.streams(&place, &ours, mtu_bytes);
    }
    report.latencies(&place, &ours);
    report.floors.iter().for_each(|floor| println!("{}", floor.line()));
    (report.json(), report.floors.iter().all(Floor::is_met))
}

#[derive(Default)]
struct Report {
    streams: Vec<Value>,
    latencies: Vec<Value>,
    floors: Vec<Floor>,
    notes: Vec<String>,
}

#[allow(clippy::print_stdout)]
impl Report {
    fn note(&mut self, why: String) {
        println!("    note: {why}");
        self.notes.push(why);
    }

    /// Both carriers in turns.
    fn in_turns<T>(&mut self, mut measure: impl FnMut(Carrier) -> Result<T, String>) -> [Vec<T>; 2] {
        let mut measured = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for carrier in Carrier::ALL {
                match measure(carrier) {
                    Ok(value) => measured[carrier as usize].push(value),
                    Err(why) => self.note(format!("{}: {why}", carrier.name())),
                }
            }
        }
        measured
    }

    fn streams(&mut self, place: &Place, ours: &Ours, mtu_bytes: u32) {
        if let Err(why) = place.set(mtu_bytes, Packets::Real) {
            return self.note(why);
        }
        let measured = self.in_turns(|carrier| {
            let server = ours.serve_with(place, mtu_bytes, Protection::Off, carrier.options())?;
            server.bandwidth("write", SIZE_BYTES, SECONDS)
        });
        let cost = |stream: &Bandwidth| stream.cpu_ns_per_byte().unwrap_or(f64::MAX);
        let [sockets, bypass] = measured.map(|streams| middle(streams, cost));
        for (carrier, stream) in Carrier::ALL.into_iter().zip([&sockets, &bypass]) {
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
        if let (Some(sockets), Some(user)) = (sockets, bypass.and_then(|stream| stream.user_ns_per_byte())) {
            let what = format!("{mtu_bytes}: time of both processes over AF_XDP, of all time over sockets");
            self.floors.push(Floor { what, measured: user / cost(&sockets).max(1e-9), at_most: SHARE });
        }
    }

    fn latencies(&mut self, place: &Place, ours: &Ours) {
        if let Err(why) = place.set(MTUS_BYTES[0], Packets::Real) {
            return self.note(why);
        }
        for (mode, option) in [("sleeping", None), ("busy poll", Some("--busy-poll"))] {
            let measured = self.in_turns(|carrier| {
                let options: Vec<&str> = carrier.options().iter().copied().chain(option).collect();
                let server = ours.serve_with(place, MTUS_BYTES[0], Protection::Off, &options)?;
                server.latency(SECONDS)
            });
            for (carrier, latencies) in Carrier::ALL.into_iter().zip(measured) {
                let Some(latency) = middle(latencies, |latency: &Latency| latency.typical_us) else {
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

/// The one in the middle by a figure.
fn middle<T>(mut all: Vec<T>, figure: impl Fn(&T) -> f64) -> Option<T> {
    all.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let at = all.len() / 2;
    (at < all.len()).then(|| all.swap_remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_that_by_the_figure() {
        assert_eq!(middle(vec![3.0, 1.0, 2.0], |value| *value), Some(2.0));
        assert_eq!(middle(Vec::<f64>::new(), |value| *value), None);
        assert_eq!(middle(vec![5.0], |value| *value), Some(5.0));
    }
}
