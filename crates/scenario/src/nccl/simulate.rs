//! Collectives of NCCL, simulated by flows on idle networks.

use std::fmt::Write as _;
use std::path::PathBuf;

use pathweave_sim::NoMonitor;
use pathweave_units::Rate;
use pathweave_workload::nccl::{Cpu, Generation, System};
use pathweave_workload::{MessageConnections, Nccl, Traffic};

use crate::load::{Changes, Loaded};
use crate::model::{Calibrate, Fidelity, ObserveConfig, Role, RunConfig, WorkloadEntry};
use crate::text::{Diagnostic, Diagnostics, FieldPath};

/// Outcome of a simulated collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Time from the begin of the collective to its end at the last GPU, in microseconds.
    pub time_us: f64,
    /// Number of messages.
    pub messages: u64,
    /// Algorithm and protocol.
    pub algorithm: &'static str,
    /// Channels, and how many messages of the library a message stands for.
    pub notes: Vec<String>,
}

impl Loaded {
    /// Runs a collective alone on the scenario's network, by flows. Other workloads, faults and observations of the
    /// scenario do not take part.
    ///
    /// # Errors
    /// The collective or the network is invalid, or the run does not finish.
    pub fn simulate_nccl(&self, collective: Nccl) -> Result<Simulated, Diagnostics> {
        let mut alone = self.clone();
        let entry = WorkloadEntry {
            group: None,
            scheme: None,
            between_sites: None,
            start: pathweave_units::Duration::ZERO,
            class: 1,
            role: Role::default(),
            pool: None,
            connections: MessageConnections::OfKind,
            stragglers: None,
            traffic: Traffic::Nccl(collective),
        };
        let scenario = &mut alone.scenario;
        scenario.workload = vec![entry];
        scenario.pools.clear();
        scenario.fault.clear();
        scenario.observe = ObserveConfig::default();
        scenario.run =
            RunConfig { fidelity: Fidelity::Flow, calibrate: Calibrate::Off, ..RunConfig::default() };
        let prepared = alone.draft()?;
        let run = crate::run::run(&prepared.spec, &mut NoMonitor).map_err(|why| alone.sim_error(&why))?;
        let ended = run.jobs.first().and_then(|job| Some(job.finish_ps? - job.start_ps));
        let Some(time_ps) = ended else {
            let field = FieldPath::root().key("workload").index(0);
            return Err(Diagnostic::new(field, "the collective does not finish on this network").into());
        };
        let graph = &prepared.spec.graph;
        let collective = graph.labels().first().and_then(|label| label.collective);
        Ok(Simulated {
            time_us: time_ps as f64 / 1e6,
            messages: graph.messages().len() as u64,
            algorithm: collective.map_or("", |collective| collective.algorithm),
            notes: prepared.notes,
        })
    }

    /// Returns a scenario with these servers, whose NICs lead to one switch.
    ///
    /// # Errors
    /// The servers are no valid cluster.
    pub fn of_system(system: &System) -> Result<Loaded, Diagnostics> {
        Loaded::parse(&text(system), "servers of the command line", PathBuf::new(), &Changes::default())
    }
}

/// Returns the scenario of servers as a file.
fn text(system: &System) -> String {
    let System { servers, gpus, .. } = *system;
    let nics = if servers == 1 { gpus } else { system.nics };
    let rate = |gbs: f64| Rate::from_bps((gbs * 8e9).round() as u64);
    let mut text = format!(
        "name = \"servers\"\n[topology]\nkind = \"cluster\"\nservers = {servers}\nattach = \"server\"\n\
         [topology.server]\ngpus = {gpus}\nnics = {nics}\nport_rate = \"{}\"\n",
        system.nic_rate
    );
    if nics < gpus {
        let _ = writeln!(text, "pcie_rate = \"{}\"", Rate::from_bps(2 * system.nic_rate.as_bps()));
    }
    if gpus > 1 {
        let mesh = system.gpu.generation() == Generation::Cdna3;
        let (kind, each) = match mesh {
            true => ("full-mesh", system.link_gbs()),
            false => ("switch", system.scale_up_gbs),
        };
        let _ = writeln!(text, "scale_up = {{ kind = \"{kind}\", rate = \"{}\" }}", rate(each));
    }
    let points = (servers * nics).max(2);
    // The switch stands for a whole network, which has a buffer for all ports.
    let buffer_mb = (points / 4).max(64);
    let _ = write!(
        text,
        "[topology.scale_out]\nkind = \"star\"\nhosts = {points}\nrate = \"{}\"\ndelay = \"600ns\"\n\
         [switch]\nbuffer = \"{buffer_mb}MB\"\n[[workload]]\nkind = \"nccl\"\noperation = \"all-reduce\"\nsize = \"1MB\"\ngpu = \"{}\"\n",
        system.nic_rate,
        system.gpu.name()
    );
    if system.cpu != Cpu::default() {
        let cpu = serde_json::to_value(system.cpu).expect("a processor has a name");
        let _ = writeln!(text, "cpu = {cpu}");
    }
    text
}

#[cfg(test)]
mod tests {
    use pathweave_units::Bytes;
    use pathweave_workload::Operation;
    use pathweave_workload::nccl::{Gpu, NcclAlgorithm, NcclProtocol};

    use super::*;

    fn nccl(operation: Operation, size: u64, system: &System) -> Nccl {
        Nccl {
            gpu: Some(system.gpu),
            cpu: Some(system.cpu),
            bandwidth: Some(1.0),
            latency: Some(1.0),
            ..Nccl::new(operation, Bytes::new(size))
        }
    }

    fn time_us(system: &System, collective: Nccl) -> f64 {
        Loaded::of_system(system).unwrap().simulate_nccl(collective).unwrap().time_us
    }

    /// Eight H100 with NVLS, 1 GiB: each GPU sends 9/8 GiB at 85 % of 370.8 GB/s, 3,832.6 us. The links are idle for the
    /// first latency of 12.5 us; the pipeline hides most of the second.
    #[test]
    fn nvls_of_one_server_by_hand() {
        let system = System::new(Gpu::H100, 1, 8);
        let found = time_us(&system, nccl(Operation::AllReduce, 1 << 30, &system));
        let bytes_us = 1.125 * (1u64 << 30) as f64 / (0.85 * 370.8e3);
        assert!(found > bytes_us + 12.5 && found < 1.01 * bytes_us + 30.0, "{found} us, {bytes_us} us");
    }

    /// A ring of 16 GPUs on two servers sends 30/16 of 64 MiB over NVLink, at 370.8 GB/s with NICs of 400 Gb/s.
    #[test]
    fn ring_of_two_servers_by_hand() {
        let system = System::new(Gpu::H100, 2, 8);
        let ring = Nccl {
            algorithm: NcclAlgorithm::Ring,
            protocol: NcclProtocol::Simple,
            ..nccl(Operation::AllReduce, 64 << 20, &system)
        };
        let found = time_us(&system, ring);
        let bytes_us = 30.0 / 16.0 * (64u64 << 20) as f64 / 370.8e3;
        let latency_us = 8.4 + 28.0 * 3.4 + 2.0 * 14.0;
        assert!(found > bytes_us && found < 1.15 * (bytes_us + latency_us), "{found} us, {bytes_us} us");
    }

    /// Two MI300X have one link of 48 GB/s, and an all-reduce of two ranks sends its size over it.
    #[test]
    fn a_pair_of_a_mesh_by_hand() {
        let system = System::new(Gpu::Mi300x, 1, 2);
        let found = time_us(&system, nccl(Operation::AllReduce, 1 << 30, &system));
        let bytes_us = (1u64 << 30) as f64 / 48e3;
        assert!((found / bytes_us - 1.0).abs() < 0.01, "{found} us, {bytes_us} us");
    }

    /// Two servers of two MI300X: two rings of four ranks, each with 3/4 of the size twice over half of the channels, and
    /// so 3/4 of 256 MiB at 48 GB/s.
    #[test]
    fn rings_of_two_meshes_by_hand() {
        let system = System::new(Gpu::Mi300x, 2, 2);
        let found = time_us(&system, nccl(Operation::AllReduce, 256 << 20, &system));
        let bytes_us = 0.75 * (256u64 << 20) as f64 / 48e3;
        assert!(found > bytes_us && found < 1.15 * bytes_us, "{found} us, {bytes_us} us");
    }

    /// A vector takes no longer than its parts of 1 MiB do one after the other.
    #[test]
    fn parts_are_no_faster_on_two_meshes() {
        let system = System::new(Gpu::Mi300x, 2, 8);
        let time = |log: u32| time_us(&system, nccl(Operation::AllReduce, 1 << log, &system));
        let part = time(20);
        for log in 21..25 {
            let (whole, parts) = (time(log), part * f64::from(1 << (log - 20)));
            assert!(whole <= parts, "2^{log} bytes: {whole} us, {parts} us");
        }
    }

    /// Rings of a mesh have links of their own: an all-reduce over n GPUs sends 2 (n - 1)/n of the size over n - 1 rings
    /// of 48 GB/s, of which four and six GPUs lack one.
    #[test]
    fn meshes_of_few_gpus_by_hand() {
        for (gpus, rings) in [(3, 2), (4, 2), (5, 4), (6, 4), (7, 6), (8, 7)] {
            let system = System::new(Gpu::Mi300x, 1, gpus);
            let found = time_us(&system, nccl(Operation::AllReduce, 1 << 28, &system));
            let of_ranks = 2.0 * f64::from(gpus - 1) / f64::from(gpus);
            let bytes_us = of_ranks * (1u64 << 28) as f64 / (f64::from(rings) * 48e3);
            assert!(found > bytes_us && found < 1.05 * bytes_us, "{gpus}: {found} us, {bytes_us} us");
        }
    }

    /// Shared NICs, racks and AMD processors are written as a cluster.
    #[test]
    fn systems_become_scenarios() {
        let shared = System { nics: 4, cpu: Cpu::Amd, ..System::new(Gpu::A100, 2, 8) };
        let rack = System::new(Gpu::Gb200, 1, 72);
        let alone = System::new(Gpu::H100, 4, 1);
        for system in [shared, rack, alone] {
            let loaded = Loaded::of_system(&system).unwrap_or_else(|why| panic!("{system:?}: {why}"));
            let found = loaded.nccl_system(Some(system.gpu)).unwrap();
            assert_eq!((found.servers, found.gpus), (system.servers, system.gpus));
            assert_eq!(found.nic_rate, system.nic_rate);
        }
    }

    /// A ring of two servers takes about as long with packets as it does by flows, and the same each time.
    #[test]
    fn packets_and_flows_agree() {
        let system = System::new(Gpu::H100, 2, 4);
        let ring = Nccl {
            algorithm: NcclAlgorithm::Ring,
            protocol: NcclProtocol::Simple,
            channels: Some(4),
            qps: 2,
            ..nccl(Operation::AllReduce, 4 << 20, &system)
        };
        let run = |fidelity: Fidelity| {
            let mut loaded = Loaded::of_system(&system).unwrap();
            loaded.scenario.workload[0].traffic = Traffic::Nccl(ring.clone());
            loaded.scenario.run.fidelity = fidelity;
            let prepared = loaded.draft().unwrap();
            let run = crate::run::run(&prepared.spec, &mut NoMonitor).unwrap();
            run.jobs[0].finish_ps.unwrap()
        };
        let [packets, flows] = [Fidelity::Packet, Fidelity::Flow].map(run);
        let ratio = flows as f64 / packets as f64;
        assert!((0.9..=1.1).contains(&ratio), "{packets} and {flows} ps");
        assert_eq!(run(Fidelity::Packet), packets);
    }
}
