//! Tables of NCCL 2.30.7 (commit 5067397c), as data.

use super::algorithm::Protocol;
use super::gpu::Generation;

/// Speeds in GB/s that the search tries for a channel inside a server.
pub(super) const fn intra_speeds_gbs(generation: Generation) -> &'static [f64] {
    match generation {
        Generation::Volta | Generation::Ampere => {
            &[40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0]
        }
        Generation::Hopper | Generation::Cdna3 => {
            &[60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0]
        }
        Generation::Blackwell => &[90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0],
    }
}

/// Speeds in GB/s that the search tries for a channel between servers.
pub(super) const fn inter_speeds_gbs(generation: Generation) -> &'static [f64] {
    match generation {
        Generation::Volta | Generation::Ampere => &[
            48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2,
            0.24, 0.12,
        ],
        Generation::Hopper | Generation::Cdna3 => &[
            48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12,
        ],
        Generation::Blackwell => &[
            96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0,
            2.4, 1.2, 0.24, 0.12,
        ],
    }
}

/// Latencies in microseconds, for LL, LL128 and Simple.
pub(super) struct Latencies {
    /// Part that each collective has once.
    pub(super) base_us: [f64; 3],
    /// A hop over NVLink.
    pub(super) scale_up_us: [f64; 3],
    /// A hop over NICs.
    pub(super) net_us: [f64; 3],
}

pub(super) const TREE: Latencies =
    Latencies { base_us: [6.8, 14.0, 8.4], scale_up_us: [0.6, 1.25, 4.0], net_us: [5.0, 8.5, 14.0] };
pub(super) const RING: Latencies =
    Latencies { base_us: [6.6, 14.0, 8.4], scale_up_us: [0.6, 1.9, 3.4], net_us: [2.7, 4.0, 14.0] };

/// Latencies in microseconds of the algorithms that have only Simple.
pub(super) const NVLS_US: f64 = 25.0;
pub(super) const NVLS_NET_US: f64 = 18.0;
pub(super) const NVLS_TREE_NET_US: f64 = 20.9;
pub(super) const PAT_BASE_US: f64 = 8.0;
pub(super) const PAT_NET_US: f64 = 4.0;
pub(super) const PAT_RANK_US: f64 = 2.8;
pub(super) const COLLNET_DIRECT_US: f64 = 3.7;
pub(super) const COLLNET_DIRECT_PEER_US: f64 = 0.4;
pub(super) const COLLNET_DIRECT_NET_US: f64 = 31.0;
pub(super) const COLLNET_CHAIN_US: f64 = 2.8;
pub(super) const COLLNET_CHAIN_NET_US: f64 = 30.0;

/// Latency of a processor per ring step, in microseconds, for Intel and Arm, and for AMD. Simple has three times it.
pub(super) const STEP_US: [f64; 2] = [1.0, 2.0];

/// Bandwidths in GB/s at one server, at two, and at more.
type ByServers = [f64; 3];

/// Bounds of bandwidth of a generation.
pub(super) struct Caps {
    /// All channels with LL.
    pub(super) ll_gbs: ByServers,
    /// A ring channel with LL128.
    pub(super) ring_ll128_gbs: f64,
    /// A tree channel with LL128.
    pub(super) tree_ll128_gbs: ByServers,
    /// A tree channel.
    pub(super) tree_gbs: ByServers,
    /// A channel of NVLSTree. The algorithm is not used on one server.
    pub(super) nvls_tree_gbs: ByServers,
    /// Usable part of a switch that reduces.
    pub(super) nvls_part: f64,
}

const VOLTA: Caps = Caps {
    ll_gbs: [39.0, 39.0, 20.4],
    ring_ll128_gbs: 20.0,
    tree_ll128_gbs: [20.0, 20.0, 20.0],
    tree_gbs: [26.5, 18.5, 10.0],
    nvls_tree_gbs: [0.0; 3],
    nvls_part: 0.0,
};
const AMPERE: Caps = Caps {
    ll_gbs: [87.7, 22.5, 19.0],
    ring_ll128_gbs: 20.0,
    tree_ll128_gbs: [20.0, 20.0, 20.0],
    tree_gbs: [24.0, 23.6, 17.8],
    nvls_tree_gbs: [0.0; 3],
    nvls_part: 0.0,
};
const HOPPER: Caps = Caps {
    ll_gbs: [141.0, 45.0, 35.0],
    ring_ll128_gbs: 36.7,
    tree_ll128_gbs: [36.7, 36.7, 29.0],
    tree_gbs: [38.7, 41.4, 36.0],
    nvls_tree_gbs: [0.0, 57.7, 45.5],
    nvls_part: 0.85,
};
const BLACKWELL: Caps = Caps {
    ll_gbs: [282.0, 90.0, 70.0],
    ring_ll128_gbs: 40.0,
    tree_ll128_gbs: [55.6, 31.67, 20.0],
    tree_gbs: [70.0, 42.8, 24.0],
    nvls_tree_gbs: [0.0, 96.0, 80.0],
    nvls_part: 0.74,
};

/// Returns the bounds of a generation.
pub(super) const fn caps(generation: Generation) -> &'static Caps {
    match generation {
        Generation::Volta => &VOLTA,
        Generation::Ampere => &AMPERE,
        Generation::Hopper | Generation::Cdna3 => &HOPPER,
        Generation::Blackwell => &BLACKWELL,
    }
}

/// Factors of the bandwidth of trees for sizes of 64 bytes, 128 bytes and so on. NVLSTree has those of Simple on
/// Blackwell with x86 processors.
const SIZE_FACTORS: [[f64; 24]; 3] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
        1.0, 1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9,
        0.9, 1.0, 1.0, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7,
        0.8, 0.9, 0.9, 0.9,
    ],
];

/// Returns the factor of the bandwidth of a tree for a size. Sizes of `most` and above 64 x 2^`most` bytes have none.
pub(super) fn size_factor(protocol: Protocol, bytes: u64, most: u32) -> f64 {
    let step = (bytes >> 6).checked_ilog2().unwrap_or(0);
    if step >= most { 1.0 } else { SIZE_FACTORS[protocol.index()][step as usize] }
}

/// Threads of a channel for LL, LL128 and Simple.
pub(super) const THREADS: [u64; 3] = [512, 640, 512];
/// Bytes a thread for which a further channel is worth its cost.
pub(super) const THREAD_BYTES: [u64; 3] = [8, 8, 64];
