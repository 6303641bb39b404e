//! Stragglers: hosts that compute slower than others, always, at times, or as measured.

use std::collections::BTreeMap;

use pathweave_units::{Duration, Rng};
use serde::{Deserialize, Serialize};

use crate::env::WorkloadEnv;
use crate::error::{FileError, shorten};
use crate::hosts::HostList;

/// Deviation of real durations of computations from the nominal ones of the workload: slow hosts, random
/// variation, and measured factors. All factors are multiplied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stragglers {
    /// Hosts that compute slower or faster than the others. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<Slow>,
    /// Random variation of computations. Each computation has its own draw from the stream of its host.
    /// Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// File of measured factors, with one "host,factor" per line, relative to the scenario. A host with
    /// several lines uses one factor for each of its computations in turn, cyclically. A host without a line
    /// has factor 1. Lines that begin with # are skipped. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Hosts that compute slower or faster than the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slow {
    /// Hosts: a list of numbers in the workload, names and patterns, or a pattern such as "srv3.*".
    pub hosts: HostList,
    /// Factor on the durations of their computations, above 0 and at most 1000: 2 for a GPU at half its
    /// clock.
    pub factor: f64,
}

/// Random variation of the durations of computations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Jitter {
    /// A factor from a uniform distribution.
    Uniform {
        /// Smallest factor, above 0.
        low: f64,
        /// Largest factor, at most 1000.
        high: f64,
    },
    /// A factor from a log-normal distribution with mean 1: most computations are a little faster, some are
    /// much slower.
    LogNormal {
        /// Standard deviation of the logarithm, 0 to 2.
        sigma: f64,
    },
    /// Occasional pauses of a computation: a garbage collection, a page fault, a clock change.
    Pauses {
        /// Probability that a computation pauses, 0 to 1.
        probability: f64,
        /// Duration of a pause.
        lasts: Duration,
    },
}

/// Largest factor.
const MOST: f64 = 1_000.0;

/// Error of a field: its name, its value, and what is allowed.
pub(crate) type BadField = (&'static str, String, String);

fn is_factor(factor: f64) -> bool {
    factor > 0.0 && factor <= MOST
}

impl Stragglers {
    /// Checks the fields for a workload. Returns the factor of each slow host.
    pub(crate) fn check(&self, env: &WorkloadEnv) -> Result<BTreeMap<u32, f64>, BadField> {
        self.check_jitter()?;
        let mut factors = BTreeMap::new();
        for slow in &self.slow {
            if !is_factor(slow.factor) {
                let allowed = format!("expected a factor above 0 and at most {MOST}");
                return Err(("stragglers.slow.factor", slow.factor.to_string(), allowed));
            }
            let bad = |value: String, allowed: String| ("stragglers.slow.hosts", value, allowed);
            let hosts = slow.hosts.numbers(env).map_err(|unknown| bad(unknown.pattern, unknown.allowed))?;
            for host in hosts {
                if host >= env.hosts {
                    let allowed = format!("hosts of the workload are 0 to {}", env.hosts.saturating_sub(1));
                    return Err(bad(host.to_string(), allowed));
                }
                *factors.entry(host).or_insert(1.0) *= slow.factor;
            }
        }
        Ok(factors)
    }

    fn check_jitter(&self) -> Result<(), BadField> {
        match self.jitter {
            Some(Jitter::Uniform { low, high }) if !(is_factor(low) && is_factor(high) && low <= high) => {
                let allowed = format!("expected low above 0, and high from there to {MOST}");
                Err(("stragglers.jitter", format!("low {low}, high {high}"), allowed))
            }
            Some(Jitter::LogNormal { sigma }) if !(0.0..=2.0).contains(&sigma) => {
                Err(("stragglers.jitter.sigma", sigma.to_string(), "expected 0 to 2".to_owned()))
            }
            Some(Jitter::Pauses { probability, .. }) if !(0.0..=1.0).contains(&probability) => {
                Err(("stragglers.jitter.probability", probability.to_string(), "expected 0 to 1".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// Parses the factors of a file, by host.
pub(crate) fn parse_trace(text: &str, file: &str, hosts: u32) -> Result<BTreeMap<u32, Vec<f64>>, FileError> {
    let mut factors: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (line, number) in text.lines().zip(1u64..) {
        let line = line.trim();
        // The first line may name the columns.
        if line.is_empty() || line.starts_with('#') || (number == 1 && line == "host,factor") {
            continue;
        }
        let wrong = |what: String| FileError::at(file, number, what);
        let (host, factor) = line.split_once(',').ok_or_else(|| {
            wrong(format!("\"{}\": expected \"host,factor\", such as 3,1.25", shorten(line)))
        })?;
        let host: u32 = host.trim().parse().ok().filter(|&host| host < hosts).ok_or_else(|| {
            wrong(format!(
                "host \"{}\": hosts of the workload are 0 to {}",
                shorten(host.trim()),
                hosts.saturating_sub(1)
            ))
        })?;
        let factor: f64 =
            factor.trim().parse().ok().filter(|&factor| is_factor(factor)).ok_or_else(|| {
                wrong(format!(
                    "factor \"{}\": expected a number above 0 and at most {MOST}",
                    shorten(factor.trim())
                ))
            })?;
        factors.entry(host).or_default().push(factor);
    }
    if factors.is_empty() {
        return Err(FileError::whole(file, "no line has the form \"host,factor\", such as 3,1.25"));
    }
    Ok(factors)
}

/// Durations of computations at the hosts of one workload, while it is generated.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Factor of each host; 1 for hosts that are not listed.
    factors: BTreeMap<u32, f64>,
    jitter: Option<Jitter>,
    trace: BTreeMap<u32, Vec<f64>>,
    seed: u64,
    /// Random stream and number of computations of each host that has computed.
    hosts: BTreeMap<u32, (Rng, usize)>,
    computations: u64,
}

impl Pace {
    /// Makes the state of a workload from the factors of slow hosts. `seed` is the workload's own seed.
    pub(crate) fn new(
        factors: BTreeMap<u32, f64>,
        jitter: Option<Jitter>,
        trace: BTreeMap<u32, Vec<f64>>,
        seed: u64,
    ) -> Self {
        Pace { factors, jitter, trace, seed, hosts: BTreeMap::new(), computations: 0 }
    }

    /// Returns the number of computations so far.
    pub(crate) fn computations(&self) -> u64 {
        self.computations
    }

    /// Returns the real duration of a computation at a host, given its nominal duration. A duration of zero
    /// is not a computation and stays zero.
    pub(crate) fn time(&mut self, host: u32, duration: Duration) -> Duration {
        if duration == Duration::ZERO {
            return duration;
        }
        self.computations += 1;
        let seed = self.seed;
        let fresh = || (Rng::for_component(seed, "stragglers", u64::from(host)), 0);
        let (rng, number) = self.hosts.entry(host).or_insert_with(fresh);
        let mut factor = self.factors.get(&host).copied().unwrap_or(1.0);
        if let Some(measured) = self.trace.get(&host) {
            factor *= measured[*number % measured.len()];
        }
        *number += 1;
        let mut pause = Duration::ZERO;
        match self.jitter {
            None => {}
            Some(Jitter::Uniform { low, high }) => factor *= low + (high - low) * rng.unit_f64(),
            Some(Jitter::LogNormal { sigma }) => {
                factor *= libm::exp(sigma * normal(rng) - sigma * sigma / 2.0);
            }
            Some(Jitter::Pauses { probability, lasts }) if rng.bernoulli(probability) => pause = lasts,
            Some(Jitter::Pauses { .. }) => {}
        }
        Duration::from_ps(duration.scale(factor).as_ps().saturating_add(pause.as_ps()))
    }
}

/// Returns a draw from the standard normal distribution (Box and Muller, 1958). It always takes two draws of
/// the stream.
fn normal(rng: &mut Rng) -> f64 {
    // The argument of the logarithm is never zero.
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.unit_f64()));
    radius * libm::cos(2.0 * std::f64::consts::PI * rng.unit_f64())
}

#[cfg(test)]
mod tests {
    use pathweave_units::Rate;

    use super::*;

    fn pace(config: &Stragglers) -> Pace {
        pace_with(config, BTreeMap::new())
    }

    fn pace_with(config: &Stragglers, trace: BTreeMap<u32, Vec<f64>>) -> Pace {
        let env = WorkloadEnv::new(8, Rate::from_gbps(100));
        Pace::new(config.check(&env).unwrap(), config.jitter, trace, 7)
    }

    const TEN: Duration = Duration::from_us(10);

    #[test]
    fn factors_multiply_and_traces_take_turns() {
        let slow = |hosts: &[u32], factor| Slow { hosts: hosts.to_vec().into(), factor };
        let config = Stragglers { slow: vec![slow(&[3], 2.0), slow(&[3, 4], 1.5)], ..Stragglers::default() };
        let trace = BTreeMap::from([(4, vec![1.0, 2.0])]);
        let mut pace = pace_with(&config, trace);
        assert_eq!(pace.time(0, TEN), TEN);
        assert_eq!(pace.time(3, TEN), Duration::from_us(30));
        let four: Vec<_> = (0..3).map(|_| pace.time(4, TEN).as_ps() / 1_000_000).collect();
        assert_eq!(four, [15, 30, 15]);
        assert_eq!((pace.time(4, Duration::ZERO), pace.computations()), (Duration::ZERO, 5));
    }

    #[test]
    fn jitter_is_of_the_host_and_has_its_mean() {
        let config = Stragglers { jitter: Some(Jitter::LogNormal { sigma: 0.5 }), ..Stragglers::default() };
        let (mut one, mut other) = (pace(&config), pace(&config));
        // Computations of other hosts have no effect on this one.
        let alone: Vec<_> = (0..4).map(|_| one.time(5, TEN)).collect();
        let beside: Vec<_> = (0..4)
            .map(|i| {
                other.time(i % 3, TEN);
                other.time(5, TEN)
            })
            .collect();
        assert_eq!(alone, beside);
        let mean = (0..20_000).map(|_| one.time(1, TEN).as_ps() as f64 / 1e7).sum::<f64>() / 20_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        let uniform = Some(Jitter::Uniform { low: 1.0, high: 3.0 });
        let mut uniform = pace(&Stragglers { jitter: uniform, ..Stragglers::default() });
        let all: Vec<f64> = (0..1_000).map(|_| uniform.time(1, TEN).as_ps() as f64 / 1e7).collect();
        assert!(all.iter().all(|factor| (1.0..=3.0).contains(factor)));
        assert!(all.iter().any(|&factor| factor < 1.1) && all.iter().any(|&factor| factor > 2.9));
        let lasts = Duration::from_us(90);
        let pauses = Some(Jitter::Pauses { probability: 0.25, lasts });
        let mut pauses = pace(&Stragglers { jitter: pauses, ..Stragglers::default() });
        let long = (0..4_000).filter(|_| pauses.time(1, TEN) == Duration::from_us(100)).count();
        assert!((850..1_150).contains(&long), "{long}");
    }

    #[test]
    fn bad_fields_and_files_are_named() {
        let env = WorkloadEnv::new(4, Rate::from_gbps(100));
        let check = |config: Stragglers| config.check(&env).unwrap_err();
        let slow = |host, factor| Stragglers {
            slow: vec![Slow { hosts: vec![host].into(), factor }],
            ..Stragglers::default()
        };
        assert_eq!(check(slow(4, 2.0)).2, "hosts of the workload are 0 to 3");
        assert_eq!(check(slow(1, 0.0)).0, "stragglers.slow.factor");
        assert_eq!(check(slow(1, f64::NAN)).1, "NaN");
        let jitter = |jitter| check(Stragglers { jitter: Some(jitter), ..Stragglers::default() });
        assert_eq!(jitter(Jitter::Uniform { low: 2.0, high: 1.0 }).1, "low 2, high 1");
        assert_eq!(jitter(Jitter::LogNormal { sigma: 3.0 }).0, "stragglers.jitter.sigma");
        let pauses = Jitter::Pauses { probability: 1.5, lasts: TEN };
        assert_eq!(jitter(pauses).0, "stragglers.jitter.probability");

        let good = parse_trace("host,factor\n# GPU 3 is hot\n3, 1.5\n3,1.25\n", "t.csv", 4).unwrap();
        assert_eq!(good, BTreeMap::from([(3, vec![1.5, 1.25])]));
        let error = |text| parse_trace(text, "t.csv", 4).unwrap_err().to_string();
        assert_eq!(error("0,1\n4,1"), "t.csv:2: host \"4\": hosts of the workload are 0 to 3");
        assert_eq!(error("0,-1"), "t.csv:1: factor \"-1\": expected a number above 0 and at most 1000");
        assert_eq!(error("0 1"), "t.csv:1: \"0 1\": expected \"host,factor\", such as 3,1.25");
        assert_eq!(error("# nothing\n"), "t.csv: no line has the form \"host,factor\", such as 3,1.25");
    }
}
