//! Cost of each algorithm and protocol, and the choice among them.

use serde::Serialize;

use super::algorithm::{Algorithm, Choices, Protocol};
use super::channels::{Channels, Graph};
use super::error::NcclError;
use super::gpu::Generation;
use super::system::{Cpu, NicPath, Sharp, System};
use super::tables::{
    Latencies, NVLS_NET_US, NVLS_TREE_NET_US, NVLS_US, PAT_BASE_US, PAT_NET_US, PAT_RANK_US, RING, STEP_US,
    TREE, caps, size_factor,
};
use super::{collnet, rccl, used};
use crate::collective::Operation;

/// Costs of an operation on a system.
#[derive(Clone, Debug)]
pub struct Tuner {
    system: System,
    operation: Operation,
    channels: Channels,
    costs: Vec<Cost>,
}

/// Cost of an algorithm with a protocol, before the factors that depend on size.
#[derive(Clone, Copy, Debug)]
struct Cost {
    algorithm: Algorithm,
    protocol: Protocol,
    latency_us: f64,
    /// Bytes of the operation over the time of its bytes.
    bandwidth_gbs: f64,
}

/// Algorithm and protocol for a size, with the time that NCCL's model gives them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Protocol.
    pub protocol: Protocol,
    /// Number of channels.
    pub channels: u32,
    /// Part of the time that does not depend on bandwidth, in microseconds.
    pub latency_us: f64,
    /// Time of the bytes in microseconds.
    pub transfer_us: f64,
}

impl Choice {
    /// Returns the time of the collective in microseconds.
    pub fn time_us(&self) -> f64 {
        self.latency_us + self.transfer_us
    }
}

impl Tuner {
    /// Computes the costs of an operation on a system.
    ///
    /// # Errors
    /// If a number of the system is out of range, or the operation has no cost model.
    pub fn new(system: &System, operation: Operation) -> Result<Self, NcclError> {
        if operation == Operation::AllToAll {
            return Err(NcclError::Operation(operation.name()));
        }
        let channels = Channels::of(system)?;
        let mut tuner = Tuner { system: *system, operation, channels, costs: Vec::new() };
        for algorithm in Algorithm::ALL {
            for protocol in Protocol::ALL {
                tuner.costs.extend(tuner.cost(algorithm, protocol));
            }
        }
        Ok(tuner)
    }

    pub(super) fn system(&self) -> &System {
        &self.system
    }
    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the bandwidth of an algorithm before its conversion to algorithm bandwidth. `None` if it cannot do the
    /// operation.
    pub(super) fn bus_gbs(&self, algorithm: Algorithm, protocol: Protocol) -> Option<f64> {
        let of = |cost: &&Cost| (cost.algorithm, cost.protocol) == (algorithm, protocol);
        let cost = self.costs.iter().find(of)?;
        Some(cost.bandwidth_gbs / self.bus_to_algorithm(algorithm))
    }

    /// Returns the channels of the system.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Returns the choice of least time among those allowed. `None` if nothing allowed can do the operation.
    pub fn choose(&self, bytes: u64, allowed: &Choices) -> Option<Choice> {
        self.all(bytes)
            .filter(|choice| allowed.allow(choice.algorithm, choice.protocol))
            .min_by(|a, b| a.time_us().total_cmp(&b.time_us()))
    }

    /// Returns all algorithms and protocols that can do the operation, with their times for a size.
    pub fn all(&self, bytes: u64) -> impl Iterator<Item = Choice> + '_ {
        self.costs.iter().map(move |cost| self.of_size(cost, bytes))
    }

    fn of_size(&self, cost: &Cost, bytes: u64) -> Choice {
        let Cost { algorithm, protocol, latency_us, bandwidth_gbs } = *cost;
        let ranks = self.system.ranks();
        let most = match (algorithm, &self.channels.nvls) {
            (Algorithm::Nvls | Algorithm::NvlsTree, Some(nvls)) => nvls.channels,
            _ => self.channels.used,
        };
        Choice {
            algorithm,
            protocol,
            channels: used::channels(algorithm, protocol, most, ranks, bytes),
            latency_us: latency_us * self.latency_factor(algorithm, protocol, bytes),
            transfer_us: bytes as f64
                / (1_000.0 * bandwidth_gbs * self.size_factor(algorithm, protocol, bytes)),
        }
    }

    /// Returns the factor of the bandwidth that depends on size.
    fn size_factor(&self, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> f64 {
        let generation = self.system.gpu.generation();
        let x86 = self.system.cpu != Cpu::Arm;
        match algorithm {
            _ if self.operation != Operation::AllReduce || generation == Generation::Cdna3 => 1.0,
            Algorithm::Tree => size_factor(protocol, bytes, 23),
            Algorithm::NvlsTree if generation == Generation::Blackwell && x86 => {
                size_factor(protocol, bytes, 24)
            }
            _ => 1.0,
        }
    }

    /// Returns the factor of the latency of rings between servers whose pieces are not tiny.
    fn latency_factor(&self, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> f64 {
        let pieces = u64::from(self.channels.used) * u64::from(self.system.ranks());
        let slow = (algorithm, protocol, self.operation)
            == (Algorithm::Ring, Protocol::Simple, Operation::AllReduce)
            && self.system.servers > 1
            && bytes / pieces >= 64;
        match self.system.gpu.generation() {
            Generation::Cdna3 => 1.0,
            Generation::Volta if slow => 1.9,
            _ if slow => 1.4,
            _ => 1.0,
        }
    }

    fn cost(&self, algorithm: Algorithm, protocol: Protocol) -> Option<Cost> {
        let only_simple = !matches!(algorithm, Algorithm::Tree | Algorithm::Ring);
        if (only_simple && protocol != Protocol::Simple) || (protocol == Protocol::Ll128 && !self.has_ll128())
        {
            return None;
        }
        let (bus_gbs, latency_us) = match algorithm {
            Algorithm::Tree => (self.tree_gbs(protocol)?, self.tree_us(protocol)),
            Algorithm::Ring => (self.ring_gbs(protocol)?, self.ring_us(protocol)),
            Algorithm::CollNetDirect if self.has_collnet() => {
                collnet::direct(&self.system, self.channels.ring, self.operation)?
            }
            Algorithm::CollNetChain if self.has_collnet() => {
                collnet::chain(&self.system, self.channels.ring, self.operation)?
            }
            Algorithm::CollNetDirect | Algorithm::CollNetChain => return None,
            Algorithm::Nvls => (self.nvls_gbs()?, self.nvls_us()),
            Algorithm::NvlsTree => (self.nvls_tree_gbs()?, self.nvls_tree_us()),
            Algorithm::Pat => self.pat()?,
        };
        let bandwidth_gbs = bus_gbs * self.bus_to_algorithm(algorithm);
        Some(Cost { algorithm, protocol, latency_us, bandwidth_gbs })
    }

    /// Returns true if stores of 128 bytes stay whole on all ways: NVLink, and the way to the NIC.
    fn has_ll128(&self) -> bool {
        let longest = match self.system.gpu.generation() >= Generation::Hopper {
            true => NicPath::Pxn,
            false => NicPath::Pxb,
        };
        self.system.servers == 1 || self.system.nic_path <= longest
    }

    fn has_collnet(&self) -> bool {
        self.system.servers > 1 && self.system.sharp == Sharp::On
    }

    /// Returns steps of a ring.
    fn steps(&self) -> f64 {
        let ranks = f64::from(self.system.ranks());
        match self.operation {
            Operation::AllReduce => 2.0 * (ranks - 1.0),
            Operation::AllGather | Operation::ReduceScatter => ranks - 1.0,
            _ => ranks,
        }
    }

    /// Returns algorithm bandwidth over bus bandwidth, where the model counts the latter.
    pub(super) fn bus_to_algorithm(&self, algorithm: Algorithm) -> f64 {
        let ring = f64::from(self.system.ranks()) / self.steps();
        match (algorithm, self.operation) {
            (Algorithm::Ring, _) | (Algorithm::Nvls | Algorithm::NvlsTree, Operation::AllReduce) => ring,
            (_, Operation::AllReduce) => 0.5,
            _ => 1.0,
        }
    }

    /// Returns the column of tables by number of servers: one, two, more.
    fn column(&self) -> usize {
        (self.system.servers.clamp(1, 3) - 1) as usize
    }

    /// Returns the bandwidth of all ring channels. The model takes the speed inside a server up to two servers.
    pub(super) fn channels_gbs(&self) -> f64 {
        let Graph { channels, intra_gbs, inter_gbs } = self.channels.ring;
        f64::from(channels) * if self.system.servers <= 2 { intra_gbs } else { inter_gbs }
    }

    /// Returns the bound of LL. Between servers it depends on the processor and not on the GPU.
    fn ll_gbs(&self) -> f64 {
        let generation = match (self.system.servers, self.system.cpu) {
            (1, _) => self.system.gpu.generation(),
            (_, Cpu::Amd) => Generation::Ampere,
            (_, Cpu::Intel | Cpu::Arm) => Generation::Volta,
        };
        caps(generation).ll_gbs[self.column()]
    }

    fn ring_gbs(&self, protocol: Protocol) -> Option<f64> {
        let all = self.channels_gbs();
        if self.system.gpu.generation() == Generation::Cdna3 {
            return rccl::part(Algorithm::Ring, protocol, self.system.servers).map(|part| part * all);
        }
        let channels = f64::from(self.channels.ring.channels);
        Some(match protocol {
            Protocol::Ll => (all / 2.0).min(self.ll_gbs()),
            Protocol::Ll128 => (0.92 * all).min(channels * caps(self.system.gpu.generation()).ring_ll128_gbs),
            Protocol::Simple => all,
        })
    }

    fn tree_gbs(&self, protocol: Protocol) -> Option<f64> {
        if self.operation != Operation::AllReduce {
            return None;
        }
        let all = self.channels_gbs();
        if self.system.gpu.generation() == Generation::Cdna3 {
            return rccl::part(Algorithm::Tree, protocol, self.system.servers).map(|part| part * all);
        }
        let caps = caps(self.system.gpu.generation());
        let channels = f64::from(self.channels.ring.channels);
        let tree = (0.92 * all).min(channels * caps.tree_gbs[self.column()]);
        Some(match protocol {
            Protocol::Ll => (tree / 3.8).min(self.ll_gbs()),
            Protocol::Ll128 => {
                let part = if self.system.servers == 1 { 7.0 / 9.0 } else { 15.0 / 16.0 };
                (tree * part).min(channels * caps.tree_ll128_gbs[self.column()])
            }
            Protocol::Simple => tree,
        })
    }

    /// Returns the bandwidth of a channel of reducing switches, inside a server.
    fn nvls_intra_gbs(&self, graph: Graph) -> f64 {
        let channels = f64::from(graph.channels);
        let gpus = f64::from(self.system.gpus);
        let twice = if self.operation == Operation::AllReduce { 2.0 } else { (gpus - 1.0) / gpus };
        graph.intra_gbs * caps(self.system.gpu.generation()).nvls_part * (channels - 1.0) / channels * twice
    }

    /// Returns the bandwidth of NVLS. On several servers the network must reduce, too.
    fn nvls_gbs(&self) -> Option<f64> {
        let reduces =
            matches!(self.operation, Operation::AllReduce | Operation::AllGather | Operation::ReduceScatter);
        let graph =
            self.channels.nvls.filter(|_| reduces && (self.system.servers == 1 || self.has_collnet()))?;
        Some(f64::from(graph.channels) * self.nvls_intra_gbs(graph).min(graph.inter_gbs))
    }

    fn nvls_tree_gbs(&self) -> Option<f64> {
        let fits = self.system.servers > 1 && self.operation == Operation::AllReduce;
        let graph = self.channels.nvls.filter(|_| fits)?;
        let twice = if self.system.servers <= 2 { 2.0 } else { 1.0 };
        let cap = caps(self.system.gpu.generation()).nvls_tree_gbs[self.column()];
        let channel = self.nvls_intra_gbs(graph).min(graph.inter_gbs * twice).min(cap);
        Some(f64::from(graph.channels) * channel)
    }

    fn pat(&self) -> Option<(f64, f64)> {
        let fits = matches!(self.operation, Operation::AllGather | Operation::ReduceScatter);
        if !fits || self.system.gpus > 1 || self.system.gpu.generation() == Generation::Cdna3 {
            return None;
        }
        let latency_us =
            PAT_BASE_US + self.levels() * PAT_NET_US + f64::from(self.system.ranks()) * PAT_RANK_US;
        Some((0.75 * self.channels_gbs(), latency_us))
    }

    pub(super) fn latencies(&self, algorithm: Algorithm) -> &'static Latencies {
        let amd = self.system.gpu.generation() == Generation::Cdna3;
        match (algorithm, amd) {
            (Algorithm::Tree, false) => &TREE,
            (_, false) => &RING,
            (Algorithm::Tree, true) => &rccl::TREE,
            (_, true) => &rccl::RING,
        }
    }

    /// Returns the levels of a tree over the servers.
    fn levels(&self) -> f64 {
        f64::from(self.system.servers.ilog2())
    }

    fn tree_us(&self, protocol: Protocol) -> f64 {
        let Latencies { base_us, scale_up_us, net_us } = self.latencies(Algorithm::Tree);
        let p = protocol.index();
        base_us[p] + 2.0 * (f64::from(self.system.gpus - 1) * scale_up_us[p] + self.levels() * net_us[p])
    }

    /// Returns the row with a ring's latency of NICs: a server with one GPU sends and receives on it.
    pub(super) fn net_row(&self) -> Algorithm {
        if self.system.gpus == 1 { Algorithm::Tree } else { Algorithm::Ring }
    }

    fn ring_us(&self, protocol: Protocol) -> f64 {
        let Latencies { base_us, scale_up_us, .. } = self.latencies(Algorithm::Ring);
        let net_us = self.latencies(self.net_row()).net_us;
        let p = protocol.index();
        let servers = f64::from(self.system.servers);
        if matches!(self.operation, Operation::Broadcast | Operation::Reduce) {
            return base_us[p] + if self.system.servers == 1 { scale_up_us[p] } else { net_us[p] };
        }
        let net_steps = match self.operation {
            _ if self.system.servers == 1 => 0.0,
            Operation::AllReduce => 2.0 * (servers - 1.0),
            _ => servers - 1.0,
        };
        let step_us = scale_up_us[p].max(self.processor_us(protocol));
        base_us[p] + (self.steps() - net_steps) * step_us + net_steps * net_us[p]
    }

    /// Returns the time that a processor takes for a step between servers.
    pub(super) fn processor_us(&self, protocol: Protocol) -> f64 {
        if self.system.servers == 1 || self.system.gpu.generation() == Generation::Cdna3 {
            return 0.0;
        }
        let times = if protocol == Protocol::Simple { 3.0 } else { 1.0 };
        STEP_US[usize::from(self.system.cpu == Cpu::Amd)] * times
    }

    fn nvls_us(&self) -> f64 {
        NVLS_US + if self.system.servers > 1 { NVLS_NET_US } else { 0.0 }
    }

    fn nvls_tree_us(&self) -> f64 {
        NVLS_US + 2.0 * self.levels() * NVLS_TREE_NET_US
    }
}
