//! Runs over several processes, the *ranks*. Each rank owns some of the run's shards. All ranks simulate the same
//! windows, and between two windows each sends one message to every other.

use std::sync::mpsc::{Receiver, Sender, channel};

use borsh::{BorshDeserialize, BorshSerialize};

/// Communication between the processes of a run.
///
/// All processes run the same program and the same scenario. The run itself checks that
/// ([`RankSimulation::new`](crate::RankSimulation::new)).
pub trait Ranks {
    /// Returns the number of this rank, from 0. Rank 0 gets the result of the run.
    fn own(&self) -> u16;

    /// Returns the number of ranks.
    fn count(&self) -> u16;

    /// Exchanges one message with every rank: sends `messages[rank]` to each, and stores the message of each in
    /// `answers`, indexed by rank, reusing its memory. The message of a rank to itself is returned too. All ranks
    /// make the same exchanges in the same order.
    ///
    /// Does not return if a rank is lost: the process then ends with a message that names that rank.
    fn meet(&mut self, messages: &[Vec<u8>], answers: &mut Vec<Vec<u8>>);
}

/// Message exchange of a run, which may be in a single process.
pub(crate) struct RankExchange<'a> {
    ranks: Option<&'a mut dyn Ranks>,
    /// Messages to and from each rank. Kept to reuse their memory: there is one exchange for each window, and fresh
    /// memory is slow.
    messages: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
}

impl<'a> RankExchange<'a> {
    /// Creates the exchange of a run in one process.
    pub(crate) fn alone() -> Self {
        RankExchange { ranks: None, messages: Vec::new(), answers: Vec::new() }
    }

    pub(crate) fn of(ranks: &'a mut dyn Ranks) -> Self {
        let messages = vec![Vec::new(); usize::from(ranks.count())];
        RankExchange { ranks: (ranks.count() > 1).then_some(ranks), messages, answers: Vec::new() }
    }

    /// Returns true if there are other processes.
    #[inline]
    pub(crate) fn several(&self) -> bool {
        self.ranks.is_some()
    }

    pub(crate) fn own(&self) -> u16 {
        self.ranks.as_ref().map_or(0, |ranks| ranks.own())
    }

    /// Returns true if this rank gets the result of the run.
    pub(crate) fn is_lead(&self) -> bool {
        self.own() == 0
    }

    /// Sends to each other rank the message that `write` writes for it. Afterwards [`RankExchange::answers`] holds the
    /// received messages.
    pub(crate) fn exchange(&mut self, mut write: impl FnMut(u16, &mut Vec<u8>)) {
        let own = self.own();
        if let Some(ranks) = &mut self.ranks {
            for (to, message) in (0..).zip(&mut self.messages) {
                message.clear();
                if to != own {
                    write(to, message);
                }
            }
            ranks.meet(&self.messages, &mut self.answers);
        }
    }

    /// Iterates over the messages received in the latest exchange, with the number of their sender.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (u16, &[u8])> {
        let own = self.own();
        let all = (0..).zip(self.answers.iter().map(Vec::as_slice));
        all.filter(move |(from, _)| *from != own)
    }

    /// Sends a value to all ranks. Returns the values of all, ordered by rank.
    pub(crate) fn all_gather<T: BorshSerialize + BorshDeserialize>(&mut self, own: T) -> Vec<T> {
        if !self.several() {
            return vec![own];
        }
        let packed = pack(&own);
        self.exchange(|_, message| message.extend_from_slice(&packed));
        let mut all: Vec<T> = self.answers().map(|(_, message)| unpack(message)).collect();
        all.insert(usize::from(self.own()), own);
        all
    }

    /// Sends a value to rank 0. Returns the values of all ranks, ordered by rank, at rank 0, and an empty vector at
    /// other ranks.
    pub(crate) fn gather<T: BorshSerialize + BorshDeserialize>(&mut self, own: T) -> Vec<T> {
        self.exchange(|to, message| {
            if to == 0 {
                put(message, &own);
            }
        });
        if !self.is_lead() {
            return Vec::new();
        }
        let others = self.answers().map(|(_, message)| unpack(message));
        [own].into_iter().chain(others).collect()
    }
}

/// Serializes a value for another process of the run.
pub(crate) fn pack(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("memory takes what is written to it")
}

/// Appends a serialized value to a message.
pub(crate) fn put(message: &mut Vec<u8>, value: &impl BorshSerialize) {
    value.serialize(message).expect("memory takes what is written to it");
}

/// Deserializes a value from another process of the run.
pub(crate) fn unpack<T: BorshDeserialize>(mut packed: &[u8]) -> T {
    take(&mut packed)
}

/// Deserializes the first of several concatenated values, and advances `packed` past it.
pub(crate) fn take<T: BorshDeserialize>(packed: &mut &[u8]) -> T {
    // All ranks run the same version, which is compared at the start.
    T::deserialize(packed).unwrap_or_else(|why| panic!("a message of another rank cannot be read: {why}"))
}

/// Ranks as threads of one process, for tests.
pub struct InProcess {
    own: u16,
    /// Channels to each rank, and from each.
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl InProcess {
    /// Creates all ranks of a run of `count` ranks.
    pub fn ranks(count: u16) -> Vec<InProcess> {
        let mut ranks: Vec<InProcess> =
            (0..count).map(|own| InProcess { own, to: Vec::new(), from: Vec::new() }).collect();
        for from in 0..usize::from(count) {
            for to in 0..usize::from(count) {
                let (sender, receiver) = channel();
                ranks[from].to.push(sender);
                ranks[to].from.push(receiver);
            }
        }
        ranks
    }
}

impl Ranks for InProcess {
    fn own(&self) -> u16 {
        self.own
    }

    fn count(&self) -> u16 {
        self.to.len() as u16
    }

    fn meet(&mut self, messages: &[Vec<u8>], answers: &mut Vec<Vec<u8>>) {
        for ((rank, to), message) in self.to.iter().enumerate().zip(messages) {
            to.send(message.clone()).unwrap_or_else(|_| panic!("rank {rank} is gone"));
        }
        let receive = |(rank, from): (usize, &Receiver<Vec<u8>>)| {
            from.recv().unwrap_or_else(|_| panic!("rank {rank} is gone"))
        };
        answers.clear();
        answers.extend(self.from.iter().enumerate().map(receive));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hear_of_all_and_the_lead_of_all() {
        let threads: Vec<_> = InProcess::ranks(3)
            .into_iter()
            .map(|mut ranks| {
                std::thread::spawn(move || {
                    let mut meeting = RankExchange::of(&mut ranks);
                    let own = meeting.own();
                    assert_eq!(meeting.all_gather(own * 10), [0, 10, 20]);
                    let told = meeting.gather(format!("rank {own}"));
                    meeting.exchange(|to, message| message.extend([own as u8, to as u8]));
                    let to_each: Vec<_> =
                        meeting.answers().map(|(from, message)| (from, message.to_vec())).collect();
                    (told, to_each)
                })
            })
            .collect();
        for (own, thread) in (0..).zip(threads) {
            let (told, to_each) = thread.join().expect("no panic");
            let all = ["rank 0", "rank 1", "rank 2"];
            assert_eq!(told, if own == 0 { all.to_vec() } else { vec![] });
            let others = (0..3).filter(|from| *from != own);
            let expected: Vec<(u16, Vec<u8>)> =
                others.map(|from| (from, vec![from as u8, own as u8])).collect();
            assert_eq!(to_each, expected);
        }
        assert_eq!(
            (RankExchange::alone().all_gather(5), RankExchange::alone().gather(6)),
            (vec![5], vec![6])
        );
    }
}
