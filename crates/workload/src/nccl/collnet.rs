//! Bandwidth and latency of the CollNet algorithms, in which switches of the scale-out network reduce (SHARP).

use super::channels::Graph;
use super::gpu::Generation;
use super::system::System;
use super::tables::{
    COLLNET_CHAIN_NET_US, COLLNET_CHAIN_US, COLLNET_DIRECT_NET_US, COLLNET_DIRECT_PEER_US, COLLNET_DIRECT_US,
};
use crate::collective::Operation;

/// Largest number of GPUs of a server that reach all NICs directly.
const MOST_DIRECT: u32 = 8;

/// Returns bandwidth in GB/s before its conversion to algorithm bandwidth, and latency in microseconds, of the direct
/// algorithm. `None` if the operation does not have it.
pub(super) fn direct(system: &System, ring: Graph, operation: Operation) -> Option<(f64, f64)> {
    if !(2..=MOST_DIRECT).contains(&system.gpus) {
        return None;
    }
    let gpus = f64::from(system.gpus);
    let latency_us =
        2.0 * (COLLNET_DIRECT_US + COLLNET_DIRECT_PEER_US * (gpus - 1.0)) + COLLNET_DIRECT_NET_US;
    let bandwidth_gbs = match operation {
        Operation::AllReduce => {
            let share = gpus / f64::from(ring.channels);
            let later = if system.gpu.generation() >= Generation::Hopper { 0.85 } else { 1.0 };
            f64::from(ring.channels) * ring.intra_gbs / (share - (share - 1.0) / 2.0) * later
        }
        Operation::AllGather | Operation::ReduceScatter => gpus * ring.intra_gbs.min(0.9 * ring.inter_gbs),
        _ => return None,
    };
    Some((bandwidth_gbs, latency_us))
}

/// Likewise for the chain.
pub(super) fn chain(system: &System, ring: Graph, operation: Operation) -> Option<(f64, f64)> {
    if operation != Operation::AllReduce {
        return None;
    }
    let latency_us = 2.0 * f64::from(system.gpus - 1) * COLLNET_CHAIN_US + COLLNET_CHAIN_NET_US;
    Some((f64::from(ring.channels) * ring.intra_gbs, latency_us))
}
