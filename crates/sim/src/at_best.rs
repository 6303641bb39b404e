//! The network at its best: each link as fast and as short as faults ever make it.

use std::sync::Arc;

use pathweave_topo::{NamedLink, Topology};
use pathweave_units::Duration;

use crate::faults::{Edge, Trouble, turns};
use crate::spec::{SimError, SimSpec};

/// Returns the topology with each direction of a link at the highest rate and the shortest delay that it has during
/// the run. Ideal times and bounds go by it, so that no run undercuts them. `None` if no fault makes a link better
/// than the topology has it.
///
/// # Errors
/// A fault has a value out of its range or names a link or node that does not exist.
pub fn topology_at_best(spec: &SimSpec) -> Result<Option<Arc<Topology>>, SimError> {
    let mut best: Option<Topology> = None;
    let end = spec.run.until.unwrap_or(Duration::MAX);
    let turns = turns(&spec.topology, None, &spec.faults)?;
    for turn in turns.iter().filter(|turn| turn.edge == Edge::Begin) {
        let (link, ways, rate, delay) = match turn.trouble {
            Trouble::Rate(NamedLink::Link(link, ways), rate) => (link, ways, Some(rate), None),
            Trouble::Delay((link, ways), delay) => (link, ways, None, Some(delay)),
            _ => continue,
        };
        let improves = ways.begin_at_a().any(|from_a| {
            let usual = spec.topology.direction(link, from_a);
            let ends = spec.topology.link(link);
            let latency = spec.topology.latency(if from_a { ends.a } else { ends.b });
            rate.is_some_and(|rate| rate > usual.rate)
                || delay.is_some_and(|delay| delay + latency < usual.delay)
        });
        if improves && turn.at < end {
            best.get_or_insert_with(|| (*spec.topology).clone()).improve(link, ways, rate, delay);
        }
    }
    Ok(best.map(Arc::new))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pathweave_fabric::config::FaultConfig;
    use pathweave_topo::{Build, LinkId, Star};
    use pathweave_units::{Bytes, Rate};
    use pathweave_workload::{Placement, RingAllReduce, Traffic, WorkloadConfig, WorkloadEnv, build};

    use super::*;
    use crate::spec::NamedScheme;

    /// Returns the best rates, in Gb/s from the host to the switch and back, and delays in nanoseconds, of the first
    /// link of a star of 25 Gb/s and 1 us.
    fn best(faults: Vec<FaultConfig>, until: Option<Duration>) -> Option<[(u64, u64); 2]> {
        let star = Star { rate: Rate::from_gbps(25), ..Star::new(2) }.build(Path::new(".")).unwrap();
        let ring = WorkloadConfig::new(Traffic::RingAllReduce(RingAllReduce {
            size: Bytes::new(1_000),
            group_size: None,
            placement: Placement::default(),
            repetitions: 1,
            compute: Duration::ZERO,
        }));
        let graph = build(&[ring], &WorkloadEnv::new(2, Rate::from_gbps(25))).unwrap().graph;
        let mut spec = SimSpec::new("best", star, graph, NamedScheme::find("rps").unwrap());
        spec.faults = faults;
        spec.run.until = until;
        let best = topology_at_best(&spec).unwrap()?;
        Some([true, false].map(|from_a| {
            let way = best.direction(LinkId(0), from_a);
            (way.rate.as_bps() / 1_000_000_000, way.delay.as_ps() / 1_000)
        }))
    }

    fn rate(link: &str, gbps: u64, at_us: u64) -> FaultConfig {
        let (link, at, rate) = (link.to_owned(), Duration::from_us(at_us), Rate::from_gbps(gbps));
        FaultConfig::LinkRate { link, at, rate, until: None }
    }

    #[test]
    fn the_best_that_faults_ever_make_counts() {
        let both = "host0-switch0";
        assert_eq!(best(vec![rate(both, 10, 0)], None), None, "slower");
        let raised = vec![rate(both, 100, 50), rate(both, 10, 60), rate("host0->switch0", 40, 0)];
        assert_eq!(best(raised.clone(), None), Some([(100, 1_000), (100, 1_000)]));
        let until = Some(Duration::from_us(50));
        assert_eq!(best(raised, until), Some([(40, 1_000), (25, 1_000)]), "the end of the run");
        let delay = |ns| FaultConfig::LinkDelay {
            link: "switch0->host0".to_owned(),
            at: Duration::ZERO,
            delay: Duration::from_ns(ns),
            until: None,
        };
        assert_eq!(best(vec![delay(2_000)], None), None, "longer");
        assert_eq!(best(vec![delay(300)], None), Some([(25, 1_000), (25, 300)]));
    }
}
