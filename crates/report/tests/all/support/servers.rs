//! Synthetic runs on servers: GPUs on rails and planes, with traffic over NVLink and over NICs.

use pathweave_records::*;
use pathweave_units::Rng;

/// Shape of a cluster of rails.
#[derive(Clone, Copy)]
pub(crate) struct Cluster {
    pub(crate) servers: u32,
    pub(crate) gpus: u32,
    /// Planes, one for each port of a NIC.
    pub(crate) planes: u32,
    /// Servers of a unit, which have a leaf for each rail of each plane.
    pub(crate) unit: u32,
    /// Spines of a plane.
    pub(crate) spines: u32,
}

impl Cluster {
    /// A server of 8 GPUs.
    pub(crate) const OF_8: Cluster = Cluster { servers: 1, gpus: 8, planes: 1, unit: 1, spines: 4 };
    /// 4 servers of 8 GPUs in two planes.
    pub(crate) const OF_32: Cluster = Cluster { servers: 4, gpus: 8, planes: 2, unit: 4, spines: 2 };
    /// 4 units of 32 servers of 8 GPUs.
    pub(crate) const OF_1024: Cluster = Cluster { servers: 128, gpus: 8, planes: 1, unit: 32, spines: 32 };
    /// 16,384 servers of 8 GPUs in two planes.
    pub(crate) const OF_131072: Cluster =
        Cluster { servers: 16_384, gpus: 8, planes: 2, unit: 512, spines: 16 };

    fn hosts(self) -> u32 {
        self.servers * self.gpus
    }
}

const END_PS: u64 = 1_000_000_000;
const PORT_BPS: u64 = 400_000_000_000;
const NVLINK_BPS: u64 = 2_952_000_000_000;

/// Creates a run in which rail 3 and, of several planes, the first are busier than the others.
pub(crate) fn on_servers(name: &str, cluster: Cluster) -> RunResult {
    let mut rng = Rng::for_component(3, "synthetic servers", 0);
    let mut run = RunResult {
        info: RunInfo {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            scenario_toml: "[topology]\nkind = \"cluster\"\n".to_owned(),
            schemes: vec!["weave".into()],
            groups: vec!["all-reduce".into()],
            simulated_ps: END_PS,
            servers: Some(ServersInfo {
                servers: cluster.servers,
                gpus: cluster.gpus,
                nics: cluster.gpus,
                nic_ports: cluster.planes,
                planes: cluster.planes,
                parts: 0,
                domain: Some(cluster.gpus),
                scale_up_bps: NVLINK_BPS,
            }),
            ..RunInfo::default()
        },
        ..RunResult::default()
    };
    network(&mut run, cluster, &mut rng);
    for flow in 0..cluster.hosts().min(4_096) {
        let inside = flow / cluster.gpus * cluster.gpus + (flow + 1) % cluster.gpus;
        let dst_host = if flow % 2 == 0 { inside } else { (flow + cluster.gpus) % cluster.hosts() };
        let start_ps = u64::from(rng.below(1_000)) * 1_000;
        run.flows.push(FlowRecord {
            flow,
            src_host: flow,
            dst_host,
            size_bytes: 20_000_000,
            start_ps,
            finish_ps: Some(start_ps + 500_000_000),
            ideal_fct_ps: 400_000_000,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        });
    }
    run
}

fn network(run: &mut RunResult, cluster: Cluster, rng: &mut Rng) {
    let Cluster { servers, gpus, planes, unit, spines } = cluster;
    let hosts = cluster.hosts();
    let leaves = servers.div_ceil(unit) * gpus;
    let mut node = |name: String, kind, tier| {
        let node = run.nodes.len() as u32;
        run.nodes.push(NodeInfo { node, name, kind, tier, pod: None });
    };
    (0..hosts).for_each(|host| node(format!("srv{}.gpu{}", host / gpus, host % gpus), NodeKind::Host, 0));
    for plane in 0..planes {
        let prefix = if planes > 1 { format!("p{plane}.") } else { String::new() };
        (0..leaves).for_each(|leaf| node(format!("{prefix}leaf{leaf}"), NodeKind::Switch, 0));
        (0..spines).for_each(|spine| node(format!("{prefix}spine{spine}"), NodeKind::Switch, 1));
    }
    for plane in 0..planes {
        let first = hosts + plane * (leaves + spines);
        let load = if plane == 0 { 0.6 } else { 0.3 };
        for rail_and_unit in 0..leaves {
            let (su, rail) = (rail_and_unit / gpus, rail_and_unit % gpus);
            for server in su * unit..((su + 1) * unit).min(servers) {
                let used = if rail == 3 { 0.95 } else { load } - 0.1 * rng.unit_f64();
                pair(run, server * gpus + rail, first + rail_and_unit, 0, used);
            }
        }
        for leaf in 0..leaves {
            for spine in 0..spines {
                pair(run, first + leaf, first + leaves + spine, 1, load * rng.unit_f64());
            }
        }
    }
}

fn pair(run: &mut RunResult, a: u32, b: u32, tier: u8, used: f64) {
    for (from_node, to_node, direction) in [(a, b, Direction::Up), (b, a, Direction::Down)] {
        let busy_ps = (END_PS as f64 * used) as u64;
        run.links.push(LinkTotals {
            link: run.links.len() as u32,
            from_node,
            to_node,
            tier,
            direction,
            rate_bps: PORT_BPS,
            tx_bytes: busy_ps / 20,
            busy_ps,
            ..LinkTotals::default()
        });
    }
}
