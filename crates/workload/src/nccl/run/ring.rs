//! Rings, and chains along them.

use super::orders::Ring;
use super::plan::Plan;
use super::wires::{Action, Hop, Load, Piece, Pipes, Token, Way, Wires};
use crate::collective::Operation;
use crate::error::WorkloadError;

impl Plan {
    /// Declares the messages of all rings: an all-reduce, or one of its halves.
    ///
    /// In each step, every rank sends a part to the next rank once it has received it. In the first half it has added
    /// its own.
    pub(super) fn rings<W: Wires>(&self, pipes: &mut Pipes<'_, W>) -> Result<(), WorkloadError> {
        let ranks = self.team.ranks();
        let (reducing, first) = match self.operation {
            Operation::AllReduce => (ranks - 1, ranks - 1),
            Operation::ReduceScatter => (ranks - 1, ranks - 1),
            _ => (0, ranks),
        };
        let steps = if self.operation == Operation::AllReduce { 2 * (ranks - 1) } else { ranks - 1 };
        for channel in 0..self.channels {
            let ring = self.team.ring(channel % self.ring_channels, self.exit);
            for turn in 0..self.loops {
                let mut before: Vec<Vec<Token<W::Sent>>> = vec![Vec::new(); self.slices as usize];
                for step in 0..steps {
                    for (slice, before) in (0..).zip(&mut before) {
                        let mut sent = Vec::with_capacity(ranks);
                        for at in 0..ranks {
                            // In a scatter, the place in the ring before the last one begins with the part of the last.
                            let part = (at + first + 2 * ranks - step) % ranks;
                            let data = before.get((at + ranks - 1) % ranks).copied();
                            let action = if step < reducing { Action::Reduce } else { Action::Copy };
                            let piece = self.piece(channel, turn, part, slice, ring.ranks[part]);
                            let place = (&ring, at, channel);
                            sent.push(self.along(pipes, place, piece, action, data.as_slice())?);
                        }
                        *before = sent;
                    }
                }
            }
        }
        Ok(())
    }

    /// Declares the messages of chains that begin or end at rank 0.
    pub(super) fn chains<W: Wires>(&self, pipes: &mut Pipes<'_, W>) -> Result<(), WorkloadError> {
        let ranks = self.team.ranks();
        for channel in 0..self.channels {
            let ring = self.team.ring(channel % self.ring_channels, self.exit);
            let root = ring.ranks.iter().position(|&rank| rank == 0).expect("rank 0 is in the ring");
            let (first, action) = match self.operation {
                Operation::Reduce => (root + 1, Action::Reduce),
                _ => (root, Action::Copy),
            };
            for turn in 0..self.loops {
                let mut data = None;
                for step in 0..ranks - 1 {
                    let place = (&ring, (first + step) % ranks, channel);
                    let piece = self.piece(channel, turn, 0, 0, 0);
                    data = Some(self.along(pipes, place, piece, action, data.as_slice())?);
                }
            }
        }
        Ok(())
    }

    /// Declares a message from a place of a ring to the next one, by way of the GPU of the NIC if there is one.
    fn along<W: Wires>(
        &self,
        pipes: &mut Pipes<'_, W>,
        (ring, at, channel): (&Ring, usize, u32),
        (piece, bytes): (Piece, u64),
        action: Action,
        data: &[Token<W::Sent>],
    ) -> Result<Token<W::Sent>, WorkloadError> {
        let (src, dst) = (ring.ranks[at], ring.ranks[(at + 1) % ring.ranks.len()]);
        let load = Load::Whole;
        let way = self.way(src, dst);
        let hop = Hop { src, dst, channel, bytes, way, load, action, piece };
        let Some(nic) = ring.via[at] else { return pipes.send(&hop, data, &[]) };
        let to_nic = Hop { dst: nic, way: Way::Staged, action: Action::Stage, ..hop.clone() };
        let staged = pipes.send(&to_nic, data, &[])?;
        pipes.send(&Hop { src: nic, ..hop }, &[staged], &[])
    }
}
