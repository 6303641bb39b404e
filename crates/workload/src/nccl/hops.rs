//! Latencies and kernels of executed collectives, from the tables of the cost model.

use super::algorithm::{Algorithm, Protocol};
use super::gpu::Generation;
use super::rccl;
use super::system::System;
use super::tables::{NVLS_TREE_NET_US, NVLS_US, PAT_BASE_US, PAT_NET_US, PAT_RANK_US, caps};
use super::tuner::Tuner;
use crate::collective::Operation;

/// Latencies of the hops of a collective, in microseconds. They add up to the latency of NCCL's cost model, and the
/// network adds its own. RCCL's model has more for rings between servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HopTimes {
    /// Time until a rank takes part.
    pub(crate) base_us: f64,
    /// Time of a hop over the scale-up network.
    pub(crate) scale_up_us: f64,
    /// Time of a hop over NICs.
    pub(crate) net_us: f64,
    /// Time of each piece of a message over NICs.
    pub(crate) piece_us: f64,
}

impl HopTimes {
    /// Returns all times multiplied by a factor.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        HopTimes {
            base_us: self.base_us * factor,
            scale_up_us: self.scale_up_us * factor,
            net_us: self.net_us * factor,
            piece_us: self.piece_us * factor,
        }
    }
}

impl Tuner {
    /// Returns the latencies of the hops of an algorithm.
    pub(crate) fn hop_times(&self, algorithm: Algorithm, protocol: Protocol) -> HopTimes {
        let p = protocol.index();
        // An all-reduce goes to the switch and back, a gather or scatter only one way.
        let half_us = NVLS_US / 2.0;
        match algorithm {
            Algorithm::Nvls if self.operation() == Operation::AllReduce => {
                HopTimes { base_us: 0.0, scale_up_us: half_us, net_us: 0.0, piece_us: 0.0 }
            }
            Algorithm::Nvls => {
                HopTimes { base_us: half_us, scale_up_us: half_us, net_us: 0.0, piece_us: 0.0 }
            }
            Algorithm::NvlsTree => {
                HopTimes { base_us: 0.0, scale_up_us: half_us, net_us: NVLS_TREE_NET_US, piece_us: 0.0 }
            }
            Algorithm::Pat => {
                HopTimes { base_us: PAT_BASE_US, scale_up_us: 0.0, net_us: PAT_NET_US, piece_us: PAT_RANK_US }
            }
            Algorithm::Tree => {
                let row = self.latencies(Algorithm::Tree);
                let (base_us, scale_up_us, net_us) = (row.base_us[p], row.scale_up_us[p], row.net_us[p]);
                HopTimes { base_us, scale_up_us, net_us, piece_us: 0.0 }
            }
            _ => {
                let row = self.latencies(Algorithm::Ring);
                let scale_up_us = row.scale_up_us[p].max(self.processor_us(protocol));
                let net_us = self.latencies(self.net_hop_row(protocol)).net_us[p];
                HopTimes { base_us: row.base_us[p], scale_up_us, net_us, piece_us: 0.0 }
            }
        }
    }

    /// Returns the row with the time of a ring's hop over NICs. RCCL's row of rings has a penalty for Simple in its place;
    /// a tree's hop over NICs with that protocol is the same work.
    fn net_hop_row(&self, protocol: Protocol) -> Algorithm {
        match (self.system().gpu.generation(), protocol) {
            (Generation::Cdna3, Protocol::Simple) => Algorithm::Tree,
            _ => self.net_row(),
        }
    }

    /// Returns the bandwidth of rings or trees that their kernels reach, before its conversion to algorithm bandwidth.
    fn kernel_gbs(&self, algorithm: Algorithm, protocol: Protocol) -> Option<f64> {
        let System { gpu, servers, .. } = *self.system();
        match (gpu.generation(), algorithm) {
            (Generation::Cdna3, Algorithm::Ring | Algorithm::Tree) => {
                rccl::kernel_part(algorithm, protocol, servers).map(|part| part * self.channels_gbs())
            }
            _ => self.bus_gbs(algorithm, protocol),
        }
    }

    /// Returns the part of the scale-up links that the kernels of an algorithm keep busy: the bound of its bandwidth
    /// over what the links give it, at most 1.
    pub(crate) fn busy_part(&self, algorithm: Algorithm, protocol: Protocol) -> f64 {
        let Some(bus_gbs) = self.kernel_gbs(algorithm, protocol) else { return 1.0 };
        let links_gbs = self.channels_gbs();
        let data = match protocol {
            Protocol::Ll => 0.5,
            Protocol::Ll128 => 15.0 / 16.0,
            Protocol::Simple => 1.0,
        };
        let part = match algorithm {
            Algorithm::Ring | Algorithm::Tree => bus_gbs / (links_gbs * data),
            Algorithm::Nvls => caps(self.system().gpu.generation()).nvls_part,
            Algorithm::NvlsTree => {
                let gpus = f64::from(self.system().gpus);
                let reached_gbs = bus_gbs * self.bus_to_algorithm(algorithm) * (1.0 + 1.0 / gpus);
                let switch = caps(self.system().gpu.generation()).nvls_part;
                switch.min(reached_gbs / self.system().scale_up_gbs)
            }
            _ => 1.0,
        };
        part.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpu::Gpu;
    use super::*;

    fn tuner(servers: u32) -> Tuner {
        Tuner::new(&System::new(Gpu::H100, servers, 8), Operation::AllReduce).unwrap()
    }

    /// Ring, Simple, 16 GPUs on two servers: 8.4 + 28 x 3.4 + 2 x 14 us, as the cost model has it.
    #[test]
    fn hops_add_up_to_the_latency_of_the_cost_model() {
        let times = tuner(2).hop_times(Algorithm::Ring, Protocol::Simple);
        assert_eq!((times.base_us, times.scale_up_us, times.net_us), (8.4, 3.4, 14.0));
        let of_model =
            tuner(2).all(8).find(|c| (c.algorithm, c.protocol) == (Algorithm::Ring, Protocol::Simple));
        let sum = times.base_us + 28.0 * times.scale_up_us + 2.0 * times.net_us;
        assert!((of_model.unwrap().latency_us - sum).abs() < 1e-9, "{of_model:?}");
        let switch = tuner(1).hop_times(Algorithm::Nvls, Protocol::Simple);
        assert_eq!(switch.base_us + 2.0 * switch.scale_up_us, 25.0);
    }

    /// LL128 on 8 channels of 45 GB/s: 8 x 36.7 of 360 GB/s, of which 15/16 are data. A tree of more than two servers
    /// has 8 x 36 of 360. A switch reduces at 85 %; between two servers a channel has 57.7 GB/s, so that GPUs send
    /// 8 x 57.7 x 16/30 x 9/8 of 370.8 GB/s.
    #[test]
    fn parts_by_hand() {
        let near =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
        near(tuner(2).busy_part(Algorithm::Ring, Protocol::Ll128), 8.0 * 36.7 / 360.0 * 16.0 / 15.0);
        near(tuner(3).busy_part(Algorithm::Tree, Protocol::Simple), 0.8);
        near(tuner(2).busy_part(Algorithm::Ring, Protocol::Simple), 1.0);
        near(tuner(1).busy_part(Algorithm::Nvls, Protocol::Simple), 0.85);
        let between = 8.0 * 57.7 * 16.0 / 30.0 * 1.125 / 370.8;
        near(tuner(2).busy_part(Algorithm::NvlsTree, Protocol::Simple), between);
    }

    /// RCCL's choice counts 320 us for a ring's hop over NICs with Simple and 0.11 of the bandwidth for a tree between two
    /// servers. Executed hops have the 25 us of a tree's and the 0.59 of more servers; those of LL have RCCL's own 9.5 us
    /// and 0.08 of the bandwidth, of which half is data.
    #[test]
    fn penalties_of_the_choice_are_no_times_of_hops() {
        let tuner =
            |servers| Tuner::new(&System::new(Gpu::Mi300x, servers, 8), Operation::AllReduce).unwrap();
        let ring = tuner(2).hop_times(Algorithm::Ring, Protocol::Simple);
        assert_eq!((ring.base_us, ring.scale_up_us, ring.net_us), (17.0, 2.1, 25.0));
        assert_eq!(tuner(2).hop_times(Algorithm::Ring, Protocol::Ll).net_us, 9.5);
        for servers in [2, 3] {
            let tree = tuner(servers).busy_part(Algorithm::Tree, Protocol::Simple);
            assert!((tree - 0.59).abs() < 1e-9, "{servers}: {tree}");
            assert!((tuner(servers).busy_part(Algorithm::Ring, Protocol::Ll) - 0.16).abs() < 1e-9);
        }
    }
}
