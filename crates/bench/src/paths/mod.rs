//! Benchmark of the datapath over several paths, in a lab on this machine: the share of the total rate of unequal
//! paths, and the time to leave a path that is cut.

mod net;
mod stream;

use std::time::{Duration, Instant};

use pathweave_lab::LinkState;
use serde_json::{Value, json};

use crate::transport::Floor;
pub(crate) use net::Net;
use stream::Stream;

/// Name on the command line and in the report.
pub(crate) const NAME: &str = "paths";

/// Schemes that use all paths. The floors apply to the first, which is a device's default.
const SPRAYED: [&str; 2] = ["weave", "udmp"];
/// Number of source ports. With so many, they almost always cover all of four paths, and mostly all of eight.
const PORTS: u16 = 32;
/// Rates of unequal paths in the lab's file. The lab is a thousand times slower. Parameters of UDMP were chosen with
/// the first set, so the other sets say more.
const UNEQUAL_GBPS: [&[u64]; 4] =
    [&[100, 100, 50, 10], &[200, 200, 100, 20], &[60, 60, 30, 6], &[100, 80, 60, 40, 30, 20, 10, 5]];
const EQUAL_GBPS: [u64; 4] = [100; 4];
/// Time that is not measured: slow start, cold caches, scheduling.
const WARM_UP: Duration = Duration::from_millis(700);
const MEASURED: Duration = Duration::from_secs(2);
/// Time observed after a cut, and after its repair.
const WATCHED: Duration = Duration::from_millis(800);
/// Window over which a rate is averaged.
const WINDOW: Duration = Duration::from_millis(50);
const CUTS: usize = 3;

/// Floors of the project: share of the sum of rates, and milliseconds after a cut until a share of the remaining rate
/// is reached.
const SHARE_OF_SUM: f64 = 0.9;
const SHARE_OF_REST: f64 = 0.9;
const RECOVERY_MS: f64 = 50.0;

/// Measures and prints. Returns true if all floors are met.
#[allow(clippy::print_stdout)]
pub(crate) fn run() -> (Value, bool) {
    println!("{NAME}  the datapath over several paths, in a lab of network namespaces");
    if let Some(missing) = pathweave_lab::missing_privileges() {
        println!("    note: left out: {missing}");
        return (json!({ "notes": [missing] }), true);
    }
    let mut report = Report::default();
    let mut measured = vec![unequal(&mut report)];
    measured.extend(SPRAYED.map(|scheme| cut(&mut report, scheme)));
    for why in measured.into_iter().filter_map(Result::err) {
        println!("    note: {why}");
        report.notes.push(why);
    }
    report.floors.iter().for_each(|floor| println!("{}", floor.line()));
    let met = report.notes.is_empty() && report.floors.iter().all(Floor::is_met);
    (report.json(), met)
}

#[derive(Default)]
struct Report {
    unequal: Vec<Value>,
    cuts: Vec<Value>,
    floors: Vec<Floor>,
    notes: Vec<String>,
}

impl Report {
    fn json(&self) -> Value {
        json!({
            "unequal": self.unequal,
            "cuts": self.cuts,
            "floors": self.floors.iter().map(Floor::json).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// Measures the total rate of unequal paths, with the schemes that use all of them and with one path of ECMP.
fn unequal(report: &mut Report) -> Result<(), String> {
    UNEQUAL_GBPS.iter().try_for_each(|gbps| unequal_paths(report, gbps))
}

#[allow(clippy::print_stdout)]
fn unequal_paths(report: &mut Report, gbps: &[u64]) -> Result<(), String> {
    let net = Net::make(gbps)?;
    let sum = net.payload_rate(gbps.len());
    let rates = gbps.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    for (scheme, ports) in SPRAYED.map(|scheme| (scheme, PORTS)).into_iter().chain([("ecmp-sr", 1)]) {
        let mut stream = net.stream(scheme, ports)?;
        stream.run(WARM_UP + MEASURED)?;
        let from = stream.begun() + WARM_UP;
        let goodput = stream.goodput(from, from + MEASURED);
        let share = goodput / sum;
        println!(
            "    {rates} Mb/s, {scheme:<8} {:>7.1} Mb/s of payload, {:>5.1} % of their sum",
            goodput / 1e6,
            100.0 * share
        );
        let (mbps, paths_mbps) = (goodput / 1e6, gbps);
        report.unequal.push(json!({
            "paths_mbps": paths_mbps, "scheme": scheme, "mbps": mbps, "share_of_sum": share,
        }));
        if scheme == SPRAYED[0] {
            report.floors.push(Floor {
                what: format!("paths of {rates} Mb/s: sum of their rates over {scheme}'s"),
                measured: 1.0 / share.max(1e-9),
                at_most: 1.0 / SHARE_OF_SUM,
            });
        }
    }
    Ok(())
}

/// Cuts and repairs one of four equal paths, several times, each time another one.
#[allow(clippy::print_stdout)]
fn cut(report: &mut Report, scheme: &str) -> Result<(), String> {
    let mut net = Net::make(&EQUAL_GBPS)?;
    let (all, rest) = (net.payload_rate(4), net.payload_rate(3));
    let mut stream = net.stream(scheme, PORTS)?;
    stream.run(WARM_UP)?;
    let mut times_ms = Vec::new();
    for spine in 0..CUTS {
        let before = Instant::now();
        net.set(spine, LinkState::Down)?;
        let down = Instant::now();
        stream.run(WATCHED)?;
        net.set(spine, LinkState::Up)?;
        let up = Instant::now();
        stream.run(WATCHED)?;
        let back =
            |since, share| recovery(&stream, since, WATCHED, share).map(|time| time.as_secs_f64() * 1e3);
        let (left, again) = (back(down, SHARE_OF_REST * rest), back(up, SHARE_OF_REST * all));
        let text = |ms: Option<f64>| ms.map_or("never".into(), |ms: f64| format!("after {ms:.0} ms"));
        println!(
            "    one of four paths cut, {scheme:<8} 90 % of what is left {}, {:.1} % in the end; mended: 90 % of all {}",
            text(left),
            100.0 * stream.goodput(down + WATCHED / 2, down + WATCHED) / rest,
            text(again),
        );
        report.cuts.push(json!({
            "scheme": scheme,
            "before_mbps": stream.goodput(before - WARM_UP / 2, before) / 1e6,
            "recovered_ms": left,
            "mended_ms": again,
        }));
        times_ms.push(left.unwrap_or(f64::INFINITY));
    }
    if scheme != SPRAYED[0] {
        return Ok(());
    }
    times_ms.sort_by(f64::total_cmp);
    report.floors.push(Floor {
        what: "one of four paths cut: ms until 90 % of what is left, median".into(),
        measured: times_ms[times_ms.len() / 2].min(WATCHED.as_secs_f64() * 1e3),
        at_most: RECOVERY_MS,
    });
    Ok(())
}

/// Returns the time after `since` at which a window's goodput reaches `least` bits per second.
fn recovery(stream: &Stream, since: Instant, within: Duration, least: f64) -> Option<Duration> {
    let steps = (within - WINDOW).as_millis() as u32;
    let at = (0..=steps).map(|ms| Duration::from_millis(ms.into()));
    at.into_iter().find(|at| stream.goodput(since + *at, since + *at + WINDOW) >= least)
}

#[cfg(test)]
mod tests {
    use pathweave_topo::parse_topology_file;
    use pathweave_units::Rate;

    use super::net::file;
    use super::stream::payload_rate;
    use super::*;

    #[test]
    fn four_paths_of_the_rates_asked_for() {
        let topology = parse_topology_file("four", &file(UNEQUAL_GBPS[0])).unwrap();
        assert_eq!((topology.hosts(), topology.switches().len(), topology.links().len()), (2, 6, 10));
        let spines: u64 = topology.links()[2..].iter().map(|link| link.rate.as_bps()).sum();
        assert_eq!(spines, 2 * 260_000_000_000);
        // A packet has 1,344 bytes of payload and takes 1,470 on the link.
        assert_eq!(payload_rate(Rate::from_mbps(147)).round(), 134_400_000.0);
    }
}
