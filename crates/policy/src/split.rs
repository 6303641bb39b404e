//! Combination of any congestion control with any path picker.

use pathweave_units::{PathId, Rate, Rng, Time};

use crate::cc::{AnyCc, CcConfig, CongestionControl, Permit};
use crate::fluid::{AsFluid, Fluid, HasControlModel};
use crate::picker::{AnyPicker, PathPicker, PickerConfig};
use crate::{
    Adapt, ConfigError, ControlFeedback, Feedback, Grant, Memo, PathView, Policy, PolicyCx, PolicyEnv,
    QueuePairId, SendRequest, SendWindow, Sent,
};

/// Congestion control and path selection, decided independently. They can still exchange data: through the halves of
/// a packet's memo, which both read, and through a store that both join. The congestion control is called first.
// The picker comes first: it is small and used with every packet, as is only the beginning of most congestion
// controls.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct SplitPolicy<C, P> {
    /// Path picker: decides which path a packet takes.
    pub picker: P,
    /// Congestion control: decides when a packet leaves.
    pub cc: C,
}

impl<C: CongestionControl, P: PathPicker> Policy for SplitPolicy<C, P> {
    crate::ignores!(make_control, on_copy_sent);
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>) {
        self.cc.on_open(now, member, cx);
        self.picker.on_open(now, member, cx);
    }
    fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
        self.cc.on_close(cx);
        self.picker.on_close(cx);
    }
    #[inline]
    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant {
        match self.cc.permit(now, want, cx) {
            Permit::Now => Grant::Send(self.picker.pick(now, want, cx)),
            Permit::At(when) => Grant::At(when),
            Permit::Blocked => Grant::Blocked,
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        let cc = self.cc.on_sent(now, sent, cx);
        Memo::of_halves(cc, self.picker.on_sent(now, sent, cx))
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        self.cc.on_feedback(now, feedback, cx);
        self.picker.on_feedback(now, feedback, cx);
    }
    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>) {
        if let Some(midway) = feedback.midway() {
            self.on_feedback(now, &midway, cx);
        }
    }
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.picker.on_paths(now, paths, cx);
    }
    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        self.cc.on_timer(now, cx);
    }
    #[inline]
    fn next_timer(&self) -> Option<Time> {
        self.cc.next_timer()
    }
    fn rate(&self, now: Time) -> Option<Rate> {
        self.cc.rate(now)
    }
    fn window(&self) -> Option<SendWindow> {
        self.cc.window()
    }
    fn path_beyond_window(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> PathId {
        self.picker.pick(now, want, cx)
    }
}

/// A congestion control and a picker, chosen independently.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SplitConfig {
    /// Congestion control.
    pub cc: CcConfig,
    /// Path picker.
    pub picker: PickerConfig,
}

impl AsFluid for SplitConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: self.picker.spread(), control: self.cc.control() }
    }
}

impl Adapt for SplitConfig {
    crate::forwards!({ cc } adapt);
}

impl SplitConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.cc.validate().map_err(|error| error.within("cc"))?;
        self.picker.validate().map_err(|error| error.within("picker"))
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> SplitPolicy<AnyCc, AnyPicker> {
        SplitPolicy { cc: self.cc.build(env), picker: self.picker.build(env, rng) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FeedbackKind;
    use crate::testing::{ACK, Host, SENT};

    /// Takes paths in turn, and attaches to each packet the number of completed rounds.
    #[derive(Default)]
    struct Laps {
        next: u16,
        laps: u32,
    }

    impl PathPicker for Laps {
        crate::ignores!(on_open, on_close, on_feedback);
        fn pick(&self, _: Time, _: &SendRequest, _: &mut PolicyCx<'_>) -> PathId {
            PathId(self.next)
        }
        fn on_sent(&mut self, _: Time, _: &Sent, _: &mut PolicyCx<'_>) -> u32 {
            self.next = (self.next + 1) % 4;
            self.laps += u32::from(self.next == 0);
            self.laps
        }
        fn on_paths(&mut self, _: Time, _: &[PathView], _: &mut PolicyCx<'_>) {}
    }

    /// Recognizes each packet, and reads the number of rounds from the picker's half.
    #[derive(Default)]
    struct Follows {
        laps: u32,
    }

    impl CongestionControl for Follows {
        crate::ignores!(on_open, on_close, on_timer);
        fn permit(&mut self, _: Time, _: &SendRequest, _: &mut PolicyCx<'_>) -> Permit {
            Permit::Now
        }
        fn on_sent(&mut self, _: Time, sent: &Sent, _: &mut PolicyCx<'_>) -> u32 {
            !(sent.psn as u32)
        }
        fn on_feedback(&mut self, _: Time, feedback: &Feedback, _: &mut PolicyCx<'_>) {
            if matches!(feedback.kind, FeedbackKind::Ack { .. }) {
                assert_eq!(feedback.memo.cc_half(), !(feedback.psn as u32));
                self.laps = feedback.memo.picker_half();
            }
        }
        fn rate(&self, _: Time) -> Option<Rate> {
            None
        }
        fn window(&self) -> Option<SendWindow> {
            None
        }
    }

    #[test]
    fn each_part_gets_its_half_of_the_memo_back_and_sees_the_others() {
        let mut split = SplitPolicy { picker: Laps::default(), cc: Follows::default() };
        let mut host = Host::new(1);
        for psn in 0..10 {
            let sent =
                Sent { path: PathId(psn as u16 % 4), psn, payload_bytes: 1_000, wire_bytes: 1_078, ..SENT };
            let memo = split.on_sent(Time::ZERO, &sent, &mut host.cx());
            let feedback =
                Feedback { path: sent.path, psn, memo, wire_bytes: 1_078, inflight_packets: 0, ..ACK };
            split.on_feedback(Time::ZERO, &feedback, &mut host.cx());
            assert_eq!(u64::from(split.cc.laps), (psn + 1) / 4);
        }
    }
}
