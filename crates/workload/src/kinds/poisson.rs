//! Poisson arrivals of flows whose sizes follow a distribution: the usual open-loop test of a fabric.

use pathweave_units::Duration;
use serde::{Deserialize, Serialize};

use crate::builder::Stream;
use crate::cdf::{SizeCdf, builtin_cdfs};
use crate::error::WorkloadError;
use crate::kinds::pairs::{PairPicker, Pairs};
use crate::sink::{Generate, NamedFile, WorkloadBuilder};

/// Capacity to which `load` refers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOf {
    /// Sum of the rates at which the hosts of the workload can send. Hosts of unequal rates begin and end flows in
    /// proportion to them.
    #[default]
    HostLinks,
    /// Capacity of the links from racks upwards, which is the bisection of a leaf-spine. Only flows between
    /// racks count.
    RackUplinks,
}

/// Flows between random hosts, each on its own connection, with exponential times between arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Distribution of sizes: a name (see `pathweave list workloads`), or a file. Each line of a file is
    /// "BYTES PROBABILITY", separated by blanks or a comma, with probabilities from 0 to 1 or from 0 to 100.
    pub sizes: String,
    /// Offered payload as a fraction of the capacity, above 0 and at most 10; 1 is the full capacity. Headers
    /// are extra.
    pub load: f64,
    /// Capacity to which `load` refers: "host-links" is the sum of the rates of the hosts, "rack-uplinks" that of
    /// the links from racks upwards. Hosts of unequal rates send and receive in proportion to them.
    #[serde(default)]
    pub load_of: LoadOf,
    /// Time during which flows arrive. Set either `duration` or `flows`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Number of flows. Set either `flows` or `duration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Pairs of hosts between which flows go.
    #[serde(default)]
    pub pairs: Pairs,
}

impl Generate for Poisson {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let sizes = self.sizes(out)?;
        let pairs = PairPicker::new(self.pairs, out)?;
        let offered_bps = self.offered_bps(&pairs, out)?;
        pairs.note_unequal_rates(offered_bps, out);
        let gap_ps = sizes.mean_bytes() * 8e12 / offered_bps;
        let (count, end) = match (self.flows, self.duration) {
            (Some(0), None) => return out.field_error("flows", 0, "expected 1 or more"),
            (None, Some(Duration::ZERO)) => {
                return out.field_error("duration", "0s", "expected more than zero");
            }
            (Some(flows), None) => (flows, Duration::MAX),
            (None, Some(duration)) => (u64::MAX, duration),
            (Some(flows), Some(_)) => {
                return out.field_error("flows", flows, "expected flows or duration, not both");
            }
            (None, None) => return out.field_error("flows", "missing", "expected flows or duration"),
        };
        out.check_count((count as f64).min(end.as_ps() as f64 / gap_ps))?;

        let (mut arrivals, mut hosts, mut draws) = (out.rng("arrivals"), out.rng("pairs"), out.rng("sizes"));
        let mut now: u64 = 0;
        for _ in 0..count {
            // libm gives the same bits on every machine. 1 - u is never 0.
            let gap = -libm::log(1.0 - arrivals.unit_f64()) * gap_ps;
            now = now.saturating_add((gap + 0.5) as u64);
            if now >= end.as_ps() {
                break;
            }
            let pair = pairs.draw(&mut hosts);
            out.message(pair, sizes.sample(&mut draws), Duration::from_ps(now), Stream::Own, None)?;
        }
        Ok(())
    }

    fn files(&mut self) -> Vec<NamedFile<'_>> {
        let is_builtin = builtin_cdfs().iter().any(|cdf| cdf.name == self.sizes);
        if is_builtin { Vec::new() } else { vec![("sizes", &mut self.sizes)] }
    }
}

impl Poisson {
    fn sizes(&self, out: &mut WorkloadBuilder<'_>) -> Result<SizeCdf, WorkloadError> {
        let is_path = self.sizes.contains(['.', '/', '\\']);
        if !is_path {
            return SizeCdf::builtin(&self.sizes)
                .or_else(|why| out.field_error("sizes", format_args!("\"{}\"", self.sizes), why));
        }
        let cdf = SizeCdf::parse(&out.read(&self.sizes)?, &self.sizes)?;
        out.note(format_args!("{}: probabilities are taken to be {}", self.sizes, cdf.scale()));
        for note in cdf.notes() {
            out.note(format_args!("{}: {note}", self.sizes));
        }
        Ok(cdf)
    }

    /// Returns the payload that all hosts together offer, bit/s.
    fn offered_bps(&self, pairs: &PairPicker, out: &WorkloadBuilder<'_>) -> Result<f64, WorkloadError> {
        if !(self.load > 0.0 && self.load <= 10.0) {
            return out.field_error(
                "load",
                self.load,
                "expected a share above 0, usually 0.1 to 1 (at most 10)",
            );
        }
        let capacity = match self.load_of {
            LoadOf::HostLinks => pairs.hosts_bps(),
            LoadOf::RackUplinks => match out.env.rack_uplinks {
                Some(rate) => match pairs.inter_rack_share {
                    Some(share) => rate.as_bps() as f64 / share,
                    None => {
                        return out.field_error(
                            "load_of",
                            "rack-uplinks",
                            "expected \"host-links\" with these pairs",
                        );
                    }
                },
                None => {
                    return out.field_error(
                        "load_of",
                        "rack-uplinks",
                        "this topology has no links above its racks",
                    );
                }
            },
        };
        if capacity > 0.0 && capacity.is_finite() {
            Ok(self.load * capacity)
        } else {
            out.field_error("load", self.load, "the links it refers to carry nothing")
        }
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::{Bytes, Rate};

    use super::*;
    use crate::config::{WorkloadConfig, build};
    use crate::env::WorkloadEnv;
    use crate::graph::{Message, MessageGraph};
    use crate::kinds::Traffic;
    use crate::testing::error_of;

    fn poisson(load: f64, flows: u64) -> Poisson {
        Poisson {
            sizes: "alistorage".to_owned(),
            load,
            load_of: LoadOf::HostLinks,
            duration: None,
            flows: Some(flows),
            pairs: Pairs::Any,
        }
    }

    /// Returns 4 racks of 8 hosts at 100 Gbps with 2:1 oversubscription.
    fn env() -> WorkloadEnv {
        WorkloadEnv {
            racks: (0..32).map(|h| h / 8).collect(),
            rack_uplinks: Some(Rate::from_gbps(1600)),
            ..WorkloadEnv::new(32, Rate::from_gbps(100))
        }
    }

    fn graph(config: Poisson) -> MessageGraph {
        build(&[WorkloadConfig::new(Traffic::Poisson(config))], &env()).unwrap().graph
    }

    /// Returns the payload of some messages as a fraction of a rate.
    fn share(graph: &MessageGraph, rate: Rate, which: impl Fn(&Message) -> bool) -> f64 {
        let bits: f64 = graph.messages().iter().filter(|m| which(m)).map(|m| m.size.get() as f64 * 8.0).sum();
        let end = graph.messages().last().unwrap().start;
        bits / (end.as_ps() as f64 * 1e-12) / rate.as_bps() as f64
    }

    #[test]
    fn the_load_of_host_links_is_as_asked() {
        let graph = graph(poisson(0.6, 400_000));
        let load = share(&graph, Rate::from_gbps(3200), |_| true);
        assert!((load / 0.6 - 1.0).abs() < 0.02, "{load}");
        assert!(graph.messages().iter().all(|m| m.src != m.dst));
        let mut sent = [0u32; 32];
        graph.messages().iter().for_each(|m| sent[m.src.index()] += 1);
        assert!(sent.iter().all(|&n| (12_000..13_000).contains(&n)), "{sent:?}");
    }

    #[test]
    fn the_load_of_rack_uplinks_counts_flows_between_racks() {
        for pairs in [Pairs::Any, Pairs::InterRack] {
            let config = Poisson { load_of: LoadOf::RackUplinks, pairs, ..poisson(0.5, 400_000) };
            let graph = graph(config);
            let crosses = |m: &Message| m.src.0 / 8 != m.dst.0 / 8;
            let load = share(&graph, Rate::from_gbps(1600), crosses);
            assert!((load / 0.5 - 1.0).abs() < 0.02, "{pairs:?}: {load}");
            assert_eq!(pairs == Pairs::InterRack, graph.messages().iter().all(crosses));
        }
    }

    #[test]
    fn pairs_stay_in_their_data_centre_or_leave_it() {
        let sites = || WorkloadEnv { sites: (0..32).map(|h| h / 16).collect(), ..env() };
        let of = |pairs| {
            let config = Poisson { pairs, ..poisson(0.5, 40_000) };
            build(&[WorkloadConfig::new(Traffic::Poisson(config))], &sites()).unwrap().graph
        };
        let (inside, across) = (of(Pairs::IntraSite), of(Pairs::InterSite));
        let crosses = |m: &Message| m.src.0 / 16 != m.dst.0 / 16;
        assert!(inside.messages().iter().all(|m| !crosses(m) && m.src != m.dst));
        assert!(across.messages().iter().all(crosses));
        for graph in [inside, across] {
            let load = share(&graph, Rate::from_gbps(3200), |_| true);
            assert!((load / 0.5 - 1.0).abs() < 0.05, "{load}");
            // 40,000 flows go to 32 hosts.
            let mut got = [0u32; 32];
            graph.messages().iter().for_each(|m| got[m.dst.index()] += 1);
            assert!(got.iter().all(|&n| (1_100..1_400).contains(&n)), "{got:?}");
        }
    }

    #[test]
    fn times_between_arrivals_are_exponential() {
        let graph = graph(poisson(0.6, 200_000));
        let gaps: Vec<f64> =
            graph.messages().windows(2).map(|w| (w[1].start - w[0].start).as_ps() as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // The standard deviation equals the mean, and a fraction 1/e of the gaps exceeds it.
        let variance = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
        let above = gaps.iter().filter(|&&g| g > mean).count() as f64 / gaps.len() as f64;
        assert!((above - 0.3679).abs() < 0.01, "{above}");
    }

    #[test]
    fn a_duration_bounds_the_starts_and_extends_the_same_flows() {
        let of = |us| Poisson { flows: None, duration: Some(Duration::from_us(us)), ..poisson(0.3, 0) };
        let (short, long) = (graph(of(50)), graph(of(100)));
        assert!(long.messages().iter().all(|m| m.start.as_ns() < 100_000));
        let same: Vec<_> = long.messages().iter().filter(|m| m.start.as_ns() < 50_000).copied().collect();
        assert_eq!(short.messages(), same);
        assert!(same.len() > 100);
    }

    #[test]
    fn errors_name_what_is_allowed() {
        let error = |change: fn(&mut Poisson)| {
            let mut config = poisson(0.6, 100);
            change(&mut config);
            error_of(4, Traffic::Poisson(config))
        };
        assert_eq!(
            error(|c| c.load = -0.5),
            "workload \"poisson\": load = -0.5: expected a share above 0, usually 0.1 to 1 (at most 10)"
        );
        assert!(error(|c| c.load = f64::NAN).contains("load = NaN"));
        assert!(error(|c| c.sizes = "websearhc".to_owned()).contains("did you mean \"websearch\"?"));
        assert!(error(|c| c.sizes = "none/such.txt".to_owned()).starts_with("none/such.txt: cannot read it"));
        assert!(error(|c| c.flows = None).ends_with("expected flows or duration"));
        assert!(error(|c| c.flows = Some(1 << 40)).contains("more than 268435456 messages"));
        assert!(error(|c| c.pairs = Pairs::InterRack).contains("single rack"));
        assert!(error(|c| c.pairs = Pairs::InterSite).contains("one data centre"));
        assert!(error(|c| c.load_of = LoadOf::RackUplinks).contains("no links above its racks"));
        assert!(graph(poisson(0.6, 100)).messages().iter().all(|m| m.size >= Bytes::new(1)));
    }
}
