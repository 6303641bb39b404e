//! Tables of RCCL for MI300X (rocm-systems, commit 03a89144), as data.
//!
//! RCCL has one table for a chip and no bounds on bandwidth. Its further factors by size are not part of this model.

use super::algorithm::{Algorithm, Protocol};
use super::tables::Latencies;

pub(super) const TREE: Latencies =
    Latencies { base_us: [12.0, 12.0, 17.0], scale_up_us: [0.9, 0.9, 2.3], net_us: [10.5, 10.5, 25.0] };
/// The 320 us of a ring's hop over NICs keep RCCL's choice from rings of small sizes. No hop takes that long.
pub(super) const RING: Latencies =
    Latencies { base_us: [12.0, 12.0, 17.0], scale_up_us: [0.8, 0.8, 2.1], net_us: [9.5, 9.5, 320.0] };

/// Returns the part of the channels' bandwidth that an algorithm reaches, or `None` if RCCL does not use it.
pub(super) fn part(algorithm: Algorithm, protocol: Protocol, servers: u32) -> Option<f64> {
    match (algorithm, protocol) {
        (Algorithm::Tree, Protocol::Simple) => match servers {
            1 => None,
            2 => Some(0.11),
            _ => Some(0.59),
        },
        (Algorithm::Tree, _) => Some(0.06),
        (Algorithm::Ring, Protocol::Simple) => Some(1.0),
        (Algorithm::Ring, _) => Some(0.08),
        _ => None,
    }
}

/// Returns the part of the channels' bandwidth that kernels reach. The choice counts less for trees between two servers,
/// whose kernels are those of more servers.
pub(super) fn kernel_part(algorithm: Algorithm, protocol: Protocol, servers: u32) -> Option<f64> {
    part(algorithm, protocol, if servers == 2 { 3 } else { servers })
}
