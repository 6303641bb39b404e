//! Ranks of an MPI job.

use mpi::Threading;
use mpi::environment::Universe;
use mpi::request::scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Equivalence, Source};
use pathweave_sim::Ranks;

/// All processes that were started with this one.
pub(crate) struct World {
    world: SimpleCommunicator,
    /// Keeps MPI initialized until it is dropped.
    _universe: Universe,
}

/// Size of the pieces of a message, because MPI counts bytes in 32 bits. A shorter piece is the last.
const PIECE: usize = 1 << 30;

impl World {
    /// Initializes MPI.
    pub(crate) fn join() -> Result<Self, String> {
        // Only one thread of each rank calls MPI.
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)
            .ok_or("MPI has been initialised before in this process")?;
        let world = universe.world();
        let ranks = world.size();
        if u16::try_from(ranks).is_err() {
            return Err(format!("{ranks} ranks are too many: at most {}", u16::MAX));
        }
        Ok(World { world, _universe: universe })
    }

    fn receive(&self, rank: usize, message: &mut Vec<u8>) {
        let process = self.world.process_at_rank(rank as i32);
        message.clear();
        loop {
            let (piece, status) = process.matched_probe();
            let (start, bytes) = (message.len(), status.count(u8::equivalent_datatype()) as usize);
            message.resize(start + bytes, 0);
            piece.matched_receive_into(&mut message[start..]);
            if bytes < PIECE {
                return;
            }
        }
    }
}

/// Returns the pieces of a message. The last is shorter than the others.
fn pieces(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..=message.len() / PIECE).map(|index| {
        let start = index * PIECE;
        &message[start..message.len().min(start + PIECE)]
    })
}

impl Ranks for World {
    fn own(&self) -> u16 {
        self.world.rank() as u16
    }

    fn count(&self) -> u16 {
        self.world.size() as u16
    }

    fn meet(&mut self, messages: &[Vec<u8>], answers: &mut Vec<Vec<u8>>) {
        let own = usize::from(self.own());
        let others = || (0..messages.len()).filter(|rank| *rank != own);
        answers.resize_with(messages.len(), Vec::new);
        answers[own].clone_from(&messages[own]);
        scope(|scope| {
            let mut under_way = Vec::new();
            for to in others() {
                let process = self.world.process_at_rank(to as i32);
                for piece in pieces(&messages[to]) {
                    under_way.push(process.immediate_send(scope, piece));
                }
            }
            for from in others() {
                self.receive(from, &mut answers[from]);
            }
            under_way.into_iter().for_each(mpi::request::Request::wait_without_status);
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The other ranks wait for a message that will never come, and finalizing MPI would wait for them.
            crate::terminal::note(&format!("rank {} has failed; the run ends here on all ranks", self.own()));
            self.world.abort(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_of_a_message_is_a_short_one() {
        assert_eq!(pieces(&[]).map(<[u8]>::len).collect::<Vec<_>>(), [0]);
        assert_eq!(pieces(&[1, 2, 3]).map(<[u8]>::len).collect::<Vec<_>>(), [3]);
    }
}
