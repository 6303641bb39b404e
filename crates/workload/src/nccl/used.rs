//! Channels that a collective of a given size uses.

use super::algorithm::{Algorithm, Protocol};
use super::tables::{THREAD_BYTES, THREADS};

/// Returns the channels, out of `most`, that a collective of `bytes` on `ranks` GPUs uses: so few that each thread has
/// work.
pub(super) fn channels(algorithm: Algorithm, protocol: Protocol, most: u32, ranks: u32, bytes: u64) -> u32 {
    if !matches!(algorithm, Algorithm::Ring | Algorithm::Tree) {
        return most;
    }
    let ring = if algorithm == Algorithm::Ring && protocol == Protocol::Ll { u64::from(ranks) } else { 1 };
    let of_channel = THREADS[protocol.index()] * THREAD_BYTES[protocol.index()] * ring;
    let busy = u32::try_from(bytes / of_channel).unwrap_or(u32::MAX);
    busy.clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel of Simple has 512 threads with 64 bytes each, 32 KiB; of ring LL on 8 GPUs 512 x 8 x 8, also 32 KiB.
    #[test]
    fn channels_by_hand() {
        let of = |algorithm, protocol, bytes| channels(algorithm, protocol, 24, 8, bytes);
        assert_eq!(of(Algorithm::Ring, Protocol::Simple, 1), 1);
        assert_eq!(of(Algorithm::Ring, Protocol::Simple, 3 * 32_768), 3);
        assert_eq!(of(Algorithm::Ring, Protocol::Simple, 1 << 30), 24);
        assert_eq!(of(Algorithm::Ring, Protocol::Ll, 65_536), 2);
        assert_eq!(of(Algorithm::Tree, Protocol::Ll, 65_536), 16);
        // 640 threads with 8 bytes.
        assert_eq!(of(Algorithm::Ring, Protocol::Ll128, 10_240), 2);
        assert_eq!(of(Algorithm::Nvls, Protocol::Simple, 1), 24);
    }
}
