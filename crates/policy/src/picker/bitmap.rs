//! STrack's path selection (Le et al., "STrack: A Reliable Multipath Transport for AI/ML Clusters", arXiv
//! 2407.15266), **as understood** from second-hand descriptions: an ECN bit for each entropy value.

use alloc::boxed::Box;
use alloc::vec;

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::fluid::{HasSpread, Spread};
use crate::{Feedback, FeedbackKind, PathView, PolicyCx, SendRequest, Sent};

/// Packets take the paths in turn. A mark sets the path's bit. A path whose bit is set is skipped once, which clears
/// the bit. Several marks before its turn count as one.
///
/// Our choices: a lost packet sets the bit, too, because its path may be dead; and the order is that of the paths,
/// from a random start.
#[derive(Clone, Debug)]
pub struct Bitmap {
    next: PathId,
    // Boxed, because most queue pairs have another picker.
    round: Box<Round>,
}

#[derive(Clone, Debug)]
struct Round {
    paths: PathSet,
    /// Index in `paths` of the next path.
    at: u32,
    /// One bit per path, 64 per word.
    marked: Box<[u64]>,
}

impl Bitmap {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        let marked = vec![0; usize::from(paths).div_ceil(64)].into_boxed_slice();
        let mut round = Round { paths: PathSet::all(paths), at: rng.below(u32::from(paths)), marked };
        Bitmap { next: round.advance(), round: Box::new(round) }
    }
}

impl Round {
    /// Advances to the next path whose bit is not set. Clears the bits it passes, so it ends after at most one round.
    #[inline]
    fn advance(&mut self) -> PathId {
        loop {
            self.at = if self.at + 1 < self.paths.len() { self.at + 1 } else { 0 };
            let path = self.paths.get(self.at);
            let (word, bit) = place(path);
            let is_marked = self.marked[word] & bit != 0;
            self.marked[word] &= !bit;
            if !is_marked {
                return path;
            }
        }
    }
}

/// Returns the index of a path's word, and the path's bit in it.
fn place(path: PathId) -> (usize, u64) {
    (path.index() / 64, 1 << (path.index() % 64))
}

impl HasSpread for Bitmap {
    const SPREAD: Spread = Spread::ByCapacity;
}

impl PathPicker for Bitmap {
    crate::ignores!(on_open, on_close);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.round.paths.move_to_free_port(self.next, want.egress)
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.next = self.round.advance();
        0
    }
    #[inline]
    fn on_feedback(&mut self, _now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        let congested = matches!(
            feedback.kind,
            FeedbackKind::Ack { marked: true, .. }
                | FeedbackKind::Lost
                | FeedbackKind::Trimmed { .. }
                | FeedbackKind::Timeout
        );
        if congested && feedback.path == self.next {
            // It is the path's turn: skip it at once.
            self.next = self.round.advance();
        } else if congested {
            let (word, bit) = place(feedback.path);
            self.round.marked[word] |= bit;
        }
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.round.paths = PathSet::usable(paths);
        self.round.at = cx.rng.below(self.round.paths.len());
        self.next = self.round.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathState;
    use crate::testing::{ACK, Host, SENT, Scenario};
    use pathweave_units::Duration;
    use std::vec::Vec;

    /// Returns a picker of five paths, of which 0 is next.
    fn picker(host: &mut Host) -> Bitmap {
        let mut picker = Bitmap::new(5, &mut host.rng);
        picker.round.at = 4;
        picker.next = picker.round.advance();
        picker
    }
    fn sends(picker: &mut Bitmap, packets: usize, host: &mut Host) -> Vec<u16> {
        let sent = Sent { payload_bytes: 1_000, wire_bytes: 1_078, ..SENT };
        let mut send = || {
            let path = picker.next;
            picker.on_sent(Time::ZERO, &sent, &mut host.cx());
            path.0
        };
        (0..packets).map(|_| send()).collect()
    }
    fn feed(picker: &mut Bitmap, path: u16, kind: FeedbackKind, host: &mut Host) {
        let feedback = Feedback { kind, path: PathId(path), wire_bytes: 1_078, rtt: Duration::ZERO, ..ACK };
        picker.on_feedback(Time::ZERO, &feedback, &mut host.cx());
    }
    const MARKED: FeedbackKind = FeedbackKind::Ack { timed: true, marked: true };
    const CLEAN: FeedbackKind = FeedbackKind::Ack { timed: true, marked: false };

    #[test]
    fn a_marked_path_is_passed_over_once() {
        let mut host = Host::new(1);
        let mut picker = picker(&mut host);
        feed(&mut picker, 2, MARKED, &mut host);
        feed(&mut picker, 2, MARKED, &mut host);
        feed(&mut picker, 3, CLEAN, &mut host);
        assert_eq!(sends(&mut picker, 9, &mut host), [0, 1, 3, 4, 0, 1, 2, 3, 4]);
        for (path, kind) in [(1, FeedbackKind::Lost), (2, FeedbackKind::Timeout)] {
            feed(&mut picker, path, kind, &mut host);
        }
        assert_eq!(sends(&mut picker, 6, &mut host), [0, 3, 4, 0, 1, 2]);
    }

    #[test]
    fn the_path_whose_turn_it_is_and_all_of_them() {
        let mut host = Host::new(1);
        let mut picker = picker(&mut host);
        feed(&mut picker, 0, MARKED, &mut host);
        assert_eq!(sends(&mut picker, 5, &mut host), [1, 2, 3, 4, 0]);
        // 1 is next. Each of the first four is next when its mark arrives and is skipped then; 0 is skipped between 4
        // and 1.
        [0, 1, 2, 3, 4].into_iter().for_each(|path| feed(&mut picker, path, MARKED, &mut host));
        assert_eq!(sends(&mut picker, 6, &mut host), [1, 2, 3, 4, 0, 1]);
        // 2 is next when its mark arrives, as the last one: all others are skipped, and it is next again.
        [0, 1, 3, 4, 2].into_iter().for_each(|path| feed(&mut picker, path, MARKED, &mut host));
        assert_eq!(sends(&mut picker, 6, &mut host), [2, 3, 4, 0, 1, 2]);
    }

    #[test]
    fn a_path_that_is_down_is_left_out() {
        let mut host = Host::new(1);
        let mut picker = picker(&mut host);
        let state = |path| if path == 3 { PathState::Down } else { PathState::Up };
        let views: Vec<PathView> = (0..5).map(|path| PathView::new(PathId(path), state(path))).collect();
        picker.on_paths(Time::ZERO, &views, &mut host.cx());
        let mut sent = sends(&mut picker, 8, &mut host);
        sent.sort_unstable();
        assert_eq!(sent, [0, 0, 1, 1, 2, 2, 4, 4]);
    }

    #[test]
    fn half_as_much_goes_where_every_packet_is_marked() {
        let config = crate::picker::PickerConfig::Bitmap;
        let cc = crate::cc::CcConfig::None(Default::default());
        let split = crate::SplitConfig { cc, picker: config };
        let scenario = Scenario { packets: 7_000, ..Scenario::one_path_marked() };
        let sent = &scenario.run(|env, rng| split.build(env, rng)).senders[0].sent;
        // Every second round of four.
        assert!((950..1_060).contains(&sent[0]) && sent[1..].iter().all(|&n| n > 1_950), "{sent:?}");
    }
}
