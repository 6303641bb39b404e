//! Pairs of hosts between which flows go, drawn at random.

use pathweave_units::{Rate, Rng};
use serde::{Deserialize, Serialize};

use crate::env::WorkloadEnv;
use crate::error::WorkloadError;
use crate::sink::WorkloadBuilder;

/// Pairs of hosts between which flows go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Any two hosts, from a uniform distribution if their rates are equal.
    #[default]
    Any,
    /// Two hosts in different racks: a sender as with "any", then a receiver in another rack.
    InterRack,
    /// Two hosts in the same data centre.
    IntraSite,
    /// Two hosts in different data centres: a sender as with "any", then a receiver in another data centre.
    InterSite,
}

impl Pairs {
    fn name(self) -> &'static str {
        match self {
            Pairs::Any => "any",
            Pairs::InterRack => "inter-rack",
            Pairs::IntraSite => "intra-site",
            Pairs::InterSite => "inter-site",
        }
    }
}

/// Draws pairs of different hosts.
pub(super) struct PairPicker {
    /// Hosts sorted by class (rack or data centre). Either no pair is within one class, or every pair is.
    order: Vec<u32>,
    /// Range of the class of each position of `order`, as begin and end.
    class: Vec<(u32, u32)>,
    within: bool,
    /// Fraction of pairs that cross racks; `None` if load on rack uplinks is not defined.
    pub(super) inter_rack_share: Option<f64>,
    rates: Rates,
}

/// Rates at which hosts can send.
enum Rates {
    /// All hosts have this rate, bit/s.
    Equal(u64),
    /// Total rate, bit/s, of the hosts before each position of `order`, and of all hosts at the end.
    Before(Vec<u64>),
}

impl PairPicker {
    pub(super) fn new(pairs: Pairs, out: &WorkloadBuilder<'_>) -> Result<Self, WorkloadError> {
        let env = out.env;
        if env.hosts < 2 {
            return out.field_error("hosts", env.hosts, "flows need at least 2 hosts");
        }
        let rates = env.send_rates();
        let by_rack = PairPicker::of_classes(env, &rates, |h| env.rack(h));
        let picker = match pairs {
            Pairs::InterRack if by_rack.class[0] == (0, env.hosts) => {
                return out.field_error(
                    "pairs",
                    "inter-rack",
                    "this topology has a single rack; expected \"any\"",
                );
            }
            Pairs::InterRack => by_rack,
            Pairs::Any => {
                let any = PairPicker::of_classes(env, &rates, |h| h);
                PairPicker { inter_rack_share: Some(by_rack.crossing_share(env.hosts)), ..any }
            }
            Pairs::IntraSite | Pairs::InterSite => PairPicker::of_sites(pairs, &rates, out)?,
        };
        let alone = |at: usize| picker.rate(at) > 0 && picker.choice_bps(at) == 0;
        match (0..picker.order.len()).find(|&at| alone(at)) {
            Some(at) => {
                let host = picker.order[at];
                out.field_error(
                    "pairs",
                    pairs.name(),
                    format!("no receiver of host {host} has a link that carries data"),
                )
            }
            None => Ok(picker),
        }
    }

    fn of_sites(pairs: Pairs, rates: &[Rate], out: &WorkloadBuilder<'_>) -> Result<Self, WorkloadError> {
        let env = out.env;
        let by_site =
            PairPicker { inter_rack_share: None, ..PairPicker::of_classes(env, rates, |h| env.site(h)) };
        if pairs == Pairs::InterSite {
            return if by_site.class[0] == (0, env.hosts) {
                out.field_error("pairs", "inter-site", "this topology is one data centre; expected \"any\"")
            } else {
                Ok(by_site)
            };
        }
        if by_site.class.iter().any(|(begin, end)| end - begin < 2) {
            return out.field_error("pairs", "intra-site", "expected data centres of 2 hosts or more");
        }
        Ok(PairPicker { within: true, ..by_site })
    }

    fn of_classes(env: &WorkloadEnv, rates: &[Rate], class_of: impl Fn(u32) -> u32) -> Self {
        let mut order: Vec<u32> = (0..env.hosts).collect();
        order.sort_by_key(|&h| class_of(h));
        let mut class = Vec::with_capacity(order.len());
        for members in order.chunk_by(|&a, &b| class_of(a) == class_of(b)) {
            let begin = class.len() as u32;
            class.extend(members.iter().map(|_| (begin, begin + members.len() as u32)));
        }
        let bps = |host: u32| rates[host as usize].as_bps();
        let rates = if rates.iter().all(|&rate| rate == rates[0]) {
            Rates::Equal(bps(0))
        } else {
            let mut before = vec![0];
            before.extend(order.iter().scan(0, |sum: &mut u64, &host| {
                *sum = sum.saturating_add(bps(host));
                Some(*sum)
            }));
            Rates::Before(before)
        };
        PairPicker { order, class, within: false, inter_rack_share: Some(1.0), rates }
    }

    /// Returns the rate at which all hosts together can send, bit/s.
    pub(super) fn hosts_bps(&self) -> f64 {
        match &self.rates {
            Rates::Equal(bps) => *bps as f64 * self.order.len() as f64,
            Rates::Before(_) => self.bps(0, self.order.len()) as f64,
        }
    }

    /// Returns the total rate of hosts from one position to before another, bit/s.
    fn bps(&self, from: usize, to: usize) -> u64 {
        match &self.rates {
            Rates::Equal(bps) => bps.saturating_mul((to - from) as u64),
            Rates::Before(before) => before[to] - before[from],
        }
    }

    fn rate(&self, at: usize) -> u64 {
        self.bps(at, at + 1)
    }

    /// Returns the total rate of the hosts to which the host at a position may send, bit/s.
    fn choice_bps(&self, at: usize) -> u64 {
        let (begin, end) = self.class[at];
        let own = self.bps(begin as usize, end as usize);
        if self.within { own - self.rate(at) } else { self.bps(0, self.order.len()) - own }
    }

    /// Returns the fraction of pairs of any two hosts that cross the classes of this picker.
    fn crossing_share(&self, hosts: u32) -> f64 {
        let n = f64::from(hosts);
        let Rates::Before(_) = self.rates else {
            let crossing: f64 = self.class.iter().map(|&(a, b)| n - f64::from(b - a)).sum();
            return crossing / (n * (n - 1.0));
        };
        let all = self.hosts_bps();
        let of = |at: usize| {
            let own = self.rate(at) as f64;
            if own > 0.0 { own / all * (self.choice_bps(at) as f64 / (all - own)) } else { 0.0 }
        };
        (0..self.order.len()).map(of).sum()
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> (u32, u32) {
        match &self.rates {
            Rates::Equal(_) => self.draw_evenly(rng),
            Rates::Before(before) => self.draw_by_rate(before, rng),
        }
    }

    fn draw_evenly(&self, rng: &mut Rng) -> (u32, u32) {
        let n = self.order.len() as u32;
        let src = rng.below(n);
        let (begin, end) = self.class[src as usize];
        if self.within {
            let dst = begin + rng.below(end - begin - 1);
            return (self.order[src as usize], self.order[(dst + u32::from(dst >= src)) as usize]);
        }
        let dst = rng.below(n - (end - begin));
        let dst = if dst < begin { dst } else { dst + (end - begin) };
        (self.order[src as usize], self.order[dst as usize])
    }

    /// Draws a sender, then a receiver among those that it may send to, each in proportion to its rate.
    fn draw_by_rate(&self, before: &[u64], rng: &mut Rng) -> (u32, u32) {
        // The position at which a point of the line of all rates lies. A host without rate covers no point.
        let position = |point: u64| before.partition_point(|&sum| sum <= point) - 1;
        let src = position(below(rng, before[before.len() - 1]));
        let (begin, end) = self.class[src];
        let (begin, end) = (before[begin as usize], before[end as usize]);
        let point = below(rng, self.choice_bps(src));
        let (first, left_out) =
            if self.within { (begin, (before[src], before[src + 1])) } else { (0, (begin, end)) };
        let point = first + point;
        let skipped = if point < left_out.0 { 0 } else { left_out.1 - left_out.0 };
        (self.order[src], self.order[position(point + skipped)])
    }

    /// Returns the largest ratio of the payload that a host receives to the payload that it sends, and the host.
    fn most_received(&self) -> (f64, u32) {
        let per_bps = |at: usize| match self.rate(at) {
            0 => 0.0,
            own => own as f64 / self.choice_bps(at) as f64,
        };
        let mut sums = vec![0.0];
        for at in 0..self.order.len() {
            sums.push(sums[at] + per_bps(at));
        }
        let of = |at: usize| {
            let (begin, end) = self.class[at];
            let inside = sums[end as usize] - sums[begin as usize];
            let ratio = if self.within { inside - per_bps(at) } else { sums[self.order.len()] - inside };
            (ratio, self.order[at])
        };
        let sending = (0..self.order.len()).filter(|&at| self.rate(at) > 0);
        sending.map(of).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
    }

    /// Adds a note if hosts have unequal rates.
    pub(super) fn note_unequal_rates(&self, offered_bps: f64, out: &mut WorkloadBuilder<'_>) {
        if let Rates::Equal(_) = self.rates {
            return;
        }
        let rates = || (0..self.order.len()).map(|at| self.rate(at));
        let (least, most) = (rates().min().unwrap_or(0), rates().max().unwrap_or(0));
        out.note(format_args!(
            "hosts send and receive in proportion to their rates, {} to {}: each sends {:.1} % of its own, together \
             {:.1} Gbps",
            Rate::from_bps(least),
            Rate::from_bps(most),
            100.0 * offered_bps / self.hosts_bps(),
            offered_bps * 1e-9,
        ));
        let (ratio, host) = self.most_received();
        if ratio > 1.05 {
            out.note(format_args!(
                "host {host} receives {ratio:.2} times as much as it sends, because the fastest hosts have too few \
                 others to send to"
            ));
        }
    }
}

/// Returns a number in `0..n`, by multiplication.
fn below(rng: &mut Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use pathweave_topo::{LinkFor, TopologyConfig};
    use pathweave_units::{Duration, HostId};

    use super::*;
    use crate::config::{Workload, WorkloadConfig, build};
    use crate::graph::Message;
    use crate::kinds::{LoadOf, Poisson, Traffic};

    const STAR: &str = "kind = 'star'\nhosts = 64\nrate = '100Gbps'";

    /// Builds flows of 5 ms at load 0.5 of a network with other rates of some links. `pool`: only of these hosts.
    fn flows(topology: &str, links: &[(&str, u64)], pool: &[u32], pairs: Pairs) -> Workload {
        let topology: TopologyConfig = toml::from_str(topology).unwrap();
        let of = |&(names, gbps): &(&str, u64)| LinkFor {
            names: names.to_owned(),
            rate: Some(Rate::from_gbps(gbps)),
            delay: None,
            error_rate: None,
        };
        let tables: Vec<LinkFor> = links.iter().map(of).collect();
        let topology = topology.build(Path::new("")).unwrap().with_links(&tables).unwrap();
        let slowest = (0..topology.hosts()).map(|host| topology.scale_out_rate(HostId(host))).min();
        let mut env = WorkloadEnv::new(topology.hosts(), slowest.unwrap());
        env.racks = (0..env.hosts).map(|host| host / 8).collect();
        env.topology = Some(Arc::new(topology));
        let env = if pool.is_empty() { env } else { env.of_members(pool) };
        let (load, load_of, duration) = (0.5, LoadOf::HostLinks, Some(Duration::from_ms(5)));
        let poisson = Poisson { sizes: "alistorage".to_owned(), load, load_of, duration, flows: None, pairs };
        build(&[WorkloadConfig::new(Traffic::Poisson(poisson))], &env).unwrap()
    }

    /// Returns the rates that hosts send and receive, Gb/s, over 5 ms.
    fn gbps(workload: &Workload) -> (Vec<f64>, Vec<f64>) {
        let hosts = workload.graph.hosts() as usize;
        let (mut sent, mut received) = (vec![0.0; hosts], vec![0.0; hosts]);
        for message in workload.graph.messages() {
            let gbps = message.size.get() as f64 * 8.0 / 5e6;
            sent[message.src.index()] += gbps;
            received[message.dst.index()] += gbps;
        }
        (sent, received)
    }

    fn near(value: f64, expected: f64, share: f64) -> bool {
        (value / expected - 1.0).abs() < share
    }

    /// 63 hosts of 100 Gb/s and one of 10 Gb/s offer half of 6,310 Gb/s; the slow one sends and receives 5 Gb/s.
    #[test]
    fn a_slow_host_lowers_only_its_own_share() {
        for pairs in [Pairs::Any, Pairs::InterRack] {
            let slow = flows(STAR, &[("host3-*", 10)], &[], pairs);
            let (sent, received) = gbps(&slow);
            assert!(near(sent.iter().sum(), 3_155.0, 0.03), "{}", sent.iter().sum::<f64>());
            let messages = slow.graph.messages();
            let expected = messages.len() as f64 / 631.0;
            let of = |is: fn(&Message) -> bool| messages.iter().filter(|m| is(m)).count() as f64;
            let (from, to) = (of(|m| m.src.0 == 3), of(|m| m.dst.0 == 3));
            assert!(near(from, expected, 0.4) && near(to, expected, 0.4), "{from} {to} of {expected}");
            assert!(sent.iter().chain(&received).filter(|&&gbps| gbps > 30.0).count() == 126);
            let note = "workload \"poisson\": hosts send and receive in proportion to their rates, 10Gbps to 100Gbps: \
                        each sends 50.0 % of its own, together 3155.0 Gbps";
            assert_eq!(slow.notes, [note]);
            assert!(slow.graph.messages().iter().all(|m| m.src != m.dst));
            let inside = slow.graph.messages().iter().filter(|m| m.src.0 / 8 == m.dst.0 / 8).count();
            assert_eq!(inside == 0, pairs == Pairs::InterRack);
        }
    }

    /// A pool without the slow host offers half of what its hosts send.
    #[test]
    fn a_pool_counts_its_own_hosts() {
        let of = |links: &[(&str, u64)]| flows(STAR, links, &[0, 1, 2, 3], Pairs::Any);
        let pool = of(&[("host5-*", 10)]);
        assert!(near(gbps(&pool).0.iter().sum(), 200.0, 0.1));
        assert_eq!((pool.graph.messages(), &pool.notes[..]), (of(&[]).graph.messages(), &[][..]));
    }

    /// A host of 400 Gb/s sends 200 Gb/s to three of 100 Gb/s, 66.7 each. Each of them sends 50 Gb/s, 4/6 of it to the
    /// fast one and 1/6 to each other: it receives 66.7 + 2 x 8.3 = 83.3 Gb/s, 1.67 times what it sends.
    #[test]
    fn a_note_tells_of_receivers_of_more_than_their_share() {
        let fast = flows("kind = 'star'\nhosts = 4\nrate = '100Gbps'", &[("host0-*", 400)], &[], Pairs::Any);
        let (sent, received) = gbps(&fast);
        assert!(near(sent.iter().sum(), 350.0, 0.1) && near(sent[0], 200.0, 0.1), "{sent:?}");
        assert!(near(received[0], 100.0, 0.15) && near(received[2], 83.3, 0.15), "{received:?}");
        assert!(fast.notes[1].contains("receives 1.67 times as much as it sends"), "{:?}", fast.notes);
    }

    /// Four servers of two GPUs with one port of 100 Gb/s offer half of 400 Gb/s.
    #[test]
    fn gpus_that_share_a_nic_share_its_rate() {
        let cluster = "kind = 'cluster'\nservers = 4\nattach = 'server'\n\
            server = { gpus = 2, nics = 1, port_rate = '100Gbps' }\n\
            scale_out = { kind = 'leaf-spine', leaves = 2, spines = 1, hosts_per_leaf = 2, host_rate = '100Gbps' }";
        let all = flows(cluster, &[], &[], Pairs::Any);
        assert!(near(gbps(&all).0.iter().sum(), 200.0, 0.1));
        // GPU 2 is alone at its NIC: 50 + 50 + 100 Gb/s.
        let three = flows(cluster, &[], &[0, 1, 2], Pairs::Any);
        assert!(near(gbps(&three).0.iter().sum(), 100.0, 0.15));
        assert!(three.notes[0].contains("50Gbps to 100Gbps"), "{:?}", three.notes);
    }
}
