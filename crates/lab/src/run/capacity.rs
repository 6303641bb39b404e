//! Check that this machine keeps up with the network of a lab: estimate before a run, measurement after it.

use std::time::Duration;

use pathweave_sim::{SimSpec, profile};
use pathweave_topo::Routing;
use pathweave_units::{Rate, Time};
use pathweave_workload::{Awaited, Bounds};

use crate::settings::{RateScale, Settings};

/// CPU seconds of a data packet at both ends, including its share of acknowledgements. Accurate to a factor of two,
/// since machines differ.
const AT_ENDS_S: f64 = 8e-6;
/// CPU seconds of a packet on one link: a token bucket, a veth pair, and the forwarding after it.
const ON_A_LINK_S: f64 = 2e-6;
/// CPU seconds of a packet that arrives alone, at both ends and on one link: it wakes threads and sets timers by
/// itself. Measured on a virtual machine with two cores, at 100 Mb/s and 1,400 bytes a packet: 97 us over two links.
const ALONE_AT_ENDS_S: f64 = 65e-6;
const ALONE_ON_A_LINK_S: f64 = 16e-6;
/// Largest planned utilisation of the cores, so that a thread that wakes up finds an idle core.
const BUSY_AT_MOST: f64 = 0.7;
/// Measured utilisation from which the cores count as saturated.
const SATURATED: f64 = 0.9;
/// Average wake-up delay from which event loops count as waiting for cores. It is about a tenth of a millisecond on
/// an idle machine.
const LATE: Duration = Duration::from_millis(1);
/// Number of messages whose paths are examined.
pub(super) const SAMPLED_MESSAGES: usize = 1_000;

/// Demand of a run on the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// Number of hosts that send.
    senders: u32,
    /// Total sending rate if all hosts send at the rate of their links, limited by the links of the receivers.
    most: Rate,
    /// Average total sending rate if the network is as fast as possible.
    mean: Rate,
    /// Payload of a packet in bytes.
    packet_bytes: f64,
    /// Average number of links that a packet crosses.
    links: f64,
}

/// Roles of a host in a run.
const SENDS: usize = 0;
const RECEIVES: usize = 1;

impl Demand {
    pub(super) fn of(spec: &SimSpec, settings: &Settings) -> Demand {
        let (graph, scale) = (&spec.graph, settings.rate_scale);
        let host_rate = |host| scale.apply(spec.topology.scale_out_rate(host));
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
        // An estimate suffices; the run itself reports errors.
        let notification = spec.task_notification().unwrap_or_default();
        let completion =
            Bounds::on_topology((graph, Awaited::ALL), notification, &spec.topology).completion();
        let seconds = completion.saturating_since(Time::ZERO).as_secs_f64() / scale.share();
        let mean = if seconds > 0.0 { graph.total_bytes() as f64 * 8.0 / seconds } else { 0.0 };
        let routing = Routing::all_links_up(&spec.topology);
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
            packet_bytes: (spec.network.mtu.get() as f64).min(f64::from(settings.mtu_bytes)),
            links: links.iter().sum::<f64>() / (links.len() as f64).max(1.0),
        }
    }

    /// Returns the number of cores that traffic at this rate keeps busy.
    fn cores(&self, rate: Rate) -> f64 {
        let packets_per_s = rate.as_bps() as f64 / 8.0 / self.packet_bytes;
        packets_per_s * (AT_ENDS_S + ON_A_LINK_S * self.links)
    }

    /// Returns true if this number of cores suffices even if each packet arrives alone.
    pub(super) fn has_capacity_for_single_packets(&self, cores: usize) -> bool {
        let packet_s = ALONE_AT_ENDS_S + ALONE_ON_A_LINK_S * self.links;
        let needed = |rate: Rate| rate.as_bps() as f64 / 8.0 / self.packet_bytes * packet_s;
        needed(self.mean) <= BUSY_AT_MOST * cores as f64 && needed(self.most) <= cores as f64
    }

    /// Returns a warning if this number of cores is too small, with the rate scale that would fit.
    pub(super) fn warning(&self, cores: usize, scale: RateScale) -> Option<String> {
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

/// Returns a scale that is smaller by the factor `times`, rounded to one digit for readability.
fn slower(scale: RateScale, times: f64) -> String {
    let divisor = times.max(1.0) / scale.share();
    let digit = 10f64.powf(divisor.log10().floor());
    format!("1/{:.0}", (divisor / digit).ceil() * digit)
}

/// Load of this machine during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Number of cores that the process may use.
    pub cores: usize,
    /// Share of the time of all cores that was not idle, 0 to 1, for any process.
    pub busy: f64,
    /// Average wake-up delay of the event loops.
    pub late: Duration,
}

/// Measurements of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) cores: usize,
    pub(super) wall_s: f64,
    /// CPU time of this process in seconds. Forwarding in the kernel may not be attributed to any process.
    pub(super) process_cpu_s: f64,
    /// Share of the time of all cores that was not idle, if the system reports it.
    pub(super) machine_busy: Option<f64>,
    /// Average wake-up delay of the event loops.
    pub(super) late: Duration,
}

impl Measured {
    /// Returns the load of the machine.
    pub(super) fn load(&self) -> Load {
        Load { cores: self.cores, busy: self.busy(), late: self.late }
    }

    /// Returns the share of the time of all cores that was busy.
    fn busy(&self) -> f64 {
        self.machine_busy.unwrap_or(0.0).max(self.of_run()).min(1.0)
    }

    /// Returns the share of the time of all cores that this run used.
    fn of_run(&self) -> f64 {
        self.process_cpu_s / self.wall_s.max(1e-9) / self.cores.max(1) as f64
    }

    /// Returns the reason why the results do not represent the network, or `None` if they do.
    pub(super) fn overload_reason(&self, demand: &Demand, scale: RateScale) -> Option<String> {
        let cores = self.cores.max(1) as f64;
        let (of_run, busy) = (self.of_run(), self.busy());
        if busy < SATURATED && self.late < LATE {
            return None;
        }
        // The measurement may show a higher demand than the estimate.
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

/// Returns the number of cores that this process may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Total time of all cores so far, idle and in total, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    idle: u64,
    all: u64,
}

impl Ticks {
    /// Returns the present values, or `None` if the system does not report them.
    pub(super) fn now() -> Option<Ticks> {
        Ticks::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses proc(5): user, nice, system, idle, iowait, irq, softirq, steal. Guest time is part of the first two.
    fn parse(stat: &str) -> Option<Ticks> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
        Some(Ticks { idle, all: ticks.iter().sum() })
    }

    /// Returns the share of the time since `before` in which cores were not idle.
    pub(super) fn busy_since(&self, before: &Ticks) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        Some(1.0 - self.idle.saturating_sub(before.idle) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 hosts at 1 Gb/s, 4 KB a packet, four links: 1 million packets a second of 16 us each need 16 cores.
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
    fn overload_of_two_cores_is_predicted() {
        let said = demand(32).warning(2, scale("1/100")).unwrap();
        // 16 cores where 1.4 are available is a factor of 11.4.
        assert_eq!(
            said,
            "32 hosts that send 32.000 Gb/s together at 1/100 of the rates take about 16.0 cores all the time, and this \
             machine has 2: results may be of its CPU, not of the network; --rate-scale 1/2000 would fit, or fewer hosts"
        );
        assert_eq!(demand(32).warning(32, scale("1/100")), None);
        // The average is 0.5 cores, but it is more while all hosts send.
        let said = demand(1).warning(2, scale("1/100")).unwrap();
        assert!(said.contains("take about 16.0 cores while all of them send"), "{said}");
        assert_eq!(demand(1).warning(16, scale("1/100")), None);
    }

    #[test]
    fn packets_that_come_alone_take_more() {
        // 32 Gb/s in packets of 4 KB are a million packets a second of 129 us each.
        assert!(
            !demand(1).has_capacity_for_single_packets(128) && demand(1).has_capacity_for_single_packets(130)
        );
        // On average 129 cores are busy, and at most 70 % of all cores may be.
        assert!(
            !demand(32).has_capacity_for_single_packets(180)
                && demand(32).has_capacity_for_single_packets(185)
        );
    }

    #[test]
    fn measurements_show_an_overloaded_machine() {
        let calm = Measured {
            cores: 2,
            wall_s: 10.0,
            process_cpu_s: 6.0,
            machine_busy: Some(0.5),
            late: Duration::from_micros(90),
        };
        let said = |measured: Measured| measured.overload_reason(&demand(32), scale("1/100"));
        assert_eq!(said(calm), None);
        let busy =
            said(Measured { machine_busy: Some(0.97), late: Duration::from_micros(400), ..calm }).unwrap();
        assert_eq!(
            busy,
            "this machine did not keep up: its 2 cores were 97 % busy, 30 % with this run, and loops woke up 0.40 ms late on \
             the mean; these are results of its CPU, not of the network; a --rate-scale of 1/2000 or smaller, or fewer \
             hosts, would give it time"
        );
        // With CPU quotas the machine is idle and loops are still late, or the process uses its whole quota.
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
