//! Orders in which channels pass the GPUs of servers.

use crate::nccl::mesh;
use crate::nccl::team::{Inside, Team};

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
        let gpus: Vec<usize> = match (self.inside(), self.count()) {
            (Inside::Links, 1) => {
                let rings = mesh::rings(self.gpus());
                rings[channel as usize % rings.len()].clone()
            }
            (Inside::Links, _) => self.path_over_links(server, channel),
            _ => (0..self.gpus()).map(|step| self.entry(server, channel) + step).collect(),
        };
        gpus.into_iter().map(|gpu| self.rank(server, gpu)).collect()
    }

    /// Returns the GPUs of a server in the order of a channel that shares no link with another one. The channel enters
    /// a server on the rail on which it left the one before.
    fn path_over_links(&self, server: usize, channel: u32) -> Vec<usize> {
        let paths = mesh::paths(self.gpus());
        let from =
            |gpu: usize| paths.iter().find(|path| path[0] == gpu).expect("a path begins where one ends");
        let mut path = match paths.len() == self.gpus() {
            true => from(self.entry(server, channel)),
            false => &paths[channel as usize % paths.len()],
        };
        for _ in 0..server {
            path = from(path[path.len() - 1]);
        }
        path.clone()
    }

    /// Returns the ring of a channel.
    pub(crate) fn ring(&self, channel: u32, exit: Exit) -> Ring {
        let (mut ranks, mut via) = (Vec::with_capacity(self.ranks()), vec![None; self.ranks()]);
        for server in 0..self.count() {
            let chain = self.chain(server, channel);
            let nic = chain[0];
            ranks.extend(chain);
            let last = ranks.len() - 1;
            if exit == Exit::ByNicOfChannel && self.count() > 1 && ranks[last] != nic {
                via[last] = Some(nic);
            }
        }
        Ring { ranks, via }
    }
}
