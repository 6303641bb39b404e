//! Time series of links and hosts, sampled during a run.
//!
//! Counters never decrease, so samples are differences between readings, and every second reading can be dropped.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pathweave_datapath::Device;
use pathweave_records::{SeriesKind, SeriesSample};
use pathweave_sim::ObserveConfig;
use pathweave_topo::NodeId;
use pathweave_units::{Rate, Time};

use super::Clock;
use super::records::WIRE_BYTES;
use crate::error::{LabError, WithContext};
use crate::lab::Lab;

/// Smallest interval between readings, since each one wakes the loops of all hosts.
const CLOSEST: Duration = Duration::from_millis(4);
/// Longest sleep at a time, so that the end of the run is noticed soon.
const NAP: Duration = Duration::from_millis(20);
/// File with the counters of all devices of a namespace.
const COUNTERS: &str = "/proc/thread-self/net/dev";

/// Reader of the counters of links and hosts.
pub(super) struct CounterSampler<'a> {
    nodes: Vec<Node>,
    /// Hosts that have a device, by number.
    hosts: Vec<(u32, &'a Device)>,
    /// Rate of each directed link in the topology.
    rates: Vec<Rate>,
    /// Interval between readings, in the lab's time.
    interval: Duration,
    most: usize,
}

/// Counters of a node.
struct Node {
    file: File,
    /// Device and directed link of each port.
    ports: Vec<(String, usize)>,
}

/// All counters at an instant of the network's time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reading {
    at: Time,
    /// Bytes on the wire, by directed link.
    links: Vec<u64>,
    /// Payload bytes that have arrived, in the order of hosts, with the time at which each host's loop reported them.
    hosts: Vec<(Time, u64)>,
}

impl<'a> CounterSampler<'a> {
    /// Creates a meter of all links of the lab and these hosts, with the interval of `observe`. Returns `None` if
    /// `observe` disables samples.
    pub(super) fn new(
        lab: &Lab,
        observe: &ObserveConfig,
        hosts: impl Iterator<Item = (u32, &'a Device)>,
        clock: &Clock,
    ) -> Result<Option<Self>, LabError> {
        let Some(interval) = observe.sampling() else { return Ok(None) };
        let topology = lab.plan().topology();
        let mut nodes = Vec::new();
        for id in (0..topology.nodes()).map(NodeId) {
            let planned = lab.plan().node(id);
            let file = lab
                .inside(id, || File::open(COUNTERS))?
                .context(|| format!("read the counters of {}", planned.name))?;
            let port = |(number, port): (u16, &crate::plan::PortPlan)| {
                let is_a = lab.plan().ends(port.link)[0] == (id, number);
                (port.device.clone(), 2 * port.link.index() + usize::from(!is_a))
            };
            nodes.push(Node { file, ports: (0..).zip(&planned.ports).map(port).collect() });
        }
        Ok(Some(CounterSampler {
            nodes,
            hosts: hosts.collect(),
            rates: topology.links().iter().flat_map(|link| [link.rate; 2]).collect(),
            interval: clock.real(interval).max(CLOSEST),
            most: observe.max_samples.max(2) as usize,
        }))
    }

    /// Takes readings until `over` is set, and returns the samples.
    pub(super) fn sample_until(&self, clock: &Clock, over: &AtomicBool) -> io::Result<Vec<SeriesSample>> {
        let mut readings = vec![self.read(clock)?];
        let (mut interval, mut next) = (self.interval, Instant::now() + self.interval);
        while !over.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now < next {
                std::thread::sleep((next - now).min(NAP));
                continue;
            }
            readings.push(self.read(clock)?);
            if readings.len() > self.most {
                readings = every_second(readings);
                interval *= 2;
            }
            // If readings take long, or this thread does not get a core, there are fewer of them.
            next = (next + interval).max(Instant::now() + interval / 2);
        }
        let hosts: Vec<u32> = self.hosts.iter().map(|(host, _)| *host).collect();
        Ok(samples(&readings, &self.rates, &hosts))
    }

    fn read(&self, clock: &Clock) -> io::Result<Reading> {
        let payload = |(_, device): &(u32, &Device)| {
            let bytes = device.stats().map_or(0, |stats| stats.counters.payload_bytes_received);
            (clock.now(), bytes)
        };
        let hosts = self.hosts.iter().map(payload).collect();
        // The remaining reads take almost no time, so this instant applies to them.
        let at = clock.now();
        let mut links = vec![0; self.rates.len()];
        for node in &self.nodes {
            let text = text_of(&node.file)?;
            for (device, link) in &node.ports {
                links[*link] = wire_bytes_sent(&text, device).unwrap_or_default();
            }
        }
        Ok(Reading { at, links, hosts })
    }
}

/// Returns the whole content of a file that the kernel generates as it is read.
fn text_of(file: &File) -> io::Result<String> {
    const CHUNK: usize = 4_096;
    let mut bytes = Vec::new();
    loop {
        let start = bytes.len();
        bytes.resize(start + CHUNK, 0);
        let read = file.read_at(&mut bytes[start..], start as u64)?;
        bytes.truncate(start + read);
        if read == 0 {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

/// Returns the bytes that a device has sent on the wire, including the link's overhead, or `None` if there is no such
/// device. Format of proc_net(5): eight receive counters, then bytes and packets sent.
fn wire_bytes_sent(text: &str, device: &str) -> Option<u64> {
    let of_device = |line: &str| Some(line.trim_start().strip_prefix(device)?.strip_prefix(':')?.to_owned());
    let counters = text.lines().find_map(of_device)?;
    let mut sent = counters.split_whitespace().skip(8).map(str::parse::<u64>);
    let (bytes, packets) = (sent.next()?.ok()?, sent.next()?.ok()?);
    Some(bytes + WIRE_BYTES * packets)
}

/// Returns the first reading and every second one after it.
fn every_second(readings: Vec<Reading>) -> Vec<Reading> {
    readings.into_iter().step_by(2).collect()
}

/// Returns the differences between successive readings, at the time of the later one. Zeros are left out, as in the
/// simulator.
fn samples(readings: &[Reading], rates: &[Rate], hosts: &[u32]) -> Vec<SeriesSample> {
    let mut samples = Vec::new();
    for (before, now) in readings.iter().zip(readings.iter().skip(1)) {
        let since = now.at.saturating_since(before.at);
        let seconds = since.as_secs_f64();
        if seconds <= 0.0 {
            continue;
        }
        let mut add = |kind, entity, value| {
            if value > 0.0 {
                samples.push(SeriesSample { time_ps: now.at.as_ps(), value, entity, index: 0, kind });
            }
        };
        add(SeriesKind::Interval, 0, since.as_ps() as f64 / 1e3);
        let bits = |now: u64, before: u64| 8.0 * now.saturating_sub(before) as f64;
        for (link, ((now, before), rate)) in (0..).zip(now.links.iter().zip(&before.links).zip(rates)) {
            let capacity = rate.as_bps() as f64 * seconds;
            add(SeriesKind::LinkUtilisation, link, bits(*now, *before) / capacity);
        }
        for (host, (now, before)) in hosts.iter().zip(now.hosts.iter().zip(&before.hosts)) {
            let seconds = now.0.saturating_since(before.0).as_secs_f64();
            let rate_bps = if seconds > 0.0 { bits(now.1, before.1) / seconds } else { 0.0 };
            add(SeriesKind::HostRateBps, *host, rate_bps);
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        7       1    0    0    0     0       0          0
    p1: 1000000     700    0    0    0     0          0         0     5000      10    0    0    0     0       0          0
   p10:       3       1    0    0    0     0          0         0        9       2    0    0    0     0       0          0
";

    #[test]
    fn devices_are_found_by_their_whole_names() {
        // Ten frames with an overhead of 24 bytes each.
        assert_eq!(wire_bytes_sent(DEVICES, "p1"), Some(5_240));
        assert_eq!(wire_bytes_sent(DEVICES, "p10"), Some(57));
        assert_eq!(wire_bytes_sent(DEVICES, "p"), None);
        assert_eq!(wire_bytes_sent("p1: 1 2 3", "p1"), None);
    }

    /// Readings at 0, 10 and 20 us of two directed links, with 10 and 1 Gb/s, and of host 7.
    fn three() -> Vec<Reading> {
        let reading = |us, links: [u64; 2], hosts: u64| Reading {
            at: Time::from_us(us),
            links: links.to_vec(),
            hosts: vec![(Time::from_us(us), hosts)],
        };
        vec![reading(0, [100, 0], 0), reading(10, [6_350, 0], 5_000), reading(20, [18_850, 1_250], 5_000)]
    }

    #[test]
    fn samples_are_differences_by_hand() {
        let rates = [Rate::from_gbps(10), Rate::from_gbps(1)];
        // Rounded to seven digits.
        let of = |readings: &[Reading]| -> Vec<(u64, SeriesKind, u32, f32)> {
            let all = samples(readings, &rates, &[7]);
            all.iter().map(|s| (s.time_ps / 1_000_000, s.kind, s.entity, s.value as f32)).collect()
        };
        // 10 Gb/s carry 12,500 bytes in 10 us, 1 Gb/s 1,250; 5,000 bytes in 10 us are 4 Gb/s.
        let expected = [
            (10, SeriesKind::Interval, 0, 10_000.0),
            (10, SeriesKind::LinkUtilisation, 0, 0.5),
            (10, SeriesKind::HostRateBps, 7, 4e9),
            (20, SeriesKind::Interval, 0, 10_000.0),
            (20, SeriesKind::LinkUtilisation, 0, 1.0),
            (20, SeriesKind::LinkUtilisation, 1, 1.0),
        ];
        assert_eq!(of(&three()), expected);
        // With half of the readings, the samples are averages over two intervals.
        let expected = [
            (20, SeriesKind::Interval, 0, 20_000.0),
            (20, SeriesKind::LinkUtilisation, 0, 0.75),
            (20, SeriesKind::LinkUtilisation, 1, 0.5),
            (20, SeriesKind::HostRateBps, 7, 2e9),
        ];
        assert_eq!(of(&every_second(three())), expected);
        // A host that reported 10 us late moved its bytes in 20 us.
        let mut late = three();
        late.truncate(2);
        late[1].hosts[0].0 = Time::from_us(20);
        assert_eq!(of(&late).last(), Some(&(10, SeriesKind::HostRateBps, 7, 2e9)));
        // If the clock does not advance, there are no samples.
        assert_eq!(of(&[Reading::default(), Reading::default()]), []);
    }
}
