//! Flow table of a middlebox: bounded, with expiry by age, and constant time for every operation.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pathweave_units::{Duration, HostId, Time, mix64};

/// A flow in the direction of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    /// Identifies the flow among those of a pair of hosts.
    pub(crate) flow: u64,
}

/// A hasher without a random seed, so that runs are reproducible. The map is never iterated, so its order has no
/// effect.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = mix64(self.0 ^ word);
    }
}

const NONE: u32 = u32::MAX;

struct Entry<S> {
    key: FlowKey,
    seen: Time,
    /// Next older and next younger entry.
    older: u32,
    younger: u32,
    active: bool,
    state: S,
}

/// States of flows, ordered by the time of their last packet.
pub(crate) struct FlowTable<S> {
    index: HashMap<FlowKey, u32, BuildHasherDefault<Mix>>,
    entries: Vec<Entry<S>>,
    free: Vec<u32>,
    oldest: u32,
    youngest: u32,
    /// Oldest active entry; all younger entries are active.
    first_active: u32,
    active: u32,
    most: u32,
    forget_after: Duration,
}

/// A flow that was found or created.
pub(crate) struct Recorded {
    pub(crate) at: u32,
    /// True if the flow was not active before.
    pub(crate) activated: bool,
}

impl<S: Default> FlowTable<S> {
    pub(crate) fn new(most: u32, forget_after: Duration) -> Self {
        FlowTable {
            index: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            youngest: NONE,
            first_active: NONE,
            active: 0,
            most,
            forget_after,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.index.len() as u32
    }
    /// Returns the number of active flows: those seen since [`FlowTable::deactivate_next`] last returned them.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }
    pub(crate) fn state(&mut self, at: u32) -> &mut S {
        &mut self.entries[at as usize].state
    }
    pub(crate) fn find(&self, key: &FlowKey) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// Records a packet of a flow. Returns `None` if the flow is unknown and there is no room: the table is full, and
    /// its oldest flow is active or not `idle`.
    pub(crate) fn record(&mut self, now: Time, key: FlowKey, idle: impl Fn(&S) -> bool) -> Option<Recorded> {
        self.forget(now, &idle);
        if let Some(at) = self.find(&key) {
            let woke = !self.entries[at as usize].active;
            self.unlink(at);
            self.append(at, now);
            return Some(Recorded { at, activated: woke });
        }
        if self.len() >= self.most && !self.forget_oldest(&idle) {
            return None;
        }
        let entry = Entry { key, seen: now, older: NONE, younger: NONE, active: false, state: S::default() };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.index.insert(key, at);
        self.append(at, now);
        Some(Recorded { at, activated: true })
    }

    /// Deactivates and returns the next flow that was not seen for longer than `span`.
    pub(crate) fn deactivate_next(&mut self, now: Time, span: Duration) -> Option<&mut S> {
        let at = self.first_active;
        if at == NONE || now.saturating_since(self.entries[at as usize].seen) <= span {
            return None;
        }
        let entry = &mut self.entries[at as usize];
        entry.active = false;
        self.first_active = entry.younger;
        self.active -= 1;
        Some(&mut entry.state)
    }

    fn forget(&mut self, now: Time, idle: &impl Fn(&S) -> bool) {
        while self.oldest != NONE
            && now.saturating_since(self.entries[self.oldest as usize].seen) > self.forget_after
            && self.forget_oldest(idle)
        {}
    }

    fn forget_oldest(&mut self, idle: &impl Fn(&S) -> bool) -> bool {
        let at = self.oldest;
        if at == NONE {
            return false;
        }
        let entry = &self.entries[at as usize];
        if entry.active || !idle(&entry.state) {
            return false;
        }
        self.index.remove(&entry.key);
        self.unlink(at);
        self.free.push(at);
        true
    }

    fn unlink(&mut self, at: u32) {
        let Entry { older, younger, active, .. } = self.entries[at as usize];
        match older {
            NONE => self.oldest = younger,
            older => self.entries[older as usize].younger = younger,
        }
        match younger {
            NONE => self.youngest = older,
            younger => self.entries[younger as usize].older = older,
        }
        if self.first_active == at {
            self.first_active = younger;
        }
        self.active -= u32::from(active);
    }

    fn append(&mut self, at: u32, now: Time) {
        let last = self.youngest;
        let entry = &mut self.entries[at as usize];
        (entry.seen, entry.active) = (now, true);
        (entry.older, entry.younger) = (last, NONE);
        match last {
            NONE => self.oldest = at,
            last => self.entries[last as usize].younger = at,
        }
        self.youngest = at;
        if self.first_active == NONE {
            self.first_active = at;
        }
        self.active += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(flow: u64) -> FlowKey {
        FlowKey { src: HostId(1), dst: HostId(2), flow }
    }
    const AGE: Duration = Duration::from_us(100);
    const ACTIVE: Duration = Duration::from_us(10);

    #[test]
    fn a_full_table_forgets_who_sleeps_and_refuses_otherwise() {
        let mut table = FlowTable::<u32>::new(2, AGE);
        let at = Time::from_us;
        assert!(table.record(at(1), key(1), |_| true).is_some());
        assert!(table.record(at(2), key(2), |_| true).is_some());
        assert!(table.record(at(3), key(3), |_| true).is_none(), "both are active");
        assert!(table.deactivate_next(at(12), ACTIVE).is_some());
        assert!(table.record(at(12), key(3), |_| false).is_none(), "the one that sleeps has packets queued");
        assert!(table.record(at(12), key(3), |_| true).is_some());
        assert_eq!((table.find(&key(1)), table.len(), table.active()), (None, 2, 2));
    }

    proptest! {
        /// Compares with a map that is searched linearly.
        #[test]
        fn behaves_like_a_map_with_ages(steps in prop::collection::vec((0u64..12, 0u64..20), 1..200)) {
            let mut table = FlowTable::<u64>::new(100, AGE);
            let mut model: BTreeMap<u64, Time> = BTreeMap::new();
            let mut now = Time::ZERO;
            for (flow, gap) in steps {
                now += Duration::from_us(gap);
                while let Some(state) = table.deactivate_next(now, ACTIVE) {
                    prop_assert!(now - model[state] > ACTIVE);
                }
                let asleep = model.get(&flow).is_none_or(|&seen| now - seen > ACTIVE);
                model.retain(|_, seen| now - *seen <= AGE);
                let touched = table.record(now, key(flow), |_| true).expect("there is room");
                prop_assert_eq!(touched.activated, asleep);
                *table.state(touched.at) = flow;
                model.insert(flow, now);
                prop_assert_eq!(table.len() as usize, model.len());
                let active = model.values().filter(|&&seen| now - seen <= ACTIVE).count();
                prop_assert_eq!(table.active() as usize, active);
            }
        }
    }
}
