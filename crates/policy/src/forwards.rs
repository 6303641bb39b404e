//! Method bodies that call the method of the same name on another value, for layers over a policy and for enums of
//! policies. The same holds for congestion controls, path pickers and configurations that adapt.

/// Expands to bodies of the named methods that forward the call. The target is a field, `{ inner }`, or the value of
/// each variant of an enum, `{ AnyPolicy: Split Udmp Mrc }`. Applies to [`Policy`](crate::Policy),
/// [`CongestionControl`](crate::cc::CongestionControl), [`PathPicker`](crate::picker::PathPicker) and
/// [`Adapt`](crate::Adapt). The name `on_sent_half` is `on_sent` of the second and third, which returns half a memo.
/// The names `policy`, `congestion_control`, `path_picker` and `adapt` are all methods of that trait.
///
/// ```text
/// impl Policy for Reflex {
///     pathweave_policy::forwards!({ inner } on_open, on_close);
///     ...
/// }
/// ```
#[macro_export]
macro_rules! forwards {
    ($to:tt policy) => {
        $crate::forwards!(
            $to on_open, on_close, poll_send, on_sent, make_control, on_copy_sent, on_feedback, on_control, on_paths,
            on_timer, next_timer, rate, window, path_beyond_window
        );
    };
    ($to:tt congestion_control) => {
        $crate::forwards!(
            $to on_open, on_close, permit, on_sent_half, on_feedback, on_timer, next_timer, rate, window
        );
    };
    ($to:tt path_picker) => {
        $crate::forwards!($to on_open, on_close, pick, on_sent_half, on_feedback, on_paths);
    };
    ($to:tt adapt) => {
        $crate::forwards!(
            $to adapt_to_fabric, uses_longest_path, reads_telemetry, base_path, marks, host_delay, late_wait, adapt_to_host
        );
    };
    ($to:tt $($method:ident),+ $(,)?) => { $( $crate::forwards!(@ $to $method); )+ };
    (@call { $enum:ident: $($variant:ident)* } $this:tt $method:ident $args:tt) => {
        match $this { $( $enum::$variant(it) => it.$method $args, )* }
    };
    (@call { $field:tt } $this:tt $method:ident $args:tt) => { $this.$field.$method $args };
    (@ $to:tt on_open) => {
        fn on_open(
            &mut self,
            now: $crate::units::Time,
            member: &$crate::QueuePairId,
            cx: &mut $crate::PolicyCx<'_>,
        ) {
            $crate::forwards!(@call $to self on_open(now, member, cx))
        }
    };
    (@ $to:tt on_close) => {
        fn on_close(&mut self, cx: &mut $crate::PolicyCx<'_>) {
            $crate::forwards!(@call $to self on_close(cx))
        }
    };
    (@ $to:tt poll_send) => {
        #[inline]
        fn poll_send(
            &mut self,
            now: $crate::units::Time,
            want: &$crate::SendRequest,
            cx: &mut $crate::PolicyCx<'_>,
        ) -> $crate::Grant {
            $crate::forwards!(@call $to self poll_send(now, want, cx))
        }
    };
    (@ $to:tt on_sent) => {
        #[inline]
        fn on_sent(
            &mut self,
            now: $crate::units::Time,
            sent: &$crate::Sent,
            cx: &mut $crate::PolicyCx<'_>,
        ) -> $crate::Memo {
            $crate::forwards!(@call $to self on_sent(now, sent, cx))
        }
    };
    (@ $to:tt on_sent_half) => {
        #[inline]
        fn on_sent(
            &mut self,
            now: $crate::units::Time,
            sent: &$crate::Sent,
            cx: &mut $crate::PolicyCx<'_>,
        ) -> u32 {
            $crate::forwards!(@call $to self on_sent(now, sent, cx))
        }
    };
    (@ $to:tt permit) => {
        #[inline]
        fn permit(
            &mut self,
            now: $crate::units::Time,
            want: &$crate::SendRequest,
            cx: &mut $crate::PolicyCx<'_>,
        ) -> $crate::cc::Permit {
            $crate::forwards!(@call $to self permit(now, want, cx))
        }
    };
    (@ $to:tt pick) => {
        #[inline]
        fn pick(
            &self,
            now: $crate::units::Time,
            want: &$crate::SendRequest,
            cx: &mut $crate::PolicyCx<'_>,
        ) -> $crate::units::PathId {
            $crate::forwards!(@call $to self pick(now, want, cx))
        }
    };
    (@ $to:tt make_control) => {
        fn make_control(
            &mut self,
            now: $crate::units::Time,
            path: $crate::units::PathId,
            in_flight: ::core::ops::Range<u64>,
            cx: &mut $crate::PolicyCx<'_>,
        ) -> $crate::Outgoing {
            $crate::forwards!(@call $to self make_control(now, path, in_flight, cx))
        }
    };
    (@ $to:tt on_copy_sent) => {
        fn on_copy_sent(
            &mut self,
            now: $crate::units::Time,
            psn: u64,
            path: $crate::units::PathId,
            wire_bytes: u32,
            cx: &mut $crate::PolicyCx<'_>,
        ) {
            $crate::forwards!(@call $to self on_copy_sent(now, psn, path, wire_bytes, cx))
        }
    };
    (@ $to:tt on_feedback) => {
        #[inline]
        fn on_feedback(
            &mut self,
            now: $crate::units::Time,
            feedback: &$crate::Feedback,
            cx: &mut $crate::PolicyCx<'_>,
        ) {
            $crate::forwards!(@call $to self on_feedback(now, feedback, cx))
        }
    };
    (@ $to:tt on_control) => {
        fn on_control(
            &mut self,
            now: $crate::units::Time,
            feedback: &$crate::ControlFeedback,
            cx: &mut $crate::PolicyCx<'_>,
        ) {
            $crate::forwards!(@call $to self on_control(now, feedback, cx))
        }
    };
    (@ $to:tt on_paths) => {
        fn on_paths(
            &mut self,
            now: $crate::units::Time,
            paths: &[$crate::PathView],
            cx: &mut $crate::PolicyCx<'_>,
        ) {
            $crate::forwards!(@call $to self on_paths(now, paths, cx))
        }
    };
    (@ $to:tt on_timer) => {
        fn on_timer(&mut self, now: $crate::units::Time, cx: &mut $crate::PolicyCx<'_>) {
            $crate::forwards!(@call $to self on_timer(now, cx))
        }
    };
    (@ $to:tt next_timer) => {
        #[inline]
        fn next_timer(&self) -> Option<$crate::units::Time> {
            $crate::forwards!(@call $to self next_timer())
        }
    };
    (@ $to:tt rate) => {
        fn rate(&self, now: $crate::units::Time) -> Option<$crate::units::Rate> {
            $crate::forwards!(@call $to self rate(now))
        }
    };
    (@ $to:tt window) => {
        fn window(&self) -> Option<$crate::SendWindow> {
            $crate::forwards!(@call $to self window())
        }
    };
    (@ $to:tt path_beyond_window) => {
        fn path_beyond_window(
            &mut self,
            now: $crate::units::Time,
            want: &$crate::SendRequest,
            cx: &mut $crate::PolicyCx<'_>,
        ) -> $crate::units::PathId {
            $crate::forwards!(@call $to self path_beyond_window(now, want, cx))
        }
    };
    (@ $to:tt adapt_to_fabric) => {
        fn adapt_to_fabric(&mut self, fabric: &$crate::FabricEnv<'_>) {
            $crate::forwards!(@call $to self adapt_to_fabric(fabric))
        }
    };
    (@ $to:tt uses_longest_path) => {
        fn uses_longest_path(&self) -> bool {
            $crate::forwards!(@call $to self uses_longest_path())
        }
    };
    (@ $to:tt reads_telemetry) => {
        fn reads_telemetry(&self) -> bool {
            $crate::forwards!(@call $to self reads_telemetry())
        }
    };
    (@ $to:tt base_path) => {
        fn base_path(&self) -> $crate::BasePath {
            $crate::forwards!(@call $to self base_path())
        }
    };
    (@ $to:tt marks) => {
        fn marks(&self) -> $crate::MarkUse {
            $crate::forwards!(@call $to self marks())
        }
    };
    (@ $to:tt host_delay) => {
        fn host_delay(&self) -> $crate::HostDelay {
            $crate::forwards!(@call $to self host_delay())
        }
    };
    (@ $to:tt late_wait) => {
        fn late_wait(&self) -> $crate::LateWait {
            $crate::forwards!(@call $to self late_wait())
        }
    };
    (@ $to:tt adapt_to_host) => {
        fn adapt_to_host(&mut self, host: &$crate::HostEnv) {
            $crate::forwards!(@call $to self adapt_to_host(host))
        }
    };
}
