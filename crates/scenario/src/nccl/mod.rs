//! NCCL's model on the servers of a scenario.

mod simulate;

pub use simulate::Simulated;

use pathweave_topo::TopologyConfig;
pub use pathweave_workload::nccl::{
    Algorithm, Channels, Choice, Choices, Cpu, DEFAULT_MESSAGES, Fitted, Generation, Gpu, Graph,
    NcclAlgorithm, NcclError, NcclProtocol, NcclTests, NcclTestsRow, NicPath, Protocol, Sharp, System, Tuner,
    bus_factor, parse_nccl_tests,
};
pub use pathweave_workload::{Nccl, Operation};

use crate::load::Loaded;
use crate::text::{Diagnostic, Diagnostics, FieldPath};

impl Loaded {
    /// Returns the servers of `kind = "cluster"` as NCCL sees them. `gpu` is the model of GPU; without it, it is that of
    /// the server model.
    ///
    /// # Errors
    /// If the topology is invalid or no cluster, or the GPU is not known.
    pub fn nccl_system(&self, gpu: Option<Gpu>) -> Result<System, Diagnostics> {
        let field = FieldPath::root().key("topology");
        let refuse = |field: FieldPath, message: &str, allowed: &str| {
            Diagnostics::from(self.add_location(Diagnostic::new(field, message).allowed(allowed)))
        };
        let TopologyConfig::Cluster(_) = &self.scenario.topology else {
            let message = "the network has no servers, whose GPUs and NICs NCCL counts";
            return Err(refuse(field.key("kind"), message, "\"cluster\""));
        };
        let Some(gpu) = gpu.or_else(|| gpu_of(&self.scenario.topology)) else {
            let message = "the model of GPU is not known";
            return Err(refuse(field.key("server"), message, "a `preset`, or the option --gpu"));
        };
        let topology = self.topology()?;
        let Some(servers) = topology.servers() else {
            return Err(refuse(field, "the network has no servers", "a cluster"));
        };
        Ok(System::of_servers(&topology, servers, gpu))
    }
}

/// Returns the GPU of the server model of a cluster, if it has one.
pub(crate) fn gpu_of(config: &TopologyConfig) -> Option<Gpu> {
    match config {
        TopologyConfig::Cluster(cluster) => Gpu::of_server_model(cluster.server.preset.as_deref()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pathweave_units::Rate;

    use super::*;
    use crate::load::Changes;

    fn loaded(topology: &str) -> Loaded {
        let text = format!("{topology}\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n");
        Loaded::parse(&text, "nccl.toml", PathBuf::new(), &Changes::default())
            .unwrap_or_else(|why| panic!("{why}"))
    }

    fn cluster(server: &str, servers: u32, points: u32) -> Loaded {
        loaded(&format!(
            "[topology]\nkind = \"cluster\"\nservers = {servers}\nserver = {server}\n[topology.scale_out]\n\
             kind = \"leaf-spine\"\nleaves = {points}\nspines = 2\nhosts_per_leaf = {servers}\nhost_rate = \"400Gbps\"\n"
        ))
    }

    /// A server model gives what the GPU's data sheet gives: 369 GB/s of NVLink hold the same channels as 370.8.
    #[test]
    fn a_server_model_is_the_system_of_its_gpu() {
        let system = cluster("{ preset = \"dgx-h100\" }", 4, 8).nccl_system(None).unwrap();
        assert_eq!((system.servers, system.gpus, system.nics), (4, 8, 8));
        assert_eq!((system.gpu, system.nic_rate), (Gpu::H100, Rate::from_gbps(400)));
        assert_eq!(Channels::of(&system), Channels::of(&System::new(Gpu::H100, 4, 8)));
    }

    /// A rack counts as one server of 72 GPUs; p4d has four NICs for eight GPUs, of 100 Gb/s each; p5 has four NICs
    /// for each GPU.
    #[test]
    fn racks_and_shared_nics() {
        let rack = cluster("{ preset = \"gb200-nvl72\" }", 36, 4).nccl_system(None).unwrap();
        assert_eq!((rack.servers, rack.gpus, rack.nics), (2, 72, 72));
        let shared = cluster("{ preset = \"p4d\" }", 2, 4).nccl_system(None).unwrap();
        assert_eq!((shared.nics, shared.nic_rate), (4, Rate::from_gbps(100)));
        let many = cluster("{ preset = \"p5\" }", 2, 32).nccl_system(None).unwrap();
        assert_eq!((many.nics, many.nic_rate), (32, Rate::from_gbps(100)));
    }

    /// Packets in scale-up networks change neither NICs nor NVLink.
    #[test]
    fn scale_up_networks_of_packets_are_the_same_system() {
        let with = |model: &str, rate: &str, points: u32, packets: bool| {
            let scale_up = format!("{{ kind = \"switch\", rate = \"{rate}\", packets = {packets} }}");
            let server = format!("{{ preset = \"{model}\", scale_up = {scale_up} }}");
            cluster(&server, 2, points).nccl_system(None).unwrap()
        };
        for (model, rate, points, nic_gbps) in [("dgx-h100", "3600Gbps", 8, 400), ("p4d", "2400Gbps", 4, 100)]
        {
            let [fluid, packets] = [false, true].map(|packets| with(model, rate, points, packets));
            assert_eq!(
                (packets.gpus, packets.servers, packets.nics),
                (fluid.gpus, fluid.servers, fluid.nics)
            );
            assert_eq!((packets.nic_rate, packets.scale_up_gbs), (fluid.nic_rate, fluid.scale_up_gbs));
            assert_eq!(packets.nic_rate, Rate::from_gbps(nic_gbps), "{model}");
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        let star = loaded("topology = { kind = \"star\", hosts = 4 }").nccl_system(None).unwrap_err();
        let text = star.to_string();
        assert!(text.contains("topology.kind") && text.contains("no servers"), "{text}");
        let own = cluster("{ gpus = 4 }", 4, 4);
        let text = own.nccl_system(None).unwrap_err().to_string();
        assert!(text.contains("topology.server") && text.contains("--gpu"), "{text}");
        assert_eq!(own.nccl_system(Some(Gpu::A100)).unwrap().gpu, Gpu::A100);
    }
}
