//! Empty method bodies for policies. The methods of [`Policy`](crate::Policy) have no default bodies, so a wrapper
//! that forgets to forward one does not compile. The same holds for congestion controls and path pickers.

/// Expands to empty bodies of the named methods. Not for a type that wraps another. `on_timer` includes a
/// `next_timer` that sets no timer. Applies to [`Policy`](crate::Policy), and to
/// [`CongestionControl`](crate::cc::CongestionControl) and [`PathPicker`](crate::picker::PathPicker) for the methods
/// that they have. `make_control` is never called on a policy that grants no control packet.
///
/// ```text
/// impl Policy for Udmp {
///     pathweave_policy::ignores!(on_open, on_close);
///     ...
/// }
/// ```
#[macro_export]
macro_rules! ignores {
    ($($method:ident),+ $(,)?) => { $( $crate::ignores!(@ $method); )+ };
    (@ on_open) => {
        fn on_open(&mut self, _: $crate::units::Time, _: &$crate::QueuePairId, _: &mut $crate::PolicyCx<'_>) {}
    };
    (@ on_close) => {
        fn on_close(&mut self, _: &mut $crate::PolicyCx<'_>) {}
    };
    (@ make_control) => {
        fn make_control(
            &mut self,
            _: $crate::units::Time,
            _: $crate::units::PathId,
            _: ::core::ops::Range<u64>,
            _: &mut $crate::PolicyCx<'_>,
        ) -> $crate::Outgoing {
            unreachable!("a policy that grants no control packet is asked for one")
        }
    };
    (@ on_copy_sent) => {
        fn on_copy_sent(
            &mut self,
            _: $crate::units::Time,
            _: u64,
            _: $crate::units::PathId,
            _: u32,
            _: &mut $crate::PolicyCx<'_>,
        ) {
        }
    };
    (@ on_feedback) => {
        #[inline]
        fn on_feedback(
            &mut self,
            _: $crate::units::Time,
            _: &$crate::Feedback,
            _: &mut $crate::PolicyCx<'_>,
        ) {
        }
    };
    (@ on_timer) => {
        fn on_timer(&mut self, _: $crate::units::Time, _: &mut $crate::PolicyCx<'_>) {}
        fn next_timer(&self) -> Option<$crate::units::Time> {
            None
        }
    };
    (@ window) => {
        fn window(&self) -> Option<$crate::SendWindow> {
            None
        }
    };
    (@ path_beyond_window) => {
        fn path_beyond_window(
            &mut self,
            _: $crate::units::Time,
            _: &$crate::SendRequest,
            _: &mut $crate::PolicyCx<'_>,
        ) -> $crate::units::PathId {
            unreachable!("a policy without a window is not asked for what is beyond it")
        }
    };
    (@ on_control) => {
        fn on_control(
            &mut self,
            _: $crate::units::Time,
            _: &$crate::ControlFeedback,
            _: &mut $crate::PolicyCx<'_>,
        ) {
        }
    };
}
