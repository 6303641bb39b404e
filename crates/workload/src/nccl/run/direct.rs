//! All-to-all of sends and receives, each pair by itself.

use super::plan::Plan;
use super::wires::{Action, Hop, Load, Pipes, Token, Way, Wires};
use crate::error::WorkloadError;

impl Plan {
    /// Declares the messages of all pairs. A rank turns to the ranks after it, as many at a time as its channels serve.
    /// Messages to another server go by way of the GPU that is on the rail of the receiver.
    pub(super) fn direct<W: Wires>(&self, pipes: &mut Pipes<'_, W>) -> Result<(), WorkloadError> {
        let ranks = self.team.ranks();
        let mut ended: Vec<Vec<Token<W::Sent>>> = vec![Vec::new(); ranks];
        for round in 1..ranks {
            for (src, ended) in ended.iter_mut().enumerate() {
                let dst = (src + round) % ranks;
                let turns: Vec<Token<W::Sent>> =
                    ended.len().checked_sub(self.window).map(|place| ended[place]).into_iter().collect();
                let mut last = None;
                for turn in 0..self.loops {
                    let (piece, bytes) = self.pair_piece(src, dst, turn);
                    let (way, channel) = (self.way(src, dst), self.team.place(dst).0 as u32);
                    let (action, load) = (Action::Copy, Load::Whole);
                    let hop = Hop { src, dst, channel, bytes, way, load, action, piece };
                    let nic = self.team.on_rail_of(src, dst);
                    last = Some(if self.stages() && way == Way::Net && nic != src {
                        let to_nic = Hop { dst: nic, way: Way::Staged, action: Action::Stage, ..hop.clone() };
                        let staged = pipes.send(&to_nic, &[], &turns)?;
                        pipes.send(&Hop { src: nic, ..hop }, &[staged], &[])?
                    } else {
                        pipes.send(&hop, &[], &turns)?
                    });
                }
                ended.extend(last);
            }
        }
        Ok(())
    }
}
