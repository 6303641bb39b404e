//! Benchmark of one device with several event loops: the throughput of two loops over that of one.
//!
//! Each connection goes from a loop to itself over loopback, so that one loop uses one core. Between two hosts each
//! loop has one end only. Two loops are measured if there are two cores. Other work on the machine counts against
//! them.

use std::time::{Duration, Instant};

use pathweave_datapath::{Access, Connection, DeviceConfig, Loops, Region};
use pathweave_heap::usage::process_cpu;
use serde_json::{Value, json};

use crate::transport::Floor;

/// Name on the command line and in the report.
pub(crate) const NAME: &str = "loops";

const CONNECTIONS: usize = 8;
/// Size of a message in bytes. Messages are long, so that the application's thread has little work.
const MESSAGE_BYTES: usize = 4 << 20;
const DEPTH: u64 = 2;
const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_secs(2);
/// Number of measurements of each number of loops, in turns. The best counts, as other work only slows a run down.
const ROUNDS: usize = 4;
const LOOPS: [usize; 2] = [1, 2];
/// Floor: throughput of two loops over one.
const SPEEDUP: f64 = 1.7;

/// Throughput of a number of loops.
#[derive(Clone, Copy, Debug)]
struct Measured {
    bytes_per_second: f64,
    cpu_ns_per_byte: f64,
    /// Number of busy cores.
    cores: f64,
}

/// Measures and prints. Returns true if the floor is met.
#[allow(clippy::print_stdout)]
pub(crate) fn run() -> (Value, bool) {
    println!("{NAME}  {CONNECTIONS} connections of one device over loopback, by one loop and by two");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores < LOOPS[1] {
        println!("    note: left out: this machine has one core");
        return (json!({ "notes": ["one core"] }), true);
    }
    let mut best: [Option<Measured>; LOOPS.len()] = [None; LOOPS.len()];
    for _ in 0..ROUNDS {
        for (best, loops) in best.iter_mut().zip(LOOPS) {
            match measure(loops) {
                Ok(found) if best.is_none_or(|best| found.bytes_per_second > best.bytes_per_second) => {
                    *best = Some(found);
                }
                Ok(_) => {}
                Err(why) => {
                    println!("    note: {why}");
                    return (json!({ "notes": [why] }), false);
                }
            }
        }
    }
    let [Some(one), Some(two)] = best else { return (json!({ "notes": ["nothing was measured"] }), false) };
    for (loops, found) in LOOPS.into_iter().zip([one, two]) {
        println!(
            "    {loops} loops  {:>8.1} MB/s  {:.3} ns/B  {:.2} cores busy",
            found.bytes_per_second / 1e6,
            found.cpu_ns_per_byte,
            found.cores
        );
    }
    let what = "what one loop moves, of what two do".to_owned();
    let floor = Floor { what, measured: one.bytes_per_second / two.bytes_per_second, at_most: 1.0 / SPEEDUP };
    println!("{}", floor.line());
    let value = |found: Measured| {
        let Measured { bytes_per_second, cpu_ns_per_byte, cores } = found;
        json!({ "mb_per_second": bytes_per_second / 1e6, "cpu_ns_per_byte": cpu_ns_per_byte, "cores": cores })
    };
    let report = json!({ "one": value(one), "two": value(two), "floors": [floor.json()] });
    (report, floor.is_met())
}

fn measure(loops: usize) -> Result<Measured, String> {
    let text = |why: &dyn std::fmt::Display| why.to_string();
    let device = Loops::open(&DeviceConfig::loopback(), loops).map_err(|why| text(&why))?;
    let listener = device.listen().map_err(|why| text(&why))?;
    let source = Region::zeroed(MESSAGE_BYTES).map_err(|why| text(&why))?;
    let target = Region::zeroed(MESSAGE_BYTES * CONNECTIONS).map_err(|why| text(&why))?;
    let target = device.register(&target, Access::WRITE).map_err(|why| text(&why))?;
    let mut pairs: Vec<(Connection, Connection)> = Vec::new();
    for number in 0..CONNECTIONS {
        let of_loop = &device.devices()[number % loops];
        let near = of_loop.connect(of_loop.local_addr()).map_err(|why| text(&why))?;
        pairs.push((near, listener.accept(Duration::from_secs(5)).map_err(|why| text(&why))?));
    }
    let post = |number: usize| {
        let (near, far) = &pairs[number];
        let place = target.remote(far, (number * MESSAGE_BYTES) as u64).ok_or("a loop without memory")?;
        near.write(number as u64, source.all(), place).map_err(|why| text(&why))
    };
    for number in 0..CONNECTIONS {
        for _ in 0..DEPTH {
            post(number)?;
        }
    }
    let run_for = |time: Duration| {
        let (begun, cpu) = (Instant::now(), process_cpu());
        let mut messages = 0u64;
        while begun.elapsed() < time {
            let next = || pairs.iter().find_map(|(near, _)| near.take());
            let done = device.wait_until(Duration::from_secs(5), next).map_err(|why| text(&why))?;
            let done = done.ok_or("nothing moves")?;
            done.result().map_err(|status| format!("a WRITE: {status:?}"))?;
            messages += 1;
            post(done.wr_id as usize)?;
        }
        let bytes = messages as f64 * MESSAGE_BYTES as f64;
        let (seconds, cpu) = (begun.elapsed().as_secs_f64(), (process_cpu() - cpu).as_secs_f64());
        Ok::<_, String>(Measured {
            bytes_per_second: bytes / seconds,
            cpu_ns_per_byte: cpu * 1e9 / bytes.max(1.0),
            cores: cpu / seconds,
        })
    };
    run_for(WARM_UP)?;
    run_for(MEASURED)
}
