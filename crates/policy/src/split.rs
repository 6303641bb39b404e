//! Any congestion control with any path picker.

use pathweave_units::{Rate, Rng, Time};

use crate::cc::{AnyCc, CcConfig, CongestionControl, Permit};
use crate::picker::{AnyPicker, PathPicker, PickerConfig};
use crate::{
    Adapt, ConfigError, ControlFeedback, FabricEnv, Feedback, Grant, HostDelay, HostEnv, Memo, PathView,
    Policy, PolicyCx, PolicyEnv, Sent, Want,
};

/// Congestion control and path choice that do not know of each other.
// The picker first: it is small and used with every packet, as is only the beginning of most congestion controls.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Split<C, P> {
    /// Decides where.
    pub picker: P,
    /// Decides when.
    pub cc: C,
}

impl<C: CongestionControl, P: PathPicker> Policy for Split<C, P> {
    crate::ignores!(on_open, on_close, compose, on_copy_sent);
    #[inline]
    fn poll_send(&mut self, now: Time, want: &Want, _cx: &mut PolicyCx<'_>) -> Grant {
        match self.cc.permit(now, want) {
            Permit::Now => Grant::Send(self.picker.pick(want)),
            Permit::At(when) => Grant::At(when),
            Permit::Blocked => Grant::Blocked,
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.cc.on_sent(now, sent);
        self.picker.on_sent(sent, cx.rng);
        Memo::default()
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        self.cc.on_feedback(now, feedback);
        self.picker.on_feedback(now, feedback, cx.rng);
    }
    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>) {
        if let Some(midway) = feedback.midway() {
            self.on_feedback(now, &midway, cx);
        }
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.picker.on_paths(paths, cx.rng);
    }
    fn on_timer(&mut self, now: Time, _cx: &mut PolicyCx<'_>) {
        self.cc.on_timer(now);
    }
    #[inline]
    fn next_timer(&self) -> Option<Time> {
        self.cc.next_timer()
    }
    fn rate(&self, now: Time) -> Option<Rate> {
        self.cc.rate(now)
    }
}

/// A congestion control and a picker, chosen independently.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SplitConfig {
    /// Congestion control.
    pub cc: CcConfig,
    /// Path picker.
    pub picker: PickerConfig,
}

impl Adapt for SplitConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.cc.adapt_to_fabric(fabric);
    }
    fn wants_longest_path(&self) -> bool {
        self.cc.wants_longest_path()
    }
    fn host_delay(&self) -> HostDelay {
        self.cc.host_delay()
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.cc.adapt_to_host(host);
    }
}

impl SplitConfig {
    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.cc.validate().map_err(|error| error.within("cc"))?;
        self.picker.validate().map_err(|error| error.within("picker"))
    }
    /// The policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Split<AnyCc, AnyPicker> {
        Split { cc: self.cc.build(env), picker: self.picker.build(env.paths, rng) }
    }
}
