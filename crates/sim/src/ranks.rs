//! A run over several processes, its *ranks*: each has some of the parts of the run, all make the same windows, and between
//! two windows each gives every other one message.

use std::sync::mpsc::{Receiver, Sender, channel};

use borsh::{BorshDeserialize, BorshSerialize};

/// How the processes of a run reach each other.
///
/// All of them are of the same program and run the same scenario; the run itself checks that
/// ([`RankSimulation::new`](crate::RankSimulation::new)).
pub trait Ranks {
    /// The number of this one, from 0. Rank 0 has the result of the run.
    fn own(&self) -> u16;

    /// How many there are.
    fn count(&self) -> u16;

    /// One meeting of all: gives `messages[rank]` to each rank, and returns what each has given to this one, by rank. What is for
    /// this rank itself comes back. Every rank makes the same meetings in the same order.
    ///
    /// Where a rank is lost this does not return: the process ends with a message that names that rank.
    fn meet(&mut self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>>;
}

/// The meetings of a run, which may be in one process.
pub(crate) struct Meeting<'a>(Option<&'a mut dyn Ranks>);

impl<'a> Meeting<'a> {
    /// Nobody to meet.
    pub(crate) fn alone() -> Self {
        Meeting(None)
    }

    pub(crate) fn of(ranks: &'a mut dyn Ranks) -> Self {
        Meeting((ranks.count() > 1).then_some(ranks))
    }

    /// Whether there are other processes.
    #[inline]
    pub(crate) fn several(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn own(&self) -> u16 {
        self.0.as_ref().map_or(0, |ranks| ranks.own())
    }

    /// Whether the result of the run is here.
    pub(crate) fn is_lead(&self) -> bool {
        self.own() == 0
    }

    /// Gives each other rank what `message` returns for it, and returns what these have given, with their numbers.
    pub(crate) fn exchange(&mut self, mut message: impl FnMut(u16) -> Vec<u8>) -> Vec<(u16, Vec<u8>)> {
        let Some(ranks) = &mut self.0 else { return Vec::new() };
        let own = ranks.own();
        let messages = (0..ranks.count()).map(|to| if to == own { Vec::new() } else { message(to) });
        let answers = ranks.meet(messages.collect());
        (0..).zip(answers).filter(|(from, _)| *from != own).collect()
    }

    /// Tells all ranks what this one knows, and returns what each knows, by rank.
    pub(crate) fn share<T: BorshSerialize + BorshDeserialize>(&mut self, own: T) -> Vec<T> {
        if !self.several() {
            return vec![own];
        }
        let packed = pack(&own);
        let others = self.exchange(|_| packed.clone());
        let mut all: Vec<T> = others.iter().map(|(_, message)| unpack(message)).collect();
        all.insert(usize::from(self.own()), own);
        all
    }

    /// Tells rank 0 what this one knows. Returns what each knows there, by rank, and nothing elsewhere.
    pub(crate) fn tell_lead<T: BorshSerialize + BorshDeserialize>(&mut self, own: T) -> Vec<T> {
        let mut packed = if self.is_lead() { Vec::new() } else { pack(&own) };
        let others = self.exchange(|to| if to == 0 { std::mem::take(&mut packed) } else { Vec::new() });
        if !self.is_lead() {
            return Vec::new();
        }
        [own].into_iter().chain(others.iter().map(|(_, message)| unpack(message))).collect()
    }
}

/// A value in bytes, for another process of the run.
pub(crate) fn pack(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("memory takes what is written to it")
}

/// The value that another process of the run has packed.
pub(crate) fn unpack<T: BorshDeserialize>(mut packed: &[u8]) -> T {
    take(&mut packed)
}

/// The next of the values that another process of the run has packed one behind the other.
pub(crate) fn take<T: BorshDeserialize>(packed: &mut &[u8]) -> T {
    // All ranks are of one version, which was compared at the start.
    T::deserialize(packed).unwrap_or_else(|why| panic!("a message of another rank cannot be read: {why}"))
}

/// Ranks within one process, a thread each: for tests.
pub struct InProcess {
    own: u16,
    /// To each rank, and from each.
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl InProcess {
    /// All of so many.
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

    fn meet(&mut self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        for ((rank, to), message) in self.to.iter().enumerate().zip(messages) {
            to.send(message).unwrap_or_else(|_| panic!("rank {rank} is gone"));
        }
        let receive = |(rank, from): (usize, &Receiver<Vec<u8>>)| {
            from.recv().unwrap_or_else(|_| panic!("rank {rank} is gone"))
        };
        self.from.iter().enumerate().map(receive).collect()
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
                    let mut meeting = Meeting::of(&mut ranks);
                    let own = meeting.own();
                    assert_eq!(meeting.share(own * 10), [0, 10, 20]);
                    let told = meeting.tell_lead(format!("rank {own}"));
                    let to_each = meeting.exchange(|to| vec![own as u8, to as u8]);
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
        assert_eq!((Meeting::alone().share(5), Meeting::alone().tell_lead(6)), (vec![5], vec![6]));
    }
}
