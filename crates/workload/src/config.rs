//! Configuration of a workload in a scenario, and its conversion to a graph.

use pathweave_topo::Topology;
use pathweave_units::Duration;
use serde::{Deserialize, Serialize};

use crate::builder::GraphBuilder;
use crate::env::WorkloadEnv;
use crate::error::WorkloadError;
use crate::graph::MessageGraph;
use crate::kinds::Traffic;
use crate::sink::WorkloadBuilder;
pub use crate::sink::between_name;
use crate::stragglers::Stragglers;
use crate::training_outlook::TrainingOutlook;

/// One workload of a scenario. Several workloads may run together, each with its own scheme.
///
/// ```toml
/// [[workload]]
/// kind = "permutation"
/// group = "foreground"
/// scheme = "rps"
/// size = "8MB"
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadConfig {
    /// Name under which results are reported. The random streams of the workload depend on it. Default: the
    /// kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Name of the scheme of the workload's connections. Default: the scheme of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Name of the scheme of the workload's connections between data centres. These connections form a group
    /// of their own ([`between_name`]). Default: the scheme of connections within a data centre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_sites: Option<String>,
    /// Start of the workload, since the start of the run (default 0).
    #[serde(default)]
    pub start: Duration,
    /// Connections that carry the workload's messages.
    #[serde(default, skip_serializing_if = "MessageConnections::is_of_kind")]
    pub connections: MessageConnections,
    /// Deviation of the real durations of computations from the nominal ones, where hosts differ in speed.
    /// Default: no deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stragglers: Option<Stragglers>,
    /// Traffic of the workload, by `kind`. Unknown fields are rejected there, because serde cannot combine
    /// `flatten` with `deny_unknown_fields` here.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// Connections that carry the messages of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageConnections {
    /// The connections that the kind defines. Most kinds have one for each pair of processes.
    #[default]
    OfKind,
    /// One connection for each message, which begins at the rate of a new connection (as in ASTRA-sim with
    /// ns-3).
    Own,
}

impl MessageConnections {
    /// Returns true for the default.
    pub fn is_of_kind(&self) -> bool {
        *self == MessageConnections::OfKind
    }
}

impl WorkloadConfig {
    /// Makes a workload with defaults for everything but its traffic.
    pub fn new(traffic: Traffic) -> Self {
        WorkloadConfig {
            group: None,
            scheme: None,
            between_sites: None,
            start: Duration::ZERO,
            connections: MessageConnections::OfKind,
            stragglers: None,
            traffic,
        }
    }
    /// Returns the name under which results are reported.
    pub fn group_name(&self) -> &str {
        self.group.as_deref().unwrap_or(self.traffic.kind())
    }
    /// Declares the workload's messages.
    ///
    /// The result depends on the seed, the group's name and the fields of the traffic. It does not depend on
    /// the scheme or on other workloads, except earlier ones of the same group, which have drawn other random
    /// numbers.
    pub fn generate(&self, env: &WorkloadEnv, out: &mut GraphBuilder) -> Result<(), WorkloadError> {
        let (scheme, between) = (self.scheme.as_deref(), self.between_sites.as_deref());
        let mut sink = WorkloadBuilder::new(env, out, self.group_name(), scheme, between, self.start)?;
        sink.connections = self.connections;
        if let Some(stragglers) = &self.stragglers {
            sink.apply_stragglers(stragglers)?;
        }
        self.traffic.generate(&mut sink)?;
        sink.check_stragglers()
    }
    /// Checks a transformer as [`WorkloadConfig::generate`] does, and returns the facts that are known without its
    /// messages. Returns `None` for other traffic.
    pub fn outlook(
        &self,
        env: &WorkloadEnv,
        topology: &Topology,
    ) -> Result<Option<TrainingOutlook>, WorkloadError> {
        let Traffic::Transformer(job) = &self.traffic else { return Ok(None) };
        let mut builder = GraphBuilder::new(env.hosts);
        let mut sink = WorkloadBuilder::new(env, &mut builder, self.group_name(), None, None, self.start)?;
        let outlook = job.outlook(&mut sink, topology)?;
        // Stragglers may be faster than the nominal speed.
        let bound = outlook.bound.filter(|_| self.stragglers.is_none());
        Ok(Some(TrainingOutlook { bound, ..outlook }))
    }
}

/// A graph, and the notes for the user on how it was made.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Graph of messages and computations.
    pub graph: MessageGraph,
    /// Assumptions made and input not used, for the user.
    pub notes: Vec<String>,
}

/// Makes the graph of all workloads of a scenario.
pub fn build(workloads: &[WorkloadConfig], env: &WorkloadEnv) -> Result<Workload, WorkloadError> {
    let mut builder = GraphBuilder::new(env.hosts);
    for workload in workloads {
        workload.generate(env, &mut builder)?;
    }
    let notes = builder.notes().to_vec();
    let whole = |error| WorkloadError::Graph {
        group: workloads.iter().map(WorkloadConfig::group_name).collect::<Vec<_>>().join(", "),
        error,
    };
    Ok(Workload { graph: builder.finish().map_err(whole)?, notes })
}

#[cfg(test)]
mod tests {
    use pathweave_units::{Bytes, Rate};
    use serde_json::json;

    use super::*;

    fn parse(value: serde_json::Value) -> Result<WorkloadConfig, String> {
        serde_json::from_value(value).map_err(|e| e.to_string())
    }

    #[test]
    fn fields_are_flat_and_have_defaults() {
        let config = parse(json!({"kind": "permutation", "size": "8MB", "scheme": "rps"})).unwrap();
        assert_eq!((config.group_name(), config.scheme.as_deref()), ("permutation", Some("rps")));
        let Traffic::Permutation(permutation) = &config.traffic else { panic!("another kind") };
        assert_eq!((permutation.size, permutation.repetitions), (Bytes::from_mb(8), 1));
        let again = parse(serde_json::to_value(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn collectives_have_steps_and_independent_messages_have_none() {
        let [poisson, permutation, ring] = mix();
        let incast = parse(json!({"kind": "incast", "senders": 3, "size": "1MB"})).unwrap();
        let all_to_all = parse(json!({"kind": "all-to-all", "size": "1KB"})).unwrap();
        let has_steps = |config: &WorkloadConfig| config.traffic.has_steps();
        assert!(![poisson, permutation, incast, all_to_all].iter().any(has_steps));
        assert!(has_steps(&ring));
    }

    #[test]
    fn unknown_fields_and_kinds_are_refused_by_name() {
        let error = |value| parse(value).unwrap_err();
        let unknown = error(json!({"kind": "permutation", "size": "8MB", "sise": "8MB"}));
        assert!(unknown.starts_with("unknown field `sise`, expected one of `size`, `pattern`"), "{unknown}");
        let kind = error(json!({"kind": "permutaton", "size": "8MB"}));
        assert!(kind.starts_with("unknown variant `permutaton`, expected one of `permutation`"), "{kind}");
        assert!(error(json!({"kind": "incast", "senders": 3})).contains("missing field `size`"));
        assert!(error(json!({"size": "8MB"})).contains("missing field `kind`"));
    }

    fn mix() -> [WorkloadConfig; 3] {
        let poisson = json!({"kind": "poisson", "group": "background", "sizes": "websearch", "load": 0.3,
            "duration": "200us", "scheme": "ecmp"});
        let permutation =
            json!({"kind": "permutation", "group": "foreground", "size": "1MB", "start": "50us"});
        let ring = json!({"kind": "ring-all-reduce", "size": "1MB", "group_size": 4, "placement": "random"});
        [poisson, permutation, ring].map(|value| parse(value).unwrap())
    }

    #[test]
    fn the_order_of_workloads_does_not_show() {
        let env = WorkloadEnv::new(16, Rate::from_gbps(100));
        let [a, b, c] = mix();
        let graph = build(&[a.clone(), b.clone(), c.clone()], &env).unwrap().graph;
        assert_eq!(graph, build(&[c, a, b], &env).unwrap().graph);
        let names: Vec<_> = graph.groups().iter().map(|g| (g.name.as_str(), g.scheme.as_deref())).collect();
        assert_eq!(names, [("background", Some("ecmp")), ("foreground", None), ("ring-all-reduce", None)]);
    }

    #[test]
    fn schemes_do_not_change_the_traffic_and_seeds_do() {
        let env = WorkloadEnv::new(16, Rate::from_gbps(100));
        let plain = build(&mix(), &env).unwrap().graph;
        let mut other = mix();
        other[0].scheme = Some("rps".to_owned());
        let schemed = build(&other, &env).unwrap().graph;
        assert_eq!(plain.messages(), schemed.messages());
        let seeded = build(&mix(), &WorkloadEnv { seed: 1, ..env }).unwrap().graph;
        assert_ne!(plain.messages(), seeded.messages());
    }

    #[test]
    fn messages_between_sites_may_have_their_own_scheme() {
        let flows = json!({"kind": "all-to-all", "group": "a", "scheme": "in", "between_sites": "out", "size": "1KB"});
        let config: WorkloadConfig = serde_json::from_value(flows).unwrap();
        let env = WorkloadEnv { sites: vec![0, 0, 1, 1], ..WorkloadEnv::new(4, Rate::from_gbps(100)) };
        let graph = build(std::slice::from_ref(&config), &env).unwrap().graph;
        let names: Vec<_> = graph.groups().iter().map(|g| (g.name.as_str(), g.scheme.as_deref())).collect();
        assert_eq!(names, [("a", Some("in")), ("a between sites", Some("out"))]);
        for message in graph.messages() {
            let across = message.src.index() / 2 != message.dst.index() / 2;
            assert_eq!(message.group.index(), usize::from(across));
        }
        // Hosts 1 and 2 of the fabric are in different sites, although they are the first two hosts of their
        // pool.
        let mut builder = GraphBuilder::new(4);
        config.generate(&env.of_members(&[1, 2]), &mut builder).unwrap();
        let pool = builder.finish().unwrap();
        assert!(pool.messages().iter().all(|message| message.group.index() == 1));
        let one = build(&[config], &WorkloadEnv::new(4, Rate::from_gbps(100))).unwrap_err().to_string();
        assert!(one.contains("between_sites") && one.contains("several data centres"), "{one}");
    }

    #[test]
    fn stragglers_slow_the_computations_of_their_hosts_and_nothing_else() {
        let of = |stragglers: serde_json::Value| {
            let mut config = json!({"kind": "pipeline", "microbatches": 2, "activation": "1KB", "forward": "10us",
                "backward": "20us"});
            config["stragglers"] = stragglers;
            let env = WorkloadEnv::new(2, Rate::from_gbps(8));
            build(&[parse(config).unwrap()], &env).map(|w| w.graph).map_err(|why| why.to_string())
        };
        let plain = of(json!(null)).unwrap();
        let slow = of(json!({"slow": [{"hosts": [1], "factor": 3.0}]})).unwrap();
        assert_eq!(plain.messages(), slow.messages());
        let sum = |graph: &MessageGraph, host: u32| -> u64 {
            let computes = graph.computes().iter().filter(|c| c.host.is_some_and(|h| h.0 == host));
            computes.map(|c| c.duration.as_ps()).sum()
        };
        assert_eq!((sum(&slow, 0), sum(&slow, 1)), (sum(&plain, 0), 3 * sum(&plain, 1)));
        let jitter = of(json!({"jitter": {"kind": "uniform", "low": 1.0, "high": 2.0}})).unwrap();
        assert!(sum(&jitter, 0) > sum(&plain, 0) && sum(&jitter, 0) != sum(&jitter, 1));
        let error = of(json!({"slow": [{"hosts": [2], "factor": 3.0}]})).unwrap_err();
        assert!(error.contains("stragglers.slow.hosts = 2: hosts of the workload are 0 to 1"), "{error}");
        let idle = parse(json!({"kind": "permutation", "size": "1KB", "stragglers": {}})).unwrap();
        let error = build(&[idle], &WorkloadEnv::new(2, Rate::from_gbps(8))).unwrap_err().to_string();
        assert!(error.contains("nothing does in this one"), "{error}");
    }

    #[test]
    fn two_workloads_of_one_group_draw_different_numbers() {
        let env = WorkloadEnv::new(64, Rate::from_gbps(100));
        let one = parse(json!({"kind": "permutation", "size": "1MB"})).unwrap();
        let graph = build(&[one.clone(), one.clone()], &env).unwrap().graph;
        let pairs: std::collections::BTreeSet<_> = graph.messages().iter().map(|m| (m.src, m.dst)).collect();
        assert!(pairs.len() > 120, "{}", pairs.len());
        assert_eq!(graph.jobs().len(), 2);
        let clash = WorkloadConfig { scheme: Some("rps".to_owned()), ..one.clone() };
        let error = build(&[one, clash], &env).unwrap_err().to_string();
        assert!(error.contains("has scheme the default and also \"rps\""), "{error}");
    }
}
