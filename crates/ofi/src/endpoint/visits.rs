//! How often an application that looks into shared memory looks at the device, too.

/// Looks at shared memory for one at the device, while there is something to do for it.
const LEAST_LOOKS: u64 = 16;
/// And while there is nothing: about 10 us of looks.
const MOST_LOOKS: u64 = 256;

/// When the device is looked at next.
#[derive(Debug)]
pub(super) struct Visits {
    /// By the count of looks.
    next: u64,
    /// Looks from one visit to the next.
    gap: u64,
    /// Something has happened at the device since the last visit.
    acted: bool,
}

impl Default for Visits {
    fn default() -> Self {
        Visits { next: 0, gap: LEAST_LOOKS, acted: false }
    }
}

impl Visits {
    /// Something has happened at the device.
    pub(super) fn saw_event(&mut self) {
        self.acted = true;
    }

    /// Whether the device is to be looked at after so many looks; then the next visit is settled. `waits` says that something was
    /// asked of the device that it has not answered.
    pub(super) fn is_due(&mut self, looks: u64, waits: bool) -> bool {
        if looks < self.next {
            return false;
        }
        let is_busy = std::mem::take(&mut self.acted) || waits;
        self.gap = if is_busy { LEAST_LOOKS } else { (2 * self.gap).min(MOST_LOOKS) };
        self.next = looks + self.gap;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits_in(visits: &mut Visits, looks: std::ops::Range<u64>, waits: bool) -> Vec<u64> {
        looks.filter(|look| visits.is_due(*look, waits)).collect()
    }

    #[test]
    fn a_device_at_which_nothing_happens_is_visited_ever_less_and_one_that_is_busy_often() {
        let mut visits = Visits::default();
        assert_eq!(visits_in(&mut visits, 0..1000, false), [0, 32, 96, 224, 480, 736, 992]);
        visits.saw_event();
        assert_eq!(visits_in(&mut visits, 1000..1320, false), [1248, 1264, 1296]);
        let busy = visits_in(&mut visits, 1320..1500, true);
        assert_eq!(busy, [1360, 1376, 1392, 1408, 1424, 1440, 1456, 1472, 1488]);
    }
}
