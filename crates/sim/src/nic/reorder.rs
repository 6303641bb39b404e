//! Reorder buffer for NICs that put datagrams in order themselves. ERD avoids it because its receivers place
//! datagrams by offset.

use std::collections::BTreeMap;

use pathweave_transport::rd::PeerId;
use pathweave_units::QpNum;

/// Buffer of a NIC that passes datagrams to its host in the order of their PSNs. Datagrams ahead of a gap wait in the
/// buffer. A datagram that finds it full is dropped.
#[derive(Debug)]
pub(crate) struct Reorder {
    limit_bytes: u64,
    held_bytes: u64,
    flows: BTreeMap<(QpNum, PeerId), Ahead>,
}

/// Waiting packets of a flow.
#[derive(Debug, Default)]
struct Ahead {
    /// First PSN that has not arrived.
    next: u64,
    held: BTreeMap<u64, u16>,
}

impl Reorder {
    /// Creates a buffer of `limit_bytes` of payload.
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Reorder { limit_bytes, held_bytes: 0, flows: BTreeMap::new() }
    }

    /// Admits a packet, or returns false if there is no room. The host expects no packet before PSN `passed`, because
    /// all have arrived or the sender has given them up.
    pub(crate) fn admit(&mut self, to: QpNum, from: PeerId, psn: u64, len: u16, passed: u64) -> bool {
        let flow = self.flows.entry((to, from)).or_default();
        flow.next = flow.next.max(passed);
        self.held_bytes -= flow.hand_over();
        if psn > flow.next && !flow.held.contains_key(&psn) {
            if self.held_bytes + u64::from(len) > self.limit_bytes {
                return false;
            }
            self.held_bytes += u64::from(len);
            flow.held.insert(psn, len);
        } else if psn == flow.next {
            flow.next += 1;
            self.held_bytes -= flow.hand_over();
        }
        true
    }
}

impl Ahead {
    /// Releases packets that no longer wait. Returns their payload bytes.
    fn hand_over(&mut self) -> u64 {
        let mut bytes = 0;
        while let Some(entry) = self.held.first_entry()
            && *entry.key() <= self.next
        {
            self.next = self.next.max(entry.key() + 1);
            bytes += u64::from(entry.remove());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::HostId;

    #[test]
    fn packets_ahead_wait_in_a_bounded_buffer() {
        let mut nic = Reorder::new(2_500);
        let from = |qp| PeerId { host: HostId(1), qp: QpNum(qp) };
        let mut admit = |from, psn, passed| (nic.admit(QpNum(0), from, psn, 1_000, passed), nic.held_bytes);
        assert_eq!(admit(from(0), 0, 0), (true, 0));
        assert_eq!(admit(from(0), 2, 1), (true, 1_000));
        // A second flow shares the buffer. The third packet does not fit.
        assert_eq!(admit(from(1), 5, 0), (true, 2_000));
        assert_eq!(admit(from(0), 4, 1), (false, 2_000));
        // A duplicate takes no room. The missing packet releases those that waited for it.
        assert_eq!(admit(from(0), 2, 1), (true, 2_000));
        assert_eq!(admit(from(0), 1, 1), (true, 1_000));
        assert_eq!(admit(from(0), 4, 3), (true, 2_000));
        // The sender has given up PSN 0 to 4 of the second flow, so no packet waits for them.
        assert_eq!(admit(from(1), 6, 5), (true, 1_000));
        assert_eq!(admit(from(0), 3, 3), (true, 0));
    }
}
