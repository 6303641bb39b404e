//! Parallel aggregated trees (PAT): gathers and scatters in logarithmic steps, for servers with one GPU.
//!
//! The part of a rank spreads over a binomial tree that begins at it. Its distances are powers of two, from far to near.
//! All trees are alike but for their origin, so a rank sends in each step to one other, the parts of many ranks in one
//! message. A scatter is the reverse.

use super::plan::Plan;
use super::wires::{Action, Hop, Load, Piece, Pipes, Token, Wires};
use crate::collective::Operation;
use crate::error::WorkloadError;

impl Plan {
    pub(super) fn pat<W: Wires>(&self, pipes: &mut Pipes<'_, W>) -> Result<(), WorkloadError> {
        let gather = self.operation == Operation::AllGather;
        for channel in 0..self.channels {
            for turn in 0..self.loops {
                self.aggregated(pipes, channel, turn, gather)?;
            }
        }
        Ok(())
    }

    fn aggregated<W: Wires>(
        &self,
        pipes: &mut Pipes<'_, W>,
        channel: u32,
        turn: u64,
        gather: bool,
    ) -> Result<(), WorkloadError> {
        let ranks = self.team.ranks();
        let levels = ranks.next_power_of_two().trailing_zeros();
        let at = |place: usize| self.team.rank(place % ranks, 0);
        let mut arrived: Vec<Vec<Token<W::Sent>>> = vec![Vec::new(); ranks];
        for step in 0..levels {
            let distance = 1 << if gather { levels - 1 - step } else { step };
            let mut sent = Vec::with_capacity(ranks);
            for (place, known) in arrived.iter().enumerate() {
                // Distances of `place` from the origins of the trees in which it sends now.
                let first = if gather { 0 } else { distance };
                let end = if gather { ranks - distance } else { ranks };
                let origins = (first..end).step_by(2 * distance).map(|far| (place + ranks - far) % ranks);
                let to = if gather { place + distance } else { place + ranks - distance };
                let (piece, bytes) = self.pieces(channel, turn, origins.map(|origin| (origin, at(origin))));
                let action = if gather { Action::Copy } else { Action::Reduce };
                let (src, dst) = (at(place), at(to));
                let (load, way) = (Load::Whole, self.way(src, dst));
                let hop = Hop { src, dst, channel, bytes, way, load, action, piece };
                sent.push((to % ranks, pipes.send(&hop, known, &[])?));
            }
            sent.into_iter().for_each(|(to, token)| arrived[to].push(token));
        }
        Ok(())
    }

    /// Returns several parts of a turn as one piece, with their bytes.
    fn pieces(&self, channel: u32, turn: u64, parts: impl Iterator<Item = (usize, usize)>) -> (Piece, u64) {
        let mut all = parts.map(|(part, owner)| self.piece(channel, turn, part, 0, owner));
        let (mut piece, mut bytes) = all.next().expect("a message has a part");
        for (other, more) in all {
            piece.more.push((other.id, other.owner));
            bytes += more;
        }
        (piece, bytes)
    }
}
