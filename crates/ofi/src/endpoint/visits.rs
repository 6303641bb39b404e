//! Schedule of device polls for an application that polls shared memory.

/// Number of polls of shared memory per poll of the device while the device is busy.
const LEAST_LOOKS: u64 = 16;
/// Number of polls of shared memory per poll of the device while the device is quiet, about 10 us.
const MOST_LOOKS: u64 = 256;

/// Schedule of device polls.
#[derive(Debug)]
pub(super) struct DevicePollSchedule {
    /// Number of the poll of shared memory at which the device is polled next.
    next: u64,
    /// Number of polls of shared memory between two polls of the device.
    gap: u64,
    /// True if the device has had an event since its last poll.
    acted: bool,
}

impl Default for DevicePollSchedule {
    fn default() -> Self {
        DevicePollSchedule { next: 0, gap: LEAST_LOOKS, acted: false }
    }
}

impl DevicePollSchedule {
    /// Records an event of the device.
    pub(super) fn saw_event(&mut self) {
        self.acted = true;
    }

    /// Returns true if the device is to be polled at poll number `looks`, and schedules the next one. `waits`
    /// is true if the device has unanswered requests.
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

    fn visits_in(visits: &mut DevicePollSchedule, looks: std::ops::Range<u64>, waits: bool) -> Vec<u64> {
        looks.filter(|look| visits.is_due(*look, waits)).collect()
    }

    #[test]
    fn a_device_at_which_nothing_happens_is_visited_ever_less_and_one_that_is_busy_often() {
        let mut visits = DevicePollSchedule::default();
        assert_eq!(visits_in(&mut visits, 0..1000, false), [0, 32, 96, 224, 480, 736, 992]);
        visits.saw_event();
        assert_eq!(visits_in(&mut visits, 1000..1320, false), [1248, 1264, 1296]);
        let busy = visits_in(&mut visits, 1320..1500, true);
        assert_eq!(busy, [1360, 1376, 1392, 1408, 1424, 1440, 1456, 1472, 1488]);
    }
}
