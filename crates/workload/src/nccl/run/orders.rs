//! Orders in which channels pass the GPUs of servers.

use crate::nccl::team::{Inside, Team};

/// Rings of eight GPUs with a link between each two, such that each direction of each link carries one ring.
const MESH_OF_EIGHT: [[usize; 8]; 7] = [
    [0, 5, 6, 3, 7, 2, 1, 4],
    [0, 4, 2, 3, 5, 7, 1, 6],
    [0, 3, 2, 7, 5, 4, 6, 1],
    [0, 7, 6, 2, 4, 1, 5, 3],
    [0, 6, 7, 4, 3, 1, 2, 5],
    [0, 2, 6, 5, 1, 3, 4, 7],
    [0, 1, 7, 3, 6, 4, 5, 2],
];

/// Use of the NIC of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The last GPU hands its messages to the GPU of the channel's NIC (PXN).
    ByNicOfChannel,
    /// The last GPU uses its own NIC.
    ByOwnNic,
}

/// Ring of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Ranks in the order of the ring.
    pub(crate) ranks: Vec<usize>,
    /// Rank through whose NIC each rank sends to the next, if it is another.
    pub(crate) via: Vec<Option<usize>>,
}

impl Team {
    /// Returns the ranks of a server in the order of a channel.
    pub(crate) fn chain(&self, server: usize, channel: u32) -> Vec<usize> {
        let (gpus, entry) = (self.gpus(), self.entry(server, channel));
        let gpu = |step: usize| match (self.inside(), self.count()) {
            (Inside::Links, 1) => mesh_ring(gpus, channel as usize, step),
            // A path back and forth, turned from server to server, uses each link once.
            (Inside::Links, _) if gpus.is_multiple_of(2) => {
                let to_and_fro = if step.is_multiple_of(2) { gpus - step / 2 } else { step.div_ceil(2) };
                entry + server * (gpus / 2) + to_and_fro
            }
            _ => entry + step,
        };
        (0..gpus).map(|step| self.rank(server, gpu(step))).collect()
    }

    /// Returns the ring of a channel.
    pub(crate) fn ring(&self, channel: u32, exit: Exit) -> Ring {
        let (mut ranks, mut via) = (Vec::with_capacity(self.ranks()), vec![None; self.ranks()]);
        for server in 0..self.count() {
            ranks.extend(self.chain(server, channel));
            let nic = self.rank(server, self.entry(server, channel));
            let last = ranks.len() - 1;
            if exit == Exit::ByNicOfChannel && self.count() > 1 && ranks[last] != nic {
                via[last] = Some(nic);
            }
        }
        Ring { ranks, via }
    }
}

/// Returns a GPU of a ring on a full mesh.
fn mesh_ring(gpus: usize, channel: usize, step: usize) -> usize {
    if gpus == 8 {
        return MESH_OF_EIGHT[channel % MESH_OF_EIGHT.len()][step];
    }
    // Steps of a distance that has no factor in common with the number of GPUs pass all of them.
    let coprime = |distance: &usize| greatest_common_divisor(*distance, gpus) == 1;
    let distances: Vec<usize> = (1..gpus.max(2)).filter(coprime).collect();
    step * distances[channel % distances.len()] % gpus
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
