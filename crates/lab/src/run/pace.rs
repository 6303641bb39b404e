//! Whether this machine keeps up with the network it stands for: foreseen before a run, measured behind it.

use std::time::Duration;

use pathweave_sim::{SimSpec, profile};
use pathweave_topo::Routing;
use pathweave_units::{Rate, Time};
use pathweave_workload::Bounds;

use crate::settings::{RateScale, Settings};

/// CPU time of a data packet at both of its ends, with its share in acknowledgements. Right to a factor of two, as machines
/// differ.
const AT_ENDS_S: f64 = 8e-6;
/// CPU time of a packet on one link: a token bucket, a pair of virtual ports, forwarding behind it.
const ON_A_LINK_S: f64 = 2e-6;
/// The same of packets so slow that each comes alone: it wakes threads and sets timers by itself. Measured on a virtual machine of
/// two cores, at 100 Mb/s and 1,400 bytes a packet: 97 us over two links.
const ALONE_AT_ENDS_S: f64 = 65e-6;
const ALONE_ON_A_LINK_S: f64 = 16e-6;
/// Cores are to be idle for the rest of the time, so that a thread that wakes up finds one.
const BUSY_AT_MOST: f64 = 0.7;
/// Measured over a run, cores count as busy all the time from here on.
const SATURATED: f64 = 0.9;
/// Loops that wake up later than this on the mean wait for cores. An idle machine takes about a tenth of a millisecond.
const LATE: Duration = Duration::from_millis(1);
/// Messages of which the paths are looked at.
pub(super) const SAMPLED_MESSAGES: usize = 1_000;

/// What a run asks of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// Hosts that send.
    senders: u32,
    /// What they send together, if all do so as fast as their links allow, and those of whoever receives it.
    most: Rate,
    /// What they send together on the mean, if the network is as fast as it can be.
    mean: Rate,
    /// Payload of a packet, bytes.
    packet_bytes: f64,
    /// Links a packet crosses on the mean.
    links: f64,
}

/// Parts that a host takes in a run.
const SENDS: usize = 0;
const RECEIVES: usize = 1;

impl Demand {
    pub(super) fn of(spec: &SimSpec, settings: &Settings) -> Demand {
        let (graph, scale) = (&spec.graph, settings.rate_scale);
        let host_rate = |host| scale.apply(spec.topology.host_rate(host));
        let mut takes_part = vec![[false; 2]; graph.hosts() as usize];
        for message in graph.messages() {
            takes_part[message.src.index()][SENDS] = true;
            takes_part[message.dst.index()][RECEIVES] = true;
        }
        let all = |part: usize| {
            let hosts = takes_part.iter().zip(0..).filter(move |(takes_part, _)| takes_part[part]);
            let rates = hosts.map(|(_, host)| host_rate(pathweave_units::HostId(host)));
            rates.fold((0, Rate::ZERO), |(count, sum), rate| (count + 1, sum.saturating_add(rate)))
        };
        let ((senders, sent), (_, received)) = (all(SENDS), all(RECEIVES));
        let rate = |host| spec.topology.host_rate(host);
        // An estimate: what a run refuses, it refuses by itself.
        let notification = spec.task_notification().unwrap_or_default();
        let completion = Bounds::from_graph(graph, notification, rate).completion();
        let seconds = completion.saturating_since(Time::ZERO).as_secs_f64() / scale.share();
        let mean = if seconds > 0.0 { graph.total_bytes() as f64 * 8.0 / seconds } else { 0.0 };
        let routing = Routing::whole(&spec.topology);
        let stride = graph.messages().len().div_ceil(SAMPLED_MESSAGES).max(1);
        let links: Vec<f64> = graph
            .messages()
            .iter()
            .step_by(stride)
            .filter_map(|message| profile(&spec.topology, &routing, message.src, message.dst))
            .map(|path| path.hops.len() as f64)
            .collect();
        Demand {
            senders,
            most: sent.min(received),
            mean: Rate::from_bps(mean as u64),
            packet_bytes: (spec.host.mtu.get() as f64).min(f64::from(settings.mtu_bytes)),
            links: links.iter().sum::<f64>() / (links.len() as f64).max(1.0),
        }
    }

    /// Cores that moving so much keeps busy.
    fn cores(&self, rate: Rate) -> f64 {
        let packets_per_s = rate.as_bps() as f64 / 8.0 / self.packet_bytes;
        packets_per_s * (AT_ENDS_S + ON_A_LINK_S * self.links)
    }

    /// Whether so many cores carry it, if each packet comes alone.
    pub(super) fn is_leisurely(&self, cores: usize) -> bool {
        let packet_s = ALONE_AT_ENDS_S + ALONE_ON_A_LINK_S * self.links;
        let needed = |rate: Rate| rate.as_bps() as f64 / 8.0 / self.packet_bytes * packet_s;
        needed(self.mean) <= BUSY_AT_MOST * cores as f64 && needed(self.most) <= cores as f64
    }

    /// What is wrong with running it on so many cores, if anything, and the scale that would fit.
    pub(super) fn foreseen(&self, cores: usize, scale: RateScale) -> Option<String> {
        let (mean, most) = (self.cores(self.mean), self.cores(self.most));
        let room = BUSY_AT_MOST * cores as f64;
        let (needed, rate, often) = if mean > room {
            (mean, self.mean, "all the time")
        } else if most > cores as f64 {
            (most, self.most, "while all of them send")
        } else {
            return None;
        };
        Some(format!(
            "{} hosts that send {:.3} Gb/s together at {scale} of the rates take about {needed:.1} cores {often}, and this \
             machine has {cores}: results may be of its CPU, not of the network; --rate-scale {} would fit, or fewer hosts",
            self.senders,
            rate.as_bps() as f64 / 1e9,
            slower(scale, needed / room)
        ))
    }
}

/// A scale so many times smaller, rounded to one digit so that people can remember it.
fn slower(scale: RateScale, times: f64) -> String {
    let divisor = times.max(1.0) / scale.share();
    let digit = 10f64.powf(divisor.log10().floor());
    format!("1/{:.0}", (divisor / digit).ceil() * digit)
}

/// What a run took of this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Cores that the process may use.
    pub cores: usize,
    /// The part of all cores' time that none of them was idle, 0 to 1, whoever kept them busy.
    pub busy: f64,
    /// How much later than asked for loops woke up on the mean.
    pub late: Duration,
}

/// What was measured over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) cores: usize,
    pub(super) wall_s: f64,
    /// CPU time of this process. What the kernel forwards may count for no process.
    pub(super) process_cpu_s: f64,
    /// The part of all cores' time that none of them was idle, where the system tells.
    pub(super) machine_busy: Option<f64>,
    /// How much later than asked for loops woke up on the mean.
    pub(super) late: Duration,
}

impl Measured {
    /// What the run took of the machine.
    pub(super) fn load(&self) -> Load {
        Load { cores: self.cores, busy: self.busy(), late: self.late }
    }

    /// The part of all cores' time that they were busy.
    fn busy(&self) -> f64 {
        self.machine_busy.unwrap_or(0.0).max(self.of_run()).min(1.0)
    }

    /// That for this run.
    fn of_run(&self) -> f64 {
        self.process_cpu_s / self.wall_s.max(1e-9) / self.cores.max(1) as f64
    }

    /// Why the results are not of the network, if they are not.
    pub(super) fn verdict(&self, demand: &Demand, scale: RateScale) -> Option<String> {
        let cores = self.cores.max(1) as f64;
        let (of_run, busy) = (self.of_run(), self.busy());
        if busy < SATURATED && self.late < LATE {
            return None;
        }
        // Where the estimate was too low, what was measured says that it takes more.
        let times = (demand.cores(demand.most) / (BUSY_AT_MOST * cores)).max(2.0);
        Some(format!(
            "this machine did not keep up: its {} cores were {:.0} % busy, {:.0} % with this run, and loops woke up {:.2} ms \
             late on the mean; these are results of its CPU, not of the network; a --rate-scale of {} or smaller, or fewer \
             hosts, would give it time",
            self.cores,
            100.0 * busy,
            100.0 * of_run.min(1.0),
            self.late.as_secs_f64() * 1e3,
            slower(scale, times)
        ))
    }
}

/// Cores that this process may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Time of all cores so far, idle or not, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    idle: u64,
    all: u64,
}

impl Ticks {
    /// Those of now; `None` where the system does not tell.
    pub(super) fn now() -> Option<Ticks> {
        Ticks::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// proc(5): user, nice, system, idle, iowait, irq, softirq, steal; guests are part of the first two.
    fn parse(stat: &str) -> Option<Ticks> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
        Some(Ticks { idle, all: ticks.iter().sum() })
    }

    /// The part of the time since `before` that cores were not idle.
    pub(super) fn busy_since(&self, before: &Ticks) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        Some(1.0 - self.idle.saturating_sub(before.idle) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 hosts at 1 Gb/s, 4 KB a packet, four links: 1 million packets a second of 16 us each, 16 cores.
    fn demand(mean_gbps: u64) -> Demand {
        Demand {
            senders: 32,
            most: Rate::from_gbps(32),
            mean: Rate::from_gbps(mean_gbps),
            packet_bytes: 4_000.0,
            links: 4.0,
        }
    }

    fn scale(text: &str) -> RateScale {
        text.parse().unwrap()
    }

    #[test]
    fn what_two_cores_cannot_move_is_said_before() {
        let said = demand(32).foreseen(2, scale("1/100")).unwrap();
        // 16 of 1.4 cores is 11.4 times too much.
        assert_eq!(
            said,
            "32 hosts that send 32.000 Gb/s together at 1/100 of the rates take about 16.0 cores all the time, and this \
             machine has 2: results may be of its CPU, not of the network; --rate-scale 1/2000 would fit, or fewer hosts"
        );
        assert_eq!(demand(32).foreseen(32, scale("1/100")), None);
        // On the mean 0.5 cores, but not while all send.
        let said = demand(1).foreseen(2, scale("1/100")).unwrap();
        assert!(said.contains("take about 16.0 cores while all of them send"), "{said}");
        assert_eq!(demand(1).foreseen(16, scale("1/100")), None);
    }

    #[test]
    fn packets_that_come_alone_take_more() {
        // 32 Gb/s in 4 KB are a million packets a second of 129 us each.
        assert!(!demand(1).is_leisurely(128) && demand(1).is_leisurely(130));
        // On the mean 90 cores are to be idle for three tenths.
        assert!(!demand(32).is_leisurely(180) && demand(32).is_leisurely(185));
    }

    #[test]
    fn what_was_measured_says_whether_the_machine_kept_up() {
        let calm = Measured {
            cores: 2,
            wall_s: 10.0,
            process_cpu_s: 6.0,
            machine_busy: Some(0.5),
            late: Duration::from_micros(90),
        };
        let said = |measured: Measured| measured.verdict(&demand(32), scale("1/100"));
        assert_eq!(said(calm), None);
        let busy =
            said(Measured { machine_busy: Some(0.97), late: Duration::from_micros(400), ..calm }).unwrap();
        assert_eq!(
            busy,
            "this machine did not keep up: its 2 cores were 97 % busy, 30 % with this run, and loops woke up 0.40 ms late on \
             the mean; these are results of its CPU, not of the network; a --rate-scale of 1/2000 or smaller, or fewer \
             hosts, would give it time"
        );
        // Where cores are rationed, the machine is idle and loops still come late; or the process uses all it may.
        assert!(said(Measured { late: Duration::from_millis(3), ..calm }).is_some());
        assert!(said(Measured { process_cpu_s: 19.0, machine_busy: None, ..calm }).is_some());
    }

    #[test]
    fn idle_time_is_told_by_the_system() {
        let before = Ticks::parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(before, Ticks { idle: 850, all: 1_000 });
        let after = Ticks::parse("cpu  180 0 60 805 55 0 0 0 0 0\n").unwrap();
        assert_eq!(after.busy_since(&before), Some(0.9));
        assert_eq!(before.busy_since(&before), None);
        assert_eq!(Ticks::parse("intr 5"), None);
    }
}
