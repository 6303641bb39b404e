//! Fault model of a network: the fate of each datagram, drawn from a seed.

use pathweave_units::Rng;

/// Faults that a network applies to datagrams. Probabilities are 0 to 1 and independent for each datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that it is lost.
    pub lose: f64,
    /// Probability that it is duplicated.
    pub repeat: f64,
    /// Probability that it is delayed until some later ones have left.
    pub reorder: f64,
    /// Probability that one to three of its bits are flipped.
    pub damage: f64,
    /// Probability that it is truncated.
    pub cut_short: f64,
    /// Probability that an earlier datagram, possibly much older, is replayed after it.
    pub replay: f64,
    /// Probability that a replayed datagram leaves from the port of another path. A network never changes the port of
    /// an original.
    pub stray: f64,
    /// Probability that it is marked Congestion Experienced, if it is ECN-capable.
    pub mark: f64,
}

/// A datagram as the network delivers it. `T` is its route.
#[derive(Clone, Debug)]
pub struct Arrival<T> {
    /// Route, as given.
    pub way: T,
    /// Remaining bytes.
    pub bytes: Vec<u8>,
    /// Relative delay, from 0 (none) to below 1.
    pub late: f64,
    /// True if a switch has marked it, provided that it is capable.
    pub marked: bool,
    /// Random number that selects another path, for a datagram that strays.
    pub stray: Option<u32>,
}

/// Number of datagrams by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Given to the network.
    pub sent: u64,
    /// Lost.
    pub lost: u64,
    /// Duplicated.
    pub repeated: u64,
    /// Delayed.
    pub reordered: u64,
    /// With flipped bits.
    pub damaged: u64,
    /// Truncated.
    pub cut_short: u64,
    /// Replayed after others.
    pub replayed: u64,
    /// Replayed from another port.
    pub strayed: u64,
}

impl std::ops::AddAssign for FaultCounters {
    fn add_assign(&mut self, other: FaultCounters) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.repeated += other.repeated;
        self.reordered += other.reordered;
        self.damaged += other.damaged;
        self.cut_short += other.cut_short;
        self.replayed += other.replayed;
        self.strayed += other.strayed;
    }
}

/// Draws the fate of datagrams, deterministic for the same seed and datagrams.
#[derive(Debug)]
pub struct FaultModel<T> {
    faults: Faults,
    rng: Rng,
    overheard: Vec<(T, Vec<u8>)>,
    happened: FaultCounters,
}

/// Number of datagrams kept for replay.
const OVERHEARD: usize = 256;
/// Interval in datagrams at which one is kept on average: the oldest that are replayed are some thousands behind.
const OVERHEARD_EVERY: u32 = 16;

impl<T: Copy> FaultModel<T> {
    /// Creates the model before the first datagram.
    pub fn new(faults: Faults, seed: u64) -> Self {
        let rng = Rng::for_component(seed, "weather", 0);
        FaultModel { faults, rng, overheard: vec![], happened: FaultCounters::default() }
    }

    /// Returns true if no fault is configured.
    pub fn is_calm(&self) -> bool {
        self.faults == Faults::default()
    }

    /// Returns the counters so far.
    pub fn happened(&self) -> FaultCounters {
        self.happened
    }

    /// Counts datagrams that the network delivers unchanged.
    pub fn pass(&mut self, datagrams: u64) {
        self.happened.sent += datagrams;
    }

    /// Gives a datagram to the network, which delivers none, one or several.
    pub fn send(&mut self, way: T, datagram: &[u8], mut deliver: impl FnMut(Arrival<T>)) {
        self.happened.sent += 1;
        if self.happens(self.faults.lose, |happened| &mut happened.lost) {
            return;
        }
        let copies = 1 + usize::from(self.happens(self.faults.repeat, |happened| &mut happened.repeated));
        for _ in 0..copies {
            deliver(self.arrival(way, datagram));
        }
        if self.faults.replay == 0.0 {
            return;
        }
        if self.rng.below(OVERHEARD_EVERY) == 0 {
            let kept = (way, datagram.to_vec());
            match self.overheard.len() {
                OVERHEARD => self.overheard[self.rng.below(OVERHEARD as u32) as usize] = kept,
                _ => self.overheard.push(kept),
            }
        }
        if !self.overheard.is_empty() && self.happens(self.faults.replay, |happened| &mut happened.replayed) {
            let which = self.rng.below(self.overheard.len() as u32) as usize;
            let (way, bytes) = self.overheard[which].clone();
            let strays = self.happens(self.faults.stray, |happened| &mut happened.strayed);
            let stray = strays.then(|| self.rng.next_u64() as u32);
            deliver(Arrival { stray, ..self.arrival(way, &bytes) });
        }
    }

    fn happens(&mut self, chance: f64, count: fn(&mut FaultCounters) -> &mut u64) -> bool {
        let happens = chance > 0.0 && self.rng.bernoulli(chance);
        *count(&mut self.happened) += u64::from(happens);
        happens
    }

    fn arrival(&mut self, way: T, datagram: &[u8]) -> Arrival<T> {
        let mut bytes = datagram.to_vec();
        if self.happens(self.faults.damage, |happened| &mut happened.damaged) {
            for _ in 0..=self.rng.below(3) {
                let bit = self.rng.below(bytes.len() as u32 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        if self.happens(self.faults.cut_short, |happened| &mut happened.cut_short) {
            bytes.truncate(1 + self.rng.below(bytes.len() as u32) as usize);
        }
        let late = if self.happens(self.faults.reorder, |happened| &mut happened.reordered) {
            self.rng.unit_f64()
        } else {
            0.0
        };
        let marked = self.faults.mark > 0.0 && self.rng.bernoulli(self.faults.mark);
        Arrival { way, bytes, late, marked, stray: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: u64 = 100_000;
    const DATAGRAM: [u8; 40] = [0x55; 40];

    fn through(faults: Faults) -> (FaultCounters, Vec<Arrival<u64>>) {
        let (mut weather, mut arrivals) = (FaultModel::new(faults, 1), vec![]);
        for number in 0..SENT {
            weather.send(number, &DATAGRAM, |arrival| arrivals.push(arrival));
        }
        (weather.happened(), arrivals)
    }

    /// About a tenth of all.
    fn is_tenth(count: usize) -> bool {
        (SENT as usize / 11..SENT as usize / 9).contains(&count)
    }

    #[test]
    fn each_fault_does_what_it_says_to_its_share_and_nothing_else() {
        let calm = Faults::default();
        let count = |arrivals: &[Arrival<u64>], is: fn(&Arrival<u64>) -> bool| {
            arrivals.iter().filter(|arrival| is(arrival)).count()
        };
        let is_odd = |arrival: &Arrival<u64>| {
            arrival.bytes != DATAGRAM || arrival.late > 0.0 || arrival.marked || arrival.stray.is_some()
        };
        let (happened, arrivals) = through(calm);
        assert_eq!(happened, FaultCounters { sent: SENT, ..FaultCounters::default() });
        assert_eq!((arrivals.len() as u64, count(&arrivals, is_odd)), (SENT, 0));

        let (happened, arrivals) = through(Faults { lose: 0.1, ..calm });
        assert_eq!(happened.lost, SENT - arrivals.len() as u64);
        assert!(is_tenth(happened.lost as usize) && count(&arrivals, is_odd) == 0);

        let (happened, arrivals) = through(Faults { repeat: 0.1, ..calm });
        assert!(is_tenth(arrivals.len() - SENT as usize) && count(&arrivals, is_odd) == 0);
        assert_eq!(happened.repeated, arrivals.len() as u64 - SENT);

        let (happened, arrivals) = through(Faults { replay: 0.1, ..calm });
        let old = arrivals.windows(2).filter(|pair| pair[1].way <= pair[0].way).count();
        assert!(is_tenth(happened.replayed as usize) && is_tenth(old) && count(&arrivals, is_odd) == 0);

        let (happened, arrivals) = through(Faults { replay: 1.0, stray: 0.1, ..calm });
        let strayed = count(&arrivals, |arrival| arrival.stray.is_some());
        assert!(is_tenth(strayed) && strayed == count(&arrivals, is_odd));
        assert_eq!(happened.strayed, strayed as u64);

        type Is = fn(&Arrival<u64>) -> bool;
        let cases: [(Faults, Is); 4] = [
            (Faults { reorder: 0.1, ..calm }, |arrival| arrival.late > 0.0),
            (Faults { damage: 0.1, ..calm }, |arrival| {
                arrival.bytes.len() == DATAGRAM.len() && arrival.bytes != DATAGRAM
            }),
            // One of 40 keeps its whole length.
            (Faults { cut_short: 0.1, ..calm }, |arrival| arrival.bytes.len() < DATAGRAM.len()),
            (Faults { mark: 0.1, ..calm }, |arrival| arrival.marked),
        ];
        for (faults, is) in cases {
            let (_, arrivals) = through(faults);
            assert_eq!(arrivals.len() as u64, SENT, "{faults:?}");
            assert!(is_tenth(count(&arrivals, is)), "{faults:?}");
            assert_eq!(count(&arrivals, is), count(&arrivals, is_odd), "{faults:?}");
        }
    }
}
