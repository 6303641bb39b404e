//! Receiver of go-back-N as in RoCE NICs: it drops packets out of order and sends one NACK per gap.

use alloc::boxed::Box;
use alloc::vec::Vec;

use pathweave_units::{Duration, Time};
use pathweave_wire::NackReason;

use super::arrival::{Arrival, TrimmedHeader, arrived_in_order};

/// Largest number of headers ahead of the next packet that are remembered.
const MOST_HEADERS: usize = 64;

#[derive(Debug)]
pub(crate) struct Receiver {
    expected: u64,
    /// Earliest time of the next NACK for the gap at `expected`: at once for the first, [`Time::MAX`] if it is not
    /// repeated.
    tell_from: Time,
    /// Interval after which the NACK is repeated, or `None` if it is not.
    repeat: Option<Duration>,
    // Boxed, because few receivers have any.
    headers: Option<Box<Headers>>,
}

/// Headers that have overtaken the packets before them, in the order of arrival.
#[derive(Debug, Default)]
struct Headers(Vec<TrimmedHeader>);

impl Receiver {
    pub(super) fn new(repeat: Option<Duration>) -> Self {
        Receiver { expected: 0, tell_from: Time::ZERO, repeat, headers: None }
    }
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }
    /// Nothing is accepted ahead of a gap.
    pub(super) fn first_missing(&self, from: u64, _to: u64) -> Option<u64> {
        Some(from)
    }
    pub(super) fn proof_packets(&self) -> u64 {
        0
    }
    pub(super) fn window(&self) -> u64 {
        1
    }
    pub(super) fn held(&self) -> u64 {
        0
    }
    pub(super) fn has_gap(&self) -> bool {
        false
    }
    pub(super) fn judge(&mut self, now: Time, psn: u64) -> Arrival {
        if psn == self.expected {
            Arrival::InOrder
        } else if psn < self.expected {
            Arrival::Duplicate
        } else {
            let tell = now >= self.tell_from;
            if tell {
                self.told(now);
            }
            Arrival::Refused { reason: NackReason::Sequence, tell }
        }
    }
    /// Judges the header of a trimmed packet. Headers overtake packets, so one that is ahead proves no gap before it.
    pub(super) fn judge_header(&mut self, header: &TrimmedHeader) -> Arrival {
        if header.psn == self.expected {
            Arrival::InOrder
        } else if header.psn < self.expected {
            Arrival::Duplicate
        } else {
            self.remember(header);
            Arrival::Refused { reason: NackReason::Sequence, tell: false }
        }
    }
    /// Remembers a header until the packets before it have arrived. If a packet of the same or a higher PSN was sent earlier,
    /// the sender has gone back since, and sends all those again of which headers are remembered.
    fn remember(&mut self, header: &TrimmedHeader) {
        let Headers(headers) = &mut **self.headers.get_or_insert_default();
        if headers.iter().any(|known| known.psn >= header.psn && known.sent_at < header.sent_at) {
            headers.clear();
        }
        if headers.len() < MOST_HEADERS {
            headers.push(*header);
        }
    }
    /// Returns the header of the next packet, if that was trimmed after the accepted packet sent at `sent_at`. The sender is
    /// to be informed.
    pub(super) fn next_header(&mut self, now: Time, sent_at: Time) -> Option<TrimmedHeader> {
        let expected = self.expected;
        let Headers(headers) = &mut **self.headers.as_mut()?;
        headers.retain(|header| header.psn >= expected && header.sent_at >= sent_at);
        let next = headers.iter().find(|header| header.psn == expected).copied()?;
        self.misses(now, expected);
        Some(next)
    }
    /// Records that the sender is informed of the missing packet. It will send all behind it again.
    pub(super) fn misses(&mut self, now: Time, psn: u64) {
        debug_assert_eq!(psn, self.expected);
        self.headers = None;
        self.told(now);
    }
    fn told(&mut self, now: Time) {
        self.tell_from = self.repeat.map_or(Time::MAX, |repeat| now.saturating_add(repeat));
    }
    pub(super) fn accept(&mut self, psn: u64) {
        debug_assert_eq!(psn, self.expected);
        self.expected = psn + 1;
        self.tell_from = Time::ZERO;
    }
    pub(super) fn sack(&self, psn: u64) -> u64 {
        arrived_in_order(psn, self.expected)
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::{PathId, TrimmedAt};

    use super::*;

    const fn told(tell: bool) -> Arrival {
        Arrival::Refused { reason: NackReason::Sequence, tell }
    }

    #[test]
    fn one_complaint_a_gap() {
        let mut receiver = Receiver::new(None);
        receiver.accept(0);
        let mut judge = |us, psn| receiver.judge(Time::from_us(us), psn);
        assert_eq!([judge(1, 2), judge(2, 3), judge(99, 2)], [told(true), told(false), told(false)]);
        assert_eq!(judge(99, 1), Arrival::InOrder);
        receiver.accept(1);
        let mut judge = |us, psn| receiver.judge(Time::from_us(us), psn);
        assert_eq!([judge(100, 3), judge(100, 1)], [told(true), Arrival::Duplicate]);
        assert_eq!(receiver.sack(4), 0b11_000);
    }

    const fn header(psn: u64, sent_us: u64) -> TrimmedHeader {
        TrimmedHeader {
            psn,
            path: PathId(0),
            at: TrimmedAt::OnTheWay,
            marked: false,
            sent_at: Time::from_us(sent_us),
        }
    }
    fn remembered(receiver: &Receiver) -> &[TrimmedHeader] {
        receiver.headers.as_ref().map_or(&[], |headers| &headers.0)
    }
    /// Accepts the next packet, sent and received at these times. Returns the PSN that the sender hears of.
    fn takes(receiver: &mut Receiver, sent_us: u64, us: u64) -> Option<u64> {
        receiver.accept(receiver.expected());
        receiver.next_header(Time::from_us(us), Time::from_us(sent_us)).map(|header| header.psn)
    }

    /// Packet n leaves at n us. Headers of 2 and 3 overtake 0 and 1, which are no gap; 2 is missing once 1 is there.
    #[test]
    fn a_header_that_overtakes_is_answered_once_its_turn_comes() {
        let mut receiver = Receiver::new(None);
        for psn in [2, 3] {
            assert_eq!(receiver.judge_header(&header(psn, psn)), told(false));
        }
        assert_eq!([takes(&mut receiver, 0, 10), takes(&mut receiver, 1, 11)], [None, Some(2)]);
        // The sender has been told: nothing else is said of this gap, and 3 will be sent again.
        assert_eq!(receiver.judge(Time::from_us(12), 4), told(false));
        assert_eq!([takes(&mut receiver, 20, 30), takes(&mut receiver, 21, 31)], [None, None]);
    }

    /// A gap at 0 has been reported. The sender goes back and sends 0, 1 and 2 from 20 us on; the copy of 2 is trimmed and
    /// overtakes the others. The header of 1 is that of the packet that left at 1 us.
    #[test]
    fn headers_from_before_the_sender_went_back_are_forgotten() {
        let mut receiver = Receiver::new(None);
        assert_eq!(receiver.judge(Time::from_us(9), 3), told(true));
        assert_eq!(receiver.judge_header(&header(1, 1)), told(false));
        assert_eq!(receiver.judge_header(&header(2, 22)), told(false));
        assert_eq!([takes(&mut receiver, 20, 30), takes(&mut receiver, 21, 31)], [None, Some(2)]);
        // A copy sent later replaces what is known of the earlier ones.
        for (psn, sent_us) in [(5, 5), (6, 6), (4, 40)] {
            assert_eq!(receiver.judge_header(&header(psn, sent_us)), told(false));
        }
        assert_eq!(remembered(&receiver), [header(4, 40)]);
    }

    #[test]
    fn headers_are_remembered_up_to_a_bound() {
        let mut receiver = Receiver::new(None);
        for psn in 1..1_000 {
            receiver.judge_header(&header(psn, psn));
        }
        assert_eq!(remembered(&receiver).len(), MOST_HEADERS);
        assert_eq!(takes(&mut receiver, 0, 10), Some(1));
        assert_eq!(remembered(&receiver), []);
    }

    #[test]
    fn a_complaint_again_after_a_while() {
        let mut receiver = Receiver::new(Some(Duration::from_us(4)));
        let mut judge = |us, psn| receiver.judge(Time::from_us(us), psn);
        assert_eq!([judge(0, 2), judge(3, 3), judge(4, 4)], [told(true), told(false), told(true)]);
        assert_eq!([judge(7, 5), judge(8, 6)], [told(false), told(true)]);
        // A new gap is reported at once.
        receiver.accept(0);
        assert_eq!(receiver.judge(Time::from_us(9), 2), told(true));
    }
}
